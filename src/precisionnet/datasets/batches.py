"""Tables larger than memory: a batch of rows at a time, as ``GraphicalLasso.partial_fit`` takes them.

Memory depends on ``batch_rows`` and the number of columns, not on the number of rows, nor on how a parquet file was cut
into row groups: its pages are read through small buffers, one per column, instead of a row group at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from precisionnet.arguments import check_choice, check_count
from precisionnet.datasets.cells import MISSING_CODE
from precisionnet.datasets.csv_files import CsvSource, NotANumber
from precisionnet.datasets.table_files import DELIMITED, check_names, find_delimiter
from precisionnet.errors import InputError, did_you_mean, shown, some
from precisionnet.inputs import refuse_missing_table
from precisionnet.types import FloatArray

PARQUET = (".parquet", ".pq")
PAGE_BUFFER_BYTES = 2**16
PARQUET_ROWS = 4096
"""Number of rows that are decoded at a time."""

Stream = Callable[[], Iterator[pa.RecordBatch]]


def iter_batches(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    batch_rows: int = 10_000,
    missing: Literal["error", "keep"] = "error",
    delimiter: str | None = None,
    decimal: str = ".",
) -> Iterator[pd.DataFrame]:
    """Read a parquet, csv or tsv file batch by batch, as ``GraphicalLasso.partial_fit`` takes it.

    Memory depends on ``batch_rows`` and the number of columns, not on the number of rows. Text and infinity are refused
    by file, column and row.

    Parameters
    ----------
    path : str or Path
        The file. Its ending says what it is: .parquet, .pq, .csv, .tsv, .tab, .txt or .dat.
    columns : sequence of str or None, default=None
        Columns to read, in this order; None reads all.
    drop : sequence of str, default=()
        Columns to leave out.
    batch_rows : int, default=10_000
        Rows per batch; the last one may have fewer.
    missing : {"error", "keep"}, default="error"
        Refuse missing values, or keep them as NaN. -9999 counts as missing where nothing else of the column in its
        batch is near it.
    delimiter : str or None, default=None
        What separates the cells of a text file; None finds out.
    decimal : str, default="."
        The decimal point of a text file.

    Returns
    -------
    iterator of pandas.DataFrame
        Batches with float64 columns. The index counts the rows of the file from 0.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"id": ["p", "q", "r"], "a": [1, 2, 3], "b": [4, 5, 6]}).to_csv(f"{folder}/t.csv", index=False)
    ...     [batch.shape for batch in iter_batches(f"{folder}/t.csv", drop=["id"], batch_rows=2)]
    [(2, 2), (1, 2)]
    """
    if not isinstance(path, str | Path):
        raise InputError(f"path must be the path of a table, got {shown(path)}.")
    path = Path(path)
    refuse_missing_table(path)
    check_count("batch_rows", batch_rows, 1)
    check_choice("missing", missing, ("error", "keep"))
    for name, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if not (isinstance(mark, str) and len(mark) == 1 and mark.isascii()) and (name, mark) != ("delimiter", None):
            raise InputError(f"{name} must be one character, such as ',' or ';', got {mark!r}.")
    drop = check_names("drop", drop) or []
    columns = check_names("columns", columns)
    ending = path.suffix.lower()
    if ending in PARQUET:
        names, stream = _parquet(path, columns, drop)
    elif ending in DELIMITED:
        names, stream = _delimited(path, columns, drop, delimiter or find_delimiter(path), decimal)
    else:
        raise InputError(
            f"Table {str(path)!r} has the ending {path.suffix!r}; batches are read from .parquet, .csv and .tsv: "
            "convert it."
        )
    return _frames(path, names, stream, int(batch_rows), missing)


def _parquet(path: Path, columns: Sequence[str] | None, drop: Sequence[str]) -> tuple[list[str], Stream]:
    try:
        schema = parquet.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    names = _choose(path, schema.names, columns, drop, [name for name in schema.names if name not in index])
    for name in names:
        kind = schema.field(name).type
        if not (is_number(kind) or pa.types.is_null(kind)):
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
            raise InputError(
                f"Column {shown(name)} of table {str(path)!r} holds {'text' if text else str(kind)}, not numbers: "
                f"leave it out with drop=[{shown(name)}]."
            )

    def stream() -> Iterator[pa.RecordBatch]:
        # Without buffers of its own, pyarrow would hold the compressed bytes of a whole row group.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=PAGE_BUFFER_BYTES) as file:
            for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=names):
                yield batch.select(names)

    return names, stream


def _delimited(
    path: Path, columns: Sequence[str] | None, drop: Sequence[str], delimiter: str, decimal: str
) -> tuple[list[str], Stream]:
    source = CsvSource.open(path, delimiter, decimal)
    names = _choose(path, source.names, columns, drop, source.names)
    positions = [source.names.index(name) for name in names]

    def stream() -> Iterator[pa.RecordBatch]:
        try:
            yield from source.batches(dict.fromkeys(positions, pa.float64()))
        except NotANumber as error:
            raise _text_found(source, positions) from error

    return names, stream


def _choose(
    path: Path, names: Sequence[str], columns: Sequence[str] | None, drop: Sequence[str], usual: Sequence[str]
) -> list[str]:
    for option, asked in (("columns", columns or ()), ("drop", drop)):
        for name in asked:
            if name not in names:
                raise InputError(
                    f"Table {str(path)!r} has no column {shown(name)}{did_you_mean(str(name), names)}: {option} must "
                    f"name columns of the table ({some(list(names))})."
                )
    chosen = [name for name in (usual if columns is None else columns) if name not in drop]
    if not chosen:
        raise InputError(f"No column of table {str(path)!r} is left: name some with columns, or drop fewer.")
    twice = sorted({name for name in chosen if chosen.count(name) > 1 or list(names).count(name) > 1})
    if twice:
        raise InputError(f"Table {str(path)!r} has or is asked for column {some(twice)} more than once: take one.")
    return chosen


def _frames(path: Path, names: list[str], stream: Stream, batch_rows: int, missing: str) -> Iterator[pd.DataFrame]:
    """Cut what arrives into batches of the size asked for."""
    first = filled = 0
    try:
        block = np.empty((len(names), batch_rows))
    except (MemoryError, ValueError) as error:
        raise InputError(f"batch_rows={batch_rows} is more than memory holds: lower it.") from error
    try:
        for arrived in stream():
            taken = 0
            while taken < arrived.num_rows:
                n = min(batch_rows - filled, arrived.num_rows - taken)
                for values, column in zip(block, arrived.columns, strict=True):
                    values[filled : filled + n] = as_floats(column.slice(taken, n))
                taken, filled = taken + n, filled + n
                if filled == batch_rows:
                    yield _frame(path, names, block, first, missing)
                    first, filled, block = first + filled, 0, np.empty_like(block)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    if filled:
        yield _frame(path, names, block[:, :filled], first, missing)
    elif not first:
        raise InputError(f"Table {str(path)!r} has no rows.")


def _frame(path: Path, names: list[str], block: FloatArray, first: int, missing: str) -> pd.DataFrame:
    coded = block == MISSING_CODE
    if coded.any():  # where nothing else in the column is anywhere near it
        near = np.any(np.where(coded, 0.0, block) < MISSING_CODE / 10, axis=1, keepdims=True)
        block = np.where(coded & ~near, np.nan, block)
    wrong = np.isinf(block) if missing == "keep" else ~np.isfinite(block)
    if wrong.any():
        row = int(wrong.any(axis=0).argmax())
        column = int(wrong[:, row].argmax())
        absent = bool(np.isnan(block[column, row]))
        what, keep = ("is missing (or -9999)", ", or pass missing='keep'") if absent else ("holds infinity", "")
        raise InputError(
            f"Column {shown(names[column])} of table {str(path)!r} {what} in row {first + row + 1}: correct or remove "
            f"that row, leave the column out with drop=[{shown(names[column])}]{keep}."
        )
    rows = pd.RangeIndex(first, first + block.shape[1])
    return pd.DataFrame(block.T, index=rows, columns=names, copy=False)


def as_floats(column: pa.Array) -> Any:
    """Return a column of numbers as a float64 array, NaN where there is none."""
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of a type become float64."""
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)


def _text_found(source: CsvSource, positions: list[int]) -> InputError:
    """Name the first cell that is no number, by going through the file once more."""
    before = 0
    for block in source.batches(dict.fromkeys(positions, pa.string())):
        for position, column in zip(positions, block.columns, strict=True):
            if not source.holds_numbers(column):
                row = next(k for k in range(len(column)) if not source.holds_numbers(column.slice(k, 1)))
                name = source.names[position]
                return InputError(
                    f"Column {shown(name)} of table {str(source.path)!r} holds text, not numbers: "
                    f"{shown(column[row].as_py())} in row {before + row + 1}; correct it, or leave the column out with "
                    f"drop=[{shown(name)}]."
                )
        before += block.num_rows
    return InputError(f"Table {str(source.path)!r} holds text in a column that should be numbers.")


def _unreadable(path: Path, error: Exception) -> InputError:
    detail = " ".join(str(error).split())[:160]
    return InputError(
        f"Table {str(path)!r} cannot be read as {path.suffix} ({detail}): check that the file is what its ending says."
    )
