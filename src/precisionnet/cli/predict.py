"""``precisionnet predict``: one prediction per row, columns by name, and whether rows are like the training rows."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.messages import in_options
from precisionnet.cli.tables import prediction_frame, rows_of_model
from precisionnet.datasets import Dataset, refuse_bad_numbers
from precisionnet.datasets.table_files import find, read_header
from precisionnet.errors import InputError, printable, shown, some
from precisionnet.estimators import load
from precisionnet.estimators.intervals import refuse_coverage
from precisionnet.evaluation import Recalibration, Shift, compare_rows, recalibrate
from precisionnet.evaluation.metrics import significant
from precisionnet.outputs import whole_file
from precisionnet.tables_out import spreadsheet_safe, write_table


@dataclass(frozen=True)
class PredictRequest:
    """The options of the command."""

    model: str
    tables: list[str]
    output: str | None = None
    id_column: str | None = None
    interval: float | None = None
    """Coverage of the columns lower and upper."""
    labelled: tuple[str, ...] = ()
    """Tables of labelled rows of the new place."""
    page: str | None = None


def run_predict(asked: PredictRequest) -> None:
    """Predict, say how the rows differ from the training rows, and write."""
    model = load(asked.model)
    refuse_for_classes(model, asked)
    data = _rows(asked.tables, asked.id_column, model)
    for sentence in data.notes:
        console.note(sentence)
    warned = [*data.doubts, *_unseen_levels(model, data.X)]
    correction, more = correction_of(model, asked) if asked.labelled else (None, [])
    warned += more
    for sentence in warned:
        console.warn(sentence)
    shift = compare_rows(model, data.X)
    advice = advice_on(model, shift, correction)
    for sentence in shift_warnings(shift, advice):
        console.warn(sentence)
    if correction is not None:
        console.note(correction_sentence(correction))
    result = predictions(model, data, asked.interval, correction)
    if asked.page is not None:
        told = [*data.notes, *warned, *([advice] if shift.shifted else [])]
        _write_page(model, asked, shift, correction, result, [in_options(sentence) for sentence in told])
    if asked.output is None:
        _printable_cells(spreadsheet_safe(result)).to_csv(sys.stdout, index=False)
        return
    write_table(result, asked.output)
    console.say(f"Wrote {len(result)} predictions to {asked.output}")


def correction_sentence(correction: Recalibration) -> str:
    """Say what labelled rows showed, and what is done about it."""
    bias, low, high = (significant(value) for value in correction.bias)
    n = len(correction.errors)
    done = "are moved by as much" if correction.slope == 1.0 else "are put on the line of these rows"
    return (
        f"On {n} labelled rows predictions are off by {bias} on average (95 % interval {low} to {high}, positive is "
        f"too high), and {done}."
    )


def refuse_for_classes(model: Any, asked: PredictRequest) -> None:
    """Refuse intervals and corrections for a model of classes, and a coverage out of range, before a table is read."""
    numbers = hasattr(model, "predict_interval")
    for option, given in (("--interval", asked.interval), ("--recalibrate", asked.labelled or None)):
        if given is not None and not numbers:
            raise InputError(
                f"{option} is for numbers, and this model predicts a class: leave it out and see the class "
                "probabilities, which are written anyway."
            )
    if asked.interval is not None:
        refuse_coverage(asked.interval)


def _rows(paths: list[str], id_column: str | None, model: Any, *, target: str | None = None) -> Dataset:
    data = rows_of_model(paths, id_column, model, target=target, duplicates="keep")
    refuse_bad_numbers(data.X, missing="error" if model.medians_ is None else "median", droppable=False)
    return data


def correction_of(model: Any, asked: PredictRequest) -> tuple[Recalibration, list[str]]:
    """Learn a correction from the labelled rows, which have the model's columns and its target; and what to warn of."""
    if model.target_name_ is None:
        raise InputError("The model does not know the name of its target, which labelled rows need: leave it out.")
    if find(model.target_name_, [name for path in asked.labelled for name in read_header(path)]) is None:
        raise InputError(
            f"Table {asked.labelled[0]!r} has no column {shown(model.target_name_)}, the model's target: --recalibrate "
            "needs rows in which it is known."
        )
    data = _rows(list(asked.labelled), asked.id_column, model, target=model.target_name_)
    assert data.y is not None
    if not pd.api.types.is_numeric_dtype(data.y.dtype):
        raise InputError(
            f"Target {shown(model.target_name_)} of {asked.labelled[0]!r} holds text, not numbers: correct it."
        )
    moved, warned = compare_rows(model, data.X), [*data.doubts, *_unseen_levels(model, data.X)]
    if moved.shifted:
        warned.append(f"{moved.sentence()} Check their units: they must be those of the new rows.")
    warned += filter(None, [moved.filled_sentence()])
    known = np.flatnonzero(data.y.notna())
    limits = model.calibration_.limits if model.calibration_ is not None else (-np.inf, np.inf)
    correction = recalibrate(model.predict(data.X.iloc[known]), data.y.iloc[known], limits=limits)
    return correction, [f"Of the labelled rows: {sentence}" for sentence in warned]


def _unseen_levels(model: Any, X: pd.DataFrame) -> list[str]:
    """One sentence per column with levels that the model never saw."""
    if model.encoder_ is None:
        return []
    counted_as_rare = {column.name for column in model.encoder_.columns_ if column.other}
    instead = {True: "it counts as one of the rare levels", False: "the training rows' mean stands in"}
    return [
        f"Column {shown(name)} has {'a level' if len(levels) == 1 else f'{len(levels)} levels'} that no training row "
        f"had ({some(levels)}): {instead[name in counted_as_rare]} for those rows."
        for name, levels in model.encoder_.unseen_levels(X).items()
    ]


def shift_warnings(shift: Shift, advice: str) -> list[str]:
    """Return every warning about rows unlike the training rows; ``advice`` follows that of their shift."""
    return [*filter(None, [shift.sentence() + advice if shift.shifted else "", shift.filled_sentence()])]


def advice_on(model: Any, shift: Shift, correction: Recalibration | None) -> str:
    """Say what to do about predictions of rows unlike the training rows."""
    if shift.other_unit.any() or correction is not None or not hasattr(model, "predict_interval"):
        return ""
    return (
        " Predictions may be off as a whole: give a table with some rows whose target is known as --recalibrate TABLE, "
        "which measures it and puts it right."
    )


def predictions(model: Any, data: Dataset, interval: float | None, correction: Recalibration | None) -> pd.DataFrame:
    """Return one row per prediction."""
    name = "predicted" if model.target_name_ is None else f"predicted_{model.target_name_}"
    predicted = model.predict(data.X)
    columns = {name: predicted if correction is None else correction.apply(predicted)}
    if interval is not None and correction is None:
        columns["lower"], columns["upper"] = np.asarray(model.predict_interval(data.X, interval)).T
    elif interval is not None and correction is not None:
        columns["lower"], columns["upper"] = correction.interval(predicted, interval).T
    probabilities = model.predict_proba(data.X) if hasattr(model, "predict_proba") else None
    return prediction_frame(data.X.index, columns, probabilities, getattr(model, "classes_", None))


def _write_page(
    model: Any,
    asked: PredictRequest,
    shift: Shift,
    correction: Recalibration | None,
    result: pd.DataFrame,
    told: Sequence[str],
) -> None:
    from precisionnet.report.predict_page import render_prediction

    assert asked.page is not None
    source = " + ".join(Path(table).name for table in asked.tables)
    said = None if correction is None else correction_sentence(correction)
    page = render_prediction(model, shift, result, source, datetime.date.today().isoformat(), said, told)
    with whole_file(asked.page) as scratch:
        scratch.write_text(page, encoding="utf-8")
    console.note(f"Wrote {asked.page}")


def _printable_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Spell out control characters in ids, classes and names, as standard output may be a terminal."""
    safe = frame.rename(columns=lambda name: printable(str(name)))
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            safe.isetitem(place, [printable(cell) if isinstance(cell, str) else cell for cell in frame[name]])
    return safe
