"""One self-contained HTML page about a fit: jinja2 around inline SVG, nothing from the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from markupsafe import Markup

from precisionnet import plots
from precisionnet.datasets.checks import Finding
from precisionnet.estimators.checks import column_names
from precisionnet.evaluation import Measured
from precisionnet.evaluation.metrics import significant
from precisionnet.evidence import EdgeInference
from precisionnet.parameters import PARAMETERS
from precisionnet.plots.brain import count_regions
from precisionnet.plots.graph import EDGES_DRAWN, unit_of
from precisionnet.report.data_graph import LEVEL, edges_with_sureness, q_text
from precisionnet.report.fit_verdict import NAMES, how_tested, other_error, score_lines, verdict
from precisionnet.report.page import Picture, template
from precisionnet.types import FloatArray
from precisionnet.versions import versions

EDGES_SHOWN = 30
TASK_SHOWN = 8
GRID_POINTS = 200
METHOD_SENTENCES = {
    "joint": "the sparse precision matrix was learned together with the network",
    "naive": "one precision matrix was learned with the network by plain gradient, then thresholded",
    "glasso": "the sparse precision matrix was estimated first (graphical lasso), the network trained on it",
    "sample": "the network runs on the inverse of the sample covariance",
    "vnn": "the network runs on the sample covariance (a VNN)",
}


def render(
    result: Measured,
    source: str,
    created: str,
    findings: Sequence[Finding] = (),
    data_graph: EdgeInference | None = None,
) -> str:
    """Return one self-contained HTML page about a fit: scores, graph, spectrum, training and every parameter.

    Parameters
    ----------
    result : Measured
        A fit and its test, as ``precisionnet.evaluation.measure`` returns it.
    source : str
        Name of the table, to show.
    created : str
        Date to show.
    findings : sequence of Finding, default=()
        What the checks of the table found.
    data_graph : EdgeInference, default=None
        Evidence for the edges of the data's graph. Edges that cannot be told from chance are then drawn pale; without
        it the page says that no edge carries a certainty.

    Returns
    -------
    str
        The page; it needs no network.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> from precisionnet.report import render
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> result = measure(data, "regression", {"max_epochs": 1, "n_members": 4})
    >>> render(result, "table.csv", "2026-01-01").startswith("<!doctype html>")
    True
    """
    model = result.model
    edges = _judged_edges(model, data_graph)
    n = len(model.fitted.blocks)
    labels, lines = score_lines(result)
    return template("report.html.j2").render(
        result=result,
        model=model,
        source=source,
        created=created,
        warnings=[finding.sentence for finding in findings if finding.level != "note"],
        facts=[finding.sentence for finding in findings if finding.level == "note"],
        verdict=verdict(result),
        method_sentence=METHOD_SENTENCES[model.method],
        scores=[(NAMES.get(name, name), line, name == result.method) for name, line in lines.items()],
        labels=labels,
        how=how_tested(result),
        other_error=other_error(result),
        figures=_figures(result, None if data_graph is None else edges),
        edges=edges.head(EDGES_SHOWN),
        judged=data_graph,
        n_sure=int(edges["sure"].sum()),
        level=LEVEL,
        q_text=q_text,
        task_nodes=_task_nodes(model),
        task_edges=_task_edges(model),
        n_columns=n,
        n_regions=count_regions(model.fitted.blocks.names),
        signed=_is_signed(model),
        n_nodes=int(model.fitted.n_features),
        encoded=[] if model.encoder_ is None else model.encoder_.describe(),
        edges_drawn=EDGES_DRAWN,
        n_edges=len(edges),
        n_pairs=n * (n - 1) // 2,
        n_zeros=int(np.count_nonzero(model.precision_ == 0)),
        chosen_by=_chosen_by(model),
        n_networks=len(model.networks_),
        n_negative=int(np.count_nonzero(np.linalg.eigvalsh(model.task_precision_) <= 0)),
        parameters=_parameters(model),
        fitted=_fitted(model),
        versions=versions(),
    )


def _judged_edges(model: Any, data_graph: EdgeInference | None) -> pd.DataFrame:
    """Return the edges of the sparse graph, strongest first, with whether and how far they are told from chance."""
    edges = model.to_edge_frame()
    if data_graph is None:
        return edges.assign(sure=False, q_value=np.nan)
    known = edges_with_sureness(data_graph)[["source", "target", "q_value", "sure"]]
    return edges.merge(known, how="left", on=["source", "target"], validate="one_to_one")


def _task_nodes(model: Any) -> list[tuple[str, str]]:
    blocks = model.fitted.blocks
    values = blocks.norms(model.task_nodes_)
    order = np.argsort(-np.abs(values), kind="stable")[:TASK_SHOWN]
    signed = blocks.signed & _is_signed(model)
    return [(blocks.names[i], _effect(values[i], signed[i])) for i in order]


def _task_edges(model: Any) -> list[tuple[str, str, str]]:
    """Return the strongest pairs among the edges of the sparse graph."""
    blocks = model.fitted.blocks
    graph = blocks.matrix_norms(model.task_graph_)
    rows, cols = np.nonzero(np.triu(blocks.matrix_norms(model.precision_), k=1))
    order = np.argsort(-np.abs(graph[rows, cols]), kind="stable")[:TASK_SHOWN]
    signed = blocks.signed & _is_signed(model)
    return [
        (blocks.names[i], blocks.names[j], _effect(graph[i, j], signed[i] and signed[j]))
        for i, j in zip(rows[order], cols[order], strict=True)
    ]


def _is_signed(model: Any) -> bool:
    """Whether effects have a direction: of more than two classes they have none."""
    return len(getattr(model, "classes_", ())) < 3


def _effect(value: float, signed: bool) -> str:
    return f"{value:+.3g}" if signed else f"{abs(value):.3g}"


def _figures(result: Measured, judged: pd.DataFrame | None) -> dict[str, Picture]:
    model, said = result.model, result.predictions[result.method]
    names = column_names(model)
    mu, responses = _responses(model)
    many = len(model.networks_) > 1
    metric = "Mean absolute error" if result.task == "regression" else "Accuracy"
    with plots.styled():
        drawn: dict[str, tuple[Any, str]] = {
            "training": (
                plots.training_curves(model.history_, model.best_epoch_, metric),
                f"{metric} by epoch, the distance between the two matrices, and the exact zeros.",
            ),
            "heat_map": (plots.heat_map(model), "Partial correlations between all columns, clustered."),
            "graph": (
                plots.edge_graph(model)
                if judged is None
                else plots.evidence_graph(
                    judged,
                    names,
                    value="partial_correlation",
                    most_unsure=EDGES_DRAWN,
                    unsigned=model.fitted.blocks.unsigned,
                ),
                "The strongest edges of the data's graph.",
            ),
            "spectrum": (
                plots.spectrum(model.precision_, model.task_precision_, model.method == "vnn"),
                f"Eigenvalues of the sparse and of the task-aware matrix{' (mean of all networks)' if many else ''}.",
            ),
            "responses": (
                plots.frequency_responses(mu, responses),
                f"Frequency response of every filter{' of the first network' if many else ''}.",
            ),
        }
        if result.task == "regression":
            figure = plots.predicted_against_true(result.y, said.predicted, result.target)
            drawn["outcome"] = (figure, f"Predicted against true {result.target} on rows not learned from.")
        else:
            confusion = plots.confusion(result.y, said.predicted, model.classes_)
            drawn["outcome"] = (confusion, "Confusion matrix on rows not learned from.")
            drawn["roc"] = (
                plots.roc(result.y, said.probabilities, model.classes_),
                "ROC curves on rows not learned from.",
            )
        for number, measure in enumerate(plots.brain_measures(names)):
            drawn[f"brain-{number}"] = (_brain(model, measure), _brain_caption(measure))
        return {name: Picture(Markup(plots.to_svg(figure, name)), text) for name, (figure, text) in drawn.items()}


def _brain(model: Any, measure: str) -> Any:
    """Return the brain with what the prediction owes to each region."""
    blocks, signed = model.fitted.blocks, _is_signed(model)
    values = blocks.norms(model.task_nodes_)
    values = dict(zip(blocks.names, values if signed else np.abs(values), strict=True))
    label = f"effect of a standard deviation, {unit_of(model)}"
    title = measure.capitalize() if len(plots.brain_measures(blocks.names)) > 1 else ""
    return plots.brain_map(values, label=label, signed=signed, measure=measure, title=title)


def _brain_caption(measure: str) -> str:
    return f"What the prediction owes to each cortical region{f' ({measure})' if measure else ''}, on the brain."


def _responses(model: Any) -> tuple[FloatArray, list[FloatArray]]:
    """Return the eigenvalues of the first network's scaled matrix, and h(mu) of each of its filters on a grid."""
    mu = np.linalg.eigvalsh(model.shift_)
    grid = torch.linspace(float(mu.min()), float(mu.max()), GRID_POINTS, dtype=torch.float64)
    with torch.no_grad():
        return mu, [bank.frequency_response(grid).reshape(GRID_POINTS, -1).numpy() for bank in model.network_.filters]


def _chosen_by(model: Any) -> str:
    """Which rows chose the epoch that was kept."""
    if model.n_rows_["validation"]:
        return "validation"
    return "left out" if model.history_["validation_loss"].notna().any() else "none"


def _parameters(model: Any) -> list[tuple[str, str, bool, str, str]]:
    """Name, the value the fit ran with, whether the recipe chose it, the paper's symbol, meaning."""
    return [
        (
            p.name,
            _show(getattr(model.settings, p.name)),
            p.by_recipe and getattr(model, p.name) is None,
            p.symbol,
            p.help,
        )
        for p in PARAMETERS
    ]


def _fitted(model: Any) -> list[tuple[str, str]]:
    smallest, largest = np.linalg.eigvalsh(model.precision_)[[0, -1]]
    counts = [sum(p.numel() for p in network.parameters()) for network in model.networks_]  # readouts may differ
    return [
        ("l1 penalty used (lambda)", significant(model.l1_penalty_)),
        ("spectral bound used (M)", significant(model.spectral_bound_)),
        ("eigenvalues of the sparse precision", f"{significant(smallest)} to {significant(largest)}"),
        ("epochs run, epoch kept", f"{model.n_iter_}, {model.best_epoch_}"),
        ("networks", str(len(model.networks_))),
        ("weights of their kinds", ", ".join(f"{kind} {weight:.2f}" for kind, weight in model.kind_weights_.items())),
        ("weights of one network", " or ".join(f"{count:,}" for count in dict.fromkeys(counts))),
        ("random seed", _show(model.random_state)),
    ]


def _show(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
