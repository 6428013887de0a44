"""A country, grid zone or cloud region comes in, its newest yearly carbon intensity goes out.

From files, without any network.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal, cast

from ct_notebook.errors import CtNotebookError, SettingError, shown
from ct_notebook.records import Intensity

from .great_britain import part_of_britain

COUNTRIES = "country_intensity.csv"
ZONES = "zone_country.csv"
GRID_ZONES = "zone_intensity.csv"
REGIONS = "region_intensity.csv"

WITHIN_A_YEAR = (0.5, 1.6)
"""How far a grid's intensity at some hour is from its yearly mean: a factor of 1.5 to 2 on a mixed grid, 1.1
on a steady one; over a run of days it is closer. A judgement, not a statistic."""

ANYWHERE = (0.05, 1.7)
"""How far a country is from the world average, from hydropower (about 25 g/kWh) to coal (about 800 g/kWh):
nine in ten countries of the table lie within it."""

IMPOSSIBLE_G_PER_KWH = 2000.0
EARLIEST_YEAR = 2000
"""A row beyond these is damage."""

ALIASES = {"UK": "GB", "EL": "GR"}

OTHER_NAMES = {
    "america": "US",
    "britain": "GB",
    "burma": "MM",
    "czech republic": "CZ",
    "côte d'ivoire": "CI",
    "dr congo": "CD",
    "england": "GB",
    "great britain": "GB",
    "holland": "NL",
    "ivory coast": "CI",
    "macau": "MO",
    "republic of ireland": "IE",
    "republic of korea": "KR",
    "russian federation": "RU",
    "scotland": "GB",
    "swaziland": "SZ",
    "the netherlands": "NL",
    "turkiye": "TR",
    "türkiye": "TR",
    "u.k.": "GB",
    "u.s.": "US",
    "u.s.a.": "US",
    "uae": "AE",
    "united states of america": "US",
    "viet nam": "VN",
    "wales": "GB",
}
"""Countries by names that people use beside those of the table, in small letters."""
"""Codes that people use and the standard does not."""

PROVIDERS = {
    "gcp": "gcp",
    "google": "gcp",
    "aws": "aws",
    "amazon": "aws",
    "azure": "azure",
    "microsoft": "azure",
}
"""Clouds by the names that people give them."""

CLOUDS = {"gcp": "Google Cloud", "aws": "AWS", "azure": "Azure"}

REGION = re.compile(rf"\s*(?:({'|'.join(PROVIDERS)})\s*[:/\s]\s*)?(.*?)\s*", re.IGNORECASE | re.DOTALL)
"""`gcp:europe-west1`, `aws eu-north-1`, `West Europe`."""

PART_OF_REGION = re.compile(r"(.*\d)-?[a-z]")
"""One of the data centres of a region: europe-west1-b of Google, eu-north-1a of Amazon."""

Kind = Literal["lifecycle", "direct"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table of countries."""

    iso2: str
    iso3: str
    name: str
    g_per_kwh: float
    year: int
    kind: Kind
    source: str


@dataclass(frozen=True, slots=True)
class Zone:
    """One row of the table of grid zones, by the codes of Electricity Maps."""

    zone: str
    name: str
    iso2: str
    g_per_kwh: float
    year: int
    kind: Kind
    source: str


@dataclass(frozen=True, slots=True)
class Region:
    """One row of the table of cloud regions.

    Attributes
    ----------
    g_per_kwh, year, kind, source
        The provider's own figure; None and "" where it publishes none: then the zone's is used.
    """

    provider: str
    region: str
    place: str
    iso2: str
    zone: str
    g_per_kwh: float | None
    year: int
    kind: Kind | Literal[""]
    source: str

    @property
    def name(self) -> str:
        """As one would write it: gcp:europe-west1."""
        return f"{self.provider}:{self.region}"


def of_country(text: str, how: str) -> Intensity:
    """The intensity of a country by its code or English name.

    Raises
    ------
    SettingError
        No such country; the nearest names are given.
    CtNotebookError
        The table is missing or damaged.
    """
    iso2 = country_code(text)
    row = _countries()[iso2]
    return Intensity(
        g_per_kwh=row.g_per_kwh,
        zone=iso2,
        place=row.name,
        source=row.source,
        time=str(row.year),
        kind=row.kind,
        how=how,
        low=WITHIN_A_YEAR[0],
        high=WITHIN_A_YEAR[1],
    )


def of_the_world(how: str) -> Intensity:
    """The world average, the last resort: the place is unknown, and is called so."""
    row = _countries()[""]
    return Intensity(
        g_per_kwh=row.g_per_kwh,
        zone=None,
        place="Unknown",
        source=f"world average, {row.source}",
        time=str(row.year),
        kind=row.kind,
        is_fallback=True,
        how=how,
        low=ANYWHERE[0],
        high=ANYWHERE[1],
    )


def of_zone(text: str, how: str) -> Intensity:
    """The yearly intensity of a grid zone by its code or name.

    Raises
    ------
    SettingError
        No such zone; the nearest ones are given.
    CtNotebookError
        The table is missing or damaged.
    """
    return _of_zone(find_zone(text), how)


def of_region(text: str, how: str, *, kind: Kind | None = None) -> Intensity:
    """The yearly intensity of a region of a cloud.

    Google's own figure where it is a region of Google's, else that of the grid zone the region hangs on.

    Parameters
    ----------
    text
        `europe-west1`, `gcp:europe-west1`, `aws eu-north-1`, `West Europe`.
    how
        How the region was found.
    kind
        Only a figure of this kind, so that regions of several clouds can be compared: "lifecycle" is the
        zone's for all of them.

    Raises
    ------
    SettingError
        No such region, the nearest ones are given; or no figure of this kind.
    CtNotebookError
        The table is missing or damaged.
    """
    region = find_region(text)
    place = f"{region.place} ({CLOUDS[region.provider]} {region.region})"
    if region.g_per_kwh is None or kind not in {None, region.kind}:
        found = _of_zone(_grid_zones()[region.zone], how)
        if kind not in {None, found.kind}:
            msg = f"region={shown(text)} has no {kind} figure; take the {found.kind} one."
            raise SettingError(msg)
        return replace(found, place=place)
    return Intensity(
        g_per_kwh=region.g_per_kwh,
        zone=region.zone,
        place=place,
        source=region.source,
        time=str(region.year),
        kind=region.kind,
        how=how,
        low=WITHIN_A_YEAR[0],
        high=WITHIN_A_YEAR[1],
    )


def zones() -> tuple[str, ...]:
    """Codes of all grid zones, in order."""
    return tuple(sorted(_grid_zones()))


def regions() -> tuple[str, ...]:
    """Names of all cloud regions, with their provider, in order: `gcp:europe-west1`."""
    return tuple(sorted(region.name for region in _regions().values()))


def has_zone(code: str) -> bool:
    """Whether the table has a row for the code of a grid zone."""
    return code in _grid_zones()


def find_zone(text: str) -> Zone:
    """A grid zone by its code or name, in any case.

    Raises
    ------
    SettingError
        No such zone; the nearest ones are given.
    """
    found = _grid_zones()
    wanted = text.strip()
    if wanted.upper() in found:
        return found[wanted.upper()]
    names = {zone.name.casefold(): code for code, zone in found.items()}
    names |= {code.casefold(): code for code in found}
    if wanted.casefold() in names:
        return found[names[wanted.casefold()]]
    if part_of_britain(wanted) is not None:
        return found["GB"]  # a live source tells it apart, the table does not
    # Codes of the same country are near whatever stands behind it: FR-PARIS is like no code by its letters.
    country = wanted.upper().split("-", maxsplit=1)[0]
    codes = [names[name] for name in _near(wanted.casefold(), names)]
    of_it = [code for code in sorted(found) if code.split("-", maxsplit=1)[0] == country]
    codes = [code for code in codes if code in of_it or not of_it] + of_it
    hint = ", ".join(f"{code} ({found[code].name})" for code in list(dict.fromkeys(codes))[:3])
    msg = (
        f"zone={shown(text)} is not in the table"
        + (f"; did you mean {hint}?" if hint else ".")
        + " Give a zone of Electricity Maps (DK-DK1), a country, or the figure itself with carbon_intensity."
    )
    raise SettingError(msg)


def find_region(text: str) -> Region:
    """A region of a cloud, with or without its provider before it, in any case.

    Raises
    ------
    SettingError
        No such region; the nearest ones are given.
    """
    match = REGION.fullmatch(text)
    assert match is not None, "the pattern takes any text"
    provider = PROVIDERS.get((match[1] or "").lower(), "")
    wanted = match[2].lower()
    # Azure's portal writes "West Europe" for westeurope; Google's and Amazon's names have no spaces.
    candidates = [wanted, wanted.replace(" ", ""), wanted.replace(" ", "-")]
    part = PART_OF_REGION.fullmatch(wanted)
    candidates += [part[1]] if part is not None else []
    found = _regions()
    for candidate in candidates:
        if candidate in found and provider in {"", found[candidate].provider}:
            return found[candidate]
    of_it = {name: region for name, region in found.items() if provider in {"", region.provider}}
    near = [name for name, region in of_it.items() if region.place.casefold() == wanted]
    near += _near(wanted, of_it)
    hint = ", ".join(of_it[name].name for name in list(dict.fromkeys(near))[:3])
    msg = (
        f"region={shown(text)} is not in the table"
        + (f"; did you mean {hint}?" if hint else ".")
        + " Give a region of Google Cloud, AWS or Azure (gcp:europe-west1), or a country or zone."
    )
    raise SettingError(msg)


def country_code(text: str) -> str:
    """The alpha-2 code of a country given by alpha-2, alpha-3 or English name, in any case.

    Raises
    ------
    SettingError
        No such country; the nearest names are given.
    """
    countries = _countries()
    wanted = text.strip()
    code = ALIASES.get(wanted.upper(), wanted.upper())
    if code and code in countries:
        return code
    names = {name: iso2 for name, iso2 in OTHER_NAMES.items() if iso2 in countries}
    for row in countries.values():
        if row.iso2:
            names[row.name.casefold()] = row.iso2
            if row.iso3:
                names[row.iso3.casefold()] = row.iso2
    if wanted.casefold() in names:
        return names[wanted.casefold()]
    near = difflib.get_close_matches(wanted.casefold(), names, n=3, cutoff=0.6)
    # A name and a code of three letters may both be near, and are one country.
    hint = ", ".join(
        f"{countries[iso2].name} ({iso2})" for iso2 in dict.fromkeys(names[name] for name in near)
    )
    msg = (
        f"country={shown(text)} is not in the table"
        + (f"; did you mean {hint}?" if hint else ".")
        + " Give an ISO 3166 code (DK or DNK) or an English name (Denmark), in capitals or not, or "
        "the figure itself with carbon_intensity."
    )
    raise SettingError(msg)


def has_country(iso2: str) -> bool:
    """Whether the table has a row for an alpha-2 code."""
    return bool(iso2) and iso2 in _countries()


def country_of_zone(zone: str) -> str | None:
    """The alpha-2 code of the country of a time zone; None if it has none, or none in the table."""
    iso2 = _zones().get(zone)
    return iso2 if iso2 is not None and has_country(iso2) else None


@cache
def _countries() -> dict[str, Row]:
    rows = {}
    try:
        for raw in _read(COUNTRIES):
            row = Row(
                raw["iso2"],
                raw["iso3"],
                raw["name"],
                float(raw["g_per_kwh"]),
                int(raw["year"]),
                cast("Kind", raw["kind"]),
                raw["source"],
            )
            if not _is_possible(row) or row.iso2 in rows:
                raise ValueError(raw)  # noqa: TRY301 - told below like any other damage
            rows[row.iso2] = row
        rows[""]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise _damaged(COUNTRIES, error) from error
    return rows


def _is_possible(row: Row | Zone | Region) -> bool:
    return (
        row.g_per_kwh is not None
        and 0 < row.g_per_kwh < IMPOSSIBLE_G_PER_KWH
        and row.year >= EARLIEST_YEAR
        and row.kind in {"lifecycle", "direct"}
        and bool(row.name)
        and bool(row.source)
    )


def _near(wanted: str, names: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)


def _of_zone(zone: Zone, how: str) -> Intensity:
    return Intensity(
        g_per_kwh=zone.g_per_kwh,
        zone=zone.zone,
        place=zone.name,
        source=zone.source,
        time=str(zone.year),
        kind=zone.kind,
        how=how,
        low=WITHIN_A_YEAR[0],
        high=WITHIN_A_YEAR[1],
    )


@cache
def _grid_zones() -> dict[str, Zone]:
    found: dict[str, Zone] = {}
    try:
        for raw in _read(GRID_ZONES):
            zone = Zone(
                raw["zone"],
                raw["name"],
                raw["iso2"],
                float(raw["g_per_kwh"]),
                int(raw["year"]),
                cast("Kind", raw["kind"]),
                raw["source"],
            )
            if not (_is_possible(zone) and zone.zone and zone.iso2) or zone.zone in found:
                raise ValueError(raw)  # noqa: TRY301 - told below like any other damage
            found[zone.zone] = zone
        if not found:
            raise ValueError(found)  # noqa: TRY301 - same
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise _damaged(GRID_ZONES, error) from error
    return found


@cache
def _regions() -> dict[str, Region]:
    known = _grid_zones()
    found: dict[str, Region] = {}
    try:
        for raw in _read(REGIONS):
            region = Region(
                raw["provider"],
                raw["region"],
                raw["place"],
                raw["iso2"],
                raw["zone"],
                float(raw["g_per_kwh"]) if raw["g_per_kwh"] else None,
                int(raw["year"] or 0),
                cast("Kind", raw["kind"]),
                raw["source"],
            )
            is_whole = region.provider in CLOUDS and region.region and region.place and region.zone in known
            if not is_whole or region.region in found or region.iso2 != known[region.zone].iso2:
                raise ValueError(raw)  # noqa: TRY301 - told below like any other damage
            if region.g_per_kwh is not None and not _is_possible(region):
                raise ValueError(raw)  # noqa: TRY301 - same
            found[region.region] = region
        if not found:
            raise ValueError(found)  # noqa: TRY301 - same
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise _damaged(REGIONS, error) from error
    return found


@cache
def _zones() -> dict[str, str]:
    try:
        zones = {raw["zone"]: raw["iso2"] for raw in _read(ZONES)}
        if not zones or not all(zones.values()):
            raise ValueError(zones)  # noqa: TRY301 - told below like any other damage
    except (KeyError, ValueError, csv.Error) as error:
        raise _damaged(ZONES, error) from error
    return zones


def _read(name: str) -> list[dict[str, str]]:
    try:
        text = resources.files(__package__).joinpath("data").joinpath(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(name, error) from error
    if not text.endswith("\n"):
        # Cut short: its last row may look whole, and what is missing would be told as an unknown place.
        raise _damaged(name, EOFError("it has no end"))
    return list(csv.DictReader(text.splitlines()))


def _damaged(name: str, error: Exception) -> CtNotebookError:
    return CtNotebookError(
        f"The table {name} of ct_notebook is missing or damaged ({error!r:.200}). Install ct_notebook again, "
        "or give the figure with carbon_intensity."
    )
