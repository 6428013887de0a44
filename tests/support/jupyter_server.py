"""Kernels of some environments go in; a real Jupyter server that has them comes out, with private folders."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ct_notebook

PACKAGE = Path(ct_notebook.__file__).resolve().parent

PATIENCE_S = 120.0
"""A server that does not answer for so long is taken for dead."""

END_S = 20.0
"""How long a server may take to end."""


@dataclass(frozen=True, slots=True)
class JupyterServer:
    """A running server.

    Attributes
    ----------
    url
        Where it answers, without a slash at the end.
    root
        The folder that it shows. Kernels work here.
    settings
        Of JupyterLab and Notebook 7, read anew by each page.
    """

    url: str
    root: Path
    settings: Path

    def set_up(self, plugin: str, name: str, **choices: Any) -> None:
        """Write the settings of a plug-in, such as "@jupyterlab/apputils-extension" and "themes"."""
        file = self.settings / plugin / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(choices), encoding="utf-8")

    def ask(self, path: str, method: str = "GET") -> Any:
        """Ask below /api, such as "sessions"; None if the answer is empty."""
        request = urllib.request.Request(f"{self.url}/api/{path}", method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def end_kernel(self, name: str) -> None:
        """End the kernel of a notebook, and whatever runs in it."""
        for session in self.ask("sessions"):
            if session["path"] == name:
                self.ask(f"sessions/{session['id']}", "DELETE")

    def write(self, name: str, notebook: Mapping[str, Any]) -> Path:
        """Put a notebook where the server finds it."""
        path = self.root / name
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path


@contextmanager
def serving(
    folder: Path, kernels: Mapping[str, Path], python: Path | None = None, module: str = "jupyterlab"
) -> Iterator[JupyterServer]:
    """A server that is ended afterwards, with its kernels.

    Parameters
    ----------
    folder
        Empty; everything that the server writes stays in it.
    kernels
        Interpreter of each kernel, by the kernel's name. They get the package that is tested, whatever else
        is installed beside it stays out of their sight.
    python
        Whose server it is; that of the tests if not given.
    module
        Which of its servers: "jupyterlab" (serves Notebook 7 as well) or "notebook".

    Raises
    ------
    AssertionError
        It does not start; what it printed is told.
    """
    package = folder / "package"
    package.mkdir()
    (package / PACKAGE.name).symlink_to(PACKAGE, target_is_directory=True)
    for name, interpreter in kernels.items():
        spec = folder / "data" / "kernels" / name
        spec.mkdir(parents=True)
        launch = ["-m", "ipykernel_launcher", "--HistoryManager.enabled=False", "-f", "{connection_file}"]
        content = {
            "argv": [str(interpreter), *launch],
            "display_name": name,
            "language": "python",
            "env": {"PYTHONPATH": str(package)},
        }
        (spec / "kernel.json").write_text(json.dumps(content), encoding="utf-8")
    root = folder / "notebooks"
    root.mkdir()
    port = _free_port()
    server = JupyterServer(f"http://127.0.0.1:{port}", root, folder / "settings")
    server.set_up("@jupyterlab/apputils-extension", "notification", fetchNews="false", checkForUpdates=False)
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [str(python or sys.executable), "-m", module, *_arguments(port, root)],
            env=_environ(folder),
            cwd=root,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{server.url}/api", process, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            # It waits for a kernel that does not end. Kernels end by themselves without their server.
            process.kill()
            process.wait(PATIENCE_S)


def _arguments(port: int, root: Path) -> list[str]:
    return [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}",
        f"--NotebookApp.port={port}",
        f"--NotebookApp.notebook_dir={root}",
        "--NotebookApp.token=",
        "--NotebookApp.disable_check_xsrf=True",
        "--ServerApp.disable_check_xsrf=True",
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]


def _environ(folder: Path) -> dict[str, str]:
    """The machine's environment, without its Jupyter and without settings of ours."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CT_NOTEBOOK_", "JUPYTER", "IPYTHON", "JPY_"))
    }
    return inherited | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):  # noqa: PERF203 - asked again until it answers
            failed = process.poll() is not None or time.monotonic() > give_up_s
            if failed:
                failure = f"The server did not start: {log.read_text(encoding='utf-8')[-3000:]}"
                raise AssertionError(failure) from None
            time.sleep(0.1)
