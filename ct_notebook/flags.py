"""What a user writes after a magic or sets by %config comes in; values for `settings` go out, or one line."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from traitlets import TraitError, TraitType
from traitlets.config import Configurable

from .errors import SHOWN, SettingError, shown
from .settings import OPTIONS, Option, environment_name

MAGIC = "carbontrack"

COMMANDS = {
    "status": "the figures so far",
    "pause": "leave what follows out of the run, until resume",
    "resume": "go on with the same run",
    "flush": "put everything so far on disk",
    "stop": "end the run; the training goes on without it",
    "last": "the result of the newest run, as an object",
    "compare": "what seven other tools would have said of the same run, and why",
    "where": "the same run in other countries, zones or cloud regions: where SE DE gcp:europe-north1",
    "when": "the best start of such a run in the next 48 h, where there is a forecast",
    "statement": "a sentence, table rows and BibTeX for a paper; of all logs of a folder: statement ./logs",
    "doctor": "each sensor: found, readable, why not, and what to do about it",
}
"""What can stand after `%carbontrack`, and what it does."""

TAKE_WORDS = frozenset({"where", "statement"})
"""Those of them that take words after them."""

_TOKEN = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*')+)""")


class _Flags(argparse.ArgumentParser):
    """A parser that tells what is wrong in one line and never ends the process."""

    def error(self, message: str) -> Any:
        raise usage(message)


def usage(text: str) -> Any:
    """What is wrong with a flag, as the one line that IPython shows without a traceback."""
    end = "" if text.endswith((".", "?")) else "."
    return UsageError(f"%%{MAGIC}: {text}{end} The cell was not run. (%%{MAGIC}? lists the flags.)")


def _flags() -> _Flags:
    parser = _Flags(prog=f"%%{MAGIC}", add_help=False, allow_abbrev=False)
    # "+": an expression may have spaces in it.
    parser.add_argument("--epochs", nargs="+", default=None, metavar="N")
    parser.add_argument(
        "--no-log", action="store_const", const=None, dest="log_dir", default=argparse.SUPPRESS
    )
    for option in OPTIONS:
        if not option.flag_name:
            continue
        if option.metavar:
            parser.add_argument(
                option.flag_name, dest=option.name, default=argparse.SUPPRESS, metavar=option.metavar
            )
        else:
            parser.add_argument(
                option.flag_name,
                dest=option.name,
                action="store_const",
                const=not option.default,
                default=argparse.SUPPRESS,
            )
    return parser


def read_flags(line: str) -> tuple[str | None, dict[str, Any]]:
    """Read the flags of a cell.

    Parameters
    ----------
    line
        What stands after `%%carbontrack`; a comment at its end is left out.

    Returns
    -------
    epochs
        The expression after `--epochs`, None if there is none.
    given
        Option name to the text of its flag.

    Raises
    ------
    UsageError
        A flag that does not exist or lacks its value. The text is one line.
    """
    words: list[str] = []
    at = 0
    while at < len(line.rstrip()):
        token = _TOKEN.match(line, at)
        if token is None:
            msg = f"a quote is not closed: {line[at:].strip()[:SHOWN]}"
            raise usage(msg)
        if token[1].startswith("#"):
            break
        words.append(token[1])
        at = token.end()
    known, unknown = _flags().parse_known_args(words)
    if unknown:
        if not unknown[0].startswith("-"):
            msg = f"{shown(unknown[0])} belongs to no flag; a value with a space in it stands in quotes"
            raise usage(msg)
        flags = ["--epochs", "--no-log", *(option.flag_name for option in OPTIONS if option.flag_name)]
        near = nearest(unknown[0].split("=")[0], flags)
        msg = f"there is no {unknown[0][:SHOWN]}" + (f", did you mean {near}?" if near else "")
        raise usage(msg)
    given = {name: unquoted(value) for name, value in vars(known).items() if name != "epochs"}
    words = known.epochs or []
    return (unquoted(words[0]) if len(words) == 1 else " ".join(words) if words else None), given


def nearest(word: str, words: Iterable[str]) -> str:
    """The word that was probably meant, "" if none is like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    return "".join(get_close_matches(word, list(words), 1, 0.5))


def quoted_words(text: str) -> list[str]:
    """The words of a line, those in quotes in one piece; a quote that is not closed is part of its word."""
    whole = re.fullmatch(rf"(?:{_TOKEN.pattern})*\s*", text) is not None
    return [unquoted(found[1]) for found in _TOKEN.finditer(text)] if whole else text.split()


def unquoted(value: Any) -> Any:
    """A flag's value without the quotes around it. Quotes within it stay: `cfg["epochs"]`."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        inside = value[1:-1]
        return value if value[0] in inside else inside
    return value


def help_text() -> str:
    """What `%carbontrack?` and `%%carbontrack?` show."""
    lines = [
        "Power, energy and CO2eq of a training cell, while it runs.",
        "",
        "On top of a cell:",
        "",
        f"    %%{MAGIC} --epochs 50",
        "    for epoch in range(50):",
        "        ...",
        "",
        "finds the epoch loop, measures its epochs, predicts what all of them will take, and leaves a log.",
        "The cell runs as ever. If its loop cannot be found (it is in another cell or file), mark the epochs",
        "by `for epoch in tracker.epochs(50):` or by tracker.epoch_start() and tracker.epoch_end(). There is",
        "a `tracker` in every tracked cell.",
        "",
        "Flags:",
        "",
        *_entry("--epochs N", "Epochs of the training: a number, a variable or an expression."),
        *_entry("--no-log", "Leave no log."),
    ]
    for option in OPTIONS:
        if option.flag_name:
            default = option.for_cell
            told = "" if not option.metavar or default in {None, ""} else f" [{default}]"
            lines += _entry(f"{option.flag_name} {option.metavar}".rstrip(), option.meaning + told)
    lines += ["", f"While a cell runs or after it, %{MAGIC} and one of:", ""]
    for name, meaning in COMMANDS.items():
        lines += _entry(name, meaning)
    lines += [
        "",
        'Defaults are set by `%config CarbonTrack.country = "DK"`, by c.CarbonTrack.country in',
        f"ipython_config.py, or by {environment_name(OPTIONS[0])} and the like; a flag wins.",
    ]
    return "\n".join(lines)


def _entry(name: str, meaning: str) -> list[str]:
    head = f"    {name:<26}"
    room = textwrap.wrap(meaning, 104 - 30)
    return [head + room[0], *(" " * 30 + line for line in room[1:])]


_NOT_SET: Any = type("NotSet", (), {"__repr__": lambda _: "<not set>"})()


class _Keys(dict[str, str]):
    """Keys of sources, which no listing shows."""

    def __repr__(self) -> str:
        return "<hidden>"


class Value(TraitType):  # type: ignore[misc]  # traitlets is read without types
    """An option as IPython's configuration sets it: checked there and then."""

    default_value = _NOT_SET

    def __init__(self, option: Option) -> None:
        super().__init__(help=option.meaning)
        self._option = option
        self.info_text = option.meaning

    def validate(self, _owner: object, value: Any) -> Any:
        """Check a value as a flag's would be."""
        option = self._option
        if value is _NOT_SET or (value is None and (option.default is None or option.name == "log_dir")):
            return value
        try:
            checked = option.check(option.name, value)
        except SettingError as error:
            raise TraitError(str(error)) from None
        return _Keys(checked) if isinstance(checked, dict) else checked


CarbonTrack: Any = type(Configurable)(
    "CarbonTrack",
    (Configurable,),
    {
        "__doc__": "Defaults of %%carbontrack.",
        "__module__": __name__,
        **{option.name: Value(option).tag(config=True) for option in OPTIONS},
    },
)
"""The defaults of `%%carbontrack`, one trait for each option."""


def configured_values(config: Any) -> dict[str, Any]:
    """Option name to the value of `%config CarbonTrack`, for those that were set."""
    values = {option.name: getattr(config, option.name) for option in OPTIONS}
    return {name: value for name, value in values.items() if value is not _NOT_SET}
