"""Bad surroundings in a real kernel: it lives, training completes, finished epochs are kept, one line tells.

GPUs are a stub of NVIDIA's library that the real pynvml loads.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kernel import Kernel, old_clients_are_quiet, started
from support.nvml_stub import GPU_IS_LOST, NvmlStub

pytestmark = old_clients_are_quiet

LAST = "__import__('ct_notebook.tracker').tracker.last_run()"
LOOP = "import time\nfor epoch in range({n}):\n    time.sleep({s})\n"


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> NvmlStub:
    stub = NvmlStub.build(tmp_path_factory.mktemp("nvml"))
    stub.count = 2
    stub.set(0, power_mw=100_000, live=True)
    stub.set(1, power_mw=300_000, live=True)
    return stub


@pytest.fixture(scope="module")
def kernel(gpus: NvmlStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("surroundings"), gpus.env()) as kernel:
        yield kernel


def one(folder: Path, ending: str = "_carbontracker.log") -> str:
    (path,) = folder.glob("*" + ending)
    return path.read_text("utf-8")


def test_two_gpus_add_up(kernel: Kernel, tmp_path: Path) -> None:
    answer = kernel.run(
        f"%%carbontrack --epochs 3 --components gpu --update-interval 0.2 --pue 1 --log-dir {tmp_path}\n"
        + LOOP.format(n=3, s=0.5)
    )
    assert "Actual consumption for 3 epoch(s):" in answer.stdout
    watts = kernel.value(f"sum(e.total_j for e in {LAST}.epochs) / sum(e.duration_s for e in {LAST}.epochs)")
    assert watts == pytest.approx(400, rel=0.02)
    rows = [line for line in one(tmp_path).splitlines() if "for gpu:" in line]
    assert len(rows) == 3
    assert all(float(row.split("[")[1].rstrip("]")) == pytest.approx(400, rel=0.02) for row in rows)
    assert kernel.value(f"[d.method for d in {LAST}.devices]") == ["counter", "counter"]


def test_a_gpu_that_is_lost_is_missing_from_then_on(kernel: Kernel, gpus: NvmlStub, tmp_path: Path) -> None:
    sent = kernel.send(
        f"%%carbontrack --epochs 4 --components gpu --update-interval 0.1 --log-dir {tmp_path}\n"
        "import time\n"
        "for epoch in range(4):\n"
        "    print('epoch', epoch, flush=True)\n"
        "    time.sleep(0.4)\n"
    )
    kernel.wait_for(sent, "epoch 2")
    gpus.set(1, error=GPU_IS_LOST)
    answer = kernel.answer(sent)
    gpus.set(1, error=0)
    assert answer.status == "ok"
    assert kernel.value(f"[len(e.energy_j) for e in {LAST}.epochs]")[::3] == [2, 1]
    assert list(kernel.value(f"dict({LAST}.missing)")) == [kernel.value(f"{LAST}.devices[1].key")]
    assert "lost" in one(tmp_path, "_err.log").lower()


def test_nvml_shut_down_by_another_library_is_opened_again(kernel: Kernel) -> None:
    answer = kernel.run(
        "%%carbontrack --epochs 4 --components gpu --update-interval 0.1 --no-log\n"
        "import pynvml, time\n"
        "for epoch in range(4):\n"
        "    time.sleep(0.3)\n"
        "    if epoch == 1:\n"
        "        pynvml.nvmlShutdown()\n"
    )
    assert answer.status == "ok", answer.text
    covered = kernel.value(f"[min(e.covered_s.values()) / e.duration_s for e in {LAST}.epochs]")
    assert min(covered) > 0.95
    assert kernel.value(f"dict({LAST}.missing)") == {}


def test_a_driver_that_hangs_costs_coverage_and_nothing_else(kernel: Kernel, gpus: NvmlStub) -> None:
    sent = kernel.send(
        "%%carbontrack --epochs 3 --update-interval 0.1 --no-log\n"
        "import time\n"
        "began = time.monotonic()\n"
        "for epoch in range(3):\n"
        "    print('epoch', epoch, flush=True)\n"
        "    time.sleep(0.4)\n"
        "loop_s = time.monotonic() - began\n"
    )
    kernel.wait_for(sent, "epoch 1")
    gpus.set(0, delay_us=10_000_000)
    answer = kernel.answer(sent)
    gpus.set(0, delay_us=0)
    assert answer.status == "ok"
    assert kernel.value("loop_s < 5"), "the loop waited for the driver"
    assert len(kernel.value(f"[e.index for e in {LAST}.complete_epochs]")) == 3
    assert kernel.value(f"{LAST}.closed")


def test_garbage_of_a_driver_is_no_energy(kernel: Kernel, gpus: NvmlStub) -> None:
    sent = kernel.send(
        "%%carbontrack --epochs 3 --components gpu --update-interval 0.1 --no-log\n"
        "import time\n"
        "for epoch in range(3):\n"
        "    print('epoch', epoch, flush=True)\n"
        "    time.sleep(0.5)\n"
    )
    kernel.wait_for(sent, "epoch 1")
    gpus.set(0, energy_mj=2**62, live=False)
    kernel.answer(sent)
    gpus.set(0, energy_mj=1_000_000, live=True)
    energy_j = kernel.value(f"sum(e.total_j for e in {LAST}.epochs)")
    assert energy_j == pytest.approx(400 * 1.5, rel=0.25)


@pytest.mark.parametrize("bad", ["file", "/proc/nowhere"])
def test_a_log_folder_that_cannot_be_is_one_line(kernel: Kernel, tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / bad  # an absolute one stays as it is
    answer = kernel.run(
        f"%%carbontrack --epochs 3 --sim-cpu X --sim-cpu-tdp 100 --log-dir {folder}\n"
        + LOOP.format(n=3, s=0.02)
    )
    assert answer.status == "ok"
    assert "Actual consumption for 3 epoch(s):" in answer.stdout
    assert len([line for line in answer.stdout.splitlines() if str(folder) in line]) == 1, answer.stdout
    assert answer.stderr == ""


def test_a_folder_removed_in_mid_run_is_made_again(kernel: Kernel, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    answer = kernel.run(
        f"%%carbontrack --epochs 4 --sim-cpu X --sim-cpu-tdp 100 --log-dir {folder}\n"
        "import shutil, time\n"
        "for epoch in range(4):\n"
        "    time.sleep(0.1)\n"
        f"    epoch == 1 and shutil.rmtree({str(folder)!r})\n"
    )
    assert answer.status == "ok"
    assert [f"Epoch {n}:" in one(folder) for n in range(1, 5)] == [True] * 4


def test_processes_started_in_the_cell_neither_sample_nor_report(kernel: Kernel, tmp_path: Path) -> None:
    answer = kernel.run(
        f"%%carbontrack --epochs 3 --sim-cpu X --sim-cpu-tdp 100 --log-dir {tmp_path}\n"
        "import multiprocessing, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "context = multiprocessing.get_context('fork')\n"
        "for epoch in range(3):\n"
        "    with context.Pool(2) as pool:\n"
        "        squares = pool.map(abs, range(-4, 4))\n"
    )
    assert answer.status == "ok", answer.text
    assert answer.stdout.count("Finished monitoring.") == 1
    assert one(tmp_path).count("Epoch ") == 3
    assert len(list(tmp_path.iterdir())) == 2


def test_two_kernels_in_one_folder_share_no_file(gpus: NvmlStub, tmp_path: Path) -> None:
    cell = f"%%carbontrack --epochs 3 --sim-cpu X --sim-cpu-tdp 100 --log-dir {tmp_path / 'logs'}\n"
    with started(tmp_path, gpus.env()) as first, started(tmp_path, gpus.env()) as second:
        sent = [(kernel, kernel.send(cell + LOOP.format(n=3, s=0.1))) for kernel in (first, second)]
        assert [kernel.answer(each).status for kernel, each in sent] == ["ok", "ok"]
    logs = list((tmp_path / "logs").glob("*_carbontracker.log"))
    assert len(logs) == 2
    assert [log.read_text("utf-8").count("Epoch ") for log in logs] == [3, 3]


def test_a_killed_kernel_leaves_its_finished_epochs(gpus: NvmlStub, tmp_path: Path) -> None:
    with started(tmp_path, gpus.env()) as kernel:
        pid = kernel.value("__import__('os').getpid()")
        sent = kernel.send(
            "%%carbontrack --epochs 50 --sim-cpu X --sim-cpu-tdp 100\n"
            "import time\n"
            "for epoch in range(50):\n"
            "    print('epoch', epoch + 1, flush=True)\n"
            "    time.sleep(0.1 if epoch < 6 else 60)\n"
        )
        kernel.wait_for(sent, "epoch 7")
        time.sleep(0.3)  # six epochs have ended; what was measured of them reaches the disk by itself
        os.kill(pid, signal.SIGKILL)
    text = one(tmp_path / "logs")
    assert [f"Epoch {n}:" in text for n in (6, 7)] == [True, False]


def test_reset_between_cells_disturbs_nothing(kernel: Kernel, tmp_path: Path) -> None:
    cell = f"%%carbontrack --epochs 2 --sim-cpu X --sim-cpu-tdp 100 --log-dir {tmp_path}\n" + LOOP.format(
        n=2, s=0.02
    )
    kernel.run(cell)
    kernel.run("%reset -f")
    assert kernel.run(cell).status == "ok"
    assert len(list(tmp_path.glob("*_carbontracker.log"))) == 2
    assert kernel.run("%carbontrack last").results[0].startswith("Run: 2 epochs")


def test_a_machine_without_the_component_gets_one_message_and_trains(tmp_path: Path) -> None:
    with started(tmp_path, {"LD_LIBRARY_PATH": ""}) as kernel:
        answer = kernel.run("%%carbontrack --epochs 3 --components gpu --no-log\n" + LOOP.format(n=3, s=0.02))
        assert answer.status == "ok"
        assert answer.stdout.count("No component can be measured") == 1
        assert kernel.value("epoch") == 2


def test_a_gpu_shared_with_others_is_attributed_by_its_work(kernel: Kernel, gpus: NvmlStub) -> None:
    ours = int(kernel.value("__import__('os').getpid()"))
    gpus.set(0, pids=[ours, 1], work=[30, 10])
    answer = kernel.run(
        "%%carbontrack --epochs 2 --components gpu --update-interval 0.2 --scope process --no-log\n"
        + LOOP.format(n=2, s=0.5)
    )
    assert answer.status == "ok", answer.text
    part, first = kernel.value(
        f"[{LAST}.process.energy_j['gpu'], list({LAST}.energy_by_device_j.values())[0]]"
    )
    assert part == pytest.approx(0.75 * first, rel=0.02)
    assert "left out: nothing tells whose work it did" in answer.stdout
