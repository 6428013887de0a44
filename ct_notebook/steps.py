"""Marks of steps within an epoch come in; how long a step takes once it runs steadily goes out. Pure.

A mark says how many steps of a loop (or a progress bar) are done at an instant. Marks are few, some a second
at most, whatever the number of steps.
"""

from __future__ import annotations

import itertools
import math
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

    @property
    def epoch_s(self) -> float:
        """How long the epoch takes if nothing comes after these steps, s."""
        return self.at_s - self.began_s + (self.steps - self.done) * self.step_s


SOURCES = 8
"""Loops and bars of an epoch that are kept apart at most."""

PRELUDE = 0.1
"""A loop that was over before another began, and the time up to that other one, are its warm-up if they took
less than this share of what the other one has taken: a look at some parameters, a cache that is filled."""


class _Source:
    """The marks of one loop or bar."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.marks: Thinned[tuple[int, float]] = Thinned(MARKS, lambda mark: mark[1])
        self.first_s = self.last_s = 0.0
        self.done = -1

    def add(self, done: int, at_s: float) -> None:
        if self.done < 0:
            self.first_s = at_s
        self.done, self.last_s = done, at_s
        self.marks.add((done, at_s))

    @property
    def span_s(self) -> float:
        """From its first mark to its newest; 0 while it has not moved."""
        return self.last_s - self.first_s


class StepsOf:
    """The steps of one epoch while it runs.

    The first source of steps that says how many there are, and moves, is followed: a second loop of the same
    epoch, such as a validation, has a pace of its own. It gives way to one beside which it was nothing.

    Parameters
    ----------
    began_s
        When the epoch began, monotonic seconds.
    """

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self._turns_s = [began_s]
        self._sources: dict[str, _Source] = {}

    def turn(self, at_s: float) -> None:
        """A pause begins, or the one that is under way ends. What passes in it belongs to no epoch."""
        self._turns_s.append(at_s)

    def trained(self, until_s: float = math.inf) -> list[tuple[float, float]]:
        """The stretches from the beginning to an instant that are no pause; the last one has no end yet."""
        turns_s = [at_s for at_s in self._turns_s if at_s < until_s or at_s == self.began_s]
        if len(turns_s) % 2:
            turns_s.append(until_s)
        return list(zip(turns_s[::2], turns_s[1::2], strict=True))

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
        known = self._sources.get(source)
        if known is None:
            if len(self._sources) >= SOURCES:
                followed = self._followed()
                others = [name for name, each in self._sources.items() if each is not followed]
                del self._sources[min(others, key=lambda name: self._sources[name].span_s)]
            known = self._sources[source] = _Source(steps)
        if steps == known.steps and done > known.done:
            # Pauses are taken out: an instant is the beginning and the time of training since.
            passed_s = sum(end_s - start_s for start_s, end_s in self.trained(at_s))
            known.add(done, self.began_s + passed_s)

    def pace(self) -> Pace | None:
        """The pace as far as it is known, on a clock that stands in pauses; None while all may be warm-up."""
        source = self._followed()
        return None if source is None else pace_of(self.began_s, source.steps, source.marks.items())

    def _followed(self) -> _Source | None:
        found: _Source | None = None
        for source in sorted(self._sources.values(), key=lambda each: each.first_s):
            if source.span_s <= 0:
                continue  # a bar that an earlier cell has left behind stands still
            if found is None or (
                found.last_s <= source.first_s and source.first_s - found.first_s < PRELUDE * source.span_s
            ):
                found = source
        return found


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
