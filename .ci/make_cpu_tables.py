"""Public measurements and packages come in; the tables in ct_notebook/sensors/data go out.

Run with Python 3.10 or newer and pip: ``python .ci/make_cpu_tables.py``. The versions are pinned, so that the
tables change when someone means them to.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from ct_notebook.sensors import cpu_model  # noqa: E402 - of this folder, not of an installation
from support import cpu_fit  # noqa: E402

OUT = HERE / "ct_notebook" / "sensors" / "data"

CODECARBON = "codecarbon==3.3.2"  # its table of TDPs, MIT, gathered from Intel's and AMD's own lists

FIT = (
    "fitted by .ci/make_cpu_tables.py to {count} public measurements of package power "
    "(tests/bench/data: Teads turbostress, codecarbon's load profiles, single reports), 2017-2026"
)

BANDS = {"server": (0.65, 1.45), "desktop": (0.5, 1.4), "laptop": (0.6, 1.8)}
"""Measured over modelled power, 5 and 95 % of the points of CPUs that the fit had not seen, rounded: see the
bench. Loads other than the stress tests behind it differ by more: AVX-heavy code draws up to 1.3 times."""

TURBOSTRESS = "RAPL under turbostress on AWS bare metal, 2021, CC0"
CCF = "Cloud Carbon Footprint's coefficients, 2026-04, from SPECpower, Apache-2.0"

ARM_TDPS = "210 W / 80 (Ampere Altra Q80-30), 250 W / 128 (Altra Max M128-30)"

UNKNOWN_SOURCE = "within what public measurements of server CPUs show by thread, 0.5-1.2 and 3.0-6.4 W"

FAMILIES = [
    # name, vendor, CPUID family, first and last model, part of the brand, idle and full W per thread, source.
    # The full power of EPYC is the higher one of CCF's and the TDP over threads of what clouds use.
    ("Intel Skylake and Cascade Lake server", "GenuineIntel", 6, 85, 85, "Xeon", 0.65, 5.0, TURBOSTRESS),
    ("Intel Broadwell server", "GenuineIntel", 6, 79, 79, "Xeon", 0.5, 3.8, TURBOSTRESS),
    ("Intel Haswell server", "GenuineIntel", 6, 63, 63, "Xeon", 0.5, 3.8, f"as Broadwell: {TURBOSTRESS}"),
    ("Intel Ice Lake server", "GenuineIntel", 6, 106, 108, "Xeon", 0.77, 4.8, f"{CCF}; full x 1.3"),
    ("Intel Sapphire Rapids", "GenuineIntel", 6, 143, 143, "Xeon", 1.04, 3.4, f"{CCF}; 350 W / 104 (8470)"),
    (
        "Intel Emerald Rapids",
        "GenuineIntel",
        6,
        207,
        207,
        "Xeon",
        0.81,
        3.2,
        f"{CCF}; 350 W / 96-128 (8568Y+, 8592+)",
    ),
    (
        "Intel Granite Rapids",
        "GenuineIntel",
        6,
        173,
        174,
        "Xeon",
        0.6,
        2.3,
        "500 W / 192-256 (6972P, 6980P), idle assumed",
    ),
    (
        "Intel Sierra Forest",
        "GenuineIntel",
        6,
        175,
        175,
        "Xeon",
        0.35,
        2.2,
        "330 W / 144 (6780E), idle assumed",
    ),
    ("AMD EPYC Zen 1", "AuthenticAMD", 23, 0, 47, "EPYC", 0.8, 2.8, "180 W / 64 (7601), idle assumed"),
    ("Hygon Dhyana", "HygonGenuine", 24, 0, 255, "", 0.8, 2.8, "as EPYC Zen 1"),
    ("AMD EPYC Zen 2", "AuthenticAMD", 23, 48, 63, "EPYC", 0.47, 1.8, f"{CCF}; 225 W / 128 (7742)"),
    ("AMD EPYC Zen 3", "AuthenticAMD", 25, 0, 15, "EPYC", 0.46, 2.2, f"{CCF}; 280 W / 128 (7763)"),
    ("AMD EPYC Zen 4", "AuthenticAMD", 25, 16, 175, "EPYC", 0.74, 2.2, f"{CCF}; 360 W / 192 (9654)"),
    ("AMD EPYC Zen 5", "AuthenticAMD", 26, 0, 31, "EPYC", 0.74, 2.2, "as Zen 4; 500 W / 256 (9755)"),
    ("Arm Neoverse N1", "ARM", 65, 0xD0C, 0xD0C, "", 0.4, 2.3, f"{ARM_TDPS}, idle assumed"),
    ("Arm Neoverse V1", "ARM", 65, 0xD40, 0xD40, "", 0.4, 2.3, "as Neoverse N1"),
    ("Arm Neoverse N2", "ARM", 65, 0xD49, 0xD49, "", 0.4, 2.3, "as Neoverse N1"),
    (
        "Arm Neoverse V2",
        "ARM",
        65,
        0xD4F,
        0xD4F,
        "",
        0.4,
        2.8,
        "500 W / 144 with memory (NVIDIA Grace), idle assumed",
    ),
    ("Microsoft Cobalt", "ARM", 0x6D, 0xD49, 0xD49, "", 0.4, 2.3, "as Neoverse N2, which it is"),
    (
        "Ampere AmpereOne",
        "ARM",
        0xC0,
        0,
        0xFFF,
        "",
        0.5,
        2.0,
        "400 W / 192 (AmpereOne A192-32X), idle assumed",
    ),
    ("HiSilicon Kunpeng", "ARM", 0x48, 0, 0xFFF, "", 0.5, 2.8, "180 W / 64 (Kunpeng 920), idle assumed"),
    (
        "Arm Cortex",
        "ARM",
        65,
        0xC00,
        0xDFF,
        "",
        0.3,
        1.5,
        "assumed from whole boards: Raspberry Pi 4, 3 to 6.5 W",
    ),
    (
        "Apple silicon",
        "",
        -1,
        -1,
        -1,
        "Apple",
        0.1,
        3.3,
        "assumed: 20 to 30 W for the eight cores of an M1 or M2",
    ),
    ("unknown", "", -1, -1, -1, "", 0.8, 4.5, UNKNOWN_SOURCE),
]
"""CCF's coefficients are of SPECpower's load. RAPL showed 1.3 times that under stress on Skylake and Cascade
Lake (5.0 against 3.75-3.87 W), so Ice Lake is taken as much above theirs. For what came after, that would be
more than the socket's TDP, which a package does not go beyond for long."""

CORRECTED = {"intel core i7-12700k": 125.0, "intel core i5-1335u": 15.0, "intel core i7-1270p": 28.0}
"""Where codecarbon's table has the turbo power instead of the base power of Intel's product pages, W."""

MORE = {
    "intel xeon w3-2423": 120.0,
    "intel xeon w3-2425": 130.0,
    "intel xeon w3-2435": 165.0,
    "intel xeon w5-2445": 175.0,
    "intel xeon w5-2455x": 200.0,
    "intel xeon w5-2465x": 200.0,
    "intel xeon w7-2475x": 225.0,
    "intel xeon w7-2495x": 225.0,
    "intel xeon w5-3425": 270.0,
    "intel xeon w5-3435x": 270.0,
    "intel xeon w7-3445": 270.0,
    "intel xeon w7-3455": 270.0,
    "intel xeon w7-3465x": 300.0,
    "intel xeon w9-3475x": 300.0,
    "intel xeon w9-3495x": 350.0,
}
"""Workstations that codecarbon's table lacks and whose names tell no power: Intel's product pages, W."""

WANTED = re.compile(
    r"intel (?:core (?:i\d|ultra|\d|m)|xeon|pentium|celeron|n\d)|amd (?:ryzen|epyc|athlon (?:gold|silver))"
)


def rows_of_kinds() -> list[dict[str, object]]:
    """One row per kind of CPU, and one for a CPU of which nothing is known."""
    known = cpu_fit.machines()
    rows: list[dict[str, object]] = []
    source = FIT.format(count=sum(len(machine.points) for machine in known if machine.fitted))
    for name, kind in cpu_fit.fit(known).items():
        low, high = BANDS[name.rpartition(" ")[2]]
        rows.append(
            {
                "kind": name,
                "idle_share": f"{kind.idle_share:.3f}",
                "full_share": f"{kind.full_share:.3f}",
                "crowding": f"{kind.crowding:.3f}",
                "one_thread": kind.one_thread,
                "awake": kind.awake,
                "bend": kind.bend,
                "low": low,
                "high": high,
                "source": source,
            }
        )
    # A guest is most likely on a server. Its band was found on machines with a meter by threads alone.
    (server,) = (row for row in rows if row["kind"] == "Intel server")
    return [*rows, {**server, "kind": "unknown", "low": 0.5, "high": 1.5}]


def rows_of_tdps(folder: Path) -> list[dict[str, object]]:
    """One row per CPU that a notebook may run on, by its name as `normal` has it."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), CODECARBON],
        check=True,
    )
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        text = archive.read("codecarbon/data/hardware/cpu_power.csv").decode()
    found: dict[str, set[float]] = {}
    for row in csv.DictReader(text.splitlines()):
        name = cpu_model.normal(row["Name"].replace("\u200b", ""))
        # A name without a number of its own ("intel xeon") is what clouds show, and says nothing.
        if WANTED.match(name) and re.search(r"\d{3}|\bx\d", name):
            try:
                found.setdefault(name, set()).add(float(row["TDP"]))
            except ValueError:
                continue  # one row has "27.29.5"
    # Two figures for one name cannot both be right.
    sure = {name: tdps.pop() for name, tdps in found.items() if len(tdps) == 1} | CORRECTED | MORE
    return [{"cpu": name, "tdp_w": f"{tdp_w:g}"} for name, tdp_w in sorted(sure.items())]


def write(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Write a table with the columns of its first row."""
    rows = list(rows)
    with (OUT / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Make all tables."""
    OUT.mkdir(exist_ok=True)
    columns = list(cpu_model.FAMILY_COLUMNS)
    write(cpu_model.FAMILIES, [dict(zip(columns, row, strict=True)) for row in FAMILIES])
    write(cpu_model.KINDS, rows_of_kinds())
    with tempfile.TemporaryDirectory() as folder:
        write(cpu_model.TDPS, rows_of_tdps(Path(folder)))


if __name__ == "__main__":
    main()
