"""A question comes in, an answer goes out, whoever can be asked. Never blocks a run that nobody watches."""

from __future__ import annotations

import sys
import threading
from typing import Any

from .question import Answer, Question

__all__ = ["Answer", "Question", "ask"]


def ask(question: Question) -> Answer:
    """Ask by whatever way reaches the user, and take the stated default if none does.

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
    return stdin.ask_kernel(question, kernel)


def _kernel() -> Any:
    """The Jupyter kernel that this process is; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)
