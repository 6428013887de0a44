"""Every option once: name, defaults, meaning, check; read by magics, tracker, environment and documentation.

A value comes from, in this order: the flag or argument, `%config CarbonTrack.<name>`, `CT_NOTEBOOK_<NAME>`,
the default. What is wrong with it is said in one `SettingError`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import SettingError, shown

if TYPE_CHECKING:
    from .budget import Budget

Check = Callable[[str, Any], Any]
"""Takes an option's name and a value (text or a Python value), gives the value in its right type."""


def _refuse(name: str, value: object, wanted: str) -> SettingError:
    return SettingError(f"{name}={shown(value)} cannot be meant: {wanted}.")


def _number(wanted: str, accept: Callable[[float], bool]) -> Check:
    def check(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise _refuse(name, value, wanted) from None
        if isinstance(value, bool) or not math.isfinite(number) or not accept(number):
            raise _refuse(name, value, wanted)
        return number

    return check


def _whole(wanted: str, accept: Callable[[int], bool]) -> Check:
    def check(name: str, value: Any) -> int:
        try:
            number = int(value) if isinstance(value, str) else value.__index__()
        except (AttributeError, TypeError, ValueError):
            raise _refuse(name, value, wanted) from None
        if isinstance(value, bool) or not accept(number):
            raise _refuse(name, value, wanted)
        return int(number)

    return check


def _switch(name: str, value: Any) -> bool:
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    if value in (True, False):
        return bool(value)
    raise _refuse(name, value, "it is a switch, True or False")


def _text(name: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise _refuse(name, value, "it is a text")
    return value


def _one_of(*words: str) -> Check:
    def check(name: str, value: Any) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise _refuse(name, value, f"choose one of {', '.join(words)}")
        return word

    return check


def _mass(name: str, value: Any) -> str:
    from .budget import grams_from  # noqa: PLC0415 - only a run with a budget needs it

    grams_from(name, value)
    return str(value)


def _time(name: str, value: Any) -> str:
    from .budget import seconds_from  # noqa: PLC0415 - only a run with a budget needs it

    seconds_from(name, value)
    return str(value)


def _components(name: str, value: Any) -> str:
    from .records import COMPONENTS  # noqa: PLC0415 - records cost milliseconds, and %load_ext needs none

    parts = value.split(",") if isinstance(value, str) else value
    wanted = f'give "all" or a list such as "gpu,cpu" out of {", ".join(COMPONENTS)}'
    try:
        words = [str(part).strip().lower() for part in parts]
    except TypeError:
        raise _refuse(name, value, wanted) from None
    if words == ["all"]:
        return "all"
    if not words or any(word not in COMPONENTS for word in words):
        raise _refuse(name, value, wanted)
    return ",".join(dict.fromkeys(words))


def _keys(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, Mapping):
        # The value is not repeated: it may well be a key.
        msg = (
            f'{name} cannot be read: give a dict such as {{"electricitymaps": "<your key>"}}, as JSON '
            "in an environment variable."
        )
        raise SettingError(msg) from None
    # None is what os.environ.get gives for a key that is not there.
    return {str(source): str(key) for source, key in value.items() if key is not None}


_AT_LEAST_0 = _whole("it is a whole number, 0 or more", lambda n: n >= 0)
_SHARE = _number("it is a share between 0 and 1", lambda x: 0 <= x <= 1)
_TDP_W = _number("it is the TDP of one socket in watts, more than 0, at most 1000", lambda x: 0 < x <= 1000)
_LIMIT_W = _number("it is a power in watts, more than 0, at most 3000", lambda x: 0 < x <= 3000)
_POSITIVE_W = _number("it is a power in watts, more than 0, at most 1000000", lambda x: 0 < x <= 1e6)


class Option(NamedTuple):
    """One option.

    Attributes
    ----------
    name
        The parameter of `CarbonTracker`; `--with-dashes` is its flag, `CT_NOTEBOOK_UPPER` its variable.
    default
        What `CarbonTracker` takes if nothing is given: carbontracker's own defaults.
    meaning
        One sentence for help texts.
    check
        Gives the value in its type or raises `SettingError`. None is let through where the default is None.
    cell_default
        What suits a notebook cell, if it differs.
    flag
        How a magic writes it if not by the name; "" for no flag.
    metavar
        What the flag's value is called in help texts; "" for a switch.
    """

    name: str
    default: Any
    meaning: str
    check: Check
    metavar: str = ""
    cell_default: Any = ...
    flag: str | None = None

    @property
    def flag_name(self) -> str:
        """The flag of the magic, "" if it has none."""
        return "--" + self.name.replace("_", "-") if self.flag is None else self.flag

    @property
    def for_cell(self) -> Any:
        """The default of a notebook cell."""
        return self.default if self.cell_default is ... else self.cell_default


OPTIONS: tuple[Option, ...] = (
    Option(
        "epochs_before_pred",
        1,
        "Epochs before the whole run is predicted; -1 for all, 0 for no prediction.",
        _whole("it is a whole number, -1 for all epochs, 0 for no prediction", lambda n: n >= -1),
        "N",
    ),
    Option(
        "monitor_epochs",
        1,
        "Epochs that are measured; -1 for all.",
        _whole("it is a whole number of at least 1, or -1 for all epochs", lambda n: n == -1 or n >= 1),
        "N",
        cell_default=-1,
    ),
    Option(
        "update_interval",
        10.0,
        "Seconds between two readings of the sensors.",
        _number("it is a time in seconds between 0.05 and 3600", lambda x: 0.05 <= x <= 3600),
        "S",
        cell_default=1.0,
    ),
    Option(
        "interpretable",
        True,
        "Do not say what the emissions are equivalent to (in kilometres by car).",
        _switch,
        flag="--no-interpretable",
    ),
    Option(
        "stop_and_confirm",
        False,
        "After the prediction, ask whether to go on.",
        _switch,
    ),
    Option(
        "ignore_errors",
        False,
        "Keep errors of the tracker in the error log instead of showing them.",
        _switch,
    ),
    Option(
        "components",
        "all",
        'What is measured: "all" or a list such as gpu,cpu out of gpu, cpu, ram.',
        _components,
        "LIST",
    ),
    Option(
        "devices_by_pid",
        False,
        "Count only the GPUs on which this process runs.",
        _switch,
    ),
    Option(
        "log_dir",
        None,
        "Folder of the log files.",
        _text,
        "DIR",
        cell_default="./logs",
    ),
    Option("log_file_prefix", "", "Beginning of the log files' names.", _text, "TEXT"),
    Option(
        "verbose",
        1,
        "0 says nothing, 1 predictions and results, 2 also components and carbon intensity.",
        _whole("it is 0, 1 or 2", lambda n: n in {0, 1, 2}),
        "N",
    ),
    Option(
        "decimal_precision",
        6,
        "Decimals of energy and emissions.",
        _whole("it is a whole number between 0 and 18", lambda n: 0 <= n <= 18),
        "N",
    ),
    Option("api_keys", None, "Keys of live carbon intensity sources, by source.", _keys, flag=""),
    Option("sim_cpu", None, "Name of a simulated CPU; needs its TDP.", _text, "NAME"),
    Option("sim_cpu_tdp", None, "TDP of the simulated CPU, W.", _POSITIVE_W, "W"),
    Option("sim_cpu_util", 0.5, "Utilisation of the simulated CPU, 0 to 1.", _SHARE, "U"),
    Option("sim_gpu", None, "Name of a simulated GPU; needs its power.", _text, "NAME"),
    Option("sim_gpu_watts", None, "Power of the simulated GPU, W.", _POSITIVE_W, "W"),
    Option("sim_gpu_util", 0.5, "Utilisation of the simulated GPU, 0 to 1.", _SHARE, "U"),
    Option(
        "pue",
        None,
        "Power usage effectiveness of the place; chosen by the kind of machine if not given.",
        _number("it is a ratio between 1 and 5", lambda x: 1 <= x <= 5),
        "X",
    ),
    Option(
        "carbon_intensity",
        None,
        "Carbon intensity of the electricity, g CO2eq/kWh, instead of a table's.",
        _number("it is a figure in g CO2eq/kWh between 0 and 2000", lambda x: 0 <= x <= 2000),
        "G",
    ),
    Option("country", None, "Country whose carbon intensity counts, such as DK.", _text, "CODE"),
    Option(
        "zone",
        None,
        "Electricity zone whose carbon intensity counts, such as DK-DK1, US-CAL-CISO, GB-NG1 (a postcode).",
        _text,
        "CODE",
    ),
    Option(
        "region",
        None,
        "Cloud region whose carbon intensity counts, such as gcp:europe-west1.",
        _text,
        "NAME",
    ),
    Option(
        "locate",
        "no",
        "ip: where nothing tells the place, ask a geolocation service for the country of this address.",
        _one_of("no", "ip"),
        "HOW",
    ),
    Option("offline", False, "Never use the network.", _switch),
    Option("cpu_tdp", None, "TDP of the CPU, W, for the model of a CPU without a meter.", _TDP_W, "W"),
    Option(
        "gpu_power_limit",
        None,
        "Power limit of a GPU that tells no power, W.",
        _LIMIT_W,
        "W",
    ),
    Option(
        "baseline",
        0.0,
        "Seconds before the cell in which the idle power is measured; gross and net are then told apart.",
        _number("it is a time in seconds between 0 and 600", lambda x: 0 <= x <= 600),
        "S",
    ),
    Option(
        "scope",
        "machine",
        "process: also tell the part of the energy that this kernel and its children used.",
        _one_of("machine", "process"),
        "WHAT",
    ),
    Option("max_co2", None, "The most CO2eq that the run may cause, such as 2kg.", _mass, "MASS"),
    Option(
        "max_kwh",
        None,
        "The most energy that the run may take, kWh.",
        _number("it is an energy in kWh, more than 0, at most 1e9", lambda x: 0 < x <= 1e9),
        "KWH",
    ),
    Option("max_time", None, "The longest that the training may take, such as 3h.", _time, "TIME"),
    Option(
        "on_exceed",
        "ask",
        "What happens at the end of an epoch if the run exceeds or will exceed these: ask, stop or warn.",
        _one_of("ask", "stop", "warn"),
        "WHAT",
    ),
    Option(
        "confirm_timeout",
        600.0,
        "Seconds that the question of --stop-and-confirm waits for an answer; 0 waits for ever.",
        _number("it is a time in seconds, between 0 and 1e7", lambda x: 0 <= x <= 1e7),
        "S",
    ),
    Option(
        "on_timeout",
        "continue",
        "What happens if nobody answers in time: continue or stop.",
        _one_of("continue", "stop"),
        "WHAT",
    ),
    Option(
        "on_headless",
        "continue",
        "What happens if nobody can be asked (nbclient, papermill): continue or stop.",
        _one_of("continue", "stop"),
        "WHAT",
    ),
    Option(
        "display",
        "none",
        "What shows the run while it goes on: auto, panel, text or none.",
        _one_of("auto", "panel", "text", "none"),
        "WHAT",
        cell_default="auto",
    ),
)
"""The options in the order of `CarbonTracker`'s parameters, `epochs` aside."""


class Settings(NamedTuple):
    """What a run is told, checked: `epochs` and the options of `OPTIONS`, where they are explained."""

    epochs: int | None
    epochs_before_pred: int
    monitor_epochs: int
    update_interval: float
    interpretable: bool
    stop_and_confirm: bool
    ignore_errors: bool
    components: str
    devices_by_pid: bool
    log_dir: str | None
    log_file_prefix: str
    verbose: int
    decimal_precision: int
    api_keys: Mapping[str, str] | None
    sim_cpu: str | None
    sim_cpu_tdp: float | None
    sim_cpu_util: float
    sim_gpu: str | None
    sim_gpu_watts: float | None
    sim_gpu_util: float
    pue: float | None
    carbon_intensity: float | None
    country: str | None
    zone: str | None
    region: str | None
    locate: str
    offline: bool
    cpu_tdp: float | None
    gpu_power_limit: float | None
    baseline: float
    scope: str
    max_co2: str | None
    max_kwh: float | None
    max_time: str | None
    on_exceed: str
    confirm_timeout: float
    on_timeout: str
    on_headless: str
    display: str

    def __repr__(self) -> str:
        """Keys appear in no repr, so in no traceback and no log."""
        shown = ", ".join(
            f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name != "api_keys"
        )
        return f"Settings({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Nor do keys go into a pickle, which may lie in a checkpoint beside a model."""
        return type(self)._make, (tuple(self._replace(api_keys=None)),)

    @property
    def component_set(self) -> frozenset[str]:
        """The components to measure."""
        from .records import COMPONENTS  # noqa: PLC0415 - as above

        return frozenset(COMPONENTS if self.components == "all" else self.components.split(","))

    @property
    def has_budget(self) -> bool:
        """Whether the run has any limit."""
        return any(limit is not None for limit in (self.max_co2, self.max_kwh, self.max_time))

    @property
    def budget(self) -> Budget:
        """The most that the run may take."""
        from .budget import Budget, grams_from, seconds_from  # noqa: PLC0415 - as above

        return Budget(
            co2_g=None if self.max_co2 is None else grams_from("max_co2", self.max_co2),
            kwh=self.max_kwh,
            time_s=None if self.max_time is None else seconds_from("max_time", self.max_time),
        )

    @property
    def predict_after(self) -> int | None:
        """The number of epochs after which the run is predicted; None for no prediction."""
        if self.epochs_before_pred == 0 or self.epochs is None:
            return None
        return self.epochs if self.epochs_before_pred == -1 else min(self.epochs_before_pred, self.epochs)

    @property
    def monitored(self) -> int | None:
        """The number of epochs that are measured; None for as many as there are."""
        if self.epochs is None:
            return None
        return self.epochs if self.monitor_epochs == -1 else min(self.monitor_epochs, self.epochs)


def environment_name(option: Option) -> str:
    """The environment variable that sets an option."""
    return "CT_NOTEBOOK_" + option.name.upper()


def resolve(
    epochs: Any,
    given: Mapping[str, Any],
    *,
    cell: bool = False,
    configured: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Settle every option and check that they go together.

    Parameters
    ----------
    epochs
        How many epochs the training has, at least 1; None if that is not known.
    given
        Option name to the value of a flag or argument. What is not in it was not given.
    cell
        Whether the defaults of a notebook cell apply.
    configured
        Option name to the value of `%config CarbonTrack`.
    environ
        The environment; the process's own if None. An empty variable counts as not set.

    Raises
    ------
    SettingError
        A value that cannot be meant, or two that do not go together.
    """
    environ = os.environ if environ is None else environ
    unknown = set(given) - {option.name for option in OPTIONS}
    if unknown:
        msg = f"unknown option {', '.join(sorted(unknown))}."
        raise SettingError(msg)
    values: dict[str, Any] = {}
    for option in OPTIONS:
        default = option.for_cell if cell else option.default
        name = option.name
        if name in given:
            value = given[name]
        elif configured and name in configured:
            value = configured[name]
        elif environ.get(environment_name(option)):
            value, name = environ[environment_name(option)], environment_name(option)
        else:
            value = default
        if value is None and (default is None or name == "log_dir"):
            values[option.name] = None
        else:
            values[option.name] = option.check(name, value)
    if values["epochs_before_pred"] == -1 and "monitor_epochs" not in given:
        values["monitor_epochs"] = -1  # a prediction after all epochs needs all of them measured
    settings = Settings(epochs=None if epochs is None else check_epochs(epochs), **values)
    _check_together(settings)
    return settings


def check_epochs(epochs: Any) -> int:
    """A number of epochs, at least 1."""
    return int(_whole("it is a whole number of at least 1", lambda n: n >= 1)("epochs", epochs))


def _check_together(settings: Settings) -> None:
    ahead, monitored = settings.epochs_before_pred, settings.monitor_epochs
    if monitored != -1 and monitored < (math.inf if ahead == -1 else ahead):
        msg = (
            f"monitor_epochs={monitored} is less than epochs_before_pred={ahead}: a prediction needs its "
            "epochs measured. Raise monitor_epochs, or use -1 for all."
        )
        raise SettingError(msg)
    if settings.sim_cpu is not None and settings.sim_cpu_tdp is None:
        msg = f"sim_cpu={shown(settings.sim_cpu)} needs sim_cpu_tdp, the TDP in watts."
        raise SettingError(msg)
    if settings.sim_gpu is not None and settings.sim_gpu_watts is None:
        msg = f"sim_gpu={shown(settings.sim_gpu)} needs sim_gpu_watts, the power in watts."
        raise SettingError(msg)


# The record and the table must not drift apart; this costs microseconds at import.
assert Settings._fields[1:] == tuple(option.name for option in OPTIONS)
