"""Places or starts with their emissions come in; a plotly figure of them goes out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from .figures import mass_text, zone_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_OWN, _OTHER = "#0b66b0", "#8a94a0"


def bars(title: str, places: Sequence[tuple[str, float, str, bool]]) -> Figure:
    """Bars, the least at the top.

    Parameters
    ----------
    title
        Of the figure.
    places
        Name, grams, a remark, whether it is the reader's own.
    """
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy

    most = max((grams for _, grams, _, _ in places), default=0.0)
    bar = go.Bar(
        x=[grams for _, grams, _, _ in places],
        y=[escape(name) for name, _, _, _ in places],
        orientation="h",
        text=[mass_text(grams) for _, grams, _, _ in places],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [_OWN if is_own else _OTHER for _, _, _, is_own in places]},
        customdata=[escape(remark) for _, _, remark, _ in places],
        hovertemplate="%{y}: %{text} CO2eq (%{customdata})<extra></extra>",
    )
    shown: Any = go.Figure(bar)
    shown.update_xaxes(title_text="CO2eq, g", range=[0, most * 1.2 or 1.0])
    shown.update_yaxes(autorange="reversed", automargin=True)
    shown.update_layout(title={"text": escape(title)}, height=140 + 28 * len(places), bargap=0.35)
    made: Figure = shown
    return made


def line(title: str, points: Sequence[tuple[datetime, float]], best: tuple[datetime, float]) -> Figure:
    """A curve over time with its lowest point marked.

    Parameters
    ----------
    title
        Of the figure.
    points, best
        Time and grams.
    """
    import plotly.graph_objects as go  # noqa: PLC0415 - heavy

    shown: Any = go.Figure(
        [
            go.Scatter(
                x=[at for at, _ in points],
                y=[grams for _, grams in points],
                mode="lines",
                name="CO2eq",
                line={"color": _OWN, "width": 2, "shape": "hv"},
                hovertemplate="%{x|%a %H:%M}: %{y:.3g} g<extra></extra>",
            ),
            go.Scatter(
                x=[best[0]],
                y=[best[1]],
                mode="markers+text",
                name="best start",
                marker={"color": _OWN, "size": 11, "symbol": "diamond"},
                text=[f"{best[0]:%a %H:%M}, {mass_text(best[1])}"],
                textposition="top center",
                hoverinfo="skip",
            ),
        ]
    )
    shown.update_yaxes(title_text="CO2eq, g", rangemode="tozero")
    shown.update_xaxes(title_text=f"start ({zone_text(best[0])})")
    shown.update_layout(title={"text": escape(title)}, height=360, showlegend=False)
    made: Figure = shown
    return made
