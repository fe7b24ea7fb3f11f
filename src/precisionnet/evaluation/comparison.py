"""Compare methods on a table under the protocol of the paper's experiments: tuned on validation rows, tested once.

``compare`` is the whole of it in one call. ``compare_experiment`` builds what the runner runs, and ``TuneAndTest`` is
the work of one job: tune a method on training and validation rows, then predict the test rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from precisionnet.arguments import check_count, masked_as_missing
from precisionnet.datasets import (
    Dataset,
    Split,
    SyntheticDataset,
    check_target,
    guess_task,
    refuse_unusable,
)
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import refuse_text_columns
from precisionnet.evaluation.baselines import BaselineCandidate, predict_rows
from precisionnet.evaluation.methods import (
    GROUP_GUESS,
    METHODS,
    TRIVIAL,
    Grid,
    check_methods,
    checked_networks,
    recipe_of,
    usual_methods,
)
from precisionnet.evaluation.metrics import graph_scores, headline, score_all
from precisionnet.evaluation.network_candidate import NetworkCandidate
from precisionnet.evaluation.protocol import (
    HELD_OUT,
    FitData,
    Fold,
    data_hash,
    draw_hash,
    leave_groups_out,
    make_folds,
    splits_frame,
    target_of,
)
from precisionnet.evaluation.rivals import able
from precisionnet.evaluation.tuning import NO_OPTUNA, RUNGS, Candidate, Parameters, Tuning, search
from precisionnet.parameters import settled
from precisionnet.preprocessing.column_kinds import is_label_column
from precisionnet.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.runner.run import Event, run_experiment
from precisionnet.types import TaskName
from precisionnet.versions import recipe_version

ON_PRECISION = ("joint", "naive", "glasso", "sample")
"""Networks whose matrix is an estimate of the precision; a VNN runs on the covariance."""


def compare(
    X: Any,
    y: Any,
    methods: Sequence[str] | None = None,
    repeats: int = 5,
    random_state: int = 0,
    *,
    groups: Any = None,
    hold_out: Any = None,
    task: str = "auto",
    tuning: Tuning | None = None,
    networks: Grid | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    folder: str | Path | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> pd.DataFrame:
    """Compare methods on the same splits of a table: tuned on validation rows, measured on test rows.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Features. NaN is a missing value. Text, categories and dates of a data frame are encoded, in every split by what
        the training rows show, for every method in the same way.
    y : array-like of shape (n_samples,)
        The target: numbers, or classes.
    methods : sequence of str, default=None
        Names such as ``["joint", "ridge", "svr"]``. By default all methods that can do the task, ``joint`` also with
        each readout alone (``joint_mean``, ``joint_mlp``). Models of other packages (``catboost``, ``realmlp``,
        ``xrfm``, ``tabicl``) are compared where they are named, and left out with a warning where they cannot run.
    repeats : int, default=5
        Random splits into 60 % training, 20 % validation and 20 % test rows.
    random_state : int, default=0
        Seed of splits and fits.
    groups : array-like of shape (n_samples,), default=None
        The person each row belongs to. All rows of a person are on one side of every split.
    hold_out : array-like of shape (n_samples,), default=None
        The site each row comes from, or any other group. Beside the ordinary splits, every method is then tested on
        whole groups it has not seen, in four folds of groups; rows of these fits have True in ``held_out``.
    task : {"auto", "regression", "classification"}, default="auto"
        What the target is; "auto" guesses it from ``y``.
    tuning : Tuning, default=None
        How parameters are chosen. By default every combination of the grid is tried, and hopeless ones are given up
        early. ``Tuning(search="none")`` compares every method at its defaults.
    networks : mapping of str to sequence, default=None
        Values to choose from by parameter of the networks. What is not given is taken from the recipe's grid, by
        default the standard recipe's; ``{"recipe": ["paper"]}`` is Algorithm 1 with the paper's grid.
    jobs : int, default=None
        Number of worker processes, by default one per core.
    scheduler : str, default=None
        Address of a dask.distributed scheduler whose workers are used instead.
    folder : str or Path, default=None
        Where rows are kept, so that an interrupted comparison goes on. By default they are kept in memory only.
    on_event : callable, default=None
        Called with a :class:`precisionnet.runner.Event` when the run starts and after every fit.

    Returns
    -------
    DataFrame
        One row per method and repeat: scores on test rows, chosen parameters, seconds, seed, hashes and versions.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evaluation import compare
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> rows = compare(X, X[:, 0] - X[:, 1], methods=["ridge", "median"], repeats=2, jobs=1)
    >>> errors = rows.groupby("method")["mae"].mean()
    >>> bool(errors["ridge"] < errors["median"])
    True
    """
    data = _as_dataset(X, y, groups, hold_out)
    features, target = refuse_unusable(data, missing="median")
    kind = _task(task, target)
    data = replace(data, X=features, y=check_target(target, kind))
    named = None if hold_out is None else str(getattr(hold_out, "name", None) or "group")
    experiment = compare_experiment(
        data, kind, methods, repeats, random_state, tuning=tuning, networks=networks, hold_out=named
    )
    for sentence in experiment.about["skipped"]:
        warnings.warn(sentence, PrecisionNetWarning, stacklevel=2)
    rows = run_experiment(experiment, folder, jobs=jobs, scheduler=scheduler, on_event=on_event)
    return pd.DataFrame(rows)


def count_people(data: Dataset) -> int:
    """Count the people; without groups every row is a person of its own."""
    return int((pd.Series(data.X.index) if data.groups is None else data.groups).astype(str).nunique())


def compare_experiment(
    data: Dataset,
    task: TaskName,
    methods: Iterable[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
    *,
    tuning: Tuning | None = None,
    networks: Grid | None = None,
    hold_out: str | None = None,
    source: str = "",
    about: Mapping[str, Any] | None = None,
) -> Experiment:
    """Build the comparison for the runner. ``data`` was checked before.

    With ``hold_out``, what a group is called ("site"), every method is also tested on whole groups (``data.site``) that
    it has not seen, and two guesses stand beside them: by the training rows, and by those of the row's own group, which
    is not to be had where that group is left out. ``source`` names the table on the page, ``about`` overrides what the
    page says.
    """
    check_count("repeats", repeats, 1)
    check_count("random_state", seed, 0)
    if isinstance(methods, str):
        raise InputError(f"methods must be a list of names, such as [{methods!r}], got {methods!r}.")
    assert data.y is not None, "a comparison has a target"
    chosen = tuning or Tuning()
    grid = checked_networks(networks or {}, "standard", tuned=chosen.tuned)
    asked = check_methods(_all_methods(task, recipe_of(grid)) if methods is None else methods, task)
    if hold_out is not None:
        asked = check_methods([*asked, GROUP_GUESS[task], TRIVIAL[task]], task)
    names, skipped = able(asked)
    folds = make_folds(data, repeats, seed, task=task)
    group_folds = [] if hold_out is None else leave_groups_out(data, seed, task=task)
    work = TuneAndTest(TableSource(data, folds, group_folds), task, grid, chosen)
    unseen = [name for name in names if METHODS[name].family != "group"]
    return Experiment(
        name="compare",
        config={
            "task": task,
            "methods": names,
            "repeats": repeats,
            "seed": seed,
            "tuning": asdict(chosen),
            "networks": grid,
            **work.resolved(names),
            **({} if hold_out is None else {"hold_out": hold_out, "group_hash": _group_hash(data)}),
        },
        data_hash=data_hash(data),
        jobs=(*fit_jobs(names, folds), *fit_jobs(unseen, group_folds, {HELD_OUT: True})),
        work=work,
        splits=splits_frame(data, folds, group_folds),
        metrics=(headline(task),),
        recipe_version=recipe_version(grid),
        about={
            "kind": "comparison",
            "title": f"Predicting {data.y.name}",
            "task": task,
            "target": str(data.y.name),
            "unit": "",
            "n_rows": len(data),
            "n_features": data.X.shape[1],
            "n_people": count_people(data),
            "source": source,
            "description": data.description,
            "notes": [*data.notes, *skipped],
            "skipped": skipped,
            **({} if hold_out is None else {"hold_out": hold_out, "n_groups": _n_groups(data)}),
            "tuned": chosen.tuned,
            **(about or {}),
        },
    )


class Source(Protocol):
    """Where the rows of a job come from. It is sent to workers, so it must be picklable."""

    def split(self, job: Job) -> Split[Any]:
        """Return the rows of this job's repeat and setting: the same for every method."""
        ...


@dataclass(frozen=True)
class TableSource:
    """Rows of one table; repeat i is fold i, of the folds of groups where whole groups are left out."""

    data: Dataset = field(repr=False)
    folds: Sequence[Fold] = field(repr=False)
    group_folds: Sequence[Fold] = field(default=(), repr=False)

    def split(self, job: Job) -> Split[Dataset]:
        """Return the rows of this job's repeat."""
        folds = self.group_folds if job.setting.get(HELD_OUT) else self.folds
        return next(fold for fold in folds if fold.repeat == job.repeat).split(self.data)


@dataclass(frozen=True)
class TuneAndTest:
    """The work of one job of a comparison."""

    source: Source
    task: TaskName
    networks: Grid
    tuning: Tuning

    def __post_init__(self) -> None:
        if self.tuning.search == "optuna" and find_spec("optuna") is None:  # before every job says so
            raise InputError(NO_OPTUNA)

    def resolved(self, methods: Iterable[str]) -> dict[str, Any]:
        """Return what a result depends on beside the data: each method's choices, and what the networks do not tune."""
        spaces = {name: self._choices(name) for name in methods}
        values = settled({"recipe": recipe_of(self.networks)})
        fixed = {name: value for name, value in values.items() if name not in self.networks and name != "method"}
        rungs = RUNGS[recipe_of(self.networks)] if self.tuning.race else {}
        return {"spaces": spaces, "fixed": fixed, "rungs": list(rungs.items())}

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """Choose, fit and measure; where ``earlier`` is given, with the parameters chosen there."""
        train, validation, test = self.source.split(job)
        data = FitData(train, validation, self.task, job.seed)
        started = time.perf_counter()
        searched = search(
            partial(make_candidate, job.method, data),
            self._space(job, earlier),
            self.tuning,
            job.seed,
            scratch,
            recipe_of(self.networks),
        )
        tuned = time.perf_counter() - started
        best, trials = searched.best, searched.trials
        model = best.model()
        started = time.perf_counter()
        predicted, probabilities = predict_rows(model, test, self.task)
        predict_seconds = time.perf_counter() - started
        row = {
            **score_all(target_of(test), predicted, probabilities, getattr(model, "classes_", None)),
            **_graph(job.method, model, train),
            "validation": next(t["validation"] for t in trials if t["parameters"] == best.parameters),
            "parameters": best.parameters,
            "n_candidates": len(trials),
            "n_stopped": sum(trial["stopped"] for trial in trials),
            "fit_seconds": best.seconds,
            "tune_seconds": tuned,
            "predict_seconds": predict_seconds,
            "n_train": len(train),
            "n_validation": len(validation),
            "n_test": len(test),
        }
        return Finished(row, trials)

    def _space(self, job: Job, earlier: Row | None) -> dict[str, list[Any]]:
        if earlier is None:
            return self._choices(job.method)
        if "parameters" not in earlier:
            raise InputError(f"{job.method} was not run: choosing its parameters had failed ({earlier.get('error')}).")
        return {name: [value] for name, value in earlier["parameters"].items()}

    def _choices(self, method: str) -> dict[str, list[Any]]:
        return METHODS[method].space(self.task, self.networks, tuned=self.tuning.tuned)


def make_candidate(method: str, data: FitData, parameters: Parameters) -> Candidate:
    """Build an untrained candidate of the method."""
    kind = NetworkCandidate if METHODS[method].family == "network" else BaselineCandidate
    return kind(method, parameters, data)


def fit_jobs(
    methods: Iterable[str], folds: Sequence[Fold], setting: Mapping[str, Any] | None = None
) -> tuple[Job, ...]:
    """List one job per method and fold."""
    return tuple(
        Job(name, fold.repeat, fold.seed, setting or {}, cost=METHODS[name].cost) for name in methods for fold in folds
    )


def _graph(method: str, model: Any, train: Dataset) -> Row:
    """Score the estimated precision in the units of the table, beside the truth where rows were drawn from one."""
    if METHODS[method].runs not in ON_PRECISION:
        return {}
    theta_true = train.theta_true if isinstance(train, SyntheticDataset) else None
    scores: Row = graph_scores(model.precision_in_units_, theta_true)
    return scores


def _n_groups(data: Dataset) -> int:
    assert data.site is not None, "groups are left out"
    return int(data.site.nunique())


def _group_hash(data: Dataset) -> str:
    """Hash who is in which group: it decides about the folds, and about the guess by group."""
    assert data.site is not None, "groups are left out"
    return draw_hash({"groups": data.site.astype(str).tolist()})


def _all_methods(task: TaskName, recipe: str) -> list[str]:
    """List the usual methods; networks of the paper's recipe have one readout, that of their grid."""
    return [name for name in usual_methods(task) if recipe != "paper" or not METHODS[name].fixed]


def _task(task: str, y: pd.Series[Any]) -> TaskName:
    if task == "auto":
        return guess_task(y)
    if task not in ("regression", "classification"):
        raise InputError(f'task must be "auto", "regression" or "classification", got {task!r}.')
    return task  # type: ignore[return-value]


def _as_dataset(X: Any, y: Any, groups: Any, site: Any = None) -> Dataset:
    """Make a data set of whatever scikit-learn takes, by position."""
    features = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(masked_as_missing(X)))
    if features.ndim != 2 or len(features) != len(y) or (groups is not None and len(groups) != len(y)):
        raise InputError(
            f"X, y and groups need a row each for every sample, got {len(features)}, {len(y)}"
            + ("." if groups is None else f" and {len(groups)}.")
        )
    if site is not None and len(site) != len(y):
        raise InputError(f"hold_out needs one group for every sample, got {len(site)} for {len(y)}.")
    rows = pd.RangeIndex(len(features))
    features = features.set_axis(rows).set_axis([str(name) for name in features.columns], axis=1)
    name = y.name if isinstance(y, pd.Series) and y.name is not None else "y"
    mixed = [
        name for name, column in features.items() if pd.api.types.infer_dtype(column, skipna=True).startswith("mixed")
    ]
    refuse_text_columns(features[mixed] if isinstance(X, pd.DataFrame) else features)
    numbers = {name: np.float64 for name, column in features.items() if not is_label_column(column)}
    return Dataset(
        X=features.astype(numbers),
        y=pd.Series(np.asarray(masked_as_missing(y)), rows, name=name),
        groups=None if groups is None else pd.Series(np.asarray(groups), rows, name="groups"),
        site=None if site is None else pd.Series(np.asarray(site), rows, name="site"),
    )
