"""Are the tests of ``compare_graphs`` honest, do they find what differs, and how long do they take?

    python -m benchmarks.evidence.groups --out results/evidence/groups.csv            about half an hour on one core
    python -m benchmarks.evidence.groups --out results/evidence/groups.csv --quick    a minute

One row per block of draws (``BLOCK`` tables drawn, each compared once). Interrupted, it goes on with the blocks that
are missing. ``python -m benchmarks.evidence.groups --out FILE --show`` prints the rates over all rows of a design.

    structure, global_strength   share of draws with p <= 0.05
    edges, nodes                 share of p-values <= 0.05 among pairs and nodes that do not differ
    any_edge, any_node           share of draws with q <= 0.05 for a pair or node that does not differ
    covered_edges, covered_nodes share of 95 % intervals that hold the true difference, over all pairs and nodes
    covered_planted              the same over pairs that differ
    covered_strength             share of draws whose interval of global strength holds the truth
    found, false                 share of planted pairs with q <= 0.1; mean share of false ones among
                                 those listed (0 where none is)

Shrunk partial correlations have no intervals: there ``covered`` is left empty.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import __version__
from precisionnet.evidence import compare_graphs

BLOCK, BLOCKS, QUICK_BLOCKS = 50, 20, 1
N_PERMUTATIONS = 99
PLANTED_BLOCKS = 4
COLUMNS = (
    "kind", "design", "block", "draws", "structure", "global_strength", "edges", "nodes", "any_edge", "any_node",
    "covered_edges", "covered_nodes", "covered_planted", "covered_strength", "found", "false",
    "seconds", "seed", "version",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A table, what else goes into the comparison, and the truth."""

    X: np.ndarray
    labels: np.ndarray
    beside: dict[str, Any]
    r: tuple[np.ndarray, np.ndarray]
    """True partial correlations of both groups."""


def truth(n: int, rng: np.random.Generator, edges_per_node: int = 3, common: float = 0.0) -> np.ndarray:
    """A precision matrix on a random graph with partial correlations of 0.1 to 0.4, of either sign."""
    i, j = np.triu_indices(n, 1)
    kept = rng.choice(len(i), n * edges_per_node // 2, replace=False)
    theta = np.zeros((n, n))
    theta[i[kept], j[kept]] = rng.uniform(0.1, 0.4, len(kept)) * rng.choice([-1.0, 1.0], len(kept))
    theta += theta.T
    return theta * min(1.0, 0.9 / np.abs(np.linalg.eigvalsh(theta)).max()) + np.eye(n)


def changed(theta: np.ndarray, rng: np.random.Generator, n_edges: int) -> np.ndarray:
    """The same graph without its ``n_edges`` strongest edges."""
    i, j = np.triu_indices(len(theta), 1)
    gone = np.argsort(-np.abs(theta[i, j]))[:n_edges]
    other = theta.copy()
    other[i[gone], j[gone]] = other[j[gone], i[gone]] = 0.0
    return other


def weaker(theta: np.ndarray, factor: float) -> np.ndarray:
    """The same graph with weaker edges."""
    other = factor * theta
    np.fill_diagonal(other, np.diag(theta))
    return other


def partial(theta: np.ndarray) -> np.ndarray:
    """Partial correlations of a precision matrix."""
    deviation = np.sqrt(np.diag(theta))
    return -theta / np.outer(deviation, deviation) + np.eye(len(theta))


def rows_of(theta: np.ndarray, n: int, rng: np.random.Generator, degrees: float = np.inf) -> np.ndarray:
    """Gaussian rows, or rows of a multivariate t distribution."""
    rows = rng.standard_normal((n, len(theta))) @ np.linalg.cholesky(np.linalg.inv(theta)).T
    return rows if np.isinf(degrees) else rows * np.sqrt((degrees - 2.0) / rng.chisquare(degrees, (n, 1)))


def two(
    n: int, sizes: tuple[int, int], rng: np.random.Generator, *,
    degrees: tuple[float, float] = (np.inf, np.inf), scale: bool = False, other: Any = None,
) -> Drawn:  # fmt: skip
    """Two groups of people with one row each."""
    theta = truth(n, rng)
    second = theta if other is None else other(theta, rng)
    parts = [rows_of(matrix, size, rng, t) for matrix, size, t in zip((theta, second), sizes, degrees, strict=True)]
    if scale:
        parts[1] = parts[1] * rng.uniform(0.3, 3.0, n) + rng.normal(size=n)
    return Drawn(np.vstack(parts), np.repeat(["a", "b"], sizes), {}, (partial(theta), partial(second)))


def paired(n: int, people: int, rng: np.random.Generator, *, other: Any = None, alike: float = 0.6) -> Drawn:
    """Everybody in both groups, with rows that are alike."""
    theta = truth(n, rng)
    second = theta if other is None else other(theta, rng)
    shared = rng.standard_normal((people, n))
    parts = []
    for matrix in (theta, second):
        own = np.sqrt(alike) * shared + np.sqrt(1.0 - alike) * rng.standard_normal((people, n))
        parts.append(own @ np.linalg.cholesky(np.linalg.inv(matrix)).T)
    beside = {"paired_by": np.tile(np.arange(people), 2)}
    return Drawn(np.vstack(parts), np.repeat(["a", "b"], people), beside, (partial(theta), partial(second)))


def clustered(n: int, sizes: tuple[int, int], rng: np.random.Generator, *, alike: float = 0.6) -> Drawn:
    """People with one to four rows that are alike; a group's people are its own."""
    theta = truth(n, rng)
    person = np.repeat(np.arange(sum(sizes)), rng.integers(1, 5, sum(sizes)))
    shared = rows_of(theta, sum(sizes), rng)
    X = np.sqrt(alike) * shared[person] + np.sqrt(1.0 - alike) * rows_of(theta, len(person), rng)
    return Drawn(X, np.where(person < sizes[0], "a", "b"), {"groups": person}, (partial(theta), partial(theta)))


def with_covariates(n: int, sizes: tuple[int, int], rng: np.random.Generator) -> Drawn:
    """Age, sex and site differ between the groups and move the columns."""
    drawn = two(n, sizes, rng)
    b = drawn.labels == "b"
    age = rng.normal(np.where(b, 45.0, 35.0), 10.0)
    sex = rng.random(len(b)) < np.where(b, 0.7, 0.4)
    site = np.zeros(len(b), dtype=int)
    while np.bincount(site, minlength=6).min() < 2:  # a site with one row is refused
        site = np.where(rng.random(len(b)) < 0.6, np.where(b, 3, 0), rng.integers(0, 6, len(b)))
    X = drawn.X + 0.1 * age[:, None] * rng.normal(size=n) + np.outer(sex, rng.normal(size=n))
    X = X + rng.normal(size=(6, n))[site]
    people = pd.DataFrame({"age": age, "sex": np.where(sex, "F", "M"), "site": [f"site {k}" for k in site]})
    return Drawn(X, drawn.labels, {"covariates": people}, drawn.r)


def three_edges(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three edges gone."""
    return changed(theta, rng, 3)


def half_as_strong(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All edges half as strong."""
    return weaker(theta, 0.5)


NULL: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "equal 60:60, N=10": lambda rng: two(10, (60, 60), rng),
    "unequal 90:30, N=10": lambda rng: two(10, (90, 30), rng),
    "just enough 40:40, N=20": lambda rng: two(20, (40, 40), rng),
    "unequal 160:40, N=20": lambda rng: two(20, (160, 40), rng),
    "other units 60:30, N=10": lambda rng: two(10, (60, 30), rng, scale=True),
    "paired 40, N=10": lambda rng: paired(10, 40, rng),
    "clustered 40:25, N=10": lambda rng: clustered(10, (40, 25), rng),
    "covariates 60:60, N=10": lambda rng: with_covariates(10, (60, 60), rng),
    "covariates 90:40, N=10": lambda rng: with_covariates(10, (90, 40), rng),
    "heavy tails (t4) 60:60, N=10": lambda rng: two(10, (60, 60), rng, degrees=(4.0, 4.0)),
    "heavy tails (t4) 90:30, N=10": lambda rng: two(10, (90, 30), rng, degrees=(4.0, 4.0)),
    "other tails (Gauss, t5) 90:60, N=10": lambda rng: two(10, (90, 60), rng, degrees=(np.inf, 5.0)),
    "fewer rows than columns 15:15, N=20": lambda rng: two(20, (15, 15), rng),
    "fewer rows than columns 40:15, N=20": lambda rng: two(20, (40, 15), rng),
    "six people each 6:6, N=8": lambda rng: two(8, (6, 6), rng),
    "fewer people than columns, paired 15, N=20": lambda rng: paired(20, 15, rng),
}
FIRST = (
    "equal 60:60, N=10",
    "unequal 90:30, N=10",
    "paired 40, N=10",
    "clustered 40:25, N=10",
    "covariates 60:60, N=10",
    "heavy tails (t4) 90:30, N=10",
    "fewer rows than columns 15:15, N=20",
    "fewer rows than columns 40:15, N=20",
)
"""Measured before the others."""
PLANTED: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "three edges gone 100:100, N=10": lambda rng: two(10, (100, 100), rng, other=three_edges),
    "three edges gone 300:100, N=10": lambda rng: two(10, (300, 100), rng, other=three_edges),
    "three edges gone 300:300, N=30": lambda rng: two(30, (300, 300), rng, other=three_edges),
    "three edges gone, t4 200:200, N=10": lambda rng: two(10, (200, 200), rng, degrees=(4.0, 4.0), other=three_edges),
    "three edges gone, paired 100, N=10": lambda rng: paired(10, 100, rng, other=three_edges),
    "half as strong 100:100, N=10": lambda rng: two(10, (100, 100), rng, other=half_as_strong),
    "half as strong 300:100, N=10": lambda rng: two(10, (300, 100), rng, other=half_as_strong),
    "three edges gone 40:40, N=30": lambda rng: two(30, (40, 40), rng, other=three_edges),
    "half as strong 40:40, N=30": lambda rng: two(30, (40, 40), rng, other=half_as_strong),
}


def block_row(kind: str, design: str, draw: Callable[[np.random.Generator], Drawn], block: int) -> dict[str, Any]:
    """Draw ``BLOCK`` tables, compare each, and average what came out."""
    started, seen = time.perf_counter(), []
    for one in range(BLOCK):
        seed = block * BLOCK + one
        drawn = draw(np.random.default_rng(seed))
        found = compare_graphs(drawn.X, drawn.labels, n_permutations=N_PERMUTATIONS, random_state=seed, **drawn.beside)
        seen.append(judged(found, drawn))
    means = pd.DataFrame(seen)
    row = {name: float(value) for name, value in means.mean().items()}
    seconds = time.perf_counter() - started
    return row | {"kind": kind, "design": design, "block": block, "draws": BLOCK, "seconds": seconds}


def judged(found: Any, drawn: Drawn) -> dict[str, float]:
    """What one comparison said beside the truth."""
    pairs = np.triu_indices(drawn.X.shape[1], 1)
    true = (drawn.r[0] - drawn.r[1])[pairs]
    planted, listed = np.abs(true) > 1e-9, found.edges["q_value"].to_numpy() <= 0.1
    signs = np.zeros_like(drawn.r[0])
    signs[pairs] = found.edges["common"]
    signs += signs.T
    true_nodes = np.sum(signs * (drawn.r[0] - drawn.r[1]), axis=1)
    same_nodes = np.abs(true_nodes) < 1e-9
    tests = found.tests.set_index("test")["p_value"]
    says = {
        "structure": tests["structure"] <= 0.05,
        "global_strength": tests["global strength"] <= 0.05,
        "edges": np.mean(found.edges["p_value"][~planted] <= 0.05),
        "nodes": np.mean(found.nodes["p_value"][same_nodes] <= 0.05) if same_nodes.any() else np.nan,
        "any_edge": bool((found.edges["q_value"][~planted] <= 0.05).any()),
        "any_node": bool((found.nodes["q_value"][same_nodes] <= 0.05).any()),
        "false": (listed & ~planted).sum() / max(listed.sum(), 1),
        "found": float(np.mean(listed[planted])) if planted.any() else np.nan,
    }
    if found.shrinkage == 0.0:
        inside = ((found.edges["ci_low"] <= true) & (true <= found.edges["ci_high"])).to_numpy()
        says["covered_edges"] = np.mean(inside)
        says["covered_nodes"] = np.mean((found.nodes["ci_low"] <= true_nodes) & (true_nodes <= found.nodes["ci_high"]))
        strength, total = found.tests.set_index("test").loc["global strength"], 0.5 * true_nodes.sum()
        says["covered_strength"] = strength["ci_low"] <= total <= strength["ci_high"]
        says["covered_planted"] = np.mean(inside[planted]) if planted.any() else np.nan
    return {name: float(value) for name, value in says.items()}


def timing_row(n_jobs: int, quick: bool, **beside: Any) -> dict[str, Any]:
    """68 columns, 250 rows a group, 1,000 permutations."""
    rng = np.random.default_rng(0)
    X, labels = rows_of(truth(68, rng), 500, rng), np.repeat(["a", "b"], 250)
    started = time.perf_counter()
    compare_graphs(X, labels, n_permutations=50 if quick else 1000, n_jobs=n_jobs, random_state=0, **beside)
    return {"seconds": time.perf_counter() - started}


TIMED: dict[str, dict[str, Any]] = {
    "N=68, 250:250, 1000 permutations, one core": {"n_jobs": 1},
    "N=68, 250:250, 1000 permutations, two cores": {"n_jobs": 2},
    "the same, paired, two cores": {"n_jobs": 2, "paired_by": np.tile(np.arange(250), 2)},
}


def todo(quick: bool) -> list[tuple[str, str, int]]:
    """List all rows of a run, in order."""
    blocks = QUICK_BLOCKS if quick else BLOCKS
    timed = [("timing", design, 0) for design in TIMED]
    planted = [("planted", design, block) for block in range(min(blocks, PLANTED_BLOCKS)) for design in PLANTED]
    first, rest = [design for design in NULL if design in FIRST], [design for design in NULL if design not in FIRST]
    same = [("same", design, block) for part in (first, rest) for block in range(blocks) for design in part]
    return timed + planted + same


def show(path: Path) -> None:
    """Print each design's rates over its blocks."""
    rows = pd.read_csv(path)
    numbers = [name for name in COLUMNS if name not in ("kind", "design", "block", "draws", "seed", "version")]
    table = rows.groupby(["kind", "design"], sort=False)[numbers].mean()
    table.insert(0, "draws", rows.groupby(["kind", "design"], sort=False)["draws"].sum())
    with pd.option_context("display.width", 250, "display.max_columns", None, "display.max_colwidth", 60):
        print(table.round(3).reset_index("kind", drop=True))


def main() -> None:
    """Measure what is missing in the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", default="", help="part of a design's name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if options.out.exists():
        done = {(row.kind, row.design, row.block) for row in pd.read_csv(options.out).itertuples()}
    for kind, design, block in [] if options.show else todo(options.quick):
        if (kind, design, block) in done or options.only not in design:
            continue
        if kind == "timing":
            row = {"kind": kind, "design": design, "block": 0, "draws": 1} | timing_row(
                quick=options.quick, **TIMED[design]
            )
        else:
            row = block_row(kind, design, (NULL | PLANTED)[design], block)
        row |= {"seed": block * BLOCK, "version": __version__}
        fresh = not options.out.exists()
        with options.out.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(
                {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
            )
    show(options.out)


if __name__ == "__main__":
    main()
