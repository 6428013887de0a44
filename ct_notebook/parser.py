"""A folder of logs goes in; what `carbontracker.parser` returns comes out, by the same names and shapes.

A script that has `from carbontracker import parser` runs with `from ct_notebook import parser`. Logs of
ct_notebook and of every carbontracker from 1.0 to 2.4 are read. Shapes and units are those of carbontracker
2.4.7, powers stay as they are logged (since 2.0.0 the mean over a component's devices;
`ct_notebook.log.reader` gives totals). Different, on purpose:

- `actual["epochs"]` is the number of epochs that were measured; carbontracker since 2.0.0 always gives 1.
- Finished runs are aggregated from what was measured; carbontracker takes the prediction for most of them.
- Names of devices are whole; carbontracker cuts them at the first full stop.
- A power that was not measured is nan; carbontracker gives 0 or fails.
- Figures are found with and without equivalents; `[1.5 2.5]`, exponents and `np.float64(…)` are read.
- What cannot be read raises nothing: `problems` tells it per file, and reading the file gives a `LogWarning`.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ct_notebook.errors import LogError
from ct_notebook.log import format as grammar
from ct_notebook.log import history, reader
from ct_notebook.log.history import Consumption
from ct_notebook.records import Run
from ct_notebook.units import kwh

Measurements = dict[str, Any]
"""`epochs` int, `duration (s)`, `energy (kWh)` and `co2eq (g)` float, `equivalents` dict or None."""


class LogWarning(UserWarning):
    """Something in a log file could not be read. The text names the file and says what."""


def problems(log_dir: str | Path) -> dict[str, tuple[str, ...]]:
    """What could not be read in each file of a folder.

    Returns
    -------
    dict
        Path of the standard log to sentences, for those files that have any; the folder's own path for
        files that are left out.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    pairs, unpaired = reader.log_pairs(log_dir)
    found: dict[str, tuple[str, ...]] = {str(log_dir): tuple(unpaired)}
    for standard, output in pairs:
        found[str(standard)] = _read(str(standard), None if output is None else str(output))[1]
    return {path: sentences for path, sentences in found.items() if sentences}


def parse_all_logs(log_dir: str | Path) -> list[dict[str, Any]]:
    """Read every pair of logs in a folder.

    Returns
    -------
    list of dict
        `output_filename`, `standard_filename`, `components` (see `parse_logs`), `early_stop`, `actual` and
        `pred` (see `get_consumption`). A pair that cannot be opened is left out.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    logs = []
    for output, standard in zip(*get_all_logs(log_dir), strict=True):
        try:
            standard_text, output_text = _text(standard), _text(output)
        except LogError as error:
            warnings.warn(str(error), LogWarning, stacklevel=2)
            continue
        actual, pred = _consumption(standard_text, output_text)
        logs.append(
            {
                "output_filename": output,
                "standard_filename": standard,
                "components": _components(standard_text),
                "early_stop": get_early_stop(standard_text),
                "actual": actual,
                "pred": pred,
            }
        )
        _warn(standard, output)
    return logs


def parse_logs(
    log_dir: str | Path, std_log_file: str | Path | None = None, output_log_file: str | Path | None = None
) -> dict[str, dict[str, Any]]:
    """Read the components of one standard log, by default the newest in the folder.

    Returns
    -------
    dict
        Component (`gpu`, `cpu`, `ram`) to `avg_power_usages (W)`, `avg_energy_usages (J)` (arrays of one
        row per epoch, with a column per device where the log has them apart, else one), `epoch_durations
        (s)` (array of one number per epoch) and `devices` (names). None for the arrays of a log without
        epochs.

    Raises
    ------
    LogError
        There is no log or it cannot be opened.
    """
    if std_log_file is None or output_log_file is None:
        std_log_file, output_log_file = get_most_recent_logs(log_dir)
    components = _components(_text(std_log_file))
    _warn(str(std_log_file), None)
    return components


def _components(standard_text: str) -> dict[str, dict[str, Any]]:
    durations = get_epoch_durations(standard_text)
    powers = get_avg_power_usages(standard_text)
    components = {}
    for component, devices in get_devices(standard_text).items():
        rows = powers.get(component)
        power_w = np.array(rows) if rows else None
        duration_s = np.array(durations) if durations else None
        components[component] = {
            "avg_power_usages (W)": power_w,
            "avg_energy_usages (J)": None
            if power_w is None or duration_s is None
            else (power_w.T * duration_s).T,
            "epoch_durations (s)": duration_s,
            "devices": devices,
        }
    return components


def get_consumption(output_log_data: str) -> tuple[Measurements | None, Measurements | None]:
    """Find the actual and the predicted consumption in the text of an output log.

    Returns
    -------
    actual, pred
        `epochs`, `duration (s)`, `energy (kWh)`, `co2eq (g)` (both with PUE) and `equivalents`; None if
        there is no such block. A block that names no epochs counts as one; `parse_all_logs`, which sees the
        standard log too, gives their number.
    """
    blocks, _ = history.consumptions_from(output_log_data)
    first: dict[str, Consumption] = {}
    for block in blocks:
        first.setdefault(block.kind, block)
    actual, pred = (_measurements(first.get(kind)) for kind in ("Actual", "Predicted"))
    return actual, pred


def _measurements(block: Consumption | None) -> Measurements | None:
    if block is None:
        return None
    return {
        # carbontracker counts -1 epochs for a run that was stopped before its first.
        "epochs": 1 if block.epochs is None else max(0, block.epochs),
        "duration (s)": block.duration_s,
        "energy (kWh)": block.energy_kwh,
        "co2eq (g)": block.co2eq_g,
        "equivalents": None if block.equivalents is None else dict(block.equivalents),
    }


def _consumption(standard_text: str, output_text: str) -> tuple[Measurements | None, Measurements | None]:
    """`get_consumption` with the epochs that the standard log has.

    `Actual consumption:` does not count them, and `stop()` of carbontracker counts one too few for the
    energy it states, which the block's own time shows.
    """
    actual, pred = get_consumption(output_text)
    durations = get_epoch_durations(standard_text)
    time_s = None if actual is None else actual["duration (s)"]
    # The block's time is rounded to a second.
    if actual is not None and durations and time_s is not None and abs(sum(durations) - time_s) <= 1.0:
        actual["epochs"] = len(durations)
    return actual, pred


def extract_measurements(match: Any) -> Measurements | None:
    """Turn a match with the groups epochs, time, energy, CO2eq and equivalents into measurements.

    Without the first group it counts as one epoch, as in carbontracker.
    """
    if not match:
        return None
    groups = list(match.groups())
    if len(groups) == 4:
        groups.insert(0, 1)
    energy, co2eq, equivalents = get_stats(groups)
    return {
        "epochs": int(groups[0]),
        "duration (s)": get_time(groups[1]),
        "energy (kWh)": energy,
        "co2eq (g)": co2eq,
        "equivalents": equivalents,
    }


def get_stats(groups: Sequence[Any]) -> tuple[float, float, dict[str, float] | None]:
    """Energy in kWh, CO2eq in g and equivalents of the groups epochs, time, energy, CO2eq, equivalents."""
    equivalents = groups[4] if len(groups) > 4 else None
    return float(groups[2]), float(groups[3]), None if equivalents is None else parse_equivalents(equivalents)


def get_early_stop(std_log_data: str) -> bool:
    """Whether the text of a standard log says that training was interrupted, or that the user ended it."""
    messages = history.messages(std_log_data)
    return any(history.INTERRUPTED.match(m.text) or history.STOPPED.match(m.text) for m in messages)


def get_time(time_str: str) -> float | None:
    """Seconds of `H:MM:SS`, `H:MM:SS.ss` or `1 day, H:MM:SS`; None if it is none of them."""
    return history.seconds_from(time_str)


def parse_equivalents(lines: str) -> dict[str, float]:
    """Numbers of lines like `0.001914 km travelled by car`, by what follows them."""
    return history.equivalents_from(lines)


def aggregate_consumption(log_dir: str | Path) -> tuple[float, float, dict[str, float]]:
    """Sum up the runs in a folder.

    A run counts as measured if it ended, by itself or early, with all its epochs monitored. A run that
    monitored only its first epochs counts as predicted. A run whose log has no consumption, or nan, counts
    by its epochs' own energy, PUE and carbon intensity, so a killed run counts for what it did.

    Returns
    -------
    energy, co2eq, equivalents
        kWh, g, and numbers by what they stand for. A CO2eq that is nan in a log is left out.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    energy_kwh, co2eq_g = 0.0, 0.0
    equivalents: dict[str, float] = {}
    for output, standard in zip(*get_all_logs(log_dir), strict=True):
        try:
            actual, pred = _consumption(_text(standard), _text(output))
            runs, _ = _read(standard, output)
        except LogError as error:
            warnings.warn(str(error), LogWarning, stacklevel=2)
            continue
        _warn(standard, output)
        counted = _counted(actual, pred, runs, early_stop=get_early_stop(_text(standard)))
        if counted is None:
            continue
        energy_kwh += _finite(counted["energy (kWh)"])
        co2eq_g += _finite(counted["co2eq (g)"])
        for what, number in (counted["equivalents"] or {}).items():
            equivalents[what] = equivalents.get(what, 0.0) + _finite(number)
    return energy_kwh, co2eq_g, equivalents


def _counted(
    actual: Measurements | None, pred: Measurements | None, runs: Sequence[Run], *, early_stop: bool
) -> Measurements | None:
    if actual is not None and math.isfinite(actual["energy (kWh)"]):
        monitored_in_part = pred is not None and not early_stop and actual["epochs"] < pred["epochs"]
        return pred if monitored_in_part else actual
    measured = _sum_of_epochs(runs)
    return pred if measured is None else measured


def _sum_of_epochs(runs: Sequence[Run]) -> Measurements | None:
    energy_kwh = sum(kwh(run.energy_j.value) * run.pue.value for run in runs if run.energy_j is not None)
    co2eq_g = sum(run.emissions_g.value for run in runs if run.emissions_g is not None)
    if energy_kwh == 0 or not math.isfinite(co2eq_g):
        return None
    return {
        "epochs": sum(len(run.epochs) for run in runs),
        "duration (s)": sum(run.duration_s for run in runs),
        "energy (kWh)": energy_kwh,
        "co2eq (g)": co2eq_g,
        "equivalents": {"km travelled by car": co2eq_g / grammar.CAR_G_PER_KM},
    }


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def print_aggregate(log_dir: str | Path) -> None:
    """Print what `aggregate_consumption` finds, as a sentence for a paper.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    energy_kwh, co2eq_g, equivalents = aggregate_consumption(log_dir)
    like = " or ".join(f"{number:.6f} {what}" for what, number in equivalents.items())
    sys.stdout.write(
        f"Training used {energy_kwh:.6f} kWh of electricity, which caused {co2eq_g / 1000:.6f} kg of CO2eq"
        f"{f', as much as {like}' if like else ''} (logs in {log_dir}, read by ct_notebook).\n"
    )


def get_all_logs(log_dir: str | Path) -> tuple[list[str], list[str]]:
    """Paths of the output logs and of the standard logs in a folder, in pairs.

    Empty files and files without a partner are left out; `problems` names them.

    Raises
    ------
    LogError
        The folder cannot be opened.
    """
    pairs, _ = reader.log_pairs(log_dir)
    whole = [(output, standard) for standard, output in pairs if output and _size(output) and _size(standard)]
    return [str(output) for output, _ in whole], [str(standard) for _, standard in whole]


def get_most_recent_logs(log_dir: str | Path) -> tuple[str, str]:
    """Paths of the standard log that was changed last, and of the output log of the same run.

    Raises
    ------
    LogError
        There is no pair of logs.
    """
    outputs, standards = get_all_logs(log_dir)
    if not standards:
        msg = f"There is no log in {log_dir}. Give the folder that a run had as its log_dir."
        raise LogError(msg)
    newest = max(range(len(standards)), key=lambda place: _changed_at(standards[place]))
    return standards[newest], outputs[newest]


def get_devices(std_log_data: str) -> dict[str, list[str]]:
    """Names of the devices by component, whole."""
    runs = reader.runs_from(std_log_data)
    devices: dict[str, list[str]] = {}
    for device in runs[0].devices if runs else ():
        devices.setdefault(grammar.component_name(device.component), []).append(device.name)
    return grammar.in_order(devices)


def get_epoch_durations(std_log_data: str) -> list[float]:
    """Seconds of each epoch, nan for one whose duration cannot be read."""
    epochs, _ = reader.logged_epochs(history.messages(std_log_data))
    return [math.nan if epoch.duration_s is None else epoch.duration_s for epoch in epochs]


def get_avg_power_usages(std_log_data: str) -> dict[str, list[list[float]]]:
    """Watts by component: one row per epoch, with one number or as many as there are devices.

    nan where a device was not measured.
    """
    epochs, _ = reader.logged_epochs(history.messages(std_log_data))
    width: dict[str, int] = {}
    for epoch in epochs:
        for component, values in epoch.powers_w.items():
            width[component] = max(width.get(component, 0), len(values))
    return {
        component: [_row(epoch.powers_w.get(component, ()), columns) for epoch in epochs]
        for component, columns in width.items()
    }


def _row(values: Sequence[float | None], columns: int) -> list[float]:
    row = [math.nan if value is None else value for value in values]
    return row + [math.nan] * (columns - len(row))


def _text(path: str | Path) -> str:
    return reader.read_text(Path(path))[0]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _changed_at(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0


def _read(standard: str, output: str | None) -> tuple[Sequence[Run], tuple[str, ...]]:
    try:
        return reader.read_file(standard, output)
    except LogError as error:
        return (), (str(error),)


def _warn(standard: str, output: str | None) -> None:
    for sentence in _read(standard, output)[1]:
        warnings.warn(f"{standard}: {sentence}", LogWarning, stacklevel=3)
