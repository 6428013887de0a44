import math

import pytest

from ct_notebook.units import clock_text, duration_text, fixed, grams, kwh


def test_a_kilowatt_for_an_hour_is_a_kilowatt_hour() -> None:
    assert kwh(1000.0 * 3600.0) == 1.0
    assert grams(3.6e6, 143.3) == pytest.approx(143.3)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0:00:00"),
        (9.4, "0:00:09"),
        (59.6, "0:01:00"),
        (3599.5, "1:00:00"),
        (90_061.0, "25:01:01"),
        (-1.0, "0:00:00"),
    ],
)
def test_clock_text_is_in_whole_seconds_with_hours_unbounded(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.3, "0:00:02.30"),
        (59.999, "0:01:00.00"),
        (108_061.25, "30:01:01.25"),
        (0.001, "0:00:00.00"),
        (-5.0, "0:00:00.00"),
    ],
)
def test_duration_text_never_shows_sixty_seconds(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_numbers_are_fixed_point_however_small() -> None:
    assert fixed(6.1e-05, 6) == "0.000061"
    assert fixed(1e22, 2) == "10000000000000000000000.00"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        fixed(value, 2)
