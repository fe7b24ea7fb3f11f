"""What the cells of a table mean: numbers, codes for missing, open ages, decimal commas, dates.

    -9999  n/a  NA  (empty)    missing
    89+                        89 (BIDS: old ages are cut off)
    2,41                       2.41 where a whole column is written so
    red  green  blue           labels, where a table may hold them; so are yes and no
    2024-03-02  2.3.2024       dates, where a table may hold labels and the whole column is written so

Whatever is read as something other than what stands there is said in a note; what cannot be read is refused with the
file, the column and the row.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precisionnet.errors import refuse_all, shown, some
from precisionnet.preprocessing.column_kinds import DATE_ORDERS
from precisionnet.types import BoolArray, FloatArray

MISSING_TEXT = (
    ["", ".", "NA", "N/A", "n/a", "na", "NaN", "nan", "-nan", "-NaN", "None", "null", "NULL", "<NA>", "#N/A", "#NA"]
    + ["#N/A N/A", "#VALUE!", "#DIV/0!", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]
)  # fmt: skip
MISSING_CODE = -9999.0
"""A number that means missing, where nothing else in the column is anywhere near it."""
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?|"
    rf"[0-9]{{1,2}}[-. ]?({_MONTH})[a-z]*.*|({_MONTH})[a-z]*[-. ]?[0-9]{{1,4}}",
    re.IGNORECASE,
)
_OPEN = r"[0-9]+(\.[0-9]+)?\+"
_COMMA = r"[-+]?[0-9]+(,[0-9]+)?([eE][-+]?[0-9]+)?\+?"
_YEAR_FIRST = r"^([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[ T].*)?$"
_YEAR_LAST = r"^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})(?:[ T].*)?$"
_WITH_UNIT = r"([-+]?[0-9][0-9.,]*) ?([A-Za-zµ%°/²³][A-Za-zµ%°/²³0-9^]{0,7})"
_GROUPED = (  # 1,234.5 and 1.234,5 and 1,234,567: nothing but numbers with thousands separators
    r"[-+]?[1-9][0-9]{0,2}((,[0-9]{3})+\.[0-9]+|(\.[0-9]{3})+,[0-9]+|(,[0-9]{3}){2,}|(\.[0-9]{3}){2,})"
)
_THOUSANDS = rf"[-+]?[1-9][0-9]{{0,2}},[0-9]{{3}}|{_GROUPED}"
MOSTLY = 0.8
"""Share of numbers from which on the rest of a column are mistakes, not labels."""
DROPPABLE = "leave it out with drop=[{name}], correct it, or name it with id= or site= if it says who or where"
NOT_DROPPABLE = "correct it"


class Numbers(NamedTuple):
    """A column read as numbers."""

    values: FloatArray
    """NaN where missing or unreadable."""
    unreadable: BoolArray
    notes: list[str]


def to_numbers(column: pd.Series[Any], name: str, path: str) -> Numbers:
    """Read a column as numbers, and say what was read as what."""
    here = f"Column {shown(name)} of {path!r}"
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return Numbers(np.full(len(column), np.nan), column.notna().to_numpy(), [])
    if pd.api.types.is_numeric_dtype(column.dtype):
        values, unreadable = column.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(column), dtype=bool)
        notes = list[str]()
    else:
        values, unreadable, notes = _from_text(column, here)
    coded = values == MISSING_CODE
    if coded.any() and not (values[~coded] < MISSING_CODE / 10).any():
        values = np.where(coded, np.nan, values)
        notes = [*notes, f"{here}: {MISSING_CODE:.0f} was read as missing in {int(coded.sum())} of {len(values)} rows."]
    return Numbers(values, unreadable, notes)


def _from_text(column: pd.Series[Any], here: str) -> tuple[FloatArray, BoolArray, list[str]]:
    notes = list[str]()
    text = _stripped(column)
    absent = text.isna() | text.isin(MISSING_TEXT)
    # An integer of hundreds of digits is more than NumPy can convert: let it be huge, and refused as such.
    text = text.map(lambda cell: 1e300 if isinstance(cell, int) and abs(cell) > 1e300 else cell)
    plain = text.map(lambda cell: isinstance(cell, str | int | float | np.number | Decimal)).to_numpy(dtype=bool)
    numbers = pd.to_numeric(text.astype(object).where(plain, np.nan), errors="coerce").astype(np.float64)
    rest = text[numbers.isna() & ~absent & plain].astype(str)
    opened = rest[rest.str.fullmatch(_OPEN)]
    if len(opened):
        numbers[opened.index] = pd.to_numeric(opened.str.rstrip("+"))
        notes.append(f"{here}: {some(sorted(opened.unique()))} was read without the plus in {len(opened)} rows.")
    unreadable = numbers.isna() & ~absent
    return numbers.to_numpy(), unreadable.to_numpy(dtype=bool), notes


def _stripped(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)


class ReadColumns(NamedTuple):
    """Columns of a table as they were understood."""

    values: pd.DataFrame
    """float64, NaN where missing or unreadable; labels as text and dates as datetime64 where a table may hold them."""
    notes: list[str]
    """Sentences that say which cells were read as what."""
    complaints: list[str]
    """Sentences on cells that cannot be read: file, column and row, and what to do."""
    doubts: list[str]
    """Sentences on what was guessed."""
    date_orders: dict[str, str]
    """In which order the dates of a column stand there, of DATE_ORDERS."""


def read_columns(
    frame: pd.DataFrame,
    path: str,
    way: str = DROPPABLE,
    *,
    categories: Collection[str] | bool = False,
    date_orders: Mapping[str, str] | None = None,
) -> ReadColumns:
    """Read columns as numbers; ``categories`` are columns of labels, True: every column that holds text or dates.

    ``date_orders`` says of columns in which order their dates are written.
    """
    if all(dtype == np.float64 for dtype in frame.dtypes) and not (frame.to_numpy() == MISSING_CODE).any():
        return ReadColumns(frame, [], [], [], {})  # a large table is not copied
    values: dict[str, Any] = {}
    bad: dict[str, Numbers] = {}
    labels = dict[str, Labels]()
    notes = list[str]()
    for position, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, position]
        if not isinstance(categories, bool) and name in categories:
            labels[name] = to_labels(column, path, (date_orders or {}).get(name, ""))
            values[name] = labels[name].values
            notes += labels[name].notes
            continue
        numbers = to_numbers(column, name, path)
        values[name] = numbers.values
        if categories is True and numbers.unreadable.any() and not _are_mistakes(column, numbers):
            labels[name] = to_labels(column, path, (date_orders or {}).get(name, ""))
            values[name] = labels[name].values
            notes += labels[name].notes
        else:
            notes += numbers.notes
            if numbers.unreadable.any():
                bad[name] = numbers
    if len(notes) > 3:
        notes = [*notes[:2], f"{len(notes) - 2} more columns of {path!r} were read in such a way."]
    return ReadColumns(
        pd.DataFrame(values, index=frame.index),
        notes,
        [*text_complaints(bad, frame, path, way), *(said for read in labels.values() for said in read.complaints)],
        [said for read in labels.values() for said in read.doubts],
        {name: read.date_order for name, read in labels.items() if read.date_order},
    )


class Labels(NamedTuple):
    """A column read as labels or dates."""

    values: pd.Series[Any]
    """Text without blanks around it, or datetime64; NaN where missing."""
    date_order: str = ""
    """The order in which dates stand there, of DATE_ORDERS; empty where that cannot be asked."""
    notes: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def to_labels(column: pd.Series[Any], path: str, date_order: str = "") -> Labels:
    """Read a column of labels, or of dates where every cell is one.

    ``date_order`` is the order in which its dates are written; empty finds it in the cells: a number above 12 is a day,
    dots stand after a day that comes first, and anything else is guessed.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return Labels(column)
    text = _stripped(column)
    text = text.mask(text.isin(MISSING_TEXT))
    known = text.dropna()
    if len(known) and known.map(lambda cell: hasattr(cell, "isoformat")).all():
        return Labels(pd.to_datetime(text))
    here = f"Column {shown(str(column.name))} of {path!r}"
    for order, form in (("year/month/day", _YEAR_FIRST), (date_order, _YEAR_LAST)):
        parts = known.astype(str).str.extract(form)
        if len(parts) and not parts.isna().any(axis=None):
            return _to_dates(text, parts.astype(int), order, here)
    return Labels(text)


def _to_dates(text: pd.Series[Any], parts: pd.DataFrame, order: str, here: str) -> Labels:
    """Dates from their three numbers, in this order or, where it is empty, in that which they show; else text."""
    day_first, month_first = DATE_ORDERS
    known, asked, guessed = text.dropna().astype(str), order, False
    if not order:
        first, second = ((parts[place] > 12).any() for place in (0, 1))
        order = month_first if second and not first else day_first
        guessed = not first and not second and not known.str.contains(".", regex=False).all()
    dates = _days(parts, order)
    if dates.isna().any():
        other = {day_first: month_first, month_first: day_first}.get(asked)
        if other is None or _days(parts, other).isna().any():
            return Labels(text)
        cell, row = known[dates.isna()].iloc[0], int(text.index.get_indexer(dates.index[dates.isna()])[0]) + 1
        said = (
            f"{here} is to be read as {order} (in a prediction, as in the fit) and holds {shown(cell)} in row {row}, "
            "which is no such date: write dates as 2024-01-31."
        )
        return Labels(text, complaints=(said,))
    dates = dates.reindex(text.index)
    if order not in DATE_ORDERS:
        return Labels(dates)
    if not guessed:
        return Labels(dates, order, (f"{here} holds dates, read as {order}.",))
    doubt = (
        f"{here} holds dates such as {shown(known.iloc[0])}, read as {order}: a guess, as no day shows which it is; "
        "write dates as 2024-01-31 to be sure."
    )
    return Labels(dates, order, doubts=(doubt,))


def _days(parts: pd.DataFrame, order: str) -> pd.Series[Any]:
    return pd.to_datetime(parts.set_axis(order.split("/"), axis=1), errors="coerce")


def _are_mistakes(column: pd.Series[Any], numbers: Numbers) -> bool:
    """Whether cells that are no numbers are numbers all the same: beside many, or with commas, thousands or units."""
    readable, bad = int(np.isfinite(numbers.values).sum()), int(numbers.unreadable.sum())
    cells = _stripped(column)[numbers.unreadable].astype(str)
    return (
        readable >= MOSTLY * (readable + bad)
        or bool(cells.str.fullmatch(f"{_COMMA}|{_THOUSANDS}").all())
        or (bool(cells.str.fullmatch(_WITH_UNIT).all()) and len(set(cells.str.extract(_WITH_UNIT)[1])) == 1)
    )


def decimal_points(frame: pd.DataFrame, path: str, *, certain: bool, spare: Collection[str] = ()) -> list[str]:
    """Write decimal commas as points, in place, and say so.

    A comma is decimal where the file is cut by semicolons (``certain``), or where one of its columns cannot be read
    otherwise: '2,41' can, '2,413' may be two thousand. Where any column has decimal points, no comma is decimal.
    """
    candidates, proved = list[str](), certain
    if _with_points(frame) is not None:
        return []
    for name, column in frame.items():
        if name in spare or not (column.dtype == object or isinstance(column.dtype, pd.StringDtype)):
            continue
        cells = _stripped(column)
        cells = cells[cells.map(lambda cell: isinstance(cell, str) and cell not in MISSING_TEXT)].astype(str)
        commas = cells[cells.str.contains(",")]
        if len(commas) and cells.str.fullmatch(_COMMA).all():
            candidates.append(str(name))
            proved = proved or not commas.str.fullmatch(_THOUSANDS).all()
    if not proved or not candidates:
        return []
    for name in candidates:
        frame[name] = frame[name].map(lambda cell: cell.replace(",", ".") if isinstance(cell, str) else cell)
    which, have = ("Column", "has") if len(candidates) == 1 else ("Columns", "have")
    return [f"{which} {some(candidates)} of {path!r} {have} decimal commas, read as points."]


def _with_points(frame: pd.DataFrame) -> str | None:
    """Name the first column whose numbers have decimal points, or points that look like it."""
    for name, column in frame.items():
        if pd.api.types.is_float_dtype(column.dtype) and bool((column.dropna() % 1 != 0).any()):
            return str(name)
    return None


def text_complaints(values: dict[str, Numbers], frame: pd.DataFrame, path: str, way: str) -> list[str]:
    """Write a sentence on the columns that are no numbers: the first one, its first cell, and how many others."""
    names = [name for name, numbers in values.items() if numbers.unreadable.any()]
    if not names:
        return []
    name, row = names[0], int(np.flatnonzero(values[names[0]].unreadable)[0])
    cell = frame[name].iloc[row]
    others = f" ({some(names[1:])} as well)" if len(names) > 1 else ""
    return [
        f"Column {shown(name)} holds text{others}, not numbers: {shown(str(cell))} in row {row + 1} of {path!r}"
        f"{_hint(cell, _with_points(frame))}; {way.format(name=', '.join(shown(other) for other in names[:30]))}."
    ]


def looks_like_date(text: str) -> bool:
    """Whether a cell may have been meant as a date."""
    return _DATE.fullmatch(text) is not None


def _hint(cell: Any, with_points: str | None) -> str:
    text = str(cell).strip()
    if hasattr(cell, "isoformat") or looks_like_date(text):
        return " (a date? spreadsheets turn numbers such as 2.3 into one)"
    if re.fullmatch(_GROUPED, text):
        mark = max(",.", key=text.rfind)
        whole, _, fraction = text.rpartition(mark) if text.count(mark) == 1 else (text, "", "")
        decimal = mark if with_points is None else "."
        plain = re.sub("[,.]", "", whole) + (decimal + fraction if fraction else "")
        return f" (a number with thousands separators? save it without them, as {plain})"
    if re.fullmatch(_COMMA, text):
        beside = "" if with_points is None else f"column {shown(with_points)} has points; "
        return f" (decimal commas, or thousands? {beside}save it with decimal points and no other separators)"
    if re.fullmatch(_WITH_UNIT, text):
        return " (a number with its unit? write the unit into the column's name)"
    return ""


def to_labels_or_numbers(
    column: pd.Series[Any], path: str, *, refuse_mixed: bool = False
) -> tuple[pd.Series[Any], list[str]]:
    """A column that may be either: numbers where every cell is one, else text. '007' is text.

    ``refuse_mixed`` refuses a column of numbers with a few cells that are none, instead of calling it text.
    """
    name = str(column.name)
    read = to_numbers(column, name, path)
    zeros = column.map(lambda cell: isinstance(cell, str) and re.fullmatch(r"0[0-9]+", cell.strip()) is not None)
    kept = pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)
    if not kept and refuse_mixed and read.unreadable.any() and _are_mistakes(column, read):
        refuse_all(text_complaints({name: read}, column.to_frame(name), path, "correct it"))
    if kept or read.unreadable.any() or bool(zeros.any()):
        text = _stripped(column)
        return text.mask(text.isin(MISSING_TEXT)), []
    numbers = pd.Series(read.values, index=column.index, name=column.name)
    written = column.map(
        lambda cell: isinstance(cell, str) and re.fullmatch(r"\s*[-+]?[0-9]{1,15}\s*", cell) is not None
    )
    whole = (pd.api.types.is_integer_dtype(column.dtype) or bool(written.all())) and not numbers.isna().any()
    return (numbers.astype(np.int64) if whole else numbers), read.notes
