"""A process and its children come in; CPU time and memory they use, beside the machine's, go out.

Not a meter: with it, the part of a machine's energy that one training used can be estimated, and other tools'
methods that go by the process can be followed.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
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


def read_usage(root: Path = Path("/")) -> Usage | None:
    """What the process tree and the machine use now; None where the system does not tell.

    From /proc, since it is read beside a training: this takes 0.25 ms, psutil 2.7 ms.
    By psutil where there is no /proc, or one that lists no children.

    Parameters
    ----------
    root
        Where `proc` lies.
    """
    try:
        return _from_proc(root / "proc")
    except (OSError, ValueError, IndexError):
        return None if root != Path("/") else _from_psutil()


def _from_proc(proc: Path) -> Usage:
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    ticks = pages = 0
    pids = set()
    for pid, fields in _tree(proc, os.getpid()):
        pids.add(pid)
        # Numbers of proc(5), less three: utime, stime, cutime, cstime are 14 to 17, rss is 24.
        ticks += sum(map(int, fields[11:15]))
        pages += int(fields[21])
    words = (proc / "stat").read_text("ascii").split("\n", 1)[0].split()
    spent = [int(word) for word in words[1:9]]  # user nice system idle iowait irq softirq steal
    busy = sum(spent) - spent[3] - spent[4] - (spent[7] if len(spent) > 7 else 0)
    total_gb, available_gb = _memory_gb(proc)
    return Usage(
        tree_cpu_s=ticks / ticks_per_s,
        busy_s=busy / ticks_per_s,
        tree_memory_gb=pages * os.sysconf("SC_PAGE_SIZE") / GIB,
        memory_used_gb=total_gb - available_gb,
        pids=frozenset(pids),
    )


def _tree(proc: Path, pid: int) -> Iterator[tuple[int, list[str]]]:
    """A process and all below it, each with the fields that follow its name in `stat`."""
    waiting = [pid]
    while waiting:
        here = waiting.pop()
        folder = proc / str(here)
        try:
            # The name, in brackets, may hold anything.
            fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            for task in os.listdir(folder / "task"):  # noqa: PTH208 - names, not paths
                children = (folder / "task" / task / "children").read_text("ascii")
                waiting += map(int, children.split())
        except OSError:
            if here == pid:
                raise
            continue  # it has ended meanwhile, and is in its parent's figures the next time
        yield here, fields


def _memory_gb(proc: Path) -> tuple[float, float]:
    """Memory in all, and what is available, GB."""
    found = {}
    for line in (proc / "meminfo").read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name in {"MemTotal", "MemAvailable"}:
            found[name] = int(value.split()[0]) * 1024 / GIB
    return found.get("MemTotal", 0.0), found.get("MemAvailable", 0.0)


def _from_psutil() -> Usage | None:
    import psutil  # noqa: PLC0415 - only where /proc does not tell

    cpu_s = memory = 0.0
    try:
        tree: list[Any] = [psutil.Process(), *psutil.Process().children(recursive=True)]
        times, memory_now = psutil.cpu_times(), psutil.virtual_memory()
    except (psutil.Error, OSError):
        return None
    for process in tree:
        # One that has ended meanwhile is in its parent's figures the next time.
        with contextlib.suppress(psutil.Error, OSError), process.oneshot():
            used = process.cpu_times()
            cpu_s += used.user + used.system
            cpu_s += getattr(used, "children_user", 0.0) + getattr(used, "children_system", 0.0)
            memory += process.memory_info().rss
    idle_s = sum(getattr(times, name, 0.0) for name in ("idle", "iowait", "steal"))
    all_s = sum(seconds for name, seconds in times._asdict().items() if not name.startswith("guest"))
    return Usage(
        tree_cpu_s=cpu_s,
        busy_s=max(0.0, all_s - idle_s),
        tree_memory_gb=memory / GIB,
        memory_used_gb=(memory_now.total - memory_now.available) / GIB,
        pids=frozenset(process.pid for process in tree),
    )


def look_at_machine(root: Path = Path("/")) -> Machine:
    """What the machine has and what of it this process may use.

    Parameters
    ----------
    root
        Where `proc` and `sys` lie.
    """
    cpus = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus
    quota = cgroup.cpu_limit(root)
    try:
        memory_gb = _memory_gb(root / "proc")[0]
    except (OSError, ValueError, IndexError):
        import psutil  # noqa: PLC0415 - only where /proc does not tell

        memory_gb = psutil.virtual_memory().total / GIB
    limit = cgroup.memory_limit_bytes(root)
    text = _cpuinfo(root)
    cpu = identify(text)
    packages = {line for line in text.splitlines() if line.startswith("physical id")}
    return Machine(
        cpus=cpus,
        allotted_cpus=min(float(allowed), quota) if quota is not None else float(allowed),
        sockets=len(packages) or None,
        memory_gb=memory_gb,
        allotted_memory_gb=memory_gb if limit is None else min(memory_gb, limit / GIB),
        is_arm=platform.machine().lower().startswith(("arm", "aarch")),
        tdp_w=None if cpu.usual else cpu.tdp_w,
    )


def _cpuinfo(root: Path) -> str:
    try:
        return (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""
