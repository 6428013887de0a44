"""Figures come in; texts of them that can be laid side by side go out: no exponents, units shared."""

from __future__ import annotations

import math
from collections.abc import Sequence

ENERGY: tuple[tuple[float, str], ...] = ((3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh"), (3.6, "mWh"))
"""Joules in a unit, and its name."""

CO2: tuple[tuple[float, str], ...] = ((1e6, "t"), (1e3, "kg"), (1.0, "g"), (1e-3, "mg"))
"""Grams in a unit, and its name."""

NONE = "-"


def number(value: float, digits: int = 3) -> str:
    """So many significant digits, at least all before the point, never an exponent or a needless 0."""
    text = _significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def column(value: float | None, unit: float = 1.0) -> str:
    """A figure of a column: three significant digits of it in its unit, "-" if there is none."""
    return NONE if value is None else _significant(value / unit, 3)


def watts(value: float) -> str:
    """A power: "21.3 W"."""
    return f"{number(value)} W"


def ratio(value: float | None, ours: float | None) -> str:
    """How many times ours; "-" if there is nothing to say."""
    return NONE if value is None or ours is None or ours <= 0 else _significant(value / ours, 2)


def _significant(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else NONE
    # Rounded first: 9.999 has as many digits as 10.0.
    rounded = float(f"{value:.{digits - 1}e}") if abs(value) < 10**digits else value
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{min(max(0, decimals), 9)}f}"


def unit_for(values: Sequence[float | None], units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The one unit that all of them are told in: that in which the first that is not 0 is at least 1.

    Ours comes first, so that figures which differ a thousandfold are told in the unit of ours.
    """
    leading = next((value for value in values if value), 0.0)
    for size, name in units:
        if abs(leading) >= size:
            return size, name
    return units[-1] if leading else next(unit for unit in units if unit[1] in {"Wh", "g"})
