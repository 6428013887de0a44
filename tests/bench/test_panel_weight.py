"""What a panel weighs: bytes on the websocket of a real server, memory and time in a real page.

A plotly FigureWidget with the same curves is measured beside it, in the same run.
"""

from __future__ import annotations

import functools
import http.cookiejar
import http.server
import json
import statistics
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websocket
from playwright.sync_api import Page

from support.jupyter_server import serving
from support.notebook_page import chromium

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parents[2]

DAY_S = 86_400

SIMULATED = """
import time
from ct_notebook.display.panel import PanelFront
from ct_notebook.records import Device
from ct_notebook.tracker import CarbonTracker
from ct_notebook import recording as _recording, sensors as _sensors

class Eight:
    devices = tuple(
        Device(f"gpu:{n}", "gpu", f"NVIDIA A100-SXM4-80GB ({n})", "counter", "NVML energy counter")
        for n in range(8)
    ) + (
        Device("cpu:package-0", "cpu", "AMD EPYC 7763", "counter", "RAPL"),
        Device("ram", "ram", "memory", "constant"),
    )

class Day:
    '''A recording whose clock is a count: a second a tick.'''
    closed = False
    began_s = 0.0
    facts_version = (0,)
    findings = ()

    def __init__(self, real):
        self._real = real
        self.run_id = real.run_id
        self.second = 0
        self._base = real.run()
        import dataclasses
        from ct_notebook.records import Course
        times = tuple(360.0 * n for n in range(240))
        curves = {device.key: times for device in Eight.devices}
        course = Course(times, times, curves, times)
        moves = (self._estimate(),) * 240
        self._base = dataclasses.replace(self._base, devices=Eight.devices, course=course, moves=moves)

    def run(self):
        return self._base

    def moment(self):
        import dataclasses
        from ct_notebook.records import Band
        s = self.second
        j = 2450.0 * s
        e = Band(j, 0.95 * j, 1.05 * j)
        g = e.times(1e-4)
        real = self._real.moment()
        point = (float(s), g.value, tuple(300.0 * s for _ in range(8)) + (40.0 * s, 10.0 * s))
        return dataclasses.replace(
            real, elapsed_s=float(s), epochs_done=s // 216, epochs_declared=400, in_epoch=True,
            power_w={d.key: 300.123 for d in Eight.devices}, energy_j=e, emissions_g=g, point=point,
            estimate=self._estimate(), prediction=self._estimate())

    def _estimate(self):
        from ct_notebook.records import Band, Estimate
        k = max(1, self.second // 216)
        duration_s, energy_j = Band(86400., 80000., 95000.), Band(2e8, 1.9e8, 2.2e8)
        return Estimate(400, k, duration_s, energy_j, Band(2e4, 1.9e4, 2.2e4), "m")

    def epoch_ends_s(self, after):
        return [216.0 * n for n in range(after + 1, self.second // 216 + 1)]

    def moves_after(self, epochs):
        e = self._estimate()
        return [e] if e.made_after > epochs else []

    def log_error(self, text):
        raise RuntimeError(text)

real = CarbonTracker(400, sim_cpu="X", sim_cpu_tdp=100, verbose=0, display="none").start()
day = Day(real.recording)
"""

SHOW = """
front = PanelFront(day, get_ipython().kernel)
front._thread = __import__("threading").Thread()  # pushed by hand
from IPython.display import display
data, metadata = front._panel._repr_mimebundle_()
display(data, metadata=metadata, raw=True)
"""

TICKS = "for _ in range({count}):\n    day.second += 1\n    front._show()\n"

FIGURE_WIDGET = """
import plotly.graph_objects as go
figure = go.FigureWidget([go.Scatter(y=[]) for _ in range(11)])
figure
"""

FIGURE_TICKS = """
points = {points}
for _ in range({count}):
    with figure.batch_update():
        for trace in figure.data:
            trace.x = list(range(points))
            trace.y = [float(n) for n in range(points)]
"""


class Wire:
    """A kernel behind a server's websocket, and what comes over it."""

    def __init__(self, url: str) -> None:
        jar = http.cookiejar.CookieJar()
        client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        client.open(f"{url}/lab", timeout=60).close()
        (token,) = (cookie.value for cookie in jar if cookie.name == "_xsrf")
        headers = {"X-XSRFToken": str(token)}
        request = urllib.request.Request(f"{url}/api/kernels", b'{"name": "newest"}', headers, method="POST")
        with client.open(request, timeout=60) as answer:
            kernel = json.load(answer)["id"]
        address = url.replace("http", "ws") + f"/api/kernels/{kernel}/channels"
        self._socket = websocket.create_connection(address, timeout=300)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def run(self, code: str) -> int:
        """Run a cell and give the bytes that came meanwhile."""
        name = uuid.uuid4().hex
        header = {
            "msg_id": name,
            "msg_type": "execute_request",
            "session": "s",
            "username": "",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
        message = {
            "channel": "shell",
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
        }
        self._socket.send(json.dumps(message))
        total = 0
        while True:
            frame = self._socket.recv()
            total += len(frame.encode() if isinstance(frame, str) else frame)
            if not isinstance(frame, str):
                continue
            answer = json.loads(frame)
            assert answer["msg_type"] != "error", answer["content"]
            if (
                answer["parent_header"].get("msg_id") == name
                and answer["content"].get("execution_state") == "idle"
            ):
                return total


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with serving(tmp_path_factory.mktemp("server"), {"newest": Path(sys.executable)}) as server:
        wire = Wire(server.url)
        wire.run(SIMULATED)
        yield wire
        wire.close()


def test_bytes_on_the_websocket(wire: Wire) -> None:
    shown = wire.run(
        "import dataclasses\nwhole, day._base = day._base, dataclasses.replace(\n"
        "    day._base, course=None, moves=())" + SHOW
    )
    again = wire.run("day._base = whole" + SHOW)
    # Slices of a day rather than all of it: what a tick weighs does not depend on what went before.
    slices = []
    for begin in (0, 3600, DAY_S // 2, DAY_S - 300):
        wire.run(
            f"day.second = {begin}; front._sent_ends = day.second // 216; front._sent_moves = {begin} // 216"
        )
        empty = wire.run("pass")
        slices.append((wire.run(TICKS.format(count=300)) - empty) / 300)
    history = wire.run("front._wanted = True; front._show()") - empty
    figure = wire.run(FIGURE_WIDGET)
    by_points = {}
    for points in (300, 3600):
        by_points[points] = (wire.run(FIGURE_TICKS.format(points=points, count=5)) - empty) / 5
    kilobytes = {
        "panel, first show": shown,
        "after a day": again,
        "history for a reloaded page": history,
        "FigureWidget, first show": figure,
        **{f"its update at {points} points": size for points, size in by_points.items()},
    }
    print("\n" + ", ".join(f"{name} {size / 1000:.1f} kB" for name, size in kilobytes.items()))
    print("a tick: " + ", ".join(f"{each:.0f} B" for each in slices))
    assert shown <= 100_000
    assert again <= 120_000
    assert max(slices) <= 4_000
    assert figure > 10 * shown
    assert by_points[3600] > 20 * max(slices)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def harness(scenario: str) -> Iterator[Page]:
    """The panel in a page without a kernel."""
    handler = functools.partial(_Quiet, directory=str(ROOT))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        address = f"http://127.0.0.1:{server.server_port}/js/harness/index.html"
        page.goto(f"{address}?scenario={scenario}")
        page.wait_for_selector("body[data-ready]")
        yield page
    server.shutdown()
    server.server_close()


def metrics(session: Any) -> dict[str, float]:
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


def heap_mb(session: Any) -> float:
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return metrics(session)["JSHeapUsedSize"] / 1e6


def test_memory_and_time_in_the_page() -> None:
    """Ticks as fast as the page takes them: 24 hours at one a second, on eight GPUs."""
    with harness("fresh-eight-gpus") as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        session.send("HeapProfiler.enable")

        def advance(seconds: int) -> None:
            # In pieces, with a frame between them, so that what is drawn is drawn.
            for _ in range(0, seconds, 600):
                page.evaluate(
                    "async () => { for (let n = 0; n < 600; n++) window.tick(1);"
                    " await new Promise(requestAnimationFrame); }"
                )

        advance(600)
        early = heap_mb(session)
        advance(DAY_S - 600)
        late = heap_mb(session)
        drawn = []
        for _ in range(60):
            before = metrics(session)["ScriptDuration"]
            page.evaluate(
                "async () => { window.tick(1); await new Promise(requestAnimationFrame);"
                " await new Promise(requestAnimationFrame); }"
            )
            drawn.append((metrics(session)["ScriptDuration"] - before) * 1000)
    middle = statistics.median(drawn)
    print(f"\npage: {early:.1f} MB after 10 min, {late:.1f} MB after 24 h; script {middle:.1f} ms a tick")
    assert late - early <= 10
    assert middle <= 10
