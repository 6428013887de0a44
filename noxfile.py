"""All checks, each in an environment of its own. `python -m nox` runs what a change must pass."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent / "tests"))
from support.environments import COLAB, interpreter

nox.needs_version = ">=2024.4"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [
    "lint",
    "types",
    "front_end",
    "tests",
    "tests_ipykernel629",
    "tests_colab",
    "browser",
    "notebooks",
    "bench",
]

TEST_TOOLS = ("pytest>=8", "pytest-xdist", "nbclient", "nbformat", "numpy", "pandas", "tqdm", "cloudpickle")

# Most of what a test of a kernel does is to wait for it, so several go on at once; files stay together.
SEVERAL = ("-n", "4", "--dist", "loadfile")

COLAB_PYTHON = "3.13"


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff, everything on but what pyproject.toml names."""
    session.install("ruff==0.17.*")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy, strict, tests included."""
    session.install(
        "mypy", "nox", "playwright", "types-psutil", "types-requests", "pandas-stubs", *TEST_TOOLS, "."
    )
    session.run("mypy")


@nox.session
def front_end(session: nox.Session) -> None:
    """The panel's own checks, and that ct_notebook/static holds what its source builds to."""
    session.chdir("js")
    for command in (("ci", "--no-audit", "--no-fund"), ("run", "lint"), ("run", "types"), ("test",)):
        session.run("npm", *command, external=True)
    built = Path(session.create_tmp())
    session.run("node", "build.mjs", str(built), external=True)
    static = Path(__file__).parent / "ct_notebook" / "static"
    for name in ("panel.js", "panel.css"):
        if (built / name).read_bytes() != (static / name).read_bytes():
            session.error(f"ct_notebook/static/{name} is not what js/ builds to: run `npm run build` there.")


def _test(session: nox.Session, marks: str, *packages: str) -> None:
    session.install(*packages, *TEST_TOOLS)
    elsewhere = [
        f"--ignore=tests/{name}" for name in ("notebooks", "frameworks", "browser", "matrix", "bench")
    ]
    session.run("pytest", *SEVERAL, "-m", marks, *elsewhere, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests on the newest of everything, with real carbontracker packages beside."""
    _test(session, "not bench", "ipykernel", "jupyter_client", ".[lab]")


@nox.session
def tests_ipykernel629(session: nox.Session) -> None:
    """The same on the last ipykernel before 7."""
    _test(session, "not bench and not peers", "ipykernel==6.29.5", "jupyter_client", ".")


@nox.session(python=interpreter(COLAB_PYTHON))
def tests_colab(session: nox.Session) -> None:
    """The same on Colab's pins; on its Python if the machine has it."""
    _test(session, "not bench and not peers", *COLAB, ".")


@nox.session
def browser(session: nox.Session) -> None:
    """Real front ends in Chromium, and real kernels of many versions."""
    others = ("papermill", "jupyter-console", "pexpect")
    session.install("playwright", "ipykernel", "notebook>=7", *others, *TEST_TOOLS, ".[lab]")
    # Two at once: a page and its kernel mostly wait for each other, but two pages keep two cores busy.
    two = ("-n", "2", "--dist", "loadfile")
    session.run("pytest", *two, "-m", "browser or matrix", "tests/browser", "tests/matrix", *session.posargs)


@nox.session
def notebooks(session: nox.Session) -> None:
    """The notebooks, executed as a reader would, and real frameworks with our callbacks."""
    # One known release of PyTorch, since a range may choose gigabytes of CUDA for a machine without a GPU.
    frameworks = ("keras", "lightning", "rich", "transformers", "accelerate")
    session.install("ipykernel", *TEST_TOOLS, ".[lab]", "torch==2.13.0", *frameworks)
    session.run("pytest", "tests/notebooks", "tests/frameworks", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios measured in one run: overhead, weight of loading, memory. `tests/bench/`."""
    session.install("ipykernel", "jupyter_client", "playwright", "websocket-client", *TEST_TOOLS, ".[lab]")
    session.run("pytest", "-m", "bench", "-s", "tests/bench", *session.posargs)
