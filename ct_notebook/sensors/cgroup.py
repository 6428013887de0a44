"""The control groups of this process come in; how much CPU and memory it may use goes out.

Linux, versions 1 and 2 and both at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def cpu_limit(root: Path = Path("/")) -> float | None:
    """CPUs' worth of time that this process may use, the tightest of its group and all above it.

    Parameters
    ----------
    root
        Where `proc` and `sys` are.

    Returns
    -------
    cpus
        Such as 1.5; None if there is no quota.
    """
    limits = []
    for folder in _folders(root, ""):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        limits.append(_ratio(quota, period))
    limits += [
        _ratio(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))
        for folder in _folders(root, "cpu")
    ]
    return min((limit for limit in limits if limit is not None), default=None)


def cpu_time_file(root: Path = Path("/")) -> Path | None:
    """The file that counts the CPU time of this process's group.

    Returns
    -------
    path
        `cpu.stat` (v2, the line `usage_usec`) or `cpuacct.usage` (v1, nanoseconds) of the nearest group that
        has it, never that of the whole machine's root group; None if there is none.
    """
    for controller, name in (("", "cpu.stat"), ("cpuacct", "cpuacct.usage")):
        for folder in _folders(root, controller):
            # A v2 root group has a cpu.stat, but no cpu.max: it stands for the whole machine.
            if (folder / name).is_file() and (controller or (folder / "cpu.max").exists()):
                return folder / name
    return None


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Memory that this process may use, the tightest of its group and all above it; None if unlimited."""
    limits = [
        _bytes(_text(folder / name))
        for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes"))
        for folder in _folders(root, controller)
    ]
    return min((limit for limit in limits if limit > 0), default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The group's folder and those above it, up to where the hierarchy is mounted.

    In a container the path in /proc/self/cgroup may be the host's and absent here; the limits then stand
    higher up, at the mount.
    """
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(","):
            continue
        names = (controllers, controller) if controller else ("", "unified")
        parts = [part for part in path.split("/") if part not in {"", "..", "."}]
        for place in dict.fromkeys(mount / name for name in names):
            if place.is_dir():
                for depth in range(len(parts), -1, -1):
                    yield place.joinpath(*parts[:depth])


def _ratio(quota: str, period: str) -> float | None:
    """Quota over period; None for "max", -1, or what is no number."""
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def _bytes(text: str) -> int:
    """So many bytes; 0 for "max", or what is no number."""
    try:
        return int(text)
    except ValueError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except (OSError, ValueError):  # a path that garbage names cannot even be asked for
        return ""
