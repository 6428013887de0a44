"""The panel of a page, played by a test over the real protocol of a real kernel."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any

from support.kernel import PATIENCE_S, Kernel

MODEL = "AnyModel"

SIM = "--sim-cpu X --sim-cpu-tdp 100 --update-interval 0.1"
"""A simulated CPU of 50 W, so that there are figures on every machine."""

LOOP = """
import time
for epoch in range(6):
    for step in range(4):
        time.sleep(0.06)
    steps = globals().get("steps", 0) + 1
after = epoch
"""


class PlayedPage:
    """Hears what a kernel sends to a panel, and sends what its buttons would. No browser: an emulation.

    Parameters
    ----------
    kernel
        The kernel. Nobody else may read its messages meanwhile.
    name
        Of the page; each tab has one.
    """

    def __init__(self, kernel: Kernel, name: str = "page-1") -> None:
        self._kernel = kernel
        self._name = name
        self._sent = 0
        self.comm = ""
        self.run = ""
        self.states: list[dict[str, Any]] = []
        self.snapshots: list[dict[str, Any]] = []
        self.rows: list[tuple[float, ...]] = []
        self.text = self.errors = ""
        self.displays: list[tuple[str, dict[str, Any]]] = []
        self.closed: list[str] = []
        self.idle: list[str] = []
        self.order: list[str] = []
        self.other: list[dict[str, Any]] = []
        self.opened_bytes = 0

    # -- hearing ---------------------------------------------------------------------------------------

    def listen(self, until: Callable[[], bool], what: str) -> None:
        """Take in what the kernel sends until something is so."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not until():
            with contextlib.suppress(Empty):
                self._take(self._kernel.client.get_iopub_msg(timeout=0.2))
            if time.monotonic() > give_up_s:
                failure = (
                    f"{what} did not come about: {self.order[-30:]} {self.states[-1:]} {self.text[-500:]}"
                )
                raise AssertionError(failure)

    def see(self, state: str) -> dict[str, Any]:
        """Wait for a state, and give the status that has it."""
        start = len(self.states)
        self.listen(lambda: any(each["state"] == state for each in self.states[start:]), f"state {state}")
        return next(each for each in self.states[start:] if each["state"] == state)

    def finish(self, *cells: str) -> None:
        """Wait until some cells are done."""
        self.listen(lambda: set(cells) <= set(self.idle), "the end of the cells")

    @property
    def status(self) -> dict[str, Any]:
        """The newest status."""
        return self.states[-1]

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open" and content["data"]["state"].get("_model_name") == MODEL:
            self.comm = content["comm_id"]
            snapshot = content["data"]["state"]["snapshot"]
            self.run = snapshot["facts"]["run"]
            self.snapshots.append(snapshot)
            self.states.append(snapshot["status"])
            self.opened_bytes = len(repr(content))
        elif kind == "comm_msg" and content["comm_id"] == self.comm:
            self._hear(content["data"], message["buffers"])
        elif kind == "comm_msg":
            self.other.append(content)
        elif kind == "comm_close":
            self.closed.append(content["comm_id"])
        elif kind == "stream":
            self.text += content["text"]
            self.errors += content["text"] if content["name"] == "stderr" else ""
        elif kind in {"display_data", "update_display_data"}:
            self.displays.append((kind, content["data"]))
        elif kind == "status" and content["execution_state"] == "idle":
            self.idle.append(message["parent_header"].get("msg_id", ""))
        self.order.append(kind)

    def _hear(self, data: dict[str, Any], buffers: list[Any]) -> None:
        if data["method"] == "update":
            self.snapshots.append(data["state"]["snapshot"])
            return
        content = data["content"]
        assert content["run"] == self.run
        if content["type"] == "snapshot":
            self.snapshots.append(content["snapshot"])
            self.states.append(content["snapshot"]["status"])
            return
        assert content["type"] == "tick"
        self.states.append(content["status"])
        columns = 2 + len(self.snapshots[-1]["facts"]["devices"])
        values = struct.unpack(f"<{len(buffers[0]) // 4}f", bytes(buffers[0]))
        self.rows += [values[at : at + columns] for at in range(0, len(values), columns)]

    # -- clicking --------------------------------------------------------------------------------------

    def say(self, kind: str, **more: Any) -> None:
        """Send what the page would. Does not wait."""
        self._sent += 1
        self.send({"type": kind, "run": self.run, "page": self._name, "n": self._sent, **more})

    def send(self, content: Any) -> None:
        """Send any content to the panel."""
        self.send_raw("comm_msg", {"comm_id": self.comm, "data": {"method": "custom", "content": content}})

    def ask_for_state(self) -> None:
        """Ask for the state of the widget, as a page that was reloaded does."""
        self.send_raw("comm_msg", {"comm_id": self.comm, "data": {"method": "request_state"}})

    def send_raw(self, kind: str, content: dict[str, Any]) -> str:
        """Send a message on the shell channel and return its id."""
        client = self._kernel.client
        message = client.session.msg(kind, content)
        client.shell_channel.send(message)
        sent: str = message["header"]["msg_id"]
        return sent

    def answer(self, *, go_on: bool, token: str | None = None) -> None:
        """Answer the question that is open."""
        question = self.status["question"]
        self.say("answer", token=question["token"] if token is None else token, go_on=go_on)


def cell(folder: Path, flags: str = "", body: str = LOOP) -> str:
    return f"%%carbontrack {SIM} --epochs 6 --epochs-before-pred 2 --log-dir {folder} {flags}{body}"


def shown(kernel: Kernel, folder: Path, flags: str = "", body: str = LOOP) -> tuple[PlayedPage, str]:
    """Run a cell and show its panel."""
    page = PlayedPage(kernel)
    sent = kernel.send(cell(folder, flags, body))
    page.listen(lambda: bool(page.run), "the panel")
    page.say("hello", seq=0)
    return page, sent


def drain(kernel: Kernel, *sent: str) -> list[str]:
    """Take the replies of cells off the shell channel, and give their order."""
    order: list[str] = []
    while len(order) < len(sent):
        reply = kernel.client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] in sent:
            order.append(reply["parent_header"]["msg_id"])
            assert reply["content"]["status"] == "ok", reply["content"]
    return order
