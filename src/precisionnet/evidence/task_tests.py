r"""Is an edge of the task beyond chance? Effects of networks beside drawn ones, and edges beside each other.

**Beside chance.** An effect is studentised by mean and standard deviation of its own effects under the null (a null fit
by those of the others); the deviations, each from a hundred fits, are moderated towards their common size. It is
compared with the studentised null effects of all: p = (1 + b) / (1 + B n).

**Beside each other.** Networks spread a strong product over neighbouring edges: it is real, and lies one edge further.
So the *candidates*, with a q-value of at most ``CANDIDATE`` by the first test, are put into one regression,

    r = c + sum_{(i,j) in S} b_ij d_ij + e,

where r is what single columns leave unexplained of the target and d_ij = z_i z_j, the product of two columns in
standard units, less what the two columns' own lines and parabolas (and those of all other candidates' columns) explain
of it. For Gaussian columns b is the mean joint curvature of the regression of r on the columns, E[d^2 r / dz_i dz_j],
which is what the networks' effect estimates: of an edge that only mirrors its neighbours it is zero. Its t-value has
the jackknife's standard error (HC3; CR3 where people have several rows), which allows for errors of any size and for
errors that go together within a person. An edge's p-value is the larger one of both tests, and that of a pair that is
no candidate the first one. So the second test can only take edges away, and the chances of a false alarm among null
targets are at most those of the first.

A regression has one column for ``PEOPLE_PER_PRODUCT`` people at most: of more candidates the strongest are in it, and
every other one is tested beside these alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import t as student_t

from precisionnet.evidence.pairs import pairs_of, q_values
from precisionnet.evidence.permutations import pooled_p
from precisionnet.types import BoolArray, FloatArray, IndexArray

CANDIDATE = 0.2
"""False discovery rate by the networks alone at which a pair is asked to hold beside the others."""
PEOPLE_PER_PRODUCT = 5


@dataclass(frozen=True)
class EdgeTests:
    """The results of both tests for every pair."""

    t: FloatArray
    """Studentised effects of the networks."""
    p_by_networks: FloatArray
    """p-value of the comparison with drawn targets: over the edges of the graph for an edge, else over all pairs."""
    p_value: FloatArray
    """The larger one of ``p_by_networks`` and the regression's p-value; candidates alone have the second."""
    q_by_networks: FloatArray
    q_value: FloatArray
    """Over the edges of the graph; NaN for other pairs."""


def edge_tests(
    effect: FloatArray, null: FloatArray, in_graph: BoolArray, X: FloatArray, residual: FloatArray, person: IndexArray
) -> EdgeTests:
    """Test all pairs of columns: ``effect`` is the networks', ``null`` holds those of drawn targets, one row per fit.

    ``residual`` is the target of the networks that the effects are of.
    """
    t, null_t = studentised(effect, null)
    by_networks = pooled_p(np.abs(t), np.abs(null_t))
    candidate = q_values(by_networks) <= CANDIDATE
    if in_graph.any():
        by_networks[in_graph] = pooled_p(np.abs(t[in_graph]), np.abs(null_t[:, in_graph]))
    of_graph = q_values(np.where(in_graph, by_networks, np.nan))
    candidate |= of_graph <= CANDIDATE
    p = by_networks.copy()
    places = np.flatnonzero(candidate)
    if len(places):
        strongest = places[np.argsort(-np.abs(t[places]), kind="stable")]
        first, second = (side[strongest] for side in pairs_of(X.shape[1]))
        p[strongest] = np.maximum(p[strongest], p_beside_others(X, residual, person, first, second))
    return EdgeTests(t, by_networks, p, of_graph, q_values(np.where(in_graph, p, np.nan)))


def studentised(observed: FloatArray, null: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return t of the observed effects by mean and deviation of the null's, and t of each null fit by the others'."""
    n = len(null)
    mean, squares = null.mean(axis=0), np.sum((null - null.mean(axis=0)) ** 2, axis=0)
    others = mean + (mean - null) / (n - 1)
    left = squares - (null - mean) ** 2 * n / (n - 1)  # squares of the others about their own mean
    t = (observed - mean) / np.sqrt(moderated(squares / (n - 1), n - 1))
    return t, np.array(
        [(one - m) / np.sqrt(moderated(s / (n - 2), n - 2)) for one, m, s in zip(null, others, left, strict=True)]
    )


def moderated(variance: FloatArray, degrees: int) -> FloatArray:
    """Shrink variances of many effects, each from a few fits, towards their common size.

    Smyth's (2004) empirical Bayes estimate: with ``degrees`` degrees of freedom each and prior ones that make the
    spread of log variances what it is; the prior is infinite where they differ by no more than chance.
    """
    logs = np.log(np.maximum(variance, np.finfo(float).tiny))
    excess = float(np.var(logs)) - float(polygamma(1, degrees / 2))
    common = float(np.exp(np.mean(logs) - digamma(degrees / 2) + np.log(degrees / 2)))
    if excess <= 0.0:
        return np.full_like(variance, common)
    prior = 2.0 * float(brentq(lambda half: polygamma(1, half) - excess, 1e-8, 1e8))
    common *= float(np.exp(digamma(prior / 2) - np.log(prior / 2)))
    return (prior * common + degrees * variance) / (prior + degrees)


def p_beside_others(
    X: FloatArray, residual: FloatArray, person: IndexArray, first: IndexArray, second: IndexArray
) -> FloatArray:
    """Test each product of two columns beside the others, which come in the order of their strength.

    Of more products than the rows can bear, the last ones are tested one by one beside the strongest.
    """
    n_people = int(person.max()) + 1
    together = max(n_people // PEOPLE_PER_PRODUCT - 1, 1)
    products = _products(X, first, second)
    p = _p_of_regression(products[:, :together], residual, person)
    alone = [
        _p_of_regression(np.column_stack([products[:, :together], last]), residual, person)[-1]
        for last in products[:, together:].T
    ]
    return np.concatenate([p, alone])


def _products(X: FloatArray, first: IndexArray, second: IndexArray) -> FloatArray:
    """Products of columns in standard units, less what lines and parabolas of single columns explain of them.

    The columns are those of all pairs, strongest first, as far as there are people for them.
    """
    spread = X.std(axis=0)
    z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    columns = list(dict.fromkeys(np.column_stack([first, second]).ravel().tolist()))
    columns = columns[: len(X) // (2 * PEOPLE_PER_PRODUCT)]
    single = np.column_stack([np.ones(len(z)), z[:, columns], z[:, columns] ** 2])
    products: FloatArray = z[:, first] * z[:, second]
    return products - single @ np.linalg.lstsq(single, products, rcond=None)[0]


def _p_of_regression(columns: FloatArray, y: FloatArray, person: IndexArray) -> FloatArray:
    """Two-sided p-values of least squares, with the jackknife's standard errors over people."""
    design = np.column_stack([np.ones(len(columns)), columns])
    inverse = np.linalg.pinv(design.T @ design)
    slope = inverse @ design.T @ y
    error = y - design @ slope
    order = np.argsort(person, kind="stable")
    moved = np.zeros_like(inverse)
    for rows in np.split(order, np.flatnonzero(np.diff(person[order])) + 1):
        own = design[rows]
        leverage = np.eye(len(rows)) - own @ inverse @ own.T
        score = own.T @ np.linalg.lstsq(leverage, error[rows], rcond=None)[0]
        moved += np.outer(score, score)
    spread = np.sqrt(np.diag(inverse @ moved @ inverse))
    degrees = max(int(person.max()) + 1 - len(slope), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(spread > 0, slope / spread, 0.0)
    return np.asarray(2.0 * student_t.sf(np.abs(t[1:]), degrees))
