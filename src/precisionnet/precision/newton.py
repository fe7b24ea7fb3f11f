r"""The coupled problem by proximal Newton (Hsieh, Sustik, Dhillon and Ravikumar 2014, with the quadratic term added).

    F(theta) = tr(C theta) - log det theta + sum_{i != j} penalty_ij |theta_ij| + coupling / 2 ||theta - anchor||_F^2

Regime: coupling > 0 and a start not far from the answer (the last epoch's). A step minimises the quadratic model, whose
Hessian is W (x) W + coupling I with W = theta^-1, by coordinate descent over the pairs that are non-zero or may become
so; then one Cholesky decides on the step length and one inversion gives the next W. From a warm start one or two steps
reach the tolerance.

How this differs from the textbook: coordinates run column by column, so that the one strided access (a column of D W)
is paid once a column instead of once a pair; and it stops on a proved gap: by strong convexity
||subgradient||^2 / (2 coupling) or, where the coupling is weak, the divergence of ``certificate.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.linalg import inverse_from_cholesky, log_det_from_cholesky, try_cholesky
from precisionnet.precision.certificate import Verdict, exact_divergence, fitted_dual
from precisionnet.precision.objective import Penalty, row_of
from precisionnet.types import FloatArray, IndexArray

SUFFICIENT = 1e-3
SHORTEST_STEP = 1e-10
INNER_SWEEPS = 6
INNER_SHARE = 2e-3
"""The inner descent stops when a sweep changes the model by this share of the gap."""


class NewtonSolution(NamedTuple):
    """The last iterate of the iteration, and how good it is."""

    theta: FloatArray
    log_det: float
    verdict: Verdict
    n_iter: int


def newton(
    emp_cov: FloatArray,
    penalty: Penalty,
    anchor: FloatArray,
    coupling: float,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
) -> NewtonSolution | None:
    """Minimise F from ``start`` to a gap of ``tol`` (over N); None where that is not positive definite."""
    n = len(emp_cov)
    theta = start
    factor = try_cholesky(theta)
    if factor is None:
        return None
    value = _objective(theta, factor, emp_cov, penalty, anchor, coupling)
    iteration = 0
    best = NewtonSolution(theta, log_det_from_cholesky(factor), Verdict(np.inf, np.inf), 0)
    while True:
        W = inverse_from_cholesky(factor)
        gradient, squared, largest = _gradient(emp_cov, W, theta, anchor, coupling, *penalty)
        gap = squared / (2.0 * coupling)
        if gap > tol * n and coupling * float(np.mean(np.diag(theta))) ** 2 < 1.0:
            target = emp_cov + coupling * (theta - anchor)  # theta is zero at known zeros: the caller sees to it
            gap = min(gap, exact_divergence(theta, fitted_dual(theta, W, target, penalty.dense())))
        if gap / n < best.verdict.gap:
            verdict = Verdict(gap / n, largest * float(np.diag(theta).max()))
            best = NewtonSolution(theta, log_det_from_cholesky(factor), verdict, iteration)
        if gap <= tol * n or iteration == max_iter:
            return best._replace(n_iter=iteration)
        iteration += 1
        direction = np.zeros((n, n))
        start_of, pairs = _free_pairs(gradient, theta, *penalty)
        _minimise_model(
            W,
            gradient,
            theta,
            *penalty,
            coupling,
            direction,
            start_of,
            pairs,
            INNER_SWEEPS * (iteration + 1),
            INNER_SHARE * min(gap, float(n)),
        )
        expected = float(np.vdot(gradient, direction)) + penalty.norm(theta + direction) - penalty.norm(theta)
        step = 1.0
        while step > SHORTEST_STEP:
            candidate = theta + step * direction
            factor = try_cholesky(candidate)
            if factor is not None:
                new = _objective(candidate, factor, emp_cov, penalty, anchor, coupling)
                if new <= value + SUFFICIENT * step * expected:
                    break
            step *= 0.5
        else:  # rounding: no step lowers the objective any more
            return best._replace(n_iter=iteration)
        theta, value = candidate, new


def _objective(
    theta: FloatArray, factor: FloatArray, emp_cov: FloatArray, penalty: Penalty, anchor: FloatArray, coupling: float
) -> float:
    apart = theta - anchor
    smooth = float(np.vdot(emp_cov, theta)) - log_det_from_cholesky(factor)
    return smooth + penalty.norm(theta) + 0.5 * coupling * float(np.vdot(apart, apart))


@compiled
def _gradient(
    emp_cov: FloatArray,
    W: FloatArray,
    theta: FloatArray,
    anchor: FloatArray,
    coupling: float,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
) -> tuple[FloatArray, float, float]:
    """The smooth gradient C - W + coupling (theta - anchor); squared norm and largest entry of the subgradient."""
    N = len(W)
    gradient = np.empty((N, N))
    penalty = np.empty(N)
    squared, largest = 0.0, 0.0
    for j in range(N):
        row_of(l1, unit, matrix, j, penalty)
        for i in range(N):
            g = emp_cov[j, i] - W[j, i] + coupling * (theta[j, i] - anchor[j, i])
            gradient[j, i] = g
            if theta[j, i] == 0.0:
                smallest = max(abs(g) - penalty[i], 0.0)
            else:
                smallest = abs(g + penalty[i] if theta[j, i] > 0.0 else g - penalty[i])
            squared += smallest * smallest
            largest = max(largest, smallest)
    return gradient, squared, largest


@compiled
def _free_pairs(
    gradient: FloatArray, theta: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray
) -> tuple[IndexArray, IndexArray]:
    """Pairs i <= j, column by column, that are non-zero or would leave zero."""
    N = len(theta)
    penalty = np.empty(N)
    start = np.zeros(N + 1, np.int64)
    for fill in range(2):
        if fill == 1:
            pairs = np.empty(start[N], np.int32)
        filled = 0
        for j in range(N):
            row_of(l1, unit, matrix, j, penalty)
            for i in range(j + 1):
                if i == j or theta[j, i] != 0.0 or abs(gradient[j, i]) > penalty[i]:
                    if fill == 1:
                        pairs[filled] = i
                    filled += 1
            start[j + 1] = filled
    return start, pairs


@compiled
def _minimise_model(
    W: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    coupling: float,
    D: FloatArray,
    start: IndexArray,
    pairs: IndexArray,
    max_sweeps: int,
    tol: float,
) -> None:
    """Coordinate descent on tr(gradient D) + 1/2 tr(W D W D) + coupling/2 ||D||^2 + penalty |theta + D|, in place."""
    N = len(W)
    U = np.zeros((N, N))  # D W
    penalty = np.empty(N)
    column = np.empty(N)
    for _ in range(max_sweeps):
        change = 0.0
        for j in range(N):
            row_of(l1, unit, matrix, j, penalty)
            for k in range(N):
                column[k] = U[k, j]
            for pair in range(start[j], start[j + 1]):
                i = pairs[pair]
                product = 0.0
                for k in range(N):
                    product += W[i, k] * column[k]
                slope = gradient[j, i] + product + coupling * D[j, i]
                curvature = W[i, i] * W[j, j] + coupling
                if i == j:
                    move = -slope / curvature
                else:
                    curvature += W[j, i] * W[j, i]
                    here = theta[j, i] + D[j, i]
                    there = here - slope / curvature
                    shrunk = max(abs(there) - penalty[i] / curvature, 0.0)
                    move = (shrunk if there > 0.0 else -shrunk) - here
                if move == 0.0:
                    continue
                D[j, i] += move
                for k in range(N):
                    U[i, k] += move * W[j, k]
                column[i] += move * W[j, j]
                change += move * move * curvature
                if i != j:
                    D[i, j] += move
                    for k in range(N):
                        U[j, k] += move * W[i, k]
                    column[j] += move * W[i, j]
                    change += move * move * curvature
        if change <= tol:
            break
