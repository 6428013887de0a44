"""A place and keys come in; the sources that know it go out, best first, and one that asks them in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ct_notebook.errors import SourceError

from .base import Get, Outlook, Source
from .cloud import find_cloud, look_at_machine
from .denmark import Denmark
from .electricity_maps import ElectricityMaps
from .france import France
from .great_britain import GreatBritain, part_of_britain
from .place import Ask, Place, cloud_region, find_place, locate_by_ip
from .table import Region, country_code, find_region, find_zone, has_zone, of_country, of_region

KEY_NAME = "electricitymaps"
"""In `api_keys`, however it is written: carbontracker takes it in any case, others put marks between."""

FREE: dict[str, Source] = {
    "GB": GreatBritain(),
    "DK": Denmark(),
    "DK-DK1": Denmark("DK1"),
    "DK-DK2": Denmark("DK2"),
    "FR": France(),
}
"""Sources that need no key, by zone."""

ZONES_OF_COUNTRIES = {"CL": "CL-SEN"}
"""Countries that are one zone of another code."""


def key_of(api_keys: Mapping[str, str] | None) -> str | None:
    """The key of Electricity Maps among the user's keys; None if it is not there."""
    for name, key in (api_keys or {}).items():
        if "".join(filter(str.isalnum, name.lower())) == KEY_NAME:
            return key
    return None


def sources_for(
    *,
    zone: str | None = None,
    country: str | None = None,
    region: str | None = None,
    api_keys: Mapping[str, str] | None = None,
) -> list[Source]:
    """Sources of a place, best first: Electricity Maps if there is a key, then what is free.

    Parameters
    ----------
    zone, country, region
        The place; the most exact of those given counts: region, zone, country.
    api_keys
        The user's keys, by source; `electricitymaps` is read.

    Returns
    -------
    sources
        Empty if none knows the place.

    Raises
    ------
    SettingError
        An unknown place, with the nearest names; or something that cannot be a key.
    """
    if region is not None:
        # By our zone, not by the data centre: their list of data centres has some in a neighbour's grid, and
        # the yearly figure of the table then is of the same place as the live one.
        code = find_region(region).zone
    elif zone is not None:
        code = find_zone(zone).zone
    elif country is not None:
        iso2 = country_code(country)
        code = ZONES_OF_COUNTRIES.get(iso2, iso2)
    else:
        return []
    part = None if zone is None or region is not None else part_of_britain(zone)
    if part is not None and not has_zone(str(zone).strip().upper()):
        return [part]
    sources: list[Source] = []
    key = key_of(api_keys)
    if key is not None and has_zone(code):
        sources.append(ElectricityMaps(key.strip(), code))
    if code in FREE:
        sources.append(FREE[code])
    return sources


@dataclass(frozen=True, slots=True)
class FirstOf:
    """Asks several sources in turn until one answers.

    Parameters
    ----------
    sources
        Best first, at least one.
    how
        How the place was found.
    """

    sources: tuple[Source, ...]
    how: str = ""

    @property
    def name(self) -> str:
        """What it is, for people."""
        return self.sources[0].name

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Give the first answer; what failed before it stands in its notes.

        Raises
        ------
        SourceError
            All failed.
        """
        failures: list[str] = []
        for source in self.sources:
            try:
                found = source.outlook(get, now_unix_s)
            except SourceError as error:
                failures.append(str(error))
                continue
            now = replace(found.now, how=self.how or found.now.how)
            return Outlook(now, found.ahead, (*failures, *found.notes))
        raise SourceError(" ".join(failures))


@dataclass(frozen=True, slots=True)
class Here:
    """Finds out where the machine is by asking, then asks what knows that place.

    For a place that nothing but the network tells: a machine of a cloud asks its own metadata server, and
    where the user agreed, a public service is asked for the country of the address. What no live source knows
    has the yearly figure of the table.

    Parameters
    ----------
    ask
        How a metadata server is asked.
    environ, root
        By which a cloud is known.
    api_keys
        The user's keys, as pairs of source and key.
    may_locate_by_ip
        Whether the user said `--locate ip`.
    """

    ask: Ask
    environ: Mapping[str, str] = field(repr=False, compare=False)
    root: Path = Path("/")
    api_keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    may_locate_by_ip: bool = False

    @property
    def name(self) -> str:
        """What it is, for people."""
        return "The place of this machine"

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Find the place, once in a process, and give its figure: live, or of the table.

        Raises
        ------
        SourceError
            The place cannot be found.
        """
        place = _places.get(self)
        if place is None:
            place = _places[self] = self._find(get)
        keys = dict(self.api_keys)
        if isinstance(place, Region):
            how = f"metadata of the cloud, region {place.region}"
            known = of_region(place.name, how)
            sources = sources_for(region=place.name, api_keys=keys)
        else:
            how = place.how
            known = of_country(place.country, how)
            sources = sources_for(country=place.country, api_keys=keys)
        if not sources:
            return Outlook(known)
        try:
            return FirstOf(tuple(sources), how).outlook(get, now_unix_s)
        except SourceError as error:
            return Outlook(known, (), (str(error),))

    def _find(self, get: Get) -> Region | Place:
        region = cloud_region(self.ask, self.environ, self.root)
        if region is not None:
            return region
        # Lambda and SageMaker have no such server, but a variable; the table goes by it as well.
        place = find_place(self.environ, self.root)
        if place is not None:
            return place
        if self.may_locate_by_ip:
            return locate_by_ip(get)
        msg = f"{self.name}: nothing tells it; set country, zone or region."
        raise SourceError(msg)


_places: dict[Here, Region | Place] = {}
"""Where machines were found to be: a place is asked for once in a process."""


def live_source(
    *,
    zone: str | None,
    country: str | None,
    region: str | None,
    api_keys: Mapping[str, str] | None,
    may_locate_by_ip: bool,
    ask: Ask,
    environ: Mapping[str, str],
    root: Path = Path("/"),
) -> Source | None:
    """What to ask for the intensity where the machine is; None if no live source knows the place.

    The place is the first that is known: what the user says; a cloud's region, by a variable or its metadata;
    the time zone's country; the address's country, if the user agreed. Nothing is asked yet.

    Parameters
    ----------
    zone, country, region
        What the user says.
    api_keys
        The user's keys, by source.
    may_locate_by_ip
        Whether the user said `--locate ip`.
    ask
        How a metadata server is asked.
    environ, root
        By which clouds and time zones are known.

    Raises
    ------
    SettingError
        An unknown place, with the nearest names; or something that cannot be a key.
    """
    keys = dict(api_keys or {})
    if zone is not None or country is not None or region is not None:
        sources = sources_for(zone=zone, country=country, region=region, api_keys=keys)
        return FirstOf(tuple(sources), "setting") if sources else None
    here = Here(ask, environ, root, tuple(sorted(keys.items())), may_locate_by_ip)
    place = find_place(environ, root)
    if find_cloud(environ, look_at_machine(root)) is not None:
        return here
    if place is not None:
        sources = sources_for(country=place.country, api_keys=keys)
        return FirstOf(tuple(sources), place.how) if sources else None
    return here if may_locate_by_ip else None
