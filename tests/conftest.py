"""What every test gets: an environment that sets nothing, and a process in which no run is left over."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

# Kernels and servers that tests start inherit it: no test reaches beyond this machine.
os.environ["CT_NOTEBOOK_OFFLINE"] = "1"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine that runs the tests reaches them."""
    for name in os.environ:
        kept = {"CT_NOTEBOOK_ENVIRONMENTS_DIR", "CT_NOTEBOOK_OFFLINE"}
        if name.startswith("CT_NOTEBOOK_") and name not in kept:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """No thread of ours outlives a test."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("ct_notebook-"):
            thread.join(30)
            assert not thread.is_alive(), f"{thread.name} is still running"
