"""Where the rows of a comparison come from: a table and its stored splits, or a draw in the worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.datasets.graphs import GraphName
from precisionnet.experiments.config import FRACTIONS
from precisionnet.experiments.methods.candidate import Part
from precisionnet.experiments.protocol import Fold, make_folds
from precisionnet.experiments.runner.jobs import Job
from precisionnet.experiments.tune_and_test import Drawn
from precisionnet.types import IndexArray


@dataclass(frozen=True)
class TableSource:
    """Rows of one table; repeat i is fold i."""

    data: Dataset = field(repr=False)
    folds: Sequence[Fold] = field(repr=False)

    def sides(self, job: Job) -> Drawn:
        """The rows of this job's repeat."""
        return _sides(self.data, next(fold for fold in self.folds if fold.repeat == job.repeat))


@dataclass(frozen=True)
class SyntheticSource:
    """The paper's synthetic rows: drawn anew and split anew for every seed, the same for every method.

    ``job.setting["sparsity"]`` is the share of non-zero entries of the true precision.
    """

    n_samples: int
    n_features: int
    snr: float
    graph: GraphName
    condition_number: float
    fractions: tuple[float, float, float] = FRACTIONS

    def sides(self, job: Job) -> Drawn:
        """Draw, then split; theta_true is in the units of the rows."""
        data = make_gaussian_regression(
            self.n_samples,
            self.n_features,
            graph=self.graph,
            sparsity=job.setting["sparsity"],
            snr=self.snr,
            condition_number=self.condition_number,
            random_state=job.seed,
        )
        (fold,) = make_folds(data, 1, job.seed, self.fractions, task="regression")
        return _sides(data, fold)._replace(theta_true=data.theta_true)


def recipe_hash(recipe: Mapping[str, Any]) -> str:
    """What stands for the hash of a table where rows are drawn: everything that decides about them, as JSON values."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def _sides(data: Dataset, fold: Fold) -> Drawn:
    return Drawn(_part(data, fold.train), _part(data, fold.validation), _part(data, fold.test))


def _part(data: Dataset, rows: IndexArray) -> Part:
    assert data.y is not None, "a comparison has a target"
    groups = None if data.groups is None else np.asarray(data.groups.iloc[rows])
    return Part(data.X.iloc[rows], data.y.iloc[rows].to_numpy(), groups)
