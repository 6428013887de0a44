"""A page of a real front end comes in; what a person does with a notebook in it goes out.

Playwright delivers what a page says only while it is asked something, so waiting is done by asking.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, sync_playwright

from support.jupyter_server import JupyterServer

PATIENCE_S = 45.0
"""What does not come about within this time is taken to come about never."""

ABOUT_TO_S = 2.0
"""How long a kernel whose last cell has ended may take to say that it is idle."""

LOOK_MS = 40

CHROMIUM_FLAGS = (
    "--no-sandbox",  # the tests may run as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's Chromium, headless; playwright's own if the machine has none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def soon(page: Page, what: str, is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until something is so.

    Raises
    ------
    AssertionError
        It never was; `what` says what was waited for.
    """
    give_up_s = time.monotonic() + patience_s

    def looks_so() -> bool:
        try:
            return is_so()
        except Error as fault:
            if "Execution context was destroyed" in str(fault):
                return False  # JupyterLab loads itself anew where another page has its workspace
            raise

    while not looks_so():
        if time.monotonic() > give_up_s:
            failure = f"It never came to this: {what}"
            raise AssertionError(failure)
        page.wait_for_timeout(LOOK_MS)


class Panel:
    """The panel under one cell, found as a person or a screen reader finds it.

    Parameters
    ----------
    cell
        Where it is looked for.
    """

    def __init__(self, cell: Locator) -> None:
        self.root = cell.locator(".ct-notebook")
        self.spoken = self.root.get_by_role("status")

    def button(self, name: str) -> Locator:
        """A button by its whole name."""
        return self.root.get_by_role("button", name=name, exact=True)

    def click(self, name: str) -> None:
        """Press a button as soon as it can be pressed."""
        self.button(name).click(timeout=PATIENCE_S * 1000)

    def shows(self, text: str) -> Locator:
        """An element with a text in sight."""
        return self.root.get_by_text(text).locator("visible=true").first

    def wait_for(self, state: str) -> None:
        """Wait until a state is shown: "Measuring", "Paused", "Waiting for you"."""
        self.root.get_by_text(state, exact=True).first.wait_for(timeout=PATIENCE_S * 1000)

    def wait(self) -> None:
        """Wait until it is there."""
        self.root.first.wait_for(timeout=PATIENCE_S * 1000)

    @property
    def is_there(self) -> bool:
        """Whether the page shows it now."""
        return bool(self.root.count())

    @property
    def text(self) -> str:
        """All its words; "" if it is not there."""
        # In one step, since it may go away between two.
        texts = self.root.evaluate_all("all => all.map(one => one.innerText)")
        return "\n".join(texts)

    @property
    def drawn(self) -> str:
        """The pictures of its curves, as data; "" if there are none."""
        drawn: list[str] = self.root.evaluate_all(
            "all => all.flatMap(one => [...one.querySelectorAll('canvas')].map(each => each.toDataURL()))"
        )
        return "".join(drawn)


class NotebookPage(ABC):
    """One notebook in one page.

    Parameters
    ----------
    page
        A page, still empty.
    server
        Where the notebook lies.
    name
        Its file, below the server's root.
    """

    def __init__(self, page: Page, server: JupyterServer, name: str) -> None:
        self.page = page
        self.server = server
        self.name = name
        self.faults: list[str] = []
        """Errors that scripts raised in the page, and whatever the panel complained of."""
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("pageerror", lambda error: self._note_fault(f"{error}\n{error.stack}"))
        page.on("console", self._hear)

    # -- what each front end has of its own ------------------------------------------------------------

    known_faults: tuple[str, ...] = ()
    """Patterns of errors that the front end has by itself."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Of the notebook, below the server's."""

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the notebook is loaded and its kernel is connected and idle."""

    @property
    @abstractmethod
    def is_loaded(self) -> bool:
        """Whether the notebook is loaded and its kernel, idle or not, is connected."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether the page takes the kernel for idle."""

    @abstractmethod
    def set_cells(self, sources: Sequence[str]) -> None:
        """Replace all cells by code cells."""

    @abstractmethod
    def run_all(self) -> None:
        """Queue all cells, without waiting for them."""

    @abstractmethod
    def run(self, at: int) -> None:
        """Queue one cell, without waiting for it."""

    @abstractmethod
    def cell(self, at: int) -> Locator:
        """One cell, in the page."""

    @abstractmethod
    def outputs(self, at: int) -> list[dict[str, Any]]:
        """Outputs of a cell, as they would be saved."""

    @abstractmethod
    def count(self, at: int) -> int | None:
        """The number in the brackets of a cell."""

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt the kernel."""

    @abstractmethod
    def restart(self) -> None:
        """Restart the kernel, and wait for it."""

    @abstractmethod
    def save(self) -> None:
        """Save, and wait for it."""

    # -- what is the same in all -----------------------------------------------------------------------

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and re.search("ct_notebook|anywidget", message.text):
            self._note_fault(message.text)

    def _note_fault(self, text: str) -> None:
        if not any(re.search(known, text) for known in self.known_faults):
            self.faults.append(text)

    def goto(self) -> None:
        """Load the page."""
        self.page.goto(self.server.url + self.address, timeout=PATIENCE_S * 1000)
        soon(self.page, f"{self.name} is loaded and its kernel connected", lambda: self.is_loaded)

    def reload(self) -> None:
        """Load the page again, as a person does who saves first."""
        self.save()
        self.page.reload()
        soon(self.page, f"{self.name} is loaded again", lambda: self.is_loaded)

    def panel(self, at: int) -> Panel:
        """The panel under a cell."""
        return Panel(self.cell(at))

    def soon(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        soon(self.page, what, is_so)

    def shown(self, at: int) -> str:
        """What a cell has printed."""
        texts = (output.get("text", "") for output in self.outputs(at) if output["output_type"] == "stream")
        return "".join(text if isinstance(text, str) else "".join(text) for text in texts)

    def kinds(self, at: int) -> list[list[str]]:
        """The MIME types of each output of a cell, streams and errors left out."""
        return [sorted(output["data"]) for output in self.outputs(at) if "data" in output]

    def errors(self, at: int) -> list[str]:
        """Names of the errors that a cell shows."""
        return [output["ename"] for output in self.outputs(at) if output["output_type"] == "error"]

    def close(self) -> None:
        """Close the page, and end the kernel."""
        self.page.close()
        self.server.end_kernel(self.name)

    def calm(self) -> None:
        """End whatever runs, so that the next test finds the kernel idle."""
        # It most often is about to be. An interrupt then may hit the kernel as it says so, and is waited for.
        with contextlib.suppress(AssertionError):
            soon(self.page, "", lambda: self.is_idle, ABOUT_TO_S)
        if not self.is_idle:
            self.interrupt()
        self.soon("the kernel is idle", lambda: self.is_idle)


class LabPage(NotebookPage):
    """JupyterLab with one document, and Notebook 7, which is built of the same parts."""

    prefix = "/doc/tree/"

    _PANEL = "const panel = window.jupyterapp?.shell?.currentWidget; "

    @property
    def address(self) -> str:
        return self.prefix + self.name

    def _ask(self, code: str, argument: object = None) -> Any:
        return self.page.evaluate("argument => { " + self._PANEL + code + " }", argument)

    @property
    def is_loaded(self) -> bool:
        return bool(
            self._ask(
                "return panel?.context?.isReady && panel.content?.widgets?.length > 0 "
                "&& panel.sessionContext.session?.kernel?.connectionStatus === 'connected' "
                "&& panel.sessionContext.session.kernel.status !== 'unknown'"
            )
        )

    @property
    def is_idle(self) -> bool:
        # Of the cells as well: what ran in a subshell makes the page say "idle" while a cell is running.
        return bool(
            self._ask(
                "return panel.sessionContext.session?.kernel?.status === 'idle' && "
                "[...panel.content.model.cells].every(cell => cell.executionState !== 'running')"
            )
        )

    @property
    def is_ready(self) -> bool:
        return self.is_loaded and self.is_idle

    def set_cells(self, sources: Sequence[str]) -> None:
        self._ask(
            "const shared = panel.content.model.sharedModel; "
            "const made = argument.map(source => "
            "({cell_type: 'code', source, metadata: {trusted: true}, outputs: [], execution_count: null})); "
            "shared.transact(() => { shared.deleteCellRange(0, shared.cells.length); "
            "shared.insertCells(0, made); }); "
            "panel.content.activeCellIndex = 0;",
            list(sources),
        )

    def _command(self, name: str) -> None:
        # Not awaited: running all cells resolves when they have all ended.
        self.page.evaluate("name => { void window.jupyterapp.commands.execute(name); }", name)

    def run_all(self) -> None:
        self._command("notebook:run-all-cells")

    def run(self, at: int) -> None:
        self._ask(
            "panel.content.activeCellIndex = argument; panel.content.deselectAll(); "
            "void window.jupyterapp.commands.execute('notebook:run-cell');",
            at,
        )

    def cell(self, at: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(at)

    def outputs(self, at: int) -> list[dict[str, Any]]:
        outputs: list[dict[str, Any]] = self._ask(
            "return panel.content.model.cells.get(argument).outputs.toJSON()", at
        )
        return outputs

    def count(self, at: int) -> int | None:
        count: int | None = self._ask("return panel.content.model.cells.get(argument).executionCount", at)
        return count

    def interrupt(self) -> None:
        self._command("notebook:interrupt-kernel")

    def restart(self) -> None:
        self.page.evaluate(
            "async () => "
            "{ await window.jupyterapp.shell.currentWidget.sessionContext.restartKernel(); return null; }"
        )

    def save(self) -> None:
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.context.save(); return null; }"
        )


class Notebook7Page(LabPage):
    """Notebook 7."""

    known_faults = (
        # Its settings are asked for once more while the page goes away.
        r"(?s)reading 'schema'.*notebook_core",
        # It runs a command of JupyterLab's that it does not have, now and then, as a page is loaded.
        r"Command 'filebrowser:open-path' not registered",
    )

    prefix = "/notebooks/"


class ClassicPage(NotebookPage):
    """The classic notebook: notebook 6.5 and nbclassic."""

    known_faults = (
        # ipywidgets 7 takes the view of a closed widget out of its cell again, when its output was replaced
        # and when the cell is deleted. Nothing is seen of it.
        "Widget is not attached",
        "Exception in event handler for delete.Cell",
        "Cannot convert undefined or null to object",
    )

    @property
    def address(self) -> str:
        return f"/notebooks/{self.name}"

    def _ask(self, code: str, argument: object = None) -> Any:
        return self.page.evaluate(
            "argument => { const nb = window.Jupyter?.notebook; " + code + " }", argument
        )

    @property
    def is_loaded(self) -> bool:
        return bool(self._ask("return nb?._fully_loaded && nb.ncells() > 0 && nb.kernel?.is_connected()"))

    @property
    def is_idle(self) -> bool:
        return bool(
            self._ask(
                "return nb.kernel.is_connected() && nb.kernel.info_reply?.status === 'ok'"
                " && !nb.kernel_busy && "
                "!nb.get_cells().some(cell => cell.input_prompt_number === '*')"
            )
        )

    @property
    def is_ready(self) -> bool:
        return self.is_loaded and self.is_idle

    def set_cells(self, sources: Sequence[str]) -> None:
        self._ask(
            "const old = nb.ncells(); "
            "argument.forEach((source, at) => "
            "{ const cell = nb.insert_cell_at_index('code', at); cell.set_text(source); }); "
            "nb.delete_cells([...Array(old).keys()].map(at => at + argument.length)); "
            "nb.select(0);",
            list(sources),
        )

    def run_all(self) -> None:
        self._ask("nb.execute_all_cells();")

    def run(self, at: int) -> None:
        self._ask("nb.execute_cells([argument]);", at)

    def cell(self, at: int) -> Locator:
        return self.page.locator("#notebook-container .cell").nth(at)

    def outputs(self, at: int) -> list[dict[str, Any]]:
        outputs: list[dict[str, Any]] = self._ask("return nb.get_cell(argument).output_area.toJSON()", at)
        return outputs

    def count(self, at: int) -> int | None:
        count = self._ask("return nb.get_cell(argument).input_prompt_number", at)
        return count if isinstance(count, int) else None

    def interrupt(self) -> None:
        self._ask("nb.kernel.interrupt();")

    def restart(self) -> None:
        restart = "window.Jupyter.notebook.kernel.restart(() => done(null))"
        self.page.evaluate(f"() => new Promise(done => {restart})")

    def save(self) -> None:
        self.page.evaluate("async () => { await window.Jupyter.notebook.save_notebook(); return null; }")
