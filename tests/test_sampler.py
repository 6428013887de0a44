import threading
import time

import pytest

from ct_notebook import sampler as sampler_module
from ct_notebook.records import Sample
from ct_notebook.sampler import THREAD_NAME, Sampler
from support.sensors import Gate, SteadySensor


class Sink:
    """Keeps samples, and lets a test wait for the n-th."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._news = threading.Condition()

    def __call__(self, sample: Sample) -> None:
        with self._news:
            self.samples.append(sample)
            self._news.notify_all()

    def wait_for(self, count: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.samples) >= count, 30)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_the_first_sample_is_there_after_start_and_a_last_one_after_finish() -> None:
    sensor, sink = SteadySensor(), Sink()
    sampler = Sampler([sensor], 3600.0, sink)
    assert sampler.start(30)
    assert len(sink.samples) == 1
    before_s = time.monotonic()
    assert sampler.finish(30)
    assert len(sink.samples) == 2
    assert sink.samples[-1].at_s >= before_s
    assert sensor.closed == 1
    assert threads() == []


def test_waking_brings_a_sample_before_its_time() -> None:
    sink = Sink()
    sampler = Sampler([SteadySensor()], 3600.0, sink)
    sampler.start(30)
    sampler.wake()
    sink.wait_for(2)
    sampler.finish(30)


def test_many_wakes_do_not_become_many_samples() -> None:
    sink = Sink()
    sampler = Sampler([SteadySensor()], 3600.0, sink)
    sampler.start(30)
    began_s = time.monotonic()
    for _ in range(20_000):
        sampler.wake()
    passed_s = time.monotonic() - began_s
    sampler.finish(30)
    assert len(sink.samples) <= 3 + passed_s / sampler_module.APART_S


def test_a_sensor_that_raises_is_reported_missing_and_the_others_are_read() -> None:
    def fail() -> None:
        msg = "the driver is gone"
        raise OSError(msg)

    bad, good, sink = SteadySensor("gpu:bad"), SteadySensor("cpu:good"), Sink()
    bad.before_read = fail
    sampler = Sampler([bad, good], 3600.0, sink)
    sampler.start(30)
    sampler.finish(30)
    assert [reading.device for reading in sink.samples[0].readings] == ["cpu:good"]
    assert sink.samples[0].missing == {"gpu:bad": "OSError: the driver is gone"}


def test_a_sensor_that_hangs_holds_up_neither_start_nor_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "HANGING_S", 0.0)
    gate, sink, hanging = Gate(), Sink(), SteadySensor("gpu:hangs")
    hanging.before_read = gate
    sampler = Sampler([hanging], 0.05, sink)
    assert not sampler.start(0.01)
    assert not sampler.finish(0.01)
    gate.open.set()
    assert sampler.finish(30)
    assert hanging.reads == 1, "a sensor that hung is not asked again"
    assert "is not asked again" in sink.samples[-1].missing["gpu:hangs"]


def test_what_a_slow_sensor_delays_has_a_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "SLOW_S", 0.0)
    first, slow, sink = SteadySensor("cpu:first"), SteadySensor("gpu:slow"), Sink()
    slow.before_read = lambda: time.sleep(0.02)
    sampler = Sampler([first, slow], 3600.0, sink)
    sampler.start(30)
    sampler.finish(30)
    assert [reading.device for reading in sink.samples[0].readings] == ["cpu:first"]
    assert [reading.device for reading in sink.samples[1].readings] == ["gpu:slow"]
    assert sink.samples[1].at_s > sink.samples[0].at_s


def test_a_fault_of_the_sink_is_kept_and_sampling_goes_on() -> None:
    def broken(sample: Sample) -> None:
        msg = f"a mistake at {sample.at_s}"
        raise ValueError(msg)

    sensor = SteadySensor()
    sampler = Sampler([sensor], 3600.0, broken)
    sampler.start(30)
    assert sampler.finish(30)
    assert sensor.reads == 2
    assert isinstance(sampler.fault, ValueError)


def test_waking_does_not_push_the_next_regular_sample_away() -> None:
    sink, interval_s, wakes = Sink(), 0.05, 100
    sampler = Sampler([SteadySensor()], interval_s, sink)
    sampler.start(30)
    for _ in range(wakes):
        before = len(sink.samples)
        sampler.wake()
        sink.wait_for(before + 1)
    before = len(sink.samples)
    sink.wait_for(before + 3)
    sampler.finish(30)
    first, second = sink.samples[before + 1 : before + 3]
    assert second.at_s - first.at_s < wakes * interval_s / 2
