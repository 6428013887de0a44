import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from ct_notebook import machine_use
from ct_notebook.attribution import ALLOTTED, BUSY, MEMORY, attribute
from ct_notebook.machine_use import MachineUse
from ct_notebook.records import Device, Epoch, Intensity, Pue, Reading, Run
from ct_notebook.sensors.usage import Machine, Usage, _from_psutil, look_at_machine, read_usage

CPU = Device("cpu:package-0", "cpu", "package-0", "counter")
RAM = Device("ram", "ram", "memory", "constant")
GPU = Device("gpu:a", "gpu", "A100", "counter")
WORLD = Intensity(400.0, "XX", "Somewhere", "a test", "2025", "lifecycle", how="setting")
PUE = Pue(1.0, "")
SHARES = {BUSY: 0.5, ALLOTTED: 0.25, MEMORY: 0.1}


def test_dynamic_energy_goes_by_busy_time_and_idle_energy_by_what_is_allotted() -> None:
    found = attribute([CPU, RAM], {CPU.key: 100.0, RAM.key: 20.0}, {CPU.key: 40.0}, SHARES)
    assert found.energy_j == {"cpu": pytest.approx(60 * 0.5 + 40 * 0.25), "ram": pytest.approx(2.0)}
    assert found.total_j == pytest.approx(42.0)
    assert found.how == "50% of busy CPU time, 25% of the CPUs, 10% of the memory"


def test_without_an_idle_power_all_counts_as_dynamic_and_that_is_said() -> None:
    found = attribute([CPU], {CPU.key: 100.0}, {}, SHARES)
    assert found.energy_j == {"cpu": pytest.approx(50.0)}
    assert "all of package-0 counts as dynamic" in found.how


def test_a_gpu_whose_work_nobody_tells_is_left_out_and_named() -> None:
    found = attribute([CPU, GPU], {CPU.key: 10.0, GPU.key: 1000.0}, {CPU.key: 0.0}, SHARES)
    assert "gpu" not in found.energy_j
    assert "A100 left out" in found.how
    told = attribute([GPU], {GPU.key: 1000.0}, {}, {**SHARES, GPU.key: 0.7})
    assert told.energy_j == {"gpu": pytest.approx(700.0)}


def test_idle_energy_is_never_more_than_what_was_used() -> None:
    found = attribute([CPU], {CPU.key: 10.0}, {CPU.key: 40.0}, SHARES)
    assert found.energy_j == {"cpu": pytest.approx(2.5)}


def test_a_device_that_was_not_read_is_absent() -> None:
    assert attribute([CPU, RAM], {CPU.key: 10.0}, {}, SHARES).energy_j.keys() == {"cpu"}


def test_the_cpu_time_of_children_is_the_trees_while_they_run_and_after_they_ended() -> None:
    before = read_usage()
    assert before is not None
    code = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    during = read_usage()
    child.communicate(b"\n")
    after = read_usage()
    assert during is not None
    assert after is not None
    assert during.tree_cpu_s - before.tree_cpu_s >= 0.5
    assert after.tree_cpu_s - before.tree_cpu_s >= 0.5
    assert after.busy_s >= before.busy_s
    assert during.tree_memory_gb > after.tree_memory_gb > 0
    assert after.memory_used_gb > 0


def test_a_machine_is_as_large_as_the_system_says() -> None:
    machine = look_at_machine()
    assert machine.cpus == os.cpu_count()
    assert 0 < machine.allotted_cpus <= machine.cpus
    assert 0 < machine.allotted_memory_gb <= machine.memory_gb
    assert machine.memory_gb > 0.1


def test_proc_and_psutil_tell_the_same() -> None:
    # Read once it has started: its memory grows until then.
    code = "print(flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        ours, theirs = read_usage(), _from_psutil()
    finally:
        child.communicate(b"\n")
    assert ours is not None
    assert theirs is not None
    assert ours.pids == theirs.pids
    assert child.pid in ours.pids
    assert ours.tree_cpu_s == pytest.approx(theirs.tree_cpu_s, abs=0.2)
    assert ours.busy_s == pytest.approx(theirs.busy_s, abs=1.0)
    assert ours.tree_memory_gb == pytest.approx(theirs.tree_memory_gb, rel=0.1)
    assert ours.memory_used_gb == pytest.approx(theirs.memory_used_gb, rel=0.1)


def test_a_system_that_does_not_tell_leaves_it_unknown(tmp_path: Path) -> None:
    assert read_usage(tmp_path) is None


class Load:
    """A model that was charged with so many busy CPU seconds, as `CpuLoad` is."""

    devices = (Device("cpu:model", "cpu", "CPU", "modelled", idle_w=2.0),)

    def __init__(self) -> None:
        self.busy_s = 100.0

    def read(self) -> tuple[tuple[Reading, ...], dict[str, str]]:
        return (), {}

    def close(self) -> None:
        pass


def usage(tree_cpu_s: float, busy_s: float) -> Usage:
    return Usage(tree_cpu_s, busy_s, tree_memory_gb=1.0, memory_used_gb=9.0, pids=frozenset())


def run_of_10_s(devices: tuple[Device, ...], energy_j: dict[str, float], known: dict[str, float]) -> Run:
    return Run(
        "1",
        datetime.now().astimezone(),
        None,
        devices,
        WORLD,
        PUE,
        duration_s=10,
        outside_j=energy_j,
        machine=known,
    )


@pytest.mark.parametrize("modelled", [True, False])
def test_what_the_model_charges_of_a_part_of_the_machine_is_not_divided_by_all_of_it(
    monkeypatch: pytest.MonkeyPatch, *, modelled: bool
) -> None:
    machine = Machine(64, 2.0, 1, memory_gb=128.0, allotted_memory_gb=4.0, is_arm=False, tdp_w=None)
    looks = iter([usage(5.0, 1000.0), usage(15.0, 1600.0)])
    monkeypatch.setattr(machine_use, "look_at_machine", lambda: machine)
    monkeypatch.setattr(machine_use, "read_usage", lambda: next(looks))
    load = Load()
    use = MachineUse([load] if modelled else [], shares=True, cpu_tdp_w=None)
    use.look(0.0, last=False)
    load.busy_s += 20.0  # twice what the process took: another one of its group worked too
    use.look(10.0, last=True)
    cpu = load.devices[0] if modelled else CPU
    part = use.part_of(run_of_10_s((cpu, RAM), {cpu.key: 60.0, RAM.key: 8.0}, use.known()))
    assert part is not None
    # 1 of the 4 GB that are charged.
    assert part.energy_j["ram"] == pytest.approx(2.0)
    if modelled:
        assert part.energy_j["cpu"] == pytest.approx(40 * 10 / 20 + 20)
        assert part.how.startswith("50% of busy CPU time, 100% of the CPUs")
        # Measured while others worked, it would give their load to the process.
        busy_before = replace(run_of_10_s((cpu,), {cpu.key: 60.0}, use.known()), idle_w={cpu.key: 6.0})
        again = use.part_of(busy_before)
        assert again is not None
        assert again.energy_j["cpu"] == pytest.approx(part.energy_j["cpu"])
    else:  # a meter has all of the machine in it
        assert part.energy_j["cpu"] == pytest.approx(60 * 10 / 600)


def test_two_looks_at_the_same_instant_tell_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(4, 4.0, 1, memory_gb=8.0, allotted_memory_gb=8.0, is_arm=False, tdp_w=None)
    monkeypatch.setattr(machine_use, "look_at_machine", lambda: machine)
    monkeypatch.setattr(machine_use, "read_usage", lambda: usage(1.0, 2.0))
    use = MachineUse([], shares=True, cpu_tdp_w=None)
    use.look(5.0, last=False)
    use.look(5.0, last=True)  # a clock that moves every 16 ms, as on Windows
    assert "cpu_load" not in use.known()
    assert use.part_of(run_of_10_s((CPU,), {CPU.key: 1.0}, use.known())) is None


def test_a_device_that_was_lost_half_way_idles_for_no_longer_than_it_was_read() -> None:
    lost = Epoch(1, 0.0, 100.0, {GPU.key: 15_000.0}, {GPU.key: 50.0})
    run = Run(
        "1",
        datetime.now().astimezone(),
        None,
        (GPU,),
        WORLD,
        PUE,
        epochs=(lost,),
        duration_s=104.0,
        outside_j={GPU.key: 240.0},
        idle_w={GPU.key: 60.0},
    )
    assert run.covered_s == {GPU.key: pytest.approx(54.0)}
    assert run.net_energy_j is not None
    assert run.net_energy_j.value == pytest.approx(15_240 - 54 * 60)
