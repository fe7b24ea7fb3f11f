r"""Screening: find the groups of columns that are separate problems, from rows and without an N x N array.

    S_ij = sum_t (x_ti - mean_i)(x_tj - mean_j) / T,      an edge where |S_ij| > l1_penalty

The components of that graph are separate graphical lassos (``component_solver.py``). Regime: more columns than an N x N
array has room for. A tile of S is the product of two blocks of columns; its entries above the penalty are kept, and the
others are dropped.

How this differs from the textbook:

- tiles are multiplied in single precision, twice as fast. The error of a sum of T products of unit columns is at most
  (T + 2) 2^-24, whatever the order of summation; pairs within that of the penalty are computed again in double;
- long tables are summed in chunks of rows, which bounds both that error and the memory;
- groups are united tile by tile, so that they are known even if the pairs themselves do not fit in memory. If they do
  not, the smaller pairs are dropped: those that are left still tell at which penalty the components become small
  (Kruskal's algorithm: pairs from the largest down are united until a group is too large).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.compiled import compiled
from precisionnet.errors import InputError, some
from precisionnet.linalg import LARGEST
from precisionnet.precision.disjoint_sets import first_too_large, roots, unite
from precisionnet.precision.partitions import ROWS_AT_A_TIME, PartitionedRows, is_partitioned, partitioned_rows
from precisionnet.precision.problem import COMPLEX, SMALLEST_VARIANCE
from precisionnet.types import BoolArray, FloatArray, IndexArray

LARGEST_TILE, SMALLEST_TILE = 4096, 32
PAIR_BYTES = 16
PAIRS_AT_A_TIME = 1024
SINGLE_ROUNDING = 2.0**-24
SAMPLED_COLUMNS = 64
SAMPLED_DEGREE = 0.5
"""Pairs per column at which a random graph has only small components."""


Table = FloatArray | PartitionedRows
"""A table of rows, in memory or in the partitions of a Dask table."""


class ColumnMoments(NamedTuple):
    """Mean and standard deviation of every column."""

    mean: FloatArray
    deviation: FloatArray


class Pairs(NamedTuple):
    """Pairs of columns and their covariance, each pair once."""

    first: IndexArray
    second: IndexArray
    value: FloatArray

    def where(self, kept: BoolArray) -> Pairs:
        """Return the pairs at which ``kept`` is true."""
        return Pairs(self.first[kept], self.second[kept], self.value[kept])


class Screened(NamedTuple):
    """The components, and the pairs that make them."""

    labels: IndexArray
    """The smallest member of each column's component."""
    pairs: Pairs
    kept_above: float
    """The pairs above this value are all held: it is the penalty, or more if not all pairs had room."""


def checked_rows(X: Any) -> Table:
    """Check that ``X`` is a table of real numbers; an array is not copied, and a Dask table stays in its partitions."""
    rows: Table = partitioned_rows(X) if is_partitioned(X) else _rows_in_memory(X)
    if rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InputError(f"X has shape {rows.shape}: a covariance needs at least two rows and one column.")
    return rows


def _rows_in_memory(X: Any) -> FloatArray:
    if np.iscomplexobj(X):
        raise InputError(COMPLEX.format(name="X"))
    try:
        rows = np.asanyarray(masked_as_missing(X))
        rows = rows if rows.dtype.kind in "biuf" else rows.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("X must be a table of numbers: one row per sample, one column per variable.") from None
    if rows.ndim != 2:
        raise InputError(f"X must be a table, got shape {rows.shape}: one row per sample, one column per variable.")
    return rows


def column_moments(X: Table) -> ColumnMoments:
    """Return every column's mean and standard deviation; refuse values that are not finite and constant columns."""
    mean, variance, low, high = _moments(X)
    names = X.names if isinstance(X, PartitionedRows) else range(X.shape[1])
    bad = ~((low >= -LARGEST) & (high <= LARGEST))
    if bad.any():
        raise InputError(
            f"X holds NaN, infinity or numbers beyond {LARGEST:.0e} in {_columns(bad, names)}: drop those columns or "
            "rows, or impute the values."
        )
    if (low == high).any():
        raise InputError(f"X is constant in {_columns(low == high, names)}: a constant has no precision; drop it.")
    if (variance < SMALLEST_VARIANCE).any():
        raise InputError(
            f"X has a variance below {SMALLEST_VARIANCE:.0e} in {_columns(variance < SMALLEST_VARIANCE, names)}: its "
            "inverse is beyond float64; rescale the columns."
        )
    if (variance > LARGEST).any():
        raise InputError(
            f"X has a variance beyond {LARGEST:.0e} in {_columns(variance > LARGEST, names)}: rescale the columns."
        )
    return ColumnMoments(mean, np.sqrt(variance))


def _moments(X: Table) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean, variance, minimum and maximum of every column; a table in memory is read a block at a time."""
    n_rows, n = X.shape
    if isinstance(X, PartitionedRows):
        return X.moments.mean, X.moments.squares / n_rows, X.moments.low, X.moments.high
    mean, variance, low, high = (np.empty(n) for _ in range(4))
    width = max(1, min(LARGEST_TILE, LARGEST_TILE * ROWS_AT_A_TIME // n_rows))
    for begin in range(0, n, width):
        here = slice(begin, begin + width)
        block = np.asarray(X[:, here], dtype=np.float64)
        low[here], high[here] = block.min(axis=0), block.max(axis=0)  # a NaN in a column makes these NaN
        with np.errstate(invalid="ignore", over="ignore"):
            mean[here] = block.mean(axis=0)
            centred = block - mean[here]
            variance[here] = np.einsum("ti,ti->i", centred, centred) / n_rows
    return mean, variance, low, high


def covariances_of(X: Table, mean: FloatArray, groups: Sequence[IndexArray]) -> list[FloatArray]:
    """Return the sample covariance among the columns of each group, a dense matrix, summed in chunks of rows."""
    totals = _summed(X, _squares, [(members, mean[members]) for members in groups])
    for total in totals:
        total /= len(X)
    return totals


def covariance_of_pairs(X: Table, mean: FloatArray, first: IndexArray, second: IndexArray) -> FloatArray:
    """Return S_ij for a list of pairs (i, j)."""
    (total,) = _summed(X, _single_products, first, second, mean[first], mean[second])
    return total / len(X)


def _summed(X: Table, function: Callable[..., list[FloatArray]], *arguments: Any) -> list[FloatArray]:
    """Sum ``function(rows, *arguments)``, a list of arrays, over all rows, in memory or where the partitions are."""
    return X.summed(function, *arguments) if isinstance(X, PartitionedRows) else function(X, *arguments)


def _squares(rows: FloatArray, groups: list[tuple[IndexArray, FloatArray]]) -> list[FloatArray]:
    totals = []
    for members, mean in groups:
        total: FloatArray | None = None
        for begin in range(0, len(rows), ROWS_AT_A_TIME):
            centred = np.asarray(rows[begin : begin + ROWS_AT_A_TIME, members], dtype=np.float64) - mean
            if total is None:
                total = centred.T @ centred
            else:
                total += centred.T @ centred
        totals.append(np.zeros((len(members), len(members))) if total is None else total)
    return totals


def _single_products(
    rows: FloatArray, first: IndexArray, second: IndexArray, mean_first: FloatArray, mean_second: FloatArray
) -> list[FloatArray]:
    out = np.zeros(len(first))
    for at in range(0, len(first), PAIRS_AT_A_TIME):
        here = slice(at, at + PAIRS_AT_A_TIME)
        for begin in range(0, len(rows), ROWS_AT_A_TIME):
            some_rows = rows[begin : begin + ROWS_AT_A_TIME]
            left = np.asarray(some_rows[:, first[here]], dtype=np.float64) - mean_first[here]
            right = np.asarray(some_rows[:, second[here]], dtype=np.float64) - mean_second[here]
            out[here] += np.einsum("ti,ti->i", left, right)
    return [out]


def screen(X: Table, columns: ColumnMoments, l1_penalty: float, memory: float) -> Screened:
    """Find the components of the graph with an edge where |S_ij| > l1_penalty, and its edges.

    This takes at most ``memory`` bytes, a third of them for the pairs.
    """
    n = X.shape[1]
    tile = tile_width(len(X), _for_tiles(X, memory))
    room = int(memory / 3 / PAIR_BYTES / 2)  # halved: concatenating the chunks takes as much again
    parent = np.arange(n)
    chunks: list[Pairs] = []
    held, kept_above = 0, l1_penalty
    for top in range(0, n, tile):
        left = slice(top, min(top + tile, n))
        for beside in range(top, n, tile):
            right = slice(beside, min(beside + tile, n))
            found = _above(X, columns, left, right, l1_penalty)
            unite(parent, found.first, found.second)
            if kept_above > l1_penalty:
                found = found.where(np.abs(found.value) > kept_above)
            chunks.append(found)
            held += len(found.value)
            while held > room:
                together = _joined(chunks)
                kept_above = float(np.median(np.abs(together.value)))
                chunks = [together.where(np.abs(together.value) > kept_above)]
                held = len(chunks[0].value)
    return Screened(roots(parent), _joined(chunks), kept_above)


def tile_width(n_rows: int, memory: float) -> int:
    """Return how wide a block of columns may be for a tile, and all that makes it, to take a quarter of the memory."""
    rows, width = min(n_rows, ROWS_AT_A_TIME), LARGEST_TILE
    while width > SMALLEST_TILE and (24 * rows * width + 20 * width * width) > memory / 4:
        width //= 2
    return width


def _for_tiles(X: Table, memory: float) -> float:
    """Return the memory that one tile may take: less for a Dask table, whose threads make several sums at once."""
    return memory / X.at_once if isinstance(X, PartitionedRows) else memory


def single_rounding(n_rows: int) -> float:
    """Return how far a correlation summed in single precision, in chunks of rows, can be from the true one."""
    return _rounding(min(n_rows, ROWS_AT_A_TIME), n_rows / ROWS_AT_A_TIME)


def _rounding(longest: int, n_chunks: float) -> float:
    return SINGLE_ROUNDING * 1.01 * (longest + n_chunks + 4.0)


def sampled_sizes(X: Table, columns: ColumnMoments, memory: float) -> FloatArray:
    """Return |S_ij| of some columns with all others, from correlations in single precision.

    It tells which pairs a penalty would keep, before the whole table is screened.
    """
    n = X.shape[1]
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:SAMPLED_COLUMNS])
    tile = tile_width(len(X), _for_tiles(X, memory))
    out = np.empty((len(chosen), n))
    for begin in range(0, n, tile):
        right = slice(begin, min(begin + tile, n))
        size = np.abs(_correlations(X, columns, chosen, right))
        out[:, right] = size * columns.deviation[chosen][:, None] * columns.deviation[right]
    out[np.arange(len(chosen)), chosen] = 0.0
    return out


def penalty_for_components(pairs: Pairs, n: int, largest: int) -> float:
    """Return the smallest penalty among the pairs' sizes that leaves no component of more than ``largest`` columns."""
    size = np.abs(pairs.value)
    order = np.argsort(-size, kind="stable")
    stopped = first_too_large(pairs.first, pairs.second, order, n, largest)
    return 0.0 if stopped < 0 else float(size[order[stopped]])


def _above(X: Table, columns: ColumnMoments, left: slice, right: slice, l1_penalty: float) -> Pairs:
    """Return the pairs of one tile that are above the penalty; pairs near it are computed again in double precision."""
    product = _correlations(X, columns, left, right)
    margin = (
        _rounding(min(X.moments.longest, ROWS_AT_A_TIME), X.moments.n_chunks)
        if isinstance(X, PartitionedRows)
        else single_rounding(len(X))
    )
    heights = columns.deviation[left], columns.deviation[right]
    same = left.start == right.start
    count = _count_above(product, *heights, l1_penalty, margin, same)
    first, second, value = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)
    count = _list_above(product, *heights, l1_penalty, margin, same, first, second, value)
    first, second, value = first[:count], second[:count], value[:count]
    del product
    near = np.flatnonzero(np.abs(np.abs(value) - l1_penalty) <= margin * heights[0][first] * heights[1][second])
    first += left.start
    second += right.start
    kept = np.ones(count, dtype=bool)
    if len(near):
        value[near] = covariance_of_pairs(X, columns.mean, first[near], second[near])
        kept[near] = np.abs(value[near]) > l1_penalty
    return Pairs(first[kept], second[kept], value[kept])


def _correlations(X: Table, columns: ColumnMoments, left: slice | IndexArray, right: slice) -> FloatArray:
    """Return a tile of the correlation matrix, in single precision."""
    same = isinstance(left, slice) and left.start == right.start
    blocks = (_block(columns, which, len(X)) for which in ((left,) if same else (left, right)))
    (total,) = _summed(X, _products, *blocks)
    return total


class _Block(NamedTuple):
    """A block of columns: their positions, the means to subtract and the factors to multiply by."""

    which: slice | IndexArray
    mean: FloatArray
    scale: FloatArray

    def of(self, rows: FloatArray) -> FloatArray:
        block = np.asarray(rows[:, self.which], dtype=np.float64) - self.mean
        block *= self.scale
        return block.astype(np.float32)


def _block(columns: ColumnMoments, which: slice | IndexArray, n_rows: int) -> _Block:
    return _Block(which, columns.mean[which], 1.0 / (columns.deviation[which] * np.sqrt(n_rows)))


def _products(rows: FloatArray, left: _Block, right: _Block | None = None) -> list[FloatArray]:
    """Return the product of two blocks of columns, or of one block with itself."""
    total: FloatArray | None = None
    for begin in range(0, len(rows), ROWS_AT_A_TIME):
        chunk = rows[begin : begin + ROWS_AT_A_TIME]
        a = left.of(chunk)
        b = a if right is None else right.of(chunk)
        if total is None:
            total = a.T @ b
        else:
            total += a.T @ b
    if total is None:
        total = np.zeros((len(left.mean), len((right or left).mean)), dtype=np.float32)
    return [total]


def _joined(chunks: list[Pairs]) -> Pairs:
    if not chunks:
        return Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    return chunks[0] if len(chunks) == 1 else Pairs(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))


def _columns(mask: BoolArray, names: Sequence[Any]) -> str:
    where = np.flatnonzero(mask)
    return f"column{'s' * (len(where) > 1)} {some([names[i] for i in where.tolist()])}"


@compiled
def _count_above(
    product: FloatArray, high: FloatArray, wide: FloatArray, l1_penalty: float, margin: float, same: bool
) -> int:
    """Count the entries that may be above the penalty; of a tile on the diagonal only those above the diagonal."""
    total = 0
    for i in range(product.shape[0]):
        for j in range(i + 1 if same else 0, product.shape[1]):
            total += (abs(product[i, j]) + margin) * high[i] * wide[j] > l1_penalty
    return total


@compiled
def _list_above(
    product: FloatArray,
    high: FloatArray,
    wide: FloatArray,
    l1_penalty: float,
    margin: float,
    same: bool,
    first: IndexArray,
    second: IndexArray,
    value: FloatArray,
) -> int:
    """Fill in the pairs that ``_count_above`` counts, and return how many there are.

    The two loops may round differently at the margin, so that there may be fewer.
    """
    found = 0
    for i in range(product.shape[0]):
        begin = i + 1 if same else 0
        here = 0
        for j in range(begin, product.shape[1]):
            here += (abs(product[i, j]) + margin) * high[i] * wide[j] > l1_penalty
        if here == 0:
            continue
        for j in range(begin, product.shape[1]):
            if (abs(product[i, j]) + margin) * high[i] * wide[j] > l1_penalty and found < len(first):
                first[found], second[found] = i, j
                value[found] = product[i, j] * high[i] * wide[j]
                found += 1
    return found
