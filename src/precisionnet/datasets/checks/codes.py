"""Numbers that are no measurements: -9999 and its kin, a value repeated far from the rest, a thickness of zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precisionnet.datasets.checks.columns import OUTLYING, Columns, centre_and_spread
from precisionnet.datasets.checks.finding import Finding, counted
from precisionnet.errors import shown
from precisionnet.types import BoolArray, FloatArray, IndexArray

CODES = frozenset(sign * code for code in (9, 77, 88, 99, 777, 888, 999, 7777, 8888, 9999, 99999) for sign in (1, -1))
"""Numbers that tables use for "missing", "refused", "unknown"."""


class Coded(NamedTuple):
    """A number in a column that does not look like a measurement."""

    code: float
    rows: IndexArray
    rest: tuple[float, float]
    """Smallest and largest of the other values."""


def find_codes(values: FloatArray) -> list[Coded]:
    """Extreme values that are a known code, a repeated number, or a zero, far from the rest; outermost first."""
    found = list[Coded]()
    rest = ~np.isnan(values)
    for end in (np.min, np.max):
        for _ in range(3):  # -9999 and -999 may stand in one column
            known = values[rest]
            code = float(end(known)) if len(known) else np.nan
            others = known[known != code]
            if len(others) < 5 or not _is_code(code, len(known) - len(others), others, end):
                break
            found.append(Coded(code, np.flatnonzero(rest & (values == code)), (others.min(), others.max())))
            rest &= values != code
    return found


def _is_code(code: float, n: int, others: FloatArray, end: Callable[..., Any]) -> bool:
    median, spread = centre_and_spread(others)
    distance, gap = abs(code - median), abs(code - float(end(others)))
    if distance <= OUTLYING * spread:
        return False
    if code in CODES:
        return gap > 2 * spread
    if code == 0.0:  # a thickness or volume of nothing
        return gap > 0.25 * distance and float(others.min()) > 0.0 and n < 0.2 * len(others) and spread > 0.0
    alone = gap > 0.5 * distance
    return alone and n >= 3 and n < len(others) and float(np.median(np.abs(others - median))) > 0.0


def coded_values(columns: Columns) -> tuple[list[Finding], BoolArray]:
    """Missing-value codes and zeros that stand as numbers; and where they stand."""
    is_coded = np.zeros(columns.values.shape, dtype=bool, order="F")
    suspects = {j: find_codes(columns.values[:, j]) for j in columns.useful() if _has_far_end(columns, int(j))}
    places = list[tuple[str, Coded]]()
    for j, codes in suspects.items():
        for coded in codes:
            is_coded[coded.rows, j] = True
            places.append((f"column {shown(columns.names[j])}", coded))
    found = [_code_sentence(places, columns.ids, zero) for zero in (False, True)]
    return [finding for finding in found if finding is not None], is_coded


def coded_target(y: pd.Series[Any] | None) -> tuple[list[Finding], pd.Series[Any] | None]:
    """The same for a target of numbers (a zero may well be one); and the target without its codes."""
    if y is None or not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        return [], y
    codes = [coded for coded in find_codes(y.to_numpy(dtype=np.float64, na_value=np.nan)) if coded.code != 0.0]
    found = _code_sentence([(f"target {shown(y.name)}", coded) for coded in codes], y.index, zero=False)
    return ([] if found is None else [found]), y.mask(y.isin([coded.code for coded in codes]))


def _code_sentence(places: list[tuple[str, Coded]], ids: pd.Index[Any], zero: bool) -> Finding | None:
    """One sentence for the zeros, or for all other codes."""
    parts = []
    for name, coded in places:
        if (coded.code == 0.0) == zero:
            first = f"row {shown(ids[coded.rows[0]])}"
            where = first if len(coded.rows) == 1 else f"{counted(len(coded.rows), 'row')} (first in {first})"
            rest = f"at least {coded.rest[0]:.3g}" if zero else f"{coded.rest[0]:.3g} to {coded.rest[1]:.3g}"
            parts.append(f"{name} is {coded.code:g} in {where}, {rest} elsewhere")
    if not parts:
        return None
    listed = "; ".join(parts[:3]) + (f"; and {len(parts) - 3} more like these" if len(parts) > 3 else "")
    what = "nothing was measured there" if zero else "that looks like a code for a missing value"
    sentence = f"{listed[0].upper()}{listed[1:]}: {what}. Empty those cells, or leave out those rows."
    return Finding("warning", "zeros" if zero else "missing-value codes", sentence)


def _has_far_end(columns: Columns, j: int) -> bool:
    """Whether an end of the column is worth a closer look."""
    low, high = columns.low[j], columns.high[j]
    reach = OUTLYING * columns.spread[j]
    far = max(columns.median[j] - low, high - columns.median[j]) > reach
    return bool(far or low in CODES or high in CODES)
