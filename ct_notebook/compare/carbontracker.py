"""Facts of a run come in; what carbontracker would have said goes out: devices summed, or their mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .base import AS_READ, METERED, Constant, Facts, Result, Tool, as_read
from .figures import watts
from .intensities import CARBONTRACKER

VERSION = "2.4.7"

PUE = 1.58
CPU_SHARE = 0.5
UNKNOWN_CPU_W = 35.6
"""Half the mean of the 3,923 TDPs of its table."""

_CONSTANTS = (
    Constant("PUE", PUE, f"carbontracker {VERSION}, constants.py: Uptime Institute 2023"),
    Constant(
        "CPU without a meter, share of the TDP",
        CPU_SHARE,
        f"carbontracker {VERSION}, components/cpu/generic.py",
    ),
    Constant(
        "CPU not in its table, W",
        UNKNOWN_CPU_W,
        f"carbontracker {VERSION}, half the mean of data/cpu_power.csv",
    ),
)
_COUNTS = "GPU and CPU of the whole machine, idle power and other programs included; RAPL zones of the memory"
_LEAVES_OUT = "RAM without a RAPL zone; the load of a CPU without a meter"

SUMMED = Tool(
    name="carbontracker (1.x rule)",
    version=f"{VERSION}, devices summed as in 1.x",
    counts=_COUNTS,
    leaves_out=_LEAVES_OUT,
    constants=_CONSTANTS,
)

AVERAGED = Tool(
    name="carbontracker (2.x rule)",
    version=VERSION,
    counts=_COUNTS,
    leaves_out=f"{_LEAVES_OUT}; all but the mean of several GPUs or RAPL zones",
    constants=_CONSTANTS,
)


def cpu_power_w(tdp_w: float | None) -> float:
    """Power of a CPU without a meter, whatever its load, W (`GenericCPU`).

    Parameters
    ----------
    tdp_w
        Of one package; None if it is unknown.
    """
    return UNKNOWN_CPU_W if tdp_w is None else CPU_SHARE * tdp_w


def mean_j(devices_j: Sequence[float]) -> float:
    """Joules of a component as 2.x has them: the mean over its devices.

    `Component.collect_power_usage` puts the powers of all devices into one list, of which `energy_usage`
    takes the mean. 1.x kept a list for each reading and summed.
    """
    return sum(devices_j) / len(devices_j)


def summed(facts: Facts) -> Result:
    """What 2.4.7 would have said if it still summed over devices, as 1.x did."""
    return _result(SUMMED, facts, sum, "the sum")


def averaged(facts: Facts) -> Result:
    """What 2.4.7 says."""
    return _result(AVERAGED, facts, mean_j, "the mean")


def _result(tool: Tool, facts: Facts, together: Callable[[Sequence[float]], float], word: str) -> Result:
    by_component_j: dict[str, float] = {}
    texts, several = [], []
    for component, kind in (("gpu", "GPUs"), ("cpu", "RAPL zones")):
        devices_j = facts.read_j(component, METERED) or facts.read_j(component, AS_READ)
        if devices_j:
            by_component_j[component] = together(devices_j)
            many = len(devices_j) > 1
            of_many = f", {word} of {len(devices_j)} {kind}" if many else ""
            texts.append(f"{component.upper()}: {as_read(facts, component)}{of_many}")
            several += [f"{len(devices_j)} {kind}"] if many else []
    if "cpu" not in by_component_j:
        power_w = cpu_power_w(facts.cpu_tdp_w)
        by_component_j["cpu"] = power_w * facts.duration_s
        known = (
            f"its constant {watts(power_w)} for a CPU of unknown TDP"
            if facts.cpu_tdp_w is None
            else f"TDP {watts(facts.cpu_tdp_w)} x {CPU_SHARE:g}"
        )
        texts.append(f"CPU: {known}, whatever its load")
    remark = (
        "" if facts.read_j("cpu", AS_READ) else "A CPU without a meter counts half its TDP whatever it does"
    )
    if several and tool is AVERAGED:
        remark = f"It takes the mean over {' and over '.join(several)} where the sum is meant"
    return tool.answers(
        facts,
        by_component_j,
        method="; ".join(texts),
        grid=CARBONTRACKER.at(facts.zone),
        pue=PUE,
        remark=remark,
    )
