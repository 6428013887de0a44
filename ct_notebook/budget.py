"""A budget, what was used and what is expected come in; what is or will be exceeded goes out. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from .errors import SettingError, shown

GRAMS = {"mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6}
SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_PART = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d)", re.ASCII)


class Used(NamedTuple):
    """Amounts of what a budget limits; None where nothing was measured.

    Attributes
    ----------
    co2_g
        CO2eq with PUE, g.
    kwh
        Energy with PUE, kWh.
    time_s
        Training time, pauses left out, s.
    """

    co2_g: float | None
    kwh: float | None
    time_s: float | None


class Expected(NamedTuple):
    """What the whole run will take: the expected amounts, and the low ends of their intervals."""

    value: Used
    low: Used


class Budget(NamedTuple):
    """The most that a run may take; None where there is no limit. Units as in `Used`."""

    co2_g: float | None = None
    kwh: float | None = None
    time_s: float | None = None

    @property
    def text(self) -> str:
        """The limits in words."""
        limits = [
            f"{words(limit)} {what}".removesuffix(" energy").removesuffix(" time")
            for limit, (what, words) in zip(self, _WORDS.items(), strict=True)
            if limit is not None
        ]
        return f"Budget: {', '.join(limits)}"


class Excess(NamedTuple):
    """A limit that does not hold.

    Attributes
    ----------
    what
        "CO2eq", "energy" or "time".
    is_certain
        It is exceeded already, will be within the next epoch, or all of the interval lies above it.
    is_used
        It is exceeded already, or will be within the next epoch.
    text
        The same in words, with figures.
    """

    what: str
    is_certain: bool
    is_used: bool
    text: str


def judge(
    budget: Budget, used: Used, next_epoch: Used | None, expected: Expected | None
) -> tuple[Excess, ...]:
    """Hold a budget against what was used and what is expected.

    Parameters
    ----------
    budget, used
        At the end of an epoch.
    next_epoch
        What one more epoch takes; None if none follows.
    expected
        What the whole run will take; None if that is not known, or if no epoch follows.
    """
    found = []
    for place, (what, words) in enumerate(_WORDS.items()):
        limit, spent = budget[place], used[place]
        if limit is None or spent is None:
            continue
        ahead = None if expected is None else expected.value[place]
        low = None if expected is None else expected.low[place]
        next_one = (None if next_epoch is None else next_epoch[place]) or 0.0
        if spent > limit:
            text = f"{what}: {words(spent)} used, {words(limit)} allowed"
            found.append(Excess(what, is_certain=True, is_used=True, text=text))
        elif spent + next_one > limit:
            text = f"{what}: {words(spent)} used, the next epoch would exceed the {words(limit)} allowed"
            found.append(Excess(what, is_certain=True, is_used=True, text=text))
        elif ahead is not None and ahead > limit:
            is_certain = low is not None and low > limit
            text = f"{what}: {words(ahead)} expected for the whole run, {words(limit)} allowed"
            found.append(Excess(what, is_certain=is_certain, is_used=False, text=text))
    return tuple(found)


def grams_from(name: str, value: object) -> float:
    """A mass such as "2kg", in g.

    Raises
    ------
    SettingError
        No positive mass with a unit.
    """
    return _amount(name, value, GRAMS, "give a mass with its unit, such as 500g or 2kg")


def seconds_from(name: str, value: object) -> float:
    """A time such as "3h", "1h30min" or "2:30:00", in s.

    Raises
    ------
    SettingError
        No positive time with a unit.
    """
    clock = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if clock is not None:
        hours, minutes, seconds = map(float, clock.groups())
        value = f"{hours * 3600 + minutes * 60 + seconds}s"
    return _amount(name, value, SECONDS, "give a time with its unit, such as 90min, 3h, 1h30min or 2:30:00")


def _amount(name: str, value: object, units: dict[str, float], wanted: str) -> float:
    total, at = 0.0, 0
    text = value if isinstance(value, str) else ""
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2].lower() not in units:
            break
        total += float(part[1]) * units[part[2].lower()]
        at = part.end()
    if not text or at < len(text) or not (math.isfinite(total) and total > 0):
        msg = f"{name}={shown(value)} cannot be meant: {wanted}."
        raise SettingError(msg)
    return total


def _mass(g: float) -> str:
    size, unit = (1e3, "kg") if g >= 1e3 else (1.0, "g") if g >= 0.1 else (1e-3, "mg")
    return f"{g / size:.3g} {unit}"


def _energy(kwh: float) -> str:
    return f"{kwh:.3g} kWh"


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{seconds:.3g} s" if whole < 60 else f"{whole // 3600:d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


_WORDS: dict[str, Callable[[float], str]] = {"CO2eq": _mass, "energy": _energy, "time": _time}
"""In the order of the fields."""
