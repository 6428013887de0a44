import inspect
import pickle
from typing import Any

import pytest

from ct_notebook.errors import SettingError
from ct_notebook.settings import OPTIONS, resolve
from ct_notebook.tracker import CarbonTracker

CARBONTRACKER_DEFAULTS = {
    "epochs_before_pred": 1,
    "monitor_epochs": 1,
    "update_interval": 10,
    "interpretable": True,
    "stop_and_confirm": False,
    "ignore_errors": False,
    "components": "all",
    "devices_by_pid": False,
    "log_dir": None,
    "log_file_prefix": "",
    "verbose": 1,
    "decimal_precision": 6,
}


def test_the_class_has_carbontrackers_parameters_in_its_order_with_its_defaults() -> None:
    parameters = list(inspect.signature(CarbonTracker).parameters.values())
    assert parameters[0].name == "epochs"
    given = {parameter.name: parameter.default for parameter in parameters[1:13]}
    assert given == CARBONTRACKER_DEFAULTS
    assert list(given) == list(CARBONTRACKER_DEFAULTS)


def test_the_class_and_the_table_of_options_agree() -> None:
    parameters = {p.name: p.default for p in inspect.signature(CarbonTracker).parameters.values()}
    del parameters["epochs"]
    assert parameters == {option.name: option.default for option in OPTIONS}


def test_a_cell_has_defaults_of_its_own() -> None:
    settings = resolve(50, {}, cell=True, environ={})
    assert (settings.monitor_epochs, settings.update_interval, settings.log_dir) == (-1, 1.0, "./logs")
    assert settings.monitored == 50


def test_a_flag_wins_over_configuration_over_environment() -> None:
    environ = {"CT_NOTEBOOK_COUNTRY": "FR", "CT_NOTEBOOK_PUE": "1.2", "CT_NOTEBOOK_VERBOSE": "2"}
    settings = resolve(1, {"country": "DK"}, configured={"country": "SE", "pue": 1.3}, environ=environ)
    assert (settings.country, settings.pue, settings.verbose) == ("DK", 1.3, 2)


def test_an_empty_variable_counts_as_not_set() -> None:
    assert resolve(1, {}, environ={"CT_NOTEBOOK_PUE": ""}).pue is None


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(SettingError, match="CT_NOTEBOOK_PUE='high'"):
        resolve(1, {}, environ={"CT_NOTEBOOK_PUE": "high"})


def test_minus_one_means_all_epochs() -> None:
    settings = resolve(20, {"epochs_before_pred": -1, "monitor_epochs": -1}, environ={})
    assert settings.predict_after == settings.monitored == 20


def test_a_prediction_after_all_epochs_measures_all_of_them() -> None:
    assert resolve(20, {"epochs_before_pred": -1}, environ={}).monitored == 20


def test_no_prediction_is_made_for_zero() -> None:
    assert resolve(20, {"epochs_before_pred": 0}, environ={}).predict_after is None


@pytest.mark.parametrize(
    "given",
    [
        {"monitor_epochs": 0},
        {"monitor_epochs": -2},
        {"monitor_epochs": 2, "epochs_before_pred": 3},
        {"monitor_epochs": 1, "epochs_before_pred": -1},
        {"epochs_before_pred": -2},
        {"epochs_before_pred": 1.5},
        {"update_interval": 0},
        {"update_interval": float("nan")},
        {"components": "gpu,fpga"},
        {"components": ""},
        {"components": 3},
        {"verbose": 5},
        {"decimal_precision": -1},
        {"pue": 0.5},
        {"pue": "x"},
        {"carbon_intensity": -1},
        {"carbon_intensity": float("inf")},
        {"confirm_timeout": -1},
        {"on_timeout": "explode"},
        {"sim_cpu": "A CPU"},
        {"sim_gpu": "A GPU"},
        {"sim_cpu": "A CPU", "sim_cpu_tdp": 0},
        {"sim_cpu_util": 1.5},
        {"stop_and_confirm": "maybe"},
        {"verbose": True},
        {"log_dir": 3},
        {"no_such": 1},
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        resolve(10, given, environ={})
    assert isinstance(caught.value, SettingError)
    assert next(iter(given)) in str(caught.value)


@pytest.mark.parametrize("epochs", [0, -1, 1.5, "ten", True])
def test_a_number_of_epochs_is_at_least_one(epochs: object) -> None:
    with pytest.raises(SettingError, match="epochs="):
        resolve(epochs, {}, environ={})


@pytest.mark.parametrize("name", ["pue", "country", "zone", "region", "max_co2", "sim_cpu", "display"])
def test_a_long_value_is_not_repeated_whole(name: str) -> None:
    given: Any = {name: "Q" * 10_000}
    with pytest.raises(SettingError) as caught:
        CarbonTracker(3, **given)
    assert "QQQ..." in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_key_appears_in_no_pickle() -> None:
    settings = resolve(3, {"api_keys": {"electricitymaps": "s3cret"}}, environ={})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        written = pickle.dumps(settings, protocol)
        assert b"s3cret" not in written
        assert pickle.loads(written) == settings._replace(api_keys=None)


def test_a_key_appears_in_no_repr_and_no_error() -> None:
    assert "s3cret" not in repr(resolve(1, {"api_keys": {"electricitymaps": "s3cret"}}, environ={}))
    with pytest.raises(SettingError) as caught:
        resolve(1, {"api_keys": "s3cret"}, environ={})
    assert "s3cret" not in str(caught.value)


def test_a_key_that_is_not_there_is_none() -> None:
    assert resolve(1, {"api_keys": {"electricitymaps": None}}, environ={}).api_keys == {}
    environ = {"CT_NOTEBOOK_API_KEYS": '{"electricitymaps": null, "other": "k"}'}
    assert resolve(1, {}, environ=environ).api_keys == {"other": "k"}


def test_components_are_put_in_words() -> None:
    assert resolve(1, {"components": " GPU, cpu"}, environ={}).component_set == {"gpu", "cpu"}
    assert resolve(1, {"components": ["gpu"]}, environ={}).component_set == {"gpu"}
    assert resolve(1, {}, environ={}).component_set == {"gpu", "cpu", "ram"}
