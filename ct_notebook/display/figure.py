"""A run comes in; a plotly figure goes out, to be looked at closely, kept or changed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ct_notebook.log.format import one_line
from ct_notebook.records import Run

from .picture import course_of, headline, power_by_component, sentence

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LOOKS = {
    "gpu": ("GPU", "#0b66b0", "solid"),
    "cpu": ("CPU", "#b7510a", "dash"),
    "ram": ("RAM", "#10784f", "dot"),
}
_CO2, _BAND = "#6a4aa5", "rgba(106, 74, 165, 0.18)"

MARKS = 100
"""Ends of epochs drawn at most; with more of them a reader sees none."""


def figure(run: Run) -> Figure:
    """Power by component and cumulative CO2eq over the time of a run, its epochs, and what was predicted.

    Parameters
    ----------
    run
        Live, closed, or read from a log; from a log, the curves are those of its epochs.

    Returns
    -------
    figure
        A `plotly.graph_objects.Figure` (never a widget: a saved notebook keeps it). x is in seconds of the
        run, pauses left out; power in W, CO2eq in g with PUE.
    """
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy
    from plotly.subplots import make_subplots  # noqa: PLC0415 - same

    course = course_of(run)
    middles = [(a + b) / 2 for a, b in zip(course.at_s, course.at_s[1:], strict=False)]
    shown: Any = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, subplot_titles=("Power", "CO2eq so far")
    )
    for component, power_w in power_by_component(run, course).items():
        name, color, dash = _LOOKS[component]
        shown.add_trace(
            go.Scatter(
                x=middles,
                y=power_w,
                name=name,
                mode="lines",
                stackgroup="power",
                line={"color": color, "dash": dash, "width": 1.5},
                hovertemplate="%{y:.1f} W",
            ),
            row=1,
            col=1,
        )
    shown.add_trace(
        go.Scatter(
            x=list(course.at_s),
            y=list(course.emissions_g),
            name="CO2eq",
            mode="lines",
            line={"color": _CO2, "width": 2},
            hovertemplate="%{y:.4g} g",
        ),
        row=2,
        col=1,
    )
    _add_prediction(shown, run, course.epoch_ends_s, course.at_s[-1] if course.at_s else 0.0)
    if len(course.epoch_ends_s) <= MARKS:
        for at_s in course.epoch_ends_s:
            shown.add_vline(x=at_s, line={"color": "#aab2bc", "width": 1, "dash": "dot"})
    title = f"{escape(headline(run))}<br><sup>{escape(one_line(sentence(run)))}</sup>"
    place = escape(one_line(run.intensity.place, 80))
    shown.update_layout(
        title={"text": title},
        hovermode="x unified",
        height=560,
        meta={"run_id": run.run_id},
        legend={"orientation": "h", "y": -0.12},
    )
    shown.update_yaxes(title_text="W", rangemode="tozero", row=1, col=1)
    shown.update_yaxes(title_text="g", rangemode="tozero", row=2, col=1)
    note = f"seconds of the run · {run.intensity.g_per_kwh:.4g} g/kWh, {place} · PUE {run.pue.value:g}"
    shown.update_xaxes(title_text=note, row=2, col=1)
    figure: Figure = shown
    return figure


def _add_prediction(shown: Any, run: Run, ends_s: tuple[float, ...], last_s: float) -> None:
    """The interval from where the prediction was made to where the run was expected to end."""
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy

    ahead = run.prediction
    if ahead is None or ahead.emissions_g is None or ahead.made_after >= ahead.epochs:
        return
    made_s = ends_s[ahead.made_after - 1] if ahead.made_after <= len(ends_s) else last_s
    course = course_of(run)
    known = [
        (at_s, value)
        for at_s, value in zip(course.at_s, course.emissions_g, strict=True)
        if value is not None and at_s <= made_s
    ]
    made_g = known[-1][1] if known else 0.0
    band, end_s = ahead.emissions_g, ahead.duration_s.value
    shown.add_trace(
        go.Scatter(
            x=[made_s, end_s, end_s, made_s],
            y=[made_g, band.high, band.low, made_g],
            fill="toself",
            fillcolor=_BAND,
            line={"width": 0},
            name=f"80 % interval, predicted after epoch {ahead.made_after}",
            hoverinfo="skip",
        ),
        row=2,
        col=1,
    )
    shown.add_trace(
        go.Scatter(
            x=[made_s, end_s],
            y=[made_g, band.value],
            mode="lines",
            name="predicted",
            line={"color": _CO2, "width": 1, "dash": "dash"},
            hovertemplate="%{y:.4g} g",
        ),
        row=2,
        col=1,
    )
