"""Denmark or one of its price areas comes in; its carbon intensity now and ahead, by Energinet, goes out.

The figures are of what is burnt for the electricity consumed, imports included (`direct`); heat made beside
it is taken off by the 125 % method. Nothing of building plants or of fuel before it is burnt is in them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ct_notebook.errors import SettingError, SourceError
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
    rows_of,
    slots_of,
    spread,
    time_of,
)

BASE_URL = "https://api.energidataservice.dk"
SOURCE = "Energinet, Energi Data Service"
AREAS = {"DK1": "West Denmark", "DK2": "East Denmark"}
SLOT_S = 300.0
MOST_ROWS = 1200
"""Two areas for two days of slots of 5 minutes: 1152."""


@dataclass(frozen=True, slots=True)
class Denmark:
    """Denmark, or one of its two price areas.

    For the country both areas are asked for and their mean is taken: Energinet says of these data that both
    columns are of Denmark as a whole until there is a figure of each. Where they differ, the interval holds
    both.

    Parameters
    ----------
    area
        DK1 (west of the Great Belt), DK2 (east of it), or "" for the country.
    base_url
        Where the API is.

    Raises
    ------
    SettingError
        No such area.
    """

    area: str = ""
    base_url: str = BASE_URL

    def __post_init__(self) -> None:
        if self.area and self.area not in AREAS:
            msg = f"area={self.area!r} is no price area of Denmark; did you mean DK1 (west) or DK2 (east)?"
            raise SettingError(msg)

    @property
    def name(self) -> str:
        """What it is, for people."""
        return f"Energinet, {self._place}"

    @property
    def _place(self) -> str:
        return AREAS[self.area] if self.area else "Denmark"

    @property
    def _areas(self) -> tuple[str, ...]:
        return (self.area,) if self.area else tuple(AREAS)

    def outlook(self, get: Get, now_unix_s: float) -> Outlook:
        """Ask for the newest five minutes, then for the hours ahead. Two requests.

        Raises
        ------
        SourceError
            No figure that can be trusted.
        """
        rows = self._rows(get, "CO2Emis", "now-P1D", "Minutes5UTC desc", 2 * len(self._areas))
        slots = self._by_time(rows)
        if not slots:
            msg = f"{self.name}: it has no figure of the last day; it is asked again later."
            raise SourceError(msg)
        at_s = fresh(self.name, max(slots), now_unix_s)
        figures = slots[at_s]
        g_per_kwh = sum(figures) / len(figures)
        low, high = spread(MEASURED_OFF, at_s, now_unix_s)
        if g_per_kwh > 0:
            low *= min(figures) / g_per_kwh
            high *= max(figures) / g_per_kwh
        now = Intensity(
            g_per_kwh=g_per_kwh,
            zone=f"DK-{self.area}" if self.area else "DK",
            place=self._place,
            source=SOURCE,
            time=moment_text(at_s),
            kind="direct",
            low=low,
            high=high,
        )
        try:
            rows = self._rows(get, "CO2EmisProg", "now-PT10M", "Minutes5UTC asc", MOST_ROWS)
            ahead = [(at, sum(found) / len(found)) for at, found in self._by_time(rows).items()]
        except SourceError as error:
            return Outlook(now, (), (f"{error} Only its forecast is missing.",))
        return Outlook(now, slots_of(ahead, now_unix_s, SLOT_S))

    def _rows(self, get: Get, dataset: str, start: str, order: str, limit: int) -> list[Any]:
        params = {
            "start": start,
            "filter": json.dumps({"PriceArea": list(self._areas)}, separators=(",", ":")),
            "sort": order,
            "limit": str(limit),
        }
        found = answer_of(self.name, get(f"{self.base_url}/dataset/{dataset}", params=params))
        return rows_of(self.name, found, "records")

    def _by_time(self, rows: list[Any]) -> dict[float, list[float]]:
        """Figures of the areas asked for, by time; those that have not come yet are left out.

        A time with a figure of one area only counts if there is none with both: half of a country is not it.
        """
        found: dict[float, dict[str, float]] = {}
        ours = [row for row in rows if part_of(self.name, row, "PriceArea") in self._areas]
        if rows and not ours:
            msg = f"{self.name}: the answer is of another price area than asked for, and is not used."
            raise SourceError(msg)
        for row in ours:
            at_s = time_of(self.name, part_of(self.name, row, "Minutes5UTC"), is_utc=True)
            value = part_of(self.name, row, "CO2Emission")
            if value is not None:
                found.setdefault(at_s, {})[row["PriceArea"]] = figure_of(self.name, value)
        whole = {at_s: each for at_s, each in found.items() if len(each) == len(self._areas)}
        return {at_s: list(each.values()) for at_s, each in (whole or found).items()}
