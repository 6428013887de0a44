"""Samples and marks come in; energy per device and epoch goes out. Pure: no thread, no clock, no I/O.

A device is a curve of cumulative joules over time. An epoch's energy is the difference of the curve at its
two marks: a mark costs a clock read, an epoch of any length has a value, the parts add up to the whole.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

from .records import Device, Epoch, Reading, Sample

_Key = TypeVar("_Key", str, int)

CURVE_POINTS = 4096
"""Points kept of a curve. When they are full, neighbours in the older half are merged."""

COUNTER_TICK_S = 0.25
"""A counter may stand still this long between updates: NVML's moves every 20 to 100 ms, RAPL's every 1 ms."""

STALL_PATIENCE_S = 10.0
"""An epoch waits this long for a counter that stands still and has no gauge beside it, then ends without."""

STALL_S = 1.0
"""A counter that stood still longer than this has stalled: it must show that it caught up."""

CAUGHT_UP = 0.5
"""A stalled counter caught up if it comes back with this share of what the power before would have made."""


class Curve:
    """Cumulative energy of one device, from its readings.

    A counter gives the curve directly: differences, with wrap and reset handled. A power gauge is integrated
    by trapezoid. What lies between two readings further apart than `max_gap_s` is bridged by a counter; for
    a gauge the curve stays flat there, and `covered` with it.

    Parameters
    ----------
    device
        For the counter's range and the power beyond which a jump is a reset.
    max_gap_s
        The longest time between two gauge readings that is integrated over.
    """

    def __init__(self, device: Device, max_gap_s: float) -> None:
        self._range_j = device.counter_range_j
        self._max_power_w = device.max_power_w
        self._max_gap_s = max_gap_s
        self._at_s = array("d")
        self._energy_j = array("d")
        self._covered_s = array("d")
        self._watts: float | None = None  # at the newest reading
        self._watts_at_s = 0.0
        self._counter_j: float | None = None  # at the newest point
        self._seen_s = 0.0  # when the counter was last read, moved or not
        self._still_j = 0.0  # by the gauge, since a counter that stands still last moved
        self._still_s = 0.0

    @property
    def last_s(self) -> float:
        """Time of the newest point; minus infinity if there is none."""
        return self._at_s[-1] if self._at_s else float("-inf")

    def add(self, at_s: float, reading: Reading) -> None:
        """Take a reading. One that is not later than the newest point is left out."""
        if self._at_s and at_s <= self._at_s[-1]:
            return
        gauge_j, gauge_s = self._by_gauge(at_s, reading.watts)
        if reading.counter_j is not None:
            self._add_counter(at_s, reading.counter_j, gauge_j, gauge_s)
        elif reading.watts is not None:
            # After a stretch that a counter could not tell, the gauge carries on from where it stood.
            self._append(at_s, self._still_j + gauge_j, self._still_s + gauge_s)
            self._counter_j = None
        if reading.watts is not None:
            self._watts, self._watts_at_s = reading.watts, at_s

    def at(self, at_s: float) -> tuple[float, float]:
        """Joules and covered seconds up to a time; linear between points, flat outside."""
        if not self._at_s:
            return 0.0, 0.0
        if at_s >= self._at_s[-1]:
            # The gauge speaks for a counter that has not moved yet.
            passed_s = self._watts_at_s - self._at_s[-1]
            share = (
                min(1.0, (at_s - self._at_s[-1]) / passed_s) if self._still_s > 0 and passed_s > 0 else 0.0
            )
            return self._energy_j[-1] + share * self._still_j, self._covered_s[-1] + share * self._still_s
        right = bisect_right(self._at_s, at_s)
        if right == 0:
            return 0.0, 0.0
        left = right - 1
        share = (at_s - self._at_s[left]) / (self._at_s[right] - self._at_s[left])
        return (
            self._energy_j[left] + share * (self._energy_j[right] - self._energy_j[left]),
            self._covered_s[left] + share * (self._covered_s[right] - self._covered_s[left]),
        )

    def knows(self, at_s: float, now_s: float) -> bool:
        """Whether the figure at `at_s` is as good as it gets, when the newest sample was taken at `now_s`."""
        if self.last_s >= at_s:
            return True
        # A counter that has not ticked since will have within its update time; one that stalled may catch up.
        patience_s = COUNTER_TICK_S if self._still_s > 0 or self._counter_j is None else STALL_PATIENCE_S
        return now_s >= at_s + patience_s

    def power_w(self) -> float | None:
        """Power at the newest reading, W: by the gauge, else as the counter went up; None if not known."""
        fresh = self._watts is not None and self._watts_at_s >= self.last_s
        return self._watts if fresh else self._slope()

    def points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Times and cumulative joules of the points kept."""
        return tuple(self._at_s), tuple(self._energy_j)

    def _by_gauge(self, at_s: float, watts: float | None) -> tuple[float, float]:
        """Joules and seconds since the newest gauge reading, by trapezoid; nothing over a gap."""
        if watts is None or self._watts is None:
            return 0.0, 0.0
        passed_s = at_s - self._watts_at_s
        if passed_s > self._max_gap_s:
            return 0.0, 0.0
        return (self._watts + watts) / 2 * passed_s, passed_s

    def _add_counter(self, at_s: float, counter_j: float, gauge_j: float, gauge_s: float) -> None:
        if self._counter_j is None:
            # The first reading of a counter, or the first after the gauge stood in for it.
            self._append(at_s, self._still_j + gauge_j, self._still_s + gauge_s)
        elif counter_j == self._counter_j:
            self._still_j += gauge_j
            self._still_s += gauge_s
            self._seen_s = at_s
            return
        else:
            passed_s = at_s - self._at_s[-1]
            energy_j = self._difference(counter_j, passed_s)
            if energy_j is None:
                self._append(at_s, self._still_j + gauge_j, self._still_s + gauge_s)
            elif self._stalled_for(at_s) > STALL_S and not self._caught_up(energy_j, passed_s, gauge_j):
                self._append_after_stall(at_s, energy_j, gauge_j, gauge_s)
            else:
                self._append(at_s, energy_j, passed_s)
        self._counter_j = counter_j
        self._seen_s = at_s

    def _difference(self, counter_j: float, passed_s: float) -> float | None:
        """What the counter went up by; None if it cannot be told."""
        assert self._counter_j is not None
        energy_j = counter_j - self._counter_j
        limit_w = self._max_power_w
        if self._range_j is not None:
            if limit_w is not None and limit_w * passed_s > self._range_j:
                return None  # it may have wrapped more than once
            energy_j %= self._range_j
        if energy_j < 0:
            return None
        # Two readings close together may stand a whole update apart.
        if limit_w is not None and energy_j > limit_w * (passed_s + COUNTER_TICK_S):
            return None
        return energy_j

    def _stalled_for(self, at_s: float) -> float:
        """Seconds for which the counter was seen to stand still."""
        return max(0.0, min(self._seen_s, at_s) - self._at_s[-1])

    def _caught_up(self, energy_j: float, passed_s: float, gauge_j: float) -> bool:
        expected_j = self._still_j + gauge_j
        if expected_j <= 0:
            slope_w = self._slope()
            expected_j = 0.0 if slope_w is None else slope_w * passed_s
        return energy_j >= CAUGHT_UP * expected_j

    def _append_after_stall(self, at_s: float, energy_j: float, gauge_j: float, gauge_s: float) -> None:
        """Energy that a stalled counter lost: by the gauge where there is one, else a gap in the coverage."""
        if self._still_s + gauge_s > 0:
            self._append(at_s, self._still_j + gauge_j, self._still_s + gauge_s)
        else:
            self._append(self._seen_s, 0.0, 0.0)
            self._append(at_s, energy_j, at_s - self._seen_s)

    def _slope(self) -> float | None:
        """Average power of the newest stretch of at least a counter's tick, W."""
        for left in range(len(self._at_s) - 2, max(-1, len(self._at_s) - 10), -1):
            covered_s = self._covered_s[-1] - self._covered_s[left]
            if self._at_s[-1] - self._at_s[left] >= COUNTER_TICK_S and covered_s > 0:
                return (self._energy_j[-1] - self._energy_j[left]) / covered_s
        return None

    def _append(self, at_s: float, energy_j: float, covered_s: float) -> None:
        self._still_j = self._still_s = 0.0
        if self._at_s and at_s <= self._at_s[-1]:
            return
        first = not self._at_s
        self._at_s.append(at_s)
        self._energy_j.append(0.0 if first else self._energy_j[-1] + energy_j)
        self._covered_s.append(0.0 if first else self._covered_s[-1] + covered_s)
        if len(self._at_s) >= CURVE_POINTS:
            self._merge()

    def _merge(self) -> None:
        """Drop every second point of the older half. The curve stays exact at the points that are left."""
        half = CURVE_POINTS // 2
        for column in (self._at_s, self._energy_j, self._covered_s):
            column[:half] = column[:half:2]


class Mark(Enum):
    """What happens at an instant of a run."""

    START = "start"
    EPOCH_START = "epoch start"
    EPOCH_END = "epoch end"
    EPOCH_CUT = "epoch cut"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    INTENSITY = "intensity"
    """Another carbon intensity holds from here; the index is its place."""


@dataclass(slots=True)
class _OpenEpoch:
    index: int
    start_s: float
    paused_s: float
    energy_j: dict[str, float]
    covered_s: dict[str, float]
    charged_j: dict[int, float]


class Account:
    """The energy of a run, by epoch, pause and the time outside both.

    Marks may be made from any thread while another adds samples, since making one only appends; everything
    else belongs to one thread at a time.

    Parameters
    ----------
    devices
        The devices that samples will name.
    interval_s
        Seconds between two samples, as planned.
    """

    def __init__(self, devices: Sequence[Device], interval_s: float) -> None:
        # A gauge is trusted over one missed reading, not over a suspended machine.
        self.max_gap_s = 3 * interval_s + 1.0
        self._curves = {device.key: Curve(device, self.max_gap_s) for device in devices}
        self._marks: deque[tuple[float, Mark, int]] = deque()
        self._settled: dict[str, tuple[float, float]] = {}
        self._settled_s: float | None = None
        self._open: _OpenEpoch | None = None
        self._paused = False
        self._stopping = self._stopped = False
        self._stop_s = math.inf
        self._last_sample_s = self._newest_mark_s = float("-inf")
        self.samples = 0
        self.longest_gap_s = 0.0
        self.epochs: list[Epoch] = []
        self.ends_s = array("d")
        self.outside_j: dict[str, float] = {}
        self.charged_j: dict[int, float] = {}
        """Joules by the carbon intensity at whose time they were used, without pauses, to the newest mark."""
        self._intensity = 0
        self._used_j: dict[str, float] = {}  # without pauses, to the newest mark
        self._outside_covered_s: dict[str, float] = {}
        self._began_s = 0.0
        self.paused_j: dict[str, float] = {}
        self.duration_s = 0.0
        self.complete_s = self.complete_j = 0.0
        """Seconds and joules of the complete epochs."""
        self.paused_s = 0.0
        self.missing: dict[str, str] = {}

    @property
    def in_epoch(self) -> bool:
        """Whether an epoch is under way, as of the newest mark that is settled."""
        return self._open is not None

    @property
    def paused(self) -> bool:
        """Whether the run is paused, as of the newest mark that is settled."""
        return self._paused

    @property
    def stopping(self) -> bool:
        """Whether the end was marked."""
        return self._stopping

    @property
    def newest_sample_s(self) -> float:
        """When the newest sample was taken, monotonic seconds; minus infinity if none was."""
        return self._last_sample_s

    def is_settled(self, until_s: float) -> bool:
        """Whether no mark up to a time waits for a sample."""
        return not self._marks or self._marks[0][0] > until_s

    def curve(self, device: str) -> Curve:
        """The curve of a device."""
        return self._curves[device]

    def read_now(self) -> list[str]:
        """The devices that have been read and are not missing at the newest sample."""
        return [
            device
            for device, curve in self._curves.items()
            if device not in self.missing and curve.last_s > float("-inf")
        ]

    def power_w(self) -> dict[str, float]:
        """Power of each device at its newest reading, W. A device that is missing is absent."""
        powers_w = {device: curve.power_w() for device, curve in self._curves.items()}
        return {
            device: power_w
            for device, power_w in powers_w.items()
            if power_w is not None and device not in self.missing
        }

    def mark(self, at_s: float, mark: Mark, index: int = 0) -> None:
        """Note that something happened. Marks of several threads, a moment out of order, are put in order."""
        self._stopping = self._stopping or mark is Mark.STOP
        self._newest_mark_s = max(at_s, self._newest_mark_s)
        if mark is Mark.STOP:
            self._stop_s = self._newest_mark_s
        self._marks.append((self._newest_mark_s, mark, index))

    def add(self, sample: Sample) -> None:
        """Take a sample. A device that it names as missing stays listed until it is read again."""
        if sample.at_s <= self._last_sample_s:
            return
        if self.samples:
            self.longest_gap_s = max(self.longest_gap_s, sample.at_s - self._last_sample_s)
        self._last_sample_s = sample.at_s
        self.samples += 1
        missing = dict(sample.missing)
        for reading in sample.readings:
            if not _is_possible(reading.watts) or not _is_possible(reading.counter_j):
                missing[reading.device] = (
                    f"gave no possible figure ({reading.watts} W, {reading.counter_j} J)"
                )
            elif reading.device in self._curves:
                self._curves[reading.device].add(sample.at_s, reading)
                self.missing.pop(reading.device, None)
        for device, why in missing.items():
            if device in self._curves:
                self.missing.setdefault(device, why)

    def settle(self, *, final: bool = False) -> list[Epoch]:
        """Work through the marks that samples have reached; all of them if `final`.

        Returns
        -------
        epochs
            Those that closed, in order.
        """
        closed: list[Epoch] = []
        while self._marks and (final or self._reached(self._marks[0][0])):
            at_s, mark, index = self._marks.popleft()
            self._pass(at_s)
            epoch = self._turn(at_s, mark, index)
            if epoch is not None:
                self.epochs.append(epoch)
                closed.append(epoch)
        return closed

    def as_one_epoch(self, *, partial: bool = False) -> Epoch:
        """Make the whole run its only epoch. For a run that stopped, is settled, and saw no epoch."""
        assert self._stopped
        assert not self.epochs
        epoch = Epoch(
            index=1,
            start_s=self._began_s,
            end_s=self._began_s + self.duration_s + self.paused_s,
            paused_s=self.paused_s,
            energy_j=MappingProxyType(self.outside_j),
            covered_s=MappingProxyType(self._outside_covered_s),
            partial=partial,
            charged_j=MappingProxyType(dict(self.charged_j) if self.charged_j.keys() - {0} else {}),
        )
        self.outside_j, self._outside_covered_s = {}, {}
        self.epochs.append(epoch)
        return epoch

    def charged_so_far_j(self) -> dict[int, float]:
        """Joules by the carbon intensity at whose time they were used, pauses left out, so far."""
        unsettled_j = sum(self.so_far()[0].values()) - sum(self.charged_j.values())
        return self.charged_j | {
            self._intensity: self.charged_j.get(self._intensity, 0.0) + max(0.0, unsettled_j)
        }

    def so_far(self) -> tuple[dict[str, float], float]:
        """Joules by device and seconds since the start, pauses left out, up to the newest sample."""
        total = dict(self._used_j)
        seconds = self.duration_s
        if self._settled_s is not None and not self._paused and not self._stopped:
            # A sample that was taken after the end belongs to nothing.
            until_s = max(self._settled_s, min(self._last_sample_s, self._stop_s))
            for device, curve in self._curves.items():
                energy_j = curve.at(until_s)[0] - self._settled.get(device, (0.0, 0.0))[0]
                if energy_j > 0:
                    total[device] = total.get(device, 0.0) + energy_j
            seconds += until_s - self._settled_s
        return total, seconds

    def open_so_far(self) -> tuple[float, float]:
        """Joules of all devices and seconds of the epoch under way, up to the newest sample; 0 if none is."""
        if self._open is None or self._settled_s is None:
            return 0.0, 0.0
        used_j, seconds = self.so_far()
        unsettled_j = sum(used_j.values()) - sum(self._used_j.values())
        settled_s = self._settled_s - self._open.start_s - self._open.paused_s
        return sum(self._open.energy_j.values()) + unsettled_j, settled_s + seconds - self.duration_s

    def _reached(self, at_s: float) -> bool:
        return self._last_sample_s >= at_s and all(
            device in self.missing or curve.knows(at_s, self._last_sample_s)
            for device, curve in self._curves.items()
        )

    def _pass(self, at_s: float) -> None:
        """Charge what was used since the mark before to whatever was going on. Frozen from here on."""
        began_s = self._settled_s
        passed_s = 0.0 if began_s is None else at_s - began_s
        energy_j: dict[str, float] = {}
        covered_s: dict[str, float] = {}
        for device, curve in self._curves.items():
            now = curve.at(at_s)
            before = self._settled.get(device, now if began_s is None else (0.0, 0.0))
            # A curve may fall behind what a gauge said for a counter that had not moved; it catches up.
            now = max(now[0], before[0]), max(now[1], before[1])
            self._settled[device] = now
            if now > before:
                energy_j[device] = now[0] - before[0]
                # A stalled counter that caught up may bring the energy of marks that have passed.
                covered_s[device] = min(passed_s, now[1] - before[1])
        self._settled_s = at_s
        if began_s is None or self._stopped:
            return
        if self._paused:
            self.paused_s += passed_s
            _add_to(self.paused_j, energy_j)
            if self._open is not None:
                self._open.paused_s += passed_s
            return
        self.duration_s += passed_s
        charged_j = {self._intensity: sum(energy_j.values())}
        _add_to(self.charged_j, charged_j)
        _add_to(self._used_j, energy_j)
        if self._open is not None:
            _add_to(self._open.energy_j, energy_j)
            _add_to(self._open.covered_s, covered_s)
            _add_to(self._open.charged_j, charged_j)
        else:
            _add_to(self.outside_j, energy_j)
            _add_to(self._outside_covered_s, covered_s)

    def _turn(self, at_s: float, mark: Mark, index: int) -> Epoch | None:
        """Change what is going on."""
        if mark is Mark.START:
            self._began_s = at_s
        elif mark is Mark.PAUSE:
            self._paused = True
        elif mark is Mark.RESUME:
            self._paused = False
        elif mark is Mark.STOP:
            self._stopped = True
        elif mark is Mark.EPOCH_START:
            self._open = _OpenEpoch(index, at_s, 0.0, {}, {}, {})
        elif mark is Mark.INTENSITY:
            self._intensity = index
        elif mark in {Mark.EPOCH_END, Mark.EPOCH_CUT} and self._open is not None:
            done, self._open = self._open, None
            self.ends_s.append(self.duration_s)
            epoch = Epoch(
                index=done.index,
                start_s=done.start_s,
                end_s=at_s,
                paused_s=done.paused_s,
                energy_j=MappingProxyType(done.energy_j),
                covered_s=MappingProxyType(done.covered_s),
                partial=mark is Mark.EPOCH_CUT,
                # At the first intensity alone, which most runs are, nothing need be told apart.
                charged_j=MappingProxyType(done.charged_j if done.charged_j.keys() - {0} else {}),
            )
            if not epoch.partial:
                self.complete_s += epoch.duration_s
                self.complete_j += epoch.total_j
            return epoch
        return None


def _is_possible(figure: float | None) -> bool:
    """Whether a figure can be meant at all; sensors check what they know of their hardware."""
    return figure is None or (math.isfinite(figure) and figure >= 0)


def _add_to(total: dict[_Key, float], part: Mapping[_Key, float]) -> None:
    for key, amount in part.items():
        total[key] = total.get(key, 0.0) + amount
