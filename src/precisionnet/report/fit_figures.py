"""The figures of a fit's page, each with its caption; the same figures are written beside the page for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from precisionnet import plots
from precisionnet.estimators.checks import column_names
from precisionnet.evaluation import Measured
from precisionnet.plots.fit import Whisker
from precisionnet.plots.graph import EDGES_DRAWN, unit_of
from precisionnet.report.fit_errors import FitErrors
from precisionnet.report.fit_verdict import NAMES
from precisionnet.sparse_matrices import as_array, extreme_eigenvalues
from precisionnet.types import FloatArray

GRID_POINTS = 200
EIGENVALUES_MOST = 2_000
"""Nodes up to which a page shows all eigenvalues: of 2,000 they take some seconds, and eight times as long of 4,000."""
FOR_A_PAPER = ("scores", "outcome", "roc", "effects", "brain-", "graph", "heat_map", "error_by_target", "calibration")
"""Beginnings of the names of those that are written beside the page."""

Captioned = dict[str, tuple[Any, str]]


def fit_figures(
    result: Measured, errors: FitErrors, judged: pd.DataFrame | None = None, evidence: Any = None
) -> Captioned:
    """Return every figure of a fit's page with its caption; draw inside ``plots.styled()``.

    ``judged`` are the data's edges with whether each is sure, ``evidence`` is what ``task_evidence`` returned.
    """
    model = result.model
    drawn = {**_scores(result), **_outcome(result), **_wrong(result, errors)}
    tested = "not told from chance: pale" if evidence is not None else "not tested"
    drawn["effects"] = (
        plots.effect_bars(model, evidence),
        f"What the prediction owes to single columns ({tested}).",
    )
    for number, measure in enumerate(plots.brain_measures(column_names(model))):
        drawn[f"brain-{number}"] = (_brain(model, measure, evidence), _brain_caption(measure))
    if len(model.to_edge_frame()):
        drawn["graph"] = (_graph(model, judged), "The strongest edges of the data's graph.")
        drawn["heat_map"] = (plots.heat_map(model), "Partial correlations between all columns, clustered.")
    return {**drawn, **_training(result)}


def write_figures(figures: Captioned, folder: Path) -> None:
    """Write the figures that a paper may show as svg, png and pdf."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (figure, _) in for_a_paper(figures).items():
        plots.to_files(figure, folder, name)


def for_a_paper(figures: Captioned) -> Captioned:
    """Return the figures that a paper may show."""
    return {name: found for name, found in figures.items() if name.startswith(FOR_A_PAPER)}


def _scores(result: Measured) -> Captioned:
    regression = result.task == "regression"
    scale = 1.0 if regression else 100.0
    rows = [
        Whisker(NAMES.get(name, name), *(scale * value for value in found)) for name, found in result.headline.items()
    ]
    what = f"mean absolute error, units of {result.target}" if regression else "accuracy, %"
    figure = plots.score_intervals(rows, f"{what} (95 % interval)", result.method)
    return {"scores": (figure, f"{what[0].upper()}{what[1:]}, of each model on the same rows, with 95 % intervals.")}


def _outcome(result: Measured) -> Captioned:
    said = result.predictions[result.method]
    if result.task == "regression":
        figure = plots.predicted_against_true(result.y, said.predicted, result.target)
        return {"outcome": (figure, f"Predicted against true {result.target} on rows not learned from.")}
    classes = result.model.classes_
    return {
        "outcome": (
            plots.confusion(result.y, said.predicted, classes),
            "Confusion matrix on rows not learned from.",
        ),
        "roc": (plots.roc(result.y, said.probabilities, classes), "ROC curves on rows not learned from."),
    }


def _wrong(result: Measured, errors: FitErrors) -> Captioned:
    drawn: Captioned = {}
    said, table = result.predictions[result.method], errors.by_target
    if result.task == "regression":
        drawn["error_by_target"] = (
            plots.error_by_target(result.y, said.predicted, table.whiskers, table.centres, result.target),
            f"Error against true {result.target}, and its mean in {len(table.rows)} parts of the rows.",
        )
    found = errors.calibration
    if found is not None:
        drawn["calibration"] = (
            plots.calibration_figure(found.stated, found.found, found.x_label, found.y_label),
            f"{found.y_label[0].upper()}{found.y_label[1:]} beside the {found.x_label}.",
        )
    return drawn


def _graph(model: Any, judged: pd.DataFrame | None) -> Any:
    if judged is None:
        return plots.edge_graph(model)
    return plots.evidence_graph(
        judged,
        column_names(model),
        value="coloured",
        most_unsure=EDGES_DRAWN,
        unsigned=model.fitted.blocks.unsigned,
    )


def _training(result: Measured) -> Captioned:
    model = result.model
    mu, responses = _responses(model)
    many = len(model.networks_) > 1
    metric = "Mean absolute error" if result.task == "regression" else "Accuracy"
    drawn: Captioned = {
        "training": (
            plots.training_curves(model.history_, model.best_epoch_, metric),
            f"{metric} by epoch, the distance between the two matrices, and the exact zeros.",
        )
    }
    if model.fitted.n_features <= EIGENVALUES_MOST:
        drawn["spectrum"] = (
            plots.spectrum(as_array(model.precision_), as_array(model.task_precision_), model.method == "vnn"),
            f"Eigenvalues of the sparse and of the task-aware matrix{' (mean of all networks)' if many else ''}.",
        )
    drawn["responses"] = (
        plots.frequency_responses(mu, responses),
        f"Frequency response of every filter{' of the first network' if many else ''}.",
    )
    return drawn


def is_signed(model: Any) -> bool:
    """Whether effects have a direction: of more than two classes they have none."""
    return len(getattr(model, "classes_", ())) < 3


def _brain(model: Any, measure: str, evidence: Any) -> Any:
    """Return the brain with what the prediction owes to each region."""
    blocks, signed, sure = model.fitted.blocks, is_signed(model), None
    numbers = blocks.norms(model.task_nodes_)
    values = dict(zip(blocks.names, numbers if signed else np.abs(numbers), strict=True))
    if evidence is not None:
        sure = dict(zip(evidence.nodes["node"].astype(str), evidence.nodes["q_value"] <= 0.05, strict=True))
    title = measure.capitalize() if len(plots.brain_measures(blocks.names)) > 1 else ""
    text = f"effect of a standard deviation, {unit_of(model)}"
    return plots.brain_map(values, label=text, signed=signed, sure=sure, measure=measure, title=title)


def _brain_caption(measure: str) -> str:
    return f"What the prediction owes to each cortical region{f' ({measure})' if measure else ''}, on the brain."


def _responses(model: Any) -> tuple[FloatArray, list[FloatArray]]:
    """Return the eigenvalues of the first network's scaled matrix, and h(mu) of each of its filters on a grid.

    Of many eigenvalues, the smallest and the largest.
    """
    few = model.fitted.n_features <= EIGENVALUES_MOST
    mu = np.linalg.eigvalsh(as_array(model.shift_)) if few else np.array(extreme_eigenvalues(model.shift_))
    grid = torch.linspace(float(mu.min()), float(mu.max()), GRID_POINTS, dtype=torch.float64)
    with torch.no_grad():
        return mu, [bank.frequency_response(grid).reshape(GRID_POINTS, -1).numpy() for bank in model.network_.filters]
