import math
import random
from itertools import pairwise

import pytest

from ct_notebook.account import CURVE_POINTS, Account, Curve, Mark
from ct_notebook.records import Device, Reading, Sample
from ct_notebook.units import kwh

GAUGE = Device("gpu:0", "gpu", "A gauge", "measured")
GAUGE_2 = Device("gpu:1", "gpu", "Another gauge", "measured")
COUNTER = Device("cpu:0", "cpu", "A counter", "counter", counter_range_j=65_532.0, max_power_w=500.0)


def gauge(watts: float, device: Device = GAUGE) -> Reading:
    return Reading(device.key, device.component, "measured", watts=watts)


def counter(counter_j: float, watts: float | None = None) -> Reading:
    return Reading(COUNTER.key, COUNTER.component, "counter", watts=watts, counter_j=counter_j)


def sample(at_s: float, *readings: Reading, **missing: str) -> Sample:
    return Sample(at_s, readings, {key.replace("_", ":"): why for key, why in missing.items()})


def curve_of(device: Device, *points: tuple[float, Reading], max_gap_s: float = 4.0) -> Curve:
    curve = Curve(device, max_gap_s)
    for at_s, reading in points:
        curve.add(at_s, reading)
    return curve


def test_two_gpus_of_100_and_300_w_for_an_hour_make_0_4_kwh() -> None:
    account = Account([GAUGE, GAUGE_2], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)
    for at_s in range(3601):
        account.add(sample(at_s, gauge(100.0), gauge(300.0, GAUGE_2)))
    account.mark(3600.0, Mark.EPOCH_END)
    (epoch,) = account.settle()
    assert kwh(epoch.total_j) == pytest.approx(0.4, rel=1e-9)
    assert epoch.power_w("gpu:1") == pytest.approx(300.0)


def test_a_gauge_is_integrated_by_trapezoid_and_read_between_its_points() -> None:
    curve = curve_of(GAUGE, (0.0, gauge(100.0)), (2.0, gauge(200.0)))
    assert curve.at(2.0) == (300.0, 2.0)
    assert curve.at(1.0) == (150.0, 1.0)
    assert curve.at(-1.0) == (0.0, 0.0)
    assert curve.at(5.0) == (300.0, 2.0)


def test_a_gap_far_longer_than_the_interval_is_left_out_for_a_gauge() -> None:
    curve = curve_of(
        GAUGE, (0.0, gauge(100.0)), (1.0, gauge(100.0)), (3601.0, gauge(100.0)), (3602.0, gauge(100.0))
    )
    assert curve.at(3602.0) == (200.0, 2.0)


def test_a_gap_is_bridged_by_a_counter() -> None:
    curve = curve_of(COUNTER, (0.0, counter(10.0)), (1.0, counter(60.0)), (101.0, counter(5060.0)))
    assert curve.at(101.0) == (5050.0, 101.0)


def test_a_counter_that_wraps_goes_on() -> None:
    curve = curve_of(COUNTER, (0.0, counter(65_500.0)), (1.0, counter(18.0)))
    energy_j, covered_s = curve.at(1.0)
    assert energy_j == pytest.approx(50.0)
    assert covered_s == 1.0


def test_a_gap_in_which_a_counter_may_have_wrapped_twice_is_not_guessed() -> None:
    curve = curve_of(COUNTER, (0.0, counter(10.0)), (3600.0, counter(60.0)))
    assert curve.at(3600.0) == (0.0, 0.0)


def test_a_counter_that_goes_back_costs_only_that_stretch() -> None:
    points = [(float(t), counter(1000.0 + 50.0 * t)) for t in range(5)]
    points += [(float(t), counter(50.0 * (t - 5))) for t in range(5, 11)]
    energy_j, covered_s = curve_of(COUNTER, *points).at(10.0)
    assert energy_j == pytest.approx(450.0)
    assert covered_s == pytest.approx(9.0)


def test_a_counter_that_goes_back_is_bridged_by_the_gauge_of_the_same_device() -> None:
    points = [
        (0.0, counter(900.0, 50.0)),
        (1.0, counter(950.0, 50.0)),
        (2.0, counter(0.0, 50.0)),
        (3.0, counter(50.0, 50.0)),
    ]
    assert curve_of(COUNTER, *points).at(3.0) == (150.0, 3.0)


def test_a_counter_without_range_that_goes_back_is_a_reset() -> None:
    device = Device("gpu:0", "gpu", "A GPU", "counter")
    points = [(0.0, 900.0), (1.0, 950.0), (2.0, 20.0), (3.0, 70.0)]
    curve = Curve(device, 4.0)
    for at_s, joules in points:
        curve.add(at_s, Reading("gpu:0", "gpu", "counter", counter_j=joules))
    assert curve.at(3.0) == (100.0, 2.0)


def test_a_counter_that_stalls_and_catches_up_loses_nothing() -> None:
    points = [
        (0.0, 0.0),
        (1.0, 50.0),
        (2.0, 100.0),
        (3.0, 100.0),
        (5.0, 100.0),
        (7.0, 100.0),
        (8.0, 400.0),
        (9.0, 450.0),
    ]
    curve = curve_of(COUNTER, *((at_s, counter(joules)) for at_s, joules in points))
    energy_j, covered_s = curve.at(9.0)
    assert energy_j == pytest.approx(450.0, rel=1e-3)
    assert covered_s == pytest.approx(9.0)
    assert curve.at(5.0)[0] == pytest.approx(250.0)


def test_a_counter_that_stalls_and_does_not_catch_up_lowers_the_coverage() -> None:
    points = [
        (0.0, 0.0),
        (1.0, 50.0),
        (2.0, 100.0),
        (3.0, 100.0),
        (5.0, 100.0),
        (7.0, 100.0),
        (8.0, 150.0),
        (9.0, 200.0),
    ]
    energy_j, covered_s = curve_of(COUNTER, *((at_s, counter(joules)) for at_s, joules in points)).at(9.0)
    assert energy_j == pytest.approx(200.0)
    assert covered_s == pytest.approx(4.0)


def test_the_gauge_speaks_for_a_counter_that_stalls_for_good() -> None:
    points = [(float(t), counter(min(100.0, 50.0 * t), 50.0)) for t in range(8)]
    energy_j, covered_s = curve_of(COUNTER, *points).at(7.0)
    assert energy_j == pytest.approx(350.0)
    assert covered_s == pytest.approx(7.0)


def test_a_counter_that_stalls_for_good_without_gauge_is_not_covered() -> None:
    points = [(float(t), counter(min(100.0, 50.0 * t))) for t in range(8)]
    assert curve_of(COUNTER, *points).at(7.0) == (100.0, 2.0)


def test_a_jump_beyond_the_devices_power_is_not_energy() -> None:
    points = [(0.0, counter(0.0)), (1.0, counter(50.0)), (2.0, counter(30_000.0)), (3.0, counter(30_050.0))]
    assert curve_of(COUNTER, *points).at(3.0) == (100.0, 2.0)


def test_a_curve_is_bounded_and_exact_at_its_end() -> None:
    curve = Curve(GAUGE, 4.0)
    for tick in range(86_401):
        curve.add(float(tick), gauge(100.0))
    times_s, energies_j = curve.points()
    assert len(times_s) == len(energies_j) < CURVE_POINTS
    assert curve.at(86_400.0) == (8_640_000.0, 86_400.0)
    assert curve.at(43_200.0)[0] == pytest.approx(4_320_000.0)


def run_of(marks: list[tuple[float, Mark]], until_s: float, watts: float = 100.0) -> Account:
    account = Account([GAUGE], 1.0)
    index = 0
    for at_s, mark in marks:
        index += mark is Mark.EPOCH_START
        account.mark(at_s, mark, index)
    ticks = int(until_s) + 2
    for tick in range(ticks):
        account.add(sample(float(tick), gauge(watts)))
        account.settle()
    account.settle(final=True)
    return account


def test_a_hundred_epochs_of_a_millisecond_have_values_that_sum_to_the_whole() -> None:
    account = Account([GAUGE], 1.0)
    account.add(sample(0.0, gauge(100.0)))
    account.mark(0.0, Mark.START)
    for n in range(100):
        account.mark(n / 1000, Mark.EPOCH_START, n + 1)
        account.mark((n + 1) / 1000, Mark.EPOCH_END)
    account.mark(0.1, Mark.STOP)
    account.add(sample(0.101, gauge(100.0)))
    epochs = account.settle(final=True)
    assert len(epochs) == 100
    assert all(epoch.total_j == pytest.approx(0.1) for epoch in epochs)
    assert sum(epoch.total_j for epoch in epochs) == pytest.approx(10.0, rel=1e-9)


def test_epochs_pauses_and_the_rest_add_up_to_the_whole() -> None:
    marks = [
        (1.0, Mark.START),
        (3.0, Mark.EPOCH_START),
        (5.5, Mark.PAUSE),
        (7.5, Mark.RESUME),
        (9.0, Mark.EPOCH_END),
        (10.0, Mark.EPOCH_START),
        (12.25, Mark.EPOCH_CUT),
        (14.0, Mark.STOP),
    ]
    account = run_of(marks, 16.0)
    first, second = account.epochs
    assert first.duration_s == pytest.approx(4.0)
    assert first.paused_s == pytest.approx(2.0)
    assert first.total_j == pytest.approx(400.0)
    assert second.partial
    assert second.total_j == pytest.approx(225.0)
    assert account.paused_j == {"gpu:0": pytest.approx(200.0)}
    assert account.outside_j == {"gpu:0": pytest.approx(475.0)}
    assert account.duration_s + account.paused_s == pytest.approx(13.0)
    whole_j = first.total_j + second.total_j + account.paused_j["gpu:0"] + account.outside_j["gpu:0"]
    assert whole_j == pytest.approx(1300.0)


def test_a_run_without_epochs_can_be_made_one() -> None:
    account = run_of([(1.0, Mark.START), (4.0, Mark.STOP)], 5.0)
    epoch = account.as_one_epoch()
    assert (epoch.index, epoch.duration_s) == (1, 3.0)
    assert epoch.total_j == pytest.approx(300.0)
    assert not account.outside_j


def test_a_device_that_fails_is_missing_and_the_rest_goes_on() -> None:
    account = Account([GAUGE, GAUGE_2], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)
    for tick in range(3):
        account.add(sample(float(tick), gauge(100.0), gauge(300.0, GAUGE_2)))
    for tick in range(3, 11):
        account.add(sample(float(tick), gauge(100.0), gpu_1="GPU is lost"))
    account.mark(10.0, Mark.EPOCH_END)
    (epoch,) = account.settle()
    assert epoch.energy_j == {"gpu:0": pytest.approx(1000.0), "gpu:1": pytest.approx(600.0)}
    assert epoch.covered_s == {"gpu:0": pytest.approx(10.0), "gpu:1": pytest.approx(2.0)}
    assert epoch.power_w("gpu:1") == pytest.approx(300.0)
    assert account.missing == {"gpu:1": "GPU is lost"}


def test_an_epoch_in_which_a_device_was_never_read_does_not_name_it() -> None:
    account = Account([GAUGE, GAUGE_2], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)
    for tick in range(3):
        account.add(sample(float(tick), gauge(100.0), gpu_1="no permission"))
    account.mark(2.0, Mark.EPOCH_END)
    (epoch,) = account.settle()
    assert set(epoch.energy_j) == {"gpu:0"}
    assert epoch.power_w("gpu:1") is None


def test_marks_wait_for_the_sample_that_reaches_them() -> None:
    account = Account([GAUGE], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)
    account.mark(1.5, Mark.EPOCH_END)
    account.add(sample(0.0, gauge(100.0)))
    account.add(sample(1.0, gauge(100.0)))
    assert account.settle() == []
    account.add(sample(2.0, gauge(100.0)))
    assert [epoch.total_j for epoch in account.settle()] == [pytest.approx(150.0)]


def test_the_figures_so_far_reach_up_to_the_newest_sample() -> None:
    account = Account([GAUGE], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(1.0, Mark.EPOCH_START, 1)
    for tick in range(6):
        account.add(sample(float(tick), gauge(100.0)))
    account.settle()
    energy_j, seconds = account.so_far()
    assert energy_j == {"gpu:0": pytest.approx(500.0)}
    assert seconds == pytest.approx(5.0)


@pytest.mark.parametrize("gauge_w", [60.0, 90.0, 100.0])
def test_a_stalled_counter_with_a_gauge_beside_it_loses_nothing(gauge_w: float) -> None:
    account = Account([COUNTER], 1.0)
    account.mark(0.0, Mark.START)
    marks = [n * 0.7 for n in range(28)]
    for index, at_s in enumerate(marks[:-1], 1):
        account.mark(at_s, Mark.EPOCH_START, index)
        account.mark(marks[index], Mark.EPOCH_END)
    account.mark(19.5, Mark.STOP)
    for tick in range(21):
        joules = 500.0 if 5 <= tick < 10 else 100.0 * tick
        account.add(sample(float(tick), counter(joules, gauge_w)))
        account.settle()
    account.settle(final=True)
    parts_j = sum(epoch.total_j for epoch in account.epochs) + account.outside_j.get("cpu:0", 0.0)
    assert parts_j == pytest.approx(1950.0, rel=1e-3)
    assert all(epoch.covered_s["cpu:0"] <= epoch.duration_s + 1e-9 for epoch in account.epochs)


def test_an_epoch_waits_for_a_counter_that_stalls_and_gets_its_share() -> None:
    account = Account([COUNTER], 1.0)
    account.mark(0.0, Mark.START)
    for index in range(1, 10):
        account.mark(index - 1.0, Mark.EPOCH_START, index)
        account.mark(float(index), Mark.EPOCH_END)
    for tick in range(10):
        account.add(sample(float(tick), counter(200.0 if 2 <= tick < 7 else 100.0 * tick)))
        account.settle()
    assert [epoch.total_j for epoch in account.epochs] == [pytest.approx(100.0)] * 9


@pytest.mark.parametrize("garbage", [math.nan, math.inf, -5.0])
def test_a_figure_that_cannot_be_is_missing(garbage: float) -> None:
    account = Account([GAUGE], 1.0)
    account.mark(0.0, Mark.START)
    account.mark(0.0, Mark.EPOCH_START, 1)
    for tick in range(5):
        account.add(sample(float(tick), gauge(garbage if tick == 2 else 100.0)))
    account.mark(4.0, Mark.EPOCH_END)
    (epoch,) = account.settle(final=True)
    assert epoch.total_j == pytest.approx(400.0)


def test_marks_that_are_out_of_order_by_a_moment_are_put_in_order() -> None:
    account = run_of(
        [(1.0, Mark.START), (3.0, Mark.EPOCH_START), (2.999, Mark.EPOCH_END), (4.0, Mark.STOP)], 5.0
    )
    assert account.epochs[0].duration_s == 0.0
    assert account.duration_s == pytest.approx(3.0)


@pytest.mark.parametrize("seed", range(20))
def test_parts_add_up_to_the_whole_whatever_happens(seed: int) -> None:
    """Random power, sample times, marks, ticks and stalls, against the true integral."""
    chance = random.Random(seed)
    steps = [(chance.uniform(0.2, 3.0), chance.uniform(20.0, 300.0)) for _ in range(40)]

    def true_j(at_s: float) -> float:
        energy_j, left_s = 0.0, at_s
        for seconds, watts in steps:
            energy_j += min(seconds, left_s) * watts
            left_s = max(0.0, left_s - seconds)
        return energy_j

    device = Device("gpu:0", "gpu", "A GPU", "counter")
    account = Account([device], 0.5)
    account.mark(0.0, Mark.START)
    now_s, marks, ends = 0.0, [], 20.0
    while now_s < ends:
        now_s += chance.uniform(0.05, 1.5)
        marks.append(now_s)
    for index, (start_s, end_s) in enumerate(pairwise(marks), 1):
        account.mark(start_s, Mark.EPOCH_START, index)
        account.mark(end_s, Mark.EPOCH_END)
    account.mark(marks[-1], Mark.STOP)
    now_s = 0.0
    while now_s < marks[-1] + 1.0:
        ticked_s = math.floor(now_s / 0.1) * 0.1
        account.add(sample(now_s, Reading("gpu:0", "gpu", "counter", counter_j=true_j(ticked_s))))
        account.settle()
        now_s += chance.uniform(0.1, 0.6)
    account.settle(final=True)
    parts_j = sum(epoch.total_j for epoch in account.epochs) + account.outside_j.get("gpu:0", 0.0)
    assert parts_j == pytest.approx(account.curve("gpu:0").at(marks[-1])[0], rel=1e-9)
    assert parts_j == pytest.approx(true_j(marks[-1]), rel=0.01, abs=40.0)
