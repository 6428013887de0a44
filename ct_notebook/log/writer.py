"""A run's events go in as they happen; three log files in carbontracker's format grow on disk, line by line.

What the calls cost the training is a clock read and one append to a queue. One daemon thread,
`ct_notebook-log`, formats and writes. It opens the files, so a file system that hangs stops that thread and
nothing else.
"""

from __future__ import annotations

import errno
import os
import queue
import random
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ct_notebook.log import extra
from ct_notebook.log import format as grammar
from ct_notebook.records import Epoch, Run

THREAD_NAME = "ct_notebook-log"

KEPT_BYTES = 4_000_000
"""So much of each file's text stays in memory, bytes, to make the file again if it is removed or could not be
written. Beyond it the oldest lines after the head go first. 4 MB are some ten thousand epochs."""

QUEUE_LIMIT = 100_000
"""Events waiting for a disk that does not answer. Beyond it further ones are counted and dropped."""

_Event = tuple[str, datetime, Any, Any]
_CLOSE: _Event = ("close", datetime.min, None, None)  # noqa: DTZ901 - a time that nobody looks at


class LogWriter:
    """Writes one run's logs. No call raises or blocks, but `flush` and `close`, which wait as long as told.

    Parameters
    ----------
    log_dir
        Folder of the files; made if it is not there. Nothing is written outside it.
    prefix
        Begins the names of the files. Text, never a path.
    now
        Local time. Line times and file names come from it; nothing is measured with it.

    Notes
    -----
    One writer writes one run. Files are `[prefix_]PID.NUMBER_TIME_carbontracker.log`,
    `…_carbontracker_output.log` and, from the first error on, `…_carbontracker_err.log`. They are created
    exclusively, so two kernels never share one. A forked child writes nothing: the calls do nothing there.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        prefix: str = "",
        *,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._now = now
        self._pid = os.getpid()
        self._queue: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._dropped = 0
        self._files = _Files(Path(log_dir).absolute(), grammar.file_prefix(prefix))

    # What happens.

    def run_begins(self, run: Run) -> None:
        """Open the files and write their heads: version, PUE, components, `Monitoring thread started.`.

        The components go into the output log too, as carbontracker does it: its parsers pass over a run whose
        output log is empty.
        """
        if self._thread is not None or self._closed or os.getpid() != self._pid:
            return
        self._put("run_begins", run)
        # The thread holds no reference to this object, so a writer dropped without `close` can be collected.
        thread = threading.Thread(
            target=_write_all, args=(self._queue, self._files), name=THREAD_NAME, daemon=True
        )
        self._thread = thread
        # A run that is dropped without an end ends its thread too; at exit its lines are on disk already.
        weakref.finalize(self, self._queue.put, _CLOSE).atexit = False
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the interpreter is ending
            self._closed = True
            self._files.fault = (
                f"No log is written: its thread cannot be started ({error}). End other threads and run again."
            )

    def epoch(self, run: Run, epoch: Epoch) -> None:
        """Write an epoch that has just ended, and what of the run has changed since the last one."""
        self._put("epoch", run, epoch)

    def output(self, text: str) -> None:
        """Write into the output log what the user was told, without the "CarbonTracker: " before it."""
        self._put("output", text)

    def detail(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write an extra line into the standard log. carbontracker's parsers do not see it."""
        self._put("detail", kind, data)

    def error(self, text: str, level: str = "WARNING") -> None:
        """Write into the error log, which is made when the first error comes."""
        self._put("error", text, (threading.current_thread().name, level))

    def run_ends(self, run: Run) -> None:
        """Write the last lines: early stop, carbon intensity, all of the run, `Monitoring thread ended.`."""
        self._put("run_ends", run)

    # Waiting.

    def flush(self, timeout_s: float) -> bool:
        """Wait, at most `timeout_s`, until everything handed over is on disk. True if it is."""
        if os.getpid() != self._pid:
            return True
        thread = self._thread
        if thread is None or not thread.is_alive():
            return self.failure is None
        done = threading.Event()
        self._put("flush", done)
        return done.wait(timeout_s) and self.failure is None

    def close(self, timeout_s: float) -> bool:
        """Write what is left, end the thread and close the files. True if everything is on disk.

        Calls after it do nothing. Waits at most `timeout_s`; the thread ends by itself if that is not enough.
        """
        if os.getpid() != self._pid:
            return True
        thread = self._thread
        if not self._closed:
            self._put("close", None)
            self._closed = True
        if thread is None:
            return self.failure is None
        with suppress(RuntimeError):  # from the thread itself, or never started
            thread.join(timeout_s)
        return not thread.is_alive() and self.failure is None

    @property
    def paths(self) -> tuple[str, ...]:
        """The files made so far, standard log first. Complete after a `flush` that followed `run_begins`."""
        return tuple(str(file.path) for file in self._files.made())

    @property
    def failure(self) -> str | None:
        """Why not everything is on disk, in one line that says what to do; None if all is well (again)."""
        if self._dropped:
            return (
                f"{self._dropped} log entries are lost: the disk of {self._files.folder} does not answer. "
                "The run itself goes on; set log_dir to another disk."
            )
        return self._files.fault or self._files.failure

    def _put(self, what: str, first: Any, second: Any = None) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        if self._queue.qsize() >= QUEUE_LIMIT and what not in ("flush", "close"):
            self._dropped += 1
            return
        self._queue.put((what, self._now(), first, second))


def _write_all(events: queue.SimpleQueue[_Event], files: _Files) -> None:
    """Take events in order until `close`; the thread's body."""
    lines = _Lines(files)
    while True:
        what, at, first, second = events.get()
        if what == "close":
            files.close()
            return
        try:
            if what == "flush":
                files.write()
                first.set()
            else:
                getattr(lines, what)(at, first, second)
        except Exception as error:  # nothing that a run holds may end the thread
            files.fault = (
                f"An entry of the log is lost, as it could not be put into words ({what}: {error!r}). "
                "The run itself goes on; please report this."
            )


class _Lines:
    """Turns events into text; lives in the thread."""

    def __init__(self, files: _Files) -> None:
        self.files = files
        self.last_w: dict[str, float] = {}
        self.run: Run | None = None

    def run_begins(self, at: datetime, run: Run, _: Any) -> None:
        self.files.open(at)
        self.run = run
        components = grammar.components_text(run.devices)
        texts = [
            grammar.version_text(_version()),
            grammar.pue_text(run.pue),
            components,
            extra.extra_text("run", extra.run_data(run)),
            grammar.STARTED_TEXT,
        ]
        self.files.standard.append(grammar.lines(at, texts))
        self.files.output.append(grammar.output_line(at, components))

    def epoch(self, at: datetime, run: Run, epoch: Epoch) -> None:
        texts = []
        powers_w: dict[str, float] = {}
        for component, power_w in grammar.power_w_by_component(run, epoch).items():
            if power_w is None:
                # Every parser counts rows, so a row must be there; ours takes this word for it and drops it.
                powers_w[component] = self.last_w.get(component, 0.0)
                texts.append(extra.extra_text("not_measured", {"epoch": epoch.index, "component": component}))
            else:
                powers_w[component] = self.last_w[component] = power_w
        texts = [*grammar.epoch_texts(epoch, powers_w), *texts]
        texts.append(extra.extra_text("epoch", extra.epoch_data(epoch)))
        changed = extra.changed_data(self.run, run)
        self.run = run
        if changed:
            texts.append(extra.extra_text("state", changed))
        self.files.standard.append(grammar.lines(at, texts))

    def run_ends(self, at: datetime, run: Run, _: Any) -> None:
        texts = [grammar.interrupted_text(run.epochs_declared)] if run.early_stop else []
        texts += grammar.intensity_texts(run.intensity, run.intensities)
        texts.append(extra.extra_text("end", extra.end_data(self.run, run)))
        texts.append(grammar.ENDED_TEXT)
        self.files.standard.append(grammar.lines(at, texts))

    def output(self, at: datetime, text: str, _: Any) -> None:
        self.files.output.append(grammar.output_line(at, text))

    def detail(self, at: datetime, kind: str, data: Mapping[str, Any]) -> None:
        self.files.standard.append(grammar.line(at, extra.extra_text(kind, data)))

    def error(self, at: datetime, text: str, origin: tuple[str, str]) -> None:
        self.files.error.append(grammar.error_line(at, *origin, text))


def _version() -> str:
    # The package is loaded, as this module is in it; to import the front door here would be the wrong way.
    return str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", "unknown"))


class _Files:
    """The three files of a run under one stem."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.failure: str | None = None  # mended by the next write that works
        self.fault: str | None = None  # something is lost for good
        self.standard = _File(self)
        self.output = _File(self)
        self.error = _File(self)
        self.opened_at: datetime | None = None

    def made(self) -> list[_File]:
        return [file for file in (self.standard, self.output, self.error) if file.was_made]

    def open(self, at: datetime) -> None:
        """Choose a stem that nobody has and make the standard and output files."""
        self.opened_at = at
        self.write()

    def _choose(self, at: datetime) -> None:
        for _ in range(100):
            # carbontracker takes a number in the same range; it only has to differ.
            stem = grammar.file_stem(self.prefix, os.getpid(), random.randint(1, 999_999), at)  # noqa: S311
            suffixes = (grammar.STANDARD_SUFFIX, grammar.OUTPUT_SUFFIX, grammar.ERROR_SUFFIX)
            paths = [self.folder / f"{stem}{suffix}" for suffix in suffixes]
            if any(os.path.lexists(path) for path in paths):
                continue
            try:
                self.standard.create(paths[0])
            except FileExistsError:
                continue
            self.output.path, self.error.path = paths[1:]
            return
        raise FileExistsError(errno.EEXIST, "a hundred names were taken", os.fspath(self.folder))

    def write(self) -> None:
        """Bring every file up to date, or say why that cannot be and keep the lines for the next time."""
        if self.opened_at is None:
            return
        try:
            if self.standard.path is None:
                self._choose(self.opened_at)
            for file in (self.standard, self.output, self.error):
                file.write()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or str(error)
            self.failure = (
                f"The log in {self.folder} is not complete: {reason}. The run goes on, the lines are kept "
                f"and tried again; {_remedy(error)}."
            )
        else:
            self.failure = None

    def close(self) -> None:
        self.write()
        for file in (self.standard, self.output, self.error):
            file.close()


def _remedy(error: Exception) -> str:
    code = getattr(error, "errno", None)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room on that disk, or set log_dir to another"
    if code in (errno.EEXIST, errno.ENOTDIR):
        return "a file stands where the folder should be, so set log_dir to a folder"
    return "set log_dir to a folder that you can write to"


class _File:
    """One file: what it holds, kept in memory within bounds, and what of it is not on disk yet."""

    def __init__(self, files: _Files) -> None:
        self.files = files
        self.path: Path | None = None
        self.fd: int | None = None
        self.was_made = False
        self.head: bytes | None = None
        self.kept: deque[bytes] = deque()
        self.kept_bytes = 0
        self.pending: deque[bytes] = deque()
        self.pending_bytes = 0

    def append(self, text: str) -> None:
        """Add whole lines and try to write them at once."""
        # One write for all of them: an epoch is in the file whole or, killed before, not at all.
        chunk = text.encode("utf-8", errors="backslashreplace")
        if self.head is None:
            self.head = chunk
        else:
            self.kept.append(chunk)
            self.kept_bytes += len(chunk)
        self.pending.append(chunk)
        self.pending_bytes += len(chunk)
        while self.kept_bytes > KEPT_BYTES:
            self.kept_bytes -= len(self.kept.popleft())
        while self.pending_bytes > KEPT_BYTES and len(self.pending) > 2:
            # Not the first: a part of it may be on disk.
            self.pending_bytes -= len(self.pending[1])
            del self.pending[1]
            self.files.fault = (
                f"The log in {self.files.folder} has lost entries: it could not be written for so long that "
                "more than 4 MB were waiting. The run itself goes on; set log_dir to another disk."
            )
        self.files.write()

    def create(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        # Not Path.open: no buffer of Python's may stand between a line and the disk. The umask cuts 666.
        self.fd = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
        self.path = path
        self.was_made = True

    def write(self) -> None:
        """Write what is pending. Raises OSError; what could not be written stays pending."""
        if self.fd is not None and self._removed():
            self.close()
            self.pending = deque(self.kept if self.head is None else (self.head, *self.kept))
            self.pending_bytes = sum(map(len, self.pending))
        if not self.pending or self.path is None:
            return
        if self.fd is None:
            self.create(self.path)
        assert self.fd is not None
        while self.pending:
            chunk = self.pending[0]
            count = os.write(self.fd, chunk)
            self.pending_bytes -= count
            if count == len(chunk):
                self.pending.popleft()
            else:  # a disk that is all but full takes a part
                self.pending[0] = chunk[count:]

    def _removed(self) -> bool:
        assert self.fd is not None
        assert self.path is not None
        here = os.fstat(self.fd)
        if here.st_nlink > 0:
            return False
        # Some network file systems count no links; only a name that is gone or another's is a removed file.
        try:
            return not os.path.samestat(here, self.path.stat())
        except OSError:
            return True

    def close(self) -> None:
        if self.fd is not None:
            with suppress(OSError):
                os.close(self.fd)
            self.fd = None
