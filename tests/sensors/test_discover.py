"""What is found on a machine, put together. The machine is a folder; its GPUs are the stub's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ct_notebook.errors import SettingError
from ct_notebook.records import Finding, Sample
from ct_notebook.sensors import Discovery, Simulated, discover
from support.nvml_stub import NvmlStub
from support.sysfs import Proc, RaplZone, make_rapl

ALL = frozenset({"gpu", "cpu", "ram"})
NO_GPU = frozenset({"cpu", "ram"})


def watts(found: Discovery) -> dict[str, float | None]:
    shown = {}
    for sensor in found.sensors:
        readings, missing = sensor.read()
        assert not missing
        shown.update({reading.device: reading.watts for reading in readings})
    return shown


def finding_of(found: Discovery, sensor: str) -> Finding:
    (finding,) = (finding for finding in found.findings if finding.sensor.startswith(sensor))
    return finding


def close(found: Discovery) -> None:
    for sensor in found.sensors:
        sensor.close()


def test_a_server_with_everything_is_read_by_its_meters(stub: NvmlStub, tmp_path: Path) -> None:
    stub.count = 2
    Proc(tmp_path)
    make_rapl(tmp_path)
    found = discover(components=ALL, environ={}, root=tmp_path)
    assert [device.key for device in found.devices] == [
        f"gpu:{stub.uuid(0)}",
        f"gpu:{stub.uuid(1)}",
        "cpu:package-0",
        "cpu:dram-0",
    ]
    assert all(finding.found and finding.readable for finding in found.findings)
    assert "energy counter" in finding_of(found, "RAM").why
    close(found)


def test_a_bare_folder_has_nothing_and_raises_nothing(tmp_path: Path) -> None:
    found = discover(components=NO_GPU, environ={}, root=tmp_path)
    assert found.sensors == ()
    assert [finding.sensor for finding in found.findings] == ["RAPL (CPU)", "CPU model", "RAM model"]
    assert all(finding.why and not finding.readable for finding in found.findings)


def test_a_virtual_machine_is_modelled(tmp_path: Path) -> None:
    Proc(tmp_path, cpus=2, memory_kb=8 * 2**20)
    found = discover(components=NO_GPU, environ={}, root=tmp_path)
    assert [(device.key, device.method) for device in found.devices] == [
        ("cpu:model", "modelled"),
        ("ram", "constant"),
    ]
    assert watts(found)["ram"] == pytest.approx(8 * 0.375)
    assert "8 GB allocated x 0.375 W/GB" in found.devices[1].detail
    assert found.devices[1].low < 1 < found.devices[1].high
    close(found)


def test_a_tdp_and_a_limit_that_are_given_reach_their_models(stub: NvmlStub, tmp_path: Path) -> None:
    Proc(tmp_path, cpus=4)
    stub.set(0, power_error=3, energy_error=3, utilization=100)
    found = discover(components=ALL, environ={}, root=tmp_path, cpu_tdp_w=65, gpu_limit_w=70)
    gpu, cpu, _ = found.devices
    assert "70 W given by you" in gpu.detail
    assert "TDP of 65 W given by you" in cpu.detail
    assert watts(found)[gpu.key] == pytest.approx(70)
    close(found)


@pytest.mark.parametrize(("name", "said"), [("cpu_tdp_w", "cpu_tdp"), ("gpu_limit_w", "gpu_power_limit")])
def test_a_tdp_or_a_limit_that_cannot_be_is_refused_even_where_there_are_meters(
    stub: NvmlStub, tmp_path: Path, name: str, said: str
) -> None:
    Proc(tmp_path)
    make_rapl(tmp_path)
    given: dict[str, Any] = {name: -1.0}
    with pytest.raises(SettingError, match=said):
        discover(components=ALL, environ={}, root=tmp_path, **given)
    assert stub.inits == stub.shutdowns


def test_a_limit_of_memory_counts_instead_of_the_machine_s(tmp_path: Path) -> None:
    Proc(tmp_path).group("0::/us", {"us/memory.max": str(4 * 2**30)})
    found = discover(components=frozenset({"ram"}), environ={}, root=tmp_path)
    assert watts(found) == {"ram": pytest.approx(1.5)}


def test_no_limit_of_an_old_group_is_none(tmp_path: Path) -> None:
    Proc(tmp_path).group("4:memory:/", {"memory/memory.limit_in_bytes": "9223372036854771712"})
    found = discover(components=frozenset({"ram"}), environ={}, root=tmp_path)
    assert watts(found) == {"ram": pytest.approx(16 * 0.375)}
    (tmp_path / "proc/meminfo").unlink()
    assert discover(components=frozenset({"ram"}), environ={}, root=tmp_path).sensors == ()


@pytest.mark.parametrize("line", ["MemTotal: x\n", "MemTotal:\n", "MemTotal: 0 kB\n", ""])
def test_a_memory_without_a_size_is_told_and_the_cpu_stays(tmp_path: Path, line: str) -> None:
    Proc(tmp_path)
    (tmp_path / "proc/meminfo").write_text(line)
    found = discover(components=frozenset({"cpu", "ram"}), environ={}, root=tmp_path)
    assert watts(found).keys() == {"cpu:model"}
    assert finding_of(found, "RAM model").why == "The size of the memory is unknown."
    close(found)


@pytest.mark.parametrize("broken", ["cpu_load", "ram"])
def test_a_model_that_fails_does_not_keep_the_rest_from_being_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: str
) -> None:
    Proc(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(f"ct_notebook.sensors.{broken}.look", fails)
    found = discover(components=frozenset({"cpu", "ram"}), environ={}, root=tmp_path)
    assert len(found.sensors) == 1
    assert [each.why for each in found.findings if not each.readable and "failed" in each.why] == [
        "Looking for it failed: RuntimeError: "
    ]
    close(found)


def test_locked_counters_fall_back_to_the_models_and_say_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Proc(tmp_path)
    tree = make_rapl(tmp_path)
    real = os.open

    def asked(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith("energy_uj"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", asked)
    found = discover(components=NO_GPU, environ={}, root=tmp_path)
    assert tree.base.exists()
    assert [device.key for device in found.devices] == ["cpu:model", "ram"]
    assert finding_of(found, "RAPL").remedy.startswith("sudo chmod")
    assert None not in watts(found).values()
    close(found)


def test_a_package_without_memory_leaves_memory_to_its_size(tmp_path: Path) -> None:
    Proc(tmp_path)
    make_rapl(tmp_path, [RaplZone("intel-rapl:0", "package-0")])
    found = discover(components=NO_GPU, environ={}, root=tmp_path)
    assert [device.key for device in found.devices] == ["cpu:package-0", "ram"]
    close(found)


def test_a_tree_may_be_handed_in(tmp_path: Path) -> None:
    Proc(tmp_path)
    make_rapl(tmp_path / "host")
    environ = {"CT_NOTEBOOK_RAPL_DIR": str(tmp_path / "host/sys/devices/virtual/powercap")}
    found = discover(components=frozenset({"cpu"}), environ=environ, root=tmp_path)
    assert [device.key for device in found.devices] == ["cpu:package-0", "cpu:dram-0"]
    close(found)


def test_in_a_container_the_command_that_hands_counters_in_is_told(tmp_path: Path) -> None:
    Proc(tmp_path)
    (tmp_path / ".dockerenv").touch()
    found = discover(components=frozenset({"cpu"}), environ={}, root=tmp_path)
    assert "CT_NOTEBOOK_RAPL_DIR" in finding_of(found, "RAPL").remedy
    close(found)


def test_a_gpu_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    found = discover(components=frozenset({"gpu"}), environ={}, root=tmp_path)
    assert (finding_of(found, "AMD").found, finding_of(found, "AMD").readable) == (True, False)
    assert any("AMD" in note for note in found.notes)


def test_only_components_asked_for_are_looked_at(tmp_path: Path) -> None:
    Proc(tmp_path)
    make_rapl(tmp_path)
    found = discover(components=frozenset({"ram"}), environ={}, root=tmp_path)
    assert [device.key for device in found.devices] == ["ram"]
    assert [finding.sensor for finding in found.findings] == ["RAM model"]
    assert discover(components=frozenset(), environ={}, root=tmp_path) == Discovery((), ())


def test_the_environment_of_the_process_is_read_when_none_is_given(
    stub: NvmlStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.count = 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = discover(components=frozenset({"gpu"}), root=tmp_path)
    assert [device.key for device in found.devices] == [f"gpu:{stub.uuid(1)}"]
    close(found)


def test_a_broken_driver_does_not_keep_the_rest_from_being_read(
    stub: NvmlStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Proc(tmp_path)

    def broken() -> None:
        msg = "segment 7"
        raise RuntimeError(msg)

    monkeypatch.setattr("pynvml.nvmlInit", broken)
    found = discover(components=ALL, environ={}, root=tmp_path)
    assert "segment 7" in finding_of(found, "NVIDIA").why
    assert [device.key for device in found.devices] == ["cpu:model", "ram"]
    assert stub.count == 1
    close(found)


# -- simulated hardware --------------------------------------------------------------------------------


def test_a_simulated_cpu_stands_for_cpu_and_memory(tmp_path: Path) -> None:
    Proc(tmp_path)
    simulated = Simulated(cpu="Intel Xeon Gold 6226R", cpu_tdp_w=150, cpu_util=0.6)
    found = discover(components=NO_GPU, simulated=simulated, environ={}, root=tmp_path)
    assert watts(found) == {"cpu:simulated": pytest.approx(90)}
    (device,) = found.devices
    assert (device.name, device.method) == ("Intel Xeon Gold 6226R", "user")
    close(found)


def test_a_simulated_gpu_stands_for_all_gpus_and_the_cpu_stays(stub: NvmlStub, tmp_path: Path) -> None:
    Proc(tmp_path)
    found = discover(
        components=ALL, simulated=Simulated(gpu="H100", gpu_watts=700), environ={}, root=tmp_path
    )
    assert [device.key for device in found.devices] == ["gpu:simulated", "cpu:model", "ram"]
    assert watts(found)["gpu:simulated"] == pytest.approx(350)
    assert stub.inits == 0
    close(found)


def test_a_simulated_cpu_leaves_real_gpus(stub: NvmlStub, tmp_path: Path) -> None:
    found = discover(
        components=ALL, simulated=Simulated(cpu="C", cpu_tdp_w=10, cpu_util=0), environ={}, root=tmp_path
    )
    assert watts(found) == {f"gpu:{stub.uuid(0)}": 100.0, "cpu:simulated": 0.0}
    close(found)


def test_simulated_hardware_that_is_not_asked_for_is_left_out(tmp_path: Path) -> None:
    simulated = Simulated(cpu="C", cpu_tdp_w=10, gpu="G", gpu_watts=10)
    found = discover(components=frozenset({"ram"}), simulated=simulated, environ={}, root=tmp_path)
    assert found.sensors == ()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"cpu": "C"}, "sim_cpu_tdp"),
        ({"cpu": "C", "cpu_tdp_w": 0}, "sim_cpu_tdp"),
        ({"cpu": "C", "cpu_tdp_w": float("nan")}, "sim_cpu_tdp"),
        ({"cpu": "C", "cpu_tdp_w": 10, "cpu_util": 1.5}, "sim_cpu_util"),
        ({"gpu": "G"}, "sim_gpu_watts"),
        ({"gpu": "G", "gpu_watts": -1}, "sim_gpu_watts"),
        ({"gpu": "G", "gpu_watts": 10, "gpu_util": -0.1}, "sim_gpu_util"),
    ],
)
def test_simulated_hardware_that_cannot_be_is_refused(values: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        Simulated(**values)


# -- loading -------------------------------------------------------------------------------------------


def test_loading_the_room_loads_neither_psutil_nor_pynvml() -> None:
    code = (
        "import sys, ct_notebook.sensors\n"
        "print([name for name in ('psutil', 'pynvml', 'ctypes') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_sensor_of_this_very_machine_can_be_read_and_closed() -> None:
    found = discover(environ=dict(os.environ))
    assert found.sensors
    for sensor in found.sensors:
        sample = Sample(0.0, *sensor.read())
        named = {reading.device for reading in sample.readings} | set(sample.missing)
        assert named == {device.key for device in sensor.devices}
    keys = [device.key for device in found.devices]
    assert len(keys) == len(set(keys))
    close(found)
    close(found)
