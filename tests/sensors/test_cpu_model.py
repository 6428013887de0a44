"""What a CPU is told apart by, and what the model makes of busy threads, by the shipped tables."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

from ct_notebook.errors import CtNotebookError, SettingError
from ct_notebook.sensors import cpu_model
from ct_notebook.sensors.cpu_model import (
    Cpu,
    busy_cores,
    families,
    identify,
    kind_of,
    kinds,
    package_w,
    share_of_span,
    tdp_of,
    usual_tdp_of,
)


def cpuinfo(
    brand: str,
    vendor: str = "GenuineIntel",
    family: int = 6,
    model: int = 85,
    *,
    sockets: int = 1,
    cores: int = 4,
    flags: str = "fpu sse2",
) -> str:
    """A machine with two threads per core, as Linux numbers them."""
    blocks = []
    for number in range(2 * sockets * cores):
        core = number % (sockets * cores)
        blocks.append(
            f"processor\t: {number}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
            f"model name\t: {brand}\nphysical id\t: {core // cores}\ncore id\t\t: {core % cores}\n"
            f"flags\t\t: {flags}\n"
        )
    return "\n".join(blocks)


XEON = "Intel(R) Xeon(R) Gold 6230R CPU @ 2.10GHz"
RYZEN = "AMD Ryzen 7 3700X 8-Core Processor"


def all_busy(cpu: Cpu) -> float:
    return package_w(cpu, [1.0] * cpu.threads)


def idle(cpu: Cpu) -> float:
    return package_w(cpu, [0.0] * cpu.threads)


def test_two_sockets_of_a_known_server_are_charged_whole() -> None:
    cpu = identify(cpuinfo(XEON, sockets=2, cores=26))
    assert (cpu.threads, cpu.cores, cpu.sockets, cpu.tdp_w, cpu.base_mhz) == (104, 52, 2, 150.0, 2100.0)
    assert not cpu.given
    assert 0.1 * 300 < idle(cpu) < 0.2 * 300
    assert 0.8 * 300 < all_busy(cpu) < 1.2 * 300
    assert (cpu.low, cpu.high) == (kinds()["Intel server"].low, kinds()["Intel server"].high)
    assert "tests/bench/data" in cpu.source


def test_the_same_name_in_a_virtual_machine_is_charged_by_thread() -> None:
    cpu = identify(cpuinfo(XEON, cores=1, flags="fpu hypervisor sse2"))
    assert cpu.is_virtual
    assert cpu.tdp_w is None
    assert (cpu.idle_w, cpu.full_w) == (0.65, 5.0)
    assert all_busy(cpu) == pytest.approx(10.0)
    assert (cpu.low, cpu.high) == (0.5, 1.5)


def test_many_cores_draw_more_of_their_tdp_than_few() -> None:
    many = identify(cpuinfo("AMD Ryzen 9 5950X 16-Core Processor", "AuthenticAMD", 25, 33, cores=16))
    few = identify(cpuinfo("AMD Ryzen 3 1200 Quad-Core Processor", "AuthenticAMD", 23, 1, cores=2))
    assert (many.tdp_w, few.tdp_w) == (105, 65)
    assert all_busy(many) > 105 > all_busy(few) / 65 * 105 - 20
    assert all_busy(few) / 65 < all_busy(many) / 105 <= 1.4


def test_an_unlocked_desktop_cpu_draws_beyond_its_tdp() -> None:
    cpu = identify(cpuinfo("13th Gen Intel(R) Core(TM) i9-13900K", model=183, cores=24))
    assert cpu.tdp_w == 125
    assert all_busy(cpu) == pytest.approx(200)


def test_the_first_busy_core_costs_more_than_the_second_thread_of_one() -> None:
    cpu = identify(cpuinfo(RYZEN, "AuthenticAMD", 23, 113, cores=8))
    watts = [package_w(cpu, [1.0] * busy + [0.0] * (16 - busy)) for busy in range(17)]
    steps = [after - before for before, after in itertools.pairwise(watts)]
    assert all(step > 0 for step in steps)
    assert steps[0] > 1.5 * steps[4]
    assert steps[4] > 5 * steps[12]
    assert watts[8] > 0.85 * watts[16]


def test_power_is_between_idle_and_full_whatever_the_loads() -> None:
    cpu = identify(cpuinfo(XEON))
    for loads in ([-1.0] * 8, [0.0] * 8, [0.3, 0.0, 1.0, 2.0, 0.5, 0.1, 0.9, 7.0], [9.0] * 8):
        assert idle(cpu) <= package_w(cpu, loads) <= all_busy(cpu) * (1 + 1e-12)
    assert package_w(cpu, [], threads_given=2) == pytest.approx(2 * cpu.idle_w)


def test_a_low_clock_lowers_what_load_adds_and_a_high_or_unknown_one_says_nothing() -> None:
    cpu = identify(cpuinfo(XEON))
    full = all_busy(cpu)
    assert package_w(cpu, [1.0] * 8, mhz=1050) < 0.7 * full
    assert package_w(cpu, [1.0] * 8, mhz=1050) > idle(cpu)
    assert package_w(cpu, [1.0] * 8, mhz=3900) == full
    assert package_w(cpu, [1.0] * 8, mhz=0) == full
    ryzen = identify(cpuinfo(RYZEN, "AuthenticAMD", 23, 113))
    assert package_w(ryzen, [1.0] * 8, mhz=1000) == all_busy(ryzen)  # its base clock is not told


def test_a_share_of_the_threads_is_a_share_of_the_power() -> None:
    cpu = identify(cpuinfo(XEON))
    assert package_w(cpu, [1.0, 1.0]) == pytest.approx(all_busy(cpu) / 4)
    assert package_w(cpu, [1.0, 1.0], threads_given=1.5) == pytest.approx(all_busy(cpu) * 1.5 / 8)


def test_busy_threads_are_spread_over_the_cores() -> None:
    assert busy_cores([1, 1, 0, 0], 0.9, two_threads=True) == pytest.approx(0.9)
    assert busy_cores([1, 0, 0, 0], 0.9, two_threads=True) == pytest.approx(0.45)
    assert busy_cores([0.5] * 4, 0.9, two_threads=True) == pytest.approx(0.9 * 0.75 + 0.1 * 0.25)
    assert busy_cores([1, 1, 0, 0], 0.9, two_threads=False) == 0.5
    assert busy_cores([1], 0.9, two_threads=True) == 1
    assert busy_cores([0, 0, 0], 0.9, two_threads=True) == 0
    assert busy_cores([1, 1, 1], 0.9, two_threads=True) == 1


def test_no_loads_are_no_rise() -> None:
    assert share_of_span(identify(cpuinfo(XEON)), []) == 0


@pytest.mark.parametrize(
    ("brand", "kind"),
    [
        ("Intel(R) Xeon(R) Platinum 8275CL CPU @ 3.00GHz", "Intel server"),
        ("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz", "Intel server"),
        ("Intel(R) Xeon(R) E-2278G CPU @ 3.40GHz", "Intel desktop"),
        ("Intel(R) Xeon(R) CPU E3-1240 V2 @ 3.40GHz", "Intel desktop"),
        ("AMD EPYC 8024P 8-Core Processor", "AMD server"),
        ("AMD Ryzen Threadripper 1950X 16-Core Processor", "AMD desktop"),
        ("AMD Ryzen 7 3700X 8-Core Processor", "AMD desktop"),
        ("AMD Ryzen 9 7950X3D 16-Core Processor", "AMD desktop"),
        ("AMD Ryzen 7 PRO 4750U with Radeon Graphics", "laptop"),
        ("AMD Ryzen 9 5900HX with Radeon Graphics", "laptop"),
        ("AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "laptop"),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", "Intel desktop"),
        ("Intel(R) Core(TM) i7-6700HQ CPU @ 2.60GHz", "laptop"),
        ("Intel(R) Core(TM) i5-1035G1 CPU @ 1.00GHz", "laptop"),
        ("12th Gen Intel(R) Core(TM) i7-12700H", "laptop"),
        ("12th Gen Intel(R) Core(TM) i7-12700K", "Intel desktop"),
        ("Intel(R) Core(TM) Ultra 7 155H", "laptop"),
        ("Intel(R) Core(TM) i5-6402P CPU @ 2.80GHz", "Intel desktop"),
        ("12th Gen Intel(R) Core(TM) i7-1260P", "laptop"),
        ("Intel(R) Core(TM) m3-7Y30 CPU @ 1.00GHz", "laptop"),
        ("AMD Athlon Silver 3050U with Radeon Graphics", "laptop"),
        ("AMD Ryzen Z1 Extreme", "laptop"),
        ("", "unknown"),
        ("VirtualCpu", "unknown"),
    ],
)
def test_a_brand_tells_the_kind(brand: str, kind: str) -> None:
    assert kind_of(brand) == kind


@pytest.mark.parametrize(
    ("brand", "tdp_w"),
    [
        ("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz", 85),
        ("Intel(R) Xeon(R) Platinum 8275CL CPU @ 3.00GHz", 240),
        ("AMD EPYC 7742 64-Core Processor", 225),
        ("AMD Ryzen Threadripper 1950X 16-Core Processor", 180),
        ("Intel(R) Core(TM) i5-1035G1 CPU @ 1.00GHz", 15),
        ("Intel(R) Core(TM) Ultra 7 155H", 28),
        ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 115),
        ("Intel(R) Xeon(R) w9-3495X", 350),
        # The base power, not that of turbo.
        ("12th Gen Intel(R) Core(TM) i7-12700K", 125),
        # What clouds show, and what says nothing, has none: a part of a name is no name.
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", None),
        ("AMD EPYC", None),
        ("AMD EPYC 7B12", None),
        ("Intel(R) Core(TM)", None),
        ("1075T", None),
        ("", None),
        ("@ 2.20GHz", None),
    ],
)
def test_a_tdp_is_found_by_the_whole_name_alone(brand: str, tdp_w: float | None) -> None:
    assert tdp_of(brand) == tdp_w


@pytest.mark.parametrize(
    ("vendor", "family", "model", "brand", "name"),
    [
        ("GenuineIntel", 6, 85, "Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel Skylake and Cascade Lake server"),
        ("GenuineIntel", 6, 79, "Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel Broadwell server"),
        ("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Intel Sapphire Rapids"),
        ("AuthenticAMD", 23, 49, "AMD EPYC 7B12", "AMD EPYC Zen 2"),
        ("AuthenticAMD", 25, 1, "AMD EPYC 7B13", "AMD EPYC Zen 3"),
        ("AuthenticAMD", 25, 17, "AMD EPYC 9B14", "AMD EPYC Zen 4"),
        # A desktop Ryzen shares the family, but draws twice as much per thread.
        ("AuthenticAMD", 25, 33, "AMD Ryzen", "unknown"),
        ("AuthenticAMD", 23, 1, "AMD EPYC 7571", "AMD EPYC Zen 1"),
        ("HygonGenuine", 24, 0, "Hygon C86 7185 32-core Processor", "Hygon Dhyana"),
        # As it is written there, in capitals.
        ("GenuineIntel", 6, 207, "INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz", "Intel Emerald Rapids"),
        ("GenuineIntel", 6, 173, "Intel(R) Xeon(R) Processor", "Intel Granite Rapids"),
        ("GenuineIntel", 6, 60, "Intel Core Processor (Haswell, no TSX)", "unknown"),
        ("NewVendor", 1, 1, "New 1", "unknown"),
    ],
)
def test_a_virtual_thread_draws_what_its_family_does(
    vendor: str, family: int, model: int, brand: str, name: str
) -> None:
    cpu = identify(cpuinfo(brand, vendor, family, model, flags="hypervisor"))
    (row,) = (row for row in families() if row.name == name)
    assert (cpu.idle_w, cpu.full_w, cpu.source) == (row.idle_w, row.full_w, row.source)
    assert cpu.brand == brand


@pytest.mark.parametrize(
    ("brand", "vendor", "family", "model", "cores", "tdp_w"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "GenuineIntel", 6, 143, 52, 350),
        ("INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz", "GenuineIntel", 6, 207, 60, 350),
        ("AMD EPYC 7B13", "AuthenticAMD", 25, 1, 64, 280),
        ("AMD EPYC 9B14", "AuthenticAMD", 25, 17, 96, 360),
        ("AMD EPYC 7742 64-Core Processor", "AuthenticAMD", 23, 49, 64, 225),
        ("AMD EPYC 9654 96-Core Processor", "AuthenticAMD", 25, 17, 96, 360),
        ("INTEL(R) XEON(R) PLATINUM 8592+", "GenuineIntel", 6, 207, 64, 350),
        ("AMD Ryzen Threadripper 3990X 64-Core Processor", "AuthenticAMD", 23, 49, 64, 280),
    ],
)
def test_a_whole_server_draws_about_its_tdp_whether_it_is_known_or_not(
    brand: str, vendor: str, family: int, model: int, cores: int, tdp_w: float
) -> None:
    for flags in ("fpu", "fpu hypervisor"):
        assert (
            0.8
            < all_busy(identify(cpuinfo(brand, vendor, family, model, cores=cores, flags=flags))) / tdp_w
            < 1.2
        )


@pytest.mark.parametrize(
    ("brand", "tdp_w"),
    [
        ("12th Gen Intel(R) Core(TM) i9-12900K", 125),
        ("Intel(R) Core(TM) i9-14900KS", 150),
        ("Intel(R) Core(TM) i7-14700KF", 125),
        ("12th Gen Intel(R) Core(TM) i5-12400", 65),
        ("12th Gen Intel(R) Core(TM) i5-12400F", 65),
        ("12th Gen Intel(R) Core(TM) i7-12700T", 35),
        ("12th Gen Intel(R) Core(TM) i7-1260P", 28),
        ("12th Gen Intel(R) Core(TM) i7-1255U", 15),
        ("13th Gen Intel(R) Core(TM) i7-13700H", 45),
        ("13th Gen Intel(R) Core(TM) i9-13900HX", 55),
        ("Intel(R) Core(TM) Ultra 7 258V", 17),
        ("Intel(R) Core(TM) Ultra 5 225U", 15),
        ("Intel(R) Core(TM) Ultra 9 275HX", 55),
        ("Intel(R) Core(TM) Ultra 7 265K", 125),
        ("Intel(R) Core(TM) 7 150U", 15),
        ("AMD Ryzen 7 PRO 6850U with Radeon Graphics", 28),
        ("AMD Ryzen Z1 Extreme", 28),
        ("Intel(R) N95", 15),
        ("Intel(R) Atom(TM) CPU  C3558  @ 2.20GHz", 16),
        ("Intel(R) Atom(TM) x5-Z8350  CPU @ 1.44GHz", 4),
        ("Intel(R) Atom(TM) CPU  Z3735F @ 1.33GHz", 4),
        ("Intel(R) Atom(TM) CPU D525   @ 1.80GHz", 10),
        ("Intel(R) Atom(TM) CPU N270   @ 1.60GHz", 6),
        ("Intel(R) Atom(TM) Processor E3845 @ 1.91GHz", 10),
        ("Intel Atom(R) x6425E Processor @ 2.00GHz", 10),
        ("Intel(R) Core(TM) M-5Y10c CPU @ 0.80GHz", 5),
        ("Intel(R) Core(TM) 3 N355", 15),
        ("12th Gen Intel(R) Celeron(R) 7305", 15),
        ("Intel(R) Pentium(R) Gold 8505", 15),
        ("Intel(R) Pentium(R) Gold G7400", 58),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", None),
        ("AMD EPYC 7B12", None),
        ("QEMU Virtual CPU version 2.5+", None),
        ("Intel Core Processor (Skylake)", None),
        ("", None),
    ],
)
def test_where_the_table_lacks_a_cpu_its_letters_tell_the_usual_tdp(brand: str, tdp_w: float | None) -> None:
    assert tdp_of(brand) is None
    assert usual_tdp_of(brand) == tdp_w
    if tdp_w is not None:
        cpu = identify(cpuinfo(brand, cores=8))
        assert (cpu.tdp_w, cpu.usual, cpu.given) == (tdp_w, True, False)
        assert cpu.low < kinds()[cpu.kind.kind].low < kinds()[cpu.kind.kind].high < cpu.high
        assert idle(cpu) < 0.1 * tdp_w < 0.5 * tdp_w < all_busy(cpu) <= 1.6 * tdp_w


def test_a_virtual_machine_is_charged_no_more_than_the_cpu_whose_name_it_shows() -> None:
    brand = "Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz"
    whole = identify(cpuinfo(brand, model=142))
    laptop = identify(cpuinfo(brand, model=142, flags="fpu hypervisor"))  # as WSL shows it
    assert laptop.is_virtual
    assert laptop.tdp_w is None
    assert (idle(laptop), all_busy(laptop)) == (idle(whole), all_busy(whole))
    assert (laptop.low, laptop.high) == (0.5, 1.5)
    unlisted = identify(
        cpuinfo("12th Gen Intel(R) Core(TM) i7-1260P", model=154, cores=8, flags="hypervisor")
    )
    assert all_busy(unlisted) < 2 * 28


def test_an_arm_cpu_is_told_by_its_part() -> None:
    def arm(implementer: str, part: str) -> Cpu:
        block = f"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: {implementer}\nCPU part\t: {part}\n"
        return identify("\n".join(block.replace(": 0\n", f": {number}\n", 1) for number in range(64)))

    graviton2, graviton4 = arm("0x41", "0xd0c"), arm("0x41", "0xd4f")
    assert graviton2.threads == graviton2.cores == 64
    assert 80 < all_busy(graviton2) < 200
    assert all_busy(graviton2) < all_busy(graviton4) < 250
    assert all_busy(arm("0x41", "0xd08")) < all_busy(graviton2)
    assert arm("0x61", "0x023").brand == "Apple silicon"
    assert idle(arm("0x61", "0x023")) == pytest.approx(6.4)
    assert all_busy(arm("0x6d", "0xd49")) == all_busy(arm("0x41", "0xd49"))
    assert all_busy(arm("0xc0", "0xac3")) == pytest.approx(64 * 2.0)
    assert all_busy(arm("0x48", "0xd01")) == pytest.approx(64 * 2.8)
    assert all_busy(arm("0x41", "strange")) == all_busy(arm("0x99", "0x1")) == pytest.approx(64 * 4.5)


def test_a_mac_tells_its_name_without_proc() -> None:
    cpu = identify("model name\t: Apple M1\n", threads=8)
    assert (cpu.threads, cpu.brand) == (8, "Apple M1")
    assert idle(cpu) < 2
    assert 15 < all_busy(cpu) < 35


def test_a_tdp_that_is_given_counts_instead_of_the_table_s() -> None:
    cpu = identify(cpuinfo(XEON, sockets=2), tdp_w=100)
    assert (cpu.tdp_w, cpu.given, cpu.sockets) == (100, True, 2)
    assert all_busy(cpu) <= 1.4 * 200
    assert all_busy(identify(cpuinfo("New 1"), tdp_w=100)) == pytest.approx(100, rel=0.5)


def test_a_tdp_given_for_a_virtual_machine_is_that_of_its_share() -> None:
    cpu = identify(cpuinfo("AMD EPYC 7B13", "AuthenticAMD", 25, 1, cores=1, flags="hypervisor"), tdp_w=12)
    assert all_busy(cpu) == pytest.approx(12)
    assert 0.5 < idle(cpu) < 4


@pytest.mark.parametrize("tdp_w", [0, -5, float("nan"), float("inf"), 65_000])
def test_a_tdp_that_cannot_be_is_refused(tdp_w: float) -> None:
    with pytest.raises(SettingError, match="cpu_tdp"):
        identify(cpuinfo(XEON), tdp_w=tdp_w)


def test_a_machine_that_tells_nothing_has_the_threads_it_is_said_to_have() -> None:
    cpu = identify("", threads=10)
    assert (cpu.threads, cpu.cores, cpu.sockets, cpu.brand) == (10, 10, 1, "")
    assert all_busy(cpu) == pytest.approx(45)
    assert identify("").threads == 1


def rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("ct_notebook.sensors") / "data" / name).read_text("utf-8")
    return iter(csv.DictReader(text.splitlines()))


def test_every_figure_of_the_tables_has_a_source_and_can_be() -> None:
    for family in families():
        assert family.source
        assert 0 < family.idle_w < family.full_w < 8
    for kind in kinds().values():
        assert kind.source
        assert 0 < kind.idle_share < kind.full_share / 2
        assert 0.5 <= kind.one_thread <= 1
        assert 0 <= kind.awake < 0.5
        assert 0.5 <= kind.bend <= 1
        assert kind.low < 1 < kind.high
    names = [row["cpu"] for row in rows(cpu_model.TDPS)]
    assert len(names) == len(set(names)) > 2000
    assert all(0 < float(row["tdp_w"]) <= 500 for row in rows(cpu_model.TDPS))
    assert all(cpu_model.normal(name) == name for name in names)


def test_a_damaged_or_missing_table_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.cache_clear()
    monkeypatch.setattr(cpu_model, "KINDS", "no_such.csv")
    with pytest.raises(CtNotebookError, match=r"no_such\.csv is missing"):
        kinds()
    monkeypatch.setattr(cpu_model, "KINDS", cpu_model.FAMILIES)
    with pytest.raises(CtNotebookError, match=r"cpu_families\.csv is damaged"):
        kinds()


@pytest.mark.parametrize("name", [cpu_model.KINDS, cpu_model.FAMILIES, cpu_model.TDPS])
@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: raw.rindex(b"\n", 0, -1) + 5],  # cut within the last row
        lambda raw: raw[: raw.rindex(b"\n", 0, -1)],  # cut at the end of the one before it
        lambda raw: raw.replace(b"\n", b"\n\xff\xfe\x00", 1),
        lambda raw: b"\x00" + raw,
        lambda _: b"",
        lambda raw: b"<html>" + raw,
    ],
)
def test_a_table_that_is_cut_short_or_no_text_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    data = resources.files("ct_notebook.sensors") / "data"
    (tmp_path / "data").mkdir()
    for table in (cpu_model.KINDS, cpu_model.FAMILIES, cpu_model.TDPS):
        raw = (data / table).read_bytes()
        (tmp_path / "data" / table).write_bytes(damage(raw) if table == name else raw)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    caches = (kinds, families, cpu_model._tdps)
    for cached in caches:
        cached.cache_clear()
    try:
        with pytest.raises(CtNotebookError, match=f"The table {name} is damaged"):
            [cached() for cached in caches]
    finally:
        for cached in caches:
            cached.cache_clear()
