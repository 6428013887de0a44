"""A run comes in; a card with its figures and curves goes out, as svg and as png. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ct_notebook.log.format import one_line
from ct_notebook.records import COMPONENTS, Course, Run
from ct_notebook.units import clock_text, grams

from .drawing import Area, Box, Line, Sheet, Spot, Words
from .words import axis_text, co2_range, co2_text, energy_text, equivalent_text, intensity_text, power_text

WIDTH = 720
FOOT = 96
"""Letters in a line of the card at most: so many of the wide ones of the png fit in."""

_TEXT, _MUTED, _GRID, _EDGE, _MARK = "#1d2126", "#5b6470", "#e6e9ed", "#d5d9df", "#aab2bc"

# A light card of its own, since nobody knows on which theme it will lie.
_LOOKS = {
    "gpu": ("GPU", "#0b66b0", "#c6ddf0", None),
    "cpu": ("CPU", "#b7510a", "#f0d8c4", (5.0, 3.0)),
    "ram": ("RAM", "#10784f", "#c6e4d8", (2.0, 2.5)),
}
_CO2, _CO2_AREA, _BAND = "#6a4aa5", "#ddd4ee", "#ece6f6"

Value = float | None


def svg(run: Run) -> str:
    """The card as svg."""
    return sheet(run).svg()


def png(run: Run) -> bytes:
    """The card as png, twice as many pixels as it is wide."""
    return sheet(run).png()


def headline(run: Run) -> str:
    """The run in a few words: CO2eq, energy, time."""
    time_text = clock_text(run.duration_s)
    if run.emissions_g is None or run.energy_j is None:
        return f"{time_text}, nothing measured"
    energy = energy_text(run.energy_j.value * run.pue.value)
    return f"{co2_text(run.emissions_g.value)} CO2eq, {energy}, {time_text}"


def sentence(run: Run) -> str:
    """How many epochs, how far off, and what it is like."""
    complete = len(run.complete_epochs)
    if run.epochs_declared is None:
        parts = ["measured as a whole" if complete <= 1 else f"{complete} epochs"]
    else:
        parts = [f"{complete} of {run.epochs_declared} epochs"]
    if run.reason in {"interrupted", "failed", "stopped by the user"}:
        parts.append(run.reason)
    if run.emissions_g is not None:
        parts.append(f"{co2_range(run.emissions_g)} CO2eq with what is not known")
        parts.append(equivalent_text(run.emissions_g.value))
    return " · ".join(parts)


def _cut(text: str) -> str:
    """A text as long as the card is wide, with a sign that it goes on."""
    line = one_line(text, 300)
    return line if len(line) <= FOOT else line[: FOOT - 3].rstrip() + "..."


def sheet(run: Run) -> Sheet:
    """The card of a run, as shapes."""
    has_curves = bool(run.energy_by_device_j)
    intensity = run.intensity
    how = ", ".join(dict.fromkeys(f"{device.component.upper()} {device.method}" for device in run.devices))
    foot = [
        _cut(f"{intensity.place}: {intensity_text(intensity)}, {intensity.source}"),
        _cut(f"PUE {run.pue.value:g} ({run.pue.reason})"),
        f"Measured: {how}" if how else "No component could be measured.",
    ]
    if run.missing:
        foot.append(_cut(f"Not measured throughout: {', '.join(run.missing)}"))
    top = 70
    bottom = top + (190 if has_curves else 0)
    height = bottom + 18 * len(foot) + 14
    card = Sheet(WIDTH, height, f"ct_notebook: {headline(run)}", f"{sentence(run)}. {' '.join(foot)}")
    card.shapes += [
        Box(0, 0, WIDTH, height, "#fdfdfe"),
        Line(
            [(0.5, 0.5), (WIDTH - 0.5, 0.5), (WIDTH - 0.5, height - 0.5), (0.5, height - 0.5), (0.5, 0.5)],
            _EDGE,
        ),
        Words(18, 30, headline(run), _TEXT, 17, bold=True),
        Words(18, 51, _cut(sentence(run)), _MUTED, 12),
    ]
    if has_curves:
        curves = _curves(run)
        _draw_power(card, curves, top)
        _draw_co2(card, run, curves, top)
    card.shapes += [Words(18, bottom + 14 + 18 * at, text, _MUTED, 11) for at, text in enumerate(foot)]
    return card


# -- curves --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Curves:
    """What is drawn: power of each component over stretches of time, grams at their ends, ends of epochs."""

    at_s: Sequence[float]
    grams: Sequence[Value]
    power_w: dict[str, list[Value]]
    ends_s: Sequence[float]


def course_of(run: Run) -> Course:
    """The curves of a run; those of its epochs if it was read from a log."""
    if run.course is not None and len(run.course.at_s) > 1:
        return run.course
    at_s, sums_j, total = [0.0], [0.0], {device.key: 0.0 for device in run.devices}
    energy_j: dict[str, list[Value]] = {device.key: [0.0] for device in run.devices}
    for epoch in run.epochs:
        at_s.append(at_s[-1] + max(epoch.duration_s, 1e-9))
        for device, column in energy_j.items():
            total[device] += epoch.energy_j.get(device, 0.0)
            column.append(total[device] if device in epoch.energy_j else None)
        sums_j.append(sum(total.values()))
    g_per_j = grams(1.0, run.intensity.g_per_kwh) * run.pue.value
    return Course(
        at_s=tuple(at_s),
        emissions_g=tuple(each * g_per_j for each in sums_j),
        energy_j={key: tuple(row) for key, row in energy_j.items()},
        epoch_ends_s=tuple(at_s[1:]),
    )


def power_by_component(run: Run, course: Course) -> dict[str, list[float | None]]:
    """Component to its power over each stretch between two instants, W; None where none of it was read."""
    power_w: dict[str, list[Value]] = {}
    for component in COMPONENTS:
        columns = [course.energy_j[device.key] for device in run.devices if device.component == component]
        if not columns:
            continue
        stretches: list[Value] = []
        for at in range(1, len(course.at_s)):
            passed_s = course.at_s[at] - course.at_s[at - 1]
            known = [
                (column[at] - column[at - 1]) / passed_s  # type: ignore[operator]  # neither is None
                for column in columns
                if column[at] is not None and column[at - 1] is not None and passed_s > 0
            ]
            stretches.append(max(0.0, sum(known)) if known else None)
        power_w[component] = stretches
    return power_w


def _curves(run: Run) -> _Curves:
    course = course_of(run)
    return _Curves(course.at_s, course.emissions_g, power_by_component(run, course), course.epoch_ends_s)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a chart is, and what its corners stand for."""

    left: float
    top: float
    width: float
    height: float
    x_max: float
    y_max: float

    def x(self, value: float) -> float:
        return self.left + self.width * min(1.0, value / self.x_max)

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - min(1.0, value / self.y_max))


def _frame(
    card: Sheet,
    title: str,
    left: float,
    top: float,
    x_max: float,
    y_max: float,
    text: Callable[[float | None], str],
) -> _Frame:
    """Axes, grid and title of a chart."""
    frame = _Frame(left + 52, top + 26, 268, 112, x_max or 1.0, (y_max or 1.0) * 1.08)
    card.shapes.append(Words(left, top + 10, title, _TEXT, 12, bold=True))
    for value in ticks(frame.y_max, 3):
        y = frame.y(value)
        card.shapes += [
            Line([(frame.left, y), (frame.left + frame.width, y)], _GRID),
            Words(frame.left - 6, y + 4, axis_text(text, value), _MUTED, 10, "end"),
        ]
    for value in ticks(frame.x_max, 4, time=True):
        card.shapes.append(
            Words(
                frame.x(value),
                frame.top + frame.height + 15,
                axis_time(value, frame.x_max),
                _MUTED,
                10,
                "middle",
            )
        )
    return frame


def ticks(top: float, count: int, *, time: bool = False) -> list[float]:
    """Round values from 0 to `top`, about `count` steps; steps of clocks if it is a time in seconds."""
    rough = top / count
    if time and rough > 1:
        clock = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
        step: float = next((each for each in clock if each >= rough), 86400 * math.ceil(rough / 86400))
    else:
        size = 10 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
    return [step * at for at in range(math.floor(top / step + 1e-9) + 1)]


def axis_time(seconds: float, span_s: float) -> str:
    """A time on an axis that long."""
    if span_s < 5:
        return f"{seconds:.3g} s"
    if span_s < 150:
        return f"{seconds:.0f} s"
    if span_s < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h" if span_s < 5 * 86400 else f"{seconds / 86400:.3g} d"


def _marks(card: Sheet, frame: _Frame, ends_s: Sequence[float]) -> None:
    if len(ends_s) <= 30:
        bottom = frame.top + frame.height
        card.shapes += [
            Line([(frame.x(at), frame.top), (frame.x(at), bottom)], _MARK, 0.7, (1.5, 2.5)) for at in ends_s
        ]


def _draw_power(card: Sheet, curves: _Curves, top: float) -> None:
    names = [component for component in COMPONENTS if component in curves.power_w]
    stretches = len(curves.at_s) - 1
    floor = [0.0] * stretches
    layers = []
    # The steadiest at the bottom, so that its waves do not move the others.
    for component in reversed(names):
        ceiling = [low + (value or 0.0) for low, value in zip(floor, curves.power_w[component], strict=True)]
        layers.append((component, floor, ceiling))
        floor = ceiling
    frame = _frame(card, "Power", 18, top, curves.at_s[-1], max(floor, default=0.0), power_text)
    middles = [(curves.at_s[at] + curves.at_s[at + 1]) / 2 for at in range(stretches)]
    if middles:
        middles[0], middles[-1] = curves.at_s[0], curves.at_s[-1]
    for component, low, high in layers:
        _, color, area, dash = _LOOKS[component]
        read = [value is not None for value in curves.power_w[component]]
        for begin, end in _stretches(read):
            spots: list[Spot] = [(frame.x(middles[at]), frame.y(high[at])) for at in range(begin, end)]
            if len(spots) == 1:
                spots = [(frame.x(curves.at_s[begin]), spots[0][1]), (frame.x(curves.at_s[end]), spots[0][1])]
                low_y = [frame.y(low[begin])] * 2
            else:
                low_y = [frame.y(low[at]) for at in range(begin, end)]
            card.shapes += [Area(spots, low_y, area), Line(spots, color, 1.2, dash)]
    _marks(card, frame, curves.ends_s)
    x = frame.left
    for component in names:
        label, color, area, dash = _LOOKS[component]
        y = top + 177
        card.shapes += [
            Box(x, y - 8, 16, 8, area),
            Line([(x, y - 8), (x + 16, y - 8)], color, 1.6, dash),
            Words(x + 21, y, label, _MUTED, 11),
        ]
        x += 62


def _stretches(read: Sequence[bool]) -> list[tuple[int, int]]:
    """Where values follow each other without a gap: first, and one after the last."""
    found, begin = [], None
    for at, is_read in enumerate([*read, False]):
        if is_read and begin is None:
            begin = at
        elif not is_read and begin is not None:
            found.append((begin, at))
            begin = None
    return found


def _draw_co2(card: Sheet, run: Run, curves: _Curves, top: float) -> None:
    known = [
        (at_s, value) for at_s, value in zip(curves.at_s, curves.grams, strict=True) if value is not None
    ]
    ahead = run.prediction
    band = None if ahead is None or ahead.emissions_g is None else ahead.emissions_g
    shows_band = band is not None and ahead is not None and ahead.epochs > ahead.made_after and known
    x_max, y_max = curves.at_s[-1], max((value for _, value in known), default=0.0)
    if shows_band and ahead is not None and band is not None:
        x_max, y_max = max(x_max, ahead.duration_s.value), max(y_max, band.high)
    frame = _frame(card, "CO2eq so far", 378, top, x_max, y_max, co2_text)
    base = frame.top + frame.height
    legend = [("used", _CO2, _CO2_AREA, None)]
    if shows_band and ahead is not None and band is not None:
        made_s = min(
            curves.ends_s[ahead.made_after - 1] if 0 < ahead.made_after <= len(curves.ends_s) else 0.0, x_max
        )
        made_g = _at(known, made_s)
        x = [frame.x(made_s), frame.x(ahead.duration_s.value)]
        upper = [(x[0], frame.y(made_g)), (x[1], frame.y(band.high))]
        middle = [(x[0], frame.y(made_g)), (x[1], frame.y(band.value))]
        card.shapes += [
            Area(upper, [frame.y(made_g), frame.y(band.low)], _BAND),
            Line(middle, _CO2, 1.0, (4.0, 3.0)),
        ]
        legend.append((f"predicted after epoch {ahead.made_after}", _CO2, _BAND, (4.0, 3.0)))  # type: ignore[arg-type]  # a dash or none
    if known:
        spots = [(frame.x(at_s), frame.y(value)) for at_s, value in known]
        if not shows_band:
            card.shapes.append(Area(spots, [base] * len(spots), _CO2_AREA))
        card.shapes.append(Line(spots, _CO2, 1.6))
    _marks(card, frame, curves.ends_s)
    left = frame.left
    for label, color, area, dash in legend:
        y = top + 177
        card.shapes += [
            Box(left, y - 8, 16, 8, area),
            Line([(left, y - 8), (left + 16, y - 8)], color, 1.6, dash),
        ]
        card.shapes.append(Words(left + 21, y, label, _MUTED, 11))
        left += 70


def _at(points: Sequence[tuple[float, float]], at_s: float) -> float:
    """A curve at an instant, linear between its points."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= at_s <= x1:
            return y0 + (y1 - y0) * ((at_s - x0) / (x1 - x0) if x1 > x0 else 0.0)
    return points[-1][1]
