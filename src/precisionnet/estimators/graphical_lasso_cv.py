"""The graphical lasso with a penalty chosen from the rows themselves, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from precisionnet.arguments import check_choice, check_count, check_number
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.graphical_base import PRECOMPUTED, BaseGraphicalLasso, FittedGraphicalLasso
from precisionnet.precision import CovarianceEstimate, count_edges, select_by_ebic, stars
from precisionnet.precision.selection import cross_validate
from precisionnet.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

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
    selection_frequency: FloatArray | None = None


class GraphicalLassoCV(BaseGraphicalLasso):
    """Sparse precision matrix with a penalty chosen by cross-validation, eBIC or StARS.

    Which selection: "cv" for a model of new rows (its graph has many small edges), "ebic" for a graph with few false
    edges, "stars" for a graph that other rows of the same kind would give, too.

    Parameters
    ----------
    l1_penalties : int or array-like, default=20
        How many penalties to try, from ``l1_max_`` down to a hundredth of it, or a list of them.
    selection : {"cv", "ebic", "stars"}, default="cv"
        How the penalty is chosen.
    cv : int, cross-validation splitter or iterable, default=None
        Folds of "cv", as in scikit-learn; None makes 5. Each fold tries the same shares of its own largest penalty, so
        that nothing of its path depends on the rows left out.
    ebic_gamma : float, default=0.5
        Weight of the number of possible graphs in "ebic"; 0 is the ordinary BIC.
    stars_threshold : float, default=0.05
        Instability that "stars" allows, between 0 and 0.5.
    n_subsamples : int, default=20
        Subsamples on which "stars" measures it.
    n_samples : int, default=None
        Rows behind a precomputed covariance, for "ebic".
    covariance : {"empirical", "ledoit_wolf", "oas", "nonparanormal", "precomputed"}, default="empirical"
        What the covariance is, as for :class:`GraphicalLasso`.
    missing : {"error", "pairwise", "em"}, default="error"
        What NaN means, as for :class:`GraphicalLasso`.
    known_zeros : array-like of bool of shape (n_features, n_features), default=None
        Mask, True where ``theta_ij`` must be zero.
    penalize_diagonal : bool, default=False
        Whether the penalty is on the diagonal, too.
    n_reweights : int, default=0
        Rounds of the adaptive variant, in which strong edges are shrunk less.
    scale_free : bool, default=False
        Whether correlations are penalised, so that the columns' units do not matter.
    assume_centered : bool, default=False
        Whether the columns have mean zero.
    tol : float, default=1e-6
        Proved relative gap to the optimum at which the solver stops.
    max_iter : int, default=2000
        Largest number of sweeps of the solver.
    n_jobs : int, default=None
        Workers, as joblib has them; they do not change the result.
    random_state : int or numpy.random.RandomState, default=None
        Draws the subsamples of "stars".

    Attributes
    ----------
    l1_penalty_ : float
        The chosen penalty.
    cv_results_ : dict of ndarray
        Arrays over the penalties, largest first: ``l1_penalty``, ``n_edges`` (mean over folds or subsamples) and what
        was chosen by: ``ebic``, ``instability`` (NaN where it was not needed), or ``mean_score`` and ``std_score`` with
        each fold's ``split0_score``, ``split0_l1_penalty`` and ``split0_n_edges``.
    selection_frequency_ : ndarray of shape (n_features, n_features)
        Share of the subsamples in which two columns are joined at ``l1_penalty_``, zero on the diagonal; only with
        ``selection="stars"``. ``to_edge_frame`` has it as a column.
    precision_ : ndarray of shape (n_features, n_features)
        The precision matrix of all rows with ``l1_penalty_``. The other attributes are those of
        :class:`GraphicalLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> model = GraphicalLassoCV(selection="ebic").fit(X)
    >>> model.n_edges_, bool(model.precision_[0, 1] != 0)
    (1, True)
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

    @property
    def l1_penalty_(self) -> float:
        """The chosen penalty."""
        return self._fitted.l1_penalty

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The scores from which the penalty was chosen, arrays with one entry per penalty."""
        assert self._fitted.cv_results is not None
        return self._fitted.cv_results

    @property
    def selection_frequency_(self) -> FloatArray:
        """How often two columns were joined over the subsamples of ``selection="stars"``."""
        found = self._fitted.selection_frequency
        if found is None:
            raise AttributeError("selection_frequency_ needs subsamples: fit with selection='stars'.")
        return found

    def to_edge_frame(self) -> pd.DataFrame:
        """Return the edges of the sparse graph as a table.

        Returns
        -------
        pandas.DataFrame
            ``source``, ``target``, ``precision`` and ``partial_correlation``, one row per edge, strongest first; with
            ``selection="stars"`` also ``selection_frequency``.
        """
        frame = super().to_edge_frame()
        if self._fitted.selection_frequency is None:
            return frame
        place = {name: position for position, name in enumerate(column_names(self))}
        ends = ([place[name] for name in frame[end]] for end in ("source", "target"))
        return frame.assign(selection_frequency=self._fitted.selection_frequency[tuple(ends)])

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose a penalty and learn the precision matrix of the columns of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or the covariance itself where ``covariance="precomputed"``.
        y : array-like of shape (n_samples,), default=None
            Passed to the splitter of ``cv``, otherwise ignored.

        Returns
        -------
        GraphicalLassoCV
            The fitted estimator.
        """
        self._clear()
        self._check_parameters()
        probe = self._unfitted()
        rows = probe._read(X, reset=True)
        names = column_names(probe)
        estimate = self._estimate(rows, names)
        fitted, notes = self._select(rows, y, estimate, names)
        self._keep(probe, fitted)
        for note in notes:
            warnings.warn(note, PrecisionNetWarning, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _checked_penalties(self.l1_penalties)
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

    def _select(
        self, X: FloatArray, y: Any, estimate: CovarianceEstimate, names: list[str]
    ) -> tuple[FittedGraphicalLasso, list[str]]:
        """What was chosen and solved, and what the user should know about it, one sentence each."""
        plan = self._plan
        wanted = _checked_penalties(self.l1_penalties)
        plan.check(estimate.emp_cov)
        penalties = plan.grid(estimate.emp_cov, wanted) if isinstance(wanted, int) else wanted
        choice = getattr(self, f"_by_{self.selection}")(X, y, estimate, penalties, names)
        l1_penalty = float(penalties[choice.index])
        result = plan.solve(estimate.emp_cov, l1_penalty)
        fitted = FittedGraphicalLasso(
            estimate,
            result,
            n_edges=count_edges(result.precision),
            l1_max=plan.l1_max(estimate.emp_cov),
            l1_penalty=l1_penalty,
            cv_results={"l1_penalty": penalties, **choice.curves},
            selection_frequency=choice.selection_frequency,
        )
        notes = self._notes_on_solve(estimate, result)
        if choice.n_unconverged[choice.index] and result.converged:
            notes.append(
                f"{int(choice.n_unconverged[choice.index])} of the solves behind the choice of l1_penalty_="
                f"{l1_penalty:.3g} stopped short of tol={self.tol:g}: raise max_iter, or leave out the smallest "
                "l1_penalties."
            )
        on_choice = self._notes_on_choice(choice.index, penalties, fitted.n_edges, fitted.l1_max)
        return fitted, notes + (on_choice or self._notes_on_graph(fitted))

    def _by_cv(
        self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray, names: list[str]
    ) -> _Choice:
        try:
            splits = list(check_cv(self.cv).split(X, y))
        except ValueError as error:
            cv = "cv=None (5 folds)" if self.cv is None else f"cv={self.cv!r}"
            raise InputError(f"{cv} does not split these rows: {error}") from error
        wanted = _checked_penalties(self.l1_penalties)
        folds = cross_validate(X, splits, self._plan, wanted, names=names, n_jobs=self.n_jobs)
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

    def _by_ebic(
        self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray, names: list[str]
    ) -> _Choice:
        path = self._plan.path(estimate.emp_cov, penalties)
        n_samples = self.n_samples if self.covariance == PRECOMPUTED else estimate.n_samples
        chosen = select_by_ebic(path, estimate.emp_cov, int(n_samples or 0), float(self.ebic_gamma))
        curves = {"n_edges": np.array([count_edges(result.precision) for result in path]), "ebic": chosen.scores}
        return _Choice(chosen.index, curves, np.array([int(not result.converged) for result in path]))

    def _by_stars(
        self, X: FloatArray, y: Any, estimate: CovarianceEstimate, penalties: FloatArray, names: list[str]
    ) -> _Choice:
        chosen = stars(
            X,
            penalties,
            threshold=float(self.stars_threshold),
            n_subsamples=int(self.n_subsamples),
            random_state=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_jobs=self.n_jobs,
            path=partial(self._plan.path_of_rows, names=names),
        )
        return _Choice(
            chosen.index,
            {"n_edges": chosen.n_edges, "instability": chosen.instability},
            chosen.n_unconverged,
            chosen.selection_frequency,
        )

    def _notes_on_choice(self, index: int, penalties: FloatArray, n_edges: int, l1_max: float) -> list[str]:
        """Note if the chosen penalty is at an end of the grid: a better one may lie beyond it."""
        chose, l1_penalty = f"selection={self.selection!r} chose the", float(penalties[index])
        if len(penalties) < 2:
            return []
        if index == 0 and n_edges == 0:
            return [
                f"{chose} largest penalty ({l1_penalty:.3g}), whose graph is empty: it finds no structure in "
                f"these rows, as {NO_EDGE[self.selection]}."
            ]
        if index == 0:
            return [
                f"{chose} largest of l1_penalties ({l1_penalty:.3g}): a larger one may be better; extend the "
                f"list up to l1_max_={l1_max:.3g}."
            ]
        if index == len(penalties) - 1 and l1_penalty > 0.0:
            lower = f"np.geomspace({penalties[0]:.3g}, {l1_penalty / 10:.2g}, 30)"
            return [
                f"{chose} smallest penalty of its grid ({l1_penalty:.3g}): a smaller one may be better; pass "
                f"l1_penalties that go lower, such as {lower}."
            ]
        return []


def _checked_penalties(l1_penalties: Any) -> int | FloatArray:
    """A number of penalties as it is, or a list of them, each once and the largest first."""
    if not isinstance(l1_penalties, bool) and isinstance(l1_penalties, Integral):
        check_count("l1_penalties", l1_penalties, 2)
        return int(l1_penalties)
    try:
        penalties = np.asarray(l1_penalties, dtype=np.float64)
    except (TypeError, ValueError):
        penalties = np.empty(0)
    if penalties.ndim != 1 or not len(penalties) or not (np.isfinite(penalties) & (penalties >= 0)).all():
        raise InputError(
            f"l1_penalties must be how many to try, at least 2, or a list of numbers >= 0, got {l1_penalties!r}."
        )
    return np.unique(penalties)[::-1]
