"""Turn the files named on a command line into rows that can be fitted, and predictions into a table.

This module does not import torch, so that refusals come quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.messages import in_options
from precisionnet.datasets import Dataset, check_target, guess_task, load_table
from precisionnet.datasets.checks import Finding, check_dataset, same_rows
from precisionnet.datasets.neuro.formats import OF_REGIONS, recognise
from precisionnet.datasets.neuro.regions import MEASURES, parse_region, parse_structure
from precisionnet.datasets.roles import finished, no_such_column
from precisionnet.datasets.table_files import find, read_header
from precisionnet.datasets.tables import read_dataset
from precisionnet.datasets.validation import MIN_ROWS, plain_target, unusable, unusable_features
from precisionnet.errors import InputError, refuse_all, shown, some
from precisionnet.preprocessing import EncodedColumn
from precisionnet.preprocessing.column_kinds import columns_of_labels
from precisionnet.types import TaskName

EVERY_SCAN = {"phase": None, "quality": "any", "scans": "all"}
"""Options of ``load_table`` that keep every scan of an ADNI table: a prediction covers all rows that it is given."""


def read_tables(paths: list[str], loading: dict[str, Any]) -> tuple[Dataset, list[str]]:
    """Read and join the tables, and say what cannot be used."""
    data, complaints = read_dataset(*paths, **loading)
    return named_by_measure(data), complaints


def rows_to_fit(
    paths: list[str],
    loading: dict[str, Any],
    task: str,
    *,
    complete_rows: bool,
    missing: str,
    strict: bool,
    named: Sequence[tuple[str, str | None]] = (),
) -> tuple[Dataset, TaskName, list[Finding]]:
    """Return the rows, what their target is, and what was found in them; refuse rows that cannot be fitted.

    ``named`` are further options and the columns that they name.
    """
    unknown = unknown_columns(paths, named)
    loading = {
        **loading,
        "complete_rows": complete_rows,
        "site": None if loading["site"] in unknown else loading["site"],
        **{
            role: [name for name in loading[role] if name not in unknown]
            for role in ("covariates", "inputs")
            if role in loading
        },
    }
    try:
        data, complaints = read_tables(paths, loading)
    except InputError as error:
        refuse_all([*getattr(error, "sentences", [str(error)]), *unknown.values()])
        raise
    data, kind, complaints = judged(data, [*complaints, *unknown.values()], task, missing, paths[0])
    findings = [*check_dataset(data, kind, missing), *(Finding("note", "loading", note) for note in data.notes)]
    if complaints:
        refuse_all([*complaints, *(f.sentence for f in findings if f.level == "error" and f.check == "people")])
    assert kind is not None
    for sentence in data.notes:
        console.note(sentence)
    for finding in findings:
        if finding.check in ("missing", "repeated rows") and finding.level == "note":
            console.note(finding.sentence)
    encoding = [finding.sentence for finding in findings if finding.check == "encoding"]
    if encoding:
        console.note(" ".join(encoding))
    report_findings(findings, strict=strict)
    findings = [replace(finding, sentence=in_options(finding.sentence)) for finding in findings]  # for the page
    return without_unused(data, missing), kind, findings


def judged(
    data: Dataset, complaints: Sequence[str], task: str, missing: str, path: str
) -> tuple[Dataset, TaskName | None, list[str]]:
    """Return the rows with their target as the task needs it, the task, and ``complaints`` with all others to be made.

    What could not be read has been complained of, and is not looked at again.
    """
    of_target = data.y is not None or not complaints
    unread = [n for n in data.X if data.X[n].isna().all() and any(shown(str(n)) in said for said in complaints)]
    looked_at = replace(data, X=data.X.drop(columns=unread))
    found = [*complaints, *(unusable if of_target else unusable_features)(looked_at, missing=missing)]
    if len(data) < MIN_ROWS:
        rows = "1 row" if len(data) == 1 else f"{len(data)} rows"
        found.append(
            f"Table {path!r} has {rows} to learn from: at least {MIN_ROWS} are needed to fit and test; bring more."
        )
    kind: TaskName | None = None if task == "auto" else task  # type: ignore[assignment]
    if data.y is not None and data.y.notna().all() and len(data) >= MIN_ROWS:
        try:
            y = plain_target(data.y)
            kind = guess_task(y) if kind is None else kind
            data = replace(data, y=check_target(y, kind))
        except InputError as error:
            found.append(str(error))
    return data, kind, found


def without_unused(data: Dataset, missing: str) -> Dataset:
    """Leave out columns of labels that no encoder can use, as the findings say, so that a prediction needs none."""
    labels = data.X[columns_of_labels(data.X)]
    found = [
        EncodedColumn.fit(column, indicator_share=0.01 if missing == "indicator" else 1.0)
        for _, column in labels.items()
    ]
    unused = [column.name for column in found if not column.node_names]
    return replace(data, X=data.X.drop(columns=unused)) if unused else data


def without_labels(data: Dataset, advice: str) -> Dataset:
    """Leave out columns of text and dates, for a command that works on numbers alone, and say so."""
    labels = [str(name) for name in columns_of_labels(data.X)]
    if not labels:
        return data
    one = len(labels) == 1
    said = (
        f"Column {some(labels)} {'holds' if one else 'hold'} text, yes and no or dates and {'is' if one else 'are'} "
        f"left out: {advice}."
    )
    return replace(data, X=data.X.drop(columns=labels), notes=(*data.notes, said))


def whole_label(label: Any) -> Any:
    """Return the label of a group, with 1.0 written as 1."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def unknown_columns(paths: list[str], named: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return a sentence for every column that an option names and no table has; it suggests the nearest name."""
    columns = list(dict.fromkeys(name for path in paths for name in read_header(path)))
    return {
        name: no_such_column(name, option, columns)
        for option, name in named
        if name is not None and find(name, columns) is None
    }


def rows_of_model(
    paths: list[str],
    id_column: str | None,
    model: Any,
    *,
    target: str | None = None,
    person: str | None = None,
    duplicates: str = "auto",
) -> Dataset:
    """Read the columns of a fitted model: found by region if the tables hold regions, else by name."""
    names, encoder = list(model.fitted.blocks.names), model.encoder_
    headers = [read_header(path) for path in paths]
    roles: dict[str, Any] = {"id": id_column or "auto", "target": target, "person": person, "duplicates": duplicates}
    as_written = set(names) <= {name for header in headers for name in header}
    of_regions = any(recognise(header) in OF_REGIONS for header in headers)
    if of_regions and any(parse_region(name) is not None or parse_structure(name) is not None for name in names):
        inputs = [name for name in names if parse_region(name) is None and parse_structure(name) is None]
        every = [name for header in headers for name in header]
        lost = [name for name in inputs if find(name, every) is None]
        if lost:
            raise InputError(
                f"The model learned from column {some(lost)}, which no table has: give a table with it, joined by id."
            )
        unused = None if target is not None or model.target_name_ is None else find(model.target_name_, every)
        roles |= {"drop": [unused]} if unused is not None and unused not in (*names, id_column, person) else {}
        try:
            several = _several_measures(names)
            found = read_dataset(*paths, **roles, adni=EVERY_SCAN, measures=several, inputs=inputs, keep_empty=True)
            data = named_by_measure(finished(*found))
        except InputError:
            if not as_written:
                raise
        else:
            if set(names) <= set(data.X.columns):
                said = [
                    f"Column {shown(name)} is the model's target, and is not used." for name in roles.get("drop", ())
                ]
                return replace(data, X=data.X[names], notes=(*data.notes, *said))
            if not as_written:
                lost = [name for name in names if name not in data.X.columns]
                what, are = data.measure or "several measures", "is" if len(lost) == 1 else "are"
                raise InputError(
                    f"Table {paths[0]!r} holds {what} of cortical regions, and {len(lost)} of the model's {len(names)} "
                    f"columns {are} not among them ({some(lost)}): give tables of what it was fitted on, the same "
                    "measure and both hemispheres."
                )
    if target is not None and as_written and [recognise(header) for header in headers] == ["participants"]:
        data = finished(*read_dataset(*paths, **roles, keep_empty=True))  # names the rows as for the fit
        if set(names) <= set(data.X.columns):
            return replace(data, X=data.X[names])
    columns = () if encoder is None else encoder.columns_
    labels = [column.name for column in columns if column.kind not in ("number", "left out")]
    orders = {column.name: column.date_order for column in columns if column.date_order}
    return load_table(*paths, **roles, features=names, format="table", categories=labels, date_orders=orders)


def _several_measures(names: list[str]) -> list[str] | None:
    """Return the measures of a model's regions, where it has more than one."""
    found = [name.rpartition("_")[2] for name in names]
    measures = [measure for measure in dict.fromkeys(found) if measure in MEASURES.values()]
    return measures if len(measures) > 1 else None


def report_findings(findings: Sequence[Finding], *, strict: bool = False) -> None:
    """Print findings on standard error before a fit; errors stop the fit, and so do warnings if ``strict``."""
    errors, warned = ([f for f in findings if f.level == level] for level in ("error", "warning"))
    fatal = [finding.sentence for finding in (*errors, *(warned if strict else []))]
    if fatal and not errors:
        fatal[0] = f"--strict takes warnings for errors: {fatal[0]}"
    refuse_all(fatal)
    for finding in warned:
        console.warn(finding.sentence)


def report_loading(data: Dataset) -> None:
    """Print what was noted and doubted while reading, and rows with the same values, if no other check is made."""
    for sentence in data.notes:
        console.note(sentence)
    for sentence in data.doubts:
        console.warn(sentence)
    for finding in same_rows(data):
        (console.warn if finding.level == "warning" else console.note)(finding.sentence)


def with_doubts_of_columns(data: Dataset) -> Dataset:
    """Add what the checks of a fit warn of in the features, but for what ``report_loading`` says anyway."""
    said = ("loading", "repeated rows")
    found = check_dataset(replace(data, y=None, site=None), missing="median")
    doubts = [finding.sentence for finding in found if finding.level == "warning" and finding.check not in said]
    return replace(data, doubts=(*data.doubts, *doubts))


def named_by_measure(data: Dataset) -> Dataset:
    """Add the measure to the names of regions, so that no model takes an area for a thickness.

    ``lh_insula`` is a thickness on the command line, and ``lh_insula_area`` an area.
    """
    if data.measure in ("", "thickness"):
        return data
    names = {name: f"{name}_{data.measure}" for name in data.X.columns}
    original = {names[name]: old for name, old in data.original_names.items()}
    return replace(data, X=data.X.rename(columns=names), original_names=original)


def prediction_frame(ids: pd.Index[Any], columns: dict[str, Any], probabilities: Any, classes: Any) -> pd.DataFrame:
    """Return a table with one row per prediction: its id, ``columns``, and one column per class for probabilities."""
    label = f"{ids.name}_id" if ids.name in columns else str(ids.name)
    frame = pd.DataFrame({label: ids, **columns})
    if probabilities is None:
        return frame
    return frame.join(pd.DataFrame(probabilities, columns=[f"probability_{label}" for label in classes]))
