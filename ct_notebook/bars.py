"""The progress bars of tqdm that are being drawn come in; how many of how many steps each has done goes out.

A training loop that is out of sight, in another file or a framework, often has a bar. Nothing of tqdm is
imported or changed: bars that exist are looked at, from any thread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator


def steps_of_bars(epochs: int | None, since_s: float) -> Iterator[tuple[str, int, int]]:
    """Each bar within an epoch: what to call it, steps done, steps in all.

    Parameters
    ----------
    epochs
        A bar of so many steps counts epochs and is left out.
    since_s
        When the epoch began, in unix seconds, as tqdm notes when a bar began or was reset. An older bar,
        such as one over the steps of all epochs, counts more than this epoch and is left out.
    """
    bars = getattr(getattr(sys.modules.get("tqdm"), "tqdm", None), "_instances", None)
    if not bars:
        return
    try:
        known = list(bars)
    except RuntimeError:  # changed by another thread while it was copied; there is a next time
        return
    for bar in known:
        if getattr(bar, "start_t", 0.0) < since_s:
            continue
        done, total = getattr(bar, "n", None), getattr(bar, "total", None)
        if isinstance(done, int) and isinstance(total, int) and total != epochs and 0 <= done <= total:
            yield f"bar {id(bar)}", done, total
