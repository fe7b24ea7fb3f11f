"""Does ``task_evidence`` find the edges a target lives on, and none where there are none? Does the task's graph repeat?

    python -m benchmarks.evidence.task synthetic --out results/evidence/task_synthetic.csv [--quick]
    python -m benchmarks.evidence.task cohorts   --out results/evidence/task_cohorts.csv   [--quick]
    python -m benchmarks.evidence.task time      --out results/evidence/task_time.csv

``synthetic``: Gaussian rows from a known graph; the target is a sum of products along six of its edges ("products"),
such products that explain a fifth of the variance beside linear effects of columns ("mixed"), or single columns alone,
some of them bent ("control"); a fifth of the variance is noise. One row per table: area under ROC among the graph's
true edges, edges found at q <= 0.1 and false ones among them, and how many of the null fits, each playing the observed
one in turn, report an edge at q <= 0.05. ``..._by_networks`` are the figures before edges had to hold beside each
other.

``cohorts``: correlation of ``task_graph_`` and ``task_nodes_`` between seeds and between halves of the people; the rank
correlation of edges between halves given |theta| and both columns' importance, with its p-value by relabelling columns;
what one half reports and the other finds again; graphs of sparse models.

``time``: task_evidence at ABIDE's size on two cores beside default fits on two cores, in one run.

A row that is in the file is not measured again.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score

from precisionnet import PNNRegressor
from precisionnet.datasets import make_sparse_precision
from precisionnet.evidence import task_evidence
from precisionnet.evidence.pairs import pairs_of
from precisionnet.evidence.task_fits import FitKey, TaskTable, additive_residual, evidence_network, run_fits, target_of
from precisionnet.evidence.task_tests import EdgeTests, edge_tests
from precisionnet.paper.cohorts import load_cohort
from precisionnet.precision import partial_correlations
from precisionnet.types import BoolArray, FloatArray
from precisionnet.versions import versions

PRODUCTS, NOISE, SHARE = 6, 0.2, 0.2
CELLS = [
    ("products", "random", 30, 300),
    ("products", "small_world", 60, 500),
    ("mixed", "random", 20, 200),
    ("mixed", "small_world", 40, 300),
    ("mixed", "random", 30, 500),
    ("mixed", "small_world", 60, 500),
    ("mixed", "random", 40, 1000),
    ("mixed", "block", 60, 1000),
    ("control", "random", 30, 300),
    ("control", "small_world", 40, 500),
]
DRAWS, PERMUTATIONS = 2, 50
COHORTS = ("abide", "ants")
Row = dict[str, Any]


def drawn_table(kind: str, graph: str, n: int, rows: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
    """Return rows, target, the true precision, and the edges whose products the target has."""
    rng = np.random.default_rng([seed, n, rows])
    theta = make_sparse_precision(n, 5.0 / n if graph == "random" else None, rng, graph=graph)
    X = rng.multivariate_normal(np.zeros(n), np.linalg.inv(theta), size=rows)
    X /= np.sqrt(np.diag(np.linalg.inv(theta)))
    first, second = np.nonzero(np.triu(theta, 1))
    chosen = rng.choice(len(first), PRODUCTS, replace=False)
    products = (X[:, first[chosen]] * X[:, second[chosen]]) @ rng.choice([-1.0, 1.0], PRODUCTS)
    single = X * (rng.random(n) < 0.3)
    main = single @ rng.normal(size=n)
    if kind == "control":
        main = main / main.std() + _unit(np.abs(single).sum(axis=1) + (single**2).sum(axis=1) * 0.3) * 0.5
    noise = np.sqrt(NOISE) * rng.normal(size=rows)
    y = {
        "products": np.sqrt(1 - NOISE) * _unit(products),
        "mixed": np.sqrt(1 - NOISE - SHARE) * _unit(main) + np.sqrt(SHARE) * _unit(products),
        "control": np.sqrt(1 - NOISE) * _unit(main),
    }[kind] + noise
    has_product = np.zeros(theta.shape, dtype=bool)
    if kind != "control":
        has_product[first[chosen], second[chosen]] = True
    return X, y, theta, has_product[pairs_of(n)]


def _unit(values: FloatArray) -> FloatArray:
    return (values - values.mean()) / values.std()


def synthetic(quick: bool, fits: Path | None) -> Iterator[tuple[str, Callable[[], Row]]]:
    """One row per table."""
    permutations = 25 if quick else PERMUTATIONS
    for seed in range(1 if quick else DRAWS):
        for cell in CELLS[::3] if quick else CELLS:
            yield " ".join(map(str, (*cell, seed))), partial(_synthetic_row, *cell, seed, permutations, fits)


def _synthetic_row(kind: str, graph: str, n: int, rows: int, seed: int, permutations: int, fits: Path | None) -> Row:
    X, y, theta, has_product = drawn_table(kind, graph, n, rows, seed)
    model = PNNRegressor(random_state=seed).fit(X, y)
    person = np.arange(rows)
    residual, r2 = additive_residual(X, y, person, seed)
    keys = [FitKey("edges", "table", 0), *(FitKey("edges", "null", i) for i in range(permutations))]
    table = TaskTable(X, y, person, residual)
    store = None if fits is None else fits / f"{kind}-{graph}-{n}-{rows}-{seed}.jsonl"
    found = run_fits(evidence_network(model, seed), table, keys, seed, 1, store, None)
    effect, null = found[keys[0]], np.array([found[key] for key in keys[1:]])
    edge, in_graph = theta[pairs_of(n)] != 0, model.precision_[pairs_of(n)] != 0

    def tests(observed: FloatArray, drawn: FloatArray, target: FloatArray) -> EdgeTests:
        return edge_tests(observed, drawn, in_graph, X, target, person)

    # Each null fit plays the observed one in turn, beside the others.
    played = [tests(null[i], np.delete(null, i, axis=0), target_of(key, table, seed)) for i, key in enumerate(keys[1:])]
    of_table = tests(effect, null, residual)
    row = {
        "kind": kind,
        "graph": graph,
        "n_columns": n,
        "n_rows": rows,
        "n_permutations": len(null),
        "additive_r2": r2,
        "products": int(has_product.sum()),
        "in_graph": int((has_product & in_graph).sum()),
        "found": int(((of_table.q_value <= 0.1) & has_product).sum()),
        "false": int(((of_table.q_value <= 0.1) & ~has_product).sum()),
        "found_by_networks": int(((of_table.q_by_networks <= 0.1) & has_product).sum()),
        "false_by_networks": int(((of_table.q_by_networks <= 0.1) & ~has_product).sum()),
        "reported_at_0.05": int((of_table.q_value <= 0.05).sum()),
        "null_runs_that_report": sum(bool((one.q_value <= 0.05).any()) for one in played),
    }
    scores = (
        ("p", rankdata(-of_table.p_value) + 0.4 * rankdata(np.abs(of_table.t)) / len(effect)),  # ties by the effect
        ("effect", np.abs(effect)),
        ("task_graph", np.abs(model.task_graph_[pairs_of(n)])),
    )
    for name, score in scores:
        row[f"auroc_{name}"] = roc_auc_score(has_product[edge], score[edge]) if has_product.any() else np.nan
    return row


def cohorts(quick: bool, fits: Path | None) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Rows of several kinds, named by what they measure."""
    for cohort in COHORTS:
        yield f"{cohort} seeds", partial(_seeds_row, cohort)
        for what, measure, repeats in (
            ("halves", _halves_row, 2 if quick else 6),
            ("sparse", _sparse_row, 1 if quick else 3),
            ("found again", _found_again_row, 0 if quick else 1),
        ):
            for repeat in range(repeats):
                yield f"{cohort} {what} {repeat}", partial(measure, cohort, repeat)


def _rows(cohort: str) -> tuple[FloatArray, FloatArray]:
    data = load_cohort(cohort, None)
    return data.X.to_numpy(), data.y.to_numpy(dtype=np.float64)


def _halves(n_rows: int, repeat: int) -> tuple[Any, Any]:
    order = np.random.default_rng([14, repeat]).permutation(n_rows)
    return order[: n_rows // 2], order[n_rows // 2 :]


def _pairs(model: PNNRegressor) -> FloatArray:
    return np.asarray(model.task_graph_[pairs_of(len(model.task_graph_))])


def _correlation(first: FloatArray, second: FloatArray) -> float:
    return float(np.corrcoef(first, second)[0, 1])


def _seeds_row(cohort: str) -> Row:
    X, y = _rows(cohort)
    first, second = (PNNRegressor(random_state=seed).fit(X, y) for seed in (0, 1))
    change = [(model.task_precision_ - model.precision_)[pairs_of(X.shape[1])] for model in (first, second)]
    return {
        "edges": _correlation(_pairs(first), _pairs(second)),
        "nodes": _correlation(first.task_nodes_, second.task_nodes_),
        "change_of_the_matrix": _correlation(*change),
    }


def _halves_row(cohort: str, repeat: int) -> Row:
    X, y = _rows(cohort)
    models, ridges = [], []
    for half in _halves(len(X), repeat):
        models.append(PNNRegressor(random_state=repeat).fit(X[half], y[half]))
        ridges.append(RidgeCV(np.logspace(-2, 4, 25)).fit(models[-1].standard_units(X[half]), y[half]).coef_)
    given, p_value = _given_theta_and_nodes(*models)
    return {
        "edges": _correlation(*map(_pairs, models)),
        "nodes": _correlation(*(np.abs(model.task_nodes_) for model in models)),
        "nodes_signed": _correlation(*(model.task_nodes_ for model in models)),
        "ridge": _correlation(*ridges),
        "edges_given_theta_and_nodes": given,
        "given_p": p_value,
    }


def _given_theta_and_nodes(first: PNNRegressor, second: PNNRegressor) -> tuple[float, float]:
    """Rank correlation of edges between two models given |partial correlation| and both columns' importance.

    The p-value relabels the columns of the second model's residuals 999 times.
    """
    n = len(first.task_graph_)
    rows, columns = pairs_of(n)
    left = []
    for model in (first, second):
        importance = np.abs(model.task_nodes_)
        known = [
            np.abs(partial_correlations(model.precision_))[rows, columns],
            importance[rows] + importance[columns],
            importance[rows] * importance[columns],
        ]
        design = np.column_stack([np.ones(len(rows)), *(rankdata(column) for column in known)])
        ranks = rankdata(_pairs(model))
        left.append(ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0])
    whole = np.zeros((n, n))
    whole[rows, columns] = whole[columns, rows] = left[1]
    rng, observed = np.random.default_rng(0), _correlation(*left)
    drawn = []
    for _ in range(999):
        order = rng.permutation(n)
        drawn.append(_correlation(left[0], whole[np.ix_(order, order)][rows, columns]))
    return observed, float((1 + np.sum(np.array(drawn) >= observed)) / 1000)


def _sparse_row(cohort: str, repeat: int) -> Row:
    X, y = _rows(cohort)
    halves, graphs, errors, dense = _halves(len(X), repeat), [], [], []
    for half, other in (halves, halves[::-1]):
        for seed in (0, 1):
            model = PNNRegressor(random_state=seed, predict_on="sparse", l1_scale=9.0).fit(X[half], y[half])
            graphs.append(model.precision_[pairs_of(X.shape[1])] != 0)
            errors.append(float(np.mean(np.abs(model.predict(X[other]) - y[other]))))
        whole = PNNRegressor(random_state=0, l1_scale=9.0).fit(X[half], y[half])
        dense.append(float(np.mean(np.abs(whole.predict(X[other]) - y[other]))))
    return {
        "jaccard_seeds": min(_jaccard(graphs[0], graphs[1]), _jaccard(graphs[2], graphs[3])),
        "jaccard_halves": _jaccard(graphs[0], graphs[2]),
        "zeros": float(1.0 - np.mean([np.mean(graph) for graph in graphs])),
        "mae": float(np.mean(errors)),
        "mae_dense": float(np.mean(dense)),
    }


def _jaccard(first: BoolArray, second: BoolArray) -> float:
    return float((first & second).sum() / max((first | second).sum(), 1))


def _found_again_row(cohort: str, repeat: int) -> Row:
    """Report at q <= 0.05 in one half; found again at q <= 0.1 with the same sign in the other."""
    X, y = _rows(cohort)
    found = []
    for half in _halves(len(X), repeat):
        model = PNNRegressor(random_state=repeat).fit(X[half], y[half])
        found.append(task_evidence(model, X[half], y[half], n_jobs=os.cpu_count(), random_state=repeat))
    row: Row = {"repeatability_edges": float(np.mean([one.repeatability["edges"] for one in found]))}
    for what, sign in (("nodes", "direction"), ("edges", "effect")):
        one, other = (getattr(half, what) for half in found)
        reported = again = 0
        for here, there in ((one, other), (other, one)):
            listed = (here["q_value"] <= 0.05).to_numpy()
            same = np.sign(here[sign]).to_numpy() == np.sign(there[sign]).to_numpy()
            reported += int(listed.sum())
            again += int((listed & same & (there["q_value"] <= 0.1).to_numpy()).sum())
        row |= {f"{what}_reported": reported, f"{what}_found_again": again}
    return row


def timing(quick: bool, fits: Path | None) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Evidence beside default fits, both on two cores."""

    def measured() -> Row:
        X, y = _rows("abide")
        model = PNNRegressor(random_state=0).fit(X, y)
        Parallel(n_jobs=2)(delayed(_default_fit)(X, y, seed) for seed in range(2))  # warm workers
        fits, started = 6 if quick else 20, time.perf_counter()
        Parallel(n_jobs=2)(delayed(_default_fit)(X, y, seed) for seed in range(fits))
        per_fit, started = (time.perf_counter() - started) / fits, time.perf_counter()
        task_evidence(model, X, y, n_permutations=19 if quick else 100, n_jobs=2, random_state=0)
        taken = time.perf_counter() - started
        return {"seconds": taken, "default_fits_101": 101 * per_fit, "ratio": taken / (101 * per_fit)}

    yield "abide", measured


def _default_fit(X: FloatArray, y: FloatArray, seed: int) -> None:
    PNNRegressor(random_state=seed).fit(X, y)


def main() -> None:
    """Measure what the file does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["synthetic", "cohorts", "time"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fits", type=Path, help="folder that remembers the finished fits of ``synthetic``")
    chosen = parser.parse_args()
    rows = {"synthetic": synthetic, "cohorts": cohorts, "time": timing}[chosen.what](chosen.quick, chosen.fits)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    known = {row["name"] for row in csv.DictReader(chosen.out.open())} if chosen.out.exists() else set()
    for name, measure in rows:
        if name in known:
            continue
        for quantity, value in measure().items():
            line = {"name": name, "quantity": quantity, "value": value, "version": versions()["precisionnet"]}
            is_new = not chosen.out.exists()
            with chosen.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(line))
                if is_new:
                    writer.writeheader()
                writer.writerow(line)
        print(name, flush=True)


if __name__ == "__main__":
    main()
