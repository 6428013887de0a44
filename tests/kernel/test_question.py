"""The question of --stop-and-confirm in a real kernel; the test plays the front end's input box."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kernel import PATIENCE_S, Kernel, old_clients_are_quiet, started

pytestmark = old_clients_are_quiet

SIM = "--sim-cpu X --sim-cpu-tdp 100 --update-interval 0.2"
LAST = "__import__('ct_notebook.tracker').tracker.last_run()"
CELL = """%%carbontrack {sim} --epochs 6 --epochs-before-pred 2 --stop-and-confirm --log-dir {folder} {flags}
import time
for epoch in range(6):
    time.sleep(0.02)
after = epoch
print("the code after the loop ran")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("question")) as kernel:
        yield kernel


def ask(kernel: Kernel, folder: Path, flags: str = "") -> str:
    """Queue the cell as a front end with an input box does, and give its id."""
    code = CELL.format(sim=SIM, folder=folder, flags=flags)
    sent: str = kernel.client.execute(code, allow_stdin=True)
    return sent


def prompt(kernel: Kernel) -> str:
    """Wait for the input box, and give what it asks."""
    request: dict[str, Any] = kernel.client.get_stdin_msg(timeout=PATIENCE_S)
    assert request["msg_type"] == "input_request"
    return str(request["content"]["prompt"])


def outputs(folder: Path) -> tuple[str, str]:
    """The standard and the output log."""
    (output,) = folder.glob("*_carbontracker_output.log")
    standard = output.with_name(output.name.replace("_output.log", ".log"))
    return standard.read_text("utf-8"), output.read_text("utf-8")


def epochs(kernel: Kernel) -> int:
    return int(kernel.value(f"len({LAST}.complete_epochs)"))


def test_a_yes_goes_on_to_the_end(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path)
    assert "Continue training (y/n)? [continues by itself after 10 min]" in prompt(kernel)
    kernel.client.input("y")
    answer = kernel.answer(sent)
    assert "Continuing..." in answer.stdout
    assert epochs(kernel) == 6


def test_a_no_ends_the_loop_and_the_code_after_it_runs(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path)
    prompt(kernel)
    kernel.client.input("n")
    answer = kernel.answer(sent)
    assert (answer.status, kernel.value("after")) == ("ok", 1)
    text = answer.stdout
    places = [
        text.index(part)
        for part in (
            "Predicted consumption for 6",
            "Quitting...",
            "the code after the loop ran",
            "Actual consumption for 2 epoch(s):",
        )
    ]
    assert places == sorted(places)
    standard, output = outputs(tmp_path)
    assert standard.rstrip().endswith("Monitoring thread ended.")
    assert "Training was interrupted before all 6 epochs were monitored." in standard
    assert "Actual consumption for 2 epoch(s):" in output


def test_what_is_neither_is_asked_again(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path)
    prompt(kernel)
    kernel.client.input("perhaps")
    assert "Try again" in prompt(kernel)
    kernel.client.input("y")
    assert kernel.answer(sent).status == "ok"


@pytest.mark.parametrize(("what", "seen"), [("continue", 6), ("stop", 2)])
def test_silence_takes_the_stated_default(kernel: Kernel, tmp_path: Path, what: str, seen: int) -> None:
    sent = ask(kernel, tmp_path, f"--confirm-timeout 0.3 --on-timeout {what}")
    assert f"[{what}s by itself after 0.3 s]" in prompt(kernel)
    answer = kernel.answer(sent)
    assert "nobody answered in time" in answer.stdout
    assert epochs(kernel) == seen


def test_an_answer_that_comes_too_late_answers_nothing_else(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path / "first", "--confirm-timeout 0.3")
    prompt(kernel)
    assert kernel.answer(sent).status == "ok"
    kernel.client.input("n")
    sent = ask(kernel, tmp_path / "second")
    prompt(kernel)
    kernel.client.input("y")
    assert kernel.answer(sent).status == "ok"
    assert epochs(kernel) == 6


@pytest.mark.parametrize(("what", "seen"), [("continue", 6), ("stop", 2)])
def test_a_client_without_an_input_box_never_waits(
    kernel: Kernel, tmp_path: Path, what: str, seen: int
) -> None:
    code = CELL.format(sim=SIM, folder=tmp_path, flags=f"--on-headless {what}")
    answer = kernel.answer(kernel.client.execute(code, allow_stdin=False))
    assert answer.status == "ok"
    assert "nobody can be asked here" in answer.stdout
    assert "the code after the loop ran" in answer.stdout
    assert epochs(kernel) == seen
    assert "nobody can be asked here" in outputs(tmp_path)[1]


def test_the_wait_costs_no_energy_to_any_epoch(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path)
    prompt(kernel)
    kernel.client.input("y")
    assert kernel.answer(sent).status == "ok"
    paused_s = kernel.value(f"{LAST}.paused_s")
    assert paused_s > 0
    assert kernel.value(f"sum(e.paused_s for e in {LAST}.epochs)") == 0
    assert kernel.value(f"sum({LAST}.paused_j.values())") == pytest.approx(50 * paused_s, rel=0.01)


def test_an_interrupt_at_the_question_ends_the_run_and_not_the_kernel(kernel: Kernel, tmp_path: Path) -> None:
    sent = ask(kernel, tmp_path)
    prompt(kernel)
    kernel.interrupt()
    answer = kernel.answer(sent)
    assert (answer.status, answer.error, answer.errors) == ("error", "KeyboardInterrupt", 1)
    assert "Actual consumption for 2 epoch(s):" in answer.stdout
    assert "2 of 6 declared epochs were seen." in answer.stdout
    # The user's own loop, and the one frame that IPython always shows: the last.
    assert "for epoch in range(6):" in answer.traceback
    assert len(re.findall(r"ct_notebook[/\\]\w+", answer.traceback)) == 1, answer.traceback
    assert kernel.value("1 + 1") == 2
    assert outputs(tmp_path)[0].rstrip().endswith("Monitoring thread ended.")
