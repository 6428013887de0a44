"""Imports go one way, heavy packages have one owner, and nothing happens at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ct_notebook

PACKAGE = Path(ct_notebook.__file__).parent

FLOORS: list[set[str]] = [
    {"units", "errors"},
    {"records", "budget"},
    {"settings", "sensors", "intensity", "account", "course", "bars", "attribution", "log", "ask"},
    {"sampler", "parser", "steps", "compare", "advice", "statement", "equivalents", "machine_use"},
    {"forecast"},
    {"recording", "forward"},
    {"display"},
    {"tracker"},
    {"loops", "callbacks"},
    {"rewrite", "flags"},
    {"magics"},
    {"__init__"},
]
"""From the ground up. A room imports from floors below its own, and from within itself."""

DOORS = {("records", "display"), ("records", "compare")}
"""Methods that open a room above by an import within them: `run.figure()`, `run.compare()`, how a notebook
shows a run."""

OWNERS: dict[str, set[str]] = {
    "anywidget": {"display/panel.py"},
    "ipywidgets": {"display/panel.py"},
    "plotly": {"display/figure.py", "compare/chart.py", "advice/chart.py"},
    "requests": {"intensity/http.py"},
    "pynvml": {"sensors/nvml.py"},
    "psutil": {"sensors"},
    "IPython": {"magics.py", "flags.py", "ask", "display"},
    "traitlets": {"flags.py", "display/panel.py"},
    "zmq": {"ask"},
    "ipykernel": {"ask"},
    "numpy": {"parser.py"},
    "keras": {"callbacks/keras.py"},
    "lightning": {"callbacks/lightning.py"},
    "pytorch_lightning": {"callbacks/lightning.py"},
    "transformers": {"callbacks/transformers.py"},
    "pandas": {"records.py", "compare/comparison.py"},
}
"""Third-party packages and the only places that may import them."""


def modules() -> list[Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    assert found, "the package has no modules, so this test would look at nothing"
    return found


def room_of(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py") if parts else "__init__"


def imports_of(path: Path) -> list[tuple[tuple[str, ...], str]]:
    """Everything a module imports, at any depth: (parts below the package, "") or ((), third-party name)."""
    here = path.relative_to(PACKAGE).parts
    found: list[tuple[tuple[str, ...], str]] = []
    tree = ast.parse(path.read_text("utf-8"))
    type_checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in type_checking:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = here[: len(here) - node.level]
                module = tuple(node.module.split(".")) if node.module else ()
                found += [
                    ((*base, *module, alias.name) if not module else (*base, *module), "")
                    for alias in node.names
                ]
                continue
            names = [node.module or ""]
            if names == ["ct_notebook"]:
                found += [((alias.name,), "") for alias in node.names]
                continue
        else:
            continue
        for name in names:
            parts = tuple(name.split("."))
            found.append((parts[1:], "") if parts[0] == "ct_notebook" else ((), parts[0]))
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_runs_back(path: Path) -> None:
    room = room_of(path.relative_to(PACKAGE).parts)
    floor = {name: height for height, names in enumerate(FLOORS) for name in names}
    assert room in floor, f"{room} has no place in the plan of this test"
    for parts, _ in imports_of(path):
        target = room_of(parts)
        if parts and target != room and target in floor and (room, target) not in DOORS:
            assert floor[target] < floor[room], f"{path.name} ({room}) imports {'.'.join(parts)}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_have_one_owner(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    for _, name in imports_of(path):
        if name in OWNERS:
            assert any(place == owner or place.startswith(owner + "/") for owner in OWNERS[name]), (
                f"{place}: {name}"
            )


HEAVY = ("anywidget", "ipywidgets", "plotly", "requests", "pynvml", "psutil", "numpy", "pandas")


def run(code: str, *flags: str) -> str:
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loading_the_extension_loads_nothing_heavy() -> None:
    loaded = run(
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "before = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'ct_notebook')\n"
        "assert 'carbontrack' in shell.magics_manager.magics['cell']\n"
        f"print(sorted(set({HEAVY!r}) & (set(sys.modules) - before)))"
    )
    assert loaded.splitlines()[-1] == "[]"


def test_the_tracker_loads_nothing_that_it_does_not_use() -> None:
    loaded = run(f"import sys, ct_notebook.tracker\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))")
    assert loaded.strip() == "[]"


def test_importing_the_package_starts_and_prints_nothing() -> None:
    assert (
        run(
            "import threading, ct_notebook, ct_notebook.tracker\nprint(threading.active_count())",
            "-W",
            "error",
        )
        == "1\n"
    )


def test_public_names_are_those_that_exist() -> None:
    assert ct_notebook.__all__ == sorted(ct_notebook.__all__)
    for name in ct_notebook.__all__:
        assert getattr(ct_notebook, name).__name__ == name
    assert set(ct_notebook.__all__) <= set(dir(ct_notebook))
    with pytest.raises(AttributeError, match="no_such_name"):
        ct_notebook.no_such_name  # noqa: B018 - looking it up is the test
