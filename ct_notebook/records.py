"""The shared vocabulary: frozen records that flow from sensors to logs, figures and reports.

Units stand in the names. What was not measured is None or absent, never 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from .units import J_PER_KWH, clock_text, grams

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from .compare import Comparison

Method = Literal["counter", "measured", "modelled", "constant", "user"]
"""How a figure came about: an energy counter, a power gauge, a model of load, a table, or the user's word."""

COMPONENTS = ("gpu", "cpu", "ram")
"""The components a device can belong to, in the order in which logs name them."""


@dataclass(frozen=True, slots=True)
class Device:
    """One thing that draws power, as found when the run began.

    Attributes
    ----------
    key
        Unique within a run, stable over its length: `gpu:GPU-5f3a…`, `cpu:package-0`, `ram`.
    component
        `gpu`, `cpu` or `ram`. RAPL `dram` belongs to `cpu`, as carbontracker has it.
    name
        What the hardware calls itself. Text from outside: never markup, never a path.
    method
        How its energy is obtained.
    detail
        The same in words, for people: "NVML energy counter", "model: 2 vCPU x 0.8-4.5 W by load".
    low, high
        The true power is expected within `low` to `high` times the shown one.
    counter_range_j
        Where the counter wraps to 0, joules; None if it does not.
    max_power_w
        More than this between two counter readings is a reset, not energy; None if unknown.
    idle_w
        What a model takes for its power without load, W; None where no model does.
    """

    key: str
    component: str
    name: str
    method: Method
    detail: str = ""
    low: float = 1.0
    high: float = 1.0
    counter_range_j: float | None = None
    max_power_w: float | None = None
    idle_w: float | None = None

    @property
    def how(self) -> str:
        """How its energy is obtained, in words: method and detail, neither said twice."""
        if not self.detail:
            return self.method
        said = self.detail.startswith(("model", self.method))
        return self.detail if said else f"{self.method}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One device at one instant: a power, a counter, or both."""

    device: str
    component: str
    method: Method
    watts: float | None = None
    counter_j: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One tick over all sensors.

    Attributes
    ----------
    at_s
        Monotonic clock, seconds, when the reading was taken.
    readings
        Those that succeeded.
    missing
        Device key to the reason, for those that did not. A failed sensor is missing, never 0 W.
    """

    at_s: float
    readings: tuple[Reading, ...]
    missing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Finding:
    """What `doctor` says of one sensor: found or not, readable or not, why, and the command that mends it."""

    sensor: str
    found: bool
    readable: bool
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of training.

    Attributes
    ----------
    index
        From 1.
    start_s, end_s
        Monotonic clock, seconds.
    paused_s
        Time within the epoch during which the run was paused. It belongs to no epoch's duration.
    energy_j
        Device key to joules. A device that was never read in this epoch is absent.
    covered_s
        Device key to the seconds of this epoch that its energy stands for.
    partial
        True if the epoch was cut short (interrupt, exception, stop).
    charged_j
        Place in the run's `intensities` to the joules used while that one held. Empty if all of them were
        used at the first.
    """

    index: int
    start_s: float
    end_s: float
    energy_j: Mapping[str, float]
    covered_s: Mapping[str, float]
    paused_s: float = 0.0
    partial: bool = False
    charged_j: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def duration_s(self) -> float:
        """Seconds of training in the epoch, pauses left out."""
        return max(0.0, self.end_s - self.start_s - self.paused_s)

    @property
    def total_j(self) -> float:
        """Joules of all devices that were measured."""
        return sum(self.energy_j.values())

    def power_w(self, device: str) -> float | None:
        """Average power of a device over the time in which it was measured, W; None if it was not."""
        covered_s = self.covered_s.get(device, 0.0)
        return self.energy_j[device] / covered_s if covered_s > 0 and device in self.energy_j else None


@dataclass(frozen=True, slots=True)
class Intensity:
    """The carbon intensity of electricity at a place, g CO2eq per kWh.

    Attributes
    ----------
    zone
        ISO 3166 alpha-2 code or grid zone; None if the place is unknown.
    place
        The same in words: "Denmark"; "Unknown" if it is.
    source
        Who says so, with licence where one is asked for.
    time
        Year ("2025") or instant (ISO 8601) that the figure is of; "" for a user's own figure.
    kind
        `lifecycle` or `direct`; "" for a user's own figure, and for a mean of both: `source` tells which.
    is_fallback
        True if the place is unknown and an average over many stands in for it.
    how
        How the place was found: "setting", "environment", "time zone Europe/Copenhagen", …
    """

    g_per_kwh: float
    zone: str | None
    place: str
    source: str
    time: str
    kind: Literal["lifecycle", "direct", ""]
    is_fallback: bool = False
    how: str = ""
    low: float = 1.0
    high: float = 1.0


@dataclass(frozen=True, slots=True)
class Pue:
    """Power usage effectiveness: energy of the whole data centre per energy of its computers.

    It multiplies predicted and actual consumption only, never a power or an epoch's energy.
    """

    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """A figure with its interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Band:
        """The same band in another unit."""
        return Band(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the whole run will take, as seen after `made_after` epochs.

    The intervals are meant to hold the true figure in 80 of 100 runs. Energy is without, emissions are
    with PUE, as they are in the result of the run; None if nothing was measured.
    """

    epochs: int
    made_after: int
    duration_s: Band
    energy_j: Band | None
    emissions_g: Band | None
    method: str


COVERED = 0.98
"""A device that was read for less of the time than this is told about beside the figures."""


def partly_read(devices: Sequence[Device], epochs: Sequence[Epoch]) -> dict[str, float]:
    """Device key to the share of the epochs' time for which it was read, of those below `COVERED`."""
    duration_s = sum(epoch.duration_s for epoch in epochs)
    covered_s = {
        device.key: sum(epoch.covered_s.get(device.key, 0.0) for epoch in epochs) for device in devices
    }
    return {key: each_s / duration_s for key, each_s in covered_s.items() if each_s < COVERED * duration_s}


def energy_band(devices: Sequence[Device], by_device_j: Mapping[str, float]) -> Band | None:
    """Joules of all devices with their interval; None if none was read.

    The interval is the sum of the devices' own: their errors are not taken to cancel out.
    """
    if not by_device_j:
        return None
    low = sum(by_device_j.get(device.key, 0.0) * device.low for device in devices)
    high = sum(by_device_j.get(device.key, 0.0) * device.high for device in devices)
    return Band(sum(by_device_j.values()), low, high)


def mean_intensity(intensities: Sequence[Intensity], charged_j: Mapping[int, float]) -> Intensity:
    """The intensity at which all joules of a run were used: the mean of those that held, weighted by joules.

    Parameters
    ----------
    intensities
        In the order in which they held; at least one.
    charged_j
        Place in `intensities` to the joules used while that one held.
    """
    held = [(intensities[at], energy_j) for at, energy_j in sorted(charged_j.items()) if energy_j > 0]
    kinds = {intensity for intensity, _ in held}
    if len(kinds) < 2:
        return held[0][0] if held else intensities[-1]
    total_j = sum(energy_j for _, energy_j in held)

    def mean(of: Callable[[Intensity], float]) -> float:
        return sum(of(intensity) * energy_j for intensity, energy_j in held) / total_j

    g_per_kwh = mean(lambda one: one.g_per_kwh)
    first, last = held[0][0], held[-1][0]
    same_kind = len({intensity.kind for intensity, _ in held}) == 1
    # Where a table's lifecycle figure and a live direct one both held, each is named with its own.
    sources = dict.fromkeys(
        one.source if same_kind or not one.kind else f"{one.source} ({one.kind})" for one, _ in held
    )
    return dataclasses.replace(
        last,
        g_per_kwh=g_per_kwh,
        source="; ".join(sources),
        time=f"{first.time} to {last.time}",
        kind=last.kind if same_kind else "",
        is_fallback=any(intensity.is_fallback for intensity, _ in held),
        low=mean(lambda one: one.g_per_kwh * one.low) / g_per_kwh if g_per_kwh else 1.0,
        high=mean(lambda one: one.g_per_kwh * one.high) / g_per_kwh if g_per_kwh else 1.0,
    )


def emissions_band(energy_j: Band | None, intensity: Intensity, pue: Pue) -> Band | None:
    """Grams of CO2eq that an energy stands for, with PUE; None if nothing was read."""
    if energy_j is None:
        return None
    g_per_j = grams(1.0, intensity.g_per_kwh) * pue.value
    return Band(
        energy_j.value * g_per_j,
        energy_j.low * g_per_j * intensity.low,
        energy_j.high * g_per_j * intensity.high,
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it is right now, for displays: cheap to make, whatever the length of the run.

    Attributes
    ----------
    elapsed_s
        Seconds since the start, pauses left out, up to the newest sample.
    epochs_done, in_epoch
        The complete epochs, and whether one is under way.
    power_w
        Device key to its power at the newest reading; one that is missing is absent.
    energy_j, emissions_g
        Up to the newest sample; emissions with PUE. None if nothing was read.
    point
        The newest figures of the curves: seconds, grams, joules of each device in the order of devices.
    """

    elapsed_s: float
    epochs_done: int
    in_epoch: bool
    paused: bool
    power_w: Mapping[str, float]
    energy_j: Band | None
    emissions_g: Band | None
    estimate: Estimate | None
    prediction: Estimate | None
    epochs_declared: int | None
    point: tuple[float, float | None, tuple[float | None, ...]] | None
    notes: int
    closed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Course:
    """How a run went: cumulative figures at instants, bounded in number. Curves are drawn from it.

    The power of a device over a stretch is the slope of its joules there; None between two values means that
    it was not read.

    Attributes
    ----------
    at_s
        Seconds of the run, pauses left out.
    emissions_g
        Grams of CO2eq up to there, with PUE; None while nothing was measured.
    energy_j
        Device key to its joules up to there, one for each instant; None where it was not read.
    epoch_ends_s
        Where epochs ended, in the same seconds; at most 240 of them, evenly chosen.
    """

    at_s: tuple[float, ...]
    emissions_g: tuple[float | None, ...]
    energy_j: Mapping[str, tuple[float | None, ...]]
    epoch_ends_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribution:
    """The part of a run's energy that its process and its children used: an estimate.

    Attributes
    ----------
    energy_j
        Component to joules, before PUE. One whose share is not known is absent.
    how
        The shares in words, and what was taken for granted.
    """

    energy_j: Mapping[str, float]
    how: str

    @property
    def total_j(self) -> float:
        """Joules of all components whose share is known."""
        return sum(self.energy_j.values())


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """All that a log holds, live or read from disk.

    Attributes
    ----------
    epochs_declared
        How many epochs the user announced; None for a cell measured as one.
    outside_j
        Device key to joules between `start` and `stop` that belong to no epoch and no pause.
    paused_j
        Device key to joules used while the run was paused.
    missing
        Device key to the reason, for every device that failed during the run.
    early_stop
        True if the run ended before the epochs that were to be monitored.
    estimate
        The newest; `prediction` is the one made after `epochs_before_pred`, which the log holds.
    course
        The curves, at most 240 points each; None for a run that was read from a log.
    moves
        What was expected of the whole run after each epoch, at most 240 of them, in order.
    intensities
        The carbon intensities that held one after the other, if there was more than one; `intensity` is their
        mean, weighted by joules. An epoch's `charged_j` names them by their place here.
    notes
        What a reader should know, one sentence each.
    cost
        What tracking itself took: `samples`, `longest_gap_s`, `cpu_s`.
    machine
        What is known of the machine and of the run's part in it, as far as it is: `cpu_threads`,
        `cpu_allotted`, `cpu_sockets`, `cpu_tdp_w` (of one socket), `cpu_load` (mean, 0 to 1), `cpu_is_arm` (1
        or 0), `process_cpu_s`, `machine_cpu_s`, `memory_gb`, `memory_allotted_gb`, `memory_used_gb`,
        `process_memory_gb` (peak), `gpu_limit_w` (sum), `gpu_utilisation` and `process_gpu_share` (0 to 1).
    idle_w
        Device key to its power before the run began, W, where a baseline was measured.
    process
        The part of its process and children, where `scope` asked for it.
    """

    run_id: str
    started_at: datetime
    epochs_declared: int | None
    devices: tuple[Device, ...]
    intensity: Intensity
    pue: Pue
    epochs: tuple[Epoch, ...] = ()
    duration_s: float = 0.0
    paused_s: float = 0.0
    outside_j: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    paused_j: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    missing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    estimate: Estimate | None = None
    prediction: Estimate | None = None
    course: Course | None = None
    moves: tuple[Estimate, ...] = ()
    early_stop: bool = False
    closed: bool = False
    reason: str = ""
    hosts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    machine: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    idle_w: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    process: Attribution | None = None
    log_paths: tuple[str, ...] = ()
    intensities: tuple[Intensity, ...] = ()

    @property
    def complete_epochs(self) -> tuple[Epoch, ...]:
        """The epochs that were not cut short."""
        return tuple(epoch for epoch in self.epochs if not epoch.partial)

    @property
    def energy_by_device_j(self) -> dict[str, float]:
        """Joules per device over the whole run, pauses left out. A device that was never read is absent."""
        total: dict[str, float] = {}
        for part in (*(epoch.energy_j for epoch in self.epochs), self.outside_j):
            for device, energy_j in part.items():
                total[device] = total.get(device, 0.0) + energy_j
        return total

    @property
    def energy_by_component_j(self) -> dict[str, float]:
        """Joules per component over the whole run, pauses left out."""
        component = {device.key: device.component for device in self.devices}
        total: dict[str, float] = {}
        for device, energy_j in self.energy_by_device_j.items():
            total[component[device]] = total.get(component[device], 0.0) + energy_j
        return total

    @property
    def energy_j(self) -> Band | None:
        """Joules of all devices over the whole run, before PUE, pauses left out; None if none was read."""
        return energy_band(self.devices, self.energy_by_device_j)

    @property
    def covered_s(self) -> dict[str, float]:
        """Device key to the seconds of the run for which its energy stands, pauses left out.

        Between epochs, where little happens, it is taken to have been read if anything of it was.
        """
        between_s = max(0.0, self.duration_s - sum(epoch.duration_s for epoch in self.epochs))
        return {
            key: sum(epoch.covered_s.get(key, 0.0) for epoch in self.epochs)
            + (between_s if key in self.outside_j else 0.0)
            for key in self.energy_by_device_j
        }

    @property
    def partly_read(self) -> dict[str, float]:
        """Device key to the share of the epochs' time for which it was read, of those below `COVERED`."""
        return partly_read(self.devices, self.epochs)

    @property
    def idle_j(self) -> dict[str, float]:
        """Device key to the joules that it would have used idling for as long; absent without a baseline."""
        covered_s = self.covered_s
        return {key: idle_w * covered_s[key] for key, idle_w in self.idle_w.items() if key in covered_s}

    @property
    def net_energy_j(self) -> Band | None:
        """Joules beyond what idling would have used, before PUE; None without a baseline of all devices."""
        gross_j, idle_j = self.energy_by_device_j, self.idle_j
        if not gross_j or gross_j.keys() - idle_j.keys():
            return None
        return energy_band(self.devices, {key: max(0.0, gross_j[key] - idle_j[key]) for key in gross_j})

    @property
    def emissions_g(self) -> Band | None:
        """Grams of CO2eq of the whole run, with PUE, pauses left out; None if nothing was read."""
        return emissions_band(self.energy_j, self.intensity, self.pue)

    def epoch_emissions_g(self, epoch: Epoch) -> float | None:
        """Grams of CO2eq of an epoch, with PUE, at the intensity of its time; None if nothing was read."""
        if not epoch.energy_j:
            return None
        held = self.intensities or (self.intensity,)
        intensity = mean_intensity(held, epoch.charged_j) if epoch.charged_j else held[0]
        return grams(epoch.total_j, intensity.g_per_kwh) * self.pue.value

    @property
    def methods(self) -> dict[str, str]:
        """Device key to how its energy was obtained, in words."""
        return {device.key: f"{device.method}: {device.detail or device.name}" for device in self.devices}

    def figure(self) -> Figure:
        """The run as a plotly figure: power by component, cumulative CO2eq, epochs, what was predicted.

        Returns
        -------
        figure
            A `plotly.graph_objects.Figure`. x is in seconds of the run, power in W, CO2eq in g with PUE.

        Raises
        ------
        ImportError
            plotly is not installed.
        """
        from .display.figure import figure  # noqa: PLC0415 - a door to a room above, opened when asked for

        return figure(self)

    def compare(self) -> Comparison:
        """What seven other tools would have said of the same run, each by its own method and constants.

        Returns
        -------
        comparison
            A notebook shows it as a table; `figure()` draws it, `results` holds the figures and reasons.
        """
        from .compare import compare  # noqa: PLC0415 - a door to a room above, opened when asked for

        return compare(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """The picture of the run where one can be shown, its line elsewhere."""
        from .display.static import bundle  # noqa: PLC0415 - a door to a room above, opened when asked for

        return bundle(self)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per epoch, as a pandas DataFrame.

        Returns
        -------
        frame
            Columns `epoch`, `start_s` (since the first epoch began), `duration_s`, `paused_s`, `partial`,
            `energy_j`, `emissions_g` (with PUE), and for each device `<key> energy_j` and `<key> power_w`.
            What was not measured is NaN.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415 - not every environment has it, and it is heavy

        began_s = self.epochs[0].start_s if self.epochs else 0.0
        rows = []
        for epoch in self.epochs:
            measured = bool(epoch.energy_j)
            row: dict[str, float | int | bool | None] = {
                "epoch": epoch.index,
                "start_s": epoch.start_s - began_s,
                "duration_s": epoch.duration_s,
                "paused_s": epoch.paused_s,
                "partial": epoch.partial,
                "energy_j": epoch.total_j if measured else None,
                "emissions_g": self.epoch_emissions_g(epoch),
            }
            for device in self.devices:
                row[f"{device.key} energy_j"] = epoch.energy_j.get(device.key)
                row[f"{device.key} power_w"] = epoch.power_w(device.key)
            rows.append(row)
        frame: pd.DataFrame = pd.DataFrame(rows)
        if rows:
            frame = frame.set_index("epoch")
        return frame

    def __repr__(self) -> str:
        """One line that can go into a paper: figures, units, how far off, where and how obtained."""
        complete = len(self.complete_epochs)
        of = f" of {self.epochs_declared}" if self.epochs_declared not in {None, complete} else ""
        head = f"Run: {complete}{of} epochs, {clock_text(self.duration_s)}"
        energy_j, emissions = self.energy_j, self.emissions_g
        if energy_j is None or emissions is None:
            return f"{head}, nothing measured"
        energy = energy_j.times(1 / J_PER_KWH)
        how = ", ".join(dict.fromkeys(f"{device.component} {device.method}" for device in self.devices))
        place = " ".join(filter(None, (self.intensity.place, self.intensity.time, self.intensity.kind)))
        return (
            f"{head}, {energy.value:.3g} kWh ({energy.low:.3g} to {energy.high:.3g}; {how}), "
            f"{emissions.value:.3g} g CO2eq ({emissions.low:.3g} to {emissions.high:.3g}; "
            f"{self.intensity.g_per_kwh:g} g/kWh {place}, PUE {self.pue.value:g})"
        )
