"""A machine that a test describes comes in; a folder with its `/sys` and `/proc` goes out. Real files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INTEL_RANGE_UJ = 262_143_328_850


@dataclass(frozen=True)
class RaplZone:
    """A zone: its id (`intel-rapl:0`, `intel-rapl:0:2`), what it calls itself, its counter and range."""

    id: str
    name: str
    energy_uj: int = 0
    range_uj: int | None = INTEL_RANGE_UJ


TWO_DOMAINS = (RaplZone("intel-rapl:0", "package-0"), RaplZone("intel-rapl:0:2", "dram"))
"""A server with one socket, as far as it counts."""


class Rapl:
    """The powercap tree of a machine, laid out as Linux does: a device tree, and a class of links into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.devices = root / "sys/devices/virtual/powercap"
        self.base = root / "sys/class/powercap"
        self._paths: dict[str, Path] = {}

    def add(self, zone: RaplZone) -> None:
        """Add a zone. One within another must come after it."""
        kind, _, number = zone.id.partition(":")
        path = self.devices / kind
        parts = number.split(":")
        for depth in range(len(parts)):
            path /= ":".join([kind, *parts[: depth + 1]])
        path.mkdir(parents=True)
        (path / "name").write_text(f"{zone.name}\n")
        (path / "energy_uj").write_text(f"{zone.energy_uj}\n")
        if zone.range_uj is not None:
            (path / "max_energy_range_uj").write_text(f"{zone.range_uj}\n")
        self.base.mkdir(parents=True, exist_ok=True)
        for target in (self.devices / kind, path):
            link = self.base / target.name
            if not link.is_symlink():
                link.symlink_to(target)
        self._paths[zone.id] = path

    def file(self, zone_id: str) -> Path:
        """The counter of a zone."""
        return self._paths[zone_id] / "energy_uj"

    def set(self, zone_id: str, energy_uj: float | str) -> None:
        """Set a counter, microjoules; or any text, as garbage."""
        text = energy_uj if isinstance(energy_uj, str) else f"{energy_uj:.0f}"
        self.file(zone_id).write_text(f"{text}\n")


def make_rapl(root: Path, zones: Sequence[RaplZone] = TWO_DOMAINS) -> Rapl:
    """Lay a powercap tree out under `root`."""
    rapl = Rapl(root)
    for zone in zones:
        rapl.add(zone)
    return rapl


class Proc:
    """`/proc` of a machine with some CPUs, all idle at first; and its control group."""

    def __init__(self, root: Path, cpus: int = 4, cpuinfo: str = "", memory_kb: int = 16 * 2**20) -> None:
        self.root = root
        self._ticks = [[0, 0] for _ in range(cpus)]
        (root / "proc/self").mkdir(parents=True)
        (root / "sys/fs/cgroup").mkdir(parents=True, exist_ok=True)
        (root / "proc/cpuinfo").write_text(cpuinfo)
        (root / "proc/meminfo").write_text(f"MemTotal: {memory_kb} kB\nMemFree: 5 kB\n")
        self._write()

    def run(self, seconds: float, loads: Sequence[float]) -> None:
        """Let time pass with a load from 0 to 1 on each CPU."""
        for ticks, load in zip(self._ticks, loads, strict=True):
            ticks[0] += round(seconds * 100 * load)
            ticks[1] += round(seconds * 100 * (1 - load))
        self._write()

    def group(self, line: str, files: dict[str, str]) -> None:
        """Put this process into a control group: its line in /proc/self/cgroup, and files by their path."""
        path = self.root / "proc/self/cgroup"
        path.write_text((path.read_text() if path.exists() else "") + f"{line}\n")
        for name, text in files.items():
            file = self.root / "sys/fs/cgroup" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")

    def _write(self) -> None:
        def line(name: str, busy: int, idle: int) -> str:
            return f"{name} {busy} 0 0 {idle} 0 0 0 0 0 0\n"

        text = line("cpu ", sum(busy for busy, _ in self._ticks), sum(idle for _, idle in self._ticks))
        text += "".join(line(f"cpu{number}", *ticks) for number, ticks in enumerate(self._ticks))
        (self.root / "proc/stat").write_text(text + "intr 1 2 3\nctxt 5\n")
