"""The tables of grid zones and cloud regions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from ct_notebook.errors import CtNotebookError, SettingError
from ct_notebook.intensity import table
from ct_notebook.intensity.place import AWS_COUNTRIES
from ct_notebook.intensity.table import find_region, find_zone, of_region, of_zone, regions, zones

ZONE_HEADER = "zone,name,iso2,g_per_kwh,year,kind,source\n"
ZONE = "DK-DK1,West Denmark,DK,112,2025,lifecycle,s\n"
REGION_HEADER = "provider,region,place,iso2,zone,g_per_kwh,year,kind,source\n"
REGION = "gcp,europe-west1,Belgium,BE,BE,126.43,2025,direct,s\n"


@pytest.mark.parametrize(
    ("zone", "g_per_kwh"),
    [
        # The newest year of the source, as its own package gives it.
        ("DE", 342),
        ("FR", 31),
        ("DK-DK1", 112),
        ("DK-DK2", 144),
        ("GB", 176),
        ("PL", 565),
        ("US-CAL-CISO", 208),
        ("US-MIDA-PJM", 418),
        ("TW", 519),
        ("IN-WE", 653),
    ],
)
def test_the_table_of_zones_has_the_figures_of_its_source(zone: str, g_per_kwh: float) -> None:
    found = of_zone(zone, "setting")
    assert (found.zone, found.g_per_kwh, found.time, found.kind) == (zone, g_per_kwh, "2025", "lifecycle")
    assert "Electricity Maps" in found.source
    assert "ODbL" in found.source
    assert found.low < 1 < found.high


@pytest.mark.parametrize("text", ["DK-DK1", "dk-dk1", " DK-DK1 ", "West Denmark", "west denmark"])
def test_a_zone_is_known_by_its_code_and_its_name(text: str) -> None:
    assert of_zone(text, "setting").place == "West Denmark"


@pytest.mark.parametrize(
    ("text", "near"),
    [("DK-DK3", "DK-DK1"), ("US-CALIFORNIA", "US-CAL-CISO"), ("Swedn", "SE (Sweden)"), ("FR-PARIS", "FR (")],
)
def test_an_unknown_zone_gets_the_nearest_names(text: str, near: str) -> None:
    with pytest.raises(SettingError, match="did you mean") as caught:
        of_zone(text, "setting")
    assert repr(text) in str(caught.value)
    assert near in str(caught.value)


@pytest.mark.parametrize("text", ["", " ", "\n", "x" * 1000, "DE\nFR"])
def test_what_is_no_zone_is_one_line(text: str) -> None:
    for find in (find_zone, find_region):
        with pytest.raises(SettingError) as caught:
            find(text)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("europe-west1", "gcp:europe-west1"),
        ("gcp:europe-west1", "gcp:europe-west1"),
        ("GCP: Europe-West1", "gcp:europe-west1"),
        ("google us-central1", "gcp:us-central1"),
        ("europe-west1-b", "gcp:europe-west1"),
        ("aws eu-north-1", "aws:eu-north-1"),
        ("eu-north-1a", "aws:eu-north-1"),
        ("azure/westeurope", "azure:westeurope"),
        ("West Europe", "azure:westeurope"),
        ("Microsoft West US 2", "azure:westus2"),
    ],
)
def test_a_region_is_known_however_it_is_written(text: str, name: str) -> None:
    assert find_region(text).name == name


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("europe-west99", "gcp:europe-west9"),
        ("aws:europe-west1", "aws:eu-west-1"),
        ("Frankfurt", "aws:eu-central-1"),
        ("gcp Frankfurt", "gcp:europe-west3"),
    ],
)
def test_an_unknown_region_gets_the_nearest_names(text: str, near: str) -> None:
    with pytest.raises(SettingError, match="did you mean") as caught:
        of_region(text, "setting")
    assert near in str(caught.value)
    assert repr(text) in str(caught.value)


def test_a_region_of_google_has_googles_own_figure() -> None:
    found = of_region("us-central1", "setting")
    assert (found.g_per_kwh, found.time, found.kind, found.zone) == (431.95, "2025", "direct", "US-MIDW-MISO")
    assert "Google" in found.source
    assert found.place == "Iowa (Google Cloud us-central1)"


def test_other_regions_have_the_figure_of_the_grid_they_hang_on() -> None:
    found = of_region("aws:eu-north-1", "setting")
    assert (found.g_per_kwh, found.kind, found.zone) == (20, "lifecycle", "SE-SE3")
    assert found.place == "Stockholm (AWS eu-north-1)"


def test_regions_of_all_clouds_can_be_compared_by_one_kind() -> None:
    kinds = {of_region(name, "x", kind="lifecycle").kind for name in regions()}
    assert kinds == {"lifecycle"}
    assert of_region("gcp:us-central1", "x", kind="lifecycle").g_per_kwh == 501
    assert of_region("gcp:us-central1", "x", kind="direct").g_per_kwh == 431.95
    with pytest.raises(SettingError, match="no direct figure"):
        of_region("aws:us-east-1", "x", kind="direct")


def test_every_zone_and_region_is_found_by_the_name_it_is_listed_under() -> None:
    assert len(zones()) == 352
    assert [find_zone(zone).zone for zone in zones()] == list(zones())
    assert len(regions()) > 150
    assert [find_region(name).name for name in regions()] == list(regions())
    assert all(0 < of_region(name, "x").g_per_kwh < 1000 for name in regions())


def test_no_two_zones_share_a_name() -> None:
    names = [find_zone(zone).name.casefold() for zone in zones()]
    assert len(set(names)) == len(names)


def test_every_aws_region_is_in_the_country_that_a_variable_would_give_it() -> None:
    aws = [find_region(name) for name in regions() if name.startswith("aws:")]
    for region in aws:
        country = AWS_COUNTRIES.get(region.region) or AWS_COUNTRIES[region.region.split("-", maxsplit=1)[0]]
        assert region.iso2 == country, region
    listed = {name for name in AWS_COUNTRIES if name.count("-") == 2}
    assert listed <= {region.region for region in aws}


def test_googles_operational_figures_are_of_the_same_grid_as_the_lifecycle_ones() -> None:
    # What is burnt is less than the whole life, and not by orders of magnitude: a wrong grid would show.
    for name in regions():
        if name.startswith("gcp:"):
            direct, lifecycle = (of_region(name, "x", kind=k).g_per_kwh for k in ("direct", "lifecycle"))
            assert 0.25 * lifecycle < direct < 1.2 * lifecycle, name


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / table.GRID_ZONES).write_text(
        f"{ZONE_HEADER}{ZONE}BE,Belgium,BE,180,2025,lifecycle,s\n"
    )
    (tmp_path / "data" / table.REGIONS).write_text(REGION_HEADER + REGION)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    caches = (table._grid_zones, table._regions)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path / "data"
    for cache in caches:
        cache.cache_clear()


def test_whole_tables_are_read(folder: Path) -> None:
    assert folder.is_dir()
    assert of_zone("DK-DK1", "x").g_per_kwh == 112
    assert of_region("europe-west1", "x").g_per_kwh == 126.43


@pytest.mark.parametrize(
    "text",
    [
        "",
        ZONE_HEADER,
        "zone,name\nDK-DK1,West Denmark\n",
        ZONE_HEADER + ZONE + ZONE,
        ZONE_HEADER + ZONE.replace("112", "x"),
        ZONE_HEADER + ZONE.replace("112", "nan"),
        ZONE_HEADER + ZONE.replace("112", "0"),
        ZONE_HEADER + ZONE.replace("112", "-5"),
        ZONE_HEADER + ZONE.replace("112", "2500"),
        ZONE_HEADER + ZONE.replace("2025", "25"),
        ZONE_HEADER + ZONE.replace("lifecycle", "marginal"),
        ZONE_HEADER + ZONE.replace(",s\n", "\n"),
        ZONE_HEADER + ZONE.replace("West Denmark", ""),
        ZONE_HEADER + "DK-DK1,West Den",
        (ZONE_HEADER + ZONE)[:-1],
        "\x00",
    ],
)
def test_a_damaged_table_of_zones_is_refused_by_name(folder: Path, text: str) -> None:
    (folder / table.GRID_ZONES).write_text(text)
    for find in (lambda: of_zone("DK-DK1", "x"), zones, regions):
        with pytest.raises(CtNotebookError, match=r"zone_intensity\.csv"):
            find()


@pytest.mark.parametrize(
    "text",
    [
        "",
        REGION_HEADER,
        "provider,region\ngcp,europe-west1\n",
        REGION_HEADER + REGION + REGION,
        REGION_HEADER + REGION.replace("gcp", "other"),
        REGION_HEADER + REGION.replace("BE,BE", "BE,XX"),
        REGION_HEADER + REGION.replace("BE,BE", "DK,BE"),
        REGION_HEADER + REGION.replace("126.43", "x"),
        REGION_HEADER + REGION.replace("126.43", "-1"),
        REGION_HEADER + REGION.replace("2025", ""),
        REGION_HEADER + REGION.replace("direct", ""),
        REGION_HEADER + REGION.replace(",Belgium,", ",,"),
        REGION_HEADER + "gcp,europe-we",
        (REGION_HEADER + REGION)[:-1],
    ],
)
def test_a_damaged_table_of_regions_is_refused_by_name(folder: Path, text: str) -> None:
    (folder / table.REGIONS).write_text(text)
    for find in (lambda: of_region("europe-west1", "x"), regions):
        with pytest.raises(CtNotebookError, match=r"region_intensity\.csv"):
            find()


def test_missing_tables_are_refused_by_name(folder: Path) -> None:
    (folder / table.REGIONS).unlink()
    with pytest.raises(CtNotebookError, match=r"region_intensity\.csv"):
        regions()
    (folder / table.GRID_ZONES).unlink()
    table._grid_zones.cache_clear()
    with pytest.raises(CtNotebookError, match=r"zone_intensity\.csv"):
        zones()
