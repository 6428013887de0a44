"""How far off the forecast is, beside carbontracker's rule, on trainings that it was not tuned on.

Public epoch times (epoch_times.json: notebook outputs of two repositories, MIT and Apache-2.0, each with its
source) and trainings of our own with steps and energy (trainings.json: by record.py, energy by the CPU model;
trainings_busy.json: the same, while other jobs came and went on all cores). No public series of energy by
epoch was found. The constants of the interval are chosen on one source and held against the other, and those
that are shipped must do as well.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ct_notebook import forecast
from ct_notebook.forecast import forecast_within, total_of
from ct_notebook.records import Band
from ct_notebook.steps import Pace, pace_of

pytestmark = pytest.mark.bench

HERE = Path(__file__).parent

GRID = [
    {"PRIOR_SD": sd, "DRIFT": drift, "LATER_BELOW_SD": below, "LATER_ABOVE_SD": above}
    for sd, drift, below, above in itertools.product(
        (0.003, 0.006, 0.012), (2.2, 2.5, 2.8), (0.22, 0.31), (0.09, 0.105, 0.12)
    )
]
"""What the constants may be."""

GOAL = 0.80
COVERED = (0.75, 0.90)

Predict = Callable[[Sequence[float], int], float]


def public() -> dict[str, list[list[float]]]:
    """Epoch times of public trainings by repository, s."""
    found: dict[str, list[list[float]]] = {}
    for run in json.loads((HERE / "epoch_times.json").read_text("utf-8")):
        found.setdefault(run["source"].split()[1], []).append(run["epoch_s"])
    return found


def own(name: str) -> list[dict[str, Any]]:
    """Our own trainings."""
    runs: list[dict[str, Any]] = json.loads((HERE / name).read_text("utf-8"))["runs"]
    return runs


def carbontracker(amounts: Sequence[float], total: int) -> float:
    """What carbontracker predicts: N times the mean so far."""
    return total * statistics.mean(amounts)


def ours(amounts: Sequence[float], total: int) -> float:
    return total_of(amounts, total).value


def error(predicted: float, actual: float) -> float:
    """How far off, %."""
    return 100 * abs(predicted / actual - 1)


def errors(runs: Iterable[Sequence[float]], k: int, predict: Predict) -> list[float]:
    return [error(predict(run[:k], len(run)), sum(run)) for run in runs if len(run) > k]


def holds(band: Band, actual: float) -> bool:
    return band.low <= actual <= band.high


def coverage(runs: Iterable[Sequence[float]], k: int) -> list[bool]:
    return [holds(total_of(run[:k], len(run)), sum(run)) for run in runs if len(run) > k]


@contextmanager
def constants(values: dict[str, float]) -> Iterator[None]:
    """Other constants of the interval for a while."""
    before = {name: getattr(forecast, name) for name in values}
    vars(forecast).update(values)
    try:
        yield
    finally:
        vars(forecast).update(before)


def chosen_on(runs: Sequence[Sequence[float]], ks: Sequence[int]) -> dict[str, float]:
    """The constants whose coverage of some runs is closest to 80 %."""

    def off(values: dict[str, float]) -> float:
        with constants(values):
            return sum(abs(statistics.mean(coverage(runs, k)) - 0.80) for k in ks)

    return min(GRID, key=off)


def row(name: str, k: object, theirs: Sequence[float], mine: Sequence[float], held: Sequence[bool]) -> str:
    mine_text = f"{statistics.median(mine):6.2f} {statistics.mean(mine):6.2f}"
    theirs_text = (
        f"{statistics.median(theirs):6.2f} {statistics.mean(theirs):6.2f}" if theirs else "   -      -  "
    )
    return f"{name:<28} {k!s:>4} {len(mine):>5}   {mine_text}   {theirs_text}   {statistics.mean(held):8.0%}"


HEAD = (
    "error of the whole run, %           ct_notebook     carbontracker   80 % interval\n"
    f"{'':<28} {'k':>4} {'runs':>5}   median  mean  median   mean       holds"
)


def test_epoch_times_by_leave_one_source_out() -> None:
    sources = public()
    everything = [run for runs in sources.values() for run in runs]
    ks = (1, 2, 3, 5, 8)
    print(f"\nEpoch times, public trainings\n{HEAD}")
    for k in ks:
        held_out: list[bool] = []
        for source in sources:
            others = [run for name, runs in sources.items() if name != source for run in runs]
            with constants(chosen_on(others, ks)):
                held_out += coverage(sources[source], k)
        theirs, mine = errors(everything, k, carbontracker), errors(everything, k, ours)
        shipped = coverage(everything, k)
        print(row("all, constants of the other", k, theirs, mine, held_out))
        print(row("all, constants as shipped", k, theirs, mine, shipped))
        for source, runs in sources.items():
            print(
                row(
                    f"  {source[:26]}",
                    k,
                    errors(runs, k, carbontracker),
                    errors(runs, k, ours),
                    coverage(runs, k),
                )
            )
        # After one epoch only its steps could tell more than N times its length, and here there are none.
        for of in (statistics.median, statistics.mean):
            assert of(mine) <= of(theirs) * (1 if k > 1 else 1 + 1e-9)
        if k == 2:
            assert statistics.median(mine) <= GOAL * statistics.median(theirs)
            assert statistics.mean(mine) <= GOAL * statistics.mean(theirs)
        assert COVERED[0] <= statistics.mean(shipped) <= COVERED[1]
        assert COVERED[0] <= statistics.mean(held_out) <= COVERED[1]


def pace(run: dict[str, Any], share: float) -> Pace | None:
    """The pace of a first epoch of which so much was done."""
    marks = [(done, at_s) for done, at_s, _ in run["first_epoch_steps"] if done <= share * run["steps"]]
    return pace_of(0.0, run["steps"], marks)


def energy_of(run: dict[str, Any]) -> Callable[[float], float | None]:
    """Joules from the beginning of the first epoch to an instant of it."""

    def energy_j(at_s: float) -> float | None:
        points = [(0.0, 0.0), *((each_s, joules) for _, each_s, joules in run["first_epoch_steps"])]
        return max((float(joules) for each_s, joules in points if each_s <= at_s + 1e-9), default=None)

    return energy_j


HELD_AT_LEAST = {"trainings.json": 0.6, "trainings_busy.json": 0.3}
"""Both are made to be hard: phases, caches, sequences that grow. Who else uses a machine nobody foretells."""


@pytest.mark.parametrize("name", HELD_AT_LEAST)
def test_own_trainings_from_their_first_steps_on(name: str) -> None:
    runs = own(name)
    print(f"\nOwn trainings ({name}), energy by the CPU model\n{HEAD}")
    for share in (0.1, 0.3, 0.5):
        found: dict[str, list[tuple[float, bool]]] = {"time": [], "energy": []}
        for run in runs:
            of = pace(run, share)
            if of is None:
                continue
            estimate = forecast_within(of, len(run["epoch_s"]), 1.0, energy_of(run))
            assert estimate.energy_j is not None
            for what, band, amounts in (
                ("time", estimate.duration_s, run["epoch_s"]),
                ("energy", estimate.energy_j, run["epoch_j"]),
            ):
                found[what].append((error(band.value, sum(amounts)), holds(band, sum(amounts))))
        for what, pairs in found.items():
            print(
                row(f"{what}, from steps", share, [], [off for off, _ in pairs], [held for _, held in pairs])
            )
        # Nothing else speaks before the first epoch ends; it must be of use, and know how little it knows.
        assert len(found["time"]) >= 0.8 * len(runs)
        for pairs in found.values():
            assert statistics.median(off for off, _ in pairs) <= 40
            assert statistics.mean(held for _, held in pairs) >= 0.5
    for k in (1, 2, 3, 5):
        for what in ("time", "energy"):
            amounts = [run["epoch_s" if what == "time" else "epoch_j"] for run in runs]
            bands = []
            for run, each in zip(runs, amounts, strict=True):
                of = pace(run, 1.0) if k == 1 else None
                excess = 0.0 if of is None else min(0.9, of.excess_s / run["epoch_s"][0])
                bands.append(total_of(each[:k], len(each), excess))
            mine = [error(band.value, sum(each)) for band, each in zip(bands, amounts, strict=True)]
            theirs = errors(amounts, k, carbontracker)
            held = [holds(band, sum(each)) for band, each in zip(bands, amounts, strict=True)]
            print(row(what, k, theirs, mine, held))
            assert statistics.mean(mine) <= statistics.mean(theirs) * 1.02
            assert statistics.mean(held) >= HELD_AT_LEAST[name]
