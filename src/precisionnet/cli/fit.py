"""``precisionnet fit``, once the table is read and checked: how to test it, train, write. The demo does so twice.

Pages and figures are imported when they are made: the bar of the training should not wait for them.
"""

from __future__ import annotations

import datetime
import shlex
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
from precisionnet.datasets.table_files import find
from precisionnet.errors import PrecisionNetError, printable, shown
from precisionnet.estimators.forecast import PATIENCE, Forecast
from precisionnet.estimators.model_file import is_model_folder
from precisionnet.evaluation import Folds, Measured, group_folds, measure, people_folds, time_folds
from precisionnet.evaluation.folds import N_FOLDS, people_of
from precisionnet.evaluation.methods import label
from precisionnet.evaluation.protocol import target_of
from precisionnet.outputs import whole_folder
from precisionnet.parameters import settings_of
from precisionnet.tables_out import write_table
from precisionnet.types import TaskName
from precisionnet.workers import count_for

MODEL_FOLDER, PREDICTIONS, REPORT, FIGURES = "model", "predictions.csv", "report.html", "figures"
MOST_COLUMNS, MOST_ROWS = 150, 20_000
"""Larger tables get no evidence for the edges of their graph with a fit: it would take a second or more."""
TOO_LARGE = "With a table of this size a fit does not test them: precisionnet graphs does."
WORTH_FORECASTING = 100_000
"""Numbers in a table from which on its fit may be long."""
TIME_NAMES = ("date", "time", "year", "month", "day", "week", "datetime", "timestamp")


def folds_to_test(
    data: Dataset, task: TaskName, seed: int, *, n_folds: int | None, hold_out: str | None, time: str | None
) -> Folds | None:
    """Return the folds that were asked for; None for what the networks leave out. A column of dates gives a hint."""
    given = {} if n_folds is None else {"n_folds": n_folds}
    if hold_out is not None:
        return group_folds(data, _column(data, hold_out), task, seed=seed, **given)
    if time is not None:
        return time_folds(data, _column(data, time), task, **given)
    hint = time_hint(data)
    if hint is not None:
        console.note(hint)
    return None if n_folds is None else people_folds(data, task, n_folds, seed)


def time_hint(data: Dataset) -> str | None:
    """Say that rows may be in the order of time, where a column looks like it; None where none does."""
    beside = pd.DataFrame(index=data.X.index) if data.covariates is None else data.covariates
    for frame in (beside, data.X):
        for name, values in frame.items():
            if str(name).lower() in TIME_NAMES or _is_date(values):
                return (
                    f"Column {shown(str(name))} looks like time. Folds mix past and future; where the future is to be "
                    f"predicted, test with --time {shlex.quote(str(name))}."
                )
    return None


def _is_date(values: pd.Series[Any]) -> bool:
    """Whether a column holds dates, or text that all looks like 2024-01-31."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return True
    if pd.api.types.is_numeric_dtype(values.dtype) or not len(known := values.dropna().astype(str)):
        return False
    return bool(known.str.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?").all())


def _column(data: Dataset, name: str) -> pd.Series[Any]:
    """Return a column that was loaded beside the features; the id or the person where it is none of these."""
    found = None if data.covariates is None else find(name, data.covariates.columns)
    if data.covariates is not None and found is not None:
        return data.covariates[found].rename(name)
    return pd.Series(people_of(data), index=data.X.index, name=name)


def run_fit(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    out: Path,
    seed: int,
    folds: Folds | None,
    parameters: dict[str, Any],
    source: str,
    *,
    guessed: bool,
    explain: str = "precisionnet explain MODEL TABLE",
    open_it: bool = False,
) -> None:
    """Train, write the output folder, print the result, and show the page where that is asked for."""
    try:
        result = fit_and_write(data, findings, task, out, seed, folds, parameters, source, explain)
    except KeyboardInterrupt:
        console.note("Stopped; nothing was written.")
        raise
    print_result(result, out, next_step(result, data, explain), guessed=guessed)
    if open_it:
        console.open_page(out / REPORT)


def fit_and_write(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    out: Path,
    seed: int,
    folds: Folds | None,
    parameters: dict[str, Any],
    source: str,
    explain: str,
) -> Measured:
    """Train and write the output folder, whole or not at all; ``explain`` is the command that goes on from there."""
    settings = settings_of(parameters, task, name_of=option_name)
    with whole_folder(out, is_ours=is_fit_output) as folder:
        # Networks that have left out every row are their own test; any other needs more fits.
        own_test = settings.recipe == "standard" and settings.n_members > 1 and not settings.validation_fraction
        only = folds is None and own_test
        n_folds = 0 if only else N_FOLDS if folds is None else folds.n_folds
        _say_how_long(data, task, parameters, 1 + n_folds)
        side_by_side = n_folds > 0 and count_for(None) > 1  # the bar then counts fits: epochs are the workers' own
        with epochs(settings.n_epochs, only=only) as bar:
            watched = [] if side_by_side else [bar.advance]
            result = measure(data, task, parameters, seed=seed, folds=folds, callbacks=watched, on_fit=bar.count_fits)
        result.notes.extend([bar.note] if bar.note else [])
        result.model.save(folder / MODEL_FOLDER)
        write_table(tested_rows(result, data), folder / PREDICTIONS)
        write_page(result, data, findings, source, explain, folder, out)
    return result


def write_page(
    result: Measured, data: Dataset, findings: Sequence[Finding], source: str, explain: str, folder: Path, out: Path
) -> None:
    """Write the page and its figures into ``folder``, which will be ``out``."""
    from precisionnet.report.data_graph import infer_data_graph
    from precisionnet.report.fit_figures import write_figures
    from precisionnet.report.fit_page import build_fit_page

    model, graph, why_not = result.model, None, TOO_LARGE
    if model.fitted.n_features <= MOST_COLUMNS and len(data) <= MOST_ROWS:
        graph, why_not = infer_data_graph(model.node_rows(data.X), data.groups, model)
    with console.working("making the page and its figures"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
        page = build_fit_page(
            result,
            source,
            datetime.date.today().isoformat(),
            findings,
            graph,
            data=data,
            explain="" if model.fitted.on_support else explain,  # tests compare effects of all pairs
            show_edges=f"precisionnet show {shlex.quote(printable(str(out)))} --edges edges.csv",
            with_files=True,
            no_evidence=why_not,
        )
        (folder / REPORT).write_text(page.html, encoding="utf-8")
        write_figures(page.figures, folder / FIGURES)


def _say_how_long(data: Dataset, task: TaskName, parameters: dict[str, Any], n_fits: int) -> None:
    """Print an estimate of time and memory where the fits are long; what is wrong with the table they will tell."""
    if data.X.size < WORTH_FORECASTING:
        return
    from precisionnet import PNNClassifier, PNNRegressor

    kind = PNNRegressor if task == "regression" else PNNClassifier
    try:
        coming = kind(**parameters).forecast(data.X, target_of(data), groups=data.groups)
    except PrecisionNetError:
        return
    say_if_long(coming, n_fits)


def say_if_long(coming: Forecast, n_fits: int = 1) -> None:
    """Print an estimate where it is worth saying: of a fit, or of several of the same size."""
    if n_fits * coming.seconds >= PATIENCE:
        console.note(coming.sentence_for(n_fits))


def is_fit_output(folder: Path) -> bool:
    """Whether a folder is what an earlier fit wrote, and nothing else."""
    entries = {entry.name for entry in folder.iterdir()}
    model, figures = folder / MODEL_FOLDER, folder / FIGURES
    known = entries - {FIGURES} == {MODEL_FOLDER, PREDICTIONS, REPORT}
    known = known and all((folder / name).is_file() for name in (PREDICTIONS, REPORT))
    drawn = not figures.exists() or (figures.is_dir() and all(_is_figure(file) for file in figures.iterdir()))
    return known and drawn and model.is_dir() and is_model_folder(model)


def _is_figure(file: Path) -> bool:
    return file.is_file() and file.suffix in (".svg", ".png", ".pdf")


def explain_command(out: Path, tables: Sequence[str], id_column: str | None = None, person: str | None = None) -> str:
    """Return the command that tests what the model's predictions rest on."""
    named = [word for option in (("--id", id_column), ("--person", person)) if option[1] for word in option]
    words = [str(out), *(tables or ["TABLE"]), *(str(word) for word in named)]
    return " ".join(["precisionnet explain", *(shlex.quote(printable(word)) for word in words)])


def next_step(result: Measured, data: Dataset, explain: str) -> tuple[str, ...]:
    """Say the one thing to look at next: is it of use, does it hold elsewhere, what does it rest on?

    A command stands on a line of its own, so that it can be copied.
    """
    if not result.beats_guessing:
        return ("question 4 of the page, where it is wrong; then bring more rows or other columns",)
    if data.site is not None and len(data.site.unique()) > 1 and result.folds.kind in ("networks", "people"):
        return ("the same fit with --hold-out and the column of sites: does it hold at sites it has not seen?",)
    if result.model.fitted.on_support:
        return ("question 2 of the page: the columns that the prediction rests on",)
    return "which columns and edges are beyond chance?", explain


def print_result(result: Measured, out: Path, next_to: Sequence[str], *, guessed: bool = False) -> None:
    """Print how it was tested, the scores, the verdict, the graph in a sentence, what is next, and where things are."""
    from precisionnet.report import how_tested, score_lines, verdict

    for sentence in result.notes:
        console.note(sentence)
    model = result.model
    n, rows = len(model.fitted.blocks), model.n_rows_
    validation = f" + {rows['validation']} validation" if rows["validation"] else ""
    how = f"{result.task} (guessed; --task sets it)" if guessed else result.task
    console.say(f"{result.target}: {how}, {n} columns, {rows['training']} training{validation} rows")
    console.say(how_tested(result))
    console.say("")
    columns, lines = score_lines(result)
    console.table(["", *columns], [[label(name).lower(), *line] for name, line in lines.items()])
    console.say("")
    console.say(verdict(result))
    console.say(graph_sentence(len(model.to_edge_frame()), n, model.method))
    console.say("")
    console.listing(
        [
            *(("" if place else "Look next at", "bold", line) for place, line in enumerate(next_to)),
            ("Page", "bold", str(out / REPORT)),
            ("Figures", "bold", f"{out / FIGURES}/ (svg, png, pdf)"),
            ("Predictions", "bold", str(out / PREDICTIONS)),
            ("Model", "bold", f"{out / MODEL_FOLDER}/"),
        ]
    )


def tested_rows(result: Measured, data: Dataset) -> pd.DataFrame:
    """Every row of the table: its id, true and predicted target and the fold that it was predicted in."""
    tested, said = result.folds.tested, result.predictions[result.method]
    predicted = pd.Series(said.predicted, index=tested).reindex(range(len(data)))
    fold = pd.Series(result.folds.fold[tested] + 1, index=tested).reindex(range(len(data))).astype("Int64")
    columns = {"true": target_of(data), "predicted": predicted.to_numpy(), "fold": fold.array}
    if result.folds.kind == "groups":
        columns["held_out"] = result.folds.cluster
    probabilities = said.probabilities
    if probabilities is not None:
        whole = np.full((len(data), probabilities.shape[1]), np.nan)
        whole[tested] = probabilities
        probabilities = whole
    return prediction_frame(data.X.index, columns, probabilities, getattr(result.model, "classes_", None))


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
        explain = explain_command(out / name, ())
        result = fit_and_write(
            data, findings, "regression", out / name, 0, None, {"method": "joint"}, f"{name} (demo)", explain
        )
        print_result(result, out / name, [f"{out / name / REPORT} in a browser"])
        if name == "synthetic":
            console.say(_true_edges(drawn))
        console.say("")
    console.say(f"Done in {time.perf_counter() - started:.0f} s. Open {out / 'diabetes' / 'report.html'} in a browser.")


def _true_edges(drawn: Any) -> str:
    """Say how many of the edges that the page shows as sure are those that the table was drawn with."""
    from precisionnet.report.data_graph import edges_with_sureness, infer_data_graph

    true = drawn.theta_true[np.triu_indices(len(drawn.theta_true), 1)] != 0
    found, why_not = infer_data_graph(drawn.X, drawn.groups)
    if found is None:
        return why_not
    sure = edges_with_sureness(found)["sure"].to_numpy()
    return (
        f"Of the {true.sum()} true edges, {(sure & true).sum()} are among the {sure.sum()} shown as sure; "
        f"{(sure & ~true).sum()} of those are not true."
    )
