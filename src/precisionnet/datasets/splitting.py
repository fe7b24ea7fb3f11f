"""Training, validation and test rows: whole people, alike in site or target, whatever the order of the table.

People are dealt to the three sides like cards. They lie sorted by stratum, then by their number of rows (strata in
random order, equals in random order), the pile is cut somewhere, and each goes to the side that lacks most of its share
of people. So every stratum, and every run of small strata, is divided as asked for, without a smallest size; people
with many rows are spread like people with few; and each person lands on each side with the chance that its share is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from precisionnet.arguments import check_choice
from precisionnet.errors import InputError
from precisionnet.types import IndexArray

StratifyName = Literal["auto", "target", "site", "none"]
STRATIFY = ("auto", "target", "site", "none")
N_BINS = 10
"""Quantile bins of a target with more different values than this."""


def split_rows(
    ids: pd.Index[Any],
    fractions: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int = 0,
    *,
    groups: pd.Series[Any] | None = None,
    y: pd.Series[Any] | None = None,
    site: pd.Series[Any] | None = None,
    stratify: StratifyName = "auto",
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Positions of the rows of each side, ascending. A person is a value of ``groups``, else an id."""
    shares = _check_fractions(fractions)
    labels = _strata(stratify, y, site, len(ids))
    person = pd.Series(ids if groups is None else groups.to_numpy()).astype(str)
    people = pd.DataFrame({"person": person, "stratum": labels}).groupby("person", sort=True)["stratum"]
    size, stratum = people.size().to_numpy(), people.agg(lambda strata: strata.min()).to_numpy()
    rng = np.random.default_rng(seed)
    _, stratum = np.unique(stratum, return_inverse=True)
    order = np.lexsort([rng.permutation(len(size)), size, rng.permutation(stratum.max() + 1)[stratum]])
    order = np.roll(order, rng.integers(len(order)))
    side = np.empty(len(size), dtype=int)
    given = np.zeros(3)
    for n, i in enumerate(order, start=1):
        side[i] = int(np.argmax(shares * n - given))
        given[side[i]] += 1
    names = people.size().index
    side_of_row = pd.Series(side, index=names).loc[person].to_numpy()
    parts = [np.flatnonzero(side_of_row == k) for k in range(3)]
    for share, part, name in zip(shares, parts, ("training", "validation", "test"), strict=True):
        if share > 0 and len(part) == 0:
            raise InputError(
                f"No row is left for {name}: {len(ids)} rows of {len(size)} people cannot be split "
                f"{'/'.join(f'{100 * s:.3g}' for s in shares)}; bring more people or change the fractions."
            )
    return parts[0], parts[1], parts[2]


def _check_fractions(fractions: Sequence[float]) -> Any:
    try:
        shares = np.asarray(fractions, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    total = shares.sum()
    fine = shares.shape == (3,) and bool((shares >= 0).all()) and shares[0] > 0
    if not fine or not (np.isclose(total, 1.0) or np.isclose(total, 100.0)):
        raise InputError(
            f"fractions must be three shares that add up to 1 (or 100), training first and not zero, got "
            f"{fractions!r}: for example (0.6, 0.2, 0.2)."
        )
    return shares / total


def _strata(stratify: str, y: pd.Series[Any] | None, site: pd.Series[Any] | None, n: int) -> Any:
    """One label a row."""
    check_choice("stratify", stratify, STRATIFY)
    if stratify == "auto":
        stratify = "target" if y is not None else "site" if site is not None else "none"
    if stratify == "none":
        return np.zeros(n, dtype=int)
    source = y if stratify == "target" else site
    if source is None:
        raise InputError(f"stratify={stratify!r} needs a {stratify}, and this data set has none: name it when loading.")
    many = pd.api.types.is_numeric_dtype(source.dtype) and source.nunique() > N_BINS
    if stratify == "target" and many:
        return pd.qcut(source.to_numpy(), N_BINS, labels=False, duplicates="drop")
    return source.astype(str).to_numpy()
