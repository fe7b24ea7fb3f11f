"""Age from cortical thickness, 62 regions, on the real table."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet import PNNRegressor
from precisionnet.datasets import fetch_abide

pytestmark = pytest.mark.data


def error_of(data_folder, seed: int, **parameters) -> float:
    """Mean absolute error in years on a fifth of the people; more than half of theta must be exactly zero."""
    data = fetch_abide(data_folder)
    order, n_seen = np.random.default_rng(seed).permutation(len(data.X)), int(0.8 * len(data.X))
    seen, test = order[:n_seen], order[n_seen:]
    model = PNNRegressor(random_state=seed, **parameters).fit(data.X.iloc[seen], data.y.iloc[seen])
    assert (model.precision_ == 0).mean() > 0.5
    return float(np.abs(model.predict(data.X.iloc[test]) - data.y.iloc[test]).mean())


def test_two_members_predict_age_with_a_sparse_graph(data_folder):
    """Guessing the median is off by 5.5 years."""
    assert error_of(data_folder, 0, n_members=2, max_epochs=20) < 4.0


@pytest.mark.slow
def test_the_defaults_predict_age_with_a_sparse_graph(data_folder):
    assert np.mean([error_of(data_folder, seed) for seed in range(3)]) < 3.3
