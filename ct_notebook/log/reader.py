"""Log files of ct_notebook or of any carbontracker go in; a `Run` for each run in them comes out.

Logs of ct_notebook give back the run that was written, without loss. Logs of carbontracker give what they
hold: devices by name, powers and durations. What cannot be read is said in sentences, never guessed, and
never raised for a damaged file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ct_notebook.errors import LogError
from ct_notebook.log import extra, history
from ct_notebook.log import format as grammar
from ct_notebook.log.history import Consumption, Message
from ct_notebook.records import Band, Device, Epoch, Estimate, Intensity, Method, Pue, Run
from ct_notebook.units import J_PER_KWH

_Made = TypeVar("_Made")

GAUGE_BAND = (0.95, 1.13)
"""Of true to logged power of a GPU's own gauge, as for ours: Zeyu Yang et al., SC'24, arXiv 2312.02741."""

COUNTER_BAND, DRAM_BAND = (0.95, 1.05), (0.8, 1.2)
"""An allowance for the error of RAPL's counters, as for ours. Assumed."""

CONSTANT_BAND = (0.25, 2.1)
"""The same for half the TDP whatever the load: 5 and 95 % of the public measurements of package power in
tests/bench/data lie there. A TDP that is another CPU's is further off."""

OF_A_YEAR, OF_ANYWHERE = (0.5, 1.6), (0.05, 1.7)
"""Of true to logged carbon intensity, as for ours: of a yearly mean, which such a log does not tell from a
live figure, and of an average that stands in for a place that is unknown."""


def read_run(standard: str | Path, output: str | Path | None = None) -> tuple[Run, tuple[str, ...]]:
    """Read the run of a standard log, with what its output log adds.

    Parameters
    ----------
    standard
        A `…_carbontracker.log`.
    output
        The `…_carbontracker_output.log` of the same run; None if there is none.

    Returns
    -------
    run, problems
        The last run in the file, and sentences on what could not be read; no sentence if all was.

    Raises
    ------
    LogError
        A file cannot be opened.
    """
    runs, problems = read_file(standard, output)
    if len(runs) > 1:
        problems = (*problems, f"The file holds {len(runs)} runs, of which this is the last.")
    return runs[-1], problems


def read_runs(log_dir: str | Path) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Read all runs in a folder, oldest first.

    A run that several files hold is given once: carbontracker up to 1.2.5 goes on writing into the files of
    the tracker before.

    Returns
    -------
    runs, problems
        Each sentence begins with the name of its file.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    pairs, unpaired = log_pairs(log_dir)
    problems = list(unpaired)
    runs: list[Run] = []
    for standard, output in pairs:
        try:
            found, sentences = read_file(standard, output)
        except LogError as error:
            problems.append(str(error))
            continue
        problems += [f"{standard.name}: {sentence}" for sentence in sentences]
        for run in found:
            same = [other for other in runs if _same(run, other)]
            if same:
                problems.append(
                    f"{standard.name}: The run of {run.started_at} is in {same[0].log_paths[0]} too."
                )
            else:
                runs.append(run)
    runs.sort(key=lambda run: run.started_at.replace(tzinfo=None))
    return tuple(runs), tuple(problems)


def log_pairs(log_dir: str | Path) -> tuple[list[tuple[Path, Path | None]], list[str]]:
    """Find the standard logs in a folder, each with its output log; and sentences on those without a partner.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    folder = Path(log_dir)
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        msg = f"The logs in {folder} cannot be read: {error.strerror}. Give the folder that holds them."
        raise LogError(msg) from error
    outputs = {
        _stem(path, grammar.OUTPUT_SUFFIX): path for path in files if _stem(path, grammar.OUTPUT_SUFFIX)
    }
    pairs: list[tuple[Path, Path | None]] = []
    problems = []
    for path in files:
        stem = _stem(path, grammar.STANDARD_SUFFIX)
        if stem:
            pairs.append((path, outputs.pop(stem, None)))
            if pairs[-1][1] is None:
                problems.append(f"{path.name}: There is no output log beside it.")
    problems += [
        f"{path.name}: There is no standard log beside it, so it is not read." for path in outputs.values()
    ]
    return pairs, problems


def _stem(path: Path, suffix: str) -> str:
    return path.name[: -len(suffix)] if path.name.endswith(suffix) else ""


def _same(run: Run, other: Run) -> bool:
    # Only a run that is not the first of its file can be in another one too.
    appended = "#" in run.run_id or "#" in other.run_id
    return (
        appended
        and bool(run.epochs)
        and (run.started_at, run.devices, run.epochs)
        == (
            other.started_at,
            other.devices,
            other.epochs,
        )
    )


def read_file(
    standard: str | Path, output: str | Path | None = None
) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Read all runs of a standard log, at least one. carbontracker up to 1.2.5 may append several to a file.

    Raises
    ------
    LogError
        A file cannot be opened.
    """
    standard = Path(standard)
    text, problems = read_text(standard)
    output_text = ""
    if output is not None:
        output_text, output_problems = read_text(Path(output))
        problems += [f"In the output log: {problem}" for problem in output_problems]
    consumptions, block_problems = history.consumptions_from(output_text)
    problems += [f"In the output log: {problem}" for problem in block_problems]
    parts = split_runs(history.messages(text))
    if not parts:
        problems.append("There is no line of a log in it.")
    stem = _stem(standard, grammar.STANDARD_SUFFIX) or standard.stem
    paths = tuple(str(path) for path in (standard, output) if path is not None)
    runs = []
    for place, part in enumerate(parts or [[]]):
        run_id = stem if place == 0 else f"{stem}#{place + 1}"
        begun = _first_time(part) or _changed_at(standard)
        next_begun = _first_time(parts[place + 1]) if place + 1 < len(parts) else None
        mine = [block for block in consumptions if len(parts) == 1 or _within(block.at, begun, next_begun)]
        run, sentences = _run_from(part, mine, run_id, begun)
        problems += sentences
        runs.append(replace(run, log_paths=paths))
    return tuple(runs), tuple(problems)


def runs_from(text: str, consumptions: Iterable[Consumption] = ()) -> list[Run]:
    """The runs in the text of a standard log, whatever can be read of them."""
    blocks = list(consumptions)
    begun = datetime.fromtimestamp(0)  # noqa: DTZ006 - for a text without times
    return [
        _run_from(part, blocks, "", _first_time(part) or begun)[0]
        for part in split_runs(history.messages(text))
    ]


def read_text(path: Path) -> tuple[str, list[str]]:
    """Text of a file and sentences on what is wrong with its bytes.

    Raises
    ------
    LogError
        The file cannot be opened.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise LogError(msg) from error
    problems = ["It holds zero bytes, as a crash leaves them."] if b"\0" in content else []
    try:
        return content.decode("utf-8"), problems
    except UnicodeDecodeError:
        # carbontracker writes in the encoding of the machine; all that its format needs is ASCII.
        return content.decode("cp1252", errors="replace"), problems


def split_runs(messages: Iterable[Message]) -> list[list[Message]]:
    """Messages of each run in a file: every one begins by naming a version."""
    parts: list[list[Message]] = []
    for message in messages:
        if not parts or history.VERSION.match(message.text):
            parts.append([])
        parts[-1].append(message)
    return parts


def _first_time(messages: list[Message]) -> datetime | None:
    return next((message.at for message in messages if message.at), None)


def _changed_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime)  # noqa: DTZ006 - local time, as in the logs
    except OSError:  # removed since it was read
        return datetime.fromtimestamp(0)  # noqa: DTZ006 - the same


def _within(at: datetime | None, begun: datetime, next_begun: datetime | None) -> bool:
    return at is None or (at >= begun and (next_begun is None or at < next_begun))


# Epochs as lines have them.


@dataclass(slots=True)
class LoggedEpoch:
    """The lines of an epoch as they stand, before anything is made of them.

    `powers_w` is None where a component was not measured, `bracketed` the components whose line is an array.
    """

    index: int
    at: datetime | None
    duration_s: float | None = None
    powers_w: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    bracketed: set[str] = field(default_factory=set)


def logged_epochs(messages: Iterable[Message]) -> tuple[list[LoggedEpoch], list[str]]:
    """The epochs of a run or file in order, and sentences on lines that cannot be read."""
    epochs: list[LoggedEpoch] = []
    problems: list[str] = []
    for message in messages:
        text = message.text
        if found := history.EPOCH.match(text):
            epochs.append(LoggedEpoch(int(found[1]), message.at))
        elif found := history.DURATION.match(text):
            duration_s = history.seconds_from(found[1]) if message.complete else None
            if not epochs:
                problems.append(f"Line {message.number} is a duration of no epoch.")
            elif duration_s is None:
                problems.append(f"Line {message.number} is no duration that can be: {found[1][:40]!r}.")
            else:
                epochs[-1].duration_s = duration_s
        elif found := history.POWER.match(text):
            _add_power(epochs, message, found[1].strip().lower(), found[2], problems)
        elif (found := extra.PATTERN.match(text)) and found[1] == "not_measured" and epochs:
            component = (_json(found[2]) or {}).get("component")
            if component in epochs[-1].powers_w:
                # The number in the line is there for carbontracker's sake only.
                epochs[-1].powers_w[component] = (None,)
    return epochs, problems


def _add_power(
    epochs: list[LoggedEpoch], message: Message, component: str, text: str, problems: list[str]
) -> None:
    if not epochs:
        problems.append(f"Line {message.number} is a power of no epoch.")
        return
    if not message.complete:
        problems.append(f"Line {message.number} is cut off.")
        return
    try:
        values, bracketed = history.power_values_from(text)
    except ValueError as error:
        problems.append(f"Line {message.number} is no power that can be read ({error}): {text[:40]!r}.")
        return
    epoch = epochs[-1]
    before = epoch.powers_w.get(component)
    if before is not None and any(value is not None for value in before):
        # A processor that may not be read gives carbontracker a second row with nothing in it.
        if any(value is not None for value in values) and values != before:
            problems.append(f"Line {message.number} is a second power of {component} in epoch {epoch.index}.")
        return
    epoch.powers_w[component] = values
    if bracketed:
        epoch.bracketed.add(component)


def _json(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# A run of either kind.


def _run_from(
    messages: list[Message], consumptions: list[Consumption], run_id: str, begun: datetime
) -> tuple[Run, list[str]]:
    extras, problems = _extras(messages)
    if "run" in extras:
        try:
            run, sentences = _our_run(extras, messages, consumptions)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            problems.append(
                f"The lines of ct_notebook do not fit together ({error}), so only the others are read."
            )
        else:
            return run, problems + sentences
    run, sentences = _their_run(messages, consumptions, run_id, begun)
    return run, problems + sentences


def _extras(messages: list[Message]) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """The contents of our own lines by kind."""
    extras: dict[str, list[dict[str, Any]]] = {}
    problems = []
    for message in messages:
        if not message.text.startswith(extra.MARK):
            continue
        found = extra.PATTERN.match(message.text)
        data = _json(found[2]) if found else None
        if found is None or data is None:
            problems.append(f"Line {message.number} is damaged.")
        else:
            extras.setdefault(found[1], []).append(data)
    return extras, problems


def _attempt(
    make: Callable[[Mapping[str, Any]], _Made], data: Mapping[str, Any], what: str, problems: list[str]
) -> _Made | None:
    try:
        return make(data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        problems.append(f"A line {what} cannot be read ({error}).")
        return None


def _our_run(
    extras: dict[str, list[dict[str, Any]]], messages: list[Message], consumptions: list[Consumption]
) -> tuple[Run, list[str]]:
    problems: list[str] = []
    known = extra.run_fields_from(extras["run"][0])
    # Later words win: epochs declared in mid-run, then what changed, then the end.
    declared = [{"epochs_declared": data.get("epochs")} for data in extras.get("declared", [])]
    for data in [*declared, *extras.get("state", []), *extras.get("end", [])]:
        known |= _attempt(extra.run_fields_from, data, "on the state of the run", problems) or {}
    made = [_attempt(extra.epoch_from, data, "of an epoch", problems) for data in extras.get("epoch", [])]
    epochs = [epoch for epoch in made if epoch is not None]
    in_words = {int(found[1]) for message in messages if (found := history.EPOCH.match(message.text))}
    lost = sorted(in_words - {epoch.index for epoch in epochs})
    if lost:
        problems.append(f"The energy of these epochs is lost: {', '.join(map(str, lost))}.")
    run = Run(**known, epochs=tuple(epochs))
    if "end" not in extras:
        # Killed, or still going on: what is known is what the last epoch left.
        end_s = max((epoch.end_s for epoch in epochs), default=0.0)
        start_s = min((epoch.start_s for epoch in epochs), default=0.0)
        predicted = next((block for block in consumptions if block.kind == "Predicted"), None)
        logged, _ = logged_epochs(messages)
        prediction = run.prediction or _prediction(predicted, logged, run.pue, _version(messages))
        told = [data["text"] for data in extras.get("note", []) if isinstance(data.get("text"), str)]
        run = replace(
            run,
            closed=False,
            prediction=prediction,
            estimate=run.estimate or prediction,
            duration_s=run.duration_s or end_s - start_s,
            notes=(
                *dict.fromkeys((*run.notes, *told)),
                "The log has no end: the run was killed or is still going on.",
            ),
        )
    return run, problems


def _their_run(
    messages: list[Message], consumptions: list[Consumption], run_id: str, begun: datetime
) -> tuple[Run, list[str]]:
    logged, problems = logged_epochs(messages)
    version = _version(messages)
    notes = (
        [f"Read from a log of {' '.join(version)}, which tells no interval; ours go by how it measured."]
        if version
        else []
    )
    if not version and messages:
        problems.append("The log does not say which version wrote it.")
    pue = _pue(messages, notes)
    devices = _devices(messages, logged, version, notes, problems)
    epochs = _epochs(logged, devices, begun, notes, problems)
    actual = next((block for block in reversed(consumptions) if block.kind == "Actual"), None)
    predicted = next((block for block in consumptions if block.kind == "Predicted"), None)
    prediction = _prediction(predicted, logged, pue, version)
    stops = [found for message in messages if (found := history.INTERRUPTED.match(message.text))]
    declared = [int(found[1]) for found in stops if found[1] and int(found[1]) > 0]
    ended = next((message.text for message in messages if history.ENDED.match(message.text)), "")
    if messages and not ended:
        notes.append("The log has no end: the run was killed or never stopped.")
    if actual and actual.epochs is not None and actual.epochs != len(logged):
        notes.append(f"The output log counts {actual.epochs} epochs, the standard log has {len(logged)}.")
    last = max((message.at for message in messages if message.at), default=begun)
    durations_s = sum(epoch.duration_s for epoch in epochs)
    run = Run(
        run_id=run_id,
        started_at=begun,
        epochs_declared=declared[0] if declared else prediction.epochs if prediction else None,
        devices=tuple(device for members in devices.values() for device in members),
        intensity=_intensity(messages, actual or predicted),
        pue=pue,
        epochs=epochs,
        duration_s=max(durations_s, (last - begun).total_seconds()),
        estimate=prediction,
        prediction=prediction,
        early_stop=bool(stops) or ended.startswith("Session ended"),
        closed=bool(ended),
        reason="the user chose to stop" if ended.startswith("Session ended") else "",
        notes=tuple(notes),
    )
    return run, problems


def _version(messages: list[Message]) -> tuple[str, str] | None:
    found = (history.VERSION.match(message.text) for message in messages)
    return next(((line[1], line[2]) for line in found if line), None)


def _pue(messages: list[Message], notes: list[str]) -> Pue:
    for message in messages:
        if found := history.PUE.match(message.text):
            return Pue(float(found[1]), found[2] or "as the log says")
    if messages:
        notes.append("The log names no PUE, so none is applied.")
    return Pue(1.0, "the log names none")


def _devices(
    messages: list[Message],
    logged: list[LoggedEpoch],
    version: tuple[str, str] | None,
    notes: list[str],
    problems: list[str],
) -> dict[str, list[Device]]:
    """Devices by component. Their number decides what a bare figure, a mean over devices, stands for."""
    lines = [line[1] for message in messages if (line := history.COMPONENTS_FOUND.match(message.text))]
    texts = history.components_from(lines[0]) if lines else {}
    for component in sorted({component for epoch in logged for component in epoch.powers_w} - set(texts)):
        problems.append(f"No device of {component} is named, though its power is logged.")
        texts[component] = "unnamed"
    writer = " ".join(version) if version else "an unknown version"
    found: dict[str, list[Device]] = {}
    for component, text in grammar.in_order(texts).items():
        arrays = [len(epoch.powers_w[component]) for epoch in logged if component in epoch.bracketed]
        count = max(arrays, default=None)
        names = history.device_names_from(component, text, count)
        if count is not None and count != len(names):
            problems.append(f"{component} has {len(names)} names but {count} powers.")
            names = [*names, *["unnamed"] * count][:count]
        if count is None and len(set(names)) > 1 and component == "gpu":
            notes.append(f"{text!r} is taken for {len(names)} devices.")
        found[component] = [_device(component, place, name, writer) for place, name in enumerate(names)]
    return found


def _device(component: str, place: int, name: str, writer: str) -> Device:
    method = _method(component, name)
    low, high = {"measured": GAUGE_BAND, "counter": COUNTER_BAND, "constant": CONSTANT_BAND}[method]
    if method == "counter" and name.startswith("dram"):
        low, high = DRAM_BAND
    return Device(f"{component}:{place}", component, name, method, f"logged by {writer}", low=low, high=high)


def _method(component: str, name: str) -> Method:
    # carbontracker samples NVML power, reads RAPL counters under names like cpu:0, else takes a table's TDP.
    if component == "gpu":
        return "measured"
    return "counter" if history.is_counter_name(name) else "constant"


def _epochs(
    logged: list[LoggedEpoch],
    devices: dict[str, list[Device]],
    begun: datetime,
    notes: list[str],
    problems: list[str],
) -> tuple[Epoch, ...]:
    epochs = []
    unread: dict[str, list[int]] = {}
    means: set[str] = set()
    for place, lines in enumerate(logged):
        if lines.duration_s is None:
            problems.append(f"Epoch {lines.index} has no duration.")
            continue
        energy_j: dict[str, float] = {}
        for component, members in devices.items():
            values = lines.powers_w.get(component, (None,))
            if len(values) == 1 and len(members) > 1:
                # Since 2.0.0 one figure, the mean over devices; before, None for all of them.
                if values[0] is not None:
                    means.add(component)
                values = values * len(members)
            for device, power_w in zip(members, values, strict=False):
                # No device that is on draws nothing: carbontracker writes 0.0 for one it could not read.
                if power_w:
                    energy_j[device.key] = power_w * lines.duration_s
                else:
                    unread.setdefault(component, []).append(lines.index)
        end_s = (lines.at - begun).total_seconds() if lines.at else float(place)
        epochs.append(
            Epoch(
                index=lines.index,
                start_s=end_s - lines.duration_s,
                end_s=end_s,
                energy_j=energy_j,
                covered_s=dict.fromkeys(energy_j, lines.duration_s),
            )
        )
    problems += [
        f"{component} was not measured in {len(set(indices))} of {len(logged)} epochs."
        for component, indices in unread.items()
    ]
    notes += [
        f"The log holds the mean over {len(devices[component])} {component} devices; it is counted for each."
        for component in sorted(means)
    ]
    indices = [epoch.index for epoch in epochs]
    twice = sorted({index for index in indices if indices.count(index) > 1})
    if twice:
        notes.append(
            f"Logged more than once: epoch {', '.join(map(str, twice))}. Its time may be counted twice."
        )
    return tuple(epochs)


def _prediction(
    block: Consumption | None, logged: list[LoggedEpoch], pue: Pue, version: tuple[str, str] | None
) -> Estimate | None:
    if block is None or block.epochs is None or block.duration_s is None:
        return None
    before = sum(1 for epoch in logged if epoch.at and block.at and epoch.at <= block.at)

    def point(value: float) -> Band:
        return Band(value, value, value)

    return Estimate(
        epochs=block.epochs,
        made_after=before,
        duration_s=point(block.duration_s),
        energy_j=point(block.energy_kwh * J_PER_KWH / pue.value),
        emissions_g=point(block.co2eq_g),
        method=f"as {' '.join(version) if version else 'the log'} predicted",
    )


def _intensity(messages: list[Message], block: Consumption | None) -> Intensity:
    """The carbon intensity that the log states, or that its consumption was made with; nan if neither."""
    place, default, live, average = "", None, None, None
    for message in messages:
        text = message.text
        if found := history.AVERAGE_INTENSITY.match(text):
            average, place = _number(found[1]), found[2] or place
        elif found := history.INTENSITIES.match(text):
            place = found[1] or place
            try:
                values, _ = history.power_values_from(f"[{found[2]}]")
            except ValueError:
                continue
            read = [value for value in values if value is not None]
            live = sum(read) / len(read) if read else live
        elif found := history.DEFAULT_INTENSITY.match(text):
            default = found
        elif found := history.LIVE_INTENSITY.match(text):
            live, place = _number(found[1]), found[2] or place
    if place.upper() in ("", "UNKNOWN", "UNDETECTED"):
        place = "Unknown"
    figure = average if average is not None else live
    if figure is None and default is not None:
        figure = _number(default[3])
    if figure is None and block is not None and block.energy_kwh > 0 and math.isfinite(block.co2eq_g):
        figure = block.co2eq_g / block.energy_kwh
    low, high = OF_ANYWHERE if place == "Unknown" else OF_A_YEAR
    return Intensity(
        g_per_kwh=math.nan if figure is None else figure,
        zone=None,
        place=place,
        source="the log" if figure is not None else "not in the log",
        time=default[2] if default is not None else "",
        kind="",
        is_fallback=place == "Unknown",
        low=low,
        high=high,
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
