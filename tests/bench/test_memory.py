"""A day of samples: what is kept must not grow with it."""

from __future__ import annotations

import tracemalloc

import pytest

from ct_notebook.account import Account, Mark
from ct_notebook.records import Device, Reading, Sample

pytestmark = pytest.mark.bench

DAY = 86_400


def test_memory_is_flat_over_a_day_of_samples() -> None:
    devices = [Device(f"gpu:{n}", "gpu", "A GPU", "counter") for n in range(2)]
    devices += [Device("cpu", "cpu", "A CPU", "modelled"), Device("ram", "ram", "Memory", "constant")]
    account = Account(devices, 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)

    def sample(at_s: float) -> None:
        counters = [
            Reading(d.key, d.component, d.method, watts=200.0, counter_j=200.0 * at_s) for d in devices[:2]
        ]
        gauges = [Reading(d.key, d.component, d.method, watts=30.0) for d in devices[2:]]
        account.add(Sample(at_s, (*counters, *gauges)))
        account.settle()

    tracemalloc.start()
    kept = {}
    for tick in range(DAY + 1):
        sample(float(tick))
        if tick in {DAY // 4, DAY // 2, DAY}:
            kept[tick] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    account.mark(float(DAY), Mark.EPOCH_END)
    (epoch,) = account.settle(final=True)
    print(f"\nkept after 6, 12, 24 h at 1 Hz, four devices: {[f'{b / 1024:.0f} kB' for b in kept.values()]}")
    assert kept[DAY] <= 1.1 * kept[DAY // 4]
    assert epoch.total_j == pytest.approx((2 * 200.0 + 2 * 30.0) * DAY)
