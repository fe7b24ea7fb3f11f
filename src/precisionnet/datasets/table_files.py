"""Tables from files: csv, tsv, parquet and xlsx, as they stand there.

What the cells mean is for ``values``, which columns are which for ``formats``. What cannot be read at all is refused
here, in one sentence that names the file and says what to do.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet

from precisionnet.datasets.cells import MISSING_TEXT, decimal_points
from precisionnet.datasets.csv_files import UTF_8, WINDOWS, NotUtf8, read_numeric_csv, refuse_no_text
from precisionnet.errors import InputError, did_you_mean, shown, some
from precisionnet.inputs import TABLE_ENDINGS, refuse_missing_table
from precisionnet.memory import free_memory, gigabytes, table_bytes

DELIMITED = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".dat": "\t"}
SIGNATURES = {
    b"PK\x03\x04": "a workbook or zip archive: if it is a workbook, give it the ending .xlsx",
    b"\x1f\x8b": "compressed: unpack it first",
    b"PAR1": "parquet: give it the ending .parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel file: save it as .xlsx",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


def read_header(path: str | Path) -> list[str]:
    """The column names, without the rows."""
    path = Path(path)
    with _readable(path):
        return [str(name).strip() for name in _named(_kind(path)[0](path), path)]


def read_table(path: str | Path, id_column: str | None = None, text_columns: Collection[str] = ()) -> pd.DataFrame:
    """One table. ``text_columns`` and the id are read as text, so that leading zeros survive.

    ``attrs["notes"]`` of the frame says what was read otherwise than it stands there.
    """
    path = Path(path)
    wanted = {*text_columns, *([] if id_column is None else [id_column])}
    with _readable(path):
        header, read = _kind(path)
        names = _named(header(path), path)
        _refuse_twice(names, path)
        _refuse_larger_than_memory(path)
        frame = read(path, [name for name in names if str(name).strip() in wanted])
    frame.columns = [str(name).strip() for name in frame.columns]
    certain, notes = frame.attrs.pop("certain", False), frame.attrs.pop("notes", [])
    if len(frame):
        spare = [] if id_column is None else [id_column]
        frame.attrs["notes"] = [*notes, *decimal_points(frame, str(path), certain=certain, spare=spare)]
    if frame.empty:
        raise InputError(f"Table {str(path)!r} has no rows: only a header was found.")
    if id_column is not None:
        frame[id_column] = ids_of(frame, id_column, path)
    return frame


def ids_of(frame: pd.DataFrame, id_column: str, path: str | Path) -> pd.Series[Any]:
    """Return the id column as text; refuse empty ids."""
    if id_column not in frame.columns:
        raise InputError(
            f"Table {str(path)!r} has no id column {id_column!r}{did_you_mean(id_column, frame.columns)}; it "
            f"has {some(list(frame.columns))}: name one of them with id=, or check how the columns are separated."
        )
    ids = as_text(frame[id_column])
    empty = ids.isna() | (ids == "")
    if empty.any():
        raise InputError(
            f"Table {str(path)!r} has no id in column {id_column!r} for {int(empty.sum())} of {len(frame)} rows "
            f"(row {int(empty.to_numpy().argmax()) + 1} is the first): fill it in or remove those rows."
        )
    return ids


def check_names(option: str, names: Any) -> list[str] | None:
    """Return column names as a list: one name may be given by itself, None stays None."""
    if names is None:
        return None
    listed = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    wrong = [name for name in listed if not isinstance(name, str)]
    if wrong:
        raise InputError(f"{option} must name columns, got {shown(wrong[0])}: give their names as text.")
    return listed


def find(name: str | None, columns: Collection[str]) -> str | None:
    """Find the column of this name, or else the only one that differs from it in upper and lower case alone."""
    if name is None or name in columns:
        return name
    close = [column for column in columns if column.lower() == name.lower()]
    return close[0] if len(close) == 1 else None


def as_text(ids: pd.Series[Any]) -> pd.Series[Any]:
    """Labels as text; a whole number that passed through a float column keeps no '.0'."""
    if pd.api.types.is_float_dtype(ids.dtype) and bool(((ids.dropna() % 1 == 0) & (ids.dropna().abs() < 2**53)).all()):
        ids = ids.astype("Int64")
    return ids.astype("string").str.strip().astype(object).where(ids.notna(), None)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever a reader raises, as a sentence."""
    refuse_missing_table(path)
    try:
        yield
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"Table {str(path)!r} may not be read: ask for the permission, or copy it.") from error
    except UnicodeDecodeError as error:
        raise NotUtf8(path) from error
    except Exception as error:  # readers raise anything from OSError to zipfile.BadZipFile
        detail = " ".join(str(error).split())[:160]
        if "you must specify an engine" in detail:
            detail = "it is no workbook"
        raise InputError(
            f"Table {str(path)!r} cannot be read as {path.suffix} ({detail}): check that the file is what its ending "
            "says."
        ) from error


def _refuse_larger_than_memory(path: Path) -> None:
    """Refuse a table with no room in memory: reading it takes at least twice the bytes of its numbers."""
    need, free = 2.0 * table_bytes(path), free_memory()
    if need > free:
        raise InputError(
            f"Table {str(path)!r} takes {gigabytes(need)} of memory to read and {gigabytes(free)} are free: fit it "
            "with fit_table, as precisionnet fit does, which reads it piece by piece, or write some of its rows or "
            "columns to a smaller file."
        )


def _named(names: list[Any], path: Path) -> list[Any]:
    """Refuse a table without a header."""
    if not names:
        raise InputError(f"Table {str(path)!r} is empty: it has no header.")
    return names


def _refuse_twice(names: Sequence[Any], path: Path) -> None:
    """pandas would rename a repeated column in silence."""
    stripped = [str(name).strip() for name in names if not pd.isna(name)]
    seen = set[str]()
    twice = sorted({name for name in stripped if name and (name in seen or seen.add(name))})  # type: ignore[func-returns-value]
    if twice:
        raise InputError(f"Table {str(path)!r} has more than one column named {some(twice)}: rename or remove one.")


def _delimited_header(path: Path) -> list[str]:
    return _split_header(path)[0]


def _read_delimited(path: Path, text_columns: list[str]) -> pd.DataFrame:
    delimiter, notes = _split_header(path)[1], list[str]()
    try:
        frame = read_numeric_csv(path, delimiter=delimiter, text_columns=text_columns)
    except NotUtf8:
        refuse_no_text(path)
        frame = read_numeric_csv(path, delimiter=delimiter, text_columns=text_columns, encoding=WINDOWS)
        notes = [
            f"Table {str(path)!r} is not UTF-8 and was read as the text of Windows ({WINDOWS}): where its letters look "
            'wrong, save it as UTF-8 ("CSV UTF-8" in Excel).'
        ]
    frame.columns = [name or _stand_in(i, frame.columns) for i, name in enumerate(frame.columns)]
    frame.attrs |= {"certain": delimiter == ";", "notes": notes}
    return frame


def _stand_in(position: int, taken: Collection[str]) -> str:
    """A name for a column that has none; 'Unnamed: 0' may be taken by one that pandas wrote."""
    name = f"Unnamed: {position}"
    while name in taken:
        name += ".1"
    return name


def find_delimiter(path: Path) -> str:
    """Return the character between the cells of a delimited file."""
    with _readable(path):
        return _split_header(path)[1]


def _split_header(path: Path) -> tuple[list[str], str]:
    """The column names, and the delimiter: the one that cuts the header and the first rows into equally many parts.

    Names may be quoted and hold anything, line breaks included.
    """
    _refuse_binary(path)
    try:
        return _cut_header(path, UTF_8)
    except UnicodeDecodeError:
        refuse_no_text(path)
        return _cut_header(path, WINDOWS)


def _cut_header(path: Path, encoding: str) -> tuple[list[str], str]:
    found: list[tuple[bool, int, list[str], str]] = []
    own = DELIMITED[path.suffix.lower()]
    for delimiter in dict.fromkeys([own, ",", ";", "\t"]):
        with path.open(encoding=encoding, newline="") as file:
            filled = (row for row in csv.reader(file, delimiter=delimiter) if row)
            names, *rows = list(itertools.islice(filled, 6)) or [[]]
        even = len(names) > 1 and all(len(row) == len(names) for row in rows)
        found.append((even, len(names), names, delimiter))
        if even and delimiter == own:  # the file is what its ending says
            break
    _, _, names, delimiter = max(found, key=lambda candidate: candidate[:2])
    return names, delimiter


def _refuse_binary(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(2**16)
    known = next((what for signature, what in SIGNATURES.items() if start.startswith(signature)), None)
    if known is not None and (b"\0" in start or start[:4] == b"PAR1"):
        raise InputError(f"Table {str(path)!r} is not text, but {known}.")
    if b"\0" in start:
        raise InputError(f"Table {str(path)!r} is not text: check that the file is what its ending says.")


def _parquet_header(path: Path) -> list[str]:
    names = pyarrow.parquet.read_schema(path).names
    return ["index" if name == "__index_level_0__" else str(name) for name in names]


def _read_parquet(path: Path, text_columns: list[str]) -> pd.DataFrame:
    """Read a parquet file; an index that pandas wrote becomes columns, unless it only counts the rows."""
    frame = pd.read_parquet(path)
    counts = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    return frame.reset_index(drop=counts)


def _excel_header(path: Path) -> list[Any]:
    header = pd.read_excel(path, header=None, nrows=1)
    if not len(header) or header.iloc[0].isna().all():
        raise InputError(f"Table {str(path)!r} is empty, or does not start in the first cell: it has no header.")
    names = header.iloc[0].tolist()
    if len(names) > 2 and header.iloc[0].isna().sum() > len(names) / 2:
        raise InputError(
            f"The first row of {str(path)!r} names {int(header.iloc[0].notna().sum())} of {len(names)} columns "
            f"({names[0]!r}): remove the rows above the header."
        )
    return names


def _read_excel(path: Path, text_columns: list[str]) -> pd.DataFrame:
    # As objects the ids stay what the cells hold: '001' is text, 12 a number.
    types = dict.fromkeys(text_columns, object)
    sheets = pd.read_excel(path, sheet_name=None, dtype=types, keep_default_na=False, na_values=MISSING_TEXT)
    (_, frame), *others = sheets.items()
    filled = [name for name, sheet in others if not sheet.empty]
    if filled:
        frame.attrs["notes"] = [f"Only the first sheet of {str(path)!r} was read, not {some(filled)}."]
    return frame


Header = Callable[[Path], list[Any]]
Reader = Callable[[Path, list[str]], pd.DataFrame]
_KINDS: dict[str, tuple[Header, Reader]] = {
    **dict.fromkeys(DELIMITED, (_delimited_header, _read_delimited)),
    ".parquet": (_parquet_header, _read_parquet),
    ".pq": (_parquet_header, _read_parquet),
    ".xlsx": (_excel_header, _read_excel),
}


def _kind(path: Path) -> tuple[Header, Reader]:
    found = _KINDS.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"Table {str(path)!r} has the ending {path.suffix!r}, which is not one of {TABLE_ENDINGS}: convert it."
        )
    return found
