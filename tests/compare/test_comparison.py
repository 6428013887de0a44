from __future__ import annotations

import dataclasses
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from ct_notebook.compare import compare, facts_of
from ct_notebook.compare.figures import CO2, ENERGY, number, ratio, unit_for
from ct_notebook.records import Device, Run
from support.compared import MACHINE, described_run
from support.runs import RUNS

shown = pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)


def test_facts_are_those_of_the_run() -> None:
    run = described_run()
    facts = facts_of(run)
    assert facts.duration_s == 20.0
    assert facts.by_component_j == run.energy_by_component_j
    assert facts.gpu_names == ("NVIDIA A100-SXM4-40GB",)
    assert (facts.zone, facts.pue) == ("DK", 1.5)
    assert facts.g_per_kwh == pytest.approx(360.0)
    assert {key: getattr(facts, key) for key in MACHINE} == dict(MACHINE)
    assert facts.memory_used_gb is None


def test_a_run_that_says_nothing_of_its_machine_leaves_it_unknown() -> None:
    facts = facts_of(RUNS["two devices"]())
    assert facts.cpu_threads is None
    assert facts.cpu_load is None
    assert facts.memory_gb is None


def test_impossible_figures_of_a_machine_are_unknown() -> None:
    wrong: dict[str, Any] = {
        "cpu_threads": 0,
        "cpu_tdp_w": "many",
        "cpu_load": 50.0,
        "process_cpu_s": -1.0,
        "memory_gb": math.nan,
        "gpu_limit_w": math.inf,
    }
    facts = facts_of(dataclasses.replace(described_run(), machine=wrong))
    assert all(getattr(facts, key) is None for key in wrong)
    told = facts_of(dataclasses.replace(described_run(), machine={"cpu_load": 1.01, "cpu_threads": 16.0}))
    assert (told.cpu_load, told.cpu_threads) == (1.0, 16.0)


def test_memory_zones_of_rapl_are_known_by_key_and_by_name() -> None:
    run = described_run()
    zones = (
        Device("cpu:package-0", "cpu", "cpu:0", "counter"),
        Device("cpu:dram-0", "cpu", "dram:0", "counter"),
        Device("cpu:1", "cpu", "dram:1", "counter"),
    )
    epoch = dataclasses.replace(run.epochs[0], energy_j=dict.fromkeys((zone.key for zone in zones), 1.0))
    facts = facts_of(dataclasses.replace(run, devices=zones, epochs=(epoch,)))
    assert [device.is_dram for device in facts.used] == [False, True, True]


def test_ours_comes_first_and_is_what_the_run_says() -> None:
    run = described_run()
    comparison = run.compare()
    assert comparison == compare(run)
    assert run.energy_j is not None
    assert run.emissions_g is not None
    assert comparison.ours.energy_j == pytest.approx(run.energy_j.value * 1.5)
    assert comparison.ours.emissions_g == pytest.approx(run.emissions_g.value)
    assert len(comparison.results) == 9
    assert comparison.table().splitlines()[2].split()[0] == "ct_notebook"


def test_the_table_has_one_unit_for_each_column() -> None:
    lines = described_run().compare().table().splitlines()
    assert "Energy, Wh" in lines[1]
    ours, form = lines[2].split(), lines[3].split()
    assert ours == ["ct_notebook", "1.00", "360", "360", "1.5"]
    assert form[:2] == ["Green", "Algorithms"]
    # 400 W and 100 W and 31.2 GB for 20 s in a data centre.
    assert float(form[2]) == pytest.approx((500 + 31.2 * 0.3725) * 20 / 3600 * 1.56, rel=0.005)
    assert float(form[3]) == pytest.approx(float(form[2]) / float(ours[1]), rel=0.05)


@shown
def test_every_run_can_be_compared_and_shown(made: object) -> None:
    run = made()  # type: ignore[operator]
    comparison = compare(run)
    text = comparison.table()
    assert repr(comparison) == text
    assert max(map(len, text.splitlines())) <= 112
    for result in comparison.results:
        assert result.tool in text
        assert result.tool in comparison.details()
        assert result.energy_j is None or math.isfinite(result.energy_j)
    assert "\x00" not in text + comparison.details()
    frame = comparison.to_dataframe()
    assert list(frame["tool"]) == [comparison.ours.tool, *(result.tool for result in comparison.results)]
    assert len(comparison.figure().data) == 2


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "rowspan"}
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@shown
def test_html_is_whole_and_holds_no_markup_from_outside(made: object) -> None:
    run: Run = made()  # type: ignore[operator]
    page = compare(run)._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    # Neither light nor dark: no colour of our own.
    assert "color" not in page
    assert re.search(r"[\x00-\x08\x0b-\x1f\u202e]", page) is None


def test_a_hostile_place_stays_text_in_the_figure() -> None:
    made = compare(RUNS["hostile"]()).figure().to_json()
    assert "<script" not in made


def test_the_figure_has_bars_of_energy_and_of_co2_with_ours_on_top() -> None:
    comparison = described_run().compare()
    figure = comparison.figure()
    energy, co2 = figure.data
    assert energy.orientation == "h"
    assert energy.y[0] == co2.y[0] == "ct_notebook"
    assert figure.layout.yaxis.autorange == "reversed"
    assert energy.x[0] == pytest.approx(1.0)
    assert energy.text[0] == "1 Wh"
    assert "no figure" not in energy.text


def test_a_tool_without_a_figure_has_no_bar_and_says_so() -> None:
    energy, co2 = RUNS["two devices"]().compare().figure().data
    place = list(energy.y).index("Green Algorithms")
    assert energy.text[place] == co2.text[place] == "no figure"
    assert energy.x[place] == co2.x[place] == 0


def test_missing_figures_are_nan_in_the_data_frame() -> None:
    frame = RUNS["two devices"]().compare().to_dataframe().set_index("tool")
    assert math.isnan(frame.loc["Green Algorithms", "energy_kwh"])
    assert math.isnan(frame.loc["Green Algorithms", "ram_kwh"])
    assert frame.loc["ct_notebook", "energy_kwh"] == pytest.approx(2400 * 1.5 / 3.6e6)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.000278, "0.000278"),
        (9.9996, "10"),
        (21.25, "21.2"),
        (114.4, "114"),
        (712.6, "713"),
        (12345.6, "12346"),
        (1e7, "10000000"),
    ],
)
def test_numbers_have_no_exponents(value: float, text: str) -> None:
    assert number(value) == text


def test_units_are_those_of_the_first_figure_that_there_is() -> None:
    assert unit_for([None, 0.0, 5.0, 1e9], ENERGY) == (3.6, "mWh")
    assert unit_for([2e7], ENERGY) == (3.6e6, "kWh")
    assert unit_for([0.00001], CO2) == (1e-3, "mg")
    assert unit_for([None], CO2) == (1.0, "g")
    assert ratio(2.0, None) == ratio(None, 2.0) == ratio(2.0, 0.0) == "-"
    assert ratio(2.0, 0.83) == "2.4"
