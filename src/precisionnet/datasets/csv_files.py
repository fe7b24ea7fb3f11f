"""Large delimited tables in little more memory than their numbers take.

pyarrow parses the file block by block; each block is written at once into one float64 array that is as long as the file
has lines (rows that turn out not to be there cost no memory, for a page that is never touched is never given). Whether
a column holds numbers is decided by the whole file: where text turns up late, the file is read again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from precisionnet.datasets.csv_files import CsvSource, NotANumber
from precisionnet.datasets.cells import MISSING_TEXT
from precisionnet.errors import InputError, did_you_mean, shown, some

LARGEST_EXACT = 2.0**53
"""Whole numbers beyond may change when they become float64."""
TRUE, FALSE = {"True", "TRUE", "true"}, {"False", "FALSE", "false"}


def read_numeric_csv(
    path: str | Path,
    *,
    delimiter: str = ",",
    decimal: str = ".",
    null_values: Sequence[str] = MISSING_TEXT,
    text_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The table as pandas would read it, but for whole numbers, which become float64 like all others.

    Columns with anything that is no number stay text, as it stands in the file; so do ``text_columns`` (leading zeros
    survive). Columns of true and false are booleans, and whole numbers that float64 cannot hold stay int64, or text
    where that cannot hold them, either. Names are those of the header, unchanged. Numbers are rounded correctly.
    """
    source = CsvSource.open(path, delimiter, decimal, null_values)
    for name in text_columns:
        if name not in source.names:
            raise InputError(
                f"Table {str(path)!r} has no column {shown(name)}{did_you_mean(name, source.names)}: text_columns must "
                f"be among its columns ({some(source.names)})."
            )
    asked = {i for i, name in enumerate(source.names) if name in text_columns}
    undecided = [i for i in range(len(source.names)) if i not in asked]
    text = asked | source.text_columns(undecided, n_blocks=1)
    while True:
        try:
            return _fill(source, text, asked)
        except NotANumber as error:  # text further down
            text |= {error.position} | source.text_columns([i for i in undecided if i not in text])


def _fill(source: CsvSource, text: set[int], asked: set[int]) -> pd.DataFrame:
    """Read the file with these columns as text; ``asked`` are text whatever they hold."""
    numeric = [i for i in range(len(source.names)) if i not in text]
    most_rows, n_quotes = source.count()
    numbers = np.empty((len(numeric), most_rows))
    chunks: dict[int, list[pa.Array]] = {i: [] for i in sorted(text)}
    n_rows = 0
    types = {i: pa.string() if i in text else pa.float64() for i in range(len(source.names))}
    for block in source.batches(types):
        rows = slice(n_rows, n_rows + block.num_rows)
        for values, i in zip(numbers, numeric, strict=True):
            values[rows] = block.column(i).to_numpy(zero_copy_only=False)  # null becomes NaN
        for i, parts in chunks.items():
            parts.append(block.column(i))
        n_rows = rows.stop
    if n_quotes % 2:
        _refuse_open_quote(source.path, chunks.get(len(source.names) - 1, []))
    numbers = numbers[:, :n_rows]
    frame = pd.DataFrame(numbers.T, columns=[source.names[i] for i in numeric], copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.PerformanceWarning)  # many text columns
        for i, parts in chunks.items():
            frame.insert(i, source.names[i], _text_or_truth(parts, i in asked), allow_duplicates=True)
    suspects = [i for values, i in zip(numbers, numeric, strict=True) if _beyond_exact(values)]
    for i, exact in _exact_numbers(source, suspects).items():
        frame.isetitem(i, exact)
    return frame


def _refuse_open_quote(path: Path, last_column: list[pa.Array]) -> None:
    """pyarrow takes the end of the file for the missing quote, and all lines up to it for one cell."""
    cell = str(last_column[-1][-1].as_py()) if last_column and len(last_column[-1]) else ""
    if "\n" in cell or "\r" in cell:
        raise InputError(f"Table {str(path)!r} has a quote that is never closed, before {shown(cell, 40)}: close it.")


def _text_or_truth(parts: list[pa.Array], asked: bool) -> Any:
    column = pa.chunked_array(parts, pa.string())
    if not asked and len(column):
        # The first block tells most columns of text apart, without a look at the others.
        seen = set(pc.unique(parts[0]).to_pylist())
        if seen <= TRUE | FALSE | {None} and (seen := set(pc.unique(column).to_pylist())) <= TRUE | FALSE | {None}:
            return pc.is_in(column, pa.array(sorted(TRUE))).to_numpy() if None not in seen else _truth(column)
    return column.to_pandas()


def _truth(column: pa.ChunkedArray) -> Any:
    """True, False and missing, as objects."""
    return pd.Series([np.nan if value is None else value in TRUE for value in column.to_pylist()], dtype=object)


def _beyond_exact(values: Any) -> bool:
    if not len(values):
        return False
    return bool(np.fmax.reduce(values) >= LARGEST_EXACT or np.fmin.reduce(values) <= -LARGEST_EXACT)


def _exact_numbers(source: CsvSource, suspects: list[int]) -> dict[int, Any]:
    """Of these columns those that hold only whole numbers, exactly."""
    parts: dict[int, list[pa.Array]] = {i: [] for i in suspects}
    whole = set(suspects)
    blocks: Iterable[pa.RecordBatch] = source.batches(dict.fromkeys(suspects, pa.string())) if suspects else ()
    for block in blocks:
        for i, column in zip(suspects, block.columns, strict=True):
            if i in whole:
                digits = pc.match_substring_regex(column, r"^[ \t]*[+-]?[0-9]+[ \t]*$")
                if pc.all(digits, min_count=0).as_py():
                    parts[i].append(column)
                else:
                    whole.discard(i)
                    parts[i].clear()
    return {i: _int64_or_text(pa.chunked_array(parts[i], pa.string())) for i in sorted(whole)}


def _int64_or_text(column: pa.ChunkedArray) -> Any:
    if not column.null_count:
        try:
            return pc.ascii_trim(column, " \t").cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:  # more digits, or a plus sign
            pass
    return column.to_pandas()
