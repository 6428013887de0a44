"""NVIDIA GPUs, by the real pynvml on a made-up driver. Nothing here is seen on a real GPU."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pynvml
import pytest

from ct_notebook.account import Account, Mark
from ct_notebook.errors import SettingError
from ct_notebook.records import Reading, Sample
from ct_notebook.sensors import nvml
from ct_notebook.sensors.nvml import NvmlSensor
from support import nvml_stub
from support.nvml_stub import VARIABLE, MigSlice, NvmlStub


def opened(environ: dict[str, str] | None = None, *, devices_by_pid: bool = False) -> NvmlSensor:
    sensor, finding, _ = nvml.look(environ or {}, devices_by_pid=devices_by_pid)
    assert sensor is not None, finding
    return sensor


def only(sensor: NvmlSensor) -> Reading:
    (reading,), missing = sensor.read()
    assert not missing
    return reading


def test_a_gpu_gives_its_counter_and_its_power(stub: NvmlStub) -> None:
    stub.set(0, power_mw=123_456, energy_mj=7_890_123)
    sensor = opened()
    (device,) = sensor.devices
    assert device.key == f"gpu:{stub.uuid(0)}"
    assert (device.name, device.component, device.method) == ("NVIDIA Stub", "gpu", "counter")
    assert device.detail == "NVML energy counter"
    assert device.low < 1 < device.high
    assert device.max_power_w == 3 * 400
    assert only(sensor) == Reading(device.key, "gpu", "counter", watts=123.456, counter_j=7890.123)
    sensor.close()


def test_two_gpus_of_100_and_300_watts_use_04_kwh_in_an_hour(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(1, power_mw=300_000)
    sensor = opened()
    account = Account(sensor.devices, interval_s=10)
    for second in range(0, 3601, 10):
        stub.set(0, energy_mj=1_000_000 + second * 100_000)
        stub.set(1, energy_mj=1_000_000 + second * 300_000)
        account.add(Sample(float(second), *sensor.read()))
        if second in {0, 3600}:
            account.mark(float(second), Mark.STOP if second else Mark.START)
    account.settle(final=True)
    assert sum(account.outside_j.values()) == pytest.approx(0.4 * 3.6e6, rel=1e-9)
    sensor.close()


def test_a_gpu_without_a_counter_gives_its_power(stub: NvmlStub) -> None:
    stub.set(0, energy_error=nvml_stub.NOT_SUPPORTED)
    sensor = opened()
    assert sensor.devices[0].method == "measured"
    assert sensor.devices[0].detail == "NVML power gauge"
    reading = only(sensor)
    assert (reading.watts, reading.counter_j, reading.method) == (100.0, None, "measured")
    asked = stub.calls(0)["energy"]
    sensor.read()
    assert stub.calls(0)["energy"] == asked
    sensor.close()


def test_a_gpu_without_a_gauge_gives_its_counter(stub: NvmlStub) -> None:
    stub.set(0, power_error=nvml_stub.NOT_SUPPORTED)
    sensor = opened()
    reading = only(sensor)
    assert (reading.watts, reading.counter_j) == (None, 1000.0)
    sensor.close()


def test_a_channel_that_is_dropped_later_leaves_the_other(stub: NvmlStub) -> None:
    sensor = opened()
    stub.set(0, energy_error=nvml_stub.NOT_SUPPORTED)
    assert only(sensor).method == "measured"
    stub.set(0, energy_error=0)
    assert only(sensor).counter_j is None
    stub.set(0, power_error=nvml_stub.NOT_SUPPORTED)
    sensor.read()
    assert sensor.read() == ((), {sensor.devices[0].key: "the GPU no longer tells power or energy"})
    sensor.close()


MUTE: dict[str, Any] = {"power_error": nvml_stub.NOT_SUPPORTED, "energy_error": nvml_stub.NOT_SUPPORTED}


def test_a_gpu_without_a_power_reading_is_modelled_by_utilisation_and_limit(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(0, **MUTE, name="GRID", utilization=50)
    sensor, finding, notes = nvml.look({})
    assert sensor is not None
    device = sensor.devices[0]
    assert (device.method, device.component) == ("modelled", "gpu")
    assert device.detail == "model: utilisation x limit of 400 W, of which 10% idle"
    assert device.low < 0.5
    assert device.high > 1.5
    assert "model" in finding.why
    assert any("GRID" in note and "utilisation x power limit" in note for note in notes)
    for percent, watts in ((50, 220), (0, 40), (100, 400)):
        stub.set(0, utilization=percent)
        readings, missing = sensor.read()
        assert not missing
        assert readings[0].method == "modelled"
        assert readings[0].watts == pytest.approx(watts)
        assert readings[0].counter_j is None
        assert readings[1].method == "counter"
    sensor.close()


def test_a_limit_that_is_given_counts_for_gpus_without_a_reading_alone(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(0, **MUTE, limit_error=nvml_stub.NOT_SUPPORTED, utilization=100)
    sensor, _, _ = nvml.look({}, limit_w=70)
    assert sensor is not None
    assert "70 W given by you" in sensor.devices[0].detail
    assert sensor.devices[1].detail == "NVML energy counter"
    readings, _ = sensor.read()
    assert [reading.watts for reading in readings] == [70, 100]
    sensor.close()


def test_without_a_limit_there_is_no_model(stub: NvmlStub) -> None:
    stub.set(0, **MUTE, limit_error=nvml_stub.NOT_SUPPORTED)
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert "--gpu-power-limit" in finding.remedy


@pytest.mark.parametrize("limit_w", [0, -70, float("nan"), 70_000])
def test_a_limit_that_cannot_be_is_refused(stub: NvmlStub, limit_w: float) -> None:
    with pytest.raises(SettingError, match="gpu_power_limit"):
        nvml.look({}, limit_w=limit_w)
    assert stub.inits == 0


def test_a_modelled_gpu_that_falls_silent_or_is_lost_is_missing(stub: NvmlStub) -> None:
    stub.set(0, **MUTE)
    sensor = opened()
    key = sensor.devices[0].key
    stub.set(0, utilization_error=nvml_stub.TIMEOUT)
    assert "Timeout" in sensor.read()[1][key]
    stub.set(0, utilization_error=0)
    assert only(sensor).watts == pytest.approx(40)
    stub.set(0, utilization_error=nvml_stub.GPU_IS_LOST)
    assert "lost" in sensor.read()[1][key]
    sensor.close()


def test_a_slice_of_a_gpu_without_a_power_reading_has_no_model(stub: NvmlStub) -> None:
    stub.set(0, **MUTE, slices=[MigSlice("MIG-1")])
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert not finding.readable


def test_a_gpu_that_tells_nothing_is_not_counted(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(0, **MUTE, utilization_error=nvml_stub.NOT_SUPPORTED, name="Mute")
    sensor, finding, notes = nvml.look({})
    assert sensor is not None
    assert [device.key for device in sensor.devices] == [f"gpu:{stub.uuid(1)}"]
    assert finding.readable
    assert any("Mute" in note for note in notes)
    sensor.close()
    stub.count = 1
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert (finding.found, finding.readable) == (True, False)
    assert stub.inits == stub.shutdowns == 2


@pytest.mark.parametrize("code", [nvml_stub.GPU_IS_LOST, nvml_stub.NO_PERMISSION])
def test_a_lost_gpu_is_missing_from_then_on_and_the_rest_goes_on(stub: NvmlStub, code: int) -> None:
    stub.count = 2
    sensor = opened()
    stub.set(0, power_error=code)
    energy_before = stub.calls(0)["energy"]
    readings, missing = sensor.read()
    assert [reading.device for reading in readings] == [sensor.devices[1].key]
    assert list(missing) == [sensor.devices[0].key]
    asked = stub.calls(0)
    assert asked["energy"] == energy_before
    stub.set(0, power_error=0)
    assert list(sensor.read()[1]) == [sensor.devices[0].key]
    assert stub.calls(0) == asked
    sensor.close()


@pytest.mark.parametrize("code", [nvml_stub.TIMEOUT, nvml_stub.UNKNOWN])
def test_a_busy_driver_is_missing_for_one_tick(stub: NvmlStub, code: int) -> None:
    sensor = opened()
    stub.set(0, error=code)
    readings, missing = sensor.read()
    assert not readings
    assert list(missing) == [sensor.devices[0].key]
    stub.set(0, error=0)
    assert only(sensor).watts == 100.0
    sensor.close()


def test_a_driver_that_is_busy_at_the_start_is_asked_again(stub: NvmlStub) -> None:
    stub.set(0, energy_error=nvml_stub.TIMEOUT)
    sensor = opened()
    assert only(sensor).counter_j is None
    stub.set(0, energy_error=0)
    assert only(sensor).counter_j == 1000.0
    sensor.close()


def test_nvml_shut_down_by_another_library_is_opened_again(stub: NvmlStub) -> None:
    stub.count = 2
    sensor = opened()
    pynvml.nvmlShutdown()
    readings, missing = sensor.read()
    assert len(readings) == 2
    assert not missing
    assert stub.inits == 2
    sensor.close()
    assert stub.shutdowns == 2


def test_nvml_that_does_not_come_back_is_missing_until_it_does(stub: NvmlStub) -> None:
    sensor = opened()
    pynvml.nvmlShutdown()
    stub.init_error = nvml_stub.UNKNOWN
    readings, missing = sensor.read()
    assert not readings
    assert "shut down" in missing[sensor.devices[0].key]
    stub.init_error = 0
    assert only(sensor).watts == 100.0
    sensor.close()


def test_after_a_shutdown_a_gpu_is_found_again_by_its_uuid(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(1, power_mw=300_000)
    sensor = opened({"CUDA_VISIBLE_DEVICES": "1"})
    pynvml.nvmlShutdown()
    first, second = stub.uuid(0), stub.uuid(1)
    stub.set(0, uuid=second, power_mw=300_000)
    stub.set(1, uuid=first, power_mw=100_000)
    assert only(sensor).watts == 300.0
    sensor.close()


def test_one_init_is_paired_with_one_shutdown(stub: NvmlStub) -> None:
    sensor = opened()
    for _ in range(3):
        sensor.read()
    sensor.close()
    sensor.close()
    assert (stub.inits, stub.shutdowns) == (1, 1)
    assert list(sensor.read()[1]) == [sensor.devices[0].key]


def test_a_tick_takes_two_calls_and_no_list_of_processes(stub: NvmlStub) -> None:
    sensor = opened()
    before = stub.calls(0)
    sensor.read()
    after = stub.calls(0)
    assert after == {"power": before["power"] + 1, "energy": before["energy"] + 1, "processes": 0}
    sensor.close()


def test_zero_watts_is_no_figure(stub: NvmlStub) -> None:
    stub.set(0, energy_error=nvml_stub.NOT_SUPPORTED, power_mw=0)
    sensor = opened()
    key = sensor.devices[0].key
    told = [sensor.read() for _ in range(3)]
    assert all(readings == () for readings, _ in told)
    assert "3 times in a row" not in told[1][1][key]
    assert "3 times in a row" in told[2][1][key]
    stub.set(0, power_mw=40_000)
    assert only(sensor).watts == 40.0
    stub.set(0, power_mw=0)
    assert "in a row" not in sensor.read()[1][key]
    sensor.close()


def test_zero_joules_is_no_figure_and_the_gauge_stands_in(stub: NvmlStub) -> None:
    stub.set(0, energy_mj=0)
    sensor = opened()
    reading = only(sensor)
    assert (reading.watts, reading.counter_j, reading.method) == (100.0, None, "measured")
    sensor.close()


@pytest.mark.parametrize("power_mw", [1_300_000, 2**32 - 1])
def test_a_power_far_beyond_the_limit_is_no_figure(stub: NvmlStub, power_mw: int) -> None:
    stub.set(0, power_mw=power_mw)
    sensor = opened()
    reading = only(sensor)
    assert (reading.watts, reading.counter_j) == (None, 1000.0)
    stub.set(0, energy_error=nvml_stub.NOT_SUPPORTED)
    readings, missing = sensor.read()
    assert not readings
    assert "cannot be" in missing[sensor.devices[0].key]
    sensor.close()


def test_a_gpu_without_a_limit_is_still_checked(stub: NvmlStub) -> None:
    stub.set(0, limit_error=nvml_stub.NOT_SUPPORTED, power_mw=1_400_000)
    sensor = opened()
    assert only(sensor).watts == 1400.0
    stub.set(0, power_mw=4_000_000)
    assert only(sensor).watts is None
    sensor.close()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-00000002", [2]),
        ("GPU-", []),
        ("0,0", []),
        ("2,-1,3", [2]),
        (" 1 ", [1]),
        ("3,1", [3, 1]),
    ],
)
def test_only_gpus_that_cuda_shows_are_counted(stub: NvmlStub, value: str | None, shown: list[int]) -> None:
    stub.count = 4
    sensor, finding, _ = nvml.look({} if value is None else {"CUDA_VISIBLE_DEVICES": value})
    devices = () if sensor is None else sensor.devices
    assert [device.key for device in devices] == [f"gpu:{stub.uuid(index)}" for index in shown]
    assert (finding.found, finding.readable) == (True, True)
    if sensor is None:
        assert f"CUDA_VISIBLE_DEVICES={value!r}" in finding.why
    else:
        sensor.close()
    assert stub.inits == stub.shutdowns == 1


def test_unequal_gpus_chosen_by_number_are_told_about(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(1, name="NVIDIA Other")
    sensor, _, notes = nvml.look({"CUDA_VISIBLE_DEVICES": "0"})
    assert sensor is not None
    assert any("order of the PCI bus" in note for note in notes)
    sensor.close()


def test_a_gpu_whose_handle_fails_keeps_its_number(stub: NvmlStub) -> None:
    stub.count = 3
    stub.set(1, handle_error=nvml_stub.GPU_IS_LOST)
    sensor = opened({"CUDA_VISIBLE_DEVICES": "1,2"})
    assert [device.key for device in sensor.devices] == [f"gpu:{stub.uuid(2)}"]
    sensor.close()


def test_a_mig_slice_is_a_labelled_share_of_its_gpu(stub: NvmlStub) -> None:
    stub.set(0, slices=[MigSlice("MIG-a", 14), MigSlice("MIG-b", 28, gpu_instance=2)], multiprocessors=98)
    sensor = opened({"CUDA_VISIBLE_DEVICES": "MIG-b"})
    (device,) = sensor.devices
    assert device.key == "gpu:MIG-b"
    assert device.name == "NVIDIA Stub MIG slice 2/0"
    assert device.detail == "estimate: 28 of 98 multiprocessors of the whole GPU's NVML energy counter"
    assert device.low < 0.5
    assert device.high > 1.5
    assert device.max_power_w == pytest.approx(3 * 400 * 28 / 98)
    reading = only(sensor)
    assert reading.watts == pytest.approx(100 * 28 / 98)
    assert reading.counter_j == pytest.approx(1000 * 28 / 98)
    pynvml.nvmlShutdown()
    assert only(sensor).watts == pytest.approx(100 * 28 / 98)
    sensor.close()


def test_a_slice_of_a_gpu_that_hides_its_processors_is_shared_by_sevenths(stub: NvmlStub) -> None:
    stub.set(0, slices=[MigSlice("MIG-a", multiprocessors=0, sevenths=3)])
    sensor = opened()
    assert only(sensor).watts == pytest.approx(300 / 7)
    assert "3 of 7" in sensor.devices[0].detail
    sensor.close()


def test_a_divided_gpu_without_slices_shows_nothing(stub: NvmlStub) -> None:
    stub.set(0, slices=[])
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert "without a slice" in finding.why


def test_by_pid_only_gpus_of_this_process_or_its_children_count(stub: NvmlStub) -> None:
    stub.count = 3
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stub.set(0, pids=[1])
        stub.set(1, pids=[1, os.getpid()])
        stub.set(2, pids=[child.pid])
        sensor, _, notes = nvml.look({}, devices_by_pid=True)
    finally:
        child.communicate(b"\n")
    assert sensor is not None
    assert [device.key for device in sensor.devices] == [f"gpu:{stub.uuid(1)}", f"gpu:{stub.uuid(2)}"]
    assert notes == ()
    sensor.close()


@pytest.mark.parametrize("pids", [[], [1, 2]])
def test_by_pid_counts_all_and_says_so_where_processes_are_hidden(stub: NvmlStub, pids: list[int]) -> None:
    stub.count = 2
    stub.set(0, pids=pids)
    sensor, _, notes = nvml.look({}, devices_by_pid=True)
    assert sensor is not None
    assert len(sensor.devices) == 2
    assert any("all visible GPUs are counted" in note for note in notes)
    sensor.close()


def test_a_forked_child_neither_reads_nor_shuts_down(stub: NvmlStub, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = opened()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: 1)
        calls = stub.calls(0)
        assert "forked" in sensor.read()[1][sensor.devices[0].key]
        sensor.close()
        assert stub.calls(0) == calls
    assert stub.shutdowns == 0
    assert only(sensor).watts == 100.0
    sensor.close()


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (nvml_stub.DRIVER_NOT_LOADED, "sudo modprobe nvidia"),
        (nvml_stub.VERSION_MISMATCH, "sudo reboot"),
        (nvml_stub.UNKNOWN, "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start_is_told_with_what_mends_it(
    stub: NvmlStub, code: int, remedy: str
) -> None:
    stub.init_error = code
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert (finding.found, finding.readable, finding.remedy) == (True, False, remedy)


def test_a_driver_without_gpus_is_told(stub: NvmlStub) -> None:
    stub.count = 0
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert not finding.found
    assert stub.inits == stub.shutdowns == 1


def test_an_outdated_pynvml_in_the_way_is_told(stub: NvmlStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", types.ModuleType("pynvml"))
    sensor, finding, _ = nvml.look({})
    assert sensor is None
    assert not finding.readable
    assert "pip uninstall -y pynvml" in finding.remedy
    assert stub.inits == 0


ABANDONED = """
import sys, warnings
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "pynvml":
            sys.meta_path.remove(hook)
            warnings.warn("The pynvml package is deprecated.", FutureWarning, stacklevel=2)
hook = Hook()
sys.meta_path.insert(0, hook)
"""

READ = """
from ct_notebook.sensors import discover
found = discover(components=frozenset({"gpu"}))
print([sensor.read()[0][0].watts for sensor in found.sensors], found.findings[0].why)
"""


def in_another_process(code: str, env: dict[str, str]) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**inherited, **env},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_another_process_reads_the_stub_by_its_environment(stub: NvmlStub) -> None:
    assert in_another_process(READ, stub.env()).startswith("[100.0]")


FORK = """
import os
from ct_notebook.sensors import discover
found = discover(components=frozenset({"gpu"}))
(sensor,) = found.sensors
if os.fork() == 0:
    readings, missing = sensor.read()
    sensor.close()
    os._exit(0 if not readings and list(missing) == [found.devices[0].key] else 1)
print(os.wait()[1], len(sensor.read()[0]))
sensor.close()
"""


def test_a_real_fork_leaves_the_parent_its_sensor(stub: NvmlStub) -> None:
    assert in_another_process(FORK, stub.env()) == "0 1\n"
    assert (stub.inits, stub.shutdowns) == (1, 1)


def test_the_warning_of_the_abandoned_package_is_not_shown(stub: NvmlStub) -> None:
    assert in_another_process(ABANDONED + READ, stub.env()).startswith("[100.0]")


def test_a_live_stub_counts_energy_in_real_time(stub: NvmlStub) -> None:
    stub.set(0, live=True, power_mw=200_000)
    sensor = opened()
    first = only(sensor).counter_j
    while only(sensor).counter_j == first:
        pass
    last = only(sensor).counter_j
    stub.set(0, live=False)
    stopped = only(sensor).counter_j
    assert first is not None
    assert last is not None
    assert stopped is not None
    assert 1000 <= first < last <= stopped
    assert only(sensor).counter_j == stopped
    sensor.close()


def test_without_a_driver_pynvml_is_not_even_imported(tmp_path: Path) -> None:
    code = (
        "import ctypes, sys\n"
        "def no_library(name, *rest):\n"
        "    raise OSError(name)\n"
        "ctypes.CDLL = no_library\n"
        "from pathlib import Path\n"
        "from ct_notebook.sensors import nvml\n"
        f"print(nvml.look({{}}, root=Path({str(tmp_path)!r}))[1].found, 'pynvml' in sys.modules)"
    )
    assert in_another_process(code, {}) == "False False\n"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    assert in_another_process(code, {}) == "True False\n"


def test_the_work_of_a_gpu_is_shared_by_the_utilisation_of_processes(stub: NvmlStub) -> None:
    stub.count = 2
    stub.set(0, pids=[100, 200, 300], work=[60, 30, 10])
    stub.set(1, pids=[400], work=[50])
    sensor = opened()
    first, second = (device.key for device in sensor.devices)
    assert sensor.shares_of({100, 300, 999}) == {first: pytest.approx(0.7)}
    # One whose list names none of ours may hide their numbers: nothing is known of it.
    assert second not in sensor.shares_of({100})
    stub.set(0, work=[60, 40, 2147483632])
    assert sensor.shares_of({100}) == {first: pytest.approx(0.6)}
    stub.set(0, work=[0, 0, 0])
    assert sensor.shares_of({100}) == {}
    sensor.close()
    assert sensor.shares_of({100}) == {}


def test_a_driver_that_tells_no_work_of_processes_shares_nothing(stub: NvmlStub) -> None:
    stub.set(0, pids=[])
    sensor = opened()
    assert sensor.shares_of({100}) == {}
    stub.set(0, pids=[100], work=[50], error=nvml_stub.NOT_SUPPORTED)
    assert sensor.shares_of({100}) == {}
    sensor.close()
