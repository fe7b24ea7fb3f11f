"""Whether new rows are like those that a model learned from, and how far they are off where they are not.

- **Units**: a column whose median and spread are about 10, 100, ... or 2.54 times what they were, and far out of its
  range.
- **Means**: the root mean square of the columns' mean differences, in standard deviations of the training rows. Without
  a shift its square is (1/m + 1/n) times a weighted mean of chi-square variables, m new and n training rows, whose
  weights are the eigenvalues of the columns' correlations; by Satterthwaite it is taken for one chi-square variable.
- **How columns go together**: the share of rows that lie further from the others than 99 % of the training rows did
  (``estimators.reference``). So many of m new rows lie above the r-th smallest of n by chance as the beta-binomial
  distribution with n + 1 - r and r says: of few training rows the limit itself is a matter of chance.
- **Target**: the share of predictions outside the training targets.
- **Gaps**: the rows in which a third or more of the columns hold no value, so that training rows' medians predict.

Of a table with labels and gaps the numbers and dates are compared. Labels that the model never saw are named by the
encoder (``TableEncoder.unseen_levels``).

Rows are called shifted where chance explains a finding in fewer than one of a thousand tables, and it is not small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse, stats

from precisionnet.errors import shown
from precisionnet.estimators.reference import compared_nodes, distances, distances_by_variance
from precisionnet.evaluation.metrics import significant
from precisionnet.sparse_matrices import Matrix, is_sparse
from precisionnet.types import FloatArray

CHANCE = 1e-3
"""Probability below which a finding is no chance."""
SMALLEST_SHIFT, SMALLEST_SHARE = 0.2, 0.03
"""Root mean square shift and share of far rows that matter."""
FAR_PERCENT = 99
"""Rows are far where they lie further off than this percentage of the training rows."""
EXTREME = 2.0
"""Rows are extreme where they lie so many times as far off as the furthest training row."""
FACTORS = {10.0**k: 1.25 for k in (-6, -3, -2, -1, 1, 2, 3, 6)} | dict.fromkeys((2.54, 1 / 2.54, 25.4, 1 / 25.4), 1.1)
"""Factors between units in use, and how near to them a ratio has to be."""
MOST_ROWS = 20_000
"""Most rows that are looked at; from a longer table so many are taken, evenly spaced."""
NORMAL_QUARTILES = 1.349
"""Distance of a normal distribution's quartiles, in standard deviations."""
ROWS_FOR_SPREAD = 8
"""With at least so many new rows, a change of unit must also show as the same factor in their spread."""
FILLED_SHARE = 1 / 3
"""A row with so large a share of its columns filled in is hardly the row's own."""
FILLED_NAMED = 5
UNIT_Z = 3.0
"""A column may be in another unit if its median in new rows is so many standard deviations off."""


@dataclass(frozen=True)
class Shift:
    """How new rows differ from those that a model learned from.

    Parameters
    ----------
    n_rows : int
        New rows.
    columns : DataFrame
        One row per column that is compared, the furthest first: ``column``, ``training`` and ``new`` (means), ``shift``
        (their difference in standard deviations), ``spread`` (ratio of the standard deviations) and ``factor`` (between
        the units, NaN where they look the same).
    size : float
        Root mean square of the columns' shifts.
    expected : float
        What chance makes of it.
    p_value : float
        Probability of a size like this by chance.
    share_far : float
        Share of rows that lie further off than 99 % of the training rows.
    p_far : float
        Probability of a share like this by chance.
    n_extreme : int
        Rows that lie twice as far off as any training row.
    share_outside : float
        Share of predictions outside the training targets; NaN of classes.
    target_range : (float, float) or None
        The training targets' ends.
    filled : Series
        Of each row in which medians fill a third or more of the columns: how many, the most first.
    n_fillable : int
        Columns whose gaps medians fill; those of labels have none.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import compare_rows
    >>> data = make_gaussian_regression(n_samples=80, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=2, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> compare_rows(model, data.X).shifted, compare_rows(model, data.X + 3.0).shifted
    (False, True)
    """

    n_rows: int
    columns: pd.DataFrame
    size: float
    expected: float
    p_value: float
    share_far: float
    p_far: float
    n_extreme: int
    share_outside: float
    target_range: tuple[float, float] | None
    filled: pd.Series[Any]
    n_fillable: int

    @property
    def shifted(self) -> bool:
        """Whether the rows are not like those that the model learned from."""
        return bool(self.other_unit.any() or self._moved or self._far or self.n_extreme)

    @property
    def other_unit(self) -> Any:
        """Whether each line of ``columns`` is in another unit."""
        return self.columns["factor"].notna().to_numpy()

    @property
    def _moved(self) -> bool:
        return self.p_value < CHANCE and self.size > SMALLEST_SHIFT

    @property
    def _far(self) -> bool:
        return self.p_far < CHANCE and self.share_far > SMALLEST_SHARE

    def sentence(self) -> str:
        """Return one sentence with the size of the shift; empty where there is none.

        Returns
        -------
        str
            What is different, and by how much.
        """
        if not self.shifted:
            return ""
        if self.other_unit.any():
            return self._unit_sentence()
        findings = []
        if self._moved:
            furthest = self.columns.iloc[0]
            findings.append(
                f"columns lie {significant(self.size, 2)} standard deviations away ({significant(self.expected, 1)} "
                f"by chance), {shown(furthest['column'])} {significant(abs(furthest['shift']), 2)} "
                f"{'above' if furthest['shift'] > 0 else 'below'}"
            )
        if self._far:
            findings.append(
                f"{self.share_far:.0%} of the rows are further off than {FAR_PERCENT} % of the training rows"
            )
        if not findings:
            findings.append(f"{self.n_extreme} of them lie {EXTREME:g} times as far off as any training row")
        if self.share_outside > SMALLEST_SHARE and self.target_range is not None:
            low, high = (significant(end) for end in self.target_range)
            findings.append(f"{self.share_outside:.0%} of the predictions are outside {low} to {high}, what it learned")
        rows = "1 row is" if self.n_rows == 1 else f"{self.n_rows:,} rows are"
        return f"The {rows} not like those that the model learned from: {'; '.join(findings)}."

    def filled_sentence(self) -> str:
        """Return one sentence that names the rows of which little was measured; empty where there are none.

        Returns
        -------
        str
            Which rows, how many of their columns are empty, and what to do.
        """
        n = len(self.filled)
        if not n:
            return ""
        named = ", ".join(f"{shown(row)} ({count})" for row, count in self.filled.iloc[:FILLED_NAMED].items())
        more = f" and {n - FILLED_NAMED:,} more" if n > FILLED_NAMED else ""
        return (
            f"In {n:,} of {self.n_rows:,} rows a third or more of {self.n_fillable:,} columns hold no value: "
            f"{named}{more}. Medians of the training rows stand in for what was not measured: measure it, or do not "
            "rely on the predictions of those rows."
        )

    def _unit_sentence(self) -> str:
        odd = self.columns[self.other_unit]
        first = odd.iloc[0]
        factor = float(odd["factor"].mode().iloc[0])
        size = factor if factor > 1 else 1 / factor
        times = f"{f'{size:,.0f}' if size >= 100 else f'{size:g}'} times {'larger' if factor > 1 else 'smaller'}"
        one = f"Column {shown(first['column'])} is"
        which = one if len(odd) == 1 else f"{len(odd)} of {len(self.columns)} columns are"
        return (
            f"{which} about {times} than in the rows that the model learned from ({shown(first['column'])}: "
            f"{significant(first['new'])} on average, there {significant(first['training'])}): another unit or another "
            "measure? Do not trust these predictions."
        )


def compare_rows(model: Any, X: pd.DataFrame) -> Shift:
    """Compare new rows with those that a model learned from.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        A fitted model.
    X : DataFrame of shape (n_rows, n_features)
        New rows, in the columns of the model; at least one.

    Returns
    -------
    Shift
        How they differ, and whether chance explains it.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import compare_rows
    >>> data = make_gaussian_regression(n_samples=80, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=2, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> compare_rows(model, 10 * (data.X + 20)).shifted
    True
    """
    fitted, n_rows = model.fitted, len(X)
    n_fillable, filled = _filled_rows(fitted, X)
    if n_rows > MOST_ROWS:
        X = X.iloc[np.linspace(0, n_rows - 1, MOST_ROWS).round().astype(np.intp)]
    m = len(X)
    n = fitted.n_rows["training"]
    nodes = compared_nodes(fitted.encoder, fitted.n_features)
    # On a sparse support pairs outside it count as uncorrelated.
    covariance = fitted.covariance[nodes][:, nodes] if fitted.on_support else fitted.covariance[np.ix_(nodes, nodes)]
    deviation = np.sqrt(covariance.diagonal())
    centred = (model.standard_units(X) - fitted.center)[:, nodes]
    z = centred / deviation
    raw_mean, raw_deviation = fitted.scaler.inverse(fitted.center)[nodes], deviation * fitted.scaler.scale[nodes]
    columns = pd.DataFrame(
        {
            "column": model.node_names_[nodes],
            "training": raw_mean,
            "new": raw_mean + z.mean(axis=0) * raw_deviation,
            "shift": z.mean(axis=0),
            "spread": z.std(axis=0) if m > 1 else np.nan,
            "factor": _factors(z, raw_mean, raw_deviation),
        }
    )
    expected = np.sqrt(1.0 / m + 1.0 / n)
    size, p_value = _size(z, _correlation(covariance, deviation), expected)
    rank = 1.0 + FAR_PERCENT / 100 * (n - 1)  # that of the distance above which a row is far, among the training rows'
    far, extreme = _far_rows(fitted, centred, covariance, n)
    limits = None if fitted.reference is None else fitted.reference.target_range
    outside = np.nan
    if limits is not None:
        predicted = model.predict(X)
        outside = float(((predicted < limits[0]) | (predicted > limits[1])).mean())
    order = columns["shift"].abs().sort_values(ascending=False, kind="stable").index
    return Shift(
        n_rows=n_rows,
        columns=columns.loc[order].reset_index(drop=True),
        size=size,
        expected=float(expected),
        p_value=p_value,
        share_far=float(far.mean()),
        p_far=float(stats.betabinom.sf(far.sum() - 1, m, n + 1.0 - rank, rank)),
        n_extreme=int(extreme.sum()),
        share_outside=outside,
        target_range=limits,
        filled=filled,
        n_fillable=n_fillable,
    )


def _filled_rows(fitted: Any, X: pd.DataFrame) -> tuple[int, pd.Series[Any]]:
    """Return how many columns medians can fill, and in how many they do, of the rows that are hardly their own."""
    if fitted.encoder is not None:
        X = X[[column.name for column in fitted.encoder.columns_ if column.kind not in ("category", "left out")]]
    gaps = pd.DataFrame(X).isna().sum(axis=1)
    found = gaps[(gaps > 0) & (gaps >= FILLED_SHARE * X.shape[1])]
    return X.shape[1], found.sort_values(ascending=False, kind="stable")


def _correlation(covariance: Matrix, deviation: FloatArray) -> Matrix:
    if is_sparse(covariance):
        inverse = sparse.diags_array(1.0 / deviation)
        return sparse.csr_array(inverse @ covariance @ inverse)
    return covariance / np.outer(deviation, deviation)


def _size(z: FloatArray, correlation: Matrix, expected: float) -> tuple[float, float]:
    """Return the root mean square of the means, and the probability of such a one by chance."""
    if not z.shape[1]:
        return 0.0, 1.0
    size = float(np.sqrt((z.mean(axis=0) ** 2).mean()))
    if is_sparse(correlation):
        freedom = float(correlation.trace() ** 2 / (correlation.data**2).sum())
    else:
        eigenvalues = np.linalg.eigvalsh(correlation)
        freedom = float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())
    return size, float(stats.chi2.sf(freedom * (size / expected) ** 2, freedom))


def _far_rows(fitted: Any, centred: FloatArray, covariance: Matrix, n: int) -> tuple[Any, Any]:
    """Return which rows are far, and which are extreme; none where the model has nothing to compare them with."""
    if fitted.reference is None or not fitted.reference.distances[-1]:
        return np.zeros(len(centred), dtype=bool), np.zeros(len(centred), dtype=bool)
    known = fitted.reference.distances
    if is_sparse(covariance):
        found = distances_by_variance(centred, covariance.diagonal())
    else:
        found = distances(centred, covariance, n)
    return found > known[FAR_PERCENT], found > EXTREME * known[-1]


def _factors(z: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the factor between units of each column; NaN where a column is in its range or near no factor.

    Another unit multiplies the spread as well: where there are rows enough to see it, it has to be nearer to the factor
    than to 1. It is taken from the quartiles, as gaps that were filled in stand far from the others. With fewer rows
    only columns are judged whose mean is far from zero: else any shift of the mean is a large factor.
    """
    median = np.median(z, axis=0)
    lower, upper = np.quantile(z, [0.25, 0.75], axis=0)
    with np.errstate(all="ignore"):
        ratio = (mean + median * deviation) / mean
        log_spread = np.log((upper - lower) / NORMAL_QUARTILES)
    found: FloatArray = np.full(len(mean), np.nan)
    for factor, within in FACTORS.items():
        near = (np.abs(median) > UNIT_Z) & (ratio > factor / within) & (ratio < factor * within)
        near &= np.abs(mean) > deviation if len(z) < ROWS_FOR_SPREAD else log_spread / np.log(factor) > 0.5
        found[near] = factor
    return found
