"""Comm messages that wait in a kernel's shell channel come in, while a cell runs; their handlers are called.

A kernel reads its shell channel between cells. What a page sends to a widget waits there, behind the cells
that are queued. This takes the messages of our own comms out, in the main thread, from within the cell, and
leaves everything else where it is, in its order. ipykernel offers nothing public for it, so attributes that
are private to it are used, looked for one by one: where one is missing, there is no pump, and a question is
put in another way.

Two things are delivered whoever they are for, since a page that was reloaded needs both to show any widget:
the question which comms there are, and requests for the state of a widget, which change nothing. All else
that other widgets are told waits for the end of the cell, in its order, as it would without this.

ipykernel 6 puts messages into `msg_queue`, from which one coroutine takes them, the next when the cell is
over. ipykernel 7 reads its shell channel in a thread and hands messages to a stream of the main thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from .parent import asker

CONTROL_TARGET = "jupyter.widget.control"
"""A page that was reloaded asks on a comm of this target for the state of all widgets."""

WIDGET_TARGET = "jupyter.widget"
"""The target of the comm of every widget of ipywidgets."""

LOOK_AGAIN_S = 1.0
"""How often ipykernel 7 is made to look for messages that it may have overlooked.

Up to 7.3 it sends replies past the stream that it reads requests by, and a request that arrives meanwhile is
not noticed, often for ever (ipykernel pull request 1529, issue 1554). That happens without us as well.
"""

_COMM_KINDS = frozenset({"comm_open", "comm_msg", "comm_close"})


class Pump:
    """Delivers the messages of some comms to a kernel whose main thread is inside a cell.

    Everything but `of` is for the main thread; elsewhere, and from within a handler, `deliver` does nothing.

    Parameters
    ----------
    kernel
        An ipykernel.
    wants
        Whether a comm, by its id, is one whose messages are to be delivered.
    """

    def __init__(self, kernel: Any, wants: Callable[[str], bool]) -> None:
        self._kernel = kernel
        self._wants = wants
        self._busy = False
        self._handled = 0
        self._original: Any = None
        self._is_open = False
        self._cell: tuple[Any, Any] = (b"", {})
        self._looked_at: Any = None
        self._looked_again_s = float("-inf")
        manager: Any = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
        pair: Any = getattr(manager, "_shell_channel_to_main", None)
        # ipykernel 7.0 has a queue still, but nothing comes into it.
        queue: Any = getattr(kernel, "msg_queue", None) if pair is None else None
        self._queue: Any = getattr(queue, "_queue", None)
        self._stream = pair.to_stream if pair is not None else kernel.shell_stream
        self._entrance: Any = None if pair is None else getattr(kernel, "shell_stream", None)
        self._replies = (
            kernel.shell_stream if pair is None else manager.get_subshell_to_shell_channel_socket(None)
        )

    @classmethod
    def of(cls, kernel: Any, wants: Callable[[str], bool]) -> Pump | None:
        """The pump of a kernel; None if it is not built as those that this one knows."""
        try:
            pump = cls(kernel, wants)
            stream = pump._stream
            known = (
                callable(kernel.comm_manager.comm_msg)
                and callable(stream.flush)
                and callable(stream._recv_callback)  # noqa: SLF001 - nothing public tells it
                and callable(kernel._publish_status)  # noqa: SLF001 - same
                and callable(kernel.session.deserialize)
            )
            pump._parent()
        except (AttributeError, LookupError, TypeError):
            return None
        return pump if known else None

    def open(self) -> None:
        """A cell begins. On ipykernel 7 the filter stays on until `close`: a cell that awaits reads too."""
        # Now, since the event loop that reads for a cell that awaits does so outside the cell's context.
        self._cell = self._parent()
        self._is_open = True
        if self._queue is None and self._original is None:
            self._original = self._stream._recv_callback  # noqa: SLF001 - nothing public sets it without reading
            self._stream._recv_callback = self._filter  # noqa: SLF001 - same

    def close(self) -> None:
        """A cell ends: everything is as it was found.

        A filter that another pump put on top stays until that one closes; this one lets all pass meanwhile.
        """
        self._is_open = False
        while True:
            top = getattr(self._stream._recv_callback, "__self__", None)  # noqa: SLF001 - same
            if not isinstance(top, Pump) or top._is_open:  # noqa: SLF001 - another of this class
                return
            self._stream._recv_callback, top._original = top._original, None  # noqa: SLF001 - same

    def deliver(self) -> int:
        """Handle the messages that wait, without waiting for any.

        Returns
        -------
        handled
            How many there were.
        """
        if self._busy or threading.current_thread() is not threading.main_thread():
            return 0
        self._busy = True
        self._handled = 0
        was_open = self._is_open
        try:
            if not was_open:
                self.open()
            self._read()
            self._pick()
        except Exception as fault:  # what a kernel of another build raises must not reach the training
            self._kernel.log.warning("ct_notebook: messages could not be delivered: %r", fault)
        except BaseException:
            # An interrupt may have ended the reading early. The kernel is not told again of what is left.
            self._stream.io_loop.add_callback(self._stream.flush, zmq.POLLIN)
            raise
        finally:
            if not was_open:
                self.close()
            self._busy = False
        return self._handled

    def _read(self) -> None:
        # Asking costs microseconds, flushing the stream ten times that.
        if self._stream.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            self._stream.flush(zmq.POLLIN)
        if self._entrance is not None and time.monotonic() - self._looked_again_s >= LOOK_AGAIN_S:
            self._looked_again_s = time.monotonic()
            # In the thread that owns the stream. What it finds is here by the next time.
            self._entrance.io_loop.add_callback(self._entrance.flush, zmq.POLLIN)

    def _pick(self) -> None:
        """Take ours out of the queue of ipykernel 6. What stays there is looked at once."""
        if not self._queue or self._queue[-1] is self._looked_at:
            return
        entries = tuple(self._queue)
        known = next((at for at, entry in enumerate(entries) if entry is self._looked_at), -1)
        for entry in entries[known + 1 :]:
            frames = entry[2][0] if len(entry) > 2 and entry[2] else None
            if self._handles(frames, functools.partial(self._queue.remove, entry)):
                continue
            self._looked_at = entry

    def _filter(self, frames: Any) -> Any:
        """What the stream of ipykernel 7 hands messages to."""
        if self._is_open and self._is_in_cell() and self._handles(frames):
            return None
        return self._original(frames)

    def _is_in_cell(self) -> bool:
        """Whether a cell runs: a tracker may live on between two, when ipykernel 7 needs no help."""
        lock = getattr(self._kernel, "_main_asyncio_lock", None)
        return lock is None or bool(lock.locked())

    def _handles(self, frames: Any, take: Callable[[], object] = bool) -> bool:
        """Handle a message if it is one of ours. Whatever cannot be read is left to the kernel.

        `take` is called before; an interrupt in the handler leaves no message that is handled twice.
        """
        session = self._kernel.session
        try:
            ident, parts = session.feed_identities(frames, copy=False)
            # Without its content, since a signature may be looked at once only.
            kind = session.deserialize(parts, content=False, copy=False)["header"]["msg_type"]
            if kind not in _COMM_KINDS and kind != "comm_info_request":
                return False
            content = session.unpack(parts[4].bytes)
            if not self._is_ours(kind, content):
                return False
            message = session.deserialize(parts, content=True, copy=False)
        except Exception:
            return False
        take()
        self._handled += 1
        was_busy, self._busy = self._busy, True
        if was_busy:  # called by `deliver`, from within a cell, which may be a later one than that of `open`
            self._cell = self._parent()
        try:
            # In a context of its own: what the handler sets there is neither the cell's nor the event loop's.
            contextvars.copy_context().run(self._handle, kind, ident, message)
        finally:
            self._busy = was_busy
        return True

    def _handle(self, kind: str, ident: Any, message: Any) -> None:
        with self._answering(ident, message):
            if kind == "comm_info_request":
                self._tell_comms(ident, message)
            else:
                getattr(self._kernel.comm_manager, kind)(self._replies, ident, message)

    def _is_ours(self, kind: str, content: Any) -> bool:
        if kind == "comm_info_request":
            return True
        if kind == "comm_open":
            return bool(content.get("target_name") == CONTROL_TARGET)
        comm_id = content.get("comm_id")
        comm = self._kernel.comm_manager.comms.get(comm_id)
        if comm is None:
            return False
        target = getattr(comm, "target_name", None)
        if target == CONTROL_TARGET or self._wants(comm_id):
            return True
        # What a page falls back on that got no answer from the comm of the control target in time.
        data = content.get("data")
        return kind == "comm_msg" and target == WIDGET_TARGET and data.get("method") == "request_state"

    @contextlib.contextmanager
    def _answering(self, ident: Any, message: Any) -> Iterator[None]:
        """What is sent meanwhile answers `message`; afterwards it belongs to the cell again.

        A page lets go of a comm once the kernel was busy and idle for it, and takes the kernel for idle then
        unless it hears of the cell again.
        """
        kernel = self._kernel
        parent_ident, parent = self._cell
        kernel._publish_status("busy", "shell", parent=message)  # noqa: SLF001 - nothing public tells it
        kernel.set_parent(ident, message)
        try:
            yield
        except Exception:
            kernel.log.exception("ct_notebook: in the handler of a comm message")
        finally:
            kernel.set_parent(parent_ident, parent)
            kernel._publish_status("idle", "shell", parent=message)  # noqa: SLF001 - same
            kernel._publish_status("busy", "shell", parent=parent)  # noqa: SLF001 - same

    def _parent(self) -> tuple[Any, Any]:
        """The client that sent the running cell, and the request that did."""
        return asker(self._kernel), self._kernel.get_parent("shell")

    def _tell_comms(self, ident: Any, message: Any) -> None:
        """Answer which comms there are, as the kernel does after the cell."""
        target = message["content"].get("target_name")
        comms = {
            comm_id: {"target_name": comm.target_name}
            for comm_id, comm in tuple(self._kernel.comm_manager.comms.items())
            if target is None or comm.target_name == target
        }
        content = {"comms": comms, "status": "ok"}
        self._kernel.session.send(self._replies, "comm_info_reply", content, parent=message, ident=ident)
        if hasattr(self._replies, "flush"):  # a stream sends later by itself, a socket at once
            self._replies.flush(zmq.POLLOUT)
