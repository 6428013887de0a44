"""What people do to the question, with the newest JupyterLab and kernel: each has one sane outcome."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, WebSocketRoute

from support.front_ends import Opener
from support.notebook_page import NotebookPage
from support.training_cell import ASKS, STAYS, Truth, finished, queue, training_cell

pytestmark = pytest.mark.browser

ALL = [[0], [1], [2], [3], [4]]


def test_a_double_click_counts_once(notebook: NotebookPage, truth: Truth) -> None:
    panel = queue(notebook, truth, training_cell(f"{ASKS} --log-dir double"))
    panel.button("Continue").dblclick()
    finished(notebook, truth)
    assert truth.of("epoch") == ALL
    assert notebook.shown(1).count("Continuing...") == 1
    logs = [path.read_text("utf-8") for path in (notebook.server.root / "double").glob("*_err.log")]
    assert [text for text in logs if text.strip()] == []


def test_a_second_tab_shows_the_question_and_either_may_answer(
    notebook: NotebookPage, truth: Truth, opener: Opener
) -> None:
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.wait_for("Waiting for you")
    notebook.save()
    second = opener.again(notebook.name)
    other = second.panel(1)
    other.wait_for("Waiting for you")
    assert panel.button("Continue").is_visible()
    other.click("Stop")
    notebook.soon("the last cell has run", lambda: truth.has("next2"))
    assert truth.of("epoch") == [[0], [1]]
    finished(notebook, truth)
    assert second.faults == []
    second.page.close()


class Delay:
    """Holds what a page says to its kernel's widgets, until it is let go. A slow network, emulated."""

    def __init__(self) -> None:
        self.holds = False
        self._held: list[tuple[WebSocketRoute, bytes | str]] = []

    def __call__(self, page: Page) -> None:
        page.route_web_socket(lambda url: "/channels" in url, self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def pass_on(message: bytes | str) -> None:
            text = message if isinstance(message, str) else message.decode("latin-1")
            if self.holds and "comm_msg" in text:
                self._held.append((server, message))
            else:
                server.send(message)

        route.on_message(pass_on)

    @property
    def held(self) -> int:
        """How many messages are on their way."""
        return len(self._held)

    def let_go(self) -> None:
        self.holds = False
        for server, message in self._held:
            server.send(message)
        self._held.clear()


def test_a_click_that_comes_after_the_time_out_changes_nothing(opener: Opener, truth: Truth) -> None:
    delay = Delay()
    notebook = opener.new(delay)
    panel = queue(
        notebook, truth, training_cell(f"{ASKS} --confirm-timeout 1.5 --on-timeout continue", step_s=0.2)
    )
    panel.wait_for("Waiting for you")
    delay.holds = True
    panel.click("Stop")
    notebook.soon("the click is on its way", lambda: delay.held > 0)
    notebook.soon("nobody answered in time", lambda: truth.of("step")[-1][0] == 2)
    delay.let_go()
    finished(notebook, truth)
    assert truth.of("epoch") == ALL
    assert "nobody answered in time" in notebook.shown(1)
    assert notebook.faults == []
    notebook.close()


def test_a_restart_in_mid_question_leaves_a_panel_that_can_do_nothing(opener: Opener, truth: Truth) -> None:
    notebook = opener.new()
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.wait_for("Waiting for you")
    notebook.restart()
    panel.wait_for("Kernel gone")
    assert not panel.button("Continue").is_visible()
    assert panel.button("Pause").is_disabled()
    assert panel.button("Stop after this epoch").is_disabled()
    notebook.soon("the kernel is idle", lambda: notebook.is_idle)
    # (Jupyter interrupts the old kernel first, which may then come to a queued cell before it ends.)
    assert truth.of("epoch") == [[0], [1]]
    assert not truth.has("after")

    panel = queue(notebook, truth, training_cell(ASKS))
    panel.click("Continue")
    finished(notebook, truth)
    assert [fault for fault in notebook.faults if "the kernel cannot be reached" not in fault] == []
    notebook.close()


def test_a_page_that_is_closed_leaves_the_decision_to_the_stated_default(
    opener: Opener, truth: Truth
) -> None:
    notebook = opener.new()
    panel = queue(notebook, truth, training_cell(f"{ASKS} --confirm-timeout 3 --on-timeout stop"))
    panel.wait_for("Waiting for you")
    notebook.save()
    notebook.page.close()

    again = opener.again(notebook.name)
    again.soon("the last cell has run", lambda: truth.has("next2"))
    assert truth.of("epoch") == [[0], [1]]
    again.soon("the kernel is idle", lambda: again.is_idle)
    again.set_cells(["%carbontrack last"])
    again.run(0)
    again.soon("the run is shown again", lambda: again.kinds(0) == STAYS[::-1])
    again.close()


def test_the_keyboard_alone_answers(notebook: NotebookPage, truth: Truth) -> None:
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.wait_for("Waiting for you")
    notebook.cell(1).click(position={"x": 5, "y": 5})
    for _ in range(30):
        notebook.page.keyboard.press("Tab")
        if panel.button("Continue").evaluate("button => button === document.activeElement"):
            break
    notebook.page.keyboard.press("Enter")
    finished(notebook, truth)
    assert truth.of("epoch") == ALL


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_axe_finds_nothing_serious_under_the_cell(
    notebook: NotebookPage, truth: Truth, axe: str, theme: str
) -> None:
    notebook.page.evaluate(
        "async theme => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }",
        theme,
    )
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.wait_for("Waiting for you")
    notebook.page.evaluate(axe)
    found = notebook.page.evaluate("axe.run('.ct-notebook')")
    grave = [
        (each["id"], [(node["html"][:200], node["failureSummary"]) for node in each["nodes"]])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
    assert grave == []
    assert len(found["passes"]) > 5
    panel.click("Stop")
    finished(notebook, truth)
