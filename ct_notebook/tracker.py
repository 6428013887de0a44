"""CarbonTracker: what a training says of itself comes in, and is passed on. Wires; holds no formula."""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from .account import Mark
from .budget import Budget
from .display.controls import on_main_thread
from .display.front import Front, front_for
from .errors import TrainingStopped
from .intensity import choose_intensity, choose_pue
from .recording import Recording, Show
from .records import Run
from .sensors.cpu_model import check_tdp
from .settings import OPTIONS, Settings, check_epochs, resolve

if TYPE_CHECKING:
    from .intensity.base import Source
    from .intensity.live import Feed

JUDGE_SHARE, JUDGE_S = 0.05, 1.0
"""A budget is held against the run at the end of each epoch, but for epochs so short that it would take more
than this share of the time. Then it is done once a second at least, and after the last epoch."""

NO_KNOWN_KEY = (
    "api_keys names no source that takes a key, so none is used: the one that does is written "
    '{"electricitymaps": "<your key>"}.'
)
"""The names are not repeated: who mixed up name and key would see the key."""

SETTLE_S = 0.6
"""How long a prediction or a flush waits for the sensors to reach the end of the newest epoch."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_P = ParamSpec("_P")


def _remembers_what_was_given(init: Callable[_P, None]) -> Callable[_P, None]:
    """Keep the names of the arguments of a call: what was not given can be set by CT_NOTEBOOK_*."""

    @functools.wraps(init)
    def remembering(*args: _P.args, **kwargs: _P.kwargs) -> None:
        positions: tuple[str, ...] = ("self", "epochs", *(option.name for option in OPTIONS))
        given = {*positions[: len(args)], *map(str, kwargs)} - {"self", "epochs"}
        cast("CarbonTracker", args[0])._given = frozenset(given)  # noqa: SLF001 - its own class
        init(*args, **kwargs)

    return remembering


class CarbonTracker(contextlib.ContextDecorator):
    """Measures a training run by epochs, predicts what all of it will cost, and logs both.

    Used as carbontracker's class of the same name, or as a context manager, a decorator, or by
    ``for epoch in tracker.epochs(50)``.

    Parameters
    ----------
    epochs
        Number of epochs of the training.
    epochs_before_pred
        Epochs before the prediction; -1 for all, 0 for no prediction.
    monitor_epochs
        Epochs that are measured; -1 for all. Neither 0 nor less than `epochs_before_pred`.
    update_interval
        Seconds between two readings of the sensors.
    interpretable
        Also say what the emissions are equivalent to.
    stop_and_confirm
        After the prediction, ask whether to go on. After a "no", `tracker.epochs()` and a loop under
        `%%carbontrack` end; `epoch_start` raises `TrainingStopped`; `should_stop` is true.
    ignore_errors
        Keep errors of the tracker in the error log instead of showing them.
    components
        "all" or a list such as "gpu,cpu" out of gpu, cpu, ram.
    devices_by_pid
        Count only the GPUs on which this process runs.
    log_dir
        Folder of the log files; None for none.
    log_file_prefix
        Beginning of their names.
    verbose
        0 says nothing, 1 predictions and results, 2 also components and carbon intensity with place.
    decimal_precision
        Decimals of energy and emissions.
    api_keys
        Keys of live carbon intensity sources, by source.
    sim_cpu, sim_cpu_tdp, sim_cpu_util
        A simulated CPU instead of the real one: name, TDP in W, utilisation.
    sim_gpu, sim_gpu_watts, sim_gpu_util
        A simulated GPU instead of the real ones: name, power in W, utilisation.
    pue
        Power usage effectiveness; chosen by the kind of machine if None.
    carbon_intensity
        g CO2eq/kWh instead of a table's.
    country, zone, region
        Whose carbon intensity counts: a country ("DK"), an electricity zone ("DK-DK1"), a cloud's region
        ("gcp:europe-west1"). The narrowest wins.
    locate
        "ip": where nothing else tells the place, ask a geolocation service.
    offline
        Never use the network.
    cpu_tdp, gpu_power_limit
        W, for the models of a CPU and a GPU that tell no power.
    baseline
        Seconds before the run in which the idle power is measured, so that gross and net can be told apart.
    scope
        "process" adds the part of the energy that this process and its children used.
    max_co2, max_kwh, max_time
        A budget: mass with unit ("2kg"), kWh, time with unit ("3h"). It is held against what is used and what
        is expected at the end of each epoch.
    on_exceed
        "ask", "stop" or "warn" if it does not hold.
    confirm_timeout, on_timeout, on_headless
        How long the question waits (s, 0 for ever); "continue" or "stop" if nobody answers or can be asked.
    display
        What shows the run while it goes on: "panel" in a notebook, "text" for a line updated in place, "auto"
        for what the front end can show, "none".

    Raises
    ------
    SettingError
        A parameter that cannot be meant. It is a ValueError.
    """

    _given: frozenset[str]

    @_remembers_what_was_given
    def __init__(
        self,
        epochs: int | None,
        epochs_before_pred: int = 1,
        monitor_epochs: int = 1,
        update_interval: float = 10,
        interpretable: bool = True,  # noqa: FBT001, FBT002 - carbontracker's signature
        stop_and_confirm: bool = False,  # noqa: FBT001, FBT002
        ignore_errors: bool = False,  # noqa: FBT001, FBT002
        components: str = "all",
        devices_by_pid: bool = False,  # noqa: FBT001, FBT002
        log_dir: str | os.PathLike[str] | None = None,
        log_file_prefix: str = "",
        verbose: int = 1,
        decimal_precision: int = 6,
        api_keys: Mapping[str, str] | None = None,
        sim_cpu: str | None = None,
        sim_cpu_tdp: float | None = None,
        sim_cpu_util: float = 0.5,
        sim_gpu: str | None = None,
        sim_gpu_watts: float | None = None,
        sim_gpu_util: float = 0.5,
        *,
        pue: float | None = None,
        carbon_intensity: float | None = None,
        country: str | None = None,
        zone: str | None = None,
        region: str | None = None,
        locate: str = "no",
        offline: bool = False,
        cpu_tdp: float | None = None,
        gpu_power_limit: float | None = None,
        baseline: float = 0.0,
        scope: str = "machine",
        max_co2: str | None = None,
        max_kwh: float | None = None,
        max_time: str | None = None,
        on_exceed: str = "ask",
        confirm_timeout: float = 600,
        on_timeout: str = "continue",
        on_headless: str = "continue",
        display: str = "none",
    ) -> None:
        values = locals()
        self._set_up(resolve(epochs, {name: values[name] for name in self._given}), _print)

    @classmethod
    def for_settings(
        cls, settings: Settings, *, show: Show | None = None, whole: bool = True
    ) -> CarbonTracker:
        """Make a tracker from settings that were resolved already, as the magic does.

        Parameters
        ----------
        settings
            Checked settings.
        show
            Takes each text that the user is to see; printed if None.
        whole
            Measure on when the last epoch is done, until `finish`, so that what follows it is told too.
        """
        tracker = cls.__new__(cls)
        tracker._set_up(settings, _print if show is None else show)  # noqa: SLF001 - its own class
        tracker._whole = whole  # noqa: SLF001
        return tracker

    def _set_up(self, settings: Settings, show: Show) -> None:
        # A wrong country, PUE or TDP is told here, before anything runs.
        check_tdp(settings.cpu_tdp)
        self._intensity = choose_intensity(
            carbon_intensity=settings.carbon_intensity,
            country=settings.country,
            zone=settings.zone,
            region=settings.region,
            environ=os.environ,
        )
        self._source = None if settings.carbon_intensity is not None else _live_source(settings)
        self._pue = choose_pue(pue=settings.pue, environ=os.environ)
        self._settings = settings
        self._show = show
        self._clock: Callable[[], float] = time.monotonic
        self._whole = False
        self._pid = os.getpid()
        self._recording: Recording | None = None
        self._front: Front | None = None
        self._finalizer: weakref.finalize[..., CarbonTracker] | None = None
        self._index = self._cuts = 0
        self._open = False
        self._open_by_hand = False
        self._left_s: float | None = None
        self._due: int | None = None
        self._paused = False
        self._over = False
        self._budget = settings.budget if settings.has_budget else None
        self._let_pass: set[tuple[str, bool]] = set()
        self._judge_from_s = float("-inf")
        self.should_stop = False
        """True once the user chose to stop: the loop is to end."""
        self.marked_by_hand = False
        """True once the user's own code marked an epoch."""
        self.announced = settings.epochs is not None
        """Whether the user said how many epochs there will be, and no loop or framework did."""

    # -- life ------------------------------------------------------------------------------------------

    def start(self) -> CarbonTracker:
        """Open the sensors and begin to measure. Closes any other run of this process. Idempotent."""
        if self._recording is not None or self._over:
            return self
        other = active()
        if other is not None:
            other.close("another run began")
        feed = None if self._source is None else _feed(self._source)
        recording = Recording(self._settings, self._intensity, self._pue, self._show, self._clock, feed)
        if self._settings.api_keys and not self._settings.offline and not _has_known_key(self._settings):
            recording.tell(NO_KNOWN_KEY)
        self._pid = _process.pid
        self._recording = recording
        self._finalizer = weakref.finalize(self, _abandon, recording, self._pid)
        self._finalizer.atexit = False  # the end of the process closes it in a better way
        _process.open.add(recording)
        _process.active = weakref.ref(self)
        self._due = self._next_due()
        recording.begin()
        self._front = front_for(self._settings, recording)
        return self

    def stop(self) -> Run | None:
        """End the run: last reading, consumption, end of the log. Idempotent.

        Returns
        -------
        run
            The result. An epoch that was still open is in it as partial. None if no run ever began.
        """
        if self._recording is None:
            if self._settings.verbose:
                self._show(
                    "CarbonTracker: stop() was called before any epoch began, so nothing was measured."
                )
            return None
        self.close("stopped")
        return self.run

    def finish(self, *, error: BaseException | None = None) -> Run:
        """End the run of a cell or a block. If no epoch was marked, all of it is one.

        Parameters
        ----------
        error
            What the cell raised, if it did.
        """
        if error is None or (self.should_stop and isinstance(error, TrainingStopped)):
            self.close("stopped by the user" if self.should_stop else "finished")
        else:
            self.close("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
        return self.run

    def close(self, reason: str) -> None:
        """End the run once, whatever state it is in; nothing if it has not begun or is over."""
        recording = self._recording
        if recording is None or recording.closed or self._pid != _process.pid:
            return
        # Left by `break`, the epoch was as long as the user wanted it; an error says that it was not.
        whole = self._left_s is not None and reason not in {"interrupted", "failed"}
        self._cut(Mark.EPOCH_END if whole else Mark.EPOCH_CUT)
        self._over = True
        if _process.active is not None and _process.active() is self:
            _process.active = None
        _process.last = recording
        # An interrupt in here is passed on; whoever closes next does what is left.
        if self._budget is not None:
            self._say_excess(self._budget, recording)
        recording.close(reason)
        if self._front is not None:
            self._front.close(stopped=self.should_stop)
            self._front = None
        _process.open.discard(recording)
        if self._finalizer is not None:
            self._finalizer.detach()

    def __enter__(self) -> CarbonTracker:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._whole = True
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(error=error)

    def __call__(self, function: _Function) -> _Function:
        """Measure each call of a function, as a decorator.

        Raises
        ------
        TypeError
            A generator function: its call does nothing yet. Decorate what runs through it.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            msg = f"{function.__name__} is a generator; decorate the function that runs through it."
            raise TypeError(msg)
        if not inspect.iscoroutinefunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        async def measured(*args: Any, **kwargs: Any) -> Any:
            with self._recreate_cm():
                return await function(*args, **kwargs)

        return cast("_Function", measured)

    def _recreate_cm(self) -> CarbonTracker:
        """A decorated function is measured anew at each call."""
        return type(self).for_settings(self._settings, show=self._show)

    # -- epochs ----------------------------------------------------------------------------------------

    def epoch_start(self) -> None:
        """Say that an epoch begins.

        Raises
        ------
        TrainingStopped
            The user chose to stop, and a loop that is marked by hand cannot be left in another way.
        """
        self.marked_by_hand = True
        if self.should_stop:
            msg = (
                "You chose to stop the training. (`if tracker.should_stop: break` ends a loop without this.)"
            )
            raise TrainingStopped(msg)
        self.enter_epoch()

    def enter_epoch(self) -> None:
        """Say that an epoch begins, where the loop is left in another way than by an error. Never raises."""
        self.marked_by_hand = True
        # One that a watched loop opened already is the same epoch.
        if not self._open or self._open_by_hand:
            self.begin_epoch()
        self._open_by_hand = self._open

    def epoch_end(self) -> None:
        """Say that an epoch has ended."""
        self.marked_by_hand = True
        self.end_epoch()

    def begin_epoch(self) -> None:
        """Begin an epoch of a loop that is watched, rather than marked by hand. Never raises."""
        if self._recording is None:
            self.start()
        recording = self._recording
        if self._over or recording is None or self._pid != _process.pid:
            return
        if self._open:
            # The end of the epoch before was forgotten, or its loop was left by `break`: it ends here.
            self._cut(Mark.EPOCH_END)
        self._index += 1
        self._open = True
        recording.mark(self._clock(), Mark.EPOCH_START, self._index)

    def end_epoch(self) -> None:
        """End an epoch of a loop that is watched, rather than marked by hand. Never raises."""
        recording = self._recording
        if self._over or not self._open or recording is None or self._pid != _process.pid:
            return
        now_s = self._clock()
        self._open = self._open_by_hand = False
        recording.mark(now_s, Mark.EPOCH_END)
        recording.wake()
        recording.tell_news()
        if self._front is not None:
            self._attend(self._front, now_s)
        if self._due is not None and self._begun >= self._due:
            self._reach(recording, now_s)
        if self._budget is not None and not self._over and not self.should_stop:
            self._hold_to_budget(self._budget, recording)

    def cut_epoch(self) -> None:
        """End the epoch that is open, if one is, as one that was cut short. Never raises.

        It is none of those that were announced: a training that goes on begins it anew.
        """
        self._cuts += self._open and self.active
        self._cut(Mark.EPOCH_CUT)

    def epochs(self, count: int | None = None) -> Iterator[int]:
        """Count epochs from 0 and mark each: ``for epoch in tracker.epochs(50): …``.

        Ends early if the user chose to stop. The run is closed when the loop is left, unless the tracker
        belongs to a cell or a `with` block.

        Parameters
        ----------
        count
            How many; the number declared if None, and without end if none was.
        """
        if count is not None and self._settings.epochs is None:
            self.declare(check_epochs(count))
            self.announced = True
        total = self._settings.epochs if count is None else count
        self.marked_by_hand = True
        try:
            for epoch in itertools.count() if total is None else range(total):
                self.enter_epoch()
                yield epoch
                self.end_epoch()
                if self.should_stop:
                    break
        finally:
            # Left by `break` or by an exception: a generator cannot tell. The end of the cell or block can.
            self._left_s = self._clock() if self._open else None
            if not self._whole:
                self.close("stopped by the user" if self.should_stop else "finished")

    def declare(self, epochs: int) -> None:
        """Say how many epochs there will be, if that was not known before."""
        self._settings = self._settings._replace(epochs=check_epochs(epochs))
        self._due = self._next_due()
        if self._recording is not None:
            self._recording.declare(epochs)

    def _cut(self, mark: Mark) -> None:
        """End the epoch that is open, if one is."""
        if self._open and self._recording is not None and not self._over:
            at_s = self._clock() if self._left_s is None else self._left_s
            self._open, self._open_by_hand, self._left_s = False, False, None
            self._recording.mark(at_s, mark)

    # -- in between ------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Leave what follows out of the run until `resume`. Its energy is told apart."""
        if not self._paused:
            self._set_paused(paused=True)

    def resume(self) -> None:
        """Go on after `pause`, in the same run and the same epoch."""
        if self._paused:
            self._set_paused(paused=False)

    def _set_paused(self, *, paused: bool) -> None:
        if self.active and self._recording is not None:
            self._paused = paused
            mark = Mark.PAUSE if paused else Mark.RESUME
            self._recording.mark(self._clock(), mark)
            self._recording.wake()
            self._recording.detail(mark.value, epoch=self._index)

    def flush(self) -> None:
        """Have everything so far on disk when this returns."""
        if self.active and self._recording is not None:
            self._recording.settle(self._clock(), SETTLE_S)
            self._recording.flush()

    def note(self, text: str) -> None:
        """Add a sentence to the result and the log."""
        if self._recording is not None:
            self._recording.note(text)

    def step(self, done: int | None = None, total: int | None = None, source: str = "steps") -> None:
        """Say that a step within an epoch passed by. Front ends push and listen here.

        Parameters
        ----------
        done, total
            How many steps of the epoch are done, of how many: the whole run is then foretold before its first
            epoch ends. None where it is not known.
        source
            Whose steps; another word for each loop of an epoch that counts its own.
        """
        if not self.active or self._recording is None:
            return
        now_s = self._clock()
        if done is not None:
            self._recording.step(now_s, source, done, total)
        if self._front is not None:
            self._attend(self._front, now_s)

    def _attend(self, front: Front, now_s: float) -> None:
        """Let the front end show what is new, and do what the user asked for in it."""
        front.attend(now_s)
        controls = front.controls
        self.should_stop = controls.stopping
        if controls.resumed:
            controls.resumed = False
            self.resume()
        if controls.pausing and on_main_thread():
            self._hold(front)

    def _hold(self, front: Front) -> None:
        """Hold the training until the user has it go on. The wait belongs to no epoch."""
        was_paused = self._paused
        self.pause()
        try:
            front.wait(lambda: not front.controls.pausing)
        finally:
            front.controls.pausing = False
            if not was_paused:
                self.resume()
        front.controls.resumed = False
        self.should_stop = front.controls.stopping

    # -- what is known ---------------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The result so far, or the final one.

        Raises
        ------
        RuntimeError
            The tracker was never started.
        """
        if self._recording is None:
            msg = "The tracker was not started, so there is no run yet: call start() or epoch_start() first."
            raise RuntimeError(msg)
        return self._recording.run()

    @property
    def recording(self) -> Recording | None:
        """Where the run is recorded, for displays; None before the start."""
        return self._recording

    @property
    def active(self) -> bool:
        """Whether it measures now (a pause included)."""
        return self._recording is not None and not self._over and self._pid == _process.pid

    @property
    def whole(self) -> bool:
        """Whether a cell or a `with` block ends the run; if not, its last epoch or `stop` does."""
        return self._whole

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._paused and self.active

    @property
    def epochs_declared(self) -> int | None:
        """The number of epochs the user announced."""
        return self._settings.epochs

    @property
    def epochs_seen(self) -> int:
        """The number of epochs that have ended, without those that were cut short while the run goes on."""
        return self._begun - self._open

    @property
    def _begun(self) -> int:
        return self._index - self._cuts

    @property
    def open_epoch(self) -> Literal["", "watched", "by hand"]:
        """Whether an epoch is under way, and who opened it: a loop that is watched, or a mark."""
        return "" if not self._open else "by hand" if self._open_by_hand else "watched"

    def __repr__(self) -> str:
        if self._recording is None:
            return f"<CarbonTracker of {self._settings.epochs} epochs, not started>"
        state = "ended" if not self.active else "paused" if self._paused else "measuring"
        return f"<CarbonTracker, {state}, {self.epochs_seen} of {self._settings.epochs} epochs>"

    # -- what is due at an epoch's end -----------------------------------------------------------------

    def _reach(self, recording: Recording, now_s: float) -> None:
        """An epoch ended after which a prediction, a question or the end is due."""
        settings, index = self._settings, self._begun
        ends_here = index == self._ends_after
        asked_for = settings.predict_after
        predicts = asked_for is not None and index >= asked_for and recording.prediction is None
        settled = recording.settle(now_s, SETTLE_S)
        # As carbontracker's documentation shows it: what is known first, then what is expected.
        if ends_here:
            recording.end(now_s)
            recording.say_actual()
        if predicts and (settled or ends_here):
            recording.predict()
            recording.say_predicted()
            if settings.stop_and_confirm and settings.epochs != index and not self.should_stop:
                # One question, whatever there is to decide about.
                self._judge_from_s = now_s
                told = "" if self._budget is None else self._judge(self._budget, recording)
                if not self.should_stop:
                    self._confirm(recording, told)
        if ends_here and self._budget is not None and not self.should_stop:
            self._hold_to_budget(self._budget, recording)  # nothing after this epoch will
        # Where a sensor is slow, the next epoch's end tries again.
        self._due = index + 1 if predicts and recording.prediction is None else self._next_due()
        if ends_here or (self.should_stop and not self._whole):
            self.close("stopped by the user" if self.should_stop else "finished")

    @property
    def _ends_after(self) -> int | None:
        """The epoch at whose end the run is closed; None if it goes on to the end of the cell or block."""
        settings = self._settings
        return None if self._whole and settings.monitored == settings.epochs else settings.monitored

    def _next_due(self) -> int | None:
        """The next epoch at whose end something is due."""
        ahead = (self._settings.predict_after, self._ends_after)
        return min((n for n in ahead if n is not None and n > self.epochs_seen), default=None)

    def _hold_to_budget(self, budget: Budget, recording: Recording) -> None:
        """At the end of an epoch: stop, ask or warn if the run exceeds its budget or will."""
        told = self._judge(budget, recording)
        if told:
            self._confirm(recording, told)
            if self.should_stop and not self._whole:
                self.close("stopped by the user")

    def _judge(self, budget: Budget, recording: Recording) -> str:
        """At the end of an epoch: warn or stop if the run exceeds its budget or will. Each is told once.

        Returns
        -------
        told
            What the user is to be asked about; "" if there is nothing to ask.
        """
        from .budget import judge  # noqa: PLC0415 - few runs have one

        settings, began_s = self._settings, self._clock()
        if began_s < self._judge_from_s and self._begun not in {settings.epochs, self._ends_after}:
            return ""
        recording.settle(began_s, SETTLE_S)
        used, one_more, expected = recording.against_budget()
        now_s = self._clock()
        self._judge_from_s = now_s + min(JUDGE_S, (now_s - began_s) / JUDGE_SHARE)
        asked_for = settings.predict_after
        if asked_for is None or self._begun < asked_for:
            expected = None  # too early to judge by a forecast
        if self._begun == settings.epochs:
            one_more = expected = None
        found = judge(budget, used, one_more, expected)
        acts_on_forecast = settings.on_exceed != "stop"
        new = [
            excess
            for excess in found
            if (excess.what, excess.is_used) not in self._let_pass and (acts_on_forecast or excess.is_certain)
        ]
        if not new:
            return ""
        self._let_pass.update((excess.what, excess.is_used) for excess in new)
        told = f"Budget: {'; '.join(excess.text for excess in new)}."
        if self._begun == settings.epochs or settings.on_exceed == "warn":
            recording.say(told)
            return ""
        if settings.on_exceed == "stop":
            recording.say(f"{told} Stopped after epoch {self._index} (--on-exceed ask|stop|warn chooses).")
            self.should_stop = True
            if self._front is not None:
                self._front.controls.stopping = True
                self._front.say(told)
            if not self._whole:
                self.close("stopped by the user")
            return ""
        recording.say(told)
        return told

    def _say_excess(self, budget: Budget, recording: Recording) -> None:
        """At the end: what was exceeded and no end of an epoch could tell, as in a cell without epochs."""
        from .budget import judge  # noqa: PLC0415 - few runs have one

        recording.end(self._clock())
        found = judge(budget, recording.against_budget()[0], None, None)
        new = [excess for excess in found if (excess.what, excess.is_used) not in self._let_pass]
        self._let_pass.update((excess.what, excess.is_used) for excess in new)
        if new:
            recording.say(f"Budget: {'; '.join(excess.text for excess in new)}.")

    def _confirm(self, recording: Recording, about: str = "") -> None:
        """Ask whether to go on. The wait belongs to no epoch."""
        from .ask import Question, ask  # noqa: PLC0415 - few runs ask

        settings, front = self._settings, self._front
        question = Question(settings.confirm_timeout, settings.on_timeout, settings.on_headless, about)
        was_paused = self._paused
        self.pause()
        try:
            recording.write_down("Continue training (y/n)?")
            answer = ask(question, front if front is not None and front.has_buttons else None)
        finally:
            if not was_paused:
                self.resume()
        self.should_stop = not answer.go_on
        if front is not None:
            front.controls.stopping = self.should_stop
            front.say(answer.words)
        recording.say(answer.words)


def _print(text: str) -> None:
    """Print whole lines in one piece.

    A last line without its end makes rich's stand-in for stdout, which is there while Lightning's progress
    bar is, call itself without end in a kernel.
    """
    print(f"{text}\n", end="")  # noqa: T201 - here the class speaks


def _live_source(settings: Settings) -> Source | None:
    """What to ask for the carbon intensity of the time. Asks nothing yet.

    Raises
    ------
    SettingError
        A key that cannot be one.
    """
    if settings.offline:
        return None
    from .intensity.http import ask_metadata  # noqa: PLC0415 - not for a run that is offline
    from .intensity.sources import live_source  # noqa: PLC0415 - same

    return live_source(
        zone=settings.zone,
        country=settings.country,
        region=settings.region,
        api_keys=settings.api_keys,
        may_locate_by_ip=settings.locate == "ip",
        ask=ask_metadata,
        environ=os.environ,
    )


def _has_known_key(settings: Settings) -> bool:
    from .intensity.sources import key_of  # noqa: PLC0415 - as above

    return key_of(settings.api_keys) is not None


def _feed(source: Source) -> Feed:
    from .intensity.http import live_get  # noqa: PLC0415 - as above
    from .intensity.live import Feed  # noqa: PLC0415 - as above

    return Feed(source, live_get)


class _Process:
    """What a process knows of its runs."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.active: weakref.ref[CarbonTracker] | None = None
        self.last: Recording | None = None
        self.open: weakref.WeakSet[Recording] = weakref.WeakSet()
        atexit.register(self.end)

    def end(self) -> None:
        """At the end of the process: runs that nobody stopped get their figures."""
        for recording in tuple(self.open):
            recording.close_silently("the process ended without stop()")

    def forked(self) -> None:
        """In a forked child: the parent's runs are not ours, so every call on them does nothing."""
        self.pid = os.getpid()
        self.active = None
        self.open = weakref.WeakSet()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def _abandon(recording: Recording, pid: int) -> None:
    """Have the run of a tracker that is gone closed. A garbage collector calls this at any moment."""
    if pid == _process.pid:
        recording.abandon("the tracker was dropped without stop()")


def active() -> CarbonTracker | None:
    """The tracker that measures in this process now; None if there is none."""
    tracker = None if _process.active is None else _process.active()
    return tracker if tracker is not None and tracker.active else None


def newest_settings() -> Settings | None:
    """What the run under way was told, else the newest that was closed in this process; None without one."""
    tracker = active()
    recording = _process.last if tracker is None else tracker.recording
    return None if recording is None else recording.settings


def last_run() -> Run | None:
    """The newest run that was closed in this process; None if there was none."""
    return None if _process.last is None else _process.last.run()
