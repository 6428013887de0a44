"""The one sampling thread of a kernel: sensors are read at absolute deadlines, samples go to a sink.

No two readings overlap, nothing here touches the network or a file, and nothing is raised or printed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence

from .records import Reading, Sample
from .sensors.base import Sensor

THREAD_NAME = "ct_notebook-sampler"

APART_S = 0.02
"""Samples are at least this far apart, however often the thread is woken."""

SLOW_S = 0.1
"""A sensor that took longer than this ends the sample: what is read after it has a time of its own."""

HANGING_S = 5.0
"""A sensor that took longer than this to answer is not asked again, lest it starves the others."""


class Sampler:
    """Reads sensors every `interval_s` seconds in a daemon thread, from `start` to `finish`.

    Parameters
    ----------
    sensors
        Read in this order; closed by the thread when it ends.
    interval_s
        Seconds between two samples. A tick that was missed is left out, not made up for.
    sink
        Called with each sample, in the thread. What it raises is kept in `fault`.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        sensors: Sequence[Sensor],
        interval_s: float,
        sink: Callable[[Sample], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sensors = list(sensors)
        self._interval_s = interval_s
        self._sink = sink
        self._clock = clock
        self._given_up: dict[str, str] = {}
        # A SimpleQueue, since a garbage collector may wake us in the middle of anything, even of a wait here:
        # its put() is safe there, a lock would wait for itself.
        self._awake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._first = threading.Event()
        self._done = threading.Event()
        self._finishing = False
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self.fault: BaseException | None = None
        self.cpu_s = 0.0

    def start(self, wait_s: float) -> bool:
        """Start the thread and wait for the first sample, `wait_s` seconds at most. True if it came."""
        self._thread.start()
        return self._first.wait(wait_s)

    def wake(self) -> None:
        """Have a sample taken soon. Costs next to nothing and waits for nothing."""
        if self._awake.empty():
            self._awake.put(None)

    def finish(self, wait_s: float) -> bool:
        """Have one last sample taken and the thread end; wait `wait_s` seconds at most. True if it ended."""
        self._finishing = True
        self._awake.put(None)
        if self._thread is threading.current_thread() or self._thread.ident is None:
            return self._done.is_set()
        return self._done.wait(wait_s)

    def _run(self) -> None:
        deadline_s = self._clock()
        try:
            while True:
                last = self._finishing
                self._sample()
                self._first.set()
                self.cpu_s = time.thread_time()
                if last:
                    return
                now_s = self._clock()
                if deadline_s <= now_s:  # else a mark woke us before it
                    deadline_s += self._interval_s * ((now_s - deadline_s) // self._interval_s + 1)
                with contextlib.suppress(queue.Empty):
                    self._awake.get(timeout=max(0.0, deadline_s - now_s))
                    if not self._finishing:
                        # Woken by a mark just after a sample: let the sensors move on first.
                        time.sleep(max(0.0, APART_S - (self._clock() - now_s)))
                while not self._awake.empty():
                    self._awake.get_nowait()
        finally:
            for sensor in self._sensors:
                try:
                    sensor.close()
                except Exception as error:  # noqa: PERF203 - one must not keep the others from closing
                    self.fault = error
            self._done.set()
            self._first.set()

    def _sample(self) -> None:
        """Read all sensors once."""
        readings: list[Reading] = []
        missing = dict(self._given_up)
        began_s = self._clock()
        for sensor in tuple(self._sensors):
            before_s = self._clock()
            try:
                found, lost = sensor.read()
            except Exception as error:  # whatever a driver raises makes its devices missing, no more
                found, lost = (), {device.key: _why(error) for device in sensor.devices}
            after_s = self._clock()
            if after_s - before_s > SLOW_S and (readings or missing):
                self._give(Sample(began_s, tuple(readings), missing))
                readings, missing = [], dict(self._given_up)
                began_s = after_s
            readings += found
            missing.update(lost)
            if after_s - before_s > HANGING_S:
                self._give_up(sensor, after_s - before_s)
        self._give(Sample((began_s + self._clock()) / 2, tuple(readings), missing))

    def _give_up(self, sensor: Sensor, took_s: float) -> None:
        self._sensors.remove(sensor)
        why = f"took {took_s:.0f} s to answer and is not asked again"
        self._given_up.update({device.key: why for device in sensor.devices})
        sensor.close()

    def _give(self, sample: Sample) -> None:
        try:
            self._sink(sample)
        except Exception as error:  # a fault of the account must not end the sampling
            self.fault = error


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
