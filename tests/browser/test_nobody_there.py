"""Notebooks executed without a front end, and finished ones opened without a kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from support.kernel import PACKAGE

pytestmark = pytest.mark.browser

CELL = """%%carbontrack --epochs 6 --epochs-before-pred 2 {flags} --sim-cpu X --sim-cpu-tdp 9
import time
for epoch in range(6):
    time.sleep(0.1)
print("after", epoch)
"""

RUNNERS = {
    "nbclient": ["-m", "jupyter", "execute", "--inplace", "{path}"],
    "nbconvert": ["-m", "jupyter", "nbconvert", "--execute", "--inplace", "--to", "notebook", "{path}"],
    "papermill": ["-m", "papermill", "{path}", "{path}"],
}


def executed(folder: Path, runner: str, flags: str = "") -> dict[str, Any]:
    """A notebook as a runner leaves it."""
    path = folder / "test.ipynb"
    cells = ["%load_ext ct_notebook", CELL.format(flags=f"--stop-and-confirm {flags}"), "epoch"]
    content = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"c{n}",
                "metadata": {},
                "outputs": [],
                "source": text,
                "execution_count": None,
            }
            for n, text in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content), "utf-8")
    before = path.stat().st_size
    command = [sys.executable, *(part.format(path=path) for part in RUNNERS[runner])]
    environ = {"PYTHONPATH": str(PACKAGE), "IPYTHONDIR": str(folder / "ipython")}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**_environment(), **environ}
    )
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size - before <= 150_000
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return read


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("CT_NOTEBOOK_")}


@pytest.mark.parametrize(("what", "last"), [("continue", 5), ("stop", 1)])
@pytest.mark.parametrize("runner", RUNNERS)
def test_the_default_is_taken_at_once_and_said(tmp_path: Path, runner: str, what: str, last: int) -> None:
    notebook = executed(tmp_path, runner, f"--on-headless {what}")
    outputs = notebook["cells"][1]["outputs"]
    text = "".join("".join(each.get("text", "")) for each in outputs)
    assert "nobody can be asked here" in text
    assert f"after {last}" in text
    assert "".join(notebook["cells"][2]["outputs"][0]["data"]["text/plain"]) == str(last)
    log = next((tmp_path / "logs").glob("*_output.log")).read_text("utf-8")
    assert "nobody can be asked here" in log
    kinds = [set(each["data"]) for each in outputs if "data" in each]
    assert {"image/svg+xml", "image/png", "text/plain"} in kinds
    assert {"text/html", "text/plain"} in kinds
    assert "widgets" not in notebook["metadata"]


def test_a_page_made_of_it_shows_picture_and_table_without_a_network(
    tmp_path: Path, browser: Browser
) -> None:
    executed(tmp_path, "nbclient")
    convert = ["-m", "jupyter", "nbconvert", "--to", "html", str(tmp_path / "test.ipynb")]
    subprocess.run([sys.executable, *convert], check=True, capture_output=True, cwd=tmp_path)
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "test.html").as_uri())
    picture = page.locator(".jp-RenderedSVG svg, .jp-RenderedSVG img, .jp-RenderedImage img").first
    assert picture.is_visible()
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > 500
    table = page.locator("table", has=page.get_by_text("Carbon intensity"))
    assert table.is_visible()
    assert "6 of 6 epochs" in page.locator("body").inner_text()
    context.close()
