from pathlib import Path

import pytest

from ct_notebook.errors import SettingError
from ct_notebook.intensity import choose_pue
from support.machine import machine


@pytest.mark.parametrize(
    ("dmi", "pue", "word"),
    [
        ({"sys_vendor": "LENOVO", "product_name": "20XW", "chassis_type": "10"}, 1.0, "one's own"),
        (
            {"sys_vendor": "Microsoft Corporation", "product_name": "Surface Laptop", "chassis_type": "9"},
            1.0,
            "own",
        ),
        (
            {
                "sys_vendor": "Microsoft Corporation",
                "product_name": "Virtual Machine",
                "chassis_type": "3",
                "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
            },
            1.17,
            "Microsoft",
        ),
        (
            {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine", "chassis_type": "3"},
            1.54,
            "virtual machine",
        ),
        ({"sys_vendor": "Google", "product_name": "Eve", "chassis_type": "9"}, 1.0, "one's own"),
        (
            {"sys_vendor": "Google", "product_name": "Google Compute Engine", "chassis_type": "1"},
            1.09,
            "Google",
        ),
        ({"sys_vendor": "Amazon EC2", "product_name": "p3.2xlarge", "chassis_type": "1"}, 1.14, "Amazon"),
        (
            {"sys_vendor": "Xen", "product_name": "HVM domU", "bios_version": "4.2.amazon"},
            1.14,
            "Amazon",
        ),
        ({"sys_vendor": "Xen", "product_name": "HVM domU", "bios_version": "4.17"}, 1.54, "virtual machine"),
        (
            {"sys_vendor": "QEMU", "product_name": "Standard PC (Q35)", "chassis_type": "1"},
            1.54,
            "virtual machine",
        ),
        ({"sys_vendor": "Dell Inc.", "product_name": "PowerEdge R740", "chassis_type": "23"}, 1.54, "rack"),
        ({}, 1.0, "nothing tells"),
    ],
)
def test_the_kind_of_machine_decides(tmp_path: Path, dmi: dict[str, str], pue: float, word: str) -> None:
    chosen = choose_pue(pue=None, environ={}, root=machine(tmp_path, **dmi))
    assert chosen.value == pue
    assert word in chosen.reason


@pytest.mark.parametrize(
    ("name", "pue"),
    [
        ("COLAB_RELEASE_TAG", 1.09),
        ("KAGGLE_KERNEL_RUN_TYPE", 1.09),
        ("SLURM_JOB_ID", 1.54),
        ("JUPYTERHUB_USER", 1.54),
        ("PBS_JOBID", 1.54),
    ],
)
def test_hosted_notebooks_and_clusters_are_known_by_their_variables(
    tmp_path: Path, name: str, pue: float
) -> None:
    assert choose_pue(pue=None, environ={name: "1"}, root=tmp_path).value == pue


def test_the_users_own_wins(tmp_path: Path) -> None:
    chosen = choose_pue(pue=1.2, environ={"COLAB_GPU": "1"}, root=tmp_path)
    assert (chosen.value, chosen.reason) == (1.2, "given by you")


@pytest.mark.parametrize("pue", [0.0, 0.9, 6.0, float("nan"), float("inf")])
def test_an_impossible_one_is_refused(tmp_path: Path, pue: float) -> None:
    with pytest.raises(SettingError, match="pue="):
        choose_pue(pue=pue, environ={}, root=tmp_path)


@pytest.mark.parametrize(
    ("flags", "kernel", "pue"),
    [
        ("fpu hypervisor sse", "6.8.0-generic", 1.54),
        ("fpu hypervisor sse", "5.15.167.4-microsoft-standard-WSL2", 1.0),
        ("fpu hypervisor sse", "6.10.14-linuxkit", 1.0),
        ("fpu sse", "6.8.0-generic", 1.0),
    ],
)
def test_a_machine_without_firmware_is_known_by_its_processor_and_kernel(
    tmp_path: Path, flags: str, kernel: str, pue: float
) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text(kernel + "\n")
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n" * 300)
    assert choose_pue(pue=None, environ={}, root=tmp_path).value == pue


def test_every_reason_that_is_not_the_users_names_a_source_and_year_or_says_there_is_no_data_centre(
    tmp_path: Path,
) -> None:
    for environ in ({"COLAB_GPU": "1"}, {"AWS_EXECUTION_ENV": "x"}, {"SLURM_JOB_ID": "1"}):
        assert "202" in choose_pue(pue=None, environ=environ, root=tmp_path).reason
    assert "no" in choose_pue(pue=None, environ={}, root=tmp_path).reason
