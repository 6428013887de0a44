"""Where a machine is: by its metadata server, and by its address for those who agreed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ct_notebook.errors import SettingError, SourceError
from ct_notebook.intensity import place, sources
from ct_notebook.intensity.base import Answer
from ct_notebook.intensity.electricity_maps import ElectricityMaps
from ct_notebook.intensity.http import ask_metadata, live_get
from ct_notebook.intensity.place import cloud_region, locate_by_ip
from ct_notebook.intensity.sources import FirstOf, Here, live_source
from support.machine import machine
from support.web_server import Handler, WebServer, as_json, be_impatient, be_patient, never, text, web_server

GOOGLE = {"sys_vendor": "Google", "product_name": "Google Compute Engine"}
AMAZON = {"sys_vendor": "Amazon EC2", "product_name": "g5.xlarge"}
AZURE = {
    "sys_vendor": "Microsoft Corporation",
    "product_name": "Virtual Machine",
    "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
}
LAPTOP = {"sys_vendor": "LENOVO", "product_name": "20XW", "chassis_type": "10"}
NOW_S = 1_772_367_000.0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    be_patient(monkeypatch)
    with web_server() as found:
        for name in ("GOOGLE_ZONE", "AMAZON_TOKEN", "AMAZON_REGION", "AZURE_LOCATION"):
            address = getattr(place, name).split("/", 3)[3]
            monkeypatch.setattr(place, name, f"{found.url}/{address}")
        services = tuple((name, f"{found.url}/{name}", key) for name, _, key in place.IP_SERVICES)
        monkeypatch.setattr(place, "IP_SERVICES", services)
        sources._places.clear()
        yield found
        sources._places.clear()


def needs(header: str, value: str, body: str) -> Any:
    """A page for those who send a header, and 401 for others, as metadata servers do."""

    def page(handler: Handler) -> None:
        is_right = handler.headers.get(header) == value
        (text(body) if is_right else text("", 401))(handler)

    return page


def token(handler: Handler) -> None:
    is_right = handler.command == "PUT" and handler.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
    (text("AQAEtoken==") if is_right else text("", 405))(handler)


def all_clouds(server: WebServer) -> None:
    server.pages = {
        "/computeMetadata/v1/instance/zone": needs(
            "Metadata-Flavor", "Google", "projects/123/zones/us-central1-a"
        ),
        "/latest/api/token": token,
        "/latest/meta-data/placement/region": needs("X-aws-ec2-metadata-token", "AQAEtoken==", "eu-north-1"),
        "/metadata/instance/compute/location": needs("Metadata", "true", "westeurope"),
    }


@pytest.mark.parametrize(
    ("dmi", "region"),
    [(GOOGLE, "gcp:us-central1"), (AMAZON, "aws:eu-north-1"), (AZURE, "azure:westeurope"), (LAPTOP, None)],
)
def test_a_machine_of_a_cloud_asks_that_clouds_metadata_and_no_other_asks(
    server: WebServer, tmp_path: Path, dmi: dict[str, str], region: str | None
) -> None:
    all_clouds(server)
    found = cloud_region(ask_metadata, {}, machine(tmp_path, **dmi))
    assert (None if found is None else found.name) == region
    assert len(server.requests) == {None: 0, "aws:eu-north-1": 2}.get(region, 1)


@pytest.mark.parametrize(
    "body",
    ["", "<html>", "projects/1/zones/", "projects/1/zones/moon-west1-a", "projects/1/zones/us-central1-a\nx"],
)
@pytest.mark.parametrize("dmi", [GOOGLE, AMAZON, AZURE])
def test_metadata_that_is_none_gives_no_place(
    server: WebServer, tmp_path: Path, body: str, dmi: dict[str, str]
) -> None:
    root = machine(tmp_path, **dmi)
    server.pages["*"] = text(body)
    assert cloud_region(ask_metadata, {}, root) is None
    server.pages["*"] = text("us-central1", 404)
    assert cloud_region(ask_metadata, {}, root) is None


def test_a_metadata_server_that_is_silent_gives_no_place(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    be_impatient(monkeypatch)
    server.pages["*"] = never
    assert cloud_region(ask_metadata, {"COLAB_RELEASE_TAG": "x"}, tmp_path) is None
    assert len(server.requests) == 1


def test_an_address_gives_its_country_and_nothing_else(server: WebServer) -> None:
    server.pages["/geojs.io"] = as_json(
        {"ip": "192.0.2.7", "country_code": "CA", "latitude": "43.6", "longitude": "-79.3"}
    )
    found = locate_by_ip(live_get)
    assert (found.country, found.how) == ("CA", "IP address, by geojs.io")
    assert "192.0.2.7" not in repr(found)
    assert "43.6" not in repr(found)


@pytest.mark.parametrize(
    "first", [text("", 500), text("<html>"), as_json({}), as_json({"country_code": "XX"})]
)
def test_the_second_service_is_asked_where_the_first_does_not_know(server: WebServer, first: Any) -> None:
    server.pages = {"/geojs.io": first, "/ipinfo.io": as_json({"country": "DK"})}
    assert locate_by_ip(live_get).country == "DK"


@pytest.mark.parametrize("country", [None, "", "XX", 5, ["DK"], "Denmark"])
def test_no_country_is_guessed(server: WebServer, country: Any) -> None:
    server.pages["*"] = as_json({"country_code": country, "country": country})
    with pytest.raises(SourceError, match="set country"):
        locate_by_ip(live_get)


# What the place of this machine leads to


def here(root: Path, **options: Any) -> Here:
    return Here(ask_metadata, options.pop("environ", {}), root, **options)


def test_a_machine_of_a_cloud_has_the_figure_of_its_region(server: WebServer, tmp_path: Path) -> None:
    all_clouds(server)
    source = here(machine(tmp_path, **GOOGLE))
    now = source.outlook(live_get, NOW_S).now
    assert (now.g_per_kwh, now.kind, now.time) == (431.95, "direct", "2025")
    assert now.how == "metadata of the cloud, region us-central1"
    assert "Iowa" in now.place


def test_a_place_is_asked_for_once_in_a_process(server: WebServer, tmp_path: Path) -> None:
    server.pages["/geojs.io"] = as_json({"country_code": "DE"})
    for _ in range(3):
        found = here(tmp_path, may_locate_by_ip=True).outlook(live_get, NOW_S)
        assert (found.now.zone, found.now.how) == ("DE", "IP address, by geojs.io")
    assert len(server.requests) == 1


def test_an_address_is_looked_up_only_for_who_agreed(server: WebServer, tmp_path: Path) -> None:
    server.pages["*"] = as_json({"country_code": "DE", "country": "DE"})
    with pytest.raises(SourceError, match="set country, zone or region"):
        here(tmp_path).outlook(live_get, NOW_S)
    assert server.requests == []


@dataclass
class Pages:
    """Answers by the beginning of a URL, and whatever was asked."""

    answers: dict[str, Answer]
    asked: list[str] = field(default_factory=list)

    def __call__(
        self, url: str, *, params: Mapping[str, str] = {}, headers: Mapping[str, str] = {}
    ) -> Answer:
        self.asked.append(url)
        assert isinstance(params, Mapping)
        assert isinstance(headers, Mapping)
        return next(
            (answer for begin, answer in self.answers.items() if url.startswith(begin)), Answer(503, "")
        )


def test_where_no_metadata_answer_the_variable_by_which_the_table_goes_counts(
    server: WebServer, tmp_path: Path
) -> None:
    environ = {"AWS_EXECUTION_ENV": "AWS_Lambda_python3.12", "AWS_REGION": "eu-central-1"}
    source = source_of(tmp_path, environ=environ)
    now = source.outlook(live_get, NOW_S).now
    assert server.requests, "its metadata server is asked first"
    assert (now.zone, now.how) == ("DE", "environment, AWS region eu-central-1")


def test_a_live_figure_of_the_region_is_preferred_and_the_tables_stands_in(
    server: WebServer, tmp_path: Path
) -> None:
    all_clouds(server)
    root = machine(tmp_path, **GOOGLE)
    keys = (("electricitymaps", "aKey"),)
    answer = '{"zone": "US-MIDW-MISO", "carbonIntensity": 444, "datetime": "2026-03-01T12:00:00Z"}'
    get = Pages({"https://api.electricitymaps.com/v4/carbon-intensity/latest": Answer(200, answer)})
    now = here(root, api_keys=keys).outlook(get, NOW_S).now
    assert (now.g_per_kwh, now.kind) == (444, "lifecycle")
    assert now.how == "metadata of the cloud, region us-central1"
    found = here(root, api_keys=keys).outlook(Pages({}), NOW_S)
    assert found.now.g_per_kwh == 431.95
    assert "server failed" in found.notes[0]
    assert "aKey" not in repr(here(root, api_keys=keys))


def source_of(root: Path, **options: Any) -> Any:
    defaults: dict[str, Any] = {"zone": None, "country": None, "region": None, "api_keys": None}
    more: dict[str, Any] = {"may_locate_by_ip": False, "ask": ask_metadata, "environ": {}}
    return live_source(**defaults | more | options, root=root)


def test_what_the_user_says_comes_before_all_that_can_be_found(tmp_path: Path) -> None:
    root = machine(tmp_path, **GOOGLE)
    found = source_of(root, country="FR", environ={"TZ": "Europe/Copenhagen"}, may_locate_by_ip=True)
    assert isinstance(found, FirstOf)
    assert (found.name, found.how) == ("RTE éCO2mix, France", "setting")
    assert source_of(root, country="DE") is None, "no live source knows it, and no other place is asked for"
    with pytest.raises(SettingError, match="did you mean"):
        source_of(root, zone="DK-DK3")


def test_a_cloud_is_asked_before_a_time_zone_is_believed_and_an_address_last(tmp_path: Path) -> None:
    clock = {"TZ": "Europe/Copenhagen"}
    assert isinstance(source_of(machine(tmp_path / "g", **GOOGLE), environ=clock), Here)
    laptop = machine(tmp_path / "l", **LAPTOP)
    found = source_of(laptop, environ=clock, may_locate_by_ip=True)
    assert isinstance(found, FirstOf)
    assert found.how == "time zone Europe/Copenhagen"
    assert isinstance(source_of(laptop, may_locate_by_ip=True), Here)
    assert source_of(laptop) is None


def test_a_key_reaches_the_source_of_a_time_zones_country(tmp_path: Path) -> None:
    found = source_of(tmp_path, environ={"TZ": "Europe/Berlin"}, api_keys={"electricitymaps": "aKey"})
    assert isinstance(found, FirstOf)
    assert [type(source) for source in found.sources] == [ElectricityMaps]
    assert "aKey" not in repr(found)
