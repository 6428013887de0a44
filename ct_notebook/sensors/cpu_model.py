"""What a CPU is and how busy its threads are comes in; a modelled power goes out. Pure, but for tables.

The model has four parts, each from public measurements (`data/cpu_kinds.csv` says how they were fitted, and
`tests/bench/test_cpu_model.py` how far off it is on CPUs that were left out):

- idle power, a share of the TDP by kind of CPU;
- full power, a share of the TDP by how much of it each core has: few cores at a low clock cannot spend a
  large TDP, many cores at a high one are held at or above it;
- how busy the cores are: a core with one busy thread draws nearly what it does with two;
- what is woken by the first busy thread, and a bend: few busy cores clock higher than all do.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from ct_notebook.errors import CtNotebookError, SettingError

KINDS = "cpu_kinds.csv"
FAMILIES = "cpu_families.csv"
TDPS = "cpu_tdp.csv"

FAMILY_COLUMNS = (
    "name",
    "vendor",
    "family",
    "first_model",
    "last_model",
    "brand",
    "idle_w",
    "full_w",
    "source",
)

UNKNOWN = "unknown"

APPLE = 0x61
"""The implementer of an Arm CPU by which Apple's are known, also where they have no name."""

BASE_MHZ = {"server": 2400.0, "desktop": 3600.0, "laptop": 2200.0}
"""Base clock where the CPU tells none: about the middle of the CPUs that were measured."""

USUAL_W_PER_CORE_GHZ = 3.5
"""TDP over cores and base clock of the middle one of the CPUs that were measured."""

FULL_SHARES = (0.5, 1.4)
"""Limits of full power over TDP. AMD's desktop sockets allow 1.35 times the TDP (142 W for 105 W), and no CPU
that was measured drew less than 0.43 of it with all threads busy."""

HELD_SHARE = 1.1
"""The same of servers and Threadrippers, which are held at their TDP: all that were measured but one (AWS's
8275CL, 1.29) drew at most 1.07 times theirs."""

UNLOCKED = 1.6
"""Full power over TDP of Intel's unlocked desktop CPUs from the tenth generation on, which boards let draw
their "maximum turbo power" for good: Intel states 241 to 253 W for 125 W (Core i9-12900K, -13900K), and 150
W for the smallest (Core i5-12600K)."""

MOST_TDP_W = 1000.0
"""No socket is sold for more than 500 W."""


_PATTERNS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"\b(?:epyc|opteron)\b", "AMD server"),
        (r"\bxeon (?:e3-|e-|w-1\d{3})", "Intel desktop"),
        (r"\bxeon\b", "Intel server"),
        (r"\bthreadripper\b", "AMD desktop"),
        (r"\bryzen (?:ai|z\d)\b|\b(?:ryzen|athlon)\b.* \d{4}(?:u|h|hs|hx|c)\b|\bcustom apu\b", "laptop"),
        # Before the twelfth generation P was a desktop CPU without graphics: i5-6402P.
        (
            r"\b(?:i\d|ultra \d|core \d)[- ](?:\d{3,5}(?:u|y|h|hk|hq|hx|m|mq|mx|qm|v|n?g\d)|1\d\d\d?p)\b",
            "laptop",
        ),
        (
            r"\bintel .*\b(?:m\d?-\d\w*|n\d{2,4})\b|\bintel (?:atom\b|(?:celeron|pentium gold) \d{4}$)",
            "laptop",
        ),
        (r"\bamd\b", "AMD desktop"),
        (r"\bintel\b", "Intel desktop"),
    )
)
"""Kinds by their brand, the first that fits. Makers tell laptops apart by the letters behind the number."""

_CORE = r"\bintel core (?:i\d|ultra \d|\d)[- ]\d{3,5}"

_USUAL_TDPS = tuple(
    (re.compile(pattern), tdp_w)
    for pattern, tdp_w in (
        (rf"{_CORE}hx\b", 55.0),
        (rf"{_CORE}h[kq]?\b", 45.0),
        (rf"{_CORE}(?:m|mq|mx|qm)\b", 35.0),
        (r"\bintel core (?:i\d|ultra \d)[- ]1\d\d\d?p\b", 28.0),
        (rf"{_CORE}v\b", 17.0),
        (rf"{_CORE}(?:u|n?g\d)\b", 15.0),
        (rf"{_CORE}y\b|\bintel core m\d?-\d", 5.0),
        (r"\bintel core (?:i\d|\d)[- ]n\d{3}\b|\bintel (?:celeron|pentium gold) \d{4}$", 15.0),
        (r"\bintel pentium gold g\d{4}\b", 58.0),
        # Intel states 8.5 to 31 W (C3338, C3958), 2 to 2.4 W "SDP", 10 to 13 W, 2.5 to 6.5 W, 5 to 12 W.
        (r"\bintel atom c\d", 16.0),
        (r"\bintel atom (?:x\d-)?z\d", 4.0),
        (r"\bintel atom d\d", 10.0),
        (r"\bintel atom n\d", 6.0),
        (r"\bintel atom (?:x\d|e\d)", 10.0),
        (r"\bintel n9\d\b", 15.0),
        (r"\bintel n\d{3}\b", 6.0),
        (r"\bintel core (?:i\d-1\d{4}|ultra \d \d{3})ks\b", 150.0),
        (r"\bintel core (?:i\d-1\d{4}|ultra \d \d{3})kf?\b", 125.0),
        (rf"{_CORE}kf?\b", 95.0),
        (rf"{_CORE}t\b", 35.0),
        (rf"{_CORE}f?\b", 65.0),
        (r"\bamd ryzen (?:ai|z\d)\b|\bamd ryzen\b.* [6-9]\d{3}u\b", 28.0),
        (r"\bamd (?:ryzen|athlon)\b.* \d{4}[uc]\b|\bamd custom apu\b", 15.0),
        (r"\bamd ryzen\b.* \d{4}h[sx]?\b", 45.0),
        (r"\bamd ryzen threadripper\b", 280.0),
        (r"\bamd ryzen\b.* \d{4}ge\b", 35.0),
        (r"\bamd ryzen\b.* \d{4}x(?:3d|t)?\b", 105.0),
        (r"\bamd ryzen\b.* \d{4}[gf]?\b", 65.0),
        (r"\bamd (?:fx|phenom|a\d+)\b", 95.0),
    )
)
"""TDPs that makers give CPUs by the letters behind the number, W, for those that are not in the table; the
first that fits. Intel's letters go by power (55 W for HX, 45 H, 28 P, 15 U), and so do AMD's."""

USUAL_BAND = (0.7, 1.4)
"""A TDP that is only usual widens the band of its kind so much. Assumed: 0.5 to 2 times is seldom."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How CPUs of a kind spend their TDP. A row of `data/cpu_kinds.csv`.

    Attributes
    ----------
    kind
        `Intel server`, `AMD server`, `Intel desktop`, `AMD desktop`, `laptop` or `unknown`.
    idle_share
        Package power over TDP with nothing to do.
    full_share, crowding
        Package power over TDP with all threads busy is `full_share * (d / 3.5) ** crowding`, where d is the
        TDP over cores and base clock, W/GHz.
    one_thread
        Power of a core with one of its two threads busy, as a share of that with both.
    awake
        Share of the span from idle to full that the first busy thread takes by waking the package.
    bend
        Exponent of the rest over the share of busy cores; below 1 where few cores clock higher.
    low, high
        Of true to modelled power.
    source
        Where the figures are from.
    """

    kind: str
    idle_share: float
    full_share: float
    crowding: float
    one_thread: float
    awake: float
    bend: float
    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True)
class Family:
    """Power of a hardware thread of a server, for virtual machines. A row of `data/cpu_families.csv`.

    Attributes
    ----------
    name, vendor, family, models
        As CPUID has them; `models` are the first and last of a range.
    brand
        Part of the brand that is required too, such as "EPYC"; "" if none.
    idle_w, full_w
        Of one hardware thread, W.
    source
        Where they are from.
    """

    name: str
    vendor: str
    family: int
    models: tuple[int, int]
    brand: str
    idle_w: float
    full_w: float
    source: str


@dataclass(frozen=True, slots=True)
class Cpu:
    """A machine's CPUs, as far as they tell.

    Attributes
    ----------
    brand
        As the CPU says it; "" if it says nothing of use.
    vendor, family, model
        Of CPUID; "" and -1 if unknown.
    threads, cores, sockets
        Of the whole machine, as this system shows them.
    base_mhz
        Clock that all cores hold within the TDP; None if unknown.
    tdp_w
        Of one socket; None if unknown, and always on virtual machines unless the user gave it.
    given, usual
        Whether the TDP is the user's, and whether it is only what such names usually have.
    idle_w, full_w
        Of one hardware thread with all idle and all busy, W.
    is_virtual
        Whether a hypervisor shows itself.
    kind
        How power rises in between, and how far off it may be.
    source
        Where the figures are from.
    """

    brand: str
    vendor: str
    family: int
    model: int
    threads: int
    cores: int
    sockets: int
    base_mhz: float | None
    tdp_w: float | None
    given: bool
    idle_w: float
    full_w: float
    is_virtual: bool
    kind: Kind
    source: str
    usual: bool = False

    @property
    def low(self) -> float:
        """The true power is expected to be at least this many times the modelled one."""
        return self.kind.low

    @property
    def high(self) -> float:
        """The true power is expected to be at most this many times the modelled one."""
        return self.kind.high


def identify(cpuinfo: str, *, tdp_w: float | None = None, threads: int | None = None) -> Cpu:
    """What /proc/cpuinfo tells of the CPU, with its power.

    A TDP is looked up by the whole name; where the table lacks it, by the letters that makers put behind it.
    A virtual machine has the threads that it was given, so each is charged by its family, and all of them no
    more than the CPU whose name it shows.

    Parameters
    ----------
    cpuinfo
        The text of /proc/cpuinfo; "" where there is none.
    tdp_w
        TDP of one socket that the user gives; on a virtual machine, of what it was given. W.
    threads
        How many threads there are, where the text does not list them.

    Raises
    ------
    SettingError
        The TDP given cannot be one.
    CtNotebookError
        A table is missing or damaged.
    """
    check_tdp(tdp_w)
    blocks = [_fields(block) for block in re.split(r"\n\s*\n", cpuinfo) if block.strip()]
    first = blocks[0] if blocks else {}
    brand = _brand(first.get("model name", ""))
    vendor, family, model = _number_of(first)
    if not brand and _int(first.get("CPU implementer"), 16) == APPLE:
        brand = "Apple silicon"
    listed = [block for block in blocks if "processor" in block]
    count = max(1, len(listed) or threads or 1)
    sockets, cores = _topology(listed, count)
    bare = Cpu(
        brand=brand,
        vendor=vendor,
        family=family,
        model=model,
        threads=count,
        cores=cores,
        sockets=sockets,
        base_mhz=_base_mhz(first.get("model name", "")),
        tdp_w=tdp_w,
        given=tdp_w is not None,
        idle_w=0.0,
        full_w=0.0,
        is_virtual="hypervisor" in first.get("flags", "").split(),
        kind=kinds()[kind_of(brand, vendor)],
        source="",
    )
    if bare.is_virtual:
        return _virtual(bare)
    whole = bare if bare.given else _with_tdp(bare)
    return _by_thread(bare) if whole is None else _by_tdp(whole)


def check_tdp(tdp_w: float | None) -> None:
    """Refuse a TDP that cannot be one; None is none.

    Raises
    ------
    SettingError
        It is not above 0 W, or above what any socket has.
    """
    if tdp_w is not None and not 0 < tdp_w <= MOST_TDP_W:
        msg = f"cpu_tdp is {tdp_w:g} W: give the TDP of one socket, above 0 and up to {MOST_TDP_W:g} W."
        raise SettingError(msg)


def package_w(
    cpu: Cpu, loads: Sequence[float], *, mhz: float | None = None, threads_given: float | None = None
) -> float:
    """Power of the threads that are charged, W.

    Parameters
    ----------
    cpu
        The machine's.
    loads
        Busy share of each thread that is charged, 0 to 1. Busy threads are taken to be on different cores as
        long as there are any, as schedulers place them.
    mhz
        Clock of the busy threads. Below the base clock it lowers what they draw in proportion; above it, it
        is no news, and None is as if it were.
    threads_given
        How many threads are charged, if not as many as there are loads: a quota such as 1.5.

    Returns
    -------
    power_w
        At least idle, at most full power of that many threads; idle power if there are no loads.
    """
    count = len(loads) if threads_given is None else threads_given
    rise = share_of_span(cpu, loads, mhz=mhz)
    return count * (cpu.idle_w + (cpu.full_w - cpu.idle_w) * rise)


def share_of_span(cpu: Cpu, loads: Sequence[float], *, mhz: float | None = None) -> float:
    """How far power has risen from idle (0) to full (1). Arguments as for `package_w`."""
    if not loads:
        return 0.0
    at_rest = 1.0
    for load in loads:
        at_rest *= 1.0 - min(max(load, 0.0), 1.0)
    kind = cpu.kind
    busy = busy_cores(loads, kind.one_thread, two_threads=cpu.threads > cpu.cores)
    slow = 1.0
    if mhz is not None and mhz > 0 and cpu.base_mhz is not None:
        slow = min(1.0, mhz / cpu.base_mhz)
    rise = kind.awake * (1.0 - at_rest)
    if busy > 0:
        rise += (1.0 - kind.awake) * busy**kind.bend * slow
    return min(1.0, rise)


def busy_cores(loads: Sequence[float], one_thread: float, *, two_threads: bool) -> float:
    """Share of the cores' full dynamic work, 0 to 1.

    Parameters
    ----------
    loads
        Busy share of each thread.
    one_thread
        What a core with one busy thread counts, beside 1 with two.
    two_threads
        Whether cores have two threads. The busiest thread is then paired with the least busy one.
    """
    shares = sorted((min(max(load, 0.0), 1.0) for load in loads), reverse=True)
    if not two_threads:
        return sum(shares) / len(shares)
    cores = (len(shares) + 1) // 2
    others = sorted([*shares[cores:], *[0.0] * (2 * cores - len(shares))])
    total = 0.0
    for one, other in zip(shares[:cores], others, strict=True):
        both = one * other
        total += one_thread * (one + other - both) + (1.0 - one_thread) * both
    return min(1.0, total / (len(shares) / 2))


def full_share(kind: Kind, brand: str, tdp_w: float, cores: int, base_mhz: float | None) -> float:
    """Package power over TDP with all threads busy.

    Parameters
    ----------
    kind, brand
        Of the CPU.
    tdp_w, cores
        Of one socket.
    base_mhz
        None takes what is usual for the kind.
    """
    if re.search(r"\bi[579]-1\d{4}k[fs]?\b|\bultra [79] \d{3}k[fs]?\b", brand.lower()):
        return UNLOCKED
    ghz = (base_mhz or BASE_MHZ.get(kind.kind.rpartition(" ")[2], 3000.0)) / 1000
    ratio = tdp_w / (max(1, cores) * ghz) / USUAL_W_PER_CORE_GHZ
    share: float = kind.full_share * ratio**kind.crowding
    is_held = kind.kind.endswith("server") or "threadripper" in brand.lower()
    return min(max(share, FULL_SHARES[0]), HELD_SHARE if is_held else FULL_SHARES[1])


def kind_of(brand: str, vendor: str = "") -> str:
    """The kind of a CPU by its brand: a key of `kinds`."""
    name = normal(brand)
    if not name:
        return UNKNOWN
    for pattern, kind in _PATTERNS:
        if pattern.search(name):
            return kind
    return {"AuthenticAMD": "AMD desktop", "GenuineIntel": "Intel desktop"}.get(vendor, UNKNOWN)


def normal(brand: str) -> str:
    """A brand without what is no part of the name: marks, clock, number of cores, generation, graphics."""
    name = re.sub(r"\((?:r|tm)\)|[®™]", " ", brand.lower())
    name = re.sub(r"@.*$|\b(?:with|w/) .*$", " ", name)
    name = re.sub(r"\b\d+(?:st|nd|rd|th) gen\b", " ", name)
    name = re.sub(r"\b(?:\d+|dual|quad|six|eight|twelve|sixteen)-cores?\b", " ", name)
    name = re.sub(r"\b(?:cpu|processor)\b", " ", name)
    name = re.sub(r"\b(e[357]-\d{4}l?) +0 *$", r"\1", name)  # the first Xeons E5 have their version: " 0"
    return " ".join(name.split())


def tdp_of(brand: str) -> float | None:
    """TDP of one socket by the whole name of the CPU, W; None if it is not in the table."""
    name = normal(brand)
    return _tdps().get(name) if name else None


def usual_tdp_of(brand: str) -> float | None:
    """TDP of one socket that CPUs with such a name usually have, W; None if the name does not tell."""
    name = normal(brand)
    return next((tdp_w for pattern, tdp_w in _USUAL_TDPS if pattern.search(name)), None)


@cache
def kinds() -> dict[str, Kind]:
    """The table of kinds."""
    numbers = ["idle_share", "full_share", "crowding", "one_thread", "awake", "bend", "low", "high"]
    found = {
        row["kind"]: Kind(
            kind=row["kind"], source=row["source"], **{name: _number(KINDS, row, name) for name in numbers}
        )
        for row in _rows(KINDS, "kind", "source", *numbers)
    }
    lacking = {UNKNOWN, "Intel server", *(kind for _, kind in _PATTERNS)} - set(found)
    if lacking:
        msg = (
            f"The table {KINDS} is damaged: it lacks {', '.join(sorted(lacking))}. Install ct_notebook again."
        )
        raise CtNotebookError(msg)
    return found


@cache
def families() -> tuple[Family, ...]:
    """The table of families."""
    found = tuple(
        Family(
            name=row["name"],
            vendor=row["vendor"],
            family=int(_number(FAMILIES, row, "family")),
            models=(int(_number(FAMILIES, row, "first_model")), int(_number(FAMILIES, row, "last_model"))),
            brand=row["brand"],
            idle_w=_number(FAMILIES, row, "idle_w"),
            full_w=_number(FAMILIES, row, "full_w"),
            source=row["source"],
        )
        for row in _rows(FAMILIES, *FAMILY_COLUMNS)
    )
    if found[-1].name != UNKNOWN:
        msg = f"The table {FAMILIES} is damaged: it does not end with {UNKNOWN}. Install ct_notebook again."
        raise CtNotebookError(msg)
    return found


@cache
def _tdps() -> dict[str, float]:
    return {row["cpu"]: _number(TDPS, row, "tdp_w") for row in _rows(TDPS, "cpu", "tdp_w")}


def _rows(name: str, *columns: str) -> list[dict[str, str]]:
    try:
        text = (resources.files("ct_notebook.sensors") / "data" / name).read_text("utf-8")
    except OSError as error:
        msg = f"The table {name} is missing ({error}): install ct_notebook again."
        raise CtNotebookError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"The table {name} is damaged: it is no text. Install ct_notebook again."
        raise CtNotebookError(msg) from error
    try:
        rows = list(csv.DictReader(text.splitlines()))
    except csv.Error:
        rows = []
    if not rows or not set(columns) <= set(rows[0]):
        msg = f"The table {name} is damaged: it lacks a column or all rows. Install ct_notebook again."
        raise CtNotebookError(msg)
    if not text.endswith("\n"):
        # Its last row may look whole, and a CPU that is missing would be told as an unknown one.
        msg = f"The table {name} is damaged: it has no end. Install ct_notebook again."
        raise CtNotebookError(msg)
    return rows


def _number(table: str, row: dict[str, str], column: str) -> float:
    try:
        number = float(row[column])
        if not math.isfinite(number):
            raise ValueError(number)  # noqa: TRY301 - told below like any other damage
    except (KeyError, TypeError, ValueError) as error:
        msg = f"The table {table} is damaged: {column} is {row.get(column)!r}. Install ct_notebook again."
        raise CtNotebookError(msg) from error
    return number


def _with_tdp(cpu: Cpu) -> Cpu | None:
    """The CPU with the TDP that its name has or usually has; None if the name tells neither."""
    tdp_w = tdp_of(cpu.brand)
    if tdp_w is not None:
        return replace(cpu, tdp_w=tdp_w)
    tdp_w = usual_tdp_of(cpu.brand)
    if tdp_w is None:
        return None
    low, high = round(cpu.kind.low * USUAL_BAND[0], 2), round(cpu.kind.high * USUAL_BAND[1], 2)
    return replace(cpu, tdp_w=tdp_w, usual=True, kind=replace(cpu.kind, low=low, high=high))


def _by_tdp(cpu: Cpu) -> Cpu:
    """A machine whose TDP is known: whole sockets."""
    assert cpu.tdp_w is not None
    share = full_share(cpu.kind, cpu.brand, cpu.tdp_w, max(1, cpu.cores // cpu.sockets), cpu.base_mhz)
    per_thread_w = cpu.tdp_w * cpu.sockets / cpu.threads
    idle = min(cpu.kind.idle_share, share / 2)
    return replace(cpu, idle_w=per_thread_w * idle, full_w=per_thread_w * share, source=cpu.kind.source)


def _virtual(cpu: Cpu) -> Cpu:
    """A virtual machine: its threads by their family, or the TDP that the user says it was given."""
    unknown = kinds()[UNKNOWN]
    if cpu.tdp_w is not None:
        full_w = cpu.tdp_w / cpu.threads
        kind = kinds()["Intel server"]
        return replace(cpu, idle_w=full_w * kind.idle_share, full_w=full_w, kind=kind, source=kind.source)
    found, whole = _by_thread(cpu), _with_tdp(cpu)
    idle_w, full_w = found.idle_w, found.full_w
    if whole is not None:
        # Such as the whole laptop that WSL shows: by thread it would be charged as a server.
        whole = _by_tdp(whole)
        idle_w, full_w = min(idle_w, whole.idle_w), min(full_w, whole.full_w)
    return replace(found, idle_w=idle_w, full_w=full_w, kind=replace(unknown, source=found.source))


def _by_thread(cpu: Cpu) -> Cpu:
    """A CPU of which no more than its family is known."""
    found = families()[-1]  # the last row is for all that no other row fits
    for row in families():
        if (
            row.vendor == cpu.vendor
            and row.family == cpu.family
            and row.models[0] <= cpu.model <= row.models[1]
            and row.brand.lower() in cpu.brand.lower()  # Emerald Rapids writes "INTEL(R) XEON(R)"
        ):
            found = row
            break
    kind = replace(kinds()[UNKNOWN], source=found.source)
    return replace(cpu, idle_w=found.idle_w, full_w=found.full_w, kind=kind, source=found.source)


def _number_of(fields: dict[str, str]) -> tuple[str, int, int]:
    """Vendor, family and model. Arm's have an implementer and a part instead of a family and a model."""
    maker = _int(fields.get("CPU implementer"), 16)
    if maker >= 0 and maker != APPLE:
        return "ARM", maker, _int(fields.get("CPU part"), 16)
    return fields.get("vendor_id", ""), _int(fields.get("cpu family")), _int(fields.get("model"))


def _fields(block: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in block.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), " ".join(value.split()))
    return fields


def _brand(name: str) -> str:
    if not any(character.isalpha() for character in name) or name.lower() in {"unknown", "none", "n/a"}:
        return ""
    return name


def _topology(listed: list[dict[str, str]], threads: int) -> tuple[int, int]:
    """Sockets and cores of the machine; one socket, a core for each thread where they are not told."""
    sockets = {block["physical id"] for block in listed if "physical id" in block}
    cores = {(block.get("physical id", "0"), block["core id"]) for block in listed if "core id" in block}
    return max(1, len(sockets)), min(threads, len(cores)) or threads


def _base_mhz(name: str) -> float | None:
    """Intel writes the base clock into the brand: "@ 2.40GHz"."""
    found = re.search(r"@ (\d+\.\d+) ?GHz", name)
    return float(found[1]) * 1000 if found else None


def _int(text: str | None, base: int = 10) -> int:
    try:
        return int(text or "", base)
    except ValueError:
        return -1
