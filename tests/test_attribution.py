import os
import subprocess
import sys
from pathlib import Path

import pytest

from ct_notebook.attribution import ALLOTTED, BUSY, MEMORY, attribute
from ct_notebook.records import Device
from ct_notebook.sensors.usage import _from_psutil, look_at_machine, read_usage

CPU = Device("cpu:package-0", "cpu", "package-0", "counter")
RAM = Device("ram", "ram", "memory", "constant")
GPU = Device("gpu:a", "gpu", "A100", "counter")
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
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
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
