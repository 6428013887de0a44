"""GPUs that a test describes come in; a `libnvidia-ml.so.1` that shows them goes out. Needs gcc, and no GPU.

The real `pynvml` talks to it, so what is tested is our use of NVML. It says nothing of how real GPUs behave.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

SOURCE = Path(__file__).with_suffix(".c")
LIBRARY = "libnvidia-ml.so.1"
VARIABLE = "CT_STUB_NVML"

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, TIMEOUT = 1, 3, 4, 9, 10
GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 15, 18, 999
"""NVML's error codes that tests use."""

MOST_GPUS, MOST_SLICES, MOST_PIDS = 16, 8, 8

_NUMBER, _COUNT = ctypes.c_uint32, ctypes.c_uint64


class _Slice(ctypes.Structure):
    _fields_ = (
        ("uuid", ctypes.c_char * 96),
        *((name, _NUMBER) for name in ("multiprocessors", "sevenths", "gpu_instance", "compute_instance")),
    )


class _Gpu(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 96),
        *(
            (name, _COUNT)
            for name in ("energy_mj", "live_since_ns", "power_calls", "energy_calls", "process_calls")
        ),
        *(
            (name, _NUMBER)
            for name in ("power_mw", "limit_mw", "live", "delay_us", "multiprocessors", "utilization")
        ),
        *(
            (name, _NUMBER)
            for name in (
                "error",
                "power_error",
                "energy_error",
                "limit_error",
                "handle_error",
                "utilization_error",
            )
        ),
        *((name, _NUMBER) for name in ("mig", "slice_count", "pid_count")),
        ("pids", _NUMBER * MOST_PIDS),
        ("work", _NUMBER * MOST_PIDS),
        ("slices", _Slice * MOST_SLICES),
    )


class _Control(ctypes.Structure):
    _fields_ = (
        ("writing", _COUNT),
        ("init_calls", _COUNT),
        ("shutdown_calls", _COUNT),
        ("count", _NUMBER),
        ("init_error", _NUMBER),
        ("gpus", _Gpu * MOST_GPUS),
    )


@dataclass(frozen=True)
class MigSlice:
    """A MIG slice to show."""

    uuid: str
    multiprocessors: int = 14
    sevenths: int = 1
    gpu_instance: int = 1
    compute_instance: int = 0


class NvmlStub:
    """A made-up NVIDIA driver with GPUs that can be changed while somebody reads them.

    A new one has one GPU: "NVIDIA Stub", 100 W, limit 400 W, energy counter at 1000 J, no errors. Each
    further GPU is the same with a UUID of its own.

    In another process (a kernel, a script), which then sees these GPUs instead of any real ones::

        stub = NvmlStub.build(tmp_path)
        stub.count = 2
        stub.set(1, power_mw=300_000, live=True)
        subprocess.run([sys.executable, "-c", "..."], env={**os.environ, **stub.env()})

    In this process (one library serves all stubs of a process; which GPUs it shows depends on the variable
    at each `nvmlInit`, and without the variable there is "no driver")::

        stub.load()
        monkeypatch.setenv(VARIABLE, stub.variable)

    `set(index, ...)` takes, all optional:

    - `name`, `uuid`, `power_mw`, `energy_mj`, `limit_mw`, `utilization` (percent; at first 0),
      `multiprocessors` (0: MIG is not supported)
    - `live=True`: the energy counter goes on by itself in real time, by `power_mw`
    - `error`: the code that every call on the GPU returns (0: none); `power_error`, `energy_error`,
      `limit_error`, `handle_error`, `utilization_error`: that of one kind of call
    - `delay_us`: how long every call takes
    - `pids`: the processes that run on it; `slices`: its MIG slices (also switches MIG on)

    `init_error` is the code that `nvmlInit` returns. `inits`, `shutdowns` and `calls(index)` count calls of
    all processes.
    """

    _loaded: ClassVar[ctypes.CDLL | None] = None

    def __init__(self, library: Path, control: Path) -> None:
        self.library = library
        self.variable = str(control)
        control.write_bytes(bytes(ctypes.sizeof(_Control)))
        with control.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ctypes.sizeof(_Control))
        self._control = _Control.from_buffer(self._map)
        for index in range(MOST_GPUS):
            self.set(
                index,
                name="NVIDIA Stub",
                uuid=f"GPU-{index:08x}-0000-4000-8000-{index:012x}",
                power_mw=100_000,
                limit_mw=400_000,
                energy_mj=1_000_000,
            )
        self.count = 1

    @classmethod
    def build(cls, folder: Path) -> NvmlStub:
        """Compile the library into a folder, unless it is there, and describe a machine of one GPU.

        Raises
        ------
        RuntimeError
            There is no gcc, or it fails.
        """
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / LIBRARY
        if not library.exists():
            gcc = shutil.which("gcc")
            if gcc is None:
                msg = "gcc is needed to build a stand-in for the NVIDIA driver: apt-get install gcc"
                raise RuntimeError(msg)
            half = folder / f"{LIBRARY}.{os.getpid()}"  # another process may be building the same
            command = [gcc, "-O2", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}"]
            done = subprocess.run(
                [*command, "-o", str(half), str(SOURCE)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                msg = f"gcc cannot build {SOURCE}:\n{done.stderr}"
                raise RuntimeError(msg)
            half.replace(library)
        return cls(library, folder / f"gpus-{time.monotonic_ns():x}")

    def env(self) -> dict[str, str]:
        """Variables for the environment of another process."""
        before = os.environ.get("LD_LIBRARY_PATH")
        path = f"{self.library.parent}:{before}" if before else str(self.library.parent)
        return {"LD_LIBRARY_PATH": path, VARIABLE: self.variable}

    def load(self) -> None:
        """Have NVML in this process be the stub: `libnvidia-ml.so.1` is then found to be loaded already."""
        import pynvml

        if NvmlStub._loaded is None:
            NvmlStub._loaded = ctypes.CDLL(str(self.library))
        if pynvml.nvmlLib is not NvmlStub._loaded:
            pynvml.nvmlLib = NvmlStub._loaded
            pynvml._nvmlGetFunctionPointer_cache.clear()

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return int(self._control.count)

    @count.setter
    def count(self, count: int) -> None:
        assert 0 <= count <= MOST_GPUS
        self._control.count = count

    @property
    def init_error(self) -> int:
        """The code that `nvmlInit` returns."""
        return int(self._control.init_error)

    @init_error.setter
    def init_error(self, code: int) -> None:
        self._control.init_error = code

    @property
    def inits(self) -> int:
        """Calls of `nvmlInit`."""
        return int(self._control.init_calls)

    @property
    def shutdowns(self) -> int:
        """Calls of `nvmlShutdown` that gave something back."""
        return int(self._control.shutdown_calls)

    def calls(self, index: int) -> dict[str, int]:
        """Calls for `power`, `energy` and `processes` of a GPU."""
        gpu = self._control.gpus[index]
        return {
            "power": gpu.power_calls,
            "energy": gpu.energy_calls,
            "processes": gpu.process_calls,
        }

    def uuid(self, index: int) -> str:
        """The UUID of a GPU."""
        return bytes(self._control.gpus[index].uuid).decode()

    def set(
        self,
        index: int,
        *,
        live: bool | None = None,
        pids: Sequence[int] | None = None,
        work: Sequence[int] | None = None,
        slices: Sequence[MigSlice] | None = None,
        **values: int | str,
    ) -> None:
        """Change a GPU. What is not named stays as it is."""
        gpu = self._control.gpus[index]
        known = {field[0] for field in _Gpu._fields_} - {"slices", "pids", "work", "slice_count", "pid_count"}
        assert set(values) <= known, f"a GPU of the stub has no {set(values) - known}"
        self._control.writing += 1
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if gpu.live:
            gpu.energy_mj += int(gpu.power_mw * (now_ns - gpu.live_since_ns) / 1e9)
        gpu.live_since_ns = now_ns
        if live is not None:
            gpu.live = live
        for name, value in values.items():
            setattr(gpu, name, value.encode() if isinstance(value, str) else value)
        self._control.writing += 1
        if pids is not None:
            gpu.pids[: len(pids)] = list(pids)
            gpu.pid_count = len(pids)
        if work is not None:
            gpu.work[: len(work)] = list(work)
        if slices is not None:
            for number, part in enumerate(slices):
                gpu.slices[number] = _Slice(
                    part.uuid.encode(),
                    part.multiprocessors,
                    part.sevenths,
                    part.gpu_instance,
                    part.compute_instance,
                )
            gpu.slice_count = len(slices)
            gpu.mig = 1
            gpu.multiprocessors = gpu.multiprocessors or 98
