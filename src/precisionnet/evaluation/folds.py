"""The folds that a fit is tested on: which rows are predicted together, and from which others.

``people_folds`` deals people, alike in target. ``group_folds`` keeps whole groups together (sites, years, subjects), so
that each is predicted by a model that has not seen it. ``time_folds`` cuts the rows into blocks by time, and a block is
learned from all that was before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from precisionnet.arguments import check_count
from precisionnet.datasets import Dataset
from precisionnet.errors import InputError, shown, some
from precisionnet.estimators.checks import MIN_ROWS
from precisionnet.types import IndexArray, TaskName

FoldsKind = Literal["networks", "people", "groups", "time"]
N_FOLDS = 5
"""Number of folds of people or of groups; with fewer groups there is one fold per group."""
NEVER_TESTED = -1
"""Stands in place of a fold for rows that are only learned from, never tested."""


@dataclass(frozen=True, eq=False)
class Folds:
    """A division of rows into folds, each of which is predicted by a model that has not learned from it.

    Parameters
    ----------
    kind : {"networks", "people", "groups", "time"}
        What was divided. "networks" are the folds that the networks of one fit left out.
    fold : ndarray of int of shape (n_rows,)
        The fold of each row; -1 for rows that are never predicted.
    people : ndarray of shape (n_rows,)
        Whose row it is.
    cluster : ndarray of shape (n_rows,)
        Rows with the same label are not independent: whose row it is, its group, or its block of time.
    column : str, default=""
        The column of groups or of time.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import people_folds
    >>> folds = people_folds(make_gaussian_regression(50, 4, random_state=0), "regression", 5, seed=0)
    >>> folds.n_folds, len(folds.sides(0)[1])
    (5, 10)
    """

    kind: FoldsKind
    fold: IndexArray
    people: Any
    cluster: Any
    column: str = ""

    @property
    def n_folds(self) -> int:
        """Number of folds that are predicted."""
        return int(self.fold.max()) + 1

    @property
    def tested(self) -> IndexArray:
        """Positions of the rows that are predicted."""
        return np.flatnonzero(self.fold != NEVER_TESTED)

    def sides(self, number: int) -> tuple[IndexArray, IndexArray]:
        """Return the positions of the rows to learn from and to predict.

        Parameters
        ----------
        number : int
            The fold, counted from 0.

        Returns
        -------
        training : ndarray of int
            In time the rows before the block, else all others but those of people who are predicted.
        test : ndarray of int
            The rows of the fold.
        """
        test = np.flatnonzero(self.fold == number)
        if self.kind == "time":
            return np.flatnonzero(self.fold < number), test
        return np.flatnonzero((self.fold != number) & ~np.isin(self.people, self.people[test])), test


def people_folds(data: Dataset, task: TaskName, n_folds: int = N_FOLDS, seed: int = 0) -> Folds:
    """Deal people into folds, alike in target.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    task : {"regression", "classification"}
        What the target is.
    n_folds : int, default=5
        Number of folds.
    seed : int, default=0
        Seed of the order in which people are dealt.

    Returns
    -------
    Folds
        Every row is predicted once.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import people_folds
    >>> people_folds(make_gaussian_regression(50, 4, random_state=0), "regression").kind
    'people'
    """
    check_count("n_folds", n_folds, 2)
    fold = np.zeros(len(data), dtype=np.intp)
    left = np.arange(len(data))
    for number in range(n_folds - 1):  # one fold of what is left after the other, each alike in target
        share = 1.0 / (n_folds - number)
        rest, _, taken = data.take(left).split_rows((1.0 - share, 0.0, share), seed + number, stratify="target")
        fold[left[taken]] = number + 1
        left = left[rest]
    people = people_of(data)
    folds = Folds("people", fold, people, people)
    _refuse_small(data, folds, task, "folds")
    return folds


def group_folds(data: Dataset, groups: pd.Series[Any], task: TaskName, n_folds: int = N_FOLDS, seed: int = 0) -> Folds:
    """Divide whole groups into folds of about as many rows.

    The largest group goes first, each to the fold with the fewest rows. The rows of a person who stands in
    several groups are predicted; the fit that predicts one of them learns from none.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    groups : pandas.Series
        The group of each row: a site, a year, a subject.
    task : {"regression", "classification"}
        What the target is.
    n_folds : int, default=5
        Number of folds; one per group where there are fewer.
    seed : int, default=0
        Seed of the order of groups with equally many rows.

    Returns
    -------
    Folds
        Every row is predicted once, with its whole group.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import group_folds
    >>> data = make_gaussian_regression(60, 4, random_state=0)
    >>> site = pd.Series(list("abc") * 20, name="site")
    >>> group_folds(data, site, "regression").n_folds
    3
    """
    check_count("n_folds", n_folds, 2)
    name = str(groups.name)
    if groups.isna().any():
        raise InputError(
            f"{int(groups.isna().sum())} rows have no {shown(name)}, and groups are held out whole: fill the gaps, or "
            "leave these rows out."
        )
    labels = groups.astype(str).to_numpy()
    names, sizes = np.unique(labels, return_counts=True)
    if len(names) < 2:
        raise InputError(f"All rows have the same {shown(name)} ({some(list(names))}): there is no group to hold out.")
    chance = np.random.default_rng(seed).permutation(len(names))
    filled = np.zeros(min(n_folds, len(names)), dtype=np.intp)
    fold_of = dict[str, int]()
    for i in np.lexsort([chance, -sizes]):
        fold_of[names[i]] = int(np.argmin(filled))
        filled[fold_of[names[i]]] += sizes[i]
    fold = np.array([fold_of[label] for label in labels], dtype=np.intp)
    folds = Folds("groups", fold, people_of(data), labels, name)
    _refuse_small(data, folds, task, "hold_out")
    return folds


def time_folds(data: Dataset, times: pd.Series[Any], task: TaskName, n_folds: int = N_FOLDS - 1) -> Folds:
    """Cut the rows into blocks by time: the first is only learned from, each other is predicted from all before it.

    Rows of the same time stay together. Where ids repeat, the past of an id may be learned from: its future is what
    is asked for.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    times : pandas.Series
        Numbers, such as years, or dates.
    task : {"regression", "classification"}
        What the target is.
    n_folds : int, default=4
        Blocks that are predicted.

    Returns
    -------
    Folds
        All rows but those of the first block are predicted once.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import time_folds
    >>> data = make_gaussian_regression(100, 4, random_state=0)
    >>> folds = time_folds(data, pd.Series(range(100), name="day"), "regression")
    >>> len(folds.tested), [int(side.max()) for side in folds.sides(0)]
    (80, [19, 39])
    """
    check_count("n_folds", n_folds, 1)
    name = str(times.name)
    moments = as_times(times)
    if np.isnan(moments).any():
        raise InputError(
            f"{int(np.isnan(moments).sum())} rows have no {shown(name)}, and rows are put in order by it: fill the "
            "gaps, or leave these rows out."
        )
    values, counts = np.unique(moments, return_counts=True)
    if len(values) < 2:
        raise InputError(f"All rows have the same {shown(name)}: there is no past to learn from; hold out groups.")
    # A moment belongs to the block in which the middle of its rows lies.
    middle = np.cumsum(counts) - counts / 2.0
    block = np.minimum((middle / len(data) * (n_folds + 1)).astype(np.intp), n_folds)
    block = np.unique(block, return_inverse=True)[1]  # a moment with many rows may leave a block empty
    fold = block[np.searchsorted(values, moments)].astype(np.intp) - 1
    folds = Folds("time", fold, people_of(data), fold, name)
    _refuse_small(data, folds, task, "time")
    return folds


def as_times(times: pd.Series[Any]) -> Any:
    """Return times as numbers that are in order: numbers as they are, dates as days; NaN where there is none."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times.to_numpy(dtype=np.float64, na_value=np.nan)
    found = times if pd.api.types.is_datetime64_any_dtype(times.dtype) else _dates(times.astype("string"))
    if (lost := found.isna() & times.notna()).any():
        raise InputError(
            f"{shown(str(times.name))} holds {shown(str(times[lost].iloc[0]))}, which is neither a number nor a date: "
            "write dates as 2024-01-31."
        )
    days = (found.dt.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _dates(text: pd.Series[Any]) -> pd.Series[Any]:
    """Read dates; where any begins with a number above 12 that is no year, the day comes first in all of them."""
    iso = pd.to_datetime(text, format="ISO8601", errors="coerce")
    if iso.notna().sum() == text.notna().sum():
        return iso
    first = pd.to_numeric(text.str.extract(r"^\s*([0-9]{1,2})[^0-9]")[0])
    return pd.to_datetime(text, format="mixed", dayfirst=bool((first > 12).any()), errors="coerce")


def people_of(data: Dataset) -> Any:
    """Return whose row each row is, as text: its group, or its id."""
    return np.asarray(data.X.index if data.groups is None else data.groups).astype(str)


def repeated_people(data: Dataset) -> Any:
    """Return whose row each row is where people or ids repeat, else None."""
    people = people_of(data)
    return people if data.groups is not None or len(np.unique(people)) < len(people) else None


def _refuse_small(data: Dataset, folds: Folds, task: TaskName, parameter: str) -> None:
    """Refuse folds that no model could learn from."""
    assert data.y is not None
    for number in range(folds.n_folds):
        training, test = folds.sides(number)
        if len(training) < 2 * MIN_ROWS:
            raise InputError(
                f"Fold {number + 1} of {folds.n_folds} leaves {len(training)} of {len(data)} rows to learn from, and "
                f"at least {2 * MIN_ROWS} are needed: change {parameter}= or bring more rows."
            )
        if task == "classification" and data.y.iloc[training].nunique() < 2:
            raise InputError(
                f"Without the {len(test)} rows of fold {number + 1} of {folds.n_folds} only one class is left to learn "
                f"from ({some([data.y.iloc[training[0]]])}): change {parameter}=, merge classes, or bring more rows."
            )
