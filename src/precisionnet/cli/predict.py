"""``precisionnet predict``: columns by name, one prediction a row."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.prepare import far_away, rows_to_predict
from precisionnet.cli.wording import id_label, probability_frame
from precisionnet.datasets import refuse_bad_numbers
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.outputs import whole_file


def run_predict(folder: str, paths: list[str], output: str | None, id_column: str | None) -> None:
    """The whole command."""
    model = load(folder)
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
    result = pd.DataFrame({id_label(data.X.index, column): data.X.index, column: model.predict(data.X)})
    if hasattr(model, "predict_proba"):
        result = result.join(probability_frame(model.predict_proba(data.X), model.classes_))
    if output is None:
        result.to_csv(sys.stdout, index=False)
        return
    write_table(result, output)
    console.say(f"Wrote {len(result)} predictions to {output}")


def write_table(frame: pd.DataFrame, output: str) -> None:
    """Write by ending, whole or not at all."""
    ending = Path(output).suffix.lower()
    with whole_file(output) as scratch:
        if ending == ".parquet":
            frame.to_parquet(scratch, index=False)
        else:
            frame.to_csv(scratch, index=False, sep="\t" if ending == ".tsv" else ",")
