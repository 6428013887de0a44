"""A run and where it stands come in; JSON of bounded size, all that a panel may read, goes out. Pure.

`tests/display/test_snapshot.py` and the front end's own tests hold the same fixture against it, so that
neither side changes the form alone.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ct_notebook.course import POINTS, every_nth
from ct_notebook.log.format import one_line
from ct_notebook.records import Band, Course, Device, Estimate, Finding, Moment, Run
from ct_notebook.units import clock_text

from .words import (
    co2_range,
    co2_text,
    duration_range,
    energy_range,
    energy_text,
    equivalent_text,
    intensity_text,
    place_how,
    power_text,
    time_text,
)

SCHEMA = 1

NOTES = 5
"""Notes shown at most; all of them are in the log."""

NEW_AT_ONCE = 20
"""Epoch ends and forecasts that a tick carries at most: more of them could not be told apart."""

ENDS_KEPT, MOVES_KEPT = 100, 80
"""The same in a snapshot: the newest epochs, and forecasts from all over the run."""

FINAL = frozenset({"finished", "stopped", "interrupted", "failed"})
"""States in which nothing more will come."""

Point = tuple[float, "float | None", "tuple[float | None, ...]"]
"""Seconds of the run, grams so far, joules so far of each device."""


class Wishes(NamedTuple):
    """What the user asked for, and what is asked of the user.

    Attributes
    ----------
    pausing, stopping
        Asked for by a button; takes effect at the next step, at the end of the epoch.
    token
        Of the question that waits for an answer; "" if none does.
    left_s
        Seconds until its default is taken; None for ever.
    default
        "continue" or "stop".
    about
        Why it is asked, where that is not the prediction in view.
    message
        What became of the newest question or wish, in words.
    """

    pausing: bool = False
    stopping: bool = False
    token: str = ""
    left_s: float | None = None
    default: str = "continue"
    about: str = ""
    message: str = ""


def state_of(moment: Moment, wishes: Wishes, *, stopped: bool = False) -> str:
    """The one word for what a run does now: measuring, paused, waiting, or how it ended.

    Parameters
    ----------
    moment, wishes
        The run and its user.
    stopped
        Whether the user chose to end the training.
    """
    if moment.closed:
        reason = moment.reason
        if reason in {"interrupted", "failed"}:
            return reason
        return "stopped" if stopped or reason != "finished" else "finished"
    if wishes.token:
        return "waiting"
    if moment.paused:
        return "paused"
    return "measuring" if moment.point is not None else "starting"


def status(run: Run, moment: Moment, wishes: Wishes, seq: int, state: str) -> dict[str, Any]:
    """What changes from second to second.

    Parameters
    ----------
    run
        For its devices only; it may be older than `moment`.
    moment, wishes
        Where it stands.
    seq
        The number of this state, ascending.
    state
        As `state_of` has it.

    Returns
    -------
    status
        At most 1.5 kB of JSON for ten devices.
    """
    # With PUE, as in the texts of consumption, so that energy x intensity is what is shown as CO2eq.
    energy_j = None if moment.energy_j is None else moment.energy_j.times(run.pue.value)
    emissions_g = moment.emissions_g
    powers_w = [moment.power_w.get(device.key) for device in run.devices]
    known_w = [power_w for power_w in powers_w if power_w is not None]
    power_w = sum(known_w) if known_w else None
    left_s = _left_s(moment)
    ahead = moment.estimate or moment.prediction
    return {
        "seq": seq,
        "state": state,
        "pausing": wishes.pausing,
        "stopping": wishes.stopping,
        "elapsed_s": round(moment.elapsed_s, 3),
        "elapsed": clock_text(moment.elapsed_s),
        "epochs_done": moment.epochs_done,
        "epochs": moment.epochs_declared,
        "in_epoch": moment.in_epoch,
        "left_s": None if left_s is None else round(left_s, 1),
        "left": time_text(left_s),
        "power_w": _rounded(power_w),
        "powers_w": [_rounded(each) for each in powers_w],
        "power": power_text(power_w),
        "energy": energy_text(None if energy_j is None else energy_j.value),
        "energy_range": energy_range(energy_j),
        "co2": co2_text(None if emissions_g is None else emissions_g.value),
        "co2_range": co2_range(emissions_g),
        "equivalent": equivalent_text(None if emissions_g is None else emissions_g.value),
        "prediction": None if ahead is None else _prediction(ahead, run),
        "question": {
            "token": wishes.token,
            "left_s": None if wishes.left_s is None else round(wishes.left_s, 1),
            "default": wishes.default,
            "about": one_line(wishes.about),
        }
        if wishes.token
        else None,
        "message": one_line(wishes.message),
    }


def facts(run: Run, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """What seldom changes: devices, place, intensity, what is not measured, notes, log.

    Parameters
    ----------
    run
        The run so far.
    findings
        What was looked for before it began.
    """
    intensity = run.intensity
    unmeasured = [
        {"what": one_line(found.sensor), "why": one_line(found.why), "remedy": one_line(found.remedy)}
        for found in findings
        if found.found and not found.readable
    ]
    names = {device.key: device.name for device in run.devices}
    unmeasured += [
        {"what": one_line(f"{names.get(key, key)} ({key})"), "why": one_line(why), "remedy": ""}
        for key, why in run.missing.items()
    ]
    return {
        "run": run.run_id,
        "devices": [_device(device) for device in run.devices],
        "place": one_line(intensity.place),
        "place_how": one_line(place_how(intensity)),
        "intensity": one_line(intensity_text(intensity))
        + (f", now {run.intensities[-1].g_per_kwh:.4g}" if run.intensities else ""),
        "source": one_line(intensity.source),
        "is_fallback": intensity.is_fallback,
        "pue": f"{run.pue.value:g} ({one_line(run.pue.reason)})",
        "unmeasured": unmeasured[:POINTS],
        "notes": [one_line(note) for note in run.notes[:NOTES]],
        "log": one_line(run.log_paths[0], 500) if run.log_paths else "",
    }


def snapshot(run: Run, now: dict[str, Any], findings: Sequence[Finding] = ()) -> tuple[dict[str, Any], bytes]:
    """All of it: facts, status, epochs, forecasts and curves.

    Parameters
    ----------
    run
        The run so far.
    now
        Its `status`.
    findings
        What was looked for before it began.

    Returns
    -------
    snapshot
        JSON, `curves.data` left out.
    data
        What belongs there: `rows` x `columns` little-endian float32, row by row: seconds of the run, grams so
        far, joules so far of each device. NaN is what was not read.
    """
    course = run.course or Course((), (), {})
    points = [
        (at_s, grams, tuple(course.energy_j[device.key][row] for device in run.devices))
        for row, (at_s, grams) in enumerate(zip(course.at_s, course.emissions_g, strict=True))
    ]
    content = {
        "schema": SCHEMA,
        "facts": facts(run, findings),
        "status": now,
        "epoch_ends": [round(at_s, 2) for at_s in course.epoch_ends_s[-ENDS_KEPT:]],
        "moves": moves([*run.moves[:-1][:: 1 + len(run.moves) // MOVES_KEPT], *run.moves[-1:]]),
        "curves": {"rows": len(points), "columns": 2 + len(run.devices)},
    }
    return content, rows(points)


def moves(estimates: Iterable[Estimate]) -> list[list[float]]:
    """How the expected emissions have moved: after k epochs, grams, low, high."""
    return [
        [estimate.made_after, *(_significant(each) for each in (band.value, band.low, band.high))]
        for estimate in estimates
        if (band := estimate.emissions_g) is not None
    ]


def ends(values: Sequence[float]) -> list[float]:
    """Where epochs ended since the tick before, as many as a tick carries."""
    return [round(at_s, 2) for at_s in every_nth(values, NEW_AT_ONCE)]


def rows(points: Iterable[Point]) -> bytes:
    """Points of the curves as float32, row by row."""
    data = array("f")
    for at_s, grams, energies_j in points:
        data.append(at_s)
        data.append(math.nan if grams is None else grams)
        data.extend(math.nan if energy_j is None else energy_j for energy_j in energies_j)
    if sys.byteorder == "big":
        data.byteswap()
    return data.tobytes()


def _device(device: Device) -> dict[str, str]:
    return {"name": one_line(device.name, 80), "component": device.component, "how": one_line(device.how)}


def _prediction(estimate: Estimate, run: Run) -> dict[str, Any]:
    energy_j = None if estimate.energy_j is None else estimate.energy_j.times(run.pue.value)
    duration_s, emissions_g = estimate.duration_s, estimate.emissions_g
    return {
        "after": estimate.made_after,
        "epochs": estimate.epochs,
        "co2": co2_text(None if emissions_g is None else emissions_g.value),
        "co2_range": co2_range(emissions_g),
        "energy": energy_text(None if energy_j is None else energy_j.value),
        "energy_range": energy_range(energy_j),
        "duration": clock_text(duration_s.value),
        "duration_range": duration_range(duration_s),
        "equivalent": equivalent_text(None if emissions_g is None else emissions_g.value),
        "co2_g": None if emissions_g is None else _triple(emissions_g),
        "duration_s": _triple(duration_s),
    }


def _triple(band: Band) -> list[float]:
    return [_significant(each) for each in (band.value, band.low, band.high)]


def _significant(value: float) -> float:
    return float(f"{value:.6g}")


def _rounded(power_w: float | None) -> float | None:
    return None if power_w is None else round(power_w, 2)


def _left_s(moment: Moment) -> float | None:
    if moment.closed or moment.estimate is None:
        return None
    return max(0.0, moment.estimate.duration_s.value - moment.elapsed_s)
