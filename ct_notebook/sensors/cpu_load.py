"""The load of our CPUs comes in; a modelled power and energy go out. For machines whose CPU has no meter."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ct_notebook.errors import SensorError
from ct_notebook.records import Device, Finding, Reading

from . import cgroup

SENSOR = "CPU model"

KEY = "cpu:model"

MEASURED = (0.17, 0.34, 0.44, 0.54, 0.64, 0.73, 0.79, 0.86, 0.90, 0.94, 1.00)
"""Package power at 0, 10, … 100 % load as a share of that at full load: RAPL of eleven cloud servers under
turbostress (measurements published under CC0), mean; their standard deviation is 0.03 to 0.10."""

CURVE = tuple((power - MEASURED[0]) / (MEASURED[-1] - MEASURED[0]) for power in MEASURED)
"""The same from 0 to 1."""

UNKNOWN_W = (0.8, 4.5)
"""Idle and full power of a hardware thread whose family is unknown, W: within what those servers showed,
0.5-1.2 and 3.0-6.4 W."""

INTEL_SERVER_W = (0.8, 5.0)
INTEL_SERVERS = frozenset({0x55, 0x6A, 0x6C, 0x8F, 0xCF})
"""Models of family 6: Skylake/Cascade Lake, Ice Lake (two), Sapphire Rapids, Emerald Rapids servers."""

EPYC_W = (0.5, 2.3)
"""EPYC of Zen 2 to 4: Cloud Carbon Footprint's coefficients from SPECpower, 0.46-0.74 and 1.6-2.2 W."""

LOW, HIGH = 0.5, 1.5
"""Models by load were off by up to half on machines with a meter."""

WINDOW_S = 0.1
"""The kernel counts CPU time in steps of 10 ms: a load is told over no less than this, except at first."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """What the CPU says of itself.

    Attributes
    ----------
    brand
        As the CPU says it; "" if it says nothing of use.
    idle_w, full_w
        Of one hardware thread (vCPU), W.
    """

    brand: str
    idle_w: float
    full_w: float


def share_of_span(load: float) -> float:
    """How far power has risen from idle (0) to full (1) at a load of 0 to 1. Concave, linear in between."""
    place = min(max(load, 0.0), 1.0) * (len(CURVE) - 1)
    left = min(int(place), len(CURVE) - 2)
    return CURVE[left] + (place - left) * (CURVE[left + 1] - CURVE[left])


def identify(cpuinfo: str) -> Cpu:
    """Name and power of a hardware thread from the text of /proc/cpuinfo.

    No brand is looked up in a list of TDPs: on virtual machines it says nothing of the share one has.
    """
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), " ".join(value.split()))
    brand = fields.get("model name", "")
    if not any(character.isalpha() for character in brand) or brand.lower() in {"unknown", "none", "n/a"}:
        brand = ""
    vendor, family, model = fields.get("vendor_id"), _int(fields.get("cpu family")), _int(fields.get("model"))
    idle_w, full_w = UNKNOWN_W
    if vendor == "GenuineIntel" and family == 6 and model in INTEL_SERVERS:
        idle_w, full_w = INTEL_SERVER_W
    # A desktop Ryzen shares the family, but draws twice as much per thread.
    if vendor == "AuthenticAMD" and "EPYC" in brand and (family == 25 or (family == 23 and model >= 0x30)):
        idle_w, full_w = EPYC_W
    return Cpu(brand, idle_w, full_w)


class CpuLoad:
    """CPU power by load: vCPUs x (idle + (full - idle) x curve(load)).

    The load between two readings is exact, however far apart they are. So the model sums its own energy and
    gives it as a counter; the power beside it is the average since the reading before.

    Parameters
    ----------
    cpu
        Name and power of a thread.
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
            self._usage = None if path is None else _GroupTime(path)
        self._watts = self._power_w(min(1.0, 1.0 / self._threads))  # this code runs: one CPU is busy
        self._has_load = False
        self._energy_j = 0.0  # up to the newest window
        self._shown_j = 0.0
        self._at_s = clock()
        try:
            self._before = self._busy()
        except (OSError, ValueError, IndexError) as error:
            self.close()
            msg = f"The load of the CPU cannot be read ({error})."
            raise SensorError(msg) from error
        threads = f"{self._threads:.3g} vCPU"
        self.devices = (
            Device(
                key=KEY,
                component="cpu",
                name=cpu.brand or f"CPU ({threads})",
                method="modelled",
                detail=f"model: {threads} x {cpu.idle_w:g}-{cpu.full_w:g} W by load",
                low=LOW,
                high=HIGH,
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
        if passed_s >= WINDOW_S or not self._has_load:
            load = self._load(busy, passed_s)
            if load is not None:
                self._watts = self._power_w(load)
                self._has_load = passed_s >= WINDOW_S
        energy_j = self._energy_j + self._watts * max(0.0, passed_s)
        if passed_s >= WINDOW_S:
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

    def _power_w(self, load: float) -> float:
        span_w = self._cpu.full_w - self._cpu.idle_w
        return self._threads * (self._cpu.idle_w + span_w * share_of_span(load))

    def _busy(self) -> tuple[float, float, float]:
        """Busy and total time of our CPUs, in a unit of their own; CPU seconds of our group or process."""
        busy, total = self._times.read()
        return busy, total, time.process_time() if self._usage is None else self._usage.read()

    def _load(self, now: tuple[float, float, float], passed_s: float) -> float | None:
        """Busy share of the CPUs that are charged, 0 to 1; None if no time was counted yet."""
        busy, total, own_s = (after - before for after, before in zip(now, self._before, strict=True))
        if self._usage is None and total > 0:
            return max(0.0, busy) / total * self._times.count / self._threads
        # Sandboxes such as gVisor show a /proc/stat that stands still: then our own process is what is known.
        if passed_s > 0 and (self._usage is not None or passed_s >= WINDOW_S):
            return own_s / (passed_s * self._threads)
        return None


def look(
    root: Path = Path("/"), cpus: Collection[int] | None = None, clock: Callable[[], float] = time.monotonic
) -> tuple[CpuLoad | None, Finding]:
    """Set the model up.

    Parameters
    ----------
    root, cpus, clock
        As for `CpuLoad`.

    Returns
    -------
    sensor, finding
        The sensor is None if this system tells no load.
    """
    try:
        text = (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        text = ""
    try:
        sensor = CpuLoad(identify(text), root, cpus, clock)
    except SensorError as error:
        return None, Finding(SENSOR, found=False, readable=False, why=str(error))
    device = sensor.devices[0]
    return sensor, Finding(SENSOR, found=True, readable=True, why=f"{device.name}, {device.detail}.")


class _ProcStat:
    """Busy and total time of some CPUs from /proc/stat, in the kernel's ticks."""

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
        self.count = len(ours)
        # The first line sums all CPUs, so that a large machine need not be added up again.
        self._wanted = {b"cpu"} if len(ours) == len(numbers) else {b"cpu%d" % number for number in ours}

    def read(self) -> tuple[float, float]:
        busy = total = 0
        found = 0
        for line in self._lines():
            name, *columns = line.split()
            if name in self._wanted:
                found += 1
                # user nice system idle iowait irq softirq steal; guest time is in user time already.
                ticks = [int(column) for column in columns[:8]]
                ticks += [0] * (8 - len(ticks))
                total += sum(ticks)
                busy += sum(ticks) - ticks[3] - ticks[4] - ticks[7]
        if not found:
            msg = "our CPUs are not in /proc/stat"
            raise ValueError(msg)
        return busy, total

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
        self._ours = [number for number in range(there) if number in cpus] or list(range(there))
        self.count = len(self._ours)

    def read(self) -> tuple[float, float]:
        each = self._psutil.cpu_times(percpu=True)
        busy = total = 0.0
        for number in self._ours:
            times = each[number]._asdict()
            spent = sum(seconds for name, seconds in times.items() if not name.startswith("guest"))
            total += spent
            busy += spent - sum(times.get(name, 0.0) for name in ("idle", "iowait", "steal"))
        return busy, total

    def close(self) -> None:
        """Nothing is held."""


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


def _int(text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError:
        return -1
