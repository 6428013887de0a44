"""Runs of every kind that a result may have to show."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from ct_notebook.records import Course, Device, Epoch, Run
from support.snapshots import example_run

HOSTILE = "<script>alert(1)</script>&\"'\n\x00\u202e" + "x" * 10_000


def unmeasured() -> Run:
    """Nothing could be read."""
    run = example_run()
    epochs = tuple(dataclasses.replace(epoch, energy_j={}, covered_s={}) for epoch in run.epochs)
    return dataclasses.replace(run, devices=(), epochs=epochs, course=None, prediction=None, moves=())


def unstarted() -> Run:
    """No epoch has ended, nothing was read yet."""
    run = example_run()
    return dataclasses.replace(
        run, epochs=(), course=Course((), (), {}), duration_s=0.0, prediction=None, moves=()
    )


def from_log() -> Run:
    """As a reader gives it back: epochs without curves."""
    return dataclasses.replace(example_run(), course=None, moves=())


def hostile() -> Run:
    """Every text that comes from outside tries something."""
    run = example_run()
    return dataclasses.replace(
        run,
        devices=tuple(dataclasses.replace(device, name=HOSTILE, detail=HOSTILE) for device in run.devices),
        intensity=dataclasses.replace(
            run.intensity, place=HOSTILE, how=HOSTILE, source=HOSTILE, time=HOSTILE
        ),
        pue=dataclasses.replace(run.pue, reason=HOSTILE),
        missing={HOSTILE: HOSTILE},
        log_paths=(HOSTILE,),
        reason=HOSTILE,
        early_stop=True,
    )


def long_run() -> Run:
    """A day on eight GPUs: 400 epochs of 216 s at 300 W each."""
    devices = tuple(
        Device(f"gpu:{n}", "gpu", f"NVIDIA A100 ({n})", "counter", "NVML energy counter") for n in range(8)
    )
    epochs = tuple(
        Epoch(
            index=index,
            start_s=216.0 * (index - 1),
            end_s=216.0 * index,
            energy_j=MappingProxyType({device.key: 300 * 216.0 for device in devices}),
            covered_s=MappingProxyType({device.key: 216.0 for device in devices}),
        )
        for index in range(1, 401)
    )
    run = dataclasses.replace(example_run(), devices=devices, epochs=epochs, duration_s=86_400.0)
    times = tuple(360.0 * n for n in range(241))
    g_per_j = run.intensity.g_per_kwh / 3.6e6 * run.pue.value
    return dataclasses.replace(
        run,
        epochs_declared=400,
        course=Course(
            times,
            tuple(8 * 300 * at_s * g_per_j for at_s in times),
            {device.key: tuple(300 * at_s for at_s in times) for device in devices},
            tuple(216.0 * n for n in range(1, 401)),
        ),
    )


RUNS = {
    "two devices": example_run,
    "nothing measured": unmeasured,
    "not started": unstarted,
    "from a log": from_log,
    "hostile": hostile,
    "a day on eight GPUs": long_run,
}
