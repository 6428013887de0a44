"""The powercap tree of Linux comes in; the energy counters of CPU packages and memory go out.

Intel has both; AMD has packages only, under the same names.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ct_notebook.records import Device, Finding, Reading

SENSOR = "RAPL (CPU)"

REMEDY = "sudo chmod -R a+r /sys/class/powercap/intel-rapl*"
"""Since CVE-2020-8694 only root may read the counters. Lost at the next boot."""

REMEDY_DOCKER = (
    "docker run -v /sys/devices/virtual/powercap:/powercap:ro -e CT_NOTEBOOK_RAPL_DIR=/powercap IMAGE"
)

MAX_PACKAGE_W = 1000.0
"""No socket on sale draws more: above it, a jump of the counter is a reset. (The largest are sold for
500 W.)"""

MAX_DRAM_W = 500.0
"""The same for the memory of one socket."""

PACKAGE_BAND = (0.95, 1.05)
DRAM_BAND = (0.8, 1.2)
"""An allowance for the counters' own error. Assumed, not measured: vendors state none."""

_ZONE = re.compile(r"(?P<kind>intel-rapl(?:-mmio)?):(?P<number>\d+(?::\d+)*)")
_DEEPEST = 4
"""Levels of folders: the class or a bind mount, its control type, a package, a zone within."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone of the tree.

    Attributes
    ----------
    path
        Its folder.
    name
        What it calls itself: `package-0`, `dram`, `core`, `psys`.
    package
        The `name` of the zone above it; "" for one at the top.
    """

    path: Path
    name: str
    package: str = ""

    @property
    def key(self) -> str:
        """Unique within a machine: `cpu:package-0`, `cpu:dram-0`."""
        return f"cpu:{self.name}" if self.is_package else f"cpu:dram{self.place}"

    @property
    def shown(self) -> str:
        """As carbontracker names it: `cpu:0`, `dram:0`."""
        return f"{'cpu' if self.is_package else 'dram'}:{self.place.removeprefix('-') or '0'}"

    @property
    def is_package(self) -> bool:
        """Whether it is a CPU package, which contains its cores and uncore."""
        return self.name.startswith("package")

    @property
    def place(self) -> str:
        """`-0` of `package-0`, `-0-die-1` of `package-0-die-1`."""
        return (self.name if self.is_package else self.package).removeprefix("package")


@dataclass(frozen=True, slots=True)
class _Open:
    device: Device
    file: int
    range_j: float | None


class RaplSensor:
    """Counters of the zones that were opened.

    Parameters
    ----------
    zones
        Zones and open file descriptors of their counters; the sensor closes them.
    """

    def __init__(self, zones: list[tuple[Zone, int]]) -> None:
        self._open = []
        for zone, file in zones:
            range_j = _range_j(zone.path)
            low, high = PACKAGE_BAND if zone.is_package else DRAM_BAND
            device = Device(
                key=zone.key,
                component="cpu",
                name=zone.shown,
                method="counter",
                detail=f"RAPL energy counter {zone.name if zone.is_package else 'dram of ' + zone.package}",
                low=low,
                high=high,
                counter_range_j=range_j,
                max_power_w=MAX_PACKAGE_W if zone.is_package else MAX_DRAM_W,
            )
            self._open.append(_Open(device, file, range_j))
        self.devices = tuple(each.device for each in self._open)
        self.has_package = any(zone.is_package for zone, _ in zones)
        self.has_dram = any(not zone.is_package for zone, _ in zones)

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """One counter per zone, joules."""
        readings = []
        missing = {}
        for each in self._open:
            try:
                counter_j = int(os.pread(each.file, 32, 0)) / 1e6
            except (OSError, ValueError) as error:
                missing[each.device.key] = f"the counter cannot be read ({error})"
                continue
            if counter_j < 0 or (each.range_j is not None and counter_j > each.range_j):
                missing[each.device.key] = f"the counter shows {counter_j:g} J, which cannot be"
                continue
            readings.append(Reading(each.device.key, "cpu", "counter", counter_j=counter_j))
        return tuple(readings), missing

    def close(self) -> None:
        """Close the files. Idempotent."""
        done, self._open = self._open, []
        for each in done:
            with contextlib.suppress(OSError):
                os.close(each.file)


def find_zones(base: Path) -> list[Zone]:
    """Packages and memory of a powercap tree: what is to be summed, each once.

    `core` and `uncore` are parts of their package, `psys` contains it, so none of them counts.
    `intel-rapl-mmio` shows the same package a second time.

    Parameters
    ----------
    base
        `/sys/class/powercap`, or a bind mount of it or of `/sys/devices/virtual/powercap`.

    Returns
    -------
    zones
        Sorted by number, so that 10 comes after 2.
    """
    paths: dict[str, Path] = {}
    _collect(base, paths, 1)

    def order(zone_id: str) -> tuple[bool, list[int]]:
        kind, _, number = zone_id.partition(":")
        return kind != "intel-rapl", [int(part) for part in number.split(":")]

    names = {zone_id: _text(path / "name") for zone_id, path in paths.items()}
    zones: dict[str, Zone] = {}
    for zone_id in sorted(paths, key=order):
        above = zone_id.rpartition(":")[0]
        zone = Zone(paths[zone_id], names[zone_id], names.get(above, ""))
        if zone.is_package or zone.name == "dram":
            zones.setdefault(zone.key, zone)
    return list(zones.values())


def look(base: Path, *, in_container: bool = False) -> tuple[RaplSensor | None, Finding]:
    """Open the counters of a powercap tree.

    Packages are used if all of them can be read, and so is memory: half of a machine's sockets would
    otherwise be taken for all of it.

    Parameters
    ----------
    base
        The tree.
    in_container
        Whether this process runs in one, where the tree is hidden unless it is handed in.

    Returns
    -------
    sensor, finding
        The sensor is None if nothing can be read.
    """
    zones = find_zones(base)
    if not zones:
        return None, _nothing(base, in_container=in_container)
    opened: list[tuple[Zone, int]] = []
    refused: list[str] = []
    for kind in (True, False):
        files: list[tuple[Zone, int]] = []
        try:
            for zone in zones:
                if zone.is_package is kind:
                    files.append((zone, _open_counter(zone.path)))
        except (OSError, ValueError) as error:
            refused.append(f"{zone.shown}: {getattr(error, 'strerror', None) or error}")
            for _, file in files:
                os.close(file)
        else:
            opened += files
    if refused:
        finding = Finding(
            SENSOR,
            found=True,
            readable=False,
            why=f"The counters are there, but may not be read ({'; '.join(refused)}).",
            remedy=REMEDY,
        )
    else:
        shown = ", ".join(zone.shown for zone, _ in opened)
        finding = Finding(SENSOR, found=True, readable=True, why=f"Energy counters of {shown}.")
    return (RaplSensor(opened) if opened else None), finding


def _nothing(base: Path, *, in_container: bool) -> Finding:
    paths: dict[str, Path] = {}
    _collect(base, paths, 1)
    if paths:
        names = ", ".join(sorted({_text(path / "name") or "unnamed" for path in paths.values()}))
        why = f"{base} has no package zone, only {names}, which cannot stand for the CPU."
        return Finding(SENSOR, found=True, readable=False, why=why)
    why = f"No energy counters under {base}: usual in virtual machines and containers."
    return Finding(SENSOR, found=False, readable=False, why=why, remedy=REMEDY_DOCKER if in_container else "")


def _collect(folder: Path, paths: dict[str, Path], depth: int) -> None:
    """Zone id to folder, of all zones below; the class lists them flat, the device tree nested."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return
    for path in inside:
        if not path.name.startswith("intel-rapl"):
            continue
        if _ZONE.fullmatch(path.name):
            paths.setdefault(path.name, path)
        if depth < _DEEPEST:
            _collect(path, paths, depth + 1)


def _open_counter(path: Path) -> int:
    file = os.open(path / "energy_uj", os.O_RDONLY)
    try:
        int(os.pread(file, 32, 0))
    except BaseException:
        os.close(file)
        raise
    return file


def _range_j(path: Path) -> float | None:
    try:
        range_j = int(_text(path / "max_energy_range_uj")) / 1e6
    except ValueError:
        return None
    return range_j if range_j > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
