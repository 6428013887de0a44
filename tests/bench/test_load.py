"""What loading the extension costs, against importing the widget library that every panel needs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

import pytest

pytestmark = pytest.mark.bench

RUNS = 9

SHELL = (
    "import time, ipykernel.zmqshell\n"
    "from IPython.core.interactiveshell import InteractiveShell\n"
    "shell = InteractiveShell.instance()\n"
    "began = time.perf_counter()\n"
)
LOAD = SHELL + "shell.run_line_magic('load_ext', 'ct_notebook')\nprint(time.perf_counter() - began)"
WIDGETS = SHELL + "import anywidget\nprint(time.perf_counter() - began)"


def measured_s(code: str) -> float:
    # As installed: both sides have their byte code on disk, from the first run on.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )
    return float(done.stdout.splitlines()[-1])


def test_loading_the_extension_is_light_beside_the_widget_library() -> None:
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(measured_s(LOAD))
        theirs.append(measured_s(WIDGETS))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(
        f"\n%load_ext ct_notebook {statistics.median(ours) * 1e3:.1f} ms, "
        f"import anywidget {statistics.median(theirs) * 1e3:.1f} ms, ratio {ratio:.3f}"
    )
    assert ratio <= 0.15
