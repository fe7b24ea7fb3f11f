"""What is solved: a covariance or rows, and one penalty or a path of them; each built when its turn comes.

``catalogue`` is the one list. A further problem is one line there: a name, its number of variables, and a function
without arguments that returns the ``Problem`` or raises ``Missing`` with a sentence where its data are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.precision import hard
from benchmarks.precision.abide import abide_correlation
from benchmarks.precision.graphs import DEGREE, sample_correlation, sparse_precision
from benchmarks.precision.measure import CERTIFIED, prove, relative_gap, relative_gap_from_rows
from benchmarks.scale.solver import PENALTY, draw

Answer = np.ndarray | sparse.sparray
NO_MATRIX = np.empty((0, 0))


@dataclass(frozen=True)
class Problem:
    """A covariance, its penalties (more than one: a path, largest first) and, for the regularised variant, the tie."""

    name: str
    emp_cov: np.ndarray
    """Empty where it has no room; then there are rows and one penalty."""
    l1_penalties: np.ndarray
    coupling: float = 0.0
    anchor: np.ndarray | None = None
    init: np.ndarray | None = None
    lower_bounds: np.ndarray | None = None
    """One proved lower bound of the optimum a penalty."""
    asked: float = CERTIFIED
    """Relative gap at which it counts as solved."""
    rows: np.ndarray | None = None
    """What the covariance is of, for solvers that take it."""

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.emp_cov) if self.rows is None else self.rows.shape[1]

    @property
    def has_covariance(self) -> bool:
        """Whether there is room for one."""
        return len(self.emp_cov) > 0

    def save(self, path: Path) -> None:
        """To one file."""
        np.savez(path, **{name: value for name, value in vars(self).items() if value is not None})

    @classmethod
    def load(cls, path: Path) -> Problem:
        """From that file."""
        with np.load(path) as stored:
            fields = dict(stored)
        scalars = {"name": str, "coupling": float, "asked": float}
        return cls(**(fields | {name: kind(fields[name]) for name, kind in scalars.items()}))

    def gap(self, answers: Sequence[Answer]) -> float:
        """The largest relative gap: along a path every penalty must be solved."""
        if not self.has_covariance:
            assert self.rows is not None
            return relative_gap_from_rows(answers[0], self.rows, float(self.l1_penalties[0]))
        answers = [theta.toarray() if sparse.issparse(theta) else theta for theta in answers]
        bounds = np.full(len(answers), -np.inf) if self.lower_bounds is None else self.lower_bounds
        return max(
            relative_gap(theta, self.emp_cov, float(l1), self.coupling, self.anchor, float(bound))
            for theta, l1, bound in zip(answers, self.l1_penalties, bounds, strict=True)
        )

    def bounded(self) -> Problem:
        """With lower bounds proved from an answer far more accurate than is asked for; never timed."""
        if not self.has_covariance:
            return self
        from precisionnet.precision import graphical_lasso

        tie = {"coupling": self.coupling, "anchor": self.anchor}
        bounds = []
        for l1 in self.l1_penalties:
            theta = graphical_lasso(self.emp_cov, float(l1), tol=FAR_BEYOND, init=self.init, **tie).precision
            bounds.append(prove(theta, self.emp_cov, float(l1), **tie).lower_bound)
        return replace(self, lower_bounds=np.array(bounds))


class Missing(Exception):
    """The data of a problem are not here; the sentence says which."""


@dataclass(frozen=True)
class Case:
    """A problem by name, before it is built."""

    name: str
    n: int
    build: Callable[[], Problem]
    limit: float = float("inf")
    """Most seconds that a solver gets here, whatever ``--limit`` says."""


SPARSE_SIZES = 50, 200, 500, 1000, 2000, 5000, 10_000
LARGEST_TRUE = 2000
"""Of ``sparse_true``, whose penalty takes many solves to find."""
ROWS_SIZES = {
    "blocks": (1000, 10_000, 20_000, 100_000),
    "band": (20_000, 100_000),
    "tree": (20_000, 100_000),
    "grid": (19_881, 99_856),
}
"""Truths of ``benchmarks.scale.solver`` that are given by rows."""
ROWS_QUICK = {"blocks": (60,)}
MOST_DENSE = 10_000
"""Largest covariance that is handed out beside rows."""
HARD_SIZES = 100, 300
HARD_SHARES = 0.1, 0.01
HARD_SECONDS = 15.0
REGULARISED_SIZE = 1000
QUICK_SIZE = 24
N_PENALTIES, PATH_SECONDS = 20, 120.0
PATH_SHARES = 0.1, 0.01
"""Where a path ends, relative to the penalty that empties the graph; scikit-learn raises on its way to the second."""
FAR_BEYOND = 1e-12
COUPLING = 20.0
"""The default coupling 10 over 1 - task_weight = 1/2, as Step 1 passes it."""
EPOCH = 3e-4, 4e-4, 1e-10
"""Distance of the anchor from theta and its move in an epoch, both relative to theta, as in a fit of ABIDE with the
defaults; and the gap that Step 1 asks for."""
FAR = 1e-2, 1e-2, CERTIFIED
"""A move so long that more than rounding changes."""


def catalogue(quick: bool) -> Iterator[Case]:
    """Every problem that solvers share; ``large.py`` and ``first_call.py`` measure two further rows of ours."""
    for n in (QUICK_SIZE,) if quick else SPARSE_SIZES:
        yield Case("sparse_rule", n, partial(sparse_graph, n))
        if n <= LARGEST_TRUE:
            yield Case("sparse_true", n, partial(at_true_sparsity, n))
    for share in PATH_SHARES:
        yield Case(f"abide_path_{share:g}", 68, partial(abide_path, share), PATH_SECONDS)
    n = QUICK_SIZE if quick else REGULARISED_SIZE
    for name, setting in {"regularised_warm": EPOCH, "regularised_far": FAR}.items():
        yield Case(name, n, partial(regularised, name, n, *setting))
    for family, drawn in hard.FAMILIES.items():
        yield from hard_cases(family, drawn, quick)
    for truth, sizes in ROWS_QUICK.items() if quick else ROWS_SIZES.items():
        yield from (Case(f"from_rows_{truth}", n, partial(from_rows, truth, n)) for n in sizes)


def hard_cases(family: str, drawn: hard.Family, quick: bool) -> Iterator[Case]:
    """One family at every size and share."""
    for n in (QUICK_SIZE,) if quick else HARD_SIZES:
        for share in HARD_SHARES[:1] if quick else HARD_SHARES:
            name = f"{family}_{share:g}"
            yield Case(name, n, partial(hard_problem, name, drawn, n, share), HARD_SECONDS)


def rule_penalty(n: int, n_rows: int) -> float:
    """sqrt(log N / T)."""
    return float(np.sqrt(np.log(n) / n_rows))


def sparse_graph(n: int) -> Problem:
    """Average degree 4, T = 2N, the penalty by rule."""
    rng = np.random.default_rng(n)
    emp_cov = sample_correlation(sparse_precision(n, rng), 2 * n, rng)
    return Problem("sparse_rule", emp_cov, np.array([rule_penalty(n, 2 * n)]))


def at_true_sparsity(n: int) -> Problem:
    """The same covariance with the penalty whose answer has as many edges as the truth."""
    emp_cov = sparse_graph(n).emp_cov
    return Problem("sparse_true", emp_cov, np.array([true_sparsity_penalty(emp_cov, DEGREE * n // 2)]))


def true_sparsity_penalty(emp_cov: np.ndarray, n_edges: int, slack: float = 0.01, tol: float = 1e-6) -> float:
    """By bisection with our own solver, to within ``slack`` of the number of edges; never timed."""
    from precisionnet.precision import graphical_lasso

    off_diagonal = np.abs(emp_cov[np.triu_indices(len(emp_cov), 1)])
    low, high = np.log(1e-3 * off_diagonal.max()), np.log(off_diagonal.max())
    # Marginal correlations count nearly as many edges: the first guess is the penalty that leaves as many of those.
    middle = np.log(np.partition(off_diagonal, -n_edges)[-n_edges])
    for _ in range(40):
        theta = graphical_lasso(emp_cov, float(np.exp(middle)), tol=tol).precision
        found = (np.count_nonzero(theta) - len(theta)) // 2
        if abs(found - n_edges) <= slack * n_edges:
            break
        low, high = (middle, high) if found > n_edges else (low, middle)
        middle = 0.5 * (max(low, middle - 0.3) + min(high, middle + 0.3))
    return float(np.exp(middle))


def abide_path(share: float) -> Problem:
    """The real table, twenty penalties evenly spaced on a log scale below the one that empties the graph."""
    emp_cov = abide_correlation()
    if isinstance(emp_cov, str):
        raise Missing(emp_cov)
    largest = np.abs(emp_cov - np.eye(len(emp_cov))).max()
    return Problem(f"abide_path_{share:g}", emp_cov, np.geomspace(largest, share * largest, N_PENALTIES))


def regularised(name: str, n: int, distance: float, move: float, asked: float) -> Problem:
    """Step 1 of the joint method: tied to a dense matrix near theta, started at the last epoch's answer.

    Solved once for an anchor; what is timed is the next epoch, whose anchor has moved.
    """
    from precisionnet.precision import graphical_lasso

    plain = sparse_graph(n)
    l1 = float(plain.l1_penalties[0])
    rng = np.random.default_rng(n + 1)
    theta = graphical_lasso(plain.emp_cov, l1).precision
    before = theta + symmetric_noise(n, distance * np.linalg.norm(theta), rng)
    init = graphical_lasso(plain.emp_cov, l1, anchor=before, coupling=COUPLING, tol=asked).precision
    anchor = before + symmetric_noise(n, move * np.linalg.norm(theta), rng)
    return Problem(name, plain.emp_cov, plain.l1_penalties, COUPLING, anchor, init, asked=asked)


def symmetric_noise(n: int, size: float, rng: np.random.Generator) -> np.ndarray:
    """A random symmetric matrix of Frobenius norm ``size``."""
    noise = rng.standard_normal((n, n))
    noise = noise + noise.T
    return size / np.linalg.norm(noise) * noise


def hard_problem(name: str, drawn: hard.Family, n: int, share: float) -> Problem:
    """A family of ``hard.py``; the penalty is a share of the one that empties the graph."""
    emp_cov = drawn(n, np.random.default_rng(n))
    off_diagonal = np.abs(emp_cov - np.diag(np.diag(emp_cov))).max()
    return Problem(name, emp_cov, np.array([share * off_diagonal]))


def from_rows(truth: str, n: int) -> Problem:
    """A thousand rows; up to ``MOST_DENSE`` columns also their covariance, for solvers that take no rows."""
    rows = draw(truth, n)
    emp_cov = rows.T @ rows / len(rows) if n <= MOST_DENSE else NO_MATRIX
    return Problem(f"from_rows_{truth}", emp_cov, np.array([PENALTY[truth]]), rows=rows)
