from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ct_notebook.log import format as grammar
from ct_notebook.log.reader import read_run, read_runs
from ct_notebook.log.writer import QUEUE_LIMIT, THREAD_NAME, LogWriter
from support.carbontracker_patterns import OUTPUT, STANDARD
from support.log_runs import (
    HOSTILE_NAMES,
    MEMORY,
    STARTED,
    T4,
    T4_B,
    XEON,
    Clock,
    actual_text,
    epoch,
    full_run,
    output_text,
    run,
    standard_text,
    write,
)

ROOT = Path(__file__).parents[2]


def words(text: str) -> list[str]:
    """Lines without their times, and without the content of those that are ours."""
    return [line.partition(" - ")[2].partition(" {")[0] for line in text.splitlines()]


def log_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def python(code: str, *arguments: object, wait: bool = True) -> subprocess.Popen[str]:
    """Run code in a new process that finds the package and the test support."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if wait:
        assert process.wait() == 0
    return process


def test_the_lines_of_a_run_stand_in_carbontrackers_order(tmp_path: Path) -> None:
    made = run(
        [epoch(1, {"gpu:a": 100.0, "ram": 8.0}), epoch(2, {"gpu:a": 120.0, "ram": 8.0})], [MEMORY, T4], 2
    )
    writer = write(tmp_path, made)
    assert words(standard_text(writer)) == [
        "ct_notebook version 0.1.0 (carbontracker log format)",
        grammar.pue_text(made.pue),
        grammar.components_text([T4, MEMORY]),
        "ct_notebook: run",
        "Monitoring thread started.",
        "Epoch 1:",
        "Duration: 0:00:02.00",
        "Average power usage (W) for gpu: [50.000]",
        "Average power usage (W) for ram: [4.000]",
        "ct_notebook: epoch",
        "Epoch 2:",
        "Duration: 0:00:02.00",
        "Average power usage (W) for gpu: [60.000]",
        "Average power usage (W) for ram: [4.000]",
        "ct_notebook: epoch",
        "Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location Denmark: [143.30]",
        "Average carbon intensity during training was 143.30 gCO2eq/kWh at detected location: Denmark.",
        "ct_notebook: end",
        "Monitoring thread ended.",
    ]
    assert words(output_text(writer))[0].startswith("CarbonTracker: The following components were found: GPU")
    assert OUTPUT["actual"].search(output_text(writer))
    assert output_text(writer).endswith(" - CarbonTracker: Finished monitoring.\n")


def test_the_power_of_a_component_is_the_sum_over_its_devices(tmp_path: Path) -> None:
    made = run([epoch(1, {"gpu:a": 200.0, "gpu:b": 600.0})], [T4, T4_B])
    assert "for gpu: [400.000]" in standard_text(write(tmp_path, made))


def test_an_early_stop_is_said_before_the_carbon_intensity(tmp_path: Path) -> None:
    text = standard_text(write(tmp_path, run([epoch(1, {"gpu:a": 1.0})], declared=10, early_stop=True)))
    at = text.index("Training was interrupted before all 10 epochs were monitored.")
    assert at < text.index("Carbon intensities")


def test_a_component_that_was_not_read_repeats_its_last_power_and_says_so(tmp_path: Path) -> None:
    parts = [{"gpu:a": 100.0}, {"gpu:a": 100.0, "cpu:package-0": 60.0}, {"cpu:package-0": 60.0}]
    made = run([epoch(place, energy_j) for place, energy_j in enumerate(parts, 1)], [T4, XEON], 3)
    text = standard_text(write(tmp_path, made))
    rows = STANDARD["power 2.x"].findall(text)
    assert rows == [
        ("gpu", "[50.000]"),
        ("cpu", "[0.000]"),
        ("gpu", "[50.000]"),
        ("cpu", "[30.000]"),
        ("gpu", "[50.000]"),
        ("cpu", "[30.000]"),
    ]
    assert 'ct_notebook: not_measured {"epoch": 1, "component": "cpu"}' in text
    assert 'ct_notebook: not_measured {"epoch": 3, "component": "gpu"}' in text


@pytest.mark.parametrize("power_w", [1e-9, 6.1e-05, 1e9, 123456.789])
def test_a_power_is_written_without_an_exponent(tmp_path: Path, power_w: float) -> None:
    text = standard_text(write(tmp_path, run([epoch(1, {"gpu:a": power_w * 2.0})])))
    ((_, written),) = STANDARD["power 2.x"].findall(text)
    assert float(written.strip("[]")) == pytest.approx(power_w, abs=0.0005)


def test_a_run_without_devices_and_epochs_is_written_whole(tmp_path: Path) -> None:
    writer = write(tmp_path, run([], [], None))
    assert words(standard_text(writer))[-1] == "Monitoring thread ended."
    assert read_run(*writer.paths)[0].epochs == ()


def test_hostile_names_reach_the_disk_and_come_back(tmp_path: Path) -> None:
    devices = [replace(T4, key=f"gpu:{place}", name=name) for place, name in enumerate(HOSTILE_NAMES)]
    made = run([epoch(1, {device.key: 2.0 for device in devices})], devices)
    writer = write(tmp_path, made)
    text = standard_text(writer)
    assert STANDARD["duration"].findall(text) == [("0", "00", "02.00")]
    assert STANDARD["power 2.x"].findall(text) == [("gpu", f"[{len(devices)}.000]")]
    assert not STANDARD["early stop"].search(text)
    assert len(OUTPUT["any"].findall(output_text(writer))) == 2
    read, problems = read_run(*writer.paths)
    assert [device.name for device in read.devices] == list(HOSTILE_NAMES)
    assert problems == ()


def test_what_was_handed_over_is_on_disk_when_the_process_is_killed(tmp_path: Path) -> None:
    process = python(
        """
        import sys, time
        from ct_notebook.log.writer import LogWriter
        from support.log_runs import epoch, run
        writer = LogWriter(sys.argv[1])
        writer.run_begins(run())
        for index in range(1, 7):
            writer.epoch(run(), epoch(index, {"gpu:a": 100.0}))
        while writer._queue.qsize():
            time.sleep(0.001)
        time.sleep(0.05)  # the last one may still be between the queue and the disk
        print("six", flush=True)
        time.sleep(600)
        """,
        tmp_path,
        wait=False,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "six\n"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    ((read,), problems) = read_runs(tmp_path)
    assert [one.index for one in read.epochs] == [1, 2, 3, 4, 5, 6]
    assert not read.closed
    assert problems == ()


@pytest.mark.parametrize("place", ["below a file", "a file", "read-only", "zero byte"])
def test_a_folder_that_cannot_be_written_is_one_clear_failure_and_no_exception(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    folder = {
        "below a file": tmp_path / "file" / "logs",
        "a file": tmp_path / "file",
        "read-only": Path("/proc/ct_notebook/logs"),  # nobody, not even root, makes a folder there
        "zero byte": tmp_path / "a\0b",
    }[place]
    writer = LogWriter(folder)
    writer.run_begins(run())
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    writer.run_ends(run())
    assert not writer.flush(10)
    assert writer.failure is not None
    assert str(folder) in writer.failure
    assert "set log_dir to" in writer.failure
    assert writer.failure.count("\n") == 0
    assert not writer.close(10)
    assert writer.paths == ()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_is_told_once_and_the_lines_are_written_when_there_is_room(tmp_path: Path) -> None:
    process = python(
        """
        import resource, sys
        from ct_notebook.log.writer import LogWriter
        from support.log_runs import epoch, run
        made = run([epoch(i, {"gpu:a": 100.0}) for i in range(1, 31)], declared=30)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        writer = LogWriter(sys.argv[1])
        writer.run_begins(made)
        for one in made.epochs:
            writer.epoch(made, one)
        assert not writer.flush(10)
        assert "make room" in writer.failure, writer.failure
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.run_ends(made)
        assert writer.flush(10), writer.failure
        assert writer.close(10), writer.failure
        """,
        tmp_path,
    )
    assert process.stdout is not None
    process.stdout.close()
    ((read,), problems) = read_runs(tmp_path)
    assert len(read.epochs) == 30
    assert read.closed
    assert problems == ()


def test_a_full_file_system_is_told_and_leaves_what_fitted(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("to mount a small file system needs more rights; the test before fills a file instead")
    try:
        made = run([epoch(index, {"gpu:a": 100.0}) for index in range(1, 101)], declared=100)
        writer = LogWriter(small / "logs")
        writer.run_begins(made)
        for one in made.epochs:
            writer.epoch(made, one)
        assert not writer.close(10)
        assert writer.failure is not None
        assert "No space left" in writer.failure
        read = read_run(*writer.paths)[0]
        assert len(read.epochs) > 5
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_folder_removed_in_mid_run_is_made_again_with_everything_so_far(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    made = full_run()
    writer = LogWriter(folder)
    writer.run_begins(replace(made, epochs=()))
    writer.epoch(made, made.epochs[0])
    writer.error("a warning")
    assert writer.flush(10)
    before = writer.paths
    assert len(before) == 3
    for path in before:
        Path(path).unlink()
    folder.rmdir()
    for one in made.epochs[1:]:
        writer.epoch(made, one)
    writer.output(actual_text(made))
    writer.run_ends(made)
    assert writer.close(10), writer.failure
    assert writer.paths == before
    read, problems = read_run(*writer.paths[:2])
    assert replace(read, log_paths=()) == made
    assert problems == ()
    assert "a warning" in Path(before[2]).read_text()


def test_a_folder_replaced_by_a_file_is_a_failure_and_leaves_the_file_alone(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    writer = LogWriter(folder)
    writer.run_begins(run())
    assert writer.flush(10)
    for path in writer.paths:
        Path(path).unlink()
    folder.rmdir()
    folder.write_text("mine")
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    assert not writer.close(10)
    assert "set log_dir to a folder" in str(writer.failure)
    assert folder.read_text() == "mine"


def test_two_processes_in_one_folder_never_share_a_file(tmp_path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        from support.log_runs import epoch, run, write
        for place in range(5):
            write(Path(sys.argv[1]), run([epoch(1, {"gpu:a": 100.0})], run_id=f"{sys.argv[2]}-{place}"))
    """
    processes = [python(code, tmp_path, name, wait=False) for name in ("one", "two")]
    for process in processes:
        assert process.wait() == 0
        assert process.stdout is not None
        process.stdout.close()
    runs, problems = read_runs(tmp_path)
    assert sorted(read.run_id for read in runs) == [
        f"{name}-{place}" for name in ("one", "two") for place in range(5)
    ]
    assert problems == ()


def test_a_name_that_is_taken_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([7, 7, 7, 8])
    monkeypatch.setattr(random, "randint", lambda _low, _high: next(numbers))
    paths = [write(tmp_path, run(), prefix="p").paths for _ in range(2)]
    names = [Path(pair[0]).name for pair in paths]
    assert [name.split("_")[1] for name in names] == [f"{os.getpid()}.7", f"{os.getpid()}.8"]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_clock_that_is_set_back_changes_times_and_no_figure(tmp_path: Path) -> None:
    made = full_run()
    writer = LogWriter(tmp_path, now=Clock(STARTED, step_s=-3600.0))
    writer.run_begins(replace(made, epochs=()))
    for one in made.epochs:
        writer.epoch(made, one)
    writer.run_ends(made)
    assert writer.close(10)
    read, problems = read_run(*writer.paths)
    assert replace(read, log_paths=()) == made
    assert problems == ()


def test_a_line_has_the_time_of_what_it_tells_and_not_of_its_writing(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, now=Clock(datetime(2026, 3, 1), step_s=60.0))  # noqa: DTZ001 - local
    writer.run_begins(run())
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    writer.output("done")
    assert writer.close(10)
    assert "2026-03-01 00:02:00 - Epoch 1:\n" in standard_text(writer)
    assert output_text(writer).endswith("2026-03-01 00:03:00 - CarbonTracker: done\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking beside a thread is what is tested
def test_a_forked_child_writes_nothing_and_waits_for_nothing(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.run_begins(run())
    assert writer.flush(10)
    before = standard_text(writer)
    child = os.fork()
    if child == 0:
        writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
        writer.output("from the child")
        writer.error("from the child")
        writer.run_ends(run())
        whole = writer.flush(10) and writer.close(10)
        os._exit(0 if whole else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert standard_text(writer) == before
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    assert writer.close(10)
    assert standard_text(writer).count("Epoch 1:") == 1
    assert "from the child" not in output_text(writer)
    assert len(list(tmp_path.iterdir())) == 2


def test_one_daemon_thread_lives_from_the_beginning_of_the_run_to_the_close(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    assert log_threads() == []
    writer.run_begins(run())
    writer.run_begins(run())
    ((thread),) = log_threads()
    assert thread.daemon
    assert writer.close(10)
    assert log_threads() == []
    assert standard_text(writer).count("Monitoring thread started.") == 1


def test_calls_after_the_close_do_nothing(tmp_path: Path) -> None:
    writer = write(tmp_path, run())
    before = standard_text(writer)
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    writer.run_begins(run())
    writer.error("late")
    assert writer.flush(10)
    assert writer.close(10)
    assert standard_text(writer) == before
    assert log_threads() == []


def test_a_writer_that_is_dropped_without_a_close_leaves_no_thread(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.run_begins(run())
    writer.epoch(run(), epoch(1, {"gpu:a": 1.0}))
    assert writer.flush(10)
    (thread,) = log_threads()
    path = Path(writer.paths[0])
    del writer
    gc.collect()
    thread.join(10)
    assert log_threads() == []
    assert "Epoch 1:" in path.read_text()


def test_a_writer_that_never_began_makes_no_file(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "logs")
    assert writer.flush(10)
    assert writer.close(10)
    assert not (tmp_path / "logs").exists()


def test_the_error_log_is_made_with_the_first_error(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, now=lambda: STARTED)
    writer.run_begins(run())
    assert writer.flush(10)
    assert not any(path.endswith("_err.log") for path in writer.paths)
    writer.error("A sensor failed.", "ERROR")
    assert writer.close(10)
    *_, path = writer.paths
    assert path.endswith("_carbontracker_err.log")
    assert Path(path).read_text() == "2026-03-01 12:00:00,123 - MainThread - ERROR - A sensor failed.\n"


def test_nothing_is_written_outside_the_folder_whatever_the_prefix(tmp_path: Path) -> None:
    writer = write(tmp_path / "logs", run(), prefix="../../escape/\n")
    assert {Path(path).parent for path in writer.paths} == {tmp_path / "logs"}
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_folder_whose_name_trips_carbontracker_works_for_us(tmp_path: Path) -> None:
    writer = write(tmp_path / "carbontracker_logs", full_run())
    ((read,), problems) = read_runs(tmp_path / "carbontracker_logs")
    assert replace(read, log_paths=()) == full_run()
    assert read.log_paths == writer.paths
    assert problems == ()


def test_what_cannot_be_put_into_words_is_told_and_the_rest_is_written(tmp_path: Path) -> None:
    circular: dict[str, Any] = {}
    circular["self"] = circular
    writer = LogWriter(tmp_path)
    writer.run_begins(run())
    writer.detail("broken", circular)
    writer.detail("pause", {"at_s": 3.5})
    assert not writer.close(10)
    assert "detail" in str(writer.failure)
    assert 'ct_notebook: pause {"at_s": 3.5}' in standard_text(writer)


def test_a_disk_that_hangs_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    real_open = os.open

    def hanging_open(*arguments: Any, **more: Any) -> int:
        answer.wait()
        return real_open(*arguments, **more)

    monkeypatch.setattr(os, "open", hanging_open)
    writer = LogWriter(tmp_path)
    writer.run_begins(run())
    for _ in range(QUEUE_LIMIT + 5):
        writer.output("a line")
    assert not writer.flush(0.01)
    assert "does not answer" in str(writer.failure)
    assert not writer.close(0.01)
    answer.set()
    (thread,) = log_threads()
    thread.join()
    assert output_text(writer).count("a line\n") >= QUEUE_LIMIT - 1


def test_the_text_kept_in_memory_is_bounded(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.run_begins(run())
    for place in range(60):
        writer.detail("big", {"place": place, "text": "x" * 100_000})
    assert writer.flush(30)
    kept = writer._files.standard
    assert kept.kept_bytes <= 4_000_000
    assert sum(map(len, kept.kept)) == kept.kept_bytes
    for path in writer.paths:
        Path(path).unlink()
    writer.run_ends(run())
    assert writer.close(30)
    text = standard_text(writer)
    assert text.startswith("20")
    assert "ct_notebook version" in text.splitlines()[0]
    assert '"place": 59' in text
    assert '"place": 1,' not in text


def test_times_may_be_of_a_zone(tmp_path: Path) -> None:
    made = run(started_at=STARTED.astimezone() + timedelta(hours=1))
    writer = write(tmp_path, made)
    assert read_run(*writer.paths)[0].started_at == made.started_at
