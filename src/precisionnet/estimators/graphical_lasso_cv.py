"""The graphical lasso with a penalty chosen from the rows themselves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from precisionnet.arguments import check_choice, check_count, check_number
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.graphical_base import PRECOMPUTED, BaseGraphicalLasso
from precisionnet.estimators.graphical_checks import checked_penalties
from precisionnet.precision import (
    CovarianceEstimate,
    count_edges,
    cross_validate,
    select_by_ebic,
    stars,
)
from precisionnet.types import FloatArray

SELECTIONS = ("cv", "ebic", "stars")

NO_EDGE = {
    "cv": "no edge helps to describe the rows left out; bring more rows",
    "ebic": "no edge is worth its cost; bring more rows, lower ebic_gamma, or try n_reweights=2 or another selection",
    "stars": "no edge is stable over the subsamples; bring more rows, or raise stars_threshold",
}
"""What an empty graph means, and what to do about it."""


@dataclass(frozen=True)
class _Choice:
    index: int
    curves: dict[str, Any]
    n_unconverged: Any


class GraphicalLassoCV(BaseGraphicalLasso):
    """:class:`GraphicalLasso` with the penalty chosen by cross-validation, eBIC or StARS.

    Which one: "cv" for a model of new rows (its graph has many small edges), "ebic" for a graph with few false edges,
    "stars" for a graph that other rows of the same kind would give, too.

    Parameters
    ----------
    l1_penalties : how many to try, from ``l1_max_`` down to a hundredth of it, or a list of them.
    selection : "cv", "ebic" or "stars".
    cv : folds, as scikit-learn has them (None: 5); each fold tries the same shares of its own l1_max, so that nothing
        of its path depends on the rows left out.
    ebic_gamma : weight of the number of possible graphs; 0 is the ordinary BIC.
    stars_threshold, n_subsamples : instability allowed, and subsamples to measure it on.
    n_samples : rows behind a precomputed covariance, for "ebic".
    n_jobs : workers, as joblib has them; they do not change the result.
    random_state : draws the subsamples of "stars".

    The others are those of :class:`GraphicalLasso`.

    Attributes
    ----------
    l1_penalty_ : the chosen penalty.
    cv_results_ : arrays over the penalties, largest first: ``l1_penalty``, ``n_edges`` (mean over folds or subsamples)
        and what was chosen by: ``ebic``, ``instability`` (NaN where it was not needed), or ``mean_score`` and
        ``std_score`` with each fold's ``split0_score``, ``split0_l1_penalty`` and ``split0_n_edges``.

    The others are those of :class:`GraphicalLasso`, fitted to all rows with ``l1_penalty_``.
    """

    _to_more_edges = "pass l1_penalties below that"
    _to_fewer_edges = "set another selection, or pass larger l1_penalties"

    def __init__(
        self,
        *,
        l1_penalties: Any = 20,
        selection: str = "cv",
        cv: Any = None,
        ebic_gamma: float = 0.5,
        stars_threshold: float = 0.05,
        n_subsamples: int = 20,
        n_samples: int | None = None,
        covariance: str = "empirical",
        missing: str = "error",
        known_zeros: Any = None,
        penalize_diagonal: bool = False,
        n_reweights: int = 0,
        scale_free: bool = False,
        assume_centered: bool = False,
        tol: float = 1e-6,
        max_iter: int = 2000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.l1_penalties = l1_penalties
        self.selection = selection
        self.cv = cv
        self.ebic_gamma = ebic_gamma
        self.stars_threshold = stars_threshold
        self.n_subsamples = n_subsamples
        self.n_samples = n_samples
        self.covariance = covariance
        self.missing = missing
        self.known_zeros = known_zeros
        self.penalize_diagonal = penalize_diagonal
        self.n_reweights = n_reweights
        self.scale_free = scale_free
        self.assume_centered = assume_centered
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose a penalty and learn the precision matrix of the rows of X; ``y`` only reaches the splitter."""
        try:
            self._check_parameters()
            rows = self._checked(X, reset=True)
            notes = self._select(rows, y, self._estimate(rows))
        except BaseException:
            self._forget()
            raise
        for note in notes:
            warnings.warn(note, PrecisionNetWarning, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checked_penalties(self.l1_penalties)
        check_choice("selection", self.selection, SELECTIONS)
        check_number("ebic_gamma", self.ebic_gamma, 0.0, 1.0, high_allowed=True)
        check_number("stars_threshold", self.stars_threshold, 0.0, 0.5, low_allowed=False)
        check_count("n_subsamples", self.n_subsamples, 2)
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples, 1)
        if self.covariance != PRECOMPUTED:
            return
        if self.selection != "ebic":
            raise InputError(
                f"selection={self.selection!r} needs rows to leave out, and covariance='precomputed' has none: set "
                "selection='ebic' and n_samples, or pass rows."
            )
        if self.n_samples is None:
            raise InputError(
                "selection='ebic' needs the number of rows behind a precomputed covariance: set n_samples."
            )

    def _select(self, X: FloatArray, y: Any, estimate: CovarianceEstimate) -> list[str]:
        recipe = self._recipe
        wanted = checked_penalties(self.l1_penalties)
        recipe.check(estimate.emp_cov)
        penalties = recipe.grid(estimate.emp_cov, wanted) if isinstance(wanted, int) else wanted
        choice = getattr(self, f"_by_{self.selection}")(X, y, estimate, penalties)
        result = recipe.solve(estimate.emp_cov, float(penalties[choice.index]))
        notes = self._keep(estimate, result)
        self.l1_penalty_ = float(penalties[choice.index])
        self.cv_results_ = {"l1_penalty": penalties, **choice.curves}
        if choice.n_unconverged[choice.index] and result.converged:
            notes.append(
                f"{int(choice.n_unconverged[choice.index])} of the solves behind the choice of l1_penalty_="
                f"{self.l1_penalty_:.3g} stopped short of tol={self.tol:g}: raise max_iter, or leave out the smallest "
                "l1_penalties."
            )
        return notes + (self._about_the_edge(choice.index, penalties) or self._about_the_graph(self.l1_penalty_))

    def _by_cv(self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray) -> _Choice:
        try:
            splits = list(check_cv(self.cv).split(X, y))
        except ValueError as error:
            cv = "cv=None (5 folds)" if self.cv is None else f"cv={self.cv!r}"
            raise InputError(f"{cv} does not split these rows: {error}") from error
        wanted = checked_penalties(self.l1_penalties)
        folds = cross_validate(X, splits, self._recipe, wanted, names=column_names(self), n_jobs=self.n_jobs)
        scores = np.array([fold.scores for fold in folds])
        curves = {
            "n_edges": np.mean([fold.n_edges for fold in folds], axis=0),
            "mean_score": scores.mean(axis=0),
            "std_score": scores.std(axis=0),
        }
        for number, fold in enumerate(folds):
            curves[f"split{number}_score"] = fold.scores
            curves[f"split{number}_l1_penalty"] = fold.l1_penalties
            curves[f"split{number}_n_edges"] = fold.n_edges
        n_unconverged = np.sum([~fold.converged for fold in folds], axis=0)
        return _Choice(int(np.argmax(curves["mean_score"])), curves, n_unconverged)

    def _by_ebic(self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray) -> _Choice:
        path = self._recipe.path(estimate.emp_cov, penalties)
        n_samples = self.n_samples if self.covariance == PRECOMPUTED else estimate.n_samples
        chosen = select_by_ebic(path, estimate.emp_cov, int(n_samples or 0), float(self.ebic_gamma))
        curves = {"n_edges": np.array([count_edges(result.precision) for result in path]), "ebic": chosen.scores}
        return _Choice(chosen.index, curves, np.array([int(not result.converged) for result in path]))

    def _by_stars(self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray) -> _Choice:
        chosen = stars(
            X,
            penalties,
            threshold=float(self.stars_threshold),
            n_subsamples=int(self.n_subsamples),
            random_state=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_jobs=self.n_jobs,
            path=partial(self._recipe.path_of_rows, names=column_names(self)),
        )
        return _Choice(
            chosen.index, {"n_edges": chosen.n_edges, "instability": chosen.instability}, chosen.n_unconverged
        )

    def _about_the_edge(self, index: int, penalties: FloatArray) -> list[str]:
        """A penalty at the end of the grid may have a better one beyond it."""
        chose = f"selection={self.selection!r} chose the"
        if len(penalties) < 2:
            return []
        if index == 0 and self.n_edges_ == 0:
            return [
                f"{chose} largest penalty ({self.l1_penalty_:.3g}), whose graph is empty: it finds no structure in "
                f"these rows, as {NO_EDGE[self.selection]}."
            ]
        if index == 0:
            return [
                f"{chose} largest of l1_penalties ({self.l1_penalty_:.3g}): a larger one may be better; extend the "
                f"list up to l1_max_={self.l1_max_:.3g}."
            ]
        if index == len(penalties) - 1 and self.l1_penalty_ > 0.0:
            lower = f"np.geomspace({penalties[0]:.3g}, {self.l1_penalty_ / 10:.2g}, 30)"
            return [
                f"{chose} smallest penalty of its grid ({self.l1_penalty_:.3g}): a smaller one may be better; pass "
                f"l1_penalties that go lower, such as {lower}."
            ]
        return []
