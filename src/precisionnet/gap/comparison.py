"""Groups of people compared in their gaps, and in what each column adds to them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from precisionnet.gap.checks import Given
from precisionnet.gap.correction import natural_spline
from precisionnet.gap.group_tests import adjusted_differences
from precisionnet.preprocessing.checks import in_order
from precisionnet.preprocessing.covariates import Coding, as_frame
from precisionnet.types import LEVEL, BoolArray, FloatArray

SURE = 0.05
"""Largest p-value of groups that are said to differ; the same as for graphs of groups and on every page."""


class People:
    """One row per person: rows of one person are averaged before groups are compared."""

    def __init__(self, given: Given) -> None:
        assert given.labels is not None
        age, place, covariates = given.age, given.site, given.covariates["adjust_for"]
        self._code = np.arange(len(age)) if given.groups is None else pd.factorize(given.groups)[0]
        first = np.unique(self._code, return_index=True)[1]
        self.label = given.labels.to_numpy()[first]
        self.age = self.average(age[:, None])[:, 0]
        columns: list[FloatArray] = [np.empty((len(age), 0))]
        if covariates is not None:
            checked = as_frame(covariates, len(age))
            columns.append(Coding.fit(checked).encode(checked))
        if place is not None:
            columns.append(pd.get_dummies(place.astype(str), drop_first=True).to_numpy(dtype=np.float64))
        self._columns = self.average(np.hstack(columns))

    def average(self, values: FloatArray) -> FloatArray:
        """Return the mean of each person's rows."""
        total = np.zeros((int(self._code.max()) + 1, values.shape[1]))
        np.add.at(total, self._code, values)
        return np.asarray(total / np.bincount(self._code)[:, None])

    def beside(self, here: BoolArray) -> FloatArray:
        """Return what differences are adjusted for: a smooth function of age, covariates, sites."""
        age = self.age[here]
        return np.hstack([natural_spline(age).terms(age), self._columns[here]])


def pairs_of(labels: pd.Series[Any], controls: Any) -> list[tuple[Any, Any]]:
    """Return the pairs to compare: everybody with the controls, or all with all."""
    names = in_order(labels.tolist())
    if controls is None:
        return [(b, a) for a, b in combinations(names, 2)]
    return [(name, controls) for name in names if name != controls]


def compared_gaps(
    people: People,
    pairs: list[tuple[Any, Any]],
    values: FloatArray,
    kinds: list[str],
    factor_errors: list[float],
    n_permutations: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return one row per pair and kind of gap; ``factor_errors`` are the relative errors of the factors in them."""
    averaged, lines = people.average(values), []
    for a, b in pairs:
        here = (people.label == a) | (people.label == b)
        in_a = people.label[here] == a
        own = averaged[here]
        found = adjusted_differences(own, in_a, people.beside(here), n_permutations, rng)
        for j, kind in enumerate(kinds):
            low, high = (ends[j] for ends in found.interval(LEVEL, factor_errors[j]))
            size = found.difference[j] / found.deviation[j]
            reach = stats.norm.ppf(0.5 + LEVEL / 2) * np.hypot(
                found.standard_error[j] / found.deviation[j], size / np.sqrt(2.0 * found.degrees)
            )
            lines.append(
                {
                    "group_a": a,
                    "group_b": b,
                    "kind": kind,
                    "n_a": int(in_a.sum()),
                    "n_b": int((~in_a).sum()),
                    "mean_a": own[in_a, j].mean(),
                    "mean_b": own[~in_a, j].mean(),
                    "difference": found.difference[j],
                    "low": low,
                    "high": high,
                    "effect_size": size,
                    "effect_low": size - reach,
                    "effect_high": size + reach,
                    "p_value": found.p_value[j],
                }
            )
    return pd.DataFrame(lines)


def compared_regions(
    people: People,
    pairs: list[tuple[Any, Any]],
    parts: pd.DataFrame,
    n_permutations: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return what each column adds to each difference. The columns' parts add up to the difference of all of them."""
    averaged, tables = people.average(parts.to_numpy(dtype=np.float64)), []
    for a, b in pairs:
        here = (people.label == a) | (people.label == b)
        found = adjusted_differences(averaged[here], people.label[here] == a, people.beside(here), n_permutations, rng)
        low, high = found.interval(LEVEL)
        tables.append(
            pd.DataFrame(
                {
                    "group_a": a,
                    "group_b": b,
                    "column": [str(name) for name in parts.columns],
                    "difference": found.difference,
                    "low": low,
                    "high": high,
                    "p_value": found.pooled_p_value,
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    return table.assign(q_value=stats.false_discovery_control(table["p_value"].to_numpy()))
