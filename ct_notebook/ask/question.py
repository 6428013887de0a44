"""What is asked and what came back, and the words for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

YES = frozenset({"y", "yes", "c", "continue"})
NO = frozenset({"n", "no", "s", "stop", "q", "quit"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether training goes on, and how that came about."""

    go_on: bool
    how: Literal["answered", "timeout", "headless"]

    @property
    def words(self) -> str:
        """What comes of it, in carbontracker's words, and why if nobody answered."""
        what = "Continuing..." if self.go_on else "Quitting..."
        why = {
            "answered": "",
            "timeout": " (nobody answered in time; --on-timeout continue|stop chooses)",
            "headless": " (nobody can be asked here; --on-headless continue|stop chooses)",
        }
        return what + why[self.how]


@dataclass(frozen=True, slots=True)
class Question:
    """Continue or stop, with what happens if nobody says.

    Attributes
    ----------
    timeout_s
        How long an answer is waited for; 0 for ever.
    on_timeout, on_headless
        "continue" or "stop": what is taken if nobody answers in time, and if nobody can be asked.
    about
        Why it is asked, where that is not the prediction in view: one sentence.
    """

    timeout_s: float
    on_timeout: str
    on_headless: str
    about: str = ""

    @property
    def prompt(self) -> str:
        """The question, its answers, and the default."""
        if not self.timeout_s:
            return "Continue training (y/n)? "
        what = "continues" if self.on_timeout == "continue" else "stops"
        return f"Continue training (y/n)? [{what} by itself after {in_words(self.timeout_s)}] "

    def nobody_there(self) -> Answer:
        """The default when nobody can be asked."""
        return Answer(self.on_headless == "continue", "headless")

    def too_late(self) -> Answer:
        """The default when nobody answered in time."""
        return Answer(self.on_timeout == "continue", "timeout")


class Buttons(Protocol):
    """A panel with a button for each answer, which a page may or may not show."""

    shown_s: float
    """When pages were sent the panel, on the monotonic clock."""

    @property
    def heard(self) -> bool:
        """Whether a page shows it."""

    @property
    def answer(self) -> bool | None:
        """What was answered to the question that was put; None if nothing was."""

    def put(self, question: Question) -> None:
        """Show the question."""

    def withdraw(self) -> None:
        """Show it no longer."""

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Listen for clicks until something is so, or for some time; None for ever. True if it is so."""


def understood(text: str) -> bool | None:
    """Whether an answer means yes or no; None if neither."""
    word = text.strip().lower()
    return True if word in YES else False if word in NO else None


def in_words(seconds: float) -> str:
    """A time as a person says it."""
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:g} s"
