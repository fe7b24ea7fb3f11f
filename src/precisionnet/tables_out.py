"""Tables on their way to a file: cells that a spreadsheet would run become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.outputs import whole_file

_RUNS = re.compile(r"[=+@\t\r]|-[A-Za-z]")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Put ``'`` before text cells and column names that a spreadsheet would take for a formula."""
    made = frame.rename(columns=_safe)
    for place in range(frame.shape[1]):
        if not pd.api.types.is_numeric_dtype(frame.iloc[:, place]):
            made.isetitem(place, [_safe(cell) for cell in frame.iloc[:, place]])
    return made


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write csv, tsv or parquet by ending, whole or not at all."""
    ending = Path(path).suffix.lower()
    with whole_file(path) as scratch:
        if ending == ".parquet":
            frame.to_parquet(scratch, index=False)
        else:
            spreadsheet_safe(frame).to_csv(scratch, index=False, sep="\t" if ending == ".tsv" else ",")


def _safe(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _RUNS.match(cell) else cell
