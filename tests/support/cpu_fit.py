"""Public measurements of package power against load come in; the parameters of the CPU model go out.

`tests/bench/test_cpu_model.py` fits with each CPU left out in turn; `.ci/make_cpu_tables.py` fits on all of
them and writes what ships. Measurements and their sources are in `tests/bench/data`.
"""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ct_notebook.sensors.cpu_model import (
    BASE_MHZ,
    USUAL_W_PER_CORE_GHZ,
    Cpu,
    Kind,
    full_share,
    package_w,
)

DATA = Path(__file__).parents[1] / "bench" / "data"

BELIEVED_IDLE = {
    "Intel server": 0.15,
    "AMD server": 0.22,
    "Intel desktop": 0.06,
    "AMD desktop": 0.18,
    "laptop": 0.08,
}
"""Idle power over TDP before any measurement is seen; counts as two CPUs."""

SHAPES = tuple(itertools.product((0.7, 0.8, 0.9), (0.0, 0.1, 0.2, 0.3), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)))
"""Values of `one_thread`, `awake` and `bend` that are tried."""

FEW = 2.8
"""Up to this load in percent a CPU is taken to be idle: some were measured with an editor open."""


@dataclass(frozen=True)
class Machine:
    """A machine that somebody measured, `tdp_w`, `cores` and `base_mhz` being of one socket."""

    name: str
    cpu: str
    set: str
    kind: str
    tdp_w: float
    sockets: int
    cores: int
    threads: int
    base_mhz: float
    fitted: bool
    source: str
    points: tuple[Point, ...]

    @property
    def rating_w(self) -> float:
        """TDP of all sockets."""
        return self.tdp_w * self.sockets

    @property
    def full_w(self) -> float:
        """Measured power with all threads busy, the mean where there are several."""
        top = [point.power_w for point in self.points if statistics.mean(point.loads) >= 0.98]
        return statistics.mean(top or [self.points[-1].power_w])

    @property
    def idle_w(self) -> float | None:
        """Measured power with nothing to do; None if that was not measured."""
        return next((p.power_w for p in self.points if statistics.mean(p.loads) <= FEW / 100), None)


@dataclass(frozen=True)
class Point:
    """Package power of all sockets at the busy shares of all threads."""

    how: str
    loads: tuple[float, ...]
    mhz: float | None
    power_w: float


@cache
def machines() -> tuple[Machine, ...]:
    """All machines with their measurements."""
    points: dict[str, list[dict[str, str]]] = {}
    with (DATA / "cpu_power.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            points.setdefault(row["machine"], []).append(row)
    found = []
    with (DATA / "cpu_machines.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            threads = int(row["threads"])
            found.append(
                Machine(
                    name=row["machine"],
                    cpu=row["cpu"],
                    set=row["set"],
                    kind=row["kind"],
                    tdp_w=float(row["tdp_w"]),
                    sockets=int(row["sockets"]),
                    cores=int(row["cores"]),
                    threads=threads,
                    # AMD does not tell its base clock, so the model does not get to know it.
                    base_mhz=float(row["base_mhz"]) if row["vendor"] == "Intel" else 0.0,
                    fitted=row["fitted"] == "yes",
                    source=row["source"],
                    points=tuple(_point(each, threads) for each in points[row["machine"]]),
                )
            )
    return tuple(found)


def _point(row: dict[str, str], threads: int) -> Point:
    at = float(row["at"])
    if row["how"] == "all":
        loads = (at / 100,) * threads
    else:
        loads = (1.0,) * round(at) + (0.0,) * (threads - round(at))
    return Point(row["how"], loads, float(row["mhz"]) if row["mhz"] else None, float(row["power_w"]))


def fit(known: Sequence[Machine]) -> dict[str, Kind]:
    """The kinds, from the machines that may be looked at. `low`, `high` and `source` are left open."""
    used = [machine for machine in known if machine.fitted]
    full, crowding = _line(
        [math.log(_density(machine) / USUAL_W_PER_CORE_GHZ) for machine in used],
        [math.log(machine.full_w / machine.rating_w) for machine in used],
    )
    kinds = {}
    for kind, believed in BELIEVED_IDLE.items():
        ours = [machine for machine in used if machine.kind == kind]
        idle = [m.idle_w / m.rating_w for m in ours if m.idle_w is not None]
        begun = Kind(
            kind=kind,
            idle_share=(sum(idle) + 2 * believed) / (len(idle) + 2),
            full_share=math.exp(full),
            crowding=crowding,
            one_thread=0.0,
            awake=0.0,
            bend=0.0,
            low=0.0,
            high=math.inf,
            source="",
        )
        # The shape is that of servers, desktops or laptops: too few CPUs for a shape by vendor too.
        sort = kind.rpartition(" ")[2]
        alike = [m for m in used if m.kind.rpartition(" ")[2] == sort and len(m.points) > 2]
        shape = _shape(alike or [m for m in used if len(m.points) > 2])
        kinds[kind] = replace(begun, one_thread=shape[0], awake=shape[1], bend=shape[2])
    return kinds


def _shape(known: Sequence[Machine]) -> tuple[float, float, float]:
    """The shape that is least off on these machines."""
    return min(SHAPES, key=lambda each: statistics.mean(_off_shape(machine, each) for machine in known))


def cpu_of(machine: Machine, kind: Kind) -> Cpu:
    """The machine as the model sees it."""
    base_mhz = machine.base_mhz or None
    share = full_share(kind, machine.cpu, machine.tdp_w, machine.cores, base_mhz)
    per_thread_w = machine.rating_w / machine.threads
    idle = min(kind.idle_share, share / 2)
    return _cpu(machine, kind, per_thread_w * idle, per_thread_w * share)


def _cpu(machine: Machine, kind: Kind, idle_w: float, full_w: float) -> Cpu:
    return Cpu(
        brand=machine.cpu,
        vendor="",
        family=-1,
        model=-1,
        threads=machine.threads,
        cores=machine.cores * machine.sockets,
        sockets=machine.sockets,
        base_mhz=machine.base_mhz or None,
        tdp_w=machine.tdp_w,
        given=False,
        idle_w=idle_w,
        full_w=full_w,
        is_virtual=False,
        kind=kind,
        source="",
    )


def ratios(machine: Machine, kind: Kind) -> list[float]:
    """Measured over modelled power of each point."""
    cpu = cpu_of(machine, kind)
    return [point.power_w / package_w(cpu, point.loads, mhz=point.mhz) for point in machine.points]


def without(machine: Machine) -> list[Machine]:
    """All machines but those with this CPU."""
    return [other for other in machines() if other.cpu != machine.cpu]


@cache
def _off_shape(machine: Machine, shape: tuple[float, float, float]) -> float:
    """Mean error over full power if idle and full power were known: what the shape alone is off."""
    one_thread, awake, bend = shape
    kind = Kind(machine.kind, 0, 0, 0, one_thread, awake, bend, 0, 0, "")
    idle_w = machine.idle_w
    if idle_w is None:
        idle_w = min(BELIEVED_IDLE[machine.kind] * machine.rating_w, machine.full_w / 2)
    cpu = _cpu(machine, kind, idle_w / machine.threads, machine.full_w / machine.threads)
    return (
        statistics.mean(abs(package_w(cpu, p.loads, mhz=p.mhz) - p.power_w) for p in machine.points)
        / machine.full_w
    )


def _density(machine: Machine) -> float:
    base_mhz = machine.base_mhz or BASE_MHZ[machine.kind.rpartition(" ")[2]]
    return machine.tdp_w / (machine.cores * base_mhz / 1000)


def _line(xs: Iterable[float], ys: Iterable[float]) -> tuple[float, float]:
    """Intercept and slope of the least squares line."""
    slope, intercept = statistics.linear_regression(list(xs), list(ys))
    return intercept, slope
