"""Misprints and gaps in the paper's text and proof, each with a check that runs.

A check takes a draw (a covariance and rows of it, two precisions, weights) and says of the printed line and of the
corrected one whether it is true there. A line that is right is true in every draw, up to rounding; one draw where it is
not is enough to show that it is misprinted. ``docs/theory.md`` has the proof with all corrections in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigvalsh, expm, sqrtm

from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound, tau
from precisionnet.precision import graphical_lasso, graphical_lasso_terms
from precisionnet.types import FloatArray

ROUNDING = 1e-9
"""Relative error of a difference that counts as none."""
SIZE, ROWS = 5, 40


@dataclass(frozen=True)
class Draw:
    """Everything that the lines of the proof speak of; ``theta`` and ``theta_task`` are any two matrices."""

    cov_true: FloatArray
    emp_cov: FloatArray
    theta: FloatArray
    theta_task: FloatArray
    task_weight: float
    coupling: float
    l1_penalty: float

    @cached_property
    def theta_true(self) -> FloatArray:
        """The inverse of the true covariance."""
        return np.linalg.inv(self.cov_true)

    @cached_property
    def k_min(self) -> float:
        """Smallest eigenvalue of the true covariance."""
        return float(eigvalsh(self.cov_true)[0])

    @property
    def error(self) -> FloatArray:
        """Theta less the truth."""
        return self.theta - self.theta_true

    @property
    def distance(self) -> float:
        """Frobenius norm of the error."""
        return float(np.linalg.norm(self.error))

    @property
    def away(self) -> FloatArray:
        """The truth less theta_task."""
        return self.theta_true - self.theta_task

    def loss(self, theta: FloatArray) -> float:
        """The loss of Step 1, problem (8)."""
        lasso = graphical_lasso_terms(theta, self.emp_cov, self.l1_penalty).total
        return (1.0 - self.task_weight) * lasso + 0.5 * self.coupling * _square(theta - self.theta_task)

    def minimiser(self, spectral_bound: float | None = None, tol: float = 1e-6) -> FloatArray:
        """The solution of Step 1, to a relative gap."""
        return graphical_lasso(
            self.emp_cov,
            self.l1_penalty,
            anchor=self.theta_task,
            coupling=self.coupling / (1.0 - self.task_weight),
            spectral_bound=spectral_bound,
            tol=tol,
        ).precision


Check = Callable[[Draw], tuple[bool, bool]]
"""A draw -> whether the printed line is true there, and whether the corrected one is."""


@dataclass(frozen=True)
class Erratum:
    """One place of the paper that is not as it should be.

    Parameters
    ----------
    where : str
        The place.
    printed : str
        What stands there.
    corrected : str
        What should.
    check : callable
        A draw -> whether the printed line is true there, and whether the corrected one is.

    Examples
    --------
    >>> from precisionnet.paper.errata import ERRATA
    >>> ERRATA[0].where
    'Preliminaries'
    """

    where: str
    printed: str
    corrected: str
    check: Check


@dataclass(frozen=True)
class Checked:
    """In how many draws an erratum's lines are not true.

    Parameters
    ----------
    erratum : Erratum
        The place.
    printed_fails : float
        Share of the draws in which the printed line is not true.
    corrected_fails : float
        Share of the draws in which the corrected line is not true.

    Examples
    --------
    >>> from precisionnet.paper.errata import check_errata
    >>> checked = check_errata(10)
    >>> max(one.corrected_fails for one in checked)
    0.0
    """

    erratum: Erratum
    printed_fails: float
    corrected_fails: float


def check_errata(n_draws: int = 100, random_state: int = 0) -> list[Checked]:
    """Try every printed line, and what should stand there, on random draws.

    Parameters
    ----------
    n_draws : int, default=100
        Number of draws.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    list of Checked
        One for each place, in the paper's order.

    Examples
    --------
    >>> from precisionnet.paper.errata import check_errata
    >>> any(one.corrected_fails for one in check_errata(3))
    False
    """
    rng = np.random.default_rng(random_state)
    draws = [draw(rng) for _ in range(n_draws)]
    found = []
    for erratum in ERRATA:
        true = np.array([erratum.check(one) for one in draws])
        printed, corrected = 1.0 - true.mean(axis=0)
        found.append(Checked(erratum, float(printed), float(corrected)))
    return found


def draw(rng: np.random.Generator) -> Draw:
    """Draw a covariance in some unit, rows of it, a theta near or far, and a theta_task on its side of the truth."""
    unit = 10.0 ** rng.uniform(-2.0, 2.0)
    basis = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    cov_true = unit * (basis * rng.uniform(0.5, 1.0, SIZE)) @ basis.T
    rows = rng.multivariate_normal(np.zeros(SIZE), cov_true, ROWS)
    theta_true = np.linalg.inv(cov_true)
    root = np.real(sqrtm(theta_true))
    direction = _symmetric(rng, rank_one=rng.random() < 0.5)
    theta = root @ expm(rng.choice([0.1, 1.0, 2.5]) * direction) @ root
    error = theta - theta_true
    theta_task = theta_true + rng.uniform(0.0, 2.0) * error + float(np.linalg.norm(error)) * _symmetric(rng)
    emp_cov = rows.T @ rows / ROWS
    return Draw(
        cov_true=cov_true,
        emp_cov=emp_cov,
        theta=0.5 * (theta + theta.T),
        theta_task=theta_task,
        task_weight=rng.uniform(0.1, 0.9),
        coupling=unit**2 * 10.0 ** rng.uniform(-1.0, 1.0),
        l1_penalty=rng.uniform(0.0, 1.0) * float(np.abs(emp_cov - np.diag(np.diag(emp_cov))).max()),
    )


def _preliminaries(one: Draw) -> tuple[bool, bool]:
    """Whether the inverse of this covariance is the true precision."""
    identity = np.eye(SIZE)
    return tuple(np.allclose(np.linalg.inv(c) @ one.cov_true, identity) for c in (one.emp_cov, one.cov_true))  # type: ignore[return-value]


def _eigenvectors(one: Draw) -> tuple[bool, bool]:
    """Whether the estimate commutes with C: matrices with common eigenvectors do."""
    estimates = (graphical_lasso(one.emp_cov, penalty).precision for penalty in (one.l1_penalty, 0.0))
    products = [theta @ one.emp_cov for theta in estimates]
    printed, corrected = (bool(np.linalg.norm(p - p.T) < 1e-5 * np.linalg.norm(p)) for p in products)
    return printed, corrected


def _minimised_over(one: Draw) -> tuple[bool, bool]:
    """Whether theta as it came is as good as the best theta: then (7) need not be minimised over it."""
    now, best = one.loss(one.theta), one.loss(one.minimiser())
    return now <= best + ROUNDING * abs(best), best <= now + ROUNDING * abs(now)


def _listing(one: Draw) -> tuple[bool, bool]:
    """Whether line 4 follows the gradient of (8) without its l1 term, and lines 4 and 5 stay where (8) is lowest.

    The printed lines are true where either of them is, the other one corrected.
    """
    (gradient, corrected_gradient), right = _gradients(one), 1.0 - one.task_weight
    printed = gradient or _stays(one, right, 1.0)
    return printed, corrected_gradient and _stays(one, right, right)


def _gradients(one: Draw) -> tuple[bool, bool]:
    """Whether line 4 as printed, and corrected, is the slope of the smooth part of (8), taken numerically."""
    smooth = replace(one, l1_penalty=0.0)
    step = 1e-5 * one.error / one.distance * float(eigvalsh(one.theta)[0])
    slope = (smooth.loss(one.theta + step) - smooth.loss(one.theta - step)) / 2.0
    data, tie = one.emp_cov - np.linalg.inv(one.theta), one.coupling * (one.theta - one.theta_task)
    scale = float(np.linalg.norm(step)) * (np.linalg.norm(data) + np.linalg.norm(tie))
    printed, corrected = (
        bool(abs(np.sum((weight * data + tie) * step) - slope) < 1e-4 * scale)
        for weight in (1.0, 1.0 - one.task_weight)
    )
    return printed, corrected


def _stays(one: Draw, weight: float, threshold: float) -> bool:
    """Whether lines 4 and 5 with these factors of the data term and of eta lambda leave the minimiser where it is."""
    theta = one.minimiser(tol=1e-12)
    data, tie = one.emp_cov - np.linalg.inv(theta), one.coupling * (theta - one.theta_task)
    eta = 0.01 * float(eigvalsh(theta)[0]) ** 2
    moved = theta - eta * (weight * data + tie)
    thinned = np.sign(moved) * np.maximum(np.abs(moved) - eta * threshold * one.l1_penalty, 0.0)
    moved = np.where(np.eye(SIZE, dtype=bool), moved, thinned)
    return bool(np.linalg.norm(moved - theta) < 1e-4 * eta * (np.linalg.norm(data) + np.linalg.norm(tie)))


def _feasible(one: Draw) -> tuple[bool, bool]:
    """Whether the minimiser under the bound M has Q <= 0: with M below the truth's norm, and above."""
    norm, truth = float(eigvalsh(one.theta_true)[-1]), one.loss(one.theta_true)
    printed, corrected = (
        bool(one.loss(one.minimiser(share * norm)) <= truth + 1e-6 * abs(truth)) for share in (0.3, 1.5)
    )
    return printed, corrected


def _sign(one: Draw) -> tuple[bool, bool]:
    """Whether the expansion is the difference of losses."""
    difference = one.loss(one.theta) - one.loss(one.theta_true)
    without = difference + 0.5 * one.coupling * _square(one.away)
    printed, corrected = (
        bool(np.isclose(without - 0.5 * one.coupling * _square(other), difference, rtol=1e-6))
        for other in (one.theta_true + one.theta_task, one.away)
    )
    return printed, corrected


def _second_order(one: Draw, cov: FloatArray, tau: float) -> bool:
    """Whether log det theta - log det theta_0 <= tr(cov error) - k_min^2 ||error||^2 / (2 tau)."""
    grown = np.linalg.slogdet(one.theta)[1] - np.linalg.slogdet(one.theta_true)[1]
    linear = float(np.sum(cov * one.error))
    return bool(grown <= linear - one.k_min**2 * one.distance**2 / (2.0 * tau) + ROUNDING * (abs(linear) + SIZE))


def _tau(one: Draw) -> tuple[bool, bool]:
    printed = max(4.0, 1.0 + one.k_min * one.distance**2)
    return _second_order(one, one.cov_true, printed), _second_order(one, one.cov_true, tau(one.k_min, one.distance))


def _term_2(one: Draw) -> tuple[bool, bool]:
    right = tau(one.k_min, one.distance)
    return _second_order(one, one.emp_cov, right), _second_order(one, one.cov_true, right)


def _term_4(one: Draw) -> tuple[bool, bool]:
    term = 0.5 * one.coupling * (_square(one.theta - one.theta_task) - _square(one.away))
    middle = one.coupling * float(np.sum(one.away * one.error))
    slack = ROUNDING * (abs(term) + abs(middle))
    return term >= -middle - slack, term >= middle - slack


def _noise(one: Draw) -> tuple[float, float]:
    """c_1 (1 + 1 / epsilon_1) r_T and c_2 r_T for a penalty as large as the noise off the diagonal."""
    return 2.0 * _off_diagonal_noise(one) * np.sqrt(SIZE * (SIZE - 1)), float(np.linalg.norm(np.diag(_difference(one))))


def _off_diagonal_noise(one: Draw) -> float:
    difference = _difference(one)
    return float(np.abs(difference - np.diag(np.diag(difference))).max())


def _difference(one: Draw) -> FloatArray:
    return one.emp_cov - one.cov_true


def _first_condition(one: Draw) -> tuple[bool, bool]:
    """Whether a distance just beyond the condition makes the first bracket positive."""
    off, diagonal = _noise(one)
    slope = one.k_min**2 / (4.0 * tau(one.k_min, one.distance))
    printed, corrected = (
        slope * (1.0 + 1e-6) * needed / slope - off - diagonal > 0 for needed in (off - diagonal, off + diagonal)
    )
    return bool(printed), bool(corrected)


def _second_condition(one: Draw) -> tuple[bool, bool]:
    """Whether a distance just beyond the condition makes the second bracket positive."""
    curvature = one.k_min**2 / (4.0 * tau(one.k_min, one.distance))
    pull = one.coupling * np.abs(eigvalsh(one.away)).sum() * (1.0 / one.k_min + eigvalsh(one.theta)[-1])
    printed, corrected = (
        (1.0 - one.task_weight) * curvature * (1.0 + 1e-6) * square - pull > 0
        for square in (pull / curvature, pull / curvature / (1.0 - one.task_weight))
    )
    return bool(printed), bool(corrected)


def _fixed_ball(one: Draw) -> tuple[bool, bool]:
    """Whether the condition holds for all larger distances, tau growing along; or the bound is the minimiser's own."""
    needed = sum(_noise(one))
    far = np.geomspace(1.0, 1e9, 40) / one.k_min
    printed = all(one.k_min**2 * r / (4.0 * tau(one.k_min, r)) > needed for r in far)
    covered = replace(one, l1_penalty=_off_diagonal_noise(one))
    away = float(np.linalg.norm(one.away))
    terms = BoundTerms(one.k_min, needed, one.task_weight, one.coupling, away)
    error = float(np.linalg.norm(covered.minimiser() - one.theta_true))
    return printed, error <= linear_bound(terms) * (1.0 + 1e-6)


def _square(matrix: FloatArray) -> float:
    return float(np.sum(matrix * matrix))


def _symmetric(rng: np.random.Generator, *, rank_one: bool = False) -> FloatArray:
    """A random symmetric matrix of Frobenius norm one; where asked, v v' of a vector v."""
    matrix = rng.standard_normal((SIZE, 1 if rank_one else SIZE))
    matrix = matrix @ matrix.T if rank_one else matrix + matrix.T
    return matrix / float(np.linalg.norm(matrix))


ERRATA: tuple[Erratum, ...] = (
    Erratum("Preliminaries", "Theta_0 = C^-1", "Theta_0 = C_0^-1: the truth is no estimate", _preliminaries),
    Erratum(
        "Connection to PCA",
        "Theta shares the eigenvectors of C",
        "only C^-1 does; a graphical lasso with a penalty does not",
        _eigenvectors,
    ),
    Erratum(
        "Problem (7)",
        "minimised over h and Theta_task",
        "minimised over h, Theta_task and Theta, as Step 1 does",
        _minimised_over,
    ),
    Erratum(
        "Algorithm 1, lines 4 and 5",
        "C - (Theta + epsilon I)^-1, threshold eta lambda",
        "both times 1 - alpha, as in (8)",
        _listing,
    ),
    Erratum(
        "Theorem 1, assumptions",
        "nothing is said of M",
        "M >= ||Theta_0||_2: else Theta_0 is not feasible and Q(Theta^(i)) <= 0 does not follow",
        _feasible,
    ),
    Erratum(
        "Appendix, expansion of Q", "- gamma/2 ||Theta_0 + Theta_task||_F^2", "||Theta_0 - Theta_task||_F^2", _sign
    ),
    Erratum("Appendix, Term 2, tau", "1 + k_min ||Delta||_F^2", "(1 + k_min ||Delta||_F)^2", _tau),
    Erratum("Appendix, Term 2, trace", "tr(C Delta)", "tr(C_0 Delta)", _term_2),
    Erratum(
        "Appendix, Term 4, middle line",
        "gamma tr((Theta_0 - Theta_task)(Theta_0 - Theta))",
        "gamma tr((Theta_0 - Theta_task)(Theta - Theta_0))",
        _term_4,
    ),
    Erratum("Appendix, first condition", "c_1 (1 + 1/epsilon_1) r_T - c_2 r_T", "+ c_2 r_T", _first_condition),
    Erratum(
        "Appendix, second condition",
        "4 tau k_min^-2 c_3 gamma ||.||_*",
        "divided by 1 - alpha",
        _second_condition,
    ),
    Erratum(
        "Appendix, conclusion",
        "tau holds ||Delta||_F, which is what is bounded: the condition fails for large ||Delta||_F",
        "by convexity tau may be taken on a fixed ball",
        _fixed_ball,
    ),
)
"""Every place, in the paper's order."""
