"""A source comes in; its newest figures go out at once, and a thread of its own asks for newer ones.

Nothing here waits. A reading that takes too long is given up, and while its thread still hangs no other is
started, so that a dead network costs one thread and one line.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ct_notebook.errors import SourceError

from .base import OLDEST_S, Get, Outlook, Source

THREAD_NAME = "ct_notebook-intensity"

PERIOD_S = 900.0
"""Grids are published every 5 to 60 minutes, and free plans count the calls."""

FIRST_RETRY_S = 60.0
DEADLINE_S = 10.0

MOST_LINES = 20
"""A source that fails in ever new words is not told for ever."""


class _Reading:
    """One attempt. The thread fills in `outlook` or `failure`, then sets `is_over`."""

    __slots__ = ("began_s", "failure", "is_given_up", "is_over", "outlook")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.outlook: Outlook | None = None
        self.failure = ""
        self.is_over = False
        self.is_given_up = False


class _Process:
    """What all cells of a process share: readings that are still good, and the one there may be under way."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, as a forked child must: the parent's thread is not there, nor is its lock let go."""
        self.readings: dict[Source, tuple[float, Outlook]] = {}
        self.under_way: _Reading | None = None
        self.lock = threading.Lock()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forget)


class Feed:
    """Keeps the figures of one source fresh, every `period_s`.

    Parameters
    ----------
    source
        Asked in a short-lived daemon thread. Hashable; equal ones share their readings within a process.
    get
        How it asks.
    clock
        Monotonic seconds.
    now
        Unix seconds, which the source checks times by.
    period_s
        From one reading to the next. After a failure it is 60 s once, then `period_s`.
    deadline_s
        A reading that took longer is given up, whatever it waits for: names that are not resolved, a server
        that sends a byte a second.
    """

    def __init__(
        self,
        source: Source,
        get: Get,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        period_s: float = PERIOD_S,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        hash(source)  # one that is not hashable is found here, not while training runs
        self._source = source
        self._get = get
        self._clock = clock
        self._now = now
        self._period_s = period_s
        self._deadline_s = deadline_s
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._newest: Outlook | None = None
        self._newest_s = 0.0
        self._due_s = float("-inf")
        self._failures = 0
        self._told: set[str] = set()
        self._untold: list[str] = []
        self._is_closed = False

    def look(self) -> tuple[Outlook | None, list[str]]:
        """The newest outlook, None if there is none yet, and failures that were not told before.

        From any thread, and as often as one likes: it takes microseconds and waits for nothing. In a forked
        child it gives what the parent had.
        """
        if self._is_closed or os.getpid() != self._pid or not self._lock.acquire(blocking=False):
            return self._newest, []
        try:
            now_s = self._clock()
            self._collect(now_s)
            if self._reading is None and now_s >= self._due_s:
                self._begin(now_s)
            lines, self._untold = self._untold, []
            return self._newest, lines
        finally:
            self._lock.release()

    def close(self) -> None:
        """Ask no more. A reading under way ends by itself. Waits for nothing; idempotent."""
        self._is_closed = True

    def _collect(self, now_s: float) -> None:
        """Take what the thread has brought, or give it up."""
        reading = self._reading
        if reading is None:
            if self._newest is not None and now_s - self._newest_s > OLDEST_S:
                self._newest = None
                self._tell(f"{self._source.name}: no answer for a day; the yearly figure is used instead.")
            return
        if reading.is_over:
            self._reading = None
            if reading.outlook is None:
                self._failed(reading.failure, now_s)
            else:
                self._take(reading.outlook, reading.began_s)
                for note in reading.outlook.notes:
                    self._tell(note)
        elif now_s - reading.began_s > self._deadline_s:
            reading.is_given_up = True
            self._reading = None
            self._failed(
                f"{self._source.name}: no answer within {self._deadline_s:g} s; it is asked again later.",
                now_s,
            )

    def _begin(self, now_s: float) -> None:
        """Start a reading, unless another cell has a fresh one, or a thread is at work or hangs."""
        known = _process.readings.get(self._source)
        if known is not None and 0 <= now_s - known[0] < self._period_s:
            self._take(known[1], known[0])
            return
        if not _process.lock.acquire(blocking=False):
            return
        try:
            if _process.under_way is not None and not _process.under_way.is_over:
                return
            reading = _Reading(now_s)
            thread = threading.Thread(target=self._read, args=(reading,), name=THREAD_NAME, daemon=True)
            thread.start()
            _process.under_way = self._reading = reading
        except RuntimeError:
            # The machine has no more threads, or the interpreter is ending.
            self._failed(f"{self._source.name}: no thread could be started; it is asked again later.", now_s)
        finally:
            _process.lock.release()

    def _read(self, reading: _Reading) -> None:
        """Ask, in the thread."""
        try:
            outlook = self._source.outlook(self._get, self._now())
            if not reading.is_given_up:
                _process.readings[self._source] = (reading.began_s, outlook)
            reading.outlook = outlook
        except SourceError as error:
            reading.failure = str(error)
        except BaseException as error:
            # Nothing leaves the thread, where Python would print it. Not its text: it may hold the key.
            reading.failure = f"{self._source.name}: {type(error).__name__}; it is asked again later."
        finally:
            reading.is_over = True

    def _take(self, outlook: Outlook, at_s: float) -> None:
        self._newest = outlook
        self._newest_s = at_s
        self._failures = 0
        self._due_s = at_s + self._period_s

    def _failed(self, line: str, now_s: float) -> None:
        self._due_s = now_s + (min(FIRST_RETRY_S, self._period_s) if self._failures == 0 else self._period_s)
        self._failures += 1
        self._tell(line)

    def _tell(self, line: str) -> None:
        if line not in self._told and len(self._told) < MOST_LINES:
            self._told.add(line)
            self._untold.append(" ".join(line.split()))
