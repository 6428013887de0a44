import pytest

from ct_notebook.steps import StepsOf, pace_of


def marks(*steps_s: float, began_s: float = 100.0) -> list[tuple[int, float]]:
    """A mark after each step, the first before any."""
    at_s, found = began_s, [(0, began_s)]
    for done, step_s in enumerate(steps_s, 1):
        at_s += step_s
        found.append((done, at_s))
    return found


def test_the_first_steps_are_left_out_of_the_pace_and_told_as_excess() -> None:
    pace = pace_of(100.0, 100, marks(*[3.0] * 5, *[1.0] * 20))
    assert pace is not None
    assert pace.step_s == pytest.approx(1.0)
    assert pace.excess_s == pytest.approx(10.0)
    assert (pace.done, pace.steps) == (25, 100)


def test_what_comes_before_the_first_step_is_excess_too() -> None:
    pace = pace_of(70.0, 100, marks(*[1.0] * 20))
    assert pace is not None
    assert pace.excess_s == pytest.approx(30.0)


def test_nothing_is_told_while_all_may_be_warm_up() -> None:
    assert pace_of(100.0, 100, marks(*[1.0] * 8)) is None
    assert pace_of(100.0, 1000, marks(*[1.0] * 50)) is None
    assert pace_of(100.0, 1000, marks(*[1.0] * 60)) is not None


def test_an_epoch_of_few_steps_has_a_short_warm_up() -> None:
    pace = pace_of(100.0, 8, marks(*[9.0] * 4, *[2.0] * 4))
    assert pace is not None
    assert pace.step_s == pytest.approx(2.0)


def test_one_slow_step_does_not_set_the_pace() -> None:
    pace = pace_of(100.0, 100, marks(*[1.0] * 20, 50.0, *[1.0] * 20))
    assert pace is not None
    assert pace.step_s == pytest.approx(1.0)
    assert pace.spread > 1


def test_marks_far_apart_count_by_their_steps() -> None:
    pace = pace_of(0.0, 1000, [(0, 0.0), (100, 10.0), (300, 30.0), (310, 33.0), (320, 36.0)])
    assert pace is not None
    assert pace.step_s == pytest.approx(0.1)


def test_only_the_first_loop_that_tells_its_length_is_followed() -> None:
    steps = StepsOf(0.0)
    steps.mark(0.0, "no length", 0, None)
    for done in range(30):
        steps.mark(float(done), "train", done, 30)
        steps.mark(float(done), "validation", done, 300)
    pace = steps.pace()
    assert pace is not None
    assert (pace.done, pace.steps) == (29, 30)


def test_a_loop_that_was_over_at_once_gives_way_to_the_training() -> None:
    steps = StepsOf(0.0)
    for done in range(4):
        steps.mark(0.1 * done, "a look at some parameters", done, 3)
    steps.mark(0.5, "left behind by an earlier cell", 7, 70)
    for done in range(40):
        steps.mark(0.5 + done, "train", done, 100)
        steps.mark(0.5 + done, "left behind by an earlier cell", 7, 70)
    pace = steps.pace()
    assert pace is not None
    assert (pace.done, pace.steps) == (39, 100)


def test_a_validation_after_the_training_is_not_taken_for_it() -> None:
    steps = StepsOf(0.0)
    for done in range(31):
        steps.mark(float(done), "train", done, 30)
    for done in range(61):
        steps.mark(31.0 + done, "validation", done, 60)
    pace = steps.pace()
    assert pace is not None
    assert pace.steps == 30


def test_of_many_bars_the_one_that_is_followed_is_kept() -> None:
    steps = StepsOf(0.0)
    for done in range(20):
        steps.mark(float(done), "train", done, 20)
        steps.mark(float(done), f"a bar for step {done}", done % 2, 5)
    pace = steps.pace()
    assert pace is not None
    assert (pace.done, pace.steps) == (19, 20)


def test_a_pause_is_no_step_and_no_warm_up() -> None:
    plain, held = StepsOf(100.0), StepsOf(100.0)
    for done in range(30):
        plain.mark(100.0 + done, "train", done, 30)
    for pause_s, at_s in ((50.0, 102.5), (7.0, 172.0)):
        held.turn(at_s)
        held.turn(at_s + pause_s)
    for done in range(30):
        away_s = 0.0 if done < 3 else 50.0 if done < 22 else 57.0
        held.mark(100.0 + done + away_s, "train", done, 30)
    assert held.pace() == plain.pace()
    assert held.trained(140.0) == [(100.0, 102.5)]
    assert held.trained(160.0) == [(100.0, 102.5), (152.5, 160.0)]


def test_marks_that_cannot_be_are_left_out() -> None:
    steps = StepsOf(10.0)
    for done in range(20):
        steps.mark(10.0 + done, "train", done, 20)
    steps.mark(31.0, "train", 5, 20)  # went back
    steps.mark(32.0, "train", 30, 20)  # more than there are
    steps.mark(5.0, "train", 20, 20)  # before the epoch
    pace = steps.pace()
    assert pace is not None
    assert pace.done == 19


def test_a_million_marks_are_kept_in_a_bounded_number() -> None:
    steps = StepsOf(0.0)
    for done in range(100_000):
        steps.mark(done * 0.2, "train", done, 100_000)
    pace = steps.pace()
    assert pace is not None
    assert pace.step_s == pytest.approx(0.2)
    assert len(steps._sources["train"].marks.items()) <= 240
