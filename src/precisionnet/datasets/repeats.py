"""Ids that stand more than once in a table.

Rows of one id that are equal in every cell are one row. Rows of one id that differ are a mistake where each id has one
row (a table of scans, tables that are joined), and several rows of one person elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from precisionnet.datasets.joining import TablePart
from precisionnet.errors import InputError, shown, some

WAYS = ("auto", "first", "mean", "drop")
"""What becomes of rows of one id that differ."""


def without_repeats(part: TablePart, how: str = "auto", *, one_row: bool) -> TablePart:
    """Leave out exact repeats and, where there should be one row per id, rows that contradict each other.

    ``how`` is one of WAYS: keep the "first" row of an id, the "mean" of its rows (numbers; the first row's labels), or
    "drop" them all. "auto" drops them where ``one_row`` says that an id has one row, and else leaves them alone.
    """
    if part.ids is None or not part.ids.duplicated().any():
        return part
    cells = pd.concat([part.ids.rename("id"), part.features, part.facts], axis=1).astype(object)
    exact = cells.set_axis(range(cells.shape[1]), axis=1).duplicated().to_numpy()
    if exact.any():
        listed = some(part.ids[exact].unique().tolist())
        n = "1 row repeats" if exact.sum() == 1 else f"{int(exact.sum())} rows repeat"
        said = f"{n} another row of the same id in {part.path!r} exactly, and count once ({listed})."
        part = part.take(np.flatnonzero(~exact)).noting(said)
    assert part.ids is not None
    repeated = part.ids.duplicated(keep=False).to_numpy()
    if not repeated.any() or (how == "auto" and not one_row):
        return part
    names = part.ids[repeated].unique().tolist()
    where = _differing(part, names[0])
    differ = (
        f"{len(names)} id{'' if len(names) == 1 else 's'} of {part.path!r} ({some(names)}) "
        f"{'has' if len(names) == 1 else 'have'} rows that differ ({shown(names[0])} in column {where}): "
    )
    if how == "mean":
        return _averaged(part).noting(f"{differ}the mean of an id's rows was taken.")
    if how == "first":
        first = ~part.ids.duplicated().to_numpy()
        return part.take(np.flatnonzero(first)).noting(f"{differ}the first row of an id was taken.")
    if repeated.all():
        raise InputError(f"{differ}no row is left; keep a row of each with duplicates='first' or duplicates='mean'.")
    kept = part.take(np.flatnonzero(~repeated))
    way = "all of them were left out"
    if how == "drop":
        return kept.noting(f"{differ}{way}.")
    doubt = f"{differ}{way}; correct the table, or keep a row of each with duplicates='first' or duplicates='mean'."
    return replace(kept, doubts=(*kept.doubts, doubt))


def _differing(part: TablePart, name: str) -> str:
    """Columns in which the rows of an id differ."""
    assert part.ids is not None
    both = pd.concat([part.features, part.facts], axis=1)[(part.ids == name).to_numpy()]
    different = [
        str(column) for column, cells in both.items() if not cells.isna().all() and (cells != cells.iloc[0]).any()
    ]
    return some([part.original_names.get(column, column) for column in different])


def _averaged(part: TablePart) -> TablePart:
    """One row per id, where its first row stood: the mean of numbers, the first label that there is."""
    assert part.ids is not None
    owner = part.ids.to_numpy()

    def merged(frame: pd.DataFrame) -> pd.DataFrame:
        columns = {}
        for name, column in frame.items():
            numbers = pd.to_numeric(column, errors="coerce")
            labels = bool((numbers.isna() & column.notna()).any())
            grouped = (column if labels else numbers).groupby(owner, sort=False)
            columns[name] = grouped.first() if labels else grouped.mean()
        return pd.DataFrame(columns, index=pd.unique(owner)).reset_index(drop=True)

    first = part.take(np.flatnonzero(~part.ids.duplicated().to_numpy()))
    features = merged(part.features) if part.features.shape[1] else first.features
    facts = merged(part.facts) if part.facts.shape[1] else first.facts
    return replace(first, features=features, facts=facts)
