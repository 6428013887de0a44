"""What a training is to look like goes in; the cells of a notebook come out, and what they truly did.

The cells write a line for each thing that they do, so that a test knows it from the kernel and not from what
a page shows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.notebook_page import NotebookPage, Panel

HARDWARE = '--sim-cpu "Test CPU" --sim-cpu-tdp 80 --sim-gpu "Test GPU" --sim-gpu-watts 300'
"""Emulated by the product's own options, so that there are figures on every machine."""

FLAGS = f"{HARDWARE} --carbon-intensity 400 --offline --update-interval 0.1"


ASKS = "--epochs-before-pred 2 --stop-and-confirm"


class Truth:
    """What the cells of a test did.

    Parameters
    ----------
    path
        The file that they write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def first_cell(self) -> str:
        """Loads the extension and defines `note(what, *more)`, which writes a line."""
        return "\n".join(
            (
                "%load_ext ct_notebook",
                "import json, time",
                "def note(*what):",
                f"    with open({str(self._path)!r}, 'a') as file:",
                "        file.write(json.dumps(what) + '\\n')",
                "note('first')",
            )
        )

    @property
    def lines(self) -> list[list[Any]]:
        """All that was noted."""
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        # A line that is being written has no end yet.
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def of(self, what: str) -> list[list[Any]]:
        """What was noted under one name."""
        return [line[1:] for line in self.lines if line[0] == what]

    @property
    def order(self) -> list[str]:
        """Names in order, repetitions left out."""
        names = [line[0] for line in self.lines]
        return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]

    def has(self, what: str) -> bool:
        """Whether something was noted."""
        return bool(self.of(what))


def training_cell(
    flags: str = "", *, epochs: int = 5, steps: int = 4, step_s: float = 0.05, body: str = "", wait: str = ""
) -> str:
    """A tracked cell whose epochs consist of steps.

    Parameters
    ----------
    flags
        After those that emulate the hardware.
    epochs, steps
        How many, and how many steps in each.
    step_s
        Length of a step.
    body
        A statement at the end of each step.
    wait
        How a step waits, instead of `time.sleep`.
    """
    return "\n".join(
        (
            f"%%carbontrack --epochs {epochs} {FLAGS} {flags}".rstrip(),
            f"for epoch in range({epochs}):",
            f"    for step in range({steps}):",
            f"        {wait or f'time.sleep({step_s})'}",
            "        note('step', epoch, step)",
            *([f"        {body}"] if body else []),
            "    note('epoch', epoch)",
            "note('after')",
        )
    )


def next_cell(number: int) -> str:
    """A cell to be queued behind the training."""
    return f"note('next{number}')"


def queue(notebook: NotebookPage, truth: Truth, training: str) -> Panel:
    """Run all: a training and two cells behind it. Its panel comes out, shown."""
    notebook.set_cells([truth.first_cell, training, next_cell(1), next_cell(2)])
    notebook.run_all()
    panel = notebook.panel(1)
    panel.wait()
    return panel


def finished(notebook: NotebookPage, truth: Truth) -> None:
    """Wait until the last cell is done and the panel has made place for what stays."""
    notebook.soon("the last cell has run", lambda: truth.has("next2"))
    notebook.soon("picture and table have taken the panel's place", lambda: notebook.kinds(1) == STAYS)
    notebook.soon("the panel is gone", lambda: not notebook.panel(1).is_there)


STAYS = [["image/png", "image/svg+xml", "text/plain"], ["text/html", "text/plain"]]
"""MIME types of what a tracked cell shows when it is done."""
