"""A masked cell is a missing one wherever rows come in: refused as NaN is, or filled as NaN is."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet import GraphicalLasso, PNNClassifier, PNNRegressor
from precisionnet.errors import InputError
from precisionnet.evaluation import compare, recalibrate
from precisionnet.evidence import compare_graphs, edge_inference
from precisionnet.precision import (
    StreamingMoments,
    em_covariance,
    graphical_lasso,
    graphical_lasso_from_rows,
    pairwise_covariance,
    sample_covariance,
    stars,
)

FEW = {"n_members": 2, "max_epochs": 1, "random_state": 0}


@pytest.fixture
def masked(rng):
    X = rng.normal(size=(60, 4))
    return np.ma.array(X, mask=np.arange(240).reshape(60, 4) == 42)


@pytest.fixture
def y(masked):
    return masked.data[:, 0] - masked.data[:, 1]


def test_rows_with_a_masked_cell_are_refused(masked, y):
    model = PNNRegressor(**FEW).fit(masked.data, y)
    long = np.ma.concatenate([masked] * 150)
    for call in (
        lambda: graphical_lasso_from_rows(masked, 0.3),
        lambda: graphical_lasso(sample_covariance(masked), 0.3),
        lambda: graphical_lasso(StreamingMoments.empty(4).update(masked).covariance, 0.3),
        lambda: graphical_lasso(np.ma.array(np.eye(4), mask=np.eye(4)), 0.3),
        lambda: stars(masked, [0.3], n_subsamples=2),
        lambda: edge_inference(masked),
        lambda: compare_graphs(masked, np.repeat(["a", "b"], 30), n_permutations=9),
        lambda: GraphicalLasso(l1_penalty=0.3).fit(masked),
        lambda: GraphicalLasso(l1_penalty=0.3).partial_fit(masked),
        lambda: PNNRegressor(**FEW).fit(masked, y),
        lambda: PNNRegressor(**FEW).partial_fit(masked, y),
        lambda: PNNRegressor(**FEW).fit(masked.data, y, X_val=masked, y_val=y),
        lambda: model.predict(masked),
        lambda: model.predict(long),
        lambda: recalibrate(np.ma.array(y, mask=y > 1), y),
        lambda: PNNRegressor(**FEW).fit(masked.data, y, groups=np.ma.array(np.arange(60), mask=y > 1)),
    ):
        with pytest.raises(InputError, match=r"NaN|missing|no label"):
            call()


def test_targets_and_weights_with_a_masked_cell_are_refused(masked, y):
    mask = np.arange(60) == 7
    for model, target, weight in (
        (PNNRegressor, np.ma.array(y, mask=mask), None),
        (PNNRegressor, y, np.ma.array(np.ones(60), mask=mask)),
        (PNNClassifier, np.ma.array((y > 0).astype(int), mask=mask), None),
        (PNNClassifier, np.ma.array(np.where(y > 0, "a", "b"), mask=mask), None),
    ):
        with pytest.raises(ValueError, match="NaN"):
            model(**FEW).fit(masked.data, target, weight)
    whole = np.ma.array((y > 0).astype(int))
    assert PNNClassifier(**FEW).fit(np.ma.array(masked.data), whole).classes_.dtype.kind == "i"


def test_what_fills_gaps_fills_masked_cells(masked, y):
    gaps = masked.filled(np.nan)
    for function in (lambda X: em_covariance(X).covariance, pairwise_covariance):
        np.testing.assert_array_equal(function(masked), function(gaps))
    lasso = GraphicalLasso(l1_penalty=0.1, missing="em")
    np.testing.assert_array_equal(lasso.fit(masked).precision_, lasso.fit(gaps).precision_)
    model = PNNRegressor(**FEW, missing="median")
    first, second = model.fit(masked, y).predict(masked), model.fit(gaps, y).predict(gaps)
    np.testing.assert_array_equal(first, second)
    assert model.n_missing_.sum() == 1


def test_a_comparison_fills_masked_cells(masked, y):
    masked[3, 0] = 1e6
    masked[3, 0] = np.ma.masked
    gaps = masked.filled(np.nan)
    rows = [compare(X, y, methods=["ridge"], repeats=1, jobs=1)["mae"][0] for X in (masked, gaps)]
    assert rows[0] == rows[1]
