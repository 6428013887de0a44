from pathlib import Path

import pytest

from ct_notebook.errors import SettingError
from ct_notebook.intensity import choose_pue


def machine(root: Path, **dmi: str) -> Path:
    folder = root / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    for name, text in dmi.items():
        (folder / name).write_text(text + "\n")
    return root


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
            {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine", "chassis_type": "3"},
            1.16,
            "Microsoft",
        ),
        (
            {"sys_vendor": "Google", "product_name": "Google Compute Engine", "chassis_type": "1"},
            1.09,
            "Google",
        ),
        ({"sys_vendor": "Amazon EC2", "product_name": "p3.2xlarge", "chassis_type": "1"}, 1.15, "Amazon"),
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
    ("name", "pue"), [("COLAB_RELEASE_TAG", 1.09), ("KAGGLE_KERNEL_RUN_TYPE", 1.09), ("SLURM_JOB_ID", 1.54)]
)
def test_hosted_notebooks_and_clusters_are_known_by_their_variables(
    tmp_path: Path, name: str, pue: float
) -> None:
    assert choose_pue(pue=None, environ={name: "1"}, root=tmp_path).value == pue


def test_the_users_own_wins(tmp_path: Path) -> None:
    chosen = choose_pue(pue=1.2, environ={"COLAB_GPU": "1"}, root=tmp_path)
    assert (chosen.value, chosen.reason) == (1.2, "given by the user")


@pytest.mark.parametrize("pue", [0.9, 6.0, float("nan")])
def test_an_impossible_one_is_refused(tmp_path: Path, pue: float) -> None:
    with pytest.raises(SettingError, match="pue="):
        choose_pue(pue=pue, environ={}, root=tmp_path)
