import pytest

from ct_notebook.budget import Budget, Expected, Used, grams_from, judge, seconds_from
from ct_notebook.errors import SettingError


@pytest.mark.parametrize(
    ("text", "g"),
    [
        ("2kg", 2000.0),
        ("500 g", 500.0),
        (".5t", 5e5),
        ("1KG 500g", 1500.0),
        ("2.5kg", 2500.0),
        ("500mg", 0.5),
    ],
)
def test_a_mass_has_a_unit(text: str, g: float) -> None:
    assert grams_from("max_co2", text) == pytest.approx(g)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3h", 10800.0),
        ("1h30min", 5400.0),
        ("90 min", 5400.0),
        ("45s", 45.0),
        ("2:30:00", 9000.0),
        ("2d", 172800.0),
    ],
)
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert seconds_from("max_time", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["2", "", "kg", "-2kg", "0kg", "2 pounds", "2kg and more", 2, None, "1e400kg", "nankg"]
)
def test_what_is_no_mass_is_refused_with_what_to_write(value: object) -> None:
    with pytest.raises(SettingError, match=r"max_co2=.* cannot be meant: .*500g or 2kg"):
        grams_from("max_co2", value)


@pytest.mark.parametrize("value", ["3", "3 hours ago", "1:2:3", "99:99:99", 3.0])
def test_what_is_no_time_is_refused_with_what_to_write(value: object) -> None:
    with pytest.raises(SettingError, match=r"max_time=.* cannot be meant: .*90min, 3h"):
        seconds_from("max_time", value)


KG = Budget(co2_g=1000.0)
ONE = Used(50.0, None, None)


def expected(value: float, low: float) -> Expected:
    return Expected(Used(value, None, None), Used(low, None, None))


def test_within_the_budget_nothing_is_found() -> None:
    assert judge(KG, Used(100.0, 1.0, 5.0), ONE, expected(900.0, 800.0)) == ()


def test_what_is_expected_beyond_the_budget_is_found_and_called_certain_if_all_of_the_interval_is() -> None:
    (excess,) = judge(KG, Used(100.0, None, None), ONE, expected(1100.0, 900.0))
    assert (excess.what, excess.is_certain, excess.is_used) == ("CO2eq", False, False)
    assert excess.text == "CO2eq: 1.1 kg expected for the whole run, 1 kg allowed"
    (excess,) = judge(KG, Used(100.0, None, None), ONE, expected(1100.0, 1010.0))
    assert excess.is_certain


def test_what_is_used_beyond_the_budget_is_found_also_in_the_last_epoch() -> None:
    (excess,) = judge(KG, Used(1001.0, None, None), None, None)
    assert excess.is_used
    assert excess.is_certain


def test_an_epoch_that_would_exceed_the_budget_is_found_before_it_begins() -> None:
    (excess,) = judge(KG, Used(950.0, None, None), Used(60.0, None, None), expected(990.0, 980.0))
    assert excess.is_used
    assert "the next epoch would exceed" in excess.text
    assert judge(KG, Used(950.0, None, None), None, None) == ()


def test_each_limit_is_judged_and_what_was_not_measured_is_not() -> None:
    budget = Budget(co2_g=1.0, kwh=1.0, time_s=3600.0)
    found = judge(budget, Used(None, 2.0, 4000.0), ONE, None)
    assert [excess.what for excess in found] == ["energy", "time"]
    assert found[1].text == "time: 1:06:40 used, 1:00:00 allowed"
