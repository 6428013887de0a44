"""Settings of simulated hardware come in; steady readings by the user's word go out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ct_notebook.errors import SettingError
from ct_notebook.records import Device, Reading

NONE_MISSING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Hardware that is not here, as carbontracker's `sim_*` parameters describe it.

    Attributes
    ----------
    cpu, cpu_tdp_w, cpu_util
        Name, thermal design power (W) and utilisation (0 to 1) of a CPU. It stands for CPU and memory.
    gpu, gpu_watts, gpu_util
        Name, power at full load (W) and utilisation (0 to 1) of a GPU.

    Raises
    ------
    SettingError
        A name without a power, a power that is not above 0, a utilisation outside 0 to 1.
    """

    cpu: str | None = None
    cpu_tdp_w: float | None = None
    cpu_util: float = 0.5
    gpu: str | None = None
    gpu_watts: float | None = None
    gpu_util: float = 0.5

    def __post_init__(self) -> None:
        for what, name, power, power_w, util in (
            ("cpu", self.cpu, "cpu_tdp", self.cpu_tdp_w, self.cpu_util),
            ("gpu", self.gpu, "gpu_watts", self.gpu_watts, self.gpu_util),
        ):
            if name is None:
                continue
            if power_w is None or not 0 < power_w < float("inf"):
                msg = f"sim_{what}={name!r} needs sim_{power}, a power in watts above 0, not {power_w!r}."
                raise SettingError(msg)
            if not 0 <= util <= 1:
                msg = f"sim_{what}_util must be a share between 0 and 1, not {util!r}."
                raise SettingError(msg)


class SimulatedSensor:
    """A CPU or GPU that draws power x utilisation all the time, carbontracker's rule.

    Parameters
    ----------
    component
        `cpu` or `gpu`.
    name
        What the user calls it.
    full_w
        Its power at full load, W.
    util
        Its utilisation, 0 to 1.
    """

    def __init__(self, component: str, name: str, full_w: float, util: float) -> None:
        device = Device(
            key=f"{component}:simulated",
            component=component,
            name=name,
            method="user",
            detail=f"simulated: {full_w:g} W x {util:g} utilisation",
        )
        self.devices = (device,)
        self._readings = (Reading(device.key, component, "user", watts=full_w * util),)

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """The same power every time."""
        return self._readings, NONE_MISSING

    def close(self) -> None:
        """Nothing is held."""
