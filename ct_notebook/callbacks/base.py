"""What a framework tells of its training comes in; the tracker's marks go out. Knows no framework."""

from __future__ import annotations

import time
import warnings

from ct_notebook.tracker import CarbonTracker, active

TOLD_EVERY_S = 0.2
"""Steps are passed on five times a second at most, as those of a watched loop: batches may be many."""


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

    def training_began(self, epochs: int | None) -> None:
        """Note that a training begins, of so many epochs, None if nobody knows."""
        self._tracker = self._given if self._given is not None else active()
        self._open = False
        if self._tracker is None:
            warnings.warn(
                "ct_notebook: nothing is measured, since no run is under way. Put %%carbontrack on top of "
                "the cell, or give the callback a tracker: CarbonTrackerCallback(CarbonTracker(epochs=...)).",
                stacklevel=2,
            )
        elif self._tracker.epochs_declared is None and epochs is not None and epochs > 0:
            self._tracker.declare(epochs)

    def epoch_began(self) -> None:
        """Mark the beginning of an epoch. One that is open ends."""
        self.epoch_ended()
        if self._tracker is not None:
            self._tracker.enter_epoch()
            self._open, self._told_s = True, 0.0

    def step(self, done: int, total: int | None) -> None:
        """Pass on how many steps of the epoch are done, of how many; None if nobody knows."""
        now_s = time.monotonic()
        if self._tracker is not None and (now_s - self._told_s >= TOLD_EVERY_S or done == total):
            self._told_s = now_s
            self._tracker.step(done, total, "callback")

    def epoch_ended(self) -> None:
        """Mark the end of an epoch, if one is open."""
        if self._tracker is not None and self._open:
            self._open = False
            self._tracker.epoch_end()

    def training_ended(self) -> None:
        """End the run of a tracker that was given and that no `with` block or cell will end."""
        self.epoch_ended()
        if self._tracker is not None and self._given is not None and not self._tracker.whole:
            self._tracker.stop()
        self._tracker = None

    @property
    def should_stop(self) -> bool:
        """Whether the user chose to stop: the training is to end after this epoch."""
        return self._tracker is not None and self._tracker.should_stop
