"""The question where there is no page: terminal IPython and `jupyter console`, typed at as a person does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from support.kernel import PACKAGE

pytestmark = pytest.mark.browser

PROMPT = r"In \[\d+\]:"

CELL = """%%carbontrack --epochs 4 --stop-and-confirm --no-log --sim-cpu X --sim-cpu-tdp 9
import time
for epoch in range(4): time.sleep(0.1)
print("after", epoch)
"""

CONSOLES = {
    "IPython": ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
    # Its simple prompt takes one line at a time, so the cell is run from a line.
    "jupyter console": ["-m", "jupyter_console", "--simple-prompt"],
}


@pytest.fixture(params=CONSOLES)
def console(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, pexpect.spawn[str]]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CT_NOTEBOOK_")}
    environ |= {
        "PYTHONPATH": str(PACKAGE),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "TERM": "dumb",
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    child = pexpect.spawn(
        sys.executable, CONSOLES[request.param], cwd=str(tmp_path), env=environ, encoding="utf-8", timeout=90
    )
    child.expect(PROMPT)
    child.sendline("%load_ext ct_notebook")
    child.expect(PROMPT)
    yield request.param, child
    child.sendline("exit")
    child.close(force=True)


@pytest.mark.parametrize(("answer", "last"), [("n", 0), ("y", 3)])
def test_an_answer_is_typed(console: tuple[str, pexpect.spawn[str]], answer: str, last: int) -> None:
    name, child = console
    if name == "IPython":
        for line in (*CELL.splitlines(), "", ""):
            child.sendline(line)
    else:
        child.sendline(f"_ = get_ipython().run_cell({CELL!r})")
    child.expect_exact("Continue training (y/n)? [continues by itself after 10 min]")
    child.sendline(answer)
    child.expect_exact(f"after {last}")
    child.expect_exact(f"Actual consumption for {last + 1} epoch(s):")
    child.expect(PROMPT)
    child.sendline("%carbontrack last")
    child.expect_exact(f"Run: {last + 1}")
