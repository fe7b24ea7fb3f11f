"""A delimited file, streamed block by block as often as needed; what is wrong with it is said by row."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv

from precisionnet.datasets.cells import MISSING_TEXT
from precisionnet.errors import InputError
from precisionnet.inputs import refuse_missing_table

BLOCK_BYTES = 2**21
HEADERS_A_BLOCK = 16
"""A block holds the header at least so often: no row is longer."""


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

    @classmethod
    def open(
        cls, path: str | Path, delimiter: str = ",", decimal: str = ".", null_values: Sequence[str] = MISSING_TEXT
    ) -> CsvSource:
        """Read the header."""
        path = Path(path)
        refuse_missing_table(path)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                skipped, names = next(
                    ((k, row) for k, row in enumerate(csv.reader(file, delimiter=delimiter), 1) if row), (0, [])
                )
                only_header = next(file, None) is None
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error
        except csv.Error as error:
            raise InputError(
                f"The header of table {str(path)!r} cannot be read ({error}): is it a text file?"
            ) from error
        if not names:
            raise InputError(f"Table {str(path)!r} is empty: it has no header.")
        return cls(path, names, skipped, only_header, delimiter, decimal, tuple(null_values))

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
        """Those that hold something that is no number, in the first blocks or anywhere."""
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
        """What the user should be told of pyarrow's message."""
        if found := re.match(r"In CSV column #(\d+):.*conversion error to double", message, re.DOTALL):
            return NotANumber(int(found[1]))
        if "UTF8" in message:
            return _not_utf8(self.path)
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
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
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


def _not_utf8(path: Path) -> InputError:
    return InputError(f'Table {str(path)!r} is not UTF-8 text: save it as UTF-8 ("CSV UTF-8" in Excel).')
