"""Do the intervals of ``edge_inference`` cover? Seven families of graphs, rows from N/2 to 20 N, three distributions.

    python -m benchmarks.evidence.coverage --out results/evidence/coverage.csv [--quick]

A row is one cell: family, columns N, rows T, distribution. Of all draws together it has the method that was used and
whether it claims coverage, the share of intervals at 95 % that hold the true partial correlation (true edges and zeros
apart, with Monte Carlo standard errors over draws), the realised false discovery rate and the power at q <= 0.1, and
the area under ROC of true edges by p-value (by selection frequency, where there is no p-value). A cell that is in the
file is not drawn again. A refusal is a row, too.

Every draw has a graph of its own. Distributions: "gauss"; "t5", multivariate t with 5 degrees of freedom (one radius
for a row: heavy tails in all columns at once); "t5_noise", a linear mixture of independent t variables with 5 degrees
of freedom (not elliptical). ``oracle_auroc`` is what a normal estimate with the variance (1 - rho^2)^2 / T of known
neighbours would have: no unbiased estimate of Gaussian rows does better.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from precisionnet.datasets import make_sparse_precision
from precisionnet.errors import InputError
from precisionnet.evidence import edge_inference
from precisionnet.precision import partial_correlations
from precisionnet.types import FloatArray
from precisionnet.versions import versions

FAMILIES = ("random", "chain", "banded", "hub", "block", "small_world", "scale_free")
DISTRIBUTIONS = ("gauss", "t5", "t5_noise")
RATIOS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
SIZES = {20: (100, DISTRIBUTIONS), 40: (40, DISTRIBUTIONS[:2])}
"""Columns; draws in each cell, and distributions."""
TASK_CELLS = [(n, t) for n in (20, 40, 60) for t in (200, 500, 1000)]
"""Columns and rows of the synthetic tasks, for the area under ROC."""
COLUMNS = [
    "family",
    "n_columns",
    "n_rows",
    "distribution",
    "n_draws",
    "seed",
    "method",
    "claims_coverage",
    "coverage_edges",
    "coverage_edges_se",
    "coverage_zeros",
    "coverage_zeros_se",
    "fdr",
    "fdr_se",
    "power",
    "auroc",
    "oracle_auroc",
    "median_width",
    "seconds",
    "versions",
]


def main(out: Path, *, quick: bool = False) -> None:
    """Draw every cell that is not in the file yet, and append its row."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if not out.exists():
        out.write_text(",".join(COLUMNS) + "\n")
    with out.open(newline="") as file:
        done = {tuple(row[name] for name in COLUMNS[:5]) for row in csv.DictReader(file)}
    for family, n, t, distribution, draws in cells(quick):
        if (family, str(n), str(t), distribution, str(draws)) in done:
            continue
        row = measure(family, n, t, distribution, draws)
        with out.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
        shown = (
            f"{name}={row.get(name, '')}" for name in ("method", "coverage_edges", "coverage_zeros", "fdr", "auroc")
        )
        print(family, n, t, distribution, *shown, flush=True)


def cells(quick: bool) -> Iterator[tuple[str, int, int, str, int]]:
    """Family, columns, rows, distribution and number of draws of each cell."""
    if quick:
        for family in FAMILIES:
            for ratio in (1.0, 5.0):
                for distribution in DISTRIBUTIONS[:2]:
                    yield family, 10, int(20 * ratio), distribution, 20
        return
    for n, (draws, distributions) in SIZES.items():
        for ratio in RATIOS:
            for distribution in distributions:
                for family in FAMILIES:
                    yield family, n, int(ratio * n), distribution, draws
    for n, t in TASK_CELLS:
        for family in FAMILIES:
            yield family, n, t, "gauss", 20


def measure(family: str, n: int, t: int, distribution: str, draws: int, seed: int = 0) -> dict[str, Any]:
    """One row."""
    started = time.perf_counter()
    cell = [seed, FAMILIES.index(family), n, t, DISTRIBUTIONS.index(distribution)]
    row: dict[str, Any] = {
        "family": family,
        "n_columns": n,
        "n_rows": t,
        "distribution": distribution,
        "n_draws": draws,
        "seed": seed,
        "versions": " ".join(f"{name}={number}" for name, number in versions().items() if name != "torch"),
    }
    found = []
    for draw in range(draws):
        rng = np.random.default_rng([*cell, draw])
        theta = draw_precision(family, n, rng)
        X = draw_rows(theta, t, distribution, rng)
        try:
            result = edge_inference(X, random_state=draw)
        except InputError:
            return row | {"method": "refused", "claims_coverage": False}
        row |= {"method": result.method, "claims_coverage": result.claims_coverage}
        found.append(judge(theta, result.edges, t))
    values = {name: np.array([one[name] for one in found]) for name in found[0]}
    for name, value in values.items():
        known = value[~np.isnan(value)]
        row[name] = f"{known.mean():.4f}" if len(known) else ""
        if f"{name}_se" in COLUMNS:
            row[f"{name}_se"] = f"{known.std(ddof=1) / np.sqrt(len(known)):.4f}" if len(known) > 1 else ""
    return row | {"seconds": f"{time.perf_counter() - started:.2f}"}


def draw_precision(family: str, n: int, rng: np.random.Generator) -> FloatArray:
    """A precision matrix of the family with the condition number 10."""
    if family == "scale_free":  # a tree grown by preferential attachment
        edges = nx.barabasi_albert_graph(n, 1, seed=int(rng.integers(2**31))).edges
        return make_sparse_precision(n, None, rng, graph=np.sort(np.array(edges), axis=1))
    return make_sparse_precision(n, None, rng, graph=family)


def draw_rows(theta: FloatArray, t: int, distribution: str, rng: np.random.Generator) -> FloatArray:
    """Rows whose covariance is proportional to the inverse of ``theta``."""
    root = np.linalg.cholesky(np.linalg.inv(theta))
    if distribution == "t5_noise":
        return rng.standard_t(5, size=(t, len(theta))) @ root.T
    X = rng.standard_normal((t, len(theta))) @ root.T
    return X / np.sqrt(rng.chisquare(5, size=(t, 1)) / 5) if distribution == "t5" else X


def judge(theta: FloatArray, edges: Any, t: int) -> dict[str, float]:
    """What one draw shows; NaN where there is nothing to judge."""
    upper = np.triu_indices(len(theta), 1)
    truth = partial_correlations(theta)[upper]
    joined = theta[upper] != 0.0
    low, high = edges["ci_low"].to_numpy(), edges["ci_high"].to_numpy()
    covered = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
    surprise = -edges["p_value"].to_numpy()
    has_p = not np.isnan(surprise).any()
    score = surprise if has_p else edges["selection_frequency"].to_numpy()
    sure = edges["q_value"].to_numpy() <= 0.1
    both = 0 < joined.sum() < len(joined)
    return {
        "coverage_edges": float(covered[joined].mean()) if joined.any() else np.nan,
        "coverage_zeros": float(covered[~joined].mean()) if not joined.all() else np.nan,
        "fdr": float((sure & ~joined).sum() / max(1, sure.sum())) if has_p else np.nan,
        "power": float(sure[joined].mean()) if has_p and joined.any() else np.nan,
        "auroc": float(roc_auc_score(joined, score)) if both else np.nan,
        "oracle_auroc": oracle_auroc(truth[joined], t) if both else np.nan,
        "median_width": float(np.median(high - low)) if has_p else np.nan,
    }


def oracle_auroc(rho: FloatArray, t: int) -> float:
    """Mean over edges of P(|N(z sqrt(t), 1)| > |N(0, 1)|)."""
    grid = np.linspace(0.0, 8.0, 2001)
    weight = 2.0 * stats.norm.pdf(grid) * (grid[1] - grid[0])
    weight[0] *= 0.5
    mean = np.arctanh(rho)[:, None] * np.sqrt(t)
    return float(((stats.norm.sf(grid - mean) + stats.norm.cdf(-grid - mean)) @ weight).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/evidence/coverage.csv"))
    parser.add_argument("--quick", action="store_true", help="a few small cells, seconds")
    arguments = parser.parse_args()
    main(arguments.out, quick=arguments.quick)
