"""Settings and surroundings come in; a carbon intensity and a PUE go out, each with where it is from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from ct_notebook.errors import SettingError
from ct_notebook.records import Intensity

from .place import find_place
from .pue import choose_pue
from .table import of_country, of_the_world

__all__ = ["choose_intensity", "choose_pue"]

HIGHEST_G_PER_KWH = 2000.0
"""No grid comes near: lignite alone makes about 1100 g/kWh."""


def choose_intensity(
    *,
    carbon_intensity: float | None,
    country: str | None,
    environ: Mapping[str, str],
    root: Path = Path("/"),
) -> Intensity:
    """Choose the carbon intensity: the user's figure, the user's country, the place, the world average.

    Parameters
    ----------
    carbon_intensity
        The user's figure, g CO2eq/kWh; None if not given.
    country
        The user's country: alpha-2, alpha-3 or English name; None if not given.
    environ, root
        Where the place is looked for if neither is given. The network is never used.

    Raises
    ------
    SettingError
        An impossible figure, or a country that does not exist.
    """
    if carbon_intensity is not None:
        if not (math.isfinite(carbon_intensity) and 0 <= carbon_intensity <= HIGHEST_G_PER_KWH):
            msg = (
                f"carbon_intensity={carbon_intensity!r} cannot be meant: give g CO2eq/kWh between 0 and 2000."
            )
            raise SettingError(msg)
        place = "Unknown" if country is None else of_country(country, "setting").place
        zone = None if country is None else of_country(country, "setting").zone
        return Intensity(float(carbon_intensity), zone, place, "given by the user", "", "", how="setting")
    if country is not None:
        return of_country(country, "setting")
    found = find_place(environ, root)
    return of_the_world("the place is unknown") if found is None else of_country(found.country, found.how)
