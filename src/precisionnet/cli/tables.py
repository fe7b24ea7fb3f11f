"""From the files on a command line to rows that can be fitted, and from predictions to a table.

No torch here: refusals come quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from precisionnet.cli import console
from precisionnet.datasets import Dataset, check_target, guess_task, load_table, refuse_unusable
from precisionnet.datasets.checks import Finding, check_dataset
from precisionnet.datasets.neuro.formats import OF_REGIONS, recognise
from precisionnet.datasets.neuro.regions import parse_region
from precisionnet.datasets.table_files import read_header
from precisionnet.datasets.validation import MIN_ROWS
from precisionnet.errors import InputError, some
from precisionnet.types import TaskName

EVERY_SCAN = {"phase": None, "quality": "any", "scans": "all"}
"""Of an ADNI table: what is given is predicted."""


def read_tables(paths: list[str], loading: dict[str, Any], *, complete_rows: bool = False) -> Dataset:
    """Read and join the tables; with ``complete_rows`` leave out the rows in which something is missing."""
    data = named_by_measure(load_table(*paths, **loading))
    if not complete_rows:
        return data
    kept = data.without_missing()
    if len(kept) == 0:
        raise InputError(f"No row of {paths[0]!r} is complete, and --complete-rows leaves none: --drop empty columns.")
    lost = len(data) - len(kept)
    return replace(kept, notes=(*data.notes, f"{lost} of {len(data)} rows are not complete and were left out."))


def rows_to_fit(
    paths: list[str], loading: dict[str, Any], task: str, *, complete_rows: bool, missing: str, strict: bool
) -> tuple[Dataset, TaskName, list[Finding]]:
    """Return the rows, what their target is, and what was found in them; what cannot be fitted is refused."""
    data = read_tables(paths, loading, complete_rows=complete_rows)
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


def rows_of_model(
    paths: list[str], id_column: str | None, names: list[str], *, target: str | None = None, person: str | None = None
) -> Dataset:
    """Read a model's columns: by region where the tables hold regions, else as they stand."""
    headers = [read_header(path) for path in paths]
    roles: dict[str, Any] = {"id": id_column, "target": target, "person": person}
    as_written = set(names) <= {name for header in headers for name in header}
    of_regions = any(recognise(header) in OF_REGIONS for header in headers)
    if of_regions and any(parse_region(name) is not None for name in names):
        try:
            data = named_by_measure(load_table(*paths, **roles, adni=EVERY_SCAN))
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
    if target is not None and as_written and [recognise(header) for header in headers] == ["participants"]:
        data = load_table(*paths, **roles)  # its rows are named as they were for the fit
        if set(names) <= set(data.X.columns):
            return replace(data, X=data.X[names])
    return load_table(*paths, **roles, features=names, format="table")


def report_findings(findings: Sequence[Finding], *, strict: bool = False) -> None:
    """Before a fit: print warnings on standard error; errors, and warnings under ``strict``, stop it."""
    errors, warned = ([f for f in findings if f.level == level] for level in ("error", "warning"))
    fatal = [*errors, *(warned if strict else [])]
    if fatal:
        others = f" (one of {len(fatal)}; precisionnet datasets check lists all)" if len(fatal) > 1 else ""
        why = "" if errors else "--strict takes warnings for errors: "
        raise InputError(f"{why}{fatal[0].sentence}{others}")
    for finding in warned:
        console.warn(finding.sentence)


def named_by_measure(data: Dataset) -> Dataset:
    """``lh_insula`` is a thickness on the command line, ``lh_insula_area`` an area: no model takes one for another."""
    if data.measure in ("", "thickness"):
        return data
    names = {name: f"{name}_{data.measure}" for name in data.X.columns}
    original = {names[name]: old for name, old in data.original_names.items()}
    return replace(data, X=data.X.rename(columns=names), original_names=original)


def prediction_frame(ids: pd.Index[Any], columns: dict[str, Any], probabilities: Any, classes: Any) -> pd.DataFrame:
    """One row per prediction: the id, the columns, and one column per class where there are probabilities."""
    label = f"{ids.name}_id" if ids.name in columns else str(ids.name)
    frame = pd.DataFrame({label: ids, **columns})
    if probabilities is None:
        return frame
    return frame.join(pd.DataFrame(probabilities, columns=[f"probability_{label}" for label in classes]))
