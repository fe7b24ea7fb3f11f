"""Ids that stand more than once in a table.

Rows of one id that are equal in every cell are one row. Rows of one id that differ contradict each other, and none of
them can be trusted, unless they are several rows of one person: where the table says so (``person=`` names the id, a
column says which visit it is) or most ids have several rows.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from precisionnet.datasets.joining import TablePart
from precisionnet.errors import InputError, shown, some
from precisionnet.types import BoolArray

WAYS = ("auto", "first", "mean", "drop", "keep")
"""The ways of dealing with several rows of one id that differ."""
MOSTLY = 0.5
"""Share of ids with several rows above which these are visits, and not mistakes."""
_VISIT = re.compile(
    r"(time|tp|day|week|month|year|scan|run|trial|phase|ses|follow[ _-]?up)[ _-]?(no|nr|number|id|point)?"
    r"|(.*[ _.-])?(visit|session|wave|time[ _-]?point|date)s?([ _.-].*)?",
    re.IGNORECASE,
)
"""Names of columns that tell the rows of one person apart."""


def without_repeats(part: TablePart, how: str = "auto", *, one_row: bool, of_people: bool = False) -> TablePart:
    """Leave out exact repeats, and rows of one id that contradict each other.

    ``how`` is one of WAYS: keep the "first" row of an id, the "mean" of its rows (numbers; the first row's labels),
    "drop" them all, or "keep" them as rows of one person. "auto" keeps them where the table shows that they are that,
    and else drops them. Where a table needs one row per id (``one_row``) there is nothing to keep; ``of_people`` says
    that the id names people, who may have several rows.
    """
    if part.ids is None or not part.ids.duplicated().any():
        return part
    cells = pd.concat([part.ids.rename("id"), part.features, part.facts], axis=1).astype(object)
    exact = cells.set_axis(range(cells.shape[1]), axis=1).duplicated().to_numpy()
    if exact.any():
        listed = some(part.ids[exact].unique().tolist())
        one = exact.sum() == 1
        n, count = ("1 row repeats", "counts") if one else (f"{int(exact.sum())} rows repeat", "count")
        said = f"{n} another row of the same id in {part.path!r} exactly, and {count} once ({listed})."
        part = part.take(np.flatnonzero(~exact)).noting(said)
    assert part.ids is not None
    repeated = part.ids.duplicated(keep=False).to_numpy()
    if not repeated.any() or (not one_row and (how == "keep" or (how == "auto" and of_people))):
        return part
    names = part.ids[repeated].unique().tolist()
    if how == "auto" and not one_row and (why := _why_visits(part, repeated)):
        return part.noting(
            f"{len(names)} of {part.ids.nunique()} ids of {part.path!r} ({some(names)}) "
            f"{'has' if len(names) == 1 else 'have'} several rows, taken for rows of one person ({why}): they stay "
            "together in every split."
        )
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
    way = f"all {int(repeated.sum())} of them were left out"
    if how == "drop":
        return kept.noting(f"{differ}{way}.")
    doubt = f"{differ}{way}; correct the table, or keep a row of each with duplicates='first' or duplicates='mean'"
    if not one_row:
        doubt += f", or all, if they are visits of one person, with person={shown(str(part.ids.name or 'id'))}"
    return replace(kept, doubts=(*kept.doubts, f"{doubt}."))


def _why_visits(part: TablePart, repeated: BoolArray) -> str:
    """Say what shows that an id's rows are visits of one person; empty where nothing does."""
    assert part.ids is not None
    owner = part.ids[repeated]
    both = pd.concat([part.features, part.facts], axis=1)
    for name in both.columns:
        if _VISIT.fullmatch(str(name)):
            column = both.loc[repeated, name]
            if column.notna().all() and not pd.DataFrame({"owner": owner, "visit": column}).duplicated().any():
                return f"column {shown(str(name))} tells them apart"
    return "most ids have" if owner.nunique() > MOSTLY * part.ids.nunique() else ""


def _differing(part: TablePart, name: str) -> str:
    """Name the columns in which the rows of an id differ."""
    assert part.ids is not None
    both = pd.concat([part.features, part.facts], axis=1)[(part.ids == name).to_numpy()]
    different = [
        str(column) for column, cells in both.items() if not cells.isna().all() and (cells != cells.iloc[0]).any()
    ]
    return some([part.original_names.get(column, column) for column in different])


def _averaged(part: TablePart) -> TablePart:
    """Merge the rows of each id, in the place of the first: the mean of its numbers, and its first label."""
    assert part.ids is not None
    owner = part.ids.to_numpy()

    def merged(frame: pd.DataFrame) -> pd.DataFrame:
        columns = {}
        for name, column in frame.items():
            dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
            numbers = column if dates else pd.to_numeric(column, errors="coerce")
            labels = bool((numbers.isna() & column.notna()).any())
            grouped = (column if labels else numbers).groupby(owner, sort=False)
            columns[name] = grouped.first() if labels else grouped.mean()
        return pd.DataFrame(columns, index=pd.unique(owner)).reset_index(drop=True)

    first = part.take(np.flatnonzero(~part.ids.duplicated().to_numpy()))
    features = merged(part.features) if part.features.shape[1] else first.features
    facts = merged(part.facts) if part.facts.shape[1] else first.facts
    return replace(first, features=features, facts=facts)
