"""One run or several come in; a sentence for a paper, table rows and BibTeX go out. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from .errors import SettingError
from .log.format import one_line
from .records import Band, Intensity, Run
from .units import J_PER_KWH, clock_text

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}

HEADS = (
    "Runs",
    "Hardware",
    "Time",
    "Energy (kWh)",
    "Interval (kWh)",
    "CO2eq (kg)",
    "PUE",
    "g CO2eq/kWh",
    "Method",
)


@dataclass(frozen=True, slots=True, repr=False)
class Statement:
    """What a paper says of the energy and emissions of its experiments.

    Attributes
    ----------
    sentence
        Two sentences of plain text, with hardware, method, PUE, intensity and its source.
    cells
        The same as cells under `HEADS`.
    version
        Of ct_notebook.
    year
        In which the newest run was made.
    """

    sentence: str
    cells: tuple[str, ...]
    version: str
    year: int
    notes: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """A table of one row in Markdown."""
        rows = (HEADS, tuple("---" for _ in HEADS), self.cells)
        return "\n".join(f"| {' | '.join(map(_markdown, row))} |" for row in rows)

    @property
    def latex(self) -> str:
        """A `tabular` of one row in LaTeX."""
        head, row = (" & ".join(map(_latex, cells)) + r" \\" for cells in (HEADS, self.cells))
        columns = "l" * len(HEADS)
        return "\n".join(
            (rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline", row, r"\hline", r"\end{tabular}")
        ).replace("CO2eq", r"CO$_2$eq")

    @property
    def bibtex(self) -> str:
        """What to cite."""
        return "\n".join(
            (
                "@software{ct_notebook,",
                "  title   = {{ct_notebook: power, energy and CO2eq of training in notebooks}},",
                "  author  = {{The ct_notebook developers}},",
                f"  version = {{{_latex(self.version)}}},",
                f"  year    = {{{self.year}}},",
                "}",
            )
        )

    def __repr__(self) -> str:
        parts = (self.sentence, *self.notes, "", self.markdown, "", self.latex, "", self.bibtex)
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(head)}</th>" for head in HEADS)
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in self.cells)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<p>{escape(self.sentence)}</p>\n{notes}<table><thead><tr>{heads}</tr></thead>"
            f"<tbody><tr>{cells}</tr></tbody></table>\n"
            + "".join(
                f"<details><summary>{name}</summary><pre>{escape(text)}</pre></details>"
                for name, text in (
                    ("LaTeX", self.latex),
                    ("Markdown", self.markdown),
                    ("BibTeX", self.bibtex),
                )
            )
        )


def statement(runs: Sequence[Run], version: str) -> Statement:
    """What a paper may say of some runs.

    Parameters
    ----------
    runs
        Those of a folder, or one. Those of which nothing was measured count in time only, and that is said.
    version
        Of ct_notebook.

    Raises
    ------
    SettingError
        No run, or none of which anything was measured.
    """
    with_energy = [run for run in runs if run.energy_j is not None]
    measured = [
        run for run in with_energy if run.emissions_g is not None and math.isfinite(run.emissions_g.value)
    ]
    if not measured:
        what = "whose carbon intensity is known" if with_energy else "of which anything was measured"
        msg = f"There is no run {what}, so there is nothing to state."
        raise SettingError(msg)
    # Errors of one kind of sensor go the same way in every run, so that their ends add up.
    energy_kwh = _sum(
        run.energy_j.times(run.pue.value / J_PER_KWH) for run in measured if run.energy_j is not None
    )
    emissions_kg = _sum(run.emissions_g.times(1e-3) for run in measured if run.emissions_g is not None)
    duration_s = sum(run.duration_s for run in runs)
    epochs = sum(len(run.complete_epochs) for run in runs)
    pues = _each(f"{run.pue.value:g}" for run in measured)
    hardware = _each(
        f"{_times(names, name)}{one_line(name, 60)}"
        for run in measured
        for names in [[device.name for device in run.devices if device.component != "ram"]]
        for name in dict.fromkeys(names)
    )
    methods = _each(
        f"{one_line(device.component, 20).upper()} {_METHOD.get(device.method, 'in a way that is not known')}"
        for run in measured
        for device in run.devices
    )
    reasons = _each(one_line(run.pue.reason, 120) for run in measured)
    grids = _each(_grid(run.intensity) for run in measured)
    many = len(runs) > 1
    what = f"{len(runs)} training runs" if many else "Training"
    of = f" of {epochs} epochs in all" if many else f" for {epochs} epoch{'s' * (epochs != 1)}"
    sentence = (
        f"{what}{of} on {hardware or 'hardware that was not named'} took {clock_text(duration_s)} (h:mm:ss) "
        f"and used {_figure(energy_kwh)} kWh of electricity ({_range(energy_kwh)} kWh), which stands for "
        f"{_figure(emissions_kg)} kg CO2eq ({_range(emissions_kg)} kg), as told by ct_notebook {version} "
        f"({methods}). Energy includes a power usage effectiveness of {pues} ({reasons}); the carbon "
        f"intensity is {grids}."
    )
    notes = []
    if len(with_energy) < len(runs):
        count = len(runs) - len(with_energy)
        notes.append(f"Of {count} runs nothing was measured; only their time is in this.")
    if len(measured) < len(with_energy):
        count = len(with_energy) - len(measured)
        notes.append(f"Of {count} runs the carbon intensity is not known; only their time is in this.")
    notes += _gaps(measured)
    intensity = _each(_grid(run.intensity, unit="") for run in measured)
    cells = (
        str(len(runs)),
        hardware or "-",
        clock_text(duration_s),
        _figure(energy_kwh),
        _range(energy_kwh),
        _figure(emissions_kg),
        pues,
        intensity,
        methods,
    )
    return Statement(sentence, cells, version, max(run.started_at.year for run in runs), tuple(notes))


def _gaps(runs: Sequence[Run]) -> list[str]:
    """What of the hardware the figures hold only in part."""
    rest = "; the figures hold no more of it than that."
    if len(runs) == 1:
        shares = runs[0].partly_read
        return [
            f"{one_line(device.name, 60)} was read for {shares[device.key]:.0%} of the time only{rest}"
            for device in runs[0].devices
            if device.key in shares
        ]
    count = sum(bool(run.partly_read) for run in runs)
    of = f"In {count} of {len(runs)} runs a device was read for a part of the time only{rest}"
    return [of] if count else []


_METHOD = {
    "counter": "by its energy counter",
    "measured": "by its power gauge",
    "modelled": "modelled by load",
    "constant": "by a constant",
    "user": "as simulated",
}


def _grid(intensity: Intensity, unit: str = " g CO2eq/kWh") -> str:
    known = ", ".join(part for part in (intensity.place, intensity.time, intensity.kind) if part)
    return one_line(f"{intensity.g_per_kwh:.4g}{unit} ({known}; {intensity.source})", 300)


def _sum(bands: Iterable[Band]) -> Band:
    found = list(bands)

    def add(end: Callable[[Band], float]) -> float:
        return sum(end(band) for band in found)

    return Band(add(lambda band: band.value), add(lambda band: band.low), add(lambda band: band.high))


def _each(texts: Iterable[str]) -> str:
    """Different texts once each, in order."""
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _times(names: Sequence[str], name: str) -> str:
    count = names.count(name)
    return f"{count} x " if count > 1 else ""


def _figure(band: Band) -> str:
    return _plain(band.value, 3)


def _range(band: Band) -> str:
    return f"{_plain(band.low, 2)} to {_plain(band.high, 2)}"


def _plain(value: float, digits: int) -> str:
    """So many significant digits without an exponent."""
    if value == 0:
        return "0"
    text = f"{float(f'{value:.{digits - 1}e}'):.12f}"
    return text.rstrip("0").rstrip(".")


def _markdown(text: str) -> str:
    """A cell in which nothing is markup, html or the end of the cell."""
    return re.sub(r"[\\`*_\[\]<>&~]", r"\\\g<0>", text.replace("|", "/"))


def _latex(text: str) -> str:
    return re.sub(r"[\\{}$&#_%~^<>|]", lambda found: _LATEX[found[0]], text)
