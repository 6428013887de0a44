"""A run comes in; what seven other tools would have said of it goes out, beside what we say.

One file per tool: pure functions of the facts of a run. Nothing is imported from those tools, nothing is
measured again and nothing is asked of a network.
"""

from __future__ import annotations

from ct_notebook.records import Run

from . import (
    carbontracker,
    codecarbon,
    cumulator,
    eco2ai,
    experiment_impact_tracker,
    green_algorithms,
    mlco2,
)
from .base import Constant, Facts, Result, ToolMethod, facts_of
from .comparison import Comparison, ours_of

__all__ = ["METHODS", "Comparison", "Constant", "Facts", "Result", "compare", "facts_of"]

METHODS: tuple[ToolMethod, ...] = (
    green_algorithms.form,
    codecarbon.machine,
    codecarbon.process,
    eco2ai.process,
    carbontracker.summed,
    carbontracker.averaged,
    experiment_impact_tracker.process,
    mlco2.page,
    cumulator.run,
)
"""In the order in which they are shown."""


def compare(run: Run) -> Comparison:
    """What seven other tools would have said of a run.

    Parameters
    ----------
    run
        Live, closed, or read from a log.

    Returns
    -------
    comparison
        Ours and theirs; a notebook shows it as a table, `figure()` draws it.
    """
    facts = facts_of(run)
    return Comparison(ours_of(run), tuple(method(facts) for method in METHODS), run.duration_s)
