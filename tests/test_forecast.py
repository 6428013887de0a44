import math
import random
from typing import Any

import pytest

from ct_notebook.forecast import (
    Spent,
    _period,
    as_it_stands,
    forecast,
    forecast_within,
    since_change,
    student_t,
    total_of,
    with_intensity_ahead,
)
from ct_notebook.records import Band, Epoch, Estimate
from ct_notebook.steps import Pace


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
    assert total_of([30.0, 10.0, 10.0, 10.0, 12.0], 10).value == pytest.approx(72 + 5 * 42 / 4)


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


def test_a_first_epoch_that_was_half_as_long_again_is_reckoned_with() -> None:
    assert total_of([15.0], 100).low <= 15.0 + 99 * 10.2
    assert total_of([10.0], 100).high < 10.0 + 99 * 15.0


def test_a_noisy_run_has_a_wider_interval_than_a_steady_one() -> None:
    steady, noisy = total_of([10.0, 10.1, 9.9], 30), total_of([10.0, 13.0, 9.0], 30)
    assert (noisy.high - noisy.low) > 5 * (steady.high - steady.low)


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


def test_a_level_that_changed_for_good_is_followed_at_once() -> None:
    assert total_of([30.0, *[10.0] * 6, 20.0, 20.0], 20).value == pytest.approx(30 + 60 + 40 + 11 * 20)


class Counted(list[float]):
    """Amounts that count how often one of them is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        Counted.reads += len(found) if isinstance(found, list) else 1
        return found


def test_ten_times_as_many_epochs_are_looked_through_at_ten_times_the_cost() -> None:
    reads = []
    for count in (300, 3000):
        Counted.reads = 0
        since_change(Counted([10.0, 10.1] * (count // 2)))
        reads.append(Counted.reads)
    assert reads[1] < 11 * reads[0]


def test_small_moves_are_averaged_over_not_followed() -> None:
    later = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02]
    assert total_of([10.0, *later], 20).value == pytest.approx(10 + sum(later) + 13 * sum(later) / 6)


def test_a_validation_every_third_epoch_gives_each_phase_its_level() -> None:
    epochs = [12.0, 10.0, 15.0, 10.0, 10.1, 15.1, 9.9, 10.0, 15.0]
    rest = 4 * (10.0 + 10.05 + 15.03)
    assert total_of(epochs, 21).value == pytest.approx(sum(epochs) + rest, rel=1e-2)
    # Seen after an epoch with validation, two without follow.
    assert total_of(epochs, 11).value == pytest.approx(sum(epochs) + 20.0, rel=1e-2)


def test_epochs_that_only_vary_have_no_period() -> None:
    source = random.Random(1)
    found = 0
    for _ in range(300):
        epochs = [10 * math.exp(source.gauss(0, 0.05)) for _ in range(source.randrange(7, 30))]
        found += _period(epochs) > 1
    assert found < 0.05 * 300


def test_a_warm_up_that_its_steps_told_is_left_out_of_the_level() -> None:
    pace = Pace(0.0, 30.0, 100, 100, 0.1, 20.0, 20.0, 0.0)
    estimate = forecast(epochs_of(30.0), 10, 0.001, first=pace)
    assert estimate is not None
    assert estimate.energy_j is not None
    assert estimate.duration_s.value == pytest.approx(30 + 9 * 10)
    assert estimate.energy_j.value == pytest.approx(100 * (30 + 9 * 10))
    assert "without its warm-up" in estimate.method
    unknown = forecast(epochs_of(30.0), 10, 0.001)
    assert unknown is not None
    assert unknown.duration_s.value == pytest.approx(300.0)


def test_the_first_steps_foretell_the_run_before_an_epoch_has_ended() -> None:
    # 10 s of warm-up at 20 W, then 0.1 s a step at 100 W; a tenth of the epoch is done.
    pace = Pace(0.0, 12.0, 25, 100, 0.1, 10.0, 9.5, 0.0)

    def energy_j(at_s: float) -> float | None:
        return 20.0 * min(at_s, 10.0) + 100.0 * max(0.0, at_s - 10.0)

    estimate = forecast_within(pace, 10, 0.001, energy_j)
    ahead_s = 75 * 0.1 + 9 * 100 * 0.1
    assert estimate.made_after == 0
    assert estimate.duration_s.value == pytest.approx(12.0 + ahead_s)
    assert estimate.energy_j is not None
    assert estimate.emissions_g is not None
    assert estimate.energy_j.value == pytest.approx(200 + 200 + 100 * ahead_s)
    assert estimate.emissions_g.value == pytest.approx(estimate.energy_j.value * 0.001)
    assert estimate.duration_s.low < estimate.duration_s.value < estimate.duration_s.high


def test_first_steps_of_which_nothing_was_measured_foretell_the_time_alone() -> None:
    estimate = forecast_within(Pace(0.0, 2.0, 20, 100, 0.1, 0.5, 0.0, 0.0), 10, 0.001, lambda _: None)
    assert estimate.energy_j is None
    assert estimate.emissions_g is None


def test_what_is_left_is_charged_at_the_intensity_to_come() -> None:
    estimate = Estimate(10, 5, Band(100, 90, 110), Band(1000.0, 900.0, 1100.0), None, "")
    found = with_intensity_ahead(estimate, 400.0, 40.0, Band(0.3, 0.25, 0.36))
    assert found.emissions_g is not None
    assert found.emissions_g.value == pytest.approx(40.0 + 600 * 0.3)
    assert found.emissions_g.low == pytest.approx(220 - math.hypot(100 * 0.3, 600 * 0.05))
    assert found.emissions_g.high == pytest.approx(220 + math.hypot(100 * 0.3, 600 * 0.06))


AFTER_ONE = Estimate(10, 1, Band(100.0, 80.0, 120.0), Band(1000.0, 800.0, 1200.0), Band(10.0, 8.0, 12.0), "")


def test_what_was_used_outside_of_epochs_is_part_of_the_whole_run() -> None:
    found = as_it_stands(AFTER_ONE, 1, Spent(10.0, 5.0, 30.0), Spent(100.0, 50.0, 300.0), 0.01)
    assert found.duration_s == Band(130.0, 110.0, 150.0)
    assert found.energy_j == Band(1300.0, 1100.0, 1500.0)
    assert found.emissions_g is not None
    assert found.emissions_g.value == pytest.approx(13.0)


def test_an_epoch_that_takes_longer_than_was_expected_moves_the_interval() -> None:
    found = as_it_stands(AFTER_ONE, 1, Spent(10.0, 500.0, 0.0), Spent(100.0, 5000.0, 0.0), 0.01)
    # The eight that follow it are still expected to take 10 s each.
    assert found.duration_s.value == pytest.approx(10 + 500 + 8 * 10)
    assert found.energy_j is not None
    assert found.energy_j.value == pytest.approx(100 + 5000 + 8 * 100)
    for band in (found.duration_s, found.energy_j, found.emissions_g):
        assert band is not None
        assert band.low < band.value < band.high


def test_what_the_steps_of_the_first_epoch_did_not_show_is_expected_of_all() -> None:
    # Ten epochs of 10 s by their steps. The first has run for 14, say with a validation.
    estimate = Estimate(10, 0, Band(100.0, 80.0, 125.0), Band(1e4, 8e3, 12.5e3), None, "")
    seen = Spent(0.0, 8.0, 1.0), Spent(0.0, 800.0, 100.0)
    beyond = Spent(0.0, 14.0, 1.0), Spent(0.0, 1400.0, 100.0)
    assert as_it_stands(estimate, 0, *seen, 0.01, first_s=10.0).duration_s == Band(101.0, 81.0, 126.0)
    found = as_it_stands(estimate, 0, *beyond, 0.01, first_s=10.0)
    assert found.energy_j is not None
    # Of the others nobody knows it: one may be all.
    for band, unit in ((found.duration_s, 1.0), (found.energy_j, 100.0)):
        assert (band.value, band.low, band.high) == pytest.approx((141 * unit, 85 * unit, 166 * unit))
    after = as_it_stands(AFTER_ONE, 1, Spent(10.0, 7.0, 0.0), Spent(100.0, 70.0, 0.0), 0.01, first_s=1.0)
    assert after.duration_s == AFTER_ONE.duration_s


@pytest.mark.parametrize(("made_after", "done"), [(0, 0), (1, 4), (10, 10), (10, 12)])
def test_nothing_is_expected_below_what_is_used(made_after: int, done: int) -> None:
    estimate = Estimate(10, made_after, Band(100.0, 90.0, 120.0), None, None, "")
    found = as_it_stands(estimate, done, Spent(60.0, 70.0, 5.0), Spent(0.0, 0.0, 0.0), 0.01)
    assert 135.0 <= found.duration_s.low <= found.duration_s.value <= found.duration_s.high
    assert found.energy_j is None


def test_emissions_are_never_expected_below_what_was_emitted() -> None:
    estimate = Estimate(10, 9, Band(100, 90, 110), Band(1000.0, 100.0, 1100.0), None, "")
    found = with_intensity_ahead(estimate, 990.0, 99.0, Band(0.1, 0.05, 0.2))
    assert found.emissions_g is not None
    assert found.emissions_g.low >= 99.0
