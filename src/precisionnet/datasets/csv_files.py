"""Large delimited tables in little more memory than their numbers take.

pyarrow parses the file block by block; each block is written at once into one float64 array that is as long as the file
has lines (rows that turn out not to be there cost no memory, for a page that is never touched is never given). Whether
a column holds numbers is decided by the whole file: where text turns up late, the file is read again.
"""

from __future__ import annotations

import csv
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv

from precisionnet.datasets.cells import MISSING_TEXT
from precisionnet.errors import InputError, did_you_mean, shown, some
from precisionnet.inputs import refuse_missing_table

BLOCK_BYTES = 2**21
HEADERS_A_BLOCK = 16
"""A block holds the header at least so often: no row is longer."""
LARGEST_EXACT = 2.0**53
"""Whole numbers beyond may change when they become float64."""
UTF_8, WINDOWS = "utf-8-sig", "cp1252"
"""How text files are written: as they should be, and as Excel's plain csv is in the west of Europe and in America."""
_NO_TEXT = re.compile(
    rb"\A(\xff\xfe|\xfe\xff)|[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
)
"""Marks of UTF-16, bytes that Windows' encoding has no letter for, and letters of UTF-8: that file is only damaged."""
TRUE, FALSE = {"True", "TRUE", "true"}, {"False", "FALSE", "false"}


def read_numeric_csv(
    path: str | Path,
    *,
    delimiter: str = ",",
    decimal: str = ".",
    null_values: Sequence[str] = MISSING_TEXT,
    text_columns: Sequence[str] = (),
    encoding: str = UTF_8,
) -> pd.DataFrame:
    """The table as pandas would read it, but for whole numbers, which become float64 like all others.

    Columns with anything that is no number stay text, as it stands in the file; so do ``text_columns`` (leading zeros
    survive). Columns of true and false are booleans, and whole numbers that float64 cannot hold stay int64, or text
    where that cannot hold them, either. Names are those of the header, unchanged. Numbers are rounded correctly.
    """
    source = CsvSource.open(path, delimiter, decimal, null_values, encoding)
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


class NotUtf8(InputError):
    """A file is no UTF-8 text."""

    def __init__(self, path: Path) -> None:
        super().__init__(f'Table {str(path)!r} is not UTF-8 text: save it as UTF-8 ("CSV UTF-8" in Excel).')


def refuse_no_text(path: Path) -> None:
    """Refuse a file that cannot be text in Windows' encoding, either."""
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            if _NO_TEXT.search(block):
                raise NotUtf8(path)


class NotANumber(Exception):
    """A column that was to be numbers holds text."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True)
class CsvSource:
    """A delimited file whose header was read, and which can be streamed as often as needed."""

    path: Path
    names: list[str]
    skipped_rows: int
    """The header, and empty lines before it."""
    only_header: bool
    delimiter: str
    decimal: str
    null_values: tuple[str, ...]
    encoding: str = UTF_8

    @classmethod
    def open(
        cls,
        path: str | Path,
        delimiter: str = ",",
        decimal: str = ".",
        null_values: Sequence[str] = MISSING_TEXT,
        encoding: str = UTF_8,
    ) -> CsvSource:
        """Read the header."""
        path = Path(path)
        refuse_missing_table(path)
        try:
            with path.open(encoding=encoding, newline="") as file:
                skipped, names = next(
                    ((k, row) for k, row in enumerate(csv.reader(file, delimiter=delimiter), 1) if row), (0, [])
                )
                only_header = next(file, None) is None
        except UnicodeDecodeError as error:
            raise NotUtf8(path) from error
        except csv.Error as error:
            raise InputError(
                f"The header of table {str(path)!r} cannot be read ({error}): is it a text file?"
            ) from error
        if not names:
            raise InputError(f"Table {str(path)!r} is empty: it has no header.")
        return cls(path, names, skipped, only_header, delimiter, decimal, tuple(null_values), encoding)

    def batches(self, types: Mapping[int, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """The columns at these positions, in this order, block by block."""
        if self.only_header:
            return
        block_bytes = max(BLOCK_BYTES, HEADERS_A_BLOCK * sum(len(name.encode()) + 1 for name in self.names))
        columns = {str(position): kind for position, kind in types.items()}
        try:
            # Columns go by their positions: names may be empty, or stand twice.
            with (
                self.path.open("rb") as file,
                pa_csv.open_csv(  # a name that is no UTF-8 is beyond pyarrow
                    file,
                    read_options=pa_csv.ReadOptions(
                        block_size=block_bytes,
                        column_names=[str(position) for position in range(len(self.names))],
                        skip_rows_after_names=self.skipped_rows,
                        encoding="utf8" if self.encoding == UTF_8 else self.encoding,
                    ),
                    parse_options=pa_csv.ParseOptions(
                        delimiter=self.delimiter,
                        newlines_in_values=True,
                        invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
                    ),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=columns,
                        include_columns=list(columns),
                        null_values=list(self.null_values),
                        strings_can_be_null=True,
                        decimal_point=self.decimal,
                    ),
                ) as reader,
            ):
                yield from reader
        except pa.ArrowInvalid as error:
            raise self._explained(str(error), block_bytes) from error

    def text_columns(self, among: Sequence[int], n_blocks: int | None = None) -> set[int]:
        """Return the columns of ``among`` with a cell that is no number, in the first ``n_blocks`` blocks or all."""
        found: set[int] = set()
        if not among:
            return found
        blocks = self.batches(dict.fromkeys(among, pa.string()))
        for block in itertools.islice(blocks, n_blocks):
            for position, column in zip(among, block.columns, strict=True):
                if position not in found and not self.holds_numbers(column):
                    found.add(position)
        return found

    def holds_numbers(self, column: pa.Array) -> bool:
        """Whether this text can all be read as numbers."""
        trimmed = pc.ascii_trim(column, " \t")
        if self.decimal != ".":
            trimmed = pc.replace_substring(trimmed, self.decimal, ".")
        try:
            trimmed.cast(pa.float64())
        except pa.ArrowInvalid:
            return False
        return True

    def count(self) -> tuple[int, int]:
        """Lines in the file, no fewer than rows (line breaks within quotes count, too), and quotes."""
        feeds = returns = quotes = 0
        with self.path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                feeds += block.count(b"\n")
                returns += block.count(b"\r")
                quotes += block.count(b'"')
        return max(feeds, returns) + 1, quotes

    def _explained(self, message: str, block_bytes: int) -> Exception:
        """Turn a message of pyarrow into an error that the user understands."""
        if found := re.match(r"In CSV column #(\d+):.*conversion error to double", message, re.DOTALL):
            return NotANumber(int(found[1]))
        if "UTF8" in message:
            return NotUtf8(self.path)
        if "straddling" in message:
            return InputError(
                f"Table {str(self.path)!r} has a row of more than {block_bytes / 1e6:.0f} MB: look for a quote that "
                "is never closed."
            )
        if "columns, got" in message:
            return self._ragged() or InputError(f"Table {str(self.path)!r}: {message}.")
        return InputError(f"Table {str(self.path)!r} cannot be read ({' '.join(message.split())[:160]}).")

    def _ragged(self) -> InputError | None:
        """Name the first row that has not as many cells as the header."""
        with self.path.open(encoding=self.encoding, errors="replace", newline="") as file:
            filled = (row for row in csv.reader(file, delimiter=self.delimiter) if len(row) > 1 or "".join(row).strip())
            try:
                for number, row in enumerate(filled):
                    if len(row) != len(self.names):
                        return InputError(
                            f"Row {number} of table {str(self.path)!r} has {len(row)} cells, but the header has "
                            f"{len(self.names)}: correct it, or put cells that hold {self.delimiter!r} in quotes."
                        )
            except csv.Error:  # a cell beyond the csv module's limit
                pass
        return None


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
    """Read the suspected columns again, and return those that hold only whole numbers, with their exact values."""
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
