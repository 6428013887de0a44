"""Power, energy and CO2eq of a training cell, while it runs.

``%load_ext ct_notebook``, then ``%%carbontrack --epochs 50`` on top of a training cell. Nothing happens at
import: names are looked up when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import CtNotebookError as CtNotebookError
    from .errors import TrainingStopped as TrainingStopped
    from .records import Run as Run
    from .tracker import CarbonTracker as CarbonTracker

__version__ = "0.1.0"

_ROOMS = {
    "CarbonTracker": "tracker",
    "CtNotebookError": "errors",
    "Run": "records",
    "TrainingStopped": "errors",
}

__all__ = ["CarbonTracker", "CtNotebookError", "Run", "TrainingStopped"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        from importlib import import_module  # noqa: PLC0415 - nothing happens at import

        return getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: Any) -> None:
    """Give the shell `%carbontrack` and `%%carbontrack`."""
    from .magics import load  # noqa: PLC0415 - IPython is there only now

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Close an open run, take magics and hooks away, leave the shell as it was found."""
    from .magics import unload  # noqa: PLC0415 - IPython is there only now

    unload(ipython)
