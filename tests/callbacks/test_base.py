"""What callbacks of frameworks share, with a real tracker and no framework."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from ct_notebook.callbacks.base import Marks
from ct_notebook.tracker import CarbonTracker


def tracker(epochs: int | None) -> CarbonTracker:
    return CarbonTracker(
        epochs,
        monitor_epochs=-1,
        update_interval=0.05,
        sim_cpu="X",
        sim_cpu_tdp=100,
        components="cpu",
        carbon_intensity=100,
        pue=1.0,
        verbose=0,
    )


@pytest.fixture
def block() -> Iterator[CarbonTracker]:
    with tracker(3) as found:
        yield found


def train(marks: Marks, epochs: int = 3) -> int:
    """Train as a framework does, and give how many epochs it trained."""
    marks.training_began(epochs)
    trained = 0
    for _ in range(epochs):
        marks.epoch_began()
        for done in range(1, 5):
            marks.step(done, 4)
        marks.epoch_ended()
        trained += 1
        if marks.should_stop:
            break
    marks.training_ended()
    return trained


def test_the_tracker_of_a_block_is_found_and_not_ended(block: CarbonTracker) -> None:
    assert train(Marks(None)) == 3
    assert (block.epochs_seen, block.active, block.marked_by_hand) == (3, True, True)


def test_a_tracker_that_is_given_ends_with_the_training() -> None:
    given = tracker(5)
    assert train(Marks(given)) == 3
    assert (given.epochs_seen, given.active) == (3, False)
    assert not any(epoch.partial for epoch in given.run.epochs)


def test_a_tracker_that_a_block_ends_is_not_ended_even_if_it_is_given(block: CarbonTracker) -> None:
    train(Marks(block))
    assert block.active


def test_a_training_says_how_many_epochs_it_has_only_where_the_user_did_not() -> None:
    with tracker(None) as undeclared:
        train(Marks(None), 2)
    assert undeclared.epochs_declared == 2
    with tracker(7) as declared:
        train(Marks(None), 2)
    assert declared.epochs_declared == 7
    with tracker(None) as endless:
        Marks(None).training_began(-1)
    assert endless.epochs_declared is None


def test_without_a_run_the_training_goes_on_and_one_line_says_that_nothing_is_measured() -> None:
    with pytest.warns(UserWarning, match="nothing is measured") as told:
        assert train(Marks(None)) == 3
    assert len(told) == 1


def test_a_choice_to_stop_ends_the_training_and_none_of_the_marks_raises(block: CarbonTracker) -> None:
    marks = Marks(None)
    marks.training_began(3)
    marks.epoch_began()
    block.should_stop = True
    assert marks.should_stop
    marks.epoch_ended()
    # Whatever trains next in the same block is not ended by an error.
    assert train(Marks(None)) == 1


def test_an_epoch_of_a_loop_that_is_watched_is_the_same_epoch(block: CarbonTracker) -> None:
    for _ in range(3):
        block.begin_epoch()
        train(Marks(None), 1)
        block.end_epoch()
    assert block.epochs_seen == 3
    block.finish()
    assert [epoch.index for epoch in block.run.epochs] == [1, 2, 3]


def test_a_training_within_an_epoch_that_the_user_marks_is_part_of_it() -> None:
    given = tracker(3)
    for _ in range(3):
        given.epoch_start()
        train(Marks(given), 2)
        given.epoch_end()
    given.stop()
    assert [epoch.partial for epoch in given.run.epochs] == [False] * 3
    with tracker(2) as block:
        for _ in block.epochs():
            train(Marks(None), 1)
    assert len(block.run.epochs) == 2


def test_a_training_in_each_turn_of_a_loop_has_epochs_of_its_own_unless_the_turns_were_announced() -> None:
    with tracker(None) as folds:
        folds.declare(2)  # as a watched loop does
        folds.begin_epoch()
        train(Marks(None), 3)
        folds.end_epoch()
        assert folds.epochs_declared == 6
        train(Marks(None), 3)
    assert (folds.epochs_declared, len(folds.run.epochs)) == (6, 6)
    assert folds.run.prediction is not None
    assert (folds.run.prediction.made_after, folds.run.prediction.epochs) == (1, 6)
    with tracker(2) as announced:
        for _ in range(2):
            announced.begin_epoch()
            train(Marks(None), 3)
            announced.end_epoch()
    assert (announced.epochs_declared, len(announced.run.epochs)) == (2, 2)


def test_a_second_training_adds_its_epochs_to_those_of_the_first() -> None:
    with tracker(None) as block:
        train(Marks(None), 2)
        train(Marks(None), 4)
    assert (block.epochs_declared, block.epochs_seen) == (6, 6)


def test_a_training_with_a_tracker_whose_run_is_over_is_not_measured_and_not_stopped() -> None:
    given = tracker(3)
    given.start()
    given.should_stop = True
    marks = Marks(given)
    assert train(marks) == 1
    with pytest.warns(UserWarning, match="is over"):
        assert train(marks) == 3


def test_an_epoch_that_an_error_left_open_is_partial_once_another_training_begins(
    block: CarbonTracker,
) -> None:
    broken = Marks(None)
    broken.training_began(3)
    broken.epoch_began()
    train(Marks(None), 2)
    block.finish()
    assert [epoch.partial for epoch in block.run.epochs] == [True, False, False]


def test_a_training_that_is_begun_anew_after_an_error_has_all_of_its_epochs() -> None:
    for announced in (3, None):
        given = tracker(announced)
        marks = Marks(given)
        marks.training_began(3)
        marks.epoch_began()  # and as with `auto_find_batch_size`, there it is begun anew
        marks.training_began(3)
        for _ in range(3):
            assert given.active
            marks.epoch_began()
            marks.epoch_ended()
        marks.training_ended()
        assert (given.epochs_declared, given.epochs_seen) == (3, 3)
        assert [epoch.partial for epoch in given.run.epochs] == [True, False, False, False]
        assert not given.run.early_stop


def test_an_error_that_a_framework_tells_of_ends_the_run_of_a_tracker_that_was_given() -> None:
    given = tracker(3)
    marks = Marks(given)
    marks.training_began(3)
    marks.epoch_began()
    marks.training_failed(ZeroDivisionError())
    assert (given.active, given.run.reason) == (False, "failed")
    assert [epoch.partial for epoch in given.run.epochs] == [True]
    marks = Marks(tracker(3))
    marks.training_began(3)
    marks.training_failed(ZeroDivisionError())  # before anything was measured


def test_an_epoch_left_by_an_error_is_partial() -> None:
    given = tracker(3)
    marks = Marks(None)

    def fails() -> None:
        with given:
            marks.training_began(3)
            marks.epoch_began()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert [epoch.partial for epoch in given.run.epochs] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tracker(1) as again:
            train(marks, 1)
    assert again.epochs_seen == 1


def test_steps_are_passed_on_a_few_times_a_second_and_the_last_one_always(
    block: CarbonTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int | None] = []
    clock = [1000.0]
    monkeypatch.setattr(block, "step", lambda done, _total, _source: told.append(done))
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    marks = Marks(None)
    marks.training_began(1)
    marks.epoch_began()
    for done in range(1, 1001):
        clock[0] += 0.001
        marks.step(done, 1000)
    assert told[0] == 1
    assert told[-1] == 1000
    assert 4 <= len(told) <= 8
    monkeypatch.undo()
