"""RAPL counters, on powercap trees laid out in a temporary folder. No real counter is read here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ct_notebook.account import Account, Mark
from ct_notebook.records import Sample
from ct_notebook.sensors import rapl
from ct_notebook.sensors.rapl import RaplSensor
from support.sysfs import INTEL_RANGE_UJ, RaplZone, make_rapl

SERVER = (
    RaplZone("intel-rapl:0", "package-0"),
    RaplZone("intel-rapl:0:0", "core"),
    RaplZone("intel-rapl:0:1", "uncore"),
    RaplZone("intel-rapl:0:2", "dram"),
    RaplZone("intel-rapl:1", "psys"),
    RaplZone("intel-rapl:2", "package-1"),
    RaplZone("intel-rapl:2:0", "dram"),
    RaplZone("intel-rapl-mmio:0", "package-0"),
    RaplZone("intel-rapl-mmio:0:0", "dram"),
)


def opened(base: Path) -> RaplSensor:
    sensor, finding = rapl.look(base)
    assert sensor is not None, finding
    return sensor


def test_package_50_w_and_dram_4_w_make_54_j_in_a_second(tmp_path: Path) -> None:
    tree = make_rapl(tmp_path)
    sensor = opened(tree.base)
    account = Account(sensor.devices, interval_s=1)
    account.add(Sample(0.0, *sensor.read()))
    account.mark(0.0, Mark.START)
    tree.set("intel-rapl:0", 50e6)
    tree.set("intel-rapl:0:2", 4e6)
    account.add(Sample(1.0, *sensor.read()))
    account.mark(1.0, Mark.STOP)
    account.settle(final=True)
    assert account.outside_j == pytest.approx({"cpu:package-0": 50.0, "cpu:dram-0": 4.0})
    sensor.close()


def test_a_counter_that_wraps_loses_nothing(tmp_path: Path) -> None:
    tree = make_rapl(tmp_path, [RaplZone("intel-rapl:0", "package-0", INTEL_RANGE_UJ - 10_000_000)])
    sensor = opened(tree.base)
    assert sensor.devices[0].counter_range_j == INTEL_RANGE_UJ / 1e6
    account = Account(sensor.devices, interval_s=1)
    account.add(Sample(0.0, *sensor.read()))
    account.mark(0.0, Mark.START)
    tree.set("intel-rapl:0", 90e6)
    account.add(Sample(1.0, *sensor.read()))
    account.mark(1.0, Mark.STOP)
    account.settle(final=True)
    assert account.outside_j["cpu:package-0"] == pytest.approx(100.0)
    sensor.close()


def test_a_counter_that_was_set_to_zero_is_no_wrap(tmp_path: Path) -> None:
    tree = make_rapl(tmp_path, [RaplZone("intel-rapl:0", "package-0", 10_000_000_000)])
    sensor = opened(tree.base)
    account = Account(sensor.devices, interval_s=1)
    for second in range(3):
        tree.set("intel-rapl:0", 10e9 if not second else 50e6 * (second - 1))
        account.add(Sample(float(second), *sensor.read()))
    account.mark(0.0, Mark.START)
    account.mark(2.0, Mark.STOP)
    account.settle(final=True)
    assert account.outside_j["cpu:package-0"] == pytest.approx(50.0)
    sensor.close()


@pytest.mark.parametrize("place", ["sys/class/powercap", "sys/devices/virtual/powercap"])
def test_packages_and_memory_count_once_and_nothing_else_does(tmp_path: Path, place: str) -> None:
    make_rapl(tmp_path, SERVER)
    sensor = opened(tmp_path / place)
    assert [(device.key, device.name) for device in sensor.devices] == [
        ("cpu:package-0", "cpu:0"),
        ("cpu:package-1", "cpu:1"),
        ("cpu:dram-0", "dram:0"),
        ("cpu:dram-1", "dram:1"),
    ]
    assert {device.component for device in sensor.devices} == {"cpu"}
    assert sensor.has_package
    assert sensor.has_dram
    sensor.close()


def test_the_control_type_wins_over_its_memory_mapped_twin(tmp_path: Path) -> None:
    make_rapl(
        tmp_path,
        [
            RaplZone("intel-rapl-mmio:0", "package-0", 1_000_000),
            RaplZone("intel-rapl:0", "package-0", 7_000_000),
        ],
    )
    for control_type in ("intel-rapl", "intel-rapl-mmio"):
        (tmp_path / "sys/class/powercap" / control_type).unlink()  # so that the twin is listed first
    sensor = opened(tmp_path / "sys/class/powercap")
    assert [reading.counter_j for reading in sensor.read()[0]] == [7.0]
    sensor.close()


def test_the_memory_mapped_tree_is_used_where_it_is_the_only_one(tmp_path: Path) -> None:
    make_rapl(tmp_path, [RaplZone("intel-rapl-mmio:0", "package-0", 1_000_000)])
    sensor = opened(tmp_path / "sys/class/powercap")
    assert [reading.counter_j for reading in sensor.read()[0]] == [1.0]
    sensor.close()


def test_twelve_zones_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    make_rapl(tmp_path, [RaplZone(f"intel-rapl:{n}", f"package-{n}", n * 1_000_000) for n in range(12)])
    sensor = opened(tmp_path / "sys/class/powercap")
    assert [device.name for device in sensor.devices] == [f"cpu:{number}" for number in range(12)]
    assert [reading.counter_j for reading in sensor.read()[0]] == list(range(12))
    sensor.close()


def test_numbers_of_zones_say_nothing_of_packages(tmp_path: Path) -> None:
    make_rapl(
        tmp_path,
        [
            RaplZone("intel-rapl:0", "package-1"),
            RaplZone("intel-rapl:0:0", "dram", 11_000_000),
            RaplZone("intel-rapl:1", "package-0"),
            RaplZone("intel-rapl:1:0", "dram", 22_000_000),
        ],
    )
    sensor = opened(tmp_path / "sys/class/powercap")
    counters = {reading.device: reading.counter_j for reading in sensor.read()[0]}
    assert (counters["cpu:dram-1"], counters["cpu:dram-0"]) == (11.0, 22.0)
    sensor.close()


def test_dies_of_a_package_have_keys_of_their_own(tmp_path: Path) -> None:
    make_rapl(
        tmp_path, [RaplZone("intel-rapl:0", "package-0-die-0"), RaplZone("intel-rapl:1", "package-0-die-1")]
    )
    sensor = opened(tmp_path / "sys/class/powercap")
    assert [device.name for device in sensor.devices] == ["cpu:0-die-0", "cpu:0-die-1"]
    assert len({device.key for device in sensor.devices}) == 2
    sensor.close()


def test_amd_without_memory_gives_its_package(tmp_path: Path) -> None:
    make_rapl(tmp_path, [RaplZone("intel-rapl:0", "package-0"), RaplZone("intel-rapl:0:0", "core")])
    sensor = opened(tmp_path / "sys/class/powercap")
    assert [device.name for device in sensor.devices] == ["cpu:0"]
    assert not sensor.has_dram
    sensor.close()


def test_a_platform_zone_alone_does_not_stand_for_the_cpu(tmp_path: Path) -> None:
    tree = make_rapl(tmp_path, [RaplZone("intel-rapl:0", "psys")])
    sensor, finding = rapl.look(tree.base)
    assert sensor is None
    assert (finding.found, finding.readable) == (True, False)
    assert "psys" in finding.why


def refuse(monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
    """As if the tests did not run as root: opening these is not allowed."""
    real = os.open
    refused = {file.resolve() for file in files}

    def asked(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).resolve() in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", asked)


def test_counters_for_root_only_are_told_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_rapl(tmp_path)
    refuse(monkeypatch, tree.file("intel-rapl:0"), tree.file("intel-rapl:0:2"))
    sensor, finding = rapl.look(tree.base)
    assert sensor is None
    assert (finding.found, finding.readable) == (True, False)
    assert finding.remedy == "sudo chmod -R a+r /sys/class/powercap/intel-rapl*"
    assert "cpu:0: Permission denied" in finding.why


def test_half_of_the_sockets_do_not_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_rapl(tmp_path, SERVER)
    refuse(monkeypatch, tree.file("intel-rapl:2"))
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    sensor, finding = rapl.look(tree.base)
    assert sensor is not None
    assert [device.name for device in sensor.devices] == ["dram:0", "dram:1"]
    assert not sensor.has_package
    assert not finding.readable
    sensor.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_a_tree_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    for base in (tmp_path, tmp_path / "nowhere"):
        sensor, finding = rapl.look(base)
        assert sensor is None
        assert (finding.found, finding.readable, finding.remedy) == (False, False, "")
    assert "CT_NOTEBOOK_RAPL_DIR" in rapl.look(tmp_path, in_container=True)[1].remedy


@pytest.mark.parametrize("garbage", ["", "abc", "-5", str(INTEL_RANGE_UJ * 2)])
def test_garbage_is_missing_and_the_other_zone_goes_on(tmp_path: Path, garbage: str) -> None:
    tree = make_rapl(tmp_path)
    sensor = opened(tree.base)
    tree.set("intel-rapl:0", garbage)
    readings, missing = sensor.read()
    assert [reading.device for reading in readings] == ["cpu:dram-0"]
    assert list(missing) == ["cpu:package-0"]
    tree.set("intel-rapl:0", 5e6)
    assert len(sensor.read()[0]) == 2
    sensor.close()


def test_a_zone_that_cannot_be_read_any_more_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_rapl(tmp_path)
    sensor = opened(tree.base)

    def fails(*_: int) -> bytes:
        raise OSError(61, "No data available")

    monkeypatch.setattr(os, "pread", fails)
    readings, missing = sensor.read()
    assert not readings
    assert "No data available" in missing["cpu:package-0"]
    sensor.close()


def test_files_stay_open_and_are_closed_once(tmp_path: Path) -> None:
    tree = make_rapl(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    sensor = opened(tree.base)
    shutil.rmtree(tmp_path / "sys/class")
    assert len(sensor.read()[0]) == 2
    sensor.close()
    sensor.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_zone_without_a_range_does_not_wrap(tmp_path: Path) -> None:
    make_rapl(tmp_path, [RaplZone("intel-rapl:0", "package-0", 3_000_000, range_uj=None)])
    sensor = opened(tmp_path / "sys/class/powercap")
    assert sensor.devices[0].counter_range_j is None
    assert [reading.counter_j for reading in sensor.read()[0]] == [3.0]
    sensor.close()
