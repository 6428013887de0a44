"""The sampling thread's own use of the CPU, as a share of the time that it watches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.nvml_stub import NvmlStub

pytestmark = pytest.mark.bench

WATCHED_S = 30

SCRIPT = f"""
import time
from ct_notebook.tracker import CarbonTracker

tracker = CarbonTracker(1, update_interval=1, verbose=0)
tracker.epoch_start()
before = time.process_time()
time.sleep({WATCHED_S})
used = time.process_time() - before
tracker.epoch_end()
print(len(tracker.run.devices), tracker.run.cost["samples"], tracker.run.cost["cpu_s"], used)
"""


def test_sampling_takes_a_thousandth_of_one_core(tmp_path: Path) -> None:
    stub = NvmlStub.build(tmp_path)
    stub.count = 2
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **stub.env()},
    )
    devices, samples, thread_s, process_s = (float(word) for word in done.stdout.split())
    print(
        f"\n{samples:.0f} samples of {devices:.0f} devices in {WATCHED_S} s: "
        f"{thread_s * 1e3:.1f} ms of the thread, {process_s * 1e3:.1f} ms of the process"
    )
    assert devices == 4
    assert samples >= WATCHED_S
    assert process_s / WATCHED_S <= 0.001
