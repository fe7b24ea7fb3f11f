"""``precisionnet predict``: columns by name, one prediction a row."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.wording import id_label, probability_frame, row_ids
from precisionnet.datasets import numeric_features, read_tables
from precisionnet.errors import InputError, some
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.outputs import whole_file


def run_predict(folder: str, paths: list[str], output: str | None, id_column: str | None) -> None:
    """The whole command."""
    model = load(folder)
    frame, notes = read_tables(paths, id_column)
    names = column_names(model)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(
            f"Table {paths[0]!r} has no column {some(missing)}, which the model in {folder!r} needs "
            f"({len(missing)} of {len(names)} are missing): add them or rename the table's columns."
        )
    for sentence in notes:
        console.note(sentence)
    X = numeric_features(frame[names], droppable=False)
    ids = row_ids(frame, id_column)
    column = "predicted" if model.target_name_ is None else f"predicted_{model.target_name_}"
    result = pd.DataFrame({id_label(ids, column): ids.to_numpy(), column: model.predict(X)})
    if hasattr(model, "predict_proba"):
        result = result.join(probability_frame(model.predict_proba(X), model.classes_))
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
