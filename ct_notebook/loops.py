"""A rewritten loop and a tracker come in; epochs are marked, steps passed on, and a Stop ends the loop.

`rewrite` has loops ask here, as they are entered, what to iterate over: the epoch loop gets iterators that
mark its epochs, every other loop its own. They are built of the interpreter's own iterators: where the user's
iterable raises, no frame of ours stands in the traceback.
"""

from __future__ import annotations

import builtins
import itertools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Any, Protocol

NAME = "__ct_loops__"
"""The one name that rewritten cells use. It lives in `builtins`, so `%reset` leaves it alone."""

HOT_S = 1e-3
"""A step loop whose items take less than this runs at full speed: the probe would be seen beside it."""

PROBE = 16
"""Items over which the time of one is averaged, so that a slow first one (a warm-up) does not decide."""

STEP_S = 0.2
"""Steps are passed on this often at most: five times a second."""

AGAIN_S = 1.0
"""A step loop that was hot is probed again after this, so that short epochs do not pay for a probe each."""

MANY = 1_000
"""A loop longer than this (10 times that if it is called epoch, 10 times what was declared) is not taken for
the epoch loop unless its length is what was declared: a mark may take longer than a turn of such a loop."""

_EMPTY: dict[None, Any] = {}

_second: Callable[[None, Any], Any] = _EMPTY.get
"""Gives back its second argument: the empty dict holds no key None. Unlike a function of ours it leaves no
frame in a traceback, and unlike `zip` it keeps no reference to the item."""


class EpochSink(Protocol):
    """What a loop needs of a tracker."""

    @property
    def active(self) -> bool:
        """Whether marks still count."""

    @property
    def epochs_declared(self) -> int | None:
        """How many epochs the user announced."""

    should_stop: bool
    marked_by_hand: bool

    def declare(self, epochs: int) -> None:
        """Take the length of the loop for the number of epochs, if none was announced."""

    def begin_epoch(self) -> None:
        """Begin an epoch."""

    def end_epoch(self) -> None:
        """End it. A question may be asked here."""

    def cut_epoch(self) -> None:
        """End it as one that was cut short."""

    def step(self, done: int | None = None, total: int | None = None, source: str = "steps") -> None:
        """Let what waits for the main thread run, within an epoch of which so many steps are done."""


# -- what a cell holds ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loop:
    """One `for` that may turn out to be the epoch loop.

    Attributes
    ----------
    key
        Unique in this process.
    line
        Its line in the source that was parsed, from 1.
    named
        The target or what it iterates over is called "epoch" something.
    nested
        It has a loop in it.
    length
        As far as the text and the numbers in the namespace tell it.
    function
        The function it stands in; "" for the cell itself.
    inner
        It stands directly in another loop that is short: a sweep over settings, each with its epochs.
    """

    key: int
    line: int
    named: bool
    nested: bool
    length: int | None = None
    function: str = ""
    inner: bool = False

    @property
    def rank(self) -> tuple[bool, bool]:
        """How much it looks like an epoch loop."""
        return (self.named, self.nested)


@dataclass(frozen=True, slots=True)
class Plan:
    """The loops of a cell in the order of its text, and whether it marks its epochs itself."""

    loops: tuple[Loop, ...] = ()
    by_hand: bool = False


def is_epoch_loop(
    loop: Loop, length: int | None, declared: int | None, plan: Plan, refused: frozenset[int] = frozenset()
) -> bool:
    """Decide, as a loop is entered, whether its turns are the epochs.

    The length that was declared decides. Where it does not, the loop that looks most like an epoch loop is
    taken, but only once no other loop of the cell may still turn out to have that length. One that is
    known to have another length must look like an epoch loop: the training may be out of sight.

    Parameters
    ----------
    loop, length
        The loop and its length; None if it cannot be known.
    declared
        How many epochs were declared; None if none were.
    plan, refused
        The cell, and the keys of its loops that this function has already refused.
    """
    if declared is not None and length == declared:
        return True
    if loop.inner or loop not in plan.loops:
        return False
    if length is not None and length > many(loop, declared):
        return False
    if None not in (length, declared) and not (loop.named or loop.nested):
        return False
    others = [other for other in plan.loops if other.key != loop.key and other.key not in refused]
    if declared is not None and any(
        other.length == declared or (other.length is None and not other.inner and other.rank >= loop.rank)
        for other in others
    ):
        return False
    return not any(other.rank > loop.rank and not other.inner for other in others)


def many(loop: Loop, declared: int | None) -> int:
    """How many turns a loop of another length than the declared one may have as an epoch loop."""
    return max(MANY * 10 if loop.named else MANY, 10 * (declared or 0))


# -- the dispatcher ------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Watch:
    """One tracked cell while it runs: which loop is the epoch loop, and what became of it."""

    sink: EpochSink
    plan: Plan
    loop: Loop | None = None
    length: int | None = None
    matched: bool = False
    turns: int = 0
    is_open: bool = False
    exited: bool = False
    fault: BaseException | None = None
    handed_over: bool = False
    stopped: bool = False
    again: list[Loop] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    hot: dict[int, float] = field(default_factory=dict)
    pid: int = field(default_factory=os.getpid)
    thread: int = field(default_factory=threading.get_ident)
    _stepped_s: float = 0.0
    _running: bool = False

    @property
    def marks(self) -> bool:
        """Whether its marks count: the run goes on, and the user's own code marks nothing."""
        return self.sink.active and self.fault is None and not self.sink.marked_by_hand

    @property
    def here(self) -> bool:
        """Whether the cell runs in this process and thread: a forked or started worker marks nothing."""
        return os.getpid() == self.pid and threading.get_ident() == self.thread

    def take(self, loop: Loop, length: int | None) -> bool:
        """Decide on a loop that is being entered."""
        declared = self.sink.epochs_declared
        if self.plan.by_hand or not self.marks:
            return False
        if self.loop is not None:
            if not self._running and length is not None and length == declared:
                self.again.append(loop)
            return False
        if not is_epoch_loop(loop, length, declared, self.plan, frozenset(self.refused)):
            self.refused.add(loop.key)
            return False
        self.loop, self.length, self.matched = loop, length, length is not None and length == declared
        self._running = True
        if declared is None and length:
            self.sink.declare(length)
        return True

    def begin(self) -> None:
        """An epoch begins, unless what prepared its item has begun one by hand."""
        if self.marks:
            self._call(self.sink.begin_epoch)
            self.is_open = True

    def end(self) -> None:
        """The epoch that is open, if one is, ends."""
        __tracebackhide__ = True
        self._close(self.sink.end_epoch)

    def got(self, _item: object) -> bool:
        """An item came of an iterable of unknown length: the epoch begins, the item is let through."""
        self.begin()
        return True

    def step(self, now_s: float, key: int, done: int, total: int | None) -> None:
        """A step of an epoch has passed by: so many of so many of that loop are done."""
        __tracebackhide__ = True
        if now_s - self._stepped_s >= STEP_S:
            self._call(lambda: self.sink.step(done, total, f"loop {key}"))
            self._stepped_s = time.perf_counter()

    def is_stopping(self, key: int) -> bool:
        """Whether a Stop has just ended this loop. Called again later, it runs as it always did."""
        return self.stopped and self._running and self.loop is not None and self.loop.key == key

    def leave(self) -> None:
        """The loop is left by its end, `break` or `return`: an open epoch is complete."""
        __tracebackhide__ = True
        self._running = False
        self.turns += self.is_open
        self.end()

    def caught(self) -> None:
        """An exception may have left the loop. The tracker would cut the epoch at the cell's end."""
        if self.exited and self.is_open:
            self._running = False
            self._close(self.sink.cut_epoch)

    def _close(self, how: Callable[[], None]) -> None:
        __tracebackhide__ = True
        if self.is_open:
            self.is_open = False
            if self.sink.marked_by_hand:
                self.handed_over = True  # the user's own code has taken over that epoch
            else:
                self._call(how)

    def _call(self, what: Callable[[], None]) -> None:
        # IPython leaves out frames of that mark: an interrupt while we wait is one of the user's loop.
        __tracebackhide__ = True
        try:
            what()
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None
        except Exception as fault:
            # Our fault is told at the end of the cell; it must not stop the training.
            self.fault = self.fault or fault


class Loops:
    """What rewritten loops call. Does nothing while no cell is tracked.

    Rewritten code may be called long after its cell: a function of it is still there. So there is one of
    these for the life of the process.
    """

    def __init__(self) -> None:
        self.known: dict[int, Loop] = {}
        self._watch: Watch | None = None
        self._rest: dict[int, Iterable[Any]] = {}
        self._lengths: dict[int, list[tuple[int | None, bool]]] = {}
        self._keys = itertools.count(1)

    def __bool__(self) -> bool:
        return self._watch is not None and self._watch.here

    def open(self, watch: Watch) -> None:
        """A tracked cell begins."""
        self._rest.clear()
        self._lengths.clear()
        self._watch = watch
        setattr(builtins, NAME, self)

    def close(self) -> Watch | None:
        """It has ended, or its run has."""
        watch, self._watch = self._watch, None
        return watch

    def new_key(self) -> int:
        """A number for a loop."""
        return next(self._keys)

    # What follows is called by rewritten cells.

    def look(self, key: int, iterable: Any) -> Any:
        """Note the length of what stands within `enumerate`, `zip`, `tqdm`; give it back as it is."""
        if self:
            self._lengths.setdefault(key, []).append((length_of(iterable), is_sure(iterable)))
        return iterable

    def epochs(self, key: int, iterable: Any) -> Any:
        """What the watched copy of a loop iterates over: nothing if this is not the epoch loop."""
        watch, loop = self._watch, self.known.get(key)
        if watch is None or loop is None or not watch.here:
            self._rest[key] = iterable
            return ()
        inside = self._lengths.pop(key, [])
        length = length_of(iterable)
        sure = all(each for _, each in inside) if inside else is_sure(iterable)
        if length is None:
            length = min((known for known, _ in inside if known is not None), default=None)
        if not watch.take(loop, length):
            self._rest[key] = iterable
            return ()
        iterator = _iterator(iterable)
        if iterator is None:
            return iterable
        marks = self._marks(watch, key, iterator, length if sure else None)
        items: Iterator[Any] = map(_second, marks, iterator)
        return items if sure else filter(watch.got, items)

    def goes_on(self, key: int) -> bool:
        """Whether the loop goes on after its watched copy, if only to its `else`."""
        watch = self._watch
        if watch is not None and watch.loop is not None and watch.loop.key == key and watch.here:
            watch.caught()  # no item came, though one was to come: no epoch
        return watch is None or not watch.is_stopping(key)

    def rest(self, key: int) -> Any:
        """What the plain copy of a loop iterates over: all, what the watched copy has left, or nothing."""
        return self._rest.pop(key, ())

    def left(self, key: int, value: Any = None) -> Any:
        """The loop with its `else` is over, and not by an exception. Gives back what a `return` returns."""
        watch = self._watch
        if watch is not None and watch.loop is not None and watch.loop.key == key and watch.here:
            watch.leave()
        self._rest.pop(key, None)
        return value

    def caught(self) -> None:
        """An `except` has begun or a `with` is over: an exception that left the loop may have ended here."""
        if self and self._watch is not None:
            self._watch.caught()

    def steps(self, key: int, iterable: Any) -> Any:
        """What the probed copy of a step loop iterates over."""
        watch = self._watch
        if (
            watch is None
            or not watch.is_open
            or not watch.here
            or time.perf_counter() - watch.hot.get(key, float("-inf")) < AGAIN_S
        ):
            self._rest[key] = iterable
            return ()
        iterator = _iterator(iterable)
        if iterator is None:
            return iterable
        return map(_second, self._probe(watch, key, iterator, length_of(iterable)), iterator)

    def _marks(self, watch: Watch, key: int, iterator: Iterator[Any], length: int | None) -> Iterator[None]:
        """Yield each time before the loop asks for an item; end when the plain copy is to take over.

        An epoch lasts from one question for an item to the next, so that what an iterator does to prepare it
        belongs to it. If the length is not known, nobody knows whether an item will come of a question: then
        the epoch begins when it has come (`Watch.got`).
        """
        __tracebackhide__ = True
        sink = watch.sink
        limit = None
        if not watch.matched and watch.loop is not None:
            limit = many(watch.loop, sink.epochs_declared)
        asked = 0
        try:
            while True:
                watch.turns = asked  # before its end, at which a question may be interrupted
                watch.end()
                if sink.should_stop:
                    watch.stopped = True
                    return
                if self._watch is not watch or not watch.marks or asked == limit:
                    watch.handed_over = True
                    self._rest[key] = iterator
                    return
                if length is not None and asked < length:
                    watch.begin()
                yield
                asked += 1
        finally:
            watch.exited = True

    def _probe(self, watch: Watch, key: int, iterator: Iterator[Any], length: int | None) -> Iterator[None]:
        """Yield before each item and pass steps on, as long as the items take their time."""
        __tracebackhide__ = True
        clock = time.perf_counter
        done = 0
        began_s = clock()
        watch.step(began_s, key, done, length)
        while True:
            for _ in range(PROBE):
                yield
                done += 1
                watch.step(clock(), key, done, length)
            now_s = clock()
            if now_s - began_s < PROBE * HOT_S:
                watch.hot[key] = now_s
                self._rest[key] = iterator
                return
            began_s = now_s


LOOPS = Loops()
"""The dispatcher of this process."""


def _iterator(iterable: Any) -> Iterator[Any] | None:
    """Its iterator; None if it has none. The user's own `for` then says so, in the user's own line."""
    try:
        iterator: Iterator[Any] = iter(iterable)
    except Exception:  # whatever the user's class raises, it raises again for the user's loop
        return None
    return iterator


def length_of(iterable: Any) -> int | None:
    """How many items an iterable will give, as far as it tells without being asked for one."""
    for tell in (operator.length_hint, _total):
        try:
            length = tell(iterable, -1)
        except Exception:  # noqa: S112 - any object may be iterated over, and its __len__ do anything
            continue
        if isinstance(length, int) and length >= 0:
            return length
    return None


def _total(iterable: Any, default: int) -> Any:
    """The length that a progress bar was told."""
    return getattr(iterable, "total", default)


def is_sure(iterable: Any) -> bool:
    """Whether it will give as many items as it says: a list may grow, and a progress bar was only told."""
    try:
        told = hasattr(iterable, "total")
    except Exception:  # any object may be iterated over
        told = True
    return not told and not isinstance(iterable, MutableSequence) and length_of(iterable) is not None
