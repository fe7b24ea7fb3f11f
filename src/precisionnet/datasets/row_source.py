"""Tables that do not fit into memory, as a fit reads them: checked blocks of rows, as often as it asks for them.

A block has a fixed number of rows wherever the table comes from, so that the same rows in the same order give the same
numbers from parquet, Arrow and batches. Rows are known by their number; of a Dask DataFrame by partition and number.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from precisionnet.arguments import refuse_two_roles
from precisionnet.datasets.batches import as_floats, is_number
from precisionnet.datasets.row_pieces import Pieces, cut, find_pieces, frame_kind
from precisionnet.datasets.table_files import check_names
from precisionnet.errors import InputError, did_you_mean, refuse_all, shown, some
from precisionnet.types import FloatArray, IndexArray, TaskName
from precisionnet.workers import dask_client, result_of

BLOCK_ROWS, BLOCK_NUMBERS = 8192, 2**22
"""Rows, and numbers, of a block at most."""
PARTITION = 2**40
"""Numbers of rows in one Dask partition start at a multiple of this."""
LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30
"""Weights whose sums and products with errors stay finite in single precision, in which windows are learned."""
JOINED = 4
"""Results of Dask partitions that are joined in one task."""

PARTS = ("X", "y", "weight", "row")
"""The parts that every block has."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a table, one after the other; those without weight are left out.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Features, NaN where a value is missing.
    y : ndarray of shape (n_rows,)
        Target: float64, or labels.
    weight : ndarray of shape (n_rows,)
        How often each row counts, above zero.
    group : ndarray of shape (n_rows,) or None
        Label that says whose row it is.
    row : ndarray of int64 of shape (n_rows,)
        Number of the row in the table, from 0.
    """

    X: FloatArray
    y: Any
    weight: FloatArray
    group: Any
    row: IndexArray

    def __len__(self) -> int:
        return len(self.X)

    @property
    def group_hash(self) -> Any:
        """A hash of each label, uint64: the same for 1, 1.0 and the text 1."""
        labels = self.group
        if labels.dtype.kind in "biuf":
            return pd.util.hash_array(labels.astype(np.float64), categorize=False)
        text = labels.astype(str).astype(object)
        numbers = pd.to_numeric(pd.Series(text), errors="coerce").to_numpy(dtype=np.float64)
        hashes = pd.util.hash_array(text, categorize=False)
        return np.where(np.isnan(numbers), hashes, pd.util.hash_array(numbers, categorize=False))

    def take(self, index: Any) -> RowBlock:
        """The rows at ``index``."""
        group = None if self.group is None else self.group[index]
        return RowBlock(self.X[index], self.y[index], self.weight[index], group, self.row[index])


@dataclass(frozen=True)
class RowSource:
    """A table with roles for its columns; ``blocks`` starts from the first row every time.

    Parameters
    ----------
    pieces : Pieces
        Where the rows come from.
    columns : tuple of str
        The features.
    target : str
        Column to predict.
    groups : str or None
        Column that says whose row it is.
    sample_weight : str or None
        Column that says how often a row counts.
    task : {"regression", "classification"}
        Whether the target is a number.
    """

    pieces: Pieces
    columns: tuple[str, ...]
    target: str
    groups: str | None
    sample_weight: str | None
    task: TaskName

    @property
    def rows_are_called(self) -> str:
        """What a sentence calls the rows that a fit learns from."""
        return "rows" if self.sample_weight is None else "rows with weight"

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return max(256, min(BLOCK_ROWS, BLOCK_NUMBERS // len(self.columns)))

    def blocks(self) -> Iterator[RowBlock]:
        """Go over all rows."""
        if self.pieces.lazy_parts:
            client = dask_client()
            for number, part in enumerate(self.pieces.lazy_parts):
                yield from self._part_blocks(result_of(part, client, self.pieces.lazy_parts), number)
            return
        yield from self._recut(self.pieces.read(self._wanted), 0)

    def over_parts(self, function: Callable[[RowSource, Iterator[RowBlock]], Made], join: Callable[..., Made]) -> Made:
        """Return what a function makes of all rows.

        Of a Dask DataFrame it is called where each partition is, and ``join`` makes one result of a few, in order, so
        that only the last one comes here.
        """
        if not self.pieces.lazy_parts:
            return function(self, self.blocks())
        delayed: Any = importlib.import_module("dask").delayed
        held, on_part = delayed((self.without_rows(), function), traverse=False), delayed(_on_part)
        made = [on_part(held, part, number) for number, part in enumerate(self.pieces.lazy_parts)]
        while len(made) > 1:
            made = [delayed(join)(*made[at : at + JOINED]) for at in range(0, len(made), JOINED)]
        whole: Made = result_of(made[0], dask_client(), self.pieces.lazy_parts)
        return whole

    def without_rows(self) -> RowSource:
        """Return the roles alone, which travel to where a partition lies; the other partitions stay where they are."""
        return replace(self, pieces=replace(self.pieces, read=_nothing, lazy_parts=()))

    @property
    def _wanted(self) -> list[str]:
        beside = [self.target, self.groups, self.sample_weight]
        return list(dict.fromkeys([*self.columns, *(name for name in beside if name is not None)]))

    def _part_blocks(self, frame: Any, number: int) -> Iterator[RowBlock]:
        name = f"Partition {number + 1} of the Dask DataFrame"
        return self._recut(((name, piece) for piece in cut(frame, number)), number * PARTITION)

    def _recut(self, pieces: Iterator[tuple[str, Any]], first: int) -> Iterator[RowBlock]:
        """Cut what arrives into blocks of the same size."""
        size, waiting, n_waiting = self.block_rows, list[RowBlock](), 0
        for where, piece in pieces:
            arrived = self._block(where, piece, first + n_waiting)
            while len(arrived):
                n = min(size - n_waiting, len(arrived))
                waiting.append(arrived.take(slice(n)))
                n_waiting, arrived = n_waiting + n, arrived.take(slice(n, None))
                if n_waiting == size:
                    yield _joined(waiting)
                    first, waiting, n_waiting = first + size, [], 0
        if n_waiting:
            yield _joined(waiting)

    def _refuse_other_kind(self, piece: Any, name: str, where: str) -> None:
        """Labels are numbers everywhere, or nowhere: 1 and "1" would be two."""
        at_first, here = _of_numbers(self.pieces.schema, name), _holds_numbers(piece, name)
        if at_first != here and not pd.isna(_labels(piece, name)).all():  # without labels there is no kind
            kinds = [("no numbers", "numbers")[one] for one in (at_first, here)]
            raise InputError(
                f"{where} changes midway: column {shown(name)} holds {kinds[0]} at first and {kinds[1]} there; bring "
                "all to the same types."
            )

    def _block(self, where: str, piece: Any, first: int) -> RowBlock:
        """Return the rows of a piece, those without weight included."""
        names = list(piece.schema.names) if isinstance(piece, pa.RecordBatch) else [str(one) for one in piece.columns]
        lost = [name for name in self._wanted if name not in names]
        known = self.pieces.schema.names
        new = [name for name in names if name not in known] if self.pieces.exact else []
        if lost or new:
            said = f"has no column {some(lost)}" if lost else f"has a new column {some(new)}"
            raise InputError(f"{where} {said}: all must have the columns of the first ({some(known)}).")
        for name in {self.groups, self.target if self.task == "classification" else None} - {None}:
            self._refuse_other_kind(piece, str(name), where)
        X = np.column_stack([_numbers(piece, name, where) for name in self.columns])
        if self.task == "regression":
            y = _numbers(piece, self.target, where)
            absent = np.isnan(y)
        else:
            y = _labels(piece, self.target)
            absent = pd.isna(y)
        weight = np.ones(len(X)) if self.sample_weight is None else _numbers(piece, self.sample_weight, where)
        if not (np.isfinite(weight) & (weight >= 0)).all():
            row = first + int(np.argmin(np.isfinite(weight) & (weight >= 0)))
            raise InputError(
                f"Column {shown(self.sample_weight)} has no weight of 0 or more in row {row + 1}: correct it."
            )
        extreme = (weight > 0) & ((weight < LEAST_WEIGHT) | (weight > MOST_WEIGHT))
        if extreme.any():
            raise InputError(
                f"Column {shown(self.sample_weight)} holds a weight of {weight[extreme][0]:.3g} in row "
                f"{first + int(extreme.argmax()) + 1}, and a table read piece by piece takes 0 and weights between "
                f"{LEAST_WEIGHT:g} and {MOST_WEIGHT:g}: rescale the weights."
            )
        absent = absent & (weight > 0)
        if absent.any():
            raise InputError(
                f"Target {shown(self.target)} is missing in row {first + int(absent.argmax()) + 1}, and in "
                f"{int(absent.sum())} of {len(X)} rows from row {first + 1} on: remove the rows without a target."
            )
        group = None if self.groups is None else _labels(piece, self.groups)
        if group is not None and (unknown := pd.isna(group)).any():
            raise InputError(
                f"Column {shown(self.groups)} does not say whose row {first + int(unknown.argmax()) + 1} is: fill it."
            )
        return RowBlock(X, y, weight, group, np.arange(first, first + len(X)))


def open_rows(
    source: Any,
    target: str,
    task: TaskName,
    *,
    columns: Sequence[str] | None = None,
    groups: str | None = None,
    sample_weight: str | None = None,
) -> RowSource:
    """Look at a table and refuse what cannot be fitted, before any row is read.

    Parameters
    ----------
    source : str, Path, pyarrow.dataset.Dataset, Dask DataFrame or re-iterable of batches
        The table.
    target : str
        Column to predict.
    task : {"regression", "classification"}
        Whether the target is a number.
    columns : sequence of str, optional
        The features; all other columns if not given.
    groups : str, optional
        Column that says whose row it is.
    sample_weight : str, optional
        Column that says how often a row counts.

    Returns
    -------
    RowSource
        To be gone over as often as wanted.
    """
    for option, name in (("target", target), ("groups", groups), ("sample_weight", sample_weight)):
        if not isinstance(name, str) and not (name is None and option != "target"):
            raise InputError(f"{option} must name a column of the table, got {shown(name)}.")
    roles = (("target", target), ("groups", groups), ("sample_weight", sample_weight))
    refuse_two_roles(roles)
    beside = [name for _, name in roles if name is not None]
    labels = tuple(name for name in (groups, target if task == "classification" else None) if name is not None)
    pieces = find_pieces(source, codes=labels)
    names = pieces.schema.names
    chosen = check_names("columns", columns)
    asked = [("columns", name) for name in chosen or ()]
    asked += [(option, name) for option, name in roles if name is not None]
    wrong = [
        f"{pieces.name} has no column {shown(name)}{did_you_mean(name, names)}: {option} must name columns of it "
        f"({some(names)})."
        for option, name in dict.fromkeys(asked)
        if name not in names
    ]
    features = [name for name in names if name not in beside] if chosen is None else chosen
    if chosen is None and pieces.late:
        wrong.append(
            f"{pieces.name} changes midway: a later file has column {some(pieces.late)}, which the first one has not; "
            "bring all files to the same columns, or name the features in columns."
        )
    wrong += [f"Column {shown(name)} is both a feature and {_role(name, target, groups)}: leave it out of columns."
              for name in features if name in beside]  # fmt: skip
    twice = sorted({name for name in names if names.count(name) > 1} | {n for n in features if features.count(n) > 1})
    if twice:
        wrong.append(f"{pieces.name} has or is asked for column {some(twice)} more than once: take one.")
    text = [name for name in features if name in names and not twice and not _of_numbers(pieces.schema, name)]
    if text:
        wrong.append(
            f"Column {some(text)} of {pieces.name[0].lower()}{pieces.name[1:]} holds no numbers, and a table that is "
            "read piece by piece must: encode it beforehand, or name the features without it in columns."
        )
    if task == "regression" and not wrong and not _of_numbers(pieces.schema, target):
        wrong.append(f"Target {shown(target)} holds no numbers: use a classifier, or correct the column.")
    if sample_weight is not None and not wrong and not _of_numbers(pieces.schema, sample_weight):
        wrong.append(f"Weight {shown(sample_weight)} holds no numbers: correct the column, or name another.")
    if len(features) < 2 and not wrong:
        wrong.append(f"{pieces.name} has {len(features)} columns to learn from: a graph needs at least two.")
    refuse_all(wrong)
    return RowSource(pieces, tuple(features), target, groups, sample_weight, task)


def _on_part(held: tuple[RowSource, Callable[[RowSource, Iterator[RowBlock]], Made]], frame: Any, number: int) -> Made:
    source, function = held
    return function(source, source._part_blocks(frame, number))


def _nothing(columns: list[str]) -> Iterator[tuple[str, Any]]:
    return iter(())


def _role(name: str, target: str, groups: str | None) -> str:
    return "the target" if name == target else "the groups" if name == groups else "the weight"


def _of_numbers(schema: pa.Schema, name: str) -> bool:
    kind = schema.field(name).type
    return is_number(kind) or pa.types.is_null(kind)


def _holds_numbers(piece: Any, name: str) -> bool:
    of_frame = isinstance(piece, pd.DataFrame)
    return frame_kind(piece[name].dtype) == pa.float64() if of_frame else _of_numbers(piece.schema, name)


def _joined(blocks: list[RowBlock]) -> RowBlock:
    """Join several blocks into one, without rows of weight zero."""
    group = None if blocks[0].group is None else np.concatenate([one.group for one in blocks])
    X, y, weight, row = (np.concatenate([getattr(one, part) for one in blocks]) for part in PARTS)
    whole = RowBlock(X, y, weight, group, row)
    return whole if whole.weight.all() else whole.take(whole.weight > 0)


def _numbers(piece: Any, name: str, where: str) -> FloatArray:
    if not _holds_numbers(piece, name):
        raise InputError(
            f"{where} changes midway: column {shown(name)} holds no numbers there; bring all to the same types."
        )
    if isinstance(piece, pa.RecordBatch):
        numbers: FloatArray = as_floats(piece.column(name))
        return numbers
    return np.asarray(piece[name].to_numpy(dtype=np.float64, na_value=np.nan))


def _labels(piece: Any, name: str) -> Any:
    column = piece.column(name).to_pandas() if isinstance(piece, pa.RecordBatch) else piece[name]
    return np.asarray(column.astype(column.cat.categories.dtype) if hasattr(column, "cat") else column)
