"""The two buttons that Colab's page is asked to show, in a real browser. The page is not Colab's."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from ct_notebook.ask.colab import _script
from ct_notebook.ask.question import Question

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("name", "answer"), [("Continue", True), ("Stop", False)])
def test_a_click_is_the_answer(browser: Browser, name: str, answer: bool) -> None:  # noqa: FBT001 - of the test
    page = browser.new_page()
    page.evaluate("(script) => { window.answer = eval(script); }", _script(Question(600, "continue", "stop")))
    page.get_by_role("button", name=name, exact=True).click()
    assert page.evaluate("window.answer") is answer
    assert page.get_by_role("button").count() == 0
    page.close()


def test_no_click_in_time_is_no_answer(browser: Browser) -> None:
    page = browser.new_page()
    assert page.evaluate("(script) => eval(script)", _script(Question(0.2, "continue", "stop"))) is None
    page.close()
