"""``precisionnet fit`` of a table that is read piece by piece: the model, a tested sample, the report."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.fit import (
    MODEL_FOLDER,
    PREDICTIONS,
    REPORT,
    explain_command,
    is_fit_output,
    print_result,
    say_if_long,
    tested_rows,
    write_page,
)
from precisionnet.cli.options import option_name
from precisionnet.cli.progress import epochs
from precisionnet.datasets import Dataset, guess_task
from precisionnet.datasets.batches import is_number
from precisionnet.datasets.dataset import NO_ID
from precisionnet.datasets.row_pieces import find_pieces
from precisionnet.datasets.row_source import RowSource, open_rows
from precisionnet.datasets.table_files import find
from precisionnet.datasets.validation import plain_target
from precisionnet.errors import InputError, PrecisionNetWarning, did_you_mean, printable, refuse_all, shown, some
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.evaluation.cross_validation import measure_sample
from precisionnet.outputs import whole_folder
from precisionnet.parameters import settings_of
from precisionnet.tables_out import write_table
from precisionnet.types import TaskName

GUESSED_FROM = 50_000
"""Rows that tell whether the target is a number or a class."""


@dataclass(frozen=True)
class StreamRequest:
    """What was asked for."""

    table: str
    target: str
    task: str
    person: str | None
    dropped: tuple[str, ...]
    """Columns that are no features."""
    out: Path
    seed: int
    parameters: dict[str, Any]
    open_it: bool = False


def run_fit_stream(asked: StreamRequest) -> None:
    """Fit, write the output folder whole or not at all, and print the result."""
    parameters = asked.parameters | ({"missing": "median"} if asked.parameters["missing"] == "indicator" else {})
    target, person, columns = _columns(asked)
    guessed = asked.task == "auto"
    task = _task(asked.table, target, asked.task)
    settings = settings_of(parameters, task, name_of=option_name)
    if settings.n_members == 1 and settings.recipe == "standard":
        raise InputError("One network leaves no rows out to test it on: set --n-members to 2 or more.")
    rows = open_rows(asked.table, target, task, columns=columns, groups=person)
    console.note(f"{asked.table} is read piece by piece, two or three times before the training begins.")
    try:
        with whole_folder(asked.out, is_ours=is_fit_output) as folder:
            with epochs(settings.n_epochs, only=True) as bar, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = (PNNRegressor if task == "regression" else PNNClassifier)(
                    **parameters, random_state=asked.seed, callbacks=[bar.advance]
                )
                model.fit_table(asked.table, target, columns=columns, groups=person, on_forecast=say_if_long)
                model.set_params(callbacks=None)
            told = [str(one.message) for one in caught if issubclass(one.category, PrecisionNetWarning)]
            data = _sampled_rows(rows, model)
            result = measure_sample(model, data, task, seed=asked.seed, warned=told)
            result.notes.extend([bar.note] if bar.note else [])
            n_sampled, n_rows = len(result.y), model.n_rows_["training"]
            if n_sampled < n_rows:
                result.notes.append(
                    f"Tested on {n_sampled:,} of {n_rows:,} rows, drawn at random; what stands beside the network "
                    "learned from these rows alone. precisionnet predict predicts all rows."
                )
            data = data.take(np.flatnonzero(model.oob_folds_ >= 0))
            _count_from_one(model)
            model.save(folder / MODEL_FOLDER)
            write_table(tested_rows(result, data), folder / PREDICTIONS)
            is_file = Path(asked.table).is_file()  # explain reads no folders
            explain = explain_command(asked.out, [asked.table], None, person) if is_file else ""
            write_page(result, data, (), Path(asked.table).name, explain, folder, asked.out)
    except KeyboardInterrupt:
        console.note("Stopped; nothing was written.")
        raise
    predict = " ".join(
        ["precisionnet predict", *(shlex.quote(printable(str(word))) for word in (asked.out, asked.table))]
    )
    print_result(result, asked.out, ["predictions of all rows", predict], guessed=guessed)
    if asked.open_it:
        console.open_page(asked.out / REPORT)


def _count_from_one(model: Any) -> None:
    """Number rows as every other command does, so that ``explain`` finds them; ``fit_table`` counts from 0."""
    known = model.fitted.out_of_fold
    model.keep(replace(model.fitted, out_of_fold=replace(known, row_ids=known.row_ids + 1)))


def _columns(asked: StreamRequest) -> tuple[str, str | None, list[str]]:
    """Return the target, whose row it is, and the features; names may differ in case."""
    pieces = find_pieces(asked.table)
    schema, names = pieces.schema, pieces.schema.names
    named = {"--target": asked.target, "--person": asked.person}
    without = {find(name, pieces.late) for name in asked.dropped} - {None}
    wrong = [
        f"{option} {shown(name)} is no column of {asked.table!r}{did_you_mean(name, names)}: it has {some(names)}."
        for option, name in [*named.items(), *(("--drop", name) for name in asked.dropped)]
        if name is not None and find(name, names) is None and (option != "--drop" or find(name, pieces.late) is None)
    ]
    late = [name for name in pieces.late if name not in without]
    if late:
        wrong.append(
            f"Table {asked.table!r} changes midway: a later file has column {some(late)}, which the first one has not; "
            f"bring all files to the same columns, or leave it out ({' '.join(f'--drop {name}' for name in late[:3])})."
        )
    refuse_all(wrong)
    target, person = find(asked.target, names), find(asked.person, names)
    assert target is not None
    beside = {target, person, *(find(name, names) for name in asked.dropped)}
    columns = [name for name in names if name not in beside]
    text = [name for name in columns if not is_number(schema.field(name).type)]
    if text:
        raise InputError(
            f"Column {some(text)} of {asked.table!r} holds no numbers, and a table that is read piece by piece must: "
            f"encode it beforehand, or leave it out ({' '.join(f'--drop {name}' for name in text[:3])})."
        )
    return target, person, columns


def _task(table: str, target: str, asked: str) -> TaskName:
    """Say by the first rows whether the target is a number or a class; refuse what it cannot be."""
    parts, n_rows = list[Any](), 0
    for _, piece in find_pieces(table, (target,)).read([target]):
        parts.append(piece.to_pandas()[target] if hasattr(piece, "to_pandas") else piece[target])
        n_rows += len(parts[-1])
        if n_rows >= GUESSED_FROM:
            break
    if not n_rows:
        raise InputError(f"Table {table!r} has no rows: pass one that has.")
    first = pd.concat(parts, ignore_index=True).dropna()
    numbers = pd.to_numeric(first, errors="coerce") if not pd.api.types.is_numeric_dtype(first.dtype) else first
    y = plain_target(first if numbers.isna().any() else numbers)
    task: TaskName = guess_task(y) if asked == "auto" else asked  # type: ignore[assignment]
    if task == "classification" and pd.api.types.is_float_dtype(y.dtype) and bool((y % 1 != 0).any()):
        raise InputError(
            f"Target {shown(target)} of {table!r} holds decimals, such as {y[y % 1 != 0].iloc[0]:g}, which "
            "are no classes: set --task regression, or name another target."
        )
    return task


def _sampled_rows(rows: RowSource, model: Any) -> Dataset:
    """Return the rows that the model keeps out-of-fold predictions of, read once more."""
    wanted, found = np.asarray(model.oob_row_ids_), []
    for block in rows.blocks():
        here = block.take(np.isin(block.row, wanted))
        if len(here):
            frame = pd.DataFrame(here.X, columns=list(rows.columns), index=here.row)
            beside = {rows.target: here.y} | ({} if rows.groups is None else {rows.groups: here.group})
            found.append(frame.assign(**beside))
    table = pd.concat(found).loc[wanted]
    table.index = (table.index + 1).rename(NO_ID)  # as every other command counts
    middle = None if model.medians_ is None else pd.Series(model.medians_, index=list(rows.columns))
    X = table[list(rows.columns)] if middle is None else table[list(rows.columns)].fillna(middle)
    people = None if rows.groups is None else table[rows.groups]
    return Dataset(X, table[rows.target], groups=people)
