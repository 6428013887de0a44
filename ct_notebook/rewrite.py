"""A cell's syntax tree comes in; the same cell comes out, with its loops asking `loops.LOOPS` what to do.

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

In functions the whole stands behind ``if getattr(__import__("builtins"), "__ct_loops__", None):`` with the
loop as it was in the other branch: a function pickled to a process without this package runs there too.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from .loops import LOOPS, MANY, NAME, Loop, Plan

_WRAPPERS = frozenset({"enumerate", "iter", "list", "reversed", "tqdm", "track", "trange", "tuple", "zip"})
"""Calls whose first argument (all of them for zip) tells the length when the result does not."""

_EPOCH_MARKS = frozenset({"epoch_end", "epoch_start", "epochs"})


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
