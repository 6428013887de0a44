"""What a framework tells of its training comes in; the tracker's marks go out. Knows no framework."""

from __future__ import annotations

import time
import warnings
import weakref

from ct_notebook.tracker import CarbonTracker, active

TOLD_EVERY_S = 0.2
"""Steps are passed on five times a second at most, as those of a watched loop: batches may be many."""


_opened: weakref.WeakKeyDictionary[CarbonTracker, int] = weakref.WeakKeyDictionary()
"""The epoch that a callback opened last. One that is still open when a training begins was left by an error:
frameworks do not tell of those."""


class Marks:
    """A tracker as frameworks' callbacks use it. No method raises, so training goes on whatever happens.

    Parameters
    ----------
    tracker
        Whose run it is. None for the one that measures when the training begins: that of the cell.
    """

    def __init__(self, tracker: CarbonTracker | None) -> None:
        self._given = tracker
        self._tracker: CarbonTracker | None = None
        self._told_s = 0.0
        self._open = False
        self._within = False
        self._has_steps = True

    def training_began(self, epochs: int | None) -> None:
        """Note that a training begins, of so many epochs, None if nobody knows."""
        self._tracker = tracker = self._given if self._given is not None else active()
        self._open = self._within = False
        self._has_steps = True
        if tracker is None:
            _warn(
                "no run is under way. Put %%carbontrack on top of the cell, or give the callback a tracker: "
                "CarbonTrackerCallback(CarbonTracker(epochs=...))."
            )
            return
        if tracker.recording is not None and not tracker.active:
            # Nor does a choice to stop that run concern this training.
            self._tracker = None
            _warn("the run of the tracker that the callback was given is over. Give it another one.")
            return
        if tracker.open_epoch and _opened.get(tracker) == tracker.epochs_seen + 1:
            tracker.cut_epoch()
            del _opened[tracker]  # the next one has the same number
        how = tracker.open_epoch
        # An epoch of the user's own holds this training, whatever that counts as epochs.
        self._within = how == "by hand" or (how == "watched" and tracker.announced)
        self._has_steps = not self._within or epochs == 1
        if self._within or tracker.announced or epochs is None or epochs <= 0:
            return
        declared = tracker.epochs_declared or 0
        # A loop that stood in for epochs out of sight, such as one over folds, has a training in each turn.
        total = declared * epochs if how == "watched" else max(declared, tracker.epochs_seen + epochs)
        if total > declared:
            tracker.declare(total)

    def epoch_began(self) -> None:
        """Mark the beginning of an epoch. One that is open ends."""
        self.epoch_ended()
        if self._tracker is not None and not self._within:
            self._tracker.enter_epoch()
            _opened[self._tracker] = self._tracker.epochs_seen + 1
            self._open, self._told_s = True, 0.0

    def step(self, done: int, total: int | None) -> None:
        """Pass on how many steps of the epoch are done, of how many; None if nobody knows."""
        now_s = time.monotonic()
        if self._tracker is not None and (now_s - self._told_s >= TOLD_EVERY_S or done == total):
            self._told_s = now_s
            if self._has_steps:
                self._tracker.step(done, total, "callback")
            else:
                self._tracker.step()

    def epoch_ended(self) -> None:
        """Mark the end of an epoch, if one is open."""
        if self._tracker is not None and self._open:
            self._open = False
            self._tracker.epoch_end()

    def training_ended(self) -> None:
        """End the run of a tracker that was given and that no `with` block or cell will end."""
        self.epoch_ended()
        if self._ends_run and self._tracker is not None:
            self._tracker.stop()
        self._tracker = None

    def training_failed(self, error: BaseException) -> None:
        """The same for a training that an error or an interrupt has ended: its epoch is partial."""
        if self._tracker is not None and self._open:
            self._open = False
            self._tracker.cut_epoch()
            _opened.pop(self._tracker, None)
        if self._ends_run and self._tracker is not None and self._tracker.active:
            self._tracker.finish(error=error)
        self._tracker = None

    @property
    def should_stop(self) -> bool:
        """Whether the user chose to stop: the training is to end after this epoch."""
        return self._tracker is not None and self._tracker.should_stop

    @property
    def _ends_run(self) -> bool:
        tracker = self._tracker
        return tracker is not None and self._given is not None and not (tracker.whole or self._within)


def _warn(why: str) -> None:
    warnings.warn(f"ct_notebook: nothing is measured, since {why}", stacklevel=3)
