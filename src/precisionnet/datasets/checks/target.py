"""Check the target: what it is, and whether a column or the site gives it away."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc, gammaln

from precisionnet.datasets.checks.columns import ColumnSummaries
from precisionnet.datasets.checks.finding import Finding, and_list, counted
from precisionnet.datasets.validation import check_target, guess_task
from precisionnet.errors import InputError, dropping, shown, some
from precisionnet.types import FloatArray, TaskName

FEW_ROWS, ENOUGH_ROWS = 10, 5_000
DISGUISED = 0.98
"""A column with a larger |Spearman correlation| is the target in disguise. An honest column does not come near it; age
in months, in decades or with a few typing errors does."""
SEPARATED = 0.999
"""A column with a larger area under the ROC curve, at every cut between classes, is the target in disguise."""
_EMPTY_WORDS = frozenset(
    ("at", "of", "the", "and", "in", "on", "to", "a", "an", "scan", "id", "col", "column", "value", "score", "group")
    + ("left", "right", "lh", "rh", "mean")
)
"""Words in a column's name that say nothing about what the column holds."""
CONFOUNDED = 0.14
"""A share of the target explained by the site, corrected for the number of sites, is "large" from here on (Cohen
1988)."""
SURE = 1e-4
"""The share is reported only if its p-value is below this."""
SMALL_SITE = 10
OLDEST = 125.0
"""Nobody is older than this in years: larger ages are in another unit."""


def target_facts(y: pd.Series[Any] | None, task: TaskName | None = None) -> list[Finding]:
    """Report what the target is, and whether it can be learned."""
    if y is None:
        return []
    found = list[Finding]()
    known, name = y.dropna(), shown(y.name)
    if not len(known):
        return [
            Finding("error", "target", f"Target {name} has no value in any row: fill it in, or name another target.")
        ]
    if len(known) < len(y):
        first = shown(y.index[int(y.isna().to_numpy().argmax())])
        sentence = (
            f"Target {name} is missing in {len(y) - len(known):,} of {counted(len(y), 'row')} (first in row {first}): "
            "fill it in, or leave those rows out with complete_rows=True."
        )
        found.append(Finding("error", "target", sentence))
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
        unit = unit_of_age(known)
        if unit:
            sentence = f"Target {name} goes up to {known.max():g}, which looks like {unit[0]}: errors will be in "
            sentence += f"{unit[0]}, too; divide it by {unit[1]} to get years."
            found.append(Finding("warning", "target", sentence))
        sentence = f"Target {name}: numbers from {known.min():.4g} to {known.max():.4g}, median {known.median():.4g}."
    else:
        counts = known.value_counts().sort_index()
        listed = and_list([f"{shown(str(label))} ({n:,})" for label, n in counts.items()], 5)
        sentence = f"Target {name}: {counted(len(counts), 'class', 'classes')}, {listed}."
    return [Finding("note", "target", sentence), *found]


def unit_of_age(y: pd.Series[Any]) -> tuple[str, str] | None:
    """Return the unit that ages seem to be in, and by what to divide them to get years; None for years and no ages."""
    if not names_alike("age", str(y.name)) or not y.max() > OLDEST:
        return None
    return ("months", "12") if y.max() <= 12 * OLDEST else ("days", "365.25")


def leakage(columns: ColumnSummaries, y: pd.Series[Any] | None, task: TaskName | None = None) -> list[Finding]:
    """Report columns that are the target in disguise, by their values or by their names."""
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
            f"{dropping(names)}."
        )
        found.append(Finding("warning", "leakage", sentence))
    told = {columns.names[useful[k]] for k in suspects}
    alike = [name for name in columns.names if name not in told and names_alike(str(y.name), name)]
    if alike and len(alike) <= max(3, len(columns.names) // 5):  # otherwise all columns share the word
        sentence = (
            f"Column {some(alike)} {'is' if len(alike) == 1 else 'are'} named like target {shown(y.name)}: if "
            f"{'it says' if len(alike) == 1 else 'they say'} the same, leave out with {dropping(alike)}."
        )
        found.append(Finding("note", "leakage", sentence))
    return found


def site_confounding(
    y: pd.Series[Any] | None, site: pd.Series[Any] | None, task: TaskName | None = None
) -> list[Finding]:
    """Report how much of the target the site alone explains, small sites, and sites with one class."""
    if site is None:
        return []
    found = list[Finding]()
    missing = int(site.isna().sum())
    if missing:
        first = shown(site.index[int(site.isna().to_numpy().argmax())])
        sentence = f"Site is missing in {counted(missing, 'row')} (first in row {first}): fill it in."
        found.append(Finding("warning", "site", sentence))
    sizes = site.value_counts()
    if len(sizes) > max(2, len(site) / 2):
        sentence = f"Site has {len(sizes)} different values in {counted(len(site), 'row')}: is it an id? "
        sentence += "Name another column with site=."
        return [*found, Finding("warning", "site", sentence)]
    single = sorted(str(name) for name in sizes.index[sizes == 1])
    if single:
        has = "has one row" if len(single) == 1 else "have one row each"
        sentence = f"Site {and_list([shown(name) for name in single])} {has}, from which nothing is learned about it: "
        found.append(Finding("warning", "site", f"{sentence}merge with another site, or leave out."))
    small = sizes[(sizes < SMALL_SITE) & (sizes > 1)].sort_index()
    if len(small):
        listed = and_list([f"{shown(str(name))} ({n})" for name, n in small.items()])
        one = len(small) == 1
        sentence = f"{'A site has' if one else f'{len(small)} sites have'} fewer than {SMALL_SITE} rows: {listed}. "
        sentence += "Too few to estimate a site's own mean and spread; merge or leave out before harmonising."
        found.append(Finding("note", "site", sentence))
    both = site.notna() & (y.notna() if y is not None else False)
    if y is None or both.sum() < 2 or len(sizes) < 2:
        return found
    labels, target = pd.factorize(site[both].astype(str), sort=True)[0], y[both]
    if (task or guess_task(target)) == "regression":
        share, p = _variance_explained(target.to_numpy(dtype=np.float64), labels)
        means = f"a model that only recognises the site reaches R² = {share:.2f}"
        how = f"Site explains {share:.0%} of the variance of target {shown(y.name)}"
    else:
        classes = pd.factorize(target)[0]
        share, p = _association(classes, labels)
        means = "a model that only recognises the site does well above chance"
        how = f"Site and target {shown(y.name)} go together with Cramér's V = {np.sqrt(share):.2f} (0 to 1)"
        found += _one_class_sites(target.astype(str), site[both].astype(str), sizes)
    if p > SURE or share < CONFOUNDED:
        return [*found, Finding("note", "site", f"{how}.")]
    if share > 0.98:
        sentence = f"{how}: the two cannot be told apart, and no score says anything about the target. Bring sites "
        sentence += "that hold all of its values."
    else:
        sentence = f"{how}: {means}. Compare with a prediction from site alone, or test on sites left out of training."
    return [*found, Finding("warning", "site", sentence)]


def _rank_correlations(frame: pd.DataFrame, target: pd.Series[Any]) -> FloatArray:
    """Return the Spearman correlation of each column with the target, over the rows where both are known."""
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
    """Return, for each column, its smallest area under the ROC curve over all cuts between the classes.

    The classes are in the order that the column puts them in. All areas are zero if there are so few rows that chance
    would make a column perfect in more than one of a million tables.
    """
    holes = frame.isna().any().to_numpy()
    if holes.any():  # columns with gaps one by one, over the rows where they are known
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
    """Whether two names mean the same: age, AGE_AT_SCAN, age_months and AgeYears do, age and average do not."""
    wanted, given = _words(target), _words(column)
    return bool(wanted and given and (wanted <= given or given <= wanted))


def _words(name: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[:200])
    return frozenset(re.findall(r"[^\W\d_]+", spaced.lower())) - _EMPTY_WORDS


def _variance_explained(y: FloatArray, labels: Any) -> tuple[float, float]:
    """Return adjusted eta squared (epsilon squared), at least 0, and the p-value of the F test."""
    n, k = len(y), int(labels.max()) + 1
    y = y - y.mean()
    total = float(y @ y)
    if total == 0 or n <= k:
        return 0.0, 1.0
    between = float((np.bincount(labels, weights=y) ** 2 / np.bincount(labels)).sum())
    within = max(total - between, 0.0)
    adjusted = 1.0 - (within / (n - k)) / (total / (n - 1))
    p = fdtrc(k - 1, n - k, (between / (k - 1)) / (within / (n - k))) if within > 1e-12 * total else 0.0
    return float(np.clip(adjusted, 0.0, 1.0)), float(p)


def _association(classes: Any, labels: Any) -> tuple[float, float]:
    """Return Cramér's V squared, corrected for bias (Bergsma 2013), and the p-value of the chi-squared test.

    For two classes V squared is the share of variance that site explains, so one threshold serves both tasks.
    """
    counts = np.zeros((int(classes.max()) + 1, int(labels.max()) + 1))
    np.add.at(counts, (classes, labels), 1.0)
    n, (r, k) = counts.sum(), counts.shape
    if r < 2 or n <= max(r, k):
        return 0.0, 1.0
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / n
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    phi2 = max(0.0, chi2 / n - (k - 1) * (r - 1) / (n - 1))
    smaller = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1))
    return float(np.clip(phi2 / (smaller - 1.0), 0.0, 1.0)), float(chdtrc((k - 1) * (r - 1), chi2))


def _one_class_sites(target: pd.Series[Any], site: pd.Series[Any], sizes: pd.Series[Any]) -> list[Finding]:
    """Report sites whose rows are all of one class, if that is unlikely by chance."""
    shares = target.value_counts(normalize=True)
    lone = []
    for name, own in target.groupby(site.to_numpy(), sort=True):
        if len(own.unique()) == 1 and len(own) >= 3 and shares[own.iloc[0]] ** len(own) < SURE / len(sizes):
            lone.append(f"{shown(str(name))} (only {own.iloc[0]!s:.20}, {counted(len(own), 'row')})")
    if not lone:
        return []
    sentence = f"{'A site holds' if len(lone) == 1 else f'{len(lone)} sites hold'} a single class: {and_list(lone)}. "
    sentence += "What tells the site apart then passes for the class; leave such sites out or test on other sites."
    return [Finding("warning", "site", sentence)]
