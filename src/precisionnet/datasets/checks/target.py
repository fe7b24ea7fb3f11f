"""What the target is, and whether a column gives it away."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from precisionnet.datasets.checks.columns import Columns
from precisionnet.datasets.checks.finding import Finding, and_list, counted, drop_options
from precisionnet.datasets.validation import check_target, guess_task
from precisionnet.errors import InputError, shown, some
from precisionnet.types import FloatArray, TaskName

FEW_ROWS, ENOUGH_ROWS = 10, 5_000
DISGUISED = 0.98
"""|Spearman|: an honest single column does not come near; age in months, in decades or mistyped here and there does."""
SEPARATED = 0.999
"""Area under the ROC curve of one column at every cut between classes."""
_EMPTY_WORDS = frozenset(
    ("at", "of", "the", "and", "in", "on", "to", "a", "an", "scan", "id", "col", "column", "value", "score", "group")
    + ("left", "right", "lh", "rh", "mean")
)
"""Words of a name that say nothing about what it names."""


def target_facts(y: pd.Series[Any] | None, task: TaskName | None = None) -> list[Finding]:
    """What the target is, and whether it can be learned."""
    if y is None:
        return []
    found = list[Finding]()
    known, name = y.dropna(), shown(y.name)
    if len(known) < len(y):
        first = shown(y.index[int(y.isna().to_numpy().argmax())])
        sentence = (
            f"Target {name} is missing in {len(y) - len(known):,} of {counted(len(y), 'row')} (first in row {first}): "
            "fill it in, or let --complete-rows leave those rows out."
        )
        found.append(Finding("error", "target", sentence))
    if not len(known):
        return found
    if pd.api.types.is_float_dtype(known.dtype) and not np.isfinite(known.to_numpy()).all():
        return [*found, Finding("error", "target", f"Target {name} holds infinity: correct or remove those rows.")]
    guessed = task is None
    task = task or guess_task(known)
    try:
        known = check_target(known, task)
    except InputError as problem:
        number = pd.api.types.is_numeric_dtype(known.dtype) and len(known.unique()) > 1
        return [*found, Finding("warning" if guessed and number else "error", "target", str(problem))]
    if task == "regression":
        sentence = f"Target {name}: numbers from {known.min():.4g} to {known.max():.4g}, median {known.median():.4g}."
    else:
        counts = known.value_counts().sort_index()
        listed = and_list([f"{shown(str(label))} ({n:,})" for label, n in counts.items()], 5)
        sentence = f"Target {name}: {counted(len(counts), 'class', 'classes')}, {listed}."
    return [Finding("note", "target", sentence), *found]


def leakage(columns: Columns, y: pd.Series[Any] | None, task: TaskName | None = None) -> list[Finding]:
    """A column that is the target in disguise, by its values or by its name."""
    if y is None or y.notna().sum() < FEW_ROWS or y.nunique() < 2:
        return []
    known = columns.sample[y.iloc[columns.sample].notna().to_numpy()]
    known = known[:: -(-len(known) // ENOUGH_ROWS)]
    target = y.iloc[known].reset_index(drop=True)
    useful = columns.useful()
    if not len(useful):
        return []
    frame = pd.DataFrame(columns.values[np.ix_(known, useful)])
    if (task or guess_task(target)) == "regression":
        strength = np.abs(_rank_correlations(frame, target))
        suspects, how = np.flatnonzero(strength >= DISGUISED), "rank correlation {:.3f}"
    else:
        strength = _separation(frame, pd.factorize(target)[0])
        suspects, how = np.flatnonzero(strength >= SEPARATED), "alone it separates the classes, AUC {:.3f}"
    found = list[Finding]()
    if len(suspects):
        order = sorted(suspects, key=lambda k: (-strength[k], k))
        names = [columns.names[useful[k]] for k in order]
        listed = and_list([f"{shown(name)} ({how.format(strength[k])})" for name, k in zip(names, order, strict=True)])
        sentence = (
            f"Column {listed} may be target {shown(y.name)} in disguise: the fit would look perfect and be worth "
            f"nothing. If {'it comes' if len(names) == 1 else 'they come'} from the target, leave out with "
            f"{drop_options(names)}."
        )
        found.append(Finding("warning", "leakage", sentence))
    told = {columns.names[useful[k]] for k in suspects}
    alike = [name for name in columns.names if name not in told and names_alike(str(y.name), name)]
    if alike and len(alike) <= max(3, len(columns.names) // 5):  # else it is a word that all columns share
        sentence = (
            f"Column {some(alike)} {'is' if len(alike) == 1 else 'are'} named like target {shown(y.name)}: if "
            f"{'it says' if len(alike) == 1 else 'they say'} the same, leave out with {drop_options(alike)}."
        )
        found.append(Finding("note", "leakage", sentence))
    return found


def _rank_correlations(frame: pd.DataFrame, target: pd.Series[Any]) -> FloatArray:
    """Spearman correlation of each column with the target, over the rows where both are known."""
    found = np.zeros(frame.shape[1])
    y_ranks = target.rank().to_numpy(dtype=np.float64)
    ranks = frame.rank().to_numpy(dtype=np.float64)
    holes = np.isnan(ranks).any(axis=0)
    for j in range(frame.shape[1]):
        x, own = ranks[:, j], y_ranks
        if holes[j]:
            rows = ~np.isnan(x)
            x, own = x[rows], target[rows].rank().to_numpy(dtype=np.float64)
        if len(x) >= FEW_ROWS:
            x, own = x - x.mean(), own - own.mean()
            norm = np.sqrt((x @ x) * (own @ own))
            found[j] = x @ own / norm if norm > 0 else 0.0
    return found


def _separation(frame: pd.DataFrame, classes: Any) -> FloatArray:
    """The smallest area under the ROC curve over all cuts between the classes, each column ordering them its own way.

    A column that comes out perfect by luck more often than once in a million tables is not counted.
    """
    holes = frame.isna().any().to_numpy()
    if holes.any():  # those columns one by one, over the rows where they are known
        found = np.zeros(frame.shape[1])
        if not holes.all():
            found[~holes] = _separation(frame.loc[:, ~holes], classes)
        for j in np.flatnonzero(holes).tolist():
            column = frame.iloc[:, [j]].dropna()
            if len(column):
                found[j] = _separation(column, pd.factorize(classes[column.index])[0])[0]
        return found
    k = int(classes.max()) + 1
    sizes = np.bincount(classes, minlength=k).astype(float)
    arrangements = gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum() - gammaln(k + 1)
    if k < 2 or arrangements < np.log(1e6 * frame.shape[1]):
        return np.zeros(frame.shape[1])
    ranks = frame.rank().to_numpy(dtype=np.float64)
    sums = np.stack([ranks[classes == c].sum(axis=0) for c in range(k)])
    order = np.argsort(sums / sizes[:, None], axis=0, kind="stable")[::-1]
    above, above_ranks = sizes[order].cumsum(axis=0)[:-1], np.take_along_axis(sums, order, axis=0).cumsum(axis=0)[:-1]
    areas = (above_ranks - above * (above + 1) / 2) / (above * (sizes.sum() - above))
    return np.asarray(areas.min(axis=0))


def names_alike(target: str, column: str) -> bool:
    """AGE_AT_SCAN, age_months and AgeYears are alike; average is not."""
    wanted, given = _words(target), _words(column)
    return bool(wanted and given and (wanted <= given or given <= wanted))


def _words(name: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[:200])
    return frozenset(re.findall(r"[^\W\d_]+", spaced.lower())) - _EMPTY_WORDS
