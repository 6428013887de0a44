"""A run under way, with the newest JupyterLab and kernel: long epochs, cells that await, other output."""

from __future__ import annotations

import pytest

from support.notebook_page import NotebookPage
from support.training_cell import Truth, finished, queue, training_cell

pytestmark = pytest.mark.browser


def test_a_stop_in_a_long_epoch_is_taken_at_once_and_can_be_taken_back(
    notebook: NotebookPage, truth: Truth
) -> None:
    panel = queue(notebook, truth, training_cell(epochs=3, steps=80))
    panel.click("Stop after this epoch")
    panel.button("Keep going").wait_for()
    assert not truth.has("epoch")
    panel.click("Keep going")
    notebook.soon("the second epoch has begun", lambda: truth.of("step")[-1][0] == 1)
    panel.click("Stop after this epoch")
    finished(notebook, truth)
    assert truth.of("epoch") == [[0], [1]]
    assert len(truth.of("step")) == 160


def test_a_cell_that_awaits_can_be_paused_and_stopped(notebook: NotebookPage, truth: Truth) -> None:
    cell = training_cell(epochs=50, steps=4, wait="await __import__('asyncio').sleep(0.05)")
    panel = queue(notebook, truth, cell)
    panel.click("Pause")
    panel.wait_for("Paused")
    held = truth.lines
    notebook.page.wait_for_timeout(400)  # eight steps would be made by now
    assert truth.lines == held
    panel.click("Resume")
    panel.wait_for("Measuring")
    panel.click("Stop after this epoch")
    finished(notebook, truth)
    assert truth.order[-4:] == ["epoch", "after", "next1", "next2"]
    assert len(truth.of("epoch")) < 50


@pytest.mark.parametrize("bar", ["tqdm", "tqdm.auto"])
def test_a_progress_bar_in_the_same_cell_stays_whole(notebook: NotebookPage, truth: Truth, bar: str) -> None:
    training = training_cell(epochs=5).replace("range(5)", "tqdm(range(5), desc='bar')")
    training = training.replace("\n", f"\nfrom {bar} import tqdm\n", 1)
    panel = queue(notebook, truth, training)
    panel.wait_for("Measuring")
    notebook.soon("the last cell has run", lambda: truth.has("next2"))
    notebook.soon("the panel is gone", lambda: not panel.is_there)
    assert truth.of("epoch") == [[0], [1], [2], [3], [4]]
    text = notebook.cell(1).inner_text()
    lines = [line for line in text.splitlines() if "bar:" in line]
    assert len(lines) == 1, lines
    notebook.soon("the bar is full", lambda: "5/5" in notebook.cell(1).inner_text())
    assert "100%" in notebook.cell(1).inner_text()


def test_the_focus_stays_where_it_is_while_figures_change(notebook: NotebookPage, truth: Truth) -> None:
    panel = queue(notebook, truth, training_cell(epochs=3, steps=20))
    panel.button("Pause").focus()
    seen = {panel.text}

    def changed() -> bool:
        seen.add(panel.text)
        return len(seen) >= 4

    notebook.soon("the figures have changed three times", changed)
    assert panel.button("Pause").evaluate("button => button === document.activeElement")
    notebook.page.keyboard.press("Enter")
    panel.wait_for("Paused")
    assert panel.button("Resume").evaluate("button => button === document.activeElement")
    notebook.page.keyboard.press("Enter")
    finished(notebook, truth)
