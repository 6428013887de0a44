"""Loading, commands and help, in a real kernel and in a real IPython terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ct_notebook.settings import OPTIONS
from support.kernel import PACKAGE, Kernel, old_clients_are_quiet, started

pytestmark = old_clients_are_quiet

SIM = "--sim-cpu X --sim-cpu-tdp 100 --no-log"

SHELL = """
import json
def state():
    ip = get_ipython()
    return json.dumps([
        [repr(t) for t in ip.input_transformers_cleanup], [repr(t) for t in ip.ast_transformers],
        sorted(ip.magics_manager.magics["line"]), sorted(ip.magics_manager.magics["cell"]),
        {name: len(hooks) for name, hooks in ip.events.callbacks.items()},
    [type(c).__name__ for c in ip.configurables if type(c).__name__ == "CarbonTrack"],
        "tracker" in ip.user_ns,
    ])
"""

SIZES = "[len(part) for part in json.loads(state())[:4]] + json.loads(state())[4:6]"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def test_loading_is_light(tmp_path: Path) -> None:
    heavy = "anywidget ipywidgets plotly requests pynvml psutil numpy pandas"
    with started(tmp_path, load=False) as kernel:
        # What the kernel itself has loaded (ipykernel uses psutil) is no doing of ours.
        kernel.run("import sys; before = set(sys.modules)")
        assert kernel.run("%load_ext ct_notebook").text.strip() == ""
        loaded = kernel.value(f"sorted(set('{heavy}'.split()) & (set(sys.modules) - before))")
        ours = kernel.value("sorted(name for name in sys.modules if name.startswith('ct_notebook.'))")
    assert loaded == []
    assert set(ours) == {f"ct_notebook.{room}" for room in ("errors", "flags", "magics", "settings")}


def test_unloading_leaves_the_shell_as_it_was(tmp_path: Path) -> None:
    with started(tmp_path, load=False) as kernel:
        kernel.run(SHELL)
        before = kernel.value("state()")
        kernel.run("%load_ext ct_notebook")
        loaded = kernel.value(SIZES)
        assert kernel.value("state()") != before
        cell = f"%%carbontrack {SIM}\nfor epoch in range(3): pass"
        for _ in range(2):
            kernel.run("%reload_ext ct_notebook")
            assert kernel.run(cell).stdout.count("epoch loop found") == 1
            assert kernel.value(SIZES) == loaded
        kernel.run("%unload_ext ct_notebook")
        assert kernel.value("state()") == before
        assert kernel.run("%%carbontrack\npass").status == "error"


def test_unloading_within_a_tracked_cell_ends_its_run(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        answer = kernel.run(
            f"%%carbontrack {SIM}\nfor epoch in range(3):\n    %unload_ext ct_notebook\nepoch"
        )
        assert answer.status == "ok", answer.text
        assert answer.results == ["2"]
        assert answer.stdout.count("Finished monitoring.") == 1


@pytest.mark.parametrize("command", ["status", "pause", "resume", "flush", "stop"])
def test_a_command_without_a_run_says_so(kernel: Kernel, command: str) -> None:
    answer = kernel.run(f"%carbontrack {command}")
    assert answer.status == "ok"
    assert answer.stdout.startswith("ct_notebook: no run is active.")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("statsu", "did you mean status?"),
        ("", "say which: status, pause"),
        ("xyzzy", "there is no xyzzy"),
        ("--epochs 5", "with two %"),
        ("pause now", "takes nothing after it"),
    ],
)
def test_an_unknown_command_is_one_line(kernel: Kernel, line: str, told: str) -> None:
    answer = kernel.run(f"%carbontrack {line}")
    assert answer.status == "error"
    shown = [line for line in answer.text.splitlines() if line.strip()]
    assert len(shown) == 1
    assert told in shown[0]


def test_last_is_the_result(kernel: Kernel) -> None:
    kernel.run(f"%%carbontrack {SIM} --epochs 3\nfor epoch in range(3): pass")
    answer = kernel.run("%carbontrack last")
    assert len(answer.results) == 1
    assert answer.results[0].startswith("Run: 3 ")
    (table,) = answer.displays
    assert "<th>Energy</th>" in table["text/html"]
    assert (
        kernel.run("run = get_ipython().run_line_magic('carbontrack', 'last'); print(len(run.epochs))").stdout
        == "3\n"
    )


def test_commands_work_within_the_cell(kernel: Kernel) -> None:
    body = (
        "for epoch in range(3):\n"
        "    %carbontrack status\n"
        "    %carbontrack pause\n"
        "    %carbontrack pause\n"
        "    %carbontrack resume\n"
        "    %carbontrack flush"
    )
    answer = kernel.run(f"%%carbontrack {SIM} --epochs 3\n{body}")
    assert answer.status == "ok", answer.text
    assert "ct_notebook: measuring, 2 of 3 epochs" in answer.stdout
    assert answer.stdout.count("paused until resume.") == answer.stdout.count("measuring again.") == 3
    assert answer.stdout.count("paused already.") == 3
    assert answer.stdout.count("this run has no log.") == 3


def test_doctor_names_each_sensor(kernel: Kernel) -> None:
    answer = kernel.run("%carbontrack doctor")
    head, *rows = answer.stdout.splitlines()
    assert head.split() == ["sensor", "found", "readable", "why"]
    at = head.index("found")
    assert rows
    assert all(row[at : at + 3].strip() in {"yes", "no", ""} for row in rows)


@pytest.mark.parametrize("question", ["%carbontrack?", "%%carbontrack?"])
def test_a_question_mark_explains_every_flag(kernel: Kernel, question: str) -> None:
    sent = kernel.client.execute(question)
    while True:
        reply = kernel.client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == sent:
            break
    text = reply["content"]["payload"][0]["data"]["text/plain"]
    for option in OPTIONS:
        assert option.flag_name in text
    for word in ("--epochs N", "--no-log", "doctor", "tracker.epochs("):
        assert word in text


@pytest.mark.parametrize("line", ["%carbontrack --help", "%%carbontrack --help\nran = True"])
def test_help_is_printed_and_nothing_runs(kernel: Kernel, line: str) -> None:
    answer = kernel.run(line)
    assert "--epochs N" in answer.stdout
    assert kernel.value("'ran' in globals()") is False


def terminal(script: str, folder: Path) -> str:
    """What a terminal IPython shows for lines typed into it."""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(PACKAGE)]))
    ended = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=script,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(folder / "ipython")},
        check=True,
    )
    return ended.stdout + ended.stderr


def test_a_terminal_takes_the_whole_cell_and_tracks_it(tmp_path: Path) -> None:
    shown = terminal(
        f"%load_ext ct_notebook\n%%carbontrack {SIM} --epochs 3\n"
        "for epoch in range(3):\n    x = epoch * 7\n\n\n"
        "print('x is', x)\n%carbontrack last\n",
        tmp_path,
    )
    assert "x is 14" in shown
    assert "ct_notebook: epoch loop found in line 2 (3 epochs)." in shown
    assert "Run: 3 " in shown


def test_the_debugger_shows_the_frame_that_failed(tmp_path: Path) -> None:
    shown = terminal(
        f"%load_ext ct_notebook\n%%carbontrack {SIM} --epochs 3\n"
        "for epoch in range(3):\n    seen = 'here'\n    1 / 0\n\n\n"
        "%debug\np (seen, epoch)\nu\nq\n",
        tmp_path,
    )
    assert "('here', 0)" in shown
    assert "loops.py" not in shown
