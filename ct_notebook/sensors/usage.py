"""A process and its children come in; CPU time and memory they use, beside the machine's, go out.

Not a meter: with it, the part of a machine's energy that one training used can be estimated, and other tools'
methods that go by the process can be followed.
"""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cgroup
from .cpu_model import identify

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Usage:
    """Cumulative figures at an instant.

    Attributes
    ----------
    tree_cpu_s
        CPU seconds of this process, its children and theirs; those that ended and were waited for included.
    busy_s
        CPU seconds for which the machine's CPUs were busy since it was started, with anything.
    tree_memory_gb
        Resident memory of the tree now, GB of 2^30 bytes; shared pages are counted in each process.
    memory_used_gb
        Of the machine's memory, what is not available to a new process now, in the same unit.
    pids
        Numbers of the processes of the tree.
    """

    tree_cpu_s: float
    busy_s: float
    tree_memory_gb: float
    memory_used_gb: float
    pids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is, and what this process may use of it.

    Attributes
    ----------
    cpus, allotted_cpus
        Hardware threads of the machine, and those that this process may use: affinity and quota.
    sockets
        CPU packages, as far as /proc/cpuinfo tells; None if it does not.
    memory_gb, allotted_memory_gb
        Memory of the machine and what this process may use of it, GB of 2^30 bytes.
    is_arm
        Whether its CPU is of the ARM family.
    tdp_w
        Of one socket, W; None where it is not known, as on virtual machines.
    """

    cpus: int
    allotted_cpus: float
    sockets: int | None
    memory_gb: float
    allotted_memory_gb: float
    is_arm: bool
    tdp_w: float | None


class UsageReader:
    """Reads the usage of the process that made it. Takes some milliseconds on a machine of many processes."""

    def __init__(self) -> None:
        import psutil  # noqa: PLC0415 - only while a run is measured

        self._psutil: Any = psutil
        self._process = psutil.Process()

    def read(self) -> Usage | None:
        """The figures now; None where the system does not tell them."""
        cpu_s = memory = 0.0
        try:
            tree = [self._process, *self._process.children(recursive=True)]
            times = self._psutil.cpu_times()
            memory_now = self._psutil.virtual_memory()
        except (self._psutil.Error, OSError):
            return None
        for process in tree:
            # One that has ended meanwhile is in its parent's figures the next time.
            with contextlib.suppress(self._psutil.Error, OSError), process.oneshot():
                used = process.cpu_times()
                cpu_s += used.user + used.system
                cpu_s += getattr(used, "children_user", 0.0) + getattr(used, "children_system", 0.0)
                memory += process.memory_info().rss
        idle_s = sum(getattr(times, name, 0.0) for name in ("idle", "iowait", "steal"))
        all_s = sum(seconds for name, seconds in times._asdict().items() if not name.startswith("guest"))
        used_gb = (memory_now.total - memory_now.available) / GIB
        pids = frozenset(process.pid for process in tree)
        return Usage(cpu_s, max(0.0, all_s - idle_s), memory / GIB, used_gb, pids)


def look_at_machine(root: Path = Path("/")) -> Machine:
    """What the machine has and what of it this process may use.

    Parameters
    ----------
    root
        Where `proc` and `sys` lie.
    """
    import psutil  # noqa: PLC0415 - as above

    cpus = psutil.cpu_count(logical=True) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus
    quota = cgroup.cpu_limit(root)
    memory_gb = psutil.virtual_memory().total / GIB
    limit = cgroup.memory_limit_bytes(root)
    text = _cpuinfo(root)
    packages = {line for line in text.splitlines() if line.startswith("physical id")}
    return Machine(
        cpus=cpus,
        allotted_cpus=min(float(allowed), quota) if quota is not None else float(allowed),
        sockets=len(packages) or None,
        memory_gb=memory_gb,
        allotted_memory_gb=memory_gb if limit is None else min(memory_gb, limit / GIB),
        is_arm=platform.machine().lower().startswith(("arm", "aarch")),
        tdp_w=identify(text).tdp_w,
    )


def _cpuinfo(root: Path) -> str:
    try:
        return (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""
