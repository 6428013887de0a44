"""Ask by text: a terminal's standard input, or the input box of a notebook. With a time-out in both."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from .parent import asker
from .question import Answer, Buttons, Question, understood

AGAIN = "Input not recognized. Try again (y/n): "

POLL_S = 0.05

_typed = bytearray()
"""What was typed ahead, beyond the line that answered."""


class _TooLateError(Exception):
    """Nobody answered in time."""


class _ClickedError(Exception):
    """A panel that appeared late was answered instead."""


def ask_terminal(question: Question) -> Answer:
    """Ask on the terminal. A closed or absent standard input means that nobody is there."""
    if sys.stdin is None or sys.stdin.closed:
        return question.nobody_there()
    return _converse(question, _terminal_line)


def ask_kernel(question: Question, kernel: Any, buttons: Buttons | None = None) -> Answer:
    """Ask in the input box of a notebook. A client without one (nbclient, papermill) answers nothing.

    A click on one of `buttons` is an answer as well.
    """
    if not getattr(kernel, "_allow_stdin", False):
        return question.nobody_there()

    def box(prompt: str, wait_s: float | None) -> str:
        return _kernel_line(kernel, prompt, wait_s, buttons)

    try:
        return _converse(question, box)
    except _ClickedError:
        assert buttons is not None
        return Answer(bool(buttons.answer), "answered")


def _converse(question: Question, read: Callable[[str, float | None], str]) -> Answer:
    """Ask until the answer is a yes or a no. `read` takes a prompt and the seconds left, None for ever."""
    deadline_s = time.monotonic() + question.timeout_s if question.timeout_s else None
    prompt = question.prompt
    while True:
        left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        try:
            go_on = understood(read(prompt, left_s))
        except _TooLateError:
            return question.too_late()
        except EOFError:
            return question.nobody_there()
        if go_on is not None:
            return Answer(go_on, "answered")
        prompt = AGAIN


def _terminal_line(prompt: str, wait_s: float | None) -> str:
    print(prompt, end="", flush=True)  # noqa: T201 - the question is for the person at the terminal
    deadline_s = None if wait_s is None else time.monotonic() + wait_s
    while b"\n" not in _typed:
        left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        try:
            file = sys.stdin.fileno()
            ready, _, _ = select.select([file], [], [], left_s)
        except (OSError, ValueError):
            return _whole_line()  # Windows, and streams that are no files: waits without a time-out
        if not ready:
            print(flush=True)  # noqa: T201 - ends the line of the prompt
            raise _TooLateError
        # Not by sys.stdin, which would take more than a line and hide the rest from select().
        more = os.read(file, 4096)
        if not more:
            raise EOFError
        _typed.extend(more)
    line, _, rest = bytes(_typed).partition(b"\n")
    _typed[:] = rest
    return line.decode(errors="replace")


def _whole_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _kernel_line(kernel: Any, prompt: str, wait_s: float | None, buttons: Buttons | None) -> str:
    """One line from the input box, by the protocol that `input()` itself uses, with a time-out.

    The attributes are private to ipykernel. Where they are missing, `input()` asks, without a time-out.
    """
    import zmq  # noqa: PLC0415 - a kernel has it, a terminal may not

    try:
        session, socket, parent = kernel.session, kernel.stdin_socket, kernel.get_parent("shell")
        ident = asker(kernel)
    except (AttributeError, LookupError, TypeError):
        return input(prompt)
    sys.stdout.flush()
    sys.stderr.flush()
    while socket.poll(0):  # an answer that came too late for an earlier question
        socket.recv_multipart(zmq.NOBLOCK)
    session.send(socket, "input_request", {"prompt": prompt, "password": False}, parent, ident=ident)
    deadline_s = None if wait_s is None else time.monotonic() + wait_s
    while True:
        # Short waits, so that an interrupt gets through on every platform.
        if socket.poll(POLL_S * 1000):
            _, reply = session.recv(socket, mode=zmq.NOBLOCK)
            if reply is not None:
                value = str(reply["content"].get("value", ""))
                if value == "\x04":
                    raise EOFError
                return value
        if buttons is not None:
            buttons.wait(lambda: True)
            if buttons.answer is not None:
                raise _ClickedError
        if deadline_s is not None and time.monotonic() >= deadline_s:
            raise _TooLateError
