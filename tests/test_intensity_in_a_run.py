"""A carbon intensity that changes while a run goes on: from a source, through a feed, into every gram."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ct_notebook.errors import SourceError
from ct_notebook.intensity.base import Answer, Outlook
from ct_notebook.intensity.live import Feed, _process
from ct_notebook.log.reader import read_run
from ct_notebook.records import Intensity, Run, mean_intensity
from ct_notebook.tracker import CarbonTracker

G_PER_J = 1 / 3.6e6


def figure(g_per_kwh: float) -> Intensity:
    return Intensity(g_per_kwh, "XX", "Somewhere", "a test", f"at {g_per_kwh:g}", "direct", low=0.9, high=1.1)


class Scripted:
    """A source that says what a test has it say."""

    name = "a test"

    def __init__(self, say: Callable[[], Outlook]) -> None:
        self.say = say
        self.asked = 0

    def outlook(self, _get: object, _now_unix_s: float) -> Outlook:
        self.asked += 1
        return self.say()


def no_get(url: str, *, params: Mapping[str, str] = {}, headers: Mapping[str, str] = {}) -> Answer:
    raise AssertionError(url, params, headers)


@pytest.fixture(autouse=True)
def no_reading_of_another_test() -> None:
    _process.forget()


def track(
    source: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    epochs: int = 6,
    *,
    log_dir: Path | None = None,
    **options: object,
) -> tuple[CarbonTracker, list[str]]:
    said: list[str] = []
    monkeypatch.setattr("ct_notebook.tracker._feed", lambda source: Feed(source, no_get, period_s=0.02))
    tracker = CarbonTracker(
        epochs,
        monitor_epochs=-1,
        update_interval=0.05,
        sim_cpu="X",
        sim_cpu_tdp=100,
        pue=1.0,
        country="DK",
        log_dir=log_dir,
        **options,  # type: ignore[arg-type]
    )
    tracker._show = said.append
    tracker._source = source
    return tracker, said


def until(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.005)


def run_of_two_halves(monkeypatch: pytest.MonkeyPatch, log_dir: Path | None = None) -> Run:
    """50 g/kWh in the first three epochs, 300 in the others."""
    now = [figure(50.0)]
    tracker, _ = track(Scripted(lambda: Outlook(now[0])), monkeypatch, log_dir=log_dir)
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    until(lambda: recording.run().intensity.g_per_kwh == 50.0)
    for epoch in range(6):
        if epoch == 3:
            now[0] = figure(300.0)
            until(lambda: len(recording.run().intensities) == 2)
        tracker.epoch_start()
        time.sleep(0.1)
        tracker.epoch_end()
    tracker.stop()
    return tracker.run


def test_each_joule_is_charged_at_the_intensity_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of_two_halves(monkeypatch)
    assert [each.g_per_kwh for each in run.intensities] == [50.0, 300.0]
    early, late = run.epochs[:3], run.epochs[3:]
    for epochs, g_per_kwh in ((early, 50.0), (late, 300.0)):
        for epoch in epochs:
            assert run.epoch_emissions_g(epoch) == pytest.approx(epoch.total_j * g_per_kwh * G_PER_J)
    assert run.energy_j is not None
    assert run.emissions_g is not None
    in_epochs_g = sum(run.epoch_emissions_g(epoch) or 0.0 for epoch in run.epochs)
    between_j = run.energy_j.value - sum(epoch.total_j for epoch in run.epochs)
    assert in_epochs_g + 50 * between_j * G_PER_J <= run.emissions_g.value * (1 + 1e-9)
    assert run.emissions_g.value <= in_epochs_g + 300 * between_j * G_PER_J + 1e-12
    assert 50 < run.intensity.g_per_kwh < 300
    assert run.emissions_g.low == pytest.approx(0.9 * run.energy_j.low * run.intensity.g_per_kwh * G_PER_J)


def test_a_mean_of_a_lifecycle_and_a_direct_figure_names_the_kind_of_each() -> None:
    table = Intensity(100.0, "DK", "Denmark", "a table", "2025", "lifecycle")
    mean = mean_intensity([table, figure(300.0)], {0: 1.0, 1: 1.0})
    assert (mean.g_per_kwh, mean.kind) == (200.0, "")
    assert mean.source == "a table (lifecycle); a test (direct)"
    assert mean_intensity([figure(50.0), figure(300.0)], {0: 1.0, 1: 1.0}).source == "a test"


def test_the_curve_of_emissions_ends_at_what_the_run_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of_two_halves(monkeypatch)
    assert run.course is not None
    assert run.emissions_g is not None
    grams = [each for each in run.course.emissions_g if each is not None]
    assert grams == sorted(grams)
    assert grams[-1] == pytest.approx(run.emissions_g.value, rel=1e-6)


def test_a_log_holds_the_intensities_and_gives_the_same_grams(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = run_of_two_halves(monkeypatch, tmp_path)
    text = Path(run.log_paths[0]).read_text("utf-8")
    assert "detected location Somewhere: [50.00, 300.00]" in text
    again, _ = read_run(run.log_paths[0])
    assert again.intensities == run.intensities
    assert [again.epoch_emissions_g(epoch) for epoch in again.epochs] == pytest.approx(
        [run.epoch_emissions_g(epoch) for epoch in run.epochs]
    )
    assert again.emissions_g is not None
    assert run.emissions_g is not None
    assert again.emissions_g.value == pytest.approx(run.emissions_g.value)


def test_the_first_live_figure_holds_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def late() -> Outlook:
        time.sleep(0.2)
        return Outlook(figure(77.0))

    source = Scripted(late)
    tracker, _ = track(source, monkeypatch, 2)
    for _ in tracker.epochs():
        time.sleep(0.3)
    run = tracker.run
    assert run.intensities == ()
    assert run.intensity.g_per_kwh == 77.0
    assert run.course is not None
    assert run.emissions_g is not None
    assert run.course.emissions_g[-1] == pytest.approx(run.emissions_g.value, rel=1e-6)


def test_what_was_expected_before_the_first_live_figure_is_told_at_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_answer = threading.Event()

    def late() -> Outlook:
        assert may_answer.wait(30)
        return Outlook(figure(77.0))

    tracker, _ = track(Scripted(late), monkeypatch, 10)
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    tracker.epoch_start()
    time.sleep(0.2)
    tracker.epoch_end()
    until(lambda: bool(recording.moves_after(0)))
    may_answer.set()
    until(lambda: recording.run().intensity.g_per_kwh == 77.0)
    moment = recording.moment()
    tracker.stop()
    for estimate in (*tracker.run.moves, moment.estimate):
        assert estimate is not None
        assert estimate.energy_j is not None
        assert estimate.emissions_g is not None
        assert estimate.emissions_g.value == pytest.approx(estimate.energy_j.value * 77.0 * G_PER_J)


def test_what_is_expected_follows_the_intensity_within_a_long_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [figure(50.0)]
    tracker, _ = track(Scripted(lambda: Outlook(now[0])), monkeypatch, 10)
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    until(lambda: recording.run().intensity.g_per_kwh == 50.0)
    tracker.epoch_start()
    time.sleep(0.3)
    tracker.epoch_end()
    tracker.epoch_start()
    until(lambda: recording.moment().epochs_done == 1)
    now[0] = figure(500.0)
    until(lambda: len(recording.run().intensities) == 2)
    estimate = recording.moment().estimate
    tracker.stop()
    assert estimate is not None
    assert estimate.energy_j is not None
    assert estimate.emissions_g is not None
    # One epoch of ten at 50, nine at 500.
    assert estimate.emissions_g.value == pytest.approx(estimate.energy_j.value * 455 * G_PER_J, rel=0.1)


def test_the_rest_of_the_run_is_predicted_at_the_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = ((time.time() - 60, 50.0), (time.time() + 86400, 50.0))
    dear = ((time.time() - 60, 500.0), (time.time() + 86400, 500.0))
    grams = {}
    for name, ahead in (("same", slots), ("dearer", dear)):
        _process.forget()
        tracker, _ = track(Scripted(lambda ahead=ahead: Outlook(figure(50.0), ahead)), monkeypatch, 100)  # type: ignore[misc]
        tracker.start()
        recording = tracker.recording
        assert recording is not None
        until(lambda recording=recording: recording.run().intensity.g_per_kwh == 50.0)  # type: ignore[misc]
        for _ in range(2):
            tracker.epoch_start()
            time.sleep(0.1)
            tracker.epoch_end()
        tracker.stop()
        estimate = tracker.run.estimate
        assert estimate is not None
        assert estimate.energy_j is not None
        assert estimate.emissions_g is not None
        grams[name] = estimate.emissions_g.value / (estimate.energy_j.value * G_PER_J)
    assert grams["same"] == pytest.approx(50.0)
    assert grams["dearer"] == pytest.approx(500 - 450 * 2 / 100, rel=0.02)


def test_a_source_that_fails_leaves_one_line_and_the_figure_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> Outlook:
        msg = "a test: no answer; it is asked again later."
        raise SourceError(msg)

    source = Scripted(fail)
    tracker, said = track(source, monkeypatch, 3)
    for _ in tracker.epochs():
        time.sleep(0.15)
    run = tracker.run
    assert source.asked > 1
    assert sum("no answer" in text for text in said) == 1
    assert sum("no answer" in note for note in run.notes) == 1
    assert run.intensity.place == "Denmark"
    assert run.intensity.source.startswith("Ember")


def test_offline_asks_nobody() -> None:
    tracker = CarbonTracker(1, country="GB", api_keys={"electricitymaps": "secret"}, offline=True)
    assert tracker._source is None
    assert CarbonTracker(1, country="GB", offline=False)._source is not None
    assert CarbonTracker(1, country="GB", carbon_intensity=10.0, offline=False)._source is None
    assert CarbonTracker(1, country="PL", offline=False)._source is None


@pytest.mark.parametrize(
    ("keys", "offline", "lines"),
    [
        ({"electricitymap": "s3cret"}, False, 1),
        ({"s3cret": "electricitymaps"}, False, 1),
        ({"other": "x", "electricitymaps": "s3cret"}, False, 0),
        ({"electricitymap": "s3cret"}, True, 0),
    ],
)
def test_a_key_of_no_known_source_is_told_once_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    keys: dict[str, str],
    offline: bool,  # noqa: FBT001 - a table
    lines: int,
) -> None:
    monkeypatch.setattr("ct_notebook.tracker._feed", lambda source: Feed(source, no_get))
    tracker = CarbonTracker(1, country="DE", api_keys=keys, offline=offline, sim_cpu="X", sim_cpu_tdp=10)
    for _ in tracker.epochs():
        pass
    told = capsys.readouterr()
    assert told.out.count("api_keys names no source that takes a key") == lines
    assert "s3cret" not in told.out + told.err + repr(tracker.run)


def test_a_key_is_in_no_repr_and_no_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = "secretkey0123456789"
    tracker = CarbonTracker(
        2,
        monitor_epochs=-1,
        country="DK",
        zone="DK-DK1",
        api_keys={"electricitymaps": key},
        offline=False,
        sim_cpu="X",
        sim_cpu_tdp=10,
        log_dir=tmp_path,
        verbose=0,
    )
    monkeypatch.setattr("ct_notebook.tracker._feed", lambda source: Feed(source, no_get, period_s=0.02))
    assert key not in repr(tracker._source) + repr(tracker) + repr(tracker._settings)
    for _ in tracker.epochs():
        time.sleep(0.05)
    assert key not in repr(tracker.run)
    assert all(key not in path.read_text("utf-8") for path in tmp_path.iterdir())


def test_a_better_time_is_named_at_the_end_where_a_forecast_shows_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = time.time()
    ahead = tuple((now_s - 60 + 1800 * slot, 300.0 if slot < 4 else 100.0) for slot in range(96))
    tracker, said = track(Scripted(lambda: Outlook(figure(300.0), ahead)), monkeypatch, 2)
    for _ in tracker.epochs():
        time.sleep(0.2)
    (told,) = [text for text in said if "For the next such run" in text]
    assert "(67%) less" in told
    assert told.endswith("(%carbontrack when)")
