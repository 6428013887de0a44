"""Grams of CO2eq come in, what else emits as much goes out. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .log.format import CAR_G_PER_KM


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Something that emits CO2eq, or takes it up.

    Attributes
    ----------
    g_per_unit
        CO2eq of one unit, g.
    unit, what
        "km" and "by car".
    source
        Whose figure, of which year.
    """

    g_per_unit: float
    unit: str
    what: str
    source: str

    @property
    def per(self) -> str:
        """The unit, one of it: "month"."""
        return self.unit.removesuffix("s")

    def text(self, emissions_g: float) -> str:
        """As much as some grams: "6.2 km by car"; "" below a hundredth of a unit."""
        amount = emissions_g / self.g_per_unit
        if amount < 0.01:
            return ""
        digits = 0 if amount >= 100 else 1 if amount >= 10 else 2
        text = f"{amount:.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{text} {self.unit} {self.what}"


EQUIVALENTS = (
    Equivalent(
        CAR_G_PER_KM,
        "km",
        "by car",
        "average new passenger car in the EU, European Environment Agency, 2024",
    ),
    Equivalent(
        41.0,
        "km",
        "by train, one passenger",
        "Green Algorithms 3.0, reference values, 2020",
    ),
    Equivalent(
        36.0,
        "h",
        "of streamed video",
        "International Energy Agency, December 2020, for 2019",
    ),
    Equivalent(
        917.0,
        "months",
        "of what a tree takes up",
        "Green Algorithms 3.0, reference values (11 kg a year), 2020",
    ),
    Equivalent(
        50_000.0,
        "flights",
        "from Paris to London, one passenger",
        "Green Algorithms 3.0, reference values, 2020",
    ),
)
"""Figures that others publish, each with its source; none of them is exact to more than a digit."""


def factors_text(emissions_g: float) -> str:
    """The factors behind `equivalents_text`, each with its source and year; the car's at least."""
    told = [each for each in EQUIVALENTS if each.text(emissions_g)] or EQUIVALENTS[:1]
    return "; ".join(f"{each.g_per_unit:g} g per {each.per} {each.what} ({each.source})" for each in told)


def equivalents_text(emissions_g: float) -> str:
    """All that are worth telling, in one line."""
    return "; ".join(text for each in EQUIVALENTS if (text := each.text(emissions_g)))
