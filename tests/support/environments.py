"""Environments with packages of their own, made once by pip and kept.

They lie below `CT_NOTEBOOK_ENVIRONMENTS_DIR` or `.nox/environments`.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]

VARIABLE = "CT_NOTEBOOK_ENVIRONMENTS_DIR"

WIDGETS = ("anywidget", "ipywidgets", "psutil", "nvidia-ml-py")
"""What a kernel needs to run ct_notebook from this repository with its panel."""

COLAB = (
    # What Colab's runtime pins (googlecolab/backend-info, 2026-08): an emulation, by the packages alone.
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "ipywidgets==7.7.1",
    "jupyter_client==7.4.9",
    "tornado==6.5.*",
    "traitlets==5.7.1",
    "anywidget==0.9.21",
    "plotly==5.24.1",
    "requests==2.32.4",
    "psutil",
    "nvidia-ml-py",
    "setuptools<81",
)


@functools.cache
def python_with(name: str, *requirements: str, version: str = "") -> Path:
    """Interpreter of an environment that holds some packages; made if it is not there.

    Parameters
    ----------
    name
        Of its folder.
    requirements
        What pip is asked for, in one call.
    version
        Of its Python, "3.13"; that of the tests if the machine has no such one.

    Raises
    ------
    RuntimeError
        It cannot be made. A test that needs it must fail then, not pass unasked.
    """
    base = interpreter(version)
    key = hashlib.sha256(repr((base, requirements)).encode()).hexdigest()[:8]
    folder = Path(os.environ.get(VARIABLE) or ROOT / ".nox" / "environments") / f"{name}-{key}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "complete"
    with alone(folder):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(base, "-m", "venv", str(folder))
            _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
            done.touch()
    return python


@functools.cache
def folder_with(name: str, *requirements: str) -> Path:
    """A folder with some pure Python packages, to be put before those of the environment of the tests.

    Raises
    ------
    RuntimeError
        It cannot be made.
    """
    key = hashlib.sha256(repr((sys.version_info[:2], requirements)).encode()).hexdigest()[:8]
    folder = Path(os.environ.get(VARIABLE) or ROOT / ".nox" / "environments") / f"{name}-{key}"
    done = folder / "complete"
    with alone(folder):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
            _run(sys.executable, *pip, "--target", str(folder), *requirements)
            done.touch()
    return folder


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While a folder is made by one process of the tests, the others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def interpreter(version: str) -> str:
    """The Python of a version if the machine has one that starts, else the one that runs this."""
    installed = sorted(str(path) for path in Path.home().glob(f".pyenv/versions/{version}*/bin/python"))
    for place in (shutil.which(f"python{version}"), *installed) if version else ():
        # A shim of a version manager may be there without its Python.
        if place and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    return sys.executable


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{' '.join(command)}: {done.stderr.strip()[-2000:]}"
        raise RuntimeError(msg)
