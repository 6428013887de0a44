"""The panel alone, in a page without a kernel: usable by everybody, in light and dark, wide and narrow."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]

SCENARIOS = (
    "start",
    "first-epoch",
    "running",
    "eight-gpus",
    "question",
    "paused",
    "nothing",
    "hostile",
    "gone",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(ROOT))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/js/harness/index.html"
    server.shutdown()
    server.server_close()


def opened(browser: Browser, address: str, scenario: str, theme: str = "light", width: int = 1000) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{address}?scenario={scenario}&theme={theme}")
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector(".ct-notebook")
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_axe_finds_nothing_serious(
    browser: Browser, address: str, axe: str, scenario: str, theme: str
) -> None:
    page = opened(browser, address, scenario, theme)
    page.evaluate("document.querySelector('details').open = true")
    page.evaluate(axe)
    found: Any = page.evaluate("axe.run('.ct-notebook')")
    grave = [
        (each["id"], each["help"], [node["html"][:200] for node in each["nodes"]])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
    assert grave == []
    assert len(found["passes"]) > 5
    page.close()


@pytest.mark.parametrize("width", [320, 360, 560, 800, 1200])
@pytest.mark.parametrize("scenario", ["running", "eight-gpus", "question", "hostile"])
def test_nothing_sticks_out(browser: Browser, address: str, scenario: str, width: int) -> None:
    page = opened(browser, address, scenario, width=width)
    page.evaluate("document.querySelector('details').open = true")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    sticking = page.evaluate(
        """() => {
            const card = document.querySelector('.ct-notebook').getBoundingClientRect();
            return [...document.querySelectorAll('.ct-notebook :not(.ct-spoken):not(.u-over *)')]
                .filter((each) => each.getBoundingClientRect().right > card.right + 1)
                .map((each) => each.className || each.tagName);
        }"""
    )
    assert sticking == []
    page.close()


def test_the_keyboard_reaches_everything(browser: Browser, address: str) -> None:
    page = opened(browser, address, "question")
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                "document.activeElement.getAttribute('aria-label')?.split('.')[0]"
                " ?? document.activeElement.textContent"
            )
        )
    for wanted in ("Continue", "Stop", "Stacked", "Power", "CO2eq so far", "Whole run"):
        assert wanted in names
    assert any(name.startswith("How this is measured") for name in names)
    page.get_by_role("button", name="Continue", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert [each["type"] for each in page.evaluate("window.sent")] == ["hello", "answer"]
    page.close()


def test_arrow_keys_tell_values_and_escape_ends_a_zoom(browser: Browser, address: str) -> None:
    page = opened(browser, address, "running")
    chart = page.get_by_role("img", name="Power")
    chart.focus()
    page.keyboard.press("Home")
    figure = page.locator("figure", has=chart)
    expect(figure.locator(".ct-where")).to_have_text("at 0:00:00")
    page.keyboard.press("End")
    expect(figure.locator(".ct-where")).to_have_text("at 0:06:51")
    assert "W" in page.get_by_role("status").inner_text()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 150, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 60, steps=5)
    page.mouse.up()
    resets = page.get_by_role("button", name="Reset zoom")
    expect(resets).to_have_count(2)  # both charts show the same time
    chart.focus()
    page.keyboard.press("Escape")
    expect(resets).to_have_count(0)
    page.close()


def test_a_theme_that_changes_changes_the_curves(browser: Browser, address: str) -> None:
    page = opened(browser, address, "running")

    def colour() -> str:
        found: str = page.evaluate("document.querySelector('canvas').toDataURL()")
        return found

    light = colour()
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function("(before) => document.querySelector('canvas').toDataURL() !== before", arg=light)
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.ct-notebook')).color")
        == "rgb(231, 233, 236)"
    )
    page.close()


def test_markup_in_names_is_text(browser: Browser, address: str) -> None:
    page = opened(browser, address, "hostile")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    assert page.locator(".ct-notebook img, .ct-notebook script").count() == 0
    assert "<img src=x" in page.locator(".ct-notebook").inner_html().replace("&lt;", "<")
    assert dialogs == []
    page.close()


def test_reduced_motion_is_honoured(browser: Browser, address: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{address}?scenario=running")
    page.wait_for_selector(".ct-notebook[data-state=measuring]")
    icon = "getComputedStyle(document.querySelector('.ct-state .ct-icon')).animationName"
    assert page.evaluate(icon) == "none"
    context.close()


def test_a_panel_that_is_drawn_before_it_is_in_the_page_gets_its_colours(
    browser: Browser, address: str
) -> None:
    page = opened(browser, address, "running")
    # As a busy JupyterLab does it: outside the document there are no styles, and so no colours.
    page.evaluate(
        """async () => {
            window.close_panel();
            const el = document.createElement("div");
            window.close_panel = window.open_panel(el);
            await new Promise((go) => setTimeout(go, 300));
            window.were = [...el.querySelectorAll("canvas")].length;
            document.getElementById("place").append(el);
        }"""
    )
    assert page.evaluate("window.were") > 0, "nothing was drawn outside the document, so nothing is tested"
    page.wait_for_function(
        """() => [...document.querySelectorAll(".ct-notebook canvas")].every((canvas) => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let seen = 0;
            for (let at = 3; at < data.length; at += 4) seen += data[at] > 0 ? 1 : 0;
            return seen > 10000;
        })"""
    )
    page.close()
