"""Grams come in, texts go out, as they stand in a column. Pure."""

from __future__ import annotations

from datetime import datetime

_SCALE = ((1e6, "t"), (1e3, "kg"), (1.0, "g"), (1e-3, "mg"))


def zone_text(at: datetime) -> str:
    """The time zone of a time: "CET", or its offset where the system has a long name for it."""
    name = at.tzname() or ""
    return name if 0 < len(name) <= 5 else f"UTC{at:%z}"


def mass_text(grams: float) -> str:
    """A mass in three significant digits: "1.25 kg"."""
    for size, unit in _SCALE:
        if abs(grams) >= size or unit == "mg":
            return f"{float(f'{grams / size:.3g}'):g} {unit}"
    raise AssertionError
