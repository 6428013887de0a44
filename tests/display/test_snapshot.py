"""What a panel is sent: in its form, bounded, and nothing but text where text is expected."""

from __future__ import annotations

import dataclasses
import json
import math
import struct
from pathlib import Path
from types import MappingProxyType

import pytest

from ct_notebook.display.snapshot import Wishes, ends, facts, rows, snapshot, state_of, status
from ct_notebook.records import Course, Device, Finding, Run
from support.snapshots import FINDINGS, example, example_run, moment_of

FIXTURE = Path(__file__).parents[2] / "js" / "tests" / "snapshot.json"
"""The front end's own tests read the same file."""


def test_the_form_is_the_one_that_the_front_end_reads() -> None:
    content, _ = example()
    assert json.loads(json.dumps(content)) == json.loads(FIXTURE.read_text("utf-8"))


def test_curves_are_rows_of_float32() -> None:
    content, data = example()
    curves = content["curves"]
    assert (curves["rows"], curves["columns"]) == (21, 4)
    values = struct.unpack(f"<{21 * 4}f", data)
    assert values[4:8] == pytest.approx((1.0, 0.018, 100.0, 20.0))
    assert math.isnan(values[7 * 4 + 3])


def big_run(devices: int) -> Run:
    run = example_run()
    many = tuple(
        Device(f"gpu:{n}", "gpu", f"NVIDIA H100 80GB HBM3 number {n}", "counter", "NVML energy counter")
        for n in range(devices)
    )
    times = tuple(float(n) for n in range(240))
    course = Course(times, times, MappingProxyType({each.key: times for each in many}), times)
    return dataclasses.replace(
        run,
        devices=many,
        course=course,
        moves=run.moves * 120,
        notes=tuple("A sentence of some length. " * 40 for _ in range(100)),
        missing={f"gpu:{n}": "why " * 1000 for n in range(devices)},
    )


def test_a_status_stays_small() -> None:
    run = example_run()
    devices = tuple(dataclasses.replace(run.devices[0], key=f"gpu:{n}") for n in range(10))
    run = dataclasses.replace(run, devices=devices)
    moment = moment_of(run, power_w={f"gpu:{n}": 312.345678 for n in range(10)})
    wishes = Wishes(token="0123456789ab", left_s=599.123456, message="x" * 10_000)
    told = len(json.dumps(status(run, moment, wishes, 123_456, "waiting")))
    assert told - 200 < 1500  # but for the message, which is cut at 200 and shown for a moment


def test_a_snapshot_stays_small() -> None:
    run = big_run(10)
    moment = moment_of(example_run())
    content, data = snapshot(run, status(run, moment, Wishes(), 1, "measuring"))
    assert len(json.dumps(content)) + len(data) < 40_000


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "line\nline\x00\x1b[31m",
        "\u202eright to left\u202c",
        "long " * 10_000,
        "\ud800 lone surrogate",
    ],
)
def test_names_from_outside_are_one_line_of_text(text: str) -> None:
    run = example_run()
    run = dataclasses.replace(
        run,
        devices=(dataclasses.replace(run.devices[0], name=text, detail=text), run.devices[1]),
        intensity=dataclasses.replace(run.intensity, place=text, how=text, source=text),
        pue=dataclasses.replace(run.pue, reason=text),
        missing={text: text},
        notes=(text,),
        log_paths=(text,),
    )
    told = facts(run, (Finding(text, found=True, readable=False, why=text, remedy=text),))
    dumped = json.dumps(told, ensure_ascii=False)
    assert len(dumped) < 6000
    for bad in ("\n", "\x00", "\x1b", "\u202e", "\ud800"):
        assert bad not in dumped.replace("\\n", "\n")


def test_what_is_not_known_is_null_or_empty() -> None:
    run = dataclasses.replace(example_run(), devices=(), moves=(), estimate=None, prediction=None)
    moment = moment_of(
        run, power_w={}, energy_j=None, emissions_g=None, estimate=None, prediction=None, epochs_declared=None
    )
    told = status(run, moment, Wishes(), 1, "measuring")
    assert told["power_w"] is None
    assert told["left_s"] is None
    assert told["epochs"] is None
    assert told["prediction"] is None
    assert [told[name] for name in ("power", "energy", "co2", "left", "equivalent")] == [""] * 5


def test_energy_times_intensity_is_the_co2eq_that_is_shown() -> None:
    told = status(example_run(), moment_of(example_run()), Wishes(), 1, "measuring")
    # 2400 J with a PUE of 1.5 are 1 Wh, at 360 g/kWh 0.36 g.
    assert (told["energy"], told["co2"]) == ("1.00 Wh", "360 mg")


@pytest.mark.parametrize(
    ("changes", "wishes", "stopped", "state"),
    [
        ({}, Wishes(), False, "measuring"),
        ({"point": None}, Wishes(), False, "starting"),
        ({"paused": True}, Wishes(), False, "paused"),
        ({"paused": True}, Wishes(token="t"), False, "waiting"),
        ({"closed": True, "reason": "finished"}, Wishes(), False, "finished"),
        ({"closed": True, "reason": "finished"}, Wishes(), True, "stopped"),
        ({"closed": True, "reason": "stopped by the user"}, Wishes(), True, "stopped"),
        ({"closed": True, "reason": "interrupted"}, Wishes(), True, "interrupted"),
        ({"closed": True, "reason": "failed"}, Wishes(), False, "failed"),
    ],
)
def test_there_is_one_word_for_each_state(
    changes: dict[str, object],
    wishes: Wishes,
    stopped: bool,  # noqa: FBT001 - a parameter of the test
    state: str,
) -> None:
    assert state_of(moment_of(example_run(), **changes), wishes, stopped=stopped) == state


def test_unreadable_sensors_and_lost_devices_are_told() -> None:
    run = dataclasses.replace(example_run(), missing={"gpu:GPU-1": "fell off the bus"})
    told = facts(run, FINDINGS)["unmeasured"]
    assert [each["what"] for each in told] == ["RAPL", "NVIDIA A100-SXM4-40GB (gpu:GPU-1)"]
    assert told[1]["why"] == "fell off the bus"


def test_many_epochs_at_once_are_few_in_a_tick() -> None:
    assert len(ends([float(n) for n in range(5000)])) <= 20
    assert rows([]) == b""
