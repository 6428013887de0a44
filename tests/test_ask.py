"""Asking on a terminal: a real process with a real standard input. Kernels are asked in tests/kernel."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ct_notebook.ask.question import Question, in_words, understood

ASK = """
import sys
from ct_notebook.ask import Question, ask
answer = ask(Question(timeout_s=float(sys.argv[1]), on_timeout=sys.argv[2], on_headless=sys.argv[3]))
print()
print(answer.go_on, answer.how)
"""


def start(
    timeout_s: float = 0, on_timeout: str = "continue", on_headless: str = "continue"
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASK, str(timeout_s), on_timeout, on_headless],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def outcome(process: subprocess.Popen[str], typed: str) -> list[str]:
    output, _ = process.communicate(typed, timeout=60)
    return output.splitlines()


@pytest.mark.parametrize("word", ["y", "Y", "yes", " continue "])
def test_a_yes_goes_on(word: str) -> None:
    assert outcome(start(), f"{word}\n")[-1] == "True answered"


@pytest.mark.parametrize("word", ["n", "No", "stop", "quit"])
def test_a_no_stops(word: str) -> None:
    assert outcome(start(), f"{word}\n")[-1] == "False answered"


def test_what_is_neither_is_asked_again() -> None:
    lines = outcome(start(), "perhaps\n\nn\n")
    assert "Input not recognized. Try again (y/n):" in lines[0]
    assert lines[0].count("Try again") == 2
    assert lines[-1] == "False answered"


@pytest.mark.parametrize(("default", "go_on"), [("continue", "True"), ("stop", "False")])
def test_a_closed_input_takes_the_default_of_nobody_there(default: str, go_on: str) -> None:
    assert outcome(start(on_headless=default), "")[-1] == f"{go_on} headless"


@pytest.mark.parametrize(("default", "go_on"), [("continue", "True"), ("stop", "False")])
def test_silence_takes_the_default_of_the_timeout(default: str, go_on: str) -> None:
    process = start(timeout_s=0.2, on_timeout=default)
    # The input stays open and nothing is typed, until the process has ended by itself.
    assert process.wait(60) == 0
    assert process.stdout is not None
    assert process.stdout.read().splitlines()[-1] == f"{go_on} timeout"
    process.communicate()


def test_the_prompt_states_the_time_and_the_default() -> None:
    assert Question(600, "stop", "stop").prompt == "Continue training (y/n)? [stops by itself after 10 min] "
    assert Question(0, "stop", "stop").prompt == "Continue training (y/n)? "


def test_words_and_times_are_understood() -> None:
    assert understood("YES") is True
    assert understood("no") is False
    assert understood("") is None
    assert (in_words(30), in_words(600)) == ("30 s", "10 min")
