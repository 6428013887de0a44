"""Rows of text come in; one table goes out, as plain text and as html that no sanitiser changes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ct_notebook.log.format import one_line


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be looked at.

    Attributes
    ----------
    title
        What it is, in one line.
    heads
        Of the columns; the first column is text, the others are figures.
    rows
        As many cells each.
    marked
        Places of rows that are the reader's own.
    notes
        What has to be known to read it, below it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """The table as plain text."""
        told = [self.heads, *self.rows]
        widths = [max(len(one_line(row[place])) for row in told) for place in range(len(self.heads))]
        lines = [one_line(self.title)]
        for place, row in enumerate(told):
            cells = [
                one_line(cell).ljust(width) if column == 0 else one_line(cell).rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(f"{'> ' if place - 1 in self.marked else '  '}{'  '.join(cells)}".rstrip())
        return "\n".join([*lines, *(f"  {one_line(note, 400)}" for note in self.notes)])

    def html(self) -> str:
        """The table as html without classes, colours or scripts."""
        left = ' style="text-align:left"'
        heads = "".join(
            f"<th{left if place == 0 else ''}>{escape(head)}</th>" for place, head in enumerate(self.heads)
        )
        body = []
        for place, row in enumerate(self.rows):
            first, *figures = (escape(one_line(cell)) for cell in row)
            first = f"<b>{first}</b>" if place in self.marked else first
            body.append(f"<tr><th{left}>{first}</th>{''.join(f'<td>{cell}</td>' for cell in figures)}</tr>")
        notes = "".join(f"<p>{escape(one_line(note, 400))}</p>" for note in self.notes)
        return (
            f"<table>\n<caption>{escape(one_line(self.title))}</caption>\n<thead><tr>{heads}</tr></thead>\n"
            f"<tbody>\n{chr(10).join(body)}\n</tbody>\n</table>\n{notes}"
        )
