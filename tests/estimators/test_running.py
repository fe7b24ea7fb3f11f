"""How a fit is run: workers, warm starts, callbacks, devices, networks of one's own."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from joblib import parallel_config
from sklearn.base import clone

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.errors import InputError
from precisionnet.estimators.fitted import training_device
from precisionnet.nn import PrecisionNetwork
from tests.recipes import QUICK, both_recipes, of_method


@both_recipes
def test_callbacks_get_every_row_and_cannot_change_it(gaussian, quick):
    rows: list[dict[str, float]] = []

    def watch(row):
        rows.append(dict(row))
        row.clear()

    model = PNNRegressor(**quick, callbacks=[watch]).fit(gaussian.X, gaussian.y)
    assert [row["epoch"] for row in rows] == list(model.history_["epoch"])
    np.testing.assert_array_equal([row["train_loss"] for row in rows], model.history_["train_loss"])
    with pytest.raises(InputError, match="callbacks must be functions"):
        PNNRegressor(callbacks=["print"]).fit(gaussian.X, gaussian.y)


@both_recipes
def test_a_callback_that_returns_true_ends_the_training(gaussian, quick):
    quick = quick | {"max_epochs": 6}
    model = PNNRegressor(**quick, callbacks=[lambda row: row["epoch"] == 2]).fit(gaussian.X, gaussian.y)
    assert model.n_iter_ == 2
    whole = PNNRegressor(**quick, callbacks=[lambda row: 1]).fit(gaussian.X, gaussian.y)  # a number is no demand
    assert whole.n_iter_ == 6
    assert model.history_.equals(whole.history_[:2])


def test_a_graph_that_thins_out_does_so_before_the_training_ends(gaussian):
    sparse = {"max_epochs": 5, "n_members": 2, "readout": "both", "predict_on": "sparse", "random_state": 0}
    asked_once = [lambda row: np.bool_(row["epoch"] == 1)]
    model = PNNRegressor(**sparse, callbacks=asked_once).fit(gaussian.X, gaussian.y)
    assert 1 < model.n_iter_ < PNNRegressor(**sparse).settings.n_epochs
    assert (model.shift_ == 0).any()


def test_verbose_prints_a_line_per_epoch(gaussian, capsys):
    model = PNNRegressor(**QUICK["standard"], verbose=True).fit(gaussian.X, gaussian.y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert all(line.startswith(f"epoch {i}: training loss") for i, line in enumerate(lines, 1))
    PNNRegressor(**QUICK["standard"]).fit(gaussian.X, gaussian.y)
    assert capsys.readouterr().out == ""


@pytest.mark.slow  # processes; tests/joint has the same with threads
@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
def test_workers_do_not_change_a_bit(gaussian, classes, kind):
    y = gaussian.y if kind is PNNRegressor else classes
    quick = QUICK["standard"] | {"n_members": 6, "max_epochs": 12}
    sparse = {"predict_on": "sparse", "l1_scale": 2.0} if kind is PNNRegressor else {}
    rows: list[float] = []
    alone = kind(**quick, **sparse).fit(gaussian.X, y)
    spread = kind(**quick, **sparse, n_jobs=2, callbacks=[lambda row: rows.append(row["epoch"])]).fit(gaussian.X, y)
    assert alone.history_.equals(spread.history_)
    assert rows == list(alone.history_["epoch"])
    np.testing.assert_array_equal(alone.precision_, spread.precision_)
    np.testing.assert_array_equal(alone.predict(gaussian.X), spread.predict(gaussian.X))


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_do_not_change_a_bit_of_several_kinds(gaussian, backend):
    """Nobody watches: each stack is trained to the end in one task, and the folds' weights are found in workers."""
    quick = QUICK["standard"] | {"readout": "several", "n_members": 4, "max_epochs": 5, "kernel_rows": 0}
    x = gaussian.X.to_numpy()
    y = x[:, 0] * x[:, 1] + np.abs(x[:, 2])  # no linear network predicts it alone
    alone = PNNRegressor(**quick).fit(gaussian.X, y)
    with parallel_config(backend=backend):
        spread = PNNRegressor(**quick, n_jobs=2).fit(gaussian.X, y)
    assert len(alone.kind_weights_) > 1
    assert alone.kind_weights_ == spread.kind_weights_
    assert alone.history_.equals(spread.history_)
    assert alone.best_epoch_ == spread.best_epoch_
    np.testing.assert_array_equal(alone.precision_, spread.precision_)
    np.testing.assert_array_equal(alone.oob_prediction_, spread.oob_prediction_)
    np.testing.assert_array_equal(alone.predict(gaussian.X), spread.predict(gaussian.X))


@pytest.mark.slow
def test_workers_do_not_change_a_bit_of_the_default_ensemble():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=150)
    alone, spread = (PNNRegressor(max_epochs=8, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert "kernel" in alone.kind_weights_
    assert alone.kind_weights_ == spread.kind_weights_
    assert alone.history_.equals(spread.history_)
    np.testing.assert_array_equal(alone.oob_prediction_, spread.oob_prediction_)
    np.testing.assert_array_equal(alone.predict(X), spread.predict(X))
    for one, other in zip(alone.fitted.networks, spread.fitted.networks, strict=True):
        for value, same in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
            assert value.equal(same)


@both_recipes
def test_a_warm_start_goes_on_from_the_fit_before(gaussian, quick):
    model = PNNRegressor(**quick, warm_start=True).fit(gaussian.X, gaussian.y)
    first, predicted = model.history_["train_loss"], model.oob_prediction_
    folds = model.fitted.folds
    model.fit(gaussian.X, gaussian.y)
    assert model.history_["train_loss"].iloc[0] < first.iloc[0]
    for before, after in zip(folds, model.fitted.folds, strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(np.isnan(predicted), np.isnan(model.oob_prediction_))


def test_a_warm_start_keeps_its_folds_or_drops_what_they_were_for(gaussian):
    """With other rows a member may have learned from what it leaves out now."""
    quick = QUICK["standard"] | {"random_state": None, "n_members": 8, "readout": "both"}
    model = PNNRegressor(**quick, warm_start=True).fit(gaussian.X, gaussian.y)
    known = np.isfinite(model.oob_prediction_)
    folds = model.fitted.folds
    model.fit(gaussian.X, gaussian.y)
    assert all(np.array_equal(a, b) for a, b in zip(folds, model.fitted.folds, strict=True))
    np.testing.assert_array_equal(np.isfinite(model.oob_prediction_), known)
    model.fit(gaussian.X[:100], gaussian.y[:100])
    assert np.isnan(model.oob_prediction_).all()
    assert np.isnan(model.oob_mae_)
    assert model.calibration_ is None
    with pytest.raises(InputError, match="not known"):
        model.predict_interval(gaussian.X)
    model.fit(gaussian.X[:100], gaussian.y[:100])  # the same rows again: still learned from in the first fit
    assert np.isnan(model.oob_mae_)


def test_a_warm_start_with_another_shape_starts_afresh(gaussian):
    model = PNNRegressor(**QUICK["standard"], warm_start=True).fit(gaussian.X, gaussian.y)
    fewer = model.fit(gaussian.X.iloc[:, :5], gaussian.y)
    fresh = clone(model).fit(gaussian.X.iloc[:, :5], gaussian.y)
    np.testing.assert_array_equal(fewer.predict(gaussian.X.iloc[:, :5]), fresh.predict(gaussian.X.iloc[:, :5]))


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", 3])
def test_a_device_that_is_not_here_is_a_sentence(gaussian, device):
    with pytest.raises(InputError, match="device"):
        PNNRegressor(**QUICK["standard"], device=device).fit(gaussian.X, gaussian.y)


def test_what_torch_says_of_a_device_is_cut(monkeypatch):
    def refused(*size, **settings):
        raise NotImplementedError("Could not run it. " + "It is for these backends: " + 100 * "CPU, " + "at last.")

    monkeypatch.setattr(torch, "zeros", refused)
    with pytest.raises(InputError, match=r"Could not run it.*at last\..*device='cpu'") as caught:
        training_device("mps")
    assert len(str(caught.value)) < 250


@both_recipes
def test_auto_is_a_device(gaussian, quick):
    model = PNNRegressor(**quick, device="auto").fit(gaussian.X, gaussian.y)
    assert np.isfinite(model.predict(gaussian.X)).all()


@both_recipes
def test_orders_and_widths_per_layer_and_the_published_readout(gaussian, quick):
    # A ninth power of a matrix that is not scaled would leave all bounds.
    shape = {"order": [5, 9], "n_filters": [5, 4], "batch_norm": False, "readout": "average", "scale_shift": True}
    model = PNNRegressor(**quick, **shape)
    model.fit(gaussian.X, gaussian.y)
    shapes = [tuple(bank.weight.shape) for bank in model.network_.filters]
    assert shapes == [(6, 1, 5), (10, 5, 4)]
    assert model.settings.n_layers == 2
    assert not any("norm" in name for name in model.network_.state_dict())
    assert not list(model.network_.readout.parameters())
    assert np.isfinite(model.predict(gaussian.X)).all()
    with pytest.raises(InputError, match="number of layers"):
        PNNRegressor(**quick, order=[5, 9], n_filters=[5, 4, 3]).fit(gaussian.X, gaussian.y)


def test_a_network_that_is_none_is_refused(gaussian):
    with pytest.raises(InputError, match=r"torch\.nn\.Module"):
        PNNRegressor(**QUICK["standard"], network=lambda n, k: "no").fit(gaussian.X, gaussian.y)


def test_rows_are_counted_as_they_were_given(gaussian):
    """Equal rows are one to the fit, and still as many as were given."""
    X, y = np.repeat(gaussian.X.to_numpy(), 2, axis=0), np.repeat(gaussian.y.to_numpy(), 2)
    model = PNNRegressor(**QUICK["paper"]).fit(X, y)
    assert sum(model.n_rows_.values()) == 240
    assert model.n_rows_["validation"] == 60


def test_out_of_bag_predictions_carry_the_rows_index(gaussian):
    X = gaussian.X.set_axis([f"s{i}" for i in range(len(gaussian.X))], axis=0)
    model = PNNRegressor(**QUICK["standard"] | {"n_members": 8}).fit(X, gaussian.y)
    assert list(model.oob_row_ids_) == list(X.index)
    assert np.isfinite(model.oob_prediction_).all()


def test_a_fitted_model_is_frozen(gaussian):
    model = PNNRegressor(**QUICK["standard"]).fit(gaussian.X, gaussian.y)
    with pytest.raises(AttributeError):
        model.precision_ = np.eye(8)
    with pytest.raises(AttributeError):
        model.fitted.precision = np.eye(8)
    assert not any(isinstance(value, torch.Tensor) for value in vars(model).values())


@pytest.mark.parametrize("n_rows", [9, 17, 55, *(pytest.param(n, marks=pytest.mark.slow) for n in (54, 90))])
def test_members_of_unequal_length_are_trained_together(gaussian, n_rows):
    """Folds differ by a row: the members' batches must not."""
    model = PNNRegressor(n_members=8, max_epochs=1, random_state=0).fit(gaussian.X[:n_rows], gaussian.y[:n_rows])
    assert np.isfinite(model.oob_prediction_).all()


@both_recipes
def test_a_warm_start_with_another_method_takes_its_own_matrix(gaussian, quick):
    model = PNNRegressor(**quick, warm_start=True).fit(gaussian.X, gaussian.y)
    model.set_params(method="vnn", task_steps=PNNRegressor().task_steps).fit(gaussian.X, gaussian.y)
    np.testing.assert_allclose(model.task_precision_, model.covariance_, atol=1e-6)
    sparse = PNNRegressor(**of_method("glasso", quick), l1_penalty=0.01, warm_start=True).fit(gaussian.X, gaussian.y)
    sparse.set_params(l1_penalty=0.9).fit(gaussian.X, gaussian.y)
    assert np.count_nonzero(sparse.precision_) == 8


def test_numpy_numbers_and_a_factory_with_one_module(gaussian):
    model = PNNRegressor(**QUICK["standard"], n_filters=np.int64(3), order=[np.int64(2)]).fit(gaussian.X, gaussian.y)
    assert type(model.settings.n_filters) is int
    module = PrecisionNetwork(8, readout="mean").double()
    own = PNNRegressor(**QUICK["standard"], network=lambda n, k: module).fit(gaussian.X, gaussian.y)
    assert np.isfinite(own.predict(gaussian.X)).all()
    assert next(module.parameters()).dtype == torch.float64
    wrong = {"network": module, "n_jobs": 0, "callbacks": print, "device": "meta", "verbose": "no", "warm_start": 1}
    for given in ({name: value} for name, value in wrong.items()):
        with pytest.raises(InputError, match=next(iter(given))):
            PNNRegressor(**QUICK["standard"], **given).fit(gaussian.X, gaussian.y)


def test_classes_that_cannot_share_the_features_of_a_node(gaussian, classes):
    with pytest.raises(InputError, match="a multiple of"):
        PNNClassifier(**QUICK["standard"], readout="average", n_filters=7).fit(gaussian.X, classes)


def test_standard_units_have_no_gaps_where_the_model_fills_them(gaussian):
    X = np.array(gaussian.X, dtype=float)
    X[0, 0] = np.nan
    model = PNNRegressor(**QUICK["standard"], missing="median").fit(X, gaussian.y)
    X[0, 0] = model.medians_[0]
    np.testing.assert_array_equal(
        model.standard_units(np.where(np.arange(8) == 0, np.nan, X))[0], model.standard_units(X)[0]
    )
    assert np.isnan(PNNRegressor(**QUICK["standard"]).fit(gaussian.X, gaussian.y).standard_units([[np.nan] * 8])).all()


def test_members_of_a_warm_start_do_not_see_what_others_learned(gaussian):
    """Each is pulled to Step 1 of its own matrix: no target that it left out moves it by way of the common precision."""
    quick = QUICK["standard"] | {"max_epochs": 1, "coupling": 10.0}
    model = PNNRegressor(**quick, warm_start=True).fit(gaussian.X, gaussian.y)
    other, matrices = copy.deepcopy(model), model.fitted.member_matrices.copy()
    matrices[1] += np.eye(8)  # as if the second member had learned something else
    other.keep(replace(model.fitted, member_matrices=matrices, precision=model.precision_ + 0.5 * np.eye(8)))
    first, second = abs(
        model.fit(gaussian.X, gaussian.y).fitted.member_matrices
        - other.fit(gaussian.X, gaussian.y).fitted.member_matrices
    )
    assert first.max() < 1e-3
    assert second.max() > 0.1


def test_uneven_groups(gaussian):
    people = np.repeat([0, 1, 2, 3], [60, 30, 20, 10])
    model = PNNRegressor(n_members=8, max_epochs=2, random_state=0).fit(gaussian.X, gaussian.y, groups=people)
    assert np.isfinite(model.predict(gaussian.X)).all()
