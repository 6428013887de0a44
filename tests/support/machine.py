"""What a machine's firmware says, as files under a root."""

from __future__ import annotations

from pathlib import Path


def machine(root: Path, **dmi: str) -> Path:
    """Write `/sys/class/dmi/id` below `root`, one file per name, and give `root` back."""
    folder = root / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    for name, text in dmi.items():
        (folder / name).write_text(text + "\n")
    return root
