from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ct_notebook import parser
from ct_notebook.log.reader import read_run, read_runs
from ct_notebook.records import Run
from support.log_runs import HOSTILE_NAMES, MEMORY, T4, T4_B, XEON, epoch, run, write
from support.peers import REQUIREMENTS, peer_reads, run_peer

pytestmark = pytest.mark.peers

VERSIONS = tuple(REQUIREMENTS)

ONE_GPU = run([epoch(place, {"gpu:a": 100.0 + place}) for place in range(1, 5)])
MACHINE = run(
    [
        epoch(place, {"gpu:a": 200.0, "gpu:b": 600.0, "cpu:package-0": 40.5, "ram": 8.0})
        for place in range(1, 5)
    ],
    [T4, T4_B, XEON, MEMORY],
)
EARLY = replace(ONE_GPU, epochs_declared=10, early_stop=True, reason="the user chose to stop")
HOSTILE = run(
    [epoch(1, {f"gpu:{place}": 2.0 for place in range(len(HOSTILE_NAMES))} | {"cpu:package-0": 40.0})],
    [*(replace(T4, key=f"gpu:{place}", name=name) for place, name in enumerate(HOSTILE_NAMES)), XEON],
    1,
    notes=HOSTILE_NAMES[:-3],
    missing=dict(enumerate(HOSTILE_NAMES[:3])),
)
PAUSED = run(
    [epoch(1, {"gpu:a": 100.0}), epoch(2, {"gpu:a": 100.0}, paused_s=0.5), epoch(3, {"gpu:a": 100.0})],
    declared=3,
    paused_s=0.5,
    paused_j={"gpu:a": 20.0},
)
MISSING = run(
    [
        epoch(1, {"gpu:a": 100.0}),
        epoch(2, {"gpu:a": 100.0, "cpu:package-0": 40.0}),
        epoch(3, {"cpu:package-0": 40.0}),
    ],
    [T4, XEON],
    3,
)
LONG = run([epoch(1, {"gpu:a": 1e9}, 100_000.25), epoch(2, {"gpu:a": 1e-4}, 0.004)], declared=2)
RUNS = {
    "one GPU": ONE_GPU,
    "two GPUs, CPU, RAM": MACHINE,
    "early stop": EARLY,
    "hostile names": HOSTILE,
    "paused": PAUSED,
    "missing component": MISSING,
    "very long and very short epochs": LONG,
}


def powers(entry: dict[str, Any], component: str) -> list[list[float]]:
    values: list[list[float]] = entry["components"][component]["avg_power_usages (W)"]["values"]
    return values


def epochs_of(version: str, count: int) -> int:
    """carbontracker 2.x counts one epoch whatever the log says; 1.2.5 reads the number."""
    return 1 if version == "2.4.7" else count


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)
def test_it_reads_the_powers_durations_and_consumptions_that_we_wrote(
    tmp_path: Path, version: str, made: Run
) -> None:
    write(tmp_path, made)
    answers = peer_reads(version, tmp_path)
    (entry,) = answers["parse_all_logs"]
    components = {device.component for device in made.devices}
    assert set(entry["components"]) == components
    for component in components:
        found = entry["components"][component]
        members = [device.key for device in made.devices if device.component == component]
        assert found["avg_power_usages (W)"]["shape"] == [len(made.epochs), 1]
        assert len(found["devices"]) == len(members)
        for one, (power_w,), duration_s in zip(
            made.epochs,
            found["avg_power_usages (W)"]["values"],
            found["epoch_durations (s)"]["values"],
            strict=True,
        ):
            assert duration_s == pytest.approx(one.duration_s, abs=0.006)
            read = [one.energy_j[key] / one.covered_s[key] for key in members if key in one.energy_j]
            if read:
                assert power_w == pytest.approx(sum(read), abs=0.001)
    assert entry["early_stop"] == made.early_stop
    energy_kwh = sum(made.energy_by_device_j.values()) / 3.6e6 * 1.58
    assert entry["actual"]["epochs"] == epochs_of(version, len(made.epochs))
    assert entry["actual"]["energy (kWh)"] == pytest.approx(energy_kwh, abs=1e-11)
    assert entry["actual"]["co2eq (g)"] == pytest.approx(energy_kwh * 143.3, abs=1e-9)
    assert entry["actual"]["duration (s)"] == pytest.approx(
        sum(one.duration_s for one in made.epochs), abs=0.5
    )
    assert entry["actual"]["equivalents"] == {
        "km travelled by car": pytest.approx(energy_kwh * 143.3 / 106.8, abs=1e-11)
    }
    assert entry["pred"]["epochs"] == made.epochs_declared


@pytest.mark.parametrize("version", VERSIONS)
def test_a_component_without_a_reading_counts_as_before(tmp_path: Path, version: str) -> None:
    write(tmp_path, MISSING)
    (entry,) = peer_reads(version, tmp_path)["parse_all_logs"]
    assert powers(entry, "gpu") == [[50.0], [50.0], [50.0]]
    assert powers(entry, "cpu") == [[0.0], [20.0], [20.0]]


@pytest.mark.parametrize("version", VERSIONS)
def test_names_are_whole_but_for_full_stops_and_commas(tmp_path: Path, version: str) -> None:
    write(tmp_path, MACHINE)
    (entry,) = peer_reads(version, tmp_path)["parse_all_logs"]
    assert {component: found["devices"] for component, found in entry["components"].items()} == {
        "gpu": ["Tesla T4", " Tesla T4"],
        "cpu": ["Intel(R) Xeon(R) CPU @ 2_20GHz"],
        "ram": ["16_0 GB allocated"],
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_it_adds_up_a_folder_of_our_logs(tmp_path: Path, version: str) -> None:
    # Without a prediction, or stopped early, 2.x too takes what was measured.
    write(tmp_path, ONE_GPU, predicts=False)
    write(tmp_path, EARLY)
    write(tmp_path, MACHINE, predicts=False)
    energy, co2eq, equivalents = peer_reads(version, tmp_path)["aggregate_consumption"]
    energy_kwh = (
        sum(sum(made.energy_by_device_j.values()) for made in (ONE_GPU, EARLY, MACHINE)) / 3.6e6 * 1.58
    )
    assert energy == pytest.approx(energy_kwh)
    assert co2eq == pytest.approx(energy_kwh * 143.3)
    assert equivalents == {"km travelled by car": pytest.approx(energy_kwh * 143.3 / 106.8)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_that_was_killed_or_had_nothing_to_measure_breaks_nothing(tmp_path: Path, version: str) -> None:
    write(tmp_path, ONE_GPU, ends=False)
    write(tmp_path, run([], [T4]))
    write(tmp_path, run([], [], None))
    write(tmp_path, run([epoch(1, {})], [], None), predicts=False)
    entries = peer_reads(version, tmp_path)["parse_all_logs"]
    assert len(entries) == 4
    assert sorted(len(entry["components"]) for entry in entries) == [0, 0, 1, 1]


def test_the_report_of_2_4_7_finds_the_carbon_intensity(tmp_path: Path) -> None:
    writer = write(tmp_path, MACHINE)
    code = """
import json, sys
from carbontracker.report import LogParser
log = LogParser(open(sys.argv[1]).read())
print(json.dumps([log.carbon_intensity, log.location, log.pue, [e["duration"] for e in log.epochs]]))
"""
    printed = run_peer("2.4.7", code, writer.paths[0]).splitlines()[-1]
    assert printed == '[143.3, "Denmark.", 1.58, [2.0, 2.0, 2.0, 2.0]]'


# The other way: what the real packages write, ours reads.

_TRACKED_2 = """
import sys, time
from carbontracker.tracker import CarbonTracker
tracker = CarbonTracker(
    epochs=4, monitor_epochs=-1, update_interval=1, log_dir=sys.argv[1], verbose=0,
    sim_cpu="Intel Xeon E5-2680 v4.1", sim_cpu_tdp=120, sim_gpu="Tesla T4", sim_gpu_watts=70,
)
for epoch in range(4):
    tracker.epoch_start()
    time.sleep(0.25)
    tracker.epoch_end()
    if epoch == 2 and sys.argv[2] == "stops":
        tracker.stop()
        break
"""

# 1.2.5 has no simulated hardware: it reads a counter that this script turns, two packages of 50 W and 30 W.
_TRACKED_1 = """
import os, sys, threading, time
from carbontracker.components.cpu import intel
from carbontracker.tracker import CarbonTracker
root = os.path.join(sys.argv[1], "..", "rapl")
watts = {"intel-rapl:0": 50, "intel-rapl:1": 30}
for package in watts:
    os.makedirs(os.path.join(root, package))
    with open(os.path.join(root, package, "name"), "w") as file:
        file.write(f"package-{package[-1]}\\n")
def turn_once(at):
    for package, power in watts.items():
        path = os.path.join(root, package, "energy_uj")
        with open(path + "_", "w") as file:
            file.write(str(int(at * power * 1e6)))
        os.replace(path + "_", path)
began = time.monotonic()
def turn():
    while True:
        turn_once(time.monotonic() - began)
        time.sleep(0.01)
turn_once(0)
threading.Thread(target=turn, daemon=True).start()
intel.RAPL_DIR = root
tracker = CarbonTracker(epochs=3, monitor_epochs=-1, update_interval=1, log_dir=sys.argv[1], verbose=0)
for epoch in range(3):
    tracker.epoch_start()
    time.sleep(1.5)
    tracker.epoch_end()
"""


@pytest.mark.parametrize("how", ["finishes", "stops"])
def test_ours_reads_what_carbontracker_2_4_7_writes(tmp_path: Path, how: str) -> None:
    run_peer("2.4.7", _TRACKED_2, tmp_path, how)
    (entry,) = parser.parse_all_logs(tmp_path)
    count = 3 if how == "stops" else 4
    assert entry["actual"]["epochs"] == count
    assert entry["early_stop"] == (how == "stops")
    assert entry["components"]["cpu"]["devices"] == ["Intel Xeon E5-2680 v4.1"]
    assert entry["components"]["gpu"]["avg_power_usages (W)"].tolist() == [[35.0]] * count
    assert parser.problems(tmp_path) == {}
    (theirs,) = peer_reads("2.4.7", tmp_path)["parse_all_logs"]
    assert same_but_for_their_faults(entry, theirs)
    ((found,), problems) = read_runs(tmp_path)
    assert problems == ()
    assert found.closed
    assert len(found.epochs) == count
    actual_j = entry["actual"]["energy (kWh)"] * 3.6e6 / 1.58
    assert sum(found.energy_by_device_j.values()) == pytest.approx(actual_j, rel=0.03)
    assert found.intensity.g_per_kwh == 445.0


def test_ours_reads_what_carbontracker_1_2_5_writes(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    run_peer("1.2.5", _TRACKED_1, folder)
    with pytest.warns(parser.LogWarning) if parser.problems(folder) else nullcontext():
        (entry,) = parser.parse_all_logs(folder)
    assert entry["actual"]["epochs"] == 3
    power = entry["components"]["cpu"]["avg_power_usages (W)"]
    assert power.shape == (3, 2)
    measured = power[~np.isnan(power).any(axis=1)]
    assert len(measured) > 0
    assert measured == pytest.approx(np.tile([50.0, 30.0], (len(measured), 1)), rel=0.1)
    paths = (entry["standard_filename"], entry["output_filename"])
    found, _ = read_run(*paths)
    assert [device.name for device in found.devices] == ["cpu:0", "cpu:1"]
    assert all(device.method == "counter" for device in found.devices)
    assert found.closed
    assert found.epochs_declared == 3


def same_but_for_their_faults(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Every key and shape is theirs; every value too, but `actual.epochs` and names cut at a full stop."""
    assert set(ours) == set(theirs)
    assert set(ours["components"]) == set(theirs["components"])
    for component, found in ours["components"].items():
        other = theirs["components"][component]
        assert set(found) == set(other)
        for key in ("avg_power_usages (W)", "avg_energy_usages (J)", "epoch_durations (s)"):
            assert list(found[key].shape) == other[key]["shape"]
            assert found[key].tolist() == other[key]["values"]
        assert all(
            mine.startswith(cut.strip()) for mine, cut in zip(found["devices"], other["devices"], strict=True)
        )
    for kind in ("actual", "pred"):
        assert {**ours[kind], "epochs": 0} == {**theirs[kind], "epochs": 0}
        assert math.isfinite(ours[kind]["energy (kWh)"])
    return bool(
        ours["pred"]["epochs"] == theirs["pred"]["epochs"] and ours["early_stop"] == theirs["early_stop"]
    )
