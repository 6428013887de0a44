"""Marks of steps within an epoch come in; how long a step takes once it runs steadily goes out. Pure.

A mark says how many steps of a loop (or a progress bar) are done at an instant. Marks are few, some a second
at most, whatever the number of steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .course import Thinned

MARKS = 240
"""So many marks of an epoch are kept at most, evenly spaced."""

WARM_STEPS = 5
WARM_SHARE = 0.05
"""So many steps at least, or this share of an epoch's steps, are warm-up: graph building, autotuning, caches.
After what trackers of deep learning leave out; a judgement."""

ENOUGH_STEPS = 4
"""Steps after the warm-up from which a rate is told: two chunks of them at least."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast an epoch's steps go by.

    Attributes
    ----------
    began_s, at_s
        Beginning of the epoch and newest mark, monotonic seconds.
    done, steps
        Steps done at that mark, of how many in the epoch.
    step_s
        Time of one step after the warm-up, s.
    warm_s
        When the warm-up was over, monotonic seconds.
    excess_s
        Time from the beginning of the epoch to the end of the warm-up beyond what so many steady steps take:
        what later epochs are not expected to have again, 0 at least.
    spread
        Relative standard deviation of `step_s` between chunks of steps.
    """

    began_s: float
    at_s: float
    done: int
    steps: int
    step_s: float
    warm_s: float
    excess_s: float
    spread: float


class StepsOf:
    """The steps of one epoch while it runs.

    Only the first source of steps that says how many there are is followed: a second loop of the same epoch,
    such as a validation, has a pace of its own.

    Parameters
    ----------
    began_s
        When the epoch began, monotonic seconds.
    """

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self._source = ""
        self._steps = 0
        self._marks: Thinned[tuple[int, float]] = Thinned(MARKS, lambda mark: mark[1])

    def mark(self, at_s: float, source: str, done: int, steps: int | None) -> None:
        """Note how many steps are done.

        Parameters
        ----------
        at_s
            Now, monotonic seconds.
        source
            Whose steps: a loop or a bar. Unique within the epoch.
        done, steps
            How many, of how many; None if that is not known, and then there is nothing to foretell.
        """
        if steps is None or steps < 2 or not 0 <= done <= steps or at_s < self.began_s:
            return
        if not self._source:
            self._source, self._steps = source, steps
        marks = self._marks.items()
        if source != self._source or steps != self._steps or (marks and done <= marks[-1][0]):
            return
        self._marks.add((done, at_s))

    def pace(self) -> Pace | None:
        """The pace as far as it is known; None while all of it may be warm-up."""
        return pace_of(self.began_s, self._steps, self._marks.items())


def pace_of(began_s: float, steps: int, marks: Sequence[tuple[int, float]]) -> Pace | None:
    """The pace of an epoch from its marks.

    Parameters
    ----------
    began_s
        When the epoch began, monotonic seconds.
    steps
        How many steps it has.
    marks
        Steps done and the instant, both ascending.

    Returns
    -------
    pace
        None if too few steps were done after the warm-up.
    """
    warm = min(max(WARM_STEPS, round(WARM_SHARE * steps)), steps // 2)
    steady = [mark for mark in marks if mark[0] >= warm]
    if len(steady) < 3 or steady[-1][0] - steady[0][0] < min(ENOUGH_STEPS, steps - warm):
        return None
    chunks = [
        (right_s - left_s) / (right - left)
        for (left, left_s), (right, right_s) in itertools.pairwise(steady)
        for _ in range(max(1, round(MARKS * (right - left) / (steady[-1][0] - steady[0][0]))))
    ]
    # A median over time would weigh slow chunks twice; each chunk counts by its steps.
    chunks.sort()
    step_s = chunks[len(chunks) // 2]
    if step_s <= 0:
        return None
    mean = sum(chunks) / len(chunks)
    spread = (sum((chunk - mean) ** 2 for chunk in chunks) / len(chunks)) ** 0.5 / mean
    done, at_s = steady[-1]
    warm_done, warm_s = steady[0]
    return Pace(
        began_s=began_s,
        at_s=at_s,
        done=done,
        steps=steps,
        step_s=step_s,
        warm_s=warm_s,
        excess_s=max(0.0, warm_s - began_s - warm_done * step_s),
        spread=spread,
    )
