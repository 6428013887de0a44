"""What a source expects comes in; the mean carbon intensity over the rest of a run goes out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ct_notebook.records import Band

SOON_S = 6 * 3600.0
"""Up to here the newest figure is held where there is no forecast."""

HELD_SD_SOON, HELD_SD = 0.05, 0.20
"""How far (relative, one standard deviation) the mean ahead is from a figure that is held, within 6 h and
beyond. On a steady grid (MISO, half-hourly, 3.5 days) a held figure was off by 1.5 to 4.7 % in the mean;
grids of sun and wind by three to five times that after a day."""

FORECAST_SD = 0.08
"""The same for the mean of a forecast: 7 % mean error of single half hours in Great Britain, 2017 to 2023."""

QUANTILE = 1.2816
"""Of the normal distribution, for 80 of 100 on both sides together."""


def mean_ahead(
    now_g_per_kwh: float, slots: Sequence[tuple[float, float]], from_s: float, remaining_s: float
) -> Band:
    """The mean intensity over the time that is left, g/kWh, with its 80 % interval.

    Parameters
    ----------
    now_g_per_kwh
        The newest figure. Holds wherever there is no forecast.
    slots
        Beginning of each forecast slot (unix seconds, ascending) and its g/kWh.
    from_s
        Now, unix seconds.
    remaining_s
        How long the run still takes, s.
    """
    remaining_s = max(1.0, remaining_s)
    value = mean_over(slots, from_s, from_s + remaining_s)
    sd = FORECAST_SD
    if value is None:
        value, sd = now_g_per_kwh, HELD_SD_SOON if remaining_s <= SOON_S else HELD_SD
    factor = math.exp(QUANTILE * sd)
    return Band(value, value / factor, value * factor)


def mean_over(slots: Sequence[tuple[float, float]], from_s: float, to_s: float) -> float | None:
    """The mean of a forecast over a time, g/kWh; its last slot holds for what lies beyond it.

    Parameters
    ----------
    slots
        Beginning of each slot (unix seconds, ascending) and its g/kWh.
    from_s, to_s
        Unix seconds.

    Returns
    -------
    mean
        None if there is no forecast, or if less than half of the time lies within it.
    """
    if not slots or to_s <= from_s:
        return None
    length_s = slots[-1][0] - slots[-2][0] if len(slots) > 1 else 1800.0
    ends_s = [at_s for at_s, _ in slots[1:]] + [slots[-1][0] + length_s]
    if ends_s[-1] - from_s < (to_s - from_s) / 2:
        return None
    total = covered_s = 0.0
    for place, ((at_s, g_per_kwh), end_s) in enumerate(zip(slots, ends_s, strict=True)):
        begin_s = from_s if place == 0 else max(from_s, at_s)
        stop_s = to_s if place == len(slots) - 1 else min(to_s, end_s)
        if stop_s > begin_s:
            total += g_per_kwh * (stop_s - begin_s)
            covered_s += stop_s - begin_s
    return total / covered_s if covered_s > 0 else None
