"""Records go in, text lines in carbontracker's format come out: what we write, and why so.

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

The lines that begin with `ct_notebook:` are those of `extra`. The others are what the parsers of
carbontracker 1.1 to 2.4 were seen to accept. Two rules come from their patterns: a power is one bracketed
fixed-point number (the only form that all of them read), and the equivalents always follow a consumption (2.x
finds no consumption without them).
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

from ct_notebook.records import COMPONENTS, Device, Epoch, Intensity, Pue, Run
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
    return harmless(one_line(text, 8 * limit), "_")[:limit].strip()


def one_line(text: str, limit: int = TEXT_LENGTH) -> str:
    """Text from outside as one line of at most `limit` characters, without control or direction marks."""
    # A name may be megabytes long; only so much of it is looked at.
    visible = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text[: 8 * limit])
    return " ".join(visible.split())[:limit].strip()


def harmless(text: str, space: str) -> str:
    """A text in which carbontracker finds nothing to read: `space` stands for the spaces of what it seeks."""
    return _TRIGGER.sub(lambda found: found[0].replace(" ", space), text)


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
    known = (intensity.source, intensity.time, intensity.kind)
    origin = ", ".join(plain_text(part) for part in known if part)
    how = f"; place from {plain_text(intensity.how)}" if intensity.how and not intensity.is_fallback else ""
    in_brackets = f" ({origin}{how})" if origin or how else ""
    if intensity.is_fallback:
        return f"The place is unknown. Defaulted to an average carbon intensity of {figure}{in_brackets}."
    return f"Carbon intensity is {figure} at detected location: {place_text(intensity)}{in_brackets}."


def charged_text(intensity: Intensity) -> str:
    """At which carbon intensity the grams of a run were told, with place, time, kind and source."""
    known = (place_text(intensity), intensity.time, intensity.kind)
    of = ", ".join(plain_text(part) for part in known if part)
    return f"CO2eq is told at {intensity.g_per_kwh:.4g} gCO2eq/kWh ({of}; {plain_text(intensity.source)})."


def average_intensity_text(intensity: Intensity) -> str:
    """What carbontracker says of the carbon intensity at the end of a run."""
    return (
        f"Average carbon intensity during training was {fixed(intensity.g_per_kwh, 2)} gCO2eq/kWh "
        f"at detected location: {place_text(intensity)}."
    )


def intensity_texts(intensity: Intensity, held: Sequence[Intensity] = ()) -> list[str]:
    """The pair of lines about the carbon intensity that the standard log ends with.

    Parameters
    ----------
    intensity
        The mean over the run.
    held
        Those that held one after the other, if there was more than one.

    In this form the report of carbontracker 2.4.7 finds them, which it does not in the logs of 2.4.7 itself.
    Nothing is written for a figure that is not known.
    """
    if not math.isfinite(intensity.g_per_kwh):
        return []
    place = place_text(intensity)
    figures = ", ".join(fixed(each.g_per_kwh, 2) for each in (held or (intensity,)))
    return [
        f"Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location {place}: [{figures}]",
        average_intensity_text(intensity),
    ]


STARTED_TEXT = "Monitoring thread started."
ENDED_TEXT = "Monitoring thread ended."
FINISHED_TEXT = "Finished monitoring."
