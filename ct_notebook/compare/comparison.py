"""Results of several tools come in; one thing to be looked at goes out: text, html, data frame, figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ct_notebook import __version__
from ct_notebook.log.format import one_line
from ct_notebook.records import Run
from ct_notebook.units import kwh

from . import table
from .base import Result, charged_g_per_kwh

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What we and others say of the same run.

    Attributes
    ----------
    ours
        Our own, in the same form.
    results
        Theirs, in the order in which they are shown. One without a figure says why.
    duration_s
        Of the run, pauses left out.
    """

    ours: Result
    results: tuple[Result, ...]
    duration_s: float

    def table(self) -> str:
        """The figures as plain text, then why each differs."""
        return table.text(self.ours, self.results, self.duration_s)

    def details(self) -> str:
        """What each counts and leaves out, how it reckons, and its constants with their sources."""
        return table.details(self.ours, self.results)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The same as html without classes, colours or scripts."""
        return table.html(self.ours, self.results, self.duration_s)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per tool, ours first, as a pandas DataFrame.

        Returns
        -------
        frame
            Columns `tool`, `version`, `energy_kwh` (with the tool's PUE), `emissions_g`, `gpu_kwh`, `cpu_kwh`
            and `ram_kwh` (before PUE), `g_per_kwh`, `grid`, `pue`, `method`, `counts`, `leaves_out`, `why`.
            What a tool has no figure for is NaN.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415 - not every environment has it, and it is heavy

        frame: pd.DataFrame = pd.DataFrame(
            {
                "tool": result.tool,
                "version": result.version,
                "energy_kwh": math.nan if result.energy_j is None else kwh(result.energy_j),
                "emissions_g": math.nan if result.emissions_g is None else result.emissions_g,
                **{
                    f"{component}_kwh": kwh(result.by_component_j[component])
                    if component in result.by_component_j
                    else math.nan
                    for component in ("gpu", "cpu", "ram")
                },
                "g_per_kwh": math.nan if result.g_per_kwh is None else result.g_per_kwh,
                "grid": result.grid,
                "pue": result.pue,
                "method": result.method,
                "counts": result.counts,
                "leaves_out": result.leaves_out,
                "why": result.why,
            }
            for result in (self.ours, *self.results)
        )
        return frame

    def figure(self) -> Figure:
        """Energy and CO2eq of each tool as bars, ours first.

        Returns
        -------
        figure
            A `plotly.graph_objects.Figure`.

        Raises
        ------
        ImportError
            plotly is not installed.
        """
        from .chart import figure  # noqa: PLC0415 - its plotly is heavy

        return figure(self.ours, self.results)


def ours_of(run: Run) -> Result:
    """Our own figures in the form of a result: energy with PUE."""
    energy_j, emissions_g = run.energy_j, run.emissions_g
    intensity = run.intensity
    gaps = [
        f"{device.name} was read for {run.partly_read[device.key]:.0%} of the time only: ours holds no more."
        for device in run.devices
        if device.key in run.partly_read
    ]
    known = ", ".join(
        part for part in (intensity.place, intensity.time, intensity.kind, intensity.source) if part
    )
    reckoned = (f"{device.component.upper()}: {device.detail or device.method}" for device in run.devices)
    return Result(
        tool="ct_notebook",
        version=__version__,
        method=one_line("; ".join(dict.fromkeys(reckoned)), 600),
        energy_j=None if energy_j is None else energy_j.value * run.pue.value,
        emissions_g=None if emissions_g is None else emissions_g.value,
        by_component_j=MappingProxyType(run.energy_by_component_j),
        g_per_kwh=charged_g_per_kwh(run),
        grid=one_line(known, 300),
        pue=run.pue.value,
        counts="GPU, CPU and RAM that this run could use, idle power included",
        leaves_out="the rest of the computer: disks, network, fans, power supply",
        why=" ".join(gaps) if energy_j is not None else "Nothing could be measured.",
    )
