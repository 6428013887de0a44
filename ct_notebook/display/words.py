"""Figures come in; the texts that panel, text line and static result show go out. Pure.

Three significant digits for a figure, two for the ends of its interval if they hold it so, in the unit that
fits. What was not measured is "".
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ct_notebook.log.format import CAR_G_PER_KM
from ct_notebook.records import Band, Intensity
from ct_notebook.units import clock_text

_Scale = tuple[tuple[float, str], ...]

_WH: _Scale = ((1e6, "MWh"), (1e3, "kWh"), (1.0, "Wh"), (1e-3, "mWh"))
_G: _Scale = ((1e6, "t"), (1e3, "kg"), (1.0, "g"), (1e-3, "mg"))
_W: _Scale = ((1e3, "kW"), (1.0, "W"), (1e-3, "mW"))
_M: _Scale = ((1e3, "km"), (1.0, "m"), (1e-2, "cm"))


def energy_text(energy_j: float | None, digits: int = 3) -> str:
    """Joules as watt-hours: "4.91 Wh"."""
    return "" if energy_j is None else _scaled(energy_j / 3600, _WH, digits)


def co2_text(emissions_g: float | None, digits: int = 3) -> str:
    """Grams of CO2eq: "0.70 g", "1.25 kg"."""
    return "" if emissions_g is None else _scaled(emissions_g, _G, digits)


def power_text(power_w: float | None) -> str:
    """Watts: "143 W"."""
    return "" if power_w is None else _scaled(power_w, _W)


def equivalent_text(emissions_g: float | None) -> str:
    """Grams of CO2eq as a way by car: "6.6 m by car"."""
    return "" if emissions_g is None else _scaled(emissions_g / CAR_G_PER_KM * 1000, _M, 2) + " by car"


def intensity_text(intensity: Intensity) -> str:
    """A carbon intensity with its time and kind: "369 g CO2eq/kWh (2024, lifecycle)"."""
    known = ", ".join(part for part in (intensity.time, intensity.kind) if part)
    return f"{intensity.g_per_kwh:.4g} g CO2eq/kWh" + (f" ({known})" if known else "")


def place_how(intensity: Intensity) -> str:
    """How the place is known: "time zone Europe/Copenhagen"; "" if it is not."""
    unknown = intensity.is_fallback or intensity.place == "Unknown"
    return "" if unknown else intensity.how


def time_text(seconds: float | None) -> str:
    """A time as a person says it: "45 s", "12 min", "1 h 5 min", "2 d 3 h"."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24} h".removesuffix(" 0 h")


def energy_range(energy_j: Band | None) -> str:
    """An interval of joules: "4.0 to 6.1 Wh"."""
    return "" if energy_j is None else _interval(energy_j.times(1 / 3600), _WH)


def co2_range(emissions_g: Band | None) -> str:
    """An interval of grams: "0.40 to 1.2 g"."""
    return "" if emissions_g is None else _interval(emissions_g, _G)


def duration_range(duration_s: Band) -> str:
    """An interval of seconds: "0:31:00 to 0:38:00"."""
    return _range(clock_text(duration_s.low), clock_text(duration_s.high))


def axis_text(text: Callable[[float | None], str], value: float) -> str:
    """A round value on an axis: "10 W" rather than "10.0 W"."""
    figure, _, unit = text(value).partition(" ")
    figure = figure.rstrip("0").rstrip(".") if "." in figure else figure
    return f"{figure} {unit}"


def _interval(band: Band, scale: _Scale) -> str:
    """Both ends with two digits; with three where the figure would seem to lie on or beyond them."""
    low, high = (float(f"{end:.1e}") for end in (band.low, band.high))
    digits = 2 if low <= float(f"{band.value:.2e}") <= high and low < high else 3
    return _range(_scaled(band.low, scale, digits), _scaled(band.high, scale, digits))


def _range(low: str, high: str) -> str:
    """Two ends, their unit said once if they share it."""
    if low == high:
        return low
    low_figure, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    return f"{low_figure if low_unit == high_unit else low} to {high}"


def _scaled(value: float, scale: _Scale, digits: int = 3) -> str:
    """A figure in the largest unit in which it is at least 1, else in the smallest."""
    if value == 0:
        return f"0 {next(unit for size, unit in scale if size == 1.0)}"
    for size, unit in scale:
        figure = _significant(value / size, digits)
        if abs(float(figure)) >= 1:
            return f"{figure} {unit}"
    return f"{_significant(value / scale[-1][0], digits)} {scale[-1][1]}"


def _significant(value: float, digits: int) -> str:
    """So many significant digits, never an exponent."""
    if value == 0 or not math.isfinite(value):
        return "0"
    # Rounded first: 9.999 has as many digits as 10.0.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(0, min(decimals, 9))}f}"
