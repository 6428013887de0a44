"""Energy of a machine and shares of its use come in; the part that one process tree used goes out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .records import Attribution, Device

BUSY, ALLOTTED, MEMORY = "of busy CPU time", "of the CPUs", "of the memory"


def attribute(
    devices: Sequence[Device],
    energy_j: Mapping[str, float],
    idle_j: Mapping[str, float],
    shares: Mapping[str, float],
) -> Attribution:
    """Attribute the energy of a run to the process tree that ran it.

    What the CPU used beyond idling goes by the share of busy CPU time, as in Experiment-Impact-Tracker; what
    it uses idling by the share of CPUs that the tree may use; memory by the share of it; a GPU by the share
    of its work, where that is told.

    Parameters
    ----------
    devices
        Of the run.
    energy_j
        Device key to joules over the run.
    idle_j
        Device key to the joules that it would have used idling for as long; absent where that is not known,
        and then all of it counts as dynamic.
    shares
        `BUSY`, `ALLOTTED`, `MEMORY` to shares of 0 to 1, and a GPU's key to the share of its work.
    """
    parts: dict[str, float] = {}
    left_out: list[str] = []
    assumed: list[str] = []
    for device in devices:
        used_j = energy_j.get(device.key)
        if used_j is None:
            continue
        part_j: float | None = None
        if device.component == "cpu" and BUSY in shares:
            idling_j = min(used_j, idle_j.get(device.key, 0.0))
            if device.key not in idle_j:
                assumed.append(f"all of {device.name} counts as dynamic, since its idle power is not known")
            part_j = (used_j - idling_j) * shares[BUSY] + idling_j * shares.get(ALLOTTED, 1.0)
        elif device.component == "ram" and MEMORY in shares:
            part_j = used_j * shares[MEMORY]
        elif device.component == "gpu" and device.key in shares:
            part_j = used_j * shares[device.key]
        if part_j is None:
            left_out.append(device.name)
        else:
            parts[device.component] = parts.get(device.component, 0.0) + part_j
    how = ", ".join(
        f"{share:.0%} {name}" for name, share in shares.items() if name in {BUSY, ALLOTTED, MEMORY}
    )
    if left_out:
        assumed.append(f"{', '.join(dict.fromkeys(left_out))} left out: nothing tells whose work it did")
    return Attribution(MappingProxyType(parts), "; ".join(filter(None, (how, *assumed))))
