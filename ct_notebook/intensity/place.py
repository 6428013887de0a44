"""The environment comes in, the country or cloud region the machine stands in goes out.

`find_place` asks nothing over the network. `cloud_region` asks the machine's own metadata server, and
`locate_by_ip`, for those who said `--locate ip`, a public one; both only in the thread of a `Feed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ct_notebook.errors import SettingError, SourceError

from .base import Answer, Get, answer_of, part_of
from .cloud import AMAZON, GOOGLE, MICROSOFT, Cloud, find_cloud, look_at_machine
from .table import Region, country_of_zone, find_region, has_country

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


GOOGLE_ZONE = "http://metadata.google.internal/computeMetadata/v1/instance/zone"
GOOGLE_HEADERS = {"Metadata-Flavor": "Google"}

AMAZON_TOKEN = "http://169.254.169.254/latest/api/token"  # noqa: S105 - where a token is asked for
AMAZON_TOKEN_HEADERS = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
AMAZON_REGION = "http://169.254.169.254/latest/meta-data/placement/region"

AZURE_LOCATION = (
    "http://169.254.169.254/metadata/instance/compute/location?api-version=2021-02-01&format=text"
)
AZURE_HEADERS = {"Metadata": "true"}

ZONE_OF_GOOGLE = re.compile(r"projects/[^/]{1,40}/zones/([a-z0-9-]{1,40})-[a-z]", re.ASCII)
NAME_OF_REGION = re.compile(r"[a-z0-9-]{1,40}", re.ASCII)
TOKEN = re.compile(r"[!-~]{1,400}")

IP_SERVICES = (
    ("geojs.io", "https://get.geojs.io/v1/ip/geo.json", "country_code"),
    ("ipinfo.io", "https://ipinfo.io/json", "country"),
)
"""Who is asked where an address is, in this order, and under which key the country stands."""


class Ask(Protocol):
    """Ask a metadata server. `ask_metadata` of http.py is the real one."""

    def __call__(self, method: str, url: str, headers: Mapping[str, str]) -> Answer:
        """Give the answer, whatever its status.

        Raises
        ------
        SourceError
            There is none.
        """
        ...


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


def cloud_region(ask: Ask, environ: Mapping[str, str], root: Path = Path("/")) -> Region | None:
    """Find the region of the cloud this machine is in, by its metadata server.

    Asked only where the machine itself says which cloud it is, since elsewhere the address is anyone's. Takes
    two seconds at most; never called where training waits.

    Parameters
    ----------
    ask
        How to ask.
    environ, root
        By which the cloud is known.

    Returns
    -------
    region
        None on no cloud, where nobody answers, or where the region is not in the table.
    """
    cloud = find_cloud(environ, look_at_machine(root))
    try:
        name = None if cloud is None else _region_name(ask, cloud)
        return None if name is None else find_region(name)
    except (SourceError, SettingError):
        # Colab and Kaggle may have no such server, and a region may be newer than the table.
        return None


def _region_name(ask: Ask, cloud: Cloud) -> str | None:
    """The region with its provider, as the table knows it."""
    if cloud is GOOGLE:
        answer = ask("GET", GOOGLE_ZONE, GOOGLE_HEADERS)
        match = ZONE_OF_GOOGLE.fullmatch(answer.text.strip()) if answer.status == 200 else None
        return None if match is None else f"gcp:{match[1]}"
    if cloud is AMAZON:
        token = ask("PUT", AMAZON_TOKEN, AMAZON_TOKEN_HEADERS)
        if token.status != 200 or not TOKEN.fullmatch(token.text.strip()):
            return None
        answer = ask("GET", AMAZON_REGION, {"X-aws-ec2-metadata-token": token.text.strip()})
    elif cloud is MICROSOFT:
        answer = ask("GET", AZURE_LOCATION, AZURE_HEADERS)
    else:
        return None
    name = answer.text.strip().lower()
    if answer.status != 200 or not NAME_OF_REGION.fullmatch(name):
        return None
    return f"{'aws' if cloud is AMAZON else 'azure'}:{name}"


def locate_by_ip(get: Get) -> Place:
    """Ask a public service which country this machine's address belongs to; only for who agreed to it.

    The country is all that is kept of the answer. Behind a proxy, a VPN or in a cloud it is theirs.

    Raises
    ------
    SourceError
        Nobody could tell. One line.
    """
    failures = []
    for name, url, key in IP_SERVICES:
        try:
            iso2 = part_of(name, answer_of(name, get(url)), key)
        except SourceError as error:
            failures.append(str(error))
            continue
        if isinstance(iso2, str) and has_country(iso2):
            return Place(iso2, f"IP address, by {name}")
        failures.append(f"{name}: the answer is of no country in the table; set country.")
    raise SourceError(" ".join(failures))
