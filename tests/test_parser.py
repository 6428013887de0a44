from __future__ import annotations

import math
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from ct_notebook import parser
from ct_notebook.errors import LogError
from support.log_runs import MEMORY, T4, T4_B, XEON, actual_text, by_hand, epoch, full_run, run, write

HEAD = "T - carbontracker version 2.4.7\nT - Only predicted and actual consumptions are multiplied by a PUE "
HEAD += "coefficient of 1.58 (a survey).\nT - The following components were found: {}\n"
AVERAGE = "T - Average carbon intensity during training was 100.00 gCO2eq/kWh.\u0020\n"


def rows(component: str, *powers: str) -> str:
    return "".join(
        f"T - Epoch {place}:\nT - Duration: 0:00:02.00\n"
        f"T - Average power usage (W) for {component}: {power}\n"
        for place, power in enumerate(powers, 1)
    )


def block(
    kind: str, energy: str = "0.5", co2eq: str = "50", time: str = "0:00:04", *, equivalents: bool = True
) -> str:
    text = f"T - CarbonTracker: \n{kind}:\n\tTime:\t{time}\n\tEnergy:\t{energy} kWh\n\tCO2eq:\t{co2eq} g\n"
    return text + ("\tThis is equivalent to:\n\t0.25 km travelled by car\n" if equivalents else "")


def test_our_own_logs_have_the_shapes_of_carbontracker(tmp_path: Path) -> None:
    made = run(
        [epoch(place, {"gpu:a": 200.0, "gpu:b": 600.0, "cpu:package-0": 20.0}) for place in (1, 2, 3, 4)],
        [T4, T4_B, XEON],
    )
    writer = write(tmp_path, made)
    (entry,) = parser.parse_all_logs(tmp_path)
    assert entry["standard_filename"] == writer.paths[0]
    assert entry["output_filename"] == writer.paths[1]
    assert entry["early_stop"] is False
    assert list(entry["components"]) == ["gpu", "cpu"]
    gpu, cpu = entry["components"].values()
    assert gpu["avg_power_usages (W)"].tolist() == [[400.0]] * 4
    assert gpu["avg_energy_usages (J)"].tolist() == [[800.0]] * 4
    assert gpu["epoch_durations (s)"].tolist() == [2.0] * 4
    assert gpu["devices"] == ["Tesla T4", "Tesla T4"]
    assert cpu["devices"] == ["Intel(R) Xeon(R) CPU @ 2.20GHz"]
    assert isinstance(cpu["avg_power_usages (W)"], np.ndarray)
    assert entry["actual"]["epochs"] == 4
    assert entry["actual"]["duration (s)"] == 8.0
    assert entry["actual"]["energy (kWh)"] == pytest.approx(3280 / 3.6e6 * 1.58)
    assert list(entry["actual"]["equivalents"]) == ["km travelled by car"]
    assert entry["pred"]["epochs"] == 4
    assert parser.problems(tmp_path) == {}


def test_memory_is_a_component_like_the_others(tmp_path: Path) -> None:
    write(tmp_path, run([epoch(1, {"ram": 8.0})], [MEMORY]))
    assert parser.parse_logs(tmp_path)["ram"]["avg_power_usages (W)"].tolist() == [[4.0]]


def test_a_power_that_was_not_measured_is_nan_and_never_zero(tmp_path: Path) -> None:
    write(tmp_path / "ours", run([epoch(1, {"gpu:a": 8.0}), epoch(2, {})], [T4]))
    powers = parser.parse_logs(tmp_path / "ours")["gpu"]["avg_power_usages (W)"]
    assert powers[0] == [4.0]
    assert math.isnan(powers[1][0])
    by_hand(tmp_path / "theirs", HEAD.format("CPU with device(s) cpu:0.") + rows("cpu", "8.0", "None"), "x")
    with pytest.warns(parser.LogWarning, match="not measured in 1 of 2"):
        powers = parser.parse_logs(tmp_path / "theirs")["cpu"]["avg_power_usages (W)"]
    assert powers[0] == [8.0]
    assert math.isnan(powers[1][0])


@pytest.mark.parametrize(
    ("power", "row"),
    [
        ("16.137330275229353", [16.137330275229353]),
        ("[60.0]", [60.0]),
        ("[  9.08700942 136.99644118]", [9.08700942, 136.99644118]),
        ("[1. 2.\n 3.]", [1.0, 2.0, 3.0]),
        ("6.1e-05", [6.1e-05]),
        ("np.float64(1.2)", [1.2]),
        ("[1.2e+02 3.4e+01]", [120.0, 34.0]),
    ],
)
def test_powers_stay_as_they_are_logged(tmp_path: Path, power: str, row: list[float]) -> None:
    text = by_hand(tmp_path, rows("gpu", power, power))[0].read_text()
    assert parser.get_avg_power_usages(text) == {"gpu": [row, row]}


def test_rows_of_different_length_are_filled_with_nan(tmp_path: Path) -> None:
    text = by_hand(tmp_path, rows("gpu", "[1. 2.]", "None"))[0].read_text()
    (first, second) = parser.get_avg_power_usages(text)["gpu"]
    assert first == [1.0, 2.0]
    assert [math.isnan(value) for value in second] == [True, True]


@pytest.mark.parametrize(
    ("kind", "epochs"),
    [
        ("Actual consumption for 6 epoch(s)", 6),
        ("Actual consumption for 6 epochs", 6),
        ("Actual consumption for -1 epoch(s)", 0),
        ("Actual consumption", 1),
    ],
)
@pytest.mark.parametrize("equivalents", [True, False])
def test_the_actual_epochs_are_what_the_log_says(kind: str, epochs: int, equivalents: bool) -> None:  # noqa: FBT001 - a table
    actual, pred = parser.get_consumption(block(kind, equivalents=equivalents))
    assert actual == {
        "epochs": epochs,
        "duration (s)": 4.0,
        "energy (kWh)": 0.5,
        "co2eq (g)": 50.0,
        "equivalents": {"km travelled by car": 0.25} if equivalents else None,
    }
    assert pred is None


@pytest.mark.parametrize("kind", ["Actual consumption", "Actual consumption for 1 epoch(s)"])
def test_the_actual_epochs_are_those_of_the_standard_log_if_the_block_miscounts(
    tmp_path: Path, kind: str
) -> None:
    by_hand(tmp_path, HEAD.format("CPU with device(s) A.") + rows("cpu", "8.0", "8.0"), block(kind))
    (entry,) = parser.parse_all_logs(tmp_path)
    assert entry["actual"]["epochs"] == 2


def test_the_actual_epochs_stay_if_the_block_is_of_some_of_the_epochs_only(tmp_path: Path) -> None:
    body = HEAD.format("CPU with device(s) A.") + rows("cpu", "8.0", "8.0", "8.0", "8.0")
    by_hand(tmp_path, body, block("Actual consumption for 2 epoch(s)"))
    (entry,) = parser.parse_all_logs(tmp_path)
    assert entry["actual"]["epochs"] == 2


def aggregate(folder: Path, *output: str, standard: str = "") -> tuple[float, float, dict[str, float]]:
    body = HEAD.format("CPU with device(s) A.") + rows("cpu", "9.0", "9.0") + standard
    by_hand(folder, body, "".join(output) or "x")
    return parser.aggregate_consumption(folder)


def test_a_finished_run_counts_as_measured(tmp_path: Path) -> None:
    predicted, actual = (
        block("Predicted consumption for 2 epoch(s)", "0.7"),
        block("Actual consumption for 2 epoch(s)"),
    )
    assert aggregate(tmp_path, predicted, actual) == (0.5, 50.0, {"km travelled by car": 0.25})


def test_a_run_that_stopped_early_counts_as_measured(tmp_path: Path) -> None:
    predicted, actual = (
        block("Predicted consumption for 9 epoch(s)", "0.7"),
        block("Actual consumption for 2 epoch(s)"),
    )
    stop = "T - Training was interrupted before all 9 epochs were monitored.\n"
    assert aggregate(tmp_path, predicted, actual, standard=stop)[0] == 0.5


def test_a_run_that_monitored_only_its_first_epochs_counts_as_predicted(tmp_path: Path) -> None:
    predicted, actual = (
        block("Predicted consumption for 9 epoch(s)", "0.7"),
        block("Actual consumption for 2 epoch(s)"),
    )
    assert aggregate(tmp_path, predicted, actual)[0] == 0.7


def test_a_killed_run_counts_for_what_it_did(tmp_path: Path) -> None:
    energy, co2eq, equivalents = aggregate(
        tmp_path, block("Predicted consumption for 9 epoch(s)"), standard=AVERAGE
    )
    assert energy == pytest.approx(2 * 2.0 * 9.0 * 1.58 / 3.6e6)
    assert co2eq == pytest.approx(energy * 100.0)
    assert equivalents["km travelled by car"] == pytest.approx(co2eq / 106.8)


def test_a_consumption_that_is_nan_counts_by_its_epochs(tmp_path: Path) -> None:
    energy, _, _ = aggregate(
        tmp_path, block("Actual consumption for 2 epoch(s)", "nan", "nan"), standard=AVERAGE
    )
    assert energy == pytest.approx(2 * 2.0 * 9.0 * 1.58 / 3.6e6)


def test_a_carbon_figure_that_is_nan_is_left_out(tmp_path: Path) -> None:
    assert aggregate(tmp_path, block("Actual consumption for 2 epoch(s)", co2eq="nan"))[:2] == (0.5, 0.0)


def test_runs_are_added_up(tmp_path: Path) -> None:
    for stem in ("1.1_a", "2.1_a"):
        by_hand(
            tmp_path, HEAD.format("CPU with device(s) A."), block("Actual consumption for 2 epoch(s)"), stem
        )
    assert parser.aggregate_consumption(tmp_path) == (1.0, 100.0, {"km travelled by car": 0.5})


def test_the_aggregate_is_printed_with_its_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand(tmp_path, HEAD.format("CPU with device(s) A."), block("Actual consumption for 2 epoch(s)"))
    parser.print_aggregate(tmp_path)
    assert "0.500000 kWh" in capsys.readouterr().out


def test_our_own_finished_runs_add_up_to_what_they_measured(tmp_path: Path) -> None:
    made = run([epoch(1, {"gpu:a": 1000.0}), epoch(2, {"gpu:a": 100.0})], declared=2)
    write(tmp_path, made)
    energy, co2eq, _ = parser.aggregate_consumption(tmp_path)
    assert energy == pytest.approx(1100 / 3.6e6 * 1.58)
    assert co2eq == pytest.approx(getattr(made.emissions_g, "value", None))


def test_a_folder_of_all_kinds_of_damage_is_read_with_one_warning_per_fault(tmp_path: Path) -> None:
    write(tmp_path, full_run())
    by_hand(tmp_path, HEAD.format("CPU with device(s) A.") + rows("cpu", "-5", "6.0"), "x", "1_bad")
    by_hand(tmp_path, "", "x", "2_empty")
    by_hand(tmp_path, "no log at all\n", "x", "3_odd")
    (tmp_path / "4_carbontracker_output.log").write_text("x")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        entries = parser.parse_all_logs(tmp_path)
    assert len(entries) == 3
    assert {warning.category for warning in caught} == {parser.LogWarning}
    assert all(Path(warning.filename).name == "test_parser.py" for warning in caught)
    told = parser.problems(tmp_path)
    assert {Path(path).name.split("_")[0] for path in told} == {"1", "2", "3", tmp_path.name.split("_")[0]}


def test_a_log_without_epochs_has_none_for_its_arrays(tmp_path: Path) -> None:
    by_hand(tmp_path, HEAD.format("CPU with device(s) A."), "x")
    assert parser.parse_logs(tmp_path) == {
        "cpu": {
            "avg_power_usages (W)": None,
            "avg_energy_usages (J)": None,
            "epoch_durations (s)": None,
            "devices": ["A"],
        }
    }


def test_the_newest_log_comes_with_the_output_log_of_its_own_run(tmp_path: Path) -> None:
    old = by_hand(tmp_path, HEAD, "x", "1_old")
    new = by_hand(tmp_path, HEAD, "x", "2_new")
    for path, at in ((old[0], 100), (new[0], 200), (new[1], 50), (old[1], 300)):
        os.utime(path, (at, at))
    assert parser.get_most_recent_logs(tmp_path) == (str(new[0]), str(new[1]))


def test_a_folder_without_logs_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="There is no log in"):
        parser.parse_logs(tmp_path)
    with pytest.raises(LogError, match="cannot be read"):
        parser.parse_all_logs(tmp_path / "nothing")
    assert parser.aggregate_consumption(tmp_path) == (0.0, 0.0, {})


def test_the_small_functions_take_what_carbontracker_gives_them() -> None:
    assert parser.get_time("0:00:09") == 9.0
    assert parser.get_time("1 day, 0:00:09") == 86409.0
    assert parser.get_time("soon") is None
    assert parser.parse_equivalents("0.5 km travelled by car\n x y\n\n1e-3 trees\n") == {
        "km travelled by car": 0.5,
        "trees": 0.001,
    }
    assert parser.get_early_stop(
        "2026-11-30 23:13:34 - Training was interrupted before all 10 epochs were monitored.\n"
    )
    assert not parser.get_early_stop("2026-11-30 23:13:34 - Epoch 1:\n")
    assert parser.get_epoch_durations(
        "2026-11-30 23:13:34 - Epoch 1:\n2026-11-30 23:13:34 - Duration: 0:01:02.50\n"
    ) == [62.5]
    match = re.match(r"(\d+) (\S+) (\S+) (\S+) (.*)", "6 0:00:09 0.5 50 0.25 km")
    assert parser.extract_measurements(match) == {
        "epochs": 6,
        "duration (s)": 9.0,
        "energy (kWh)": 0.5,
        "co2eq (g)": 50.0,
        "equivalents": {"km": 0.25},
    }
    assert parser.extract_measurements(None) is None
    assert parser.get_consumption("\n".join(actual_text(full_run()).splitlines()))[0] is not None
