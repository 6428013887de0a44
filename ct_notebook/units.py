"""Joules and seconds inside; kilowatt-hours, grams and clock text at the edge."""

from __future__ import annotations

import math

J_PER_KWH = 3_600_000.0
"""Joules in a kilowatt-hour: 1000 W for 3600 s, exact by definition of the SI units."""


def kwh(energy_j: float) -> float:
    """Joules as kilowatt-hours."""
    return energy_j / J_PER_KWH


def grams(energy_j: float, g_per_kwh: float) -> float:
    """CO2eq in grams of `energy_j` joules made at a carbon intensity of `g_per_kwh`."""
    return energy_j / J_PER_KWH * g_per_kwh


def clock_text(seconds: float) -> str:
    """Seconds as `H:MM:SS`, rounded to whole seconds, hours unbounded.

    This is how carbontracker writes `Time:` in a consumption block.
    """
    whole = max(0, round(seconds))
    return f"{whole // 3600:d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def duration_text(seconds: float) -> str:
    """Seconds as `H:MM:SS.ss`, hours unbounded.

    This is how carbontracker writes `Duration:` of an epoch. Rounding happens before the split, so
    that 59.999 s becomes `0:01:00.00` and never `0:00:60.00`.
    """
    hundredths = max(0, round(seconds * 100))
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes // 60:d}:{minutes % 60:02d}:{rest // 100:02d}.{rest % 100:02d}"


def fixed(value: float, decimals: int) -> str:
    """A number in fixed-point notation, as every reader of the logs understands it.

    Raises
    ------
    ValueError
        `value` is not finite: nan and inf have no place in a log.
    """
    if not math.isfinite(value):
        msg = f"only finite numbers are written, not {value!r}"
        raise ValueError(msg)
    return f"{value:.{decimals}f}"
