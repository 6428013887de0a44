from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from ct_notebook.log import extra, history
from ct_notebook.log import format as grammar
from ct_notebook.records import Device, Intensity, Pue
from support.carbontracker_patterns import OUTPUT, STANDARD, devices
from support.log_runs import DENMARK, HOSTILE_NAMES, MEMORY, T4, XEON, full_run

AT = datetime(2026, 12, 1, 2, 3, 4, 567000)  # noqa: DTZ001 - logs hold local time without a zone


def device(name: str, component: str = "gpu") -> Device:
    return Device(f"{component}:x", component, name, "measured")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_no_pattern_of_carbontracker_matches_an_extra_line_whatever_a_device_calls_itself(name: str) -> None:
    line = grammar.line(AT, extra.extra_text("run", {"devices": [device(name)], name: name}))
    assert line.count("\n") == 1
    assert line.isascii()
    assert {what for what, pattern in (STANDARD | OUTPUT).items() if pattern.search(line)} == set()


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_an_extra_line_gives_back_the_text_it_was_given(name: str) -> None:
    found = extra.PATTERN.match(extra.extra_text("note", {"name": name}))
    assert found is not None
    assert found[1] == "note"
    assert json.loads(found[2]) == {"name": name}


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_carbontracker_finds_every_component_and_device_beside_a_hostile_name(name: str) -> None:
    text = grammar.components_text([device(name), device("Tesla T4"), device("EPYC", "cpu")])
    assert len(text) < 400
    assert "\n" not in text
    found = devices(text.removeprefix("The following components were found:"))
    assert list(found) == ["gpu", "cpu"]
    assert len(found["gpu"]) == 2
    assert found["gpu"][1] == " Tesla T4"
    assert found["cpu"] == ["EPYC"]
    patterns = (pattern for what, pattern in STANDARD.items() if what != "components")
    assert not any(pattern.search(text) for pattern in (*patterns, OUTPUT["any"]))


def test_components_stand_in_the_order_of_logs_under_names_that_are_not_cut() -> None:
    assert grammar.components_text([MEMORY, XEON, T4]) == (
        "The following components were found: GPU with device(s) Tesla T4. "
        "CPU with device(s) Intel(R) Xeon(R) CPU @ 2_20GHz. RAM with device(s) 16_0 GB allocated."
    )


def test_a_run_without_devices_says_none() -> None:
    text = grammar.components_text([])
    assert text == "The following components were found: none"
    assert devices(text) == {}


def test_a_consumption_reads_as_carbontracker_prints_it() -> None:
    text = grammar.consumption_text("Actual", epochs=4, duration_s=9.4, energy_kwh=0.000459, co2eq_g=0.204467)
    assert text == (
        "\nActual consumption for 4 epoch(s):\n\tTime:\t0:00:09\n\tEnergy:\t0.000459 kWh\n"
        "\tCO2eq:\t0.204467 g\n\tThis is equivalent to:\n\t0.001914 km travelled by car"
    )


def test_a_consumption_of_no_known_epochs_without_equivalents_leaves_both_out() -> None:
    text = grammar.consumption_text(
        "Actual",
        epochs=None,
        duration_s=3661,
        energy_kwh=1e-7,
        co2eq_g=1e-5,
        precision=3,
        interpretable=False,
    )
    assert text == "\nActual consumption:\n\tTime:\t1:01:01\n\tEnergy:\t0.000 kWh\n\tCO2eq:\t0.000 g"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_figure_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        grammar.consumption_text("Actual", epochs=1, duration_s=1, energy_kwh=bad, co2eq_g=1)


def test_the_output_log_takes_a_consumption_as_it_is_and_nothing_else_for_one() -> None:
    block = grammar.consumption_text("Predicted", epochs=4, duration_s=9, energy_kwh=1, co2eq_g=1)
    assert OUTPUT["predicted"].search(grammar.output_line(AT, block))
    for name in HOSTILE_NAMES:
        assert not OUTPUT["any"].search(grammar.output_line(AT, f"The sensor of {name} failed."))


def test_the_pue_is_one_number_that_the_report_reads() -> None:
    line = grammar.pue_text(Pue(1.0, "own machine; PUE coefficient of 99"))
    found = STANDARD["report pue"].findall(line)
    assert found == ["1.0"]
    assert grammar.pue_text(Pue(1.58, "mean")).endswith("of 1.58 (mean).")
    assert grammar.pue_text(Pue(1.125, "")).endswith("of 1.125.")


def test_a_place_cannot_end_the_line_about_carbon_intensity_early() -> None:
    texts = grammar.intensity_texts(replace(DENMARK, place="A: [9]\nDuration: 0:00:01.00"))
    assert len(texts) == 2
    assert texts[0] == (
        "Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location "
        "A [9] Duration 0 00 01.00: [143.30]"
    )
    assert not STANDARD["duration"].search("\n".join(texts))


def test_an_intensity_that_is_not_known_is_not_written() -> None:
    assert grammar.intensity_texts(replace(DENMARK, g_per_kwh=math.nan)) == []


def test_the_intensity_is_told_with_place_source_and_how_it_was_found() -> None:
    assert grammar.intensity_text(DENMARK) == (
        "Carbon intensity is 143.30 gCO2eq/kWh at detected location: Denmark "
        "(a table, 2025, lifecycle; place from setting)."
    )
    fallback = Intensity(445.0, None, "Unknown", "a table", "2024", "lifecycle", is_fallback=True)
    assert grammar.intensity_text(fallback) == (
        "The place is unknown. Defaulted to an average carbon intensity of 445.00 gCO2eq/kWh "
        "(a table, 2024, lifecycle)."
    )


@pytest.mark.parametrize(
    "prefix",
    ["../../etc/passwd", "/etc", "a\\b", "..", "C:x", "a\nb", "x" * 999, "ü" * 999, "\u202e", "a\0b"],
)
def test_a_prefix_is_text_and_never_a_path(prefix: str) -> None:
    made = grammar.file_prefix(prefix)
    assert Path(f"{made}_1").name == f"{made}_1"
    assert not made.startswith(".")
    assert len(made.encode()) <= 100
    assert made.isprintable()


def test_a_prefix_cannot_make_carbontracker_take_an_output_log_for_a_standard_log() -> None:
    made = grammar.file_prefix("carbontracker_logs")
    assert grammar.folder_note(f"/{made}_carbontracker_output.log") is None or "carbontracker_log" not in made
    assert "carbontracker_log" not in made


@pytest.mark.parametrize(
    ("folder", "trips"),
    [
        ("/x/carbontracker_logs", True),
        ("/x/carbontracker-log/y", True),
        ("/x/logs", False),
        ("/carbontracker", False),
    ],
)
def test_a_folder_that_trips_carbontracker_is_told(folder: str, trips: bool) -> None:  # noqa: FBT001 - a table
    note = grammar.folder_note(folder)
    assert (note is not None) == trips
    assert note is None or folder in note


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[60.0]", (60.0,)),
        ("60.0", (60.0,)),
        ("0.0", (0.0,)),
        ("16.137330275229353", (16.137330275229353,)),
        ("[  9.08700942 136.99644118]", (9.08700942, 136.99644118)),
        ("[50.41138  30.247399]", (50.41138, 30.247399)),
        ("[1. 2. 3.\n 4. 5. 6.]", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
        ("6.1e-05", (6.1e-05,)),
        ("[6.1e-05]", (6.1e-05,)),
        ("[1.2e+02 3.4e+01]", (120.0, 34.0)),
        ("None", (None,)),
        ("[None]", (None,)),
        ("nan", (None,)),
        ("[nan]", (None,)),
        ("[nan 3.5]", (None, 3.5)),
        ("np.float64(1.2)", (1.2,)),
        ("[np.float64(1.2), np.float64(2.5)]", (1.2, 2.5)),
        ("[1.5, 2.5]", (1.5, 2.5)),
        ("1,234.5", (1234.5,)),
    ],
)
def test_every_form_of_a_power_is_read(text: str, values: tuple[float | None, ...]) -> None:
    assert history.power_values_from(text) == (values, text.startswith("["))


@pytest.mark.parametrize("text", ["", "[]", "[60.0", "-1.0", "inf", "[1.5 x]", "sixty", "1.2.3"])
def test_a_power_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        history.power_values_from(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:00:02.20", 2.2),
        ("0:00:02", 2.0),
        ("30:01:01.25", 108061.25),
        ("1 day, 2:03:04", 93784.0),
        ("2 days, 0:00:00.50", 172800.5),
        ("0:00:10 s", 10.0),
        ("-0:00:01.00", None),
        ("-1 day, 23:59:59", None),
        ("soon", None),
    ],
)
def test_every_form_of_a_duration_is_read(text: str, seconds: float | None) -> None:
    assert history.seconds_from(text) == seconds


def test_names_of_devices_keep_their_full_stops() -> None:
    text = " GPU with device(s) RTX 4000 v2.0. CPU with device(s) Intel(R) CPU @ 2.20GHz."
    assert history.components_from(text) == {"gpu": "RTX 4000 v2.0", "cpu": "Intel(R) CPU @ 2.20GHz"}


@pytest.mark.parametrize(
    ("component", "text", "count", "names"),
    [
        ("gpu", "Tesla T4, Tesla T4", None, ["Tesla T4", "Tesla T4"]),
        ("gpu", "Quadro, RTX 8000", 1, ["Quadro, RTX 8000"]),
        ("cpu", "cpu:0, dram:0", None, ["cpu:0", "dram:0"]),
        (
            "cpu",
            "AMD A10 Radeon R6, 10 Compute Cores 4C+6G",
            None,
            ["AMD A10 Radeon R6, 10 Compute Cores 4C+6G"],
        ),
    ],
)
def test_a_comma_parts_devices_only_where_it_can(
    component: str, text: str, count: int | None, names: list[str]
) -> None:
    assert history.device_names_from(component, text, count) == names


def test_lines_that_are_written_twice_are_read_once() -> None:
    text = "".join(
        f"{line}\n{line}\n"
        for line in ("2026-11-30 23:13:34 - Epoch 1:", "2026-11-30 23:13:34 - Duration: 0:00:01.20")
    )
    assert [message.text for message in history.messages(text)] == ["Epoch 1:", "Duration: 0:00:01.20"]


def test_a_run_goes_through_json_without_loss() -> None:
    run = full_run()
    head = json.loads(json.dumps(extra.run_data(run)))
    end = json.loads(json.dumps(extra.end_data(None, run)))
    known = extra.run_fields_from(head) | extra.run_fields_from(end)
    epochs = tuple(extra.epoch_from(json.loads(json.dumps(extra.epoch_data(one)))) for one in run.epochs)
    assert replace(run, epochs=()) == type(run)(**known)
    assert run.epochs == epochs


def test_fields_of_a_newer_version_are_passed_over() -> None:
    data = extra.epoch_data(full_run().epochs[0]) | {"mood": "good"}
    assert extra.epoch_from(data) == full_run().epochs[0]
