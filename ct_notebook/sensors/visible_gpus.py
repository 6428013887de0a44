"""CUDA_VISIBLE_DEVICES and the GPUs of a machine come in; those that CUDA would show go out. Pure.

The rules are those of the CUDA C++ Programming Guide (environment variables) and of the MIG User Guide
("CUDA device enumeration"): an unset variable shows all, an invalid entry ends the list, a process sees at
most one MIG slice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_OLD_SLICE = re.compile(r"MIG-(?P<gpu>GPU-[^/]*)/(?P<gpu_instance>\d+)/(?P<compute_instance>\d+)")


@dataclass(frozen=True, slots=True)
class Slice:
    """A MIG slice: its UUID (`MIG-…`) and the numbers by which older drivers name it."""

    uuid: str
    gpu_instance: int = 0
    compute_instance: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVML lists it.

    Attributes
    ----------
    uuid
        `GPU-…`.
    name
        The model.
    mig
        Whether it is divided into slices: it can then be used by them only.
    slices
        The slices there are, in NVML's order.
    """

    uuid: str
    name: str = ""
    mig: bool = False
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Visible:
    """What CUDA shows: a GPU by its place in NVML's order; a slice of it, or None for the whole."""

    gpu: int
    slice: int | None = None


def visible_gpus(value: str | None, gpus: Sequence[Gpu]) -> tuple[Visible, ...]:
    """What CUDA would show of a machine.

    Parameters
    ----------
    value
        CUDA_VISIBLE_DEVICES; None if it is unset.
    gpus
        All GPUs in the order of their PCI addresses, as NVML has them.

    Returns
    -------
    visible
        In the order in which CUDA numbers them. Empty if an entry is named twice: CUDA then shows none.
    """
    if value is None:
        named = [place for index in range(len(gpus)) if (place := _whole(index, gpus)) is not None]
    else:
        named = []
        for entry in value.split(","):
            place = _find(entry.strip(), gpus)
            if place is None:
                break  # CUDA reads no further than the first entry that it cannot resolve
            if place in named:
                return ()
            named.append(place)
    slices = [place for place in named if place.slice is not None]
    return tuple(place for place in named if place.slice is None or place == slices[0])


def order_note(environ: Mapping[str, str], gpus: Sequence[Gpu]) -> str:
    """What to say if numbers in CUDA_VISIBLE_DEVICES may mean other GPUs than NVML's; "" if they cannot.

    CUDA numbers the fastest GPU first unless CUDA_DEVICE_ORDER is PCI_BUS_ID; NVML goes by PCI address.
    """
    value = environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or environ.get("CUDA_DEVICE_ORDER", "").strip() == "PCI_BUS_ID":
        return ""
    shown = visible_gpus(value, gpus)
    by_number = any(entry.strip().isdigit() for entry in value.split(",")[: len(shown)])
    if (
        not by_number
        or len({gpu.name for gpu in gpus}) < 2
        or len({place.gpu for place in shown}) == len(gpus)
    ):
        return ""
    return (
        f"The GPUs differ, and CUDA_VISIBLE_DEVICES={value} names them by number: the numbers are taken in "
        "the order of the PCI bus. CUDA counts the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID is set."
    )


def _find(entry: str, gpus: Sequence[Gpu]) -> Visible | None:
    """The device that one entry means; None if it means none, or more than one."""
    if entry.isascii() and entry.isdigit():
        index = int(entry)
        return _whole(index, gpus) if index < len(gpus) else None
    if entry.startswith("GPU-"):
        found = [index for index, gpu in enumerate(gpus) if gpu.uuid.startswith(entry)]
        return _whole(found[0], gpus) if len(found) == 1 else None
    if entry.startswith("MIG-"):
        old = _OLD_SLICE.fullmatch(entry)
        places = [
            Visible(index, number)
            for index, gpu in enumerate(gpus)
            for number, part in enumerate(gpu.slices)
            if part.uuid.startswith(entry) or (old is not None and _is_old(old, gpu, part))
        ]
        return places[0] if len(places) == 1 else None
    return None


def _is_old(named: re.Match[str], gpu: Gpu, part: Slice) -> bool:
    return gpu.uuid.startswith(named["gpu"]) and (part.gpu_instance, part.compute_instance) == (
        int(named["gpu_instance"]),
        int(named["compute_instance"]),
    )


def _whole(index: int, gpus: Sequence[Gpu]) -> Visible | None:
    """A GPU named as such. Of one that is divided, CUDA takes the first slice."""
    gpu = gpus[index]
    if not gpu.mig:
        return Visible(index)
    return Visible(index, 0) if gpu.slices else None
