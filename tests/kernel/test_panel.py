"""The panel in a real kernel; the test plays the page, so that every order of messages can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kernel import Kernel, old_clients_are_quiet, started
from support.page import LOOP, PlayedPage, cell, drain, shown

pytestmark = old_clients_are_quiet

LAST = "__import__('ct_notebook.tracker').tracker.last_run()"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("panel")) as kernel:
        yield kernel


@pytest.fixture
def kernel(shared: Kernel) -> Kernel:
    shared.reset()
    return shared


def error_log(folder: Path) -> str:
    return "".join(path.read_text("utf-8") for path in folder.glob("*_err.log"))


def test_a_page_sees_figures_move_while_the_cell_runs(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.finish(sent)
    drain(kernel, sent)
    running = [status for status in page.states if status["state"] == "measuring"]
    assert len({status["elapsed_s"] for status in running}) >= 4
    assert [status["seq"] for status in page.states] == sorted({status["seq"] for status in page.states})
    assert page.states[-1]["state"] == "finished"
    assert page.states[-1]["epochs_done"] == 6
    times = [row[0] for row in page.rows]
    assert times == sorted(set(times))
    # 50 W, so as many joules as half a hundred times the seconds.
    at_s, _, energy_j = page.rows[-1]
    assert energy_j == pytest.approx(50 * at_s, rel=0.01)
    assert page.states[-1]["prediction"]["after"] == 6


def test_hello_is_answered_by_the_history_while_the_cell_runs(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.listen(lambda: len(page.snapshots) >= 2, "a snapshot")
    assert page.snapshots[1]["status"]["state"] == "measuring"
    page.finish(sent)
    drain(kernel, sent)


def test_a_reloaded_page_gets_the_state_as_it_is_now(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.listen(lambda: page.status["epochs_done"] >= 2, "two epochs")
    before = len(page.snapshots)
    control = page.send_raw("comm_info_request", {"target_name": "jupyter.widget"})
    page.ask_for_state()
    page.listen(lambda: len(page.snapshots) > before, "the state")
    assert page.snapshots[-1]["status"]["epochs_done"] >= 2
    assert page.snapshots[-1]["curves"]["rows"] >= 3
    assert sent not in page.idle
    reply = kernel.client.get_shell_msg(timeout=60)
    assert reply["parent_header"]["msg_id"] == control
    assert page.comm in reply["content"]["comms"]
    page.finish(sent)
    drain(kernel, sent)


@pytest.mark.parametrize(("go_on", "epochs", "end"), [(True, 6, "finished"), (False, 2, "stopped")])
def test_an_answer_arrives_while_the_cell_waits(
    kernel: Kernel,
    tmp_path: Path,
    go_on: bool,  # noqa: FBT001 - a parameter of the test
    epochs: int,
    end: str,
) -> None:
    page, sent = shown(kernel, tmp_path, "--stop-and-confirm")
    queued = kernel.send("order = after")
    asked = page.see("waiting")
    assert asked["question"]["default"] == "continue"
    assert 0 < asked["question"]["left_s"] <= 600
    assert asked["prediction"]["co2"]
    page.answer(go_on=go_on)
    page.finish(sent, queued)
    assert drain(kernel, sent, queued) == [sent, queued]
    assert page.states[-1]["state"] == end
    assert ("Continuing..." if go_on else "Quitting...") in page.text
    assert kernel.value("order, steps") == (epochs - 1, epochs)
    assert kernel.value(f"{LAST}.paused_s") > 0


def test_a_stop_that_was_pressed_as_the_question_came_up_is_a_no(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path, "--stop-and-confirm --confirm-timeout 5 --on-timeout continue")
    page.listen(lambda: bool(page.states and page.status["question"]), "the question")
    page.say("stop")
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("steps") == 2
    assert "Quitting..." in page.text
    assert "nobody answered" not in page.text


def test_only_the_first_answer_with_the_right_token_counts(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path, "--stop-and-confirm")
    page.see("waiting")
    second = PlayedPage(kernel, "page-2")
    second.comm, second.run = page.comm, page.run
    page.answer(go_on=False, token="of another question")
    page.answer(go_on=True)
    page.answer(go_on=False)
    second.say("answer", token=page.status["question"]["token"], go_on=False)
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("steps") == 6


@pytest.mark.parametrize(("what", "epochs"), [("continue", 6), ("stop", 2)])
def test_silence_of_a_page_takes_the_default(kernel: Kernel, tmp_path: Path, what: str, epochs: int) -> None:
    page, sent = shown(kernel, tmp_path, f"--stop-and-confirm --confirm-timeout 0.4 --on-timeout {what}")
    page.finish(sent)
    drain(kernel, sent)
    assert "nobody answered in time" in page.text
    assert any("nobody answered in time" in status["message"] for status in page.states)
    assert kernel.value("steps") == epochs


def test_a_pause_holds_the_training_and_costs_no_epoch(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.listen(lambda: page.status["epochs_done"] >= 1, "an epoch")
    page.say("pause")
    paused = page.see("paused")
    page.listen(lambda: page.status["seq"] > paused["seq"] + 2, "two ticks")
    assert page.status["elapsed_s"] - paused["elapsed_s"] < 0.15
    page.say("resume")
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("steps") == 6
    run = kernel.value(f"({LAST}.paused_s, [e.duration_s for e in {LAST}.epochs])")
    assert run[0] > 0.3
    assert max(run[1]) < 0.24 + run[0]


def test_a_stop_ends_the_loop_after_the_epoch_and_can_be_taken_back(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path, body=LOOP.replace("range(4)", "range(12)"))
    page.say("stop")
    page.listen(lambda: page.status["stopping"], "the stop to be known")
    page.say("go_on")
    page.listen(lambda: not page.status["stopping"], "the stop to be taken back")
    page.listen(lambda: page.status["epochs_done"] >= 2, "two epochs")
    page.say("stop")
    page.finish(sent)
    drain(kernel, sent)
    assert 2 <= kernel.value("after") < 5
    assert kernel.value("after + 1 == steps")
    assert page.states[-1]["state"] == "stopped"
    assert kernel.value(f"{LAST}.reason") == "stopped by the user"


def test_buttons_work_in_one_long_epoch_and_in_a_cell_that_awaits(kernel: Kernel, tmp_path: Path) -> None:
    body = """
import asyncio
steps = 0
for epoch in range(6):
    for step in range(200):
        await asyncio.sleep(0.02)
        steps += 1
        if epoch or tracker.should_stop:
            break
after = epoch
"""
    page, sent = shown(kernel, tmp_path, body=body)
    page.say("pause")
    page.see("paused")
    page.say("resume")
    page.see("measuring")
    page.say("stop")
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("after") == 0
    assert kernel.value("steps") < 200


def test_an_interrupt_at_the_question_ends_the_run_and_not_the_kernel(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path, "--stop-and-confirm")
    page.see("waiting")
    kernel.interrupt()
    page.finish(sent)
    reply = kernel.client.get_shell_msg(timeout=60)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert page.states[-1]["state"] == "interrupted"
    assert kernel.value("1 + 1") == 2


def test_an_interrupt_of_a_held_training_ends_the_run(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.say("pause")
    page.see("paused")
    kernel.interrupt()
    page.finish(sent)
    assert kernel.client.get_shell_msg(timeout=60)["content"]["ename"] == "KeyboardInterrupt"
    assert kernel.value(f"{LAST}.reason") == "interrupted"


def test_a_page_that_appears_after_the_input_box_can_still_answer(kernel: Kernel, tmp_path: Path) -> None:
    page = PlayedPage(kernel)
    sent = kernel.client.execute(cell(tmp_path, "--stop-and-confirm"), allow_stdin=True)
    request = kernel.client.get_stdin_msg(timeout=60)
    assert "Continue training" in request["content"]["prompt"]
    page.listen(lambda: any(status["question"] for status in page.states), "the question")
    page.answer(go_on=False)
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("steps") == 2


NOT_MEANT: tuple[object, ...] = (
    None,
    "stop",
    {},
    {"type": "stop"},
    {"type": "dance", "run": "RUN", "page": "p", "n": 1},
    {"type": "stop", "run": "another", "page": "p", "n": 1},
    {"type": "stop", "run": "RUN", "page": "p", "n": "1"},
    {"type": "stop", "run": "RUN", "page": "p", "n": True},
    {"type": "stop", "run": "RUN", "page": "p" * 10_000, "n": 1},
    {"type": "stop", "run": "RUN", "page": "p", "n": 1, "more": 1},
    {"type": "answer", "run": "RUN", "page": "p", "n": 1},
    {"type": "stop", "run": "RUN", "page": "page-1", "n": 1},  # the number that its hello had
    {str(number): number for number in range(10_000)},
)


def test_messages_that_cannot_be_meant_are_left_out(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    for content in NOT_MEANT:
        is_ours = isinstance(content, dict) and content.get("run") == "RUN"
        page.send({**content, "run": page.run} if is_ours and isinstance(content, dict) else content)
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("steps") == 6
    assert page.states[-1]["state"] == "finished"
    log = error_log(tmp_path)
    assert log.count("A message of a page was left out") == len(NOT_MEANT), log
    assert max(map(len, log.splitlines())) < 400


def test_a_flood_of_them_fills_no_log(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    for _ in range(200):
        page.send({"type": "dance"})
    page.finish(sent)
    drain(kernel, sent)
    assert error_log(tmp_path).count("left out") == 20


def test_the_end_leaves_a_picture_and_a_table_and_closes_the_widget(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.finish(sent)
    drain(kernel, sent)
    (_, first), (kind, picture), (_, table) = page.displays
    assert "application/vnd.jupyter.widget-view+json" in first
    assert kind == "update_display_data"
    assert set(picture) == {"image/svg+xml", "image/png", "text/plain"}
    assert set(table) == {"text/html", "text/plain"}
    assert page.comm in page.closed
    assert len(page.closed) == 2  # its layout too: nothing is left to be saved with the notebook
    assert sum(len(repr(each)) for each in (picture, table)) < 150_000


def test_a_page_that_was_loaded_in_mid_run_keeps_the_panel(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.see("measuring")
    reloaded = PlayedPage(kernel, "page-2")
    reloaded.comm, reloaded.run = page.comm, page.run
    reloaded.say("hello", seq=0)
    page.finish(sent)
    drain(kernel, sent)
    assert page.closed == []
    assert page.status["state"] == "finished"
    assert "%carbontrack last" in page.status["message"]
    snapshots = len(page.snapshots)
    page.ask_for_state()
    page.listen(lambda: len(page.snapshots) > snapshots, "the state of a page that is loaded once more")
    assert page.snapshots[-1]["status"]["state"] == "finished"


def test_text_is_updated_in_place_where_nobody_can_be_asked(kernel: Kernel, tmp_path: Path) -> None:
    page = PlayedPage(kernel)
    sent = kernel.client.execute(cell(tmp_path), allow_stdin=False)
    page.finish(sent)
    drain(kernel, sent)
    assert not page.comm
    lines = [data["text/plain"] for _, data in page.displays if set(data) == {"text/plain"}]
    assert lines[0].startswith("ct_notebook: ")
    assert any("epoch" in line for line in lines[1:])
    # Wherever grams are, their kind is.
    assert all("lifecycle)" in line for line in lines if "CO2eq" in line)
    assert any("CO2eq" in line for line in lines)
    assert set(page.displays[-2][1]) == {"image/svg+xml", "image/png", "text/plain"}


def test_display_none_shows_nothing(kernel: Kernel, tmp_path: Path) -> None:
    page = PlayedPage(kernel)
    sent = kernel.send(cell(tmp_path, "--display none"))
    page.finish(sent)
    drain(kernel, sent)
    assert (page.displays, page.comm) == ([], "")
    assert "Actual consumption for 6 epoch(s):" in page.text


def test_the_class_shows_a_panel_when_asked_to(kernel: Kernel) -> None:
    page = PlayedPage(kernel)
    sent = kernel.send(
        "import time\nfrom ct_notebook.tracker import CarbonTracker\n"
        "with CarbonTracker(3, monitor_epochs=-1, display='panel', verbose=0) as mine:\n"
        "    for _ in mine.epochs(): time.sleep(0.1)\n"
    )
    page.finish(sent)
    drain(kernel, sent)
    assert page.states[-1]["state"] == "finished"
    assert page.states[-1]["epochs_done"] == 3


def test_the_first_message_is_small_enough(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path)
    page.finish(sent)
    drain(kernel, sent)
    assert 10_000 < page.opened_bytes < 100_000


def test_bars_of_tqdm_stay_whole(kernel: Kernel, tmp_path: Path) -> None:
    body = """
import sys, time
from tqdm import tqdm
for epoch in tqdm(range(6), file=sys.stderr, ascii=True, desc="epochs", mininterval=0):
    time.sleep(0.1)
"""
    page = PlayedPage(kernel)
    sent = kernel.send(cell(tmp_path, body=body))
    page.finish(sent)
    drain(kernel, sent)
    bars = [line for line in page.errors.replace("\r", "\n").splitlines() if line.strip()]
    assert all(line.startswith("epochs:") for line in bars)
    assert "6/6" in bars[-1]


def test_a_broken_installation_of_widgets_leaves_text(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run("import sys; kept = sys.modules.pop('ct_notebook.display.panel', None)")
    kernel.run("real = sys.modules['anywidget']; sys.modules['anywidget'] = None")
    page = PlayedPage(kernel)
    sent = kernel.send(cell(tmp_path))
    page.finish(sent)
    drain(kernel, sent)
    kernel.run("sys.modules['anywidget'] = real; sys.modules['ct_notebook.display.panel'] = kept")
    assert kernel.value("steps") == 6
    assert page.displays[0][1]["text/plain"].startswith("ct_notebook: ")
    assert "The panel cannot be shown" in kernel.value(f"' '.join({LAST}.notes)")
