"""Columns of labels and dates: how they become numbers, what is missing, and whether one is the target in disguise."""

from __future__ import annotations

from typing import Any

import pandas as pd

from precisionnet.datasets.cells import looks_like_date
from precisionnet.datasets.checks.finding import Finding, and_list, column_list, counted
from precisionnet.errors import InputError, dropping, shown
from precisionnet.preprocessing.column_kinds import begin_with_digits, needs_encoder, texts

DISGUISED = 0.98
"""Share of the target's variance, or of the errors of guessing its classes, that a column's levels take away."""


def label_columns(X: pd.DataFrame, y: pd.Series[Any] | None, *, filled_in: bool) -> list[Finding]:
    """Report how a fit will treat columns of labels; ``filled_in`` says that the estimator fills gaps."""
    found = list[Finding]()
    useless = [str(name) for name, column in X.items() if len(set(texts(column).dropna())) < 2]
    constant = [name for name in useless if not X[name].isna().any() or X[name].isna().all()]
    if constant:
        carry = "is constant and carries" if len(constant) == 1 else "are constant and carry"
        sentence = f"{column_list(constant)} {carry} no information: leave out with {dropping(constant)}."
        found.append(Finding("error", "constant columns", sentence))
    holes = [str(name) for name in X.columns if X[name].isna().any() and name not in constant]
    if holes and not filled_in:
        rows = int(X[holes].isna().any(axis=1).sum())
        sentence = (
            f"Labels are missing in {and_list([shown(name) for name in holes])}, in {counted(rows, 'row')}: let "
            "missing='indicator' take them for a level, or complete_rows=True leave those rows out."
        )
        found.append(Finding("error", "missing", sentence))
    return [*found, *_disguised(X, y)]


def encoding(X: pd.DataFrame, missing: str) -> list[Finding]:
    """Say what a fit on all of these rows makes of labels and gaps."""
    assumed = missing if missing == "indicator" else "median"
    if not needs_encoder(X, assumed):
        return []
    from precisionnet.preprocessing.table_encoder import encoder_for  # with scikit-learn, which numbers do not need

    try:
        encoder = encoder_for(X, assumed)
    except InputError:  # no column can be used: said by others
        return []
    unread = {
        column.name: known.iloc[0]
        for column in encoder.columns_
        if column.kind == "left out" and len(known := texts(X[column.name]).dropna()) and begin_with_digits(known)
    }
    all_lost, others = encoder.left_out(), encoder.left_out(besides=unread)
    said = [sentence for sentence in encoder.describe() if sentence != all_lost] + ([others] if others else [])
    found = [Finding("note", "encoding", sentence) for sentence in said]
    if unread:
        (name, cell), one = next(iter(unread.items())), len(unread) == 1
        where, it, are = ("", "it", "it is") if one else (f" in {shown(name)}", "them", "they are")
        what, remedy = "numbers that cannot be read", "plain numbers"
        if looks_like_date(cell):
            what, remedy = "dates that stand in no one order", "dates as 2024-01-31"
        sentence = (
            f"{column_list(list(unread))} {'is' if one else 'are'} left out, and may hold {what}, such as "
            f"{shown(cell)}{where}: write {remedy}, or leave {it} out with {dropping(unread)} if {are} an id or text."
        )
        found.append(Finding("warning", "unread numbers", sentence))
    return found


def _disguised(X: pd.DataFrame, y: pd.Series[Any] | None) -> list[Finding]:
    """Columns whose levels, each in several rows, tell the target."""
    if y is None or y.notna().sum() < 10:
        return []
    known = y.notna().to_numpy()
    target = y[known]
    suspects = []
    for name, column in X.items():
        levels = texts(column)[known]
        if len(set(levels.dropna())) < 2 or len(set(levels.dropna())) > len(target) / 5:
            continue
        if pd.api.types.is_float_dtype(target.dtype):
            means = target.groupby(levels.to_numpy(), dropna=False).transform("mean")
            spread = float(((target - target.mean()) ** 2).sum())
            told = 1.0 - float(((target - means) ** 2).sum()) / spread if spread else 0.0
        else:
            counts = pd.crosstab(levels.fillna("").to_numpy(), target.astype(str).to_numpy())
            wrong = len(target) - float(counts.max(axis=1).sum())
            guessing = len(target) - float(counts.sum().max())
            told = 1.0 - wrong / guessing if guessing else 0.0
        if told >= DISGUISED:
            suspects.append(str(name))
    if not suspects:
        return []
    sentence = (
        f"{column_list(suspects)} tell{'s' * (len(suspects) == 1)} target {shown(y.name)} almost by "
        f"{'itself' if len(suspects) == 1 else 'themselves'}: if the target in disguise, leave out with "
        f"{dropping(suspects)}."
    )
    return [Finding("warning", "leakage", sentence)]
