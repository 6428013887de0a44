"""A run comes in; what the same energy would have emitted elsewhere goes out. From tables, no network."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ct_notebook.errors import SettingError
from ct_notebook.intensity.table import (
    of_country,
    of_region,
    of_the_world,
    of_zone,
    regions,
)
from ct_notebook.log.format import one_line
from ct_notebook.records import Intensity, Run
from ct_notebook.units import grams

from .figures import mass_text
from .table import Table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BEST, WORST = 8, 3
"""So many of the places with the least and the most are shown if none are named."""

PROVIDERS = ("gcp", "aws", "azure")


@dataclasses.dataclass(frozen=True, slots=True)
class Elsewhere:
    """One place.

    Attributes
    ----------
    name
        What to call it.
    intensity
        Its carbon intensity.
    emissions_g
        What the run's energy, with the run's PUE, would have emitted there, g.
    is_own
        Whether it is where the run was.
    """

    name: str
    intensity: Intensity
    emissions_g: float
    is_own: bool = False


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Where:
    """The same run in other places, the least first. A notebook shows it as a table; `figure()` draws it."""

    places: tuple[Elsewhere, ...]
    left_out: int = 0

    @property
    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(place.intensity.kind for place in self.places if place.intensity.kind))

    def table(self) -> Table:
        """The places as a table."""
        own_g = next((place.emissions_g for place in self.places if place.is_own), None)
        rows = tuple(
            (
                place.name + (" (this run)" if place.is_own else ""),
                f"{place.intensity.g_per_kwh:.4g}",
                mass_text(place.emissions_g),
                _change(place.emissions_g, own_g),
                ", ".join(part for part in (place.intensity.time, place.intensity.kind) if part),
            )
            for place in self.places
        )
        sources = dict.fromkeys(place.intensity.source for place in self.places)
        notes = [f"Intensities: {'; '.join(sources)}. Energy and PUE are those of the run."]
        own_kind = next((place.intensity.kind for place in self.places if place.is_own), "")
        kinds = [kind for kind in self._kinds if kind != own_kind]
        if kinds and any(place.is_own for place in self.places):
            notes.append(
                f"The figure of this run is {own_kind or 'of no one kind'}, those of other places are "
                f"{' and '.join(kinds)}: a part of the differences is that, and not the place."
            )
        if self.left_out:
            notes.append(
                f"{self.left_out} more cloud regions lie between. Name places to compare: %carbontrack where "
                "SE DE US-CAL-CISO gcp:europe-north1, or gcp, aws, azure for all of one."
            )
        own = frozenset(place for place, each in enumerate(self.places) if each.is_own)
        heads = ("Place", "g CO2eq/kWh", "CO2eq", "against here", "of")
        return Table("The same run in other places", heads, rows, own, tuple(notes))

    def figure(self) -> Figure:
        """The places as bars, the run's own in another colour.

        Returns
        -------
        figure
            A `plotly.graph_objects.Figure`; CO2eq in g.

        Raises
        ------
        ImportError
            plotly is not installed.
        """
        from .chart import bars  # noqa: PLC0415 - its plotly is heavy

        return bars(
            f"CO2eq ({', '.join(self._kinds)}) of the same run elsewhere",
            [
                (
                    place.name,
                    place.emissions_g,
                    ", ".join(filter(None, (f"{place.intensity.g_per_kwh:.4g} g/kWh", place.intensity.kind))),
                    place.is_own,
                )
                for place in self.places
            ],
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def where(run: Run, names: Sequence[str] = ()) -> Where:
    """What the energy of a run would have emitted in other places.

    Parameters
    ----------
    run
        One of which something was measured.
    names
        Countries, grid zones or cloud regions; `gcp`, `aws` or `azure` for all regions of that cloud. If none
        are given, the regions of these clouds with the least and the most.

    Raises
    ------
    SettingError
        A place that is in no table, with the nearest names; or a run of which nothing was measured.
    """
    if run.energy_j is None or run.emissions_g is None:
        msg = "Nothing was measured in this run, so there is nothing to place elsewhere."
        raise SettingError(msg)
    energy_j = run.energy_j.value * run.pue.value

    def there(name: str, intensity: Intensity) -> Elsewhere:
        return Elsewhere(name, intensity, grams(energy_j, intensity.g_per_kwh))

    found = {place.name: place for place in (there(*each) for each in _intensities(names))}
    ordered = sorted(found.values(), key=lambda place: (place.emissions_g, place.name))
    left_out = 0
    if not names:
        left_out = max(0, len(ordered) - BEST - WORST)
        ordered = ordered[:BEST] + ordered[BEST + left_out :]
        ordered.append(there("World average", of_the_world("")))
    own = Elsewhere(one_line(run.intensity.place, 60), run.intensity, run.emissions_g.value, is_own=True)
    ordered = [place for place in ordered if place.name != own.name]
    return Where(tuple(sorted([*ordered, own], key=lambda place: place.emissions_g)), left_out)


def _intensities(names: Sequence[str]) -> Iterable[tuple[str, Intensity]]:
    """The places that are named, or all cloud regions."""
    for name in names or PROVIDERS:
        if name.lower() in PROVIDERS:
            # The lifecycle figure of the grid for all of them: a provider's own is of another kind.
            for region in regions():
                if region.startswith(f"{name.lower()}:"):
                    intensity = of_region(region, "", kind="lifecycle")
                    yield f"{region} ({intensity.place.split(' (')[0]})", intensity
        else:
            yield _place(name)


def _place(name: str) -> tuple[str, Intensity]:
    """A country, grid zone or cloud region, whichever has that name."""
    ways: tuple[Callable[[str], Intensity], ...] = (
        lambda text: of_country(text, ""),
        lambda text: of_zone(text, ""),
        lambda text: of_region(text, "", kind="lifecycle"),
    )
    errors = []
    for way in ways:
        try:
            intensity = way(name)
        except SettingError as error:
            errors.append(str(error))
            continue
        return intensity.place, intensity
    hints = [
        error.split("did you mean ", 1)[1].split("?", 1)[0] for error in errors if "did you mean" in error
    ]
    hint = f"; did you mean {', '.join(hints)}?" if hints else "."
    msg = f"{one_line(name, 60)!r} is no country, grid zone or cloud region of the tables{hint}"
    raise SettingError(msg)


def _change(emissions_g: float, own_g: float | None) -> str:
    if not own_g:
        return ""
    change = emissions_g / own_g - 1
    return "" if abs(change) < 0.005 else f"{change:+.0%}"
