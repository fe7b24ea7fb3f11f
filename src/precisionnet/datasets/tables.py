"""Tables from files: csv, tsv, parquet and xlsx, one or several joined on an id.

What cannot be used is refused in one sentence that names the file or column and says what to do.
"""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.errors import InputError, did_you_mean, some
from precisionnet.inputs import TABLE_ENDINGS, refuse_missing_table

DELIMITED = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}


def read_table(path: str | Path, id_column: str | None = None) -> pd.DataFrame:
    """One table. The id column, where named, is read as text, so that leading zeros survive."""
    path = Path(path)
    refuse_missing_table(path)
    try:
        frame = _READERS.get(path.suffix.lower(), _read_unknown)(path, id_column)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f'Table {str(path)!r} is not UTF-8 text: save it as UTF-8 ("CSV UTF-8" in Excel).') from error
    except Exception as error:  # readers raise anything from OSError to zipfile.BadZipFile
        detail = " ".join(str(error).split())[:160]
        raise InputError(
            f"Table {str(path)!r} cannot be read as {path.suffix} ({detail}): check that the file is what its ending "
            "says."
        ) from error
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_twice(list(frame.columns), path)
    if frame.empty:
        raise InputError(f"Table {str(path)!r} has no rows: only a header was found.")
    if id_column is not None:
        if id_column not in frame.columns:
            raise InputError(
                f"Table {str(path)!r} has no id column {id_column!r}{did_you_mean(id_column, frame.columns)}; it "
                f"has {some(list(frame.columns))}: name one of them with --id, or check how the columns are separated."
            )
        frame[id_column] = _as_text(frame[id_column])
        empty = frame[id_column].isna() | (frame[id_column] == "")
        if empty.any():
            raise InputError(
                f"Table {str(path)!r} has no id in column {id_column!r} for {int(empty.sum())} of {len(frame)} rows "
                f"(row {int(empty.to_numpy().argmax()) + 1} is the first): fill it in or remove those rows."
            )
    return frame


def read_tables(paths: Sequence[str | Path], id_column: str | None = None) -> tuple[pd.DataFrame, list[str]]:
    """All tables, joined on the id where there are several; and what the user should know about the join."""
    if len(paths) > 1 and id_column is None:
        raise InputError(f"{len(paths)} tables were given, but no id to join them on: name the id column with --id.")
    frames = [read_table(path, id_column) for path in paths]
    joined, notes = frames[0], list[str]()
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        assert id_column is not None
        joined, note = _join(joined, frame, id_column, str(paths[0]), str(path))
        notes += note
    return joined, notes


def _read_delimited(path: Path, id_column: str | None) -> pd.DataFrame:
    names, delimiter = _header(path)
    if not names:
        raise InputError(f"Table {str(path)!r} is empty: it has no header.")
    _refuse_twice(names, path)
    text_columns = {name: str for name in names if name.strip() == id_column}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a header that does not fit its rows
        return pd.read_csv(
            path, sep=delimiter, encoding="utf-8-sig", dtype=text_columns, index_col=False, low_memory=False
        )


def _header(path: Path) -> tuple[list[str], str]:
    """The column names, and the delimiter: the one that cuts the header and the first rows into equally many parts.

    Names may be quoted and hold anything, line breaks included.
    """
    found: list[tuple[bool, int, list[str], str]] = []
    own = DELIMITED[path.suffix.lower()]
    for delimiter in dict.fromkeys([own, ",", ";", "\t"]):
        with path.open(encoding="utf-8-sig", newline="") as file:
            filled = (row for row in csv.reader(file, delimiter=delimiter) if row)
            names, *rows = list(itertools.islice(filled, 6)) or [[]]
        even = len(names) > 1 and all(len(row) == len(names) for row in rows)
        found.append((even, len(names), names, delimiter))
        if even and delimiter == own:  # the file is what its ending says
            break
    _, _, names, delimiter = max(found, key=lambda candidate: candidate[:2])
    if any("\0" in name for name in names):
        raise InputError(f"Table {str(path)!r} is not text: check that the file is what its ending says.")
    return names, delimiter


def _refuse_twice(names: Sequence[Any], path: Path) -> None:
    """pandas would rename a repeated column in silence."""
    stripped = [str(name).strip() for name in names if not pd.isna(name)]
    twice = sorted({name for name in stripped if name and stripped.count(name) > 1})
    if twice:
        raise InputError(f"Table {str(path)!r} has more than one column named {some(twice)}: rename or remove one.")


def _read_parquet(path: Path, id_column: str | None) -> pd.DataFrame:
    return pd.read_parquet(path)


def _read_excel(path: Path, id_column: str | None) -> pd.DataFrame:
    header = pd.read_excel(path, header=None, nrows=1)
    names = header.iloc[0].tolist() if len(header) else []
    _refuse_twice(names, path)
    # As objects the ids stay what the cells hold: '001' is text, 12 a number.
    return pd.read_excel(path, dtype={name: object for name in names if str(name).strip() == id_column})


def _read_unknown(path: Path, id_column: str | None) -> pd.DataFrame:
    raise InputError(
        f"Table {str(path)!r} has the ending {path.suffix!r}, which is not one of {TABLE_ENDINGS}: convert it."
    )


_READERS = {
    **dict.fromkeys(DELIMITED, _read_delimited),
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".xlsx": _read_excel,
}


def _as_text(ids: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_float_dtype(ids.dtype) and bool(((ids.dropna() % 1 == 0) & (ids.dropna().abs() < 2**53)).all()):
        ids = ids.astype("Int64")  # a whole number that passed through a float column: 12.0 is '12'
    return ids.astype("string").str.strip().astype(object).where(ids.notna(), None)


def _join(
    left: pd.DataFrame, right: pd.DataFrame, id_column: str, left_name: str, right_name: str
) -> tuple[pd.DataFrame, list[str]]:
    for frame, name in ((left, left_name), (right, right_name)):
        twice = frame[id_column][frame[id_column].duplicated()].unique().tolist()
        if twice:
            raise InputError(
                f"Id {some(twice)} stands more than once in {name!r}: a join needs one row an id; remove the others."
            )
    shared = [name for name in right.columns if name in left.columns and name != id_column]
    if shared:
        raise InputError(f"Column {some(shared)} stands in {left_name!r} and in {right_name!r}: rename or remove one.")
    joined = left.merge(right, on=id_column, how="inner")
    only_left = left.loc[~left[id_column].isin(right[id_column]), id_column].tolist()
    only_right = right.loc[~right[id_column].isin(left[id_column]), id_column].tolist()
    if joined.empty:
        raise InputError(
            f"No id in column {id_column!r} matches between {left_name!r} ({some(only_left)}) and {right_name!r} "
            f"({some(only_right)}): write them the same way in both."
        )
    notes = [
        f"{len(ids)} of {len(frame)} rows of {name!r} have no partner in {other!r} and were left out ({some(ids)})."
        for ids, frame, name, other in (
            (only_left, left, left_name, right_name),
            (only_right, right, right_name, left_name),
        )
        if ids
    ]
    return joined, notes
