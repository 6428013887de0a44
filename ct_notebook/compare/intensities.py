"""A tool's table and a zone come in; the tool's own carbon intensity, and what it is, goes out.

These are a few figures of each tool, as shipped in the release that is named, for places that are common;
for any other place the tool's world average stands in, and is called so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Grid:
    """A carbon intensity as a tool has it, g CO2eq/kWh; None if it has none for the place."""

    g_per_kwh: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Some carbon intensities of one tool.

    Attributes
    ----------
    source
        The file of the release that they are from.
    g_per_kwh
        Country (ISO 3166 alpha-2) or grid zone to g CO2eq/kWh.
    default_g_per_kwh
        What the tool takes where it does not know the place; None if it has nothing.
    default
        What that figure is.
    note
        What to know of all of them.
    stands_in
        A country without a figure of its own, to the grid zone that is taken for it.
    """

    source: str
    g_per_kwh: Mapping[str, float]
    default_g_per_kwh: float | None
    default: str
    note: str = ""
    stands_in: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, zone: str | None) -> Grid:
        """The figure of a zone, else of its country, else the default.

        Parameters
        ----------
        zone
            ISO 3166 alpha-2 code or grid zone ("DK-DK1"); None if the place is unknown.
        """
        note = f"; {self.note}" if self.note else ""
        wanted = "" if zone is None else zone.strip().upper()
        for name in dict.fromkeys((wanted, wanted.partition("-")[0])):
            zone_name = self.stands_in.get(name, name)
            if zone_name in self.g_per_kwh:
                return Grid(self.g_per_kwh[zone_name], f"{zone_name}, {self.source}{note}")
        if not wanted:
            missing = "the place is unknown"
        elif self.g_per_kwh:
            missing = f"its figure for {wanted[:20]}, if it has one, is not held here"
        else:
            missing = "it has no figures by country"
        if self.default_g_per_kwh is None:
            return Grid(None, f"{missing}; {self.default}")
        return Grid(self.default_g_per_kwh, f"{self.default} ({missing})")


def _table(
    source: str,
    figures: Mapping[str, float],
    default_g_per_kwh: float | None,
    default: str,
    note: str = "",
    stands_in: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    return Table(source, MappingProxyType(dict(figures)), default_g_per_kwh, default, note, stands_in)


CODECARBON = _table(
    "codecarbon 3.3.2, data/private_infra/global_energy_mix.json (Our World in Data, mostly of 2022)",
    {
        "DK": 151.65,
        "FR": 56.039,
        "DE": 380.95,
        "GB": 237.589,
        "SE": 40.695,
        "PL": 661.926,
        "US": 369.473,
        "CA": 170.043,
        "IN": 713.441,
        "CN": 582.317,
        "ZA": 707.686,
    },
    475.0,
    "its world average, IEA 2019",
)

ECO2AI = _table(
    "eco2ai 0.3.12, data/carbon_index.csv (Ember 2022)",
    {
        "DK": 188.653,
        "FR": 67.53,
        "DE": 332.495,
        "GB": 245.715,
        "SE": 42.371,
        "PL": 647.321,
        "US": 369.571,
        "CA": 120.486,
        "IN": 625.573,
        "CN": 549.534,
        "ZA": 720.023,
    },
    436.529,
    "its world average, Ember 2022",
)

CARBONTRACKER = _table(
    "carbontracker 2.4.7, data/carbon-intensities.csv (Our World in Data, 2022 to 2024)",
    {
        "DK": 143.30,
        "FR": 44.18,
        "DE": 344.14,
        "GB": 210.89,
        "SE": 35.82,
        "PL": 614.98,
        "US": 383.55,
        "CA": 174.81,
        "IN": 708.32,
        "CN": 559.55,
        "ZA": 708.88,
    },
    445.0,
    "its world average, IEA 2024",
)

EXPERIMENT_IMPACT_TRACKER = _table(
    "experiment-impact-tracker 0.1.8, emissions/data/co2eq_parameters.json (electricityMap, 2019)",
    {
        "DK-DK1": 217.53,
        "DK-DK2": 257.43,
        "FR": 56.0,
        "DE": 380.3,
        "GB": 269.71,
        "SE": 51.68,
        "PL": 681.03,
        "US": 325.0,
        "CA-QC": 30.0,
        "CA-ON": 45.21,
        "IN": 686.61,
        "ZA": 750.0,
    },
    None,
    "it has no world average",
    # It finds its zone by coordinates; a country alone says nothing, so that of the capital is taken.
    stands_in={"DK": "DK-DK2"},
)

GREEN_ALGORITHMS = _table(
    "Green Algorithms 3.0, data/latest/CI_aggregated.csv (carbonfootprint March 2022, of 2020)",
    {
        "DK": 142.52,
        "FR": 51.28,
        "DE": 338.66,
        "GB": 231.12,
        "SE": 5.67,
        "PL": 759.62,
        "US": 423.94,
        "CA": 120.0,
        "IN": 708.2,
        "CN": 537.4,
        "ZA": 900.6,
    },
    475.0,
    "its world average",
)

CUMULATOR = _table(
    "cumulator 0.1.0, countries_data/country_dataset_adjusted.csv",
    {
        "DK": 160.0,
        "FR": 118.0,
        "DE": 195.0,
        "GB": 169.0,
        "SE": 66.0,
        "PL": 269.0,
        "US": 200.0,
        "CA": 148.0,
        "IN": 278.0,
        "CN": 266.0,
        "ZA": 317.0,
    },
    447.0,
    "its default, the EU of 2014",
    "per kWh of primary energy, so not of electricity",
)

MLCO2 = _table(
    "",
    {},
    432.0,
    "the page's default for a machine of one's own, OECD 2014",
)
