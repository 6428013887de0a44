"""A country comes in, its newest yearly carbon intensity goes out. From a file, without any network."""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, cast

from ct_notebook.errors import CtNotebookError, SettingError
from ct_notebook.records import Intensity

COUNTRIES = "country_intensity.csv"
ZONES = "zone_country.csv"

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
"""Codes that people use and the standard does not."""

Kind = Literal["lifecycle", "direct"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    iso2: str
    iso3: str
    name: str
    g_per_kwh: float
    year: int
    kind: Kind
    source: str


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
    names = {}
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
        f"country={text!r} is not in the table"
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


def _is_possible(row: Row) -> bool:
    return (
        0 < row.g_per_kwh < IMPOSSIBLE_G_PER_KWH
        and row.year >= EARLIEST_YEAR
        and row.kind in {"lifecycle", "direct"}
        and bool(row.name)
        and bool(row.source)
    )


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
    return list(csv.DictReader(text.splitlines()))


def _damaged(name: str, error: Exception) -> CtNotebookError:
    return CtNotebookError(
        f"The table {name} of ct_notebook is missing or damaged ({error!r:.200}). Install ct_notebook again, "
        "or give the figure with carbon_intensity."
    )
