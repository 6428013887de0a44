"""Messages of pages come in, from any thread; what the user wants stands here for the main thread to act on.

A page is not trusted: what is malformed, replayed, of another run or too long is left out, with a line in the
error log. Nothing here blocks, prints or raises: a kernel may call it from a thread of its own.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping

from ct_notebook.ask import Question
from ct_notebook.log.format import one_line

PAGES = 64
"""Pages whose newest message is remembered, so that a replayed one is known. Tabs and reloads of one run."""

COMPLAINTS = 20
"""Lines in the error log about messages of pages, at most."""

KINDS = frozenset({"hello", "pause", "resume", "stop", "go_on", "answer"})

_FIELDS = {"type": str, "run": str, "page": str, "n": int, "seq": int, "token": str, "go_on": bool}

_TEXT_LENGTH = 200


class Controls:
    """What the user asked for in a panel.

    Parameters
    ----------
    run_id
        Messages of any other run are left out.
    changed
        Called when a wish has changed or a page has said hello.
    complain
        Takes one line about a message that was left out.
    """

    def __init__(self, run_id: str, changed: Callable[[], None], complain: Callable[[str], None]) -> None:
        self._run_id = run_id
        self._changed = changed
        self._complain = complain
        self._complaints = 0
        self._newest: dict[str, int] = {}
        self._open_token: list[str] = []
        self.heard = False
        """Whether a page has shown the panel."""
        self.pausing = False
        """Whether the training is to be held."""
        self.stopping = False
        """Whether it is to end when the epoch does."""
        self.resumed = False
        """Whether Resume was pressed since this was last looked at."""
        self.answer: bool | None = None
        """What was answered to the newest question; None if nothing was."""
        self.token = ""
        """Of the question that waits for an answer; "" if none does."""
        self.question: Question | None = None

    @property
    def pages(self) -> int:
        """How many pages have shown the panel: tabs, and each time one was loaded."""
        return len(self._newest)

    def put(self, question: Question) -> None:
        """Begin to wait for the answer to a question."""
        self.answer = None
        self.question = question
        token = secrets.token_urlsafe(9)
        self._open_token[:] = [token]
        self.token = token
        self._changed()

    def withdraw(self) -> None:
        """Wait no longer."""
        self._open_token.clear()
        self.token, self.question = "", None
        self._changed()

    def receive(self, content: object) -> str:
        """Take a message of a page.

        Returns
        -------
        kind
            What it was; "" if it was left out.
        """
        fault = self._fault(content)
        if fault:
            if self._complaints < COMPLAINTS:
                self._complaints += 1
                self._complain(f"A message of a page was left out: {fault}.")
            return ""
        assert isinstance(content, Mapping)
        kind: str = content["type"]
        if kind == "hello":
            self.heard = True
        elif kind == "pause":
            self.pausing = True
        elif kind == "resume":
            self.pausing, self.resumed = False, True
        elif kind == "stop":
            self.stopping = True
        elif kind == "go_on":
            self.stopping = False
        else:
            # The first answer counts; taking the token out is one step for all threads.
            try:
                self._open_token.remove(content["token"])
            except ValueError:
                return ""  # a double or a late click
            self.answer = content["go_on"]
        self._changed()
        return kind

    def _fault(self, content: object) -> str:  # noqa: PLR0911 - one for each thing that can be wrong
        """What is wrong with a message; "" if nothing is."""
        if not isinstance(content, Mapping) or len(content) > len(_FIELDS):
            return "it is no record of a few fields"
        for name, value in content.items():
            kind = _FIELDS.get(name) if isinstance(name, str) else None
            if kind is None or type(value) is not kind:
                return f"its field {one_line(str(name), 40)!r} is not what it should be"
            if isinstance(value, str) and len(value) > _TEXT_LENGTH:
                return f"its field {name!r} is too long"
        if not {"type", "run", "page", "n"} <= set(content) or content["type"] not in KINDS:
            return "its kind is unknown or a field is missing"
        if content["type"] == "answer" and not {"token", "go_on"} <= set(content):
            return "it is an answer to no question"
        if content["run"] != self._run_id:
            return "it is of another run"
        page, n = content["page"], content["n"]
        if n <= self._newest.get(page, 0):
            return "it came twice"
        self._newest.pop(page, None)
        self._newest[page] = n
        while len(self._newest) > PAGES:
            del self._newest[next(iter(self._newest))]
        return ""


def on_main_thread() -> bool:
    """Whether this is the thread in which cells run."""
    return threading.current_thread() is threading.main_thread()
