"""A part of Great Britain comes in; its carbon intensity now and 48 h ahead, by NESO, goes out.

The figures are of what power stations burn (`direct`). Northern Ireland is not in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ct_notebook.errors import SettingError, SourceError
from ct_notebook.records import Intensity

from .base import (
    FORECAST_OFF,
    MEASURED_OFF,
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

BASE_URL = "https://api.carbonintensity.org.uk"
SOURCE = "NESO Carbon Intensity API, CC BY 4.0"
SLOT_S = 1800.0

OUTWARD = re.compile(r"[A-Z]{1,2}[0-9][A-Z0-9]?", re.ASCII)
"""The first half of a postcode. The second half would say where the user lives, and is not needed."""

REGIONS = {
    1: "North Scotland",
    2: "South Scotland",
    3: "North West England",
    4: "North East England",
    5: "Yorkshire",
    6: "North Wales and Merseyside",
    7: "South Wales",
    8: "West Midlands",
    9: "East Midlands",
    10: "East England",
    11: "South West England",
    12: "South England",
    13: "London",
    14: "South East England",
    15: "England",
    16: "Scotland",
    17: "Wales",
}
"""Regions of the API, by number."""


@dataclass(frozen=True, slots=True)
class GreatBritain:
    """Great Britain, or one region of it.

    Parameters
    ----------
    postcode
        Outward half of a postcode, such as NG1; "" if not given.
    region_id
        Region of the API, 1 to 17; 0 if not given.
    base_url
        Where the API is.

    Raises
    ------
    SettingError
        No such region, or not half a postcode.
    """

    postcode: str = ""
    region_id: int = 0
    base_url: str = BASE_URL

    def __post_init__(self) -> None:
        if self.postcode and not OUTWARD.fullmatch(self.postcode):
            msg = f"postcode={self.postcode!r} cannot be meant: give the first half of one, such as NG1."
            raise SettingError(msg)
        if self.region_id and self.region_id not in REGIONS:
            msg = f"region_id={self.region_id!r} cannot be meant: regions of Great Britain are 1 to 17."
            raise SettingError(msg)

    @property
    def name(self) -> str:
        """What it is, for people."""
        return f"NESO, {self._place}"

    @property
    def _place(self) -> str:
        if self.postcode:
            return f"Great Britain, {self.postcode}"
        return f"Great Britain, {REGIONS[self.region_id]}" if self.region_id else "Great Britain"

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Ask for this half-hour, then for the next 48 h. Two requests.

        Raises
        ------
        SourceError
            No figure that can be trusted.
        """
        slot = self._slot_of_now(answer_of(self.name, get(self.base_url + self._path)))
        at_s = fresh(self.name, time_of(self.name, part_of(self.name, slot, "from")), now_unix_s)
        intensity = part_of(self.name, slot, "intensity")
        # The actual figure comes after the half-hour; until then, and for regions, there is the forecast.
        actual = intensity.get("actual") if isinstance(intensity, dict) else None
        figure = part_of(self.name, intensity, "forecast") if actual is None else actual
        low, high = spread(FORECAST_OFF if actual is None else MEASURED_OFF, at_s, now_unix_s)
        now = Intensity(
            g_per_kwh=figure_of(self.name, figure),
            zone="GB",
            place=self._place,
            source=SOURCE + (", forecast" if actual is None else ""),
            time=moment_text(at_s),
            kind="direct",
            low=low,
            high=high,
        )
        try:
            ahead = self._ahead(get, now_unix_s)
        except SourceError as error:
            return Outlook(now, (), (f"{error} Only its forecast is missing.",))
        return Outlook(now, ahead)

    @property
    def _path(self) -> str:
        if self.postcode:
            return f"/regional/postcode/{self.postcode}"
        return f"/regional/regionid/{self.region_id}" if self.region_id else "/intensity"

    def _slot_of_now(self, found: Any) -> Any:
        first = part_of(self.name, found, "data", 0)
        return part_of(self.name, first, "data", 0) if self.postcode or self.region_id else first

    def _ahead(self, get: Get, now_unix_s: float) -> tuple[tuple[float, float], ...]:
        begin = moment_text(now_unix_s)
        if self.postcode:
            path = f"/regional/intensity/{begin}/fw48h/postcode/{self.postcode}"
        elif self.region_id:
            path = f"/regional/intensity/{begin}/fw48h/regionid/{self.region_id}"
        else:
            path = f"/intensity/{begin}/fw48h"
        found = answer_of(self.name, get(self.base_url + path))
        # For a region `data` is an object that holds the list, elsewhere it is the list.
        inner = ("data", "data") if self.postcode or self.region_id else ("data",)
        slots = [
            (
                time_of(self.name, part_of(self.name, slot, "from")),
                figure_of(self.name, part_of(self.name, slot, "intensity", "forecast")),
            )
            for slot in rows_of(self.name, found, *inner)
            if part_of(self.name, slot, "intensity", "forecast") is not None
        ]
        return slots_of(slots, now_unix_s, SLOT_S)


def part_of_britain(zone: str) -> GreatBritain | None:
    """The part of Great Britain that a zone such as GB-NG1 or GB-Wales names; None if it names none.

    Parameters
    ----------
    zone
        GB, a hyphen, and the first half of a postcode or the name of a region of the API.
    """
    country, _, part = zone.strip().partition("-")
    if country.upper() != "GB" or not part:
        return None
    for number, name in REGIONS.items():
        if name.casefold() == part.casefold():
            return GreatBritain(region_id=number)
    return GreatBritain(postcode=part.upper()) if OUTWARD.fullmatch(part.upper()) else None
