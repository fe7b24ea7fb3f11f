"""A network fitted on all rows, and how good it is on rows that it has not learned from, beside what is simpler.

Every row is predicted once by networks that have not learned from it:

- by default by those networks of the fitted ensemble that left the row out. That costs no further fit. A row then has
  the networks of one fold behind it, while the model averages those of all folds, so that its error is on the high side
  (``docs/decisions/0018-honest-tests.md`` has the figures);
- where no such prediction is to be had of every row (a single network, Algorithm 1 of the paper), or where folds are
  given, by models that are fitted anew without the fold. That is the test for sites or years that nobody has seen.

The linear model and the guesses are fitted without the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precisionnet.datasets import Dataset
from precisionnet.errors import PrecisionNetWarning, shown
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.evaluation.baselines import predict_rows, tuned_baseline
from precisionnet.evaluation.error_intervals import Estimate, mean_interval, share_interval
from precisionnet.evaluation.folds import Folds, people_folds, people_of, repeated_people
from precisionnet.evaluation.methods import GROUP_GUESS, LINEAR, TRIVIAL
from precisionnet.evaluation.metrics import score
from precisionnet.evaluation.protocol import target_of
from precisionnet.joint import Callback
from precisionnet.threads import limited_threads
from precisionnet.types import IndexArray, TaskName
from precisionnet.workers import as_they_come, count_for

FEW_TEST_ROWS = 50
"""With fewer rows a note says that scores mean little."""
OF_ORDER = ("r", "auc")
"""Scores of how rows are ordered: a constant guess orders none, and its constant differs from fold to fold."""

OnFit = Callable[[int, int], object]


@dataclass(frozen=True)
class Predictions:
    """What one model predicts for the tested rows.

    Parameters
    ----------
    predicted : array of shape (n_tested,)
        Numbers or classes.
    probabilities : array of shape (n_tested, n_classes), default=None
        Probabilities of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evaluation import Predictions
    >>> Predictions(np.array([1.0, 2.0])).probabilities is None
    True
    """

    predicted: NDArray[Any]
    probabilities: NDArray[Any] | None = None


@dataclass(frozen=True)
class Measured:
    """A network fitted on all rows, and predictions of rows by networks that have not learned from them.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        The network, fitted on all rows.
    task : {"regression", "classification"}
        What the target is.
    target : str
        Name of the target.
    folds : Folds
        Which rows were predicted together.
    y : array of shape (n_tested,)
        Target of the tested rows, those at ``folds.tested``.
    predictions : dict of str to Predictions
        What each model predicts for them, the network first.
    scores : DataFrame
        One row per model, one column per metric.
    headline : dict of str to Estimate
        Mean absolute error or accuracy of each model, with its 95 % interval.
    gains : dict of str to Estimate
        How much less error the network has on the same rows than each other model, or how many more are right.
    notes : list of str, default=[]
        What a reader of the scores should know.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> data = make_gaussian_regression(80, 5, random_state=0)
    >>> result = measure(data, "regression", {"max_epochs": 1, "n_members": 4})
    >>> list(result.scores.columns), len(result.y)
    (['mae', 'rmse', 'r2', 'r'], 80)
    """

    model: Any
    task: TaskName
    target: str
    folds: Folds
    y: NDArray[Any]
    predictions: dict[str, Predictions]
    scores: pd.DataFrame
    headline: dict[str, Estimate]
    gains: dict[str, Estimate]
    notes: list[str] = field(default_factory=list)

    @property
    def method(self) -> str:
        """Name of the network's method, the first of every table."""
        return str(self.model.method)

    @property
    def best_guess(self) -> str:
        """The better one of the guesses: the median or majority of all rows, or of the row's site."""
        guesses = [name for name in self.gains if name in (TRIVIAL[self.task], GROUP_GUESS[self.task])]
        return min(guesses, key=lambda name: self.gains[name].value)

    @property
    def beats_guessing(self) -> bool | None:
        """Whether the network is better than the best guess, more than chance explains; None without an interval."""
        low = self.gains[self.best_guess].low
        return None if np.isnan(low) else bool(low > 0.0)


def measure(
    data: Dataset,
    task: TaskName,
    parameters: dict[str, Any],
    *,
    seed: int = 0,
    folds: Folds | None = None,
    callbacks: Sequence[Callback] = (),
    on_fit: OnFit | None = None,
) -> Measured:
    """Fit a network on all rows, and predict rows by networks that have not learned from them.

    Beside it are the linear model of ``compare``, ``ridge`` or ``logistic``, its penalty chosen on a quarter of the
    rows that it learns from; always guessing the median or the most frequent class; and, where the rows have a site,
    the median or the classes of the site.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    task : {"regression", "classification"}
        What the target is.
    parameters : dict
        Parameters of the network, such as ``{"method": "joint", "n_layers": 2}``. With ``n_jobs``, on a scheduler or
        inside ``joblib.parallel_config``, folds are fitted side by side; no number depends on it.
    seed : int, default=0
        Seed of the fit, and of folds that are not given.
    folds : Folds, default=None
        Fit a model anew for each of these. By default rows are predicted by the networks that left them out, or in five
        folds of people where there are no such networks.
    callbacks : sequence of callable, default=()
        Called with each epoch's row of the history, of every fit. With any, folds are fitted one after another: a
        callback may end a training, and lives in this process.
    on_fit : callable, default=None
        Called with the number of fits that are done and the number of all, as soon as that is known.

    Returns
    -------
    Measured
        The fitted network, predictions out of fold, and scores with intervals.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> data = make_gaussian_regression(80, 5, random_state=0)
    >>> measure(data, "regression", {"max_epochs": 1, "n_members": 4}).scores.index.tolist()
    ['joint', 'ridge', 'median']
    """
    told = on_fit or (lambda done, total: None)
    if folds is not None:
        told(0, 1 + folds.n_folds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _fitted(data, task, parameters, seed, callbacks)
    own = _left_out_by_networks(model, data, task) if folds is None else None
    if own is not None:
        folds, network = own
    else:
        folds = folds or people_folds(data, task, seed=seed)
        network = _refitted(data, task, parameters, seed, folds, model, callbacks, told)
    warned = [str(w.message) for w in caught if issubclass(w.category, PrecisionNetWarning)]
    return _measured(model, data, task, seed, folds, network, warned)


def measure_sample(model: Any, data: Dataset, task: TaskName, *, seed: int = 0, warned: Sequence[str] = ()) -> Measured:
    """Say how good a fitted network is on the rows that it keeps out-of-fold predictions of.

    For a network that was fitted to a large table (``fit_table``): the linear model and the guesses beside it learn
    from these rows alone.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        The fitted network.
    data : Dataset
        The rows of ``oob_row_ids_``, in that order.
    task : {"regression", "classification"}
        What the target is.
    seed : int, default=0
        Seed of what stands beside it.
    warned : sequence of str, default=()
        What the fit warned of.

    Returns
    -------
    Measured
        Scores with intervals, of the rows that networks left out.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation.cross_validation import measure_sample
    >>> data = make_gaussian_regression(80, 5, random_state=0)
    >>> model = PNNRegressor(max_epochs=1, n_members=4, random_state=0).fit(data.X, data.y)
    >>> len(measure_sample(model, data, "regression").y)
    80
    """
    known = np.flatnonzero(model.oob_folds_ >= 0)
    data = data.take(known)
    folds, network = _by_networks(model, data, task, known)
    return _measured(model, data, task, seed, folds, network, warned)


def _measured(
    model: Any,
    data: Dataset,
    task: TaskName,
    seed: int,
    folds: Folds,
    network: Predictions,
    warned: Sequence[str],
) -> Measured:
    """Score the network's predictions, and those of what stands beside it."""
    said = {str(model.method): network, **_baselines(data, task, seed, folds, model)}
    y, classes, cluster = target_of(data)[folds.tested], getattr(model, "classes_", None), folds.cluster[folds.tested]
    scores = {name: score(y, found.predicted, found.probabilities, classes) for name, found in said.items()}
    guess = scores[TRIVIAL[task]]
    guess |= dict.fromkeys(guess.keys() & set(OF_ORDER), np.nan)
    notes = list(dict.fromkeys(warned)) + _notes(data, folds, task)
    return Measured(
        model,
        task,
        "" if data.y is None else str(data.y.name),
        folds,
        y,
        said,
        pd.DataFrame.from_dict(scores, orient="index"),
        *_headline(y, said, cluster, task),
        notes,
    )


def _fitted(data: Dataset, task: TaskName, parameters: dict[str, Any], seed: int, callbacks: Sequence[Callback]) -> Any:
    model = (PNNRegressor if task == "regression" else PNNClassifier)(**parameters, random_state=seed)
    model.set_params(callbacks=list(callbacks))
    return model.fit(data.X, data.y, groups=repeated_people(data)).set_params(callbacks=None)


def _left_out_by_networks(model: Any, data: Dataset, task: TaskName) -> tuple[Folds, Predictions] | None:
    """Return what the networks that left a row out predict for it; None where there is no such network for a row."""
    return None if (model.oob_folds_ < 0).any() else _by_networks(model, data, task, np.arange(len(data)))


def _by_networks(model: Any, data: Dataset, task: TaskName, known: IndexArray) -> tuple[Folds, Predictions]:
    """Return what networks predict for rows that they left out, those at ``known`` among the model's."""
    people = people_of(data)
    if task == "regression":
        said = Predictions(model.oob_prediction_[known])
    else:
        probabilities = model.oob_decision_function_[known]
        said = Predictions(model.classes_[probabilities.argmax(axis=1)], probabilities)
    return Folds("networks", model.oob_folds_[known], people, people), said


def _refitted(
    data: Dataset,
    task: TaskName,
    parameters: dict[str, Any],
    seed: int,
    folds: Folds,
    model: Any,
    callbacks: Sequence[Callback],
    on_fit: OnFit,
) -> Predictions:
    """Fit a model without each fold, and predict the fold; in workers where there are several and no callbacks."""
    n_fits, classes, n_jobs = 1 + folds.n_folds, getattr(model, "classes_", None), parameters.get("n_jobs")
    parts: dict[int, Predictions] = {}
    on_fit(1, n_fits)
    if callbacks or count_for(n_jobs) < 2:
        for number in range(folds.n_folds):
            parts[number] = _fold(data, task, parameters, seed, folds, classes, number, callbacks)[1]
            on_fit(1 + len(parts), n_fits)
    else:
        shared, numbers = (data, task, parameters, seed, folds, classes), [(n,) for n in range(folds.n_folds)]
        for number, part in as_they_come(_fold, numbers, n_jobs, shared=shared):
            parts[number] = part
            on_fit(1 + len(parts), n_fits)
    return _joined([parts[number] for number in range(folds.n_folds)], folds)


def _fold(
    data: Dataset,
    task: TaskName,
    parameters: dict[str, Any],
    seed: int,
    folds: Folds,
    classes: Any,
    number: int,
    callbacks: Sequence[Callback] = (),
) -> tuple[int, Predictions]:
    """Fit a model without one fold, and predict the fold."""
    training, test = folds.sides(number)
    with limited_threads(1), warnings.catch_warnings():  # one thread: the same bits in a worker
        warnings.simplefilter("ignore", PrecisionNetWarning)  # the fit on all rows has said it
        fitted = _fitted(data.take(training), task, parameters, seed, callbacks)
        return number, _predicted(fitted, data.take(test), task, classes)


def _baselines(data: Dataset, task: TaskName, seed: int, folds: Folds, model: Any) -> dict[str, Predictions]:
    """Fit the linear model and the guesses without each fold, and predict the fold."""
    names = [LINEAR[task], *([GROUP_GUESS[task]] if _known_sites(data, folds) else []), TRIVIAL[task]]
    parts: dict[str, list[Predictions]] = {name: [] for name in names}
    classes = getattr(model, "classes_", None)
    for number in range(folds.n_folds):
        training, test = folds.sides(number)
        learned, asked = data.take(training), data.take(test)
        for name in names:
            parts[name].append(_predicted(tuned_baseline(name, learned, task, seed), asked, task, classes))
    return {name: _joined(found, folds) for name, found in parts.items()}


def _known_sites(data: Dataset, folds: Folds) -> bool:
    """Whether rows have sites that were there to learn from: else the guess by site is the guess for all."""
    if data.site is None or data.site.isna().any() or data.site.nunique() < 2:
        return False
    site = data.site.astype(str).to_numpy()
    return all(np.isin(site[test], site[training]).any() for training, test in map(folds.sides, range(folds.n_folds)))


def _predicted(fitted: Any, rows: Dataset, task: TaskName, classes: Any) -> Predictions:
    """Predict rows; classes that were not there to learn from have probability 0."""
    said, probabilities = predict_rows(fitted, rows, task)
    if probabilities is None:
        return Predictions(np.asarray(said, dtype=float))
    whole = np.zeros((len(rows), len(classes)))
    whole[:, np.searchsorted(classes, fitted.classes_)] = probabilities
    return Predictions(np.asarray(said), whole)


def _joined(parts: Sequence[Predictions], folds: Folds) -> Predictions:
    """Put the predictions of the folds in the order of the tested rows."""
    places: IndexArray = np.concatenate([folds.sides(number)[1] for number in range(folds.n_folds)])
    order = np.argsort(places)
    probabilities = [part.probabilities for part in parts if part.probabilities is not None]
    return Predictions(
        np.concatenate([part.predicted for part in parts])[order],
        np.concatenate(probabilities)[order] if probabilities else None,
    )


def _headline(
    y: Any, said: dict[str, Predictions], cluster: Any, task: TaskName
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the mean absolute error or the accuracy of each model, and the network's gain over the others."""
    if task == "regression":
        losses = {name: np.abs(y - found.predicted) for name, found in said.items()}
        scores = {name: mean_interval(loss, cluster) for name, loss in losses.items()}
    else:
        losses = {name: (y != found.predicted).astype(float) for name, found in said.items()}
        scores = {name: share_interval(loss == 0.0, cluster) for name, loss in losses.items()}
    own, *others = losses
    return scores, {name: mean_interval(losses[name] - losses[own], cluster) for name in others}


def _notes(data: Dataset, folds: Folds, task: TaskName) -> list[str]:
    """Say what a reader of the scores should know."""
    notes = []
    repeated = len(np.unique(folds.people)) < len(folds.people)
    if repeated and folds.kind == "time":
        notes.append(f"Ids repeat: rows of an id that come before a block of {shown(folds.column)} were learned from.")
    elif repeated:
        notes.append("Ids repeat: all rows of an id are in the same fold, and intervals count ids, not rows.")
    if len(folds.tested) < FEW_TEST_ROWS:
        notes.append(f"Only {len(folds.tested)} rows could be tested: the scores say little; bring more rows.")
    if task == "classification":
        labels = target_of(data).astype(str)
        lost = [label for number in range(folds.n_folds) for label in set(labels) - set(labels[folds.sides(number)[0]])]
        if lost:
            notes.append(
                f"Class {shown(sorted(lost)[0])} has all of its rows in one fold: there they cannot be predicted; "
                "merge it with another, or bring more of its rows."
            )
    return notes
