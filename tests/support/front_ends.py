"""A front end and a kernel come in; the server that has both, and notebooks opened in it, go out."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from support.environments import COLAB, WIDGETS, python_with
from support.jupyter_server import JupyterServer, serving
from support.notebook_page import ClassicPage, LabPage, Notebook7Page, NotebookPage

FRONT_ENDS: dict[str, type[NotebookPage]] = {
    "lab": LabPage,
    "notebook 7": Notebook7Page,
    "classic": ClassicPage,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A front end and the kernel behind it.

    Attributes
    ----------
    front_end
        A name of `FRONT_ENDS`.
    kernel
        The name of a kernel of the server.
    subshells
        Whether a page may send comm messages by subshells, as JupyterLab does unless it is told otherwise.
    """

    front_end: str
    kernel: str
    subshells: bool = True

    def __str__(self) -> str:
        return f"{self.front_end}, {self.kernel}" + ("" if self.subshells else " without subshells")


NEWEST = Pair("lab", "newest")

PAIRS = (
    NEWEST,
    Pair("lab", "newest", subshells=False),
    Pair("lab", "ipykernel 7.1"),
    Pair("lab", "ipykernel 6.29"),
    Pair("notebook 7", "newest"),
    Pair("classic", "colab"),
)


class Servers:
    """The servers of a session, started when they are first asked for."""

    def __init__(self, folder: Callable[[str], Path], stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._modern: JupyterServer | None = None
        self._classic: JupyterServer | None = None

    @property
    def modern(self) -> JupyterServer:
        """JupyterLab and Notebook 7, with kernels of several environments."""
        if self._modern is None:
            kernels = {
                "newest": Path(sys.executable),
                "ipykernel 7.1": python_with("ipykernel-7.1.0", "ipykernel==7.1.0", *WIDGETS),
                "ipykernel 6.29": python_with("ipykernel-6.29.5", "ipykernel==6.29.5", *WIDGETS),
            }
            self._modern = self._stack.enter_context(serving(self._folder("modern"), kernels))
        return self._modern

    @property
    def classic(self) -> JupyterServer:
        """The classic notebook with what Colab pins."""
        if self._classic is None:
            python = python_with("classic", *COLAB, "notebook==6.5.7", version="3.13")
            self._classic = self._stack.enter_context(
                serving(self._folder("classic"), {"colab": python}, python, "notebook")
            )
        return self._classic

    def of(self, pair: Pair) -> JupyterServer:
        """The server of a pair, set up for it."""
        if pair.front_end == "classic":
            return self.classic
        choice = "perCommTarget" if pair.subshells else "disabled"
        self.modern.set_up("@jupyterlab/apputils-extension", "kernels-settings", commsOverSubshells=choice)
        return self.modern


_numbers = itertools.count(1)


class Opener:
    """Opens notebooks of one pair, and closes them."""

    def __init__(self, context: BrowserContext, server: JupyterServer, pair: Pair) -> None:
        self._context = context
        self.server = server
        self._pair = pair
        self._kept: NotebookPage | None = None

    def new(self, prepare: Callable[[Page], None] | None = None) -> NotebookPage:
        """A notebook of its own, in a page of its own, with a kernel of its own."""
        name = f"notebook{next(_numbers)}.ipynb"
        self.server.write(name, notebook_of(("",), self._pair.kernel))
        notebook = self.again(name, prepare)
        notebook.soon("the kernel is idle", lambda: notebook.is_idle)
        return notebook

    def again(self, name: str, prepare: Callable[[Page], None] | None = None) -> NotebookPage:
        """A notebook that is there, in another page; `prepare` has the page before it is loaded."""
        page = self._context.new_page()
        if prepare is not None:
            prepare(page)
        notebook = FRONT_ENDS[self._pair.front_end](page, self.server, name)
        notebook.goto()
        return notebook

    def kept(self) -> NotebookPage:
        """The notebook that the tests of this pair share."""
        if self._kept is None:
            self._kept = self.new()
        return self._kept

    def drop(self) -> None:
        """Close it: the next test gets another."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def notebook_of(cells: tuple[str, ...], kernel: str) -> dict[str, Any]:
    """A notebook that has not run yet."""
    return {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell{at}",
                "source": source,
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
            for at, source in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


every_pair = pytest.mark.parametrize("pair", PAIRS, indirect=True, ids=str)
"""Has a test run with each of them; without it, with the newest JupyterLab and kernel."""
