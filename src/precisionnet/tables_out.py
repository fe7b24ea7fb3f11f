"""Tables written to files: whole or not at all, and without cells that a spreadsheet would run.

A spreadsheet that opens a csv takes text such as ``=HYPERLINK(...)`` for a formula, and ids or column names may come
from strangers. Such text gets a ``'`` in front, which a spreadsheet shows as text. Numbers are never touched, and
neither is text that is a plain number, such as ``-1.5``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.errors import InputError, shown
from precisionnet.outputs import whole_file

WRITTEN_ENDINGS = (".csv", ".tsv", ".parquet")
"""Formats that ``write_table`` writes."""

_NUMBER = re.compile(r"[-+]([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?%?")
_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table in the format that the ending of the path names; the index is not written.

    The file appears whole or not at all. Text in csv and tsv files is made safe for spreadsheets; parquet files hold
    the table as it is.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    path : str or Path
        Where to write it. The ending is .csv, .tsv or .parquet.

    Raises
    ------
    InputError
        The ending is another one, or parquet cannot hold the table.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib, pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"id": ["a", "=1+1"], "x": [1, -2]}), f"{folder}/table.csv")
    ...     print(pathlib.Path(folder, "table.csv").read_text())
    id,x
    a,1
    '=1+1,-2
    <BLANKLINE>
    """
    ending = Path(path).suffix.lower()
    if ending not in WRITTEN_ENDINGS:
        raise InputError(f"Cannot write {str(path)!r}: its ending must be one of {', '.join(WRITTEN_ENDINGS)}.")
    with whole_file(path) as scratch:
        if ending != ".parquet":
            separator = "\t" if ending == ".tsv" else ","
            spreadsheet_safe(frame).to_csv(scratch, index=False, sep=separator, lineterminator="\n")
            return
        try:
            frame.to_parquet(scratch, index=False)
        except OSError:
            raise
        except Exception as error:  # pyarrow and pandas raise many kinds: names twice, cells of several types, ...
            raise InputError(f"Parquet cannot hold this table ({shown(str(error), 160)}): write it as .csv.") from error


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Put ``'`` before text cells and column names that a spreadsheet would run as a formula.

    Text is run that starts with ``=``, ``@``, a tab or a line break, or with ``+`` or ``-`` and is no number.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.

    Returns
    -------
    pandas.DataFrame
        A table of the same shape and index; columns without such text are those of ``frame``.

    Examples
    --------
    >>> import pandas as pd
    >>> spreadsheet_safe(pd.DataFrame({"id": ["=A1", "-3", "-x", "@SUM(A1)", "plain"]}))["id"].tolist()
    ["'=A1", '-3', "'-x", "'@SUM(A1)", 'plain']
    """
    safe = frame.rename(columns=_safe_cell)
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
            continue
        before = list(column)
        after = [_safe_cell(cell) for cell in before]
        if any(new is not old for new, old in zip(after, before, strict=True)):
            safe.isetitem(position, after)
    return safe


def _safe_cell(cell: Any) -> Any:
    runs = isinstance(cell, str) and cell.startswith(_STARTS) and _NUMBER.fullmatch(cell) is None
    return f"'{cell}" if runs else cell
