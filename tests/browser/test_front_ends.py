"""The panel and the question in each front end, with each kind of kernel, in a real browser."""

from __future__ import annotations

import pytest

from support.front_ends import every_pair
from support.notebook_page import NotebookPage
from support.training_cell import ASKS, Truth, finished, queue, training_cell

pytestmark = pytest.mark.browser


@every_pair
def test_the_panel_moves_while_the_cell_runs_and_continue_reaches_it(
    notebook: NotebookPage, truth: Truth
) -> None:
    panel = queue(notebook, truth, training_cell(ASKS, epochs=3, steps=20))
    texts: set[str] = set()
    drawings: set[str] = set()

    def moves() -> bool:
        texts.add(panel.text)
        drawings.add(panel.drawn)
        return len(texts) >= 4 and len(drawings) >= 4

    notebook.soon("texts and curves have changed three times", moves)
    assert not truth.has("after")

    panel.wait_for("Waiting for you")
    assert truth.of("epoch") == [[0], [1]]
    panel.click("Continue")
    finished(notebook, truth)

    assert truth.of("epoch") == [[0], [1], [2]]
    assert truth.order[-3:] == ["after", "next1", "next2"]

    def numbered() -> bool:
        counts = [notebook.count(at) for at in range(4)]
        return None not in counts and counts == [(counts[0] or 0) + at for at in range(4)]

    notebook.soon("the cells are numbered in their order", numbered)


@every_pair
def test_stop_ends_the_loop_and_the_code_after_it_runs(notebook: NotebookPage, truth: Truth) -> None:
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.click("Stop")
    finished(notebook, truth)
    assert truth.of("epoch") == [[0], [1]]
    assert truth.order[-4:] == ["epoch", "after", "next1", "next2"]


@every_pair
def test_pause_holds_the_training_and_resume_lets_it_go_on(notebook: NotebookPage, truth: Truth) -> None:
    panel = queue(notebook, truth, training_cell(epochs=3, steps=40))
    panel.click("Pause")
    panel.wait_for("Paused")
    held = truth.lines
    notebook.page.wait_for_timeout(600)  # twelve steps would be made by now
    assert truth.lines == held
    panel.click("Resume")
    finished(notebook, truth)
    assert truth.of("epoch") == [[0], [1], [2]]


@every_pair
def test_a_reload_in_mid_run_brings_the_panel_back_and_it_can_be_clicked(
    notebook: NotebookPage, truth: Truth
) -> None:
    panel = queue(notebook, truth, training_cell("--epochs-before-pred 1", epochs=200, steps=4))
    panel.wait_for("Measuring")
    notebook.reload()
    panel.wait_for("Measuring")
    assert not truth.has("after")
    done = len(truth.of("epoch"))
    before = panel.text
    notebook.soon("its texts go on changing", lambda: panel.text not in {before, ""})
    panel.click("Stop after this epoch")
    notebook.soon("the last cell has run", lambda: truth.has("next2"))
    assert done < len(truth.of("epoch")) < 200
    assert truth.order[-4:] == ["epoch", "after", "next1", "next2"]
    # The picture of the result does not reach a page that was loaded in mid-run.
    panel.wait_for("Stopped")
    assert panel.shows("%carbontrack last").is_visible()


@every_pair
def test_an_interrupt_during_the_question_ends_the_cell_and_it_can_run_again(
    notebook: NotebookPage, truth: Truth
) -> None:
    panel = queue(notebook, truth, training_cell(ASKS))
    panel.wait_for("Waiting for you")
    notebook.interrupt()
    notebook.soon("the cell shows the interrupt", lambda: notebook.errors(1) == ["KeyboardInterrupt"])
    notebook.soon("the panel is gone", lambda: not panel.is_there)
    assert truth.order[-1] == "epoch"

    notebook.calm()
    notebook.run(1)
    panel.click("Continue")
    notebook.soon("the code after the loop has run", lambda: truth.has("after"))
    assert [epoch for (epoch,) in truth.of("epoch")] == [0, 1, 0, 1, 2, 3, 4]
    notebook.soon("the cell is done", lambda: notebook.is_idle)
    assert notebook.errors(1) == []
    assert notebook.kinds(1)[0] == ["image/png", "image/svg+xml", "text/plain"]
    notebook.run(2)
    notebook.soon("the next cell has run", lambda: truth.has("next1"))
