"""Keras 3, on whatever backend it runs: `model.fit(..., callbacks=[CarbonTrackerCallback()])`."""

from __future__ import annotations

from typing import Any

import keras

from ct_notebook.tracker import CarbonTracker

from .base import Marks


class CarbonTrackerCallback(keras.callbacks.Callback):
    """Marks the epochs of `model.fit` and tells of their batches; ends the training when you wish.

    An epoch's validation belongs to it.

    Parameters
    ----------
    tracker
        None for the tracker of the cell or block in which `fit` runs. Outside of those, one that measures
        until `fit` is over. Within an epoch that you mark yourself, `fit` is part of that.
    """

    def __init__(self, tracker: CarbonTracker | None = None) -> None:
        super().__init__()
        self._marks = Marks(tracker)
        self._has_begun = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Wait for the first epoch: its number tells where a training that is carried on begins."""
        del logs
        self._has_begun = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Mark the beginning. At first find the tracker, and tell it how many epochs there will be."""
        del logs
        if not self._has_begun:
            self._has_begun = True
            epochs = self.params.get("epochs")
            self._marks.training_began(None if epochs is None else epochs - epoch)
        self._marks.epoch_began()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell how far the epoch is."""
        del logs
        self._marks.step(batch + 1, self.params.get("steps"))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Mark the end; Keras looks at `stop_training` next."""
        del epoch, logs
        self._marks.epoch_ended()
        if self._marks.should_stop:
            self.model.stop_training = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Let go of the tracker."""
        del logs
        self._marks.training_ended()
