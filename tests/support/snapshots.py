"""A run under way that has something of everything, as a panel is sent it."""

from __future__ import annotations

from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from ct_notebook.display.snapshot import Wishes, snapshot, state_of, status
from ct_notebook.records import (
    Band,
    Course,
    Device,
    Epoch,
    Estimate,
    Finding,
    Intensity,
    Moment,
    Pue,
    Run,
)

GPU = Device("gpu:GPU-1", "gpu", "NVIDIA A100-SXM4-40GB", "counter", "NVML energy counter", 0.95, 1.05)
CPU = Device("cpu:model", "cpu", "AMD EPYC 7763", "modelled", "2 vCPU x 0.5-2.3 W by load", 0.5, 1.5)

FINDINGS = (
    Finding("NVML", found=True, readable=True, why=""),
    Finding("RAPL", found=True, readable=False, why="permission denied", remedy="sudo chmod -R a+r /sys"),
)

ABOUT = "Budget: time: 0:01:40 expected for the whole run, 0:01:00 allowed."


def estimate(after: int, grams: float) -> Estimate:
    """What was expected after so many of ten epochs."""
    return Estimate(
        epochs=10,
        made_after=after,
        duration_s=Band(100.0, 90.0, 115.0),
        energy_j=Band(12_000.0, 11_000.0, 13_500.0),
        emissions_g=Band(grams, grams * 0.9, grams * 1.2),
        method="observed + remaining x level of the first epoch",
    )


def example_run() -> Run:
    """Two devices, two of ten epochs of 10 s at 100 W and 20 W."""
    epochs = tuple(
        Epoch(
            index=index,
            start_s=100.0 + 10 * (index - 1),
            end_s=100.0 + 10 * index,
            energy_j=MappingProxyType({GPU.key: 1000.0, CPU.key: 200.0}),
            covered_s=MappingProxyType({GPU.key: 10.0, CPU.key: 10.0}),
        )
        for index in (1, 2)
    )
    g_per_j = 360.0 / 3.6e6 * 1.5
    times = tuple(float(second) for second in range(21))
    return Run(
        run_id="4711-18c2f0a1",
        started_at=datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc),
        epochs_declared=10,
        devices=(GPU, CPU),
        intensity=Intensity(
            g_per_kwh=360.0,
            zone="DK",
            place="Denmark",
            source="a table, CC BY 4.0",
            time="2024",
            kind="lifecycle",
            how="time zone Europe/Copenhagen",
            low=0.5,
            high=1.6,
        ),
        pue=Pue(1.5, "a data centre"),
        epochs=epochs,
        duration_s=20.0,
        estimate=estimate(2, 1.8),
        prediction=estimate(1, 2.0),
        moves=(estimate(1, 2.0), estimate(2, 1.8)),
        course=Course(
            at_s=times,
            emissions_g=tuple(120 * second * g_per_j for second in times),
            energy_j={
                GPU.key: tuple(100 * second for second in times),
                CPU.key: tuple(None if second == 7 else 20 * second for second in times),
            },
            epoch_ends_s=(10.0, 20.0),
        ),
        notes=("A note of the run.",),
        log_paths=("logs/4711.1_2026-12-01T120000Z_carbontracker.log",),
    )


def moment_of(run: Run, **changes: Any) -> Moment:
    """Where the example stands, or where `changes` say."""
    energy_j = run.energy_j
    values: dict[str, Any] = {
        "elapsed_s": run.duration_s,
        "epochs_done": len(run.complete_epochs),
        "in_epoch": True,
        "paused": False,
        "power_w": {GPU.key: 100.0, CPU.key: 20.0},
        "energy_j": energy_j,
        "emissions_g": run.emissions_g,
        "estimate": run.estimate,
        "prediction": run.prediction,
        "epochs_declared": run.epochs_declared,
        "point": (20.0, 0.36, (2000.0, 400.0)),
        "notes": len(run.notes),
        "closed": False,
        "reason": "",
    }
    return Moment(**{**values, **changes})


def example() -> tuple[dict[str, Any], bytes]:
    """The snapshot of the example, waiting for an answer."""
    run = example_run()
    moment = moment_of(run)
    wishes = Wishes(token="a-token", left_s=587.2, default="continue", about=ABOUT)
    return snapshot(run, status(run, moment, wishes, 17, state_of(moment, wishes)), FINDINGS)
