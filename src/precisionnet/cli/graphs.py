"""``precisionnet graphs``: the data's own graph with evidence for every edge, and how groups of rows differ in it."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.messages import in_options
from precisionnet.cli.tables import (
    report_loading,
    unknown_columns,
    whole_label,
    with_doubts_of_columns,
    without_labels,
)
from precisionnet.datasets import Dataset
from precisionnet.datasets.tables import read_dataset
from precisionnet.errors import InputError, refuse_all, shown
from precisionnet.evidence import GraphComparison, compare_graphs, edge_inference
from precisionnet.evidence.covariates import covariate_columns, standard_rows
from precisionnet.evidence.pairs import pair_frame
from precisionnet.graph_files import GRAPH_ENDINGS, write_graph
from precisionnet.outputs import names_in, whole_folder
from precisionnet.preprocessing.checks import in_order
from precisionnet.report.data_graph import edges_with_sureness
from precisionnet.report.graphs_page import GroupGraph, GroupGraphs, render_graphs
from precisionnet.runner.pool import count_workers
from precisionnet.tables_out import write_table

PERMUTATIONS, QUICK_PERMUTATIONS = 1000, 199
PAGE, EDGES, NODES, TESTS, GRAPH = "graphs.html", "edges.csv", "nodes.csv", "tests.csv", "graph"
_WRITTEN = re.compile(r"graphs\.html|(edges|nodes|tests)\.csv|graph(-\d+(-[\w-]*)?)?\.(csv|graphml|gexf)", re.ASCII)


def run_graphs(
    paths: list[str],
    loading: dict[str, Any],
    out: Path,
    *,
    by: str | None,
    covariates: list[str],
    paired_by: str | None,
    permutations: int | None,
    bootstraps: int,
    jobs: int | None,
    seed: int,
    quick: bool,
    complete_rows: bool,
) -> None:
    """Read the tables, infer and compare graphs, write the output folder and print the answer."""
    data, roles = _rows(paths, loading, by, covariates, paired_by, complete_rows=complete_rows)
    workers = count_workers(jobs)
    with whole_folder(out, is_ours=is_graphs_output) as folder:
        with console.working("comparing" if by is not None else "estimating"):
            found = _found(
                data,
                roles,
                by,
                covariates,
                paired_by,
                permutations or (QUICK_PERMUTATIONS if quick else PERMUTATIONS),
                bootstraps,
                workers,
                seed,
                " + ".join(Path(path).name for path in paths),
            )
        _write(found, folder)
        written = {path.name for path in folder.iterdir()}
    for old in out.glob(f"{GRAPH}-*"):  # of groups that an earlier run had
        if old.name not in written:
            old.unlink()
    if quick and by is not None and permutations is None:
        console.note(f"--quick: {QUICK_PERMUTATIONS} relabellings instead of {PERMUTATIONS}; p-values are coarser.")
    _say(found, out)


def is_graphs_output(folder: Path) -> bool:
    """Whether a folder is what an earlier run wrote, and nothing else."""
    names = names_in(folder)
    known = PAGE in names and all(_WRITTEN.fullmatch(name) for name in names)
    return known and all((folder / name).is_file() for name in names)


def _rows(
    paths: list[str],
    loading: dict[str, Any],
    by: str | None,
    covariates: list[str],
    paired_by: str | None,
    *,
    complete_rows: bool,
) -> tuple[Dataset, pd.DataFrame]:
    """Return the rows, and the columns that are no features: the groups, covariates, pairs."""
    given = [("--by", by), *(("--covariate", name) for name in covariates), ("--paired-by", paired_by)]
    unknown = unknown_columns(paths, given)
    same = paired_by is not None and paired_by == loading["id"]  # who is paired is who the rows are named after
    named = [name for _, name in given if name is not None and name not in unknown and not (same and name == paired_by)]
    named = list(dict.fromkeys(named))
    loading = {**loading, "id": loading["id"] or "auto", "categories": True, "covariates": named}
    loading |= {"person": paired_by} if same else {}
    try:
        data, complaints = read_dataset(*paths, **loading)
    except InputError as error:
        refuse_all([*unknown.values(), *getattr(error, "sentences", [str(error)])])
        raise
    data = without_labels(data, "edges are tested between numbers; --covariate takes out what such a column explains")
    if data.X.shape[1] < 2:
        complaints.append("Fewer than two columns of numbers are left: a graph needs at least two; add columns.")
    refuse_all([*unknown.values(), *complaints])
    roles = pd.DataFrame(index=data.X.index) if data.covariates is None else data.covariates
    roles = roles.set_axis(named, axis=1)
    if by is not None and by in roles:
        roles = roles.assign(**{by: roles[by].map(whole_label)})
    if same:
        roles = roles.assign(**{str(paired_by): data.X.index})
    known = data.X.notna().all(axis=1) & roles.notna().all(axis=1)
    if complete_rows and not known.all():
        data, roles = data.take(np.flatnonzero(known)), roles[known.to_numpy()]
        lost = int((~known).sum())
        data = replace(data, notes=(*data.notes, f"{lost} of {len(known)} rows are not complete and were left out."))
        if not len(data):
            raise InputError(f"No row of {paths[0]!r} is complete, and --complete-rows leaves none: --drop columns.")
    data = with_doubts_of_columns(data)
    report_loading(data)
    _refuse_gaps(data, roles)
    return data, roles


def _refuse_gaps(data: Dataset, roles: pd.DataFrame) -> None:
    gaps = pd.concat([data.X, roles], axis=1).isna()
    if gaps.any(axis=None):
        worst = gaps.sum().sort_values(ascending=False, kind="stable")
        raise InputError(
            f"Values are missing in {int(gaps.any(axis=1).sum())} of {len(gaps)} rows (column {shown(worst.index[0])} "
            f"misses {int(worst.iloc[0])}): leave those rows out with --complete-rows, or --drop columns with gaps."
        )


def _found(
    data: Dataset,
    roles: pd.DataFrame,
    by: str | None,
    covariates: list[str],
    paired_by: str | None,
    n_permutations: int,
    n_bootstraps: int,
    workers: int,
    seed: int,
    source: str,
) -> GroupGraphs:
    groups = None if data.groups is None or not data.groups.duplicated().any() else data.groups
    comparison = None
    if by is not None:
        comparison = _compared(data, roles, by, covariates, paired_by, groups, n_permutations, workers, seed)
    labels = pd.Series(0, index=roles.index) if by is None else roles[by]
    X = _freed(data.X, labels, roles[covariates]) if by is not None or covariates else data.X
    people = roles[paired_by] if paired_by is not None else groups
    settings: dict[str, Any] = {"n_bootstraps": n_bootstraps, "n_jobs": workers, "random_state": seed}
    if comparison is None:
        whole = GroupGraph("all rows", edge_inference(X, groups=people, **settings), "", len(X))
    else:
        whole = _group_graph("all rows", X, people, settings)
    graphs = []
    for label in [] if comparison is None else comparison.graphs:
        here = (labels == label).to_numpy()
        graphs.append(_group_graph(label, X[here], None if people is None else people[here], settings))
    return GroupGraphs(
        whole=whole,
        graphs=graphs,
        comparison=comparison,
        names=[str(name) for name in X.columns],
        by=by,
        covariates=covariates,
        paired_by=paired_by,
        source=source,
        seed=seed,
        notes=[in_options(sentence) for sentence in (*data.notes, *data.doubts)],
    )


def _compared(
    data: Dataset,
    roles: pd.DataFrame,
    by: str,
    covariates: list[str],
    paired_by: str | None,
    groups: pd.Series[Any] | None,
    n_permutations: int,
    workers: int,
    seed: int,
) -> GraphComparison:
    return compare_graphs(
        data.X,
        roles[by],
        n_permutations=n_permutations,
        paired_by=None if paired_by is None else roles[paired_by],
        groups=None if paired_by is not None else groups,
        covariates=roles[covariates] if covariates else None,
        n_jobs=workers,
        random_state=seed,
    )


def _freed(X: pd.DataFrame, labels: pd.Series[Any], covariates: pd.DataFrame) -> pd.DataFrame:
    """Return rows without the groups' means and spreads and without covariates, as they are compared."""
    names = in_order(labels.tolist())
    places = {label: place for place, label in enumerate(names)}
    group = np.array([places[label] for label in labels.tolist()])
    columns = covariate_columns(covariates, group) if covariates.shape[1] else np.empty((len(X), 0))
    called = [str(name) for name in X.columns]
    rows = standard_rows(X.to_numpy(dtype=np.float64), group, columns, names, called)
    return pd.DataFrame(rows, index=X.index, columns=X.columns)


def _group_graph(label: Any, X: pd.DataFrame, people: pd.Series[Any] | None, settings: dict[str, Any]) -> GroupGraph:
    try:
        return GroupGraph(label, edge_inference(X, groups=people, **settings), "", len(X))
    except InputError as error:
        return GroupGraph(label, None, str(error), len(X))


def _write(found: GroupGraphs, folder: Path) -> None:
    comparison = found.comparison
    if comparison is None:
        assert found.whole.evidence is not None
        write_table(found.whole.evidence.edges, folder / EDGES)
        write_table(found.whole.evidence.nodes, folder / NODES)
    else:
        write_table(comparison.tests, folder / TESTS)
        write_table(_with_both(comparison), folder / EDGES)
        write_table(comparison.nodes, folder / NODES)
    _write_graph(found.whole, found, folder / GRAPH, csv=comparison is not None)
    for number, graph in enumerate(found.graphs, start=1):
        slug = re.sub(r"[^A-Za-z0-9]+", "-", str(graph.label))[:40].strip("-")
        _write_graph(graph, found, folder / f"{GRAPH}-{number}-{slug}".rstrip("-"), csv=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
        page = render_graphs(found, datetime.date.today().isoformat())
    (folder / PAGE).write_text(page, encoding="utf-8")


def _with_both(comparison: GraphComparison) -> pd.DataFrame:
    """Return the edges with both groups' own values beside their difference."""
    table, parts = comparison.edges, []
    for (a, b), _ in table.groupby(["group_a", "group_b"], sort=False):
        values = [comparison.graphs[label].to_numpy() for label in (a, b)]
        parts.append(pair_frame(list(comparison.graphs[a].columns), {"value_a": values[0], "value_b": values[1]}))
    both = pd.concat(parts, ignore_index=True)
    return table.assign(value_a=both["value_a"], value_b=both["value_b"])


def _write_graph(graph: GroupGraph, found: GroupGraphs, stem: Path, *, csv: bool) -> None:
    """Write one graph: every pair as csv, and the sure edges with the nodes for other tools."""
    if graph.evidence is None:  # no evidence: the compared graph, if there is one, has no sure edge
        known = None if found.comparison is None else found.comparison.graphs.get(graph.label)
        if known is None:
            return
        edges = pair_frame(found.names, {"partial_correlation": known.to_numpy()}).assign(sure=False)
        nodes = pd.DataFrame({"node": found.names})
    else:
        edges, nodes = edges_with_sureness(graph.evidence), graph.evidence.nodes
    if csv:
        write_table(edges, stem.with_name(f"{stem.name}.csv"))
    which = f"The data's graph, {graph.label}: edges beyond chance; weight is the size of the partial correlation"
    for ending in GRAPH_ENDINGS:
        write_graph(
            nodes, edges[edges["sure"]], stem.with_name(stem.name + ending), weight="partial_correlation", title=which
        )


def _say(found: GroupGraphs, out: Path) -> None:
    if found.comparison is not None:
        for line in found.comparison.summary().splitlines():
            console.say(line)
    for graph in [found.whole, *found.graphs]:
        console.say(graph.sentence())
    rest: Sequence[str] = (EDGES, NODES) if found.comparison is None else (TESTS, EDGES, NODES)
    console.say(f"Wrote {out / PAGE}, {', '.join(rest)} and the graphs as csv, graphml and gexf")
