"""Splits that every method shares: whole people, alike in target, the same for the same seed.

``make_folds`` draws ordinary splits, in which every site is on every side. ``leave_groups_out`` holds out whole sites
(or any other groups, ``Dataset.site``): what a method is worth at a place it has never seen.

Rows stay in a :class:`precisionnet.datasets.Dataset` from the table to the estimator. A fold holds positions, and
``Dataset.take`` makes a part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precisionnet.arguments import check_count
from precisionnet.datasets import Dataset, Split
from precisionnet.errors import InputError, some
from precisionnet.preprocessing.column_kinds import columns_of_labels
from precisionnet.types import IndexArray, TaskName

FRACTIONS = (0.6, 0.2, 0.2)
"""Shares of training, validation and test rows, as in the paper."""
FEWEST_ROWS = (10, 2, 2)
"""Smallest number of rows on each side."""
SIDES = ("train", "validation", "test")
GROUP_FOLDS = 4
"""Folds of sites, where whole sites are left out; one per site where there are fewer."""
HELD_OUT = "held_out"
"""True in the rows of a fit that was tested on groups it has not seen."""


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit may see. Test rows are not in here.

    Parameters
    ----------
    train : Dataset
        Rows to learn from.
    validation : Dataset
        Rows to choose by.
    task : {"regression", "classification"}
        What the target is.
    seed : int
        Seed of the fit.
    """

    train: Dataset
    validation: Dataset
    task: TaskName
    seed: int


@dataclass(frozen=True, eq=False)
class Fold:
    """One repeat: positions of the rows on each side, and the seed of everything drawn in it."""

    repeat: int
    seed: int
    train: IndexArray
    validation: IndexArray
    test: IndexArray

    def split(self, data: Dataset) -> Split[Dataset]:
        """Take the three parts of a data set."""
        return Split(data.take(self.train), data.take(self.validation), data.take(self.test))


def target_of(data: Dataset) -> NDArray[Any]:
    """Return the target as an array; a data set without one cannot be evaluated."""
    if data.y is None:
        raise InputError("The data has no target: name the column to predict.")
    return np.asarray(data.y)


def repeat_seed(seed: int, repeat: int) -> int:
    """Return the seed of one repeat, whatever the number of repeats; it suits NumPy, scikit-learn and PyTorch."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


def make_folds(
    data: Dataset, repeats: int, seed: int, fractions: Sequence[float] = FRACTIONS, *, task: TaskName
) -> list[Fold]:
    """Draw one split per repeat; a split that a method could not learn from is refused."""
    check_count("repeats", repeats, 1)
    folds = []
    for repeat in range(repeats):
        own_seed = repeat_seed(seed, repeat)
        fold = Fold(repeat, own_seed, *data.split_rows(fractions, own_seed, stratify="target"))
        _refuse_small(data, fold, fractions)
        if task == "classification":
            _refuse_lost_classes(data, fold)
        folds.append(fold)
    return folds


def leave_groups_out(data: Dataset, seed: int, *, task: TaskName, n_folds: int = GROUP_FOLDS) -> list[Fold]:
    """Divide the groups (``data.site``) into folds of about as many rows; each fold is tested once, whole.

    The largest group goes first, each to the fold with the fewest rows. The rows of all other groups are split 4 : 1
    into those to learn from and those to choose by, alike in target: with four folds 60 % of all rows are learnt from,
    as in an ordinary split, so that what differs is the shift and not the number of rows. A person with rows in
    several groups is tested, and not learnt from.
    """
    if data.site is None:
        raise InputError("There are no groups to leave out: name the column that says which group a row belongs to.")
    if data.site.isna().any():
        raise InputError(f"{int(data.site.isna().sum())} rows have no group to be left out with: fill or drop them.")
    group = data.site.astype(str).to_numpy()
    names, sizes = np.unique(group, return_counts=True)
    if len(names) < 2:
        raise InputError(f"All rows are of one group ({some(list(names))}): there is none to leave out.")
    chance = np.random.default_rng(seed).permutation(len(names))
    filled = np.zeros(min(n_folds, len(names)), dtype=int)
    fold_of: dict[str, int] = {}
    for i in np.lexsort([chance, -sizes]):
        fold_of[names[i]] = int(np.argmin(filled))
        filled[fold_of[names[i]]] += sizes[i]
    of_row = np.array([fold_of[name] for name in group])
    people = np.asarray(data.X.index if data.groups is None else data.groups).astype(str)
    folds = []
    for repeat in range(len(filled)):
        own_seed = repeat_seed(seed, repeat)
        test = np.flatnonzero(of_row == repeat)
        rest = np.flatnonzero((of_row != repeat) & ~np.isin(people, people[test]))
        if not len(rest):
            raise InputError("Everybody has rows in every group: no group can be left out whole.")
        train, validation, _ = data.take(rest).split_rows((0.8, 0.2, 0.0), own_seed, stratify="target")
        fold = Fold(repeat, own_seed, rest[train], rest[validation], test)
        _refuse_small(data, fold, [round(len(side) / len(data), 2) for side in (train, validation, test)])
        if task == "classification":
            _refuse_lost_classes(data, fold)
        folds.append(fold)
    return folds


def splits_frame(data: Dataset, folds: Sequence[Fold], group_folds: Sequence[Fold] = ()) -> pd.DataFrame:
    """Make a table with one row per sample, by its id: the side it is on in each repeat, and when groups are left out.

    A row that a fold leaves out altogether has no side in it.
    """
    frame = _sides(data, folds, "repeat")
    return frame if not group_folds else pd.concat([frame, _sides(data, group_folds, HELD_OUT)], axis=1)


def _sides(data: Dataset, folds: Sequence[Fold], name: str) -> pd.DataFrame:
    sides = np.full((len(data), len(folds)), "", dtype=object)
    for column, fold in enumerate(folds):
        for side in SIDES:
            sides[getattr(fold, side), column] = side
    names = [f"{name}_{fold.repeat}" for fold in folds]
    return pd.DataFrame(sides, index=data.X.index.rename("id"), columns=names)


def data_hash(data: Dataset) -> str:
    """Hash features, target and people, with their names and in their order: all that a result can depend on."""
    digest = hashlib.sha256()
    _add_labels(digest, [str(name) for name in data.X.columns])
    labels = columns_of_labels(data.X)
    numbers = data.X.drop(columns=labels) if labels else data.X
    values = np.ascontiguousarray(numbers.to_numpy(dtype=np.float64)) + 0.0  # -0.0 is 0.0
    values[np.isnan(values)] = np.nan  # one NaN for all
    digest.update(repr(values.shape).encode() + values.tobytes())
    for name in labels:
        _add_labels(digest, [f"{name} {data.X[name].dtype}", *_texts(data.X[name])])
    for column in (data.X.index, data.y, data.groups):
        _add_labels(digest, ["none"] if column is None else [str(column.name), *_texts(column)])
    return digest.hexdigest()


def draw_hash(drawn: Mapping[str, Any]) -> str:
    """Hash how rows are drawn, as JSON values: what stands for the hash of a table where there is none."""
    return hashlib.sha256(json.dumps(drawn, sort_keys=True).encode()).hexdigest()


def _texts(column: pd.Series[Any] | pd.Index[Any]) -> list[str]:
    """Write values as text; numbers are equal whatever their type: 1 is 1.0."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return [repr(value) for value in column.to_numpy(dtype=np.float64, na_value=np.nan).tolist()]
    return [str(value) for value in column]


def _add_labels(digest: Any, labels: Sequence[str]) -> None:
    """Add labels to a hash, each with its length, so that no two lists look alike."""
    for label in (str(len(labels)), *labels):
        text = label.encode("utf-8", "surrogatepass")
        digest.update(f"{len(text)}:".encode() + text)


def _refuse_small(data: Dataset, fold: Fold, fractions: Sequence[float]) -> None:
    counts = [len(getattr(fold, side)) for side in SIDES]
    if any(count < fewest for count, fewest in zip(counts, FEWEST_ROWS, strict=True)):
        raise InputError(
            f"{len(data)} rows are too few for a comparison: shares of {'/'.join(f'{share:g}' for share in fractions)} "
            f"leave {counts[0]} to learn from, {counts[1]} to choose by and {counts[2]} to test, and "
            f"{FEWEST_ROWS[0]}, {FEWEST_ROWS[1]} and {FEWEST_ROWS[2]} are needed; bring more rows."
        )


def _refuse_lost_classes(data: Dataset, fold: Fold) -> None:
    assert data.y is not None
    labels = data.y.astype(str)
    lost = sorted(set(labels) - set(labels.iloc[fold.train]))
    if lost:
        raise InputError(
            f"In repeat {fold.repeat} no row of class {some(lost)} is left to learn from: merge it with another "
            "class, bring more of its rows, or change the seed."
        )
