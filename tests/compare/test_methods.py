from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ct_notebook.compare import (
    METHODS,
    carbontracker,
    codecarbon,
    cumulator,
    eco2ai,
    experiment_impact_tracker,
    green_algorithms,
    mlco2,
)
from ct_notebook.compare.base import Facts, Result, ToolMethod, Used
from support.compared import HALF_AN_HOUR_S, SERVER, VIRTUAL

HOUR_S = 3600.0

names = pytest.mark.parametrize(
    "method", METHODS, ids=lambda method: f"{method.__module__[20:]}.{method.__name__}"
)


def kwh(result: Result) -> float:
    assert result.energy_j is not None, result.why
    return result.energy_j / 3.6e6


def by_component_w(result: Result, facts: Facts) -> dict[str, float]:
    return {name: energy_j / facts.duration_s for name, energy_j in result.by_component_j.items()}


def without(facts: Facts, *fields: str) -> Facts:
    unknown: dict[str, Any] = dict.fromkeys(fields)
    return replace(facts, **unknown)


# -- the figures that the tools themselves gave ----------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "power_w"), [(0.0, 10.0), (0.25, 11.41), (0.5, 21.25), (0.75, 47.97), (1.0, 100.0)]
)
def test_codecarbon_takes_a_cubic_curve_of_the_load(load: float, power_w: float) -> None:
    assert codecarbon.cpu_power_w(100.0, load) == pytest.approx(power_w, abs=0.005)


RAM_W = {
    8: 10,
    16: 10,
    23.5: 20,
    64: 20,
    83.5: 38,
    128: 38,
    167: 50,
    256: 38,
    334: 50,
    512: 38,
    1024: 38,
    2048: 70,
}


@pytest.mark.parametrize(("memory_gb", "power_w"), RAM_W.items())
def test_codecarbon_counts_memory_by_modules(memory_gb: float, power_w: float) -> None:
    assert codecarbon.ram_power_w(memory_gb) == pytest.approx(power_w, abs=0.5)
    assert codecarbon.ram_power_w(memory_gb, is_arm=True) == pytest.approx(
        0.3 * codecarbon.ram_power_w(memory_gb)
    )


def test_codecarbon_puts_a_quiet_virtual_machine_at_what_was_measured() -> None:
    # 30 s, hardly anything going on: 1.75e-4 kWh, of which 1.67e-4 are RAM.
    facts = replace(VIRTUAL, duration_s=30.0, cpu_load=0.05)
    result = codecarbon.machine(facts)
    assert kwh(result) == pytest.approx(1.75e-4, rel=0.02)
    assert result.by_component_j["ram"] / 3.6e6 == pytest.approx(1.67e-4, rel=0.005)
    assert "8 W for 2 threads" in result.method


def test_codecarbon_charges_a_process_by_its_cpu_time_and_ten_watts_of_ram() -> None:
    # 8 to 17 CPU seconds of 20 s made 0.9e-5 to 2.3e-5 kWh; RAM should have been 5.56e-5.
    result = codecarbon.process(replace(VIRTUAL, process_cpu_s=8.1))
    assert result.by_component_j["cpu"] / 3.6e6 == pytest.approx(0.9e-5, rel=0.01)
    assert result.by_component_j["ram"] / 3.6e6 == pytest.approx(5.56e-5, rel=0.001)


def test_eco2ai_puts_a_busy_thread_of_an_epyc_at_500_w_of_tdp() -> None:
    # 500 W x half of the threads x 20 s: 1.39e-3 kWh.
    result = eco2ai.process(replace(VIRTUAL, cpu_tdp_w=500.0))
    assert result.by_component_j["cpu"] / 3.6e6 == pytest.approx(1.39e-3, rel=0.001)
    assert result.by_component_j["ram"] == pytest.approx(0.5 * 0.375 * 20)


@pytest.mark.parametrize(("duration_s", "energy_kwh"), [(30.0, 7.905e-4), (20.0, 5.270e-4)])
def test_carbontracker_takes_half_the_tdp_of_a_cpu_without_a_meter(
    duration_s: float, energy_kwh: float
) -> None:
    for method in (carbontracker.summed, carbontracker.averaged):
        result = method(replace(VIRTUAL, duration_s=duration_s, cpu_tdp_w=120.0))
        assert kwh(result) == pytest.approx(energy_kwh, rel=0.002)


def test_carbontracker_2_takes_the_mean_of_two_gpus_where_1_took_the_sum() -> None:
    facts = Facts(
        duration_s=HOUR_S,
        used=tuple(Used("gpu", "GPU", "measured", power_w * HOUR_S) for power_w in (100.0, 300.0)),
        gpu_names=("GPU", "GPU"),
        cpu_tdp_w=1e-9,
    )
    assert kwh(carbontracker.summed(facts)) == pytest.approx(0.4 * 1.58)
    assert kwh(carbontracker.averaged(facts)) == pytest.approx(0.2 * 1.58)
    assert "mean over 2 GPUs" in carbontracker.averaged(facts).why


def test_green_algorithms_answers_as_its_form_does() -> None:
    # 12 h, 12 cores of any kind, 64 GB, an unknown data centre, world: 3.142 kWh, 1,492.4 g.
    facts = Facts(duration_s=12 * HOUR_S, cpu_threads=12.0, memory_gb=64.0, pue=1.54)
    result = green_algorithms.form(facts)
    assert kwh(result) == pytest.approx(3.142, abs=0.0005)
    assert result.emissions_g == pytest.approx(1492.4, abs=0.1)
    assert result.g_per_kwh == 475
    # By hand: 2 x 12 W and 23.5 GB on a machine of one's own for 30 s, 2.7e-4 kWh.
    own = green_algorithms.form(replace(VIRTUAL, duration_s=30.0, pue=1.0))
    assert kwh(own) == pytest.approx(2.7e-4, rel=0.02)


def test_mlco2_shows_what_its_page_shows() -> None:
    # 100 h at 300 W in gcp asia-east1: the page rounds the intensity before it multiplies.
    assert mlco2.shown(300.0, 100.0, 557.0) == (30.0, 16.80)
    facts = Facts(duration_s=100 * HOUR_S, gpu_names=("GPU",), gpu_limit_w=300.0)
    result = mlco2.page(facts)
    assert kwh(result) == pytest.approx(30.0)
    assert result.emissions_g == pytest.approx(30.0 * 432)
    assert kwh(result) * 0.557 == pytest.approx(16.71)
    assert "30.00 kWh" in result.why


@pytest.mark.parametrize(("duration_s", "energy_kwh"), [(30.0, 2.1e-3), (20.0, 1.4e-3)])
def test_cumulator_takes_250_w_of_a_device_that_it_does_not_know(
    duration_s: float, energy_kwh: float
) -> None:
    result = cumulator.run(replace(VIRTUAL, duration_s=duration_s))
    assert kwh(result) == pytest.approx(energy_kwh, rel=0.02)
    assert cumulator.emissions_g(250.0, duration_s, 160.0) == pytest.approx(result.emissions_g)
    assert cumulator.emissions_g(0.0, 0.0, 447.0, 1000.0) == pytest.approx(6.894e-5 * 447)


GRIDS: dict[ToolMethod, tuple[float, ...]] = {
    # DK, FR, DE, GB, SE, PL, US, IN, unknown
    codecarbon.machine: (151.65, 56.039, 380.95, 237.589, 40.695, 661.926, 369.473, 713.441, 475),
    codecarbon.process: (151.65, 56.039, 380.95, 237.589, 40.695, 661.926, 369.473, 713.441, 475),
    eco2ai.process: (188.653, 67.53, 332.495, 245.715, 42.371, 647.321, 369.571, 625.573, 436.529),
    carbontracker.summed: (143.30, 44.18, 344.14, 210.89, 35.82, 614.98, 383.55, 708.32, 445),
    carbontracker.averaged: (143.30, 44.18, 344.14, 210.89, 35.82, 614.98, 383.55, 708.32, 445),
    green_algorithms.form: (142.52, 51.28, 338.66, 231.12, 5.67, 759.62, 423.94, 708.2, 475),
    cumulator.run: (160, 118, 195, 169, 66, 269, 200, 278, 447),
    mlco2.page: (432,) * 9,
}


@pytest.mark.parametrize("method", GRIDS, ids=lambda method: method.__module__)
def test_each_tool_has_its_own_carbon_intensity(method: ToolMethod) -> None:
    zones = ("DK", "FR", "DE", "GB", "SE", "PL", "US", "IN", None)
    results = [method(replace(SERVER, zone=zone)) for zone in zones]
    assert [result.g_per_kwh for result in results] == list(GRIDS[method])
    for result in results:
        assert result.energy_j is not None
        assert result.emissions_g == pytest.approx(result.energy_j / 3.6e6 * (result.g_per_kwh or 0))
    assert "unknown" in results[-1].grid


def test_a_country_that_is_not_held_gets_the_tools_average_and_says_so() -> None:
    result = codecarbon.machine(replace(SERVER, zone="NO"))
    assert result.g_per_kwh == 475
    assert "NO" in result.grid
    assert "not held here" in result.grid


def test_a_grid_zone_is_looked_up_before_its_country() -> None:
    expected = {"DK-DK1": 217.53, "DK-DK2": 257.43, "DK": 257.43, "SE-SE3": 51.68, "CA-QC": 30.0}
    for zone, g_per_kwh in expected.items():
        assert experiment_impact_tracker.process(replace(SERVER, zone=zone)).g_per_kwh == g_per_kwh
    nowhere = experiment_impact_tracker.process(replace(SERVER, zone="CA"))
    assert nowhere.g_per_kwh is None
    assert nowhere.energy_j is not None
    assert nowhere.emissions_g is None
    assert "no carbon intensity" in nowhere.why


# -- meters ------------------------------------------------------------------------------------------------


def test_a_server_with_meters_is_read_by_those_who_read_meters() -> None:
    assert by_component_w(codecarbon.machine(SERVER), SERVER) == pytest.approx(
        {"gpu": 400.0, "cpu": 80.0, "ram": 38.0}
    )
    assert by_component_w(codecarbon.process(SERVER), SERVER) == pytest.approx(
        {"gpu": 400.0, "cpu": 80.0, "ram": 10.0}
    )
    assert by_component_w(carbontracker.summed(SERVER), SERVER) == pytest.approx({"gpu": 400.0, "cpu": 100.0})
    assert by_component_w(carbontracker.averaged(SERVER), SERVER) == pytest.approx(
        {"gpu": 200.0, "cpu": 50.0}
    )
    # 0.9 of the GPUs; 0.6 of the busy CPU time of what packages have over their memory; 2 x 8 of 64 GB.
    assert by_component_w(experiment_impact_tracker.process(SERVER), SERVER) == pytest.approx(
        {"gpu": 360.0, "cpu": 0.6 * (80 - 20) + 0.25 * 20}
    )
    assert by_component_w(eco2ai.process(SERVER), SERVER) == pytest.approx(
        {"gpu": 400.0, "cpu": 150 * 0.25 * 0.6, "ram": 3.0}
    )
    assert by_component_w(green_algorithms.form(SERVER), SERVER) == pytest.approx(
        {"gpu": 800.0, "cpu": 150.0, "ram": 128 * 0.3725}
    )
    assert by_component_w(mlco2.page(SERVER), SERVER) == pytest.approx({"gpu": 800.0})
    assert by_component_w(cumulator.run(SERVER), SERVER) == pytest.approx({"gpu": 400.0})


def test_energy_holds_the_pue_of_the_tool() -> None:
    pues = {method(SERVER).tool: method(SERVER).pue for method in METHODS}
    assert pues == {
        "Green Algorithms": 1.56,
        "CodeCarbon (machine)": 1.0,
        "CodeCarbon (process)": 1.0,
        "Eco2AI": 1.0,
        "carbontracker (1.x rule)": 1.58,
        "carbontracker (2.x rule)": 1.58,
        "Experiment-Impact-Tracker": 1.58,
        "ML CO2 Impact": 1.0,
        "Cumulator": 1.0,
    }
    for method in METHODS:
        result = method(SERVER)
        assert result.energy_j == pytest.approx(sum(result.by_component_j.values()) * result.pue)


def test_a_second_socket_counts_for_those_who_count_sockets() -> None:
    two = replace(VIRTUAL, cpu_tdp_w=100.0, cpu_sockets=2.0)
    one = replace(two, cpu_sockets=1.0)
    for method, times in (
        (codecarbon.machine, 2),
        (eco2ai.process, 2),
        (green_algorithms.form, 2),
        (carbontracker.averaged, 1),
        (cumulator.run, 1),
    ):
        assert method(two).by_component_j["cpu"] == pytest.approx(times * method(one).by_component_j["cpu"])


def test_simulated_hardware_is_taken_as_though_it_had_been_read() -> None:
    facts = Facts(
        duration_s=10.0,
        used=(Used("gpu", "X", "user", 500.0), Used("cpu", "Y", "user", 300.0)),
        gpu_names=("X",),
        cpu_tdp_w=100.0,
        cpu_load=0.5,
        memory_gb=8.0,
    )
    assert carbontracker.averaged(facts).by_component_j == {"gpu": 500.0, "cpu": 300.0}
    assert codecarbon.machine(facts).by_component_j == pytest.approx(
        {"gpu": 500.0, "cpu": 212.5, "ram": 100.0}
    )
    assert "as simulated" in carbontracker.averaged(facts).method


def test_a_gpu_that_we_only_modelled_is_no_reading_for_anybody() -> None:
    facts = replace(SERVER, used=(Used("gpu", "GPU", "modelled", 1e6), *SERVER.used[2:]))
    for method in (codecarbon.machine, eco2ai.process, carbontracker.summed):
        result = method(facts)
        assert "gpu" not in result.by_component_j
        assert "no gpu (ours" in result.why.lower()


# -- what is not known ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "missing", "said"),
    [
        (green_algorithms.form, ("cpu_threads",), "number of cores"),
        (green_algorithms.form, ("memory_gb",), "size of the memory"),
        (codecarbon.machine, ("memory_gb",), "size of the memory"),
        (codecarbon.process, ("process_cpu_s",), "CPU time"),
        (codecarbon.process, ("process_memory_gb",), "memory of the process"),
        (eco2ai.process, ("process_cpu_s",), "CPU time"),
        (eco2ai.process, ("process_memory_gb",), "memory of the process"),
        (mlco2.page, (), "this run has none"),
        (experiment_impact_tracker.process, (), "neither RAPL nor a GPU"),
    ],
)
def test_without_what_a_method_needs_there_is_no_figure_but_a_reason(
    method: ToolMethod, missing: tuple[str, ...], said: str
) -> None:
    result = method(without(VIRTUAL, *missing))
    assert result.energy_j is None
    assert result.emissions_g is None
    assert said in result.why
    assert result.why.startswith("No figure: ")


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("process_gpu_share", "GPUs' work"),
        ("process_cpu_s", "CPU time"),
        ("cpu_load", "CPU time"),
        ("memory_used_gb", "memory"),
    ],
)
def test_shares_that_are_not_known_are_not_made_up(missing: str, said: str) -> None:
    result = experiment_impact_tracker.process(without(SERVER, missing))
    assert result.energy_j is None
    assert said in result.why


def test_what_is_unknown_of_a_cpu_becomes_the_tools_own_constant() -> None:
    nothing = without(VIRTUAL, "cpu_threads", "cpu_load")
    assert by_component_w(codecarbon.machine(nothing), nothing)["cpu"] == pytest.approx(42.5)
    assert by_component_w(codecarbon.machine(without(VIRTUAL, "cpu_load")), VIRTUAL)["cpu"] == 4.0
    assert by_component_w(eco2ai.process(VIRTUAL), VIRTUAL)["cpu"] == pytest.approx(100.1 / 2)
    assert by_component_w(carbontracker.summed(VIRTUAL), VIRTUAL)["cpu"] == pytest.approx(35.6)
    assert by_component_w(green_algorithms.form(VIRTUAL), VIRTUAL)["cpu"] == 24.0
    assert by_component_w(mlco2.page(replace(SERVER, gpu_limit_w=None)), SERVER) == {}
    assert by_component_w(green_algorithms.form(replace(SERVER, gpu_limit_w=None)), SERVER)["gpu"] == 400.0
    assert by_component_w(cumulator.run(replace(SERVER, gpu_limit_w=None)), SERVER)["gpu"] == 250.0


@names
@pytest.mark.parametrize("facts", [SERVER, VIRTUAL, Facts(duration_s=0.0), Facts(duration_s=1.0)])
def test_every_method_says_what_it_is_and_changes_nothing(method: ToolMethod, facts: Facts) -> None:
    result = method(facts)
    assert result == method(facts)
    assert result.tool
    assert result.version
    assert result.counts
    assert result.leaves_out
    assert result.grid
    assert result.why.endswith(".")
    assert result.constants
    assert all(constant.source for constant in result.constants)
    assert (result.energy_j is None) == result.why.startswith("No figure: ")


def test_the_reason_names_the_figures_that_make_the_difference() -> None:
    why = codecarbon.machine(VIRTUAL).why
    for figure in (
        "CPU 1.7 W instead of our 3 W",
        "RAM 20 W instead of our 8 W",
        "PUE 1 instead of our 1.54",
    ):
        assert figure in why
    assert "152 g/kWh instead of our 114" in why
    same = replace(
        SERVER, used=SERVER.used[:1], gpu_names=("A",), gpu_limit_w=300.0, pue=1.0, g_per_kwh=432.0
    )
    assert "the same power, PUE and carbon intensity" in mlco2.page(same).why
    assert SERVER.duration_s == HALF_AN_HOUR_S
