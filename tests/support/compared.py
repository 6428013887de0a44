"""Facts of runs that other tools' methods are asked about, and real packages to ask."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from types import MappingProxyType
from typing import Any

from ct_notebook.compare.base import Facts, Used
from ct_notebook.records import Run
from support.environments import python_with
from support.snapshots import example_run

PACKAGES = {
    "codecarbon": ("codecarbon-3.3.2", ("codecarbon==3.3.2",)),
    # As installed today it fails: it needs an older pandas, and setuptools with pkg_resources.
    "eco2ai": ("eco2ai-0.3.12", ("eco2ai==0.3.12", "pandas<2.2", "setuptools<81")),
    "carbontracker": ("carbontracker-2.4.7", ("carbontracker==2.4.7",)),
}
"""The real ones: a folder's name and what pip is asked for."""

# A proxy that nobody answers at: what they would ask the network for fails at once and the same everywhere.
_NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")

HALF_AN_HOUR_S = 1800.0

SERVER = Facts(
    duration_s=HALF_AN_HOUR_S,
    used=(
        Used("gpu", "NVIDIA A100", "counter", 300.0 * HALF_AN_HOUR_S),
        Used("gpu", "NVIDIA A100", "counter", 100.0 * HALF_AN_HOUR_S),
        Used("cpu", "cpu:0", "counter", 80.0 * HALF_AN_HOUR_S),
        Used("cpu", "dram:0", "counter", 20.0 * HALF_AN_HOUR_S, is_dram=True),
        Used("ram", "RAM (128 GB)", "constant", 40.0 * HALF_AN_HOUR_S),
    ),
    gpu_names=("NVIDIA A100", "NVIDIA A100"),
    cpu_threads=32.0,
    cpu_sockets=1.0,
    cpu_tdp_w=150.0,
    cpu_load=0.25,
    process_cpu_s=0.25 * 32 * HALF_AN_HOUR_S * 0.6,
    memory_gb=128.0,
    memory_used_gb=64.0,
    process_memory_gb=8.0,
    gpu_limit_w=800.0,
    gpu_utilisation=0.5,
    process_gpu_share=0.9,
    zone="DK",
    g_per_kwh=114.0,
    pue=1.2,
)
"""A server with meters for everything, half an hour."""

VIRTUAL = Facts(
    duration_s=20.0,
    used=(Used("cpu", "AMD EPYC", "modelled", 60.0), Used("ram", "RAM (23.5 GB)", "constant", 160.0)),
    cpu_threads=2.0,
    cpu_load=0.5,
    process_cpu_s=20.0,
    memory_gb=23.5,
    process_memory_gb=0.5,
    zone="DK",
    g_per_kwh=114.0,
    pue=1.54,
)
"""A virtual machine without any meter, one of its two threads busy for 20 s."""

MACHINE = MappingProxyType(
    {
        "cpu_threads": 8.0,
        "cpu_sockets": 1.0,
        "cpu_tdp_w": 100.0,
        "cpu_load": 0.5,
        "process_cpu_s": 60.0,
        "memory_gb": 31.2,
        "process_memory_gb": 1.5,
        "gpu_limit_w": 400.0,
        "process_gpu_share": 1.0,
    }
)


def described_run() -> Run:
    """A GPU and a CPU without a meter, and a machine of which enough is known."""
    return dataclasses.replace(example_run(), machine=MACHINE)


def ask(package: str, code: str) -> Any:
    """What a script that prints json says in the environment of a real package, without a network."""
    folder, requirements = PACKAGES[package]
    done = subprocess.run(
        [str(python_with(folder, *requirements)), "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | _NO_NETWORK,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
