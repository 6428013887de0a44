"""A run's energy and length and a forecast come in; when to start it goes out. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ct_notebook.errors import SettingError
from ct_notebook.intensity.ahead import mean_over
from ct_notebook.units import clock_text, grams

from .figures import mass_text, zone_text
from .table import Table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AHEAD_S = 48 * 3600.0
"""Starts within this time are looked at."""

SHOWN = 12
"""Starts in the table: now, the best, and others evenly between."""


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """One time to start.

    Attributes
    ----------
    at_unix_s
        Unix seconds.
    g_per_kwh
        Mean carbon intensity over the length of the run, by the forecast.
    emissions_g
        What the run would emit, g.
    """

    at_unix_s: float
    g_per_kwh: float
    emissions_g: float


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class When:
    """Starts of a run in the next 48 h. A notebook shows it as a table; `figure()` draws it.

    Attributes
    ----------
    starts
        In order of time; the first is now.
    best
        The one with the least emissions, the earliest of equals.
    duration_s
        How long the run takes.
    place, source
        Whose forecast it is.
    kind
        `lifecycle` or `direct`; "" if that is not known.
    """

    starts: tuple[Start, ...]
    best: Start
    duration_s: float
    place: str
    source: str
    kind: str = ""

    @property
    def saving_g(self) -> float:
        """What the best start saves against starting now, g."""
        return self.starts[0].emissions_g - self.best.emissions_g

    def sentence(self) -> str:
        """The advice in one sentence."""
        now = self.starts[0]
        if self.best is now or self.saving_g < 0.01 * now.emissions_g:
            kind = f", {self.kind}" if self.kind else ""
            return f"Now is as good as any time in the next 48 h ({now.g_per_kwh:.3g} g CO2eq/kWh{kind})."
        share = self.saving_g / now.emissions_g
        return (
            f"Best start: {_clock(self.best.at_unix_s)}, {mass_text(self.best.emissions_g)} CO2eq"
            f"{f' ({self.kind})' if self.kind else ''} instead of {mass_text(now.emissions_g)} now: "
            f"{mass_text(self.saving_g)} ({share:.0%}) less."
        )

    def table(self) -> Table:
        """Some of the starts as a table, the best marked."""
        step = max(1, -(-len(self.starts) // SHOWN))
        shown = sorted({*self.starts[::step], self.best}, key=lambda start: start.at_unix_s)
        now_g = self.starts[0].emissions_g
        rows = tuple(
            (
                "now" if start is self.starts[0] else _clock(start.at_unix_s),
                f"{start.g_per_kwh:.3g}",
                mass_text(start.emissions_g),
                "" if start is self.starts[0] or not now_g else f"{start.emissions_g / now_g - 1:+.0%}",
            )
            for start in shown
        )
        of = f"{self.source}, {self.kind} emissions" if self.kind else self.source
        notes = (
            self.sentence(),
            f"For a run of {clock_text(self.duration_s)} in {self.place}, by the forecast of {of}.",
        )
        heads = ("Start", "g CO2eq/kWh", "CO2eq", "against now")
        marked = frozenset(place for place, start in enumerate(shown) if start is self.best)
        return Table("When to start such a run", heads, rows, marked, notes)

    def figure(self) -> Figure:
        """Emissions over the time of the start.

        Returns
        -------
        figure
            A `plotly.graph_objects.Figure`; CO2eq in g.

        Raises
        ------
        ImportError
            plotly is not installed.
        """
        from .chart import line  # noqa: PLC0415 - its plotly is heavy

        # One offset throughout: on the day on which clocks are put back, the curve would run backwards.
        zone = _local(self.starts[0].at_unix_s).tzinfo
        points = [(datetime.fromtimestamp(start.at_unix_s, zone), start.emissions_g) for start in self.starts]
        best = (datetime.fromtimestamp(self.best.at_unix_s, zone), self.best.emissions_g)
        kind = f" ({self.kind})" if self.kind else ""
        return line(f"CO2eq{kind} of the run by its start, {self.place}", points, best)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def when(
    energy_j: float,
    duration_s: float,
    slots: Sequence[tuple[float, float]],
    now_unix_s: float,
    *,
    place: str = "",
    source: str = "",
    kind: str = "",
) -> When:
    """When a run would emit least.

    Parameters
    ----------
    energy_j
        Of the whole run, PUE included.
    duration_s
        How long it takes.
    slots
        Beginning of each forecast slot (unix seconds, ascending) and its g/kWh.
    now_unix_s
        Unix seconds.
    place, source, kind
        Whose forecast it is and of what, for people.

    Raises
    ------
    SettingError
        The forecast does not reach over the run.
    """
    times = [now_unix_s, *(at_s for at_s, _ in slots if now_unix_s < at_s <= now_unix_s + AHEAD_S)]
    end_s = slots[-1][0] + (slots[-1][0] - slots[-2][0]) if len(slots) > 1 else now_unix_s
    starts = [
        Start(at_s, mean, grams(energy_j, mean))
        for at_s in times
        if (at_s == now_unix_s or at_s + duration_s <= end_s)
        and (mean := mean_over(slots, at_s, at_s + max(1.0, duration_s))) is not None
    ]
    if not starts or starts[0].at_unix_s != now_unix_s:
        msg = (
            f"The forecast does not reach over a run of {clock_text(duration_s)}, so no start can be advised."
            " Shorter runs can."
        )
        raise SettingError(msg)
    best = min(starts, key=lambda start: (start.emissions_g, start.at_unix_s))
    return When(tuple(starts), best, duration_s, place or "this place", source or "its source", kind)


def _local(at_unix_s: float) -> datetime:
    return datetime.fromtimestamp(at_unix_s, timezone.utc).astimezone()


def _clock(at_unix_s: float) -> str:
    """A time on this machine's clock, with its zone: clocks of hosted notebooks are seldom one's own."""
    local = _local(at_unix_s)
    return f"{local:%a %H:%M} {zone_text(local)}"
