"""A run and settings come in, a forecast is asked for; when to start such a run goes out.

The user asked and waits, so this waits too: for one reading at most, and an interrupt ends it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .advice import When, when
from .errors import SettingError
from .intensity.live import DEADLINE_S, Feed
from .intensity.sources import FirstOf, sources_for
from .intensity.table import has_country, has_zone
from .records import Run
from .settings import Settings

if TYPE_CHECKING:
    from .intensity.base import Get, Outlook, Source

KNOWN = "There are forecasts for Great Britain and Denmark, and elsewhere from Electricity Maps with a key."


def best_start(run: Run, settings: Settings, get: Get | None = None) -> When:
    """When to start a run such as this one.

    Parameters
    ----------
    run
        Ended, or under way: then what is expected of all of it counts.
    settings
        Whether the network may be used, which keys there are, and the place if the run's is not known.
    get
        How to ask; over the network if None.

    Raises
    ------
    SettingError
        There is no forecast, or none that reaches far enough; or nothing was measured.
    """
    if settings.offline:
        msg = "A forecast has to be asked for, and this session is offline (--offline, CT_NOTEBOOK_OFFLINE)."
        raise SettingError(msg)
    energy_j, duration_s = run.energy_j, run.duration_s
    if not run.closed and run.estimate is not None and run.estimate.energy_j is not None:
        energy_j, duration_s = run.estimate.energy_j, run.estimate.duration_s.value
    if energy_j is None:
        msg = "Nothing was measured in this run, so no start can be advised for another."
        raise SettingError(msg)
    sources = _sources(run, settings)
    if not sources:
        msg = f"No source has a forecast for {run.intensity.place}. {KNOWN}"
        raise SettingError(msg)
    outlook = _ask(FirstOf(tuple(sources)), get)
    if not outlook.ahead:
        msg = f"{outlook.now.source} gives no forecast for {outlook.now.place}. {KNOWN}"
        raise SettingError(msg)
    return when(
        energy_j.value * run.pue.value,
        duration_s,
        outlook.ahead,
        time.time(),
        place=outlook.now.place,
        source=outlook.now.source,
        kind=outlook.now.kind,
    )


def _sources(run: Run, settings: Settings) -> Sequence[Source]:
    """What knows the place that the settings name, else the run's."""
    zone, country, region = settings.zone, settings.country, settings.region
    if (zone, country, region) == (None, None, None):
        code = run.intensity.zone
        if code is None:
            msg = "The place of this run is not known; set country, zone or region."
            raise SettingError(msg)
        zone = code if has_zone(code) and not has_country(code) else None
        country = code if has_country(code) else None
    return sources_for(zone=zone, country=country, region=region, api_keys=settings.api_keys)


def _ask(source: Source, get: Get | None) -> Outlook:
    if get is None:
        from .intensity.http import live_get  # noqa: PLC0415 - not for one who brings their own

        get = live_get
    feed = Feed(source, get)
    give_up_s = time.monotonic() + DEADLINE_S + 1.0
    while time.monotonic() < give_up_s:
        outlook, failures = feed.look()
        if outlook is not None:
            return outlook
        if failures:
            raise SettingError(failures[0])
        time.sleep(0.02)
    msg = f"{source.name}: no answer; an earlier question to it still hangs. Try again in some minutes."
    raise SettingError(msg)
