"""Facts of a run come in; what Experiment-Impact-Tracker would have charged to its process goes out."""

from __future__ import annotations

from .base import Constant, Facts, Result, Tool, not_recorded
from .figures import number
from .intensities import EXPERIMENT_IMPACT_TRACKER

VERSION = "0.1.8"

PUE = 1.58

TOOL = Tool(
    name="Experiment-Impact-Tracker",
    version=VERSION,
    counts="the process's share of what RAPL and NVIDIA's driver measured, by CPU time, memory and GPU work",
    leaves_out="a machine without RAPL; RAM without a RAPL zone; what nobody was busy with",
    constants=(Constant("PUE", PUE, f"experiment-impact-tracker {VERSION}, emissions/constants.py"),),
)


def attributed_j(package_j: float, dram_j: float, cpu_share: float, memory_share: float) -> float:
    """Joules of RAPL that are charged to a process (`cpu/intel.py`).

    Cores and the rest of the packages by the share of CPU time come to the same as packages together. It
    takes the memory's zone off the package, as though that held it.

    Parameters
    ----------
    package_j, dram_j
        Of all packages and all memory zones.
    cpu_share
        CPU time of the process over that of all processes.
    memory_share
        Memory of the process over that in use.
    """
    return dram_j * memory_share + (package_j - dram_j) * cpu_share


def process(facts: Facts) -> Result:
    """The only one of the seven that shares out what was measured."""
    grid = EXPERIMENT_IMPACT_TRACKER.at(facts.zone)
    by_component_j: dict[str, float] = {}
    texts: list[str] = []
    missing: list[str] = []
    packages_j = facts.read_j("cpu", dram=False)
    dram_j = sum(facts.read_j("cpu")) - sum(packages_j)
    if packages_j:
        cpu_share = _cpu_share(facts)
        memory_share = _memory_share(facts) if dram_j > 0 else 0.0
        if cpu_share is None:
            missing.append("the CPU time of the process beside that of all")
        elif memory_share is None:
            missing.append("the memory of the process beside that in use")
        else:
            by_component_j["cpu"] = attributed_j(sum(packages_j), dram_j, cpu_share, memory_share)
            texts.append(f"CPU: RAPL x {cpu_share:.2f} of the busy CPU time")
    gpus_j = facts.read_j("gpu")
    if gpus_j and facts.process_gpu_share is None:
        missing.append("the process's share of the GPUs' work")
    elif gpus_j and facts.process_gpu_share is not None:
        by_component_j["gpu"] = sum(gpus_j) * facts.process_gpu_share
        texts.append(f"GPU: as read x {number(facts.process_gpu_share)} of its work")
    method = "; ".join(texts)
    if missing or not (packages_j or gpus_j):
        why = (
            not_recorded(*missing)
            if missing
            else "No figure: it measures only, and this run has neither RAPL nor a GPU with a meter."
        )
        return TOOL.cannot(why, method=method, grid=grid, pue=PUE, by_component_j=by_component_j)
    remark = "" if packages_j else "It has no figure for a CPU without RAPL"
    return TOOL.answers(facts, by_component_j, method=method, grid=grid, pue=PUE, remark=remark)


def _cpu_share(facts: Facts) -> float | None:
    if facts.process_cpu_s is None or facts.cpu_load is None or facts.cpu_threads is None:
        return None
    busy_s = facts.cpu_load * facts.cpu_threads * facts.duration_s
    return min(1.0, facts.process_cpu_s / busy_s) if busy_s > 0 else None


def _memory_share(facts: Facts) -> float | None:
    if facts.process_memory_gb is None or facts.memory_used_gb is None:
        return None
    # It adds the memory that is the process's alone to its proportional share, which holds the same again.
    return 2 * facts.process_memory_gb / facts.memory_used_gb
