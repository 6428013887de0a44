"""Grams come in, texts go out, as they stand in a column. Pure."""

from __future__ import annotations

_SCALE = ((1e6, "t"), (1e3, "kg"), (1.0, "g"), (1e-3, "mg"))


def mass_text(grams: float) -> str:
    """A mass in three significant digits: "1.25 kg"."""
    for size, unit in _SCALE:
        if abs(grams) >= size or unit == "mg":
            return f"{float(f'{grams / size:.3g}'):g} {unit}"
    raise AssertionError
