"""``precisionnet fit``, once the table is read and checked: train, measure, write. The demo does so twice."""

from __future__ import annotations

import datetime
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.messages import graph_sentence
from precisionnet.cli.options import option_name
from precisionnet.cli.progress import epochs
from precisionnet.cli.tables import prediction_frame
from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.datasets.checks import Finding, check_dataset
from precisionnet.estimators.files import is_model_folder
from precisionnet.evaluation import METRIC_LABELS, HoldOut, measure
from precisionnet.outputs import whole_folder
from precisionnet.parameters import settings_of
from precisionnet.report import render
from precisionnet.report.data_graph import edges_with_sureness, infer_data_graph
from precisionnet.tables_out import write_table
from precisionnet.types import TaskName

MODEL_FOLDER, PREDICTIONS, REPORT = "model", "predictions.csv", "report.html"
MOST_COLUMNS, MOST_ROWS = 150, 20_000
"""Larger tables get no evidence for the edges of their graph with a fit: it would take a second or more."""


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
        small = data.X.shape[1] <= MOST_COLUMNS and len(data) <= MOST_ROWS
        graph = infer_data_graph(data.X, data.groups)[0] if small else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
            page = render(result, source, datetime.date.today().isoformat(), findings, graph)
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


def run_demo(out: Path) -> None:
    """``precisionnet demo``: fit a real table that ships with scikit-learn, and one drawn by the paper's recipe."""
    from sklearn.datasets import load_diabetes

    started = time.perf_counter()
    real = load_diabetes(as_frame=True, scaled=False)
    diabetes = Dataset(real.data, real.target.rename("progression"))
    drawn = make_gaussian_regression(n_samples=200, n_features=20, sparsity=0.2, random_state=0)
    jobs: dict[str, tuple[str, Dataset]] = {
        "diabetes": ("442 patients, ten measurements, disease progression after a year", diabetes),
        "synthetic": ("the paper's recipe: Gaussian rows from a sparse precision, a linear target", drawn),
    }
    for name, (what, data) in jobs.items():
        console.say(f"== {name}: {what}")
        findings = check_dataset(data, "regression")
        result = fit_and_write(data, findings, "regression", out / name, 0, 0.2, {"method": "joint"}, f"{name} (demo)")
        print_result(result, out / name)
        if name == "synthetic":
            console.say(_true_edges(drawn))
        console.say("")
    console.say(f"Done in {time.perf_counter() - started:.0f} s. Open {out / 'diabetes' / 'report.html'} in a browser.")


def _true_edges(drawn: Any) -> str:
    """Say how many of the edges that the page shows as sure are those that the table was drawn with."""
    true = drawn.theta_true[np.triu_indices(len(drawn.theta_true), 1)] != 0
    found, why_not = infer_data_graph(drawn.X, drawn.groups)
    if found is None:
        return why_not
    sure = edges_with_sureness(found)["sure"].to_numpy()
    return (
        f"Of the {true.sum()} true edges, {(sure & true).sum()} are among the {sure.sum()} shown as sure; "
        f"{(sure & ~true).sum()} of those are not true."
    )
