"""Each source against a real server, asked by the real `live_get`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ct_notebook.errors import SettingError, SourceError
from ct_notebook.intensity.base import Outlook, Source
from ct_notebook.intensity.denmark import Denmark
from ct_notebook.intensity.electricity_maps import ElectricityMaps
from ct_notebook.intensity.france import France
from ct_notebook.intensity.great_britain import GreatBritain
from ct_notebook.intensity.http import live_get
from ct_notebook.intensity.sources import FirstOf, sources_for
from ct_notebook.intensity.table import of_zone
from support.web_server import (
    WebServer,
    as_json,
    be_impatient,
    be_patient,
    cut_short,
    never,
    text,
    web_server,
)

NOW_S = 1_772_367_000.0  # 2026-03-01T12:10Z
KEY = "aVerySecretKey0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    be_patient(monkeypatch)
    with web_server() as found:
        yield found


@dataclass(frozen=True)
class Case:
    """A source, where it asks for the newest figure, and what a good answer looks like."""

    make: Callable[[str], Source]
    path: str
    answer: Callable[[Any, Any], Any]
    time: str
    kind: str
    zone: str

    def __repr__(self) -> str:
        return self.zone


def electricity_maps(figure: Any, time: Any) -> Any:
    return {
        "zone": "DE",
        "carbonIntensity": figure,
        "datetime": time,
        "updatedAt": "2026-03-01T12:05:00.000Z",
        "emissionFactorType": "lifecycle",
        "isEstimated": False,
        "estimationMethod": None,
    }


def national(figure: Any, time: Any) -> Any:
    return {
        "data": [
            {
                "from": time,
                "to": "2026-03-01T12:30Z",
                "intensity": {"forecast": figure, "actual": None, "index": "moderate"},
            }
        ]
    }


def danish(figure: Any, time: Any) -> Any:
    return {
        "total": 1,
        "dataset": "CO2Emis",
        "records": [{"Minutes5UTC": time, "PriceArea": "DK1", "CO2Emission": figure}],
    }


def french(figure: Any, time: Any) -> Any:
    return {"total_count": 1, "results": [{"date_heure": time, "taux_co2": figure}]}


CASES = [
    Case(
        lambda url: ElectricityMaps(KEY, "DE", base_url=url),
        "/v4/carbon-intensity/latest",
        electricity_maps,
        "2026-03-01T12:00:00.000Z",
        "lifecycle",
        "DE",
    ),
    Case(lambda url: GreatBritain(base_url=url), "/intensity", national, "2026-03-01T12:00Z", "direct", "GB"),
    Case(
        lambda url: Denmark("DK1", base_url=url),
        "/dataset/CO2Emis",
        danish,
        "2026-03-01T12:00:00",
        "direct",
        "DK-DK1",
    ),
    Case(
        lambda url: France(base_url=url),
        "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records",
        french,
        "2026-03-01T12:00:00+00:00",
        "direct",
        "FR",
    ),
]

every_source = pytest.mark.parametrize("case", CASES, ids=repr)


def look(source: Source) -> Outlook:
    return source.outlook(live_get, NOW_S)


def refusal(source: Source) -> str:
    """The line of a failure, after everything a secret must not be in was looked through."""
    with pytest.raises(SourceError) as caught:
        look(source)
    error = caught.value
    assert error.__context__ is None
    assert error.__cause__ is None
    assert KEY not in f"{error!s} {error!r} {error.args!r} {source!r} {source.name}"
    assert "\n" not in str(error)
    assert "http" not in str(error).replace("HTTP ", ""), "no URL"
    return str(error)


@every_source
def test_a_good_answer_gives_the_figure_with_its_time_kind_and_source(case: Case, server: WebServer) -> None:
    server.pages[case.path] = as_json(case.answer(46, case.time))
    now = look(case.make(server.url)).now
    assert (now.g_per_kwh, now.time, now.kind, now.zone) == (46, "2026-03-01T12:00Z", case.kind, case.zone)
    assert now.low < 1 < now.high
    assert now.source
    assert not now.is_fallback


@every_source
@pytest.mark.parametrize("figure", [0, 0.0, 46.5, 2000])
def test_every_possible_figure_is_taken(case: Case, server: WebServer, figure: float) -> None:
    server.pages[case.path] = as_json(case.answer(figure, case.time))
    assert look(case.make(server.url)).now.g_per_kwh == figure


@every_source
@pytest.mark.parametrize(
    "figure", [None, True, "46", -1, 2000.5, 1e300, float("nan"), float("inf"), [46], {"a": 46}, 10**400]
)
def test_an_impossible_figure_is_refused(case: Case, server: WebServer, figure: Any) -> None:
    server.pages[case.path] = as_json(case.answer(figure, case.time))
    refusal(case.make(server.url))


@every_source
@pytest.mark.parametrize(
    "time",
    [
        None,
        0,
        "",
        "now",
        "2026-03-01",
        "2026-13-01T12:00:00Z",
        "2026-03-01T12:00:00+02:00",
        "2026-03-01T12:00:00Z\n",
        "٢٠٢٦-03-01T12:00:00Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
    ],
)
def test_a_time_that_is_not_utc_or_not_now_is_refused(case: Case, server: WebServer, time: Any) -> None:
    server.pages[case.path] = as_json(case.answer(46, time))
    refusal(case.make(server.url))


@every_source
def test_a_figure_of_yesterday_is_refused_and_one_of_this_morning_is_wide(
    case: Case, server: WebServer
) -> None:
    server.pages[case.path] = as_json(case.answer(46, case.time.replace("03-01", "02-28")))
    assert "more than a day old" in refusal(case.make(server.url))
    server.pages[case.path] = as_json(case.answer(46, case.time))
    fresh = look(case.make(server.url)).now
    server.pages[case.path] = as_json(case.answer(46, case.time.replace("T12", "T06")))
    held = look(case.make(server.url)).now
    assert held.high - held.low > 2 * (fresh.high - fresh.low)


@every_source
@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 429, 500, 503])
def test_a_status_other_than_200_is_told_by_what_to_do(case: Case, server: WebServer, status: int) -> None:
    server.pages["*"] = text(f"<p>{KEY}</p>", status)
    line = refusal(case.make(server.url))
    assert f"(HTTP {status})" in line
    if status in {401, 403}:
        assert "key was refused" in line
    if status == 429:
        assert "too often" in line


@every_source
@pytest.mark.parametrize(
    "body",
    [
        "",
        "<!DOCTYPE html><html>Log in to the network</html>",
        '{"data": [{"from": "2026-03',
        "null",
        "[]",
        "{}",
        "46",
        '"text"',
        "[" * 100_000,
        '{"data": null, "zone": null, "records": null, "results": null}',
        '{"data": {"a": 1}, "zone": ["DE"], "records": [null], "results": [46]}',
        '{"data": [], "records": [], "results": []}',
        "1" * 10_000,
    ],
)
def test_what_is_no_answer_is_refused(case: Case, server: WebServer, body: str) -> None:
    server.pages["*"] = text(body)
    refusal(case.make(server.url))


@every_source
def test_a_source_that_is_silent_or_breaks_off_is_told(
    case: Case, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pages["*"] = cut_short
    assert "broke off" in refusal(case.make(server.url))
    be_impatient(monkeypatch)
    server.pages["*"] = never
    assert "too long" in refusal(case.make(server.url))


@every_source
def test_equal_sources_are_one_to_a_cache(case: Case, server: WebServer) -> None:
    assert case.make(server.url) == case.make(server.url)
    assert hash(case.make(server.url)) == hash(case.make(server.url))
    assert case.make(server.url) != case.make("http://elsewhere")


# Electricity Maps


def hours(*figures: Any, zone: str = "DE") -> Any:
    slots = [
        {"carbonIntensity": figure, "datetime": f"2026-03-01T{12 + i}:00:00.000Z"}
        for i, figure in enumerate(figures)
    ]
    return {"zone": zone, "forecast": slots, "updatedAt": "2026-03-01T12:00:00.000Z"}


LATEST = "/v4/carbon-intensity/latest"
FORECAST = "/v4/carbon-intensity/forecast"
GOOD = electricity_maps(322, "2026-03-01T12:00:00.000Z")


def test_electricity_maps_is_asked_by_header_and_never_for_the_callers_place(server: WebServer) -> None:
    server.pages[LATEST] = as_json(GOOD)
    look(ElectricityMaps(KEY, "DE", base_url=server.url))
    _, path, params, headers = server.requests[0]
    assert path == LATEST
    assert params == {"zone": "DE", "disableCallerLookup": "true", "emissionFactorType": "lifecycle"}
    assert headers["auth-token"] == KEY
    assert all(KEY not in f"{asked[1]} {asked[2]}" for asked in server.requests)


def test_the_older_version_is_asked_where_the_newer_is_not_there(server: WebServer) -> None:
    server.pages = {
        "/v3/carbon-intensity/latest": as_json(GOOD),
        "/v3/carbon-intensity/forecast": as_json(hours(300, 200)),
    }
    found = look(ElectricityMaps(KEY, "DE", base_url=server.url))
    assert found.now.g_per_kwh == 322
    assert [figure for _, figure in found.ahead] == [300, 200]


@pytest.mark.parametrize("status", [404, 410])
def test_each_page_is_asked_of_the_older_version_where_the_newer_has_none(
    server: WebServer, status: int
) -> None:
    server.pages = {
        LATEST: text("", status),
        "/v3/carbon-intensity/latest": as_json(GOOD),
        "/v3/carbon-intensity/forecast": as_json(hours(300, None, 200)),
    }
    source = ElectricityMaps(KEY, "DE", base_url=server.url)
    noon_s = NOW_S - 600
    assert look(source).ahead == ((noon_s, 300), (noon_s + 7200, 200)), "an hour without figure is a gap"
    server.pages |= {LATEST: as_json(GOOD), FORECAST: text("", status)}
    assert look(source).ahead == ((noon_s, 300), (noon_s + 7200, 200))


def test_the_forecast_begins_with_the_hour_that_is_now(server: WebServer) -> None:
    answer = hours(300, 200, 100)
    answer["forecast"].append({"carbonIntensity": 9, "datetime": "2026-03-01T11:00:00.000Z"})
    server.pages = {LATEST: as_json(GOOD), FORECAST: as_json(answer)}
    ahead = look(ElectricityMaps(KEY, "DE", base_url=server.url)).ahead
    noon_s = NOW_S - 600
    assert ahead == ((noon_s, 300), (noon_s + 3600, 200), (noon_s + 7200, 100))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_plan_without_forecast_is_nothing_wrong(server: WebServer, status: int) -> None:
    server.pages = {LATEST: as_json(GOOD), FORECAST: text("", status)}
    found = look(ElectricityMaps(KEY, "DE", base_url=server.url))
    assert (found.ahead, found.notes) == ((), ())


@pytest.mark.parametrize(
    "page", [text("", 500), text("<html>"), as_json(hours(-1)), as_json(hours(1, zone="FR")), never]
)
def test_a_broken_forecast_costs_the_forecast_only_and_is_told(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, page: Any
) -> None:
    if page is never:
        be_impatient(monkeypatch)
    server.pages = {LATEST: as_json(GOOD), FORECAST: page}
    found = look(ElectricityMaps(KEY, "DE", base_url=server.url))
    assert found.now.g_per_kwh == 322
    assert found.ahead == ()
    (note,) = found.notes
    assert "forecast" in note


@pytest.mark.parametrize(
    ("zone", "word"), [("US-CAL-CISO", "US-CAL-CISO"), (KEY, "another place"), (None, "another"), ([], "")]
)
def test_another_zone_than_asked_is_refused(server: WebServer, zone: Any, word: str) -> None:
    server.pages[LATEST] = as_json(GOOD | {"zone": zone})
    assert word in refusal(ElectricityMaps(KEY, "DE", base_url=server.url))


def test_a_data_centre_is_asked_for_in_lower_case_and_must_be_in_its_country(server: WebServer) -> None:
    server.pages[LATEST] = as_json(GOOD | {"zone": "BE"})
    found = look(ElectricityMaps(KEY, provider="GCP", region="europe-west1", base_url=server.url))
    assert (found.now.zone, found.now.place) == ("BE", "Belgium")
    params = server.requests[0][2]
    assert (params["dataCenterProvider"], params["dataCenterRegion"]) == ("gcp", "europe-west1")
    assert "zone" not in params
    server.pages[LATEST] = as_json(GOOD | {"zone": "DK-DK2"})
    assert "DK-DK2" in refusal(
        ElectricityMaps(KEY, provider="azure", region="southeastasia", base_url=server.url)
    )


def test_an_estimated_figure_is_called_that_and_is_wider(server: WebServer) -> None:
    server.pages[LATEST] = as_json(GOOD)
    measured = look(ElectricityMaps(KEY, "DE", base_url=server.url)).now
    server.pages[LATEST] = as_json(GOOD | {"isEstimated": True})
    estimated = look(ElectricityMaps(KEY, "DE", base_url=server.url)).now
    assert "estimated" in estimated.source
    assert "estimated" not in measured.source
    assert estimated.high > measured.high


def test_direct_factors_in_a_lifecycle_answer_are_refused(server: WebServer) -> None:
    server.pages[LATEST] = as_json(GOOD | {"emissionFactorType": "direct"})
    assert "emission factors" in refusal(ElectricityMaps(KEY, "DE", base_url=server.url))


@pytest.mark.parametrize("key", ["", f"{KEY}\n", f"{KEY} x", f"{KEY}é"])
def test_what_cannot_be_a_key_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(SettingError, match="key of Electricity Maps") as caught:
        ElectricityMaps(key, "DE")
    assert KEY not in str(caught.value)


def test_a_zone_or_a_data_centre_is_wanted() -> None:
    for wrong in ({}, {"provider": "gcp"}, {"zone": "DE", "provider": "gcp", "region": "europe-west3"}):
        with pytest.raises(SettingError, match="either"):
            ElectricityMaps(KEY, **wrong)


# Great Britain


def half_hours(*figures: Any) -> list[Any]:
    return [
        {
            "from": f"2026-03-01T{12 + i // 2}:{'30' if i % 2 else '00'}Z",
            "to": "",
            "intensity": {"forecast": figure, "actual": None, "index": "low"},
        }
        for i, figure in enumerate(figures)
    ]


def test_great_britain_takes_the_actual_figure_where_it_is_there(server: WebServer) -> None:
    answer = national(266, "2026-03-01T12:00Z")
    server.pages["/intensity"] = as_json(answer)
    forecast = look(GreatBritain(base_url=server.url)).now
    answer["data"][0]["intensity"]["actual"] = 263
    server.pages["/intensity"] = as_json(answer)
    actual = look(GreatBritain(base_url=server.url)).now
    assert (forecast.g_per_kwh, actual.g_per_kwh) == (266, 263)
    assert "forecast" in forecast.source
    assert "forecast" not in actual.source
    assert forecast.high > actual.high


def test_great_britain_looks_48_hours_ahead(server: WebServer) -> None:
    server.pages = {
        "/intensity": as_json(national(266, "2026-03-01T12:00Z")),
        "/intensity/2026-03-01T12:10Z/fw48h": as_json({"data": half_hours(100, 200, None, 50)}),
    }
    ahead = look(GreatBritain(base_url=server.url)).ahead
    noon_s = NOW_S - 600
    assert ahead == ((noon_s, 100), (noon_s + 1800, 200), (noon_s + 5400, 50)), "a gap stays a gap"


@pytest.mark.parametrize(
    ("options", "now", "ahead"),
    [
        (
            {"postcode": "NG1"},
            "/regional/postcode/NG1",
            "/regional/intensity/2026-03-01T12:10Z/fw48h/postcode/NG1",
        ),
        (
            {"region_id": 13},
            "/regional/regionid/13",
            "/regional/intensity/2026-03-01T12:10Z/fw48h/regionid/13",
        ),
    ],
)
def test_a_region_of_great_britain(server: WebServer, options: Any, now: str, ahead: str) -> None:
    region = {"regionid": 13, "shortname": "London", "data": half_hours(312)}
    server.pages = {
        now: as_json({"data": [region]}),
        ahead: as_json({"data": region | {"data": half_hours(300, 100)}}),
    }
    found = look(GreatBritain(**options, base_url=server.url))
    assert found.now.g_per_kwh == 312
    assert [figure for _, figure in found.ahead] == [300, 100]
    assert found.now.place != "Great Britain"


def test_a_whole_postcode_is_not_sent() -> None:
    for options in ({"postcode": "NG1 5FW"}, {"postcode": "../x"}, {"region_id": 18}, {"region_id": -1}):
        with pytest.raises(SettingError):
            GreatBritain(**options)


def test_a_broken_forecast_of_great_britain_costs_the_forecast_only(server: WebServer) -> None:
    server.pages["/intensity"] = as_json(national(266, "2026-03-01T12:00Z"))
    found = look(GreatBritain(base_url=server.url))
    assert (found.now.g_per_kwh, found.ahead) == (266, ())
    assert "forecast" in found.notes[0]


# Denmark


def five_minutes(*rows: tuple[str, str, Any]) -> Any:
    return {
        "records": [
            {"Minutes5UTC": f"2026-03-01T{time}:00", "PriceArea": area, "CO2Emission": figure}
            for time, area, figure in rows
        ]
    }


def test_denmark_takes_the_newest_five_minutes_that_have_come(server: WebServer) -> None:
    server.pages["/dataset/CO2Emis"] = as_json(
        five_minutes(("12:10", "DK2", None), ("12:05", "DK2", 50), ("12:00", "DK2", 60))
    )
    now = look(Denmark("DK2", base_url=server.url)).now
    assert (now.g_per_kwh, now.time, now.place) == (50, "2026-03-01T12:05Z", "East Denmark")
    assert json.loads(server.requests[0][2]["filter"]) == {"PriceArea": ["DK2"]}
    assert server.requests[0][2]["sort"] == "Minutes5UTC desc"


def test_denmark_without_a_price_area_is_the_mean_of_both_and_as_wide_as_both(server: WebServer) -> None:
    server.pages["/dataset/CO2Emis"] = as_json(
        five_minutes(("12:05", "DK1", 50), ("12:05", "DK2", 100), ("12:00", "DK1", 7), ("12:00", "DK2", 7))
    )
    now = look(Denmark(base_url=server.url)).now
    assert (now.g_per_kwh, now.zone, now.place) == (75, "DK", "Denmark")
    assert now.g_per_kwh * now.low < 50
    assert now.g_per_kwh * now.high > 100


def test_half_of_denmark_is_not_denmark_if_there_is_a_time_with_both(server: WebServer) -> None:
    rows = five_minutes(
        ("12:10", "DK1", 50), ("12:10", "DK2", None), ("12:05", "DK1", 50), ("12:05", "DK2", 90)
    )
    server.pages = {"/dataset/CO2Emis": as_json(rows), "/dataset/CO2EmisProg": as_json(rows)}
    found = look(Denmark(base_url=server.url))
    assert (found.now.g_per_kwh, found.now.time) == (70, "2026-03-01T12:05Z")
    server.pages["/dataset/CO2Emis"] = as_json(five_minutes(("12:10", "DK1", 50)))
    assert look(Denmark(base_url=server.url)).now.g_per_kwh == 50


def test_rows_of_other_price_areas_are_passed_over(server: WebServer) -> None:
    server.pages["/dataset/CO2Emis"] = as_json(five_minutes(("12:05", "DK1", 50), ("12:05", "DK2", 90)))
    assert look(Denmark("DK2", base_url=server.url)).now.g_per_kwh == 90


def test_denmark_looks_ahead(server: WebServer) -> None:
    server.pages = {
        "/dataset/CO2Emis": as_json(five_minutes(("12:05", "DK1", 50))),
        "/dataset/CO2EmisProg": as_json(
            five_minutes(("12:00", "DK1", 1), ("12:10", "DK1", 40), ("12:15", "DK1", 30))
        ),
    }
    assert look(Denmark("DK1", base_url=server.url)).ahead == ((NOW_S, 40), (NOW_S + 300, 30))


def test_another_price_area_than_asked_is_refused(server: WebServer) -> None:
    server.pages["/dataset/CO2Emis"] = as_json(five_minutes(("12:05", "SE4", 50)))
    assert "another price area" in refusal(Denmark("DK1", base_url=server.url))
    with pytest.raises(SettingError, match="DK1"):
        Denmark("DK3")


# Which sources a place has


def names(**place: Any) -> list[str]:
    return [type(source).__name__ for source in sources_for(**place)]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"country": "GB"}, ["GreatBritain"]),
        ({"country": "Denmark"}, ["Denmark"]),
        ({"zone": "DK-DK2"}, ["Denmark"]),
        ({"country": "FRA"}, ["France"]),
        ({"region": "eu-west-2"}, ["GreatBritain"]),
        ({"country": "DE"}, []),
        ({"zone": "FR-COR"}, []),
        ({}, []),
    ],
)
def test_a_place_has_the_sources_that_know_it_and_those_of_a_key_first(
    place: dict[str, str], expected: list[str]
) -> None:
    assert names(**place) == expected
    with_key = names(**place, api_keys={"electricitymaps": KEY, "other": "x"})
    assert with_key == (["ElectricityMaps", *expected] if place else [])


@pytest.mark.parametrize(
    "name", ["ElectricityMaps", "electricity_maps", "Electricity-Maps", "ELECTRICITY MAPS"]
)
def test_the_source_of_a_key_is_known_however_it_is_written(name: str) -> None:
    (source,) = sources_for(country="DE", api_keys={"other": "x", name: KEY})
    assert isinstance(source, ElectricityMaps)
    assert source.key == KEY


def test_the_zone_of_a_price_area_a_region_and_a_country_of_one_zone_is_asked_for() -> None:
    keys = {"electricitymaps": KEY}
    for place, zone in (
        ({"region": "gcp:us-central1"}, "US-MIDW-MISO"),
        ({"country": "Chile"}, "CL-SEN"),
        ({"zone": "dk-dk1"}, "DK-DK1"),
    ):
        (first, *_) = sources_for(**place, api_keys=keys)
        assert isinstance(first, ElectricityMaps)
        assert first.zone == zone


def test_an_unknown_place_is_a_setting_that_cannot_be_meant() -> None:
    for place in ({"country": "Denmrk"}, {"zone": "DK-DK3"}, {"region": "europe-west99"}):
        with pytest.raises(SettingError, match="did you mean"):
            sources_for(**place)  # type: ignore[arg-type]


def test_the_next_source_stands_in_for_one_that_fails_and_the_failure_is_noted(server: WebServer) -> None:
    server.pages = {LATEST: text("", 401), "/intensity": as_json(national(266, "2026-03-01T12:00Z"))}
    both = FirstOf((ElectricityMaps(KEY, "GB", base_url=server.url), GreatBritain(base_url=server.url)), "it")
    found = look(both)
    assert (found.now.g_per_kwh, found.now.how) == (266, "it")
    assert "key was refused" in found.notes[0]
    server.pages = {}
    line = refusal(both)
    assert "Electricity Maps" in line
    assert "NESO" in line


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        ("GB-NG1", "NESO, Great Britain, NG1"),
        ("gb-wales", "NESO, Great Britain, Wales"),
        ("GB-London", "NESO, Great Britain, London"),
    ],
)
def test_a_part_of_great_britain_is_asked_for_and_has_the_yearly_figure_of_it_all(
    zone: str, name: str
) -> None:
    (source,) = sources_for(zone=zone, api_keys={"electricitymaps": "0123456789abcdef"})
    assert source.name == name
    assert of_zone(zone, "").zone == "GB"


@pytest.mark.parametrize("zone", ["GB-", "GB-Nowhere", "DK-NG1"])
def test_what_is_no_part_of_great_britain_is_refused(zone: str) -> None:
    with pytest.raises(SettingError):
        sources_for(zone=zone)
