"""Checks that look at one column at a time: missing, huge, constant, coded and outlying values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import ndtri

from precisionnet.datasets.checks.finding import Finding, and_list, column_list, counted
from precisionnet.datasets.neuro.regions import parse_region
from precisionnet.errors import dropping, shown
from precisionnet.linalg import LARGEST
from precisionnet.types import BoolArray, FloatArray, IndexArray

MANY_ROWS = 20_000
"""Medians, ranks and correlations of longer tables are taken from this many rows, evenly spaced."""
OUTLYING = 8.0
"""Raw median absolute deviations: 5.4 standard deviations of a Gaussian, one value in fifteen million."""
BY_CHANCE = 0.01
"""In a large table of Gaussians the limit moves out until fewer than this many values are expected beyond it."""
FEWEST_COUNTED = 20
"""Rows from which on whole numbers without a gap are a count, not chance."""
GAUSSIAN_MAD = 0.6745
FEW_ROWS = 200
"""Below this many rows the spread is uncertain, and the limit moves out: 8.8 MAD at 100 rows, 15 at 20."""
SKEWED = 1.25
"""Median to 95th percentile against 5th percentile to median: 1.6 for a lognormal (sigma 0.3), 1 for a Gaussian."""
LONG_TAIL = 0.01
"""Where more than this share of a column is outlying, it has a long tail rather than bad scans."""
CODES = frozenset(sign * code for code in (9, 77, 88, 99, 777, 888, 999, 7777, 8888, 9999, 99999) for sign in (1, -1))
"""Numbers that tables use for "missing", "refused", "unknown"."""


@dataclass(frozen=True, eq=False)
class ColumnSummaries:
    """The features with the summaries of each column that several checks use."""

    names: list[str]
    """Names as in the file, which is where the user looks for them, and as ``drop=`` takes them."""
    ids: pd.Index[Any]
    values: FloatArray
    n_known: IndexArray
    low: FloatArray
    high: FloatArray
    median: FloatArray
    spread: FloatArray
    sample: IndexArray
    """Rows to take statistics from: all of them, or MANY_ROWS."""
    of_brains: bool = False
    """Whether the rows are scans of brains; the words of the findings depend on it."""

    @classmethod
    def of(cls, X: pd.DataFrame, names: list[str]) -> Self:
        """Summarise a table of numbers, none of them infinite."""
        values = np.asfortranarray(X.to_numpy(dtype=np.float64))
        sample = np.arange(len(values))
        if len(values) > MANY_ROWS:
            sample = np.linspace(0, len(values) - 1, MANY_ROWS).astype(np.intp)
        ends = [(np.fmin.reduce(c), np.fmax.reduce(c), len(c) - np.count_nonzero(np.isnan(c))) for c in values.T]
        low, high, n_known = (np.array(part) for part in zip(*ends, strict=True))
        middle = [centre_and_spread(c[sample]) for c in values.T]
        median, spread = (np.array(part) for part in zip(*middle, strict=True))
        of_brains = any(parse_region(name) is not None for name in map(str, X.columns))
        return cls(names, X.index, values, n_known, low, high, median, spread, sample, of_brains)

    def useful(self) -> IndexArray:
        """Positions of the columns that vary."""
        return np.flatnonzero((self.n_known > 1) & (self.low < self.high))


def centre_and_spread(values: FloatArray) -> tuple[float, float]:
    """Median and raw MAD of the known values.

    Where more than half are equal the MAD is 0; the median deviation of the others then stands for it.
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan, np.nan
    median = float(np.median(known))
    away = np.abs(known - median)
    spread = float(np.median(away))
    if spread == 0.0 and (away > 0).any():
        spread = float(np.median(away[away > 0]))
    return median, spread


def missing_values(columns: ColumnSummaries, *, filled_in: bool = False, labels: bool = False) -> list[Finding]:
    """Report empty columns and empty cells.

    ``filled_in`` says that the estimator fills in empty cells, so that they do not stop a fit; ``labels``, that there
    are columns of labels among them.
    """
    n_rows = len(columns.ids)
    found = list[Finding]()
    empty = [columns.names[j] for j in np.flatnonzero(columns.n_known == 0)]
    if empty:
        what = f"{column_list(empty)} {'has' if len(empty) == 1 else 'have'} no value in any row"
        found.append(Finding("error", "missing", f"{what}: leave out with {dropping(empty)}."))
    holes = np.flatnonzero((columns.n_known > 0) & (columns.n_known < n_rows))
    if len(holes):
        rows = int(np.isnan(columns.values[:, holes]).any(axis=1).sum())
        worst = sorted(holes, key=lambda j: (columns.n_known[j], j))
        most = [f"{shown(columns.names[j])} ({counted(n_rows - int(columns.n_known[j]), 'row')})" for j in worst]
        sentence = (
            f"Values are missing in {len(holes)} of {counted(len(columns.names), 'column')} and {rows:,} of "
            f"{counted(n_rows, 'row')}; most in {and_list(most)}: "
        )
        sentence += (
            f"the medians of the training rows{', or no level,' if labels else ''} take their place."
            if filled_in
            else "let missing='median' fill them in or complete_rows=True leave those rows out, or leave the columns "
            "out with drop=."
        )
        found.append(Finding("note" if filled_in else "error", "missing", sentence))
    return found


def huge_values(X: pd.DataFrame, names: list[str]) -> list[Finding]:
    """Report infinite numbers, and numbers whose squares would be infinite."""
    far = [(j, row) for j, c in enumerate(X.to_numpy(dtype=np.float64).T) if (row := _first_huge(c)) is not None]
    if not far:
        return []
    which, first = column_list([names[j] for j, _ in far]), shown(X.index[far[0][1]])
    sentence = f"{which} hold{'s' * (len(far) == 1)} infinity or values beyond {LARGEST:g} (first in row {first})"
    return [Finding("error", "huge values", f"{sentence}: correct or empty those cells.")]


def _first_huge(column: FloatArray) -> int | None:
    if np.fmax.reduce(column) <= LARGEST and np.fmin.reduce(column) >= -LARGEST:
        return None
    huge = np.abs(column) > LARGEST
    return int(huge.argmax()) if huge.any() else None


def constant_columns(columns: ColumnSummaries) -> list[Finding]:
    """Report columns with one value, and columns with one value in nearly all rows."""
    found = list[Finding]()
    constant = [columns.names[j] for j in np.flatnonzero((columns.n_known > 0) & (columns.low == columns.high))]
    if len(constant) == len(columns.names) > 1:
        sentence = (
            f"None of the {len(constant)} columns varies: a fit needs columns that differ from row to row; bring "
        )
        found.append(Finding("error", "constant columns", f"{sentence}others."))
    elif constant:
        one = len(constant) == 1
        sentence = f"{column_list(constant)} {'is' if one else 'are'} constant and carr{'ies' if one else 'y'} no "
        found.append(
            Finding("error", "constant columns", f"{sentence}information: leave out with {dropping(constant)}.")
        )
    nearly = []
    for j in columns.useful():
        largest = max(abs(columns.low[j]), abs(columns.high[j]))
        others = int(columns.n_known[j] - np.count_nonzero(columns.values[:, j] == columns.median[j]))
        if (
            others < max(min(3, columns.n_known[j] / 20), columns.n_known[j] / 100)
            or columns.high[j] - columns.low[j] < 1e-12 * largest
        ):
            nearly.append((columns.names[j], others))
    if nearly:
        listed = and_list([f"{shown(name)} (in all but {counted(n, 'row')})" for name, n in nearly])
        sentence = (
            f"Nearly constant: {listed}. On one side of a split nothing may be left that varies; leave "
            f"{'it' if len(nearly) == 1 else 'them'} out with {dropping(name for name, _ in nearly)}."
        )
        found.append(Finding("warning", "constant columns", sentence))
    return found


def row_numbers(columns: ColumnSummaries) -> list[Finding]:
    """Report columns that count the rows: such an id in disguise tells a fit the order of the table."""
    n = len(columns.ids)
    found = []
    for j in columns.useful() if n >= FEWEST_COUNTED else ():
        if columns.n_known[j] == n and columns.high[j] - columns.low[j] == n - 1:
            values = np.unique(columns.values[:, j])
            if len(values) == n and (values == np.floor(values)).all():
                found.append(columns.names[j])
    if not found:
        return []
    start = columns.low[columns.names.index(found[0])]
    sentence = (
        f"{column_list(found)} number{'s' * (len(found) == 1)} the rows from {start:g} on: an id, "
        f"not a measurement? Name it with id=, or leave out with {dropping(found)}."
    )
    return [Finding("warning", "ids", sentence)]


def outliers(columns: ColumnSummaries, is_coded: BoolArray) -> list[Finding]:
    """Report values far from the rest of their column.

    Values that are ordinary on the logarithm's scale are reported as a long tail instead.
    """
    n_rows = len(columns.ids)
    limit = max(OUTLYING, -float(ndtri(BY_CHANCE / 2 / columns.values.size)) / GAUSSIAN_MAD)
    limit *= max(1.0, 1.0 + 20.0 / n_rows - 20.0 / FEW_ROWS)  # with few rows the spread is uncertain
    cells, tails = list[tuple[float, int, int]](), list[tuple[int, str]]()
    with np.errstate(invalid="ignore"):
        far = np.fmax(columns.median - columns.low, columns.high - columns.median) > OUTLYING * columns.spread
    for j in np.flatnonzero(far):
        column = np.where(is_coded[:, j], np.nan, columns.values[:, j])
        distance = _distance(column, columns.sample)
        rows = np.flatnonzero(distance > OUTLYING)
        odd = rows
        if len(rows) and _is_skewed(column[columns.sample]):
            odd = rows[_distance(np.log(column), columns.sample)[rows] > OUTLYING]
        many = len(odd) >= 3 and len(odd) > LONG_TAIL * columns.n_known[j]
        if many or len(odd) < len(rows):
            tails.append((-len(rows), columns.names[j]))
        if not many:
            cells += [(-float(distance[i]), int(i), int(j)) for i in odd]
    found = list[Finding]()
    certain = [cell for cell in cells if -cell[0] > limit]
    if certain:
        found.append(Finding("warning", "outliers", _outlier_sentence(columns, sorted(certain), OUTLYING)))
    elif cells:
        sentence = _outlier_sentence(columns, sorted(cells), OUTLYING)
        found.append(Finding("note", "outliers", f"{sentence} In so few rows it may be chance."))
    if tails:
        listed = and_list([f"{shown(name)} ({counted(-n, 'row')})" for n, name in sorted(tails)])
        sentence = (
            f"{counted(len(tails), 'column')} {'has a long tail' if len(tails) == 1 else 'have long tails'} beyond "
            f"{OUTLYING:.2g} MAD of the median: {listed}. With a logarithm or ranks a few rows would not rule the "
            "graph."
        )
        found.append(Finding("note", "long tails", sentence))
    return found


def _distance(column: FloatArray, sample: IndexArray) -> FloatArray:
    """Return each value's distance from the median, in median absolute deviations (MAD).

    If the values are rounded, or are counts, half of the smallest step between values is added to the MAD, as it is not
    known more exactly.
    """
    known = column[sample]
    median, spread = centre_and_spread(known)
    steps = np.diff(np.unique(known[~np.isnan(known)]))
    spread += 0.5 * float(steps.min()) if len(steps) else np.inf
    return np.abs(column - median) / spread


def _is_skewed(column: FloatArray) -> bool:
    """Whether a column is positive and reaches farther up than down, as volumes and times do."""
    known = column[~np.isnan(column)]
    low, median, high = np.percentile(known, [5, 50, 95])
    return bool(known.min() > 0.0 and high - median > SKEWED * (median - low))


def _outlier_sentence(columns: ColumnSummaries, cells: list[tuple[float, int, int]], limit: float) -> str:
    n_columns = len({j for _, _, j in cells})
    rows, per_row = np.unique([i for _, i, _ in cells], return_counts=True)
    examples = [
        f"{shown(columns.names[j])} = {columns.values[i, j]:.4g} in row {shown(columns.ids[i])} (median "
        f"{columns.median[j]:.4g})"
        for _, i, j in cells[:3]
    ]
    sentence = (
        f"{counted(len(cells), 'value')} in {counted(n_columns, 'column')} and {counted(len(rows), 'row')} "
        f"lie{'s' * (len(cells) == 1)} beyond {limit:.2g} MAD (median absolute deviations) of the column's median: "
        f"{and_list(examples)}. "
    )
    most = int(per_row.max())
    if len(rows) > 1 and most >= 3 and most > len(cells) / 3:
        sentence += f"Row {shown(columns.ids[rows[per_row.argmax()]])} alone holds {most} of them. "
    culprit = "failed segmentation" if columns.of_brains else "wrong value"
    return f"{sentence}Look at those rows: one {culprit} can bend the whole graph."


class Coded(NamedTuple):
    """A number in a column that looks like a code, not like a measurement."""

    code: float
    rows: IndexArray
    rest: tuple[float, float]
    """Smallest and largest of the other values."""


def find_codes(values: FloatArray) -> list[Coded]:
    """Find extreme values far from the rest that are a known code, a repeated number or a zero, outermost first."""
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
    if code == 0.0:  # a thickness or volume of zero: a region that is missing
        return gap > 0.25 * distance and float(others.min()) > 0.0 and n < 0.2 * len(others) and spread > 0.0
    alone = gap > 0.5 * distance
    return alone and n >= 3 and n < len(others) and float(np.median(np.abs(others - median))) > 0.0


def coded_values(columns: ColumnSummaries) -> tuple[list[Finding], BoolArray]:
    """Report codes for missing values and zeros that are no measurements; return also the mask of their cells."""
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
    """Report codes for missing values in a target of numbers; return also the target with those cells empty.

    A zero is not reported here: it may well be a value of the target.
    """
    if y is None or not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        return [], y
    codes = [coded for coded in find_codes(y.to_numpy(dtype=np.float64, na_value=np.nan)) if coded.code != 0.0]
    found = _code_sentence([(f"target {shown(y.name)}", coded) for coded in codes], y.index, zero=False)
    return ([] if found is None else [found]), y.mask(y.isin([coded.code for coded in codes]))


def _code_sentence(places: list[tuple[str, Coded]], ids: pd.Index[Any], zero: bool) -> Finding | None:
    """Write one finding for all zeros (``zero``), or one for all other codes; None if there are none."""
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


def _has_far_end(columns: ColumnSummaries, j: int) -> bool:
    """Whether a column's smallest or largest value is a known code or far from its median."""
    low, high = columns.low[j], columns.high[j]
    reach = OUTLYING * columns.spread[j]
    far = max(columns.median[j] - low, high - columns.median[j]) > reach
    return bool(far or low in CODES or high in CODES)
