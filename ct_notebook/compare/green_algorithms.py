"""Facts of a run come in; what the Green Algorithms form would have said of it goes out."""

from __future__ import annotations

from .base import Constant, Facts, Result, Tool, not_recorded
from .figures import number, watts
from .intensities import GREEN_ALGORITHMS

VERSION = "3.0"

W_PER_CORE = 12.0
W_PER_GPU = 200.0
W_PER_GB = 0.3725
USAGE = 1.0
PUE_OWN = 1.0
PUE_DATA_CENTRE = 1.56


def _of(file: str) -> str:
    return f"Green Algorithms {VERSION}, {file}"


TOOL = Tool(
    name="Green Algorithms",
    version=VERSION,
    counts="what was asked for: cores, GPUs and memory, all fully used, and the data centre around them",
    leaves_out="what the machine really drew: no meter, no load unless it is given",
    constants=(
        Constant("CPU of any kind, W per core", W_PER_CORE, _of("TDP_cpu.csv")),
        Constant("GPU of any kind, W", W_PER_GPU, _of("TDP_gpu.csv")),
        Constant("memory, W/GB", W_PER_GB, _of("referenceValues.csv")),
        Constant("usage of cores and GPUs", USAGE, _of("the form's default")),
        Constant("PUE of a machine of one's own", PUE_OWN, _of("the form")),
        Constant("PUE of an unknown data centre", PUE_DATA_CENTRE, _of("defaults_PUE.csv")),
    ),
)


def power_w(
    cores_w: float, gpus_w: float, memory_gb: float, cpu_usage: float = USAGE, gpu_usage: float = USAGE
) -> float:
    """Power of what was asked for, before PUE, W (`blueprints/form/form_blueprint.py`).

    Parameters
    ----------
    cores_w, gpus_w
        Cores x W per core; GPUs x W per GPU.
    memory_gb
        Asked for, GB.
    cpu_usage, gpu_usage
        0 to 1.
    """
    return cores_w * cpu_usage + gpus_w * gpu_usage + memory_gb * W_PER_GB


def form(facts: Facts) -> Result:
    """The form, filled in with the hardware and the time and nothing else.

    Hardware threads are given as cores, as people do who were allotted vCPUs. A run with a PUE of 1 is one
    on a machine of one's own, any other is in an unknown data centre.
    """
    grid = GREEN_ALGORITHMS.at(facts.zone)
    pue = PUE_OWN if facts.pue == 1 else PUE_DATA_CENTRE
    by_component_j: dict[str, float] = {}
    texts, missing = [], []
    if facts.gpu_count:
        if facts.gpu_limit_w is None:
            limits_w = W_PER_GPU * facts.gpu_count
            texts.append(f"GPU: {facts.gpu_count} x {watts(W_PER_GPU)}, fully used")
        else:
            limits_w = facts.gpu_limit_w
            texts.append(f"GPU: power limit {watts(limits_w)}, fully used")
        by_component_j["gpu"] = power_w(0.0, limits_w, 0.0) * facts.duration_s
    if facts.cpu_tdp_w is not None:
        cores_w: float | None = facts.cpu_tdp_w * facts.sockets
        texts.append(f"CPU: TDP {watts(facts.cpu_tdp_w * facts.sockets)}, fully used")
    elif facts.cpu_threads is not None:
        cores_w = W_PER_CORE * facts.cpu_threads
        texts.append(f"CPU: {number(facts.cpu_threads)} cores x {watts(W_PER_CORE)}, fully used")
    else:
        cores_w = None
        missing.append("the number of cores")
    if cores_w is not None:
        by_component_j["cpu"] = power_w(cores_w, 0.0, 0.0) * facts.duration_s
    if facts.memory_gb is None:
        missing.append("the size of the memory")
    else:
        by_component_j["ram"] = power_w(0.0, 0.0, facts.memory_gb) * facts.duration_s
        texts.append(f"RAM: {number(facts.memory_gb)} GB x {W_PER_GB:g} W/GB")
    method = "; ".join(texts)
    if missing:
        return TOOL.cannot(
            not_recorded(*missing), method=method, grid=grid, pue=pue, by_component_j=by_component_j
        )
    load = "" if facts.cpu_load is None else f", though the CPU was {100 * facts.cpu_load:.0f} % loaded"
    return TOOL.answers(
        facts,
        by_component_j,
        method=method,
        grid=grid,
        pue=pue,
        remark=f"It takes all that was asked for to be fully used{load}",
    )
