"""Tests of the task's effects: beside drawn targets, and of edges beside each other."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.evidence.pairs import pairs_of, q_values
from precisionnet.evidence.permutations import pooled_p
from precisionnet.evidence.task_tests import edge_tests, moderated, p_beside_others, studentised


def neighbours(rng, n_rows=300):
    """Columns of which a and b act together; c goes along with a."""
    X = rng.normal(size=(n_rows, 6))
    X[:, 1] += 0.5 * X[:, 0]
    X[:, 2] += 1.2 * X[:, 0]
    return X, X[:, 0] * X[:, 1] + rng.normal(size=n_rows)


def test_a_neighbour_of_a_strong_product_is_not_reported():
    """Networks see a's and b's product also in c's and b's; the regression gives it to the one it belongs to."""
    rng = np.random.default_rng(0)
    X, y = neighbours(rng)
    null = rng.normal(size=(40, 15))
    effect = rng.normal(size=15)
    pairs = list(zip(*pairs_of(6), strict=True))
    true, neighbour = pairs.index((0, 1)), pairs.index((1, 2))
    effect[[true, neighbour]] = 9.0, 7.0
    graph = np.ones(15, dtype=bool)
    graph[pairs.index((3, 4))] = False
    tests = edge_tests(effect, null, graph, X, y - y.mean(), np.arange(300))
    np.testing.assert_array_equal(np.flatnonzero(tests.q_by_networks <= 0.1), [true, neighbour])
    np.testing.assert_array_equal(np.flatnonzero(tests.q_value <= 0.1), [true])
    assert (tests.p_value >= tests.p_by_networks).all()
    np.testing.assert_array_equal(np.isnan(tests.q_value), ~graph)
    none = edge_tests(rng.normal(size=15), null, graph, X, y - y.mean(), np.arange(300))
    np.testing.assert_array_equal(none.p_value, none.p_by_networks)  # no candidate, nothing to hold beside


def test_no_graph_no_q_values():
    rng = np.random.default_rng(1)
    X, y = neighbours(rng)
    tests = edge_tests(rng.normal(size=15), rng.normal(size=(30, 15)), np.zeros(15, dtype=bool), X, y, np.arange(300))
    assert np.isnan(tests.q_value).all()
    assert ((tests.p_value > 0) & (tests.p_value <= 1)).all()


@pytest.mark.parametrize("n_rows", [1, 4])
def test_products_that_do_nothing_are_found_as_often_as_said(n_rows):
    """Errors grow with a column and, where people have several rows, go together within a person."""
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(80), n_rows)
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    p = []
    for _ in range(300):
        X = rng.normal(size=(80, 3))[person]
        X[:, 1] += 0.5 * X[:, 0]
        X += 0.3 * rng.normal(size=X.shape)
        error = rng.normal(size=80)[person] + 0.5 * rng.normal(size=len(X))
        p.append(p_beside_others(X, error * (1 + np.abs(X[:, 0])), person, first, second))
    assert np.mean(np.array(p) <= 0.05) <= 0.07
    assert np.mean(np.array(p) <= 0.5) >= 0.4


def test_a_person_s_rows_count_once():
    """Every row given four times says no more than once; as if from four people, it would."""
    rng = np.random.default_rng(3)
    X, y = neighbours(rng, 60)
    first, second = np.array([0]), np.array([3])
    once = p_beside_others(X, y, np.arange(60), first, second)
    again = [np.repeat(part, 4, axis=0) for part in (X, y, np.arange(60))]
    np.testing.assert_allclose(p_beside_others(*again, first, second), once, rtol=1e-6)
    assert p_beside_others(again[0], again[1], np.arange(240), first, second) < once


def test_more_candidates_than_rows_can_bear():
    """The last ones are tested beside the strongest alone."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 12))
    X[:, 2] += 1.5 * X[:, 0]
    first, second = pairs_of(12)
    order = np.argsort((first != 0) | (second != 1), kind="stable")
    y = 2.0 * X[:, 0] * X[:, 1] + rng.normal(size=60)
    p = p_beside_others(X, y, np.arange(60), first[order], second[order])
    assert p.shape == first.shape
    assert p[0] < 1e-4
    assert np.mean(p[1:] <= 0.05) < 0.2
    assert np.isfinite(p).all()


def test_a_null_fit_is_studentised_by_the_others():
    rng = np.random.default_rng(0)
    null = rng.normal(2.0, 1.0, size=(12, 7)) * np.array([1, 1, 1, 5, 1, 1, 1])
    observed = rng.normal(size=7)
    t, null_t = studentised(observed, null)
    np.testing.assert_allclose(t, (observed - null.mean(axis=0)) / np.sqrt(moderated(null.var(axis=0, ddof=1), 11)))
    for i in range(12):
        others = np.delete(null, i, axis=0)
        expected = (null[i] - others.mean(axis=0)) / np.sqrt(moderated(others.var(axis=0, ddof=1), 10))
        np.testing.assert_allclose(null_t[i], expected)


def test_moderated_variances():
    rng = np.random.default_rng(0)
    alike = rng.chisquare(10, size=4000) / 10
    np.testing.assert_allclose(moderated(alike, 10).std(), 0.0, atol=0.05)
    assert moderated(alike, 10).mean() == pytest.approx(1.0, abs=0.05)
    true = 5 / rng.chisquare(5, size=4000) * 2.0  # prior: 5 degrees of freedom, size 2
    seen = true * rng.chisquare(10, size=4000) / 10
    better = moderated(seen, 10)
    np.testing.assert_allclose(better, (5 * 2.0 + 10 * seen) / 15, rtol=0.25)
    assert np.mean((np.log(better) - np.log(true)) ** 2) < np.mean((np.log(seen) - np.log(true)) ** 2)


def test_under_the_null_few_runs_report():
    """Each null fit plays the observed one: pooled p-values and their false discovery rate hold."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(40):
        common = rng.normal(size=(21, 1)) * 0.3  # effects of one fit go together
        null = (common + rng.normal(size=(21, 60))) * rng.uniform(0.5, 2.0, size=60)
        t, null_t = studentised(null[0], null[1:])
        alarms += (q_values(pooled_p(np.abs(t), np.abs(null_t))) <= 0.05).any()
    assert alarms <= 6
