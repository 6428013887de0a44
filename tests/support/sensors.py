"""Small real sensors: what they read is set by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from ct_notebook.records import Device, Reading


class SteadySensor:
    """A gauge of a set power. `before_read` is called first: it may wait, or raise."""

    def __init__(self, key: str = "cpu:test", watts: float = 100.0, component: str = "cpu") -> None:
        self.devices = (Device(key, component, f"Test {key}", "measured"),)
        self.watts = watts
        self.reads = 0
        self.closed = 0
        self.before_read: Callable[[], None] = lambda: None

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        self.reads += 1
        self.before_read()
        device = self.devices[0]
        return (Reading(device.key, device.component, device.method, watts=self.watts),), {}

    def close(self) -> None:
        self.closed += 1


class Gate:
    """Something to wait at, until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.open.wait(30), "the test never opened the gate"
