"""The environment comes in, the country the machine stands in goes out. Nothing is asked over the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .table import country_of_zone, has_country

ZONEINFO = "zoneinfo/"

AWS_COUNTRIES = {
    # Country codes of AWS regions that begin with one; the others are listed by region.
    "us": "US",
    "ca": "CA",
    "sa": "BR",
    "mx": "MX",
    "il": "IL",
    "eu-west-1": "IE",
    "eu-west-2": "GB",
    "eu-west-3": "FR",
    "eu-central-1": "DE",
    "eu-central-2": "CH",
    "eu-north-1": "SE",
    "eu-south-1": "IT",
    "eu-south-2": "ES",
    "af-south-1": "ZA",
    "ap-south-1": "IN",
    "ap-south-2": "IN",
    "ap-northeast-1": "JP",
    "ap-northeast-2": "KR",
    "ap-northeast-3": "JP",
    "ap-southeast-1": "SG",
    "ap-southeast-2": "AU",
    "ap-southeast-3": "ID",
    "ap-southeast-4": "AU",
    "ap-southeast-5": "MY",
    "ap-southeast-7": "TH",
    "ap-east-1": "HK",
    "ap-east-2": "TW",
    "me-south-1": "BH",
    "me-central-1": "AE",
}
"""AWS's public list of regions, 2026."""


@dataclass(frozen=True, slots=True)
class Place:
    """A country and how it was found."""

    country: str
    how: str


def find_place(environ: Mapping[str, str], root: Path = Path("/")) -> Place | None:
    """Find the country of this machine without any network.

    A time zone of a country is taken as its place: right for a laptop or a cluster, and silent where it says
    nothing, as UTC on hosted notebooks does.

    Returns
    -------
    place
        None if nothing tells it. It is then unknown, and never guessed.
    """
    region = environ.get("AWS_REGION", "")
    # On a machine of one's own AWS_REGION is where one's buckets are, not where the machine is.
    if region and "AWS_EXECUTION_ENV" in environ:
        country = AWS_COUNTRIES.get(region) or AWS_COUNTRIES.get(region.split("-")[0])
        if country is not None and has_country(country):
            return Place(country, f"AWS region {region}")
    for zone in _time_zones(environ, root):
        country = country_of_zone(zone)
        if country is not None:
            return Place(country, f"time zone {zone}")
        return None  # the zone in force says nothing, and one that is not in force says less
    return None


def _time_zones(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    """Names of the time zone, the one in force first."""
    variable = environ.get("TZ", "").removeprefix(":")
    if variable:
        yield variable.split(ZONEINFO)[-1]
    try:
        target = (root / "etc/localtime").readlink().as_posix()
    except OSError:
        target = ""
    if ZONEINFO in target:
        yield target.split(ZONEINFO)[-1].removeprefix("posix/").removeprefix("right/")
    try:
        yield (root / "etc/timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return
