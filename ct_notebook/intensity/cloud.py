"""What a machine and its environment say comes in, the cloud it belongs to goes out. No network is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
"""The chassis asset tag of every Azure machine and no other Hyper-V machine; cloud-init goes by it."""

VIRTUAL = (
    "bochs",
    "droplet",
    "kvm",
    "nutanix",
    "openstack",
    "ovirt",
    "parallels",
    "qemu",
    "virtual",
    "vmware",
    "vserver",
    "xen",
)
"""Words by which a maker or product calls itself a virtual machine."""

DESK_KERNELS = ("microsoft", "linuxkit")
"""In the name of the kernels of WSL 2 and Docker Desktop: virtual machines that run on a desk."""

CPUINFO_HEAD = 8192
"""Characters of /proc/cpuinfo that hold the flags of the first processor, however many there are."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """A provider of machines and what it says of its data centres.

    Attributes
    ----------
    pue
        Mean of its data centres.
    source
        Who says so, and of which year.
    """

    name: str
    pue: float
    source: str


GOOGLE = Cloud("Google", 1.09, "mean of its data centres in 2024, Google Environmental Report 2025")
AMAZON = Cloud("Amazon", 1.14, "mean of its data centres in 2025, Amazon's sustainability pages")
MICROSOFT = Cloud("Microsoft", 1.17, "mean of its own data centres in fiscal 2025, as Microsoft reports it")

VARIABLES = {
    "COLAB_RELEASE_TAG": GOOGLE,
    "COLAB_GPU": GOOGLE,
    "KAGGLE_KERNEL_RUN_TYPE": GOOGLE,
    "AWS_EXECUTION_ENV": AMAZON,
}
"""Set by Colab, Kaggle, and by AWS itself where it runs one's code (Lambda, ECS, SageMaker, CloudShell)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What firmware and kernel say of the machine. Empty or False is what was not said.

    Attributes
    ----------
    vendor, product, bios, asset_tag
        SMBIOS, as /sys/class/dmi/id gives it to everyone.
    chassis
        Chassis type, a number in decimal: SMBIOS specification 3.7, section 7.4.1.
    has_hypervisor
        The processor says that something runs beneath the kernel. ARM processors never say it.
    kernel
        Its release.
    """

    vendor: str
    product: str
    bios: str
    asset_tag: str
    chassis: str
    has_hypervisor: bool
    kernel: str

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual machine, as far as it can be seen."""
        name = f"{self.vendor} {self.product}".lower()
        return self.has_hypervisor or any(word in name for word in VIRTUAL)

    @property
    def is_on_a_desk(self) -> bool:
        """Whether it is a virtual machine that a desktop program made."""
        return any(word in self.kernel.lower() for word in DESK_KERNELS)


def look_at_machine(root: Path = Path("/")) -> Machine:
    """Read what the machine says of itself. What cannot be read was not said."""
    dmi = root / "sys/class/dmi/id"
    return Machine(
        vendor=_text(dmi / "sys_vendor"),
        product=_text(dmi / "product_name"),
        bios=_text(dmi / "bios_version"),
        asset_tag=_text(dmi / "chassis_asset_tag"),
        chassis=_text(dmi / "chassis_type"),
        has_hypervisor="hypervisor" in _text(root / "proc/cpuinfo").split(),
        kernel=_text(root / "proc/sys/kernel/osrelease"),
    )


def find_cloud(environ: Mapping[str, str], machine: Machine) -> Cloud | None:
    """Find the cloud that a machine belongs to; None if it is none of those that are known."""
    for name, cloud in VARIABLES.items():
        if environ.get(name):
            return cloud
    # "Google" alone makes Chromebooks too, and "Microsoft Corporation" laptops and Hyper-V on anyone's PC.
    if machine.product == "Google Compute Engine":
        return GOOGLE
    # Older machines of EC2 run on Xen and say so; only the version of their firmware tells whose Xen.
    if "Amazon EC2" in {machine.vendor, machine.product} or machine.bios.endswith("amazon"):
        return AMAZON
    return MICROSOFT if machine.asset_tag == AZURE_ASSET_TAG else None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(CPUINFO_HEAD).strip()
    except OSError:
        return ""
