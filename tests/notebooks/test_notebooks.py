"""The notebooks of the repository, executed by nbclient in a real kernel, in a copy of their folder."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def executed(name: str, folder: Path) -> str:
    """Execute a notebook in `folder` and give all the text that it shows."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_the_quickstart_trains_predicts_asks_and_logs(tmp_path: Path) -> None:
    text = executed("quickstart.ipynb", tmp_path)
    assert "Predicted consumption for 30 epoch(s):" in text
    assert "Actual consumption for 30 epoch(s):" in text
    assert "Actual consumption for 10 epoch(s):" in text
    assert "nobody can be asked here" in text
    assert "the code after the loop runs in any case" in text
    assert len(list(tmp_path.glob("logs/*_carbontracker.log"))) == 2


def test_the_pytorch_notebook_trains_and_is_measured(tmp_path: Path) -> None:
    text = executed("pytorch.ipynb", tmp_path)
    assert "Predicted consumption for 8 epoch(s):" in text
    assert "Actual consumption for 8 epoch(s):" in text
    assert "of the test digits are right" in text


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
