"""A network that swallows every packet, made of a network namespace; the same without it beside.

Needs root (it makes a namespace and hides /etc/resolv.conf in it). Where that is not allowed it says so.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.bench

RUNS = 5

SCRIPT = """
import time
from IPython.core.interactiveshell import InteractiveShell
from ct_notebook.tracker import CarbonTracker

began = time.perf_counter()
tracker = CarbonTracker(3, monitor_epochs=-1, verbose=0, log_dir="logs", country="GB").start()
ready = time.perf_counter() - began
assert tracker._source is not None, "no live source is asked, so nothing is seen here"
for _ in tracker.epochs():
    pass

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "ct_notebook")
loop = "for e in range(2): pass\\nended = __import__('time').perf_counter()"
shell.run_cell("%%carbontrack --epochs 2 --verbose 0 --country GB\\n" + loop)
print(ready, time.perf_counter() - shell.user_ns["ended"])
"""

BLACK_HOLE = """
ip link set lo up
ip link add hole type veth peer name bottom
ip address add 10.99.0.1/24 dev hole
ip link set hole up
ip link set bottom up
ip neighbour add 10.99.0.2 lladdr 02:00:00:00:00:02 dev hole
ip route add default via 10.99.0.2
echo nameserver 10.99.0.2 > "$1/resolv.conf"
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift
exec "$@"
"""

LOOK_UP = (
    "import socket\ntry: socket.create_connection(('example.org', 80), 2)\nexcept OSError: print('no answer')"
)


def ready_and_end_s(folder: Path, *before: str) -> tuple[float, float]:
    environ = {name: value for name, value in os.environ.items() if name != "CT_NOTEBOOK_OFFLINE"}
    done = subprocess.run(
        [*before, sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environ,
    )
    ready, end = done.stdout.split()[-2:]
    return float(ready), float(end)


def test_a_dead_network_delays_neither_start_nor_end(tmp_path: Path) -> None:
    hole = ["unshare", "--net", "--mount", "sh", "-ec", BLACK_HOLE, "sh", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run([*hole, "true"], capture_output=True, check=False).returncode:
        pytest.skip("DID NOT RUN: network namespaces need root and `unshare` and `ip` (iproute2)")
    lost = subprocess.run([*hole, sys.executable, "-c", LOOK_UP], capture_output=True, text=True, check=True)
    assert lost.stdout == "no answer\n", "the namespace is no black hole"
    dead = [ready_and_end_s(tmp_path, *hole) for _ in range(RUNS)]
    alive = [ready_and_end_s(tmp_path) for _ in range(RUNS)]
    for name, dead_s, alive_s in zip(
        ("tracker ready", "cell end"), zip(*dead, strict=True), zip(*alive, strict=True), strict=True
    ):
        ratio = statistics.median(dead_s) / statistics.median(alive_s)
        print(f"\n{name}: {statistics.median(dead_s) * 1e3:.0f} ms, {ratio:.2f} of that with a network")
        # A live source is asked beside the run, so there is only noise between the two; waiting for a look-up
        # would cost seconds, a hundred times what is measured here.
        assert ratio <= 10
