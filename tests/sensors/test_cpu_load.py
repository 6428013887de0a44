"""The model of CPU power by load, on a /proc of our own and a clock that the test sets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ct_notebook.errors import SensorError
from ct_notebook.sensors import cpu_load
from ct_notebook.sensors.cpu_load import KEY, CpuLoad
from ct_notebook.sensors.cpu_model import identify, package_w, share_of_span
from ct_notebook.sensors.usage import look_at_machine
from support.sysfs import Proc

EPYC = "vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\nmodel name: AMD EPYC 7B13\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Machine:
    """A machine whose time passes as the test says."""

    def __init__(self, root: Path, cpus: int = 4, cpuinfo: str = "") -> None:
        self.root = root
        self.proc = Proc(root, cpus, cpuinfo)
        self.clock = Clock()

    def run(self, seconds: float, *loads: float) -> None:
        self.clock.now_s += seconds
        self.proc.run(seconds, loads)

    def open(self, cpus: frozenset[int] = frozenset(range(1024))) -> CpuLoad:
        sensor, finding = cpu_load.look(self.root, cpus, self.clock)
        assert sensor is not None, finding
        return sensor


def figures(sensor: CpuLoad) -> tuple[float, float]:
    (reading,), missing = sensor.read()
    assert not missing
    assert reading.method == "modelled"
    assert reading.watts is not None
    assert reading.counter_j is not None
    return reading.watts, reading.counter_j


UNKNOWN = identify("", threads=4)


def unknown_w(*loads: float) -> float:
    """Power of so many threads of a CPU that tells nothing of itself."""
    return len(loads) * (0.8 + 3.7 * share_of_span(UNKNOWN, loads))


def test_power_goes_from_idle_to_full(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.run(1, 0, 0, 0, 0)
    assert figures(sensor)[0] == pytest.approx(4 * 0.8)
    machine.run(1, 1, 1, 1, 1)
    assert figures(sensor)[0] == pytest.approx(4 * 4.5)
    machine.run(1, 1, 1, 0, 0)
    assert figures(sensor)[0] == pytest.approx(unknown_w(1, 1, 0, 0))
    sensor.close()


def test_energy_is_power_times_time_over_any_interval(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.run(600, 1, 1, 1, 1)
    assert figures(sensor)[1] == pytest.approx(600 * 18)
    machine.run(10, 0, 0, 0, 0)
    assert figures(sensor)[1] == pytest.approx(600 * 18 + 10 * 3.2)
    sensor.close()


def test_the_first_reading_has_a_figure_at_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    watts, energy_j = figures(sensor)
    assert watts == pytest.approx(unknown_w(1, 0, 0, 0))  # as if one CPU were busy
    assert energy_j == 0
    sensor.close()


def test_readings_close_together_never_count_down(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.run(1, 1, 1, 1, 1)
    before = figures(sensor)[1]
    for load in (1, 0, 1, 0, 0, 0, 0, 0):
        machine.run(0.02, load, load, load, load)
        after = figures(sensor)[1]
        assert after >= before
        before = after
    machine.run(10, 0, 0, 0, 0)
    assert figures(sensor)[1] == pytest.approx(18 + 10.16 * 3.2, rel=0.1)
    sensor.close()


def test_readings_close_together_add_up(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.run(1, 0, 0, 0, 0)
    begun_j = figures(sensor)[1]
    for _ in range(100):
        machine.run(0.02, 1, 1, 1, 1)
        watts, energy_j = figures(sensor)
    assert watts == pytest.approx(18)
    assert energy_j - begun_j == pytest.approx(2 * 18, rel=0.001)
    sensor.close()


def test_waiting_for_a_disk_or_for_the_host_is_not_work(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cpus=1)
    sensor = machine.open()
    machine.clock.now_s += 1
    columns = "10 10 10 20 10 10 10 20 5 5"  # user nice system idle iowait irq softirq steal guest guest_nice
    (tmp_path / "proc/stat").write_text(f"cpu  {columns}\ncpu0 {columns}\nintr 1\n")
    assert figures(sensor)[0] == pytest.approx(unknown_w(0.5))
    sensor.close()


def test_only_cpus_we_may_run_on_count(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open(frozenset({1, 3}))
    assert sensor.devices[0].detail == "model: 2 vCPU x 0.8-4.5 W by load"
    machine.run(1, 1, 0, 1, 0)
    assert figures(sensor)[0] == pytest.approx(2 * 0.8)
    machine.run(1, 0, 1, 0, 1)
    assert figures(sensor)[0] == pytest.approx(2 * 4.5)
    sensor.close()


def test_cpus_that_a_container_numbers_anew_are_all_ours(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cpus=2)
    sensor = machine.open(frozenset({1, 9}))
    machine.run(1, 1, 1)
    assert figures(sensor)[0] == pytest.approx(2 * 4.5)
    sensor.close()


def test_where_proc_stands_still_our_own_process_is_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent_s = [5.0]
    monkeypatch.setattr("time.process_time", lambda: spent_s[0])
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.clock.now_s += 10
    spent_s[0] += 20
    assert figures(sensor)[0] == pytest.approx(unknown_w(0.5, 0.5, 0.5, 0.5))
    sensor.close()


def test_a_quota_is_charged_with_what_the_group_itself_used(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    stat = "us/cpu.stat"
    machine.proc.group("0::/us", {"us/cpu.max": "150000 100000", stat: "usage_usec 1000000\nuser_usec 5"})
    sensor = machine.open()
    assert "1.5 vCPU" in sensor.devices[0].detail
    machine.run(10, 1, 1, 1, 1)  # others keep the machine busy
    assert figures(sensor)[0] == pytest.approx(1.5 * 0.8)
    machine.run(10, 1, 1, 1, 1)
    (tmp_path / "sys/fs/cgroup" / stat).write_text("usage_usec 16000000\nuser_usec 5\n")
    assert figures(sensor)[0] == pytest.approx(1.5 * 4.5)
    sensor.close()


def test_an_old_group_with_a_quota_counts_nanoseconds(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.proc.group(
        "4:cpu,cpuacct:/us",
        {"cpu,cpuacct/us/cpu.cfs_quota_us": "200000", "cpu,cpuacct/us/cpu.cfs_period_us": "100000"},
    )
    usage = tmp_path / "sys/fs/cgroup/cpu,cpuacct/us/cpuacct.usage"
    usage.write_text("0\n")
    sensor = machine.open()
    machine.run(1, 0, 0, 0, 0)
    usage.write_text("2000000000\n")
    assert figures(sensor)[0] == pytest.approx(2 * 4.5)
    sensor.close()


def test_a_quota_without_a_count_of_the_group_takes_the_load_of_the_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.proc.group("0::/us", {"us/cpu.max": "200000 100000"})
    sensor = machine.open()
    machine.run(1, 1, 0, 0, 0)
    assert figures(sensor)[0] == pytest.approx(unknown_w(0.5, 0.5))
    sensor.close()


@pytest.mark.parametrize("garbage", ["", "garbage", "nr_periods 5\nusage_usec 7\n"])
def test_a_count_of_the_group_that_says_nothing_is_as_none(tmp_path: Path, garbage: str) -> None:
    machine = Machine(tmp_path)
    machine.proc.group("0::/us", {"us/cpu.max": "200000 100000", "us/cpu.stat": garbage})
    sensor = machine.open()
    machine.run(1, 1, 0, 0, 0)
    assert figures(sensor)[0] == pytest.approx(unknown_w(0.5, 0.5))
    sensor.close()


def test_a_quota_above_the_number_of_cpus_changes_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cpus=2)
    machine.proc.group("0::/us", {"us/cpu.max": "800000 100000"})
    sensor = machine.open()
    assert "2 vCPU" in sensor.devices[0].detail
    sensor.close()


def test_a_load_that_cannot_be_read_is_missing_and_may_come_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    stat = tmp_path / "proc/stat"
    for garbage in ("", "nonsense\n", "cpu \n"):
        stat.write_text(garbage)
        readings, missing = sensor.read()
        assert not readings
        assert list(missing) == [KEY]
    machine.run(1, 1, 1, 1, 1)
    assert figures(sensor)[0] == pytest.approx(18)
    sensor.close()
    sensor.close()


def test_a_system_that_tells_no_load_has_no_model(tmp_path: Path) -> None:
    sensor, finding = cpu_load.look(tmp_path)
    assert sensor is None
    assert not finding.found
    with pytest.raises(SensorError):
        CpuLoad(UNKNOWN, tmp_path)


def test_a_proc_stat_of_many_cpus_is_read_whole(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cpus=1000)
    sensor = machine.open(frozenset({998, 999}))
    machine.run(1, *[0.0] * 998, 1.0, 1.0)
    assert figures(sensor)[0] == pytest.approx(2 * 4.5)
    sensor.close()


@pytest.mark.parametrize("brand", ["-", "", "unknown", "Unknown", "0.0"])
def test_a_brand_that_says_nothing_makes_up_nothing(tmp_path: Path, brand: str) -> None:
    machine = Machine(tmp_path, 2, f"vendor_id: GenuineIntel\nmodel name: {brand}\n")
    sensor = machine.open()
    assert sensor.devices[0].name == "CPU (2 vCPU)"
    assert sensor.devices[0].detail == "model: 2 vCPU x 0.8-4.5 W by load"
    sensor.close()


def test_a_small_virtual_machine_is_never_charged_a_whole_socket(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, EPYC)
    sensor = machine.open()
    machine.run(1, 1, 1)
    assert figures(sensor)[0] == pytest.approx(2 * 2.2)
    assert (sensor.devices[0].low, sensor.devices[0].high) == (0.5, 1.5)
    sensor.close()


def test_where_there_is_no_proc_psutil_tells_the_load() -> None:
    times = cpu_load._PsutilTimes(range(1024))
    spent = times.read()
    assert times.count == len(spent) >= 1
    assert all(0 < busy < total for busy, total in spent)
    assert cpu_load._PsutilTimes({0}).count == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_machine_has_a_load() -> None:
    sensor, finding = cpu_load.look()
    assert sensor is not None, finding
    threads = float(sensor.devices[0].detail.split()[1])
    watts, _ = figures(sensor)
    assert 0.5 * threads <= watts <= 5.0 * threads
    sensor.close()


SERVER = "".join(
    f"processor: {number}\nvendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\nphysical id: {number % 2}\n"
    f"core id: {number // 2 % 2}\nmodel name: Intel(R) Xeon(R) Gold 6230R CPU @ 2.10GHz\nflags: fpu\n\n"
    for number in range(8)
)
"""Two sockets of two cores of two threads."""


def give_clocks(root: Path, *mhz: float) -> None:
    for number, each in enumerate(mhz):
        path = root / f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{each * 1000:.0f}\n")


def test_a_known_machine_is_charged_whole_and_says_from_what(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER)
    sensor = machine.open()
    assert sensor.devices[0].detail.endswith("W by load, from a TDP of 2 x 150 W")
    cpu = identify(SERVER)
    machine.run(1, *[0.0] * 8)
    assert figures(sensor)[0] == pytest.approx(8 * cpu.idle_w)
    machine.run(1, 1, 1, 0, 0, 0, 0, 0, 0)
    few = figures(sensor)[0]
    machine.run(1, *[0.25] * 8)
    assert few > figures(sensor)[0]  # two busy cores clock and draw as they do, eight resting ones less
    machine.run(1, *[1.0] * 8)
    assert figures(sensor)[0] == pytest.approx(8 * cpu.full_w)
    sensor.close()


def test_half_of_a_known_machine_is_half_of_its_power(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER)
    sensor = machine.open(frozenset({0, 1, 2, 3}))
    machine.run(1, *[1.0] * 8)
    assert figures(sensor)[0] == pytest.approx(4 * identify(SERVER).full_w)
    sensor.close()


def test_a_tdp_given_by_the_user_counts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER)
    sensor, finding = cpu_load.look(tmp_path, range(8), machine.clock, tdp_w=100)
    assert sensor is not None
    assert "from a TDP of 2 x 100 W given by you" in finding.why
    machine.run(1, *[1.0] * 8)
    assert figures(sensor)[0] == pytest.approx(8 * identify(SERVER, tdp_w=100).full_w)
    sensor.close()


def test_a_tdp_that_is_only_usual_is_told_as_such(tmp_path: Path) -> None:
    name = "13th Gen Intel(R) Core(TM) i7-13700H"
    machine = Machine(tmp_path, 20, f"model name\t: {name}\n")
    sensor = machine.open()
    assert sensor.devices[0].detail.endswith("from a TDP of 45 W, usual for such a name")
    assert look_at_machine(tmp_path).tdp_w is None  # other tools' rules go by what is known
    sensor.close()


def test_a_mac_s_cpu_is_asked_for_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        stdout = b"Apple M1\n"

    monkeypatch.setattr(subprocess, "run", lambda *_, **__: Answer())
    assert identify(cpu_load._mac_cpuinfo(), threads=8).brand == "Apple M1"

    def fails(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", fails)
    assert cpu_load._mac_cpuinfo() == ""


def test_the_clock_of_busy_cpus_counts_and_that_of_resting_ones_does_not(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER)
    give_clocks(tmp_path, 1050, *[800] * 7)
    sensor = machine.open()
    assert "by load and clock" in sensor.devices[0].detail
    machine.run(1, 1, *[0.1] * 7)
    cpu = identify(SERVER)
    assert figures(sensor)[0] == pytest.approx(package_w(cpu, [1, *[0.1] * 7], mhz=1050))
    machine.run(1, *[0.1] * 8)
    assert figures(sensor)[0] == pytest.approx(package_w(cpu, [0.1] * 8))
    sensor.close()


def test_a_clock_that_cannot_be_read_any_more_is_left_out(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER)
    give_clocks(tmp_path, *[1050] * 8)
    sensor = machine.open()
    (tmp_path / "sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq").write_text("<unknown>\n")
    machine.run(1, 0, 0, 0, 1, 0, 0, 0, 0)
    cpu = identify(SERVER)
    assert figures(sensor)[0] == pytest.approx(package_w(cpu, [1.0] + [0.0] * 7))
    sensor.close()


def test_a_virtual_machine_s_clock_is_not_asked_for(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 8, SERVER.replace("flags: fpu", "flags: fpu hypervisor"))
    give_clocks(tmp_path, *[1000] * 8)
    sensor = machine.open()
    assert sensor.devices[0].detail == "model: 8 vCPU x 0.65-5 W by load"
    machine.run(1, *[1.0] * 8)
    assert figures(sensor)[0] == pytest.approx(40)
    sensor.close()


def test_a_cpu_that_is_switched_off_stands_still(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sensor = machine.open()
    machine.run(1, 1, 1, 1, 1)
    text = (tmp_path / "proc/stat").read_text()
    (tmp_path / "proc/stat").write_text(
        "".join(f"{x}\n" for x in text.splitlines() if not x.startswith("cpu3"))
    )
    assert figures(sensor)[0] == pytest.approx(unknown_w(1, 1, 1, 0))
    sensor.close()
