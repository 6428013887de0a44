"""What a sensor is: something with devices that can be read at an instant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ct_notebook.records import Device, Finding, Reading


class Sensor(Protocol):
    """One source of readings.

    Opening happens in the constructor or a class method of the implementation; it raises `SensorError`
    if the source is absent or unreadable. A sensor keeps its handles open until `close`.
    """

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices it reads, fixed for its life."""
        ...

    def read(self) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
        """Read every device once.

        Returns
        -------
        readings, missing
            A device is in exactly one of them: read, or its key with the reason. May raise anything if
            the whole sensor fails: the sampler then reports all of its devices as missing.
        """
        ...

    def close(self) -> None:
        """Let go of files and handles. Idempotent, never raises."""
        ...


@runtime_checkable
class SharedSensor(Protocol):
    """A sensor that tells whose work its devices do."""

    def shares_of(self, pids: Collection[int]) -> dict[str, float]:
        """Device key to the part of its work that some processes did since the last call, 0 to 1.

        A device of which that is not known is absent.
        """
        ...


@runtime_checkable
class LoadSensor(Protocol):
    """A sensor that models a CPU by the load of what this process was given of it, such as a quota."""

    @property
    def busy_s(self) -> float:
        """CPU seconds for which what was given was busy, with anything, since the sensor was opened."""
        ...


@dataclass(frozen=True, slots=True)
class Discovery:
    """What `discover` found: the sensors to read, and what is to be said about each that was looked for."""

    sensors: tuple[Sensor, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices of all sensors."""
        return tuple(device for sensor in self.sensors for device in sensor.devices)
