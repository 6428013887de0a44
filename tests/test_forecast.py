import math

import pytest

from ct_notebook.forecast import forecast, student_t, total_of
from ct_notebook.records import Epoch


def epochs_of(*durations_s: float, watts: float = 100.0) -> list[Epoch]:
    at_s, epochs = 0.0, []
    for index, duration_s in enumerate(durations_s, 1):
        energy = {"cpu": duration_s * watts}
        epochs.append(Epoch(index, at_s, at_s + duration_s, energy, {"cpu": duration_s}))
        at_s += duration_s
    return epochs


def test_nothing_is_foretold_before_the_first_epoch() -> None:
    assert forecast([], 10, 1.0) is None


def test_one_epoch_is_taken_as_the_level() -> None:
    estimate = forecast(epochs_of(10.0), 50, 0.001)
    assert estimate is not None
    assert estimate.duration_s.value == pytest.approx(500.0)
    assert estimate.energy_j is not None
    assert estimate.emissions_g is not None
    assert estimate.energy_j.value == pytest.approx(50_000.0)
    assert estimate.emissions_g.value == pytest.approx(50.0)
    assert estimate.made_after == 1


def test_the_first_epoch_counts_as_used_but_not_as_the_level() -> None:
    assert total_of([30.0, 10.0], 10).value == pytest.approx(30 + 9 * 10)
    assert total_of([30.0, 10.0, 10.0, 10.0, 12.0], 10).value == pytest.approx(72 + 5 * 32 / 3)


def test_one_slow_epoch_does_not_become_the_level() -> None:
    assert total_of([10.0, 10.0, 10.0, 10.0, 40.0], 10).value == pytest.approx(80 + 5 * 10)


def test_a_finished_run_has_no_interval_left() -> None:
    band = total_of([10.0, 11.0, 12.0], 3)
    assert (band.low, band.value, band.high) == (33.0, 33.0, 33.0)


def test_the_interval_holds_the_value_and_narrows() -> None:
    widths = []
    for k in (1, 2, 5, 20, 45):
        band = total_of([10.0] * k, 50)
        assert band.low < band.value < band.high
        widths.append((band.high - band.low) / band.value)
    assert widths == sorted(widths, reverse=True)


def test_what_was_observed_is_never_in_doubt() -> None:
    assert total_of([100.0, 1.0, 3.0], 4).low > 104.0


def test_what_was_never_measured_has_a_duration_and_no_energy() -> None:
    epochs = [Epoch(1, 0.0, 1.0, {}, {}), Epoch(2, 1.0, 2.0, {}, {})]
    estimate = forecast(epochs, 10, 1.0)
    assert estimate is not None
    assert estimate.energy_j is None
    assert estimate.emissions_g is None
    assert estimate.duration_s.value == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("freedom", "exact"), [(3, 1.6377), (5, 1.4759), (10, 1.3722), (30, 1.3104), (math.inf, 1.2816)]
)
def test_the_t_quantile_is_that_of_the_tables(freedom: float, exact: float) -> None:
    assert student_t(0.90, freedom) == pytest.approx(exact, rel=5e-3)


def test_an_epoch_that_was_measured_in_part_is_taken_for_a_whole_one() -> None:
    half = Epoch(2, 10.0, 20.0, {"cpu": 500.0}, {"cpu": 5.0})
    estimate = forecast([*epochs_of(10.0), half, *epochs_of(10.0)], 10, 1.0)
    assert estimate is not None
    assert estimate.energy_j is not None
    assert estimate.energy_j.value == pytest.approx(10_000.0)
