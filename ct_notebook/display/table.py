"""A run comes in; a table of it goes out, as html that no sanitiser changes and as plain text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ct_notebook.log.format import one_line
from ct_notebook.records import Run
from ct_notebook.units import clock_text

from .picture import headline, sentence
from .words import (
    co2_range,
    co2_text,
    duration_range,
    energy_range,
    energy_text,
    equivalent_text,
    power_text,
)

MISSING_SHOWN = 10
"""Devices that could not be read, shown at most; the log names all."""


def html(run: Run) -> str:
    """The table as html: no style, no class, no script, so that nothing is lost where it is sanitised."""
    body = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows(run))
    caption = escape(f"{headline(run)} ({sentence(run)})")
    return f"<table>\n<caption>{caption}</caption>\n<tbody>\n{body}\n</tbody>\n</table>"


def text(run: Run) -> str:
    """The table as plain text, its first line the run in one sentence."""
    told = list(rows(run))
    width = max((len(name) for name, _ in told), default=0)
    return "\n".join([one_line(repr(run), 500), *(f"  {name:<{width}}  {line}" for name, line in told)])


def rows(run: Run) -> Iterator[tuple[str, str]]:
    """Names and texts of what a reader wants to know. What comes from outside is one line of plain text."""
    pue = run.pue
    energy_j = None if run.energy_j is None else run.energy_j.times(pue.value)
    emissions_g = run.emissions_g
    if energy_j is not None and emissions_g is not None:
        yield "CO2eq", f"{co2_text(emissions_g.value)} ({co2_range(emissions_g)})"
        yield "Energy", f"{energy_text(energy_j.value)} ({energy_range(energy_j)}), PUE included"
        yield "Like", equivalent_text(emissions_g.value)
    paused = f", {clock_text(run.paused_s)} paused and not counted" if run.paused_s >= 0.5 else ""
    yield "Time", clock_text(run.duration_s) + paused
    declared = "" if run.epochs_declared is None else f" of {run.epochs_declared}"
    yield (
        "Epochs",
        f"{len(run.complete_epochs)}{declared}"
        + (f" ({one_line(run.reason, 60)})" if run.early_stop else ""),
    )
    yield from _prediction_rows(run)
    by_device = run.energy_by_device_j
    for device in run.devices:
        how = f"{device.method}: {device.detail}" if device.detail else device.method
        if device.key in by_device:
            seconds = run.duration_s
            watts = f", {power_text(by_device[device.key] / seconds)} on average" if seconds > 0 else ""
            figure = f"{energy_text(by_device[device.key])}{watts}"
        else:
            figure = "not read"
        yield device.component.upper(), one_line(f"{device.name}: {figure} ({how})", 300)
    intensity = run.intensity
    age = ", ".join(part for part in (intensity.time, intensity.kind) if part)
    known = f", known by {intensity.how}" if intensity.how and not intensity.is_fallback else ""
    yield "Place", one_line(f"{intensity.place}{known}")
    yield (
        "Carbon intensity",
        one_line(
            f"{intensity.g_per_kwh:.4g} g CO2eq/kWh" + (f" ({age})" if age else "") + f", {intensity.source}",
            300,
        ),
    )
    yield "PUE", one_line(f"{pue.value:g} ({pue.reason})")
    for key, why in list(run.missing.items())[:MISSING_SHOWN]:
        yield "Not measured", one_line(f"{key}: {why}", 300)
    if run.log_paths:
        yield "Log", one_line(run.log_paths[0], 500)


def _prediction_rows(run: Run) -> Iterator[tuple[str, str]]:
    ahead = run.prediction
    if ahead is None or ahead.made_after >= ahead.epochs:
        return
    cost = ""
    if ahead.emissions_g is not None:
        cost = f"{co2_text(ahead.emissions_g.value)} CO2eq ({co2_range(ahead.emissions_g)}), "
    time = f"{clock_text(ahead.duration_s.value)} ({duration_range(ahead.duration_s)})"
    yield f"Predicted after {ahead.made_after}", f"{cost}{time} for all {ahead.epochs} epochs"
