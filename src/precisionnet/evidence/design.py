"""Rows, their labels and whose they are, checked: what a comparison of groups starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, shown, some
from precisionnet.estimators.checks import names_of, refuse_text_columns
from precisionnet.evidence.permutations import Exchange
from precisionnet.linalg import LARGEST
from precisionnet.preprocessing.checks import in_order
from precisionnet.types import BoolArray, FloatArray, IndexArray

FEWEST_PEOPLE = 6
"""People a group must have: five pairs have 16 relabellings, and no p-value could be below 0.06."""
MOST_GROUPS = 10


@dataclass(frozen=True)
class Design:
    """The group and the person of each row."""

    labels: list[Any]
    """The groups, in order."""
    group: IndexArray
    """Position in ``labels`` of each row's group."""
    person: IndexArray
    paired: bool

    @property
    def n_people(self) -> list[int]:
        """How many people each group has."""
        return [len(np.unique(self.person[self.group == code])) for code in range(len(self.labels))]

    def pair(self, a: int, b: int) -> tuple[BoolArray, Exchange]:
        """Return which rows are of groups a and b, and what may be exchanged between them."""
        here = (self.group == a) | (self.group == b)
        person = np.unique(self.person[here], return_inverse=True)[1]
        return here, Exchange(self.group[here] == b, person, self.paired)


def design_of(labels: Any, n_rows: int, *, paired_by: Any = None, groups: Any = None) -> Design:
    """Check labels and people; all that is wrong with them is said at once."""
    if paired_by is not None and groups is not None:
        raise InputError(
            "paired_by and groups both say whose row it is: give paired_by where people have rows in several groups "
            "of labels, groups where they do not."
        )
    given = {"labels": labels, "paired_by": paired_by, "groups": groups}
    columns = {name: one_per_row(values, n_rows, name) for name, values in given.items() if values is not None}
    if "labels" not in columns:
        raise InputError("labels is missing: give one label per row, such as 'patient' and 'control'.")
    names = in_order(columns.pop("labels"))
    places = {label: place for place, label in enumerate(names)}
    group = np.array([places[label] for label in one_per_row(labels, n_rows, "labels")])
    people = next(iter(columns.values()), None)
    person = np.arange(n_rows) if people is None else pd.factorize(pd.Series(people, dtype=object))[0]
    design = Design(names, group, person, paired_by is not None)
    wrong = _complaints(design, people)
    if wrong:
        raise InputError(" ".join(wrong))
    return design


def one_per_row(values: Any, n_rows: int, name: str) -> list[Any]:
    """Return one label per row in Python's own types; missing ones and other lengths are refused."""
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    if isinstance(values, str) or np.ndim(values) != 1:
        raise InputError(f"{name} must hold one label per row: a list, an array or a column.")
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != n_rows:
        raise InputError(f"{name} has {len(listed)} labels and X has {n_rows} rows: give one label per row.")
    missing = np.flatnonzero(pd.isna(pd.Series(listed, dtype=object)))
    if len(missing):
        raise InputError(
            f"{name} is missing in {len(missing)} of {n_rows} rows (row {int(missing[0]) + 1} is the first): drop "
            "those rows, or give them a label."
        )
    return listed


def refuse_other_order(X: Any, **beside: Any) -> None:
    """Everything goes by position; an index that says another order is refused."""
    for name, other in beside.items():
        labelled = isinstance(X, pd.DataFrame) and isinstance(other, pd.DataFrame | pd.Series)
        if labelled and not X.index.equals(other.index) and set(X.index) == set(other.index):
            raise InputError(f"{name} has the index of X in another order: pass {name}.loc[X.index].")


def checked_rows(X: Any) -> tuple[FloatArray, list[str]]:
    """Return X as float64 and its column names; text, missing and infinite values are refused by column."""
    X = masked_as_missing(X)
    refuse_text_columns(X)
    names = list(X.columns) if isinstance(X, pd.DataFrame) else None
    try:
        rows = np.array(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("X must be a table of numbers: one row per row of labels, one column per node.") from error
    if rows.ndim != 2 or rows.shape[1] < 2 or len(rows) == 0:
        raise InputError(
            f"X has shape {rows.shape}: give rows and at least two columns, because a graph needs two nodes."
        )
    called = names_of(names, rows.shape[1])
    bad = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=0))
    if len(bad):
        raise InputError(
            f"Column {some([called[int(j)] for j in bad])} holds missing, infinite or huge values: drop those rows or "
            "columns, or fill them in first."
        )
    return rows, called


def _complaints(design: Design, people: list[Any] | None) -> list[str]:
    if len(design.labels) < 2:
        return [f"All rows have the label {shown(design.labels[0])}: give at least two groups to compare."]
    if len(design.labels) > MOST_GROUPS:
        return [
            f"labels has {len(design.labels)} different values, which makes "
            f"{len(design.labels) * (len(design.labels) - 1) // 2} comparisons: merge them into at most {MOST_GROUPS} "
            "groups."
        ]
    wrong = []
    whose = "rows" if people is None else "people"
    counted = zip(design.labels, design.n_people, strict=True)
    few = [f"{shown(label)} has {n} {whose}" for label, n in counted if n < FEWEST_PEOPLE]
    if few:
        wrong.append(
            f"Group {' and group '.join(few)}: at least {FEWEST_PEOPLE} {whose} a group are needed; bring more, or "
            "leave the group out or merge it with another one."
        )
    if people is not None:
        in_groups = pd.crosstab(design.person, design.group).to_numpy() > 0
        first_row = np.unique(design.person, return_index=True)[1]
        if design.paired:
            lonely = np.flatnonzero(~in_groups.all(axis=1))
            if len(lonely):
                wrong.append(
                    f"paired_by has {len(lonely)} people without rows in every group "
                    f"({some([people[first_row[i]] for i in lonely])}): drop their rows, or compare unpaired by giving "
                    "groups= instead, without the people who are in both."
                )
        else:
            both = np.flatnonzero(in_groups.sum(axis=1) > 1)
            if len(both):
                wrong.append(
                    f"{len(both)} people have rows in several groups of labels "
                    f"({some([people[first_row[i]] for i in both])}): give paired_by= in place of groups=, or keep "
                    "one group's rows of each person."
                )
    return wrong
