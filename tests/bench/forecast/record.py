"""Small real trainings run on this machine; their epochs, first steps and energy go into trainings.json.

    python tests/bench/forecast/record.py

needs torch and scikit-learn. Energy is that of ct_notebook's sensors; the file says which. No two of them are
alike: warm-up, validation, phases, data that grows, other work beside. Takes eight minutes and a machine that
does nothing else.
"""

from __future__ import annotations

import json
import math
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ct_notebook.tracker import CarbonTracker

OUT = Path(__file__).with_name("trainings.json")

Epoch = Callable[[Callable[[int, int], None]], None]
"""Runs one epoch; calls what it is given after each step with steps done and steps in all."""


LONGER = 3
"""Epochs of some seconds: of one second, a tenth tells more of the machine than of the training."""


def batches(count: int, step: Callable[[], Any], told: Callable[[int, int], None]) -> None:
    """Run steps and tell of each."""
    count *= LONGER
    for done in range(1, count + 1):
        step()
        told(done, count)


def torch_step(width: int, rows: int, *, conv: bool = False) -> Callable[[], None]:
    """A step of a small network."""
    import torch

    if conv:
        model: Any = torch.nn.Sequential(
            torch.nn.Conv2d(3, width, 3),
            torch.nn.ReLU(),
            torch.nn.Conv2d(width, width, 3),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(width, 10),
        )
        x = torch.randn(rows, 3, 32, 32)
    else:
        model = torch.nn.Sequential(
            torch.nn.Linear(256, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        )
        x = torch.randn(rows, 256)
    y = torch.randint(0, 10, (rows,))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def lstm_step(rows: int, length: int) -> Callable[[], None]:
    """A step of a recurrent network."""
    import torch

    model = torch.nn.LSTM(32, 64, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(rows, length, 32)

    def step() -> None:
        optimizer.zero_grad()
        model(x)[0].pow(2).mean().backward()
        optimizer.step()

    return step


def sklearn_step(rows: int) -> Callable[[], None]:
    """A step of scikit-learn's perceptron."""
    import numpy as np
    from sklearn.neural_network import MLPClassifier

    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(rows, 64)), generator.integers(0, 10, rows)
    model = MLPClassifier((128,))

    def step() -> None:
        model.partial_fit(x, y, classes=range(10))

    return step


def load_and_decode(kilobytes: int) -> Callable[[], None]:
    """What filling a cache of images costs: bytes that are made, packed and unpacked."""
    import zlib

    data = bytes(random.Random(1).choices(range(16), k=kilobytes * 1024))

    def step() -> None:
        zlib.decompress(zlib.compress(data, 6))

    return step


def trainings() -> Iterator[tuple[str, int, Callable[[int], Epoch]]]:  # noqa: C901, PLR0915 - a list of small trainings
    """Name, number of epochs, and what makes an epoch of its index from 0."""
    mlp, wide, conv = torch_step(256, 512), torch_step(1024, 256), torch_step(16, 32, conv=True)

    def plain(step: Callable[[], None], count: int) -> Callable[[int], Epoch]:
        return lambda _: lambda told: batches(count, step, told)

    yield "perceptron, steady", 20, plain(mlp, 160)
    yield "wide perceptron, steady", 15, plain(wide, 60)
    yield "convolutions, steady", 15, plain(conv, 80)

    def validated(_: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            batches(100, mlp, told)
            batches(40, mlp, lambda *_: None)

        return run

    yield "perceptron, validation in every epoch", 15, validated

    def sometimes(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            batches(80, conv, told)
            if index % 4 == 3:
                batches(60, conv, lambda *_: None)

        return run

    yield "convolutions, validation in every fourth epoch", 20, sometimes

    decode = load_and_decode(160)

    def cached(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            def step() -> None:
                if index == 0:
                    decode()
                mlp()

            batches(120, step, told)

        return run

    yield "perceptron, a cache filled in all of the first epoch", 15, cached

    def loaded(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            if index == 0:
                batches(40, decode, lambda *_: None)
            batches(120, mlp, told)

        return run

    yield "perceptron, data loaded before the first step", 15, loaded

    short = [lstm_step(32, 10 + 2 * n) for n in range(15)]
    yield "recurrent, sequences that grow", 15, lambda index: lambda told: batches(60, short[index], told)

    rnn = lstm_step(64, 24)

    def phases(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            def step() -> None:
                rnn()
                if index < 12:
                    decode()

            batches(50, step, told)

        return run

    yield "recurrent, augmentation off for the last quarter", 16, phases
    yield "scikit-learn perceptron", 15, plain(sklearn_step(256), 200)
    yield "scikit-learn perceptron, few large steps", 15, plain(sklearn_step(4096), 12)

    def irregular(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            source = random.Random(index)

            def step() -> None:
                time.sleep(source.expovariate(1 / 0.02))
                mlp()

            batches(60, step, told)

        return run

    yield "perceptron that waits for its data", 15, irregular

    def beside(index: int) -> Epoch:
        def run(told: Callable[[int, int], None]) -> None:
            worker = None
            if 5 <= index < 10:
                code = "while True: pass"
                worker = subprocess.Popen([sys.executable, "-c", code])
            with suppress(Exception):
                batches(80, conv, told)
            if worker is not None:
                worker.kill()
                worker.wait()

        return run

    yield "convolutions, another job in the middle", 16, beside


def record(name: str, count: int, epoch_of: Callable[[int], Epoch]) -> dict[str, Any]:
    """Run one training under the tracker."""
    tracker = CarbonTracker(
        count, monitor_epochs=-1, epochs_before_pred=0, update_interval=0.2, verbose=0, offline=True
    )
    tracker.start()
    recording = tracker.recording
    assert recording is not None
    marks: list[tuple[int, float]] = []
    total = 0
    for index in range(count):
        tracker.epoch_start()

        def told(done: int, steps: int) -> None:
            nonlocal total
            total = steps
            marks.append((done, time.monotonic()))

        epoch_of(index)(told if index == 0 else lambda *_: None)
        tracker.epoch_end()
    tracker.stop()
    run = tracker.run
    began_s = run.epochs[0].start_s
    account = recording._account

    def joules(at_s: float) -> float:
        return sum(account.curve(device.key).at(at_s)[0] for device in run.devices)

    began_j = joules(began_s)
    kept = marks[:: math.ceil(len(marks) / 120)]
    print(f"{name}: {run!r}")
    return {
        "name": name,
        "epoch_s": [round(epoch.duration_s, 4) for epoch in run.epochs],
        "epoch_j": [round(epoch.total_j, 3) for epoch in run.epochs],
        "steps": total,
        "first_epoch_steps": [
            [done, round(at_s - began_s, 4), round(joules(at_s) - began_j, 3)] for done, at_s in kept
        ],
    }


def main() -> None:
    """Record all of them."""
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    runs = [record(*each) for each in trainings()]
    probe = CarbonTracker(1, verbose=0, offline=True)
    methods = probe.start().run.methods
    probe.stop()
    source = json.dumps(f"recorded by record.py, torch {torch.__version__} on {platform.machine()}")
    lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
    OUT.write_text(
        f'{{\n "source": {source},\n "energy": {json.dumps(methods)},\n "runs": [\n{lines}\n ]\n}}\n'
    )


if __name__ == "__main__":
    main()
