"""A run comes in; the facts that other methods need, and the form of what they answer, go out. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ct_notebook.records import COMPONENTS, Method, Run
from ct_notebook.units import grams, kwh

from .figures import number, watts
from .intensities import Grid

METERED: frozenset[Method] = frozenset({"counter", "measured"})
"""Methods that stand for a meter which another tool could have read as well."""

AS_READ: frozenset[Method] = METERED | {"user"}
"""The same and simulated hardware: what a tool would have read, had the hardware been there."""

SAME = 0.005
"""Figures closer than this share are not told as a difference."""


@dataclass(frozen=True, slots=True)
class Used:
    """What one device used in the run, and how that is known.

    Attributes
    ----------
    component, name, method
        As in `records.Device`.
    energy_j
        Over the whole run, pauses left out.
    is_dram
        True for a RAPL zone of the memory: it belongs to `cpu`, but some tools leave it out.
    """

    component: str
    name: str
    method: Method
    energy_j: float
    is_dram: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the methods need to know of a run. What is not known is None.

    Attributes
    ----------
    duration_s
        Pauses left out.
    used
        The devices that were read.
    gpu_names
        Of every GPU of the run, read or not.
    cpu_threads, cpu_sockets
        Hardware threads (vCPUs) and packages.
    cpu_tdp_w
        Thermal design power of one package, W.
    cpu_load
        Mean over all threads and the whole run, 0 to 1.
    process_cpu_s
        CPU seconds of the process and its children during the run.
    memory_gb, memory_used_gb, process_memory_gb
        Of the machine; of it in use by anybody; resident in the process. GiB.
    gpu_limit_w
        Sum of the power limits of the GPUs, W.
    gpu_utilisation
        Mean over GPUs and time, 0 to 1.
    process_gpu_share
        Share of the GPUs' work that is the process's, 0 to 1.
    is_arm
        The CPU is of the ARM family.
    zone
        ISO 3166 alpha-2 code or grid zone.
    g_per_kwh, pue
        Those of the run.
    """

    duration_s: float
    used: tuple[Used, ...] = ()
    gpu_names: tuple[str, ...] = ()
    cpu_threads: float | None = None
    cpu_sockets: float | None = None
    cpu_tdp_w: float | None = None
    cpu_load: float | None = None
    process_cpu_s: float | None = None
    memory_gb: float | None = None
    memory_used_gb: float | None = None
    process_memory_gb: float | None = None
    gpu_limit_w: float | None = None
    gpu_utilisation: float | None = None
    process_gpu_share: float | None = None
    is_arm: bool = False
    zone: str | None = None
    g_per_kwh: float | None = None
    pue: float = 1.0

    @property
    def gpu_count(self) -> int:
        """How many GPUs the run had."""
        return len(self.gpu_names)

    @property
    def sockets(self) -> float:
        """Packages; 1 if nobody said."""
        return self.cpu_sockets or 1.0

    @property
    def by_component_j(self) -> dict[str, float]:
        """Joules by component as we recorded them."""
        total: dict[str, float] = {}
        for device in self.used:
            total[device.component] = total.get(device.component, 0.0) + device.energy_j
        return total

    def read_j(
        self, component: str, methods: frozenset[Method] = METERED, *, dram: bool = True
    ) -> tuple[float, ...]:
        """Joules of each device of a component that has a meter; nothing if none has.

        Parameters
        ----------
        component
            `gpu` or `cpu`.
        methods
            What counts as a meter.
        dram
            Whether RAPL zones of the memory are wanted.
        """
        return tuple(
            device.energy_j
            for device in self.used
            if device.component == component and device.method in methods and (dram or not device.is_dram)
        )

    def power_w(self, component: str) -> float | None:
        """Our mean power of a component, W; None if it was not read."""
        energy_j = self.by_component_j.get(component)
        return None if energy_j is None or self.duration_s <= 0 else energy_j / self.duration_s


@dataclass(frozen=True, slots=True)
class Constant:
    """A figure that a tool brings along."""

    name: str
    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool would have said.

    Attributes
    ----------
    tool, version
        Whose method it is, and of which release.
    method
        The calculation in words, with the figures of this run.
    energy_j
        Joules as the tool would report them, its PUE included; None if it would have none, or if it needs
        what this run does not hold.
    emissions_g
        Grams of CO2eq; None if there is no energy or no carbon intensity.
    by_component_j
        Joules by component, before PUE.
    g_per_kwh, grid
        The tool's own carbon intensity, and where it has it from.
    pue
        The tool's own.
    counts, leaves_out
        What it is about.
    why
        Why it differs from ours, in one sentence; or why it has no figure.
    constants
        With their sources.
    """

    tool: str
    version: str
    method: str
    energy_j: float | None
    emissions_g: float | None
    by_component_j: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    g_per_kwh: float | None = None
    grid: str = ""
    pue: float = 1.0
    counts: str = ""
    leaves_out: str = ""
    why: str = ""
    constants: tuple[Constant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What stays the same whatever the run: a tool's name, its scope and its constants."""

    name: str
    version: str
    counts: str
    leaves_out: str
    constants: tuple[Constant, ...]

    def answers(
        self,
        facts: Facts,
        by_component_j: Mapping[str, float],
        *,
        method: str,
        grid: Grid,
        pue: float = 1.0,
        remark: str = "",
    ) -> Result:
        """The result of joules by component.

        Parameters
        ----------
        facts
            What the result is compared with.
        by_component_j
            Before PUE.
        method
            The calculation in words.
        grid
            The tool's own carbon intensity.
        pue
            The tool's own.
        remark
            What to know of the method beside the figures.
        """
        energy_j = sum(by_component_j.values()) * pue
        told = differences(facts, by_component_j, grid.g_per_kwh, pue)
        return Result(
            tool=self.name,
            version=self.version,
            method=method,
            energy_j=energy_j,
            emissions_g=None if grid.g_per_kwh is None else grams(energy_j, grid.g_per_kwh),
            by_component_j=MappingProxyType(dict(by_component_j)),
            g_per_kwh=grid.g_per_kwh,
            grid=grid.text,
            pue=pue,
            counts=self.counts,
            leaves_out=self.leaves_out,
            why=f"{remark}: {told}." if remark else f"{told[:1].upper()}{told[1:]}.",
            constants=self.constants,
        )

    def cannot(
        self,
        why: str,
        *,
        method: str,
        grid: Grid,
        pue: float = 1.0,
        by_component_j: Mapping[str, float] | None = None,
    ) -> Result:
        """No figure, and the reason. `by_component_j` holds what is known all the same."""
        return Result(
            tool=self.name,
            version=self.version,
            method=method,
            energy_j=None,
            emissions_g=None,
            by_component_j=MappingProxyType(dict(by_component_j or {})),
            g_per_kwh=grid.g_per_kwh,
            grid=grid.text,
            pue=pue,
            counts=self.counts,
            leaves_out=self.leaves_out,
            why=why,
            constants=self.constants,
        )


ToolMethod = Callable[[Facts], Result]
"""Facts in, a result out, nothing else touched."""


def not_recorded(*what: str) -> str:
    """The sentence that says what a method would need."""
    return f"No figure: it needs {' and '.join(what)}, which this run does not hold."


def as_read(facts: Facts, component: str) -> str:
    """What to call readings of a component: "as read", or "as simulated" if none of it was there."""
    return "as read" if facts.read_j(component) else "as simulated"


def facts_of(run: Run) -> Facts:
    """What the methods need to know of a run.

    Parameters
    ----------
    run
        Live, closed, or read from a log. What `run.machine` says of the surroundings is taken where it is a
        possible figure, and left unknown where it is missing.
    """
    machine = run.machine
    by_device_j = run.energy_by_device_j
    return Facts(
        duration_s=run.duration_s,
        used=tuple(
            Used(
                device.component,
                device.name,
                device.method,
                by_device_j[device.key],
                is_dram=device.key.startswith("cpu:dram") or device.name.startswith("dram:"),
            )
            for device in run.devices
            if device.key in by_device_j
        ),
        gpu_names=tuple(device.name for device in run.devices if device.component == "gpu"),
        cpu_threads=_above_0(machine, "cpu_threads"),
        cpu_sockets=_above_0(machine, "cpu_sockets"),
        cpu_tdp_w=_above_0(machine, "cpu_tdp_w"),
        cpu_load=_share(machine, "cpu_load"),
        process_cpu_s=_figure(machine, "process_cpu_s"),
        memory_gb=_above_0(machine, "memory_gb"),
        memory_used_gb=_above_0(machine, "memory_used_gb"),
        process_memory_gb=_above_0(machine, "process_memory_gb"),
        gpu_limit_w=_above_0(machine, "gpu_limit_w"),
        gpu_utilisation=_share(machine, "gpu_utilisation"),
        process_gpu_share=_share(machine, "process_gpu_share"),
        is_arm=bool(machine.get("cpu_is_arm")),
        zone=run.intensity.zone,
        g_per_kwh=charged_g_per_kwh(run),
        pue=run.pue.value,
    )


def charged_g_per_kwh(run: Run) -> float:
    """What each kilowatt-hour of a run was charged on average; its intensity if nothing was measured."""
    energy_j, emissions_g = run.energy_j, run.emissions_g
    if energy_j is None or emissions_g is None or energy_j.value <= 0:
        return run.intensity.g_per_kwh
    return emissions_g.value / (kwh(energy_j.value) * run.pue.value)


def differences(
    facts: Facts, by_component_j: Mapping[str, float], g_per_kwh: float | None, pue: float
) -> str:
    """The figures in which a method differs from ours, as one sentence without its end."""
    parts = []
    for component in COMPONENTS:
        name = component.upper()
        ours_w = facts.power_w(component)
        energy_j = by_component_j.get(component)
        theirs_w = None if energy_j is None or facts.duration_s <= 0 else energy_j / facts.duration_s
        if theirs_w is None and ours_w is not None:
            parts.append(f"no {name} (ours {watts(ours_w)})")
        elif theirs_w is not None and ours_w is None:
            parts.append(f"{name} {watts(theirs_w)}, of which we have no figure")
        elif theirs_w is not None and ours_w is not None and _differ(theirs_w, ours_w):
            parts.append(f"{name} {watts(theirs_w)} instead of our {watts(ours_w)}")
    if _differ(pue, facts.pue):
        parts.append(f"PUE {pue:g} instead of our {facts.pue:g}")
    if g_per_kwh is None:
        parts.append("no carbon intensity for this place")
    elif facts.g_per_kwh is not None and _differ(g_per_kwh, facts.g_per_kwh):
        parts.append(f"{number(g_per_kwh)} g/kWh instead of our {number(facts.g_per_kwh)}")
    return ", ".join(parts) or "the same power, PUE and carbon intensity as ours"


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > SAME * max(abs(one), abs(other))


def _figure(machine: Mapping[str, float], key: str) -> float | None:
    try:
        value = float(machine[key])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _above_0(machine: Mapping[str, float], key: str) -> float | None:
    return _figure(machine, key) or None


def _share(machine: Mapping[str, float], key: str) -> float | None:
    value = _figure(machine, key)
    # Loads told by clocks that differ a little are a little above 1.
    return None if value is None or value > 1.05 else min(1.0, value)
