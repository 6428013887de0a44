"""Comm messages that wait in a kernel's shell channel come in, while a cell runs; their handlers are called.

A kernel reads its shell channel between cells. What a page sends to a widget waits there, behind the cells
that are queued. This takes the messages of our own comms out, in the main thread, from within the cell, and
leaves everything else where it is, in its order. ipykernel offers nothing public for it, so attributes that
are private to it are used, looked for one by one: where one is missing, there is no pump, and a question is
put in another way.

ipykernel 6 puts messages into `msg_queue`, from which one coroutine takes them, the next when the cell is
over. ipykernel 7 reads its shell channel in a thread and hands messages to a stream of the main thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from .parent import asker

CONTROL_TARGET = "jupyter.widget.control"
"""A page that was reloaded asks on a comm of this target for the state of all widgets."""

_COMM_KINDS = frozenset({"comm_open", "comm_msg", "comm_close"})


class Pump:
    """Delivers the messages of some comms to a kernel whose main thread is inside a cell.

    Everything but `of` is for the main thread; elsewhere, and from within a handler, `deliver` does nothing.
    Messages of other widgets wait for the end of the cell, as they would without it.

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
        manager: Any = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
        pair: Any = getattr(manager, "_shell_channel_to_main", None)
        # ipykernel 7.0 has a queue still, but nothing comes into it.
        queue: Any = getattr(kernel, "msg_queue", None) if pair is None else None
        self._queue: Any = getattr(queue, "_queue", None)
        self._stream = pair.to_stream if pair is not None else kernel.shell_stream
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
        if self._queue is None and self._original is None:
            self._original = self._stream._recv_callback  # noqa: SLF001 - nothing public sets it without reading
            self._stream._recv_callback = self._filter  # noqa: SLF001 - same

    def close(self) -> None:
        """A cell ends: everything is as it was found."""
        if self._original is not None:
            self._stream._recv_callback, self._original = self._original, None  # noqa: SLF001 - same

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
        try:
            if self._queue is None:
                with self._opened():
                    self._read()
            else:
                self._read()
                self._pick()
        except Exception as fault:  # what a kernel of another build raises must not reach the training
            self._kernel.log.warning("ct_notebook: messages could not be delivered: %r", fault)
        finally:
            self._busy = False
        return self._handled

    def _read(self) -> None:
        # Asking costs microseconds, flushing the stream ten times that.
        if self._stream.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            self._stream.flush(zmq.POLLIN)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        was_open = self._original is not None
        self.open()
        try:
            yield
        finally:
            if not was_open:
                self.close()

    def _pick(self) -> None:
        """Take ours out of the queue of ipykernel 6."""
        for entry in tuple(self._queue):
            frames = entry[2][0] if len(entry) > 2 and entry[2] else None
            if self._handles(frames):
                with contextlib.suppress(ValueError):
                    self._queue.remove(entry)

    def _filter(self, frames: Any) -> Any:
        """What the stream of ipykernel 7 hands messages to."""
        return None if self._handles(frames) else self._original(frames)

    def _handles(self, frames: Any) -> bool:
        """Handle a message if it is one of ours. Whatever cannot be read is left to the kernel."""
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
        self._handled += 1
        with self._answering(ident, message):
            if kind == "comm_info_request":
                self._tell_comms(ident, message)
            else:
                getattr(self._kernel.comm_manager, kind)(self._replies, ident, message)
        return True

    def _is_ours(self, kind: str, content: Any) -> bool:
        if kind == "comm_info_request":
            return True
        if kind == "comm_open":
            return bool(content.get("target_name") == CONTROL_TARGET)
        comm_id = content.get("comm_id")
        comm = self._kernel.comm_manager.comms.get(comm_id)
        return comm is not None and (
            self._wants(comm_id) or getattr(comm, "target_name", None) == CONTROL_TARGET
        )

    @contextlib.contextmanager
    def _answering(self, ident: Any, message: Any) -> Iterator[None]:
        """What is sent meanwhile answers `message`; afterwards it belongs to the cell again.

        A page lets go of a comm once the kernel was busy and idle for it, and takes the kernel for idle then
        unless it hears of the cell again.
        """
        kernel = self._kernel
        parent_ident, parent = self._parent()
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
        if self._queue is not None:
            self._stream.flush(zmq.POLLOUT)
