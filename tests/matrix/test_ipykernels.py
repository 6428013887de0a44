"""The panel on real kernels of many versions of ipykernel: what it uses of them is private to them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.environments import folder_with
from support.kernel import Kernel, old_clients_are_quiet, started
from support.overlooked import LOOK_AGAIN
from support.page import LOOP, drain, shown

pytestmark = [old_clients_are_quiet, pytest.mark.matrix]

VERSIONS = ("6.17.1", "6.29.5", "6.30.1", "7.0.1", "7.1.0", "7.2.0", "7.3.0", "7.4.0", "newest")


PUMP_TESTS = Path(__file__).parents[1] / "kernel" / "test_pump.py"


def ipykernel(version: str) -> Path:
    """A folder with one version of ipykernel and nothing else."""
    wanted = "ipykernel" if version == "newest" else f"ipykernel=={version}"
    return folder_with(f"only-ipykernel-{version}", wanted)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_tests_of_the_pump_pass_on_it(version: str) -> None:
    paths = filter(None, (str(ipykernel(version)), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PUMP_TESTS)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]


@pytest.fixture(scope="module", params=VERSIONS)
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel of one version, and the other packages of this environment."""
    version: Any = request.param
    with started(tmp_path_factory.mktemp("kernel"), before=[ipykernel(version)]) as kernel:
        found = kernel.value("__import__('ipykernel').__version__")
        assert version in {found, "newest"}
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", found)
        assert kernel.run(LOOK_AGAIN).status == "ok"
        yield kernel


def test_a_click_arrives_in_the_cell_and_queued_cells_come_after_it(kernel: Kernel, tmp_path: Path) -> None:
    page, sent = shown(kernel, tmp_path, "--stop-and-confirm")
    queued = [kernel.send("first = after"), kernel.send("second = first")]
    page.see("waiting")
    before = len(page.snapshots)
    page.ask_for_state()
    page.send_raw("comm_info_request", {"target_name": "jupyter.widget"})
    page.listen(lambda: len(page.snapshots) > before, "the state, for a page that was reloaded")
    assert sent not in page.idle
    page.answer(go_on=False)
    page.finish(sent, *queued)
    assert drain(kernel, sent, *queued) == [sent, *queued]
    assert kernel.value("second") == 1
    assert page.states[-1]["state"] == "stopped"


def test_a_click_arrives_in_a_cell_that_awaits(kernel: Kernel, tmp_path: Path) -> None:
    body = "import asyncio" + LOOP.replace("time.sleep", "await asyncio.sleep").replace(
        "range(4)", "range(20)"
    )
    page, sent = shown(kernel, tmp_path, body="\n" + body)
    queued = kernel.send("third = after")
    page.say("pause")
    page.see("paused")
    page.say("resume")
    page.see("measuring")
    page.say("stop")
    page.finish(sent, queued)
    assert drain(kernel, sent, queued) == [sent, queued]
    assert kernel.value("third") < 5


def test_a_widget_of_someone_else_waits_for_the_end_of_the_cell(kernel: Kernel, tmp_path: Path) -> None:
    assert (
        kernel.run(
            "import ipywidgets, threading\nslider = ipywidgets.IntSlider()\nmoved = []\n"
            "slider.observe(lambda change: moved.append((change.new, 'after' in globals())), 'value')"
        ).status
        == "ok"
    )
    kernel.run("del globals()['after']" if kernel.value("'after' in globals()") else "pass")
    other = kernel.value("slider.comm.comm_id")
    page, sent = shown(kernel, tmp_path)
    for value in (3, 7):
        data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        page.send_raw("comm_msg", {"comm_id": other, "data": data})
    page.say("stop")
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("moved") == [(3, True), (7, True)]


LOOK = """
def streams():
    kernel = get_ipython().kernel
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    pair = getattr(manager, "_shell_channel_to_main", None)
    found = (getattr(pair, "to_stream", None), kernel.shell_stream)
    return [id(getattr(stream, "_recv_callback", None)) for stream in found]
"""


def test_private_things_are_as_they_were_found(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.run(LOOK).status == "ok"
    before = kernel.value("streams()")
    page, sent = shown(kernel, tmp_path)
    page.say("stop")
    page.finish(sent)
    drain(kernel, sent)
    assert kernel.value("streams()") == before
