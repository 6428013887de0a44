"""The text of an answer comes in, checked figures and times go out; what a source of live figures is.

A source knows the carbon intensity of a place now and, some of them, the hours ahead. It is given the means
to ask (`Get`), so that nothing here touches the network. Whatever a server answers is taken as hostile until
it is checked: a figure has a type and bounds, a time is UTC and near now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from ct_notebook.errors import SourceError
from ct_notebook.records import Intensity

HIGHEST_G_PER_KWH = 2000.0
"""No grid comes near: lignite alone makes about 1100 g/kWh."""

OLDEST_S = 24 * 3600.0
"""A figure older than a day is refused: the yearly one of a table is no worse then."""

EARLY_S = 3600.0
"""How far ahead of this machine's clock a figure of now may be: a slot's end, or a clock that is off."""

LONGEST_AHEAD_S = 96 * 3600.0
"""No source looks further ahead than 72 h; slots beyond are damage."""

MOST_SLOTS = 2000
"""96 h of slots of 5 minutes are 1152."""

MEASURED_OFF = 0.07
"""How far off a measured figure is taken to be, relative. The sources publish no error of it; it is an
estimate from metered generation and factors per fuel, and is not claimed to be better than the mean error of
Great Britain's forecast, 7.1 % (2017 to 2023). A judgement."""

FORECAST_OFF = 0.11
"""The same for a forecast: 80 % of normal errors lie within 1.6 mean absolute errors, and 1.6 x 7.1 % is
11 %, which is also the mean error of Great Britain's forecasts of four days ahead."""

HELD_OFF = 0.3
"""The same for a figure that has been held for hours. On a steady grid (MISO) a figure held for 6 to 24 h is
off by 4 to 5 % in the mean; one of sun and wind moves 3 to 5 times as much, so by up to 20 %, and 1.6 x 20 %
is about this."""

HELD_S = 2 * 3600.0
"""From this age on a figure counts as held: up to 2 h it is off by 2 % in the mean on a steady grid."""

TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?(?:\.\d{1,9})?(Z|\+00:?00)?", re.ASCII)

KINDS_OF_REFUSAL = {
    400: "the request was refused as wrong; give another zone",
    401: "the key was refused; check it",
    403: "the key was refused, or its plan does not hold this place; check both",
    404: "it has nothing on this place; give another zone",
    407: "a proxy wants a name and password; set HTTPS_PROXY",
    429: "it was asked too often; it is asked again later",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes
    ----------
    status
        HTTP status.
    text
        The body, 1 MB at most.
    """

    status: int
    text: str


class Get(Protocol):
    """Ask by HTTP GET. `live_get` of http.py is the real one."""

    def __call__(
        self, url: str, *, params: Mapping[str, str] = ..., headers: Mapping[str, str] = ...
    ) -> Answer:
        """Give the answer, whatever its status.

        Raises
        ------
        SourceError
            There is none. The text says the kind of failure only.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a source says at one time.

    Attributes
    ----------
    now
        The newest figure.
    ahead
        Forecast: beginning of each slot, unix seconds UTC, and g/kWh, in order of time; () if there is none.
        The slot that holds the present is the first. The last slot is as long as the one before it.
    notes
        What went wrong on the way to it, one line each.
    """

    now: Intensity
    ahead: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """One live source of one place. Equal sources may share an answer."""

    @property
    def name(self) -> str:
        """What it is, for people: "Great Britain, NESO"."""
        ...

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Ask for the newest figure and the hours ahead. Takes seconds: never called where training waits.

        Raises
        ------
        SourceError
            No figure that can be trusted. One line that holds no key, no URL and nothing of the answer.
        """
        ...


def answer_of(name: str, answer: Answer) -> Any:
    """The JSON of an answer with status 200.

    Raises
    ------
    SourceError
        Any other status, or no JSON.
    """
    if answer.status != 200:
        if answer.status in KINDS_OF_REFUSAL:
            why = KINDS_OF_REFUSAL[answer.status]
        elif answer.status >= 500:
            why = "its server failed; it is asked again later"
        else:
            why = "it gave no figure; it is asked again later"
        msg = f"{name}: {why} (HTTP {answer.status})."
        raise SourceError(msg)
    found: Any = None
    is_json = True
    try:
        found = json.loads(answer.text)
    except (ValueError, RecursionError):
        is_json = False
    # Outside the handler: what json raises holds the whole answer, and would hang on to ours.
    if not is_json:
        msg = f"{name}: the answer is not JSON (cut short, or a web page); it is asked again later."
        raise SourceError(msg)
    return found


def part_of(name: str, found: Any, *path: str | int) -> Any:
    """What lies at a path of keys and indices.

    Raises
    ------
    SourceError
        Nothing does.
    """
    for step in path:
        has_key = isinstance(found, Mapping) and step in found
        has_index = isinstance(found, list) and isinstance(step, int) and step < len(found)
        if not (has_key or has_index):
            msg = f"{name}: the answer has no {step!r} where one should be; it is asked again later."
            raise SourceError(msg)
        found = found[step]
    return found


def rows_of(name: str, found: Any, *path: str | int) -> list[Any]:
    """The list that lies at a path, of `MOST_SLOTS` rows at most.

    Raises
    ------
    SourceError
        There is no list, or a longer one.
    """
    rows = part_of(name, found, *path)
    if not isinstance(rows, list) or len(rows) > MOST_SLOTS:
        msg = f"{name}: the answer has no list where one should be; it is asked again later."
        raise SourceError(msg)
    return rows


def figure_of(name: str, value: Any) -> float:
    """A carbon intensity, g/kWh, of 0 to 2000.

    Raises
    ------
    SourceError
        Anything else: text, true, null, negative, absurd.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{name}: the figure is no number; it is asked again later."
        raise SourceError(msg)
    if not 0 <= value <= HIGHEST_G_PER_KWH:  # NaN is not either
        msg = f"{name}: the figure cannot be a carbon intensity (0 to 2000 g/kWh); it is asked again later."
        raise SourceError(msg)
    return float(value)


def time_of(name: str, value: Any, *, is_utc: bool = False) -> float:
    """Unix seconds of an ISO 8601 time in UTC.

    Parameters
    ----------
    is_utc
        The source says that its times are UTC although they do not say so themselves.

    Raises
    ------
    SourceError
        Any other format, or another offset.
    """
    match = TIME.fullmatch(value) if isinstance(value, str) else None
    moment = None
    if match is not None and (match[3] or is_utc):
        try:
            moment = datetime.fromisoformat(match[1] + (match[2] or ":00")).replace(tzinfo=timezone.utc)
        except ValueError:
            moment = None
    if moment is None:
        msg = f"{name}: the answer has a time that is no time in UTC; it is asked again later."
        raise SourceError(msg)
    return moment.timestamp()


def fresh(name: str, at_s: float, now_unix_s: float) -> float:
    """The time of a figure, back again if it may stand for the present.

    Raises
    ------
    SourceError
        It is older than 24 h or lies in the future.
    """
    if not -EARLY_S <= now_unix_s - at_s <= OLDEST_S:
        hours = (now_unix_s - at_s) / 3600
        what = "more than a day old" if hours > 0 else "of the future; check this machine's clock"
        msg = f"{name}: its newest figure is {what}, and is not used; it is asked again later."
        raise SourceError(msg)
    return at_s


def slots_of(
    slots: Sequence[tuple[float, float]], now_unix_s: float, length_s: float
) -> tuple[tuple[float, float], ...]:
    """Slots in order of time, each once, from the one that holds the present on.

    Parameters
    ----------
    slots
        Beginning, unix seconds, and g/kWh.
    length_s
        How long a slot is.
    """
    earliest_s, latest_s = now_unix_s - length_s, now_unix_s + LONGEST_AHEAD_S
    return tuple(sorted({at_s: figure for at_s, figure in slots if earliest_s < at_s <= latest_s}.items()))


def moment_text(at_s: float) -> str:
    """Unix seconds as ISO 8601 to the minute: 2026-03-01T12:30Z."""
    # Not fromtimestamp, which fails on some systems for times out of their range.
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at_s)
    return f"{moment:%Y-%m-%dT%H:%MZ}"


def spread(off: float, at_s: float, now_unix_s: float) -> tuple[float, float]:
    """Factors of the low and high end of the interval of a figure that is `off` and from `at_s`."""
    off = max(off, HELD_OFF) if now_unix_s - at_s > HELD_S else off
    return 1 - off, 1 + off
