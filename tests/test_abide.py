"""Age from cortical thickness, 62 regions, on the real table."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet import PNNRegressor
from precisionnet.datasets import fetch_abide


@pytest.mark.data
def test_joint_predicts_age_with_a_sparse_graph(data_folder):
    """60/20/20 with the defaults, three splits: mean MAE under 3.3 years, more than half of theta exactly zero."""
    data = fetch_abide(data_folder)
    X, y = data.X, data.y
    errors = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        seen, test = order[: int(0.8 * len(X))], order[int(0.8 * len(X)) :]
        model = PNNRegressor(random_state=seed).fit(X.iloc[seen], y.iloc[seen])
        assert (model.precision_ == 0).mean() > 0.5
        errors.append(float(np.abs(model.predict(X.iloc[test]) - y.iloc[test]).mean()))
    assert np.mean(errors) < 3.3
