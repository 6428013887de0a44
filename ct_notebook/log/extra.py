"""Runs go in and become the lines that carbontracker's format has no place for, and come back from them.

One line of ASCII JSON each, `ct_notebook: kind {…}`, escaped so that none of carbontracker's patterns can
match inside it, whatever a device calls itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ct_notebook.records import Attribution, Band, Device, Epoch, Estimate, Intensity, Pue, Run

from .format import harmless

_Made = TypeVar("_Made")

MARK = "ct_notebook: "

PATTERN = re.compile(r"ct_notebook: ([a-z0-9_]+) (\{.*\})\s*$")

RUN_FIELDS = ("run_id", "started_at", "hosts")
"""What of a run never changes; written in its `run` line."""

STATE_FIELDS = (
    "epochs_declared",
    "devices",
    "intensity",
    "intensities",
    "pue",
    "missing",
    "notes",
    "prediction",
    "paused_s",
    "paused_j",
)
"""What can change while a run goes on; written in a `state` line after an epoch, or in the `end` line."""

DRAWN_FIELDS = ("course", "moves")
"""What pictures are drawn from while the process lives. A log holds the epochs, which are the record."""


def extra_text(kind: str, data: Mapping[str, Any]) -> str:
    """A line of ours: `ct_notebook: kind {json}`, which no pattern of carbontracker matches."""
    word = re.sub(r"[^a-z0-9_]+", "_", kind.lower())[:40]
    text = json.dumps(plain_value(data), ensure_ascii=True, default=str)
    return f"{MARK}{word} {harmless(text, chr(92) + 'u0020')}"


_PLAIN = frozenset((float, str, int, bool))


def plain_value(value: Any) -> Any:
    """Records as what JSON can hold. Fields that have their default are left out."""
    if value is None or type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_value(content)
            for field in fields(value)
            if (content := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, Mapping):
        return {str(key): plain_value(content) for key, content in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(content) for content in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def run_data(run: Run) -> dict[str, Any]:
    """What the `run` line holds: how the run begins. What has its default is left out."""
    return {name: value for name, value in plain_value(run).items() if name in {*RUN_FIELDS, *STATE_FIELDS}}


def changed_data(before: Run | None, run: Run) -> dict[str, Any]:
    """What a `state` line holds: the fields that have changed."""
    return {
        name: plain_value(getattr(run, name))
        for name in STATE_FIELDS
        if before is None or (before is not run and getattr(run, name) != getattr(before, name))
    }


def end_data(before: Run | None, run: Run) -> dict[str, Any]:
    """What the `end` line holds: what has changed, and all that no line before it has told."""
    told = {"epochs", "log_paths", *DRAWN_FIELDS, *RUN_FIELDS, *STATE_FIELDS}
    rest = {f.name: plain_value(getattr(run, f.name)) for f in fields(run) if f.name not in told}
    return changed_data(before, run) | rest


def epoch_data(epoch: Epoch) -> dict[str, Any]:
    """What an `epoch` line holds."""
    return dict(plain_value(epoch))


def _known(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    # A newer version may write fields that this one does not know.
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "Method": (str,),
    "bool": (bool,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
}


def _made(kind: Callable[..., _Made], data: Mapping[str, Any]) -> _Made:
    """A record whose texts are texts and whose numbers are numbers: JSON does not see to that."""
    record = kind(**_known(cast("type", kind), data))
    for field in fields(cast("Any", kind)):
        value, wanted = getattr(record, field.name), _TYPES.get(str(field.type))
        if wanted is not None and (type(value) not in wanted):
            msg = f"{field.name} cannot be {value!r:.40}"
            raise TypeError(msg)
    return record


def _intensity_from(data: Mapping[str, Any]) -> Intensity:
    intensity = _made(Intensity, data)
    if intensity.g_per_kwh < 0 or intensity.kind not in {"lifecycle", "direct", ""}:
        msg = f"no carbon intensity can be {intensity.g_per_kwh!r} ({intensity.kind!r:.40})"
        raise ValueError(msg)
    return intensity


def epoch_from(data: Mapping[str, Any]) -> Epoch:
    """The epoch of an `epoch` line.

    Raises
    ------
    TypeError, ValueError, KeyError, AttributeError
        The line does not hold one.
    """
    known = _known(Epoch, data)
    for name in ("energy_j", "covered_s"):
        known[name] = numbers_from(known[name])
    for name in ("start_s", "end_s"):
        known[name] = float(known[name])
    known |= {"index": int(known["index"]), "paused_s": float(known.get("paused_s", 0.0))}
    charged = known.get("charged_j", {})
    known["charged_j"] = MappingProxyType({int(at): float(energy_j) for at, energy_j in charged.items()})
    return Epoch(**known)


def numbers_from(data: Mapping[str, Any]) -> Mapping[str, float]:
    """A mapping of numbers. Raises what `float` raises."""
    return MappingProxyType({str(key): float(value) for key, value in data.items()})


def _estimate_from(data: Mapping[str, Any] | None) -> Estimate | None:
    if data is None:
        return None
    known = _known(Estimate, data)
    for name in ("duration_s", "energy_j", "emissions_g"):
        known[name] = None if known.get(name) is None else _made(Band, known[name])
    return Estimate(**known)


def _attribution_from(data: Mapping[str, Any] | None) -> Attribution | None:
    if data is None:
        return None
    return Attribution(numbers_from(data["energy_j"]), str(data.get("how", "")))


def run_fields_from(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a `Run` as a `run`, `state` or `end` line holds them.

    Raises
    ------
    TypeError, ValueError, KeyError, AttributeError
        The line does not hold them.
    """
    makers: dict[str, Any] = {
        "started_at": datetime.fromisoformat,
        "devices": lambda items: tuple(_made(Device, item) for item in items),
        "intensity": _intensity_from,
        "intensities": lambda items: tuple(map(_intensity_from, items)),
        "pue": lambda item: _made(Pue, item),
        "duration_s": float,
        "paused_s": float,
        "epochs_declared": lambda count: None if count is None else int(count),
        "estimate": _estimate_from,
        "prediction": _estimate_from,
        "outside_j": numbers_from,
        "paused_j": numbers_from,
        "cost": numbers_from,
        "machine": numbers_from,
        "idle_w": numbers_from,
        "process": _attribution_from,
        "missing": lambda item: MappingProxyType(dict(item)),
        "notes": tuple,
        "hosts": tuple,
        "log_paths": tuple,
    }
    known = _known(Run, data)
    return {name: makers[name](value) if name in makers else value for name, value in known.items()}
