"""A run comes in; what stays of it in a saved notebook goes out: outputs without kernel or script."""

from __future__ import annotations

import base64
from typing import Any

from ct_notebook.log.format import one_line
from ct_notebook.records import Run

from . import picture, table


def bundle(run: Run) -> dict[str, Any]:
    """The picture of a run in the forms that viewers choose from.

    A trusted notebook shows the svg, an untrusted one and code hosts the png, a terminal the text. The table
    is no part of it: a viewer that prefers html would show that alone (seen in JupyterLab 4.6).
    """
    return {
        "image/svg+xml": picture.svg(run),
        "image/png": base64.b64encode(picture.png(run)).decode("ascii"),
        "text/plain": one_line(repr(run), 500),
    }


def report(run: Run) -> dict[str, Any]:
    """The table of a run."""
    return {"text/html": table.html(run), "text/plain": table.text(run)}
