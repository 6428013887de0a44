"""Results of several tools come in; a table of them goes out, as plain text and as html. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from ct_notebook.log.format import one_line
from ct_notebook.units import clock_text

from .base import Result
from .figures import CO2, ENERGY, column, ratio, unit_for

WIDTH = 110

_LEFT = ' style="text-align:left"'
"""Notebooks set tables to the right, which suits figures and no sentences."""


def heads(ours: Result, results: Sequence[Result]) -> tuple[str, ...]:
    """The heads of the columns; the unit of a column stands in its head."""
    all_of_them = (ours, *results)
    _, energy = unit_for([result.energy_j for result in all_of_them], ENERGY)
    _, co2 = unit_for([result.emissions_g for result in all_of_them], CO2)
    return ("", f"Energy, {energy}", "x ours", f"CO2eq, {co2}", "x ours", "g/kWh", "PUE")


def rows(ours: Result, results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """The figures of each, ours first, as texts in one unit for each column."""
    all_of_them = (ours, *results)
    energy, _ = unit_for([result.energy_j for result in all_of_them], ENERGY)
    co2, _ = unit_for([result.emissions_g for result in all_of_them], CO2)
    for result in all_of_them:
        is_ours = result is ours
        yield (
            result.tool,
            column(result.energy_j, energy),
            "" if is_ours else ratio(result.energy_j, ours.energy_j),
            column(result.emissions_g, co2),
            "" if is_ours else ratio(result.emissions_g, ours.emissions_g),
            column(result.g_per_kwh),
            f"{result.pue:g}",
        )


def behind(result: Result) -> Iterator[tuple[str, str]]:
    """What lies behind the figures of one tool: names and texts, each one line of plain text."""
    if result.why:
        yield "Why", one_line(result.why, 600)
    if result.method:
        yield "Reckons", one_line(result.method, 600)
    if result.counts:
        yield "Counts", one_line(result.counts, 300)
    if result.leaves_out:
        yield "Leaves out", one_line(result.leaves_out, 300)
    if result.grid:
        yield "Grid", one_line(result.grid, 300)
    if result.constants:
        yield (
            "Constants",
            "; ".join(f"{each.name} {each.value:g} ({each.source})" for each in result.constants),
        )


def text(ours: Result, results: Sequence[Result], duration_s: float) -> str:
    """Figures first, then why each differs."""
    told = [heads(ours, results), *rows(ours, results)]
    widths = [max(len(row[place]) for row in told) for place in range(len(told[0]))]
    lines = [caption(duration_s)]
    for row in told:
        first, *figures = (
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(f"  {first}  {'  '.join(figures)}".rstrip())
    lines.append("")
    told_why = [result for result in (ours, *results) if result.why or result is not ours]
    lines += [line for result in told_why for line in _entry(result.tool, result.why, 2 + widths[0] + 2)]
    lines += ["", "details() tells what each counts and leaves out, and its constants with their sources."]
    return "\n".join(lines)


def details(ours: Result, results: Sequence[Result]) -> str:
    """What lies behind the figures of each, as plain text."""
    lines = []
    for result in (ours, *results):
        lines.append(f"{result.tool} ({result.version})")
        lines += [line for name, said in behind(result) for line in _entry(name, said, 14)]
        lines.append("")
    return "\n".join(lines[:-1])


def _entry(name: str, said: str, indent: int) -> list[str]:
    first = f"  {name}".ljust(indent)
    return textwrap.wrap(one_line(said, 600), WIDTH, initial_indent=first, subsequent_indent=" " * indent)


def html(ours: Result, results: Sequence[Result], duration_s: float) -> str:
    """A table of figures and reasons, and below it, to be opened, what each counts, and its constants."""
    first, *others = (f"<th>{escape(head)}</th>" for head in heads(ours, results))
    parts = [
        "<table>",
        f"<caption>{escape(caption(duration_s))}</caption>",
        f"<thead><tr>{first}{''.join(others)}<th{_LEFT}>Why</th></tr></thead>",
        "<tbody>",
    ]
    for result, row in zip((ours, *results), rows(ours, results), strict=True):
        name = escape(row[0])
        figures = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        why = escape(one_line(result.why, 600))
        head = f"<b>{name}</b>" if result is ours else name
        parts.append(f"<tr><th{_LEFT}>{head}</th>{figures}<td{_LEFT}>{why}</td></tr>")
    parts += [
        "</tbody>",
        "</table>",
        "<details>",
        "<summary>How each of them reckons</summary>",
        "<table>",
        "<tbody>",
    ]
    for result in (ours, *results):
        said = [each for each in behind(result) if each[0] != "Why"]
        for place, (name, line) in enumerate(said):
            head = (
                f'<th{_LEFT} rowspan="{len(said)}">{escape(result.tool)}<br>{escape(result.version)}</th>'
                if place == 0
                else ""
            )
            parts.append(f"<tr>{head}<td{_LEFT}>{name}</td><td{_LEFT}>{escape(line)}</td></tr>")
    parts += ["</tbody>", "</table>", "</details>"]
    return "\n".join(parts)


def caption(duration_s: float) -> str:
    """What this is, in one line."""
    time = clock_text(duration_s)
    return f"The same run ({time}) as other tools would have told it, each with its own PUE and grid"
