"""What we say that they would say, held against themselves: the formulas and tables of the real packages."""

from __future__ import annotations

import pytest

from ct_notebook.compare import carbontracker, codecarbon, eco2ai
from ct_notebook.compare.base import Facts, Used
from ct_notebook.compare.intensities import CARBONTRACKER, CODECARBON, ECO2AI
from support.compared import VIRTUAL, ask

pytestmark = pytest.mark.peers

ALPHA_3 = {
    "DK": "DNK",
    "FR": "FRA",
    "DE": "DEU",
    "GB": "GBR",
    "SE": "SWE",
    "PL": "POL",
    "US": "USA",
    "CA": "CAN",
    "IN": "IND",
    "CN": "CHN",
    "ZA": "ZAF",
}

LOADS = [0.0, 0.05, 0.25, 0.5, 0.75, 1.0]

SIZES_GB = [0.4, 2.0, 2.1, 8.0, 16.0, 23.5, 32.0, 33.0, 64.0, 83.5, 128.0, 128.5, 167.0, 256.0, 334.0, 500.0]
SIZES_GB += [512.0, 1000.0, 1024.0, 1500.0, 2048.0, 4096.0, 9000.0]


def test_codecarbon_3_3_2_has_our_curve_of_the_load() -> None:
    theirs = ask(
        "codecarbon",
        f"""
import json, tempfile
from codecarbon.external.hardware import CPU
cpu = CPU(output_dir=tempfile.mkdtemp(), mode="cpu_load", model="X", tdp=150)
watts = []
for load in {LOADS}:
    cpu._cpu_load_meter.percent = lambda: 100 * load
    watts.append(cpu._get_power_from_cpus().W)
print(json.dumps(watts))
""",
    )
    assert [codecarbon.cpu_power_w(150.0, load) for load in LOADS] == pytest.approx(theirs)


def test_codecarbon_3_3_2_charges_a_process_as_we_say() -> None:
    # 3 CPU seconds in 2 s on 8 threads of a CPU of 150 W.
    theirs = ask(
        "codecarbon",
        """
import json, tempfile, time
from codecarbon.external.hardware import CPU
cpu = CPU(output_dir=tempfile.mkdtemp(), mode="cpu_load", model="X", tdp=150, tracking_mode="process")
cpu._cpu_count = 8
clock, spent = [100.0], [50.0]
time.time = lambda: clock[0]
cpu._get_process_cpu_times = lambda: {1: spent[0]}
cpu._get_power_from_cpus()
clock[0], spent[0] = 102.0, 53.0
print(json.dumps(cpu._get_power_from_cpus().W))
""",
    )
    facts = Facts(
        duration_s=2.0, cpu_threads=8.0, cpu_tdp_w=150.0, process_cpu_s=3.0, process_memory_gb=1.0, zone="DK"
    )
    assert codecarbon.process(facts).by_component_j["cpu"] / 2 == pytest.approx(theirs)


@pytest.mark.parametrize("is_arm", [False, True])
def test_codecarbon_3_3_2_has_our_steps_of_memory(is_arm: bool) -> None:  # noqa: FBT001 - two cases
    theirs = ask(
        "codecarbon",
        f"""
import json
from codecarbon.external.ram import RAM
ram = RAM()
ram.is_arm_cpu = {is_arm}
print(json.dumps([ram._calculate_ram_power(size_gb) for size_gb in {SIZES_GB}]))
""",
    )
    assert [codecarbon.ram_power_w(size_gb, is_arm=is_arm) for size_gb in SIZES_GB] == pytest.approx(theirs)


@pytest.mark.parametrize("sockets", [1, 2])
def test_codecarbon_3_3_2_counts_threads_of_an_unknown_cpu_once_for_each_socket(sockets: int) -> None:
    theirs = ask(
        "codecarbon",
        f"""
import json, tempfile
from codecarbon.core import cpu, resource_tracker
cpu.is_rapl_available = lambda *a, **k: False
cpu.detect_cpu_model = lambda: "Nothing of this name"
cpu.count_cpus = lambda: 96

class Tracker:
    _force_cpu_power, _conf, _hardware = None, {{"cpu_physical_count": {sockets}}}, []
    _tracking_mode, _output_dir = "machine", tempfile.mkdtemp()

tracker = Tracker()
resource_tracker.ResourceTracker(tracker).set_CPU_tracking()
print(json.dumps(tracker._hardware[0]._tdp))
""",
    )
    full_w, how = codecarbon.full_power_w(Facts(duration_s=1.0, cpu_threads=96.0, cpu_sockets=float(sockets)))
    assert full_w == theirs == 384 * sockets
    assert ("each of 2 sockets" in how) == (sockets == 2)


def test_codecarbon_3_3_2_has_our_constants() -> None:
    theirs = ask(
        "codecarbon",
        """
import inspect, json, tempfile
from codecarbon import OfflineEmissionsTracker, emissions_tracker
from codecarbon.core import cpu
from codecarbon.external import hardware
unknown = hardware.CPU.from_utils(tempfile.mkdtemp(), "constant", "X")
tracker = OfflineEmissionsTracker(country_iso_code="DNK", save_to_file=False, log_level="critical")
print(json.dumps([
    cpu.DEFAULT_POWER_PER_CORE, hardware.POWER_CONSTANT, hardware.CONSUMPTION_PERCENTAGE_CONSTANT,
    unknown._get_power_from_cpus().W, tracker._pue, tracker._tracking_mode,
]))
""",
    )
    assert theirs == [
        codecarbon.W_PER_THREAD,
        codecarbon.UNKNOWN_CPU_W,
        codecarbon.CONSTANT_SHARE,
        codecarbon.UNKNOWN_CPU_W * codecarbon.CONSTANT_SHARE,
        1.0,
        "machine",
    ]


def test_codecarbon_3_3_2_makes_the_emissions_of_our_table_of_a_kilowatt_hour() -> None:
    theirs = ask(
        "codecarbon",
        f"""
import json
from codecarbon.core.emissions import Emissions
from codecarbon.core.units import Energy
from codecarbon.external.geography import GeoMetadata
from codecarbon.input import DataSource
emissions = Emissions(DataSource())
print(json.dumps([
    1000 * emissions.get_private_infra_emissions(Energy.from_energy(1.0), GeoMetadata(code, code))
    for code in {[*ALPHA_3.values(), "XXX"]}
]))
""",
    )
    ours = [CODECARBON.at(zone).g_per_kwh for zone in (*ALPHA_3, None)]
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert set(CODECARBON.g_per_kwh) == set(ALPHA_3)


def test_carbontracker_2_4_7_takes_half_the_tdp_and_the_mean_over_devices() -> None:
    theirs = ask(
        "carbontracker",
        """
import json
from carbontracker import constants
from carbontracker.components.component import Component
from carbontracker.components.cpu.generic import GenericCPU

class Two:
    def power_usage(self):
        return [100.0, 300.0]

component = Component("gpu", [], False, None, sim_gpu="X", sim_gpu_watts=1)
component._handler = Two()
for _ in range(5):
    component.collect_power_usage(1)
(two_kwh,) = component.energy_usage([3600])

GenericCPU.get_cpu_brand = lambda self: brand
watts = []
for brand in ("no such CPU", "X 1"):
    cpu = GenericCPU([], False)
    cpu.cpu_power_data["X 1"] = 120.0
    cpu.init()
    watts += cpu.power_usage()
print(json.dumps([float(two_kwh), *watts, constants.PUE_2023, constants.WORLD_AVG_CARBON_INTENSITY]))
""",
    )
    facts = Facts(
        duration_s=3600.0,
        used=tuple(Used("gpu", "GPU", "measured", power_w * 3600) for power_w in (100.0, 300.0)),
        cpu_tdp_w=120.0,
    )
    result = carbontracker.averaged(facts)
    ours = [
        result.by_component_j["gpu"] / 3.6e6,
        carbontracker.cpu_power_w(None),
        result.by_component_j["cpu"] / 3600,
        result.pue,
        result.g_per_kwh,
    ]
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_carbontracker_2_4_7_has_our_carbon_intensities() -> None:
    theirs = ask(
        "carbontracker",
        """
import csv, importlib.resources, json
path = importlib.resources.files("carbontracker") / "data" / "carbon-intensities.csv"
column = "Carbon intensity of electricity (gCO2eq/kWh)"
print(json.dumps({row["alpha-2"]: float(row[column]) for row in csv.DictReader(open(path))}))
""",
    )
    ours = dict(CARBONTRACKER.g_per_kwh)
    assert len(ours) == 11
    assert ours == pytest.approx({zone: theirs[zone] for zone in ours}, abs=0.006)


def test_eco2ai_0_3_12_reckons_as_we_say() -> None:
    theirs = ask(
        "eco2ai",
        """
import json, warnings
warnings.simplefilter("ignore")
from eco2ai.tools import tools_cpu, tools_ram
clock = [100.0]
tools_cpu.time.time = lambda: clock[0]

cpu = tools_cpu.CPU(ignore_warnings=True)
cpu._tdp, cpu._cpu_num, cpu._start, cpu._consumption = 500.0, 2, 100.0, 0
cpu.get_cpu_percent = lambda: 0.5
ram = tools_ram.RAM(ignore_warnings=True)
ram._start = 100.0
ram._get_memory_used = lambda: 0.5
clock[0] = 120.0
print(json.dumps([cpu.calculate_consumption(), ram.calculate_consumption(), tools_cpu.CONSTANT_CONSUMPTION]))
""",
    )
    facts = Facts(
        duration_s=20.0,
        cpu_threads=2.0,
        cpu_sockets=2.0,
        cpu_tdp_w=500.0,
        process_cpu_s=20.0,
        process_memory_gb=0.5,
    )
    by_component_j = eco2ai.process(facts).by_component_j
    ours = [by_component_j["cpu"] / 3.6e6, by_component_j["ram"] / 3.6e6, eco2ai.UNKNOWN_CPU_W]
    assert ours == pytest.approx(theirs)


def test_eco2ai_0_3_12_counts_no_cpu_that_it_cannot_match_though_it_means_to() -> None:
    theirs = ask(
        "eco2ai",
        """
import json, warnings
warnings.simplefilter("ignore")
from eco2ai.tools import tools_cpu
meant = tools_cpu.find_tdp_value("Nothing", tools_cpu.CPU_TABLE_NAME)
tools_cpu.get_cpu_info = lambda: {"brand_raw": "Nothing"}
print(json.dumps([meant, float(tools_cpu.CPU().tdp())]))
""",
    )
    assert theirs == [eco2ai.UNKNOWN_CPU_W, 0.0]
    assert any("makes it 0" in constant.source for constant in eco2ai.process(VIRTUAL).constants)


def test_eco2ai_0_3_12_has_our_carbon_intensities() -> None:
    theirs = ask(
        "eco2ai",
        f"""
import json, warnings
warnings.simplefilter("ignore")
from eco2ai.utils import define_carbon_index
print(json.dumps([define_carbon_index(alpha_2_code=code)[0] for code in {[*ALPHA_3, "??"]}]))
""",
    )
    ours = [ECO2AI.at(zone).g_per_kwh for zone in (*ALPHA_3, None)]
    assert ours == pytest.approx([float(each) for each in theirs])
