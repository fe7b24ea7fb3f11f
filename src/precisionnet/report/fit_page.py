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
from precisionnet.evaluation import METRIC_LABELS, HoldOut
from precisionnet.evidence import EdgeInference
from precisionnet.parameters import PARAMETERS
from precisionnet.plots.graph import EDGES_DRAWN
from precisionnet.precision import partial_correlations
from precisionnet.report.data_graph import LEVEL, edges_with_sureness, q_text
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
    result: HoldOut,
    source: str,
    created: str,
    findings: Sequence[Finding] = (),
    data_graph: EdgeInference | None = None,
) -> str:
    """Return one self-contained HTML page about a fit: scores, graph, spectrum, training and every parameter.

    Parameters
    ----------
    result : HoldOut
        A fit measured on held-out rows, as ``precisionnet.evaluation.measure`` returns it.
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
    >>> result = measure(data, "regression", {"max_epochs": 1, "n_members": 1})
    >>> render(result, "table.csv", "2026-01-01").startswith("<!doctype html>")
    True
    """
    model = result.model
    edges = _judged_edges(model, data_graph)
    n = int(model.n_features_in_)
    return template("report.html.j2").render(
        result=result,
        model=model,
        source=source,
        created=created,
        warnings=[finding.sentence for finding in findings if finding.level != "note"],
        facts=[finding.sentence for finding in findings if finding.level == "note"],
        verdict=verdict(result),
        method_sentence=METHOD_SENTENCES[model.method],
        scores=_score_rows(result),
        labels=[METRIC_LABELS[name] for name in result.scores.columns],
        figures=_figures(result, None if data_graph is None else edges),
        edges=edges.head(EDGES_SHOWN),
        judged=data_graph,
        n_sure=int(edges["sure"].sum()),
        level=LEVEL,
        q_text=q_text,
        task_nodes=_task_nodes(model),
        task_edges=_task_edges(model),
        signed=len(getattr(model, "classes_", ())) < 3,
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


def verdict(result: HoldOut) -> str:
    """Say in two sentences how good a fit is, from the same numbers as the table.

    Parameters
    ----------
    result : HoldOut
        A fit measured on held-out rows, as ``precisionnet.evaluation.measure`` returns it.

    Returns
    -------
    str
        The error beside that of the linear model and of guessing, and what follows from it.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> from precisionnet.report import verdict
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> verdict(measure(data, "regression", {"max_epochs": 1, "n_members": 1}))[:29]
    'On 8 rows it has not seen, jo'
    """
    scores, n = result.scores, len(result.test)
    method, plain, trivial = scores.index[:3]
    if result.task == "regression":
        mae = scores["mae"]
        first = (
            f"On {n} rows it has not seen, {method} is off by {mae[method]:.3g} on average; "
            f"ridge regression by {mae[plain]:.3g}, always guessing the median by {mae[trivial]:.3g}."
        )
        gain = round(100 * (1.0 - mae[method] / mae[plain]))
        useless = mae[method] >= mae[trivial]
        margin = f"{abs(gain)} % {'less' if gain > 0 else 'more'} error than ridge"
    else:
        accuracy = scores["accuracy"]
        first = (
            f"On {n} rows it has not seen, {method} is right in {accuracy[method]:.1%}; "
            f"logistic regression in {accuracy[plain]:.1%}, always guessing the majority in {accuracy[trivial]:.1%}."
        )
        gain = round(100 * (accuracy[method] - accuracy[plain]), 1)
        useless = accuracy[method] < accuracy[trivial]
        margin = f"{abs(gain)} points {'above' if gain > 0 else 'below'} logistic regression"
    if useless:
        return f"{first} That is no better than guessing, on one split of one table: do not use this model."
    return f"{first} That is {margin if gain else 'as good as the linear model'}, on one split of one table."


def _score_rows(result: HoldOut) -> list[tuple[str, list[str], bool]]:
    shown = {
        "ridge": "ridge regression",
        "logistic": "logistic regression",
        "median": "median of the training rows",
        "majority": "majority class",
    }
    return [
        (shown.get(str(name), str(name)), [_number(value) for value in row], i == 0)
        for i, (name, row) in enumerate(zip(result.scores.index, result.scores.to_numpy(), strict=True))
    ]


def _judged_edges(model: Any, data_graph: EdgeInference | None) -> pd.DataFrame:
    """Return the edges of the sparse graph, strongest first, with whether and how far they are told from chance."""
    edges = model.to_edge_frame()
    if data_graph is None:
        return edges.assign(sure=False, q_value=np.nan)
    known = edges_with_sureness(data_graph)[["source", "target", "q_value", "sure"]]
    return edges.merge(known, how="left", on=["source", "target"], validate="one_to_one")


def _task_nodes(model: Any) -> list[tuple[str, float]]:
    values = model.task_nodes_
    order = np.argsort(-np.abs(values), kind="stable")[:TASK_SHOWN]
    names = column_names(model)
    return [(names[int(i)], float(values[i])) for i in order]


def _task_edges(model: Any) -> list[tuple[str, str, float]]:
    """Return the strongest pairs among the edges of the sparse graph."""
    names, graph = column_names(model), model.task_graph_
    rows, cols = np.nonzero(np.triu(model.precision_, k=1))
    order = np.argsort(-np.abs(graph[rows, cols]), kind="stable")[:TASK_SHOWN]
    return [(names[int(rows[k])], names[int(cols[k])], float(graph[rows[k], cols[k]])) for k in order]


def _figures(result: HoldOut, judged: pd.DataFrame | None) -> dict[str, Picture]:
    model, said = result.model, result.predictions
    names = column_names(model)
    partial = partial_correlations(model.precision_)
    mu, responses = _responses(model)
    many = len(model.networks_) > 1
    metric = "Mean absolute error" if result.task == "regression" else "Accuracy"
    with plots.styled():
        drawn: dict[str, tuple[Any, str]] = {
            "training": (
                plots.training_curves(model.history_, model.best_epoch_, metric),
                f"{metric} by epoch, the distance between the two matrices, and the exact zeros.",
            ),
            "heat_map": (plots.heat_map(partial, names), "Partial correlations between all columns, clustered."),
            "graph": (
                plots.edge_graph(partial, names)
                if judged is None
                else plots.evidence_graph(judged, names, value="partial_correlation", most_unsure=EDGES_DRAWN),
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
            figure = plots.predicted_against_true(result.y_test, said.predicted, result.target)
            drawn["outcome"] = (figure, f"Predicted against true {result.target} on held-out rows.")
        else:
            confusion = plots.confusion(result.y_test, said.predicted, model.classes_)
            drawn["outcome"] = (confusion, "Confusion matrix on held-out rows.")
            drawn["roc"] = (
                plots.roc(result.y_test, said.probabilities, model.classes_),
                "ROC curves on held-out rows.",
            )
        return {name: Picture(Markup(plots.to_svg(figure, name)), text) for name, (figure, text) in drawn.items()}


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
        ("l1 penalty used (lambda)", _number(model.l1_penalty_)),
        ("spectral bound used (M)", _number(model.spectral_bound_)),
        ("eigenvalues of the sparse precision", f"{_number(smallest)} to {_number(largest)}"),
        ("epochs run, epoch kept", f"{model.n_iter_}, {model.best_epoch_}"),
        ("networks", str(len(model.networks_))),
        ("weights of their kinds", ", ".join(f"{kind} {weight:.2f}" for kind, weight in model.kind_weights_.items())),
        ("weights of one network", " or ".join(f"{count:,}" for count in dict.fromkeys(counts))),
        ("random seed", _show(model.random_state)),
    ]


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def _show(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
