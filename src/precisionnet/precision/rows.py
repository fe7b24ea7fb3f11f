r"""The graphical lasso from rows, for tables with more columns than an N x N array has room for.

    minimise over theta   tr(S theta) - log det theta + l1_penalty sum_{i != j} |theta_ij|,    S = sample_covariance(X)

Regime: ten thousand to some hundred thousand columns, and a penalty at which the columns fall into components that are
small (solved by ``component_solver.py``, dense) or whose graph is sparse (``sparse_solver.py``). Screening
(``screening.py``) is exact, and loss and dual objective add over components, so one certificate holds for the whole:

    gap = sum over components of the proved (loss - optimum), over max(N, |loss|)

Components of one and two columns have closed forms: 1 / S_ii, and the inverse of the 2 x 2 covariance whose
off-diagonal entry is nearer to zero by the penalty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from precisionnet.errors import InputError
from precisionnet.memory import free_memory
from precisionnet.precision.api import check_stopping, solve
from precisionnet.precision.partitions import PartitionedRows
from precisionnet.precision.problem import is_number, normal_form
from precisionnet.precision.result import MESSAGES, Status, distance_from_optimum
from precisionnet.precision.screening import (
    PAIR_BYTES,
    SAMPLED_DEGREE,
    ColumnMoments,
    Pairs,
    Screened,
    Table,
    checked_rows,
    column_moments,
    covariance_of_pairs,
    covariances_of,
    penalty_for_components,
    sampled_sizes,
    screen,
)
from precisionnet.precision.sparse_solver import SparseSolved, TooMuchFill, solve_sparse
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import count_for, in_workers

DENSE_MOST = 15_000
"""Largest component that is solved with dense matrices."""
DENSE_BYTES = 44
"""Memory of a dense solve, over the square of its size."""
SHARE_OF_FREE_MEMORY = 0.75
SMALLEST_MEMORY = 4e6
MAX_ITER = 2000
BATCH = 256, 400_000
"""Small components are handed to a worker in batches: of so many components at most, and of so many entries of their
covariances."""
NEARLY_COLLINEAR = 1e-8
WORTH_SAMPLING = 1e12
"""If screening takes more multiplications than this, a sample of columns first tells if the penalty is too small."""


class PenaltyTooSmall(InputError):
    """Raised where a penalty keeps more than there is room for.

    ``why`` says so, the beginning of a sentence, and with ``penalty`` there is room.
    """

    def __init__(self, message: str, why: str = "", penalty: float = float("nan")) -> None:
        super().__init__(message)
        self.why, self.penalty = why, penalty


@dataclass(frozen=True)
class SparsePrecisionResult:
    """A sparse precision matrix of many columns with the proof of how good it is.

    Parameters
    ----------
    precision : scipy.sparse.csr_array of shape (n_features, n_features)
        The solution ``theta``: symmetric and positive definite; only entries that are not zero are stored.
    objective : float
        The loss at ``precision``.
    gap : float
        Proved bound on ``objective`` minus the optimum, divided by ``max(n_features, abs(objective))``; infinite where
        nothing could be proved.
    status : {"optimal", "max_iter", "ill_conditioned"}
        How the solver ended; ``message`` says it in a sentence.
    n_components : int
        Groups of columns without an edge between them that were solved on their own.
    largest_component : int
        Columns in the largest of them.
    n_iter : int
        Largest number of iterations that a component took.
    seconds : float
        Time the solve took.
    tol : float
        The tolerance that ``gap`` was asked to reach.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso_from_rows
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> result = graphical_lasso_from_rows(X, 0.9)
    >>> result.n_components, result.precision.nnz
    (4, 4)
    """

    precision: sparse.csr_array
    objective: float
    gap: float
    status: Status
    n_components: int
    largest_component: int
    n_iter: int
    seconds: float
    tol: float

    @property
    def converged(self) -> bool:
        """Whether the gap is below the tolerance."""
        return self.status == "optimal"

    @property
    def message(self) -> str:
        """One sentence: what happened, and what to do if it is not what was wanted."""
        said = MESSAGES[self.status].format(
            distance=distance_from_optimum(self.gap), tol=self.tol, n_iter=self.n_iter, eigenvalue=np.nan
        )
        return f"{said} ({self.n_components:,} components, the largest of {self.largest_component:,} columns)"


class SolvedPart(NamedTuple):
    """The solution of one component: its entries, at their positions in the whole matrix, and how good they are."""

    row: IndexArray
    column: IndexArray
    value: FloatArray
    objective: float
    gap: float
    """Proved bound on the objective less the optimum, as it is: not relative to the size or the objective."""
    n_iter: int
    status: Status


def graphical_lasso_from_rows(
    X: Any,
    l1_penalty: float,
    *,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    max_memory: float | None = None,
) -> SparsePrecisionResult:
    """Estimate the sparse precision matrix of very many columns from rows, with a proof of its accuracy.

    The answer is that of ``graphical_lasso(sample_covariance(X), l1_penalty)``: columns are centred and otherwise taken
    as given, and the covariance is divided by the number of rows. Standardise the columns first if one penalty is to
    mean the same for all of them. No matrix of all pairs is ever stored.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), Dask DataFrame or Dask array
        Complete rows. An array is not copied, and a memory-mapped one is read block by block. The rows of a Dask table
        stay in its partitions: only sums over them come here, and the columns of a component that is too large for
        dense matrices.
    l1_penalty : float
        Weight of ``|theta_ij|``, above zero. Pairs of columns whose covariance is above it must fit in memory where
        they join more columns than a dense matrix has room for.
    tol : float, default=1e-6
        Proved relative gap of the whole at which the solver stops.
    n_jobs : int, default=None
        Workers that share the components, as joblib has them; they do not change the result.
    max_memory : float, default=None
        Bytes that may be used besides ``X``; None takes three quarters of what is free.

    Returns
    -------
    SparsePrecisionResult
        ``precision`` (scipy.sparse), its proved ``gap``, ``status``, ``message`` and ``n_components``.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso_from_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1000))
    >>> X[:, 1::2] += X[:, ::2]  # 500 pairs
    >>> result = graphical_lasso_from_rows(X, 0.5)
    >>> result.converged, result.n_components, result.precision.nnz
    (True, 500, 2000)
    """
    started = time.perf_counter()
    check_stopping(tol, 1)
    l1_penalty = _checked_penalty(l1_penalty)
    count_for(n_jobs)  # refuse a wrong number now, not after the screening
    X = checked_rows(X)
    memory = _memory(max_memory)
    n = X.shape[1]
    columns = column_moments(X)
    dense_most = largest_dense(memory, len(X))
    if 0.5 * n * n * len(X) > WORTH_SAMPLING and n > dense_most:
        _refuse_by_sample(X, columns, l1_penalty, memory, dense_most)
    screened = screen(X, columns, l1_penalty, memory)
    groups = _groups(screened.labels)
    sizes = np.array([len(members) for members in groups])
    parts = [_singles(columns, np.array([members[0] for members in groups if len(members) == 1], dtype=np.int64))]
    pairs, rest = _pairs(X, columns, [members for members in groups if len(members) == 2], l1_penalty)
    parts.append(pairs)
    large = [members for members in groups if len(members) > dense_most]
    if large:
        parts.extend(_large(X, columns, screened, large, l1_penalty, tol, n_jobs, memory, dense_most))
    rest += [members for members in groups if 2 < len(members) <= dense_most]
    parts.extend(_dense(X, columns, rest, l1_penalty, tol, n_jobs, memory))
    return _together(parts, n, sizes, tol, started)


def largest_dense(memory: float, n_rows: int) -> int:
    """Return the number of columns of the largest component that a dense solve has room for."""
    # DENSE_BYTES n^2 + 16 T n <= memory, where T counts up to a chunk of rows
    rows = 16.0 * min(n_rows, 2048)
    fits = (np.sqrt(rows**2 + 4.0 * DENSE_BYTES * memory) - rows) / (2.0 * DENSE_BYTES)
    return max(2, min(DENSE_MOST, int(fits)))


def _checked_penalty(l1_penalty: float) -> float:
    if np.ndim(l1_penalty) != 0:
        raise InputError("l1_penalty must be one number here: graphical_lasso takes a matrix of penalties.")
    if not (is_number(l1_penalty) and l1_penalty >= 0):
        raise InputError(f"l1_penalty must be a finite number > 0, got {l1_penalty!r}.")
    if l1_penalty == 0:
        raise InputError(
            "l1_penalty=0 keeps every pair of columns, so nothing is sparse: pass a number > 0, or a covariance to "
            "graphical_lasso."
        )
    return float(l1_penalty)


def _memory(max_memory: float | None) -> float:
    if max_memory is None:
        return SHARE_OF_FREE_MEMORY * free_memory()
    if not (is_number(max_memory) and max_memory > 0):
        raise InputError(f"max_memory must be a number of bytes > 0, got {max_memory!r}.")
    if max_memory < SMALLEST_MEMORY:
        raise InputError(
            f"max_memory={max_memory:,.0f} bytes is too little for any table: pass at least {SMALLEST_MEMORY:,.0f}."
        )
    return float(max_memory)


def _refuse_by_sample(X: Table, columns: ColumnMoments, l1_penalty: float, memory: float, dense_most: int) -> None:
    """Refuse within seconds a penalty at which a component is too large and its pairs have no room.

    A sample of columns decides. A column and the partners it is paired with are all in one component, so a column with
    many partners shows that its component is large.
    """
    size = sampled_sizes(X, columns, memory)
    n_partners = (size > l1_penalty).sum(axis=1)
    n_pairs = 0.5 * float(n_partners.mean()) * X.shape[1]
    if n_partners.max() < dense_most or n_pairs < 1.5 * memory / 3 / PAIR_BYTES:
        return
    enough = np.partition(size, -int(SAMPLED_DEGREE * len(size)) - 1, axis=None)[-int(SAMPLED_DEGREE * len(size)) - 1]
    why = f"keeps about {n_pairs:.1e} pairs of columns, more than {memory / 1e9:.3g} GB have room for"
    penalty = rounded_up(float(enough))
    raise PenaltyTooSmall(
        f"l1_penalty={l1_penalty:.3g} {why}: raise it to about {penalty:g} (judged by {len(size)} columns), or raise "
        "max_memory.",
        why,
        penalty,
    )


def rounded_up(value: float, digits: int = 3) -> float:
    """Round up to so many significant digits, to a number that is larger than ``value`` and short to write."""
    step = 10.0 ** (floor(log10(value)) - digits + 1)
    return float(f"{(floor(value * (1.0 + 1e-6) / step) + 1) * step:.{digits}g}")


def _groups(labels: IndexArray) -> list[IndexArray]:
    """Return the sorted members of every component, the components in the order of their smallest members."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _singles(columns: ColumnMoments, members: IndexArray) -> SolvedPart:
    variance = columns.deviation[members] ** 2
    return SolvedPart(members, members, 1.0 / variance, float((1.0 + np.log(variance)).sum()), 0.0, 0, "optimal")


def _pairs(
    X: Table, columns: ColumnMoments, groups: list[IndexArray], l1_penalty: float
) -> tuple[SolvedPart, list[IndexArray]]:
    """Solve all components of two columns at once; return the solutions, and the groups left to the dense solver.

    Those are the groups whose columns are too nearly collinear for the closed form.
    """
    i, j = np.array(groups, dtype=np.int64).reshape(-1, 2).T
    variance = columns.deviation[i] ** 2, columns.deviation[j] ** 2
    given = covariance_of_pairs(X, columns.mean, i, j)
    w = np.sign(given) * np.maximum(np.abs(given) - l1_penalty, 0.0)
    det = variance[0] * variance[1] - w * w
    sound = det > NEARLY_COLLINEAR * variance[0] * variance[1]
    rest = [members for members, fine in zip(groups, sound, strict=True) if not fine]
    i, j, w, det = i[sound], j[sound], w[sound], det[sound]
    a, b = variance[0][sound], variance[1][sound]
    edge = w != 0.0
    # tr(S theta) + l1 sum |theta| = tr(W theta) = 2
    objective = float((2.0 + np.log(det)).sum())
    gap = 16.0 * float(np.finfo(float).eps) * float((a * b / det).sum())  # rounding errors of the closed form
    row = np.concatenate([i, j, i[edge], j[edge]])
    column = np.concatenate([i, j, j[edge], i[edge]])
    across = -(w / det)[edge]
    return SolvedPart(
        row, column, np.concatenate([b / det, a / det, across, across]), objective, gap, 0, "optimal"
    ), rest


def _dense(
    X: Table,
    columns: ColumnMoments,
    groups: list[IndexArray],
    l1_penalty: float,
    tol: float,
    n_jobs: int | None,
    memory: float,
) -> list[SolvedPart]:
    """Solve components with dense matrices, the largest first and small ones in batches."""
    if not groups:
        return []
    batches = _batches(sorted(groups, key=len, reverse=True))
    largest = len(batches[0][0])
    # Each worker holds the component it solves, and a second covariance waits for it.
    workers = min(count_for(n_jobs), len(batches), max(1, int(memory / (DENSE_BYTES + 16) / largest**2)))
    calls = ((covariances_of(X, columns.mean, batch), batch, l1_penalty, tol) for batch in batches)
    done = in_workers(_solve_batch, calls, workers, by_file=False, at_once=workers)
    return [part for parts in done for part in parts]


def _batches(groups: Sequence[IndexArray]) -> list[list[IndexArray]]:
    batches: list[list[IndexArray]] = []
    filled = np.inf
    for members in groups:
        if filled + len(members) ** 2 > BATCH[1] or len(batches[-1]) >= BATCH[0]:
            batches.append([])
            filled = 0.0
        batches[-1].append(members)
        filled += len(members) ** 2
    return batches


def _solve_batch(
    covariances: list[FloatArray], batch: list[IndexArray], l1_penalty: float, tol: float
) -> list[SolvedPart]:
    """Solve the components of one batch, in one thread.

    The last bits of a matrix product depend on the number of threads, and the result must not depend on where it runs.
    """
    with limited_threads(1):
        return [_solve_dense(emp_cov, members, l1_penalty, tol) for emp_cov, members in _emptied(covariances, batch)]


def _emptied(covariances: list[FloatArray], batch: list[IndexArray]) -> Iterator[tuple[FloatArray, IndexArray]]:
    """Yield each covariance and drop it from the list, so that its memory is free once it is solved."""
    for members in batch:
        yield covariances.pop(0), members


def _solve_dense(emp_cov: FloatArray, members: IndexArray, l1_penalty: float, tol: float) -> SolvedPart:
    problem = normal_form(emp_cov, l1_penalty)
    result, _ = solve(problem, None, tol=tol, max_iter=MAX_ITER, started=time.perf_counter(), with_log_det=True)
    row, column = np.nonzero(result.precision)
    return SolvedPart(
        members[row],
        members[column],
        result.precision[row, column],
        result.objective,
        result.gap * max(len(members), abs(result.objective)),
        result.n_iter,
        result.status,
    )


def _large(
    X: Table,
    columns: ColumnMoments,
    screened: Screened,
    groups: list[IndexArray],
    l1_penalty: float,
    tol: float,
    n_jobs: int | None,
    memory: float,
    dense_most: int,
) -> list[SolvedPart]:
    """Solve the components that are too large for dense matrices, by sparse factors.

    Refuse if the pairs above the penalty did not fit in memory, or if a factor would have too many entries.
    """
    n = X.shape[1]
    parts: list[SolvedPart] = []
    reason = ""
    for members in groups:
        if screened.kept_above > l1_penalty:
            reason = f"its pairs above the penalty do not fit into {memory / 1e9:.3g} GB"
            break
        inside = np.zeros(n, dtype=bool)
        inside[members] = True
        try:
            pairs = screened.pairs.where(inside[screened.pairs.first])
            if isinstance(X, PartitionedRows):
                solved = _solve_gathered(X, columns, members, pairs, l1_penalty, tol, memory, n_jobs)
            else:
                solved = solve_sparse(X, columns, members, pairs, l1_penalty, tol, memory, n_jobs)
        except TooMuchFill as error:
            reason = str(error)
            break
        theta = solved.theta
        parts.append(
            SolvedPart(
                members[theta.row],
                members[theta.col],
                theta.data,
                solved.objective,
                solved.gap,
                solved.n_iter,
                solved.status,
            )
        )
    if reason:
        # Where pairs were dropped, those that are held may join too few columns to tell more than that.
        penalty = rounded_up(max(screened.kept_above, penalty_for_components(screened.pairs, n, dense_most)))
        why = (
            f"leaves a component of {max(map(len, groups)):,} columns, too large for dense matrices (at most "
            f"{dense_most:,} here), and {reason}"
        )
        raise PenaltyTooSmall(
            f"l1_penalty={l1_penalty:.3g} {why}: raise l1_penalty to {penalty:g}, from where every component is small "
            "enough, or raise max_memory.",
            why,
            penalty,
        )
    return parts


def _solve_gathered(
    X: PartitionedRows,
    columns: ColumnMoments,
    members: IndexArray,
    pairs: Pairs,
    l1_penalty: float,
    tol: float,
    memory: float,
    n_jobs: int | None,
) -> SparseSolved:
    """Solve a component of a Dask table: fetch its columns, which the solver reads many times, and no others."""
    size = 8.0 * len(members) * len(X)
    if 2.0 * size > memory:
        need = f"its own rows take {2e-9 * size:.3g} GB where they are solved"
        raise TooMuchFill(f"{need}, more than {1e-9 * memory:.3g} GB")
    here = ColumnMoments(columns.mean[members], columns.deviation[members])
    first, second = (np.searchsorted(members, end) for end in (pairs.first, pairs.second))
    own = Pairs(first, second, pairs.value)
    return solve_sparse(X.block(members), here, np.arange(len(members)), own, l1_penalty, tol, memory - size, n_jobs)


def _together(parts: list[SolvedPart], n: int, sizes: IndexArray, tol: float, started: float) -> SparsePrecisionResult:
    entries = np.concatenate([part.value for part in parts])
    where = tuple(np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "column"))
    precision = sparse.coo_array((entries, where), shape=(n, n)).tocsr()
    precision.sort_indices()
    objective = float(sum(part.objective for part in parts))
    gap = float(sum(part.gap for part in parts)) / max(n, abs(objective))
    gap = gap if np.isfinite(gap) else np.inf
    stopped = any(part.status == "max_iter" for part in parts)
    status: Status = "optimal" if gap <= tol else "max_iter" if stopped else "ill_conditioned"
    return SparsePrecisionResult(
        precision=precision,
        objective=objective,
        gap=gap,
        status=status,
        n_components=len(sizes),
        largest_component=int(sizes.max()),
        n_iter=max(part.n_iter for part in parts),
        seconds=time.perf_counter() - started,
        tol=tol,
    )
