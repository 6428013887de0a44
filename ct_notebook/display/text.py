"""A run under way comes in; one line of text, updated in place, shows it where no widget can."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from IPython.display import display, update_display

from ct_notebook.log.format import one_line
from ct_notebook.records import Moment

from .front import Front
from .snapshot import Wishes, status
from .static import bundle, report
from .words import intensity_text

if TYPE_CHECKING:
    from ct_notebook.recording import Recording


class TextLine(Front):
    """Shows a run in a line.

    Parameters
    ----------
    recording
        The run.
    with_picture
        Whether the picture of the run takes the line's place at the end.
    """

    def __init__(self, recording: Recording, *, with_picture: bool) -> None:
        super().__init__(recording)
        self._display_id = f"ct_notebook-{uuid.uuid4().hex}"
        self._with_picture = with_picture
        self._shown = ""
        self._record = recording.run()

    @property
    def _apart_s(self) -> float:
        return 1.0

    def open(self) -> None:
        """Show the line."""
        self._shown = self._line()
        display({"text/plain": self._shown}, raw=True, display_id=self._display_id)
        super().open()

    def close(self, *, stopped: bool) -> None:
        """Put the result in its place."""
        super().close(stopped=stopped)
        if self._with_picture:
            run = self._recording.run()
            update_display(bundle(run), raw=True, display_id=self._display_id)
            display(report(run), raw=True, display_id=f"{self._display_id}-report")

    def _show(self) -> None:
        line = self._line()
        if line != self._shown:
            self._shown = line
            update_display({"text/plain": line}, raw=True, display_id=self._display_id)

    def _line(self) -> str:
        moment: Moment = self._recording.moment()
        wishes: Wishes = self._wishes()
        state = self._state(moment, wishes)
        now = status(self._record, moment, wishes, 0, state)
        of = "" if now["epochs"] is None else f" of {now['epochs']}"
        parts = [
            f"{state}, epoch {now['epochs_done']}{of}" if now["epochs"] or now["epochs_done"] else state,
            now["elapsed"],
            now["power"],
            now["energy"],
            now["co2"] and f"{now['co2']} CO2eq",
            now["left"] and f"about {now['left']} left",
        ]
        ahead = now["prediction"]
        if ahead is not None and ahead["co2"] and not moment.closed:
            parts.append(f"expected in all: {ahead['co2']} CO2eq ({ahead['co2_range']})")
        if now["co2"]:
            parts.append(f"at {one_line(intensity_text(self._recording.intensity))}")
        return "ct_notebook: " + ", ".join(part for part in parts if part)
