"""A key and a zone come in; what Electricity Maps says of it, now and ahead if the plan allows, goes out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ct_notebook.errors import SettingError, SourceError
from ct_notebook.records import Intensity

from .base import (
    MEASURED_OFF,
    Answer,
    Get,
    Outlook,
    answer_of,
    figure_of,
    fresh,
    moment_text,
    part_of,
    rows_of,
    slots_of,
    spread,
    time_of,
)
from .table import find_region, find_zone, has_zone

BASE_URL = "https://api.electricitymaps.com"

VERSIONS = ("v4", "v3")
"""The newest first. The older is called legacy and still served, with the same answers."""

ESTIMATED_OFF = 0.13
"""How far off an estimated figure is taken to be: forecasts by models of the German grid miss by 8 % in the
mean, and 80 % of normal errors lie within 1.6 times that."""

NOT_THERE = frozenset({404, 410})
"""What a version answers that has no such page, or no longer."""

SLOT_S = 3600.0
"""Forecasts are hourly where no other granularity is asked for."""

KEY = re.compile(r"[!-~]{1,200}")
"""What a header can carry; a key has neither spaces nor letters outside ASCII."""


@dataclass(frozen=True, slots=True)
class ElectricityMaps:
    """One zone, or the data centre of a cloud, by the API of Electricity Maps.

    Parameters
    ----------
    key
        The user's own. It goes into one header of each request and nowhere else.
    zone
        Code of the zone, such as DE or US-CAL-CISO; "" if a data centre is given.
    provider, region
        A data centre, such as gcp and europe-west1; "" if a zone is given.
    base_url
        Where the API is.

    Raises
    ------
    SettingError
        Not either a zone or a data centre, or something that cannot be a key.
    """

    key: str = field(repr=False)
    zone: str = ""
    provider: str = ""
    region: str = ""
    base_url: str = BASE_URL

    def __post_init__(self) -> None:
        if not KEY.fullmatch(self.key):
            # The value is not repeated: it may well be a key with a line end.
            msg = "The key of Electricity Maps is empty or has a character that no key has; copy it again."
            raise SettingError(msg)
        if bool(self.zone) == bool(self.provider and self.region):
            msg = "Electricity Maps is asked for either a zone or a data centre (provider and region)."
            raise SettingError(msg)

    @property
    def name(self) -> str:
        """What it is, for people."""
        return f"Electricity Maps, {self.zone or f'{self.provider}:{self.region}'}"

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Ask for the newest figure, then for the forecast. Two to four requests.

        Raises
        ------
        SourceError
            The key was refused, the place is unknown, or the answer cannot be trusted.
        """
        version, answer = self._ask(get, "latest")
        found = answer_of(self.name, answer)
        zone = self._zone_of(found)
        g_per_kwh = figure_of(self.name, part_of(self.name, found, "carbonIntensity"))
        at_s = fresh(self.name, time_of(self.name, part_of(self.name, found, "datetime")), now_unix_s)
        if found.get("emissionFactorType", "lifecycle") != "lifecycle":
            msg = f"{self.name}: the answer is of other emission factors than asked for; it is not used."
            raise SourceError(msg)
        is_estimated = found.get("isEstimated") is not False
        low, high = spread(ESTIMATED_OFF if is_estimated else MEASURED_OFF, at_s, now_unix_s)
        now = Intensity(
            g_per_kwh=g_per_kwh,
            zone=zone,
            place=find_zone(zone).name if has_zone(zone) else zone,
            source="Electricity Maps" + (", estimated" if is_estimated else ""),
            time=moment_text(at_s),
            kind="lifecycle",
            low=low,
            high=high,
        )
        ahead, notes = self._ahead(get, version, zone, now_unix_s)
        return Outlook(now, ahead, notes)

    def _ask(self, get: Get, what: str, versions: tuple[str, ...] = VERSIONS) -> tuple[str, Answer]:
        """The answer of the first version that has such a page, and which it was."""
        params = {"disableCallerLookup": "true", "emissionFactorType": "lifecycle"}
        if self.zone:
            params["zone"] = self.zone
        else:
            params |= {"dataCenterProvider": self.provider.lower(), "dataCenterRegion": self.region.lower()}
        answer = Answer(404, "")
        version = versions[0]
        for version in versions:
            url = f"{self.base_url}/{version}/carbon-intensity/{what}"
            answer = get(url, params=params, headers={"auth-token": self.key})
            if answer.status not in NOT_THERE:
                break
        return version, answer

    def _zone_of(self, found: Any) -> str:
        """The zone that was answered, if it is the one asked for: another means that a place was guessed."""
        zone = part_of(self.name, found, "zone")
        if self.zone:
            is_right = zone == self.zone
        else:
            # Which zone a data centre is in is theirs to say; the country is not.
            is_right = isinstance(zone, str) and has_zone(zone)
            asked = find_region(f"{self.provider}:{self.region}")
            is_right = is_right and find_zone(str(zone)).iso2 == asked.iso2
        if not is_right:
            which = f"of {zone}" if isinstance(zone, str) and has_zone(zone) else "of another place"
            msg = f"{self.name}: the answer is {which}, not of the place asked for; give the zone itself."
            raise SourceError(msg)
        return str(zone)

    def _ahead(
        self, get: Get, version: str, zone: str, now_unix_s: float
    ) -> tuple[tuple[tuple[float, float], ...], tuple[str, ...]]:
        """The forecast and what went wrong with it. A plan without one is nothing wrong."""
        try:
            _, answer = self._ask(get, "forecast", VERSIONS[VERSIONS.index(version) :])
            if answer.status in {401, 403, *NOT_THERE}:
                return (), ()
            found = answer_of(self.name, answer)
            if isinstance(found, Mapping) and found.get("zone", zone) != zone:
                return (), (f"{self.name}: the forecast is of another place and is not used.",)
            slots = [
                (
                    time_of(self.name, part_of(self.name, slot, "datetime")),
                    figure_of(self.name, part_of(self.name, slot, "carbonIntensity")),
                )
                for slot in rows_of(self.name, found, "forecast")
                if part_of(self.name, slot, "carbonIntensity") is not None
            ]
        except SourceError as error:
            return (), (f"{error} Only its forecast is missing.",)
        return slots_of(slots, now_unix_s, SLOT_S), ()
