"""What can go wrong, as types that a caller can catch.

::

    CtNotebookError
    ├── SettingError      a flag, parameter or environment value that cannot be meant (also ValueError)
    ├── SensorError       a sensor cannot be opened or read
    ├── LogError          a log cannot be read
    ├── SourceError       a source of live carbon intensity has no figure to be trusted
    └── TrainingStopped   the user answered "no": raised from the next call that *they* made

Nothing of this is ever raised into a training loop that only runs under the tracker; see `ignore_errors`.
"""

from __future__ import annotations

import reprlib

SHOWN = 80
"""Letters of a value that an error repeats, at most."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = SHOWN


def shown(value: object) -> str:
    """A value that cannot be meant, as an error repeats it: its repr, cut in the middle if it is long."""
    return _SHORT.repr(value)


class CtNotebookError(Exception):
    """Anything that ct_notebook raises on purpose."""


class SettingError(CtNotebookError, ValueError):
    """A setting that cannot be meant. The text names the setting, the value, and what would be right."""


class SensorError(CtNotebookError):
    """A sensor cannot be opened or read. The text says which, why, and what to do about it."""


class LogError(CtNotebookError):
    """A log file cannot be read. The text names the file and what is wrong with it."""


class SourceError(CtNotebookError):
    """A source of live carbon intensity has no figure that can be trusted.

    The text is one line: which source, what is wrong, what to do. It holds no key, no URL and nothing of an
    answer.
    """


class TrainingStopped(CtNotebookError):  # noqa: N818 - it tells of a choice, not of an error
    """The user chose to stop, and the loop belongs to the user.

    Raised by `CarbonTracker.epoch_start` after a "no", since a loop written by hand cannot be left from
    within a call. `for epoch in tracker.epochs(50)` and `%%carbontrack` end without it;
    `if tracker.should_stop: break` avoids it.
    """
