"""Epochs so far come in; what the whole run will take goes out, with an interval. Pure.

Total = observed + remaining epochs x level. The level is the mean of the epochs since it last changed; the
first epoch is left out of it once others exist, since it carries warm-up (graph building, caches, autotuning)
either way. Before the first epoch ends, and for the level after it, its steps tell more than its length does.

`tests/bench/forecast` holds all of it against trainings that it was not tuned on, and carbontracker's rule
(N x the mean so far) beside it; the figures are in its README.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .records import Band, Epoch, Estimate
from .steps import Pace

CHANGED = 3.0
"""Two epochs in a row that are further than this many standard deviations off the mean before them, on the
same side, are a new level: another user has come or gone, a phase of the training has begun."""

LEAST_SD = 0.01
"""Epochs are not taken to be steadier than this (relative) when a change is looked for."""

OUTLIER = 1.5
"""An epoch longer than so many medians of its level (a machine that slept) is left out of the mean."""

LONGEST_PERIOD = 10
"""A validation, a checkpoint every n epochs shows up to this n."""

CLEARER = 0.5
"""A period is believed if it halves the error of each epoch as told by the others. Epochs that only vary give
about 1.4 there after two periods."""

WORTH_IT = 0.01
"""A period that moves epochs by less than this (relative) changes no forecast."""

LEAST_FOR_PERIOD = 6
"""So many epochs at least: fewer pair up by chance."""

CONFIDENCE = 0.90
"""Quantile on either side of an interval that is meant to hold 80 of 100 runs."""

PRIOR_EPOCHS = 2.0
PRIOR_SD = 0.003
"""The spread of epochs (relative) that is taken for granted, worth this many epochs: that of the steadiest
runs. What is more shows in a run's own epochs, the first one included."""

DRIFT = 2.8
"""The level moves by this many standard deviations of its epochs by the end of a run (throttling, other
users): what an unsteady run does more than a steady one."""

LATER_BELOW_SD = 0.31
LATER_ABOVE_SD = 0.105
"""How far (relative) the epochs after the first are from it, if only its length is known: further below,
since warm-up, caches that are filled, plots of the data make first epochs up to three times as long."""

WITHIN_SD = 0.40
"""The same for the run as told by the first steps of it: validation, and loops after the one under way, are
out of sight, and so is who else will use the machine."""

# The constants of the interval were chosen by their coverage on the public epoch times of one source and held
# on the other (tests/bench/forecast); where both say little, on the wide side.


def forecast(
    epochs: Sequence[Epoch], total: int, g_per_j: float, *, first: Pace | None = None
) -> Estimate | None:
    """Estimate duration, energy and emissions of a run of `total` epochs.

    Parameters
    ----------
    epochs
        The complete epochs so far, in order.
    total
        How many epochs the run has.
    g_per_j
        Grams of CO2eq per joule, PUE included.
    first
        What the steps of the first epoch told, if they did.

    Returns
    -------
    estimate
        None before the first epoch has ended.
    """
    if not epochs:
        return None
    excess = 0.0
    if len(epochs) == 1 and first is not None and epochs[0].duration_s > 0:
        excess = min(0.9, first.excess_s / epochs[0].duration_s)
    duration_s = total_of([epoch.duration_s for epoch in epochs], total, excess)
    energies_j = [energy for energy in map(full_energy_j, epochs) if energy is not None]
    # Epochs of which nothing was measured are taken to be like the others.
    energy_j = total_of(energies_j, total, excess) if energies_j else None
    if len(epochs) == 1:
        kind = "the first epoch" + (" without its warm-up" if excess else "")
    else:
        kind = f"the {len(epochs) - 1} epoch(s) after the first"
    return Estimate(
        epochs=total,
        made_after=len(epochs),
        duration_s=duration_s,
        energy_j=energy_j,
        emissions_g=None if energy_j is None else energy_j.times(g_per_j),
        method=f"observed + remaining x level of {kind}",
    )


def forecast_within(
    pace: Pace, total: int, g_per_j: float, energy_j: Callable[[float], float | None]
) -> Estimate:
    """Estimate a run from the steps of its first epoch, while that is under way.

    Parameters
    ----------
    pace
        How its steps go by.
    total
        How many epochs the run has.
    g_per_j
        Grams of CO2eq per joule, PUE included.
    energy_j
        Gives the joules used from the beginning of the epoch to an instant (monotonic seconds); None where
        nothing was measured.

    Returns
    -------
    estimate
        `made_after` is 0.
    """
    so_far_s = pace.at_s - pace.began_s
    level_s = pace.steps * pace.step_s
    ahead_s = (pace.steps - pace.done) * pace.step_s + (total - 1) * level_s
    share = pace.done / pace.steps
    spread = math.hypot(WITHIN_SD, pace.spread / math.sqrt(max(1.0, pace.done * 0.5)), 0.1 * (1 - share))
    factor = math.exp(student_t(CONFIDENCE, math.inf) * spread)
    duration_s = Band(so_far_s + ahead_s, so_far_s + ahead_s / factor, so_far_s + ahead_s * factor)
    used_j, warm_j = energy_j(pace.at_s), energy_j(pace.warm_s)
    used: Band | None = None
    if used_j is not None and warm_j is not None and pace.at_s > pace.warm_s:
        # What it draws once warm is what it will draw: a GPU idles while graphs are built.
        ahead_j = ahead_s * (used_j - warm_j) / (pace.at_s - pace.warm_s)
        used = Band(used_j + ahead_j, used_j + ahead_j / factor, used_j + ahead_j * factor)
    return Estimate(
        epochs=total,
        made_after=0,
        duration_s=duration_s,
        energy_j=used,
        emissions_g=None if used is None else used.times(g_per_j),
        method=f"{pace.done} of {pace.steps} steps of the first epoch, its warm-up left out of the rest",
    )


def with_intensity_ahead(estimate: Estimate, used_j: float, used_g: float, ahead_g_per_j: Band) -> Estimate:
    """The same estimate where carbon intensity changes: grams used, and the rest at what is to come.

    Parameters
    ----------
    estimate
        Of duration and energy.
    used_j, used_g
        What was used up to now; grams with PUE.
    ahead_g_per_j
        Mean grams per joule over the rest of the run, PUE included, with its interval.

    Returns
    -------
    estimate
        Its emissions have the interval of energy and of intensity, added in quadrature: they are independent.
    """
    energy_j = estimate.energy_j
    if energy_j is None:
        return estimate
    rest_j = max(0.0, energy_j.value - used_j)
    value = rest_j * ahead_g_per_j.value
    below = math.hypot(
        (energy_j.value - energy_j.low) * ahead_g_per_j.value,
        rest_j * (ahead_g_per_j.value - ahead_g_per_j.low),
    )
    above = math.hypot(
        (energy_j.high - energy_j.value) * ahead_g_per_j.value,
        rest_j * (ahead_g_per_j.high - ahead_g_per_j.value),
    )
    emissions_g = Band(used_g + value, max(used_g, used_g + value - below), used_g + value + above)
    return dataclasses.replace(estimate, emissions_g=emissions_g)


def with_emissions_times(estimate: Estimate, factor: float) -> Estimate:
    """The same estimate at another carbon intensity throughout."""
    emissions_g = estimate.emissions_g
    return dataclasses.replace(
        estimate, emissions_g=None if emissions_g is None else emissions_g.times(factor)
    )


class Spent(NamedTuple):
    """What a run has used up to now of something: in its complete epochs, in the one under way, elsewhere."""

    complete: float
    under_way: float
    outside: float

    def times(self, factor: float) -> Spent:
        """The same in another unit."""
        return Spent(*(part * factor for part in self))


def as_it_stands(
    estimate: Estimate,
    epochs_done: int,
    spent_s: Spent,
    spent_j: Spent,
    g_per_j: float,
    *,
    first_s: float | None = None,
) -> Estimate:
    """The newest estimate of the epochs as one of the whole run, brought up to now.

    What was used between epochs and before them is added. An epoch that already takes longer than was
    expected of it moves all of the interval, so that nothing is expected below what is used. If that is the
    first one, what its steps did not show, such as a validation, is expected of the others too.

    Parameters
    ----------
    estimate
        As `forecast` or `forecast_within` made it.
    epochs_done
        The complete epochs.
    spent_s, spent_j
        Seconds, and joules without PUE.
    g_per_j
        Grams of CO2eq per joule, PUE included, at which they were charged.
    first_s
        How long the first epoch would take by its steps, while it is under way.
    """
    unseen = 0.0
    if estimate.made_after == 0 and first_s is not None and spent_s.under_way > first_s:
        unseen = 1 - first_s / spent_s.under_way
    # Before the first epoch has ended, and between two estimates far apart, nobody knows one epoch's part.
    knows_each = 0 < estimate.made_after == epochs_done
    ahead = estimate.epochs - estimate.made_after if knows_each else 1

    def moved(band: Band, spent: Spent) -> Band:
        def end(bound: float, epochs: int) -> float:
            each = max(0.0, bound - spent.complete) / ahead if ahead else 0.0
            return spent.outside + bound + max(epochs * unseen * spent.under_way, spent.under_way - each)

        least, every = sum(spent), estimate.epochs
        ends = ((band.value, every), (band.low, 1), (band.high, every))
        return Band(*(max(least, end(bound, epochs)) for bound, epochs in ends))

    energy_j, emissions_g = estimate.energy_j, estimate.emissions_g
    return dataclasses.replace(
        estimate,
        duration_s=moved(estimate.duration_s, spent_s),
        energy_j=None if energy_j is None else moved(energy_j, spent_j),
        emissions_g=None if emissions_g is None else moved(emissions_g, spent_j.times(g_per_j)),
    )


def full_energy_j(epoch: Epoch) -> float | None:
    """The energy that an epoch would have shown had its devices been read throughout, J; None if none was."""
    energies_j = [
        energy_j * max(1.0, epoch.duration_s / epoch.covered_s[device])
        for device, energy_j in epoch.energy_j.items()
        if epoch.covered_s.get(device, 0.0) > 0
    ]
    return sum(energies_j) if energies_j else None


def total_of(amounts: Sequence[float], total: int, first_excess: float = 0.0) -> Band:
    """The sum over `total` epochs of something of which the first epochs' amounts are known.

    The interval is that of a level with log-normal noise, its variance s^2 blended with a prior so that two
    or three epochs do not look more certain than they are, and with a drift in proportion to that noise:
    sd^2 = s^2/R + s^2/n + (drift s)^2 R/N for R of N epochs remaining and a level made of n.

    Parameters
    ----------
    amounts
        Of each epoch so far, in order; at least one.
    total
        How many epochs there will be.
    first_excess
        The share of the first amount that is known to be warm-up, 0 to 1. Counts while there is no other.
    """
    observed = sum(amounts)
    remaining = max(0, total - len(amounts))
    later = [amount for amount in amounts[1:] if amount > 0]
    if len(amounts) == 1:
        later = [amounts[0] * (1 - first_excess)] if amounts[0] > 0 else []
    if not remaining or not later:
        return Band(observed, observed, observed)
    if len(amounts) == 1:
        rest, freedom, below, above = remaining * later[0], math.inf, LATER_BELOW_SD, LATER_ABOVE_SD
    else:
        rest, made_of = _rest(later, remaining)
        logs = [math.log(amount) for amount in later]
        mean = sum(logs) / len(logs)
        squares = sum((log - mean) ** 2 for log in logs)
        # The first one has its say here, the less the more others there are: a run that begins far off its
        # level is less steady in what comes next.
        squares += (math.log(amounts[0]) - mean) ** 2 / len(logs) if amounts[0] > 0 else 0.0
        freedom = PRIOR_EPOCHS + len(logs)
        variance = (PRIOR_EPOCHS * PRIOR_SD**2 + squares) / freedom
        below = above = math.sqrt(variance * (1 / remaining + 1 / made_of + DRIFT**2 * remaining / total))
    t = student_t(CONFIDENCE, freedom)
    low, high = rest * math.exp(-t * below), rest * math.exp(t * above)
    return Band(observed + rest, observed + low, observed + high)


def _rest(later: Sequence[float], remaining: int) -> tuple[float, int]:
    """The sum over the remaining epochs, and of how many epochs its level is made."""
    period = _period(later)
    if period > 1:
        count = len(later)
        phases = [_mean(later[phase::period]) for phase in range(period)]
        return sum(phases[(count + ahead) % period] for ahead in range(remaining)), count
    level = since_change(later)
    middle = sorted(level)[len(level) // 2]
    return remaining * _mean([amount for amount in level if amount <= OUTLIER * middle]), len(level)


def since_change(amounts: Sequence[float]) -> Sequence[float]:
    """The amounts since their level last changed, two at least if there are so many."""
    # One pass, whatever the number of epochs: mean and squares of those before the newest two grow with them.
    start, count, mean, squares = 0, 0, 0.0, 0.0
    for end in range(3, len(amounts) + 1):
        if end - start < 3:
            continue
        count += 1
        off_mean = amounts[end - 3] - mean
        mean += off_mean / count
        squares += off_mean * (amounts[end - 3] - mean)
        if count < 2:
            continue
        least = max(math.sqrt(squares / count), LEAST_SD * mean)
        off = [(amounts[newest] - mean) / least for newest in (end - 2, end - 1)]
        if min(off) > CHANGED or max(off) < -CHANGED:
            start, count, mean, squares = end - 2, 0, 0.0, 0.0
    return amounts[start:]


def _period(amounts: Sequence[float]) -> int:
    """The period in which epochs are alike, such as a validation every n; 1 if there is none.

    Judged by how well each epoch is told by the others of its phase, after two full periods.
    """
    flat = _error_by_others([amounts])
    best, least = 1, CLEARER * flat
    if len(amounts) < LEAST_FOR_PERIOD or flat < WORTH_IT * sum(amounts):
        return 1
    for period in range(2, min(LONGEST_PERIOD, len(amounts) // 2) + 1):
        error = _error_by_others([amounts[phase::period] for phase in range(period)])
        if error < least:
            best, least = period, CLEARER * error  # a multiple of the period must be clearer again
    return best


def _error_by_others(groups: Sequence[Sequence[float]]) -> float:
    """Sum of how far each amount is from the mean of the others in its group."""
    error = 0.0
    for group in groups:
        if len(group) < 2:
            return math.inf
        total = sum(group)
        error += sum(abs(amount - (total - amount) / (len(group) - 1)) for amount in group)
    return error


def _mean(amounts: Sequence[float]) -> float:
    return sum(amounts) / len(amounts)


def student_t(p: float, freedom: float) -> float:
    """Quantile of Student's t for `freedom` >= 3.

    Cornish-Fisher expansion, Abramowitz & Stegun 26.7.5; within 0.5 % of the exact value for p <= 0.95 there.
    """
    x = _NORMAL_QUANTILE[p]
    g1 = (x**3 + x) / 4
    g2 = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    g3 = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + g1 / freedom + g2 / freedom**2 + g3 / freedom**3


_NORMAL_QUANTILE = {0.90: 1.2815515655446004, 0.95: 1.6448536269514722, 0.975: 1.959963984540054}
