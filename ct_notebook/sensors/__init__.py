"""The machine comes in; the sensors to read, and what was found of each, go out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ct_notebook.errors import CtNotebookError
from ct_notebook.records import Finding

from .base import Discovery, LoadSensor, Sensor, SharedSensor
from .simulated import Simulated, SimulatedSensor

__all__ = ["Discovery", "LoadSensor", "Sensor", "SharedSensor", "Simulated", "discover"]

RAPL_DIR = "CT_NOTEBOOK_RAPL_DIR"
"""Environment variable: where the powercap tree is mounted, for containers that hide it."""


def discover(
    *,
    components: frozenset[str] = frozenset({"gpu", "cpu", "ram"}),
    devices_by_pid: bool = False,
    simulated: Simulated | None = None,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    cpu_tdp_w: float | None = None,
    gpu_limit_w: float | None = None,
) -> Discovery:
    """Look for everything that tells the power of this machine, and open what can be read.

    A simulated CPU stands for CPU and memory of the machine, a simulated GPU for all its GPUs. Memory is
    counted by a meter if the CPU has one for it, else by its size.

    Parameters
    ----------
    components
        Out of `gpu`, `cpu`, `ram`.
    devices_by_pid
        Only GPUs on which this process runs.
    simulated
        Hardware to make up instead.
    environ
        The environment; the process's own if None.
    root
        Where `proc`, `sys` and `dev` are.
    cpu_tdp_w
        TDP of one socket that the user gives, for a CPU without a meter; on a virtual machine, of what it was
        given. W.
    gpu_limit_w
        Power limit that the user gives for GPUs that tell no power, W.

    Returns
    -------
    discovery
        Never an error for hardware that is absent or locked: its finding says why, and what mends it.

    Raises
    ------
    SettingError
        A TDP or limit given cannot be one.
    CtNotebookError
        A table of ct_notebook is missing or damaged.
    """
    environ = os.environ if environ is None else environ
    simulated = simulated or Simulated()
    sensors: list[Sensor] = []
    findings: list[Finding] = []
    notes: list[str] = []
    try:
        if "gpu" in components:
            if simulated.gpu is not None and simulated.gpu_watts is not None:
                gpu = SimulatedSensor("gpu", simulated.gpu, simulated.gpu_watts, simulated.gpu_util)
                sensors.append(gpu)
                findings.append(_made_up("GPU", gpu))
            else:
                notes += _gpus(
                    environ,
                    root,
                    sensors,
                    findings,
                    devices_by_pid=devices_by_pid,
                    limit_w=gpu_limit_w,
                )
        if simulated.cpu is not None and simulated.cpu_tdp_w is not None:
            if "cpu" in components:
                cpu = SimulatedSensor("cpu", simulated.cpu, simulated.cpu_tdp_w, simulated.cpu_util)
                sensors.append(cpu)
                findings.append(_made_up("CPU", cpu))
        else:
            has_dram = False
            if "cpu" in components:
                has_dram = _cpus(environ, root, sensors, findings, tdp_w=cpu_tdp_w)
            if "ram" in components:
                _memory(root, sensors, findings, has_dram=has_dram)
    except CtNotebookError:
        for sensor in sensors:
            sensor.close()
        raise
    return Discovery(tuple(sensors), tuple(findings), tuple(notes))


def _gpus(
    environ: Mapping[str, str],
    root: Path,
    sensors: list[Sensor],
    findings: list[Finding],
    *,
    devices_by_pid: bool,
    limit_w: float | None,
) -> list[str]:
    """Add the GPUs. What else is to be said of them is returned."""
    from . import nvml  # noqa: PLC0415 - loads ctypes and, where there is a driver, pynvml

    sensor = None
    notes: list[str] = []
    try:
        sensor, finding, remarks = nvml.look(
            environ, devices_by_pid=devices_by_pid, root=root, limit_w=limit_w
        )
        notes += remarks
    except CtNotebookError:
        raise
    except Exception as error:  # a broken driver must not keep the rest from being measured
        finding = Finding(nvml.SENSOR, found=True, readable=False, why=_failed(error))
    findings.append(finding)
    if sensor is not None:
        sensors.append(sensor)
    if (root / "dev/kfd").exists():
        why = "There is an AMD GPU, and ct_notebook cannot read those: its energy is left out."
        findings.append(Finding("AMD GPU", found=True, readable=False, why=why))
        if sensor is None:  # where another GPU is read, this one is most likely the processor's own
            notes.append(why)
    return notes


def _cpus(
    environ: Mapping[str, str],
    root: Path,
    sensors: list[Sensor],
    findings: list[Finding],
    *,
    tdp_w: float | None,
) -> bool:
    """Add the CPU's meter, or the model of its load. True if memory has a meter."""
    from . import cpu_load, cpu_model, rapl  # noqa: PLC0415 - not every run looks at the CPU

    cpu_model.check_tdp(tdp_w)
    has_package = has_dram = False
    base = Path(environ[RAPL_DIR]) if environ.get(RAPL_DIR) else root / "sys/class/powercap"
    in_container = (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
    try:
        meter, finding = rapl.look(base, in_container=in_container)
    except Exception as error:  # a strange tree must not keep the rest from being measured
        findings.append(Finding(rapl.SENSOR, found=True, readable=False, why=_failed(error)))
    else:
        findings.append(finding)
        if meter is not None:
            sensors.append(meter)
            has_package, has_dram = meter.has_package, meter.has_dram
    if not has_package:
        model = None
        try:
            model, finding = cpu_load.look(root, tdp_w=tdp_w)
        except CtNotebookError:
            raise
        except Exception as error:  # nor must a strange /proc
            finding = Finding(cpu_load.SENSOR, found=True, readable=False, why=_failed(error))
        findings.append(finding)
        if model is not None:
            sensors.append(model)
    return has_dram


def _memory(root: Path, sensors: list[Sensor], findings: list[Finding], *, has_dram: bool) -> None:
    from . import ram  # noqa: PLC0415 - not every run looks at the memory

    if has_dram:
        why = "Not needed: the memory has an energy counter."
        findings.append(Finding(ram.SENSOR, found=True, readable=True, why=why))
        return
    memory = None
    try:
        memory, finding = ram.look(root)
    except Exception as error:  # nor must a strange /proc
        finding = Finding(ram.SENSOR, found=True, readable=False, why=_failed(error))
    findings.append(finding)
    if memory is not None:
        sensors.append(memory)


def _made_up(what: str, sensor: SimulatedSensor) -> Finding:
    device = sensor.devices[0]
    return Finding(f"Simulated {what}", found=True, readable=True, why=f"{device.name}, {device.detail}.")


def _failed(error: Exception) -> str:
    return f"Looking for it failed: {type(error).__name__}: {error}"
