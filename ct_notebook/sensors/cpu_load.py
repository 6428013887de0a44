"""The load of our CPUs comes in; a modelled power and energy go out. For machines whose CPU has no meter."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ct_notebook.errors import SensorError
from ct_notebook.records import Device, Finding, Reading

from . import cgroup
from .cpu_model import Cpu, identify, package_w

SENSOR = "CPU model"

KEY = "cpu:model"

WINDOW_S = 0.1
"""The kernel counts CPU time in steps of 10 ms: a load is told over no less than this, except at first."""

CLOCKS = 4
"""So many of the busiest CPUs are asked for their clock. Each question takes the kernel to that CPU."""

BUSY = 0.2
"""A CPU that is busy for a smaller share of the time is not asked for its clock: at rest that is low."""


class CpuLoad:
    """CPU power by the model of `cpu_model`, from the busy shares of the CPUs that this process may use.

    Where nothing bounds the process, these are all CPUs of the machine, and all load on them counts, whoever
    causes it. Affinity leaves those it may run on. A quota leaves so many CPUs' worth, with the load of the
    process's own group, for others run on the same CPUs.

    The load between two readings is exact, however far apart they are. So the model sums its own energy and
    gives it as a counter; the power beside it is the average since the reading before.

    Parameters
    ----------
    cpu
        The machine's.
    root
        Where `proc` and `sys` are.
    cpus
        Numbers of the CPUs this process may run on.
    clock
        Monotonic seconds.

    Raises
    ------
    SensorError
        The load cannot be read on this system.
    """

    def __init__(
        self,
        cpu: Cpu,
        root: Path = Path("/"),
        cpus: Collection[int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cpu = cpu
        self._clock = clock
        self._times = _open_times(root, _allowed_cpus() if cpus is None else cpus)
        quota = cgroup.cpu_limit(root)
        self._threads = float(self._times.count)
        self._usage: _GroupTime | None = None
        if quota is not None and quota < self._threads:
            # Others run on the same CPUs: what they do is not ours, what the quota leaves idle is.
            self._threads = quota
            path = cgroup.cpu_time_file(root)
            self._usage = None if path is None else _open_group_time(path)
        self._clocks = _Clocks(root, self._times.numbers) if _has_clock(cpu) else None
        busy = self._spread(1.0) if quota == self._threads else [1.0] + [0.0] * (self._times.count - 1)
        self._watts = package_w(cpu, busy, threads_given=self._threads)  # this code runs: one CPU is busy
        self._has_load = False
        self._energy_j = 0.0  # up to the newest window
        self._shown_j = 0.0
        self.busy_s = 0.0  # CPU seconds that were charged, up to the newest window
        self._at_s = clock()
        try:
            self._before = self._busy()
        except (OSError, ValueError, IndexError) as error:
            self.close()
            msg = f"The load of the CPU cannot be read ({error})."
            raise SensorError(msg) from error
        self.devices = (
            Device(
                key=KEY,
                component="cpu",
                name=cpu.brand or f"CPU ({self._threads:.3g} vCPU)",
                method="modelled",
                detail=self._detail(),
                low=cpu.low,
                high=cpu.high,
                idle_w=package_w(cpu, [], threads_given=self._threads),
            ),
        )

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """Average power since the reading before (W), and energy since opening (J)."""
        now_s = self._clock()
        passed_s = now_s - self._at_s
        try:
            busy = self._busy()
        except (OSError, ValueError, IndexError) as error:
            return (), {KEY: f"the load of the CPU cannot be read ({error})"}
        loads: Sequence[float] | None = None
        if passed_s >= WINDOW_S or not self._has_load:
            loads = self._loads(busy, passed_s)
            if loads is not None:
                self._watts = self._power_w(loads)
                self._has_load = passed_s >= WINDOW_S
        energy_j = self._energy_j + self._watts * max(0.0, passed_s)
        if passed_s >= WINDOW_S:
            if loads:
                self.busy_s += sum(min(load, 1.0) for load in loads) / len(loads) * self._threads * passed_s
            self._energy_j, self._at_s, self._before = energy_j, now_s, busy
        self._shown_j = max(self._shown_j, energy_j)
        return (
            Reading(KEY, "cpu", "modelled", watts=self._watts, counter_j=self._shown_j),
        ), MappingProxyType({})

    def close(self) -> None:
        """Close the files. Idempotent."""
        self._times.close()
        if self._usage is not None:
            self._usage.close()

    def _detail(self) -> str:
        """How the power is modelled, in words."""
        cpu = self._cpu
        words = f"model: {self._threads:.3g} vCPU x {cpu.idle_w:.3g}-{cpu.full_w:.3g} W by load"
        if self._clocks is not None and self._clocks.works:
            words += " and clock"
        if cpu.tdp_w is None:
            return words
        sockets = f"{cpu.sockets} x " if cpu.sockets > 1 and not cpu.is_virtual else ""
        whose = " given by you" if cpu.given else ", usual for such a name" if cpu.usual else ""
        return f"{words}, from a TDP of {sockets}{cpu.tdp_w:g} W{whose}"

    def _power_w(self, loads: Sequence[float]) -> float:
        mhz = None
        if self._clocks is not None and self._usage is None:
            mhz = self._clocks.read(loads)
        return package_w(self._cpu, loads, mhz=mhz, threads_given=self._threads)

    def _busy(self) -> tuple[Sequence[tuple[float, float]], float]:
        """Busy and total time of each of our CPUs, in their own unit; CPU seconds of our group or process."""
        return self._times.read(), time.process_time() if self._usage is None else self._usage.read()

    def _loads(
        self, now: tuple[Sequence[tuple[float, float]], float], passed_s: float
    ) -> Sequence[float] | None:
        """Busy share of each CPU that is charged, 0 to 1; None if no time was counted yet."""
        (times, own_s), (times_before, own_before_s) = now, self._before
        spent = [(b - b0, t - t0) for (b, t), (b0, t0) in zip(times, times_before, strict=True)]
        total = sum(each for _, each in spent)
        if self._usage is None and total > 0:
            loads = [max(0.0, busy) / each if each > 0 else 0.0 for busy, each in spent]
            # Under a quota that nobody counts, no more than all of it can be ours.
            return self._spread(sum(loads)) if self._threads < len(loads) else loads
        # Sandboxes such as gVisor show a /proc/stat that stands still: then our own process is what is known.
        if passed_s > 0 and (self._usage is not None or passed_s >= WINDOW_S):
            return self._spread((own_s - own_before_s) / passed_s)
        return None

    def _spread(self, busy: float) -> list[float]:
        """So many busy CPUs among those that are charged, by the scheduler on all of them in turn."""
        count = max(1, round(self._threads))
        return [min(1.0, max(0.0, busy) / self._threads)] * count


def look(
    root: Path = Path("/"),
    cpus: Collection[int] | None = None,
    clock: Callable[[], float] = time.monotonic,
    *,
    tdp_w: float | None = None,
) -> tuple[CpuLoad | None, Finding]:
    """Set the model up.

    Parameters
    ----------
    root, cpus, clock
        As for `CpuLoad`.
    tdp_w
        TDP of one socket that the user gives, W; on a virtual machine, of what it was given.

    Returns
    -------
    sensor, finding
        The sensor is None if this system tells no load.

    Raises
    ------
    SettingError
        The TDP given cannot be one.
    """
    try:
        text = (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        text = _mac_cpuinfo() if sys.platform == "darwin" and root == Path("/") else ""
    try:
        cpu = identify(text, tdp_w=tdp_w, threads=os.cpu_count())
        sensor = CpuLoad(cpu, root, cpus, clock)
    except SensorError as error:
        return None, Finding(SENSOR, found=False, readable=False, why=str(error))
    device = sensor.devices[0]
    return sensor, Finding(SENSOR, found=True, readable=True, why=f"{device.name}, {device.detail}.")


class _ProcStat:
    """Busy and total time of each of some CPUs from /proc/stat, in the kernel's ticks."""

    def __init__(self, path: Path, cpus: Collection[int]) -> None:
        self._file = os.open(path, os.O_RDONLY)
        try:
            there = self._lines()[1:]
        except BaseException:
            os.close(self._file)
            raise
        numbers = [int(line.split(None, 1)[0][3:]) for line in there]
        ours = [number for number in numbers if number in cpus]
        if not ours or len(cpus) == len(numbers):
            # A container that shows only its own CPUs numbers them anew.
            ours = numbers
        self.numbers = tuple(ours)
        self.count = len(ours)
        # A CPU that is switched off leaves the list: its time stands still until it is back.
        self._newest = {b"cpu%d" % number: (0.0, 0.0) for number in ours}

    def read(self) -> Sequence[tuple[float, float]]:
        found = 0
        for line in self._lines():
            name, *columns = line.split()
            if name in self._newest:
                found += 1
                # user nice system idle iowait irq softirq steal; guest time is in user time already.
                ticks = [int(column) for column in columns[:8]]
                ticks += [0] * (8 - len(ticks))
                total = sum(ticks)
                self._newest[name] = (total - ticks[3] - ticks[4] - ticks[7], total)
        if not found:
            msg = "our CPUs are not in /proc/stat"
            raise ValueError(msg)
        return list(self._newest.values())

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _lines(self) -> list[bytes]:
        """The lines of CPUs, which come first."""
        size = 1 << 14
        while True:
            text = os.pread(self._file, size, 0)
            end = text.find(b"\nintr")
            if end >= 0 or len(text) < size:
                break
            size *= 4
        lines = [line for line in text[: end if end >= 0 else None].splitlines() if line.startswith(b"cpu")]
        if len(lines) < 2:
            msg = "/proc/stat lists no CPU"
            raise ValueError(msg)
        return lines


class _PsutilTimes:
    """The same by psutil, where there is no /proc: macOS and Windows. Seconds."""

    def __init__(self, cpus: Collection[int]) -> None:
        import psutil  # noqa: PLC0415 - only where there is no /proc

        self._psutil = psutil
        there = len(psutil.cpu_times(percpu=True))
        ours = [number for number in range(there) if number in cpus]
        self.numbers = tuple(ours or range(there))
        self.count = len(self.numbers)

    def read(self) -> Sequence[tuple[float, float]]:
        each = self._psutil.cpu_times(percpu=True)
        found = []
        for number in self.numbers:
            times = each[number]._asdict()
            total = sum(seconds for name, seconds in times.items() if not name.startswith("guest"))
            found.append((total - sum(times.get(name, 0.0) for name in ("idle", "iowait", "steal")), total))
        return found

    def close(self) -> None:
        """Nothing is held."""


class _Clocks:
    """Clocks of busy CPUs from cpufreq.

    /proc/cpuinfo has them too, but on a virtual machine it shows the clock of the time stamp counter, which
    never changes, and on a real one it asks every CPU.
    """

    def __init__(self, root: Path, numbers: Sequence[int]) -> None:
        folder = root / "sys/devices/system/cpu"
        self._paths = [folder / f"cpu{number}/cpufreq/scaling_cur_freq" for number in numbers]
        self.works = bool(self._paths) and self._paths[0].is_file()

    def read(self, loads: Sequence[float]) -> float | None:
        """Mean clock of the busiest CPUs, weighted by their load, MHz; None if it is not told."""
        if not self.works or len(loads) != len(self._paths):
            return None
        busiest = sorted(zip(loads, self._paths, strict=True), key=lambda pair: -pair[0])[:CLOCKS]
        weight = cycles = 0.0
        for load, path in busiest:
            if load >= BUSY:
                try:
                    cycles += load * int(path.read_text("ascii")) / 1000
                except (OSError, ValueError):
                    self.works = False
                    return None
                weight += load
        return cycles / weight if weight else None


class _GroupTime:
    """CPU seconds of a control group: `cpu.stat` (v2) or `cpuacct.usage` (v1)."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self) -> float:
        text = os.pread(self._file, 4096, 0)
        if text[:1].isdigit():
            return int(text) / 1e9
        name, used_us = text.split(None, 2)[:2]
        if name != b"usage_usec":
            msg = "cpu.stat has no usage_usec"
            raise ValueError(msg)
        return int(used_us) / 1e6

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with contextlib.suppress(OSError):
                os.close(file)


def _open_group_time(path: Path) -> _GroupTime | None:
    """The counter of a group; None if it tells nothing: then the quota is charged with the machine's load."""
    try:
        usage = _GroupTime(path)
    except OSError:
        return None
    try:
        usage.read()
    except (OSError, ValueError):
        usage.close()
        return None
    return usage


def _mac_cpuinfo() -> str:
    """The name of a Mac's CPU, as /proc/cpuinfo would have it; "" if it is not told."""
    try:
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(command, capture_output=True, check=True, timeout=5).stdout.decode().strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return f"model name\t: {name}\n"


def _open_times(root: Path, cpus: Collection[int]) -> _ProcStat | _PsutilTimes:
    path = root / "proc/stat"
    try:
        return _ProcStat(path, cpus) if path.exists() or root != Path("/") else _PsutilTimes(cpus)
    except Exception as error:
        msg = f"The load of the CPU cannot be read ({error})."
        raise SensorError(msg) from error


def _allowed_cpus() -> Collection[int]:
    """CPUs that the main thread may run on; all that one could name where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(os.getpid())
    return range(1 << 16)


def _has_clock(cpu: Cpu) -> bool:
    """Whether a clock would say anything: one to compare it with is needed."""
    return cpu.base_mhz is not None and not cpu.is_virtual
