"""All checks, each in an environment of its own. `python -m nox` runs what a change must pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2024.4"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests", "tests_ipykernel629", "tests_colab", "notebooks", "bench"]

TEST_TOOLS = ("pytest>=8", "nbclient", "nbformat", "numpy", "pandas", "tqdm", "cloudpickle")

COLAB = (
    # What Colab's runtime pins (googlecolab/backend-info, 2026-08): an emulation, on the packages alone.
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "ipywidgets==7.7.1",
    "jupyter_client==7.4.9",
    "tornado==6.5.*",
    "traitlets==5.7.1",
    "anywidget==0.9.21",
    "plotly==5.24.1",
    "requests==2.32.4",
    "setuptools",
)

COLAB_PYTHON = "3.13"


def _interpreter(version: str) -> str:
    """The interpreter of a version if the machine has one that starts, else the one that runs nox."""
    installed = sorted(str(path) for path in Path.home().glob(f".pyenv/versions/{version}*/bin/python"))
    for place in (shutil.which(f"python{version}"), *installed):
        # A shim of a version manager may be there without its Python.
        if place and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:  # noqa: S603
            return place
    return sys.executable


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff, everything on but what pyproject.toml names."""
    session.install("ruff==0.17.*")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy, strict, tests included."""
    session.install("mypy", "nox", "types-psutil", "types-requests", "pandas-stubs", *TEST_TOOLS, ".")
    session.run("mypy")


def _test(session: nox.Session, marks: str, *packages: str) -> None:
    session.install(*packages, *TEST_TOOLS)
    session.run("pytest", "-m", marks, "--ignore=tests/notebooks", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests on the newest of everything, with real carbontracker packages beside."""
    _test(session, "not bench", "ipykernel", "jupyter_client", ".[lab]")


@nox.session
def tests_ipykernel629(session: nox.Session) -> None:
    """The same on the last ipykernel before 7."""
    _test(session, "not bench and not peers", "ipykernel==6.29.5", "jupyter_client", ".")


@nox.session(python=_interpreter(COLAB_PYTHON))
def tests_colab(session: nox.Session) -> None:
    """The same on Colab's pins; on its Python if the machine has it."""
    _test(session, "not bench and not peers", *COLAB, ".")


@nox.session
def notebooks(session: nox.Session) -> None:
    """The notebooks, executed as a reader would."""
    # One known release of PyTorch, since a range may choose gigabytes of CUDA for a machine without a GPU.
    session.install("ipykernel", *TEST_TOOLS, ".[lab]", "torch==2.13.0")
    session.run("pytest", "tests/notebooks", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios measured in one run: overhead, weight of loading, memory. `tests/bench/`."""
    session.install("ipykernel", "jupyter_client", *TEST_TOOLS, ".")
    session.run("pytest", "-m", "bench", "-s", "tests/bench", *session.posargs)
