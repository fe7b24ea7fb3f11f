"""``precisionnet explain``: what a fitted model's predictions rest on, with evidence for every column and edge.

The fits behind the evidence are kept in the output folder as they finish: a run that was stopped goes on.
"""

from __future__ import annotations

import datetime
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.progress import counted_fits
from precisionnet.cli.tables import rows_of_model
from precisionnet.datasets import Dataset, check_target
from precisionnet.errors import InputError, OutputError, some
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.evidence import TaskEvidence, task_evidence
from precisionnet.evidence.columns import task_by_column
from precisionnet.graph_files import write_graph
from precisionnet.outputs import names_in, refuse_foreign, whole_file
from precisionnet.report.data_graph import edges_with_sureness, infer_data_graph
from precisionnet.report.explain_page import Explanation, render_explanation
from precisionnet.runner.pool import count_workers
from precisionnet.tables_out import write_table
from precisionnet.types import FloatArray, IndexArray

PERMUTATIONS, QUICK_PERMUTATIONS = 100, 30
FITS, PAGE, EDGES, NODES, CONTRIBUTIONS = "fits.jsonl", "explain.html", "edges.csv", "nodes.csv", "contributions.csv"
GRAPHS = ("graph.graphml", "graph.gexf")
WRITTEN = {FITS, PAGE, EDGES, NODES, CONTRIBUTIONS, *GRAPHS}
GRAPH_TITLE = "Pairs of columns joined in the data's graph, or beyond chance in the task's; weight: partial correlation"


def run_explain(
    folder: str,
    paths: list[str],
    out: Path,
    *,
    target: str | None,
    id_column: str | None,
    person: str | None,
    duplicates: str,
    permutations: int | None,
    jobs: int | None,
    seed: int,
    quick: bool,
) -> None:
    """Judge columns and edges, write tables, graphs and the page, and print the answer."""
    refuse_foreign(out, is_explain_output)
    model = load(folder)
    data = rows_of_model(paths, id_column, model, target=_target(model, target), person=person, duplicates=duplicates)
    for sentence in data.notes:
        console.note(sentence)
    for sentence in data.doubts:
        console.warn(sentence)
    rows = fitted_rows(model, data)
    y = _target_of(model, data, rows)
    n_permutations = permutations or (QUICK_PERMUTATIONS if quick else PERMUTATIONS)
    if len(rows) < len(data):
        console.note(
            f"Evidence comes from {len(rows)} of {len(data)} rows, those that the model was fitted on by their "
            f"{'number' if data.X.index.name == 'row' else 'id'}; contributions are written for every row."
        )
    if quick and permutations is None:
        console.note(
            f"--quick: {n_permutations} drawn targets instead of {PERMUTATIONS}, so p-values are coarser and fewer "
            "columns and edges are told from chance."
        )
    train = data.take(rows)
    found = _evidence(model, train, y, out, n_permutations, count_workers(jobs), seed)
    found = task_by_column(found, model.fitted.blocks)
    graph, why_not = infer_data_graph(model.node_rows(train.X), train.groups, model)
    about = Explanation(
        found=found,
        graph=graph,
        no_graph=why_not,
        names=column_names(model),
        target=str(y.name),
        classes=[str(label) for label in getattr(model, "classes_", [])],
        model=model,
        source=" + ".join(Path(path).name for path in paths),
        n_rows=len(rows),
        n_people=len(rows) if train.groups is None else int(train.groups.nunique()),
        seed=seed,
    )
    _write(about, model, data, rows, out)
    _say(about, out)


def fitted_rows(model: Any, data: Dataset) -> IndexArray:
    """Return the positions of the rows that the model was fitted on, in the order that it knew them."""
    ids = pd.Index(model.oob_row_ids_)
    index = data.X.index.astype(object)
    places: IndexArray
    if index.is_unique and ids.is_unique:
        places = index.get_indexer(ids.astype(object))
        places = places[places >= 0]
    else:
        places = np.flatnonzero(index.isin(ids.astype(object)))
    if len(places) == len(ids):
        return places
    numbered = index.name == "row"
    how = "and id= if the fit was given one" if numbered else "with the id= of the fit"
    raise InputError(
        f"This is not the table that the model was fitted on: of its {len(ids)} rows ({some(ids[:3].tolist())}, ...) "
        f"{len(places)} are here by their {'number' if numbered else 'id'}; give the table of the fit, {how}."
    )


def _target(model: Any, given: str | None) -> str:
    known = model.target_name_
    if given is not None:
        return given
    if known is None:
        raise InputError("The model does not know the name of its target: name the column with target=.")
    return str(known)


def _target_of(model: Any, data: Dataset, rows: IndexArray) -> pd.Series[Any]:
    assert data.y is not None
    y = data.y.iloc[rows]
    if y.isna().any():
        raise InputError(
            f"Target {str(y.name)!r} is missing in {int(y.isna().sum())} of the rows that the model was fitted on: "
            "give the table and the target of the fit."
        )
    return check_target(y, "classification" if hasattr(model, "classes_") else "regression")


def _evidence(
    model: Any, train: Dataset, y: pd.Series[Any], out: Path, n_permutations: int, workers: int, seed: int
) -> TaskEvidence:
    """Run the fits, or those that are missing in the output folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write to {str(out)!r}: {error.strerror}; choose another place.") from error
    try:
        with counted_fits() as on_fit:
            return task_evidence(
                model,
                train.X,
                y,
                n_permutations=n_permutations,
                groups=None if train.groups is None else train.groups.to_numpy(),
                n_jobs=workers,
                random_state=seed,
                store=out / FITS,
                on_fit=on_fit,
            )
    except KeyboardInterrupt:
        console.note(f"Stopped: finished fits are kept in {out}; run the same command again to go on.")
        raise
    finally:
        with suppress(OSError):  # nothing came of it, so nothing is left behind
            out.rmdir()


def is_explain_output(folder: Path) -> bool:
    """Whether a folder is what an earlier run wrote or began, and nothing else."""
    names = names_in(folder)
    return FITS in names and names <= WRITTEN and all((folder / name).is_file() for name in names)


def edge_table(about: Explanation) -> pd.DataFrame:
    """Return one row per pair: the task's evidence, then the data's."""
    table = about.found.edges.copy()
    if about.graph is not None:
        data = about.graph.edges
        assert (data[["source", "target"]].to_numpy() == table[["source", "target"]].to_numpy()).all()
        for name in ("partial_correlation", "ci_low", "ci_high"):
            table[name] = data[name]
        for name in ("p_value", "q_value", "selection_frequency"):
            table[f"data_{name}"] = data[name]
    return table


def node_table(about: Explanation) -> pd.DataFrame:
    """Return one row per column: the task's evidence, then its place in the data's graph."""
    table = about.found.nodes.copy()
    if about.graph is not None:
        for name in ("degree", "strength", "predictability"):
            table[f"data_{name}"] = about.graph.nodes[name]
    return table


def contribution_table(model: Any, data: Dataset, rows: IndexArray) -> pd.DataFrame:
    """Return one row per row: its id, whether it was learned from, the base, each column's part, and their sum."""
    known = np.ones(len(data), dtype=bool) if model.medians_ is not None else data.X.notna().all(axis=1).to_numpy()
    parts = model.contributions(data.X[known])
    if parts.columns.nlevels > 1:
        (base,) = parts.attrs["base"].values()
        parts.columns = parts.columns.get_level_values(1)
        total = "log_odds"
    else:
        base, total = parts.attrs["base"], "predicted"
    learned = np.zeros(len(data), dtype=bool)
    learned[rows] = True
    values: FloatArray = parts.to_numpy()
    added = {
        str(data.X.index.name): data.X.index[known],
        "learned_from": learned[known],
        "base": np.full(len(parts), base),
        total: base + values.sum(axis=1),
    }
    taken = set(parts.columns)
    head = pd.DataFrame({_free(name, taken): column for name, column in added.items()}, index=parts.index)
    return pd.concat([head, parts], axis=1)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no column of the table has."""
    while name in taken:
        name += "_"
    return name


def _write(about: Explanation, model: Any, data: Dataset, rows: IndexArray, out: Path) -> None:
    edges, nodes, parts = edge_table(about), node_table(about), contribution_table(model, data, rows)
    if len(parts) < len(data):
        console.note(f"{len(data) - len(parts)} of {len(data)} rows have missing values and no contributions.")
    write_table(edges, out / EDGES)
    write_table(nodes, out / NODES)
    write_table(parts, out / CONTRIBUTIONS)
    edges["sure_in_task"] = edges["q_value"] <= about.level
    edges["sure_in_data"] = False if about.graph is None else edges_with_sureness(about.graph)["sure"].to_numpy()
    kept = edges[edges["in_graph"] | edges["sure_in_task"] | edges["sure_in_data"]]
    weight = "effect" if about.graph is None else "partial_correlation"
    for name in GRAPHS:
        write_graph(nodes, kept, out / name, weight=weight, title=GRAPH_TITLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
        page = render_explanation(about, datetime.date.today().isoformat())
    with whole_file(out / PAGE) as scratch:
        scratch.write_text(page, encoding="utf-8")


def _say(about: Explanation, out: Path) -> None:
    console.say(about.found.summary(about.level))
    nodes = about.found.nodes.sort_values(["q_value", "importance"], ascending=[True, False], kind="stable")
    sure = nodes[nodes["q_value"] <= about.level].head(10)
    if len(sure):
        console.say("")
        cells = [
            [str(row["node"]), _way(row["direction"]), f"{row['importance']:.3g}", f"{row['q_value']:.2g}"]
            for row in sure.to_dict("records")
        ]
        console.table(["columns beyond chance", "prediction", "importance", "q"], cells, n_text=2)
    edges = about.found.edges
    sure = edges[edges["q_value"] <= about.level].sort_values("q_value", kind="stable").head(10)
    if len(sure):
        console.say("")
        cells = [
            [str(row["source"]), str(row["target"]), f"{row['effect']:+.3g}", f"{row['q_value']:.2g}"]
            for row in sure.to_dict("records")
        ]
        console.table(["edges beyond chance", "", "effect", "q"], cells, n_text=2)
    console.say("")
    if about.no_graph:
        console.note(f"No evidence for the data's own graph: {about.no_graph}")
    console.say(f"Wrote {out / PAGE}, {EDGES}, {NODES}, {CONTRIBUTIONS} and {', '.join(GRAPHS)}")


def _way(direction: int) -> str:
    """Say whether the prediction rises or falls as the column rises; labels have no direction."""
    return "rises" if direction > 0 else "falls" if direction < 0 else "–"
