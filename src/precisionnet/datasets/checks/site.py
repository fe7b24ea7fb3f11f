"""Does the site give the target away? And are the sites large and mixed enough?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc

from precisionnet.datasets.checks.finding import Finding, and_list, counted
from precisionnet.datasets.validation import guess_task
from precisionnet.errors import shown
from precisionnet.types import FloatArray, TaskName

CONFOUNDED = 0.14
"""Share of the target that site explains from which it is "large" (Cohen 1988), corrected for the number of sites."""
SURE = 1e-4
"""And chance must be less likely than this to explain it."""
FEW_ROWS = 10


def site_confounding(
    y: pd.Series[Any] | None, site: pd.Series[Any] | None, task: TaskName | None = None
) -> list[Finding]:
    """How much of the target the site alone tells, small sites, and sites with one class."""
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
        sentence = f"Site has {len(sizes)} different values in {counted(len(site), 'row')}: is it an id? Check --site."
        return [*found, Finding("warning", "site", sentence)]
    small = sizes[sizes < FEW_ROWS].sort_index()
    if len(small):
        listed = and_list([f"{shown(str(name))} ({n})" for name, n in small.items()])
        one = len(small) == 1
        sentence = f"{'A site has' if one else f'{len(small)} sites have'} fewer than {FEW_ROWS} rows: {listed}. "
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


def _variance_explained(y: FloatArray, labels: Any) -> tuple[float, float]:
    """Adjusted eta squared (epsilon squared), at least 0, and the p-value of the F test."""
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
    """Cramér's V squared, corrected for bias (Bergsma 2013), and the p-value of the chi-squared test.

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
    """Sites whose rows all have one class, where chance would hardly give that."""
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
