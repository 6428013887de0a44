"""Real carbontracker packages, each in an environment of its own, to be asked what they make of a log.

The environments are made once, below `CT_NOTEBOOK_PEERS_DIR` or `.nox/peers`, by pip from its registry.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

REQUIREMENTS = {
    # 1.2.5 imports pkg_resources, which setuptools has dropped since.
    "1.2.5": ("carbontracker==1.2.5", "setuptools<81"),
    "2.4.7": ("carbontracker==2.4.7",),
}

# A proxy that nobody answers at: what they would ask the network for fails at once and the same everywhere.
_NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")

_READ = """
import json, math, sys
import numpy as np
from carbontracker import parser

def plain(value):
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "values": value.tolist()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

folder = sys.argv[1]
answers = {name: plain(getattr(parser, name)(folder)) for name in ("parse_all_logs", "aggregate_consumption")}
print(json.dumps(answers))
"""


@functools.cache
def peer_python(version: str) -> Path:
    """Interpreter of an environment that holds this carbontracker; made if it is not there.

    Raises
    ------
    RuntimeError
        It cannot be made. A test that needs it must fail then, not pass unasked.
    """
    peers = Path(os.environ.get("CT_NOTEBOOK_PEERS_DIR") or ROOT / ".nox" / "peers")
    folder = peers / f"carbontracker-{version}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if _holds(python, version):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *REQUIREMENTS[version],
        ],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            msg = f"carbontracker {version} cannot be installed in {folder}: {done.stderr.strip()[-2000:]}"
            raise RuntimeError(msg)
    if not _holds(python, version):
        msg = f"{folder} holds no carbontracker {version} that can be imported. Remove it and run again."
        raise RuntimeError(msg)
    return python


def _holds(python: Path, version: str) -> bool:
    if not python.exists():
        return False
    code = "import carbontracker.parser, importlib.metadata as m; print(m.version('carbontracker'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def run_peer(version: str, code: str, *arguments: object) -> str:
    """What code prints in the environment of this carbontracker, without a network."""
    done = subprocess.run(
        [str(peer_python(version)), "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | _NO_NETWORK,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def peer_reads(version: str, folder: Path) -> dict[str, Any]:
    """Ask this carbontracker for `parse_all_logs` and `aggregate_consumption`; arrays as shape and values."""
    answers: dict[str, Any] = json.loads(run_peer(version, _READ, folder).splitlines()[-1])
    return answers
