"""CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

from __future__ import annotations

import pytest

from ct_notebook.sensors.visible_gpus import Gpu, Slice, Visible, order_note, visible_gpus

FOUR = (
    Gpu("GPU-aa11-0"),
    Gpu("GPU-aa22-1"),
    Gpu("GPU-bb33-2"),
    Gpu("GPU-cc44-3"),
)

DIVIDED = (
    Gpu("GPU-aa11-0"),
    Gpu("GPU-bb22-1", mig=True, slices=(Slice("MIG-55", 1, 0), Slice("MIG-66", 2, 0))),
    Gpu("GPU-cc33-2", mig=True, slices=(Slice("MIG-77", 1, 0),)),
    Gpu("GPU-dd44-3", mig=True),
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-aa22-1", [1]),
        ("GPU-bb", [2]),
        ("GPU-cc,GPU-aa11", [3, 0]),
        ("GPU-aa", []),  # means two
        ("0,GPU-aa,1", [0]),
        ("gpu-bb33-2", []),
        ("bb33-2", []),
        ("MIG-55", []),
        ("0,0", []),
        ("1,GPU-aa22", []),
        ("0,1,2,1", []),
        ("2,-1,3", [2]),
        ("0,2,-1,1", [0, 2]),
        ("0,-1,0", [0]),  # nothing after an invalid entry is looked at
        ("1,4,2", [1]),
        ("1,,2", [1]),
        ("3,x", [3]),
        ("1.0", []),
        ("²", []),
        (" 1 ", [1]),
        ("3, 1", [3, 1]),
        ("0,1,2,3", [0, 1, 2, 3]),
    ],
)
def test_a_list_shows_what_cuda_shows(value: str | None, shown: list[int]) -> None:
    assert visible_gpus(value, FOUR) == tuple(Visible(index) for index in shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("MIG-66", [Visible(1, 1)]),
        ("MIG-6", [Visible(1, 1)]),
        ("MIG-", []),  # means three
        ("MIG-GPU-bb22-1/2/0", [Visible(1, 1)]),
        ("MIG-GPU-cc33-2/1/0", [Visible(2, 0)]),
        ("MIG-GPU-cc33-2/9/0", []),
        ("MIG-GPU-cc33-2", []),
        ("MIG-55,MIG-77", [Visible(1, 0)]),  # a process sees one slice at most
        ("MIG-55,MIG-55", []),
        ("0,MIG-77", [Visible(0), Visible(2, 0)]),
        ("1", [Visible(1, 0)]),  # a divided GPU stands for its first slice
        ("GPU-bb22-1", [Visible(1, 0)]),
        ("3", []),  # divided, but without a slice
        ("0,3,1", [Visible(0)]),
        (None, [Visible(0), Visible(1, 0)]),
    ],
)
def test_mig_slices_are_found_by_either_name(value: str | None, shown: list[Visible]) -> None:
    assert visible_gpus(value, DIVIDED) == tuple(shown)


def test_a_machine_without_gpus_shows_none() -> None:
    assert visible_gpus(None, ()) == ()
    assert visible_gpus("0", ()) == ()


MIXED = (Gpu("GPU-a", "T4"), Gpu("GPU-b", "A100"))
EQUAL = (Gpu("GPU-a", "T4"), Gpu("GPU-b", "T4"))


@pytest.mark.parametrize(
    ("gpus", "environ", "told"),
    [
        (MIXED, {"CUDA_VISIBLE_DEVICES": "0"}, True),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, True),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, False),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-a"}, False),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "1,0"}, False),
        (MIXED, {"CUDA_VISIBLE_DEVICES": ""}, False),
        (MIXED, {}, False),
        (EQUAL, {"CUDA_VISIBLE_DEVICES": "0"}, False),
    ],
)
def test_numbers_that_may_mean_another_gpu_are_told(
    gpus: tuple[Gpu, ...], environ: dict[str, str], *, told: bool
) -> None:
    note = order_note(environ, gpus)
    assert bool(note) is told
    assert not told or "CUDA_DEVICE_ORDER=PCI_BUS_ID" in note
