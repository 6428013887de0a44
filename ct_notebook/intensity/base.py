"""What a source of carbon intensity is: something that knows the figure of a place now.

Tables need no network and are read directly; this is the seam for sources that do.
"""

from __future__ import annotations

from typing import Protocol

from ct_notebook.records import Intensity


class IntensitySource(Protocol):
    """One live source."""

    def now(self, zone: str) -> Intensity | None:
        """The newest figure of a zone; None if the source has none. Never called where training waits."""
        ...
