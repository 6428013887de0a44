"""A tracked cell in a real kernel: what IPython does stays as it is, and the epochs are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kernel import Kernel, old_clients_are_quiet, started

pytestmark = old_clients_are_quiet

SIM = "--sim-cpu X --sim-cpu-tdp 100 --update-interval 0.2"
HEAD = f"%%carbontrack {SIM} --no-log"
LAST = "__import__('ct_notebook.tracker').tracker.last_run()"
THREADS = "[t.name for t in __import__('threading').enumerate() if 'ct_notebook' in t.name]"
SAMPLERS = f"[name for name in {THREADS} if 'sampler' in name]"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


@pytest.fixture
def kernel(shared: Kernel) -> Iterator[Kernel]:
    shared.reset()
    yield shared
    # Whatever a test did: no run is left open, and later cells work.
    assert shared.value(SAMPLERS) == []
    assert shared.value("1 + 1") == 2


def epochs(kernel: Kernel) -> tuple[int, int]:
    """Complete and partial epochs of the newest run."""
    found: tuple[int, int] = kernel.value(
        f"(lambda run: (len(run.complete_epochs), sum(e.partial for e in run.epochs)))({LAST})"
    )
    return found


@pytest.mark.parametrize(
    "body",
    [
        "for epoch in range(4): pass",
        "n = 4\nfor epoch in range(n): pass",
        "for i, epoch in enumerate(range(4)): pass",
        "for a, b in zip(range(4), range(9)): pass",
        "for epoch in [1, 2, 3, 4]: pass",
        "for epoch in (e for e in range(4)): pass",
        "from tqdm import tqdm\nfor epoch in tqdm(range(4)): pass",
        "from tqdm import tqdm\nfor i, epoch in enumerate(tqdm(range(4))): pass",
        "for i in range(3): pass\nfor epoch in range(4): pass\nfor i in range(6): pass",
        "import contextlib\nwith contextlib.suppress(OSError):\n    for epoch in range(4): pass",
        "if True:\n    for epoch in range(4): pass",
        "try:\n    for epoch in range(4): pass\nexcept OSError:\n    pass",
        "for epoch in range(9):\n    if epoch == 3: break",
        "for epoch in range(4):\n    continue\nelse:\n    done = True\nassert done",
        "import asyncio\nfor epoch in range(4): await asyncio.sleep(0.001)",
        "for epoch in range(4):\n    %time pass\n    !true",
        "def train():\n    for epoch in range(4): pass\ntrain()",
        "def train():\n    for epoch in range(4): yield epoch\nfor i in train(): pass",
        "from __future__ import annotations\nfor epoch in range(4): pass",
    ],
)
def test_the_epoch_loop_is_found(kernel: Kernel, body: str) -> None:
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}")
    assert answer.status == "ok", answer.text
    assert epochs(kernel) == (4, 0)
    assert answer.stdout.count("ct_notebook: epoch loop found in line") == 1


def test_the_line_of_the_loop_is_that_of_the_cell(kernel: Kernel) -> None:
    body = "# a comment\n\nfor epoch in range(2): pass"
    for head, line in ((HEAD, 4), (f"\n{HEAD}", 5), (f"%%time\n{HEAD}", 5), (f"{HEAD}\n%%time", 5)):
        assert f"found in line {line} (2 epochs)." in kernel.run(f"{head}\n{body}").stdout


def test_an_error_is_shown_once_with_its_line_and_no_frame_of_ours(kernel: Kernel) -> None:
    body = (
        "def loss(x):\n    return 1 / x\nfor epoch in range(4):\n    for batch in range(3):\n        y = 1\n"
    )
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}        loss(2 - epoch)")
    assert (answer.status, answer.error, answer.errors) == ("error", "ZeroDivisionError", 1)
    assert "----> 7         loss(2 - epoch)" in answer.traceback
    assert "----> 3     return 1 / x" in answer.traceback
    assert "loops.py" not in answer.traceback
    assert "magics.py" not in answer.traceback
    assert epochs(kernel) == (2, 1)
    assert kernel.value("epoch, batch, y") == (2, 0, 1)


def test_an_iterator_that_fails_shows_the_lines_of_the_user_alone(kernel: Kernel) -> None:
    body = (
        "def data():\n"
        "    yield 1\n"
        "    raise OSError('gone')\n"
        "for epoch in range(2):\n"
        "    for batch in data():\n"
        "        pass"
    )
    answer = kernel.run(f"{HEAD} --epochs 2\n{body}")
    assert "----> 6     for batch in data():" in answer.traceback
    assert "----> 4     raise OSError('gone')" in answer.traceback
    assert "loops.py" not in answer.traceback


def test_run_all_stops_at_an_error(kernel: Kernel) -> None:
    for first in (f"{HEAD}\nfor epoch in range(3): 1 / 0", "%%carbontrack --no-such-flag\npass"):
        assert [answer.status for answer in kernel.run_all(first, "later = 1")] == ["error", "aborted"]


def test_the_last_value_is_shown_unless_a_semicolon_ends_it(kernel: Kernel) -> None:
    loop = "for epoch in range(3): pass"
    assert kernel.run(f"{HEAD}\n{loop}\nepoch + 40").results == ["42"]
    assert kernel.value("_") == 42
    assert kernel.run(f"{HEAD}\n{loop}\nepoch + 40;").results == []
    assert kernel.run(f"{HEAD}\n{loop}").results == []


def test_history_holds_the_cell_as_it_was_typed(kernel: Kernel) -> None:
    kernel.run(f"{HEAD}\nfor epoch in range(3): pass")
    assert kernel.value("_i").startswith("%%carbontrack")


@pytest.mark.parametrize("head", ["%%time\n{}", "{}\n%%time", "%%capture out\n{}", "{}\n%%capture out"])
def test_other_cell_magics_go_with_it(kernel: Kernel, head: str) -> None:
    answer = kernel.run(f"{head.format(HEAD + ' --epochs 4')}\nfor epoch in range(4): print('turn', epoch)")
    assert answer.status == "ok", answer.text
    assert epochs(kernel) == (4, 0)
    shown = answer.stdout if "time" in head else kernel.value("out.stdout")
    assert [line for line in shown.splitlines() if line.startswith("turn")] == [f"turn {i}" for i in range(4)]
    assert ("Wall time" in shown) == ("time" in head)


def test_several_cell_magics_below_go_with_it(kernel: Kernel) -> None:
    kernel.run(f"{HEAD} --epochs 4\n%%capture out\n%%time\nfor epoch in range(4): pass")
    assert epochs(kernel) == (4, 0)
    assert "Wall time" in kernel.value("out.stdout")


def test_a_cell_of_another_language_is_one_epoch(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD}\n%%bash\necho from bash")
    assert "from bash" in answer.stdout
    assert epochs(kernel) == (1, 0)


def test_a_cell_that_cannot_be_parsed_begins_no_run(kernel: Kernel) -> None:
    before = kernel.value(f"getattr({LAST}, 'run_id', None)")
    answer = kernel.run(f"{HEAD}\nfor epoch in range(3) print(epoch)")
    assert (answer.status, answer.error, answer.stdout) == ("error", "SyntaxError", "")
    assert kernel.value(f"getattr({LAST}, 'run_id', None)") == before


def test_a_cell_that_cannot_be_compiled_closes_its_run(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD}\nx = 1\nreturn x")
    assert (answer.status, answer.error) == ("error", "SyntaxError")
    assert "could not be read" not in answer.stdout
    assert kernel.value(f"{LAST}.closed") is True


def test_a_cell_that_no_longer_compiles_runs_as_it_was_written(kernel: Kernel) -> None:
    kernel.run(
        "import ast\nfrom ct_notebook import rewrite\nkept = rewrite._together\n"
        "rewrite._together = lambda *statements: ast.Return()"
    )
    answer = kernel.run(f"{HEAD} --epochs 4\nfor epoch in range(4): pass\nepoch")
    kernel.run("rewrite._together = kept")
    assert (answer.status, answer.results) == ("ok", ["3"]), answer.text
    assert answer.stdout.count("the cell could not be read for its epoch loop") == 1
    assert epochs(kernel) == (1, 0)


def test_an_interrupt_ends_the_run_with_its_figures(kernel: Kernel) -> None:
    body = (
        "import time\n"
        "for epoch in range(10):\n"
        "    print('turn', epoch, flush=True)\n"
        "    if epoch == 3: time.sleep(60)"
    )
    sent = kernel.send(f"{HEAD} --epochs 10\n{body}")
    kernel.wait_for(sent, "turn 3")
    kernel.interrupt()
    answer = kernel.answer(sent)
    assert (answer.status, answer.error) == ("error", "KeyboardInterrupt")
    assert epochs(kernel) == (3, 1)
    assert kernel.value(f"{LAST}.early_stop, {LAST}.reason") == (True, "interrupted")
    assert "Actual consumption for 3 epoch(s)" in answer.stdout
    assert "3 of 10 declared epochs were seen." in answer.stdout


def test_an_interrupt_of_a_cell_with_await_ends_the_run(kernel: Kernel) -> None:
    body = (
        "import asyncio\n"
        "for epoch in range(10):\n"
        "    print('turn', epoch, flush=True)\n"
        "    await asyncio.sleep(2 * epoch)"  # ipykernel looks at an interrupt when a sleep is over
    )
    sent = kernel.send(f"{HEAD} --epochs 10\n{body}")
    kernel.wait_for(sent, "turn 1")
    kernel.interrupt()
    answer = kernel.answer(sent)
    assert answer.status == "error"
    assert epochs(kernel) == (1, 1)


def test_an_interrupt_that_the_cell_catches_cuts_the_epoch(kernel: Kernel) -> None:
    body = (
        "import time\ntry:\n    for epoch in range(10):\n        print('turn', epoch, flush=True)\n"
        "        if epoch == 2: time.sleep(60)\nexcept KeyboardInterrupt:\n    kept = epoch"
    )
    sent = kernel.send(f"{HEAD} --epochs 10\n{body}")
    kernel.wait_for(sent, "turn 2")
    kernel.interrupt()
    assert kernel.answer(sent).status == "ok"
    assert epochs(kernel) == (2, 1)
    assert kernel.value("kept") == 2


def test_an_epoch_that_was_cut_short_was_not_seen(kernel: Kernel) -> None:
    body = "try:\n    for epoch in range(10):\n        1 / (2 - epoch)\nexcept ZeroDivisionError:\n    pass"
    answer = kernel.run(f"{HEAD} --epochs 10\n{body}")
    assert epochs(kernel) == (2, 1)
    assert "ct_notebook: 2 of 10 declared epochs were seen." in answer.stdout


def test_a_second_interrupt_while_the_first_is_shown_ends_the_run_too(kernel: Kernel) -> None:
    body = (
        "shell = get_ipython()\n"
        "places = ['run_code', 'run_ast_nodes']\n"  # IPython shows a traceback in each, and goes on after one
        "def interrupted(*_, **__):\n"
        "    places.pop()\n"
        "    if not places: del shell.showtraceback\n"
        "    raise KeyboardInterrupt\n"
        "shell.showtraceback = interrupted\n"
        "for epoch in range(4):\n"
        "    if epoch == 2: raise KeyboardInterrupt"
    )
    assert kernel.run(f"{HEAD} --epochs 4\n{body}").status == "error"
    assert kernel.value(f"{LAST}.reason, {SAMPLERS}") == ("interrupted", [])
    assert epochs(kernel) == (2, 1)
    answer = kernel.run(f"{HEAD} --epochs 4\nfor epoch in range(4): pass")
    assert "epoch loop found" in answer.stdout
    assert epochs(kernel) == (4, 0)


def test_an_interrupt_that_keeps_the_hooks_from_running_ends_the_run_at_the_next_cell(kernel: Kernel) -> None:
    kernel.run(
        "shell = get_ipython()\n"
        "trigger = shell.events.trigger\n"
        "def interrupted(event, *arguments):\n"
        "    if event == 'post_execute':\n"
        "        shell.events.trigger = trigger\n"
        "        raise KeyboardInterrupt\n"
        "    trigger(event, *arguments)\n"
        f"cell = '{HEAD} --epochs 4\\nfor epoch in range(4): shell.events.trigger = interrupted'\n"
    )
    answer = kernel.run(
        "try:\n    shell.run_cell(cell)\nexcept KeyboardInterrupt:\n    pass\n"
        f"open_still = len({SAMPLERS})\n"
        f"result = shell.run_cell({f'reason = {LAST}.reason'!r})"
    )
    assert answer.status == "ok", answer.text
    assert kernel.value("open_still, reason") == (1, "interrupted")
    assert epochs(kernel) == (4, 0)


def test_an_interrupt_while_the_run_is_closed_leaves_nothing_open(kernel: Kernel) -> None:
    body = (
        "import builtins\n"
        "kept = print\n"
        "def interrupted(*_):\n"
        "    builtins.print = kept\n"
        "    raise KeyboardInterrupt\n"
        "for epoch in range(4): pass\n"
        "builtins.print = interrupted"
    )
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}")
    assert answer.status == "ok"
    assert "Error in callback" not in answer.text
    assert kernel.value(f"{LAST}.closed, {LAST}.reason, {SAMPLERS}") == (True, "finished", [])
    assert epochs(kernel) == (4, 0)


def test_a_print_that_raises_costs_no_figures_and_no_kernel(kernel: Kernel) -> None:
    body = (
        "import builtins\n"
        "kept = print\n"
        "def broken(*_, **__): raise RuntimeError('patched')\n"
        "builtins.print = broken\n"
        "for epoch in range(4): pass"
    )
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}")
    assert kernel.run("builtins.print = kept").status == "ok"
    assert answer.status == "ok"
    assert "epoch loop found in line 6 (4 epochs)." in answer.stdout
    assert epochs(kernel) == (4, 0)


def test_a_silent_cell_ends_its_run(kernel: Kernel) -> None:
    code = f"get_ipython().run_cell('{HEAD} --epochs 4\\nfor epoch in range(4): pass', silent=True)\n"
    answer = kernel.run(f"{code}open_still = {THREADS}")
    assert answer.status == "ok", answer.text
    assert kernel.value(f"open_still, {LAST}.reason") == ([], "finished")
    assert epochs(kernel) == (4, 0)


def test_another_tracker_of_the_cell_is_told(kernel: Kernel) -> None:
    body = (
        "from ct_notebook.tracker import CarbonTracker\n"
        "for epoch in range(4):\n"
        "    if epoch == 2: CarbonTracker(1, sim_cpu='X', sim_cpu_tdp=5, verbose=0).start().stop()"
    )
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}")
    assert answer.stdout.count("ct_notebook: Another CarbonTracker began in this cell") == 1


def test_five_runs_of_a_cell_are_five_closed_runs_with_one_sampler(kernel: Kernel) -> None:
    cell = f"{HEAD} --epochs 3\nfor epoch in range(3): samplers = {SAMPLERS}"
    ids = set()
    for _ in range(5):
        answer = kernel.run(cell)
        assert answer.stdout.count("Finished monitoring.") == 1
        assert answer.stdout.count("epoch loop found") == 1
        assert len(kernel.value("samplers")) == 1
        ids.add(kernel.value(f"{LAST}.run_id"))
    assert len(ids) == 5


def test_reset_within_the_cell_disturbs_nothing(kernel: Kernel) -> None:
    body = "for epoch in range(4):\n    for batch in range(3): get_ipython().run_line_magic('reset', '-f')"
    answer = kernel.run(f"{HEAD} --epochs 4\n{body}")
    assert answer.status == "ok", answer.text
    assert epochs(kernel) == (4, 0)


def test_the_source_of_a_function_is_what_was_written(kernel: Kernel) -> None:
    source = "def train():\n    for epoch in range(3):\n        pass\n"
    kernel.run(f"{HEAD}\n{source}train()")
    assert kernel.value("__import__('inspect').getsource(train)") == source


def test_a_function_of_a_tracked_cell_works_in_later_cells(kernel: Kernel) -> None:
    kernel.run(f"{HEAD}\ndef train():\n    for epoch in range(3): seen.append(epoch)\nseen = []\ntrain()")
    assert kernel.run("train()").status == "ok"
    assert kernel.value("seen") == [0, 1, 2] * 2


def test_marks_by_hand_win_over_the_loop(kernel: Kernel) -> None:
    body = (
        "for i in range(4):\n"
        "    for half in range(2):\n"
        "        tracker.epoch_start()\n"
        "        tracker.epoch_end()"
    )
    answer = kernel.run(f"{HEAD} --epochs 8\n{body}")
    assert epochs(kernel) == (8, 0)
    assert "ct_notebook: epochs were marked by hand (8)." in answer.stdout


def test_marks_by_hand_in_a_function_of_an_earlier_cell_win_over_the_loop(kernel: Kernel) -> None:
    kernel.run("def train(tracker):\n    tracker.epoch_start()\n    tracker.epoch_end()")
    answer = kernel.run(f"{HEAD} --epochs 4\nfor epoch in range(4): train(tracker)")
    assert epochs(kernel) == (4, 0)
    assert "ct_notebook: epochs were marked by hand (4), so the loop in line 2 was not" in answer.stdout


def test_an_epoch_by_hand_after_the_loop_is_one_more(kernel: Kernel) -> None:
    kernel.run("def more(tracker):\n    tracker.epoch_start()\n    tracker.epoch_end()")
    answer = kernel.run(f"{HEAD} --epochs 4\nfor epoch in range(4): pass\nmore(tracker)")
    assert epochs(kernel) == (5, 0)
    assert "ct_notebook: epoch loop found in line 2 (4 epochs)." in answer.stdout
    assert "ct_notebook: 5 of 4 declared epochs were seen." in answer.stdout


def test_the_tracker_counts_epochs_of_its_own_loop(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD}\nfor epoch in tracker.epochs(5): pass\nepoch")
    assert epochs(kernel) == (5, 0)
    assert answer.results == ["4"]


def test_a_cell_without_a_loop_is_one_epoch_and_says_so(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD}\nx = sum(range(1000))")
    assert epochs(kernel) == (1, 0)
    assert answer.stdout.count("no epoch loop was found, so the cell was measured as one epoch.") == 1


def test_a_cell_without_a_loop_that_was_to_ask_says_that_it_did_not(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD} --epochs 3 --stop-and-confirm\nx = sum(range(1000))")
    assert "measured as one epoch, and the question was not put." in answer.stdout


def test_fewer_epochs_than_declared_are_told(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD} --epochs 100\nfor epoch in range(50): pass")
    assert epochs(kernel) == (50, 0)
    assert "ct_notebook: 50 of 100 declared epochs were seen." in answer.stdout


def test_a_second_loop_of_that_length_is_told(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD} --epochs 3\nfor epoch in range(3): pass\nfor i in range(3): pass")
    assert epochs(kernel) == (3, 0)
    assert "ct_notebook: A later loop of that length was not counted: line 3." in answer.stdout


def test_text_goes_above_a_progress_bar(kernel: Kernel) -> None:
    body = "from tqdm import tqdm\nfor epoch in tqdm(range(3), ncols=60): pass"
    answer = kernel.run(f"{HEAD} --epochs 3\n{body}")
    assert "Predicted consumption for 3 epoch(s)" in answer.stdout
    assert "3/3" in answer.stderr


def test_a_variable_called_tracker_is_left_alone(kernel: Kernel) -> None:
    kernel.run("tracker = 'mine'")
    kernel.run(f"{HEAD}\nfor epoch in range(3): pass")
    assert kernel.value("tracker") == "mine"
    assert epochs(kernel) == (3, 0)


def test_verbose_0_says_nothing(kernel: Kernel) -> None:
    answer = kernel.run(f"{HEAD} --verbose 0 --epochs 9\nfor epoch in range(3): pass")
    assert (answer.stdout, answer.stderr) == ("", "")


@pytest.mark.parametrize(
    "flags",
    [
        "--epochs n",
        "--epochs 2 * k",
        "--epochs '2 * k'",
        "--epochs={n}",
        "--epochs $n",
        "--epochs {2 * k}",
        '--epochs cfg["epochs"]',
        "--epochs cfg['epochs']",
        "--epochs '6'",
        "--epochs 6 --log-file-prefix 'my run'",
        "--epochs 6  # let's go",
        "--epochs n # as many as before",
        "--epochs=6",
    ],
)
def test_epochs_are_a_number_a_variable_or_an_expression(kernel: Kernel, flags: str) -> None:
    kernel.run("n = 6; k = 3; cfg = {'epochs': 6}")
    answer = kernel.run(f"{HEAD} {flags}\nfor epoch in range(6): pass")
    assert answer.status == "ok", answer.text
    assert kernel.value(f"{LAST}.epochs_declared") == 6
    assert epochs(kernel) == (6, 0)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--epohcs 3", "did you mean --epochs?"),
        ("--epochs", "expected at least one argument"),
        ("--epochs missing", "name 'missing' is not defined"),
        ("--epochs 0", "at least 1"),
        ("--epochs 2.5", "whole number"),
        ("--epochs 3 --update-interval soon", "update_interval='soon'"),
        ("--epochs 3 --monitor-epochs 1 --epochs-before-pred 2", "monitor_epochs=1"),
        ("--epochs 3 --components cpu,tpu", "components="),
        ("--epochs 3 --pue 0.5", "pue="),
        ("--epochs 3 --country Atlantis", "Atlantis"),
        ('--log-dir "open', "a quote is not closed"),
        ("--on-timeout maybe", "continue, stop"),
    ],
)
def test_what_is_wrong_with_the_flags_is_one_line_and_the_cell_does_not_run(
    kernel: Kernel, flags: str, told: str
) -> None:
    answer = kernel.run(f"%%carbontrack {flags}\nran = True")
    assert answer.status == "error"
    shown = [line for line in answer.text.splitlines() if line.strip()]
    assert len(shown) == 1, answer.text
    assert shown[0].startswith("UsageError: %%carbontrack: ")
    assert told in shown[0]
    assert kernel.value("'ran' in globals()") is False


def test_a_nested_magic_belongs_to_the_run_around_it(kernel: Kernel) -> None:
    body = (
        "for epoch in range(3):\n"
        "    get_ipython().run_cell_magic('carbontrack', '--epochs 2', 'for i in range(2): pass')"
    )
    answer = kernel.run(f"{HEAD} --epochs 3\n{body}")
    assert answer.status == "ok", answer.text
    assert epochs(kernel) == (3, 0)
    assert answer.stdout.count("Finished monitoring.") == 1
    assert answer.stdout.count("belongs to the run of that cell") == 3


def test_called_as_a_plain_cell_magic_it_tracks_too(kernel: Kernel) -> None:
    flags = HEAD.removeprefix("%%carbontrack ")
    answer = kernel.run(
        f"get_ipython().run_cell_magic('carbontrack', '{flags}', 'for epoch in range(3): pass')"
    )
    assert answer.status == "ok", answer.text
    assert epochs(kernel) == (3, 0)


def test_an_error_under_a_plain_cell_magic_stops_run_all_and_is_shown_once(kernel: Kernel) -> None:
    flags = HEAD.removeprefix("%%carbontrack ")
    code = f"get_ipython().run_cell_magic('carbontrack', '{flags}', 'for epoch in range(3): 1 / 0')"
    answer, later = kernel.run_all(code, "later = 1")
    assert (answer.status, later.status) == ("error", "aborted")
    assert answer.traceback.count("ZeroDivisionError: division by zero") == 1


def test_forked_workers_report_nothing(kernel: Kernel) -> None:
    body = (
        "import os\nfor epoch in range(3):\n    child = os.fork()\n    if child == 0:\n"
        "        for i in range(3): pass\n        os._exit(0)\n    os.waitpid(child, 0)"
    )
    answer = kernel.run(f"{HEAD} --epochs 3\n{body}")
    assert epochs(kernel) == (3, 0)
    assert answer.stdout.count("Finished monitoring.") == 1


def test_where_nobody_can_be_asked_the_default_is_taken_and_the_rest_runs(kernel: Kernel) -> None:
    flags = "--epochs 9 --stop-and-confirm --epochs-before-pred 2 --on-headless stop"
    body = "for epoch in range(9): pass\nelse: fell = True\nafter = epoch"
    sent = kernel.client.execute(f"{HEAD} {flags}\n{body}", allow_stdin=False)
    answer = kernel.answer(sent)
    assert answer.status == "ok", answer.text
    assert kernel.value("after, 'fell' in globals()") == (1, False)
    assert kernel.value(f"{LAST}.early_stop") is True
    assert "Quitting..." in answer.stdout


def test_a_run_can_be_paused_and_stopped_from_within_its_cell(kernel: Kernel) -> None:
    body = (
        "for epoch in range(6):\n"
        "    if epoch == 1:\n"
        "        %carbontrack pause\n"
        "        %carbontrack status\n"
        "        %carbontrack resume\n"
        "    if epoch == 3:\n"
        "        %carbontrack stop"
    )
    answer = kernel.run(f"{HEAD} --epochs 6\n{body}\nepoch")
    assert answer.status == "ok", answer.text
    assert answer.results == ["5"]
    assert epochs(kernel) == (3, 1)
    assert kernel.value(f"{LAST}.reason") == "stopped"
    assert "paused, 1 of 6 epochs" in answer.stdout
    assert answer.stdout.count("Finished monitoring.") == 1


def test_logs_go_into_the_folder_that_is_said_once(tmp_path: Path) -> None:
    with started(tmp_path, {"HOME": str(tmp_path)}) as kernel:
        cell = f"%%carbontrack {SIM} --epochs 2\nfor epoch in range(2): pass"
        first, second = kernel.run(cell), kernel.run(cell)
        assert first.stdout.count(f"logs are in {tmp_path / 'logs'}") == 1
        assert "--no-log" in first.stdout
        assert "logs are in" not in second.stdout
        assert len(list((tmp_path / "logs").glob("*carbontracker.log"))) == 2
        chosen = kernel.run(
            f'%%carbontrack {SIM} --log-dir ~/elsewhere --log-file-prefix "my run"\nfor e in range(2): pass'
        )
        assert chosen.status == "ok", chosen.text
        assert list((tmp_path / "elsewhere").glob("my*run*carbontracker.log"))


def test_defaults_come_from_config_and_environment_and_a_flag_wins(tmp_path: Path) -> None:
    environ = {"CT_NOTEBOOK_COUNTRY": "DE", "CT_NOTEBOOK_LOG_DIR": "from environment"}
    with started(tmp_path, environ) as kernel:
        cell = f"%%carbontrack {SIM}\nfor epoch in range(2): pass"
        zone = f"{LAST}.intensity.zone"
        kernel.run(cell)
        assert kernel.value(zone) == "DE"
        assert (tmp_path / "from environment").is_dir()
        assert kernel.run('%config CarbonTrack.country = "DK"').text.strip() == ""
        kernel.run(cell)
        assert kernel.value(zone) == "DK"
        kernel.run(cell.replace("\n", " --country FR\n", 1))
        assert kernel.value(zone) == "FR"
        kernel.run("%config CarbonTrack.api_keys = {'electricitymaps': 'very-secret'}")
        assert "very-secret" not in kernel.run("%config CarbonTrack").text


def test_defaults_come_from_the_configuration_file_of_ipython(tmp_path: Path) -> None:
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text("c.CarbonTrack.country = 'SE'\nc.CarbonTrack.log_dir = None\n")
    with started(tmp_path) as kernel:
        assert kernel.run(f"%%carbontrack {SIM}\nfor epoch in range(2): pass").status == "ok"
        assert kernel.value(f"{LAST}.intensity.zone, {LAST}.log_paths") == ("SE", ())
        assert not (tmp_path / "logs").exists()
