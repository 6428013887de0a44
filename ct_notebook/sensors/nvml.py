"""The NVIDIA driver comes in, through NVML; power and energy of the GPUs that this process may use go out."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ct_notebook.errors import SettingError
from ct_notebook.records import Device, Finding, Reading

from .visible_gpus import Gpu, Slice, Visible, order_note, visible_gpus

SENSOR = "NVIDIA GPU (NVML)"

BAND = (0.95, 1.13)
"""Of true to shown power. Against external meters most of 70 cards showed 0 to 8 % too little, the steepest
error was a slope of 0.87, and one model (RTX 2060 SUPER, left out here) showed 13 % too much: "Accurate and
Convenient Energy Measurements for GPUs", SC'24, arXiv 2312.02741. The energy counter sums the same sensor."""

SLICE_BAND = (0.3, 2.0)
"""The same for a MIG slice, whose share of its GPU is by processors, whatever its neighbours do. Assumed."""

IDLE_SHARE = 0.1
"""Idle power over the limit, of a GPU that tells no power. Assumed: most are between 0.05 and 0.15."""

MODEL_BAND = (0.3, 2.0)
"""The same for utilisation x limit. Assumed: utilisation is the share of time that any kernel ran, so at 100
% a GPU may draw a third of its limit, and at 0 % half or twice the share taken for idle."""

MOST_LIMIT_W = 3000.0
"""No GPU or module is sold with a higher limit than 2900 W (GB300 with its CPU)."""

PLAUSIBLE = 3.0
"""Times the power limit: a figure above it is garbage."""

UNKNOWN_LIMIT_W = 1000.0
"""Stands in for a power limit that the driver does not tell. A GB300 is sold for 1400 W, x 3 is above it."""

ZEROS = 3
"""A GPU that runs draws 5 W and more. Zeros this many times in a row are told as such."""

_NOR = "energy, nor utilisation and limit"

_GIVE = "%%carbontrack --gpu-power-limit WATTS"

_HIDDEN = "A module that is no longer maintained is called pynvml too and hides NVIDIA's."


@dataclass(slots=True)
class _Channel:
    """One way to ask a GPU for thousandths of W, J or all of its time, and whether it answers."""

    name: str
    ask: Callable[[Any], int]
    works: bool = True


@dataclass(slots=True)
class _Card:
    """A GPU or slice that is read: the handle is of the whole GPU. With `busy` its power is modelled."""

    device: Device
    place: Visible
    uuid: str
    handle: Any
    share: float
    limit_w: float
    power: _Channel
    energy: _Channel
    busy: _Channel | None = None
    asked_us: int = 0
    lost: str = ""
    zeros: int = 0


class _ShutDownError(Exception):
    """Somebody else in this process has shut NVML down."""


class NvmlSensor:
    """GPUs by NVML: an energy counter where there is one, and a power gauge; else utilisation x limit.

    Holds one initialisation of NVML, which `close` gives back. Process lists are never read here.

    Parameters
    ----------
    nvml
        The module `pynvml`, initialised.
    cards
        What to read.
    """

    def __init__(self, nvml: Any, cards: list[_Card]) -> None:
        self._nvml = nvml
        self._cards = cards
        self._pid = os.getpid()
        self._closed = False
        self.devices = tuple(card.device for card in cards)

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """Power (W) and counter (J) of each GPU: two calls of the driver per GPU at most."""
        if self._closed or os.getpid() != self._pid:
            why = "the sensor is closed" if self._closed else "a forked process does not read the GPU"
            return (), {device.key: why for device in self.devices}
        try:
            return self._read_all()
        except _ShutDownError:
            pass
        try:
            self._nvml.nvmlInit()
            for card in self._cards:
                if not card.lost:
                    card.handle = _or_none(self._nvml, _handle, self._nvml, card) or card.handle
            return self._read_all()
        except (_ShutDownError, self._nvml.NVMLError) as error:
            why = f"NVML was shut down and does not come back ({error})"
            return (), {device.key: why for device in self.devices}

    def shares_of(self, pids: Collection[int]) -> dict[str, float]:
        """What part of each GPU's work some processes did since the last call, 0 to 1.

        By the utilisation of the multiprocessors. A GPU is absent where the driver does not tell (MIG, vGPU,
        WSL), where nobody worked, and where none of the processes is listed: a container may number them
        anew, and then nothing is known of ours.

        Parameters
        ----------
        pids
            Numbers of the processes.
        """
        nvml = self._nvml
        if self._closed or os.getpid() != self._pid:
            return {}
        found = {}
        for card in self._cards:
            if card.lost:
                continue
            told = _or_none(nvml, nvml.nvmlDeviceGetProcessUtilization, card.handle, card.asked_us) or []
            # Some drivers put rows of garbage beside the true ones (Syllo/nvtop, issue 110).
            samples = [sample for sample in told if sample.smUtil <= 100]
            card.asked_us = max((int(sample.timeStamp) for sample in samples), default=card.asked_us)
            total = sum(sample.smUtil for sample in samples)
            if total > 0 and any(sample.pid in pids for sample in samples):
                found[card.device.key] = sum(s.smUtil for s in samples if s.pid in pids) / total
        return found

    def close(self) -> None:
        """Give NVML back. Idempotent; does nothing in a forked process, which has no right to it."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        _shut_down(self._nvml)

    def _read_all(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        readings = []
        missing = {}
        for card in self._cards:
            found = card.lost or self._read(card)
            if isinstance(found, str):
                missing[card.device.key] = found
            else:
                readings.append(found)
        return tuple(readings), missing

    def _read(self, card: _Card) -> Reading | str:
        """A reading, or why there is none."""
        if card.busy is not None:
            return self._model(card, card.busy)
        whys = []
        figures: list[float | None] = []
        for channel in (card.power, card.energy):
            figure, why = self._ask(card, channel)
            if card.lost:
                return card.lost
            figures.append(figure)
            if why:
                whys.append(why)
        watts, counter_j = figures
        if watts is not None:
            watts, why = _plausible(card, watts)
            whys += [why] if why else []
        if counter_j is not None and counter_j <= 0:
            # It counts from when the driver was loaded: 0 is no figure, as it is none for a power.
            counter_j = None
            whys.append("the energy counter shows 0 J")
        if watts is None and counter_j is None:
            return "; ".join(whys) or "the GPU no longer tells power or energy"
        return Reading(
            card.device.key,
            "gpu",
            "measured" if counter_j is None else "counter",
            watts=None if watts is None else watts * card.share,
            counter_j=None if counter_j is None else counter_j * card.share,
        )

    def _model(self, card: _Card, channel: _Channel) -> Reading | str:
        """Utilisation x limit, or why there is no utilisation."""
        busy, why = self._ask(card, channel)
        if busy is None:
            return card.lost or why or "the GPU no longer tells its utilisation"
        watts = card.limit_w * (IDLE_SHARE + (1 - IDLE_SHARE) * min(busy, 1.0))
        return Reading(card.device.key, "gpu", "modelled", watts=watts)

    def _ask(self, card: _Card, channel: _Channel) -> tuple[float | None, str]:
        """A figure in W, J or as a share, or why there is none. What is not supported is not asked again."""
        if not channel.works:
            return None, ""
        nvml = self._nvml
        try:
            return channel.ask(card.handle) / 1000, ""
        except nvml.NVMLError as error:
            code = error.value
            if code == nvml.NVML_ERROR_UNINITIALIZED:
                raise _ShutDownError from error
            if code in {nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND}:
                channel.works = False
            if code in {nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_NO_PERMISSION}:
                card.lost = f"not read any more: {error}"
            return None, f"{channel.name}: {error}"


def look(
    environ: Mapping[str, str],
    *,
    devices_by_pid: bool = False,
    root: Path = Path("/"),
    limit_w: float | None = None,
) -> tuple[NvmlSensor | None, Finding, tuple[str, ...]]:
    """Open NVML and choose the GPUs.

    Parameters
    ----------
    environ
        For CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.
    devices_by_pid
        Only GPUs on which this process or a child of it runs now.
    root
        Where `dev` is, to tell a container without a driver from a machine without a GPU.
    limit_w
        Power limit that the user gives for GPUs that tell no power, W; None takes the driver's.

    Returns
    -------
    sensor, finding, notes
        The sensor is None if there is nothing to read.

    Raises
    ------
    SettingError
        The limit given cannot be one.
    """
    if limit_w is not None and not 0 < limit_w <= MOST_LIMIT_W:
        msg = f"gpu_power_limit is {limit_w:g} W: give that of one GPU, above 0 and up to {MOST_LIMIT_W:g} W."
        raise SettingError(msg)
    nvml, finding = _load(root)
    if finding is not None:
        return None, finding, ()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return None, _no_start(nvml, error), ()
    try:
        sensor, finding, notes = _choose(nvml, environ, devices_by_pid=devices_by_pid, limit_w=limit_w)
    except BaseException as error:
        _shut_down(nvml)
        if not isinstance(error, nvml.NVMLError):
            raise
        return None, _found(f"The driver does not answer: {error}."), ()
    if sensor is None:
        _shut_down(nvml)
    return sensor, finding, notes


def _load(root: Path) -> tuple[Any, Finding | None]:
    """The module, or why there is none."""
    if sys.platform.startswith("linux"):
        # pynvml takes a while to import; where there is no driver it need not be.
        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            if (root / "dev/nvidiactl").exists():
                why = "There is an NVIDIA device, but not the driver's library libnvidia-ml.so.1."
                remedy = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE"
                return None, _found(why, remedy)
            why = "No NVIDIA driver on this machine (libnvidia-ml.so.1)."
            return None, Finding(SENSOR, found=False, readable=False, why=why)
    with warnings.catch_warnings():
        # The abandoned package `pynvml` warns on import, by way of a hook, even where NVIDIA's is used.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            import pynvml  # noqa: PLC0415 - only where there is a driver
        except ImportError as error:
            return None, _found(f"pynvml cannot be imported: {error}.", "python -m pip install nvidia-ml-py")
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        remedy = "python -m pip uninstall -y pynvml && python -m pip install --force-reinstall nvidia-ml-py"
        return None, _found(_HIDDEN, remedy)
    return pynvml, None


def _no_start(nvml: Any, error: Any) -> Finding:
    """Why NVML does not start, and what to do."""
    if error.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        why = "No NVIDIA driver on this machine."
        return Finding(SENSOR, found=False, readable=False, why=why)
    remedy = {
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: "sudo modprobe nvidia",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "sudo reboot",
        nvml.NVML_ERROR_NO_PERMISSION: "sudo chmod a+rw /dev/nvidia*",
    }.get(error.value, "nvidia-smi")
    return _found(f"NVML does not start: {error}.", remedy)


def _found(why: str, remedy: str = "", *, readable: bool = False) -> Finding:
    return Finding(SENSOR, found=True, readable=readable, why=why, remedy=remedy)


def _choose(
    nvml: Any, environ: Mapping[str, str], *, devices_by_pid: bool, limit_w: float | None
) -> tuple[NvmlSensor | None, Finding, tuple[str, ...]]:
    count = nvml.nvmlDeviceGetCount()
    if not count:
        why = "The NVIDIA driver runs, but shows no GPU."
        return None, Finding(SENSOR, found=False, readable=False, why=why), ()
    handles = [_or_none(nvml, nvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
    gpus = [_describe(nvml, index, handle) for index, handle in enumerate(handles)]
    value = environ.get("CUDA_VISIBLE_DEVICES")
    places = visible_gpus(value, gpus)
    if not places:
        why = (
            "all are divided without a slice"
            if value is None
            else f"CUDA_VISIBLE_DEVICES={value!r} shows none"
        )
        return None, _found(f"{count} GPU(s), but {why} to this process.", readable=True), ()
    notes = [note] if (note := order_note(environ, gpus)) else []
    if devices_by_pid:
        places, note = _by_pid(nvml, places, handles)
        notes += [note] if note else []
    cards = []
    silent = []
    for place in places:
        gpu, handle = gpus[place.gpu], handles[place.gpu]
        card = None
        if handle is not None:
            card = _card(nvml, place, gpu, handle) or _modelled(nvml, place, gpu, handle, limit_w)
        if card is None:
            silent.append(gpu.name)
        else:
            cards.append(card)
    notes += _remarks(cards, silent)
    if not cards:
        return None, _found(f"{', '.join(silent)}: tells neither power nor {_NOR}.", _GIVE), tuple(notes)
    what = ", ".join(f"{card.device.name} ({card.device.detail})" for card in cards)
    not_shown = count - len({place.gpu for place in places})
    rest = f" {not_shown} more not counted." if not_shown else ""
    return NvmlSensor(nvml, cards), _found(f"{what}.{rest}", readable=True), tuple(notes)


def _remarks(cards: list[_Card], silent: list[str]) -> list[str]:
    """What is to be said of GPUs that tell nothing, no power, or more than their own."""
    notes = []
    if silent:
        notes.append(f"Tells neither power nor {_NOR}, so it is not counted: {', '.join(silent)}.")
    if guessed := [card.device.name for card in cards if card.busy]:
        notes.append(f"Tells no power, so utilisation x power limit stands for it: {', '.join(guessed)}.")
    if any("GH200" in card.device.name for card in cards):
        notes.append(
            "A GH200 may count its CPU and memory in the figure of its GPU, which are then counted twice."
        )
    return notes


def _describe(nvml: Any, index: int, handle: Any) -> Gpu:
    """A GPU by name, UUID and slices. What it does not tell is made up from its number."""
    if handle is None:
        return Gpu(uuid=f"index-{index}", name=f"NVIDIA GPU {index}")
    mode = _or_none(nvml, nvml.nvmlDeviceGetMigMode, handle)
    mig = mode is not None and mode[0] == nvml.NVML_DEVICE_MIG_ENABLE
    return Gpu(
        uuid=_or_none(nvml, nvml.nvmlDeviceGetUUID, handle) or f"index-{index}",
        name=_or_none(nvml, nvml.nvmlDeviceGetName, handle) or f"NVIDIA GPU {index}",
        mig=mig,
        slices=tuple(part for part, _ in _slices(nvml, handle)) if mig else (),
    )


def _slices(nvml: Any, handle: Any) -> list[tuple[Slice, Any]]:
    """The MIG slices of a GPU and their handles."""
    found = []
    for number in range(_or_none(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _or_none(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if part is not None:  # places between 0 and the most may be empty
            uuid = _or_none(nvml, nvml.nvmlDeviceGetUUID, part) or f"MIG-{number}"
            gpu_instance = _or_none(nvml, nvml.nvmlDeviceGetGpuInstanceId, part) or 0
            compute_instance = _or_none(nvml, nvml.nvmlDeviceGetComputeInstanceId, part) or 0
            found.append((Slice(uuid, gpu_instance, compute_instance), part))
    return found


def _card(nvml: Any, place: Visible, gpu: Gpu, handle: Any) -> _Card | None:
    """A GPU or slice with what it answers; None if it answers nothing."""
    power = _Channel("power", nvml.nvmlDeviceGetPowerUsage)
    energy = _Channel("energy", nvml.nvmlDeviceGetTotalEnergyConsumption)
    for channel in (power, energy):
        try:
            channel.ask(handle)
        except nvml.NVMLError as error:  # noqa: PERF203 - each channel is probed on its own
            # A driver that is busy now will answer later; anything else will stay as it is.
            channel.works = error.value in {nvml.NVML_ERROR_TIMEOUT, nvml.NVML_ERROR_UNKNOWN}
    if not (power.works or energy.works):
        return None
    limit_mw = _or_none(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    limit_w = limit_mw / 1000 if limit_mw else UNKNOWN_LIMIT_W
    share = 1.0
    uuid, name, band = gpu.uuid, gpu.name, BAND
    detail = "NVML energy counter" if energy.works else "NVML power gauge"
    if place.slice is not None:
        part, part_handle = _slices(nvml, handle)[place.slice]
        share, how = _share(nvml, handle, part_handle)
        uuid, name = part.uuid, f"{gpu.name} MIG slice {part.gpu_instance}/{part.compute_instance}"
        detail = f"estimate: {how} of the whole GPU's {detail}"
        band = (BAND[0] * SLICE_BAND[0], BAND[1] * min(SLICE_BAND[1], 1 / share))
    device = Device(
        key=f"gpu:{uuid}",
        component="gpu",
        name=name,
        method="counter" if energy.works else "measured",
        detail=detail,
        low=band[0],
        high=band[1],
        max_power_w=PLAUSIBLE * limit_w * share,
    )
    return _Card(device, place, gpu.uuid, handle, share, limit_w, power, energy)


def _modelled(nvml: Any, place: Visible, gpu: Gpu, handle: Any, limit_w: float | None) -> _Card | None:
    """A GPU that tells no power, by its utilisation and limit; None if it lacks one of them.

    The utilisation of a divided GPU is not told, so a slice has no model.
    """
    if place.slice is not None or _or_none(nvml, nvml.nvmlDeviceGetUtilizationRates, handle) is None:
        return None
    limit, whose = limit_w, " given by you"
    if limit is None:
        told = _or_none(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle) or _or_none(
            nvml, nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle
        )
        if not told:
            return None
        limit, whose = told / 1000, ""
    device = Device(
        key=f"gpu:{gpu.uuid}",
        component="gpu",
        name=gpu.name,
        method="modelled",
        detail=f"model: utilisation x limit of {limit:g} W{whose}, of which {IDLE_SHARE:.0%} idle",
        low=MODEL_BAND[0],
        high=MODEL_BAND[1],
    )
    power = _Channel("power", nvml.nvmlDeviceGetPowerUsage, works=False)
    energy = _Channel("energy", nvml.nvmlDeviceGetTotalEnergyConsumption, works=False)
    busy = _Channel("utilisation", lambda asked: 10 * int(nvml.nvmlDeviceGetUtilizationRates(asked).gpu))
    return _Card(device, place, gpu.uuid, handle, 1.0, limit, power, energy, busy)


def _share(nvml: Any, handle: Any, part: Any) -> tuple[float, str]:
    """A slice's share of its GPU's processors, and the same in words."""
    attributes = _or_none(nvml, nvml.nvmlDeviceGetAttributes, part)
    mine = 0 if attributes is None else attributes.multiprocessorCount
    # The largest slice that the GPU can have is all that slices can use of it: 7 of 7, or 4 of 4 (A30).
    for profile in (nvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE, nvml.NVML_GPU_INSTANCE_PROFILE_4_SLICE):
        whole = _or_none(nvml, nvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, profile)
        if whole is not None and 0 < mine <= whole.multiprocessorCount:
            return mine / whole.multiprocessorCount, f"{mine} of {whole.multiprocessorCount} multiprocessors"
    sevenths = 0 if attributes is None else attributes.gpuInstanceSliceCount
    if 0 < sevenths <= 7:
        return sevenths / 7, f"{sevenths} of 7 slices"
    return 1.0, "all (its share is not told)"


def _by_pid(nvml: Any, places: tuple[Visible, ...], handles: list[Any]) -> tuple[tuple[Visible, ...], str]:
    """The GPUs on which this process or a child of it runs, or all of them and a note that says why."""
    import psutil  # noqa: PLC0415 - few ask for it

    ours = {os.getpid()}
    with contextlib.suppress(psutil.Error):
        ours |= {child.pid for child in psutil.Process().children(recursive=True)}
    used = []
    for place in places:
        running = _or_none(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handles[place.gpu]) or []
        if any(process.pid in ours for process in running):
            used.append(place)
    if used:
        return tuple(used), ""
    return places, (
        "devices_by_pid: no GPU lists this process (it uses none yet, or a container hides process numbers), "
        "so all visible GPUs are counted."
    )


def _plausible(card: _Card, watts: float) -> tuple[float | None, str]:
    """The power, or why it is none."""
    if watts == 0:
        card.zeros += 1
        again = f", {card.zeros} times in a row" if card.zeros >= ZEROS else ""
        return None, f"power: 0 W{again}, which no running GPU draws"
    card.zeros = 0
    if not 0 < watts <= PLAUSIBLE * card.limit_w:
        return None, f"power: {watts:g} W cannot be, with a limit of {card.limit_w:g} W"
    return watts, ""


def _handle(nvml: Any, card: _Card) -> Any:
    """The handle of a GPU that was seen before. Its number may have changed, its UUID has not."""
    if card.uuid.startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(card.uuid)
    return nvml.nvmlDeviceGetHandleByIndex(card.place.gpu)


def _or_none(nvml: Any, ask: Callable[..., Any], *arguments: Any) -> Any:
    """An answer, or None if this driver or GPU gives none."""
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None


def _shut_down(nvml: Any) -> None:
    """Give one initialisation back."""
    with contextlib.suppress(nvml.NVMLError):  # somebody else may have given ours back already
        nvml.nvmlShutdown()
