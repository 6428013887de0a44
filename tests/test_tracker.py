"""The class in a plain process: real sampler, account and log on a small real sensor."""

from __future__ import annotations

import asyncio
import gc
import inspect
import io
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ct_notebook import tracker as tracker_module
from ct_notebook.ask import Answer, Question
from ct_notebook.errors import SettingError, TrainingStopped
from ct_notebook.records import Finding, Reading
from ct_notebook.sensors.base import Discovery
from ct_notebook.settings import resolve
from ct_notebook.tracker import CarbonTracker, active, last_run
from ct_notebook.units import kwh
from support.sensors import Gate, SteadySensor


@pytest.fixture
def sensor(monkeypatch: pytest.MonkeyPatch) -> SteadySensor:
    """The only sensor of this machine, 100 W."""
    found = SteadySensor("cpu:0")
    monkeypatch.setattr("ct_notebook.recording.discover", lambda **_: Discovery((found,), ()))
    return found


def quiet(epochs: int | None = 3, **options: object) -> CarbonTracker:
    options = {"monitor_epochs": -1, "verbose": 0, "country": "DK", "pue": 1.0, **options}
    return CarbonTracker(epochs, **options)  # type: ignore[arg-type]


def train(tracker: CarbonTracker, epochs: int, epoch_s: float = 0.03) -> None:
    for _ in range(epochs):
        tracker.epoch_start()
        time.sleep(epoch_s)
        tracker.epoch_end()


def standard_log(folder: Path) -> str:
    (path,) = folder.glob("*_carbontracker.log")
    return path.read_text("utf-8")


def output_log(folder: Path) -> str:
    (path,) = folder.glob("*_carbontracker_output.log")
    return path.read_text("utf-8")


def test_the_texts_are_those_of_carbontrackers_documentation(
    sensor: SteadySensor, capsys: pytest.CaptureFixture[str]
) -> None:
    sensor.watts = 3_600_000.0
    tracker = CarbonTracker(epochs=1000, carbon_intensity=100, pue=1.0)
    train(tracker, 1)
    lines = capsys.readouterr().out.splitlines()
    shapes = [line.split("\t") for line in lines]
    assert lines[0] == "CarbonTracker: "
    assert lines[1] == "Actual consumption for 1 epoch(s):"
    assert [shape[1] for shape in shapes[2:6]] == ["Time:", "Energy:", "CO2eq:", "This is equivalent to:"]
    assert shapes[3][2].endswith(" kWh")
    assert shapes[4][2].endswith(" g")
    assert lines[6].endswith(" km travelled by car")
    assert lines[7:9] == ["CarbonTracker: ", "Predicted consumption for 1000 epoch(s):"]
    assert lines[-1] == "CarbonTracker: Finished monitoring."
    energy_kwh, co2eq_g = float(shapes[3][2].split()[0]), float(shapes[4][2].split()[0])
    assert energy_kwh == pytest.approx(tracker.run.epochs[0].duration_s, rel=1e-3)
    assert co2eq_g == pytest.approx(100 * energy_kwh, rel=1e-3)
    assert len(shapes[3][2].split()[0].split(".")[1]) == 6


def test_verbose_2_adds_components_and_carbon_intensity_with_its_place(
    sensor: SteadySensor, capsys: pytest.CaptureFixture[str]
) -> None:
    train(CarbonTracker(epochs=1, verbose=2, country="DK"), 1)
    text = capsys.readouterr().out
    assert "The following components were found: CPU with device(s) Test cpu:0." in text
    assert "Carbon intensity is 114.41 gCO2eq/kWh at detected location: Denmark (Ember" in text
    assert "Average carbon intensity during training was 114.41 gCO2eq/kWh" in text
    assert sensor.closed


@pytest.mark.usefixtures("sensor")
def test_what_grams_stand_for_is_told_with_those_of_a_prediction_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(CarbonTracker(epochs=3, monitor_epochs=-1, country="DK"), 3)
    predicted, _, rest = capsys.readouterr().out.partition("Actual consumption for 3 epoch(s)")
    for block in (predicted, rest):
        assert len(re.findall(r"CO2eq is told at 114\.4 .*\(Denmark, 20\d\d, lifecycle; Ember", block)) == 1
    train(CarbonTracker(epochs=3, country="DK"), 1)
    assert capsys.readouterr().out.count("CO2eq is told at") == 1


def test_verbose_0_says_nothing(sensor: SteadySensor, capsys: pytest.CaptureFixture[str]) -> None:
    train(quiet(2), 2)
    assert capsys.readouterr() == ("", "")
    assert sensor.closed


@pytest.mark.usefixtures("sensor")
def test_not_interpretable_is_for_the_eyes_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(CarbonTracker(epochs=1, interpretable=False, log_dir=tmp_path), 1)
    assert "equivalent" not in capsys.readouterr().out
    assert "This is equivalent to:" in output_log(tmp_path)


@pytest.mark.usefixtures("sensor")
def test_three_finished_epochs_and_stop_are_three_epochs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = CarbonTracker(epochs=10, monitor_epochs=-1, log_dir=tmp_path)
    train(tracker, 3)
    tracker.stop()
    run = tracker.run
    assert "Actual consumption for 3 epoch(s):" in capsys.readouterr().out
    assert len(run.epochs) == 3
    assert run.early_stop
    assert "Training was interrupted before all 10 epochs were monitored." in standard_log(tmp_path)
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")


@pytest.mark.usefixtures("sensor")
def test_an_open_epoch_is_partial_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = CarbonTracker(epochs=10, monitor_epochs=-1)
    train(tracker, 3)
    tracker.epoch_start()
    run = tracker.finish(error=KeyboardInterrupt())
    assert "Actual consumption for 3 epoch(s):" in capsys.readouterr().out
    assert [epoch.partial for epoch in run.epochs] == [False, False, False, True]
    assert run.early_stop
    assert run.reason == "interrupted"


@pytest.mark.usefixtures("sensor")
def test_a_hundred_short_epochs_sum_to_the_whole() -> None:
    tracker = quiet(100)
    train(tracker, 100, epoch_s=0.001)
    run = tracker.run
    assert len(run.epochs) == 100
    assert all(epoch.total_j > 0 for epoch in run.epochs)
    assert run.energy_j is not None
    whole_j = run.energy_j.value
    parts_j = sum(epoch.total_j for epoch in run.epochs) + run.outside_j.get("cpu:0", 0.0)
    assert parts_j == pytest.approx(whole_j, rel=1e-9)
    assert whole_j == pytest.approx(100.0 * run.duration_s, rel=0.02)


@pytest.mark.usefixtures("sensor")
def test_the_default_measures_one_epoch_and_is_then_silent(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = CarbonTracker(epochs=5)
    train(tracker, 5, epoch_s=0.001)
    assert capsys.readouterr().out.count("Actual consumption") == 1
    assert not tracker.active
    assert not tracker.run.early_stop
    assert tracker.run.prediction is not None
    assert tracker.run.prediction.epochs == 5


@pytest.mark.usefixtures("sensor")
def test_pue_multiplies_consumption_and_not_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = CarbonTracker(epochs=1, pue=2.0, log_dir=tmp_path, decimal_precision=12)
    train(tracker, 1)
    run = tracker.run
    shown_kwh = float(capsys.readouterr().out.split("Energy:\t")[1].split()[0])
    assert shown_kwh == pytest.approx(2 * kwh(run.epochs[0].total_j), rel=1e-6)
    assert "PUE coefficient of 2.0" in standard_log(tmp_path)
    assert "for cpu: [100.00" in standard_log(tmp_path)


@pytest.mark.usefixtures("sensor")
def test_pause_and_resume_keep_one_run_and_tell_the_pause_apart() -> None:
    tracker = quiet(2)
    tracker.epoch_start()
    time.sleep(0.05)
    tracker.pause()
    tracker.pause()
    time.sleep(0.1)
    tracker.resume()
    tracker.resume()
    tracker.epoch_end()
    train(tracker, 1)
    run = tracker.run
    assert len(run.epochs) == 2
    assert run.epochs[0].paused_s >= 0.1
    assert run.paused_j["cpu:0"] == pytest.approx(100.0 * run.paused_s, rel=0.05)
    assert run.epochs[0].total_j == pytest.approx(100.0 * run.epochs[0].duration_s, rel=0.05)


@pytest.mark.usefixtures("sensor")
def test_flush_puts_everything_so_far_on_disk(tmp_path: Path) -> None:
    tracker = quiet(9, log_dir=tmp_path, update_interval=3600)
    train(tracker, 2)
    tracker.flush()
    assert "Epoch 2:" in standard_log(tmp_path)
    tracker.stop()


@pytest.mark.usefixtures("sensor")
def test_a_loop_over_epochs_is_marked_by_itself() -> None:
    tracker = quiet(4)
    assert list(tracker.epochs()) == [0, 1, 2, 3]
    assert len(tracker.run.complete_epochs) == 4
    assert tracker.run.closed


@pytest.mark.usefixtures("sensor")
def test_a_loop_may_say_how_many_epochs_there_are() -> None:
    tracker = quiet(None)
    assert len(list(tracker.epochs(3))) == 3
    assert tracker.run.epochs_declared == 3
    assert tracker.run.prediction is not None


@pytest.mark.usefixtures("sensor")
def test_leaving_the_loop_by_break_closes_the_run() -> None:
    tracker = quiet(10)
    for epoch in tracker.epochs():
        if epoch == 2:
            break
    gc.collect()
    assert tracker.run.closed
    assert len(tracker.run.complete_epochs) == 3
    assert tracker.run.early_stop


@pytest.mark.usefixtures("sensor")
def test_a_block_without_epochs_is_measured_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with CarbonTracker(None) as tracker:
        time.sleep(0.05)
    (epoch,) = tracker.run.epochs
    assert epoch.total_j == pytest.approx(100.0 * epoch.duration_s, rel=0.05)
    assert "Actual consumption:" in capsys.readouterr().out


@pytest.mark.usefixtures("sensor")
def test_an_exception_in_a_block_closes_the_run_and_goes_on_its_way() -> None:
    tracker = quiet(5)

    def train_and_fail() -> None:
        with tracker:
            train(tracker, 2)
            tracker.epoch_start()
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        train_and_fail()
    assert tracker.run.reason == "failed"
    assert [epoch.partial for epoch in tracker.run.epochs] == [False, False, True]


@pytest.mark.usefixtures("sensor")
def test_a_decorated_function_is_measured_at_each_call() -> None:
    seen = []

    @quiet(None)
    def step(x: int) -> int:
        seen.append(active())
        return x + 1

    assert (step(1), step(2)) == (2, 3)
    assert seen[0] is not seen[1]
    assert all(tracker is not None and tracker.run.closed for tracker in seen)


@pytest.mark.usefixtures("sensor")
def test_starting_another_run_closes_the_one_before() -> None:
    first, second = quiet(5), quiet(5)
    train(first, 2)
    second.epoch_start()
    assert first.run.closed
    assert first.run.reason == "another run began"
    assert active() is second
    samplers = [thread for thread in threading.enumerate() if thread.name == "ct_notebook-sampler"]
    assert len(samplers) == 1
    second.stop()
    assert active() is None
    newest = last_run()
    assert newest is not None
    assert newest.run_id == second.run.run_id


@pytest.mark.usefixtures("sensor")
def test_stopping_twice_ends_once(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = CarbonTracker(5, monitor_epochs=-1)
    train(tracker, 1)
    first, second = tracker.stop(), tracker.stop()
    assert first == second
    assert capsys.readouterr().out.count("Finished monitoring.") == 1
    tracker.epoch_start()
    tracker.epoch_end()
    tracker.pause()
    tracker.flush()
    assert tracker.run == first


def test_a_tracker_that_never_started_says_so() -> None:
    tracker = quiet()
    with pytest.raises(RuntimeError, match="was not started"):
        tracker.run  # noqa: B018 - looking at it is the test
    tracker.epoch_end()
    tracker.pause()
    tracker.flush()
    assert not tracker.active
    assert "not started" in repr(tracker)


def test_stopping_before_any_epoch_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert CarbonTracker(3).stop() is None
    assert capsys.readouterr().out.count("before any epoch began") == 1


@pytest.mark.usefixtures("sensor")
def test_a_dropped_tracker_leaves_a_complete_log(tmp_path: Path) -> None:
    tracker = quiet(9, log_dir=tmp_path)
    train(tracker, 2)
    (sampler,) = (thread for thread in threading.enumerate() if thread.name == "ct_notebook-sampler")
    del tracker
    gc.collect()
    sampler.join(30)
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")
    assert "Actual consumption for 2 epoch(s):" in output_log(tmp_path)
    assert "dropped without stop()" in standard_log(tmp_path)


@pytest.mark.usefixtures("sensor")
def test_a_forgotten_end_and_a_forgotten_start_are_mended() -> None:
    tracker = quiet(9)
    tracker.epoch_start()
    tracker.epoch_start()
    tracker.epoch_end()
    tracker.epoch_end()
    assert tracker.stop() is not None
    assert len(tracker.run.complete_epochs) == 2


@pytest.mark.usefixtures("sensor")
def test_marks_may_come_from_another_thread() -> None:
    tracker = quiet(3)
    worker = threading.Thread(target=train, args=(tracker, 3))
    worker.start()
    worker.join()
    assert len(tracker.run.complete_epochs) == 3
    assert tracker.run.closed


def _child(tracker: CarbonTracker, results: multiprocessing.SimpleQueue[object]) -> None:
    train(tracker, 2, epoch_s=0.0)
    tracker.stop()
    results.put((tracker.active, active(), len(threading.enumerate())))


@pytest.mark.usefixtures("sensor")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_worker_neither_samples_nor_reports(tmp_path: Path) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform does not fork, so there is nothing to test")
    context = multiprocessing.get_context("fork")
    tracker = quiet(3, log_dir=tmp_path)
    train(tracker, 1)
    results = context.SimpleQueue()
    worker = context.Process(target=_child, args=(tracker, results))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    assert results.get() == (False, None, 1)
    train(tracker, 2)
    assert len(tracker.run.complete_epochs) == 3
    assert standard_log(tmp_path).count("Monitoring thread ended.") == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_sensor_that_hangs_costs_training_nothing(sensor: SteadySensor) -> None:
    gate = Gate()
    tracker = quiet(3, update_interval=0.05)
    tracker.start()
    sensor.before_read = gate
    assert gate.reached.wait(30)
    train(tracker, 3)
    run = tracker.run
    assert run.closed
    assert len(run.complete_epochs) == 3
    covered_s = sum(epoch.covered_s.get("cpu:0", 0.0) for epoch in run.epochs)
    assert covered_s < sum(epoch.duration_s for epoch in run.epochs)
    gate.open.set()


def test_a_sensor_that_fails_in_mid_run_is_reported_and_the_run_goes_on(
    sensor: SteadySensor, tmp_path: Path
) -> None:
    def fail() -> None:
        msg = "GPU is lost"
        raise OSError(msg)

    tracker = quiet(4, log_dir=tmp_path)
    train(tracker, 2)
    sensor.before_read = fail
    train(tracker, 2)
    run = tracker.run
    assert len(run.complete_epochs) == 4
    assert run.missing == {"cpu:0": "OSError: GPU is lost"}
    assert "cpu:0" not in run.epochs[-1].energy_j
    assert any("could not be read: OSError: GPU is lost" in note for note in run.notes)
    (errors,) = tmp_path.glob("*_err.log")
    assert errors.read_text("utf-8").count("GPU is lost") == 1


@pytest.mark.parametrize(
    ("limits", "count"), [({"max_co2": "1g", "max_kwh": 1}, 1), ({"max_kwh": 1}, 1), ({"max_time": "1h"}, 0)]
)
def test_a_budget_of_what_nothing_measures_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limits: dict[str, Any], count: int
) -> None:
    monkeypatch.setattr("ct_notebook.recording.discover", lambda **_: Discovery((), ()))
    tracker = CarbonTracker(2, on_exceed="stop", **limits)
    train(tracker, 2)
    text = capsys.readouterr().out
    assert text.count("Budget: without figures no limit of CO2eq or energy can be kept") == count


def test_a_machine_without_sensors_gets_one_message_and_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nothing = Finding("NVIDIA", found=False, readable=False, why="no driver is loaded")
    monkeypatch.setattr("ct_notebook.recording.discover", lambda **_: Discovery((), (nothing,)))
    tracker = CarbonTracker(3, monitor_epochs=-1, components="gpu", log_dir=tmp_path)
    train(tracker, 3)
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "No component can be measured" in line]) == 1
    assert "no driver is loaded" in lines[0]
    assert len(tracker.run.complete_epochs) == 3
    assert tracker.run.energy_j is None
    assert tracker.run.estimate is not None
    assert tracker.run.estimate.energy_j is None
    assert "nothing measured" in repr(tracker.run)
    assert "consumption" not in output_log(tmp_path)


def test_a_locked_sensor_is_told_once_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = Finding(
        "RAPL of this test", found=True, readable=False, why="permission denied", remedy="sudo open"
    )
    monkeypatch.setattr("ct_notebook.recording.discover", lambda **_: Discovery((SteadySensor(),), (locked,)))
    for _ in range(2):
        train(CarbonTracker(1), 1)
    assert capsys.readouterr().out.count("permission denied. To measure it: sudo open") == 1


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize("ignore_errors", [False, True])
def test_a_log_folder_that_cannot_be_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, ignore_errors: bool
) -> None:
    (tmp_path / "file").write_text("not a folder")
    tracker = CarbonTracker(3, monitor_epochs=-1, log_dir=tmp_path / "file", ignore_errors=ignore_errors)
    train(tracker, 3)
    assert len(tracker.run.complete_epochs) == 3
    told = [line for line in capsys.readouterr().out.splitlines() if str(tmp_path / "file") in line]
    assert len(told) == (0 if ignore_errors else 1)
    assert sum(str(tmp_path / "file") in note for note in tracker.run.notes) == 1


def answering(go_on: bool) -> Callable[[Question, object], Answer]:  # noqa: FBT001 - a word of the test
    def ask(question: Question, _buttons: object) -> Answer:
        assert question.prompt
        time.sleep(0.1)
        return Answer(go_on, "answered")

    return ask


@pytest.mark.usefixtures("sensor")
def test_a_yes_goes_on_and_the_wait_belongs_to_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ct_notebook.ask.ask", answering(go_on=True))
    tracker = quiet(4, stop_and_confirm=True, epochs_before_pred=2)
    assert len(list(tracker.epochs())) == 4
    run = tracker.run
    assert run.paused_s >= 0.1
    assert sum(epoch.duration_s for epoch in run.epochs) + run.paused_s <= run.duration_s + run.paused_s
    assert max(epoch.duration_s for epoch in run.epochs) < run.paused_s


@pytest.mark.usefixtures("sensor")
def test_a_no_ends_the_loop_and_writes_everything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ct_notebook.ask.ask", answering(go_on=False))
    tracker = CarbonTracker(
        9, monitor_epochs=-1, epochs_before_pred=2, stop_and_confirm=True, log_dir=tmp_path
    )
    assert list(tracker.epochs()) == [0, 1]
    text = capsys.readouterr().out
    assert text.index("Predicted consumption for 9") < text.index("Quitting...")
    assert text.index("Quitting...") < text.index("Actual consumption for 2 epoch(s):")
    assert tracker.run.reason == "stopped by the user"
    assert tracker.run.early_stop
    assert "Continue training (y/n)?" in output_log(tmp_path)
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")


@pytest.mark.usefixtures("sensor")
def test_a_no_in_a_loop_by_hand_raises_from_the_next_epoch_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ct_notebook.ask.ask", answering(go_on=False))
    tracker = quiet(9, stop_and_confirm=True)
    tracker.epoch_start()
    tracker.epoch_end()
    assert tracker.should_stop
    with pytest.raises(TrainingStopped, match="should_stop"):
        tracker.epoch_start()
    assert len(tracker.run.epochs) == 1
    assert tracker.run.closed


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize("chosen", [True, False])
def test_a_stop_that_a_loop_by_hand_is_told_by_an_error_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, *, chosen: bool
) -> None:
    monkeypatch.setattr("ct_notebook.ask.ask", answering(go_on=not chosen))
    tracker = quiet(9, stop_and_confirm=True)

    def train() -> None:
        with tracker:
            tracker.epoch_start()
            tracker.epoch_end()
            tracker.epoch_start()
            raise TrainingStopped  # of another tracker

    with pytest.raises(TrainingStopped):
        train()
    assert tracker.run.reason == ("stopped by the user" if chosen else "failed")
    assert tracker.run.early_stop


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize("go_on", [True, False])
def test_a_budget_and_a_question_at_one_epoch_are_one_question(
    monkeypatch: pytest.MonkeyPatch, *, go_on: bool
) -> None:
    asked: list[str] = []

    def ask(question: Question, _buttons: object) -> Answer:
        asked.append(question.about)
        return Answer(go_on, "answered")

    monkeypatch.setattr("ct_notebook.ask.ask", ask)
    tracker = quiet(4, stop_and_confirm=True, max_time="0.001s", on_exceed="ask")
    for _ in tracker.epochs():
        time.sleep(0.002)
    assert len(tracker.run.epochs) == (4 if go_on else 1)
    (about,) = asked
    assert about.startswith("Budget: time:")


@pytest.mark.usefixtures("sensor")
def test_a_budget_that_stops_leaves_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ct_notebook.ask.ask", lambda *_: pytest.fail("it asked"))
    tracker = quiet(4, stop_and_confirm=True, max_time="0.001s", on_exceed="stop")
    for _ in tracker.epochs():
        time.sleep(0.002)
    assert len(tracker.run.epochs) == 1


@pytest.mark.usefixtures("sensor")
def test_a_budget_is_not_judged_so_often_that_it_would_cost_short_epochs_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[object] = []

    def settle(*what: object) -> bool:
        time.sleep(0.01)
        judged.append(what)
        return True

    monkeypatch.setattr("ct_notebook.recording.Recording.settle", settle)
    tracker = quiet(500, epochs_before_pred=0, max_time="1d", on_exceed="stop")
    assert len(list(tracker.epochs())) == 500
    assert 2 <= len(judged) < 250


@pytest.mark.usefixtures("sensor")
def test_a_block_without_epochs_is_told_what_it_exceeded(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet(3, verbose=1, max_time="0.05s", on_exceed="stop"):
        time.sleep(0.1)
    out = capsys.readouterr().out
    assert out.count("Budget: time:") == 1
    assert "used, 0.05 s allowed." in out


@pytest.mark.usefixtures("sensor")
def test_what_is_expected_now_holds_what_was_used_before_the_epochs_and_in_a_long_one() -> None:
    tracker = quiet(10, update_interval=0.05)
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    time.sleep(0.5)
    train(tracker, 1, 0.05)
    tracker.epoch_start()
    time.sleep(0.6)
    moment = recording.moment()
    tracker.epoch_end()
    tracker.stop()
    assert moment.estimate is not None
    # Half a second before, the first epoch, a long one, and eight that are expected to be like the first.
    assert moment.estimate.duration_s.value == pytest.approx(moment.elapsed_s + 8 * 0.05, abs=0.2)
    for used, band in (
        (moment.energy_j, moment.estimate.energy_j),
        (moment.emissions_g, moment.estimate.emissions_g),
    ):
        assert used is not None
        assert band is not None
        assert used.value <= band.low <= band.value <= band.high


@pytest.mark.usefixtures("sensor")
def test_an_interrupt_at_the_question_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Question, _buttons: object) -> Answer:
        raise KeyboardInterrupt

    monkeypatch.setattr("ct_notebook.ask.ask", interrupt)
    tracker = quiet(9, stop_and_confirm=True)
    with pytest.raises(KeyboardInterrupt), tracker:
        train(tracker, 9)
    assert len(tracker.run.complete_epochs) == 1
    assert tracker.run.reason == "interrupted"
    assert not tracker.paused


@pytest.mark.usefixtures("sensor")
def test_an_interrupt_at_the_prediction_ends_the_run_with_its_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("ct_notebook.recording.Recording.settle", interrupt)
    tracker = quiet(9, log_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt), tracker:
        train(tracker, 9)
    assert tracker.run.reason == "interrupted"
    assert "Actual consumption for 1 epoch(s):" in output_log(tmp_path)
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")


def test_what_cannot_be_meant_is_refused_before_anything_runs() -> None:
    with pytest.raises(SettingError, match=r"Denmark \(DK\)"):
        CarbonTracker(3, country="Denmrk")
    with pytest.raises(ValueError, match="monitor_epochs"):
        CarbonTracker(3, epochs_before_pred=2)
    assert active() is None


SCRIPT = """
import os, signal, time
from ct_notebook.tracker import CarbonTracker
tracker = CarbonTracker(5, monitor_epochs=-1, sim_cpu="A CPU", sim_cpu_tdp=100, log_dir={folder!r})
for epoch in range(5):
    tracker.epoch_start()
    time.sleep(0.05)
    tracker.epoch_end()
    {extra}
"""


def script(folder: Path, extra: str = "pass") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(folder=str(folder), extra=extra)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(tracker_module.__file__).parents[1])},
    )


def test_a_plain_script_prints_logs_and_ends(tmp_path: Path) -> None:
    done = script(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Actual consumption for 5 epoch(s):" in done.stdout
    assert "for cpu: [50.00" in standard_log(tmp_path)


def test_a_script_that_ends_without_stop_leaves_a_complete_log(tmp_path: Path) -> None:
    done = script(tmp_path, extra="if epoch == 2: break")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Actual consumption for 3 epoch(s):" in output_log(tmp_path)
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")


def test_a_killed_process_leaves_its_finished_epochs(tmp_path: Path) -> None:
    done = script(tmp_path, extra="epoch == 3 and (time.sleep(0.2), os.kill(os.getpid(), signal.SIGKILL))")
    assert done.returncode == -9
    assert "Epoch 4:" in standard_log(tmp_path)


@pytest.mark.usefixtures("sensor")
def test_the_result_becomes_a_data_frame() -> None:
    pytest.importorskip("pandas", reason="pandas is installed by every test session; run it through nox")
    tracker = quiet(3)
    train(tracker, 3)
    frame = tracker.run.to_dataframe()
    assert list(frame.index) == [1, 2, 3]
    assert frame["energy_j"].sum() == pytest.approx(sum(epoch.total_j for epoch in tracker.run.epochs))
    assert frame["cpu:0 power_w"].mean() == pytest.approx(100.0)


def test_flushing_asks_for_no_more_samples_than_it_needs(sensor: SteadySensor, tmp_path: Path) -> None:
    tracker = quiet(9, log_dir=tmp_path, update_interval=3600)
    train(tracker, 2)
    tracker.flush()
    before = sensor.reads
    for _ in range(5):
        tracker.flush()
    assert sensor.reads == before, "everything was settled already"
    tracker.stop()


@pytest.mark.usefixtures("sensor")
def test_energy_is_told_by_device_and_component_with_method_and_interval() -> None:
    tracker = quiet(2)
    train(tracker, 2)
    run = tracker.run
    assert set(run.energy_by_device_j) == set(run.methods) == {"cpu:0"}
    assert run.energy_by_component_j == {"cpu": pytest.approx(sum(run.energy_by_device_j.values()))}
    assert run.methods["cpu:0"].startswith("measured")
    assert run.emissions_g is not None
    assert run.emissions_g.low < run.emissions_g.value < run.emissions_g.high


@pytest.mark.usefixtures("sensor")
def test_a_folder_that_carbontrackers_parser_trips_over_is_noted(tmp_path: Path) -> None:
    tracker = quiet(1, log_dir=tmp_path / "carbontracker_logs")
    train(tracker, 1)
    assert any("carbontracker's own parser" in note for note in tracker.run.notes)


def test_every_public_name_of_the_class_explains_itself() -> None:
    for name, member in inspect.getmembers(CarbonTracker):
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            assert inspect.getdoc(member), name


# -- what a second reader found -------------------------------------------------------------------------


class Ticking(SteadySensor):
    """A counter that moves every 100 ms, as NVML's does."""

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        device = self.devices[0]
        ticks = int(time.monotonic() / 0.1)
        return (Reading(device.key, "gpu", "counter", counter_j=ticks * 0.1 * self.watts),), {}


@pytest.mark.parametrize("slow_s", [0.0, 0.25])
def test_the_prediction_waits_for_a_counter_to_tick_or_a_sensor_to_answer(
    monkeypatch: pytest.MonkeyPatch, slow_s: float
) -> None:
    sensor = Ticking("gpu:0", component="gpu") if not slow_s else SteadySensor()
    if slow_s:
        sensor.before_read = lambda: time.sleep(slow_s)
    monkeypatch.setattr("ct_notebook.recording.discover", lambda **_: Discovery((sensor,), ()))
    for _ in range(3):
        tracker = quiet(3)
        train(tracker, 3)
        assert tracker.run.prediction is not None
        assert tracker.run.prediction.energy_j is not None


def test_a_prediction_that_has_to_wait_is_made_later(
    sensor: SteadySensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ct_notebook.tracker.SETTLE_S", 0.01)
    tracker = quiet(4)
    tracker.start()
    gate = Gate()
    sensor.before_read = gate
    train(tracker, 1)
    assert tracker.run.prediction is None
    gate.open.set()
    monkeypatch.setattr("ct_notebook.tracker.SETTLE_S", 30)
    train(tracker, 3)
    assert tracker.run.prediction is not None


def test_a_lost_device_is_told_where_the_user_looks(
    sensor: SteadySensor, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        msg = "GPU is lost"
        raise OSError(msg)

    tracker = CarbonTracker(6, monitor_epochs=-1, update_interval=0.05)
    train(tracker, 2)
    sensor.before_read = fail
    train(tracker, 4, epoch_s=0.1)
    text = capsys.readouterr().out
    assert text.count("could not be read: OSError: GPU is lost") == 1
    assert "% of the time only" in text
    # What was lost is no fault of the prediction.
    assert "was off by: energy cannot be judged, since some of it was not read; time " in text


def test_a_device_that_was_never_read_has_no_figure(
    sensor: SteadySensor, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError

    sensor.before_read = fail
    tracker = CarbonTracker(3, monitor_epochs=-1)
    train(tracker, 3)
    text = capsys.readouterr().out
    assert "kWh" not in text
    assert "so there is no figure" in text
    assert tracker.run.energy_j is None


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_an_error_in_a_loop_over_epochs_leaves_three_complete_and_one_partial(error: BaseException) -> None:
    tracker = quiet(10)

    def train_and_fail() -> None:
        with tracker:
            for epoch in tracker.epochs():
                time.sleep(0.01)
                if epoch == 3:
                    raise error

    with pytest.raises(type(error)):
        train_and_fail()
    assert [epoch.partial for epoch in tracker.run.epochs] == [False, False, False, True]
    assert tracker.run.early_stop


@pytest.mark.usefixtures("sensor")
def test_what_was_measured_as_a_whole_is_not_multiplied_and_not_called_interrupted(tmp_path: Path) -> None:
    with quiet(10, log_dir=tmp_path) as tracker:
        time.sleep(0.02)
    assert tracker.run.estimate is None
    assert not tracker.run.early_stop
    assert "interrupted" not in standard_log(tmp_path)


@pytest.mark.usefixtures("sensor")
def test_a_decorated_coroutine_is_measured_while_it_runs() -> None:
    @quiet(None)
    async def step() -> int:
        await asyncio.sleep(0.05)
        return 7

    assert asyncio.run(step()) == 7
    newest = last_run()
    assert newest is not None
    assert newest.duration_s >= 0.05


def test_a_generator_function_is_refused() -> None:
    def steps() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="steps is a generator"):
        quiet(None)(steps)


@pytest.mark.usefixtures("sensor")
def test_marks_by_hand_take_over_an_epoch_that_a_watched_loop_opened() -> None:
    tracker = quiet(4)
    tracker.begin_epoch()
    tracker.epoch_start()
    tracker.epoch_end()
    train(tracker, 2)
    tracker.stop()
    assert len(tracker.run.complete_epochs) == 3


@pytest.mark.usefixtures("sensor")
def test_an_output_that_cannot_be_written_to_does_not_stop_the_training() -> None:
    def broken(_: str) -> None:
        raise BrokenPipeError

    tracker = CarbonTracker.for_settings(resolve(2, {"country": "DK"}, environ={}), show=broken, whole=False)
    train(tracker, 2)
    assert any("could not be shown" in note for note in tracker.run.notes)


@pytest.mark.usefixtures("sensor")
def test_an_interrupt_while_a_run_is_closed_leaves_the_rest_to_the_next_stop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tracker = CarbonTracker(9, monitor_epochs=-1, verbose=0, log_dir=tmp_path)
    train(tracker, 2)

    def interrupted(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("ct_notebook.recording.Recording.say_actual", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tracker.stop()
    tracker.stop()
    assert "Actual consumption for 2 epoch(s):" in output_log(tmp_path)
    assert standard_log(tmp_path).count("Monitoring thread ended.") == 1


@pytest.mark.usefixtures("sensor")
def test_a_tracker_in_a_cycle_is_closed_wherever_it_is_collected(tmp_path: Path) -> None:
    holder: list[object] = []
    tracker = quiet(9, log_dir=tmp_path, update_interval=0.05)
    train(tracker, 1)
    holder += [holder, tracker]
    (sampler,) = (thread for thread in threading.enumerate() if thread.name == "ct_notebook-sampler")
    # The sampling thread itself collects: nothing in closing may wait for a lock that it holds.
    tracker._recording._sampler._sensors[0].before_read = gc.collect  # type: ignore[union-attr]
    del tracker, holder
    sampler.join(30)
    assert not sampler.is_alive()
    assert standard_log(tmp_path).rstrip().endswith("Monitoring thread ended.")


def test_what_is_given_wins_over_the_environment_even_if_it_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CT_NOTEBOOK_VERBOSE", "2")
    monkeypatch.setenv("CT_NOTEBOOK_MONITOR_EPOCHS", "-1")
    assert CarbonTracker(3, 1, 1, verbose=1)._settings.verbose == 1
    assert CarbonTracker(3, 1, 1)._settings.monitor_epochs == 1
    assert CarbonTracker(3)._settings.verbose == 2
    with pytest.raises(SettingError, match="monitor_epochs=1 is less"):
        CarbonTracker(3, epochs_before_pred=-1, monitor_epochs=1)


def test_the_number_of_epochs_is_required() -> None:
    with pytest.raises(TypeError, match="epochs"):
        CarbonTracker()  # type: ignore[call-arg]


def test_a_callback_that_tells_of_steps_foretells_the_run_before_its_first_epoch_ends(
    sensor: SteadySensor,
) -> None:
    tracker = CarbonTracker(
        10, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    tracker.epoch_start()
    found = None
    for done in range(1, 61):
        time.sleep(0.01)
        tracker.step(done, 60)
        found = recording.moment().estimate or found
    assert found is not None
    assert found.made_after == 0
    assert found.energy_j is not None
    # Whatever a step takes on this machine: ten epochs of 60 steps at the power of the sensor.
    assert found.energy_j.value == pytest.approx(found.duration_s.value * sensor.watts, rel=0.1)
    tracker.epoch_end()
    tracker.stop()
    assert tracker.run.estimate is not None
    assert tracker.run.estimate.made_after == 1


@pytest.mark.usefixtures("sensor")
def test_a_text_is_written_with_the_end_of_its_last_line_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Stand-ins for stdout print whole lines and keep the rest; rich's, in a kernel, recurses on such a rest.
    written: list[str] = []
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stdout.write", written.append)
    tracker = CarbonTracker(1, update_interval=0.05, carbon_intensity=100, pue=1.0)
    for _ in tracker.epochs():
        time.sleep(0.1)
    assert any("Actual consumption" in text for text in written)
    assert all(text == "" or text.endswith("\n") for text in written)


def test_a_pause_among_the_first_steps_is_no_part_of_what_is_foretold(sensor: SteadySensor) -> None:
    tracker = CarbonTracker(
        10, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    tracker.epoch_start()
    found = None
    for done in range(1, 61):
        time.sleep(0.01)
        if done == 3:
            tracker.pause()
            time.sleep(1.0)
            tracker.resume()
        tracker.step(done, 60)
        found = recording.moment().estimate or found
    tracker.epoch_end()
    tracker.flush()
    estimate = tracker.run.estimate
    tracker.stop()
    assert estimate is not None
    assert estimate.energy_j is not None
    assert found is not None
    assert found.energy_j is not None
    # Ten epochs of the first one's time of training: it is no warm-up, and the pause no step.
    trained_s = tracker.run.epochs[0].duration_s
    assert tracker.run.epochs[0].paused_s > 0.9
    for each in (estimate, found):
        assert each.duration_s.value == pytest.approx(10 * trained_s, rel=0.3)
    assert found.energy_j.value == pytest.approx(found.duration_s.value * sensor.watts, rel=0.2)


def test_after_a_first_epoch_that_was_cut_the_next_one_foretells_the_run(sensor: SteadySensor) -> None:
    tracker = CarbonTracker(
        10, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    tracker.epoch_start()
    for done in range(1, 40):
        time.sleep(0.01)
        tracker.step(done, 60)
    tracker.cut_epoch()
    time.sleep(0.5)
    tracker.epoch_start()
    assert recording.moment().estimate is None
    found = None
    for done in range(1, 61):
        time.sleep(0.01)
        tracker.step(done, 60)
        found = recording.moment().estimate or found
    tracker.epoch_end()
    tracker.stop()
    cut, whole = tracker.run.epochs
    assert (cut.partial, whole.partial) == (True, False)
    assert found is not None
    assert found.energy_j is not None
    outside_s = tracker.run.duration_s - whole.duration_s
    assert found.duration_s.value == pytest.approx(outside_s + 10 * whole.duration_s, rel=0.2)
    assert found.energy_j.value == pytest.approx(found.duration_s.value * sensor.watts, rel=0.2)


def test_what_is_expected_follows_a_number_of_epochs_that_is_told_later(sensor: SteadySensor) -> None:
    tracker = CarbonTracker(
        None, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    with tracker:
        recording = tracker.recording
        assert recording is not None
        for total in (2, 20):
            tracker.declare(total)
            if total == 20:
                estimate = recording.moment().estimate
                assert estimate is not None
                assert estimate.epochs == 20
                assert estimate.duration_s.value > 1.5
            for _ in range(2):
                tracker.epoch_start()
                time.sleep(0.1)
                tracker.epoch_end()
            tracker.flush()
    assert sensor.closed == 1


@pytest.mark.parametrize("on_exceed", ["stop", "warn"])
@pytest.mark.usefixtures("sensor")
def test_a_budget_holds_for_all_epochs_even_if_only_the_first_is_measured(
    on_exceed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = CarbonTracker(
        20, update_interval=0.05, carbon_intensity=100, pue=1.0, max_time="1s", on_exceed=on_exceed
    )
    tracker.epoch_start()
    time.sleep(0.1)
    tracker.epoch_end()
    told = [line for line in capsys.readouterr().out.splitlines() if "Budget:" in line]
    assert len(told) == 1
    assert "expected for the whole run, 1 s allowed" in told[0]
    assert not tracker.active
    assert tracker.should_stop is (on_exceed == "stop")


@pytest.mark.usefixtures("sensor")
def test_a_validation_after_the_steps_of_the_first_epoch_is_expected_of_all() -> None:
    tracker = CarbonTracker(
        10, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    tracker.epoch_start()
    for source, steps in (("training", 20), ("validation", 40)):
        for done in range(1, steps + 1):
            time.sleep(0.02)
            tracker.step(done, steps, source)
    found = recording.moment().estimate
    tracker.epoch_end()
    tracker.stop()
    assert found is not None
    assert found.made_after == 0
    assert found.duration_s.value == pytest.approx(10 * tracker.run.epochs[0].duration_s, rel=0.2)


def test_grams_of_a_device_that_was_lost_are_told_with_their_intensity(
    sensor: SteadySensor, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = CarbonTracker(2, 0, monitor_epochs=-1, update_interval=0.05, carbon_intensity=123, pue=1.0)

    def fall() -> None:
        msg = "fell off the bus"
        raise OSError(msg)

    for epoch in tracker.epochs():
        time.sleep(0.2)
        if epoch == 1:
            sensor.before_read = fall
    out = capsys.readouterr().out
    assert "fell off the bus" in out
    assert "CO2eq:" in out
    assert "CO2eq is told at 123 gCO2eq/kWh" in out


@pytest.mark.usefixtures("sensor")
def test_a_bar_counts_for_the_epoch_if_it_began_or_was_reset_in_it() -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    tracker = CarbonTracker(
        10, monitor_epochs=-1, update_interval=0.05, carbon_intensity=100, pue=1.0, verbose=0
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    with tqdm(total=60, file=io.StringIO()) as epoch, tqdm(total=600, file=io.StringIO()) as whole:
        tracker.epoch_start()
        epoch.reset()
        for _ in range(60):
            time.sleep(0.01)
            epoch.update()
            whole.update()
        found = recording.moment().estimate
    tracker.epoch_end()
    tracker.stop()
    assert found is not None
    assert "of 60 steps of the first epoch" in found.method
