"""What tracking costs a training, as ratios against something measured in the same run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ct_notebook.tracker import CarbonTracker
from IPython.core.interactiveshell import InteractiveShell

pytestmark = pytest.mark.bench

PAIRS = 15


def thousand_additions() -> None:
    total = 0
    for i in range(1000):
        total += i


def seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def test_marking_an_epoch_costs_less_than_a_thousand_additions(tmp_path: Path) -> None:
    tracker = CarbonTracker(
        5000, monitor_epochs=-1, epochs_before_pred=0, update_interval=1, verbose=0, log_dir=tmp_path
    )
    tracker.start()

    def epoch() -> None:
        tracker.epoch_start()
        tracker.epoch_end()

    marks_s, additions_s = [], []
    for _ in range(4000):
        marks_s.append(seconds(epoch))
        additions_s.append(seconds(thousand_additions))
    tracker.stop()
    mark_s, reference_s = statistics.median(marks_s), statistics.median(additions_s)
    print(f"\nepoch_start + epoch_end: median {mark_s * 1e6:.1f} us, a thousand additions {reference_s * 1e6:.1f} us")
    assert mark_s <= reference_s


CELLS = {
    "a pure-Python training loop": (
        5,
        "w = 0.0\n"
        "for epoch in range(5):\n"
        "    for x in data:\n"
        "        error = 3.0 * x - w * x\n"
        "        w += 1e-4 * error * x\n",
    ),
    "a tight loop at the top of the cell": (2, "s = 0\nfor i in range(10**6):\n    s += i\n"),
    "a tight loop inside an epoch": (2, "for epoch in range(2):\n    s = 0\n    for i in range(10**6): s += i\n"),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_tracked_cell_is_as_fast_as_a_plain_one(name: str) -> None:
    """Paired and alternating. Two plain runs beside each other show how well this machine can tell."""
    epochs, body = CELLS[name]
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "ct_notebook")
    shell.run_cell("data = [i % 7 - 3.0 for i in range(200_000)]")
    head = f"%%carbontrack --epochs {epochs} --no-log --verbose 0\n"

    def cpu_s(cell: str) -> float:
        gc.collect()
        began_s = time.thread_time()
        result = shell.run_cell(cell, store_history=False)
        passed_s = time.thread_time() - began_s
        result.raise_error()
        return passed_s

    cpu_s(head + body)  # loads what is loaded once
    # The tracker's own start and end are the cell's, not the loop's: a cell without the work has them alone.
    tracked, plain, plain_again = [], [], []
    for _ in range(PAIRS):
        plain.append(cpu_s(body))
        tracked.append(cpu_s(head + body) - cpu_s(head + "pass\n"))
        plain_again.append(cpu_s(body))
    ratio = statistics.median(a / b for a, b in zip(tracked, plain, strict=True))
    noise = statistics.median(abs(a / b - 1) for a, b in zip(plain_again, plain, strict=True))
    print(f"\n{name}: tracked / plain = {ratio:.4f}; two plain runs differ by {noise:.4f}")
    assert ratio <= 1.005 + 2 * noise


def test_a_cell_that_is_not_tracked_is_not_touched() -> None:
    """The dispatcher of functions defined in a tracked cell does nothing outside a run."""
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "ct_notebook")
    work = "def work():\n    s = 0\n    for i in range(10**6):\n        s += i\n    return s\n"
    shell.run_cell(work.replace("work", "plain_work"))
    shell.run_cell("%%carbontrack --no-log --verbose 0\n" + work.replace("work", "tracked_work"))
    ratios = []
    for _ in range(PAIRS):
        plain_s = seconds(shell.user_ns["plain_work"])
        ratios.append(seconds(shell.user_ns["tracked_work"]) / plain_s)
    print(f"\na function of a tracked cell, called later: {statistics.median(ratios):.4f}")
    assert statistics.median(ratios) <= 1.05
