"""The words of a fit's page: its methods text, and where it is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from precisionnet.cli.fit import next_step
from precisionnet.datasets import Dataset
from precisionnet.estimators.networks import kernel_network
from precisionnet.estimators.summary import read_summary
from precisionnet.evaluation import measure
from precisionnet.kinds import EVERY
from precisionnet.report import fit_verdict, render
from precisionnet.report.fit_errors import fit_errors
from precisionnet.report.methods_text import KINDS, SOLVED, paper_text
from precisionnet.versions import versions
from tests.cheap import cheap_baselines, two_folds

__all__ = ["cheap_baselines", "two_folds"]


@pytest.fixture(scope="module")
def small(gaussian):
    """A fit for tests that are not about it."""
    return measure(gaussian, "regression", {"max_epochs": 1, "n_members": 1})


def test_methods_name_what_was_run_and_number_works_as_they_come(gaussian):
    result = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 2, "method": "vnn"})
    text = paper_text(result, None, versions())
    numbers = [int(n) for found in re.findall(r"\[([\d, ]+)\]", text.methods) for n in found.split(", ")]
    assert list(dict.fromkeys(numbers)) == list(range(1, len(text.works) + 1))
    assert "covariance neural network" in text.methods
    assert "graphical lasso" not in text.methods  # none was run
    assert f"{result.headline['vnn'].value:.3g}" in text.results
    assert "\0" not in text.methods


def test_methods_speak_of_the_networks_that_predict(gaussian):
    result = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 4, "readout": "mlp"})
    result = replace(result, folds=replace(result.folds, kind="networks"))
    fitted = replace(result.model.fitted, member_kinds=("mlp", "mlp", "deep", "linear"))

    def said(weights, **settings):
        model = clone(result.model).set_params(readout="several", **settings)
        model.keep(replace(fitted, member_weights=np.array(weights)))
        return paper_text(replace(result, model=model), None, versions()).methods

    both = said([0.2, 0.2, 0.0, 0.6])
    for words in (
        "the weighted mean of 3 of 4 networks (one filter layer 0.40, linear 0.60)",
        "All but the linear one run graph convolutions of order 3 on a task-aware matrix",
        "The linear network was solved as ridge regression",
        "The other networks were trained with Adam",
        "Rows left out also chose the epoch",
        f"({result.folds.n_folds} folds). ",
        "the median of the training rows, were fitted and tested in the same folds.",
    ):
        assert words in both
    assert "task-aware" not in said([0.2, 0.2, 0.0, 0.6], predict_on="sparse")
    trained = said([0.3, 0.3, 0.4, 0.0])
    assert "mean of 3 of 4 networks (one filter layer 0.60, two filter layers 0.40)" in trained
    assert "solved as" not in trained
    mean_of_all = said([0.25, 0.25, 0.25, 0.25])
    assert "mean of 4 networks" in mean_of_all
    assert "only predicted" not in mean_of_all
    machine = kernel_network(fitted.n_features, 1, 3)
    networks, kinds = (*fitted.networks[:3], machine), ("mlp", "lasso", "linear", "kernel")
    fitted = replace(fitted, networks=networks, member_kinds=kinds)
    assert "All but the linear ones and the kernel machine run" in said([0.4, 0.2, 0.2, 0.2])
    assert "All but the kernel machine run" in said([0.5, 0.0, 0.0, 0.5])
    deviation = np.sqrt(fitted.covariance.diagonal())
    machine.readout.scale = torch.from_numpy(0.3 / deviation)
    alike = said([0.5, 0.0, 0.0, 0.5])
    assert "Matern's kernel of smoothness 3/2, in a distance of two rows in which all columns count alike" in alike
    assert "aussian" not in alike
    machine.readout.scale = torch.from_numpy(np.linspace(0.1, 0.3, len(deviation)) / deviation)
    machine.readout.gaussian = torch.ones(())
    unlike = said([0.5, 0.0, 0.0, 0.5])
    assert "a Gaussian kernel, in a distance of two rows in which all columns count as much as the trained" in unlike
    assert "Matern" not in unlike
    fitted = replace(fitted, member_kinds=("mlp", "mlp", "deep", "linear"))
    linear = said([0.0, 0.0, 0.0, 1.0])
    assert "one of 4 networks (linear). The others only predicted rows left out." in linear
    assert "Adam" not in linear


def test_a_page_counts_networks_as_the_model_does(gaussian, tmp_path):
    """Those with weight are told from those that only predict rows left out, wherever networks are counted."""
    result = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 4})
    fitted = result.model.fitted
    weights = np.zeros(len(fitted.networks))
    weights[:2] = 0.5
    result.model.keep(replace(fitted, member_weights=weights))
    page = render(result, "table.csv", "2026-01-01")
    assert f"{len(weights)} networks, 2 of which have weight (the others only predict rows left out)" in page
    assert f"the weighted mean of 2 of {len(weights)} networks" in page
    result.model.save(tmp_path / "model")
    summary = read_summary(tmp_path / "model")
    assert (summary.n_networks, summary.n_predicting) == (len(weights), 2)


def test_a_name_with_the_marks_of_citations_is_spelled_out(small):
    text = paper_text(replace(small, target="\0pnn\0 a\0b"), None, versions())
    assert r"We predicted \x00pnn\x00 a\x00b from" in text.methods
    assert len(text.works) == len(paper_text(small, None, versions()).works)


@pytest.mark.parametrize(("gain", "said"), [(-1.0, "100 % more"), (-40.0, "4,000 % more"), (0.0712, "7.1 % less")])
def test_how_much_better_is_written_without_an_exponent(gain, said):
    of_ridge = {"ridge": SimpleNamespace(value=1.0)}
    result = SimpleNamespace(task="regression", gains={"ridge": SimpleNamespace(value=gain)}, headline=of_ridge)
    assert fit_verdict._margin(result, "ridge") == f"{said} error than ridge regression"


def test_every_kind_has_words():
    assert set(KINDS) == {kind.name for kind in EVERY}
    assert {kind for kind, _ in SOLVED} == {kind.name for kind in EVERY if kind.solved}


def test_errors_by_part_are_those_of_the_rows(gaussian):
    site = pd.Series(np.arange(120) % 4, index=gaussian.X.index, name="scanner")
    data = Dataset(gaussian.X, gaussian.y, site=site)
    result = measure(data, "regression", {"max_epochs": 1, "n_members": 4})
    errors = fit_errors(result, data)
    (by_site,) = errors.by_part
    error = result.predictions["joint"].predicted - result.y
    means = [error[site.to_numpy() == part].mean() for part in range(4)]
    assert [row[0] for row in by_site.rows] == ["0", "1", "2", "3"]
    np.testing.assert_allclose([whisker.value for whisker in by_site.whiskers], means)
    assert sum(int(row[1]) for row in errors.by_target.rows) == 120
    shares = [whisker.value for whisker in errors.calibration.found]
    assert shares == sorted(shares)
    assert all(low <= value <= high for _, value, low, high in errors.calibration.found)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-9, 1e-15])
def test_parts_of_the_target_stay_apart_however_close_they_are(small, scale):
    """A far value sets the digits of a label; the others still have labels of their own."""
    y = np.concatenate([scale * np.arange(119), [5.0]])
    table = fit_errors(replace(small, y=y)).by_target
    assert len({row[0] for row in table.rows}) == len(table.rows) == len(table.centres) == 5
    assert sum(int(row[1]) for row in table.rows) == 120


def test_parts_that_ties_leave_are_not_called_fifths(small):
    y = np.repeat([0.0, 9.0, 10.0], [90, 15, 15])
    said = dict(small.predictions)
    said["joint"] = replace(said["joint"], predicted=np.linspace(4.9, 5.1, 120))
    table = fit_errors(replace(small, y=y, predictions=said)).by_target
    assert "fifth" not in table.sentence
    assert f"the lowest part ({table.rows[0][1]} rows)" in table.sentence


def test_intervals_are_judged_without_the_rows_they_are_made_of(gaussian):
    """A row that is far off cannot stretch the interval that it is judged by."""
    result = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 4})
    y = result.y.copy()
    y[result.folds.fold == 0] += 1e3
    coverage = fit_errors(replace(result, y=y)).calibration.found[-1].value
    assert coverage == pytest.approx(1 - (result.folds.fold == 0).mean(), abs=0.03)


def test_probabilities_are_set_beside_shares(gaussian, classes):
    result = measure(Dataset(gaussian.X, classes), "classification", {"max_epochs": 1, "n_members": 4})
    errors = fit_errors(result)
    assert {row[0] for row in errors.by_target.rows} == {str(label) for label in np.unique(classes)}
    assert len(errors.calibration.stated) == len(errors.calibration.found) > 1
    assert errors.by_part == []


def test_a_command_to_go_on_with_stands_alone(gaussian, small):
    useful = replace(small, gains={name: replaced_low(gain) for name, gain in small.gains.items()})
    *_, last = next_step(useful, gaussian, "precisionnet explain out table.csv")
    assert last == "precisionnet explain out table.csv"


def replaced_low(gain):
    """A difference that is beyond chance."""
    return gain._replace(value=1.0, low=0.5, high=1.5)
