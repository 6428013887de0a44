"""What stays of a run: figures that are right, texts that are text, files that are small."""

from __future__ import annotations

import html
import json
import re
import struct
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from ct_notebook.display import figure, picture, static, table
from ct_notebook.display.drawing import SCALE, strokes
from ct_notebook.records import Run
from support.runs import HOSTILE, RUNS, from_log, hostile, long_run, unmeasured
from support.snapshots import example_run

every_run = pytest.mark.parametrize("make", RUNS.values(), ids=list(RUNS))

SVG = "{http://www.w3.org/2000/svg}"


@every_run
def test_an_svg_holds_nothing_but_shapes_and_words(make: Callable[[], Run]) -> None:
    text = picture.svg(make())
    assert len(text) < 40_000
    root = ET.fromstring(text)
    kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert kinds <= {"svg", "title", "desc", "rect", "text", "polyline", "polygon"}
    for element in root.iter():
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    assert not re.search(r"nan|inf\b", text)


@every_run
def test_a_png_is_one_of_the_same_size(make: Callable[[], Run]) -> None:
    run = make()
    data = picture.png(run)
    assert len(data) < 60_000
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    sheet = picture.sheet(run)
    assert (width, height) == (SCALE * sheet.width, SCALE * sheet.height)
    at = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[at - 4 : at])
    assert zlib.crc32(data[at : at + 4 + length]) == struct.unpack(">I", data[at + 4 + length :][:4])[0]
    pixels = zlib.decompress(data[at + 4 : at + 4 + length])
    assert len(pixels) == height * (width + 1)
    assert len(set(pixels)) > 3


@every_run
def test_every_shape_is_on_the_sheet(make: Callable[[], Run]) -> None:
    sheet = picture.sheet(make())
    root = ET.fromstring(sheet.svg())
    for element in root.iter():
        for pair in element.attrib.get("points", "").split():
            x, y = map(float, pair.split(","))
            assert -1 <= x <= sheet.width + 1
            assert -1 <= y <= sheet.height + 1


class Table(HTMLParser):
    """The cells of a table and the tags that it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.cells: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "wbr":
            return
        self.attributes += attrs
        self._inside = tag in {"th", "td", "caption"}
        if self._inside:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in {"th", "td", "caption"}

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


def read(run: Run) -> Table:
    parser = Table()
    parser.feed(table.html(run))
    return parser


@every_run
def test_a_table_needs_nothing_that_a_sanitiser_takes_away(make: Callable[[], Run]) -> None:
    found = read(make())
    assert found.tags - {"wbr"} == {"table", "caption", "tbody", "tr", "th", "td"}
    assert found.attributes == []


def test_the_table_says_what_the_run_says() -> None:
    cells = read(example_run()).cells
    rows = dict(zip(cells[1::2], cells[2::2], strict=True))
    # 2400 J with a PUE of 1.5 at 360 g/kWh.
    assert rows["Energy"] == "1.00 Wh (880 mWh to 1.1 Wh), PUE included"
    assert rows["CO2eq"] == "360 mg (160 to 650 mg)"
    assert rows["Epochs"] == "2 of 10"
    assert rows["GPU"].startswith("NVIDIA A100-SXM4-40GB: 556 mWh, 100 W on average (counter: NVML")
    assert (
        rows["Predicted after 1"]
        == "2.00 g CO2eq (1.8 to 2.4 g), 0:01:40 (0:01:30 to 0:01:55) for all 10 epochs"
    )
    assert rows["Place"] == "Denmark, known by time zone Europe/Copenhagen"
    assert rows["PUE"] == "1.5 (a data centre)"
    assert rows["Like"] == "0.01 h of streamed video"
    factor = "36 g per h of streamed video (International Energy Agency, December 2020, for 2019)"
    assert rows["Factors"] == factor


def test_no_long_word_of_a_table_pushes_its_figures_out_of_sight() -> None:
    parts = re.split(r"<[^>]*>", table.html(hostile()))
    words = html.unescape(" ".join(parts)).split()
    assert max(map(len, words)) <= 60
    assert "<wbr>" not in table.html(example_run())
    cells = read(hostile()).cells
    gpu = cells[cells.index("GPU") + 1]
    assert " W on average" in gpu


def test_plain_text_begins_with_the_sentence() -> None:
    assert table.text(example_run()).splitlines()[0] == repr(example_run())


@pytest.mark.parametrize("show", [picture.svg, table.html, table.text], ids=["svg", "html", "text"])
def test_texts_from_outside_stay_text(show: Callable[[Run], str]) -> None:
    shown = show(hostile())
    if show is not table.text:
        assert "<script" not in shown
    for bad in ("\x00", "\u202e"):
        assert bad not in shown
    assert len(shown) < 40_000


def test_a_run_without_figures_is_said_to_have_none() -> None:
    assert "nothing measured" in picture.svg(unmeasured())
    assert "No component could be measured." in picture.svg(unmeasured())
    assert "polygon" not in picture.svg(unmeasured())


def test_the_bundle_is_what_a_notebook_can_store() -> None:
    bundle = static.bundle(long_run())
    assert set(bundle) == {"image/svg+xml", "image/png", "text/plain"}
    assert len(json.dumps(bundle)) + len(json.dumps(static.report(long_run()))) < 150_000


def test_a_run_shows_its_picture_by_itself() -> None:
    assert example_run()._repr_mimebundle_() == static.bundle(example_run())


def test_every_letter_that_a_figure_needs_has_a_drawing() -> None:
    needed = "0123456789 abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,:·()/%-+µ"
    unknown = strokes("\N{SNOWMAN}")
    for letter in needed:
        assert letter == " " or strokes(letter) != unknown, letter
    drawn = [json.dumps(strokes(letter)) for letter in needed if letter not in "O0 "]
    assert len(set(drawn)) == len(drawn)


# -- plotly --------------------------------------------------------------------------------------------


@every_run
def test_a_figure_is_no_widget_and_can_be_stored(make: Callable[[], Run]) -> None:
    shown = make().figure()
    assert type(shown).__name__ == "Figure"
    assert len(shown.to_json()) < 200_000
    assert HOSTILE[:20] not in shown.to_json()


@pytest.mark.parametrize("make", [example_run, from_log], ids=["live", "from a log"])
def test_a_figure_shows_the_power_and_the_emissions_of_the_run(make: Callable[[], Run]) -> None:
    traces = {trace.name: trace for trace in figure.figure(make()).data}
    assert list(traces["GPU"].y)[:3] == pytest.approx([100, 100, 100][: len(traces["GPU"].y)])
    assert max(traces["CO2eq"].y) == pytest.approx(0.36)
    assert traces["predicted"].y[-1] == pytest.approx(2.0)
    assert list(traces["predicted"].x) == pytest.approx([10.0, 100.0])


def test_a_stretch_that_was_not_read_is_a_gap() -> None:
    run = example_run()
    assert run.course is not None
    power_w = picture.power_by_component(run, run.course)
    assert power_w["cpu"][5:9] == [pytest.approx(20), None, None, pytest.approx(20)]
    assert power_w["gpu"][6] == pytest.approx(100)
