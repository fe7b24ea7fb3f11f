"""Sparse at prediction: the graph thins out, and what follows polishes."""

import itertools

import numpy as np
import pytest

from precisionnet import PNNRegressor
from precisionnet.datasets import make_gaussian_regression
from precisionnet.joint.pruning import ENDS, POLISH, edges_kept

EPOCHS = 12


@pytest.fixture(scope="module")
def table():
    data = make_gaussian_regression(200, 10, sparsity=0.3, random_state=3)
    return np.asarray(data.X), np.asarray(data.y)


@pytest.fixture(scope="module", params=[0, 1, 2])
def model(table, request):
    small = {"n_members": 2, "max_epochs": EPOCHS, "l1_scale": 2.0}
    return PNNRegressor(predict_on="sparse", random_state=request.param, **small).fit(*table)


def test_networks_have_no_edge_that_the_precision_has_not(model):
    graph = model.precision_ != 0
    assert not graph.all()
    for shift in model.shifts_:
        assert not (shift[~graph]).any()
        assert np.allclose(shift, shift.T)
    assert np.linalg.eigvalsh(model.precision_)[0] > 0


def test_as_many_edges_as_the_graphical_lasso(model, table):
    lasso = PNNRegressor("glasso", n_members=2, max_epochs=1, l1_scale=2.0, random_state=model.random_state).fit(*table)
    assert np.count_nonzero(model.precision_) == np.count_nonzero(lasso.precision_)


def test_polishing_never_raises_the_training_loss(model):
    history = model.history_
    polished = history[(history["epoch"] - 1) / model.settings.n_epochs >= ENDS]
    assert model.n_iter_ == round((1 + POLISH) * EPOCHS)
    kept = history.iloc[model.best_epoch_ - 1]
    assert model.best_epoch_ in set(polished["epoch"])
    assert kept["train_loss"] <= polished["train_loss"].iloc[0]


def test_edges_go_one_way_down_to_the_number_asked_for():
    left = [edges_kept(100, 20, progress) for progress in np.linspace(0.0, 1.0, 50)]
    assert left[0] == 100
    assert left[-1] == 20
    assert all(after <= before for before, after in itertools.pairwise(left))
