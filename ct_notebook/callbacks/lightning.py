"""Lightning 2, as `lightning` or as `pytorch_lightning`: `Trainer(callbacks=[CarbonTrackerCallback()])`."""

from __future__ import annotations

import math
import sys
from typing import Any

from ct_notebook.tracker import CarbonTracker

from .base import Marks

# Two packages hold the same code; whichever the user trains with is loaded already.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class CarbonTrackerCallback(Callback):
    """Marks the epochs of `trainer.fit` and tells of their batches; ends the training when you wish.

    An epoch's validation belongs to it. Of several processes the first measures its machine, and a choice to
    stop is passed on to all.

    Parameters
    ----------
    tracker
        None for the tracker of the cell or block in which `fit` runs. Outside of those, one that measures
        until `fit` is over. Within an epoch that you mark yourself, `fit` is part of that.
    """

    def __init__(self, tracker: CarbonTracker | None = None) -> None:
        self._marks = Marks(tracker)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Find the tracker, and tell it the number of epochs if it does not know."""
        if trainer.is_global_zero:
            self._marks.training_began(_epochs_left(trainer, pl_module))

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Mark the beginning."""
        del trainer, pl_module
        self._marks.epoch_began()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell how far the epoch is."""
        del pl_module, outputs, batch
        batches = trainer.num_training_batches
        self._marks.step(batch_idx + 1, None if math.isinf(batches) else int(batches))

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Mark the end; Lightning looks at `should_stop` next. It holds to `min_epochs` before that."""
        del pl_module
        self._marks.epoch_ended()
        if trainer.strategy.reduce_boolean_decision(self._marks.should_stop, all=False):
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Let go of the tracker."""
        del trainer, pl_module
        self._marks.training_ended()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Let go of the tracker."""
        del trainer, pl_module
        self._marks.training_failed(exception)


def _epochs_left(trainer: Any, pl_module: Any) -> int | None:
    """Epochs that a training has before it, which may be carried on; None if nobody knows."""
    limits = []
    # Each is -1 or None where it limits nothing.
    if trainer.max_epochs is not None and trainer.max_epochs >= 0:
        limits.append(trainer.max_epochs - trainer.current_epoch)
    if trainer.max_steps is not None and trainer.max_steps >= 0:
        batches = trainer.num_training_batches
        # A model that steps its optimizers itself may count several steps for a batch.
        if not batches or math.isinf(batches) or not pl_module.automatic_optimization:
            return None
        steps = math.ceil(batches / trainer.accumulate_grad_batches)
        limits.append(math.ceil((trainer.max_steps - trainer.global_step) / steps))
    return min(limits, default=None)
