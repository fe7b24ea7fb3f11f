"""``precisionnet predict``: columns by name, one prediction a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.tables import far_away, rows_to_predict
from precisionnet.cli.messages import id_label, probability_frame
from precisionnet.datasets import refuse_bad_numbers
from precisionnet.errors import InputError
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.intervals import refuse_coverage
from precisionnet.outputs import whole_file


def run_predict(
    folder: str, paths: list[str], output: str | None, id_column: str | None, interval: float | None = None
) -> None:
    """The whole command; ``interval`` is the coverage of the columns lower and upper."""
    model = load(folder)
    if interval is not None:
        refuse_interval(model, interval)
    data = rows_to_predict(paths, id_column, column_names(model))
    for sentence in data.notes:
        console.note(sentence)
    for sentence in data.doubts:
        console.warn(sentence)
    refuse_bad_numbers(data.X, missing="error" if model.medians_ is None else "median", droppable=False)
    far = far_away(model.standard_units(data.X)) if model.standardize else None
    if far is not None:
        console.warn(far)
    column = "predicted" if model.target_name_ is None else f"predicted_{model.target_name_}"
    ends = () if interval is None else ("lower", "upper")
    result = pd.DataFrame({id_label(data.X.index, column, *ends): data.X.index, column: model.predict(data.X)})
    if interval is not None:
        result[list(ends)] = model.predict_interval(data.X, interval)
    if hasattr(model, "predict_proba"):
        result = result.join(probability_frame(model.predict_proba(data.X), model.classes_))
    if output is None:
        result.to_csv(sys.stdout, index=False)
        return
    write_table(result, output)
    console.say(f"Wrote {len(result)} predictions to {output}")


def refuse_interval(model: Any, coverage: float) -> None:
    """Before the table is read: intervals are for numbers, and need a sensible coverage."""
    if not hasattr(model, "predict_interval"):
        raise InputError(
            "--interval is for numbers, and this model predicts a class: leave it out and see the class "
            "probabilities, which are written anyway."
        )
    refuse_coverage(coverage)


def write_table(frame: pd.DataFrame, output: str) -> None:
    """Write by ending, whole or not at all."""
    ending = Path(output).suffix.lower()
    with whole_file(output) as scratch:
        if ending == ".parquet":
            frame.to_parquet(scratch, index=False)
        else:
            frame.to_csv(scratch, index=False, sep="\t" if ending == ".tsv" else ",")
