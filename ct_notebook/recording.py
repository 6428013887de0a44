"""One run between start and stop: marks and samples go in; a `Run`, its logs and its texts come out.

It belongs to a tracker but outlives it, so that a run whose tracker was dropped still ends with its figures.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from .account import Account, Mark
from .bars import steps_of_bars
from .budget import Expected, Used
from .course import POINTS, CourseOf, Thinned
from .errors import SettingError
from .forecast import (
    Spent,
    as_it_stands,
    forecast,
    forecast_within,
    full_energy_j,
    with_emissions_times,
    with_intensity_ahead,
)
from .intensity.ahead import mean_ahead
from .log import format as texts
from .log.writer import LogWriter
from .machine_use import MachineUse
from .records import (
    Band,
    Epoch,
    Estimate,
    Intensity,
    Moment,
    Pue,
    Run,
    Sample,
    emissions_band,
    energy_band,
    mean_intensity,
    partly_read,
)
from .sampler import Sampler
from .sensors import discover
from .sensors.simulated import Simulated
from .settings import Settings
from .steps import Pace, StepsOf
from .units import clock_text, fixed, grams, kwh

if TYPE_CHECKING:
    from .intensity.base import Outlook
    from .intensity.live import Feed

FIRST_SAMPLE_S = 0.5
"""How long a start waits for the first reading. Training then begins without it."""

LAST_SAMPLE_S = 0.25
"""How long an end waits for the last reading. A sensor that hangs costs this, and the tail its coverage."""

LOG_S = 0.25
"""How long an end waits for its last lines to be on disk."""

WORTH_WAITING = 0.1
"""A better time is named if it would save more than this share."""

INTERVAL_CAP_S = 30.0
"""Sensors are read at least this often: a RAPL counter of 65 kJ wraps after two minutes at 500 W."""

FIRST_FIGURE_S = 60.0
"""A live carbon intensity that arrives within this time of the start holds from the start: it is of then."""

Show = Callable[[str], None]
"""Puts a text before the user."""

_told: set[str] = set()
"""What was said once in this process and need not be said for every run."""


class Recording:
    """A run from its first reading to the end of its log.

    Parameters
    ----------
    settings, intensity, pue
        What the run is told.
    show
        Called with each text, in the thread that made the call that led to it.
    clock
        Monotonic seconds.
    feed
        Gives the carbon intensity of the time as it changes; None for one that holds throughout.
    """

    def __init__(
        self,
        settings: Settings,
        intensity: Intensity,
        pue: Pue,
        show: Show,
        clock: Callable[[], float],
        feed: Feed | None = None,
    ) -> None:
        found = discover(
            components=settings.component_set,
            devices_by_pid=settings.devices_by_pid,
            simulated=_simulated(settings),
            cpu_tdp_w=settings.cpu_tdp,
            gpu_limit_w=settings.gpu_power_limit,
        )
        interval_s = min(settings.update_interval, INTERVAL_CAP_S)
        self._settings = settings
        self._show: Show | None = show
        self._clock = clock
        self._lock = threading.RLock()
        self._account = Account(found.devices, interval_s)
        self._course = CourseOf([device.key for device in found.devices])
        self._moves: Thinned[Estimate] = Thinned(POINTS, lambda estimate: float(estimate.made_after))
        self._sampler = Sampler(found.sensors, interval_s, self._take, clock)
        self.findings = found.findings
        self._reason = ""
        self._abandoned = ""
        self._as_one = False
        self._said_actual = False
        self._charged = ""
        self._complete = self._moved_after = 0
        self._untold: list[str] = []
        self._feed = feed
        self._outlook: Outlook | None = None
        self._given = intensity
        self._intensities = [intensity]
        self._steps: StepsOf | None = None
        self._steps_since_s = 0.0  # unix seconds
        self._on_hold = self._has_whole = False
        self._pace: Pace | None = None
        self._within: Estimate | None = None  # of the first epoch's steps
        self._newest: Estimate | None = None
        self._use = MachineUse(found.sensors, shares=settings.scope == "process", cpu_tdp_w=settings.cpu_tdp)
        self._log = None if settings.log_dir is None else _open_log(settings.log_dir, settings)
        self._base = Run(
            run_id=f"{os.getpid()}-{time.time_ns():x}",
            started_at=datetime.now().astimezone(),
            epochs_declared=settings.epochs,
            devices=found.devices,
            intensity=intensity,
            pue=pue,
            hosts=(platform.node(),),
        )
        self.closed = False
        self.began_s = clock()
        if feed is not None:
            feed.look()  # asks, and waits for no answer
        if self._log is not None:
            self._log.run_begins(self._base)
        for note in (*found.notes, settings.log_dir and texts.folder_note(settings.log_dir)):
            if note:
                self.note(note)
        if settings.has_budget:
            self.note(f"{settings.budget.text} (--on-exceed {settings.on_exceed}).")

    # -- life ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take the first reading, then count from now."""
        self._sampler.start(FIRST_SAMPLE_S)
        if self._settings.baseline and self._base.devices:
            self._measure_idle(self._settings.baseline)
        self.began_s = self._clock()
        self._account.mark(self.began_s, Mark.START)
        self._sampler.wake()  # for what the first sample had no time for
        self._introduce()

    def _measure_idle(self, seconds: float) -> None:
        """Measure the power of the machine before the run begins. The main thread sleeps meanwhile."""
        self.say(f"Measuring the idle power for {seconds:g} s before the training begins...")
        begin_s = self._clock()
        self._sampler.wake()
        time.sleep(seconds)
        end_s = self._clock()
        self._sampler.wake()
        self.settle_sample(end_s)
        idle_w = {}
        with self._lock:
            for device in self._account.read_now():
                curve = self._account.curve(device)
                (from_j, from_s), (to_j, to_s) = curve.at(begin_s), curve.at(end_s)
                if to_s > from_s:
                    idle_w[device] = (to_j - from_j) / (to_s - from_s)
            self._use.start()
        self._base = dataclasses.replace(self._base, idle_w=MappingProxyType(idle_w))

    def settle_sample(self, after_s: float) -> None:
        """Wait a moment for a sample that was taken after a time."""
        give_up_s = time.monotonic() + FIRST_SAMPLE_S
        while self._account.newest_sample_s < after_s and time.monotonic() < give_up_s:
            time.sleep(0.002)

    def end(self, at_s: float) -> None:
        """Take the last reading and settle everything up to `at_s`. Idempotent."""
        if not self._account.stopping:
            self._account.mark(at_s, Mark.STOP)
        self._sampler.finish(LAST_SAMPLE_S)
        with self._lock:
            self._settle(final=True)
        if self._sampler.fault is not None:
            self.tell(f"The tracker made a mistake and went on: {self._sampler.fault!r}")

    def close(self, reason: str) -> None:
        """Say and write what the run used, and the end of the log.

        Idempotent: called again after an interrupt in it, it does what is left.
        """
        if self.closed:
            return
        self._reason = self._reason or reason
        self.end(self._clock())
        if self._feed is not None:
            self._feed.close()
        self.say_actual()
        self.tell_news()
        if self._account.read_now() or self._account.so_far()[0]:
            self._say_charged()
            self._say_when()
        self.say(texts.FINISHED_TEXT)
        self.closed = True
        if self._log is not None:
            self._log.run_ends(self.run())
            self._log.close(LOG_S)
            if self._log.failure:
                self.tell(self._log.failure)

    def close_silently(self, reason: str) -> None:
        """Close without a word: for the end of the process and for trackers that nobody holds any more."""
        self._show = None
        self.close(reason)

    def abandon(self, reason: str) -> None:
        """Have the sampling thread close the run. Touches no lock: a garbage collector may call it."""
        self._abandoned = reason
        self._sampler.wake()

    # -- marks and samples -----------------------------------------------------------------------------

    def mark(self, at_s: float, mark: Mark, index: int = 0) -> None:
        """Note that something happened. Costs a microsecond."""
        self._account.mark(at_s, mark, index)
        if mark in {Mark.PAUSE, Mark.RESUME}:
            self._on_hold = mark is Mark.PAUSE
            if self._steps is not None and not self._complete:
                self._steps.turn(at_s)
        elif mark is Mark.EPOCH_END:
            self._has_whole = True
        elif mark is Mark.EPOCH_START and not self._has_whole:
            # The first one; if that was cut short, what it told is none of this one's.
            steps = StepsOf(at_s)
            if self._on_hold:
                steps.turn(at_s)
            with self._lock:
                self._steps, self._steps_since_s, self._pace = steps, time.time(), None
                self._within = self._newest = None

    def step(self, at_s: float, source: str, done: int, steps: int | None) -> None:
        """Note how far the first epoch is: `done` of `steps` steps of a loop."""
        if self._steps is not None and not self._complete:
            with self._lock:
                self._steps.mark(at_s, source, done, steps)

    def wake(self) -> None:
        """Have a sample taken soon."""
        self._sampler.wake()

    def settle(self, until_s: float, wait_s: float) -> bool:
        """Have marks up to `until_s` settled; wait `wait_s` seconds at most. True if they are."""
        give_up_s = time.monotonic() + wait_s
        while not (settled := self._is_settled(until_s)) and time.monotonic() < give_up_s:
            self._sampler.wake()
            time.sleep(0.002)
        return settled

    def _is_settled(self, until_s: float) -> bool:
        with self._lock:
            return self._account.is_settled(until_s)

    def flush(self) -> bool:
        """Have what is settled on disk. True if it is."""
        return self._log is None or self._log.flush(LOG_S)

    def _take(self, sample: Sample) -> None:
        """In the sampler's thread: account for a sample and log what it settles."""
        with self._lock:
            before = self._base.missing
            self._account.add(sample)
            if self._account.missing != before:
                missing = MappingProxyType(dict(self._account.missing))
                self._base = dataclasses.replace(self._base, missing=missing)
            lost = {device: why for device, why in self._base.missing.items() if device not in before}
            self._watch_steps(sample.at_s)
            self._look_at_use(sample.at_s)
            self._settle()
        for device, why in lost.items():
            name = next(known.name for known in self._base.devices if known.key == device)
            text = f"{name} ({device}) could not be read: {why}"
            self.note(text)
            self._untold.append(text)
            if self._log is not None:
                self._log.error(text)
        self._follow_intensity()
        if self._abandoned:
            self.close_silently(self._abandoned)

    def _watch_steps(self, at_s: float) -> None:
        """While the first epoch runs: look at progress bars, and foretell the run from its steps."""
        if self._steps is None or self._complete:
            return
        for source, done, steps in steps_of_bars(self._settings.epochs, self._steps_since_s):
            self._steps.mark(at_s, source, done, steps)
        pace = self._steps.pace()
        if pace is None or self._settings.epochs is None or pace == self._pace:
            return
        self._pace = pace
        self._foretell(self._steps, pace, self._settings.epochs)

    def _foretell(self, steps: StepsOf, pace: Pace, total: int) -> None:
        """Foretell the run from the steps of its first epoch."""
        stretches = steps.trained()

        def energy_j(until_s: float) -> float | None:
            # `until_s` is on the clock of the steps, which stands in pauses; joules are on the real one.
            left_s, used_j = until_s - pace.began_s, 0.0
            for start_s, end_s in stretches:
                part_s = min(left_s, end_s - start_s)
                from_j, to_j = self._joules_at(start_s), self._joules_at(start_s + part_s)
                if from_j is None or to_j is None:
                    return None
                used_j += to_j - from_j
                left_s -= part_s
            return used_j

        estimate = forecast_within(pace, total, self._g_per_j, energy_j)
        self._within = self._newest = self._at_intensity_ahead(estimate, None)

    def _look_at_use(self, at_s: float) -> None:
        """In the sampler's thread: what the process tree uses of the machine."""
        if self._account.samples < 2:
            return  # the start waits for the first sample
        try:
            self._use.look(at_s, last=self._account.stopping)
        except Exception as error:  # what a system does not tell leaves figures out, no more
            self.note(f"What the process uses of the machine cannot be read: {error!r:.200}")

    def _joules_at(self, at_s: float) -> float | None:
        """Cumulative joules of all devices at an instant; None if none was read."""
        read = self._account.read_now()
        return sum(self._account.curve(device).at(at_s)[0] for device in read) if read else None

    def _follow_intensity(self) -> None:
        """In the sampler's thread: charge what follows at a carbon intensity that has changed."""
        if self._feed is None:
            return
        outlook, failures = self._feed.look()
        for text in failures:
            self.note(text)
            self._untold.append(text)
            if self._log is not None:
                self._log.error(text)
        if outlook is self._outlook:
            return
        with self._lock:
            self._outlook = outlook
            # A source that has fallen silent for a day leaves the figure of the table.
            new, held = self._given if outlook is None else outlook.now, self._intensities[-1]
            if (new.g_per_kwh, new.source) == (held.g_per_kwh, held.source):
                return
            if self._intensities == [self._given] and self._clock() - self.began_s < FIRST_FIGURE_S:
                self._intensities = [new]
                if held.g_per_kwh > 0:
                    factor = new.g_per_kwh / held.g_per_kwh
                    self._course.rescale_emissions(factor)
                    self._moves.replace(
                        map(partial(with_emissions_times, factor=factor), self._moves.items())
                    )
            else:
                self._intensities.append(new)
                self._account.mark(self._clock(), Mark.INTENSITY, len(self._intensities) - 1)
            self._weigh_intensity()
            # An epoch may be long: what is expected does not wait for its end.
            if self._complete:
                self._newest = self._estimate() or self._newest
            elif self._steps is not None and self._pace is not None and self._settings.epochs is not None:
                self._foretell(self._steps, self._pace, self._settings.epochs)

    def _weigh_intensity(self) -> None:
        """Bring the mean carbon intensity of the run up to date."""
        held = tuple(self._intensities)
        mean = mean_intensity(held, self._account.charged_so_far_j())
        self._base = dataclasses.replace(
            self._base, intensity=mean, intensities=held if len(held) > 1 else ()
        )

    def _settle(self, *, final: bool = False) -> None:
        """Settle what samples have reached: log it and carry the curves on."""
        closed = self._account.settle(final=final)
        if len(self._intensities) > 1:
            self._weigh_intensity()
        self._write(closed)
        self._complete += sum(not epoch.partial for epoch in closed)
        if closed and self._moves.wants(float(len(self._account.epochs))):
            estimate = self._estimate()
            if estimate is not None and estimate.made_after > self._moved_after:
                self._moves.add(estimate)
                self._newest = estimate
                self._moved_after = estimate.made_after
        by_device, seconds = self._account.so_far()
        read = {device: by_device.get(device, 0.0) for device in self._account.read_now()}
        grams_so_far = sum(by_device.values()) * self._g_per_j if by_device or read else None
        # Each joule at the intensity of its time: the mean so far times the joules so far is their sum.
        (self._course.end if final else self._course.add)(seconds, grams_so_far, read)

    def _write(self, epochs: Iterable[Epoch]) -> None:
        if self._log is not None:
            for epoch in epochs:
                self._log.epoch(self._base, epoch)

    # -- result ----------------------------------------------------------------------------------------

    def declare(self, epochs: int) -> None:
        """The number of epochs became known after the start."""
        with self._lock:
            self._settings = self._settings._replace(epochs=epochs)
            self._base = dataclasses.replace(self._base, epochs_declared=epochs)
            if self._complete:
                self._newest = self._estimate()
        self.detail("declared", epochs=epochs)

    def predict(self) -> Estimate | None:
        """Make the prediction that the log holds."""
        self._base = dataclasses.replace(self._base, prediction=self._estimate())
        return self.prediction

    @property
    def prediction(self) -> Estimate | None:
        """The prediction that the log holds, once it is made."""
        return self._base.prediction

    def run(self) -> Run:
        """The result so far; the final one once closed."""
        with self._lock:
            account = self._account
            goal = self._settings.monitored
            complete = sum(not epoch.partial for epoch in account.epochs)
            run = dataclasses.replace(
                self._base,
                epochs=tuple(account.epochs),
                duration_s=account.duration_s,
                paused_s=account.paused_s,
                outside_j=MappingProxyType(dict(account.outside_j)),
                paused_j=MappingProxyType(dict(account.paused_j)),
                estimate=self._estimate(),
                course=self._course.course(self._account.ends_s),
                moves=self._moves.items(),
                early_stop=self.closed and not self._as_one and goal is not None and complete < goal,
                closed=self.closed,
                reason=self._reason,
                cost=MappingProxyType(
                    {
                        "samples": float(account.samples),
                        "longest_gap_s": account.longest_gap_s,
                        "cpu_s": self._sampler.cpu_s,
                    }
                ),
                machine=MappingProxyType(self._use.known()),
                log_paths=() if self._log is None else tuple(str(path) for path in self._log.paths),
            )
            return dataclasses.replace(run, process=self._use.part_of(run))

    def moment(self) -> Moment:
        """The run as it is right now."""
        with self._lock:
            account, base = self._account, self._base
            by_device, elapsed_s = account.so_far()
            # What has been read and has used nothing yet is 0, what was never read is absent.
            energy_j = energy_band(base.devices, dict.fromkeys(account.read_now(), 0.0) | by_device)
            return Moment(
                elapsed_s=elapsed_s,
                epochs_done=self._complete,
                in_epoch=account.in_epoch,
                paused=account.paused,
                power_w=account.power_w(),
                energy_j=energy_j,
                emissions_g=emissions_band(energy_j, base.intensity, base.pue),
                estimate=self._as_it_stands(sum(by_device.values()), elapsed_s),
                prediction=base.prediction,
                epochs_declared=base.epochs_declared,
                point=self._course.newest(),
                notes=len(base.notes),
                closed=self.closed,
                reason=self._reason,
            )

    def _as_it_stands(self, used_j: float, elapsed_s: float) -> Estimate | None:
        """What is expected of the whole run by now; None if nothing can be foretold."""
        newest, account = self._newest, self._account
        if newest is None:
            return None
        open_j, open_s = account.open_so_far()
        return as_it_stands(
            newest,
            self._complete,
            Spent(account.complete_s, open_s, max(0.0, elapsed_s - account.complete_s - open_s)),
            Spent(account.complete_j, open_j, max(0.0, used_j - account.complete_j - open_j)),
            self._g_per_j,
            first_s=None if self._pace is None else self._pace.epoch_s,
        )

    def against_budget(self) -> tuple[Used, Used | None, Expected | None]:
        """What was used up to now, what the newest epoch took, and what the whole run will take.

        As a budget counts it: what was used between epochs and before them is in the first and the last.
        Costs the same after any number of epochs.
        """
        moment, base = self.moment(), self._base
        with self._lock:
            newest = next((epoch for epoch in reversed(self._account.epochs) if not epoch.partial), None)

        def amounts(of_energy_j: float | None, of_emissions_g: float | None, of_duration_s: float) -> Used:
            energy_kwh = None if of_energy_j is None else kwh(of_energy_j) * base.pue.value
            return Used(of_emissions_g, energy_kwh, of_duration_s)

        def of(band: Band | None, end: Callable[[Band], float]) -> float | None:
            return None if band is None else end(band)

        def whole(expected: Estimate, end: Callable[[Band], float]) -> Used:
            energy_j, emissions_g = of(expected.energy_j, end), of(expected.emissions_g, end)
            return amounts(energy_j, emissions_g, end(expected.duration_s))

        value: Callable[[Band], float] = attrgetter("value")
        used = amounts(of(moment.energy_j, value), of(moment.emissions_g, value), moment.elapsed_s)
        if newest is None:
            return used, None, None
        one_more = amounts(full_energy_j(newest), base.epoch_emissions_g(newest), newest.duration_s)
        if moment.estimate is None:
            return used, one_more, None
        expected = Expected(whole(moment.estimate, value), whole(moment.estimate, attrgetter("low")))
        return used, one_more, expected

    @property
    def settings(self) -> Settings:
        """What the run was told."""
        return self._settings

    @property
    def intensity(self) -> Intensity:
        """The carbon intensity at which grams are told; the mean so far if it has changed."""
        return self._base.intensity

    @property
    def run_id(self) -> str:
        """The name of the run, unique on this machine."""
        return self._base.run_id

    @property
    def facts_version(self) -> tuple[int, ...]:
        """Another one whenever something changed that displays take from `run()`, not from `moment()`."""
        return (len(self._base.notes), len(self._intensities), *map(hash, self._base.missing))

    def epoch_ends_s(self, after: int) -> Sequence[float]:
        """Where epochs ended, in seconds of the run, but for the first `after` of them."""
        with self._lock:
            return self._account.ends_s[after:]

    def moves_after(self, epochs: int) -> list[Estimate]:
        """What was expected of the whole run after more than so many epochs."""
        return [estimate for estimate in self._moves.items() if estimate.made_after > epochs]

    def log_error(self, text: str) -> None:
        """Put a line into the error log that concerns no figure. From any thread."""
        if self._log is not None:
            self._log.error(text)

    def so_far(self) -> tuple[dict[str, float], float]:
        """Joules by device and seconds since the start, pauses left out, up to the newest sample."""
        with self._lock:
            return self._account.so_far()

    def power_w(self) -> dict[str, float]:
        """Power of each device at its newest reading. A device that is missing is absent."""
        with self._lock:
            return self._account.power_w()

    def _estimate(self) -> Estimate | None:
        total = None if self._as_one else self._settings.epochs
        with self._lock:
            complete = [epoch for epoch in self._account.epochs if not epoch.partial]
        if total is None or not complete:
            return None if total is None else self._within
        estimate = forecast(complete, max(total, len(complete)), self._g_per_j, first=self._pace)
        return None if estimate is None else self._at_intensity_ahead(estimate, complete)

    def _at_intensity_ahead(self, estimate: Estimate, complete: Sequence[Epoch] | None) -> Estimate:
        """What is left of a run at the carbon intensity to come, where a source of it is at hand."""
        if self._outlook is None:
            return estimate
        run = self._base
        used_j = used_g = used_s = 0.0
        for epoch in complete or ():
            used_j += epoch.total_j
            used_g += run.epoch_emissions_g(epoch) or 0.0
            used_s += epoch.duration_s
        ahead = mean_ahead(
            self._outlook.now.g_per_kwh,
            self._outlook.ahead,
            time.time(),
            estimate.duration_s.value - used_s,
        )
        g_per_j = ahead.times(grams(1.0, 1.0) * run.pue.value)
        return with_intensity_ahead(estimate, used_j, used_g, g_per_j)

    @property
    def _g_per_j(self) -> float:
        """Grams of CO2eq per joule of a device, PUE included."""
        return grams(1.0, self._base.intensity.g_per_kwh) * self._base.pue.value

    # -- words -----------------------------------------------------------------------------------------

    def say(self, text: str, *, verbose: int = 1, logged: str | None = None) -> None:
        """Show a text as carbontracker does, and put it into the output log (there as `logged`)."""
        self.write_down(text if logged is None else logged)
        self._put_before_user(text, verbose=verbose)

    def write_down(self, text: str) -> None:
        """Put a text into the output log that the user sees in another form."""
        if self._log is not None:
            self._log.output(text)

    def _put_before_user(self, text: str, *, verbose: int = 1) -> None:
        if self._show is not None and self._settings.verbose >= verbose:
            try:
                self._show(f"CarbonTracker: {text}")
            except Exception as error:  # a closed or narrow output must not stop a training
                self.note(f"A text could not be shown: {error!r}")

    def tell(self, text: str) -> None:
        """Something is wrong on our side: kept, and shown unless errors are to be ignored; once."""
        if text in self._base.notes:
            return
        self.note(text)
        if self._log is not None:
            self._log.error(text)
        if not self._settings.ignore_errors:
            self._put_before_user(text)

    def note(self, text: str) -> None:
        """Keep a sentence for the reader of the result; once."""
        with self._lock:
            if text in self._base.notes:
                return
            self._base = dataclasses.replace(self._base, notes=(*self._base.notes, text))
        self.detail("note", text=text)

    def detail(self, kind: str, **data: object) -> None:
        """An extra line in the standard log."""
        if self._log is not None:
            self._log.detail(kind, data)

    def _introduce(self) -> None:
        devices = self._base.devices
        if devices:
            self._put_before_user(texts.components_text(devices), verbose=2)  # the log has begun with it
            self._put_before_user(texts.intensity_text(self._base.intensity), verbose=2)
        else:
            whys = " ".join(f"{finding.sensor}: {finding.why.rstrip('.')}." for finding in self.findings)
            self.tell(
                f"No component can be measured (components={self._settings.components}). Training runs all "
                f"the same, without figures. {whys}".rstrip()
            )
            if self._settings.max_co2 is not None or self._settings.max_kwh is not None:
                self.tell(
                    "Budget: without figures no limit of CO2eq or energy can be kept, only one of time."
                )
        for finding in self.findings:
            if finding.found and not finding.readable and finding.remedy:
                text = f"{finding.sensor}: {finding.why.rstrip('.')}. To measure it: {finding.remedy}"
                if text in _told:
                    self.note(text)
                else:
                    _told.add(text)
                    self.tell(text)
        if self._log is not None and self._log.failure:
            self.tell(self._log.failure)

    def tell_news(self) -> None:
        """Show what the sampling thread found and may not show itself."""
        while self._untold:
            text = self._untold.pop(0)
            if not self._settings.ignore_errors:
                self._put_before_user(text)

    def say_actual(self) -> None:
        """What the measured epochs used; the run as a whole if there was none. Once."""
        if self._said_actual:
            return
        with self._lock:
            if not self._account.epochs:
                self._as_one = True
                cut = self._reason in {"interrupted", "failed"}
                self._write([self._account.as_one_epoch(partial=cut)])
            counted = [epoch for epoch in self._account.epochs if self._as_one or not epoch.partial]
        self.say(texts.average_intensity_text(self._base.intensity), verbose=2)
        measured = [epoch for epoch in counted if epoch.energy_j]
        if not counted:
            self.say("No epoch was completed, so there is no consumption to report for one.")
        elif measured:
            duration_s = sum(epoch.duration_s for epoch in counted)
            energy_j = sum(epoch.total_j for epoch in measured)
            used_g = sum(self._base.epoch_emissions_g(epoch) or 0.0 for epoch in measured)
            count = None if self._as_one else len(counted)
            self._say_consumption("Actual", count, duration_s, energy_j, used_g)
            self._say_parts()
            self._say_coverage(counted)
            read = {device for epoch in counted for device in epoch.energy_j}
            is_whole = read.isdisjoint(partly_read(self._base.devices, counted))
            self._say_how_far_off(len(counted), duration_s, energy_j if is_whole else None)
        elif self._base.devices:
            self.say("Nothing could be read from the devices that were found, so there is no figure.")
        self._said_actual = True

    def _say_parts(self) -> None:
        """What of the energy is beyond idling and what the process used, where that was asked for."""
        run = self.run()
        gross, net, part = run.energy_j, run.net_energy_j, run.process
        pue = run.pue.value

        def kwh_text(energy_j: float) -> str:
            return f"{fixed(kwh(energy_j) * pue, self._settings.decimal_precision)} kWh"

        if gross is not None and net is not None:
            idle_w = sum(run.idle_w.values())
            self.say(
                f"Gross {kwh_text(gross.value)} for the whole run, net {kwh_text(net.value)} beyond the "
                f"{idle_w:.3g} W that the machine drew idling before."
            )
        elif self._settings.baseline and run.devices:
            self.say("Net energy cannot be told: the idle power of not every device could be measured.")
        if part is not None:
            used = kwh_text(part.total_j)
            self.say(f"This process and its children used {used} of it, an estimate ({part.how}).")

    def _say_when(self) -> None:
        """A better time for such a run, where a forecast is at hand and it would have made a difference."""
        outlook, run = self._outlook, self.run()
        if outlook is None or not outlook.ahead or run.energy_j is None:
            return
        from .advice import when  # noqa: PLC0415 - few runs have a forecast

        try:
            found = when(
                run.energy_j.value * run.pue.value,
                run.duration_s,
                outlook.ahead,
                time.time(),
                kind=outlook.now.kind,
            )
        except SettingError:  # the forecast does not reach over such a run
            return
        if found.saving_g > WORTH_WAITING * found.starts[0].emissions_g:
            self.say(f"For the next such run: {found.sentence()} (%carbontrack when)")

    def _say_how_far_off(self, epochs: int, duration_s: float, energy_j: float | None) -> None:
        """What had been predicted against what was used, one line; nothing if other epochs were predicted.

        The energy is None if some of it was not read: then nothing tells how far off its prediction was.
        """
        made = self.prediction
        if made is None or made.epochs != epochs or made.made_after >= epochs:
            return
        parts = []
        for what, band, used in (("energy", made.energy_j, energy_j), ("time", made.duration_s, duration_s)):
            if band is not None and used is None:
                parts.append(f"{what} cannot be judged, since some of it was not read")
            elif band is not None and used is not None and used > 0:
                held = "within" if band.low <= used <= band.high else "outside"
                parts.append(f"{what} {band.value / used - 1:+.1%}, {held} its 80 % interval")
        self.say(f"The prediction made after {made.made_after} epoch(s) was off by: {'; '.join(parts)}.")

    def _say_coverage(self, epochs: list[Epoch]) -> None:
        """Which devices the figures hold only in part."""
        shares = partly_read(self._base.devices, epochs)
        for device in self._base.devices:
            if device.key in shares:
                self.tell(
                    f"{device.name} ({device.key}) was read for {shares[device.key]:.0%} of the time "
                    "only; the figures hold no more of it than that."
                )

    def say_predicted(self) -> None:
        """What all epochs are expected to use."""
        estimate = self.prediction
        if estimate is None:
            return
        if estimate.energy_j is not None and estimate.emissions_g is not None:
            self._say_consumption(
                "Predicted",
                estimate.epochs,
                estimate.duration_s.value,
                estimate.energy_j.value,
                estimate.emissions_g.value,
            )
            self._say_charged()
        else:
            time_text = clock_text(estimate.duration_s.value)
            self.say(f"{estimate.epochs} epochs will take about {time_text}; their energy is not measured.")

    def _say_charged(self) -> None:
        """What the grams above stand for. Once for those that stand together."""
        text = texts.charged_text(self._base.intensity)
        if text != self._charged:
            self._charged = text
            self.say(text)

    def _say_consumption(
        self,
        kind: Literal["Actual", "Predicted"],
        epochs: int | None,
        duration_s: float,
        energy_j: float,
        co2eq_g: float,
    ) -> None:
        self._charged = ""
        energy_kwh = kwh(energy_j) * self._base.pue.value
        # A log always says what the emissions are equivalent to: carbontracker's readers need it.
        shown, logged = (
            texts.consumption_text(
                kind,
                epochs=epochs,
                duration_s=duration_s,
                energy_kwh=energy_kwh,
                co2eq_g=co2eq_g,
                precision=self._settings.decimal_precision,
                interpretable=interpretable,
            )
            for interpretable in (self._settings.interpretable, True)
        )
        self.say(shown, logged=logged)


def _open_log(folder: str, settings: Settings) -> LogWriter:
    # "~nobody" stays as it is; Path would raise.
    return LogWriter(os.path.expanduser(folder), settings.log_file_prefix)  # noqa: PTH111


def _simulated(settings: Settings) -> Simulated | None:
    if settings.sim_cpu is None and settings.sim_gpu is None:
        return None
    return Simulated(
        cpu=settings.sim_cpu,
        cpu_tdp_w=settings.sim_cpu_tdp,
        cpu_util=settings.sim_cpu_util,
        gpu=settings.sim_gpu,
        gpu_watts=settings.sim_gpu_watts,
        gpu_util=settings.sim_gpu_util,
    )
