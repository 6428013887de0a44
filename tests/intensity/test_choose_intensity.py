from pathlib import Path

import pytest

from ct_notebook.errors import CtNotebookError, SettingError
from ct_notebook.intensity import choose_intensity, table
from ct_notebook.records import Intensity


def choose(
    root: Path, carbon_intensity: float | None = None, country: str | None = None, **environ: str
) -> Intensity:
    return choose_intensity(carbon_intensity=carbon_intensity, country=country, environ=environ, root=root)


@pytest.mark.parametrize("text", ["DK", "dk", " DNK", "Denmark", "denmark"])
def test_a_country_is_known_by_its_codes_and_its_name(tmp_path: Path, text: str) -> None:
    found = choose(tmp_path, country=text)
    assert (found.zone, found.place, found.g_per_kwh, found.time) == ("DK", "Denmark", 114.41, "2025")
    assert not found.is_fallback
    assert "CC BY 4.0" in found.source
    assert found.kind == "lifecycle"


def test_uk_is_understood(tmp_path: Path) -> None:
    assert choose(tmp_path, country="UK").zone == "GB"


def test_the_users_own_figure_wins_and_is_called_that(tmp_path: Path) -> None:
    found = choose(tmp_path, carbon_intensity=33.0, country="DK")
    assert (found.g_per_kwh, found.source, found.place) == (33.0, "given by the user", "Denmark")
    assert (found.low, found.high) == (1.0, 1.0)


def test_an_unknown_country_gets_the_nearest_names(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"'Denmrk'.*Denmark \(DK\)"):
        choose(tmp_path, country="Denmrk")
    with pytest.raises(SettingError, match="'Atlantis'"):
        choose(tmp_path, country="Atlantis")


@pytest.mark.parametrize("figure", [-1.0, float("nan"), float("inf"), 5000.0])
def test_an_impossible_figure_is_refused(tmp_path: Path, figure: float) -> None:
    with pytest.raises(SettingError, match="carbon_intensity="):
        choose(tmp_path, carbon_intensity=figure)


def test_an_unknown_place_is_called_unknown_and_gets_the_world_average(tmp_path: Path) -> None:
    found = choose(tmp_path)
    assert (found.zone, found.place, found.is_fallback) == (None, "Unknown", True)
    assert found.g_per_kwh == 472.94
    assert "world average" in found.source


@pytest.mark.parametrize(
    ("zone", "country"),
    [
        ("Europe/Copenhagen", "DK"),
        (":Europe/Paris", "FR"),
        ("America/New_York", "US"),
        ("Asia/Calcutta", "IN"),
    ],
)
def test_a_time_zone_tells_the_country(tmp_path: Path, zone: str, country: str) -> None:
    found = choose(tmp_path, TZ=zone)
    assert found.zone == country
    assert found.how.startswith("time zone")


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "GMT0", "EST5EDT", "nonsense"])
def test_a_zone_of_no_country_tells_nothing(tmp_path: Path, zone: str) -> None:
    assert choose(tmp_path, TZ=zone).is_fallback


def test_the_link_of_the_local_time_is_followed(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/localtime").symlink_to("../usr/share/zoneinfo/Europe/Stockholm")
    assert choose(tmp_path).zone == "SE"
    assert choose(tmp_path, TZ="UTC").is_fallback, "TZ is in force, whatever the link says"


def test_the_name_in_etc_timezone_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/timezone").write_text("Europe/Berlin\n")
    assert choose(tmp_path).zone == "DE"


def test_an_aws_region_counts_on_aws_only(tmp_path: Path) -> None:
    assert choose(tmp_path, AWS_REGION="eu-north-1", AWS_EXECUTION_ENV="SageMaker").zone == "SE"
    assert choose(tmp_path, AWS_REGION="eu-north-1").is_fallback


def test_every_row_is_possible_and_named_once() -> None:
    rows = table._countries()
    assert len(rows) > 200
    for iso2, row in rows.items():
        assert 0 < row.g_per_kwh < 2000, row
        assert 2000 <= row.year <= 2026, row
        assert row.name, row
        assert row.source, row
        assert iso2 == "" or (len(iso2) == 2 and iso2.isupper()), row
    assert len({row.name for row in rows.values()}) == len(rows)


def test_every_region_and_zone_leads_to_a_country() -> None:
    from ct_notebook.intensity.place import AWS_COUNTRIES

    assert all(table.has_country(country) for country in AWS_COUNTRIES.values())
    assert sum(table.country_of_zone(zone) is not None for zone in table._zones()) > 450


@pytest.mark.parametrize(
    "text", ["", "iso2,iso3\nDK,DNK\n", "iso2,iso3,name,g_per_kwh,year,kind,source\nDK,,D,x,1,,\n"]
)
def test_a_damaged_table_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / table.COUNTRIES).write_text(text)
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    table._countries.cache_clear()
    try:
        with pytest.raises(CtNotebookError, match=r"country_intensity\.csv"):
            choose(tmp_path, country="DK")
    finally:
        table._countries.cache_clear()


def test_a_missing_table_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    table._countries.cache_clear()
    try:
        with pytest.raises(CtNotebookError, match=r"country_intensity\.csv"):
            choose(tmp_path)
    finally:
        table._countries.cache_clear()
