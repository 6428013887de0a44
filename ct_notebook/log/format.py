"""Records go in, text lines in carbontracker's format come out, and the other way. The line grammar, once.

What a standard log of ours holds, `T` being local time::

    T - ct_notebook version 0.1.0 (carbontracker log format)
    T - Only predicted and actual consumptions are multiplied by a PUE coefficient of 1.0 (own machine).
    T - The following components were found: GPU with device(s) Tesla T4, Tesla T4. RAM with device(s) memory.
    T - ct_notebook: run {"run_id": …}
    T - Monitoring thread started.
    T - Epoch 1:
    T - Duration: 0:00:02.20
    T - Average power usage (W) for gpu: [146.345]
    T - Average power usage (W) for ram: [4.800]
    T - ct_notebook: epoch {"index": 1, …}
    T - Training was interrupted before all 10 epochs were monitored.
    T - Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location Denmark: [143.30]
    T - Average carbon intensity during training was 143.30 gCO2eq/kWh at detected location: Denmark.
    T - ct_notebook: end {"duration_s": …}
    T - Monitoring thread ended.

The lines that begin with `ct_notebook:` carry what carbontracker's format has no place for. They are one line
of ASCII JSON each, escaped so that none of carbontracker's patterns can match inside them, whatever a device
calls itself. The other lines are what the parsers of carbontracker 1.1 to 2.4 were seen to accept. Two rules
come from their patterns: a power is one bracketed fixed-point number (the only form that all of them read),
and the equivalents always follow a consumption (2.x finds no consumption without them).
"""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from ct_notebook.records import (
    COMPONENTS,
    Band,
    Device,
    Epoch,
    Estimate,
    Intensity,
    Pue,
    Run,
)
from ct_notebook.units import clock_text, duration_text, fixed

_Value = TypeVar("_Value")

STANDARD_SUFFIX = "_carbontracker.log"
OUTPUT_SUFFIX = "_carbontracker_output.log"
ERROR_SUFFIX = "_carbontracker_err.log"

CAR_G_PER_KM = 106.8
"""g CO2eq per km of an average new passenger car in the EU. Source: European Environment Agency, monitoring
of CO2 emissions from new cars, figure published in 2024; the factor that carbontracker 2.4 uses."""

POWER_DECIMALS = 3
"""Milliwatts: finer than any gauge, and never an exponent."""

NAME_LENGTH = 80
"""A device name longer than this is cut in the components line. The whole name stands in the `run` line."""

TEXT_LENGTH = 200
"""The same for a reason or a place within a line of carbontracker's."""

# What carbontracker's parsers and its PDF report look for anywhere in a line. Every one holds a space, and
# there it is taken apart: a space is never part of a JSON escape, as the t of \training would be.
_TRIGGER = re.compile(
    r"components were found|with device\(s\)|duration: |average power usage|training was interrupted"
    r"|(?:predicted|actual) consumption|epoch \d|carbon intensit(?:ies|y) |carbontracker version"
    r"|pue coefficient|\d{4}-\d{2}-\d{2} \d{2}:",
    re.IGNORECASE,
)
_CONSUMPTION = re.compile(r"(?:predicted|actual) consumption", re.IGNORECASE)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


# Text from outside.


def plain_text(text: str, limit: int = TEXT_LENGTH) -> str:
    """Text from outside as one line of at most `limit` characters that no pattern of carbontracker matches.

    Control, format and direction characters become spaces, runs of spaces become one, and the spaces of a
    phrase that carbontracker searches for become underscores.
    """
    # A name may be megabytes long; only so much of it is looked at.
    visible = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text[: 8 * limit])
    return _TRIGGER.sub(lambda found: found[0].replace(" ", "_"), " ".join(visible.split()))[:limit].strip()


def device_name(name: str) -> str:
    """A device's name as carbontracker's parsers keep it whole.

    They end a list of names at the first full stop and split it at commas.
    """
    text = plain_text(name, 2 * NAME_LENGTH)
    text = re.sub(r"\.(?=\S)", "_", text).replace(".", " ").replace(",", " ")
    return plain_text(text, NAME_LENGTH) or "unnamed"


def file_prefix(prefix: str, limit: int = 100) -> str:
    """A prefix for file names: text, never a path, at most `limit` bytes, "" if nothing is left of it."""
    visible = "".join("_" if unicodedata.category(c) in _HIDDEN or c.isspace() else c for c in prefix[:limit])
    text = re.sub(r'[/\\:*?"<>|]', "_", visible).lstrip(".")
    # carbontracker would take such an output log for a standard log as well.
    text = re.sub(r"(?i)carbontracker(?=.?log)", "carbon-tracker", text)
    return text.encode()[:limit].decode(errors="ignore")


def file_stem(prefix: str, pid: int, number: int, at: datetime) -> str:
    """Name of a run's files without their suffixes: `[prefix_]PID.NUMBER_2026-12-01T120000Z`.

    The time is local and the Z is carbontracker's.
    """
    head = f"{prefix}_" if prefix else ""
    return f"{head}{pid}.{number}_{at:%Y-%m-%dT%H%M%SZ}"


def folder_note(log_dir: str | os.PathLike[str]) -> str | None:
    """One sentence if carbontracker's own parser cannot tell the logs in this folder apart; None if it can.

    Its patterns `.*carbontracker.log` and `.*carbontracker_output.log` have no end and match the whole path.
    """
    path = str(Path(log_dir).absolute())
    found = re.search(r"carbontracker(?:_output)?.log", path)
    if found is None:
        return None
    return (
        f"carbontracker's own parser takes every file below {found[0]!r} for a standard log, so it cannot "
        f"read {path}; ct_notebook can. Another folder name, such as logs, suits both."
    )


# Lines.


def stamp_text(at: datetime) -> str:
    """Time of a line in the standard and output logs."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def line(at: datetime, text: str) -> str:
    """A line of the standard log."""
    return f"{stamp_text(at)} - {text}\n"


def lines(at: datetime, texts: Iterable[str]) -> str:
    """Lines of the standard log that belong together."""
    stamp = stamp_text(at)
    return "".join(f"{stamp} - {text}\n" for text in texts)


def output_line(at: datetime, text: str) -> str:
    """A message of the output log: what the user was told. Only its first line has a time.

    A text that is not a consumption cannot be taken for one.
    """
    text = "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else " " for c in text)
    if not re.match(r"\n(?:Predicted|Actual) consumption(?: for \d+ epoch\(s\))?:\n", text):
        text = _CONSUMPTION.sub(lambda found: found[0].replace(" ", "_"), text)
    return line(at, f"CarbonTracker: {text}")


def error_line(at: datetime, thread: str, level: str, text: str) -> str:
    """A line of the error log, as `logging` writes it by default."""
    return f"{stamp_text(at)},{at.microsecond // 1000:03d} - {thread} - {level} - {text}\n"


def version_text(version: str) -> str:
    """Who wrote the log. Not "carbontracker version": the figures are ours and so are their faults."""
    return f"ct_notebook version {plain_text(version)} (carbontracker log format)"


def pue_text(pue: Pue) -> str:
    """Which PUE the consumptions hold, and why."""
    reason = plain_text(pue.reason).rstrip(".")
    value = re.sub(r"0{1,3}$", "", fixed(pue.value, 4))
    return (
        "Only predicted and actual consumptions are multiplied by a PUE coefficient of "
        f"{value}{f' ({reason})' if reason else ''}."
    )


def by_component(devices: Iterable[Device]) -> dict[str, list[Device]]:
    """Devices by component, in the order in which logs name them."""
    found: dict[str, list[Device]] = {}
    for device in devices:
        found.setdefault(component_name(device.component), []).append(device)
    return in_order(found)


def in_order(by_name: Mapping[str, _Value]) -> dict[str, _Value]:
    """A mapping by component in the order in which logs name them."""
    order = {component: place for place, component in enumerate(COMPONENTS)}
    return dict(sorted(by_name.items(), key=lambda item: order.get(item[0], len(order))))


@lru_cache(maxsize=64)
def component_name(component: str) -> str:
    """A component as one lower-case word."""
    return re.sub(r"\W+", "_", component[:20], flags=re.ASCII).strip("_").lower() or "other"


def components_text(devices: Iterable[Device]) -> str:
    """The devices found, by component, under names that carbontracker's parsers do not cut."""
    parts = [
        f"{component.upper()} with device(s) {', '.join(device_name(device.name) for device in members)}."
        for component, members in by_component(devices).items()
    ]
    return f"The following components were found: {' '.join(parts) or 'none'}"


def power_w_by_component(run: Run, epoch: Epoch) -> dict[str, float | None]:
    """Average power of each component in an epoch, W: the sum over its devices; None if none was read."""
    powers: dict[str, float | None] = {}
    for component, members in by_component(run.devices).items():
        read = [power for device in members if (power := epoch.power_w(device.key)) is not None]
        total = sum(read)
        powers[component] = total if read and math.isfinite(total) and total >= 0 else None
    return powers


def epoch_texts(epoch: Epoch, powers_w: Mapping[str, float]) -> list[str]:
    """The lines of an epoch in carbontracker's words. Every component has a number in every epoch."""
    return [
        f"Epoch {epoch.index}:",
        f"Duration: {duration_text(epoch.duration_s)}",
        *(
            f"Average power usage (W) for {component}: [{fixed(power_w, POWER_DECIMALS)}]"
            for component, power_w in powers_w.items()
        ),
    ]


def interrupted_text(epochs_declared: int | None) -> str:
    """Says that the run ended early."""
    count = "" if epochs_declared is None else f"{epochs_declared} "
    return f"Training was interrupted before all {count}epochs were monitored."


def consumption_text(
    kind: Literal["Actual", "Predicted"],
    *,
    epochs: int | None,
    duration_s: float,
    energy_kwh: float,
    co2eq_g: float,
    precision: int = 6,
    interpretable: bool = True,
) -> str:
    """A consumption block, to be printed and logged after "CarbonTracker: ".

    Parameters
    ----------
    epochs
        None for a cell measured as one.
    energy_kwh, co2eq_g
        With PUE.
    precision
        Decimals.
    interpretable
        Adds the distance by car. What goes into a log always has it: carbontracker 1.2 to 2.4 finds no
        consumption without.

    Raises
    ------
    ValueError
        A figure is not finite.
    """
    what = f"{kind} consumption" + ("" if epochs is None else f" for {epochs} epoch(s)")
    text = (
        f"\n{what}:\n"
        f"\tTime:\t{clock_text(duration_s)}\n"
        f"\tEnergy:\t{fixed(energy_kwh, precision)} kWh\n"
        f"\tCO2eq:\t{fixed(co2eq_g, precision)} g"
    )
    if interpretable:
        text += (
            f"\n\tThis is equivalent to:\n\t{fixed(co2eq_g / CAR_G_PER_KM, precision)} km travelled by car"
        )
    return text


def place_text(intensity: Intensity) -> str:
    """The place as it can stand in a line: without the colon that ends it for carbontracker's report."""
    return plain_text(intensity.place.replace(":", " ")).rstrip(". ") or "Unknown"


def intensity_text(intensity: Intensity) -> str:
    """The carbon intensity for people: figure, place, source and how the place was found."""
    figure = f"{intensity.g_per_kwh:.2f} gCO2eq/kWh"
    origin = ", ".join(plain_text(part) for part in (intensity.source, intensity.time) if part)
    how = f"; place from {plain_text(intensity.how)}" if intensity.how and not intensity.is_fallback else ""
    in_brackets = f" ({origin}{how})" if origin or how else ""
    if intensity.is_fallback:
        return f"The place is unknown. Defaulted to an average carbon intensity of {figure}{in_brackets}."
    return f"Carbon intensity is {figure} at detected location: {place_text(intensity)}{in_brackets}."


def average_intensity_text(intensity: Intensity) -> str:
    """What carbontracker says of the carbon intensity at the end of a run."""
    return (
        f"Average carbon intensity during training was {fixed(intensity.g_per_kwh, 2)} gCO2eq/kWh "
        f"at detected location: {place_text(intensity)}."
    )


def intensity_texts(intensity: Intensity) -> list[str]:
    """The pair of lines about the carbon intensity that the standard log ends with.

    In this form the report of carbontracker 2.4.7 finds them, which it does not in the logs of 2.4.7 itself.
    Nothing is written for a figure that is not known.
    """
    if not math.isfinite(intensity.g_per_kwh):
        return []
    place, figure = place_text(intensity), fixed(intensity.g_per_kwh, 2)
    return [
        f"Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location {place}: [{figure}]",
        average_intensity_text(intensity),
    ]


STARTED_TEXT = "Monitoring thread started."
ENDED_TEXT = "Monitoring thread ended."
FINISHED_TEXT = "Finished monitoring."


# Extra lines.

EXTRA_MARK = "ct_notebook: "

RUN_FIELDS = ("run_id", "started_at", "epochs_declared", "devices", "intensity", "pue", "hosts")
"""What of a run stands in its `run` line. All other fields stand in its `end` line."""

STATE_FIELDS = (
    "epochs_declared",
    "devices",
    "intensity",
    "pue",
    "missing",
    "notes",
    "prediction",
    "paused_s",
    "paused_j",
)
"""What can change while a run goes on; written in a `state` line after an epoch when it did."""


def extra_text(kind: str, data: Mapping[str, Any]) -> str:
    """A line of ours: `ct_notebook: kind {json}`, which no pattern of carbontracker matches."""
    word = re.sub(r"[^a-z0-9_]+", "_", kind.lower())[:40]
    text = json.dumps(plain_value(data), ensure_ascii=True, default=str)
    return f"{EXTRA_MARK}{word} " + _TRIGGER.sub(lambda found: found[0].replace(" ", "\\u0020"), text)


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
    """What the `run` line holds."""
    return {name: plain_value(getattr(run, name)) for name in RUN_FIELDS}


def changed_data(before: Run | None, run: Run) -> dict[str, Any]:
    """What a `state` line holds: the fields that have changed."""
    return {
        name: plain_value(getattr(run, name))
        for name in STATE_FIELDS
        if before is None or (before is not run and getattr(run, name) != getattr(before, name))
    }


def end_data(run: Run) -> dict[str, Any]:
    """What the `end` line holds: all of the run but its epochs, its start and the paths of its files."""
    left_out = {"epochs", "log_paths", "run_id", "started_at"}
    return {
        field.name: plain_value(getattr(run, field.name))
        for field in fields(run)
        if field.name not in left_out
    }


def epoch_data(epoch: Epoch) -> dict[str, Any]:
    """What an `epoch` line holds."""
    return dict(plain_value(epoch))


def _known(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    # A newer version may write fields that this one does not know.
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


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
    return Epoch(**known)


def numbers_from(data: Mapping[str, Any]) -> Mapping[str, float]:
    """A mapping of numbers. Raises what `float` raises."""
    return MappingProxyType({str(key): float(value) for key, value in data.items()})


def _estimate_from(data: Mapping[str, Any] | None) -> Estimate | None:
    if data is None:
        return None
    known = _known(Estimate, data)
    for name in ("duration_s", "energy_j", "emissions_g"):
        known[name] = None if known.get(name) is None else Band(**_known(Band, known[name]))
    return Estimate(**known)


def run_fields_from(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a `Run` as a `run`, `state` or `end` line holds them.

    Raises
    ------
    TypeError, ValueError, KeyError, AttributeError
        The line does not hold them.
    """
    makers: dict[str, Any] = {
        "started_at": datetime.fromisoformat,
        "devices": lambda items: tuple(Device(**_known(Device, item)) for item in items),
        "intensity": lambda item: Intensity(**_known(Intensity, item)),
        "pue": lambda item: Pue(**_known(Pue, item)),
        "estimate": _estimate_from,
        "prediction": _estimate_from,
        "outside_j": numbers_from,
        "paused_j": numbers_from,
        "cost": numbers_from,
        "missing": lambda item: MappingProxyType(dict(item)),
        "notes": tuple,
        "hosts": tuple,
        "log_paths": tuple,
    }
    known = _known(Run, data)
    return {name: makers[name](value) if name in makers else value for name, value in known.items()}


# Reading: what every carbontracker from 1.0 to 2.4 has written.


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a log: its first line number, its local time if it has one, its text without both.

    `complete` is False for a message that the end of the file cuts off.
    """

    number: int
    at: datetime | None
    text: str
    complete: bool = True


_STAMP = re.compile(
    r"[ \t]*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:,\d{3})?"
    r"(?: - .{1,80}? - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL))? - (.*)"
)
_BARE = re.compile(
    r"\s*(?:CarbonTracker: )?(?:(?:carbontracker|ct_notebook) version |Only predicted and actual"
    r"|The following comp|Monitoring thread|Epoch \d+:|Duration:|Average (?:power|carbon)|Training was int"
    r"|Carbon intensit|Current carbon|Live carbon|Session ended|ct_notebook: )"
)


def clean(text: str) -> str:
    """Text of a log with Unix line ends, without the zero bytes and marks that damage and editors leave."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").lstrip("\ufeff")


def messages(text: str) -> list[Message]:
    """The messages of a log, each once.

    Lines without a time go on with the message before them, unless they begin as a message does: text copied
    from a screen has no times. A message that directly repeats the one before it is dropped: carbontracker
    1.1.7 to 1.2.5 writes every line twice when its tracker is made twice in a process.
    """
    text = clean(text)
    lines = text.split("\n")
    whole = lines[-1] == ""
    found: list[tuple[int, datetime | None, list[str]]] = []
    for number, content in enumerate(lines[:-1] if whole else lines, 1):
        stamped = _STAMP.match(content)
        at = _time_from(stamped[1]) if stamped else None
        if stamped and at:
            found.append((number, at, [stamped[2].removeprefix("CarbonTracker: ")]))
        elif _BARE.match(content):
            found.append((number, None, [content.strip().removeprefix("CarbonTracker: ")]))
        elif found:
            found[-1][2].append(content)
    made = [Message(number, at, "\n".join(parts)) for number, at, parts in found]
    if made and not whole:
        last = made[-1]
        made[-1] = Message(last.number, last.at, last.text, complete=False)
    return [
        message
        for place, message in enumerate(made)
        if place == 0 or (message.at, message.text) != (made[place - 1].at, made[place - 1].text)
    ]


def _time_from(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - logs hold local time, no zone
    except ValueError:
        return None


VERSION = re.compile(r"(carbontracker|ct_notebook) version (\S+)")
PUE = re.compile(r"Only predicted .* PUE coefficient of (\d+(?:\.\d+)?)(?: \((.*)\))?")
COMPONENTS_FOUND = re.compile(r"The following components were found:(.*)")
EPOCH = re.compile(r"Epoch (\d+):\s*$")
DURATION = re.compile(r"Duration:\s*(.*?)\s*$")
POWER = re.compile(r"Average power usage \(W\) for ([^:]+):\s*(.*?)\s*$", re.DOTALL)
INTERRUPTED = re.compile(r"Training was interrupted(?: before all (-?\d+) epochs)?", re.IGNORECASE)
ENDED = re.compile(r"Monitoring thread ended|Session ended by user")
STOPPED = re.compile(r"Session ended by user")
EXTRA = re.compile(r"ct_notebook: ([a-z0-9_]+) (\{.*\})\s*$")
INTENSITIES = re.compile(
    r"Carbon intensities \(gCO2(?:eq)?/kWh\) fetched every \d+ s "
    r"at detected location:?\s*(.*?): ?\[(.*)\]",
    re.DOTALL,
)
AVERAGE_INTENSITY = re.compile(
    r"Average carbon intensity during training was (\S+) gCO2(?:eq)?/kWh"
    r"(?: at detected location: (.*?))?\.?\s*$"
)
DEFAULT_INTENSITY = re.compile(
    r"Live carbon intensity could not .* carbon intensity for (.+?) in (\d{4}) of (\d+(?:\.\d+)?) gCO2"
)
LIVE_INTENSITY = re.compile(
    r"(?:Current carbon intensity is|Carbon intensity for the next .* is predicted to be"
    r"|Carbon intensity(?: fetched)?:)"
    r" (\d+(?:\.\d+)?) gCO2(?:eq)?/kWh at (?:detected location: )?(.*?)\.?\s*$"
)
_COMPONENT = re.compile(
    r"\s*([A-Z][A-Z0-9_]*) with device\(s\) (.*?)\.(?=\s+[A-Z][A-Z0-9_]* with device\(s\) |\s*$)", re.DOTALL
)
_CLOCK = re.compile(r"(-)?(?:(-?\d+) days?, )?(\d+):(\d{2}):(\d{1,2}(?:\.\d+)?)")
_NUMPY = re.compile(r"(?:np|numpy)\.\w+\(([^()]*)\)")
_BLOCK = re.compile(
    r"^[^\n]*?\b(?P<kind>Actual consumption|Predicted consumption|First|Prediction)"
    r"(?:(?: for)? (?P<epochs>-?\d+) epoch(?:\(s\)|s)?)?:[ \t]*\n"
    r"\s*Time:\s*(?P<time>[^\n]*?)(?: s)?[ \t]*\n"
    r"\s*Energy:\s*(?P<energy>\S+)[ \t]+kWh[ \t]*\n"
    r"\s*CO2eq:\s*(?P<co2eq>\S+)[ \t]+(?P<unit>k?g)\b[ \t]*(?:\n|\Z)"
    r"(?P<rest>\s*This is equivalent to:[ \t]*(?:\n|\Z)"
    r"(?:[ \t]*(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf)[ \t]+\D[^\n]*(?:\n|\Z))*)?",
    re.MULTILINE | re.IGNORECASE,
)


def seconds_from(text: str) -> float | None:
    """Seconds of `H:MM:SS`, `H:MM:SS.ss` or `1 day, H:MM:SS` anywhere in a text; None if there are none.

    A duration below zero, which a clock set back leaves, is none.
    """
    found = _CLOCK.search(text)
    if found is None or found[1] or (found[2] or "").startswith("-"):
        return None
    return float(found[2] or 0) * 86400 + float(found[3]) * 3600 + float(found[4]) * 60 + float(found[5])


def power_values_from(text: str) -> tuple[tuple[float | None, ...], bool]:
    """The watts of a power line, and whether they stood in brackets, one for each device.

    Reads `[60.0]`, `60.0`, numpy's padded and wrapped arrays, exponents, `np.float64(1.2)`, commas. `None`
    and `nan` are None: not measured.

    Raises
    ------
    ValueError
        It is none of these, or a power below zero.
    """
    text = _NUMPY.sub(r"\1", text.strip())
    bracketed = text.startswith("[")
    if bracketed:
        if not text.endswith("]"):
            msg = "the bracket does not close"
            raise ValueError(msg)
        parts = text.strip("[] \n\t").replace(",", " ").split()
    else:
        parts = [re.sub(r"^(\d{1,3}),(?=\d{3}\b)", r"\1", text)]
    if not parts or not parts[0]:
        msg = "there is no number"
        raise ValueError(msg)
    values: list[float | None] = []
    for part in parts:
        value = None if part == "None" else float(part)
        if value is not None and not math.isnan(value) and not 0 <= value < math.inf:
            msg = f"{part} W cannot be"
            raise ValueError(msg)
        values.append(None if value is None or math.isnan(value) else value)
    return tuple(values), bracketed


def is_counter_name(name: str) -> bool:
    """Whether carbontracker gives this name to a RAPL domain: `cpu:0`, `dram:1`."""
    return _RAPL.fullmatch(name) is not None


def components_from(text: str) -> dict[str, str]:
    """Component to the text that names its devices, full stops and commas in place."""
    return {found[1].lower(): found[2].strip() for found in _COMPONENT.finditer(text)}


_RAPL = re.compile(r"(?:cpu|dram|package|psys|core|uncore|ram)[-:_ ]?\d*", re.IGNORECASE)


def device_names_from(component: str, text: str, count: int | None = None) -> list[str]:
    """The names in a text of `components_from`, as many as `count` if that many powers were logged.

    carbontracker joins names by ", " and a name may hold a comma. A processor without a counter is one device
    with one name ("AMD A10, 10 Compute Cores"), so only names like `cpu:0, cpu:1` are taken apart.
    """
    parts = [part.strip() for part in text.split(",")]
    is_one = component == "cpu" and not all(map(is_counter_name, parts))
    return [text] if count == 1 or (count is None and is_one) else parts


@dataclass(frozen=True, slots=True)
class Consumption:
    """A block of an output log. Energy and CO2eq with PUE; nan where the log says nan.

    `epochs` is None for `Actual consumption:`, which says nothing of them; `equivalents` for a block without.
    """

    kind: Literal["Actual", "Predicted"]
    epochs: int | None
    duration_s: float | None
    energy_kwh: float
    co2eq_g: float
    equivalents: Mapping[str, float] | None
    at: datetime | None


def consumptions_from(text: str) -> tuple[list[Consumption], list[str]]:
    """All consumption blocks of an output log in order, and sentences on those that cannot be read."""
    text = clean(text)
    found: list[Consumption] = []
    problems: list[str] = []
    read_until = 0
    for block in _BLOCK.finditer(text):
        read_until = block.end()
        kind: Literal["Actual", "Predicted"] = "Predicted" if block["kind"][0] in "Pp" else "Actual"
        if block["kind"].lower() == "first":  # 1.0.0 calls what it has measured so
            kind = "Actual"
        try:
            energy_kwh = float(block["energy"])
            co2eq_g = float(block["co2eq"]) * (1000 if block["unit"].lower() == "kg" else 1)
        except ValueError:
            figures = f"{block['energy'][:40]} kWh, {block['co2eq'][:40]} g"
            problems.append(f"The numbers of {block['kind']!r} cannot be read: {figures}.")
            continue
        found.append(
            Consumption(
                kind,
                None if block["epochs"] is None else int(block["epochs"]),
                seconds_from(block["time"]),
                energy_kwh,
                co2eq_g,
                equivalents_from(block["rest"]) if block["rest"] else None,
                _last_time(text, block.start("kind")),
            )
        )
    announced = list(re.finditer(r"^[^\n]*\b(?:Actual|Predicted) consumption", text, re.MULTILINE))
    if announced and announced[-1].start() >= read_until:
        problems.append("The last consumption is cut off or not in a known form.")
    return found, problems


def equivalents_from(text: str) -> dict[str, float]:
    """What a consumption is equivalent to, such as "km travelled by car", to a number.

    Lines without a number are left out.
    """
    equivalents = {}
    for content in text.splitlines():
        number, _, what = content.strip().partition(" ")
        try:
            equivalents[what.strip()] = float(number)
        except ValueError:
            continue
    equivalents.pop("", None)
    return equivalents


def _last_time(text: str, position: int) -> datetime | None:
    # The head of the block's own message, which is at most two lines back.
    start = text.rfind("\n", 0, max(0, text.rfind("\n", 0, position)))
    for content in reversed(text[start + 1 : position].split("\n")):
        stamped = _STAMP.match(content)
        if stamped:
            return _time_from(stamped[1])
    return None
