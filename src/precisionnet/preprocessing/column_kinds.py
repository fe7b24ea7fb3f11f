"""What a column of a table holds: numbers, yes or no, words of a scale, dates or labels; and its cells as numbers.

Words for yes and no and for steps of a scale are known in a few languages, whatever their case.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, shown
from precisionnet.types import BoolArray

ColumnKind = Literal["number", "boolean", "ordinal", "date", "category", "left out"]
KINDS = get_args(ColumnKind)
YES_NO = tuple(
    tuple(pair.split())
    for pair in ("no yes", "n y", "false true", "f t", "nein ja", "non oui", "no si", "no sí", "nej ja", "nee ja")
)
"""Words for 0 and 1, whatever their case."""
SCALES = tuple(
    tuple(scale.split())
    for scale in (
        "none mild moderate severe",
        "absent mild moderate severe",
        "normal mild moderate severe",
        "low medium high",
        "low moderate high",
        "small medium large",
        "never rarely sometimes often always",
        "poor fair good excellent",
        "i ii iii iv v",
        "first second third fourth",
        "1st 2nd 3rd 4th",
    )
)
"""Words that have an order, whatever their case; three of them make a column ordinal."""
DATE_ORDERS = ("day/month/year", "month/day/year")
"""The two ways of writing a date that does not begin with its year."""
WRITTEN_AS = "date_orders"
"""Entry of a data frame's ``attrs``: in which of these orders the dates of a column stood in its file."""
DAYS_A_YEAR = 365.25
INDICATOR_SHARE = 0.01
"""Share of missing training rows above which a column says where a value is missing."""


def is_label_column(column: pd.Series[Any]) -> bool:
    """Whether a column holds something other than numbers: text, categories, dates, or true and false with gaps."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    return kind_of(column)[0] != "number"


def columns_of_labels(X: pd.DataFrame) -> list[Any]:
    """Name the columns of a table that hold something other than numbers."""
    other = [place for place, dtype in enumerate(X.dtypes) if not pd.api.types.is_numeric_dtype(dtype)]
    return [X.columns[place] for place in other if is_label_column(X.iloc[:, place])]


def needs_encoder(X: Any, missing: str) -> TypeGuard[pd.DataFrame]:
    """Whether a table has labels, or gaps that ``missing="indicator"`` is to say; else each column is a node.

    What is no table, or has two columns of one name, is left to others to refuse.
    """
    if not isinstance(X, pd.DataFrame) or X.columns.has_duplicates:
        return False
    return bool(columns_of_labels(X)) or (missing == "indicator" and bool((X.isna().mean() > INDICATOR_SHARE).any()))


def are_plain(frame: pd.DataFrame) -> BoolArray:
    """Tell which columns hold NumPy's numbers, so that they can be taken together."""
    return np.array([_is_plain(dtype) for dtype in frame.dtypes], dtype=bool)


def _is_plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def date_order(column: pd.Series[Any]) -> str:
    """In which order the dates of a column stood in its file; empty where the year came first, or nobody knows."""
    order = column.attrs.get(WRITTEN_AS, {}).get(str(column.name), "")
    return order if order in DATE_ORDERS else ""


def texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """Levels as text, NaN where missing: 3.0 is '3', blanks around a word do not count."""

    def text(cell: Any) -> Any:
        if isinstance(cell, str):
            return cell.strip() or np.nan
        if pd.isna(cell):
            return np.nan
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)

    return pd.Series([text(cell) for cell in column], index=column.index, dtype=object)


def begin_with_digits(levels: pd.Series[Any]) -> bool:
    """Whether most cells of text begin with a digit, after a sign: then they are rather numbers than words."""
    return bool(levels.astype(str).str.match(r"\s*[-+]?\s*[.,]?[0-9]").mean() > 0.5)


def kind_of(column: pd.Series[Any]) -> tuple[ColumnKind, tuple[str, ...]]:
    """What a column holds, and the words of a boolean or ordinal one."""
    dtype = column.dtype
    if dtype.kind == "c" or pd.api.types.is_timedelta64_dtype(dtype):
        raise InputError(f"Column {shown(str(column.name))} holds {dtype} values: give numbers, text or dates.")
    if pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype):
        return "boolean", ("False", "True")
    if isinstance(dtype, pd.CategoricalDtype):
        ordered = bool(dtype.ordered)
        return ("ordinal", tuple(texts(pd.Series(dtype.categories)))) if ordered else ("category", ())
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "date", ()
    if pd.api.types.is_numeric_dtype(dtype):
        return "number", ()
    known = column[texts(column).notna()]  # blanks are gaps
    if len(known) and all(isinstance(cell, bool | np.bool_) for cell in known):
        return "boolean", ("False", "True")
    if len(known) and all(isinstance(cell, datetime.date | np.datetime64) for cell in known):
        return "date", ()
    if not pd.to_numeric(known, errors="coerce").isna().any():
        return "number", ()
    return _words(texts(known).dropna())


def _words(levels: pd.Series[Any]) -> tuple[ColumnKind, tuple[str, ...]]:
    lowered = set(levels.str.casefold())
    pair = next((pair for pair in YES_NO if lowered == set(pair)), None)
    if pair is not None:
        return "boolean", pair
    scale = next((scale for scale in SCALES if lowered <= set(scale)), None) if len(lowered) >= 3 else None
    return ("category", ()) if scale is None else ("ordinal", tuple(word for word in scale if word in lowered))


def numbers_of(column: pd.Series[Any], name: str, kind: ColumnKind, levels: Sequence[str]) -> pd.Series[Any]:
    """A column of any kind but category as numbers, NaN where missing or, of words, not among the levels."""
    if kind == "date":
        return _years(column, name)
    if kind == "number":
        if _is_plain(column.dtype):
            return column.astype(np.float64)
        numbers = pd.to_numeric(column.astype(object), errors="coerce").astype(np.float64)
        bad = numbers.isna() & texts(column).notna()
        if bad.any():
            raise InputError(
                f"Column {shown(name)} held numbers in fit and holds {shown(str(column[bad].iloc[0]))} now: correct it."
            )
        return numbers
    places = {level.casefold(): float(i) for i, level in enumerate(levels)}
    return texts(column).map(lambda word: places.get(word.casefold(), np.nan) if isinstance(word, str) else np.nan)


def _years(column: pd.Series[Any], name: str) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise InputError(f"Column {shown(name)} held dates in fit and holds numbers now: correct it.")
    times = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    bad = times.isna() & column.notna()
    if bad.any():
        raise InputError(
            f"Column {shown(name)} held dates in fit and holds {shown(str(column[bad].iloc[0]))} now: write dates as "
            "2024-03-02."
        )
    days = (times - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
    return 1970.0 + days.astype(np.float64) / DAYS_A_YEAR
