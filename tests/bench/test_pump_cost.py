"""What listening and pushing cost the thread that trains, and that a page that is gone costs nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path
from queue import Empty

import pytest

from support.kernel import old_clients_are_quiet, started

pytestmark = [pytest.mark.bench, old_clients_are_quiet]

LOOK = """
import statistics, time
from ct_notebook.ask.pump import Pump
pump = Pump.of(get_ipython().kernel, lambda comm: True)
pump.open()
def took(call, count=500):
    spent = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6
empty_us = took(pump.deliver)
flush_us = took(lambda: pump._stream.flush(1))
pump.close()
"""

OFTEN = """%%carbontrack --epochs 3 --no-log --sim-cpu X --sim-cpu-tdp 100
import time
from ct_notebook.ask.pump import Pump
looks = 0
def counted(self, original=Pump.deliver):
    global looks
    looks += 1
    return original(self)
Pump.deliver, kept = counted, Pump.deliver
began = time.perf_counter()
for epoch in range(3):
    for step in range(500):
        time.sleep(0.002)
took_s = time.perf_counter() - began
Pump.deliver = kept
"""

PUSH = """
import statistics, time
from ct_notebook.display.panel import PanelFront
from ct_notebook.tracker import CarbonTracker
tracker = CarbonTracker(10, sim_cpu="X", sim_cpu_tdp=100, verbose=0).start()
front = PanelFront(tracker.recording, get_ipython().kernel)
def pushes(count):
    spent = []
    for _ in range(count):
        began = time.perf_counter()
        front._push()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6, max(spent) * 1e6
heard = pushes(200)
"""


def test_an_empty_look_costs_microseconds_and_is_rare(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        assert kernel.run(LOOK).status == "ok"
        empty_us, flush_us = kernel.value("(empty_us, flush_us)")
        assert kernel.run(OFTEN).status == "ok"
        looks, took_s = kernel.value("(looks, took_s)")
    print(
        f"\nempty look {empty_us:.1f} us, flushing the stream instead {flush_us:.1f} us; "
        f"{looks / took_s:.1f} looks a second"
    )
    assert empty_us <= 100
    assert empty_us < flush_us
    assert 0 < looks <= 5 * took_s + 5  # an epoch's end may look once more


def test_a_page_that_does_not_read_costs_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        assert kernel.run(PUSH).status == "ok"
        heard_us, _ = kernel.value("heard")
        # The client reads nothing while thousands of messages are pushed: many times what the sockets hold.
        sent = kernel.send("unheard = pushes(20_000)")
        reply = kernel.client.get_shell_msg(timeout=300)
        assert reply["parent_header"]["msg_id"] == sent
        with contextlib.suppress(Empty):
            while True:
                kernel.client.get_iopub_msg(timeout=1)
        unheard_us, worst_us = kernel.value("unheard")
    print(f"\na push {heard_us:.0f} us; unheard {unheard_us:.0f} us, worst {worst_us:.0f} us")

    assert unheard_us <= 2 * heard_us
