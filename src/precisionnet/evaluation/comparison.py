"""Should I use this here? The methods on a table of one's own, under the protocol of the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import check_count
from precisionnet.datasets import Dataset, check_target, guess_task, refuse_unusable
from precisionnet.errors import InputError
from precisionnet.estimators.checks import refuse_text_columns
from precisionnet.experiments.config import STANDARD_GRID, Tuning, checked_networks, recipe_of
from precisionnet.experiments.methods.registry import METHODS, check_methods, usual_methods
from precisionnet.experiments.protocol import data_hash, make_folds, splits_frame
from precisionnet.experiments.runner.jobs import Experiment, Job
from precisionnet.experiments.runner.running import Event, run_experiment
from precisionnet.experiments.sources import TableSource
from precisionnet.experiments.tune_and_test import TuneAndTest
from precisionnet.parameters import BY_NAME
from precisionnet.types import TaskName

QUICK_GRID: dict[str, list[Any]] = {name: [BY_NAME[name].of("standard")] for name in STANDARD_GRID}
"""What the networks choose from in a quick comparison: nothing, they have their defaults."""


def compare(
    X: Any,
    y: Any,
    methods: Sequence[str] | None = None,
    repeats: int = 5,
    random_state: int = 0,
    *,
    groups: Any = None,
    task: str = "auto",
    tuning: Tuning | None = None,
    networks: Mapping[str, Sequence[Any]] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    folder: str | Path | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> pd.DataFrame:
    """Every method on the same splits of a table, tuned on validation rows, measured on test rows: a row a fit.

    Parameters
    ----------
    X : (n_samples, n_features) array or data frame of numbers; NaN is missing.
    y : the target: numbers, or classes.
    methods : names, such as ``["joint", "ridge", "svr"]``; by default all that can do the task, ``joint`` also with
        each readout alone (``joint_mean``, ``joint_mlp``).
    repeats : random splits into 60 % training, 20 % validation and 20 % test rows.
    random_state : seed of splits and fits.
    groups : whose row it is; all rows of a person are on one side of every split.
    task : "regression", "classification" or "auto".
    tuning : how parameters are chosen; by default every combination of the grid, hopeless ones given up early.
        ``Tuning(search="none")`` compares every method at its defaults.
    networks : values to choose from by parameter of the networks; what is not given is the recipe's grid, by default
        the standard recipe's. ``{"recipe": ["paper"]}`` is Algorithm 1 with the paper's grid.
    jobs : worker processes; by default one a core.
    scheduler : address of a dask.distributed scheduler whose workers take their place.
    folder : where rows are kept, so that an interrupted comparison goes on; by default in memory only.
    """
    data = _as_dataset(X, y, groups)
    features, target = refuse_unusable(data, missing="median")
    kind = _task(task, target)
    data = replace(data, X=features, y=check_target(target, kind))
    experiment = compare_experiment(data, kind, methods, repeats, random_state, tuning=tuning, networks=networks)
    rows = run_experiment(experiment, folder, jobs=jobs, scheduler=scheduler, on_event=on_event)
    return pd.DataFrame(rows)


def count_people(data: Dataset) -> int:
    """How many, where it is known whose row it is; else every row is a person of its own."""
    return int((pd.Series(data.X.index) if data.groups is None else data.groups).astype(str).nunique())


def compare_experiment(
    data: Dataset,
    task: TaskName,
    methods: Iterable[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
    *,
    tuning: Tuning | None = None,
    networks: Mapping[str, Sequence[Any]] | None = None,
    source: str = "",
    about: Mapping[str, Any] | None = None,
) -> Experiment:
    """The comparison as the runner takes it. ``data`` was checked before.

    ``source`` names the table on the page, ``about`` holds what the page says differently.
    """
    check_count("repeats", repeats, 1)
    check_count("random_state", seed, 0)
    if isinstance(methods, str):
        raise InputError(f"methods must be a list of names, such as [{methods!r}], got {methods!r}.")
    assert data.y is not None, "a comparison has a target"
    chosen = tuning or Tuning()
    grid = checked_networks(networks or {}, "standard", tuned=chosen.tuned)
    names = check_methods(_all_methods(task, recipe_of(grid)) if methods is None else methods, task)
    folds = make_folds(data, repeats, seed, task=task)
    work = TuneAndTest(TableSource(data, folds), task, grid, chosen)
    return Experiment(
        name="compare",
        config={
            "task": task,
            "methods": list(names),
            "repeats": repeats,
            "seed": seed,
            "tuning": asdict(chosen),
            "networks": grid,
            **work.resolved(names),
        },
        data_hash=data_hash(data),
        jobs=tuple(Job(name, fold.repeat, fold.seed) for name in names for fold in folds),
        work=work,
        splits=splits_frame(data, folds),
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
            "notes": list(data.notes),
            "tuned": chosen.tuned,
            **(about or {}),
        },
    )


def _all_methods(task: TaskName, recipe: str) -> list[str]:
    """With both readouts where they differ: the paper's recipe has no other than the flattened one."""
    return [name for name in usual_methods(task) if recipe != "paper" or not METHODS[name].fixed]


def _task(task: str, y: pd.Series[Any]) -> TaskName:
    if task == "auto":
        return guess_task(y)
    if task not in ("regression", "classification"):
        raise InputError(f'task must be "auto", "regression" or "classification", got {task!r}.')
    return task  # type: ignore[return-value]


def _as_dataset(X: Any, y: Any, groups: Any) -> Dataset:
    """Whatever scikit-learn takes, by position."""
    features = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    if features.ndim != 2 or len(features) != len(y) or (groups is not None and len(groups) != len(y)):
        raise InputError(
            f"X, y and groups need a row each for every sample, got {len(features)}, {len(y)}"
            + ("." if groups is None else f" and {len(groups)}.")
        )
    rows = pd.RangeIndex(len(features))
    features = features.set_axis(rows).set_axis([str(name) for name in features.columns], axis=1)
    name = y.name if isinstance(y, pd.Series) and y.name is not None else "y"
    refuse_text_columns(features)
    return Dataset(
        X=features.astype(np.float64),
        y=pd.Series(np.asarray(y), rows, name=name),
        groups=None if groups is None else pd.Series(np.asarray(groups), rows, name="groups"),
    )
