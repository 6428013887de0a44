"""Runs and logs for tests: small records, written by the real writer or by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from ct_notebook.log import format as grammar
from ct_notebook.log.writer import LogWriter
from ct_notebook.records import Band, Device, Epoch, Estimate, Intensity, Pue, Run

STARTED = datetime(2026, 3, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - logs hold local time without a zone

T4 = Device("gpu:a", "gpu", "Tesla T4", "counter", "NVML energy counter", 0.95, 1.05)
T4_B = Device("gpu:b", "gpu", "Tesla T4", "measured", "NVML power", 0.95, 1.05)
XEON = Device("cpu:package-0", "cpu", "Intel(R) Xeon(R) CPU @ 2.20GHz", "counter", counter_range_j=262143.3)
MEMORY = Device("ram", "ram", "16.0 GB, allocated", "constant", low=0.5, high=2.0)

DENMARK = Intensity(143.3, "DK", "Denmark", "a table", "2025", "lifecycle", how="setting")

HOSTILE_NAMES = (
    "Training was interrupted",
    "Duration: 0:00:01.00",
    "Average power usage (W) for gpu: 999.0",
    "x. GPU with device(s) evil.",
    "The following components were found: CPU with device(s) evil.",
    "Actual consumption for 9 epoch(s):\n\tTime:\t0:00:01\n\tEnergy:\t9 kWh\n\tCO2eq:\t9 g",
    "Predicted consumption for 9 epoch(s):\n\tTime:\t0:00:01\n\tEnergy:\t9 kWh\n\tCO2eq:\t9 g",
    "a\n2026-01-01 00:00:00 - Epoch 99:\n2026-01-01 00:00:00 - Duration: 0:00:01.00",
    "\training was interrupted",
    "T\training wa\u017f interrupted Training wa\u017f interrupted",
    "<script>alert(1)</script> **bold** $\\alpha$",
    "\u202egnp.exe\u2066\x00\x1b[31m\r",
    "carbontracker version 9.9.9",
    "PUE coefficient of 99",
    "Carbon intensities (gCO2eq/kWh) fetched every 1 s at detected location L: [9]",
    "v1.5 beta, rev. 2...",
    "x" * 10_000,
    "",
    " . , . ",
    "\ud800 lone surrogate",
    '"quotes" and \\backslashes\\',
)


def epoch(index: int, energy_j: dict[str, float], seconds: float = 2.0, **more: object) -> Epoch:
    """An epoch that follows the one before it without a gap; every device is covered for all of it."""
    start_s = 100.0 + (index - 1) * seconds
    made = Epoch(index, start_s, start_s + seconds, energy_j, dict.fromkeys(energy_j, seconds))
    return replace(made, **more)  # type: ignore[arg-type]


def run(
    epochs: Sequence[Epoch] = (), devices: Sequence[Device] = (T4,), declared: int | None = 4, **more: object
) -> Run:
    """A run that ended as planned, unless `more` says otherwise."""
    made = Run(
        run_id="run-1",
        started_at=STARTED,
        epochs_declared=declared,
        devices=tuple(devices),
        intensity=DENMARK,
        pue=Pue(1.58, "mean of data centres"),
        epochs=tuple(epochs),
        duration_s=sum(one.end_s - one.start_s for one in epochs),
        closed=True,
        reason="finished",
        hosts=("host-1",),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def full_run() -> Run:
    """A run in which every field holds something other than its default."""
    epochs = [
        epoch(1, {"gpu:a": 200.25, "gpu:b": 600.5, "cpu:package-0": 6.1e-05}),
        epoch(2, {"gpu:a": 200.0, "cpu:package-0": 100.0}, paused_s=0.5),
        epoch(3, {"gpu:a": 50.0, "gpu:b": 150.0}, partial=True),
    ]
    estimate = Estimate(10, 3, Band(20.0, 19.0, 21.0), Band(1e4, 9e3, 1.1e4), Band(3.0, 2.0, 4.0), "level")
    return run(
        epochs,
        (T4, T4_B, XEON, replace(MEMORY, max_power_w=50.0)),
        10,
        paused_s=0.5,
        outside_j={"gpu:a": 3.0},
        paused_j={"gpu:a": 1.5},
        missing={"ram": 'it said "no"'},
        estimate=estimate,
        prediction=replace(estimate, made_after=1),
        early_stop=True,
        reason="interrupted",
        notes=("The memory was not measured.", "Zwölf Bögen"),
        cost={"samples": 12.0, "cpu_s": 0.003},
    )


class Clock:
    """Local time that goes on by a second at every look."""

    def __init__(self, start: datetime = STARTED, step_s: float = 1.0) -> None:
        self.at = start
        self.step = timedelta(seconds=step_s)

    def __call__(self) -> datetime:
        self.at += self.step
        return self.at


def predicted_text(made: Run, epochs: int) -> str:
    """The prediction of a run from its first epoch."""
    first = made.epochs[0]
    return consumption(made, "Predicted", epochs, first.duration_s * epochs, first.total_j * epochs)


def actual_text(made: Run) -> str:
    """What a run has used."""
    duration_s = sum(one.duration_s for one in made.epochs)
    return consumption(made, "Actual", len(made.epochs), duration_s, sum(made.energy_by_device_j.values()))


def consumption(made: Run, kind: str, epochs: int | None, duration_s: float, energy_j: float) -> str:
    """A block as the tracker makes it."""
    energy_kwh = energy_j / 3.6e6 * made.pue.value
    return grammar.consumption_text(
        "Actual" if kind == "Actual" else "Predicted",
        epochs=epochs,
        duration_s=duration_s,
        energy_kwh=energy_kwh,
        co2eq_g=energy_kwh * made.intensity.g_per_kwh,
        precision=12,
    )


def write(
    log_dir: Path, made: Run, *, ends: bool = True, predicts: bool = True, prefix: str = ""
) -> LogWriter:
    """Write a run as the tracker does; the writer is closed and everything is on disk."""
    writer = LogWriter(log_dir, prefix, now=Clock())
    writer.run_begins(replace(made, epochs=(), closed=False))
    for place, one in enumerate(made.epochs, 1):
        writer.epoch(replace(made, epochs=made.epochs[:place]), one)
        if place == 1 and predicts and made.epochs_declared:
            writer.output(predicted_text(made, made.epochs_declared))
    if ends:
        if made.epochs:
            writer.output(actual_text(made))
        writer.output(grammar.FINISHED_TEXT)
        writer.run_ends(made)
    assert writer.close(10), writer.failure
    return writer


def standard_text(writer: LogWriter) -> str:
    """What the standard log holds."""
    return Path(writer.paths[0]).read_text(encoding="utf-8")


def output_text(writer: LogWriter) -> str:
    """What the output log holds."""
    return Path(writer.paths[1]).read_text(encoding="utf-8")


def by_hand(
    folder: Path, standard: str, output: str = "", stem: str = "1.2_2026-11-30T231331Z"
) -> tuple[Path, Path]:
    """A pair of logs as some carbontracker left it. `T` at the start of a line is its time."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{stem}_carbontracker.log", folder / f"{stem}_carbontracker_output.log")
    for path, text in zip(paths, (standard, output), strict=True):
        lines = [
            f"2026-11-30 23:13:{31 + place % 29:02d} {line[2:]}" if line.startswith("T ") else line
            for place, line in enumerate(text.split("\n"))
        ]
        path.write_bytes("\n".join(lines).encode())
    return paths
