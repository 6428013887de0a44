"""Facts of a run come in; what Eco2AI would have said of its process goes out."""

from __future__ import annotations

from .base import AS_READ, Constant, Facts, Result, Tool, as_read, not_recorded
from .figures import number, watts
from .intensities import ECO2AI

VERSION = "0.3.12"

UNKNOWN_CPU_W = 100.1
RAM_W_PER_GB = 3 / 8

TOOL = Tool(
    name="Eco2AI",
    version=VERSION,
    counts="CPU and RAM of the process; whole GPUs, all of the machine",
    leaves_out="child processes; idle power of CPU and RAM; PUE, unless one is given",
    constants=(
        Constant(
            "CPU not in its table, W",
            UNKNOWN_CPU_W,
            f"eco2ai {VERSION}, tools/tools_cpu.py; as shipped a slip in a call makes it 0",
        ),
        Constant("RAM, W/GB in the process", RAM_W_PER_GB, f"eco2ai {VERSION}, tools/tools_ram.py"),
        Constant("PUE", 1.0, f"eco2ai {VERSION}, emission_track.py, the default"),
    ),
)


def cpu_power_w(tdp_w: float, load: float, sockets: float = 1.0) -> float:
    """Power charged to a process: TDP x its share of all hardware threads x sockets, W.

    `CPU.calculate_consumption`. No idle power, no meter.
    """
    return tdp_w * load * sockets


def ram_power_w(process_memory_gb: float) -> float:
    """Power of the memory that is resident in the process, W (`RAM.calculate_consumption`)."""
    return process_memory_gb * RAM_W_PER_GB


def process(facts: Facts) -> Result:
    """Its default, `cpu_processes="current"`."""
    grid = ECO2AI.at(facts.zone)
    tdp_w = UNKNOWN_CPU_W if facts.cpu_tdp_w is None else facts.cpu_tdp_w
    by_component_j: dict[str, float] = {}
    texts, missing = [], []
    gpus_j = facts.read_j("gpu", AS_READ)
    if gpus_j:
        by_component_j["gpu"] = sum(gpus_j)
        texts.append(f"GPU: {as_read(facts, 'gpu')}")
    busy_s, threads = facts.process_cpu_s, facts.cpu_threads
    if busy_s is None or threads is None:
        missing.append("the CPU time of the process")
    else:
        share_s = busy_s / threads
        by_component_j["cpu"] = cpu_power_w(tdp_w, share_s, facts.sockets)
        known = "TDP" if facts.cpu_tdp_w is not None else "for an unknown CPU"
        texts.append(f"CPU: {watts(tdp_w)}, {known}, x {number(busy_s)} CPU seconds / {threads:g}")
    if facts.process_memory_gb is None:
        missing.append("the memory of the process")
    else:
        by_component_j["ram"] = ram_power_w(facts.process_memory_gb) * facts.duration_s
        texts.append(f"RAM: {number(facts.process_memory_gb)} GB x {RAM_W_PER_GB:g} W/GB")
    if missing:
        return TOOL.cannot(
            not_recorded(*missing), method="; ".join(texts), grid=grid, by_component_j=by_component_j
        )
    return TOOL.answers(
        facts,
        by_component_j,
        method="; ".join(texts),
        grid=grid,
        remark="A CPU is charged by its TDP and a linear share of it, never by a meter",
    )
