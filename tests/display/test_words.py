"""Figures in words: three digits, the unit that fits, no exponent, nothing for what is not known."""

from __future__ import annotations

import dataclasses

import pytest

from ct_notebook.display import words
from ct_notebook.records import Band, Intensity


@pytest.mark.parametrize(
    ("energy_j", "text"),
    [
        (None, ""),
        (0.0, "0 Wh"),
        (3.6, "1.00 mWh"),
        (3600.0, "1.00 Wh"),
        (3599.9, "1.00 Wh"),
        (17_676.0, "4.91 Wh"),
        (3.6e6, "1.00 kWh"),
        (3.6e9 * 1234, "1230 MWh"),
        (3.6e-9, "0.000000001 mWh"),
    ],
)
def test_energy(energy_j: float | None, text: str) -> None:
    assert words.energy_text(energy_j) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (3599, "1 h"),
        (3900, "1 h 5 min"),
        (47 * 3600, "47 h"),
        (51 * 3600, "2 d 3 h"),
    ],
)
def test_time_left(seconds: float | None, text: str) -> None:
    assert words.time_text(seconds) == text


def test_other_units() -> None:
    assert words.co2_text(0.0007) == "0.700 mg"
    assert words.co2_text(1234.0) == "1.23 kg"
    assert words.power_text(143.4) == "143 W"
    assert words.power_text(2370.0) == "2.37 kW"
    # 106.8 g per km.
    assert words.equivalent_text(106.8) == "1.0 km by car"
    assert words.equivalent_text(0.7) == "6.6 m by car"
    assert words.equivalent_text(None) == ""


def test_an_interval_says_its_unit_once_if_it_can() -> None:
    assert words.energy_range(Band(18_000, 14_400, 21_960)) == "4.0 to 6.1 Wh"
    assert words.co2_range(Band(1, 0.5, 2)) == "500 mg to 2.0 g"
    assert words.co2_range(None) == ""
    assert words.duration_range(Band(60, 50, 70)) == "0:00:50 to 0:01:10"


@pytest.mark.parametrize(
    ("band", "text"),
    [
        (Band(1.77, 1.77, 1.77), "1.77 g"),
        (Band(1.776, 1.772, 1.781), "1.77 to 1.78 g"),  # with two digits it were 1.8 g, which is none of them
        (Band(1.77, 1.76, 1.86), "1.76 to 1.86 g"),  # 1.8 to 1.9 g would leave 1.77 g out
        (Band(1.83, 1.7, 1.84), "1.70 to 1.84 g"),
        (Band(1.77, 1.74, 1.86), "1.7 to 1.9 g"),
        (Band(1000, 999, 1001), "999 g to 1.00 kg"),
        (Band(0, 0, 0), "0 g"),
    ],
)
def test_an_interval_never_leaves_its_own_figure_out(band: Band, text: str) -> None:
    assert words.co2_range(band) == text
    assert words.energy_range(band.times(3600)) == text.replace("g", "Wh")


def test_a_place_that_is_not_known_is_known_by_nothing() -> None:
    given = Intensity(400, None, "Unknown", "given by you", "", "", how="setting")
    assert words.place_how(given) == ""
    assert words.place_how(dataclasses.replace(given, place="Denmark")) == "setting"
    assert words.place_how(dataclasses.replace(given, place="World", is_fallback=True)) == ""


def test_round_values_on_an_axis_have_no_needless_zeros() -> None:
    assert words.axis_text(words.power_text, 10.0) == "10 W"
    assert words.axis_text(words.power_text, 100.0) == "100 W"
    assert words.axis_text(words.co2_text, 0.5) == "500 mg"
