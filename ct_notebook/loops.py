"""A cell's syntax tree and a tracker come in; the same cell comes out, with its epoch loop watched.

A loop is watched by what it iterates over, never by a call in its body. Each outermost ``for`` becomes ::

    for epoch in __ct_loops__.epochs(7, range(50)):     # passes the epochs, or nothing at all
        ...body, its direct loops as step loops...
    else:
        if __ct_loops__.goes_on(7):                     # false after a Stop: then it was a `break`
            for epoch in __ct_loops__.rest(7):          # all of it at full speed, or what is left
                ...body as it was...
            else:
                ...else as it was...
    __ct_loops__.left(7)                                # not after an exception

so a loop that is not the epoch loop costs a few calls when it is entered and nothing for each item, and
`break`, `continue`, `else` and exceptions mean what they meant (`return x` of a function becomes
``return __ct_loops__.left(7, x)``). Where an exception that left the loop may end, at the head of an `except`
and after a `with`, stands ``__ct_loops__.caught()``. There is no `try`: with a `finally` around the loop,
IPython 9 shows the line of the loop instead of the line that failed. A step loop has the first two levels: it
is probed while its items are slow, and handed over to the plain copy once they are not.

What is handed to the two `for` is built of the interpreter's own iterators: where the user's iterable raises,
no frame of ours stands in the traceback.

In functions the whole stands behind ``if getattr(__import__("builtins"), "__ct_loops__", None):`` with the
loop as it was in the other branch: a function pickled to a process without this package runs there too.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import operator
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
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

_WRAPPERS = frozenset({"enumerate", "iter", "list", "reversed", "tqdm", "track", "trange", "tuple", "zip"})
"""Calls whose first argument (all of them for zip) tells the length when the result does not."""

_EPOCH_MARKS = frozenset({"epoch_end", "epoch_start", "epochs"})


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

    def step(self) -> None:
        """Let what waits for the main thread run, within an epoch."""


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
        self._close(self.sink.end_epoch)

    def got(self, _item: object) -> bool:
        """An item came of an iterable of unknown length: the epoch begins, the item is let through."""
        self.begin()
        return True

    def step(self, now_s: float) -> None:
        """A step of an epoch has passed by."""
        if now_s - self._stepped_s >= STEP_S:
            self._call(self.sink.step)
            self._stepped_s = time.perf_counter()

    def is_stopping(self, key: int) -> bool:
        """Whether a Stop has just ended this loop. Called again later, it runs as it always did."""
        return self.stopped and self._running and self.loop is not None and self.loop.key == key

    def leave(self) -> None:
        """The loop is left by its end, `break` or `return`: an open epoch is complete."""
        self._running = False
        self.turns += self.is_open
        self.end()

    def caught(self) -> None:
        """An exception may have left the loop. The tracker would cut the epoch at the cell's end."""
        if self.exited and self.is_open:
            self._running = False
            self._close(self.sink.cut_epoch)

    def _close(self, how: Callable[[], None]) -> None:
        if self.is_open:
            self.is_open = False
            if self.sink.marked_by_hand:
                self.handed_over = True  # the user's own code has taken over that epoch
            else:
                self._call(how)

    def _call(self, what: Callable[[], None]) -> None:
        try:
            what()
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
        try:
            iterator = iter(iterable)
        except BaseException:
            # Not iterable: the user's own `for` says so, in the user's own line.
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
        try:
            iterator = iter(iterable)
        except BaseException:
            return iterable
        return map(_second, self._probe(watch, key, iterator), iterator)

    def _marks(self, watch: Watch, key: int, iterator: Iterator[Any], length: int | None) -> Iterator[None]:
        """Yield each time before the loop asks for an item; end when the plain copy is to take over.

        An epoch lasts from one question for an item to the next, so that what an iterator does to prepare it
        belongs to it. If the length is not known, nobody knows whether an item will come of a question: then
        the epoch begins when it has come (`Watch.got`).
        """
        sink = watch.sink
        limit = None
        if not watch.matched and watch.loop is not None:
            limit = many(watch.loop, sink.epochs_declared)
        asked = 0
        try:
            while True:
                watch.end()
                watch.turns = asked
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

    def _probe(self, watch: Watch, key: int, iterator: Iterator[Any]) -> Iterator[None]:
        """Yield before each item and pass steps on, as long as the items take their time."""
        clock = time.perf_counter
        began_s = clock()
        watch.step(began_s)
        while True:
            for _ in range(PROBE):
                yield
                watch.step(clock())
            now_s = clock()
            if now_s - began_s < PROBE * HOT_S:
                watch.hot[key] = now_s
                self._rest[key] = iterator
                return
            began_s = now_s


LOOPS = Loops()
"""The dispatcher of this process."""


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


# -- the syntax tree -----------------------------------------------------------------------------------


def plan_of(tree: ast.Module, names: Mapping[str, Any], *, tracker: str = "tracker") -> Plan:
    """Rewrite a cell in place and say what is in it.

    Parameters
    ----------
    tree
        The cell. Left as it is if it marks its epochs by hand.
    names
        The namespace that it will run in; read for numbers alone.
    tracker
        The name that marks by hand are made with; "" if that name is not ours.
    """
    if tracker and _marks_by_hand(tree, tracker):
        return Plan(by_hand=True)
    rewriter = _Rewriter(_numbers(tree, names), _functions(tree))
    tree.body = rewriter.block(tree.body)
    LOOPS.known.update({loop.key: loop for loop in rewriter.loops})
    return Plan(tuple(rewriter.loops))


def check(tree: ast.Module) -> None:
    """Compile a cell as IPython does, statement by statement, without a warning that it will give itself.

    Raises
    ------
    SyntaxError
        It parses, but does not compile.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for node in ast.fix_missing_locations(tree).body:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile(ast.Module([node], []), "<cell>", "exec", flags, dont_inherit=True)


def _marks_by_hand(tree: ast.Module, tracker: str) -> bool:
    stores = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return tracker not in stores and any(
        isinstance(node, ast.Attribute)
        and node.attr in _EPOCH_MARKS
        and isinstance(node.value, ast.Name)
        and node.value.id == tracker
        for node in ast.walk(tree)
    )


def _numbers(tree: ast.Module, names: Mapping[str, Any]) -> dict[str, int]:
    """Names that stand for one whole number throughout the cell."""
    constants = {
        id(target): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    assigned: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.setdefault(node.id, []).append(constants.get(id(node)))
    once = {name: values[0] for name, values in assigned.items() if len(values) == 1}
    found = {**{name: value for name, value in names.items() if name not in assigned}, **once}
    return {name: value for name, value in found.items() if type(value) is int}


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.Module) -> set[_Function]:
    """Those functions of the cell whose loops may be rewritten.

    They are called by the cell itself, by name and outside of any loop: what is called in a loop would pay
    for it each time. What is decorated or passed on as a value may be compiled by others (numba, torch, jax),
    who would not know what to do with the rewritten form.
    """
    calls = _Calls()
    calls.visit(tree)
    wanted: set[str] = set()
    ahead = set(calls.once.get("", ()))
    while ahead:
        name = ahead.pop()
        if name in calls.defined and name not in wanted:
            wanted.add(name)
            ahead |= calls.once.get(name, set())
    names = wanted - calls.often - calls.passed_on
    return {node for name in names for node in calls.defined[name] if not node.decorator_list}


class _Calls(ast.NodeVisitor):
    """Which names are called once by which function, which in loops, and which are used without a call.

    A method is known as `.fit`, so that `model.train()` is no call of a function `train`.
    """

    def __init__(self) -> None:
        self.defined: dict[str, list[_Function]] = {}
        self.once: dict[str, set[str]] = {}
        self.often: set[str] = set()
        self.passed_on: set[str] = set()
        self._function = ""
        self._dot = ""
        self._in_loop = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._dot = self._dot, "."
        self.generic_visit(node)
        self._dot = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._enter(node)

    def _enter(self, node: _Function) -> None:
        for outside in (*node.decorator_list, *node.args.defaults):
            self.visit(outside)
        before = self._function, self._dot, self._in_loop
        name = self._dot + node.name
        self.defined.setdefault(name, []).append(node)
        self._function, self._dot, self._in_loop = name, "", 0
        for statement in node.body:
            self.visit(statement)
        self._function, self._dot, self._in_loop = before

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop(*node.body)
        for statement in node.orelse:
            self.visit(statement)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.visit_For(node)

    def visit_While(self, node: ast.While) -> None:
        self._loop(node.test, *node.body, *node.orelse)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            self._loop(*ast.iter_child_nodes(node))
        else:
            super().generic_visit(node)

    def _loop(self, *nodes: ast.AST) -> None:
        self._in_loop += 1
        for node in nodes:
            self.visit(node)
        self._in_loop -= 1

    def visit_Call(self, node: ast.Call) -> None:
        name = ("." if isinstance(node.func, ast.Attribute) else "") + _last_name(node.func)
        if self._in_loop:
            self.often.add(name)
        else:
            self.once.setdefault(self._function, set()).add(name)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            self.visit(node.func)
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.passed_on.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.passed_on.add("." + node.attr)
        self.visit(node.value)


def _last_name(node: ast.expr) -> str:
    """`train` of `train` and of `trainer.train`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class _Rewriter:
    """Rewrites the outermost loops of a block, and notes them."""

    def __init__(self, numbers: Mapping[str, int], functions: set[_Function]) -> None:
        self.loops: list[Loop] = []
        self._numbers = numbers
        self._functions = functions

    def block(self, statements: list[ast.stmt], function: str = "") -> list[ast.stmt]:
        """The same statements, with their outermost loops rewritten."""
        return [self._statement(statement, function) for statement in statements]

    def _statement(self, node: ast.stmt, function: str) -> ast.stmt:
        if isinstance(node, ast.For):
            return self._outermost(node, function)
        if isinstance(node, _Function):
            if node in self._functions:
                node.body = self.block(node.body, node.name)
        elif isinstance(node, ast.ClassDef):
            if not node.decorator_list:
                node.body = [
                    self._statement(part, function) if isinstance(part, _Function) else part
                    for part in node.body
                ]
        else:
            before = len(self.loops)
            for statements in _blocks(node):
                statements[:] = self.block(statements, function)
            if not function or len(self.loops) > before:
                return self._note_exceptions(node, function)
        return node

    def _note_exceptions(self, node: ast.stmt, function: str) -> ast.stmt:
        """The same statement, which tells where an exception that left a loop ends."""

        def note(place: ast.stmt | ast.excepthandler) -> ast.stmt:
            told: ast.stmt = ast.Expr(_call("caught"))
            told = ast.If(_guard(), [told], []) if function else told
            return ast.fix_missing_locations(ast.copy_location(told, place))

        for handler in getattr(node, "handlers", ()):
            handler.body.insert(0, note(handler))
        if isinstance(node, ast.With | ast.AsyncWith):
            return ast.fix_missing_locations(ast.copy_location(_together(node, note(node)), node))
        return node

    def _outermost(self, node: ast.For, function: str) -> ast.stmt:
        if _changes_scope(node):
            return node
        length = self._length(node.iter)
        loop = self._note(node, length, function)
        original = copy.deepcopy(node) if function else None
        plain: list[ast.stmt] = copy.deepcopy(node.body)
        if length is not None and length <= MANY:
            plain = [self._sweep(statement, function) for statement in plain]
        new: ast.stmt = self._rewritten(node, loop, plain)
        if original is not None:
            new = ast.If(_guard(), [new], [original])
        return _placed(new, node)

    def _sweep(self, node: ast.stmt, function: str) -> ast.stmt:
        """A loop directly in a short outermost loop that will not be the epoch loop may be the epoch loop."""
        if isinstance(node, ast.For):
            loop = self._note(node, self._length(node.iter), function, inner=True)
            return _placed(self._rewritten(node, loop, copy.deepcopy(node.body)), node)
        for statements in _blocks(node):
            statements[:] = [self._sweep(statement, function) for statement in statements]
        return node

    def _note(self, node: ast.For, length: int | None, function: str, *, inner: bool = False) -> Loop:
        heads = (*ast.walk(node.target), *ast.walk(node.iter))
        loop = Loop(
            key=LOOPS.new_key(),
            line=node.lineno,
            named=any("epoch" in _last_name(part).lower() for part in heads if isinstance(part, ast.expr)),
            nested=any(
                isinstance(part, ast.For | ast.AsyncFor | ast.While)
                for statement in node.body
                for part in ast.walk(statement)
            ),
            length=length,
            function=function,
            inner=inner,
        )
        self.loops.append(loop)
        return loop

    def _rewritten(self, node: ast.For, loop: Loop, plain: list[ast.stmt]) -> ast.stmt:
        watched = [_with_steps(statement) for statement in copy.deepcopy(node.body)]
        if loop.function:
            watched = _Returns(loop.key).block(watched)
        iterable = _looked_into(node.iter, loop.key, outermost=True)
        rest = ast.For(copy.deepcopy(node.target), _call("rest", loop.key), plain, node.orelse)
        goes_on = ast.If(_call("goes_on", loop.key), [rest], [])
        first = ast.For(node.target, _call("epochs", loop.key, iterable), watched, [goes_on])
        return _together(first, ast.Expr(_call("left", loop.key)))

    def _length(self, node: ast.expr) -> int | None:
        """The length of what a loop iterates over, as far as the text tells it."""
        if isinstance(node, ast.List | ast.Tuple):
            return None if any(isinstance(item, ast.Starred) for item in node.elts) else len(node.elts)
        if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
            return None
        name = _last_name(node.func)
        if name in {"range", "trange"}:
            bounds = [self._number(argument) for argument in node.args]
            known = [bound for bound in bounds if bound is not None]
            if 1 <= len(known) == len(bounds) <= 3 and known[2:] != [0]:
                return len(range(*known))
        elif name == "zip" and node.args and not node.keywords:
            lengths = [self._length(argument) for argument in node.args]
            known = [length for length in lengths if length is not None]
            return min(known) if len(known) == len(lengths) else None
        elif name in _WRAPPERS and node.args:
            return self._length(node.args[0])
        return None

    def _number(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        return self._numbers.get(node.id) if isinstance(node, ast.Name) else None


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists of `if`, `with`, `try` and `match`, which run at most once each time."""
    if isinstance(node, ast.If | ast.With | ast.AsyncWith | ast.Try) or type(node).__name__ == "TryStar":
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if statements:
                yield statements
        for handler in getattr(node, "handlers", ()):
            yield handler.body
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body


def _changes_scope(node: ast.For) -> bool:
    """Whether the body holds a `global` or `nonlocal`, which may not stand after a first copy of itself."""
    ahead: list[ast.AST] = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, ast.Global | ast.Nonlocal):
            return True
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            ahead.extend(ast.iter_child_nodes(part))
    return False


def _with_steps(node: ast.stmt) -> ast.stmt:
    """A statement of an epoch, with the loops that stand directly in it as step loops."""
    if isinstance(node, ast.For):
        key = LOOPS.new_key()
        rest = ast.For(copy.deepcopy(node.target), _call("rest", key), copy.deepcopy(node.body), node.orelse)
        return _placed(ast.For(node.target, _call("steps", key, node.iter), node.body, [rest]), node)
    for statements in _blocks(node):
        statements[:] = [_with_steps(statement) for statement in statements]
    return node


def _looked_into(node: ast.expr, key: int, *, outermost: bool = False) -> ast.expr:
    """The same expression, which tells on its way how long its parts are."""
    name = _last_name(node.func) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and name in _WRAPPERS - {"trange"} and node.args:
        last = len(node.args) if name == "zip" else 1
        node.args[:last] = [_looked_into(argument, key) for argument in node.args[:last]]
        return node
    return (
        node
        if outermost or isinstance(node, ast.Starred)
        else ast.copy_location(_call("look", key, node), node)
    )


class _Returns(ast.NodeTransformer):
    """Has each `return` of a function's loop end the epoch, once its value is there."""

    def __init__(self, key: int) -> None:
        self._key = key

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The same statements, with their returns telling."""
        module = ast.Module(statements, [])
        self.generic_visit(module)
        return module.body

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return node
        return super().visit(node)

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is None:
            # It stays bare: an async generator may return nothing else.
            told = ast.Expr(_call("left", self._key))
            return [ast.fix_missing_locations(ast.copy_location(told, node)), node]
        told_value = ast.copy_location(_call("left", self._key, node.value), node)
        return ast.copy_location(ast.Return(ast.fix_missing_locations(told_value)), node)


def _together(*statements: ast.stmt) -> ast.stmt:
    """Several statements as one: IPython displays the last one of a cell."""
    return ast.If(ast.Constant(value=True), [*statements], [])


def _call(method: str, key: int | None = None, *arguments: ast.expr) -> ast.Call:
    dispatcher = ast.Name(NAME, ast.Load())
    first = [] if key is None else [ast.Constant(key)]
    return ast.Call(ast.Attribute(dispatcher, method, ast.Load()), [*first, *arguments], [])


def _guard() -> ast.expr:
    """``getattr(__import__("builtins"), "__ct_loops__", None)``: true only while a tracked cell runs here."""
    builtins_module = ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant("builtins")], [])
    arguments: list[ast.expr] = [builtins_module, ast.Constant(NAME), ast.Constant(None)]
    return ast.Call(ast.Name("getattr", ast.Load()), arguments, [])


def _placed(new: ast.stmt, old: ast.For) -> ast.stmt:
    """Give what was added the place of the loop's first line, so that no line of a traceback changes."""
    head = {
        "lineno": old.lineno,
        "col_offset": old.col_offset,
        "end_lineno": old.iter.end_lineno,
        "end_col_offset": old.iter.end_col_offset,
    }
    for node in ast.walk(new):
        if isinstance(node, ast.stmt | ast.expr) and not hasattr(node, "lineno"):
            for name, value in head.items():
                setattr(node, name, value)
    return new
