"""The environment comes in, the country the machine stands in goes out. Nothing is asked over the network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .cloud import AMAZON, find_cloud, look_at_machine
from .table import country_of_zone

DATABASE = re.compile(r"(?:.*zoneinfo[^/]*/)?(?:posix/|right/)?")
"""What may stand before a zone's name: the tz database is in /usr/share/zoneinfo on Linux, and on a Mac in
/var/db/timezone/zoneinfo or /usr/share/zoneinfo.default; posix and right are two builds of it."""

AWS_COUNTRIES = {
    # Regions that begin with the code of a country are listed by it, the others one by one.
    "us": "US",
    "ca": "CA",
    "cn": "CN",
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
    "ap-southeast-6": "NZ",
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

    A time zone of a country is taken as its place: right for a laptop or a cluster. UTC and its like say
    nothing. On a machine of a known cloud no time zone does: one other than UTC is there because someone
    wants to read their own clock. A region in a variable is mostly where one's storage is, not one's machine.
    AWS sets it where it runs one's code, so it counts on a machine of AWS and nowhere else.

    Parameters
    ----------
    environ
        Variables; `TZ`, `AWS_REGION`, `AWS_DEFAULT_REGION` and those by which a cloud is known are read.
    root
        Where `/etc`, `/sys` and `/proc` lie.

    Returns
    -------
    place
        None if nothing tells it. It is then unknown, and never guessed.
    """
    cloud = find_cloud(environ, look_at_machine(root))
    if cloud is AMAZON:
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
        country = AWS_COUNTRIES.get(region) or AWS_COUNTRIES.get(region.split("-")[0])
        return Place(country, f"environment, AWS region {region}") if country is not None else None
    if cloud is not None:
        return None
    # Only the zone in force counts; if that one says nothing, one that is not in force says less.
    zone = next(_time_zones(environ, root), None)
    country = None if zone is None else country_of_zone(zone)
    return None if country is None else Place(country, f"time zone {zone}")


def _time_zones(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    """Names of the time zone, the one in force first."""
    variable = environ.get("TZ", "").removeprefix(":")
    if variable:
        yield DATABASE.sub("", variable, count=1)
    try:
        target = (root / "etc/localtime").readlink().as_posix()
    except OSError:
        target = ""
    if "zoneinfo" in target:
        yield DATABASE.sub("", target, count=1)
    try:
        yield (root / "etc/timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return
