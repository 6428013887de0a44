"""The machine comes in, its power usage effectiveness and the reason for it go out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ct_notebook.errors import SettingError
from ct_notebook.records import Pue

OWN_MACHINE = 1.0
"""A laptop or a desktop has no data centre around it."""

UNKNOWN_DATA_CENTRE = 1.54
"""Mean of the data centres asked by the Uptime Institute, Global Data Center Survey 2025."""

SURVEY = "Uptime Institute Global Data Center Survey 2025"


@dataclass(frozen=True, slots=True)
class Cloud:
    """A provider of machines, how it is known, and what it says of its data centres."""

    name: str
    pue: float
    source: str
    dmi: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


CLOUDS = (
    Cloud(
        "Google",
        1.09,
        "Google's fleet, 2024, as Google publishes it",
        ("Google",),
        ("COLAB_RELEASE_TAG", "COLAB_GPU", "KAGGLE_KERNEL_RUN_TYPE"),
    ),
    Cloud(
        "Amazon",
        1.15,
        "AWS's global average, 2024, as AWS publishes it",
        ("Amazon EC2",),
        ("AWS_EXECUTION_ENV",),
    ),
    Cloud(
        "Microsoft",
        1.16,
        "Microsoft's fleet, fiscal 2024, as Microsoft publishes it",
        ("Microsoft Corporation",),
    ),
)

CLUSTER_VARIABLES = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "JOB_ID",
    "JUPYTERHUB_USER",
    "KUBERNETES_SERVICE_HOST",
)
"""Set by batch systems, JupyterHub and Kubernetes: the machine is somebody's server."""

PORTABLE_OR_DESK = frozenset(
    {"3", "4", "5", "6", "7", "8", "9", "10", "13", "14", "15", "16", "24", "30", "31", "32", "35", "36"}
)
RACK = frozenset({"17", "23", "25", "28", "29"})
"""Chassis types of the SMBIOS specification 3.7, table 17, as /sys/class/dmi/id/chassis_type gives them."""

VIRTUAL = (
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "xen",
    "openstack",
    "bochs",
    "nutanix",
    "parallels",
    "ovirt",
)


def choose_pue(*, pue: float | None, environ: Mapping[str, str], root: Path = Path("/")) -> Pue:
    """Choose the PUE and say why.

    Parameters
    ----------
    pue
        The user's own; wins if not None.
    environ
        Variables by which hosted notebooks and clusters are known.
    root
        Where `/sys` lies.

    Raises
    ------
    SettingError
        The user's own is impossible.
    """
    if pue is not None:
        if not 1.0 <= pue <= 5.0:
            msg = f"pue={pue!r} cannot be meant: it is a ratio between 1 and 5."
            raise SettingError(msg)
        return Pue(float(pue), "given by the user")
    vendor, product, chassis = (_dmi(root, name) for name in ("sys_vendor", "product_name", "chassis_type"))
    virtual = any(word in f"{vendor} {product}".lower() for word in ("virtual", *VIRTUAL))
    for cloud in CLOUDS:
        # A Microsoft laptop is no Azure: its product is no virtual machine.
        by_dmi = any(text in vendor or text in product for text in cloud.dmi) and (
            virtual or cloud.name != "Microsoft"
        )
        if by_dmi or any(environ.get(name) for name in cloud.variables):
            return Pue(cloud.pue, f"a machine of {cloud.name}: {cloud.source}")
    for is_so, value, reason in (
        (
            any(map(environ.get, CLUSTER_VARIABLES)),
            UNKNOWN_DATA_CENTRE,
            "a cluster, its data centre is unknown",
        ),
        (virtual, UNKNOWN_DATA_CENTRE, "a virtual machine in an unknown place"),
        (chassis in RACK, UNKNOWN_DATA_CENTRE, "a server in a rack, its data centre is unknown"),
        (chassis in PORTABLE_OR_DESK, OWN_MACHINE, "a machine of one's own, without a data centre around it"),
    ):
        if is_so:
            survey = f": mean of the {SURVEY}" if value == UNKNOWN_DATA_CENTRE else ""
            return Pue(value, reason + survey)
    return Pue(OWN_MACHINE, "nothing tells of a data centre; set pue if there is one")


def _dmi(root: Path, name: str) -> str:
    try:
        return (root / "sys/class/dmi/id" / name).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
