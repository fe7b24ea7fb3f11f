r"""The one stopping measure, the ladder of tolerances, and the yardstick.

    F(theta) = tr(C theta) - log det theta + l1 sum_{i != j} |theta_ij| + coupling / 2 ||theta - anchor||_F^2

With S = C + coupling (theta - anchor), any positive definite K with K_ii = S_ii and |K_ij - S_ij| <= l1 proves

    F(theta) - min F  <=  tr(S theta) + l1 sum_{i != j} |theta_ij| - log det theta - N - log det K.

Two such K are tried, and the better one counts: theta^-1 clipped into the box, and the same with
S_ij + l1 sign(theta_ij) wherever theta_ij is not zero. Both come from theta alone, so a solver cannot vouch for itself.

Where the answer is nearly singular such a K can prove a hundred times less than is true. So every problem also carries
one lower bound of min F: the same proof for a matrix solved far beyond what is asked. Whoever found that matrix, the
bound holds, and it is the same for every solver.

Problems that are given by rows alone have no room for K. Some columns of it at a time are enough for a bound without
det K: with E = theta K - I and rho < 1 the smaller of ||E||_F and the largest column sum of |E|, K is positive definite
and the same difference is at most ||E||_F^2 / (2 (1 - rho)). Columns of theta^-1 and log det theta come from SuperLU.

NumPy and SciPy alone, and nothing of the library that is measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.linalg import splu

CERTIFIED = 1e-6
"""Relative gap at which a problem counts as solved."""
LADDER = tuple(10.0**-k for k in range(2, 10))
MOST_REPEATS, REPEAT_SECONDS = 15, 4.0
COLUMNS_AT_A_TIME = 64


class Proof(NamedTuple):
    """F(theta), and a lower bound of min F proved from theta."""

    objective: float
    lower_bound: float


def prove(
    theta: np.ndarray, emp_cov: np.ndarray, l1_penalty: float, coupling: float = 0.0, anchor: np.ndarray | None = None
) -> Proof:
    """The better of the two proofs above; nothing is proved where theta is not positive definite."""
    if not np.isfinite(theta).all():
        return Proof(np.inf, -np.inf)
    theta = 0.5 * (theta + theta.T)
    log_det = _log_det(theta)
    if log_det is None:
        return Proof(np.inf, -np.inf)
    penalty = np.abs(theta)
    np.fill_diagonal(penalty, 0.0)  # before the sum: the diagonal may be larger by many orders of magnitude
    off_diagonal = l1_penalty * float(penalty.sum())
    del penalty
    target, tie = emp_cov, 0.0
    if anchor is not None:
        target = emp_cov + coupling * (theta - anchor)
        tie = 0.5 * coupling * float(np.sum((theta - anchor) ** 2))
    objective = float(np.vdot(emp_cov, theta)) - log_det + off_diagonal + tie
    K = np.clip(_inverse(theta), target - l1_penalty, target + l1_penalty)
    np.fill_diagonal(K, np.diag(target))
    found = [_log_det(K)]
    K[theta > 0.0] = target[theta > 0.0] + l1_penalty
    K[theta < 0.0] = target[theta < 0.0] - l1_penalty
    np.fill_diagonal(K, np.diag(target))
    found.append(_log_det(K))
    best = max((value for value in found if value is not None), default=-np.inf)
    gap = float(np.vdot(target, theta)) + off_diagonal - log_det - len(theta) - best
    return Proof(objective, objective - gap)


def relative_gap(
    theta: np.ndarray,
    emp_cov: np.ndarray,
    l1_penalty: float,
    coupling: float = 0.0,
    anchor: np.ndarray | None = None,
    lower_bound: float = -np.inf,
) -> float:
    """F(theta) minus the better lower bound, over max(N, |F|); infinite where theta is not positive definite."""
    objective, proved = prove(theta, emp_cov, l1_penalty, coupling, anchor)
    if not np.isfinite(objective):
        return np.inf
    return max(objective - max(proved, lower_bound), 0.0) / max(len(emp_cov), abs(objective))


def relative_gap_from_rows(theta: np.ndarray | sparse.sparray, rows: np.ndarray, l1_penalty: float) -> float:
    """The same measure for rows whose covariance has no room; slow, as it looks at every pair of columns."""
    n_rows, n = rows.shape
    theta = sparse.csc_array(theta)
    theta = sparse.csc_array(0.5 * (theta + theta.T))
    if not np.isfinite(theta.data).all():
        return np.inf
    try:
        factor = splu(theta, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return np.inf
    pivots = factor.U.diagonal()
    if (factor.perm_r != factor.perm_c).any() or not (pivots > 0.0).all():
        return np.inf  # not positive definite: P theta P' = L D L' has another sign in D
    centred = rows - rows.mean(axis=0)
    trace = off_diagonal = squares = most = 0.0
    for first in range(0, n, COLUMNS_AT_A_TIME):
        here = np.arange(first, min(first + COLUMNS_AT_A_TIME, n))
        beside = np.arange(len(here))
        S = centred.T @ centred[:, here] / n_rows
        unit = np.zeros((n, len(here)))
        unit[here, beside] = 1.0
        K = np.clip(factor.solve(unit), S - l1_penalty, S + l1_penalty)
        some = theta[:, here].tocoo()
        i, j = some.coords
        trace += float(np.sum(S[i, j] * some.data))
        off_diagonal += float(np.abs(some.data[i != here[j]]).sum())
        K[i, j] = S[i, j] + l1_penalty * np.sign(some.data)
        K[here, beside] = S[here, beside]
        size = np.abs(theta @ K - unit)
        squares += float(np.sum(size**2))
        most = max(most, float(size.sum(axis=0).max()))
    rho = min(np.sqrt(squares), most)
    if not rho < 1.0:
        return np.inf
    objective = trace - float(np.log(pivots).sum()) + l1_penalty * off_diagonal
    return squares / (2.0 * (1.0 - rho)) / max(n, abs(objective))


def _log_det(matrix: np.ndarray) -> float | None:
    try:
        return 2.0 * float(np.log(np.diag(np.linalg.cholesky(matrix))).sum())
    except np.linalg.LinAlgError:
        return None


def _inverse(matrix: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(matrix)
    return 0.5 * (inverse + inverse.T)


@dataclass(frozen=True)
class Attempt:
    """One run at one tolerance."""

    tol: float
    seconds: float
    gap: float
    asked: float = CERTIFIED
    error: str = ""

    @property
    def passed(self) -> bool:
        """Solved."""
        return self.gap <= self.asked


def climb(attempt: Callable[[float], Attempt], ladder: Sequence[float], first: int = 0) -> Iterator[Attempt]:
    """Tighter and tighter until one passes; from a ``first`` that passes at once, looser until one fails.

    The loosest that passed is what counts. A solver that raises is allowed the tighter tolerances, too.
    """
    position = first
    while position < len(ladder):
        tried = attempt(ladder[position])
        yield tried
        if tried.passed:
            break
        position += 1
    if position == first:
        for looser in reversed(ladder[:first]):
            tried = attempt(looser)
            yield tried
            if not tried.passed:
                return


def repeated(run: Callable[[], float], already: float) -> list[float]:
    """``run`` returns its seconds: as many more of them as fit into ``REPEAT_SECONDS`` of the clock."""
    times = [already]
    began = time.perf_counter()
    while len(times) < MOST_REPEATS and time.perf_counter() - began + statistics.median(times) < REPEAT_SECONDS:
        times.append(run())
    return times


def inversion_seconds(n: int) -> float:
    """The yardstick: potrf and potri of an N x N matrix, in place."""
    matrix = np.full((n, n), 0.5, order="F")
    np.fill_diagonal(matrix, 1.0)
    started = time.perf_counter()
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    _, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    seconds = time.perf_counter() - started
    assert failed == failed_too == 0
    return seconds
