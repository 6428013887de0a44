"""Instructions per turn of a loop, counted by valgrind: a figure that a busy machine does not change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ct_notebook

pytestmark = pytest.mark.bench

SCRIPT = """
import ast, sys
from ct_notebook.loops import LOOPS, Watch
from ct_notebook.rewrite import plan_of

class Sink:
    active, epochs_declared, should_stop, marked_by_hand = True, 2, False, False
    def declare(self, epochs): pass
    def begin_epoch(self): pass
    def end_epoch(self): pass
    def step(self, done=None, total=None, source="steps"): pass

mode, source = sys.argv[1], sys.argv[2].replace("MANY", sys.argv[3])
tree = ast.parse(source)
plan = plan_of(tree, {})
if mode == "tracked":
    LOOPS.open(Watch(Sink(), plan))
exec(compile(ast.fix_missing_locations(tree) if mode == "tracked" else source, "cell", "exec"), {})
"""

LOOPS = {
    "a tight loop at the top of the cell": "s = 0\nfor i in range(MANY): s += i\n",
    "a tight loop inside an epoch": "for epoch in range(2):\n    s = 0\n    for i in range(MANY): s += i\n",
    "a training loop": (
        "w = 0.0\nfor epoch in range(2):\n    for x in [1.5] * MANY:\n        w += 1e-4 * (3.0 * x - w * x)\n"
    ),
}

FEW, MANY = 5_000, 40_000


def instructions(mode: str, source: str, turns: int) -> int:
    """All that a process executes."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*valgrind, sys.executable, "-c", SCRIPT, mode, source, str(turns)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(Path(ct_notebook.__file__).parents[1])},
    )
    return int(done.stderr.split("Collected :")[1].split()[0])


@pytest.mark.parametrize("name", LOOPS)
def test_a_turn_of_a_loop_costs_no_instruction_more(name: str) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("DID NOT RUN: valgrind is not installed (.ci/checks installs it where it may)")
    plain, tracked = (
        instructions(mode, LOOPS[name], MANY) - instructions(mode, LOOPS[name], FEW)
        for mode in ("plain", "tracked")
    )
    print(f"\n{name}: {tracked / plain:.4f} of the instructions of a plain one")
    assert tracked / plain <= 1.005
