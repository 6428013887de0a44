"""A question comes in, an answer goes out, whoever can be asked. Never blocks a run that nobody watches.

The ways, in this order: the buttons of a panel that a page shows; Colab's own blocking call; the input box
of a notebook or a terminal; the stated default. Which of them there is, is found out by trying: a page that
shows the panel has said hello.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from .question import Answer, Buttons, Question

__all__ = ["Answer", "Buttons", "Question", "ask"]

HELLO_S = 3.0
"""How long a page has, from when it was sent the panel, to say that it shows it. The question is put in
another way then; a page that turns up later can still answer it."""

MOMENT_S = 0.3
"""How long it has at least, from the question on: what it said during a long epoch is only read now."""


def ask(question: Question, buttons: Buttons | None = None) -> Answer:
    """Ask by whatever way reaches the user, and take the stated default if none does.

    Parameters
    ----------
    question
        What is asked.
    buttons
        A panel that may be in sight; None if there is none.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted instead of answering.
    """
    from . import stdin  # noqa: PLC0415 - few runs ask

    kernel = _kernel()
    if kernel is None:
        return stdin.ask_terminal(question)
    if threading.current_thread() is not threading.main_thread():
        # A kernel's stdin socket belongs to its main thread.
        return question.nobody_there()
    if buttons is None:
        return _ask_by_text(question, kernel, None)
    buttons.put(question)
    try:
        return _ask_by_buttons(question, kernel, buttons)
    finally:
        buttons.withdraw()


def _ask_by_buttons(question: Question, kernel: Any, buttons: Buttons) -> Answer:
    def is_answered() -> bool:
        return buttons.answer is not None

    patience_s = max(MOMENT_S, buttons.shown_s + HELLO_S - time.monotonic())
    if not buttons.wait(lambda: buttons.heard or is_answered(), patience_s):
        return _ask_by_text(question, kernel, buttons)
    buttons.wait(is_answered, question.timeout_s or None)
    return question.too_late() if buttons.answer is None else Answer(buttons.answer, "answered")


def _ask_by_text(question: Question, kernel: Any, buttons: Buttons | None) -> Answer:
    """Ask by the front end's own means; a click in a panel that appears late counts as well."""
    from . import colab, stdin  # noqa: PLC0415 - few runs ask

    if colab.is_there():
        return colab.ask(question)
    return stdin.ask_kernel(question, kernel, buttons)


def _kernel() -> Any:
    """The Jupyter kernel that this process is; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)
