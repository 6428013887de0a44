"""Real Keras, Lightning and Transformers train under `%%carbontrack` in a real kernel. `nox -s notebooks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kernel import Answer, Kernel, old_clients_are_quiet, started

pytestmark = old_clients_are_quiet

SIM = "--sim-cpu X --sim-cpu-tdp 100 --components cpu --update-interval 0.1 --country DK"

KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
x = numpy.random.rand(2000, 20).astype("float32")
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
def train(epochs, callbacks):
    return len(model.fit(x, x.sum(1), epochs=epochs, validation_split=0.2, callbacks=callbacks).epoch)
def carry_on(callbacks):
    model.fit(x, x.sum(1), epochs=4, initial_epoch=2, callbacks=callbacks)
def limit(callbacks):
    model.fit(x, x.sum(1), epochs=2, steps_per_epoch=20, callbacks=callbacks)
"""
LIGHTNING = """
import warnings
warnings.simplefilter("ignore")
import lightning, tempfile, torch
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 1)
    def training_step(self, batch, index):
        return ((self.layer(batch[0]) - batch[0].sum(1, keepdim=True)) ** 2).mean()
    def validation_step(self, batch, index):
        self.log("loss", self.training_step(batch, index))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(2000, 20)), batch_size=32)
def fit(epochs, callbacks, path=None, **more):
    quiet = dict(logger=False, enable_checkpointing=False, enable_model_summary=False) | more
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=callbacks, **quiet)
    trainer.fit(Model(), rows, rows, ckpt_path=path)
    return trainer
def train(epochs, callbacks):
    return fit(epochs, callbacks).current_epoch
def carry_on(callbacks):
    path = tempfile.mkdtemp() + "/two.ckpt"
    fit(2, []).save_checkpoint(path)
    fit(4, callbacks, path)
def limit(callbacks):
    fit(1000, callbacks, max_steps=100)  # of 63 in an epoch
"""
TRANSFORMERS = """
import tempfile, torch, transformers
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 1)
    def forward(self, x, labels=None):
        found = self.layer(x)
        return {"loss": ((found - labels) ** 2).mean(), "logits": found}
rows = [{"x": row, "labels": row.sum(0, keepdim=True)} for row in torch.rand(2000, 20)]
def train(epochs, callbacks, **more):
    told = dict(num_train_epochs=epochs, per_device_train_batch_size=32, report_to=[], use_cpu=True)
    told |= dict(eval_strategy="epoch", save_strategy="epoch") | more
    arguments = transformers.TrainingArguments(tempfile.mkdtemp(), **told)
    trainer = transformers.Trainer(
        Model(), arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks
    )
    trainer.train()
    return round(trainer.state.epoch)
class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(rows)
def quick(callbacks, data=rows, path=None, resumed=None, **told):
    told |= dict(per_device_train_batch_size=32, report_to=[], use_cpu=True, save_strategy="epoch")
    arguments = transformers.TrainingArguments(path or tempfile.mkdtemp(), **told)
    trainer = transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resumed)
def carry_on(callbacks):
    path = tempfile.mkdtemp()
    quick([], path=path, num_train_epochs=2)
    quick(callbacks, path=path, resumed=True, num_train_epochs=4)
def limit(callbacks):
    quick(callbacks, Endless(), max_steps=100)
"""
FRAMEWORKS = {"keras": KERAS, "lightning": LIGHTNING, "transformers": TRANSFORMERS}


@pytest.fixture(scope="module", params=list(FRAMEWORKS))
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel in which `train(epochs, callbacks)` trains and gives how many epochs it did."""
    name = request.param
    with started(tmp_path_factory.mktemp(name)) as kernel:
        loaded = f"{FRAMEWORKS[name]}\nfrom ct_notebook.callbacks.{name} import CarbonTrackerCallback"
        answer = kernel.run(loaded)
        assert answer.status == "ok", answer.text
        kernel.run(f"framework = {name!r}")
        yield kernel


def tracked(kernel: Kernel, flags: str, body: str) -> Answer:
    answer = kernel.run(f"%%carbontrack {SIM} {flags}\n{body}")
    assert answer.status == "ok", answer.text
    return answer


def test_each_epoch_is_measured_and_foretold(kernel: Kernel, tmp_path: Path) -> None:
    flags = f"--epochs 5 --epochs-before-pred 2 --log-dir {tmp_path}"
    answer = tracked(kernel, flags, "trained = train(5, [CarbonTrackerCallback()])")
    assert kernel.value("trained") == 5
    assert "Predicted consumption for 5 epoch(s):" in answer.text
    assert "Actual consumption for 5 epoch(s):" in answer.text
    assert "epochs were marked by hand (5)" in answer.text
    assert kernel.value("[e.partial for e in tracker.run.epochs]") == [False] * 5
    assert kernel.value("all(sum(e.energy_j.values()) > 0 for e in tracker.run.epochs)")
    # Validation, evaluating and saving belong to the epochs: next to nothing lies between them.
    assert kernel.value(
        "sum(b.start_s - a.end_s for a, b in zip(tracker.run.epochs, tracker.run.epochs[1:]))"
        " < 0.1 * sum(e.end_s - e.start_s for e in tracker.run.epochs)"
    )
    assert len(list(tmp_path.glob("*_carbontracker.log"))) == 1


def test_a_choice_to_stop_ends_the_training_after_its_epoch(kernel: Kernel) -> None:
    flags = "--epochs 6 --epochs-before-pred 2 --stop-and-confirm --on-headless stop --no-log"
    body = "trained = train(6, [CarbonTrackerCallback()])\nprint('after it')"
    # A front end without an input box: the stated default is taken.
    answer = kernel.answer(kernel.client.execute(f"%%carbontrack {SIM} {flags}\n{body}", allow_stdin=False))
    assert answer.status == "ok", answer.text
    assert kernel.value("trained") == 2
    assert kernel.value("[e.partial for e in tracker.run.epochs]") == [False] * 2
    assert "after it" in answer.stdout


def test_its_steps_foretell_the_run_before_the_first_epoch_ends(kernel: Kernel) -> None:
    # A sink between the callback and the recording: what arrives, and how far the last step says an epoch is.
    tracked(
        kernel,
        "--epochs 2 --no-log",
        "told, plain = [], tracker.recording.step\n"
        "def step(at_s, source, done, steps):\n"
        "    told.append((source, done, steps))\n"
        "    plain(at_s, source, done, steps)\n"
        "tracker.recording.step = step\n"
        "trained = train(2, [CarbonTrackerCallback()])\n"
        "del tracker.recording.step\n",
    )
    # 2000 rows in batches of 32; Keras leaves a fifth out.
    batches = 50 if kernel.value("framework") == "keras" else 63
    told = [tuple(step) for step in kernel.value("told")]
    assert ("callback", batches, batches) in told
    assert all(source == "callback" and steps == batches for source, _, steps in told)


def test_a_training_that_is_carried_on_declares_the_epochs_that_are_left(kernel: Kernel) -> None:
    tracked(kernel, "--no-log", "carry_on([CarbonTrackerCallback()])")
    assert kernel.value("(tracker.epochs_declared, len(tracker.run.complete_epochs))") == (2, 2)


def test_a_training_that_steps_limit_declares_no_epochs_that_it_will_not_have(kernel: Kernel) -> None:
    known = {"keras": 2, "lightning": 2, "transformers": None}
    tracked(kernel, "--no-log", "limit([CarbonTrackerCallback()])")
    assert kernel.value("tracker.epochs_declared") == known[kernel.value("framework")]
    assert kernel.value("len(tracker.run.complete_epochs)") == 2


def test_a_training_in_each_turn_of_a_loop_has_its_own_epochs(kernel: Kernel) -> None:
    tracked(kernel, "--no-log", "for fold in range(2):\n    train(3, [CarbonTrackerCallback()])")
    assert kernel.value("(tracker.epochs_declared, len(tracker.run.complete_epochs))") == (6, 6)


def test_an_error_in_a_training_leaves_its_epoch_partial(kernel: Kernel) -> None:
    body = "class Broken(CarbonTrackerCallback):\n"
    for name in ("on_train_batch_end", "on_step_end"):
        body += f"    def {name}(self, *told, **more):\n        raise MemoryError\n"
    body += (
        "try:\n    train(3, [Broken()])\nexcept MemoryError:\n    pass\ntrain(3, [CarbonTrackerCallback()])"
    )
    tracked(kernel, "--epochs 3 --no-log", body)
    assert kernel.value("[e.partial for e in tracker.run.epochs]") == [True, False, False, False]


def test_a_cell_without_the_callback_is_told_of_it(kernel: Kernel) -> None:
    answer = tracked(kernel, "--epochs 2 --no-log", "train(2, [])")
    room = f"ct_notebook.callbacks.{kernel.value('framework')}"
    assert f"With callbacks=[CarbonTrackerCallback()] from {room} its epochs are seen." in answer.text


def test_outside_of_a_cell_the_callback_measures_until_the_training_is_over(kernel: Kernel) -> None:
    answer = kernel.run(
        "from ct_notebook.tracker import CarbonTracker\n"
        "mine = CarbonTracker(2, monitor_epochs=-1, sim_cpu='X', sim_cpu_tdp=100, country='DK')\n"
        "train(2, [CarbonTrackerCallback(mine)])"
    )
    assert answer.status == "ok", answer.text
    assert kernel.value("(mine.active, mine.epochs_seen)") == (False, 2)
