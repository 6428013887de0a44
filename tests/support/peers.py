"""Real carbontracker packages, each in an environment of its own, to be asked what they make of a log."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.environments import python_with

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


def peer_python(version: str) -> Path:
    """Interpreter of an environment that holds this carbontracker; made if it is not there."""
    return python_with(f"carbontracker-{version}", *REQUIREMENTS[version])


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
