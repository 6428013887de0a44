"""Text that any carbontracker from 1.0 to 2.4 has written comes in; messages, numbers and names go out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal


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
