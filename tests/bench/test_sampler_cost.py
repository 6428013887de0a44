"""The sampling thread's own use of the CPU, beside that of a bare loop that throws away what it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.nvml_stub import NvmlStub

pytestmark = pytest.mark.bench

WATCHED_S = 30
TIMES = 2.0
"""The bare loop took 0.04 % of a core where this was written; twice that keeps the goal of 0.1 %."""
TRIES = 3
"""What is busy beside it adds to a try, to one of the two more than to the other."""

OURS = f"""
import time
from ct_notebook.tracker import CarbonTracker

tracker = CarbonTracker(1, update_interval=1, verbose=0)
tracker.epoch_start()
before = time.process_time()
time.sleep({WATCHED_S})
used = time.process_time() - before
print(len(tracker.run.devices), tracker.run.cost["samples"], used)
tracker.stop()
"""

BARE = f"""
import threading
import time
import psutil
import pynvml

pynvml.nvmlInit()
gpus = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(2)]

def watch():
    for _ in range({WATCHED_S}):
        psutil.cpu_percent(percpu=True)
        psutil.virtual_memory()
        for gpu in gpus:
            pynvml.nvmlDeviceGetPowerUsage(gpu)
            pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
        time.sleep(1)

thread = threading.Thread(target=watch)
before = time.process_time()
thread.start()
thread.join()
print(time.process_time() - before)
"""


def test_sampling_takes_little_more_than_the_reading(tmp_path: Path) -> None:
    stub = NvmlStub.build(tmp_path)
    stub.count = 2
    for _ in range(TRIES):
        # At the same time, so that what else the machine does slows both.
        ours, bare = (
            subprocess.Popen(
                [sys.executable, "-c", script],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **stub.env()},
            )
            for script in (OURS, BARE)
        )
        devices, samples, ours_s = (float(word) for word in ours.communicate()[0].split())
        bare_s = float(bare.communicate()[0])
        assert (ours.returncode, bare.returncode) == (0, 0)
        print(
            f"\n{samples:.0f} samples of {devices:.0f} devices in {WATCHED_S} s: {ours_s * 1e3:.1f} ms of "
            f"CPU time, {ours_s / WATCHED_S:.2%} of one core; psutil and pynvml alone {bare_s * 1e3:.1f} ms, "
            f"so {ours_s / bare_s:.2f} times as much"
        )
        assert devices == 4
        assert samples >= WATCHED_S
        if ours_s <= TIMES * bare_s:
            break
    assert ours_s <= TIMES * bare_s
