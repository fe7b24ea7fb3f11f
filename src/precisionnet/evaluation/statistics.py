"""What the rows of an experiment say: means, and methods compared on the same repeats.

Repeats of one table have most of their rows in common, so their differences are not independent and a plain t-test
finds too much. The corrected resampled t-test (Nadeau and Bengio, Inference for the generalization error, Machine
Learning 52, 2003) widens the variance of the mean of n differences from s^2 / n to s^2 (1/n + n_test/n_train). The
second part stays however many repeats there are: what one table cannot tell, more splits of it cannot tell either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from precisionnet.evaluation.methods import METHODS
from precisionnet.evaluation.metrics import HIGHER_IS_BETTER, METRIC_LABELS
from precisionnet.evaluation.protocol import HELD_OUT
from precisionnet.runner.jobs import Row
from precisionnet.types import LEVEL

SAME = 1e-9
"""Differences that vary by less than this share of their mean are equal but for rounding."""
SCORES = HIGHER_IS_BETTER | {"mae", "mse", "rmse", "log_loss", "l1_error", "frobenius_error"}
"""Metrics that make a method better or worse; a density or a time does not."""
NOT_SUMMARISED = frozenset({"repeat", "seed", "recipe_version", "n_train", "n_validation", "n_test"})


def summarise(rows: Sequence[Row], by: Sequence[str] = ()) -> pd.DataFrame:
    """Summarise rows: mean, standard deviation and number of repeats of every number in them.

    Fits that failed are left out.

    Parameters
    ----------
    rows : sequence of dict
        Rows of an experiment.
    by : sequence of str, default=()
        Settings that are kept apart, such as ``["sparsity"]``.

    Returns
    -------
    DataFrame
        Columns ``mean``, ``std`` (of a sample; NaN for one repeat) and ``n``, indexed by ``by``, method and metric.

    Examples
    --------
    >>> from precisionnet.evaluation import summarise
    >>> rows = [{"method": "ridge", "repeat": k, "mae": 3.0 + k} for k in range(3)]
    >>> float(summarise(rows).loc[("ridge", "mae"), "mean"])
    4.0
    """
    fine = [row for row in rows if not failed(row)]
    groups = _settings(fine, by)
    metrics = _metrics(fine, by)
    lines = [
        (*setting, method, metric, values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan, len(values))
        for setting, here in groups.items()
        for method in methods_of(here)
        for metric in metrics
        if len(values := np.array([row[metric] for row in here if row["method"] == method and _has(row, metric)]))
    ]
    index = [*by, "method", "metric"]
    return pd.DataFrame(lines, columns=[*index, "mean", "std", "n"]).set_index(index)


def summarise_paired(rows: Sequence[Row], by: Sequence[str] = (), *, resampled: bool) -> pd.DataFrame:
    """Add to ``summarise`` the difference of every score to that of joint: difference, low, high.

    NaN for joint itself, for what is no score, and where there is no difference or no interval to be had.
    """
    table = summarise(rows, by)
    columns = ["difference", "low", "high"]
    lines = {}
    for setting, here in _settings([row for row in rows if not failed(row)], by).items():
        for metric in sorted(SCORES.intersection(_metrics(here, by))):
            for method, line in paired(here, "joint", metric, resampled=resampled).iterrows():
                lines[(*setting, method, metric)] = [line[name] for name in columns]
    found = [lines.get(key, [np.nan] * 3) for key in table.index]
    return table.join(pd.DataFrame(found, index=table.index, columns=columns, dtype=float))


def apart(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Divide rows into those of ordinary splits and those tested on groups left out whole."""
    return [row for row in rows if not row.get(HELD_OUT)], [row for row in rows if row.get(HELD_OUT)]


def shift_costs(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """Compare ordinary splits with groups left out whole, method by method.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a comparison with groups left out.
    metric : str
        The number that is compared.

    Returns
    -------
    DataFrame
        Indexed by method: ``ordinary`` and ``left_out``, means over repeats and over folds, and ``cost``, how much
        worse the second is (positive is worse). NaN where a method has no such rows.
    """
    ordinary, left_out = (score_table(part, metric).mean() for part in apart(rows))
    table = pd.DataFrame({"ordinary": ordinary, "left_out": left_out}, index=methods_of(rows), dtype=float)
    sign = -1.0 if metric in HIGHER_IS_BETTER else 1.0
    return table.assign(cost=sign * (table["left_out"] - table["ordinary"])).rename_axis("method")


def paired(
    rows: Sequence[Row], reference: str = "joint", metric: str = "mae", *, resampled: bool = True
) -> pd.DataFrame:
    """Compare every method with ``reference`` on the same repeats.

    One repeat has no interval (NaN), nor have repeats that all differ by the same amount.

    Parameters
    ----------
    rows : sequence of dict
        Rows of one setting.
    reference : str, default="joint"
        The method that is subtracted.
    metric : str, default="mae"
        The number that is compared.
    resampled : bool, default=True
        Whether repeats share rows of one table. If not, they are independent draws of the data, and the interval is
        that of the plain paired t-test.

    Returns
    -------
    DataFrame
        Method minus reference, indexed by method: ``difference``, ``low``, ``high`` (95 % interval) and ``n``.

    Examples
    --------
    >>> from precisionnet.evaluation import paired
    >>> rows = [
    ...     {"method": name, "repeat": k, "mae": error + 0.1 * k * error, "n_train": 60, "n_test": 20}
    ...     for name, error in {"joint": 1.0, "ridge": 2.0}.items()
    ...     for k in range(5)
    ... ]
    >>> paired(rows).round(2).loc["ridge", ["difference", "n"]].tolist()
    [1.2, 5.0]
    """
    table = score_table(rows, metric)
    ratio = _test_to_train(rows) if resampled else 0.0
    lines = {}
    for method in table.columns:
        if method != reference and reference in table:
            difference = (table[method] - table[reference]).dropna().to_numpy()
            lines[method] = (*interval(difference, ratio), len(difference))
    frame = pd.DataFrame.from_dict(lines, orient="index", columns=["difference", "low", "high", "n"])
    return frame.rename_axis("method")


def interval(differences: np.ndarray[Any, Any], test_to_train: float) -> tuple[float, float, float]:
    """Return the mean difference and its 95 % interval by the corrected resampled t-test; NaN where there is none.

    Scores such as accuracies are discrete, so that a few repeats can all differ by the same amount by chance. Their
    deviation of 0 is no certainty: there is no interval then, unless nothing differs at all.
    """
    n = len(differences)
    if n == 0:
        return np.nan, np.nan, np.nan
    mean = float(np.mean(differences))
    if n == 1:
        return mean, np.nan, np.nan
    deviation = float(np.std(differences, ddof=1))
    if mean != 0.0 and deviation <= SAME * abs(mean):
        return mean, np.nan, np.nan
    error = deviation * np.sqrt(1.0 / n + test_to_train)
    half = float(stats.t.ppf(0.5 + LEVEL / 2.0, n - 1) * error)
    return mean, mean - half, mean + half


def endless_repeats(rows: Sequence[Row], reference: str, metric: str, margin: float) -> pd.DataFrame:
    """Say what ever more repeats of one table could tell of every method's difference to ``reference``.

    With endless repeats the corrected interval is D +- h, with h = 1.96 sigma sqrt(n_test/n_train) for the mean D and
    the deviation sigma of the differences over all splits of the table. It tells something only if abs(D) > h, or if
    abs(D) + h is below the margin. Given the table, splits are independent draws, so both can be tested: the first as
    abs(D) / sigma by the noncentral t distribution, the second, which needs h < margin, by the chi-squared one.

    Parameters
    ----------
    rows : sequence of dict
        Rows of one table; each repeat is another split of it.
    reference : str
        The method that is subtracted.
    metric : str
        The number that is compared.
    margin : float
        Below this a difference is small.

    Returns
    -------
    DataFrame
        Indexed by method: ``half``, h as estimated (NaN where there is no interval), and ``undecidable``, whether both
        are refuted, each at 5 %: what repeats could tell is called undecidable in one table of twenty at most.

    Examples
    --------
    >>> from precisionnet.evaluation.statistics import endless_repeats
    >>> errors = {"joint": [3.0, 3.3, 3.1, 3.4, 3.2], "svr": [3.2, 3.0, 3.3, 3.3, 3.1]}
    >>> rows = [
    ...     {"method": name, "repeat": k, "mae": error, "n_train": 60, "n_test": 20}
    ...     for name, some in errors.items()
    ...     for k, error in enumerate(some)
    ... ]
    >>> bool(endless_repeats(rows, "joint", "mae", 0.06).loc["svr", "undecidable"])
    True
    """
    table, ratio = score_table(rows, metric), _test_to_train(rows)
    widest = float(stats.norm.ppf(0.5 + LEVEL / 2.0) * np.sqrt(ratio))
    lines = {}
    for method in table.columns:
        if method != reference and reference in table:
            difference = (table[method] - table[reference]).dropna().to_numpy()
            n, deviation = len(difference), float(np.std(difference, ddof=1)) if len(difference) > 1 else np.nan
            known = n > 1 and ratio > 0.0 and deviation > SAME * abs(float(np.mean(difference)))
            lines[method] = (widest * deviation, known and _undecidable(difference, widest, margin))
    frame = pd.DataFrame.from_dict(lines, orient="index", columns=["half", "undecidable"])
    return frame.rename_axis("method")


def _undecidable(difference: np.ndarray[Any, Any], widest: float, margin: float) -> bool:
    """Whether abs(D) / sigma is below ``widest`` beyond chance, and sigma * ``widest`` above the margin."""
    n, deviation = len(difference), float(np.std(difference, ddof=1))
    t = abs(float(np.mean(difference))) / deviation * np.sqrt(n)
    # P(T <= t) is a little more than P(|T| <= t), so nothing is called undecidable by leaving its other end out.
    never_apart = float(stats.nct.cdf(t, n - 1, widest * np.sqrt(n))) < 1.0 - LEVEL
    never_level = (n - 1) * (widest * deviation) ** 2 > margin**2 * stats.chi2.ppf(LEVEL, n - 1)
    return bool(never_apart and never_level)


def score_table(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """Make a table with one row per repeat and one column per method; NaN where there is no result."""
    scored = [row for row in rows if not failed(row) and is_number(row.get(metric))]
    cells = {(row["repeat"], str(row["method"])): float(row[metric]) for row in scored}
    if len(cells) < len(scored):
        raise ValueError("A method has two rows of one repeat: compare the rows of one setting at a time.")
    methods, repeats = methods_of(scored), sorted({repeat for repeat, _ in cells})
    values = [[cells.get((repeat, method), np.nan) for method in methods] for repeat in repeats]
    return pd.DataFrame(values, index=pd.Index(repeats, name="repeat"), columns=methods, dtype=float)


def methods_of(rows: Sequence[Row]) -> list[str]:
    """List the methods of the rows, in the order of every table."""
    found = {str(row["method"]) for row in rows}
    return [*(name for name in METHODS if name in found), *sorted(found - set(METHODS))]


def failed(row: Row) -> bool:
    """Whether the row says why there is no result."""
    return isinstance(row.get("error"), str)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _test_to_train(rows: Sequence[Row]) -> float:
    ratios = [row["n_test"] / row["n_train"] for row in rows if not failed(row)]
    return float(np.mean(ratios)) if ratios else 0.0


def _settings(rows: Sequence[Row], by: Sequence[str]) -> dict[tuple[object, ...], list[Row]]:
    """Group the rows by setting, in the order they come."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return groups


def _metrics(rows: Sequence[Row], by: Sequence[str]) -> list[str]:
    """List every number of the rows: first those with a label, in the order of every table."""
    found = {name for row in rows for name in row if _has(row, name)} - NOT_SUMMARISED - set(by)
    return [*(name for name in METRIC_LABELS if name in found), *sorted(found - set(METRIC_LABELS))]


def _has(row: Row, metric: str) -> bool:
    return is_number(row.get(metric))
