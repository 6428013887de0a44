from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from ct_notebook.errors import LogError
from ct_notebook.intensity.table import ANYWHERE, WITHIN_A_YEAR
from ct_notebook.log.reader import read_file, read_run, read_runs
from ct_notebook.records import Run
from ct_notebook.sensors import nvml, rapl
from ct_notebook.statement import statement
from support.log_runs import (
    T4,
    XEON,
    by_hand,
    epoch,
    full_run,
    output_text,
    predicted_text,
    run,
    standard_text,
    write,
)

HEAD = """\
T - carbontracker version {version}
T - Only predicted and actual consumptions are multiplied by a PUE coefficient of 1.58 (a survey).
T - The following components were found: {components}
T - Monitoring thread started.
"""
END = "T - Monitoring thread ended.\n"
AVERAGE = "Average carbon intensity during training was"
INTENSITIES = "Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location"
LIVE = "Live carbon intensity could not be fetched at detected location: Unknown."
CPU = "CPU with device(s) AMD EPYC."
BLOCK = """\
T - CarbonTracker:\u0020
{kind}:
	Time:	0:00:04
	Energy:	0.000094805240 kWh
	CO2eq:	0.042188331763 g
	This is equivalent to:
	0.000395021833 km travelled by car
"""


def rows(*powers: str, component: str = "cpu") -> str:
    """An epoch of 2 s for each power."""
    return "".join(
        f"T - Epoch {place}:\nT - Duration: 0:00:02.00\n"
        f"T - Average power usage (W) for {component}: {power}\n"
        for place, power in enumerate(powers, 1)
    )


def read(tmp_path: Path, standard: str, output: str = "") -> tuple[Run, tuple[str, ...]]:
    return read_run(*by_hand(tmp_path, standard, output))


def log(body: str, version: str = "2.4.7", components: str = CPU, end: str = END) -> str:
    return HEAD.format(version=version, components=components) + body + end


def joules(made: Run) -> list[dict[str, float]]:
    return [{key: round(value, 6) for key, value in one.energy_j.items()} for one in made.epochs]


# Our own logs.


@pytest.mark.parametrize("made", [full_run(), run(), run([], [], None), run([epoch(1, {})], [T4, XEON])])
def test_a_run_comes_back_as_it_was_written(tmp_path: Path, made: Run) -> None:
    writer = write(tmp_path, made)
    found, problems = read_run(*writer.paths)
    assert replace(found, log_paths=()) == made
    assert found.log_paths == writer.paths
    assert problems == ()


def test_a_component_that_was_not_measured_is_absent_though_its_line_has_a_number(tmp_path: Path) -> None:
    made = run([epoch(1, {"gpu:a": 100.0}), epoch(2, {})], declared=2)
    writer = write(tmp_path, made)
    assert standard_text(writer).count("for gpu: [50.000]") == 2
    found, _ = read_run(*writer.paths)
    assert joules(found) == [{"gpu:a": 100.0}, {}]
    # The same when only carbontracker's lines and the word that it was not measured are left.
    kept = [line for line in standard_text(writer).splitlines(keepends=True) if "ook: run" not in line]
    Path(writer.paths[0]).write_text("".join(kept))
    found, problems = read_run(*writer.paths)
    assert joules(found) == [{"gpu:0": 100.0}, {}]
    assert "gpu was not measured in 1 of 2 epochs." in problems


def test_a_run_that_was_killed_gives_its_finished_epochs_and_its_prediction(tmp_path: Path) -> None:
    made = full_run()
    writer = write(tmp_path, made, ends=False)
    found, problems = read_run(*writer.paths)
    assert found.epochs == made.epochs
    assert found.devices == made.devices
    assert not found.closed
    assert found.duration_s > 0
    assert "no end" in found.notes[-1]
    assert problems == ()


def test_a_killed_run_keeps_what_was_told_and_declared_on_the_way(tmp_path: Path) -> None:
    from ct_notebook.log.writer import LogWriter

    made = run([epoch(1, {"gpu:a": 36.0})], declared=None)
    writer = LogWriter(tmp_path)
    writer.run_begins(replace(made, epochs=()))
    writer.detail("declared", {"epochs": 7})
    writer.detail("note", {"text": "The fan is loud."})
    writer.epoch(made, made.epochs[0])
    writer.output(predicted_text(made, 7))
    assert writer.close(10)
    found, problems = read_run(*writer.paths)
    assert found.epochs_declared == 7
    assert found.notes[0] == "The fan is loud."
    assert found.prediction is not None
    assert found.prediction.energy_j is not None
    assert found.prediction.energy_j.value == pytest.approx(7 * 36.0)
    assert found.prediction.made_after == 1
    assert problems == ()


def test_what_changes_during_a_run_is_known_without_its_end(tmp_path: Path) -> None:
    from ct_notebook.log.writer import LogWriter

    made = run([epoch(1, {"gpu:a": 1.0})])
    later = replace(
        made, missing={"gpu:a": "gone"}, notes=("One.",), paused_s=2.5, prediction=full_run().prediction
    )
    writer = LogWriter(tmp_path)
    writer.run_begins(replace(made, epochs=()))
    writer.epoch(later, made.epochs[0])
    assert writer.close(10)
    found, _ = read_run(*writer.paths)
    assert found.missing == {"gpu:a": "gone"}
    assert found.notes[0] == "One."
    assert found.paused_s == 2.5
    assert found.estimate == found.prediction == later.prediction


@pytest.mark.parametrize("cut", range(0, 3000, 37))
def test_a_log_cut_off_anywhere_is_read_as_far_as_it_goes(tmp_path: Path, cut: int) -> None:
    made = full_run()
    writer = write(tmp_path, made)
    whole = Path(writer.paths[0]).read_bytes()
    Path(writer.paths[0]).write_bytes(whole[: max(0, len(whole) - cut)])
    found, problems = read_run(*writer.paths)
    assert list(found.epochs) == list(made.epochs)[: len(found.epochs)]
    lines = whole[: len(whole) - cut]
    assert problems or lines.endswith(b"\n") or lines.rpartition(b"\n")[2].count(b"ct_notebook:") == 0


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        (r'"g_per_kwh": [\d.]+', '"g_per_kwh": null'),
        (r'"g_per_kwh": [\d.]+', '"g_per_kwh": -5'),
        (r'"place": "[^"]*"', '"place": 5'),
        (r'"kind": "[^"]*"', '"kind": []'),
        (r'"component": "[^"]*"', '"component": null'),
        (r'"name": "[^"]*"', '"name": null'),
        (r'"pue": {"value": [\d.]+', '"pue": {"value": "x"'),
        (r'"method": "[^"]*"', '"method": "telepathy"'),
    ],
)
def test_a_line_of_ours_with_a_thing_of_the_wrong_kind_makes_no_traceback_later(
    tmp_path: Path, pattern: str, damage: str
) -> None:
    writer = write(tmp_path, full_run())
    path = Path(writer.paths[0])
    text, count = re.subn(pattern, damage, standard_text(writer))
    assert count
    path.write_text(text, "utf-8")
    runs, problems = read_runs(tmp_path)
    assert problems or "telepathy" in damage
    assert statement(runs, "1").sentence
    assert repr(runs[0])
    runs[0].compare().table()


def test_damage_in_the_middle_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    writer = write(tmp_path, full_run())
    path = Path(writer.paths[0])
    text = standard_text(writer).replace('epoch {"index": 2', 'epoch {"index": ?')
    path.write_bytes(text.encode() + b"\0\0\0\xff\xfe garbage \n")
    found, problems = read_run(*writer.paths)
    assert [one.index for one in found.epochs] == [1, 3]
    assert any("damaged" in problem for problem in problems)
    assert "The energy of these epochs is lost: 2." in problems
    assert any("zero bytes" in problem for problem in problems)


@pytest.mark.parametrize(
    "line",
    [
        '{"index": "x"}',
        '{"index": 2, "start_s": [], "end_s": 1, "energy_j": {}, "covered_s": {}}',
        '{"energy_j": 5}',
        "[1]",
        "{" * 5000,
    ],
)
def test_an_extra_line_of_the_wrong_kind_is_told(tmp_path: Path, line: str) -> None:
    writer = write(tmp_path, run([epoch(1, {"gpu:a": 1.0})]))
    path = Path(writer.paths[0])
    path.write_text(f"{standard_text(writer)}2026-03-01 12:00:09 - ct_notebook: epoch {line}\n")
    found, problems = read_run(*writer.paths)
    assert len(found.epochs) == 1
    assert len(problems) == 1


def test_our_log_without_its_run_line_still_gives_power_times_duration(tmp_path: Path) -> None:
    writer = write(
        tmp_path, run([epoch(1, {"gpu:a": 200.0, "gpu:b": 600.0})], [T4, replace(T4, key="gpu:b")])
    )
    path = Path(writer.paths[0])
    path.write_text(
        "".join(line for line in standard_text(writer).splitlines(keepends=True) if "ook: run" not in line)
    )
    found, _ = read_run(*writer.paths)
    assert sum(found.energy_by_device_j.values()) == pytest.approx(800.0)
    assert found.prediction is not None


# Logs of carbontracker.


def test_a_log_of_carbontracker_gives_what_it_holds(tmp_path: Path) -> None:
    body = rows("60.0", "61.0", "62.0") + (
        "T - Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location: Unknown: [445.0]\n"
        "T - Average carbon intensity during training was 445.00 gCO2eq/kWh.\u0020\n"
    )
    output = BLOCK.format(kind="Predicted consumption for 3 epoch(s)")
    output += BLOCK.format(kind="Actual consumption for 3 epoch(s)")
    found, problems = read(tmp_path, log(body), output)
    assert joules(found) == [{"cpu:0": 120.0}, {"cpu:0": 122.0}, {"cpu:0": 124.0}]
    assert [round(one.duration_s, 6) for one in found.epochs] == [2.0, 2.0, 2.0]
    assert [device.name for device in found.devices] == ["AMD EPYC"]
    assert found.devices[0].method == "constant"
    # Half a TDP is no measurement, and 445 g stands in for a place that is unknown: neither is exact.
    assert found.energy_j is not None
    assert found.energy_j.low < 0.5 * found.energy_j.value
    assert found.energy_j.high > 2 * found.energy_j.value
    assert (found.intensity.low, found.intensity.high) == ANYWHERE
    assert found.pue.value == 1.58
    assert found.pue.reason == "a survey"
    assert found.intensity.g_per_kwh == 445.0
    assert found.intensity.place == "Unknown"
    assert found.intensity.zone is None
    assert found.prediction is not None
    assert found.prediction.energy_j is not None
    assert found.prediction.energy_j.value == pytest.approx(0.00009480524 * 3.6e6 / 1.58)
    assert getattr(found.prediction.emissions_g, "value", None) == 0.042188331763
    assert found.epochs_declared == 3
    assert found.closed
    assert not found.early_stop
    assert found.started_at == datetime(2026, 11, 30, 23, 13, 31)  # noqa: DTZ001 - local
    assert found.run_id == "1.2_2026-11-30T231331Z"
    assert problems == ()


@pytest.mark.parametrize(
    ("component", "names", "band"),
    [
        ("gpu", "Tesla T4", nvml.BAND),
        ("cpu", "cpu:0", rapl.PACKAGE_BAND),
        ("cpu", "dram:0", rapl.DRAM_BAND),
    ],
)
def test_a_figure_of_carbontracker_is_as_far_off_as_one_of_ours_from_the_same_sensor(
    tmp_path: Path, component: str, names: str, band: tuple[float, float]
) -> None:
    found_line = f"{component.upper()} with device(s) {names}."
    body = rows("60.0", component=component) + (
        "T - Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location: Denmark: [143.3]\n"
    )
    found, _ = read(tmp_path, log(body, components=found_line))
    assert [(device.low, device.high) for device in found.devices] == [band]
    assert (found.intensity.low, found.intensity.high) == WITHIN_A_YEAR


@pytest.mark.parametrize(
    ("version", "component", "names", "power", "energy_j"),
    [
        # Since 2.0.0 a bare figure is the mean over devices; before, an array has them apart.
        ("2.4.7", "gpu", "GPU with device(s) Tesla T4, Tesla T4.", "73.0", {"gpu:0": 146.0, "gpu:1": 146.0}),
        ("2.1.0", "cpu", "CPU with device(s) cpu:0, dram:0.", "27.0", {"cpu:0": 54.0, "cpu:1": 54.0}),
        (
            "1.2.5",
            "gpu",
            "GPU with device(s) Tesla T4, Tesla T4.",
            "[  9.5 136.5]",
            {"gpu:0": 19.0, "gpu:1": 273.0},
        ),
        (
            "1.2.5",
            "gpu",
            "GPU with device(s) A, A, A.",
            "[1. 2.\n 3.]",
            {"gpu:0": 2.0, "gpu:1": 4.0, "gpu:2": 6.0},
        ),
        ("1.2.5", "gpu", "GPU with device(s) A, A.", "[nan 3.5]", {"gpu:1": 7.0}),
        ("1.2.5", "gpu", "GPU with device(s) Quadro, RTX 8000.", "[50.0]", {"gpu:0": 100.0}),
        ("1.1.0", "cpu", "CPU with device(s) cpu:0, cpu:1.", "nan", {}),
        ("2.4.7", "cpu", "CPU with device(s) cpu:0, cpu:1.", "None", {}),
        ("2.4.7", "cpu", "CPU with device(s) cpu:0.", "0.0", {}),
        ("2.4.7", "gpu", "GPU with device(s) T4.", "6.1e-05", {"gpu:0": 0.000122}),
        ("2.4.2", "gpu", "GPU with device(s) T4.", "np.float64(1.5)", {"gpu:0": 3.0}),
        ("2.4.7", "cpu", "CPU with device(s) AMD A10 R6, 10 Compute Cores.", "50.0", {"cpu:0": 100.0}),
    ],
)
def test_every_form_of_power_becomes_energy_by_device(
    tmp_path: Path, version: str, component: str, names: str, power: str, energy_j: dict[str, float]
) -> None:
    found, problems = read(tmp_path, log(rows(power, component=component), version, names))
    assert joules(found) == [energy_j]
    assert any("not measured" in problem for problem in problems) == (len(energy_j) < len(found.devices))


def test_names_with_full_stops_are_whole(tmp_path: Path) -> None:
    components = (
        "GPU with device(s) NVIDIA RTX 4000 Ada v2.0. CPU with device(s) Intel(R) Xeon(R) CPU @ 2.20GHz."
    )
    found, _ = read(tmp_path, log("", components=components))
    assert [device.name for device in found.devices] == [
        "NVIDIA RTX 4000 Ada v2.0",
        "Intel(R) Xeon(R) CPU @ 2.20GHz",
    ]


def test_doubled_lines_count_once(tmp_path: Path) -> None:
    text = log(rows("60.0", "61.0"), "1.2.5")
    doubled = "".join(line * 2 for line in text.splitlines(keepends=True))
    # Both copies of a line have one time, as `by_hand` would not give them.
    stamped = by_hand(tmp_path / "once", text)[0].read_text()
    paths = by_hand(tmp_path / "twice", doubled)
    paths[0].write_text("".join(line * 2 for line in stamped.splitlines(keepends=True)))
    assert joules(read_run(*paths)[0]) == [{"cpu:0": 120.0}, {"cpu:0": 122.0}]


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    text = log(rows("60.0", "61.0"))
    output = BLOCK.format(kind="Predicted consumption for 5 epoch(s)")
    unix = read(tmp_path / "unix", text, output)[0]
    paths = by_hand(tmp_path / "windows", text, output)
    for path in paths:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    windows, problems = read_run(*paths)
    assert replace(windows, log_paths=()) == replace(unix, log_paths=())
    assert problems == ()


def test_a_log_without_an_end_is_not_closed(tmp_path: Path) -> None:
    found, problems = read(tmp_path, log(rows("60.0"), end=""))
    assert not found.closed
    assert not found.early_stop
    assert any("no end" in note for note in found.notes)
    assert problems == ()


@pytest.mark.parametrize(
    ("line", "declared"),
    [
        ("T - Training was interrupted before all 10 epochs were monitored.\n", 10),
        ("T - Training was interrupted before all -1 epochs were monitored.\n", None),
    ],
)
def test_an_early_stop_is_one(tmp_path: Path, line: str, declared: int | None) -> None:
    found, _ = read(tmp_path, log(rows("60.0") + line))
    assert found.early_stop
    assert found.epochs_declared == declared


def test_a_session_that_the_user_ended_is_closed_and_early(tmp_path: Path) -> None:
    found, _ = read(tmp_path, log(rows("60.0"), end="T - Session ended by user.\n"))
    assert found.closed
    assert found.early_stop


def test_several_runs_in_one_file_are_several_runs(tmp_path: Path) -> None:
    standard, output = by_hand(
        tmp_path,
        log(rows("60.0")) + log(rows("50.0", "51.0")),
        BLOCK.format(kind="Predicted consumption for 1 epoch(s)"),
    )
    runs, problems = read_file(standard, output)
    assert [joules(found) for found in runs] == [[{"cpu:0": 120.0}], [{"cpu:0": 100.0}, {"cpu:0": 102.0}]]
    assert runs[0].prediction is not None
    assert runs[1].prediction is None
    assert runs[0].run_id != runs[1].run_id
    assert problems == ()
    last, problems = read_run(standard, output)
    assert (last.run_id, last.epochs) == (runs[1].run_id, runs[1].epochs)
    assert problems == ("The file holds 2 runs, of which this is the last.",)


def test_a_run_that_the_files_of_two_trackers_hold_is_one_run(tmp_path: Path) -> None:
    by_hand(tmp_path, log(rows("60.0"), "1.2.5") + log(rows("50.0"), "1.2.5"), stem="7_a")
    text = (tmp_path / "7_a_carbontracker.log").read_text()
    second = text[text.rindex("2026", 0, text.rindex("carbontracker version")) :]
    (tmp_path / "7_b_carbontracker.log").write_text(second)
    runs, problems = read_runs(tmp_path)
    assert sorted(joules(found)[0]["cpu:0"] for found in runs) == [100.0, 120.0]
    assert any("is in" in problem for problem in problems)


def test_two_alike_runs_of_two_processes_are_two(tmp_path: Path) -> None:
    for stem in ("7.1_a", "8.1_a"):
        by_hand(tmp_path, log(rows("60.0")), "x", stem=stem)
    assert len(read_runs(tmp_path)[0]) == 2


def test_text_copied_from_a_screen_is_read_without_times(tmp_path: Path) -> None:
    text = "".join(
        f"    {line.removeprefix('T - ')}" for line in log(rows("60.0", "61.0")).splitlines(keepends=True)
    )
    found, _ = read(tmp_path, text)
    assert joules(found) == [{"cpu:0": 120.0}, {"cpu:0": 122.0}]


def test_a_day_and_more_is_read(tmp_path: Path) -> None:
    body = "T - Epoch 1:\nT - Duration: 1 day, 2:03:04\nT - Average power usage (W) for cpu: [10.]\n"
    found, problems = read(tmp_path, log(body, "1.1.0"))
    assert found.epochs[0].duration_s == pytest.approx(93784.0)
    assert problems == ()


@pytest.mark.parametrize(
    ("line", "figure", "place"),
    [
        (f"{AVERAGE} 143.30 gCO2eq/kWh at detected location: Copenhagen, DK.", 143.3, "Copenhagen, DK"),
        (f"{AVERAGE} 475.00 gCO2/kWh at detected location: UNDETECTED.", 475.0, "Unknown"),
        (f"{INTENSITIES} Copenhagen: [np.float64(143.5), 144.5]", 144.0, "Copenhagen"),
        (f"{INTENSITIES}: Unknown: [445.0]", 445.0, "Unknown"),
        (
            f"{LIVE} Defaulted to average carbon intensity for world in 2019 of 475.00 gCO2/kWh. at X.",
            475.0,
            "Unknown",
        ),
        ("Carbon intensity fetched: 99.5 gCO2eq/kWh at Aarhus", 99.5, "Aarhus"),
        ("Current carbon intensity is 107.4 gCO2/kWh at detected location: Aarhus.", 107.4, "Aarhus"),
        ("", math.nan, "Unknown"),
    ],
)
def test_every_form_of_the_carbon_intensity_is_read(
    tmp_path: Path, line: str, figure: float, place: str
) -> None:
    found, _ = read(tmp_path, log(rows("60.0") + f"T - {line}\n"))
    assert found.intensity.g_per_kwh == pytest.approx(figure, nan_ok=True)
    assert found.intensity.place == place


def test_an_intensity_that_only_the_consumption_shows_is_worked_out(tmp_path: Path) -> None:
    found, _ = read(tmp_path, log(rows("60.0")), BLOCK.format(kind="Actual consumption"))
    assert found.intensity.g_per_kwh == pytest.approx(0.042188331763 / 0.00009480524)


def test_an_epoch_that_is_logged_twice_is_told(tmp_path: Path) -> None:
    body = rows("60.0") + rows("60.0")
    found, _ = read(tmp_path, log(body))
    assert any("more than once" in note for note in found.notes)


def test_a_count_of_epochs_that_differs_from_the_log_is_told(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path, log(rows("60.0", "60.0")), BLOCK.format(kind="Actual consumption for -1 epoch(s)")
    )
    assert "The output log counts -1 epochs, the standard log has 2." in found.notes


@pytest.mark.parametrize(
    "body",
    [
        "T - Epoch 1:\nT - Duration: -0:00:01.00\nT - Average power usage (W) for cpu: 60.0\n",
        "T - Epoch 1:\nT - Duration: 0:00:01.00\nT - Average power usage (W) for cpu: -3.0\n",
        "T - Epoch 1:\nT - Duration: 0:00:01.00\nT - Average power usage (W) for cpu: [1.0\n",
        "T - Duration: 0:00:01.00\n",
        "T - Average power usage (W) for cpu: 60.0\n",
        "T - Epoch 1:\nT - Duration: 0:00:01.00\nT - Average power usage (W) for tpu: 60.0\n",
    ],
)
def test_a_line_that_cannot_be_is_told_and_not_raised(tmp_path: Path, body: str) -> None:
    _, problems = read(tmp_path, log(body))
    assert problems


def test_a_last_line_that_is_cut_off_is_no_figure(tmp_path: Path) -> None:
    standard, output = by_hand(tmp_path, log(rows("60.0"), end=""))
    standard.write_text(standard.read_text().removesuffix("0.0\n"))
    found, problems = read_run(standard, output)
    assert joules(found) == [{}]
    assert any("cut off" in problem for problem in problems)


def test_a_consumption_that_is_cut_off_is_told(tmp_path: Path) -> None:
    text = BLOCK.format(kind="Predicted consumption for 3 epoch(s)")
    found, problems = read(tmp_path, log(rows("60.0")), text[: text.index("kWh")])
    assert found.prediction is None
    assert any("cut off" in problem for problem in problems)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\0" * 100,
        b"\xff\xfe\xfa" * 50,
        b"hello\n",
        b"{" * 1000,
        b"2026-13-99 99:99:99 - Epoch 1:\n",
    ],
)
def test_a_file_that_is_no_log_is_told_and_not_raised(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1_carbontracker.log"
    path.write_bytes(content)
    found, problems = read_run(path)
    assert sum(found.energy_by_device_j.values()) == 0
    assert problems


def test_a_file_or_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="nothing"):
        read_run(tmp_path / "nothing")
    with pytest.raises(LogError, match="Give the folder"):
        read_runs(tmp_path / "nothing")


def test_files_without_a_partner_are_named(tmp_path: Path) -> None:
    standard, _ = by_hand(tmp_path, log(rows("60.0")), stem="a")
    (tmp_path / "a_carbontracker_output.log").unlink()
    (tmp_path / "b_carbontracker_output.log").write_text("x")
    (tmp_path / "c_carbontracker_err.log").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    runs, problems = read_runs(tmp_path)
    assert len(runs) == 1
    assert runs[0].log_paths == (str(standard),)
    assert sorted(problem.split(":")[0] for problem in problems) == [
        "a_carbontracker.log",
        "b_carbontracker_output.log",
    ]


def test_a_consumption_of_our_own_log_is_found(tmp_path: Path) -> None:
    from ct_notebook.log.history import consumptions_from

    blocks, problems = consumptions_from(output_text(write(tmp_path, full_run())))
    assert [(block.kind, block.epochs) for block in blocks] == [("Predicted", 10), ("Actual", 3)]
    assert blocks[1].equivalents is not None
    assert problems == []


def test_our_lines_are_json_that_anyone_can_read(tmp_path: Path) -> None:
    lines = [
        line for line in standard_text(write(tmp_path, full_run())).splitlines() if "ct_notebook: " in line
    ]
    for line in lines:
        assert isinstance(json.loads(line[line.index("{") :]), dict)
    assert len(lines) >= 5
