"""Results of several tools come in; a plotly figure goes out: bars of energy and of CO2eq, ours first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .base import Result
from .figures import CO2, ENERGY, number, unit_for

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_OURS, _THEIRS = "#0b66b0", "#8a94a0"

_NO_FIGURE = "no figure"


def figure(ours: Result, results: Sequence[Result]) -> Figure:
    """Bars of energy (with each tool's PUE) and of CO2eq, one row for each tool.

    Parameters
    ----------
    ours, results
        A tool without a figure has no bar, and its label says so.

    Returns
    -------
    figure
        A `plotly.graph_objects.Figure` (never a widget: a saved notebook keeps it).
    """
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy
    from plotly.subplots import make_subplots  # noqa: PLC0415 - same

    shown_results = (ours, *results)
    names = [escape(result.tool) for result in shown_results]
    columns = (
        ("Energy", [result.energy_j for result in shown_results], ENERGY),
        ("CO2eq", [result.emissions_g for result in shown_results], CO2),
    )
    shown: Any = make_subplots(
        rows=1,
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=[name for name, _, _ in columns],
    )
    for column, (name, values, units) in enumerate(columns, start=1):
        size, unit = unit_for(values, units)
        scaled = [None if value is None else value / size for value in values]
        most = max((value for value in scaled if value is not None), default=0.0)
        shown.add_trace(
            go.Bar(
                x=[0.0 if value is None else value for value in scaled],
                y=names,
                orientation="h",
                name=name,
                text=[_NO_FIGURE if value is None else f"{number(value)} {unit}" for value in scaled],
                textposition="outside",
                cliponaxis=False,
                marker={"color": [_OURS, *(_THEIRS for _ in results)]},
                customdata=[_wrapped(result.why) for result in shown_results],
                hovertemplate="%{y}: %{text}<br>%{customdata}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        # Room for the figure that stands after the longest bar.
        shown.update_xaxes(title_text=unit, range=[0, most * 1.3 or 1.0], row=1, col=column)
    shown.update_yaxes(autorange="reversed")
    shown.update_layout(
        title={"text": "The same run, as other tools would have told it"},
        height=120 + 32 * len(names),
        showlegend=False,
        bargap=0.35,
    )
    made: Figure = shown
    return made


def _wrapped(text: str, width: int = 80) -> str:
    """Plain text as lines that a hover label can hold."""
    return "<br>".join(escape(line) for line in textwrap.wrap(text, width))
