"""Check the input of a gap study: every complaint is one sentence, and all of them are raised at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets.checks.target import DISGUISED, names_alike, unit_of_age
from precisionnet.datasets.validation import first_row
from precisionnet.errors import InputError, refuse_all, shown, some
from precisionnet.evidence.covariates import covariate_columns
from precisionnet.evidence.design import FEWEST_PEOPLE as FEWEST_IN_GROUP
from precisionnet.evidence.design import MOST_GROUPS
from precisionnet.gap.model import FEWEST_PEOPLE
from precisionnet.preprocessing.checks import in_order
from precisionnet.types import BoolArray, FloatArray

_WITH_UNIT = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)?\s*[a-zA-Z]+\.?\s*")


@dataclass(frozen=True)
class Given:
    """The checked input of a study: every array has one entry per row, and nothing is missing."""

    target: str
    age: FloatArray
    labels: pd.Series[Any] | None
    groups: pd.Series[Any] | None
    site: pd.Series[Any] | None
    covariates: dict[str, pd.DataFrame | None]
    """``inputs``, ``regress_out`` and ``adjust_for``."""
    learned: BoolArray
    """Mask of the rows that are learned from."""

    @property
    def adjusted_for(self) -> list[str]:
        """The numbers that differences are adjusted for."""
        covariates = self.covariates["adjust_for"]
        named = [] if covariates is None else [str(name) for name in covariates]
        return [self.target, *([] if self.site is None else ["site"]), *named]


def checked_study(y: Any, n: int, **given: Any) -> Given:
    """Return what is given in one shape, or refuse it with all complaints at once; ``n`` is the number of rows of X."""
    study, complaints = looked_at(y, n, **given)
    refuse_all(complaints)
    assert study is not None
    return study


def looked_at(
    y: Any, n: int, *, labels: Any, controls: Any, groups: Any, site: Any, combat: bool, **covariates: Any
) -> tuple[Given | None, list[str]]:
    """Return what is given in one shape, None where the target is None, and every complaint about it."""
    target = None if y is None else _column(y, n, "y", str(getattr(y, "name", None) or "y"))
    by, person, place = (
        None if values is None else _column(values, n, name, name)
        for values, name in ((labels, "labels"), (groups, "groups"), (site, "site"))
    )
    frames = {name: None if values is None else _covariates(values, n) for name, values in covariates.items()}
    learned = np.ones(n, dtype=bool) if by is None or controls is None else (by == controls).to_numpy()
    rows = y.index if isinstance(y, pd.Series) else pd.RangeIndex(n)
    complaints = [
        *([] if target is None else target_complaints(target, rows)),
        *group_complaints(by, controls, person, rows),
        *site_complaints(place, learned, rows, combat=combat),
        *([] if target is None else covariate_complaints(frames, target, by, place)),
    ]
    if target is None or complaints:
        return None, complaints
    return Given(str(target.name), target.to_numpy(dtype=np.float64), by, person, place, frames, learned), []


def _in_rows(missing: pd.Series[Any], rows: pd.Index[Any]) -> str:
    """Say in how many rows something is missing, and in which first, as a person finds it in the table."""
    first = first_row(missing.set_axis(rows))
    return f"missing in {int(missing.sum())} of {len(missing)} rows (row {first} is the first)"


def target_complaints(y: pd.Series[Any], rows: pd.Index[Any]) -> list[str]:
    """Say what is wrong with the target: text, units in its cells, days or months in place of years."""
    name = shown(str(y.name))
    if y.isna().any():
        return [f"Target {name} is {_in_rows(y.isna(), rows)}: leave those rows out with complete_rows=True."]
    if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        cell = str(y.iloc[0])
        if _WITH_UNIT.fullmatch(cell):
            return [
                f"Target {name} has its unit in the cells ({shown(cell)}): write numbers alone, in years for an age."
            ]
        return [f"Target {name} holds {shown(cell)}, not numbers: name a column of numbers, such as ages in years."]
    values = y.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return [f"Target {name} holds infinity: correct or leave out those rows."]
    if values.min() == values.max():
        return [f"Target {name} is always {values[0]:g}: there is nothing to predict; name another target."]
    if not names_alike("age", str(y.name)):
        return []
    if values.min() < 0.0:
        return [f"Target {name} goes down to {values.min():g}: nobody is younger than 0; is that a code for missing?"]
    unit = unit_of_age(y)
    if unit is None:
        return []
    return [
        f"Target {name} goes up to {values.max():g}, which looks like {unit[0]}: divide it by {unit[1]} to get years, "
        "or rename the column if it is no age."
    ]


def group_complaints(
    labels: pd.Series[Any] | None, controls: Any, groups: pd.Series[Any] | None, rows: pd.Index[Any]
) -> list[str]:
    """Say what is wrong with groups and controls: none of them, too few, people in several groups."""
    n = len(rows)
    if groups is not None and groups.isna().any():
        return [
            f"Whose row it is is {_in_rows(groups.isna(), rows)}: fill groups= in, or leave them out with "
            "complete_rows=True."
        ]
    whose, people = ("rows", n) if groups is None else ("people", groups.nunique())
    if labels is None:
        wrong = (
            [] if controls is None else ["controls= names a group, and there are no groups: name them with labels=."]
        )
        if people < FEWEST_PEOPLE:
            wrong.append(f"{people} {whose} are too few to learn a gap from: bring at least {FEWEST_PEOPLE}.")
        return wrong
    if labels.isna().any():
        return [
            f"The group is {_in_rows(labels.isna(), rows)}: give them a group, or leave them out with "
            "complete_rows=True."
        ]
    counts = (
        (pd.Series(np.arange(n)) if groups is None else groups.reset_index(drop=True))
        .groupby(labels.reset_index(drop=True), sort=False)
        .nunique()
    )
    names = in_order(counts.index.tolist())
    listed = ", ".join(f"{shown(name)} ({counts[name]})" for name in names[:5])
    if len(names) < 2:
        return [f"All rows are of group {shown(names[0])}: give at least two groups, or leave labels= out."]
    if len(names) > MOST_GROUPS:
        return [
            f"labels= has {len(names)} different values ({listed}, ...): merge them into at most {MOST_GROUPS} groups."
        ]
    wrong = []
    if controls is not None and controls not in names:
        wrong.append(f"There are no controls: no row is of group {shown(controls)}; the groups are {listed}.")
    learned = people if controls is None or controls not in names else int(counts[controls])
    if learned < FEWEST_PEOPLE:
        which = "" if controls is None else f" of group {shown(controls)}"
        wrong.append(f"{learned} {whose}{which} are too few to learn a gap from: bring at least {FEWEST_PEOPLE}.")
    few = [name for name in names if counts[name] < FEWEST_IN_GROUP and name != controls]
    wrong += [
        f"Group {shown(name)} has {counts[name]} {whose}: at least {FEWEST_IN_GROUP} are needed to compare it; bring "
        "more, merge it with another group, or leave its rows out."
        for name in few
    ]
    if groups is not None:
        several = labels.astype(str).groupby(groups.to_numpy()).nunique()
        both = several.index[several > 1].tolist()
        if both:
            wrong.append(f"{len(both)} people are in several groups ({some(both)}): keep one group's rows of each.")
    return wrong


def site_complaints(site: pd.Series[Any] | None, learned: Any, rows: pd.Index[Any], *, combat: bool) -> list[str]:
    """Say what is wrong with sites: missing, with one row, or without controls where they are to be harmonised."""
    if site is None:
        return ["combat=True harmonises sites, and there are none: name their column with site=."] if combat else []
    if site.isna().any():
        return [f"Site is {_in_rows(site.isna(), rows)}: give them one, or leave them out with complete_rows=True."]
    counts = site.value_counts()
    single = in_order(counts.index[counts == 1].tolist())
    wrong = []
    if single:
        wrong.append(
            f"Site {some(single)} has one row, from which nothing is learned about it: merge it with another site, or "
            "leave its row out."
        )
    if combat:
        known = site[learned].value_counts().reindex(counts.index, fill_value=0)
        blind = [name for name in in_order(counts.index[known < 2].tolist()) if name not in single]
        if blind:
            wrong.append(
                f"Site {some(blind)} has fewer than two controls, so what it does to the columns cannot be told from "
                "what the others have: leave the site out, or combat=."
            )
    return wrong


def covariate_complaints(
    frames: Mapping[str, pd.DataFrame | None],
    y: pd.Series[Any],
    labels: pd.Series[Any] | None,
    site: pd.Series[Any] | None,
) -> list[str]:
    """Say what is wrong with covariates: missing, the target in disguise, or the groups under another name."""
    wrong = []
    for frame in frames.values():
        if frame is None:
            continue
        gaps = [str(name) for name in frame if frame[name].isna().any()]
        if gaps:
            rows = int(frame.isna().any(axis=1).sum())
            wrong.append(
                f"Covariate {some(gaps)} is missing in {rows} of {len(frame)} rows: fill it in, or leave those rows "
                "out with complete_rows=True."
            )
        flat = [str(name) for name in frame if frame[name].nunique() < 2]
        if flat:
            wrong.append(f"Covariate {some(flat)} has the same value in all rows: leave it out.")
        same = [str(name) for name in frame if is_disguised(frame[name], y)]
        if same:
            wrong.append(
                f"Covariate {some(same)} is target {shown(str(y.name))} in disguise (it says the same): taking it out "
                "or putting it in would leave no gap; leave it out."
            )
    adjusted = frames.get("adjust_for")
    known = labels is not None and bool(labels.notna().all())  # missing ones are complained of by group_complaints
    if not wrong and labels is not None and known and (adjusted is not None or site is not None):
        beside = pd.DataFrame(index=labels.index) if adjusted is None else adjusted
        beside = (
            beside if site is None else beside.assign(**{_free("site", beside.columns): site.astype(str).to_numpy()})
        )
        names = in_order(labels.tolist())
        try:
            covariate_columns(beside, np.array([names.index(label) for label in labels.tolist()]))
        except InputError as error:
            wrong.append(str(error))
    return wrong


def is_disguised(column: pd.Series[Any], y: pd.Series[Any]) -> bool:
    """Whether a column says the same as the target: ages in months, rounded, or counted backwards."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return False
    if not pd.api.types.is_numeric_dtype(y.dtype) or column.nunique() < 3:
        return False
    ranks = np.array([column.rank().to_numpy(dtype=np.float64), y.rank().to_numpy(dtype=np.float64)])
    known = np.isfinite(ranks).all(axis=0)
    if known.sum() < 3 or (np.ptp(ranks[:, known], axis=1) == 0.0).any():
        return False
    return bool(abs(np.corrcoef(ranks[:, known])[0, 1]) >= DISGUISED)


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _column(values: Any, n: int, what: str, name: str) -> pd.Series[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != n:
        raise InputError(f"{what} has {len(listed)} entries and X has {n} rows: give one per row of X.")
    return pd.Series(listed, name=name)


def _covariates(values: Any, n: int) -> pd.DataFrame:
    if isinstance(values, pd.Series):
        values = values.to_frame()
    if not isinstance(values, pd.DataFrame) or len(values) != n:
        raise InputError(f"Covariates must be a data frame with one row per row of X ({n}), so that each has a name.")
    return values.reset_index(drop=True).rename(columns=str)
