"""The feed: what it gives at once, what it asks for, and what a dead or hostile source costs."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from ct_notebook.errors import SourceError
from ct_notebook.intensity import live
from ct_notebook.intensity.base import Answer, Get, Outlook
from ct_notebook.intensity.electricity_maps import ElectricityMaps
from ct_notebook.intensity.http import live_get
from ct_notebook.intensity.live import THREAD_NAME, Feed
from ct_notebook.records import Intensity
from support.web_server import WebServer, as_json, be_impatient, be_patient, drip, never, text, web_server

KEY = "aVerySecretKey0123456789"
NOW_S = 1_772_367_000.0
FIGURE = Intensity(50.0, "DE", "Germany", "someone", "2026-03-01T12:00Z", "lifecycle")


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    live._process.forget()
    yield
    live._process.forget()


@dataclass(eq=False)
class Scripted:
    """A source that does what it is told, in the feed's thread."""

    acts: list[Callable[[], Outlook]]
    name: str = "Scripted, DE"
    asked: int = 0
    threads: list[str] = field(default_factory=list)

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        assert callable(get)
        assert now_unix_s == NOW_S
        self.threads.append(threading.current_thread().name)
        act = self.acts[min(self.asked, len(self.acts) - 1)]
        self.asked += 1
        return act()


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def gives(g_per_kwh: float) -> Callable[[], Outlook]:
    return lambda: Outlook(replace(FIGURE, g_per_kwh=g_per_kwh))


def fails(line: str) -> Callable[[], Outlook]:
    def act() -> Outlook:
        raise SourceError(line)

    return act


def unused_get(url: str, **_: object) -> Answer:
    raise AssertionError(url)


def feed_of(source: Scripted, clock: Clock) -> Feed:
    return Feed(source, unused_get, clock, lambda: NOW_S)


def our_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def settle(feed: Feed) -> tuple[float | None, list[str]]:
    """Look, let the thread end, look again: the newest figure and all lines."""
    _, first = feed.look()
    for thread in our_threads():
        thread.join(30)
    outlook, then = feed.look()
    for thread in our_threads():  # the second look may have been the one that started it
        thread.join(30)
    return None if outlook is None else outlook.now.g_per_kwh, first + then


def test_a_reading_comes_from_a_thread_of_its_own_that_ends() -> None:
    source, clock = Scripted([gives(50)]), Clock()
    feed = feed_of(source, clock)
    assert feed.look() == (None, [])
    assert settle(feed) == (50, [])
    assert source.threads == [THREAD_NAME]
    assert our_threads() == []


def test_nothing_is_asked_before_the_first_look_or_within_a_period() -> None:
    source, clock = Scripted([gives(50), gives(300)]), Clock()
    feed = feed_of(source, clock)
    assert source.asked == 0
    settle(feed)
    clock.now_s += 899
    assert settle(feed) == (50, [])
    assert source.asked == 1
    clock.now_s += 1
    assert settle(feed) == (300, [])
    assert source.asked == 2


def test_the_next_cell_does_not_ask_again_within_a_period() -> None:
    source, clock = Scripted([gives(50), gives(300)]), Clock()
    first = feed_of(source, clock)
    settle(first)
    first.close()
    clock.now_s += 600
    second = feed_of(source, clock)
    outlook, lines = second.look()
    assert outlook is not None
    assert (outlook.now.g_per_kwh, lines, source.asked) == (50, [], 1)
    clock.now_s += 299
    assert settle(second)[0] == 50
    clock.now_s += 1
    assert settle(second)[0] == 300, "the reading is as old as when it was made"


def test_a_failure_is_told_once_and_asked_again_after_a_minute_then_by_the_period() -> None:
    source, clock = Scripted([fails("no grid")]), Clock()
    feed = feed_of(source, clock)
    assert settle(feed) == (None, ["no grid"])
    clock.now_s += 59
    settle(feed)
    assert source.asked == 1
    clock.now_s += 1
    assert settle(feed) == (None, [])
    assert source.asked == 2
    clock.now_s += 899
    settle(feed)
    assert source.asked == 2
    clock.now_s += 1
    settle(feed)
    assert source.asked == 3


def test_the_newest_figure_stays_through_failures_and_notes_are_told_once() -> None:
    noted = Outlook(FIGURE, (), ("no forecast",))
    source, clock = Scripted([lambda: noted, fails("gone"), lambda: noted]), Clock()
    feed = feed_of(source, clock)
    assert settle(feed) == (50, ["no forecast"])
    clock.now_s += 900
    assert settle(feed) == (50, ["gone"])
    clock.now_s += 60
    assert settle(feed) == (50, [])


def test_a_figure_is_dropped_when_nobody_answered_for_a_day() -> None:
    source, clock = Scripted([gives(50), fails("gone")]), Clock()
    feed = feed_of(source, clock)
    settle(feed)
    clock.now_s += 23 * 3600
    assert settle(feed) == (50, ["gone"])
    clock.now_s += 3600 + 1
    figure, lines = settle(feed)
    assert figure is None
    assert any("for a day" in line for line in lines)


def test_what_a_source_raises_by_mistake_is_told_without_its_text() -> None:
    def mistake() -> Outlook:
        raise ValueError(KEY)

    _, lines = settle(feed_of(Scripted([mistake]), Clock()))
    (line,) = lines
    assert "ValueError" in line
    assert KEY not in line


def test_a_source_that_leaves_is_a_failure_too() -> None:
    def leave() -> Outlook:
        raise SystemExit

    _, lines = settle(feed_of(Scripted([leave]), Clock()))
    assert len(lines) == 1


def test_a_hanging_reading_is_given_up_and_no_other_is_started_while_it_hangs() -> None:
    let_go = threading.Event()

    def hang() -> Outlook:
        let_go.wait(30)
        return Outlook(replace(FIGURE, g_per_kwh=999))

    source, clock = Scripted([hang, gives(50)]), Clock()
    feed = feed_of(source, clock)
    try:
        feed.look()
        clock.now_s += 10.5
        outlook, lines = feed.look()
        assert outlook is None
        (line,) = lines
        assert "no answer within 10 s" in line
        other = Scripted([gives(7)], "Other, FR")
        for _ in range(5):
            clock.now_s += 3600
            assert feed.look() == (None, [])
            assert feed_of(other, clock).look() == (None, []), "not for another cell either"
        assert (source.asked, other.asked) == (1, 0)
        assert len(our_threads()) == 1
    finally:
        let_go.set()
    for thread in our_threads():
        thread.join(30)
    assert settle(feed) == (50, []), "the late answer is ignored"
    assert live._process.readings[source][1].now.g_per_kwh == 50


def test_a_closed_feed_asks_no_more() -> None:
    source, clock = Scripted([gives(50), gives(300)]), Clock()
    feed = feed_of(source, clock)
    settle(feed)
    feed.close()
    feed.close()
    clock.now_s += 10_000
    assert settle(feed) == (50, [])
    assert source.asked == 1


def test_looks_from_many_threads_start_one_reading() -> None:
    go = threading.Barrier(8)
    source = Scripted([gives(50)])
    feed = feed_of(source, Clock())

    def look() -> None:
        go.wait(30)
        for _ in range(200):
            feed.look()

    lookers = [threading.Thread(target=look) for _ in range(8)]
    for thread in lookers:
        thread.start()
    for thread in lookers:
        thread.join(30)
    settle(feed)
    assert source.asked == 1


def test_a_look_does_not_wait_for_a_reading_and_costs_like_a_few_calls() -> None:
    let_go = threading.Event()
    source = Scripted([lambda: Outlook(FIGURE, (), (str(let_go.wait(30)),))])
    feed = Feed(source, unused_get, now=lambda: NOW_S)
    feed.look()

    def cost(call: Callable[[], object]) -> float:
        began = time.perf_counter()
        for _ in range(2000):
            call()
        return time.perf_counter() - began

    try:
        looks = statistics.median(cost(feed.look) for _ in range(5))
        calls = statistics.median(cost(os.getcwd) for _ in range(5))
        assert looks < 50 * calls, "a look that waited would cost thousands of system calls"
        assert our_threads(), "the reading was under way all the time"
    finally:
        let_go.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="DID NOT RUN: this system has no fork")
@pytest.mark.skipif(sys.version_info >= (3, 15), reason="DID NOT RUN: not tried there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_asks_nothing_and_knows_nothing() -> None:
    source, clock = Scripted([gives(50)]), Clock()
    feed = feed_of(source, clock)
    settle(feed)
    clock.now_s += 10_000
    child = os.fork()
    if child == 0:
        outlook, lines = feed.look()
        is_right = (
            outlook is not None
            and outlook.now.g_per_kwh == 50
            and lines == []
            and not our_threads()
            and not live._process.readings
        )
        os._exit(0 if is_right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_unhashable_source_is_found_at_once() -> None:
    @dataclass
    class Unhashable:
        name: str = "x"

        def outlook(self, get: Get, now_unix_s: float) -> Outlook:
            raise NotImplementedError

    with pytest.raises(TypeError):
        Feed(Unhashable(), unused_get)


# With the real get and a real server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    be_patient(monkeypatch)
    with web_server() as found:
        yield found


def live_feed(server: WebServer, clock: Clock) -> Feed:
    return Feed(ElectricityMaps(KEY, "DE", base_url=server.url), live_get, clock, lambda: NOW_S)


def test_a_step_in_the_grid_is_seen_after_a_period(server: WebServer) -> None:
    clock = Clock()
    feed = live_feed(server, clock)
    for figure in (50, 300):
        server.pages["/v4/carbon-intensity/latest"] = as_json(
            {"zone": "DE", "carbonIntensity": figure, "datetime": "2026-03-01T12:00:00.000Z"}
        )
        assert settle(feed) == (figure, [])
        clock.now_s += 900


@pytest.mark.parametrize("page", [never, drip, text("<html>"), text("", 500), text("", 429), text("", 401)])
def test_a_dead_or_hostile_source_leaves_one_line_and_no_key(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, page: object
) -> None:
    if page in {never, drip}:
        be_impatient(monkeypatch)
    server.pages["*"] = page  # type: ignore[assignment]
    clock = Clock()
    feed = live_feed(server, clock)
    lines: list[str] = []
    for _ in range(3):
        lines += settle(feed)[1]
        clock.now_s += 1000
    (line,) = lines
    assert KEY not in line
    assert KEY not in repr(feed) + repr(vars(feed))
    assert "\n" not in line
