"""A run under way comes in; a widget under its cell shows it, and clicks come back while the cell runs."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets
from IPython.display import display, update_display

from ct_notebook.ask.pump import Pump
from ct_notebook.records import Moment

from .front import Front
from .snapshot import ends, moves, rows, snapshot, status
from .static import bundle, report

if TYPE_CHECKING:
    from ct_notebook.recording import Recording

STATIC = Path(__file__).parents[1] / "static"


class Panel(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget is read without types
    """The widget. Its state is made anew when a page asks for it, so that a reload shows the run as it is.

    Parameters
    ----------
    fresh
        Makes the snapshot.
    """

    _esm = STATIC / "panel.js"
    _css = STATIC / "panel.css"
    snapshot = traitlets.Dict().tag(sync=True)

    def __init__(self, fresh: Callable[[], dict[str, Any]]) -> None:
        self._fresh = fresh
        super().__init__()

    def get_state(self, key: Any = None, drop_defaults: Any = False) -> dict[str, Any]:  # noqa: FBT002 - ipywidgets' signature
        """The state as a page gets it."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        if "snapshot" in state:
            state["snapshot"] = self._fresh()
        return state

    def __repr__(self) -> str:
        return "ct_notebook: the live panel needs a notebook that shows widgets. The figures follow as text."


class PanelFront(Front):
    """Shows a run in a panel.

    Parameters
    ----------
    recording
        The run.
    kernel
        The kernel whose main thread runs the cell.
    """

    has_buttons = True

    def __init__(self, recording: Recording, kernel: Any) -> None:
        super().__init__(recording)
        self._display_id = f"ct_notebook-{uuid.uuid4().hex}"
        self._seq = 0
        self._sent_point_s = float("-inf")
        self._sent_ends = self._sent_moves = 0
        self._sent_facts = recording.facts_version
        self._wanted = False
        self._record = recording.run()
        self._panel = Panel(self._fresh)
        self._panel.on_msg(self._hear)
        comms = {self._panel.model_id, self._panel.layout.model_id}
        self._pump = Pump.of(kernel, comms.__contains__)

    def open(self) -> None:
        """Show the panel."""
        data = self._panel._repr_mimebundle_()
        content, metadata = data if isinstance(data, tuple) else (data, {})
        display(content, metadata=metadata, raw=True, display_id=self._display_id)
        if self._pump is not None:
            self._pump.open()
        super().open()

    def close(self, *, stopped: bool) -> None:
        """Put the result in the panel's place.

        A page that was loaded during the cell is not sent what the cell shows from then on: it keeps the
        panel, which would else go away there and leave nothing.
        """
        keeps = self.controls.pages > 1
        if keeps:
            self.say("%carbontrack last shows the result of this run as a picture and a table.")
        super().close(stopped=stopped)
        if self._pump is not None:
            self._pump.close()
        run = self._recording.run()
        update_display(bundle(run), raw=True, display_id=self._display_id)
        display(report(run), raw=True, display_id=f"{self._display_id}-report")
        if not keeps:
            with contextlib.suppress(Exception):  # a comm of a front end that is gone
                self._panel.layout.close()
                self._panel.close()

    def _listen(self) -> None:
        if self._pump is not None:
            self._pump.deliver()

    def _hear(self, _panel: object, content: object, _buffers: object) -> None:
        """A page said something. In the main thread, or one of the kernel's: so nothing but a note of it."""
        if self.controls.receive(content) == "hello":
            self._wanted = True

    def _fresh(self) -> dict[str, Any]:
        content, data = self._whole()
        content["curves"]["data"] = data
        return content

    def _whole(self) -> tuple[dict[str, Any], bytes]:
        self._record = run = self._recording.run()
        return snapshot(run, self._status(self._recording.moment()), self._recording.findings)

    def _status(self, moment: Moment) -> dict[str, Any]:
        wishes = self._wishes()
        self._seq += 1
        return status(self._record, moment, wishes, self._seq, self._state(moment, wishes))

    def _show(self) -> None:
        facts = self._recording.facts_version
        if self._wanted or facts != self._sent_facts:
            self._wanted, self._sent_facts = False, facts
            content, data = self._whole()
            self._send({"type": "snapshot", "run": self._record.run_id, "snapshot": content}, [data])
        moment = self._recording.moment()
        points = []
        if moment.point is not None and moment.point[0] > self._sent_point_s:
            points = [moment.point]
            self._sent_point_s = moment.point[0]
        new_ends = self._recording.epoch_ends_s(self._sent_ends)
        new_moves = self._recording.moves_after(self._sent_moves)
        self._sent_ends += len(new_ends)
        self._sent_moves = new_moves[-1].made_after if new_moves else self._sent_moves
        tick = {
            "type": "tick",
            "run": self._record.run_id,
            "status": self._status(moment),
            "epoch_ends": ends(new_ends),
            "moves": moves(new_moves),
        }
        self._send(tick, [rows(points)])

    def _send(self, content: dict[str, Any], buffers: Iterable[bytes]) -> None:
        self._panel.send(content, buffers=list(buffers))
