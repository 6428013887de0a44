from importlib import resources
from pathlib import Path

import pytest

from ct_notebook.errors import CtNotebookError, SettingError
from ct_notebook.intensity import choose_intensity, table
from ct_notebook.intensity.place import AWS_COUNTRIES
from ct_notebook.records import Intensity
from support.machine import machine

HEADER = "iso2,iso3,name,g_per_kwh,year,kind,source\n"
WORLD = ",WORLD,World,473,2024,lifecycle,s\n"


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


@pytest.mark.parametrize(
    ("country", "place", "g_per_kwh", "year"),
    [
        ("FR", "France", 41.44, "2025"),
        ("DE", "Germany", 329.65, "2025"),
        ("GB", "United Kingdom", 217.41, "2025"),
        ("SE", "Sweden", 35.26, "2025"),
        ("PL", "Poland", 588.6, "2025"),
        ("US", "United States", 384.4, "2025"),
        ("CA", "Canada", 190.72, "2025"),
        ("IN", "India", 670.13, "2025"),
        ("CN", "China", 525.34, "2025"),
        ("NAM", "Namibia", 48.78, "2024"),
    ],
)
def test_the_table_has_the_figures_of_its_source(
    tmp_path: Path, country: str, place: str, g_per_kwh: float, year: str
) -> None:
    found = choose(tmp_path, country=country)
    assert (found.place, found.g_per_kwh, found.time) == (place, g_per_kwh, year)
    assert found.how == "setting"
    assert found.low < 1 < found.high


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("UK", "GB"),
        ("Great Britain", "GB"),
        ("england", "GB"),
        ("Czech Republic", "CZ"),
        ("The Netherlands", "NL"),
        ("Türkiye", "TR"),
        ("Côte d'Ivoire", "CI"),
        ("United States of America", "US"),
        ("UAE", "AE"),
    ],
)
def test_names_that_people_use_are_understood(tmp_path: Path, name: str, zone: str) -> None:
    assert choose(tmp_path, country=name).zone == zone


def test_every_other_name_is_of_a_country_of_the_table_and_none_of_its_names() -> None:
    rows = table._countries()
    assert all(iso2 in rows and name == name.casefold() for name, iso2 in table.OTHER_NAMES.items())
    assert not {row.name.casefold() for row in rows.values()} & set(table.OTHER_NAMES)


def test_a_slip_in_a_name_that_people_use_is_told_too(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"did you mean United Kingdom \(GB\)"):
        choose(tmp_path, country="Great Britan")


def test_the_users_own_figure_wins_and_is_called_that(tmp_path: Path) -> None:
    found = choose(tmp_path, carbon_intensity=33.0, country="DK")
    assert (found.g_per_kwh, found.source, found.place) == (33.0, "given by you", "Denmark")
    assert (found.low, found.high) == (1.0, 1.0)


def test_an_unknown_country_gets_the_nearest_names(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"'Denmrk'.*did you mean Denmark \(DK\)\?"):
        choose(tmp_path, country="Denmrk")
    with pytest.raises(SettingError, match="'Atlantis'"):
        choose(tmp_path, country="Atlantis")
    with pytest.raises(SettingError, match=r"ISO 3166 code \(DK or DNK\) or an English name"):
        choose(tmp_path, country=" ")


def test_a_wrong_country_is_told_even_beside_a_figure(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="'Denmrk'"):
        choose(tmp_path, carbon_intensity=33.0, country="Denmrk")


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
        ("Europe/Kiev", "UA"),
        ("posix/Europe/Berlin", "DE"),
        (":/usr/share/zoneinfo/Europe/Oslo", "NO"),
        # Links of the tz database into another country, where the clocks agree.
        ("Iceland", "IS"),
        ("Africa/Asmera", "ER"),
        ("Africa/Timbuktu", "ML"),
        ("America/Coral_Harbour", "CA"),
        ("America/Virgin", "VI"),
    ],
)
def test_a_time_zone_tells_the_country(tmp_path: Path, zone: str, country: str) -> None:
    found = choose(tmp_path, TZ=zone)
    assert found.zone == country
    assert found.how.startswith("time zone")


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "GMT0", "EST5EDT", "CET", "EST", "nonsense", "/"])
def test_a_zone_of_no_country_tells_nothing(tmp_path: Path, zone: str) -> None:
    assert choose(tmp_path, TZ=zone).is_fallback


def test_the_link_of_the_local_time_is_followed(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/localtime").symlink_to("../usr/share/zoneinfo/Europe/Stockholm")
    assert choose(tmp_path).zone == "SE"
    assert choose(tmp_path, TZ="UTC").is_fallback, "TZ is in force, whatever the link says"


@pytest.mark.parametrize(
    "folder", ["/var/db/timezone/zoneinfo", "/usr/share/zoneinfo.default", "/usr/share/zoneinfo/right"]
)
def test_the_link_is_followed_wherever_the_zones_are(tmp_path: Path, folder: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/localtime").symlink_to(f"{folder}/America/Argentina/Ushuaia")
    assert choose(tmp_path).zone == "AR"


def test_utc_as_the_local_time_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    (tmp_path / "etc/timezone").write_text("Europe/Berlin\n")
    assert choose(tmp_path).is_fallback, "the link is in force, whatever the file says"


def test_the_name_in_etc_timezone_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/timezone").write_text("Europe/Berlin\n")
    assert choose(tmp_path).zone == "DE"


def test_an_aws_region_counts_on_aws_only(tmp_path: Path) -> None:
    assert choose(tmp_path, AWS_REGION="eu-north-1", AWS_EXECUTION_ENV="SageMaker").zone == "SE"
    assert choose(tmp_path, AWS_REGION="eu-north-1").is_fallback
    aws = machine(tmp_path / "aws", sys_vendor="Amazon EC2", product_name="g5.xlarge")
    found = choose(aws, AWS_DEFAULT_REGION="us-west-2")
    assert (found.zone, found.how) == ("US", "environment, AWS region us-west-2")
    assert choose(aws, AWS_REGION="moon-north-1").is_fallback


def test_a_time_zone_in_a_cloud_is_someones_clock_and_no_place(tmp_path: Path) -> None:
    assert choose(tmp_path, TZ="Asia/Kolkata", COLAB_RELEASE_TAG="release-colab").is_fallback
    google = machine(tmp_path / "google", sys_vendor="Google", product_name="Google Compute Engine")
    assert choose(google, TZ="Europe/Copenhagen").is_fallback
    chromebook = machine(tmp_path / "book", sys_vendor="Google", product_name="Eve", chassis_type="9")
    assert choose(chromebook, TZ="Europe/Copenhagen").zone == "DK"


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
    assert len({row.iso3 for row in rows.values()} - {""}) == len(rows), "each has a code of three letters"


def test_nine_in_ten_countries_are_within_the_band_of_the_world_average() -> None:
    rows = table._countries()
    low, high = (rows[""].g_per_kwh * factor for factor in table.ANYWHERE)
    countries = [row for iso2, row in rows.items() if iso2]
    assert sum(low <= row.g_per_kwh <= high for row in countries) >= 0.9 * len(countries)


def test_every_region_and_zone_leads_to_a_country() -> None:
    assert all(table.has_country(country) for country in AWS_COUNTRIES.values())
    assert sum(table.country_of_zone(zone) is not None for zone in table._zones()) > 450


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iso2,iso3\nDK,DNK\n",
        HEADER,
        f"{HEADER}DK,DNK,Denmark,x,2025,lifecycle,s\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,nan,2025,lifecycle,s\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,0,2025,lifecycle,s\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,114,25,lifecycle,s\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,114,2025,marginal,s\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,114,2025,lifecycle\n",
        f"{HEADER}{WORLD}DK,DNK,Denmark,114",
        f"{HEADER}{WORLD}{WORLD}",
        f"{HEADER}DK,DNK,Denmark,114,2025,lifecycle,s\n",
    ],
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


@pytest.mark.parametrize(
    "text", ["", "zone,iso2\n", "zone,land\nEurope/Oslo,NO\n", "zone,iso2\nEurope/Oslo\n"]
)
def test_a_damaged_table_of_zones_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / table.ZONES).write_text(text)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    table._zones.cache_clear()
    try:
        with pytest.raises(CtNotebookError, match=r"zone_country\.csv"):
            choose(tmp_path, TZ="Europe/Oslo")
    finally:
        table._zones.cache_clear()
