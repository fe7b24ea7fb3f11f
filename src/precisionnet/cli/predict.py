"""``precisionnet predict``: columns by name, one prediction per row."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.tables import prediction_frame, rows_of_model
from precisionnet.datasets import refuse_bad_numbers
from precisionnet.errors import InputError, printable
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.intervals import refuse_coverage
from precisionnet.tables_out import spreadsheet_safe, write_table
from precisionnet.types import FloatArray

FAR = 6.0


def run_predict(
    folder: str, paths: list[str], output: str | None, id_column: str | None, interval: float | None = None
) -> None:
    """Predict and write; ``interval`` is the coverage of the columns lower and upper."""
    model = load(folder)
    if interval is not None:
        _refuse_interval(model, interval)
    data = rows_of_model(paths, id_column, column_names(model))
    for sentence in data.notes:
        console.note(sentence)
    for sentence in data.doubts:
        console.warn(sentence)
    refuse_bad_numbers(data.X, missing="error" if model.medians_ is None else "median", droppable=False)
    far = _far_away(model.fitted.scaler.transform(data.X.to_numpy(np.float64))) if model.standardize else None
    if far is not None:
        console.warn(far)
    name = "predicted" if model.target_name_ is None else f"predicted_{model.target_name_}"
    columns = {name: model.predict(data.X)}
    if interval is not None:
        columns["lower"], columns["upper"] = np.asarray(model.predict_interval(data.X, interval)).T
    probabilities = model.predict_proba(data.X) if hasattr(model, "predict_proba") else None
    result = prediction_frame(data.X.index, columns, probabilities, getattr(model, "classes_", None))
    if output is None:
        _printable_cells(spreadsheet_safe(result)).to_csv(sys.stdout, index=False)
        return
    write_table(result, output)
    console.say(f"Wrote {len(result)} predictions to {output}")


def _refuse_interval(model: Any, coverage: float) -> None:
    """Before the table is read: intervals are for numbers, and need a sensible coverage."""
    if not hasattr(model, "predict_interval"):
        raise InputError(
            "--interval is for numbers, and this model predicts a class: leave it out and see the class "
            "probabilities, which are written anyway."
        )
    refuse_coverage(coverage)


def _far_away(standard: FloatArray) -> str | None:
    """A sentence where most values, in standard units, are nowhere near the rows that the model learned from."""
    distance = float(np.nanmedian(np.abs(standard)))
    if distance <= FAR:
        return None
    return (
        f"Half of the values lie more than {distance:.0f} standard deviations from those that the model learned from: "
        "another unit or another measure? Do not trust these predictions."
    )


def _printable_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """For standard output, which may be a terminal: control characters in ids, classes and names are spelled out."""
    shown = frame.rename(columns=lambda name: printable(str(name)))
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            shown.isetitem(place, [printable(cell) if isinstance(cell, str) else cell for cell in frame[name]])
    return shown
