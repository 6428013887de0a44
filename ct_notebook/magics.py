"""A line of flags and a cell come in; a tracked cell and one plain line about it come out.

`%%carbontrack FLAGS` on top of a cell is turned into a line call, `%carbontrack track FLAGS`, before IPython
sees the cell. So the body is an ordinary cell: line numbers, `await`, the last value and "Run All" are as
ever. A hook after the cell closes the run whatever happened. The cell magic of the same name is there for
help and for other magics that call it.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import os
import re
import shutil
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from .errors import CtNotebookError, SettingError
from .flags import (
    COMMANDS,
    MAGIC,
    TAKE_WORDS,
    CarbonTrack,
    configured_values,
    help_text,
    nearest,
    quoted_words,
    read_flags,
    unquoted,
    usage,
)
from .settings import OPTIONS, check_epochs, resolve

if TYPE_CHECKING:
    from .loops import Plan, Watch
    from .records import Run
    from .settings import Settings
    from .tracker import CarbonTracker

_HEAD = re.compile(rf"%%{MAGIC}(?=\s|$)(.*)")
"""The first line of a tracked cell. `%%carbontrack?` is a question, so a space or the end must follow."""

_CALLBACKS = {
    "lightning.pytorch": "lightning",
    "pytorch_lightning": "lightning",
    "keras": "keras",
    "transformers": "transformers",
}
"""Frameworks whose epochs pass out of sight: the module that is loaded, and which callback tells of them."""

_RUN_THE_BODY = frozenset({"capture", "time"})
"""Magics that run their body as Python in this namespace, by way of the transformers of the shell."""


# -- from a cell's text to a line call -----------------------------------------------------------------


def as_line_call(lines: list[str]) -> list[str]:
    """Turn the first line of a tracked cell into a line call, on the same line.

    Magics below that run their body as Python go on top, as if they had been written there.
    """
    at = _first(lines, 0)
    head = _HEAD.match(lines[at]) if at is not None else None
    if at is None or head is None:
        return lines
    flags = head[1].strip()
    if flags in {"--help", "-h"}:
        return [f"get_ipython().run_line_magic({MAGIC!r}, '--help')\n"]
    below = _first(lines, at + 1)
    if below is not None and lines[below].startswith("%%"):
        name, _, its_line = lines[below][2:].strip().partition(" ")
        if name in _RUN_THE_BODY:
            return [lines[below], lines[at], *lines[below + 1 :]]
        if re.fullmatch(r"\w+", name):
            body = "".join(lines[below + 1 :])
            call = f"get_ipython().run_cell_magic({name!r}, {its_line!r}, {body!r})\n"
            return [*lines[:at], _track(flags), *lines[at + 1 : below], call]
    return [*lines[:at], _track(flags), *lines[at + 1 :]]


# IPython asks whether a cell is complete after each line typed, and skips what is marked so: the first line
# alone would look complete.
as_line_call.has_side_effects = True  # type: ignore[attr-defined]


def _first(lines: list[str], start: int) -> int | None:
    """The first line from `start` that is neither blank nor a comment."""
    for at in range(start, len(lines)):
        text = lines[at].strip()
        if text and not text.startswith("#"):
            return at
    return None


def _track(flags: str) -> str:
    return f"get_ipython().run_line_magic({MAGIC!r}, {('track ' + flags).rstrip()!r})\n"


def _tracks(tree: ast.Module) -> int | None:
    """The line of a cell's `%carbontrack track`; None if it has none."""
    for node in tree.body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            words = [part.value for part in call.args if isinstance(part, ast.Constant)]
            name, rest = [*words, None, None][:2]
            is_ours = call.func.attr == "run_line_magic" and name == MAGIC
            if is_ours and isinstance(rest, str) and rest.split()[:1] == ["track"]:
                return node.lineno
    return None


# -- the shell -----------------------------------------------------------------------------------------


class _Cell:
    """A tracked cell that runs. No dataclass: making one takes as long as all the rest of `%load_ext`."""

    def __init__(
        self,
        tracker: CarbonTracker,
        watch: Watch,
        owner: object | None,
        settings: Settings,
        *,
        says_log: bool,
        lines_above: int,
    ) -> None:
        self.tracker = tracker
        self.watch = watch
        self.owner = owner
        self.settings = settings
        self.says_log = says_log
        self.lines_above = lines_above
        self.lines: list[str] = []


class CellFailedError(Exception):
    """The body of a cell failed. Its own error is shown already, so this one shows nothing."""

    def _render_traceback_(self) -> list[str]:
        return []


class Notebook:
    """One shell with its tracked cells.

    Parameters
    ----------
    shell
        An IPython shell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.config = CarbonTrack(parent=shell)
        self._cell: _Cell | None = None
        self._plan: tuple[Plan, int] | None = None
        self._injected: object | None = None
        self._said: set[str] = set()

    # -- coming and going ------------------------------------------------------------------------------

    def connect(self) -> None:
        """Register everything with the shell."""
        shell = self.shell

        def carbontrack(line: str, cell: str | None = None) -> Any:
            return self.line(line) if cell is None else self.cell(line, cell)

        carbontrack.__doc__ = help_text()
        shell.register_magic_function(carbontrack, "line_cell", MAGIC)
        shell.input_transformers_cleanup.append(as_line_call)
        shell.ast_transformers.append(self)
        for event, hook in self._hooks():
            shell.events.register(event, hook)
        shell.configurables.append(self.config)

    def disconnect(self) -> None:
        """Close an open run and take everything away again."""
        shell = self.shell
        self.close(None)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(MAGIC, None)
        _remove(shell.input_transformers_cleanup, as_line_call)
        _remove(shell.ast_transformers, self)
        _remove(shell.configurables, self.config)
        for event, hook in self._hooks():
            shell.events.unregister(event, hook)
        if self._injected is not None and shell.user_ns.get("tracker") is self._injected:
            del shell.user_ns["tracker"]

    # -- around a cell ---------------------------------------------------------------------------------

    def _hooks(self) -> tuple[tuple[str, Callable[..., None]], ...]:
        return (
            ("pre_run_cell", self.before),
            ("post_execute", self.executed),
            ("post_run_cell", self.after),
        )

    def before(self, _info: Any = None) -> None:
        """A cell begins to run. No run is open then but that of a cell around it."""
        if self._cell is not None and not self._is_within(self._cell):
            # Only an interrupt of IPython itself keeps `after` from being called.
            self._end(KeyboardInterrupt())

    def executed(self) -> None:
        """Code has run. For a silent cell no other hook is called."""
        if self._cell is not None and getattr(self._cell.owner, "silent", False):
            self.after(self.shell.last_execution_result)

    def after(self, result: Any) -> None:
        """A cell has run. If it is the one that began the run, the run ends too."""
        if self._cell is None or self._is_within(self._cell):
            return
        self._end(sys.exc_info()[1] if result is None else result.error_before_exec or result.error_in_exec)

    def _end(self, error: BaseException | None) -> None:
        try:
            self.close(error)
        except KeyboardInterrupt:
            self.close(error)  # the cell is over, so there is nothing but this to interrupt

    def visit(self, tree: ast.Module) -> ast.Module:
        """Have the loops of a tracked cell watched; leave every other cell as it is."""
        line = _tracks(tree)
        if line is None:
            return tree
        from .loops import Plan  # noqa: PLC0415 - only tracked cells need it
        from .rewrite import check, plan_of  # noqa: PLC0415 - same

        namespace = self.shell.user_ns
        numbers = {name: value for name, value in namespace.items() if type(value) is int}
        ours = "tracker" if namespace.get("tracker", self._injected) is self._injected else ""
        original = copy.deepcopy(tree)
        try:
            self._plan = plan_of(tree, numbers, tracker=ours), line
            check(tree)
        except Exception as fault:
            # Our fault must not stop the training: the cell runs as it is, as one epoch.
            self._plan = Plan(), line
            with contextlib.suppress(SyntaxError):  # if it is the user's, IPython will tell
                check(original)
                self._print(f"ct_notebook: the cell could not be read for its epoch loop ({fault!r}).")
            return original
        return tree

    def close(self, error: BaseException | None, *, stopped: bool = False) -> None:
        """End the run of the tracked cell, if there is one, and say what it was.

        After an interrupt in it, the next call does what is left.
        """
        cell = self._cell
        if cell is None:
            return
        from .loops import LOOPS  # noqa: PLC0415 - loaded by the cell already

        LOOPS.close()
        watch = cell.watch
        if error is not None and type(error).__name__ == "CancelledError":
            error = KeyboardInterrupt()  # how an interrupt ends a cell with `await` in it
        if watch.fault is not None:
            cell.tracker.note(f"The tracker made a mistake and went on: {watch.fault!r}")
        irregular = self._story(cell)
        for text in irregular[1:]:
            cell.tracker.note(text)
        try:
            if stopped:
                cell.tracker.stop()
            run = cell.tracker.finish(error=error)
            self._cell = None
        except Exception as fault:
            # The cell has run; a hook that raises would only add a traceback of ours to its output.
            self._cell = None
            self._print(f"ct_notebook: the run could not be closed as it should: {fault!r}")
            return
        if run.log_paths and cell.says_log and "log" not in self._said:
            self._said.add("log")
            folder = os.path.dirname(run.log_paths[0])  # noqa: PTH120 - a text for people
            cell.lines.append(f"logs are in {folder} (--no-log leaves none; said once).")
        if cell.settings.verbose:
            for text in (*irregular, *cell.lines):
                self._print(f"ct_notebook: {text}")

    def _story(self, cell: _Cell) -> list[str]:
        """How the epochs were found, and what about them is not as declared."""
        from .loops import many  # noqa: PLC0415 - loaded by the cell already

        watch, tracker = cell.watch, cell.tracker
        loop, declared, by_hand = watch.loop, cell.settings.epochs, tracker.marked_by_hand
        seen = tracker.epochs_seen if loop is None or by_hand else watch.turns

        def place(line: int, function: str) -> str:
            return f"line {line + cell.lines_above}" + (f", in {function}()" if function else "")

        if loop is None:
            if not seen and not by_hand:
                way = _way_for(declared)
                unasked = ", and the question was not put" if cell.settings.stop_and_confirm else ""
                return [f"no epoch loop was found, so the cell was measured as one epoch{unasked}. ({way})"]
            told = [f"epochs were marked by hand ({seen})."]
        elif by_hand and watch.handed_over:
            where = place(loop.line, loop.function)
            told = [f"epochs were marked by hand ({seen}), so the loop in {where} was not counted."]
        else:
            length = "of unknown length" if watch.length is None else f"{watch.length} epochs"
            told = [f"epoch loop found in {place(loop.line, loop.function)} ({length})."]
            if watch.again:
                lines = sorted({place(other.line, other.function) for other in watch.again})
                told.append(f"A later loop of that length was not counted: {'; '.join(lines)}.")
            if watch.handed_over and tracker.active and watch.turns >= many(loop, declared):
                told.append(f"It went on after {watch.turns} epochs; those that followed were not counted.")
        monitored = cell.settings.monitor_epochs
        if declared is not None and seen != declared and monitored in {-1, declared} and tracker.active:
            told.append(f"{seen} of {declared} declared epochs were seen.")
        if not tracker.active and tracker.run.reason == "another run began":
            told.append("Another CarbonTracker began in this cell, and the cell's own run ended there.")
        if watch.fault is not None and not cell.settings.ignore_errors:
            told.append(f"The tracker made a mistake and the training went on: {watch.fault!r}")
        return told

    # -- commands --------------------------------------------------------------------------------------

    def line(self, line: str) -> Any:
        """`%carbontrack ...`."""
        word, _, rest = line.strip().partition(" ")
        if word == "track":
            return self.track(rest)
        command: Callable[..., Any] | None = getattr(self, f"_do_{word}", None) if word in COMMANDS else None
        words_after = rest.split("#")[0].split()
        if command is not None and word in TAKE_WORDS:
            return command(words_after)
        if command is not None and not words_after:
            return command()
        words = ", ".join(COMMANDS)
        if word in {"--help", "-h", "help"}:
            return self._print(help_text())
        if not word:
            msg = f"%{MAGIC}: say which: {words}. (%{MAGIC}? explains them.)"
        elif word.startswith("--"):
            msg = f"%{MAGIC}: flags belong on the first line of a cell, after %%{MAGIC} with two %."
        elif command is not None:
            msg = f"%{MAGIC} {word} takes nothing after it."
        else:
            near = nearest(word, COMMANDS)
            hint = f" did you mean {near}?" if near else ""
            msg = f"%{MAGIC}: there is no {word};{hint} There are {words}."
            msg = msg if near else msg.replace("; There", "; there")
        raise UsageError(msg)

    def cell(self, line: str, body: str) -> None:
        """`%%carbontrack` where another magic or the user's own code calls it."""
        if line.strip() in {"--help", "-h"}:
            self._print(help_text())
            return
        if self._is_running():
            self._say_nested()
        else:
            body = f"%%{MAGIC} {line}\n{body}"
        if not self.shell.run_cell(body).success:
            msg = "the error is shown above"
            raise CellFailedError(msg)

    def track(self, flags: str) -> None:
        """Begin the run of the cell that this line stands in."""
        plan, self._plan = self._plan, None
        if self._is_running():
            self._say_nested()
            return
        self.close(None)
        settings, says_log = self._settle(flags)
        from .loops import LOOPS, Plan, Watch  # noqa: PLC0415 - only tracked cells need it
        from .tracker import CarbonTracker  # noqa: PLC0415 - only tracked cells need it

        try:
            tracker = CarbonTracker.for_settings(settings, show=self._print, whole=True)
        except SettingError as error:
            raise usage(str(error)) from None
        loops, line = plan or (Plan(), 1)
        watch = Watch(tracker, loops)
        owner = next(_cells_on_stack(), None)
        above = _lines_above(getattr(owner, "raw_cell", None), line)
        self._cell = _Cell(tracker, watch, owner, settings, says_log=says_log, lines_above=above)
        self._inject(self._cell)
        LOOPS.open(watch)
        try:
            tracker.start()
        except Exception as fault:
            LOOPS.close()
            self._cell = None
            self._print(f"ct_notebook: the run could not begin, so the cell runs without it: {fault!r}")
            return

    def _settle(self, flags: str) -> tuple[Settings, bool]:
        """Settings of a cell, and whether the place of its logs is one that the user did not choose."""
        epochs, given = read_flags(flags)
        configured = configured_values(self.config)
        count = None
        if epochs is not None:
            try:
                count = int(epochs) if epochs.isdecimal() else self.shell.ev(epochs)
            except Exception as error:
                text = str(error).splitlines() or [type(error).__name__]
                msg = f"--epochs {epochs} cannot be worked out: {text[0]}"
                raise usage(msg) from None
        try:
            count = None if epochs is None else check_epochs(count)
            settings = resolve(count, given, cell=True, configured=configured)
        except SettingError as error:
            raise usage(str(error)) from None
        default = next(option.for_cell for option in OPTIONS if option.name == "log_dir")
        chosen = "log_dir" in given or "log_dir" in configured or settings.log_dir != default
        return settings, not chosen

    def _inject(self, cell: _Cell) -> None:
        """Put `tracker` into the namespace, unless the user has one there."""
        namespace = self.shell.user_ns
        if namespace.get("tracker", self._injected) is self._injected:
            namespace["tracker"] = self._injected = cell.tracker
        elif "tracker" not in self._said:
            self._said.add("tracker")
            cell.lines.append(
                "your own variable `tracker` was left alone, so ours is not there to mark epochs with."
            )

    def _is_running(self) -> bool:
        """Whether a tracked cell is running right now, further out."""
        return self._cell is not None and self._cell.tracker.active and self._is_within(self._cell)

    def _is_within(self, cell: _Cell) -> bool:
        """Whether what runs now is a part of this cell, or runs in another thread beside it."""
        beside = threading.get_ident() != cell.watch.thread
        return beside or any(each is cell.owner for each in _cells_on_stack())

    def _say_nested(self) -> None:
        self._print(
            f"ct_notebook: %%{MAGIC} within a tracked cell: this part belongs to the run of that cell."
        )

    def _active(self) -> CarbonTracker | None:
        module = sys.modules.get(f"{__package__}.tracker")
        tracker: CarbonTracker | None = None if module is None else module.active()
        if tracker is None:
            self._print(f"ct_notebook: no run is active. (%%{MAGIC} on top of a cell begins one.)")
        return tracker

    def _do_status(self) -> None:
        tracker = self._active()
        if tracker is None or tracker.recording is None:
            return
        from .units import clock_text, fixed, kwh  # noqa: PLC0415 - few lines need it

        run = tracker.run
        by_device, seconds = tracker.recording.so_far()
        state = "paused" if tracker.paused else "measuring"
        declared = tracker.epochs_declared
        of = "" if declared is None else f" of {declared}"
        text = f"ct_notebook: {state}, {tracker.epochs_seen}{of} epochs, {clock_text(seconds)}"
        if by_device:
            energy_kwh = kwh(sum(by_device.values())) * run.pue.value
            decimals = self._cell.settings.decimal_precision if self._cell else 6
            watts = sum(tracker.recording.power_w().values())
            where = ", ".join(part for part in (run.intensity.place, run.intensity.kind) if part)
            text += (
                f", {watts:.1f} W, {fixed(energy_kwh, decimals)} kWh, "
                f"{fixed(energy_kwh * run.intensity.g_per_kwh, decimals)} g CO2eq ({where})"
            )
        self._print(text + ".")

    def _do_pause(self) -> None:
        tracker = self._active()
        if tracker is not None:
            self._print(f"ct_notebook: paused {'already' if tracker.paused else 'until resume'}.")
            tracker.pause()

    def _do_resume(self) -> None:
        tracker = self._active()
        if tracker is not None:
            self._print("ct_notebook: measuring again." if tracker.paused else "ct_notebook: was not paused.")
            tracker.resume()

    def _do_flush(self) -> None:
        tracker = self._active()
        if tracker is not None:
            tracker.flush()
            logs = tracker.run.log_paths
            self._print(
                f"ct_notebook: on disk in {logs[0]}." if logs else "ct_notebook: this run has no log."
            )

    def _do_stop(self) -> None:
        tracker = self._active()
        if tracker is None:
            return
        if self._cell is not None and self._cell.tracker is tracker:
            self.close(None, stopped=True)
        else:
            tracker.stop()

    def _do_last(self) -> Any:
        module = sys.modules.get(f"{__package__}.tracker")
        run = None if module is None else module.last_run()
        if run is None:
            self._print("ct_notebook: no run has ended in this session.")
        elif getattr(self.shell, "kernel", None) is not None:
            # The picture is what is returned; a viewer shows no table that is in one bundle with it.
            from IPython.display import display  # noqa: PLC0415 - only in a notebook

            from .display.static import report  # noqa: PLC0415 - same

            display(report(run), raw=True, display_id=f"ct_notebook-{run.run_id}-last")
        return run

    def _newest(self) -> Run | None:
        """The run under way, else the newest that ended; None, and said, if there is none."""
        module = sys.modules.get(f"{__package__}.tracker")
        tracker = None if module is None else module.active()
        run: Run | None = None
        if module is not None:
            run = module.last_run() if tracker is None else tracker.run
        if run is None:
            self._print(f"ct_notebook: there is no run yet. (%%{MAGIC} on top of a cell begins one.)")
        return run

    def _do_compare(self) -> Any:
        run = self._newest()
        return None if run is None else self._with_chart(run.compare())

    def _do_where(self, names: list[str]) -> Any:
        run = self._newest()
        if run is None:
            return None
        from .advice import where  # noqa: PLC0415 - few sessions ask

        places = quoted_words(" ".join(names))
        return self._with_chart(_told_in_one_line("where", lambda: where(run, places)))

    def _do_when(self) -> Any:
        run = self._newest()
        if run is None:
            return None
        from .forward import best_start  # noqa: PLC0415 - few sessions ask

        def ask() -> Any:
            settings = resolve(None, {}, cell=True, configured=configured_values(self.config))
            return best_start(run, self._with_those_of_the_run(settings))

        return self._with_chart(_told_in_one_line("when", ask))

    def _with_those_of_the_run(self, settings: Settings) -> Settings:
        """The place, the keys and the word on the network that the flags of the newest run gave."""
        of_run = sys.modules[f"{__package__}.tracker"].newest_settings()
        if of_run is None:
            return settings
        place = next(
            each
            for each in (of_run, settings)
            if each is settings or each.zone or each.country or each.region
        )
        return settings._replace(
            zone=place.zone,
            country=place.country,
            region=place.region,
            api_keys=settings.api_keys or of_run.api_keys,
            offline=settings.offline or of_run.offline,
        )

    def _do_statement(self, words: list[str]) -> Any:
        from . import __version__  # noqa: PLC0415 - the front door
        from .statement import statement  # noqa: PLC0415 - few sessions ask

        if not words:
            run = self._newest()
            if run is None:
                return None
            return _told_in_one_line("statement", lambda: statement([run], __version__))
        from .log.reader import read_runs  # noqa: PLC0415 - few sessions ask
        from .parser import LogWarning, print_aggregate  # noqa: PLC0415 - same

        folder = os.path.expanduser(unquoted(" ".join(words)))  # noqa: PTH111 - "~nobody" stays as it is
        runs, problems = _told_in_one_line("statement", lambda: read_runs(folder))
        if not runs and not problems:
            msg = f"%{MAGIC} statement: there are no logs in {folder}{_folders_of_logs(folder)}."
            raise UsageError(msg)
        told = _told_in_one_line("statement", lambda: statement(runs, __version__))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # the line below tells them
            print_aggregate(folder)
        if problems:
            self._print(f"ct_notebook: {len(problems)} faults in these logs, the first: {problems[0]}")
        return told

    def _with_chart(self, shown: Any) -> Any:
        """Show a figure below what is returned, where figures can be shown."""
        if getattr(self.shell, "kernel", None) is not None:
            from IPython.display import display  # noqa: PLC0415 - only in a notebook

            display(shown)
            display(shown.figure())
            return None
        return shown

    def _do_doctor(self) -> None:
        from .records import COMPONENTS  # noqa: PLC0415 - only here
        from .sensors import discover  # noqa: PLC0415 - few sessions ask for it

        found = discover(components=frozenset(COMPONENTS), devices_by_pid=False, simulated=None)
        rows = [("sensor", "found", "readable", "why")]
        remedies = []
        for finding in found.findings:
            yes = {True: "yes", False: "no"}
            rows.append((finding.sensor, yes[finding.found], yes[finding.readable], finding.why))
            remedies.append(finding.remedy)
        self._print("\n".join(_table(rows, ["", *remedies])))

    def _print(self, text: str) -> None:
        """Put a text before the user, above a progress bar if one is being drawn.

        Raises no error whatever became of `print` and stdout: IPython answers one in a hook by printing.
        """
        plain = text.encode("ascii", "backslashreplace").decode()
        ways: list[Callable[[], object]] = [
            lambda: print(text),  # noqa: T201 - this is where all text of a notebook goes through
            lambda: sys.stdout.write(plain + "\n"),
        ]
        bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
        if bars is not None and getattr(bars, "_instances", None):
            ways.insert(0, lambda: _above_bars(bars, text))
        for way in ways:
            with contextlib.suppress(Exception):
                way()
                return


def _told_in_one_line(word: str, make: Callable[[], Any]) -> Any:
    """What a command makes; a fault of what it was given becomes one line without a traceback."""
    try:
        return make()
    except CtNotebookError as error:
        msg = f"%{MAGIC} {word}: {error}"
        raise UsageError(msg) from None


def _folders_of_logs(folder: str) -> str:
    """Where the logs are if they are not in a folder but in those below it, as the end of a sentence."""
    names = sorted({path.parent.name for path in Path(folder).glob("*/*carbontracker.log")})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f", but in its folders: {', '.join(names[:3])}{more}. Give one of these" if names else ""


def _table(rows: list[tuple[str, str, str, str]], remedies: list[str]) -> Iterable[str]:
    """Rows under each other, the long last column wrapped, what to do about it below."""
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    left = sum(widths) + 2 * len(widths)
    room = max(30, shutil.get_terminal_size((110, 24)).columns - left)
    for row, remedy in zip(rows, remedies, strict=True):
        why = textwrap.wrap(row[3], room) or [""]
        if remedy:
            why += [f"-> {remedy}"]  # never wrapped: it is there to be copied
        yield (
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) + "  " + why[0]
        ).rstrip()
        for text in why[1:]:
            yield " " * left + text


def _cells_on_stack() -> Iterator[Any]:
    """What IPython notes of each cell that this thread is running, the innermost first.

    The stack is asked, since after an interrupt no hook is called for certain.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the one way to the stack
    while frame is not None:
        if frame.f_code.co_name == "run_cell_async" and "info" in frame.f_locals:
            yield frame.f_locals["info"]
        frame = frame.f_back


def _lines_above(raw_cell: str | None, track_line: int) -> int:
    """How many lines stand above what was parsed, so that the user is told the line of the cell."""
    lines = (raw_cell or "").splitlines()
    heads = 0
    for at, text in enumerate(lines, 1):
        stripped = text.strip()
        if stripped.startswith("%%"):
            heads = at
        elif stripped and not stripped.startswith("#"):
            break
    return max(0, heads - track_line)


def _way_for(declared: int | None) -> str:
    """How the epochs of a cell can be seen in which no loop was found."""
    framework = next((name for name in _CALLBACKS if name in sys.modules), None)
    if framework is None:
        return f"By hand: for epoch in tracker.epochs({declared or 'n'})"
    room = f"ct_notebook.callbacks.{_CALLBACKS[framework]}"
    return f"With callbacks=[CarbonTrackerCallback()] from {room} its epochs are seen."


def _above_bars(bars: Any, text: str) -> None:
    """Print a text where bars of tqdm are being drawn: they are taken away and drawn again below it."""
    with bars.external_write_mode(file=sys.stdout):
        # A kernel sends its two streams when it comes to it: the clearing has to go before the text.
        sys.stderr.flush()
        print(text)  # noqa: T201 - as above
        sys.stdout.flush()


def _remove(things: list[Any], thing: object) -> None:
    if thing in things:
        things.remove(thing)


_notebook: Notebook | None = None


def load(ip: Any) -> None:
    """Give a shell `%carbontrack`, `%%carbontrack` and `%config CarbonTrack`. Idempotent."""
    global _notebook  # noqa: PLW0603 - a process has one shell
    if _notebook is not None:
        if _notebook.shell is ip:
            return
        _notebook.disconnect()
    _notebook = Notebook(ip)
    _notebook.connect()


def unload(_ip: Any) -> None:
    """Close an open run and leave the shell as it was found."""
    global _notebook
    if _notebook is not None:
        notebook, _notebook = _notebook, None
        notebook.disconnect()
