"""A process and the machine it runs on are looked at now and then; a run's part in the machine goes out."""

from __future__ import annotations

from collections.abc import Iterable

from .attribution import ALLOTTED, BUSY, MEMORY, attribute
from .records import Attribution, Run
from .sensors import LoadSensor, Sensor, SharedSensor
from .sensors.usage import Machine, Usage, look_at_machine, read_usage

EVERY_S = 60.0
"""What the process tree uses is looked at so often, and at the end: that takes long, and it is cumulative."""

SHARES_EVERY_S = 10.0
"""Where GPUs are asked whose work they do: a driver keeps the answers of some seconds only."""


class MachineUse:
    """What a run's process tree uses of its machine.

    Parameters
    ----------
    sensors
        Those that tell whose work their devices do are asked, if `shares` says so.
    shares
        Whether the part of the process is asked for at all: then GPUs are asked too, which takes longer.
    cpu_tdp_w
        TDP of one socket that the user gave, W.
    """

    def __init__(self, sensors: Iterable[Sensor], *, shares: bool, cpu_tdp_w: float | None) -> None:
        sensors = list(sensors)
        self._sensors = [each for each in sensors if shares and isinstance(each, SharedSensor)]
        self._load = next((each for each in sensors if isinstance(each, LoadSensor)), None)
        self._charged_s: list[float] = []
        self._shares = shares
        self._tdp_w = cpu_tdp_w
        self._machine: Machine | None = None
        self._used: list[tuple[float, Usage]] = []
        self._due_s = float("-inf")
        self._peak_memory_gb = 0.0
        self._gpu_shares: dict[str, list[float]] = {}

    def start(self) -> None:
        """Count from the next look on."""
        self._used.clear()
        self._charged_s.clear()
        self._due_s = float("-inf")

    def look(self, at_s: float, *, last: bool) -> None:
        """Look if it is time, in the sampler's thread. May raise what the system does, then looks no more.

        Parameters
        ----------
        at_s
            Now, monotonic seconds.
        last
            Whether the run is at its end: then it is always time.
        """
        if at_s < self._due_s and not (last and self._due_s < float("inf")):
            return
        self._due_s = float("inf")
        self._machine = self._machine or look_at_machine()
        now = read_usage()
        self._due_s = at_s + (SHARES_EVERY_S if self._sensors else EVERY_S)
        if now is None:
            return
        for sensor in self._sensors:
            for device, share in sensor.shares_of(now.pids).items():
                self._gpu_shares.setdefault(device, []).append(share)
        self._peak_memory_gb = max(self._peak_memory_gb, now.tree_memory_gb)
        self._used[1:] = [(at_s, now)]
        self._charged_s[1:] = [0.0 if self._load is None else self._load.busy_s]

    def known(self) -> dict[str, float]:
        """What `Run.machine` holds: the machine, and the run's part in it."""
        machine, used = self._machine, self._used
        if machine is None:
            return {}
        known = {
            "cpu_threads": float(machine.cpus),
            "cpu_allotted": machine.allotted_cpus,
            "cpu_is_arm": float(machine.is_arm),
            "memory_gb": machine.memory_gb,
            "memory_allotted_gb": machine.allotted_memory_gb,
        }
        if machine.sockets is not None:
            known["cpu_sockets"] = float(machine.sockets)
        tdp_w = self._tdp_w or machine.tdp_w
        if tdp_w is not None:
            known["cpu_tdp_w"] = tdp_w
        if len(used) == 2 and used[1][0] > used[0][0]:
            (first_s, first), (last_s, last) = used
            busy_s = max(0.0, last.busy_s - first.busy_s)
            known["cpu_load"] = min(1.0, busy_s / ((last_s - first_s) * machine.cpus))
            known["process_cpu_s"] = max(0.0, last.tree_cpu_s - first.tree_cpu_s)
            known["machine_cpu_s"] = max(busy_s, known["process_cpu_s"])
            known["process_memory_gb"] = self._peak_memory_gb
            known["memory_used_gb"] = last.memory_used_gb
        shares = self._mean_gpu_shares()
        if shares:
            known["process_gpu_share"] = sum(shares.values()) / len(shares)
        return known

    def part_of(self, run: Run) -> Attribution | None:
        """The part of a run's energy that the process tree used; None if not asked for or not known."""
        known = run.machine
        if not self._shares or not known.get("machine_cpu_s") or not run.energy_by_device_j:
            return None
        shares = {
            BUSY: known["process_cpu_s"] / known["machine_cpu_s"],
            ALLOTTED: min(1.0, known["cpu_allotted"] / known["cpu_threads"]),
            # Memory without a meter is counted by what is allotted, and this is its share.
            MEMORY: min(1.0, known["process_memory_gb"] / known["memory_allotted_gb"]),
            **self._mean_gpu_shares(),
        }
        if self._load is not None:
            # The model charges what is allotted alone, with the load on it: neither may be taken twice.
            charged_s = self._charged_s[-1] - self._charged_s[0]
            shares[BUSY] = min(1.0, known["process_cpu_s"] / charged_s) if charged_s > 0 else 1.0
            shares[ALLOTTED] = 1.0
        covered_s = run.covered_s
        modelled_j = {
            device.key: device.idle_w * covered_s.get(device.key, 0.0)
            for device in run.devices
            if device.idle_w is not None
        }
        # A model knows what it charges idling; a baseline has in it what others did meanwhile.
        return attribute(run.devices, run.energy_by_device_j, run.idle_j | modelled_j, shares)

    def _mean_gpu_shares(self) -> dict[str, float]:
        return {device: sum(shares) / len(shares) for device, shares in self._gpu_shares.items()}
