"""Checks between columns and between rows: repeated columns, totals of others, a scan under two names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from precisionnet.datasets.checks.columns import MANY_ROWS, ColumnSummaries
from precisionnet.datasets.checks.finding import Finding, and_list, column_list, counted
from precisionnet.datasets.dataset import NO_ID
from precisionnet.errors import dropping, shown
from precisionnet.types import FloatArray, IndexArray

NEARLY_THE_SAME = 0.9999
"""|Pearson| above which one column says nothing that the other does not."""
IS_A_TOTAL = 0.99
"""R2 of a non-negative weighting of the others. On ABIDE the mean thickness has 0.997, a region at most 0.92."""
IS_COMPUTED = 0.9999
"""R2 of any weighting of the others."""
CHANCE = 1e-3
"""Expected number of pairs of equal rows, were the columns independent, above which a pair is no news."""


def repeated_columns(columns: ColumnSummaries) -> tuple[list[Finding], IndexArray]:
    """Columns equal to an earlier one, or a multiple of it; and the columns without them."""
    useful = columns.useful()
    close = np.triu(_correlations(columns, useful) > 0.98, k=1)  # worth a look at all rows
    same, multiples, again = list[tuple[str, str]](), list[tuple[str, str]](), set[int]()
    for j in np.flatnonzero(close.any(axis=0)):
        for i in np.flatnonzero(close[:, j]):
            if i in again:
                continue
            one, other = columns.values[:, useful[i]], columns.values[:, useful[j]]
            pair = (columns.names[useful[j]], columns.names[useful[i]])
            if np.array_equal(one, other, equal_nan=True):
                same.append(pair)
            elif abs(_correlation(one, other)) > NEARLY_THE_SAME:
                multiples.append(pair)
            else:
                continue
            again.add(int(j))
            break
    found = list[Finding]()
    for pairs, level, verb, why in (
        (same, "error", "repeats", "the graph could not tell them apart"),
        (multiples, "warning", "is up to scale and rounding", "they share one edge that hides all others"),
    ):
        if pairs:
            listed = and_list([f"{shown(name)} {verb} {shown(first)}" for name, first in pairs])
            sentence = f"Column {listed}: {why}; leave out with {dropping(name for name, _ in pairs)}."
            found.append(Finding(level, "repeated columns", sentence))  # type: ignore[arg-type]
    return found, np.array([j for i, j in enumerate(useful) if i not in again], dtype=np.intp)


def _correlations(columns: ColumnSummaries, which: IndexArray) -> FloatArray:
    """|Pearson| of all pairs in the sampled rows; with holes, nearly that of the rows where both are known."""
    rows = columns.values[np.ix_(columns.sample, which)]
    known = ~np.isnan(rows)
    holes = not known.all()
    means = np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1) if holes else rows.mean(axis=0)
    rows = rows - means
    if holes:
        rows = np.where(known, rows, 0.0)
    rows /= np.maximum(np.sqrt((rows**2).sum(axis=0)), np.finfo(float).tiny)
    product = np.abs(rows.T @ rows)
    if holes:
        shared = (rows**2).T @ known  # what is left of a column's variance where the other is known
        product /= np.sqrt(np.maximum(shared * shared.T, np.finfo(float).tiny))
    return product


def _correlation(one: FloatArray, other: FloatArray) -> float:
    both = ~(np.isnan(one) | np.isnan(other))
    if both.sum() < 3:
        return 0.0
    one, other = one[both] - one[both].mean(), other[both] - other[both].mean()
    norm = np.linalg.norm(one) * np.linalg.norm(other)
    return float(one @ other / norm) if norm > 0 else 0.0


def totals(columns: ColumnSummaries, which: IndexArray) -> list[Finding]:
    """Columns that are a mean or sum of others, or can be computed from them in another way.

    A total is well predicted with weights that are all positive; a part of it needs negative ones.
    """
    rows = columns.sample[~np.isnan(columns.values[np.ix_(columns.sample, which)]).any(axis=1)]
    if len(which) < 4 or len(rows) < 2 * len(which) + 10:
        return []  # with fewer rows any column can be computed from the others
    data = columns.values[np.ix_(rows, which)]
    data = data - data.mean(axis=0)
    data = data / np.maximum(data.std(axis=0), np.finfo(float).tiny)
    gram, inflation = data.T @ data / len(rows), (len(rows) - 1) / (len(rows) - len(which))
    left, sums = list(range(len(which))), list[int]()
    while len(left) >= 4:
        unexplained = inflation * _unexplained(gram[np.ix_(left, left)])
        suspects = [left[k] for k in np.flatnonzero(unexplained < 1.0 - IS_A_TOTAL)]
        suspects.sort(key=lambda j: (-float(gram[j, left].sum()), j))  # a total goes along with everything
        total = next((j for j in suspects[:10] if _is_total(gram, j, [i for i in left if i != j])), None)
        if total is None:
            break
        sums.append(total)
        left.remove(total)
    computed = [left[k] for k in np.flatnonzero(inflation * _unexplained(gram[np.ix_(left, left)]) < 1 - IS_COMPUTED)]
    found = list[Finding]()
    if sums:
        names = [columns.names[which[j]] for j in sums]
        looks = "looks like a total or mean" if len(names) == 1 else "look like totals or means"
        sentence = (
            f"{column_list(names)} {looks} of other columns: that hides the edges between the parts; leave out with "
            f"{dropping(names)}."
        )
        found.append(Finding("warning", "totals", sentence))
    if computed:
        names = [columns.names[which[j]] for j in computed]
        sentence = (
            f"{counted(len(names), 'column')} can be computed exactly from the others "
            f"({and_list([shown(name) for name in names])}), like a difference or shares that add up to 100 %: leave "
            "one of them out, or the graph rests on the penalty alone."
        )
        found.append(Finding("warning", "totals", sentence))
    return found


def _unexplained(gram: FloatArray) -> FloatArray:
    """1 - R2 of each column on all others: the inverse of the diagonal of the inverse."""
    if not len(gram):
        return np.empty(0)
    factor = cholesky(gram + 1e-9 * np.eye(len(gram)), lower=True)
    inverse = solve_triangular(factor, np.eye(len(gram)), lower=True)
    return 1.0 / np.sum(inverse**2, axis=0)


def _is_total(gram: FloatArray, j: int, others: list[int]) -> bool:
    factor = cholesky(gram[np.ix_(others, others)] + 1e-9 * np.eye(len(others)), lower=True)
    rhs = solve_triangular(factor, gram[others, j], lower=True)
    weights, _ = nnls(factor.T, rhs)
    residual = gram[j, j] - 2 * weights @ gram[others, j] + weights @ gram[np.ix_(others, others)] @ weights
    n_parts = weights.sum() ** 2 / max(float(weights @ weights), 1e-300)  # how many, were they equal
    return bool(residual < 1.0 - IS_A_TOTAL and n_parts >= 3.0)


def repeated_rows(columns: ColumnSummaries, people: pd.Series[Any] | None) -> list[Finding]:
    """Rows with the same features: a scan that was entered twice sits on both sides of a split."""
    n_rows, n_columns = columns.values.shape
    weights = np.sqrt(np.arange(2.0, n_columns + 2.0))  # so that rows that differ seldom get equal sums
    key = np.zeros(n_rows)
    known = np.zeros(n_rows, dtype=bool)
    for j in np.flatnonzero(columns.n_known > 0):  # equal rows get equal sums, to the last bit
        scale = max(abs(columns.low[j]), abs(columns.high[j])) or 1.0
        column = columns.values[:, j]
        if columns.n_known[j] == n_rows:
            known[:] = True
        else:
            known |= ~np.isnan(column)
            column = np.where(np.isnan(column), 0.5 * scale, column)
        key += float(weights[j]) / scale * column
    candidates = np.flatnonzero(pd.Series(key).duplicated(keep=False).to_numpy() & known)
    if len(candidates) < 2:
        return []
    by_value: dict[bytes, list[int]] = {}
    for i in candidates:
        row = np.where(np.isnan(columns.values[i]), np.inf, columns.values[i] + 0.0)  # -0.0 is 0.0
        by_value.setdefault(row.tobytes(), []).append(int(i))
    groups = [group for group in by_value.values() if len(group) > 1]
    if not groups:
        return []
    who = pd.Series(columns.ids if people is None else people.to_numpy()).astype(str)
    across = [group for group in groups if len(set(who.iloc[group])) > 1]
    shown_groups = across or groups
    spelled = str if columns.ids.name == NO_ID else shown
    pairs = and_list([" = ".join(spelled(columns.ids[i]) for i in group[:3]) for group in shown_groups])
    n_equal = sum(len(group) for group in shown_groups)
    if _expected_by_chance(columns) > CHANCE:
        sentence = f"{n_equal} rows share all their values with another ({pairs}), as rounded numbers may by chance."
        return [Finding("note", "repeated rows", sentence)]
    thing = "scan" if columns.of_brains else "row"
    if columns.ids.name == NO_ID and people is None:
        sentence = (
            f"{n_equal} rows have exactly the same values as another (rows {pairs}): a {thing} that was entered twice "
            "stands in training and in test at once; remove one of each, or name the id with id=, so that they count "
            "once."
        )
        return [Finding("warning", "repeated rows", sentence)]
    way = (
        f"a {thing} under two names would stand in training and in test at once; remove one of each"
        if across
        else f"a {thing} that was entered twice counts twice; remove one of each"
    )
    whose = "different people" if across and people is not None else "different ids" if across else "one person"
    sentence = f"{n_equal} rows of {whose} have exactly the same values ({pairs}): {way}."
    return [Finding("warning", "repeated rows", sentence)]


def _expected_by_chance(columns: ColumnSummaries) -> float:
    """Pairs of equal rows, were the columns independent of each other."""
    log_chance = 0.0
    sample = columns.sample[:MANY_ROWS]
    for j in range(columns.values.shape[1]):
        share = pd.Series(columns.values[sample, j]).value_counts(normalize=True, dropna=False).to_numpy()
        log_chance += float(np.log(np.sum(share**2)))
    n = float(len(columns.ids))
    return float(np.exp(min(log_chance + np.log(n * (n - 1.0) / 2.0), 700.0)))
