"""Where and when a run would have cost less, and what a paper says of it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

import pytest

from ct_notebook.advice import when, where
from ct_notebook.equivalents import EQUIVALENTS, equivalents_text, factors_text
from ct_notebook.errors import SettingError
from ct_notebook.forward import best_start
from ct_notebook.intensity.ahead import mean_ahead, mean_over
from ct_notebook.intensity.base import Answer
from ct_notebook.intensity.live import _process
from ct_notebook.intensity.table import of_country
from ct_notebook.records import Device, Epoch, Intensity, Pue, Run
from ct_notebook.settings import resolve
from ct_notebook.statement import statement

KWH = 3.6e6


def run_of(kwh: float = 1.0, intensity: Intensity | None = None, name: str = "Tesla T4", **more: Any) -> Run:
    epoch = Epoch(1, 0.0, 3600.0, MappingProxyType({"gpu:a": kwh * KWH}), MappingProxyType({"gpu:a": 3600.0}))
    return Run(
        run_id="1",
        started_at=datetime(2026, 5, 1, tzinfo=timezone.utc),
        epochs_declared=1,
        devices=(Device("gpu:a", "gpu", name, "counter", "NVML energy counter", 0.95, 1.05),),
        intensity=intensity or of_country("DK", "setting"),
        pue=Pue(1.1, "a test"),
        epochs=(epoch,),
        duration_s=3600.0,
        closed=True,
        **more,
    )


# -- where ---------------------------------------------------------------------------------------------


def test_places_are_told_with_the_least_first_and_the_runs_own_among_them() -> None:
    run = run_of()
    found = where(run, ["SE", "PL", "gcp:europe-west1", "US-CAL-CISO"])
    grams = [place.emissions_g for place in found.places]
    assert grams == sorted(grams)
    assert [place.name for place in found.places if place.is_own] == ["Denmark"]
    sweden = next(place for place in found.places if place.name == "Sweden")
    assert sweden.emissions_g == pytest.approx(1.1 * of_country("SE", "").g_per_kwh)
    assert len(found.places) == 5
    assert all(place.intensity.kind == "lifecycle" for place in found.places)


def test_without_names_the_best_and_the_worst_cloud_regions_are_told() -> None:
    found = where(run_of())
    assert found.left_out > 100
    assert 10 <= len(found.places) <= 14
    text = repr(found)
    assert "> Denmark (this run)" in text
    assert "World average" in text
    assert f"{found.left_out} more cloud regions" in text
    all_of_one = where(run_of(), ["aws"])
    assert all(place.is_own or place.name.startswith("aws:") for place in all_of_one.places)


def test_an_unknown_place_is_told_with_the_nearest_names() -> None:
    with pytest.raises(SettingError, match=r"'Swedn' is no country.*Sweden"):
        where(run_of(), ["Swedn"])


def test_a_run_without_figures_is_nowhere_else_either() -> None:
    empty = dataclasses.replace(run_of(), epochs=())
    with pytest.raises(SettingError, match="Nothing was measured"):
        where(empty)


def test_what_comes_from_outside_is_text_in_the_table_and_the_chart() -> None:
    place = Intensity(100.0, None, "<b>x</b>\n\u202e", "<script>", "2025", "lifecycle")
    found = where(run_of(intensity=place), ["SE"])
    html = found._repr_html_()
    assert "<script>" not in html
    assert "<b>x" not in html
    assert "\u202e" not in html
    figure = found.figure()
    assert "<script>" not in figure.to_json()
    assert list(figure.data[0].x) == pytest.approx([place.emissions_g for place in found.places])


def test_a_direct_figure_beside_lifecycle_ones_is_told_apart() -> None:
    live = Intensity(30.0, "FR", "France", "RTE", "2026-03-01T12:30Z", "direct")
    found = where(run_of(intensity=live), ["SE", "PL"])
    assert "this run is direct, those of other places are lifecycle" in repr(found)
    figure = found.figure()
    assert "direct" in figure.layout.title.text
    assert "lifecycle" in figure.layout.title.text
    assert [each.endswith(("direct", "lifecycle")) for each in figure.data[0].customdata] == [True] * 3
    assert "a part of the differences" not in repr(where(run_of(), ["SE"]))


# -- when ----------------------------------------------------------------------------------------------


def forecast(now_s: float) -> list[tuple[float, float]]:
    """Slots of half an hour for two days: steady but for a valley around 10 h ahead."""
    begin_s = now_s - now_s % 1800
    return [
        (begin_s + 1800 * slot, 200 - 100 * math.exp(-(((slot / 2 - 10) / 3) ** 2))) for slot in range(96)
    ]


def test_the_best_start_is_where_the_mean_over_the_run_is_least() -> None:
    now_s = 1_800_000_000.0
    slots = forecast(now_s)
    found = when(KWH, 2 * 3600.0, slots, now_s)
    assert found.starts[0].at_unix_s == now_s
    assert found.best.at_unix_s == pytest.approx(now_s + 9 * 3600, abs=1800)
    assert found.best.emissions_g == min(start.emissions_g for start in found.starts)
    mean = sum(g for at_s, g in slots if found.best.at_unix_s <= at_s < found.best.at_unix_s + 7200) / 4
    assert found.best.g_per_kwh == pytest.approx(mean)
    assert found.saving_g == pytest.approx(found.starts[0].emissions_g - found.best.emissions_g)
    assert "less" in found.sentence()
    assert len(found.table().rows) <= 14
    assert found.figure().data[0].y == pytest.approx([start.emissions_g for start in found.starts])


@pytest.fixture
def clock_of_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not hasattr(time, "tzset"):
        pytest.skip("this system's time zone cannot be set")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("clock_of_berlin")
def test_times_name_their_zone_also_in_the_night_that_has_an_hour_twice() -> None:
    at_s = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc).timestamp()  # 2:30, and again 1 h on
    slots = [(at_s + 1800 * slot, 50.0 if slot == 2 else 200.0) for slot in range(96)]
    found = when(KWH, 1800.0, slots, at_s - 60, kind="direct")
    assert "Best start: Sun 02:30 CET, 50 g CO2eq (direct) instead of 200 g now" in found.sentence()
    assert "direct emissions" in repr(found)
    before = [(at_s - 1800, 200.0), (at_s, 50.0), *((at, 200.0) for at, _ in slots[1:])]
    first = when(KWH, 1800.0, before, at_s - 1800)
    assert "Best start: Sun 02:30 CEST" in first.sentence()
    figure = found.figure()
    told = [str(each)[:16] for each in figure.data[0].x]
    assert told == sorted(told), "the curve runs backwards"
    assert figure.layout.xaxis.title.text == "start (CEST)"


def test_on_a_steady_grid_now_is_as_good_as_any_time() -> None:
    slots = [(1800.0 * slot, 100.0) for slot in range(96)]
    found = when(KWH, 3600.0, slots, 10.0)
    assert found.best is found.starts[0]
    assert found.sentence().startswith("Now is as good as any time")


def test_no_start_is_advised_for_which_the_forecast_ends_too_early() -> None:
    slots = [(1800.0 * slot, 100.0 - slot) for slot in range(20)]
    found = when(KWH, 5 * 3600.0, slots, 10.0)
    assert found.starts[-1].at_unix_s + 5 * 3600 <= 20 * 1800
    with pytest.raises(SettingError, match="does not reach"):
        when(KWH, 40 * 3600.0, slots, 10.0)
    with pytest.raises(SettingError, match="does not reach"):
        when(KWH, 3600.0, [], 10.0)


def test_a_mean_weighs_slots_by_the_time_within_them() -> None:
    slots = [(0.0, 100.0), (100.0, 200.0), (200.0, 400.0)]
    assert mean_over(slots, 50.0, 150.0) == pytest.approx(150.0)
    assert mean_over(slots, 0.0, 300.0) == pytest.approx(700 / 3)
    assert mean_over(slots, 290.0, 400.0) is None
    assert mean_over(slots, 200.0, 350.0) == pytest.approx(400.0)  # the last one is held
    assert mean_over([], 0.0, 1.0) is None


def test_without_a_forecast_the_newest_figure_is_held_and_trusted_less_far_ahead() -> None:
    soon, late = mean_ahead(100.0, [], 0.0, 3600.0), mean_ahead(100.0, [], 0.0, 86400.0)
    assert soon.value == late.value == 100.0
    assert late.high - late.low > 2 * (soon.high - soon.low)
    told = mean_ahead(100.0, [(0.0, 50.0), (86400.0, 50.0)], 0.0, 86400.0)
    assert told.value == 50.0


def british(url: str, **_: Any) -> Answer:
    """Great Britain's service as it answers: high now, half of it from the next hour on."""
    slots = []
    now_s = time.time()
    begin_s = now_s - now_s % 1800
    for slot in range(96):
        at = [datetime.fromtimestamp(begin_s + 1800 * n, timezone.utc) for n in (slot, slot + 1)]
        g_per_kwh = 200 if slot < 2 else 100
        slots.append(
            f'{{"from":"{at[0]:%Y-%m-%dT%H:%MZ}","to":"{at[1]:%Y-%m-%dT%H:%MZ}",'
            f'"intensity":{{"forecast":{g_per_kwh},"actual":null,"index":"moderate"}}}}'
        )
    return Answer(200, f'{{"data":[{",".join(slots if "fw48h" in url else slots[:1])}]}}')


def test_the_forecast_of_the_runs_place_is_asked_for() -> None:
    _process.forget()
    settings = resolve(None, {"offline": False}, environ={})
    found = best_start(run_of(intensity=of_country("GB", "setting")), settings, british)
    assert found.starts[0].g_per_kwh > found.best.g_per_kwh
    assert found.saving_g > 0
    assert "Great Britain" in repr(found)


@pytest.mark.parametrize(
    ("place", "options", "told"),
    [
        (
            "PL",
            {"offline": False},
            "No source has a forecast for Poland. There are forecasts for Great Britain",
        ),
        ("GB", {"offline": True}, "offline"),
    ],
)
def test_where_no_forecast_can_be_had_one_line_says_why(
    place: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingError, match=told):
        best_start(run_of(intensity=of_country(place, "")), resolve(None, options, environ={}), british)


def test_a_source_that_fails_is_told_in_one_line() -> None:
    _process.forget()

    def broken(url: str, **_: Any) -> Answer:
        assert url
        return Answer(500, "")

    with pytest.raises(SettingError, match=r"Great Britain.*HTTP 500"):
        best_start(
            run_of(intensity=of_country("GB", "")), resolve(None, {"offline": False}, environ={}), broken
        )


# -- statement -----------------------------------------------------------------------------------------


def test_a_statement_holds_what_a_paper_has_to_say() -> None:
    told = statement([run_of()], "1.2.3")
    for part in (
        "1 epoch on Tesla T4 took 1:00:00",
        "used 1.1 kWh",
        "(1 to 1.2 kWh)",
        "GPU by its energy counter",
        "power usage effectiveness of 1.1 (a test)",
        "Denmark, 2025, lifecycle",
        "Ember",
        "ct_notebook 1.2.3",
    ):
        assert part in told.sentence
    grams = 1.1 * of_country("DK", "").g_per_kwh
    assert f"{grams / 1000:.3g} kg CO2eq" in told.sentence
    assert told.markdown.count("\n") == 2
    assert told.latex.count(" & ") == 2 * 8
    assert "@software{ct_notebook," in told.bibtex
    assert "version = {1.2.3}" in told.bibtex
    assert "year    = {2026}" in told.bibtex


def test_several_runs_add_up_and_differences_are_listed() -> None:
    other = run_of(2.0, of_country("SE", ""), "H100")
    told = statement([run_of(), run_of(), other], "1")
    assert told.cells[0] == "3"
    assert told.cells[2] == "3:00:00"
    assert float(told.cells[3]) == pytest.approx(4.4)
    assert "Tesla T4, H100" in told.sentence
    assert "Denmark" in told.sentence
    assert "Sweden" in told.sentence


def test_runs_without_figures_are_told_and_none_is_refused() -> None:
    empty = dataclasses.replace(run_of(), epochs=(), duration_s=60.0)
    told = statement([run_of(), empty], "1")
    assert told.notes == ("Of 1 runs nothing was measured; only their time is in this.",)
    with pytest.raises(SettingError, match="no run of which anything was measured"):
        statement([empty], "1")


def half_read() -> Run:
    """A run whose GPU was lost half-way."""
    whole = run_of()
    epoch = dataclasses.replace(whole.epochs[0], covered_s=MappingProxyType({"gpu:a": 1800.0}))
    return dataclasses.replace(whole, epochs=(epoch,))


def test_what_was_read_for_a_part_of_the_time_is_told_as_that() -> None:
    (note,) = statement([half_read()], "1").notes
    assert note == "Tesla T4 was read for 50% of the time only; the figures hold no more of it than that."
    (note,) = statement([run_of(), half_read(), run_of()], "1").notes
    assert note.startswith("In 1 of 3 runs a device was read for a part of the time only; ")
    compared = half_read().compare()
    assert "Tesla T4 was read for 50% of the time only" in compared.table()
    assert "Tesla T4 was read for 50% of the time only" in compared._repr_html_()
    assert "of the time only" not in run_of().compare().table() + repr(statement([run_of()], "1"))


def test_a_run_whose_carbon_intensity_is_not_known_is_left_out_and_told() -> None:
    unknown = run_of(intensity=Intensity(math.nan, None, "Unknown", "not in the log", "", ""))
    told = statement([run_of(), unknown], "1")
    assert "nan" not in repr(told)
    assert told.notes == ("Of 1 runs the carbon intensity is not known; only their time is in this.",)
    with pytest.raises(SettingError, match="no run whose carbon intensity is known"):
        statement([unknown], "1")


def test_the_row_tells_of_what_the_intensity_is_and_who_says_so() -> None:
    told = statement([run_of()], "1")
    for text in (told.markdown, told.latex, told._repr_html_()):
        assert "Denmark, 2025, lifecycle; Ember" in text


def test_names_from_outside_are_text_in_latex_markdown_and_html() -> None:
    hostile = statement([run_of(name="<img src=x> `a` [b](c:d) *e* A_B &amp; |f")], "1")
    assert r"\<img src=x\> \`a\` \[b\](c:d) \*e\* A\_B \&amp; /f" in hostile.markdown
    assert r"\textless{}img src=x\textgreater{}" in hostile.latex
    assert r"\textbar{}f" in hostile.latex
    told = statement([run_of(name="GPU_1 & 100% #{x}$ | <i>~^\\")], "1")
    row = told.latex.splitlines()[4]
    assert row.count(" & ") == 8
    assert r"GPU\_1 \& 100\% \#\{x\}\$" in row
    assert all(line.count("|") == 10 for line in told.markdown.splitlines())
    assert "<i>" not in told._repr_html_()


# -- equivalents ---------------------------------------------------------------------------------------


def test_each_equivalent_has_a_source_with_a_year_and_the_factor_of_it() -> None:
    assert all(any(year in each.source for year in ("2020", "2024")) for each in EQUIVALENTS)
    assert equivalents_text(1068.0) == (
        "10 km by car; 26 km by train, one passenger; 29.7 h of streamed video; "
        "1.16 months of what a tree takes up; 0.02 flights from Paris to London, one passenger"
    )
    assert equivalents_text(0.0) == ""


def test_what_is_told_of_equivalents_is_told_with_its_factor_source_and_year() -> None:
    told = factors_text(1068.0)
    assert all(f"{each.g_per_unit:g} g per " in told and each.source in told for each in EQUIVALENTS)
    assert "917 g per month of what a tree takes up (Green Algorithms" in told
    assert "50000 g per flight from Paris" in told
    assert factors_text(0.001).startswith("106.8 g per km by car (average new passenger car in the EU")
    assert ";" not in factors_text(0.001)
