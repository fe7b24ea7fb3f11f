"""``precisionnet fit``, once the table is read and checked: train, measure, write."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.messages import graph_sentence
from precisionnet.cli.options import option_name
from precisionnet.cli.progress import epochs
from precisionnet.cli.tables import prediction_frame
from precisionnet.datasets import Dataset
from precisionnet.datasets.checks import Finding
from precisionnet.estimators.files import is_model_folder
from precisionnet.evaluation import METRIC_LABELS, HoldOut, measure
from precisionnet.outputs import whole_folder
from precisionnet.parameters import settings_of
from precisionnet.report import render
from precisionnet.tables_out import write_table
from precisionnet.types import TaskName

MODEL_FOLDER, PREDICTIONS, REPORT = "model", "predictions.csv", "report.html"


def run_fit(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    out: Path,
    seed: int,
    test_fraction: float,
    parameters: dict[str, Any],
    source: str,
    *,
    guessed: bool,
) -> None:
    """Train, write the output folder and print the result."""
    try:
        result = fit_and_write(data, findings, task, out, seed, test_fraction, parameters, source)
    except KeyboardInterrupt:
        console.note("Stopped; nothing was written.")
        raise
    print_result(result, out, guessed=guessed)


def fit_and_write(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    out: Path,
    seed: int,
    test_fraction: float,
    parameters: dict[str, Any],
    source: str,
) -> HoldOut:
    """Train and write the output folder, whole or not at all."""
    settings = settings_of(parameters, task, name_of=option_name)
    with whole_folder(out, is_ours=is_fit_output) as folder:
        with epochs(settings.n_epochs) as callback:
            result = measure(data, task, parameters, seed=seed, test_fraction=test_fraction, callbacks=[callback])
        result.model.save(folder / MODEL_FOLDER)
        write_table(_predictions(result, data.X.index), folder / PREDICTIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
            page = render(result, source, datetime.date.today().isoformat(), findings)
        (folder / REPORT).write_text(page, encoding="utf-8")
    return result


def is_fit_output(folder: Path) -> bool:
    """Whether a folder is what an earlier fit wrote, and nothing else."""
    entries = {entry.name for entry in folder.iterdir()}
    model, files = folder / MODEL_FOLDER, [folder / PREDICTIONS, folder / REPORT]
    known = entries == {MODEL_FOLDER, PREDICTIONS, REPORT} and all(file.is_file() for file in files)
    return known and model.is_dir() and is_model_folder(model)


def print_result(result: HoldOut, out: Path, *, guessed: bool = False) -> None:
    """Print the scores, the graph in a sentence, and where things are."""
    for sentence in result.notes:
        console.note(sentence)
    model = result.model
    n, rows = int(model.n_features_in_), model.n_rows_
    validation = f" + {rows['validation']} validation" if rows["validation"] else ""
    how = f"{result.task} (guessed; --task sets it)" if guessed else result.task
    console.say(
        f"{result.target}: {how}, {n} columns, {rows['training']} training{validation} "
        f"+ {len(result.test)} held-out rows"
    )
    console.say("")
    labels = [METRIC_LABELS[name] for name in result.scores.columns]
    cells = [
        [str(name), *("–" if v != v else f"{v:.3f}" for v in row)]
        for name, row in zip(result.scores.index, result.scores.values, strict=True)
    ]
    console.table(["held-out rows", *labels], cells)
    console.say("")
    console.say(graph_sentence(model))
    console.say(f"Wrote {out / REPORT}, {out / PREDICTIONS} and {out / MODEL_FOLDER}/")


def _predictions(result: HoldOut, ids: pd.Index[Any]) -> pd.DataFrame:
    said = result.predictions
    columns = {"true": result.y_test, "predicted": said.predicted}
    return prediction_frame(ids[result.test], columns, said.probabilities, getattr(result.model, "classes_", None))
