"""Facts of a run come in; what the ML CO2 Impact page would have said of its GPUs goes out."""

from __future__ import annotations

from ct_notebook.units import kwh

from .base import Constant, Facts, Result, Tool, not_recorded
from .figures import watts
from .intensities import MLCO2

VERSION = "web page"

TOOL = Tool(
    name="ML CO2 Impact",
    version=VERSION,
    counts="GPUs by their TDP, fully used",
    leaves_out="CPU, RAM, the load of the GPUs, PUE",
    constants=(
        Constant(
            "carbon intensity of a machine of one's own, g/kWh",
            432.0,
            "html/_compute.html of mlco2/impact; cloud regions have figures of their own",
        ),
    ),
)


def energy_j(gpus_w: float, duration_s: float) -> float:
    """Joules of GPUs at their TDP (`js/grayscale.js`), before the page rounds them."""
    return gpus_w * duration_s


def shown(gpus_w: float, hours: float, g_per_kwh: float) -> tuple[float, float]:
    """What the page shows: kWh and kg, each rounded to two decimals, the region's kg/kWh as well."""
    energy_kwh = round(gpus_w * hours / 1000, 2)
    return energy_kwh, round(energy_kwh * round(g_per_kwh / 1000, 2), 2)


def page(facts: Facts) -> Result:
    """The page, filled in for private infrastructure."""
    grid = MLCO2.at(facts.zone)
    if not facts.gpu_count:
        return TOOL.cannot("No figure: it counts GPUs only, and this run has none.", method="", grid=grid)
    if facts.gpu_limit_w is None:
        return TOOL.cannot(not_recorded("the power limit of the GPUs"), method="", grid=grid)
    used_j = energy_j(facts.gpu_limit_w, facts.duration_s)
    return TOOL.answers(
        facts,
        {"gpu": used_j},
        method=f"GPU: {watts(facts.gpu_limit_w)}, the power limit, x time",
        grid=grid,
        remark=f"It takes GPUs to run at their limit, and its page would show {kwh(used_j):.2f} kWh",
    )
