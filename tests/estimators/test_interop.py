"""The graph in other formats says the same as the matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet import PNNRegressor
from precisionnet.precision import partial_correlations
from tests.recipes import QUICK


@pytest.fixture(scope="module", params=QUICK.values(), ids=QUICK)
def model(request, gaussian):
    return PNNRegressor(**request.param, l1_scale=2.0).fit(gaussian.X, gaussian.y)


def test_partial_correlations_are_those_of_the_residuals(rng):
    """rho_ij is the correlation of what is left of i and j after regression on all the others."""
    X = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
    X -= X.mean(axis=0)
    partial = partial_correlations(np.linalg.inv(X.T @ X))
    others = X[:, 2:]
    left = X[:, :2] - others @ np.linalg.lstsq(others, X[:, :2], rcond=None)[0]
    assert partial[0, 1] == pytest.approx(np.corrcoef(left.T)[0, 1])


def test_edge_frame(model):
    frame = model.to_edge_frame()
    theta = model.precision_frame()
    assert len(frame) == np.count_nonzero(np.triu(model.precision_, 1)) < 28
    assert frame["partial_correlation"].abs().is_monotonic_decreasing
    for edge in frame.itertuples():
        assert theta.loc[edge.source, edge.target] == edge.precision
        assert np.sign(edge.partial_correlation) == -np.sign(edge.precision)


def test_networkx(model):
    graph = model.to_networkx()
    assert set(graph) == set(model.feature_names_in_)
    assert graph.number_of_edges() == len(model.to_edge_frame())
    first = model.to_edge_frame().iloc[0]
    assert graph.edges[first.source, first.target]["partial_correlation"] == first.partial_correlation


@pytest.mark.parametrize("which", ["sparse", "task"])
def test_pyg_pair_rebuilds_the_matrix(model, which):
    edge_index, edge_weight = model.to_pyg(which)
    matrix = torch.zeros(8, 8, dtype=torch.float64)
    matrix[edge_index[0], edge_index[1]] = edge_weight
    np.testing.assert_array_equal(matrix.numpy(), model.precision_frame(which).to_numpy())
    with pytest.raises(ValueError, match="which"):
        model.to_pyg("dense")
