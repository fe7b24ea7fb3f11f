"""From the files on a command line to rows that can be fitted or predicted. No torch here: refusals come quickly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from precisionnet.cli import console
from precisionnet.cli.findings import report_findings
from precisionnet.datasets import Dataset, check_target, guess_task, load_table, refuse_unusable
from precisionnet.datasets.checks import Finding, check_dataset
from precisionnet.datasets.neuro.formats import OF_REGIONS, recognise
from precisionnet.datasets.neuro.regions import parse_region
from precisionnet.datasets.table_files import read_header
from precisionnet.datasets.validation import MIN_ROWS
from precisionnet.errors import InputError, some
from precisionnet.types import FloatArray, TaskName

FAR = 6.0
EVERY_SCAN = {"phase": None, "quality": "any", "scans": "all"}
"""Of an ADNI table: what is given is predicted."""


def load(paths: list[str], loading: dict[str, Any], *, complete_rows: bool = False) -> Dataset:
    """Read the tables; with ``complete_rows`` without the rows in which something is missing."""
    data = named_by_measure(load_table(*paths, **loading))
    if not complete_rows:
        return data
    kept = data.without_missing()
    if len(kept) == 0:
        raise InputError(f"No row of {paths[0]!r} is complete, and --complete-rows leaves none: --drop empty columns.")
    lost = len(data) - len(kept)
    return replace(kept, notes=(*data.notes, f"{lost} of {len(data)} rows are not complete and were left out."))


def prepare(
    paths: list[str], loading: dict[str, Any], task: str, *, complete_rows: bool, missing: str, strict: bool
) -> tuple[Dataset, TaskName, list[Finding]]:
    """Rows to fit, what their target is, and what was found in them; what cannot be fitted is refused."""
    data = load(paths, loading, complete_rows=complete_rows)
    if len(data) < MIN_ROWS:
        rows = "1 row" if len(data) == 1 else f"{len(data)} rows"
        raise InputError(f"Table {paths[0]!r} has {rows}: at least {MIN_ROWS} are needed to fit and test; bring more.")
    X, y = refuse_unusable(data, missing=missing)
    kind: TaskName = guess_task(y) if task == "auto" else task  # type: ignore[assignment]
    data = replace(data, X=X, y=check_target(y, kind))
    for sentence in data.notes:
        console.note(sentence)
    findings = [*check_dataset(data, kind, missing), *(Finding("note", "loading", note) for note in data.notes)]
    report_findings(findings, strict=strict)
    return data, kind, findings


def rows_to_predict(paths: list[str], id_column: str | None, names: list[str]) -> Dataset:
    """The model's columns: under the names of the regions where the tables hold regions, else as they stand."""
    headers = [read_header(path) for path in paths]
    as_written = set(names) <= {name for header in headers for name in header}
    of_regions = any(recognise(header) in OF_REGIONS for header in headers)
    if of_regions and any(parse_region(name) is not None for name in names):
        try:
            data = named_by_measure(load_table(*paths, id=id_column, adni=EVERY_SCAN))
        except InputError:
            if not as_written:
                raise
        else:
            if set(names) <= set(data.X.columns):
                return replace(data, X=data.X[names])
            if not as_written:
                raise InputError(
                    f"Table {paths[0]!r} holds {data.measure or 'several measures'} of cortical regions, and the "
                    f"model's columns ({some(names)}) are not all among them: give tables of what it was fitted on, "
                    "the same measure and both hemispheres."
                )
    return load_table(*paths, id=id_column, features=names, format="table")


def named_by_measure(data: Dataset) -> Dataset:
    """``lh_insula`` is a thickness on the command line, ``lh_insula_area`` an area: no model takes one for another."""
    if data.measure in ("", "thickness"):
        return data
    names = {name: f"{name}_{data.measure}" for name in data.X.columns}
    original = {names[name]: old for name, old in data.original_names.items()}
    return replace(data, X=data.X.rename(columns=names), original_names=original)


def far_away(standard: FloatArray) -> str | None:
    """A sentence where most values, in standard units, are nowhere near the rows that the model learned from."""
    distance = float(np.nanmedian(np.abs(standard)))
    if distance <= FAR:
        return None
    return (
        f"Half of the values lie more than {distance:.0f} standard deviations from those that the model learned from: "
        "another unit or another measure? Do not trust these predictions."
    )
