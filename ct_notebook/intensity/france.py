"""Nothing but the time comes in; the carbon intensity of France's generation, by RTE, goes out. No forecast.

The figure is of what French power stations burn (`direct`), about half of the lifecycle one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ct_notebook.records import Intensity

from .base import (
    MEASURED_OFF,
    Get,
    Outlook,
    answer_of,
    figure_of,
    fresh,
    moment_text,
    part_of,
    spread,
    time_of,
)

BASE_URL = "https://odre.opendatasoft.com"
DATASET = "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records"
SOURCE = "RTE éCO2mix, Licence Ouverte"

NEWEST = {
    "select": "date_heure,taux_co2",
    "where": "taux_co2 is not null",
    "order_by": "date_heure desc",
    "limit": "1",
}


@dataclass(frozen=True, slots=True)
class France:
    """Mainland France by éCO2mix, every 15 minutes, less than 30 minutes late.

    Parameters
    ----------
    base_url
        Where the API is.
    """

    base_url: str = BASE_URL

    @property
    def name(self) -> str:
        """What it is, for people."""
        return "RTE éCO2mix, France"

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Ask for the newest quarter of an hour. One request.

        Raises
        ------
        SourceError
            No figure that can be trusted.
        """
        found = answer_of(self.name, get(self.base_url + DATASET, params=NEWEST))
        row = part_of(self.name, found, "results", 0)
        at_s = fresh(self.name, time_of(self.name, part_of(self.name, row, "date_heure")), now_unix_s)
        low, high = spread(MEASURED_OFF, at_s, now_unix_s)
        return Outlook(
            Intensity(
                g_per_kwh=figure_of(self.name, part_of(self.name, row, "taux_co2")),
                zone="FR",
                place="France",
                source=SOURCE,
                time=moment_text(at_s),
                kind="direct",
                low=low,
                high=high,
            )
        )
