"""Facts of a run come in; what Cumulator would have said of it goes out."""

from __future__ import annotations

from .base import Constant, Facts, Result, Tool
from .figures import watts
from .intensities import CUMULATOR

VERSION = "0.1.0"

TDP_W = 250.0
KWH_PER_KB = 6.894e-8

TOOL = Tool(
    name="Cumulator",
    version=VERSION,
    counts="one GPU or, without one, the CPU, at its TDP all the time; data said to be transferred",
    leaves_out="all but one device, RAM, load, PUE; losses of power stations (intensities of primary energy)",
    constants=(
        Constant("TDP of a device that is not in its tables, W", TDP_W, f"cumulator {VERSION}, base.py"),
        Constant("data transferred, kWh/kB", KWH_PER_KB, f"cumulator {VERSION}, base.py"),
        Constant(
            "carbon intensity of an unknown place, g/kWh", 447.0, f"cumulator {VERSION}, base.py: EU 2014"
        ),
    ),
)


def emissions_g(tdp_w: float, duration_s: float, g_per_kwh: float, transferred_kb: float = 0.0) -> float:
    """Grams of CO2eq: time x TDP, and data transferred (`computation_costs`, `communication_costs`)."""
    return duration_s * tdp_w / 3.6e6 * g_per_kwh + transferred_kb * KWH_PER_KB * g_per_kwh


def run(facts: Facts) -> Result:
    """One device at its TDP; no data transferred, since nobody said so."""
    component = "gpu" if facts.gpu_count else "cpu"
    if component == "gpu":
        known_w = None if facts.gpu_limit_w is None else facts.gpu_limit_w / facts.gpu_count
    else:
        known_w = facts.cpu_tdp_w
    tdp_w = TDP_W if known_w is None else known_w
    how = "its default" if known_w is None else "its TDP"
    return TOOL.answers(
        facts,
        {component: tdp_w * facts.duration_s},
        method=f"{component.upper()}: {watts(tdp_w)}, {how}, x time",
        grid=CUMULATOR.at(facts.zone),
        remark="One device is taken to run at its TDP all the time",
    )
