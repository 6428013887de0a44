"""How much memory is allocated comes in; a steady power by W per GB goes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ct_notebook.records import Device, Finding, Reading

from . import cgroup
from .simulated import NONE_MISSING

SENSOR = "RAM model"

W_PER_GB = 0.375
"""Power of memory, W per GB (2**30 bytes): 3 W per 8 GB, the figure of codecarbon 2; Green Algorithms has
0.3725, Cloud Carbon Footprint 0.392."""

LOW, HIGH = 0.5, 1.6
"""RAPL `dram` of eleven cloud servers (turbostress, CC0): 0.19 W/GB idle (median), 0.6 W/GB and more under
memory stress, as shares of `W_PER_GB`."""


class RamModel:
    """Memory at a constant power.

    Parameters
    ----------
    size_bytes
        What is allocated to this machine or container.
    """

    def __init__(self, size_bytes: int) -> None:
        size_gb = size_bytes / 2**30
        device = Device(
            key="ram",
            component="ram",
            name=f"RAM ({size_gb:.3g} GB)",
            method="constant",
            detail=f"constant: {size_gb:.3g} GB allocated x {W_PER_GB:g} W/GB",
            low=LOW,
            high=HIGH,
        )
        self.devices = (device,)
        self._readings = (Reading("ram", "ram", "constant", watts=size_gb * W_PER_GB),)

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """The same power every time."""
        return self._readings, NONE_MISSING

    def close(self) -> None:
        """Nothing is held."""


def look(root: Path = Path("/")) -> tuple[RamModel | None, Finding]:
    """Find out how much memory there is.

    Parameters
    ----------
    root
        Where `proc` and `sys` are.

    Returns
    -------
    sensor, finding
        The sensor is None if the size cannot be told.
    """
    total = _total_bytes(root)
    limit = cgroup.memory_limit_bytes(root)
    sizes = [size for size in (total, limit) if size]
    # A limit of 2**63 is how an old control group says that there is none.
    if total is None and (limit is None or limit >= 2**60):
        return None, Finding(SENSOR, found=False, readable=False, why="The size of the memory is unknown.")
    sensor = RamModel(min(sizes))
    return sensor, Finding(SENSOR, found=True, readable=True, why=f"{sensor.devices[0].detail}.")


def _total_bytes(root: Path) -> int | None:
    try:
        text = (root / "proc/meminfo").read_text("ascii", "replace")
    except OSError:
        if root != Path("/"):
            return None
    else:
        for line in text.splitlines():
            if line.startswith("MemTotal:"):
                try:
                    return int(line.split()[1]) * 1024 or None
                except (ValueError, IndexError):
                    return None
        return None
    try:
        import psutil  # noqa: PLC0415 - only where there is no /proc

        return int(psutil.virtual_memory().total)
    except Exception:  # an exotic system: then there is no figure
        return None
