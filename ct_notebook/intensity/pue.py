"""The machine comes in, its power usage effectiveness and the reason for it go out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ct_notebook.errors import SettingError
from ct_notebook.records import Pue

from .cloud import find_cloud, look_at_machine

OWN_MACHINE = 1.0
"""A laptop or a desktop has no data centre around it."""

UNKNOWN_DATA_CENTRE = 1.54
"""Weighted mean of the data centres asked in the Uptime Institute Global Data Center Survey 2025."""

SURVEY = "mean of the Uptime Institute Global Data Center Survey 2025"

HIGHEST = 5.0
"""The survey's mean of 2007, the worst there was, is 2.5."""

CLUSTER_VARIABLES = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "SGE_TASK_ID",
    "JUPYTERHUB_USER",
    "KUBERNETES_SERVICE_HOST",
)
"""Set by batch systems, JupyterHub and Kubernetes: the machine is somebody's server."""

PORTABLE_OR_DESK = frozenset(map(str, (*range(3, 17), 24, 30, 31, 32, 35, 36)))
RACK = frozenset({"17", "23", "25", "28", "29"})
"""Chassis types of the SMBIOS specification 3.7, section 7.4.1, as the kernel writes them."""


def choose_pue(*, pue: float | None, environ: Mapping[str, str], root: Path = Path("/")) -> Pue:
    """Choose the PUE and say why.

    The first that holds: the user's own; a known cloud's own mean; the survey's mean for a cluster, a virtual
    machine or a server in a rack; 1 for a laptop or desktop. Where nothing tells of a data centre (a
    container that hides the machine, a Mac, Windows) it is 1 too: a factor without evidence would be made up.

    Parameters
    ----------
    pue
        The user's own, 1 to 5; wins if not None.
    environ
        Variables by which hosted notebooks and clusters are known.
    root
        Where `/sys` and `/proc` lie.

    Raises
    ------
    SettingError
        The user's own is impossible.
    """
    if pue is not None:
        if not 1.0 <= pue <= HIGHEST:
            msg = (
                f"pue={pue!r} cannot be meant: it is the energy of the whole data centre per energy of its "
                "computers, a number between 1 (no data centre around the machine) and 5."
            )
            raise SettingError(msg)
        return Pue(float(pue), "given by you")
    machine = look_at_machine(root)
    cloud = find_cloud(environ, machine)
    if cloud is not None:
        return Pue(cloud.pue, f"a machine of {cloud.name}: {cloud.source}")
    for holds, is_in_data_centre, what in (
        (any(environ.get(name) for name in CLUSTER_VARIABLES), True, "a cluster"),
        (machine.is_on_a_desk, False, "a virtual machine of a desktop program"),
        (machine.is_virtual, True, "a virtual machine"),
        (machine.chassis in RACK, True, "a server in a rack"),
        (machine.chassis in PORTABLE_OR_DESK, False, "a machine of one's own"),
    ):
        if holds and is_in_data_centre:
            return Pue(UNKNOWN_DATA_CENTRE, f"{what}, its data centre is unknown: {SURVEY}")
        if holds:
            return Pue(OWN_MACHINE, f"{what}, without a data centre around it")
    return Pue(OWN_MACHINE, "nothing tells of a data centre; set pue if there is one")
