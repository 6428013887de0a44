"""The rewritten cell does what the cell did, and its epochs are marked."""

from __future__ import annotations

import ast
import dis
import os
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ct_notebook import loops
from ct_notebook.loops import LOOPS, Loop, Plan, Watch, is_epoch_loop, length_of
from ct_notebook.rewrite import plan_of


class Recorder:
    """A tracker that writes down what it is told."""

    def __init__(self, declared: int | None = None, stop_after: int | None = None) -> None:
        self.epochs_declared = declared
        self.stop_after = stop_after
        self.active = True
        self.should_stop = False
        self.marked_by_hand = False
        self.marks: list[str] = []
        self.steps = 0
        self.told: list[tuple[str, int | None, int | None]] = []

    def declare(self, epochs: int) -> None:
        self.epochs_declared = epochs

    def begin_epoch(self) -> None:
        self.marks.append("begin")

    def end_epoch(self) -> None:
        self.marks.append("end")
        self.should_stop = self.marks.count("end") == self.stop_after

    def cut_epoch(self) -> None:
        self.marks.append("cut")

    def step(self, done: int | None = None, total: int | None = None, source: str = "steps") -> None:
        self.steps += 1
        self.told.append((source, done, total))


def rewritten(source: str, names: Mapping[str, Any] | None = None) -> tuple[Any, Plan]:
    tree = ast.parse(source)
    plan = plan_of(tree, names or {})
    ast.fix_missing_locations(tree)
    return compile(tree, "<cell>", "exec"), plan


@contextmanager
def tracked(plan: Plan, sink: Any) -> Iterator[Watch]:
    watch = Watch(sink, plan)
    LOOPS.open(watch)
    try:
        yield watch
    finally:
        LOOPS.close()


def run(
    source: str,
    declared: int | None = None,
    names: Mapping[str, Any] | None = None,
    sink: Recorder | None = None,
) -> tuple[dict[str, Any], Recorder, Watch]:
    source = textwrap.dedent(source)
    sink = sink or Recorder(declared)
    code, plan = rewritten(source, names)
    namespace: dict[str, Any] = {"__name__": "__main__", **(names or {})}
    with tracked(plan, sink) as watch:
        exec(code, namespace)
    return namespace, sink, watch


BOTH = ["begin", "end"]

CELLS = {
    "range": "for e in range(4): log.append(e)",
    "enumerate": "for i, e in enumerate(range(4), 1): log.append((i, e))",
    "zip": "for a, b in zip(range(4), 'abcdef'): log.append((a, b))",
    "list": "for e in [1, 2, 3, 4]: log.append(e)",
    "iter": "for e in iter([1, 2, 3, 4]): log.append(e)",
    "reversed": "for e in reversed(range(4)): log.append(e)",
    "break and else": """
        for e in range(4):
            log.append(e)
            if e == 1: break
        else:
            log.append('else')
        """,
    "continue and else": """
        for e in range(4):
            if e == 1: continue
            log.append(e)
        else:
            log.append('else')
        log.append('after')
        """,
    "break in a step loop": """
        for e in range(4):
            for b in range(100):
                if b == 3: break
                if b == 1: continue
                log.append((e, b))
            else:
                log.append('never')
            for b in 'xy':
                log.append(b)
            else:
                log.append('else')
        """,
    "a long step loop": """
        for e in range(4):
            for b in range(500):
                if b % 7: continue
                log.append(b)
                if b > 400: break
        """,
    "exception": """
        for e in range(4):
            log.append(e)
            for b in range(50):
                if e == 2 and b == 40: raise ValueError('mine')
        """,
    "caught": """
        try:
            for e in range(4):
                log.append(e)
                if e == 2: 1 / 0
        except ZeroDivisionError as error:
            log.append(str(error))
        finally:
            log.append('finally')
        """,
    "with, if and match": """
        import contextlib
        with contextlib.nullcontext() as n:
            if True:
                match 3:
                    case 3:
                        for e in range(4): log.append(e)
        """,
    "function": """
        def train(n):
            'A docstring.'
            for e in range(n):
                for b in range(30):
                    if e == 2 and b == 20: return e, b
                log.append(e)
        log.append(train(4))
        log.append(train.__doc__)
        """,
    "generator": """
        def train(n):
            for e in range(n):
                yield e
        for e in train(4): log.append(e)
        """,
    "method": """
        class Trainer:
            def fit(self, n):
                for self.epoch in range(n): log.append(self.epoch)
        Trainer().fit(4)
        """,
    "closure": """
        def train():
            seen = 0
            def one():
                nonlocal seen
                seen += 1
            for e in range(4): one()
            return seen
        log.append(train())
        """,
    "global in the body": """
        def train():
            for e in range(4):
                global last
                last = e
        train()
        log.append(last)
        """,
    "sweep": """
        for rate in [0.1, 0.2]:
            for e in range(4):
                log.append((rate, e))
        """,
    "restarting iterator": """
        class Loader:
            def __init__(self): self.at = 0
            def __iter__(self): return self
            def __next__(self):
                self.at += 1
                if self.at > 3:
                    self.at = 0
                    raise StopIteration
                return self.at
        loader = Loader()
        for e in range(4):
            for b in loader: log.append(b)
        """,
    "not iterable": "for e in 4: log.append(e)",
    "iterable that fails": """
        class Bad:
            def __iter__(self): raise OSError('no data')
        for e in Bad(): log.append(e)
        """,
    "length that fails": """
        class Odd:
            def __len__(self): raise OSError('no length')
            def __iter__(self): return iter('abcd')
        for e in Odd(): log.append(e)
        """,
    "targets": """
        class Box: pass
        box = Box(); cells = [0]
        for box.epoch, (cells[0], *rest) in [(1, 'abc'), (2, 'def')]: log.append((box.epoch, cells[0], rest))
        """,
    "nothing": "for e in []: log.append(e)\nelse: log.append('else')",
    "while": """
        e = 0
        while e < 4:
            for b in range(3): log.append(b)
            e += 1
        """,
    "comprehension": "log += [e for e in range(4)]",
    "changed while iterated": """
        ahead = [1, 2]
        for e in ahead:
            log.append(e)
            if e < 4: ahead.append(e + 2)
        """,
}


def outcome(code: Any) -> tuple[list[Any], dict[str, Any], str]:
    namespace: dict[str, Any] = {"__name__": "__main__", "log": []}
    failure = ""
    try:
        exec(code, namespace)
    except Exception as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<cell>"
        ]
        ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == loops.__file__]
        failure = f"{error!r} at {lines} with {len(ours)} frames of ours"
    values = {name: value for name, value in namespace.items() if isinstance(value, int | str | list | tuple)}
    return namespace["log"], values, failure


@pytest.mark.parametrize("declared", [None, 4, 30, 99])
@pytest.mark.parametrize("name", CELLS)
def test_a_rewritten_cell_does_what_the_cell_does(name: str, declared: int | None) -> None:
    source = textwrap.dedent(CELLS[name])
    expected = outcome(compile(source, "<cell>", "exec"))
    code, plan = rewritten(source)
    with tracked(plan, Recorder(declared)):
        assert outcome(code) == expected
    assert outcome(code) == expected  # and so it does when no cell is tracked any more


@pytest.mark.parametrize(
    "name",
    [
        *("range", "enumerate", "zip", "list", "iter", "reversed", "continue and else", "a long step loop"),
        *("with, if and match", "generator", "method", "closure", "restarting iterator", "length that fails"),
    ],
)
def test_each_epoch_is_marked(name: str) -> None:
    _, sink, watch = run(CELLS[name], 4, {"log": []})
    assert sink.marks == BOTH * 4
    assert watch.loop is not None


@pytest.mark.parametrize(
    "source",
    [
        "from tqdm import tqdm\nfor e in tqdm(range(4), disable=True): pass",
        "from tqdm import trange\nfor e in trange(4, disable=True): pass",
        "from tqdm import tqdm\nfor i, e in enumerate(tqdm(range(4), disable=True)): pass",
        "from tqdm import tqdm\nfor i, e in tqdm(enumerate(range(4)), disable=True): pass",
        "from tqdm import tqdm\nfor e in tqdm((e for e in range(4)), total=4, disable=True): pass",
    ],
)
def test_a_progress_bar_is_looked_through(source: str) -> None:
    _, sink, watch = run(f"for i in range(3): pass\n{source}\nfor i in range(9): pass", 4)
    assert sink.marks == BOTH * 4
    assert watch.matched


def test_the_loop_of_the_declared_length_is_the_epoch_loop() -> None:
    source = "for i in range(a): pass\nfor e in range(b): pass\nfor i in range(c): pass"
    for names in ({"a": 3, "b": 5, "c": 7}, {"a": 1, "b": 5, "c": 4}):
        _, sink, watch = run(source, 5, names)
        assert sink.marks == BOTH * 5
        assert watch.loop is not None
        assert watch.loop.line == 2


def test_a_length_that_shows_only_at_run_time_is_waited_for() -> None:
    _, sink, watch = run("a, b = map(int, '35')\nfor i in range(a): pass\nfor e in range(b): pass", 5)
    assert sink.marks == BOTH * 5
    assert watch.matched


def test_of_two_loops_of_that_length_the_first_counts_and_the_second_is_told() -> None:
    _, sink, watch = run("for e in range(5): pass\nfor i in range(5): pass", 5)
    assert sink.marks == BOTH * 5
    assert [loop.line for loop in watch.again] == [2]


def test_a_loop_within_the_epoch_loop_of_the_same_length_is_not_counted() -> None:
    _, sink, watch = run("for e in range(5):\n    for i in range(5): pass", 5)
    assert sink.marks == BOTH * 5
    assert watch.again == []


def test_a_single_loop_of_another_length_is_taken() -> None:
    for source in ("for epoch in range(50): pass", "for e in range(50):\n    for b in 'ab': pass"):
        _, sink, watch = run(source, 100)
        assert sink.marks == BOTH * 50
        assert (watch.matched, watch.length, sink.epochs_declared) == (False, 50, 100)


@pytest.mark.parametrize(
    "source",
    [
        "for name in ['a', 'b']: pass\nbig()",
        "def train(fold):\n    for e in range(4): pass\nfor fold in range(3): train(fold)",
    ],
)
def test_a_loop_of_another_length_that_does_not_look_like_training_is_not_taken(source: str) -> None:
    _, sink, watch = run(source, 4, {"big": list})
    assert (sink.marks, watch.loop) == ([], None)


def test_without_a_declared_number_the_length_of_the_loop_is_declared() -> None:
    _, sink, _ = run("for i in range(3): pass\nfor epoch in range(7): pass")
    assert sink.marks == BOTH * 7
    assert sink.epochs_declared == 7


def test_a_loop_with_a_loop_in_it_looks_more_like_training() -> None:
    _, sink, watch = run("for i in range(3): pass\nfor e in range(7):\n    for b in range(2): pass")
    assert sink.marks == BOTH * 7
    assert watch.loop is not None
    assert watch.loop.line == 2


def test_a_sweep_has_its_epochs_in_the_inner_loop() -> None:
    source = "for rate in [1, 2]:\n    for e in range(4):\n        for b in range(3): pass"
    _, sink, watch = run(source, 4)
    assert sink.marks == BOTH * 4
    assert [loop.line for loop in watch.again] == [2]


def test_a_generator_without_a_length_is_taken_and_its_last_question_is_no_epoch() -> None:
    _, sink, watch = run("for e in (i for i in range(4)): pass")
    assert sink.marks == BOTH * 4
    assert (watch.length, watch.turns) == (None, 4)


@pytest.mark.parametrize(
    "head", ["tqdm(items(), total=6, disable=True)", "bar", "enumerate(bar)", "zip(bar, range(9))"]
)
def test_the_total_of_a_progress_bar_is_a_hint(head: str) -> None:
    source = "def items():\n    yield from 'abcd'\nbar = tqdm(items(), total=6, disable=True)\n"
    from tqdm import tqdm

    _, sink, watch = run(f"{source}for epoch in {head}: pass", names={"tqdm": tqdm})
    assert sink.marks == BOTH * 4
    assert watch.turns == 4


def test_items_that_were_promised_and_do_not_come_are_no_epoch() -> None:
    source = """
        class Data:
            def __len__(self): return 6
            def __iter__(self): return iter('abcd')
        for epoch in Data(): pass
        """
    _, sink, watch = run(source)
    assert sink.marks == [*BOTH * 4, "begin", "cut"]
    assert watch.turns == 4


@pytest.mark.parametrize("head", ["ahead", "enumerate(ahead)", "tqdm(ahead, disable=True)"])
def test_a_list_that_grows_while_it_is_looped_over_has_more_epochs(head: str) -> None:
    from tqdm import tqdm

    source = f"ahead = [1, 2]\nfor epoch in {head}:\n    if len(ahead) < 6: ahead.append(0)"
    _, sink, _ = run(source, names={"tqdm": tqdm})
    assert sink.marks == BOTH * 6


def test_what_an_iterator_of_known_length_prepares_belongs_to_its_epoch() -> None:
    source = """
        class Data:
            def __len__(self): return 2
            def __iter__(self):
                for i in range(2):
                    marks.append('prepare')
                    yield i
        for e in Data(): marks.append('body')
        """
    sink = Recorder(2)
    run(source, names={"marks": sink.marks}, sink=sink)
    assert sink.marks == ["begin", "prepare", "body", "end"] * 2


def test_a_long_loop_is_no_epoch_loop() -> None:
    for declared in (None, 50):
        _, sink, watch = run("s = 0\nfor i in range(20_000): s += i", declared)
        assert (sink.marks, watch.loop) == ([], None)


def test_a_loop_that_never_ends_is_let_go() -> None:
    source = "import itertools\nfor n in itertools.count():\n    if n == 5000: break"
    namespace, sink, watch = run(source)
    assert namespace["n"] == 5000
    assert sink.marks == BOTH * loops.MANY
    assert watch.handed_over


def test_a_stop_is_a_break() -> None:
    source = "for e in range(9):\n    pass\nelse:\n    log.append('else')\nlog.append('after')"
    names: dict[str, Any] = {"log": []}
    namespace, sink, _ = run(source, names=names, sink=Recorder(9, stop_after=3))
    assert sink.marks == BOTH * 3
    assert (namespace["e"], names["log"]) == (2, ["after"])


def test_a_stop_takes_no_further_item_from_the_iterator() -> None:
    namespace, _, _ = run("items = iter(range(9))\nfor e in items: pass", sink=Recorder(9, stop_after=3))
    assert list(namespace["items"]) == [3, 4, 5, 6, 7, 8]


def test_a_function_that_was_stopped_runs_when_it_is_called_again() -> None:
    source = "def train():\n    for e in range(9): log.append(e)\ntrain()\ntrain()"
    names: dict[str, Any] = {"log": []}
    run(source, names=names, sink=Recorder(9, stop_after=3))
    assert names["log"] == [0, 1, 2, *range(9)]


def test_a_break_ends_the_epoch_and_an_exception_leaves_it_open() -> None:
    _, broken, _ = run("for e in range(9):\n    if e == 2: break", 9)
    assert broken.marks == BOTH * 3
    sink = Recorder(9)
    with pytest.raises(ZeroDivisionError):
        run("for e in range(9):\n    1 / (2 - e)", sink=sink)
    assert sink.marks == [*BOTH * 2, "begin"]


def test_an_exception_that_is_caught_cuts_the_epoch_there() -> None:
    source = (
        "try:\n"
        "    for e in range(9):\n"
        "        1 / (2 - e)\n"
        "except ZeroDivisionError:\n"
        "    marks.append('caught')"
    )
    sink = Recorder(9)
    run(source, names={"marks": sink.marks}, sink=sink)
    assert sink.marks == [*BOTH * 2, "begin", "cut", "caught"]


@pytest.mark.parametrize("function", [False, True])
@pytest.mark.parametrize("head", ["with suppress(ZeroDivisionError):", "with box, suppress(Exception):"])
def test_an_exception_that_a_with_swallows_cuts_the_epoch_there(head: str, *, function: bool) -> None:
    from contextlib import nullcontext, suppress

    source = f"{head}\n    for e in range(9):\n        1 / (2 - e)\nmarks.append('after')"
    if function:
        source = "def train():\n" + textwrap.indent(source, "    ") + "\ntrain()"
    sink = Recorder(9)
    run(source, names={"marks": sink.marks, "suppress": suppress, "box": nullcontext()}, sink=sink)
    assert sink.marks == [*BOTH * 2, "begin", "cut", "after"]


def test_an_exception_that_left_a_function_is_cut_where_the_cell_catches_it() -> None:
    source = """
        def train():
            for e in range(9): 1 / (2 - e)
        try:
            train()
        except ZeroDivisionError:
            marks.append('caught')
        """
    sink = Recorder(9)
    run(source, names={"marks": sink.marks}, sink=sink)
    assert sink.marks == [*BOTH * 2, "begin", "cut", "caught"]


def test_an_exception_within_an_epoch_cuts_nothing() -> None:
    source = "for e in range(3):\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        pass"
    _, sink, _ = run(source, 3)
    assert sink.marks == BOTH * 3


def test_a_return_ends_the_epoch_after_its_value_is_there() -> None:
    source = """
        def late():
            marks.append('value')
            return 5
        def train():
            for e in range(9):
                if e == 1: return late()
        result = train()
        """
    sink = Recorder(9)
    namespace, _, _ = run(source, names={"marks": sink.marks}, sink=sink)
    assert sink.marks == [*BOTH, "begin", "value", "end"]
    assert namespace["result"] == 5


def test_a_return_without_a_value_stays_one() -> None:
    source = """
        import asyncio
        async def train():
            for epoch in range(9):
                yield epoch
                if epoch == 2: return
        async def all_of(epochs):
            seen = []
            async for epoch in epochs: seen.append(epoch)
            return seen
        epochs = train()
        seen = asyncio.run(all_of(epochs))
        """
    namespace, sink, _ = run(source, 9)
    assert namespace["seen"] == [0, 1, 2]
    assert sink.marks == BOTH * 3


@pytest.mark.parametrize(
    "source",
    [
        "def train(model):\n    for e in range(4): model.train()\ntrain(model)",
        "def fit(model):\n    for e in range(4):\n        model.fit(); keep(model.fit)\nfit(model)",
        "class T:\n    def fit(self):\n        for e in range(4): fit()\nfit = keep\nT().fit()",
        "class T:\n    def fit(self):\n        for e in range(4): pass\ndef fit(t):\n    t.fit()\nfit(T())",
    ],
)
def test_a_method_of_the_same_name_is_another_function(source: str) -> None:
    class Model:
        def train(self) -> None:
            pass

        fit = train

    def keep(*_: object) -> None:
        pass

    _, sink, _ = run(source, 4, {"model": Model(), "keep": keep})
    assert sink.marks == BOTH * 4


@pytest.mark.parametrize(
    "source",
    [
        "def same(f): return f\n@same\ndef train():\n    for e in range(4): pass\ntrain()",
        "def train():\n    for e in range(4): pass\nfor i in 'ab': train()",
        "def train():\n    for e in range(4): pass\nlist(map(lambda _: train(), 'ab'))",
        "def train():\n    for e in range(4): pass\nfast = train\ntrain()",
    ],
)
def test_functions_that_others_may_compile_or_that_loops_call_are_left_alone(source: str) -> None:
    tree = ast.parse(source)
    before = ast.dump(next(node for node in tree.body if getattr(node, "name", "") == "train"))
    plan_of(tree, {})
    assert ast.dump(next(node for node in tree.body if getattr(node, "name", "") == "train")) == before


@pytest.mark.parametrize("call", ["tracker.epoch_start()", "for e in tracker.epochs(4): pass"])
def test_marks_by_hand_win(call: str) -> None:
    source = f"for e in range(4):\n    {call}"
    tree = ast.parse(source)
    assert plan_of(tree, {}).by_hand
    assert ast.dump(tree) == ast.dump(ast.parse(source))


@pytest.mark.parametrize("items", ["range(4)", "(i for i in range(4))"])
def test_marks_by_hand_that_show_only_at_run_time_win_too(items: str) -> None:
    sink = Recorder(4)

    def one() -> None:
        sink.marked_by_hand = True
        sink.marks.append("by hand")

    _, _, watch = run(f"for epoch in {items}: one()", names={"one": one}, sink=sink)
    assert sink.marks == ["begin", *["by hand"] * 4]
    assert watch.handed_over


def test_a_tracker_that_the_cell_makes_itself_is_not_ours() -> None:
    assert not plan_of(ast.parse("tracker = Other()\nfor e in range(4): tracker.epoch_start()"), {}).by_hand


def test_another_thread_marks_nothing() -> None:
    source = "def train():\n    for e in range(4): log.append(e)\ntrain()"
    code, plan = rewritten(source)
    log: list[int] = []
    sink = Recorder(4)
    with tracked(plan, sink):
        thread = threading.Thread(target=exec, args=(code, {"log": log}))
        thread.start()
        thread.join()
    assert (log, sink.marks) == ([0, 1, 2, 3], [])


def test_a_forked_child_marks_nothing() -> None:
    code, plan = rewritten("for e in range(4): log.append(e)")
    sink = Recorder(4)
    with tracked(plan, sink):
        child = os.fork()
        if child == 0:
            log: list[int] = []
            try:
                exec(code, {"log": log})
            finally:
                os._exit(0 if (log, sink.marks) == ([0, 1, 2, 3], []) else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_function_of_a_tracked_cell_runs_where_the_package_is_absent(tmp_path: Path) -> None:
    import marshal

    code, _ = rewritten(
        "def train():\n    out = []\n    with memoryview(b''):\n        try:\n"
        "            for e in range(4):\n                out.append(e)\n            1 / 0\n"
        "        except ZeroDivisionError:\n            return out\ntrain()"
    )
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    (tmp_path / "code").write_bytes(marshal.dumps(namespace["train"].__code__))
    worker = (
        "import marshal, types, sys\n"
        "f = types.FunctionType(marshal.loads(open('code', 'rb').read()), {})\n"
        "assert f() == [0, 1, 2, 3] and 'ct_notebook' not in sys.modules"
    )
    subprocess.run([sys.executable, "-I", "-c", worker], cwd=tmp_path, check=True)


def test_a_failing_tracker_does_not_stop_the_training() -> None:
    class Broken(Recorder):
        def end_epoch(self) -> None:
            raise OSError(28, "disk full")

    namespace, _, watch = run("for e in range(4): pass", sink=Broken(4))
    assert namespace["e"] == 3
    assert isinstance(watch.fault, OSError)


def test_a_run_that_ends_within_the_loop_leaves_the_rest_alone() -> None:
    class Ending(Recorder):
        def end_epoch(self) -> None:
            super().end_epoch()
            self.active = self.marks.count("end") < 2

    namespace, sink, watch = run("for e in range(9): pass", sink=Ending(9))
    assert (namespace["e"], sink.marks) == (8, BOTH * 2)
    assert watch.handed_over


class Clock:
    """A clock that the steps of a loop put forward."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def perf_counter(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


def test_slow_steps_are_passed_on_five_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(loops, "time", clock)
    source = "for e in range(2):\n    for b in range(1000): pass_by(0.01)"
    _, sink, _ = run(source, 2, {"pass_by": clock.pass_by})
    assert 90 <= sink.steps <= 101


def test_a_hot_step_loop_gets_its_own_iterator_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(loops, "time", clock)
    asked: list[Any] = []
    rest = LOOPS.rest

    def noted(_: loops.Loops, key: int) -> Any:
        asked.append(rest(key))
        return asked[-1]

    monkeypatch.setattr(loops.Loops, "rest", noted)
    run("for e in range(1):\n    for b in range(100): pass_by(1e-4)", 1, {"pass_by": clock.pass_by})
    assert [type(rest) for rest in asked] == [type(iter(range(0))), tuple]


def test_a_step_loop_keeps_no_reference_to_its_item() -> None:
    source = """
        import gc, weakref
        class Batch: pass
        alive = []
        def batches():
            for _ in range(3): yield Batch()
        for e in range(1):
            for batch in batches():
                seen = weakref.ref(batch)
                del batch
                alive.append(seen() is not None)
        """
    namespace, _, _ = run(source, 1)
    assert namespace["alive"] == [False] * 3


def test_a_broken_step_loop_lets_its_iterator_go_at_once() -> None:
    source = """
        closed = []
        def batches(e):
            try:
                while True: yield e
            finally:
                closed.append(e)
        for e in range(2):
            for b in batches(e): break
            closed.append('next')
        """
    namespace, _, _ = run(source, 2)
    assert namespace["closed"] == [0, "next", 1, "next"]


def turns(code: Any) -> list[list[tuple[str, Any]]]:
    """The instructions of each innermost loop of a code object, without where they jump to."""
    found: list[list[tuple[str, Any]]] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "FOR_ITER":
            found.append([])
        elif found:
            jumps = instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
            found[-1].append((instruction.opname, None if jumps else instruction.argval))
            if "JUMP_BACKWARD" in instruction.opname or instruction.opname == "JUMP_ABSOLUTE":
                found.append([])
    return found


@pytest.mark.parametrize(
    "source",
    [
        "s = 0\nfor i in range(10**7): s += i",
        "s = 0\nfor e in range(3):\n    for i in range(10**7): s += i",
        "def train(s):\n    for e in range(3):\n        for i in range(10**7): s += i\ntrain(0)",
    ],
)
def test_at_full_speed_a_loop_runs_the_very_instructions_it_had(source: str) -> None:
    def innermost(code: Any) -> list[list[tuple[str, Any]]]:
        functions = [part for part in code.co_consts if hasattr(part, "co_code")]
        return [turn for part in (code, *functions) for turn in turns(part) if len(turn) > 2]

    wanted = [turn for turn in innermost(compile(source, "<cell>", "exec")) if ("BINARY_OP", 13) in turn]
    wanted = wanted or innermost(compile(source, "<cell>", "exec"))[-1:]
    # The last copy is the one that `rest` feeds.
    assert wanted[-1] in innermost(rewritten(source)[0])


@pytest.mark.parametrize(
    "loop", ["for epoch in slow: pass", "for epoch in range(2):\n    for x in slow: pass"]
)
def test_an_interrupt_while_a_loop_asks_for_its_iterator_is_one(loop: str) -> None:
    class Slow:
        asked = 0

        def __iter__(self) -> Iterator[int]:
            self.asked += 1
            if self.asked == 1:
                raise KeyboardInterrupt
            return iter((1, 2))

    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        run(loop, 2, {"slow": slow})
    assert slow.asked == 1


@pytest.mark.parametrize(
    ("iterable", "length"),
    [(range(3), 3), ([1], 1), (iter([1, 2]), 2), ({1: 2}, 1), ((i for i in "ab"), None), (3, None), ("", 0)],
)
def test_lengths_are_told_without_taking_an_item(iterable: Any, length: int | None) -> None:
    assert length_of(iterable) == length


A = Loop(1, 1, named=False, nested=False, length=3)
B = Loop(2, 2, named=False, nested=True, length=40)
C = Loop(3, 3, named=True, nested=False, length=None)


@pytest.mark.parametrize(
    ("loop", "length", "declared", "plan", "taken"),
    [
        (A, 3, 3, (A, B, C), True),  # the declared length decides
        (A, 3, 40, (A, B), False),  # another loop is known to have it
        (A, 3, 7, (A, B), False),  # neither has: the one with a loop in it
        (B, 40, 7, (A, B), True),
        (B, 40, 7, (B, C), False),  # C is called epoch, and its length is not known yet
        (C, None, 7, (B, C), True),
        (B, 40, None, (B,), True),
        (B, 10**7, None, (B,), False),
        (B, 10**7, 10**7, (B,), True),
        (A, 5, 7, (B,), False),  # a loop of an earlier cell counts by its length alone
        (A, 7, 7, (B,), True),
    ],
)
def test_which_loop_is_the_epoch_loop(
    loop: Loop, length: int | None, declared: int | None, plan: tuple[Loop, ...], *, taken: bool
) -> None:
    assert is_epoch_loop(loop, length, declared, Plan(plan)) is taken


def test_a_name_that_is_assigned_twice_has_no_known_length() -> None:
    source = (
        "n = 4\nm = 5\nn = f()\nfor e in range(n): pass\nfor e in range(m): pass\nfor e in range(k): pass"
    )
    assert [loop.length for loop in plan_of(ast.parse(source), {"k": 6, "n": 3}).loops] == [None, 5, 6]


def test_async_loops_and_awaits_are_as_before() -> None:
    source = textwrap.dedent("""
        import asyncio
        async def items():
            for i in range(3): yield i
        async def train():
            for e in range(4):
                async for i in items(): log.append((e, i))
                for b in range(2): await asyncio.sleep(0)
        asyncio.run(train())
        """)
    names: dict[str, Any] = {"log": []}
    _, sink, _ = run(source, 4, names)
    assert sink.marks == BOTH * 4
    assert names["log"] == [(e, i) for e in range(4) for i in range(3)]
