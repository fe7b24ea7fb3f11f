"""Adjusted differences: least squares by hand, intervals and false alarms at their level."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.errors import InputError
from precisionnet.gap.group_tests import adjusted_differences


def test_difference_and_error_are_those_of_the_whole_regression(rng):
    n = 80
    columns, in_a = rng.standard_normal((n, 3)), rng.random(n) < 0.4
    values = columns @ rng.standard_normal((3, 2)) + 1.5 * in_a[:, None] + rng.standard_normal((n, 2))
    found = adjusted_differences(values, in_a, columns, 19, rng)
    design = np.column_stack([in_a, np.ones(n), columns]).astype(float)
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ values
    np.testing.assert_allclose(found.difference, weights[0])
    left, leverage = values - design @ weights, np.einsum("ij,jk,ik->i", design, inverse, design)
    scaled = left / (1 - leverage)[:, None]
    for j in range(2):
        hc3 = inverse @ (design.T * scaled[:, j] ** 2) @ design @ inverse
        assert found.standard_error[j] == pytest.approx(np.sqrt(hc3[0, 0]))
    assert found.degrees == n - 5
    low, high = found.interval(0.95, relative_error=0.1)
    plain_low, plain_high = found.interval(0.95)
    assert (low < plain_low).all()
    assert (high > plain_high).all()


def test_parts_add_up_to_the_difference_of_their_sum(rng):
    columns, in_a = rng.standard_normal((60, 2)), np.arange(60) % 2 == 0
    parts = rng.standard_normal((60, 5))
    both = [adjusted_differences(v, in_a, columns, 19, rng).difference for v in (parts, parts.sum(axis=1)[:, None])]
    assert both[0].sum() == pytest.approx(both[1][0])


def test_false_alarms_are_rare_where_groups_scatter_differently(rng):
    """300 tables without a difference, the smaller group with three times the scatter; 5 % and 4 standard errors."""
    alarms, held = 0, 0
    for _ in range(300):
        in_a = np.arange(60) < 18
        columns = rng.standard_normal((60, 1)) + 0.5 * in_a[:, None]
        values = columns + np.where(in_a, 3.0, 1.0)[:, None] * rng.standard_normal((60, 1))
        found = adjusted_differences(values, in_a, columns, 99, rng)
        alarms += found.p_value[0] <= 0.05
        low, high = found.interval()
        held += low[0] <= 0 <= high[0]
    assert alarms <= 300 * 0.05 + 4 * np.sqrt(300 * 0.05 * 0.95)
    assert held >= 300 * 0.95 - 4 * np.sqrt(300 * 0.05 * 0.95)


def test_covariates_that_tell_the_groups_are_refused(rng):
    in_a = np.arange(40) % 2 == 0
    with pytest.raises(InputError, match="tell which group a row is of"):
        adjusted_differences(rng.standard_normal((40, 1)), in_a, in_a[:, None].astype(float), 19, rng)


def test_drawn_tables_come_in_pieces(rng, monkeypatch):
    values, in_a = rng.standard_normal((30, 1)), np.arange(30) % 2 == 0
    whole = adjusted_differences(values, in_a, np.empty((30, 0)), 50, np.random.default_rng(0))
    monkeypatch.setattr("precisionnet.gap.group_tests.AT_ONCE", 100)
    pieces = adjusted_differences(values, in_a, np.empty((30, 0)), 50, np.random.default_rng(0))
    assert whole.p_value[0] == pieces.p_value[0]
