"""What stays of a run in a saved notebook: seen without its kernel, without trust, without a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from support.front_ends import Opener
from support.training_cell import STAYS, Truth, finished, queue, training_cell

pytestmark = pytest.mark.browser

GROWTH_BYTES = 150_000
"""By what a notebook may grow in a run."""

SENTENCE = re.compile(r"^[\d.]+ [mk]?g CO2eq, [\d.]+ [mk]?Wh, 0:00:0\d")

WIDGETS = ("@jupyter-widgets/jupyterlab-manager", "plugin")


@dataclass(frozen=True, slots=True)
class Saved:
    """A notebook that was saved after a run, its kernel ended."""

    path: Path
    bytes_before: int


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "with the state of widgets"])
def saved(request: pytest.FixtureRequest, opener: Opener) -> Iterator[Saved]:
    server = opener.server
    server.set_up(*WIDGETS, saveState=request.param)
    notebook = opener.new()
    truth = Truth(server.root / f"{notebook.name}.jsonl")
    notebook.save()
    before = (server.root / notebook.name).stat().st_size
    queue(notebook, truth, training_cell("--epochs-before-pred 2"))
    finished(notebook, truth)
    notebook.save()
    notebook.close()
    yield Saved(server.root / notebook.name, before)
    server.set_up(*WIDGETS, saveState=False)


def is_drawn(picture: Locator) -> bool:
    """Whether the browser could draw an image, of its full size."""
    size: float = picture.evaluate("image => image.complete ? image.naturalWidth : 0")
    return size > 300


def test_it_grows_by_little(saved: Saved) -> None:
    assert saved.path.stat().st_size - saved.bytes_before <= GROWTH_BYTES
    cells = json.loads(saved.path.read_text("utf-8"))["cells"]
    kinds = [sorted(output["data"]) for output in cells[1]["outputs"] if "data" in output]
    assert kinds == STAYS


def test_it_opens_where_it_is_trusted(saved: Saved, opener: Opener) -> None:
    again = opener.again(saved.path.name)
    picture = again.cell(1).locator(".jp-RenderedSVG img, .jp-RenderedSVG svg").first
    picture.wait_for()
    again.soon("the picture is drawn", lambda: (picture.bounding_box() or {"width": 0})["width"] > 300)
    table_is_there(again.cell(1))
    assert again.faults == []
    again.close()


def test_it_opens_where_it_is_not_trusted(saved: Saved, opener: Opener) -> None:
    # Trust hangs on the contents: with another first cell it is a notebook of somebody else.
    content = json.loads(saved.path.read_text("utf-8"))
    content["cells"][0]["source"] = "# from somewhere else"
    name = f"untrusted-{saved.path.name}"
    opener.server.write(name, content)
    again = opener.again(name)
    picture = again.cell(1).locator(".jp-RenderedImage img").first
    picture.wait_for()
    again.soon("the picture is drawn", lambda: is_drawn(picture))
    assert str(picture.get_attribute("src")).startswith("data:image/png")
    table_is_there(again.cell(1))
    assert again.cell(1).get_by_text("model not found").count() == 0
    assert again.faults == []
    again.close()


def test_as_a_page_of_html_it_needs_no_network(saved: Saved, browser: Browser, tmp_path: Path) -> None:
    page_file = tmp_path / "notebook.html"
    nbconvert = [sys.executable, "-m", "nbconvert", "--log-level", "ERROR"]
    convert = [*nbconvert, "--to", "html", "--output", str(page_file)]
    subprocess.run([*convert, str(saved.path)], check=True, capture_output=True)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri(), wait_until="commit")
    picture = page.locator(".jp-RenderedSVG svg, .jp-RenderedImage img, img[src^='data:image/svg']").first
    picture.wait_for()
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > 300
    table_is_there(page.locator("body"))
    context.close()


def table_is_there(place: Locator) -> None:
    """The table of a run and its sentence are in sight."""
    table = place.locator("table").first
    expect(table).to_be_visible()
    expect(table).to_contain_text("Epochs")
    expect(table).to_contain_text("5 of 5")
    expect(place.get_by_text(SENTENCE).first).to_be_visible()
