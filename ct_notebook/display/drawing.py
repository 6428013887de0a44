"""Lines, areas and words on a sheet come in; the same drawing as svg and as png goes out. Pure.

A notebook that is not trusted shows the png and no svg, so both are made, from one list of shapes. The png is
written here because no drawing library is in every environment: a palette, zlib from the standard library,
and letters made of strokes on a grid.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from xml.sax.saxutils import escape

Spot = tuple[float, float]

SCALE = 2
"""Pixels of the png per unit of the sheet: sharp on screens of twice the density."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Line:
    """A line through spots; `dash` is the length of a stroke and of the gap after it."""

    spots: Sequence[Spot]
    color: str
    width: float = 1.0
    dash: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """What lies between a line and a lower one. Both have the same places along x."""

    upper: Sequence[Spot]
    lower: Sequence[float]
    color: str


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    color: str


@dataclass(frozen=True, slots=True)
class Words:
    """A text on one line. `y` is its base line, `anchor` the side of it that `x` is on."""

    x: float
    y: float
    text: str
    color: str
    size: float = 12.0
    anchor: str = "start"
    bold: bool = False


Shape = Line | Area | Box | Words


@dataclass(slots=True)
class Sheet:
    """A drawing, its shapes from the bottom to the top."""

    width: int
    height: int
    title: str
    description: str
    shapes: list[Shape] = field(default_factory=list)

    def svg(self) -> str:
        """The drawing as svg: no style sheet, no script, nothing from elsewhere."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">',
            f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>",
            *map(_svg_of, self.shapes),
            "</svg>",
        ]
        return "\n".join(parts)

    def png(self) -> bytes:
        """The drawing as png."""
        raster = _Raster(self.width * SCALE, self.height * SCALE)
        for shape in self.shapes:
            raster.draw(shape)
        return raster.png()


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg_of(shape: Shape) -> str:
    if isinstance(shape, Box):
        place = f'x="{_number(shape.x)}" y="{_number(shape.y)}"'
        size = f'width="{_number(shape.width)}" height="{_number(shape.height)}"'
        return f'<rect {place} {size} fill="{shape.color}"/>'
    if isinstance(shape, Words):
        weight = ' font-weight="600"' if shape.bold else ""
        anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
        return (
            f'<text x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}" '
            f'fill="{shape.color}"{anchor}{weight}>{escape(shape.text)}</text>'
        )
    if isinstance(shape, Line):
        dash = f' stroke-dasharray="{_number(shape.dash[0])} {_number(shape.dash[1])}"' if shape.dash else ""
        return (
            f'<polyline points="{_points(shape.spots)}" fill="none" stroke="{shape.color}" '
            f'stroke-width="{_number(shape.width)}" stroke-linejoin="round"{dash}/>'
        )
    lower = [(x, y) for (x, _), y in zip(shape.upper, shape.lower, strict=True)]
    return f'<polygon points="{_points([*shape.upper, *reversed(lower)])}" fill="{shape.color}"/>'


def _points(spots: Sequence[Spot]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in spots)


class _Raster:
    """Pixels of a png with a palette, one byte each."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._rows = [bytearray(width) for _ in range(height)]
        self._palette: dict[str, int] = {"#ffffff": 0}

    def draw(self, shape: Shape) -> None:
        color = self._palette.setdefault(shape.color, len(self._palette))
        if isinstance(shape, Box):
            left, top = shape.x * SCALE, shape.y * SCALE
            for y in range(round(top), round(top + shape.height * SCALE)):
                self._span(y, left, left + shape.width * SCALE, color)
        elif isinstance(shape, Area):
            self._area(shape, color)
        elif isinstance(shape, Line):
            spots = [(x * SCALE, y * SCALE) for x, y in shape.spots]
            dash = None if shape.dash is None else (shape.dash[0] * SCALE, shape.dash[1] * SCALE)
            self._line(spots, shape.width * SCALE, color, dash)
        else:
            self._words(shape, color)

    def _span(self, y: int, left: float, right: float, color: int) -> None:
        first, last = max(0, round(left)), min(self._width, round(right))
        if 0 <= y < self._height and first < last:
            self._rows[y][first:last] = bytes((color,)) * (last - first)

    def _area(self, area: Area, color: int) -> None:
        spots, pixels = area.upper, bytes((color,)) * SCALE
        for at in range(len(spots) - 1):
            (x0, y0), (x1, y1) = spots[at], spots[at + 1]
            # In columns of one unit, as fine as the pixels of an ordinary screen.
            for unit in range(max(0, math.floor(x0)), min(self._width // SCALE, math.ceil(x1))):
                share = min(1.0, max(0.0, (unit + 0.5 - x0) / (x1 - x0))) if x1 > x0 else 0.0
                top = y0 + share * (y1 - y0)
                bottom = area.lower[at] + share * (area.lower[at + 1] - area.lower[at])
                place = slice(unit * SCALE, (unit + 1) * SCALE)
                for row in self._rows[max(0, round(top * SCALE)) : max(0, round(bottom * SCALE))]:
                    row[place] = pixels

    def _line(
        self, spots: Sequence[Spot], width: float, color: int, dash: tuple[float, float] | None = None
    ) -> None:
        """A round pen, moved along the line in steps of half a pixel or so."""
        half = width / 2
        pen = [
            (dy, math.sqrt(max(0.0, half * half - dy * dy)))
            for dy in range(-math.floor(half), math.floor(half) + 1)
        ]
        gone = 0.0
        for (x0, y0), (x1, y1) in pairwise(spots):
            length = math.hypot(x1 - x0, y1 - y0)
            steps = max(1, math.ceil(length / 0.7))
            for step in range(steps + 1):
                share = step / steps
                if dash is not None and (gone + share * length) % (dash[0] + dash[1]) > dash[0]:
                    continue
                x, y = x0 + share * (x1 - x0), round(y0 + share * (y1 - y0))
                for dy, reach in pen:
                    self._span(y + dy, x - max(reach, 0.5), x + max(reach, 0.5), color)
            gone += length

    def _words(self, words: Words, color: int) -> None:
        unit = words.size * SCALE / 9.2
        advance = 5.6 * unit
        length = advance * len(words.text)
        start = words.x * SCALE - {"start": 0.0, "middle": length / 2, "end": length}[words.anchor]
        for at, letter in enumerate(words.text):
            for stroke in strokes(letter):
                spots = [(start + at * advance + x * unit, words.y * SCALE - y * unit) for x, y in stroke]
                self._line(spots, max(1.6, unit * (0.95 if words.bold else 0.7)), color)

    def png(self) -> bytes:
        colors = b"".join(bytes.fromhex(color[1:]) for color in self._palette)
        raw = b"".join(b"\x00" + row for row in self._rows)
        head = struct.pack(">IIBBBBB", self._width, self._height, 8, 3, 0, 0, 0)
        return (
            b"\x89PNG\r\n\x1a\n"
            + _chunk(b"IHDR", head)
            + _chunk(b"PLTE", colors)
            + _chunk(b"IDAT", zlib.compress(raw, 6))
            + _chunk(b"IEND", b"")
        )


def _chunk(kind: bytes, data: bytes) -> bytes:
    """A part of a png file (ISO/IEC 15948, 5.3)."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# Each letter is strokes on a grid four units wide; 0 is the base line, 6 the top of capitals, 4 that of small
# letters. A stroke is the places it goes through, "xy" each; "/" lifts the pen.
_LETTERS = {
    "0": "10 01 05 16 36 45 41 30 10", "1": "14 26 20/10 30", "2": "05 16 36 45 44 00 40", "3": "05 16 36 45 44 33 42 41 30 10 01/13 33",
    "4": "30 36 02 42", "5": "46 06 04 34 43 41 30 10 01", "6": "45 36 16 05 01 10 30 41 42 33 13 02", "7": "06 46 10",
    "8": "13 04 05 16 36 45 44 33 13 02 01 10 30 41 42 33", "9": "01 10 30 41 45 36 16 05 04 13 33 44",
    "A": "00 26 40/12 32", "B": "00 06 36 45 44 33 03/33 42 41 30 00", "C": "45 36 16 05 01 10 30 41", "D": "00 06 26 44 42 20 00",
    "E": "46 06 00 40/03 33", "F": "46 06 00/03 33", "G": "45 36 16 05 01 10 30 41 43 23", "H": "00 06/40 46/03 43", "I": "10 30/16 36/20 26",
    "J": "01 10 20 31 36", "K": "00 06/46 02/13 40", "L": "06 00 40", "M": "00 06 23 46 40", "N": "00 06 40 46", "O": "10 01 05 16 36 45 41 30 10",
    "P": "00 06 36 45 44 33 03", "Q": "10 01 05 16 36 45 41 30 10/22 40", "R": "00 06 36 45 44 33 03/23 40", "S": "45 36 16 05 04 13 33 42 41 30 10 01",
    "T": "06 46/26 20", "U": "06 01 10 30 41 46", "V": "06 20 46", "W": "06 10 24 30 46", "X": "00 46/06 40", "Y": "06 23 46/23 20", "Z": "06 46 00 40",
    "a": "03 14 34 43 40/42 12 01 10 30 41", "b": "06 00/03 14 34 43 41 30 10 01", "c": "43 34 14 03 01 10 30 41", "d": "46 40/43 34 14 03 01 10 30 41",
    "e": "02 42 43 34 14 03 01 10 30 41", "f": "36 26 15 10/04 34", "g": "44 4w 3x 1x/43 34 14 03 01 10 30 41", "h": "06 00/03 14 34 43 40", "i": "24 20/26 26",
    "j": "24 2w 1x/26 26", "k": "06 00/34 02/12 40", "l": "16 26 21 30", "m": "00 04/03 14 23 20/23 34 43 40", "n": "00 04/03 14 34 43 40",
    "o": "10 01 03 14 34 43 41 30 10", "p": "0x 04/03 14 34 43 41 30 10 01", "q": "4x 44/43 34 14 03 01 10 30 41", "r": "10 14/13 24 34", "s": "43 34 14 03 12 32 41 30 10 01",
    "t": "16 11 20 30/04 34", "u": "04 01 10 30 41/44 40", "v": "04 20 44", "w": "04 10 23 30 44", "x": "00 44/04 40", "y": "04 20/44 20 1x 0x", "z": "04 44 00 40",
    ".": "20 20", ",": "20 1w", ":": "20 20/23 23", ";": "20 1w/23 23", "-": "13 33", "\u2013": "03 43", "+": "03 43/25 21", "=": "02 42/04 44", "/": "0w 46",
    "(": "36 25 21 30", ")": "16 25 21 10", "[": "36 16 10 30", "]": "16 36 30 10", "%": "00 46/05 14/32 41", "·": "23 23", "?": "05 16 36 45 44 22/20 20",
    "'": "26 25", '"': "16 15/36 35", "_": "0w 4w", "!": "26 22/20 20", "#": "11 15/31 35/02 42/04 44", "*": "25 21/04 42/02 44", "&": "40 04 15 25 34 01 10 20 42",
    "<": "45 03 41", ">": "05 43 01", "|": "26 2w", "~": "03 14 32 43", "@": "32 12 14 34 31 42 45 36 16 05 01 10 30", "µ": "0x 04/01 10 30 41/44 40", "²": "16 26 25 14 24",
}  # fmt: skip

_PLACES = {**{str(figure): float(figure) for figure in range(7)}, "w": -1.0, "x": -2.0}


def strokes(letter: str) -> list[list[Spot]]:
    """The strokes of a letter on the grid; those of "?" for a letter that there is no drawing of."""
    if letter.isspace():
        return []
    drawn = _LETTERS.get(letter) or _LETTERS["?"]
    found = []
    for stroke in drawn.split("/"):
        spots = [(_PLACES[spot[0]], _PLACES[spot[1]]) for spot in stroke.split()]
        found.append(spots if len(spots) > 1 else spots * 2)
    return found
