"""Rows that lie in the partitions of a Dask table: what the graphical lasso asks of them is computed where they are.

Regime: tables of many rows on one machine or a cluster, in a Dask DataFrame or a Dask array cut by rows. Means and
squares, tiles of the covariance and blocks of it are sums over rows, so each partition makes its own sum, sums are
added pair by pair on the way, and only the total comes to the caller:

    sum_t (x_ti - mean_i)(x_tj - mean_j) = sum over partitions p of sum over t in p

Moments are merged by Chan's formula, in one pass. On a cluster the partitions are kept in the memory of its workers
between passes; Dask's own threads and processes, which have the caller's memory, read them again in every pass.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from precisionnet.errors import InputError, some
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import dask_client, kept_there, result_of

ROWS_AT_A_TIME = 2048
"""Rows that are multiplied together."""
JOINED = 4
"""Sums that are added in one task."""
NUMBERS = "biuf"


class Moments(NamedTuple):
    """Sums over some rows, for every column; ``squares`` are those of distances from the mean."""

    n_rows: int
    longest: int
    """Rows of the longest partition."""
    n_chunks: int
    """Pieces of rows, none longer than ``ROWS_AT_A_TIME``."""
    mean: FloatArray
    squares: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class PartitionedRows:
    """A table whose rows stay where they are; it has the length and the shape of an array."""

    parts: tuple[Any, ...]
    """One delayed array for each partition."""
    client: Any
    """That of the cluster that has the partitions; None: Dask's own scheduler."""
    names: tuple[Any, ...]
    moments: Moments

    def __len__(self) -> int:
        return self.moments.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.moments.n_rows, len(self.names)

    @property
    def at_once(self) -> int:
        """The number of sums that may be in the caller's memory at once."""
        return 1 if self.client is not None else 2 * (os.cpu_count() or 1)

    def summed(self, function: Callable[..., list[FloatArray]], *arguments: Any) -> list[FloatArray]:
        """Return the sum over partitions of ``function(rows, *arguments)``, a list of arrays."""
        return _joined_over(self.parts, self.client, function, arguments, _added)

    def block(self, members: IndexArray) -> FloatArray:
        """Return some columns of all rows, which the caller has to have room for."""
        return np.concatenate(_joined_over(self.parts, self.client, _chosen, (members,), _listed))


def is_partitioned(X: Any) -> bool:
    """Whether a table is one of Dask's."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


def partitioned_rows(X: Any) -> PartitionedRows:
    """Return the rows of a Dask DataFrame or array, after one pass for their moments."""
    if getattr(X, "ndim", 0) != 2:
        raise InputError("X must be a table: a Dask DataFrame, or a Dask array of one row per sample.")
    frame = hasattr(X, "columns")
    names = tuple(X.columns) if frame else tuple(range(X.shape[1]))
    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes] if frame else [X.dtype.kind]
    if "c" in kinds:
        raise InputError("X must hold real numbers, got complex ones.")
    if not set(kinds) <= set(NUMBERS):
        wrong = [name for name, kind in zip(names, kinds, strict=False) if kind not in NUMBERS]
        where = f" in column{'s' * (len(wrong) > 1)} {some(wrong)}" if frame else ""
        raise InputError(f"X holds something other than numbers{where}: drop that, or encode it.")
    if not names:
        raise InputError("X has no columns: a covariance needs at least one.")
    if not frame and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    dask = importlib.import_module("dask")
    as_array, held = dask.delayed(_as_array), dask.delayed((names if frame else None, len(names)), traverse=False)
    parts = [as_array(part, held) for part in (X.to_delayed() if frame else X.to_delayed().ravel())]
    client = dask_client()
    parts = kept_there(parts, client)
    moments = _joined_over(parts, client, moments_of, (), _merged)
    return PartitionedRows(tuple(parts), client, names, moments)


def moments_of(rows: FloatArray) -> Moments:
    """Return the moments of the rows of one partition."""
    n_rows, n = rows.shape
    if n_rows == 0:
        return Moments(0, 0, 0, np.zeros(n), np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf))
    with np.errstate(invalid="ignore", over="ignore"):
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = np.zeros(n)
        for begin in range(0, n_rows, ROWS_AT_A_TIME):
            centred = rows[begin : begin + ROWS_AT_A_TIME] - mean
            squares += np.einsum("ti,ti->i", centred, centred)
    low, high = (np.asarray(end, dtype=np.float64) for end in (rows.min(axis=0), rows.max(axis=0)))
    return Moments(n_rows, n_rows, -(-n_rows // ROWS_AT_A_TIME), mean, squares, low, high)


def _merged(*parts: Moments) -> Moments:
    total = parts[0]
    for part in parts[1:]:
        n_rows = total.n_rows + part.n_rows
        share = part.n_rows / max(n_rows, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = part.mean - total.mean
            total = Moments(
                n_rows,
                max(total.longest, part.longest),
                total.n_chunks + part.n_chunks,
                total.mean + share * apart,
                total.squares + part.squares + total.n_rows * share * apart * apart,
                np.minimum(total.low, part.low),  # NaN goes through
                np.maximum(total.high, part.high),
            )
    return total


def _joined_over(
    parts: Any, client: Any, function: Callable[..., Any], arguments: tuple[Any, ...], join: Callable[..., Any]
) -> Any:
    """Call a function on every partition, where it is, and join the results as a tree."""
    delayed = importlib.import_module("dask").delayed
    held = delayed(arguments, traverse=False)  # one task for all partitions
    waiting = [delayed(_called)(part, function, held) for part in parts]
    while len(waiting) > 1:
        waiting = [
            delayed(join)(*waiting[at : at + JOINED]) if waiting[at + 1 : at + 2] else waiting[at]
            for at in range(0, len(waiting), JOINED)
        ]
    return result_of(waiting[0], client, parts)


def _called(rows: FloatArray, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(rows, *arguments)


def _added(*parts: list[FloatArray]) -> list[FloatArray]:
    return [sum(same[2:], same[0] + same[1]) for same in zip(*parts, strict=True)]


def _listed(*parts: list[FloatArray]) -> list[FloatArray]:
    return [rows for part in parts for rows in part]


def _chosen(rows: FloatArray, members: IndexArray) -> list[FloatArray]:
    return [np.asarray(rows[:, members], dtype=np.float64)]


def _as_array(part: Any, announced: tuple[tuple[Any, ...] | None, int]) -> FloatArray:
    """Return the rows of one partition as numbers; what is missing in a data frame becomes NaN.

    The columns of a data frame are taken by the names that the whole table announced, whatever their order.
    """
    names, n_columns = announced
    if names is not None and hasattr(part, "columns") and tuple(part.columns) != names:
        own, whole = set(part.columns), set(names)
        lost, new = [name for name in names if name not in own], [name for name in part.columns if name not in whole]
        if lost or new:
            said = f"no column {some(lost)}" if lost else f"a new column {some(new)}"
            raise InputError(f"A partition of X has {said}: bring all partitions to the same columns.")
        part = part[list(names)]
    rows = np.asarray(part)
    if rows.dtype.kind not in NUMBERS:
        try:
            rows = part.to_numpy(dtype=np.float64, na_value=np.nan)
        except (AttributeError, TypeError, ValueError):
            raise InputError("A partition of X holds something other than numbers: drop it, or encode it.") from None
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise InputError(f"A partition of X has shape {rows.shape}, where {n_columns} columns were announced.")
    return rows
