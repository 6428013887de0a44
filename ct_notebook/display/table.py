"""A run comes in; a table of it goes out, as html that no sanitiser changes and as plain text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ct_notebook.equivalents import equivalents_text, factors_text
from ct_notebook.errors import CtNotebookError
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
    intensity_text,
    place_how,
    power_text,
)

WORTH_MOVING = 0.8
"""Another place is named if the run would have emitted less than this share there."""

MISSING_SHOWN = 10
"""Devices that could not be read, shown at most; the log names all."""

NAME_LENGTH = 80
"""Of a device, as in the panel."""

_LONG = 60
"""Letters without a space from which on a word, such as a path, may be broken: a table is as wide as its
longest word, and what stands beside it would be out of sight."""

_PIECE = 30
"""Letters between the places where it may be."""


def html(run: Run) -> str:
    """The table as html: no style, no class, no script, so that nothing is lost where it is sanitised."""
    body = "\n".join(f"<tr><th>{escape(name)}</th><td>{_escaped(text)}</td></tr>" for name, text in rows(run))
    caption = escape(f"{headline(run)} ({sentence(run)})")
    return f"<table>\n<caption>{caption}</caption>\n<tbody>\n{body}\n</tbody>\n</table>"


def _escaped(text: str) -> str:
    """A text as html, its long words with places to break them that copying leaves out."""
    words = re.split(r"( +)", text)
    return "".join(
        "<wbr>".join(escape(word[at : at + _PIECE]) for at in range(0, len(word), _PIECE))
        if len(word) > _LONG
        else escape(word)
        for word in words
    )


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
        like = equivalents_text(emissions_g.value)
        yield "Like", like or equivalent_text(emissions_g.value)
        yield "Factors", factors_text(emissions_g.value)
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
        if device.key in by_device:
            seconds = run.duration_s
            watts = f", {power_text(by_device[device.key] / seconds)} on average" if seconds > 0 else ""
            figure = f"{energy_text(by_device[device.key])}{watts}"
        else:
            figure = "not read"
        name = one_line(device.name, NAME_LENGTH)  # so that no name takes the place of its figure
        yield device.component.upper(), one_line(f"{name}: {figure} ({device.how})", 300)
    yield from _part_rows(run)
    intensity = run.intensity
    how = place_how(intensity)
    known = f", known by {how}" if how else ""
    yield "Place", one_line(f"{intensity.place}{known}")
    yield (
        "Carbon intensity",
        one_line(
            f"{intensity_text(intensity)}, {intensity.source}",
            300,
        ),
    )
    yield "PUE", one_line(f"{pue.value:g} ({pue.reason})")
    for key, why in list(run.missing.items())[:MISSING_SHOWN]:
        yield "Not measured", one_line(f"{key}: {why}", 300)
    yield from _elsewhere_rows(run)
    cost = run.cost
    if cost.get("samples"):
        apart = f"{cost.get('longest_gap_s', 0.0):.2g} s apart at most"
        yield "Tracking", f"{cost.get('cpu_s', 0.0):.2g} s of CPU; {cost['samples']:.0f} samples, {apart}"
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


def _part_rows(run: Run) -> Iterator[tuple[str, str]]:
    """What of the energy is beyond idling, and what is the process's, where that was asked for."""
    net_j, part = run.net_energy_j, run.process
    if net_j is not None:
        idle = power_text(sum(run.idle_w.values()))
        energy = energy_text(net_j.value * run.pue.value)
        yield "Net", f"{energy} beyond the {idle} that the machine drew idling before, PUE included"
    if part is not None:
        energy = energy_text(part.total_j * run.pue.value)
        yield "This process", one_line(f"{energy}, an estimate, PUE included ({part.how})", 300)


def _elsewhere_rows(run: Run) -> Iterator[tuple[str, str]]:
    """Where the same run would have emitted least, if that is much less."""
    from ct_notebook.advice import where  # noqa: PLC0415 - its tables are read at the end of a run only

    emissions_g = run.emissions_g
    if emissions_g is None:
        return
    try:
        best = where(run).places[0]
    except CtNotebookError:  # a damaged table is told where it is asked for
        return
    if not best.is_own and best.emissions_g < WORTH_MOVING * emissions_g.value:
        text = (
            f"{co2_text(best.emissions_g)} ({best.intensity.kind}) in {best.name}; "
            "%carbontrack where lists more"
        )
        yield "Elsewhere", one_line(text)
