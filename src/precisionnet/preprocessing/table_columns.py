"""How one column of a table becomes columns of numbers ("nodes"), learned from the training rows alone.

    number     itself; the median where it is missing
    boolean    0 or 1 (true and false, yes and no, in a few languages)
    ordinal    0, 1, 2, ... (an ordered pandas category, or words of a known scale: mild, moderate, severe)
    date       years, as a decimal number
    category   one column of 0 and 1 per level but the most frequent one

Levels of fewer than 1 % of the rows (or of three rows), and those beyond the thirty most frequent, are one level
together: a column that is 1 in so few rows is ten standard deviations and more away from its mean there. A level that
no training row had counts as that level of rare ones; where there is none, it has the training rows' mean in every
column, which says nothing about the row. A column that more than 1 % of the training rows miss has one more column that
says where.

A column of text with about as many values as rows names the rows, or is free text: it is left out. Where most of its
cells begin with a digit, they may be numbers that could not be read, and a check warns of it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, shown
from precisionnet.linalg import weighted_median
from precisionnet.preprocessing.column_kinds import (
    DATE_ORDERS,
    KINDS,
    ColumnKind,
    are_plain,
    begin_with_digits,
    date_order,
    kind_of,
    numbers_of,
    texts,
)
from precisionnet.types import BoolArray, FloatArray

FEWEST_ROWS, FEWEST_SHARE = 3, 0.01
"""Rows, and share of all rows, that a level of its own needs."""
MOST_LEVELS = 30
ID_LEVELS, ID_SHARE = 20, 0.5
"""Text with more different values than these, in number and as a share of the rows, names rows."""
MISSING, OTHER = "(missing)", "(other)"


@dataclass(frozen=True)
class EncodedColumn:
    """How one column becomes nodes.

    Parameters
    ----------
    name : str
        The column.
    kind : {"number", "boolean", "ordinal", "date", "category", "left out"}
        What it holds.
    levels : tuple of str, default=()
        Of a category the levels with a node, of a boolean the words for 0 and 1, of an ordinal all in their order.
    reference : str, default=""
        Level of a category that has no node: the most frequent one.
    other : bool, default=False
        Whether the rare levels of a category have a node together.
    rare : tuple of str, default=()
        These levels.
    middle : tuple of float, default=()
        What stands for a missing value, or for an unseen level: one number per node but the indicator.
    indicator : bool, default=False
        Whether a node says where the value is missing.
    reason : str, default=""
        Why a column is left out.
    date_order : {"", "day/month/year", "month/day/year"}, default=""
        How dates stood in the file of the training rows; empty where the year came first. Rows to be predicted have
        to be read in the same way.

    Examples
    --------
    >>> import pandas as pd
    >>> column = EncodedColumn.fit(pd.Series(["f", "m", "f", "m", "f", "m", "f"], name="sex"))
    >>> column.kind, column.node_names, column.encode(pd.Series(["m", "f", "x"])).ravel().round(2).tolist()
    ('category', ['sex=m'], [1.0, 0.0, 0.43])
    """

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()
    reference: str = ""
    other: bool = False
    rare: tuple[str, ...] = ()
    middle: tuple[float, ...] = ()
    indicator: bool = False
    reason: str = ""
    date_order: str = ""

    @classmethod
    def fit(
        cls, column: pd.Series[Any], weight: FloatArray | None = None, *, indicator_share: float = 0.01
    ) -> EncodedColumn:
        """Learn a column from training rows.

        Parameters
        ----------
        column : pandas.Series
            Training rows.
        weight : ndarray of shape (n_rows,), optional
            How often each row counts.
        indicator_share : float, default=0.01
            Share of missing rows above which a node says where.

        Returns
        -------
        EncodedColumn
            How it becomes nodes.
        """
        name = str(column.name)
        weight = np.ones(len(column)) if weight is None else weight
        kind, levels = kind_of(column)
        values = texts(column) if kind == "category" else numbers_of(column, name, kind, levels)
        known = values.notna().to_numpy()
        if not known.any():
            return cls(name, "left out", reason="it has no value")
        indicator = float(weight[~known].sum()) > indicator_share * float(weight.sum())
        if kind == "category":
            return _fit_levels(name, values[known], weight[known], indicator)
        middle = weighted_median(values[known].to_numpy(dtype=np.float64), weight[known])
        order = date_order(column) if kind == "date" else ""
        return cls(name, kind, levels, middle=(middle,), indicator=indicator, date_order=order)

    @property
    def node_names(self) -> list[str]:
        """Names of the nodes."""
        if self.kind == "left out":
            return []
        names = [self.name]
        if self.kind == "category":
            names = [f"{self.name}={level}" for level in (*self.levels, *([OTHER] if self.other else []))]
        return [*names, f"{self.name}={MISSING}"] if self.indicator else names

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Return the nodes of rows.

        Parameters
        ----------
        column : pandas.Series
            Rows, of the kind of the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_nodes)
            Finite wherever the column is.
        """
        if self.kind == "left out":
            return np.empty((len(column), 0))
        self._refuse_other_order(column)
        if self.kind == "category":
            values = texts(column)
            missing = values.isna().to_numpy()
            nodes = self._level_nodes(values, missing)
        else:
            numbers = numbers_of(column, self.name, self.kind, self.levels).to_numpy(dtype=np.float64)
            missing = np.isnan(numbers) & ~self._is_unseen(column)
            nodes = np.where(np.isnan(numbers), self.middle[0], numbers)[:, None]
        return np.column_stack([nodes, missing]) if self.indicator else nodes

    def _refuse_other_order(self, column: pd.Series[Any]) -> None:
        """Refuse dates that were read in another order than those of the training rows."""
        order = date_order(column)
        if self.date_order and order and order != self.date_order:
            raise InputError(
                f"Column {shown(self.name)} was read as {self.date_order} in fit and as {order} now: load the table "
                f"with date_orders={{{shown(self.name)}: {shown(self.date_order)}}}, or write dates as 2024-01-31."
            )

    def _level_nodes(self, values: pd.Series[Any], missing: BoolArray) -> FloatArray:
        """Ones where a row has the node's level; the training rows' mean where its level says nothing."""
        place = pd.Index([self.reference, *self.levels]).get_indexer(pd.Index(values)) - 1
        known = place >= -1
        if self.other:
            place = np.where(known | missing, place, len(self.levels))
            known = place >= -1
        nodes = np.tile(np.array(self.middle), (len(values), 1))
        nodes[known | (missing & self.indicator)] = 0.0
        rows = np.flatnonzero(place >= 0)
        nodes[rows, place[rows]] = 1.0
        return nodes

    def unseen(self, column: pd.Series[Any]) -> list[str]:
        """Name the levels that no training row had.

        Parameters
        ----------
        column : pandas.Series
            Rows.

        Returns
        -------
        list of str
            The levels, sorted.
        """
        unknown = self._is_unseen(column)
        return sorted(set(texts(column)[unknown]))

    def _is_unseen(self, column: pd.Series[Any]) -> Any:
        if self.kind not in ("boolean", "ordinal", "category"):
            return np.zeros(len(column), dtype=bool)
        values = texts(column)
        if self.kind == "category":
            return (values.notna() & ~values.isin([*self.levels, self.reference, *self.rare])).to_numpy()
        return (values.notna() & ~values.str.casefold().isin([level.casefold() for level in self.levels])).to_numpy()

    def to_document(self) -> dict[str, Any]:
        """Return it in JSON's types.

        Returns
        -------
        dict
            Every field by its name.
        """
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_document(cls, said: Any) -> EncodedColumn:
        """Read what ``to_document`` wrote; whatever it cannot have written is a ValueError.

        Parameters
        ----------
        said : dict
            A document.

        Returns
        -------
        EncodedColumn
            The column.
        """
        if not isinstance(said, dict) or set(said) != {field.name for field in fields(cls)}:
            raise ValueError("a column of the encoder has other fields")
        lists = {name: tuple(said[name]) for name in ("levels", "rare", "middle") if isinstance(said[name], list)}
        column = cls(**said | lists)
        texts_fine = all(
            isinstance(text, str)
            for text in (column.name, column.reference, column.reason, *column.levels, *column.rare)
        )
        order_fine = column.date_order == "" or (column.kind == "date" and column.date_order in DATE_ORDERS)
        numbers_fine = all(type(number) is float and math.isfinite(number) for number in column.middle)
        switches_fine = isinstance(column.other, bool) and isinstance(column.indicator, bool)
        fine = len(lists) == 3 and column.kind in KINDS and texts_fine and numbers_fine and switches_fine and order_fine
        if not fine or len(set(column.levels)) < len(column.levels) or len(column.middle) != column._n_values():
            raise ValueError("a column of the encoder contradicts itself")
        return column

    def _n_values(self) -> int:
        """Nodes beside the indicator."""
        return len(self.node_names) - int(self.indicator and self.kind != "left out")


def fit_columns(frame: pd.DataFrame, weight: FloatArray, indicator_share: float) -> tuple[EncodedColumn, ...]:
    """Learn the columns of a table from training rows, numbers without gaps together: there may be thousands.

    Parameters
    ----------
    frame : pandas.DataFrame
        Training rows.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    indicator_share : float
        Share of missing rows above which a node says where.

    Returns
    -------
    tuple of EncodedColumn
        How each becomes nodes.
    """
    together: dict[int, EncodedColumn] = {}
    if (weight == 1.0).all():
        places = np.flatnonzero(are_plain(frame))
        values = frame.iloc[:, places].to_numpy(dtype=np.float64)
        whole = ~np.isnan(values).any(axis=0)
        middles = np.array([weighted_median(column, weight) for column in values[:, whole].T])
        together = {
            int(place): EncodedColumn(str(frame.columns[place]), "number", middle=(float(middle),))
            for place, middle in zip(places[whole], middles, strict=True)
        }
    return tuple(
        together[place]
        if place in together
        else EncodedColumn.fit(frame.iloc[:, place], weight, indicator_share=indicator_share)
        for place in range(frame.shape[1])
    )


def _fit_levels(name: str, levels: pd.Series[Any], weight: FloatArray, indicator: bool) -> EncodedColumn:
    """Learn which levels of a category have a node."""
    counts = pd.Series(weight, index=levels.to_numpy()).groupby(level=0).sum()
    total = float(counts.sum())
    if len(counts) > max(ID_LEVELS, ID_SHARE * total):
        reason = f"{len(counts)} different values in {total:g} rows: an id, or free text"
        if begin_with_digits(levels):
            reason = (
                f"{len(counts)} different values in {total:g} rows, such as {shown(levels.iloc[0])}: no plain numbers"
            )
        return EncodedColumn(name, "left out", reason=reason)
    ordered = sorted(counts.index, key=lambda level: (-counts[level], level))
    fewest = max(FEWEST_ROWS, FEWEST_SHARE * total)
    kept = [level for level in ordered if counts[level] >= fewest][:MOST_LEVELS]
    rare = tuple(sorted(set(ordered) - set(kept)))
    pooled = float(counts[list(rare)].sum())
    other = bool(kept) and pooled >= fewest
    reference, own = (kept[0], tuple(kept[1:])) if kept else ("", ())
    if not own and not other and not indicator:
        few = f"none of its {len(rare)} values has a weight of {fewest:g} rows or more"
        return EncodedColumn(name, "left out", reason=few if rare else "it is constant")
    shares = [float(counts[level]) / total for level in own] + ([pooled / total] if other else [])
    return EncodedColumn(name, "category", own, reference, other, rare, tuple(shares), indicator)
