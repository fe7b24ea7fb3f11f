"""One self-contained HTML page about a fit, around five questions: jinja2 around inline SVG, nothing from the network.

The page can be read without scripts. With them, its graphs can be searched and filtered, and its tables sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.datasets import Dataset
from precisionnet.datasets.checks import Finding
from precisionnet.estimators.summary import count_networks
from precisionnet.evaluation import Measured
from precisionnet.evaluation.metrics import decimals_of, significant
from precisionnet.evidence import EdgeInference, TaskEvidence
from precisionnet.parameters import PARAMETERS
from precisionnet.plots.brain import count_regions
from precisionnet.plots.graph import EDGES_DRAWN, graph_of, unit_of
from precisionnet.report.data_graph import LEVEL, edges_with_sureness, interval_text, q_text
from precisionnet.report.explain_page import edge_rows, node_rows
from precisionnet.report.fit_errors import fit_errors
from precisionnet.report.fit_figures import EIGENVALUES_MOST, Captioned, fit_figures, for_a_paper, is_signed
from precisionnet.report.fit_verdict import NAMES, how_tested, other_error, score_lines, verdict
from precisionnet.report.interactive import Explorer, explorer, model_graphs
from precisionnet.report.methods_text import chosen_by, paper_text
from precisionnet.report.page import NONE, Picture, template
from precisionnet.sparse_matrices import as_array, extreme_eigenvalues
from precisionnet.versions import versions

EDGES_SHOWN = 30
TASK_SHOWN = 8
PAIRS_NAMED = 5
QUESTIONS = (
    ("how-good", "How good is it, and compared to what?"),
    ("rests-on", "What does the prediction rest on?"),
    ("own-graph", "What does the data's own graph look like?"),
    ("where-wrong", "Where is it wrong?"),
    ("paper", "What do I write in my paper?"),
)
EXPLAIN, SHOW_EDGES = "precisionnet explain MODEL TABLE", "precisionnet show MODEL --edges edges.csv"
METHOD_SENTENCES = {
    "joint": "the sparse precision matrix was learned together with the network",
    "naive": "one precision matrix was learned with the network by plain gradient, then thresholded",
    "glasso": "the sparse precision matrix was estimated first (graphical lasso), the network trained on it",
    "sample": "the network runs on the inverse of the sample covariance",
    "vnn": "the network runs on the sample covariance (a VNN)",
}


@dataclass(frozen=True)
class FitPage:
    """A page, and its figures to be written beside it."""

    html: str
    figures: Captioned


def render(
    result: Measured,
    source: str,
    created: str,
    findings: Sequence[Finding] = (),
    data_graph: EdgeInference | None = None,
    *,
    data: Dataset | None = None,
    evidence: TaskEvidence | None = None,
) -> str:
    """Return one self-contained HTML page about a fit: scores, what it rests on, its graph, errors, a methods text.

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
    data : Dataset, default=None
        The rows that were measured: with them, errors are also told by site and by columns such as sex.
    evidence : TaskEvidence, default=None
        What ``task_evidence`` found about the columns and edges that the prediction rests on; without it the page says
        that they are not tested.

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
    return build_fit_page(result, source, created, findings, data_graph, data=data, evidence=evidence).html


def build_fit_page(
    result: Measured,
    source: str,
    created: str,
    findings: Sequence[Finding] = (),
    data_graph: EdgeInference | None = None,
    *,
    data: Dataset | None = None,
    evidence: TaskEvidence | None = None,
    explain: str = EXPLAIN,
    show_edges: str = SHOW_EDGES,
    with_files: bool = False,
    no_evidence: str = "",
) -> FitPage:
    """Return the page and its figures.

    ``explain`` is the command that tests what the prediction rests on (empty: there is none), ``show_edges`` the one
    that writes all edges, ``with_files`` says that the figures stand beside the page, ``no_evidence`` why there is no
    evidence for the data's edges.
    """
    model = result.model
    edges = _judged_edges(model, data_graph)
    judged = None if data_graph is None else edges
    errors = fit_errors(result, data)
    with plots.styled():
        figures = fit_figures(result, errors, judged, evidence)
        pictures = {
            name: Picture(Markup(plots.to_svg(figure, name)), caption) for name, (figure, caption) in figures.items()
        }
    labels, lines = score_lines(result)
    n, made_with = len(model.fitted.blocks), versions()
    html = template("report.html.j2").render(
        questions=QUESTIONS,
        result=result,
        model=model,
        source=source,
        created=created,
        warnings=[finding.sentence for finding in findings if finding.level != "note"],
        facts=[finding.sentence for finding in findings if finding.level == "note"],
        verdict=verdict(result),
        method_sentence=METHOD_SENTENCES[model.method],
        scores=[
            (NAMES.get(name, name), line, name == result.method, _gain(result, name)) for name, line in lines.items()
        ],
        labels=labels,
        how=how_tested(result),
        other_error=other_error(result),
        figures=pictures,
        files=[(name, caption) for name, (_, caption) in for_a_paper(figures).items()] if with_files else [],
        graph=_explorer(model, judged),
        errors=errors,
        edges=edges.head(EDGES_SHOWN),
        judged=data_graph,
        no_evidence=no_evidence,
        beside=_beside_the_graph(edges, data_graph),
        n_sure=int(edges["sure"].sum()),
        level=LEVEL,
        q_text=q_text,
        tested_text=partial(_tested_text, model),
        explain=explain,
        show_edges=show_edges,
        evidence=evidence,
        evidence_nodes=[]
        if evidence is None
        else node_rows(evidence.nodes.assign(sure=evidence.nodes["q_value"] <= LEVEL)),
        evidence_edges=[] if evidence is None else _evidence_edges(evidence),
        paper=paper_text(result, data_graph, made_with, explained=evidence is not None),
        task_nodes=_task_nodes(model),
        task_edges=_task_edges(model),
        n_columns=n,
        n_regions=count_regions(model.fitted.blocks.names),
        signed=is_signed(model),
        n_nodes=int(model.fitted.n_features),
        encoded=[] if model.encoder_ is None else model.encoder_.describe(),
        edges_drawn=EDGES_DRAWN,
        n_edges=len(edges),
        n_pairs=n * (n - 1) // 2,
        chosen_by=chosen_by(model),
        n_networks=len(model.networks_),
        n_negative=_n_negative(model),
        eigenvalues_most=EIGENVALUES_MOST,
        parameters=_parameters(model),
        fitted=_fitted(model),
        versions=made_with,
    )
    return FitPage(html, figures)


def _explorer(model: Any, judged: pd.DataFrame | None) -> Explorer | None:
    blocks = model.fitted.blocks
    effects = blocks.norms(model.task_nodes_)
    label = f"effect on the prediction, {unit_of(model)}"
    return explorer(
        blocks.names, model_graphs(model, judged), "fit", (label, effects if is_signed(model) else np.abs(effects))
    )


def _gain(result: Measured, name: str) -> str:
    """Say how much less error the network has than another model, or how many more rows it gets right."""
    if name == result.method:
        return "–"
    value, low, high = result.gains[name]
    scale, digits, unit = (1.0, decimals_of(result.headline[name].value), "")
    if result.task == "classification":
        scale, digits, unit = 100.0, 1, " points"
    if np.isnan(low):
        return f"{scale * value:+,.{digits}f}{unit}"
    return f"{scale * value:+,.{digits}f}{unit} ({scale * low:+,.{digits}f} to {scale * high:+,.{digits}f})"


def _evidence_edges(evidence: TaskEvidence) -> list[tuple[bool, list[str]]]:
    tested = evidence.edges[evidence.edges["in_graph"]]
    return edge_rows(tested.assign(sure=tested["q_value"] <= LEVEL))


def _judged_edges(model: Any, data_graph: EdgeInference | None) -> pd.DataFrame:
    """Return the edges of the sparse graph, strongest first, with whether and how far they are told from chance.

    ``tested`` is the partial correlation that was tested; ``coloured`` is the graph's, for sure edges with the sign of
    the tested one.
    """
    edges = model.to_edge_frame()
    own = edges["partial_correlation"]
    if data_graph is None:
        return edges.assign(sure=False, q_value=np.nan, tested=np.nan, coloured=own)
    known = edges_with_sureness(data_graph).rename(columns={"partial_correlation": "tested"})
    known = known[["source", "target", "q_value", "sure", "tested", "ci_low", "ci_high", "selection_frequency"]]
    found = edges.merge(known, how="left", on=["source", "target"], validate="one_to_one")
    coloured = np.where(found["sure"] & (found["tested"].fillna(0.0) != 0.0), own.abs() * np.sign(found["tested"]), own)
    return found.assign(coloured=coloured)


def _beside_the_graph(edges: pd.DataFrame, data_graph: EdgeInference | None) -> str:
    """Name pairs beyond chance that the sparse graph leaves out; nothing where there are none."""
    if data_graph is None:
        return ""
    pairs = edges_with_sureness(data_graph)
    drawn = set(zip(edges["source"], edges["target"], strict=True))
    left_out = [pair not in drawn for pair in zip(pairs["source"], pairs["target"], strict=True)]
    found = pairs[pairs["sure"].to_numpy() & np.array(left_out, dtype=bool)]
    if not len(found):
        return ""
    order = found["partial_correlation"].abs().sort_values(ascending=False, kind="stable").index
    named = [f"{pair.source} and {pair.target}" for pair in found.loc[order].head(PAIRS_NAMED).itertuples()]
    n, rest = len(found), len(found) - len(named)
    are = "1 more pair is" if n == 1 else f"{n:,} more pairs are"
    more = f"; and {rest:,} others" if rest > 1 else "; and 1 other" if rest else ""
    return f"{are} beyond chance that the sparse graph leaves out: {'; '.join(named)}{more}."


def _tested_text(model: Any, edge: Any) -> str:
    """'+0.12 [-0.01 to +0.25]': what was tested, without a sign where a column has no direction."""
    if np.isnan(edge.tested):
        return NONE
    plain = {edge.source, edge.target} & set(model.fitted.blocks.unsigned)
    interval = "" if np.isnan(edge.ci_low) else f" [{interval_text(edge.ci_low, edge.ci_high)}]"
    return (f"{abs(edge.tested):.3f}" if plain else f"{edge.tested:+.3f}") + interval


def _task_nodes(model: Any) -> list[tuple[str, str]]:
    blocks = model.fitted.blocks
    values = blocks.norms(model.task_nodes_)
    order = np.argsort(-np.abs(values), kind="stable")[:TASK_SHOWN]
    signed = blocks.signed & is_signed(model)
    return [(blocks.names[i], _effect(values[i], signed[i])) for i in order]


def _task_edges(model: Any) -> list[tuple[str, str, str]]:
    """Return the strongest pairs among the edges of the sparse graph."""
    graph = graph_of(model, "task")
    strongest = list(zip(graph.first, graph.second, graph.value, graph.unsigned, strict=True))[:TASK_SHOWN]
    signed = is_signed(model)
    return [
        (graph.names[i], graph.names[j], _effect(value, signed and not without))
        for i, j, value, without in strongest
        if value
    ]


def _effect(value: float, signed: bool) -> str:
    return f"{value:+.3g}" if signed else f"{abs(value):.3g}"


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
    smallest, largest = extreme_eigenvalues(model.precision_)
    counts = [sum(p.numel() for p in network.parameters()) for network in model.networks_]  # readouts may differ
    return [
        ("l1 penalty used (lambda)", significant(model.l1_penalty_)),
        ("spectral bound used (M)", significant(model.spectral_bound_)),
        ("eigenvalues of the sparse precision", f"{significant(smallest)} to {significant(largest)}"),
        ("epochs run, epoch kept", f"{model.n_iter_}, {model.best_epoch_}"),
        ("ensemble", count_networks(len(model.networks_), int(np.count_nonzero(model.fitted.member_weights)))),
        ("weights of their kinds", ", ".join(f"{kind} {weight:.2f}" for kind, weight in model.kind_weights_.items())),
        ("weights of one network", " or ".join(f"{count:,}" for count in dict.fromkeys(counts))),
        ("random seed", _show(model.random_state)),
    ]


def _n_negative(model: Any) -> int:
    """Count eigenvalues that a logarithmic scale cannot show; 0 where none are drawn."""
    if model.fitted.n_features > EIGENVALUES_MOST:
        return 0
    return int(np.count_nonzero(np.linalg.eigvalsh(as_array(model.task_precision_)) <= 0))


def _show(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
