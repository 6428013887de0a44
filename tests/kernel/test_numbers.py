"""Budget, baseline, process, place and the commands about a run, in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kernel import Kernel, old_clients_are_quiet, started

pytestmark = old_clients_are_quiet

# 3.6 MW: a watt-hour in a millisecond, so that a budget is reached in no time.
SIM = "--sim-cpu X --sim-cpu-tdp 1000000 --sim-cpu-util 1 --components cpu --pue 1 --update-interval 0.05"

CELL = """%%carbontrack --epochs 10 {flags}
import time
for epoch in range(10):
    time.sleep(0.1)
after = "reached"
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def cell(flags: str) -> str:
    return CELL.format(flags=f"{SIM} --no-log {flags}")


def seen(kernel: Kernel) -> int:
    return int(kernel.value("len(tracker.run.complete_epochs)"))


def test_a_budget_that_will_not_hold_stops_the_loop_and_the_code_after_it_runs(kernel: Kernel) -> None:
    kernel.run("after = None")
    answer = kernel.run(cell("--max-co2 1g --carbon-intensity 400 --on-exceed stop"))
    assert answer.status == "ok", answer.text
    assert "Budget: CO2eq:" in answer.stdout
    assert "1 g allowed" in answer.stdout
    assert "Stopped after epoch 1" in answer.stdout
    assert kernel.value("after") == "reached"
    assert seen(kernel) == 1
    assert "Budget: 1 g CO2eq (--on-exceed stop)." in kernel.value("tracker.run.notes")


def test_a_budget_that_only_warns_is_told_once_of_what_is_expected_and_of_what_is_used(
    kernel: Kernel,
) -> None:
    answer = kernel.run(cell("--max-kwh 0.2 --on-exceed warn"))
    assert seen(kernel) == 10
    told = [line for line in answer.stdout.splitlines() if "Budget: energy" in line]
    assert len(told) == 2
    assert "expected for the whole run, 0.2 kWh allowed" in told[0]
    assert "expected" not in told[1]


@pytest.mark.parametrize(("default", "epochs"), [("continue", 10), ("stop", 1)])
def test_a_budget_asks_and_where_nobody_can_be_asked_the_default_is_taken(
    tmp_path: Path, default: str, epochs: int
) -> None:
    with started(tmp_path) as kernel:
        sent = kernel.client.execute(cell(f"--max-time 0.5s --on-headless {default}"), allow_stdin=False)
        answer = kernel.answer(sent)
        assert answer.status == "ok", answer.text
        assert "Budget: time:" in answer.stdout
        assert "nobody can be asked here" in answer.stdout
        assert seen(kernel) == epochs


def test_a_budget_that_holds_is_not_mentioned(kernel: Kernel) -> None:
    answer = kernel.run(cell("--max-co2 1000t --max-kwh 1e6 --max-time 1d --on-exceed stop"))
    assert "Budget:" not in answer.stdout
    assert seen(kernel) == 10


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--max-co2 2", "max_co2='2' cannot be meant: give a mass with its unit"),
        ("--max-time 3", "max_time='3' cannot be meant: give a time with its unit"),
        ("--max-kwh -1", "max_kwh='-1' cannot be meant"),
        ("--max-co2 2 kg", "'kg' belongs to no flag; a value with a space in it stands in quotes"),
        ("--cpu-tdp 0", "cpu_tdp='0' cannot be meant"),
        ("--cpu-tdp 2000", "more than 0, at most 1000"),
        ("--gpu-power-limit 5000", "more than 0, at most 3000"),
        ("--on-exceed explode", "choose one of ask, stop, warn"),
        ("--zone DK-DK9", "did you mean"),
        ("--region gcp:europe-west99", "did you mean"),
        ("--country Denmrk", "did you mean Denmark"),
        ("--scope universe", "choose one of machine, process"),
        ("--baseline -1", "between 0 and 600"),
        ("--locate moon", "choose one of no, ip"),
    ],
)
def test_what_cannot_be_meant_is_one_line_before_the_cell_runs(kernel: Kernel, flags: str, told: str) -> None:
    kernel.run("after = None")
    answer = kernel.run(cell(flags))
    assert told in answer.text
    assert "Traceback" not in answer.text
    assert kernel.value("after") is None


def test_zone_and_region_give_their_intensity(kernel: Kernel) -> None:
    kernel.run(cell("--zone DK-DK1"))
    assert kernel.value("tracker.run.intensity.zone") == "DK-DK1"
    kernel.run(cell("--country DE --region gcp:europe-north1"))
    assert "europe-north1" in kernel.value("tracker.run.intensity.place")
    assert kernel.value("tracker.run.intensity.kind") == "direct"


def test_a_baseline_tells_gross_and_net(kernel: Kernel) -> None:
    answer = kernel.run(cell("--baseline 0.4"))
    assert "Measuring the idle power for 0.4 s" in answer.stdout
    assert "Gross " in answer.stdout
    # The simulated CPU draws the same idling, so nothing is left beyond it.
    gross, net = kernel.value("[tracker.run.energy_j.value, tracker.run.net_energy_j.value]")
    assert net < 0.02 * gross
    assert kernel.value("tracker.run.duration_s") < 3


def test_the_process_gets_its_share_and_machine_is_the_default(kernel: Kernel) -> None:
    kernel.run(cell(""))
    assert kernel.value("tracker.run.process") is None
    answer = kernel.run(cell("--scope process"))
    assert "This process and its children used" in answer.stdout
    share = kernel.value("tracker.run.process.total_j / tracker.run.energy_j.value")
    assert 0 <= share <= 1
    assert "of busy CPU time" in kernel.value("tracker.run.process.how")


def test_the_first_steps_foretell_the_run_before_its_first_epoch_has_ended(kernel: Kernel) -> None:
    answer = kernel.run(
        f"%%carbontrack --epochs 3 {SIM} --no-log\n"
        "import time\nfound = []\n"
        "for epoch in range(3):\n"
        "    for step in range(60):\n"
        "        time.sleep(0.02)\n"
        "        found.append(tracker.recording.moment().estimate)\n"
        "first = [e for e in found[:60] if e is not None]\n"
    )
    assert answer.status == "ok", answer.text
    assert kernel.value("len(first) > 0 and {e.made_after for e in first} == {0}")
    assert kernel.value("abs(first[-1].duration_s.value / tracker.run.duration_s - 1) < 0.5")
    assert kernel.value("first[-1].energy_j is not None and first[-1].emissions_g is not None")


def test_bars_of_tqdm_foretell_the_run_where_the_loop_is_out_of_sight(kernel: Kernel) -> None:
    kernel.run(
        "import time, io\nfrom tqdm import tqdm\n"
        "def train():\n"
        "    for step in tqdm(range(60), file=io.StringIO()):\n"
        "        time.sleep(0.02)\n"
        "        found.append(tracker.recording.moment().estimate)\n"
        "found = []"
    )
    answer = kernel.run(f"%%carbontrack --epochs 2 {SIM} --no-log\nfor epoch in range(2):\n    train()")
    assert answer.status == "ok", answer.text
    assert kernel.value("any(e is not None and e.made_after == 0 for e in found[:60])")


def test_a_bar_over_the_steps_of_all_epochs_is_not_taken_for_one_within_an_epoch(kernel: Kernel) -> None:
    kernel.run(
        "import time, io\nfrom tqdm import tqdm\n"
        "def step():\n"
        "    time.sleep(0.02)\n"
        "    bar.update()\n"
        "    found.append(tracker.recording.moment().estimate)\n"
        "def train():\n"
        "    [step() for _ in range(60)]\n"
        "found = []"
    )
    answer = kernel.run(
        f"%%carbontrack --epochs 4 {SIM} --no-log\n"
        "bar = tqdm(total=240, file=io.StringIO())\n"
        "for epoch in range(4):\n    train()\n"
    )
    assert answer.status == "ok", answer.text
    # Nothing tells how far the first epoch is, so nothing is foretold; the bar would say 16 epochs.
    assert kernel.value("len(found)") == 240
    assert kernel.value("all(e is None for e in found[:60])")
    assert kernel.value("found[-1].made_after") >= 1


def test_commands_tell_of_the_run(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(cell("--country DK").replace("--no-log", f"--log-dir {tmp_path}"))
    where = kernel.run("%carbontrack where SE PL")
    text = where.shown[0]["text/plain"]
    assert text.index("Sweden") < text.index("> Denmark (this run)") < text.index("Poland")
    assert "<table>" in where.shown[0]["text/html"]
    assert any("plotly" in kind for shown in where.shown for kind in shown)
    names = kernel.run("%carbontrack where \"New Zealand\" 'United States' SE").shown[0]["text/plain"]
    assert all(name in names for name in ("New Zealand", "United States", "Sweden"))
    compare = kernel.run("%carbontrack compare")
    assert "Green Algorithms" in compare.shown[0]["text/plain"]
    statement = kernel.run("%carbontrack statement").results[0]
    assert "Training for 10 epochs on X took" in statement
    of_folder = kernel.run(f"%carbontrack statement {tmp_path}")
    assert "Training used" in of_folder.stdout
    assert "Training for 10 epochs on X took" in of_folder.results[0]
    assert of_folder.stderr == ""
    theirs = tmp_path / "1.2_2026-11-30T231331Z_carbontracker.log"
    at = "2026-11-30 23:13:31 -"
    theirs.write_text(
        f"{at} carbontracker version 2.4.7\n{at} The following components were found: GPU with device(s) A.\n"
        f"{at} Epoch 1:\n{at} Duration: 0:00:02.00\n{at} Average power usage (W) for gpu: 70.0\n"
        f"{at} Epoch 2:\n{at} Duration: 0:00:02.00\n{at} Average power usage (W) for gpu: 0.0\n"
    )
    theirs.with_name("1.2_2026-11-30T231331Z_carbontracker_output.log").write_text(
        f"{at} CarbonTracker: \nActual consumption for 2 epoch(s):\n\tTime:\t0:00:04\n"
        "\tEnergy:\t0.000094805240 kWh\n\tCO2eq:\t0.042188331763 g\n\tThis is equivalent to:\n"
        "\t0.000395021833 km travelled by car\n"
    )
    faulty = kernel.run(f"%carbontrack statement {tmp_path}")
    assert "faults in these logs, the first: " in faulty.stdout
    assert faulty.stderr == ""
    (tmp_path / "a").mkdir()
    for path in tmp_path.glob("*.log"):
        path.rename(tmp_path / "a" / path.name)
    assert (
        f"no logs in {tmp_path}, but in its folders: a"
        in kernel.run(f"%carbontrack statement {tmp_path}").text
    )
    assert (
        f"no logs in {tmp_path / 'b'}."
        in kernel.run(
            f"import os; os.mkdir({str(tmp_path / 'b')!r})\n%carbontrack statement {tmp_path / 'b'}"
        ).text
    )


def test_the_figures_so_far_name_the_kind_of_their_grams(kernel: Kernel) -> None:
    code = cell("--country DK").replace("time.sleep(0.1)", "time.sleep(0.1); %carbontrack status")
    code = code.replace("%carbontrack status", "get_ipython().run_line_magic('carbontrack', 'status')")
    assert "g CO2eq (Denmark, lifecycle)" in kernel.run(code).stdout


def test_when_asks_for_the_place_of_the_run_and_keeps_to_its_word_on_the_network(tmp_path: Path) -> None:
    with started(tmp_path, {"CT_NOTEBOOK_OFFLINE": "0"}) as kernel:
        kernel.run(
            "import socket\n"
            "asked = []\n"
            "def no(self, address, *rest):\n"
            "    if isinstance(address, tuple): asked.append(address)\n"
            "    raise OSError('no network')\n"
            "def no_names(*rest, **more): asked.append(rest); raise OSError('no names')\n"
            "socket.socket.connect = socket.socket.connect_ex = no\n"
            "socket.getaddrinfo = no_names"
        )
        kernel.run(cell("--zone GB-NG1 --offline"))
        assert "offline" in kernel.run("%carbontrack when").text
        assert kernel.value("asked") == []
        kernel.run(cell("--zone GB-NG1"))
        kernel.run(
            "%config CarbonTrack.country = 'FR'\n"
            "from ct_notebook.errors import SourceError\n"
            "from ct_notebook.intensity import http\n"
            "def tell(url, **more): raise SourceError(f'asked {url}')\n"
            "http.live_get = tell"
        )
        assert "/regional/postcode/NG1" in kernel.run("%carbontrack when").text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("%carbontrack where Swedn", "did you mean"),
        ("%carbontrack when", "offline"),
        ("%carbontrack statement /nowhere/at/all", "statement:"),
    ],
)
def test_a_command_that_cannot_be_done_says_so_in_one_line(kernel: Kernel, line: str, told: str) -> None:
    answer = kernel.run(line)
    assert told in answer.text
    assert "Traceback" not in answer.text


def test_commands_before_any_run_say_so(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        for word in ("where", "when", "compare", "statement"):
            assert "there is no run yet" in kernel.run(f"%carbontrack {word}").stdout


def test_what_tracking_took_is_in_the_result(kernel: Kernel) -> None:
    kernel.run(cell(""))
    cost = kernel.value("dict(tracker.run.cost)")
    assert cost["samples"] > 2
    assert cost["cpu_s"] > 0
    assert cost["longest_gap_s"] > 0
