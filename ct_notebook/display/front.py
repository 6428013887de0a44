"""A run under way comes in; what shows it, and hears its user, goes out.

Fronts push from a thread of their own about once a second and from the main thread on its way past: Colab is
reported not to draw what a thread sends after its cell (colabtools issue 3373). Pushing waits for nobody.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ct_notebook.ask import Question
from ct_notebook.records import Moment

from .controls import Controls, on_main_thread
from .snapshot import Wishes, state_of

if TYPE_CHECKING:
    from ct_notebook.recording import Recording
    from ct_notebook.settings import Settings

THREAD_NAME = "ct_notebook-display"

APART_S = 0.2
"""The main thread looks for clicks this often at most: five times a second."""

POLL_S = 0.05
"""How often it does while it waits for one."""

FIRST_S, USUAL_S = 0.25, 1.0
"""Seconds between two pushes: a run of seconds is shown in more detail than one of hours."""

SAID_S = 15.0
"""How long a sentence stands in the panel."""

END_S = 0.5
"""How long the end of a run waits for the thread that shows it."""


class Front:
    """What shows one run while it goes on. This one shows nothing; it keeps the wishes and the thread.

    Parameters
    ----------
    recording
        The run.
    """

    has_buttons = False
    """Whether a question can be answered in it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._attended_s = self._pushed_s = float("-inf")
        self._wake = threading.Event()
        self._pushing = threading.Lock()
        # In the context of the cell: ipykernel 7.0 knows no parent of what another thread sends.
        target = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=target, args=(self._keep_showing,), name=THREAD_NAME, daemon=True
        )
        self._over = False
        self.shown_s = time.monotonic()
        """When it was shown, on the monotonic clock."""
        self._stopped = False
        self._message = ""
        self._said_s = 0.0
        self._asked_until_s: float | None = None
        self.controls = Controls(recording.run_id, self._wake.set, recording.log_error)

    # -- life ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Show the run."""
        self.shown_s = time.monotonic()
        self._thread.start()

    def close(self, *, stopped: bool) -> None:
        """Show how it ended. The run is closed by then; `stopped` if the user chose that."""
        self._over, self._stopped = True, stopped
        self._wake.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(END_S)
        self._push()

    # -- the main thread -------------------------------------------------------------------------------

    def attend(self, now_s: float) -> None:
        """Show what is new and take what was clicked, if it is time to."""
        if now_s - self._attended_s < APART_S or not on_main_thread():
            return
        self._attended_s = now_s
        self._listen()
        if now_s - self._pushed_s >= self._apart_s:
            self._push()

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Listen until something is so, or for some time; None for ever. True if it is so."""
        give_up_s = None if seconds is None else time.monotonic() + seconds
        while True:
            self._listen()
            if until():
                return True
            if give_up_s is not None and time.monotonic() >= give_up_s:
                return False
            # Short waits, so that an interrupt gets through on every platform.
            time.sleep(POLL_S)

    def say(self, message: str) -> None:
        """Show a sentence in the panel."""
        self._message, self._said_s = message, time.monotonic()
        self._wake.set()

    # -- as `ask` sees it ------------------------------------------------------------------------------

    @property
    def heard(self) -> bool:
        """Whether a page shows the panel."""
        return self.controls.heard

    @property
    def answer(self) -> bool | None:
        """What was answered to the question; None if nothing was.

        A Stop that was pressed as the question came up, before the page showed it, is a no: the time-out must
        not turn it into a yes.
        """
        controls = self.controls
        return False if controls.answer is None and controls.stopping else controls.answer

    def put(self, question: Question) -> None:
        """Ask in the panel."""
        self._asked_until_s = time.monotonic() + question.timeout_s if question.timeout_s else None
        self._message = ""
        self.controls.put(question)
        self._push()

    def withdraw(self) -> None:
        """Ask no longer."""
        self.controls.withdraw()
        self._push()

    # -- showing ---------------------------------------------------------------------------------------

    @property
    def _apart_s(self) -> float:
        return min(USUAL_S, max(FIRST_S, (time.monotonic() - self._recording.began_s) / 30))

    def _wishes(self) -> Wishes:
        controls = self.controls
        question = controls.question
        left_s = None if self._asked_until_s is None else max(0.0, self._asked_until_s - time.monotonic())
        return Wishes(
            pausing=controls.pausing,
            stopping=controls.stopping,
            token=controls.token,
            left_s=left_s,
            default="continue" if question is None else question.on_timeout,
            about="" if question is None else question.about,
            message=self._message if time.monotonic() - self._said_s < SAID_S else "",
        )

    def _state(self, moment: Moment, wishes: Wishes) -> str:
        return state_of(moment, wishes, stopped=self._stopped)

    def _keep_showing(self) -> None:
        while not self._over and not self._recording.closed:
            self._push()
            self._wake.wait(self._apart_s)
            self._wake.clear()

    def _push(self) -> None:
        """Show what is new. Never raises; if another thread is at it, that is enough."""
        if not self._pushing.acquire(blocking=False):
            self._wake.set()
            return
        try:
            self._pushed_s = time.monotonic()
            self._show()
        except Exception as fault:  # whatever a front end raises must not stop a training
            self._recording.log_error(f"The display made a mistake and the run went on: {fault!r}")
        finally:
            self._pushing.release()

    def _show(self) -> None:
        """Put what is new before the user. In any thread, one at a time."""

    def _listen(self) -> None:
        """Take what was clicked. In the main thread."""


def front_for(settings: Settings, recording: Recording) -> Front | None:
    """What shows a run here, opened; None if nothing does but the printed texts.

    A front end that answers no input request (nbclient, papermill, nbconvert) runs no widget either: it gets
    a line of text, and the picture at the end.
    """
    kernel = _kernel() if settings.display != "none" else None
    if kernel is None:
        return None
    from .text import TextLine  # noqa: PLC0415 - only kernels show it

    if settings.display == "panel" or (
        settings.display == "auto" and getattr(kernel, "_allow_stdin", True) is not False
    ):
        try:
            from .panel import PanelFront  # noqa: PLC0415 - imports anywidget

            panel: Front = PanelFront(recording, kernel)
            panel.open()
        except Exception as fault:  # a broken installation of widgets must not stop a training
            recording.note(f"The panel cannot be shown, so there is text instead: {fault!r}")
        else:
            return panel
    line = TextLine(recording, with_picture=settings.display != "text")
    line.open()
    return line


def _kernel() -> Any:
    """The Jupyter kernel that this process is; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)
