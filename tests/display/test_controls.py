"""What pages say, taken or left out. The whole of it runs in real kernels in tests/kernel/test_panel.py."""

from __future__ import annotations

from typing import Any

from ct_notebook.ask import Question
from ct_notebook.display.controls import PAGES, Controls

QUESTION = Question(60, "continue", "stop")


def controls() -> tuple[Controls, list[str]]:
    complaints: list[str] = []
    return Controls("run", lambda: None, complaints.append), complaints


def told(here: Controls) -> bool | None:
    """The answer as it is now."""
    return here.answer


def message(kind: str, n: int = 1, page: str = "page", **more: Any) -> dict[str, Any]:
    return {"type": kind, "run": "run", "page": page, "n": n, **more}


def test_wishes_are_kept_until_they_are_taken_back() -> None:
    here, complaints = controls()
    assert here.receive(message("hello", 1, seq=3)) == "hello"
    assert here.heard
    here.receive(message("pause", 2))
    here.receive(message("stop", 3))
    assert (here.pausing, here.stopping) == (True, True)
    here.receive(message("resume", 4))
    here.receive(message("go_on", 5))
    assert (here.pausing, here.stopping, here.resumed) == (False, False, True)
    assert complaints == []


def test_a_token_answers_once() -> None:
    here, _ = controls()
    here.put(QUESTION)
    token = here.token
    here.receive(message("answer", 1, token=token, go_on=False))
    here.receive(message("answer", 2, token=token, go_on=True))
    assert told(here) is False
    here.withdraw()
    here.put(QUESTION)
    assert told(here) is None
    assert here.token != token
    here.receive(message("answer", 3, token=token, go_on=True))
    assert told(here) is None


def test_an_answer_after_the_question_answers_nothing() -> None:
    here, _ = controls()
    here.put(QUESTION)
    token = here.token
    here.withdraw()
    here.receive(message("answer", 1, token=token, go_on=False))
    assert told(here) is None


def test_a_replayed_message_is_left_out() -> None:
    here, complaints = controls()
    stop = message("stop", 1)
    here.receive(stop)
    here.receive(message("go_on", 2))
    assert here.receive(stop) == ""
    assert not here.stopping
    assert complaints == ["A message of a page was left out: it came twice."]


def test_pages_without_number_take_no_memory() -> None:
    here, _ = controls()
    for number in range(10_000):
        here.receive(message("hello", 1, page=f"page-{number}", seq=0))
    assert len(here._newest) == PAGES
