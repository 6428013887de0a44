"""Facts of a run come in; what CodeCarbon would have said goes out, for the machine and for the process."""

from __future__ import annotations

import math

from .base import AS_READ, Constant, Facts, Result, Tool, as_read, not_recorded
from .figures import number, watts
from .intensities import CODECARBON

VERSION = "3.3.2"

FLOOR, SPAN, EXPONENT = 0.1, 0.9, 3
CONSTANT_SHARE = 0.5
W_PER_THREAD = 4.0
UNKNOWN_CPU_W = 85.0

DIMM_W, DIMM_ARM_W = 5.0, 1.5
LEAST_RAM_W, LEAST_RAM_ARM_W = 10.0, 3.0
DIMM_SIZES_GB = (128, 64, 32, 16, 8, 4)
MOST_DIMMS = 32
DISCOUNTS = ((4, 1.0), (8, 0.9), (16, 0.8), (MOST_DIMMS, 0.7))
"""Up to so many DIMMs, each one more draws this share of the power of the first."""


def _of(file: str) -> str:
    return f"codecarbon {VERSION}, {file}"


_CPU = (
    Constant("CPU, share of the TDP at no load", FLOOR, _of("external/hardware.py")),
    Constant("CPU, share of the TDP if the load is unknown", CONSTANT_SHARE, _of("external/hardware.py")),
    Constant("CPU not in its table, W per hardware thread", W_PER_THREAD, _of("core/cpu.py")),
    Constant("CPU of which nothing is known, W", UNKNOWN_CPU_W, _of("external/hardware.py")),
)
_RAM = (
    Constant("RAM, W per DIMM", DIMM_W, _of("external/ram.py")),
    Constant("RAM, W at least", LEAST_RAM_W, _of("external/ram.py")),
)
_PUE = Constant("PUE", 1.0, _of("emissions_tracker.py, the default"))

MACHINE = Tool(
    name="CodeCarbon (machine)",
    version=VERSION,
    counts="CPU, GPU and RAM of the whole machine, idle power and other programs included",
    leaves_out="PUE, unless one is given; RAPL zones of the memory",
    constants=(*_CPU, *_RAM, _PUE),
)

PROCESS = Tool(
    name="CodeCarbon (process)",
    version=VERSION,
    counts="the process's share of the CPU; RAM by the memory of the process, at least 10 W; whole GPUs",
    leaves_out="idle power of the CPU; PUE, unless one is given; RAPL zones of the memory",
    constants=(*_CPU[2:], *_RAM, _PUE),
)


def cpu_power_w(tdp_w: float, load: float) -> float:
    """Power of a CPU by load: TDP x (0.1 + 0.9 load^3), W (`CPU._get_power_from_cpu_load`).

    Parameters
    ----------
    tdp_w
        Of all packages, W.
    load
        0 to 1.
    """
    return tdp_w * (FLOOR + SPAN * load**EXPONENT)


def full_power_w(facts: Facts) -> tuple[float, str]:
    """The TDP that it would reckon with, W, and how it comes to it.

    Its table of some 4,900 CPUs is not held here: without a TDP in the facts the CPU counts as one that is
    not in that table.
    """
    if facts.cpu_tdp_w is not None:
        tdp_w = facts.cpu_tdp_w * facts.sockets
        return tdp_w, f"TDP {watts(tdp_w)}"
    if facts.cpu_threads is not None:
        tdp_w = W_PER_THREAD * facts.cpu_threads * facts.sockets
        threads = f"{number(facts.cpu_threads)} thread{'' if facts.cpu_threads == 1 else 's'}"
        # It multiplies what it has for all threads by the sockets once more (`set_CPU_tracking`).
        twice = "" if facts.sockets == 1 else f", once for each of {facts.sockets:g} sockets,"
        return tdp_w, f"{watts(tdp_w)} for {threads}{twice} of a CPU of unknown TDP"
    return UNKNOWN_CPU_W, f"{watts(UNKNOWN_CPU_W)} for a CPU of which nothing is known"


def dimms(memory_gb: float) -> int:
    """How many memory modules it takes a machine to have (`RAM._estimate_dimm_count`)."""
    for up_to_gb, count in ((2, 1), (16, 2), (64, 4), (128, 8)):
        if memory_gb <= up_to_gb:
            return count
    size_gb = next(size for size in DIMM_SIZES_GB if size <= memory_gb / 8)
    return min(math.ceil(memory_gb / size_gb), MOST_DIMMS)


def ram_power_w(memory_gb: float, *, is_arm: bool = False) -> float:
    """Power of the memory: a step function of its size, W (`RAM._calculate_ram_power`).

    Parameters
    ----------
    memory_gb
        Of the machine or, in process mode, of the process, GiB.
    is_arm
        Modules of an ARM machine draw less.
    """
    left, before, modules = dimms(memory_gb), 0, 0.0
    for up_to, share in DISCOUNTS:
        some = min(left, up_to - before)
        modules += some * share
        left, before = left - some, up_to
    return max(LEAST_RAM_ARM_W if is_arm else LEAST_RAM_W, modules * (DIMM_ARM_W if is_arm else DIMM_W))


def machine(facts: Facts) -> Result:
    """Its default, `tracking_mode="machine"`."""
    grid = CODECARBON.at(facts.zone)
    by_component_j, texts = _meters(facts)
    remark = ""
    if "cpu" not in by_component_j:
        tdp_w, text = full_power_w(facts)
        if facts.cpu_load is None:
            power_w = CONSTANT_SHARE * tdp_w
            texts.append(f"CPU: {text} x {CONSTANT_SHARE:g}, its constant if the load is unknown")
            remark = "Without a load it takes half the TDP"
        else:
            power_w = cpu_power_w(tdp_w, facts.cpu_load)
            texts.append(f"CPU: {text} x ({FLOOR:g} + {SPAN:g} x {facts.cpu_load:.2f}^{EXPONENT})")
            remark = (
                f"Its cubic curve puts a CPU at {100 * facts.cpu_load:.0f} % load at "
                f"{100 * cpu_power_w(1.0, facts.cpu_load):.0f} % of its TDP"
            )
        by_component_j["cpu"] = power_w * facts.duration_s
    if facts.memory_gb is None:
        return MACHINE.cannot(
            not_recorded("the size of the memory"),
            method="; ".join(texts),
            grid=grid,
            by_component_j=by_component_j,
        )
    by_component_j["ram"] = _ram_j(facts, facts.memory_gb, texts)
    return MACHINE.answers(facts, by_component_j, method="; ".join(texts), grid=grid, remark=remark)


def process(facts: Facts) -> Result:
    """The same with `tracking_mode="process"`: a CPU without a meter by the share of CPU time, linear."""
    grid = CODECARBON.at(facts.zone)
    by_component_j, texts = _meters(facts)
    missing = []
    metered = "cpu" in by_component_j
    if not metered:
        if facts.process_cpu_s is None or facts.cpu_threads is None:
            missing.append("the CPU time of the process")
        else:
            tdp_w, text = full_power_w(facts)
            by_component_j["cpu"] = tdp_w * facts.process_cpu_s / facts.cpu_threads
            texts.append(f"CPU: {text} x {number(facts.process_cpu_s)} CPU seconds / {facts.cpu_threads:g}")
    if facts.process_memory_gb is None:
        missing.append("the memory of the process")
    else:
        by_component_j["ram"] = _ram_j(facts, facts.process_memory_gb, texts)
    if missing:
        return PROCESS.cannot(
            not_recorded(*missing), method="; ".join(texts), grid=grid, by_component_j=by_component_j
        )
    return PROCESS.answers(
        facts,
        by_component_j,
        method="; ".join(texts),
        grid=grid,
        remark="" if metered else "It charges the process by its CPU time, without idle power",
    )


def _ram_j(facts: Facts, memory_gb: float, texts: list[str]) -> float:
    power_w = ram_power_w(memory_gb, is_arm=facts.is_arm)
    least = ", the least," if power_w == (LEAST_RAM_ARM_W if facts.is_arm else LEAST_RAM_W) else ""
    texts.append(f"RAM: {watts(power_w)}{least} for {number(memory_gb)} GB")
    return power_w * facts.duration_s


def _meters(facts: Facts) -> tuple[dict[str, float], list[str]]:
    """What it would have read: whole GPUs and packages in either mode."""
    by_component_j: dict[str, float] = {}
    texts = []
    gpus_j = facts.read_j("gpu", AS_READ)
    if gpus_j:
        by_component_j["gpu"] = sum(gpus_j)
        texts.append(f"GPU: {as_read(facts, 'gpu')}")
    packages_j = facts.read_j("cpu", dram=False)
    if packages_j:
        by_component_j["cpu"] = sum(packages_j)
        texts.append("CPU: RAPL packages as read")
    return by_component_j, texts
