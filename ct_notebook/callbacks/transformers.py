"""Hugging Face's Trainer: `Trainer(..., callbacks=[CarbonTrackerCallback()])`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ct_notebook.tracker import CarbonTracker

from .base import Marks


class CarbonTrackerCallback(TrainerCallback):
    """Marks the epochs of `trainer.train` and tells of their steps; ends the training when you wish.

    Evaluating and saving at an epoch's end belong to it. Of several processes the first measures its machine;
    a choice to stop is then not passed on, since the others would wait for it for ever.

    Parameters
    ----------
    tracker
        None for the tracker of the cell or block in which `train` runs. Outside of those, one that measures
        until `train` is over. Within an epoch that you mark yourself, `train` is part of that.
    """

    def __init__(self, tracker: CarbonTracker | None = None) -> None:
        self._marks = Marks(tracker)
        self._began_at = 0
        self._waits_for = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Find the tracker, and tell it the number of epochs if it does not know."""
        del args, control, kwargs
        if state.is_world_process_zero:
            steps = _steps_of_epoch(state)
            # A training that is carried on from a checkpoint has some behind it.
            self._marks.training_began(steps and state.num_train_epochs - state.global_step // steps)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mark the beginning."""
        del args, control, kwargs
        self._began_at, self._waits_for = state.global_step, ""
        self._marks.epoch_began()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Tell how far the epoch is."""
        del args, control, kwargs
        self._marks.step(state.global_step - self._began_at, _steps_of_epoch(state))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mark the end, unless evaluating or saving follows: this runs before them."""
        del state, kwargs
        self._waits_for = "save" if control.should_save else "evaluate" if control.should_evaluate else ""
        self._end(args, control, "")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mark the end, if this was what it waited for."""
        del state, kwargs
        self._end(args, control, "evaluate")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mark the end, if this was what it waited for."""
        del state, kwargs
        self._end(args, control, "save")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Let go of the tracker."""
        del args, state, control, kwargs
        self._marks.training_ended()

    def _end(self, args: Any, control: Any, after: str) -> None:
        if after != self._waits_for:
            return
        self._waits_for = "nothing"
        self._marks.epoch_ended()
        if self._marks.should_stop and args.world_size == 1:
            control.should_training_stop = True


def _steps_of_epoch(state: Any) -> int | None:
    """Steps of an epoch; None if it is not known, as with a data set that does not tell its length."""
    epochs, steps = state.num_train_epochs, state.max_steps
    # Transformers gives the largest number there is for epochs that it does not know.
    return -(-steps // epochs) if 0 < epochs <= steps else None
