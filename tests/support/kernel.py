"""Cells go into a real Jupyter kernel of the Python that runs the tests; all that they answer comes out."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

import ct_notebook

with warnings.catch_warnings():
    # jupyter_client 7 (Colab's) parses a date in a way that Python 3.13 warns of, once, as it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from jupyter_client.manager import KernelManager

PACKAGE = Path(ct_notebook.__file__).resolve().parents[1]
"""What the tests test: the installed package, or the one of this repository."""

old_clients_are_quiet = pytest.mark.filterwarnings(
    # The test's own side, with what Colab pins on Python 3.13: datetime.utcnow() and the like.
    "ignore::DeprecationWarning:(jupyter_client|nest_asyncio|zmq|tornado|asyncio).*"
)
"""For modules that start kernels."""

PATIENCE_S = 60.0
"""A kernel that says nothing for this long is taken for dead, so that a test fails instead of hanging."""


@dataclass
class Answer:
    """What a cell answered."""

    status: str = ""
    stdout: str = ""
    stderr: str = ""
    error: str = ""
    message: str = ""
    traceback: str = ""
    results: list[str] = field(default_factory=list)
    displays: list[dict[str, Any]] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    errors: int = 0
    in_order: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that was shown."""
        return "\n".join((self.stdout, self.stderr, self.traceback, *self.results))


class Kernel:
    """A kernel and its one client."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager = manager
        self.client = client

    def send(self, code: str, *, stop_on_error: bool = True) -> str:
        """Queue a cell and return its id, as "Run All" does with each."""
        sent: str = self.client.execute(code, stop_on_error=stop_on_error)
        return sent

    def answer(self, sent: str) -> Answer:
        """Wait for all that a queued cell answers."""
        answer = Answer()
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_S)
            if reply["parent_header"].get("msg_id") == sent:
                answer.status = reply["content"]["status"]
                break
        if answer.status == "aborted":
            return answer
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return answer
            _note(answer, kind, content)

    def run(self, code: str) -> Answer:
        """Run a cell to its end."""
        answer = self.answer(self.send(code))
        while answer.status == "aborted":
            # ipykernel 6 goes on aborting for a moment after a cell has failed.
            answer = self.answer(self.send(code))
        return answer

    def run_all(self, *cells: str) -> list[Answer]:
        """Run cells as "Run All" does: the later ones are queued while the first is running."""
        self.run("pass")  # ipykernel 6 may still be aborting after a cell that failed
        running = self.send("import time; print('running', flush=True); time.sleep(0.5)")
        self.wait_for(running, "running")
        sent = [self.send(code) for code in cells]
        assert self.answer(running).status == "ok"
        return [self.answer(each) for each in sent]

    def wait_for(self, sent: str, text: str) -> None:
        """Wait until a queued cell has printed `text`. What it printed up to there is gone."""
        seen = ""
        give_up_s = time.monotonic() + PATIENCE_S
        while text not in seen:
            try:
                message = self.client.get_iopub_msg(timeout=max(0.0, give_up_s - time.monotonic()))
            except Empty:
                failure = f"{text!r} was never printed, only {seen!r}"
                raise AssertionError(failure) from None
            if message["parent_header"].get("msg_id") == sent and message["msg_type"] == "stream":
                seen += message["content"]["text"]

    def interrupt(self) -> None:
        """Interrupt as the stop button of a front end does."""
        self.manager.interrupt_kernel()

    def value(self, expression: str) -> Any:
        """The value of an expression in the kernel, by its repr."""
        answer = self.run(f"print(repr(({expression})))")
        assert answer.status == "ok", answer.text
        return eval(answer.stdout)

    def reset(self) -> None:
        """An empty namespace, for the next test."""
        assert self.run("%reset -f").status == "ok"


def _note(answer: Answer, kind: str, content: Mapping[str, Any]) -> None:
    answer.in_order.append(kind)
    if kind == "stream":
        name = content["name"]
        setattr(answer, name, getattr(answer, name) + content["text"])
    elif kind == "error":
        answer.errors += 1
        answer.error, answer.message = content["ename"], content["evalue"]
        answer.traceback += _plain("\n".join(content["traceback"]))
    elif content.get("transient", {}).get("display_id", "").startswith("ct_notebook-"):
        answer.displays.append(content["data"])  # the panel, the line or the result of a run
    elif kind in {"execute_result", "display_data"}:
        answer.shown.append(content["data"])
        answer.results.append(content["data"].get("text/plain", ""))


def _plain(text: str) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@contextmanager
def started(
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    load: bool = True,
    before: Sequence[Path] = (),
) -> Iterator[Kernel]:
    """A kernel that works in `folder`, with the extension loaded, ended afterwards.

    Parameters
    ----------
    folder
        Where it works.
    environ
        Variables on top of those of the tests.
    load
        Whether the extension is loaded.
    before
        Folders with packages that go before those of the environment.
    """
    manager = KernelManager()
    manager.kernel_spec.argv = [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "--HistoryManager.enabled=False",
        "-f",
        "{connection_file}",
    ]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CT_NOTEBOOK_")}
    inherited["CT_NOTEBOOK_OFFLINE"] = "1"  # no test reaches beyond this machine
    paths = [inherited.get("PYTHONPATH", ""), str(PACKAGE)]
    paths = [*map(str, before), *paths]
    place = {"IPYTHONDIR": str(folder / "ipython"), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    manager.start_kernel(cwd=str(folder), env={**inherited, **place, **(environ or {})})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        kernel = Kernel(manager, client)
        if load:
            answer = kernel.run("%load_ext ct_notebook")
            assert (answer.status, answer.text.strip()) == ("ok", ""), answer.text
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
