"""Curves of a run: bounded, evenly spaced, exact where they are."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ct_notebook.course import APART_S, POINTS, CourseOf, Thinned, every_nth


@pytest.mark.parametrize("step_s", [0.05, 1.0, 10.0])
def test_a_day_keeps_few_points_and_the_slope_of_each(step_s: float) -> None:
    course = CourseOf(["cpu"])
    for tick in range(int(86_400 / step_s) // 10):
        course.add(tick * step_s, tick * step_s / 10, {"cpu": 50 * tick * step_s})
    kept = course.course([])
    assert POINTS / 3 < len(kept.at_s) <= POINTS
    assert kept.at_s[0] == 0
    assert kept.at_s[-1] == pytest.approx((int(86_400 / step_s) // 10 - 1) * step_s)
    energies = kept.energy_j["cpu"]
    for (a, b), (low, high) in zip(pairwise(kept.at_s), pairwise(energies), strict=True):
        assert low is not None
        assert high is not None
        assert (high - low) / (b - a) == pytest.approx(50)
    gaps = [b - a for a, b in pairwise(kept.at_s)]
    assert min(gaps[:-1]) >= APART_S
    assert max(gaps) <= 4 * min(gaps[:-1])


def test_what_was_not_read_is_none() -> None:
    course = CourseOf(["gpu", "cpu"])
    course.add(0, 0.0, {"gpu": 0.0, "cpu": 0.0})
    course.add(1, 1.0, {"gpu": 5.0})
    assert course.course([]).energy_j == {"gpu": (0.0, 5.0), "cpu": (0.0, None)}


def test_an_instant_that_is_not_later_adds_nothing() -> None:
    course = CourseOf([])
    for at_s in (0.0, 1.0, 1.0, 0.5):
        course.add(at_s, None, {})
    assert course.course([]).at_s == (0.0, 1.0)


def test_the_newest_item_is_always_kept() -> None:
    kept: Thinned[int] = Thinned(10, float)
    for item in range(1000):
        kept.add(item)
        assert kept.items()[-1] == item
        assert len(kept.items()) <= 10
    assert kept.items()[0] == 0


def test_every_nth_of_many_is_few() -> None:
    assert every_nth([1.0, 2.0], 5) == (1.0, 2.0)
    assert len(every_nth([float(n) for n in range(1001)], 240)) <= 240


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_what_is_kept_is_as_dense_at_the_end_as_at_the_beginning(step: int) -> None:
    kept: Thinned[int] = Thinned(100, float, 4.0)
    for item in range(0, 140 * step, step):
        kept.add(item)
    gaps = [b - a for a, b in pairwise(kept.items())][:-1]
    assert min(gaps) >= 4
    assert max(gaps) - min(gaps) < step


def test_an_item_that_would_take_the_place_of_the_last_is_wanted() -> None:
    kept: Thinned[float] = Thinned(10, float, 2.0)
    for item in (0.0, 2.0, 3.0):
        kept.add(item)
    assert not kept.wants(3.9)
    assert kept.wants(4.0)
    kept.add(4.0)
    assert kept.items() == (0.0, 2.0, 4.0)
