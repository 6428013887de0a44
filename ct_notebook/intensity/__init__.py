"""Settings and surroundings come in; a carbon intensity and a PUE go out, each with where it is from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from ct_notebook.errors import SettingError
from ct_notebook.records import Intensity

from .base import HIGHEST_G_PER_KWH
from .place import find_place
from .pue import choose_pue
from .table import of_country, of_region, of_the_world, of_zone

__all__ = ["choose_intensity", "choose_pue"]


def choose_intensity(
    *,
    carbon_intensity: float | None,
    country: str | None,
    environ: Mapping[str, str],
    zone: str | None = None,
    region: str | None = None,
    root: Path = Path("/"),
) -> Intensity:
    """Choose the carbon intensity: the user's figure, the user's place, the machine's, the world average.

    Parameters
    ----------
    carbon_intensity
        The user's figure, g CO2eq/kWh; None if not given.
    country
        The user's country: alpha-2, alpha-3 or English name; None if not given.
    environ, root
        Where the place is looked for if none is given. The network is never used.
    zone, region
        The user's grid zone (DK-DK1) and cloud region (gcp:europe-west1); the narrowest of the three counts.

    Raises
    ------
    SettingError
        An impossible figure, or a place that is not in its table.
    CtNotebookError
        A table is missing or damaged.
    """
    if carbon_intensity is not None:
        if not (math.isfinite(carbon_intensity) and 0 <= carbon_intensity <= HIGHEST_G_PER_KWH):
            msg = (
                f"carbon_intensity={carbon_intensity!r} cannot be meant: give g CO2eq/kWh from 0 to 2000; "
                "coal makes about 1000. A figure in kg/kWh is to be multiplied by 1000."
            )
            raise SettingError(msg)
        # The place then gives its name only.
        named = _of_setting(country, zone, region)
        return Intensity(
            g_per_kwh=float(carbon_intensity),
            zone=None if named is None else named.zone,
            place="Unknown" if named is None else named.place,
            source="given by you",
            time="",
            kind="",
            how="setting",
        )
    named = _of_setting(country, zone, region)
    if named is not None:
        return named
    found = find_place(environ, root)
    return of_the_world("the place is unknown") if found is None else of_country(found.country, found.how)


def _of_setting(country: str | None, zone: str | None, region: str | None) -> Intensity | None:
    """The yearly figure of the place that the user names; None if none is named. All names are checked."""
    found = [
        of(name, "setting")
        for of, name in ((of_country, country), (of_zone, zone), (of_region, region))
        if name is not None
    ]
    return found[-1] if found else None
