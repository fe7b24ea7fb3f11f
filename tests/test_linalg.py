"""Small linear algebra: what is promised to the last bit is so."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.linalg import log_det_in_place


@pytest.mark.parametrize("n", [3, 256, 257, 600])
@pytest.mark.parametrize("order", ["C", "F"])
def test_log_det_leaves_the_matrix_as_it_was(n, order):
    rng = np.random.default_rng(n)
    half = rng.normal(size=(n, n)) / np.sqrt(n)
    matrix = np.array(half @ half.T + np.eye(n), order=order)
    matrix = np.array(0.5 * (matrix + matrix.T), order=order)
    before = matrix.copy()
    assert log_det_in_place(matrix) == pytest.approx(np.linalg.slogdet(before)[1], rel=1e-10)
    assert (matrix == before).all()
    matrix[n - 1, n - 1] = -1.0
    before = matrix.copy()
    assert log_det_in_place(matrix) is None
    assert (matrix == before).all()
