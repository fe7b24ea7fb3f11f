"""A graph filter of order 3 on sparse graphs: ours beside PyTorch Geometric's TAGConv, forward and backward.

    python -m benchmarks.scale.pyg           # 1,000 to 20,000 nodes; rows go to results/scale/pyg.csv
    python -m benchmarks.scale.pyg --quick   # small graphs, once each; nothing is written without --out

A symmetric matrix with a diagonal and two edges per node (degree 4 on average), 64 rows of 4 features, 4 filtered
features, single precision, one thread. TAGConv(normalize=False) is the same filter, with the same coefficients; rows
are given to it in the ways that PyTorch Geometric has for many signals on one graph:

``TAGConv, signals``  one list of edges, a tensor with an axis for rows;
``TAGConv, batch``    as many copies of the graph as there are rows, side by side, as its data loaders make them;
``TAGConv, matrix``   the same as one sparse matrix, with compiled products; only for weights that get no gradient.

``weights`` says whether the entries of the matrix are learnt (as theta_task is) or fixed; signals and coefficients get
gradients in both. Everybody has the signals in the memory order of their own. All take turns; ``seconds`` is the
median over the repeats of forward and backward together. ``difference`` is the largest of outputs and gradients from
ours, over the largest entry. ``load`` is the machine's one-minute average: above one, others worked.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import TAGConv

from precisionnet.nn import PolynomialFilter
from precisionnet.nn.sparse_shift import SparseShift
from precisionnet.sparse_matrices import Support

OUT = Path(__file__).parents[2] / "results" / "scale" / "pyg.csv"
SIZES, QUICK_SIZES = (1_000, 2_000, 5_000, 10_000, 20_000), (50, 100)
EDGES_PER_NODE, ORDER, FEATURES, ROWS, REPEATS = 2, 3, 4, 64, 7
FIELDS = (
    "who", "weights", "n_nodes", "n_edges", "n_rows", "forward_seconds", "backward_seconds", "seconds", "low", "high",
    "difference", "repeats", "load",
)  # fmt: skip

# PyTorch says with every first sparse matrix that these are new, and that nothing checks them.
warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")

Step = Callable[[], tuple[float, float, list[Tensor]]]
"""Forward and backward once: seconds of each; output, and gradients of signals, coefficients and learnt weights."""


def graph(n: int) -> tuple[Support, Tensor]:
    """A random graph and the values of a matrix on it whose norm is at most about one."""
    rng = np.random.default_rng(n)
    pairs = rng.integers(0, n, size=(EDGES_PER_NODE * n, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    support = Support(n, pairs[:, 0], pairs[:, 1])
    values = rng.uniform(-0.5, 0.5, support.n_slots) / EDGES_PER_NODE
    return support, torch.from_numpy(values.astype(np.float32))


def steps(n: int, n_rows: int, learnt: bool) -> tuple[Support, dict[str, Step]]:
    """Return the graph and everybody's step on it."""
    support, values = graph(n)
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(n_rows, n, FEATURES, generator=generator)
    towards = torch.randn(n_rows, n, FEATURES, generator=generator)
    bank = PolynomialFilter(FEATURES, FEATURES, ORDER)
    found: dict[str, Step] = {"precisionnet": _ours(bank, support, values, x, towards, learnt)}
    for layout in ("signals", "batch") if learnt else ("signals", "batch", "matrix"):
        found[f"TAGConv, {layout}"] = _tag(bank, support, values, x, towards, learnt, layout)
    return support, found


def _ours(bank: PolynomialFilter, support: Support, values: Tensor, x: Tensor, towards: Tensor, learnt: bool) -> Step:
    values = values.clone().requires_grad_(learnt)
    x, towards = (_features_first(signals) for signals in (x, towards))
    x.requires_grad_()

    def forward() -> Tensor:
        output: Tensor = bank(x, SparseShift(values, support))
        return output

    return lambda: _timed(forward, towards, [x, bank.weight, *[values] * learnt])


def _features_first(signals: Tensor) -> Tensor:
    """The same numbers in the order that our layers have them in."""
    return signals.permute(2, 1, 0).contiguous().permute(2, 1, 0)


def _tag(
    bank: PolynomialFilter, support: Support, values: Tensor, x: Tensor, towards: Tensor, learnt: bool, layout: str
) -> Step:
    n_rows, n, _ = x.shape
    conv = TAGConv(FEATURES, FEATURES, ORDER, bias=False, normalize=False)
    with torch.no_grad():
        for linear, weight in zip(conv.lins, bank.weight, strict=True):
            linear.weight.copy_(weight.T)
    start, column, slot = (torch.from_numpy(part.astype(np.int64)) for part in support.entries)
    edges = torch.stack([column, torch.repeat_interleave(torch.arange(n), start.diff())])
    values = values.clone().requires_grad_(learnt)
    x = x.clone().requires_grad_()
    if layout != "signals":  # copies of the graph are made once, as a data loader would
        first = (torch.arange(n_rows) * n).repeat_interleave(edges.shape[1])
        edges, slot = edges.repeat(1, n_rows) + first, slot.repeat(n_rows)
    if layout == "matrix":
        size = (n_rows * n, n_rows * n)
        matrix = torch.sparse_coo_tensor(edges.flip(0), values[slot], size).coalesce().to_sparse_csr()

    def forward() -> Tensor:
        if layout == "signals":
            output: Tensor = conv(x, edges, values[slot])
            return output
        flat = x.flatten(0, 1)
        output = conv(flat, matrix) if layout == "matrix" else conv(flat, edges, values[slot])
        return output.view(n_rows, n, -1)

    weights = [linear.weight for linear in conv.lins]

    def step() -> tuple[float, float, list[Tensor]]:
        forward_seconds, backward_seconds, (output, of_x, *rest) = _timed(
            forward, towards, [x, *weights, *[values] * learnt]
        )
        of_weights = torch.stack([gradient.T for gradient in rest[: ORDER + 1]])
        return forward_seconds, backward_seconds, [output, of_x, of_weights, *rest[ORDER + 1 :]]

    return step


def _timed(forward: Callable[[], Tensor], towards: Tensor, leaves: Sequence[Tensor]) -> tuple[float, float, list[Any]]:
    started = time.perf_counter()
    output = forward()
    between = time.perf_counter()
    gradients = torch.autograd.grad(output, leaves, towards)
    ended = time.perf_counter()
    return between - started, ended - between, [output.detach(), *gradients]


def measure(n: int, n_rows: int, learnt: bool, repeats: int) -> list[dict[str, Any]]:
    """Time everybody in turns, after once without a clock."""
    load = os.getloadavg()[0]
    support, everybody = steps(n, n_rows, learnt)
    expected = everybody["precisionnet"]()[2]
    difference = {}
    for who, step in everybody.items():
        difference[who] = max(
            float((given - right).abs().max() / right.abs().max())
            for given, right in zip(step()[2], expected, strict=True)
        )
    seconds: dict[str, list[tuple[float, float]]] = {who: [] for who in everybody}
    for repeat in range(repeats):
        for who in list(everybody) if repeat % 2 else reversed(everybody):
            seconds[who].append(everybody[who]()[:2])
    rows = []
    for who, taken in seconds.items():
        both = [sum(one) for one in taken]
        figures = {
            "forward_seconds": median(one[0] for one in taken),
            "backward_seconds": median(one[1] for one in taken),
            "seconds": median(both),
            "low": min(both),
            "high": max(both),
        }
        rows.append(
            {
                "who": who,
                "weights": "learnt" if learnt else "fixed",
                "n_nodes": n,
                "n_edges": support.n_edges,
                "n_rows": n_rows,
                **{name: f"{figure:.3g}" for name, figure in figures.items()},
                "difference": f"{difference[who]:.1e}",
                "repeats": repeats,
                "load": f"{load:.1f}",
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write, size by size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small graphs, to see that it runs")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes")
    parser.add_argument("--repeats", type=int, help="how often each is timed")
    parser.add_argument("--out", type=Path, help="the csv file; results/scale/pyg.csv unless --quick")
    asked = parser.parse_args(arguments)
    out = asked.out or (None if asked.quick else OUT)
    sizes = asked.sizes or (QUICK_SIZES if asked.quick else SIZES)
    repeats = asked.repeats or (1 if asked.quick else REPEATS)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    try:
        for n in sizes:
            for learnt in (False, True):
                found = measure(n, 4 if asked.quick else ROWS, learnt, repeats)
                for row in found:
                    print(row, flush=True)
                rows += found
            if out is not None:  # what is measured is kept if a larger graph has no room
                with out.open("w", encoding="utf-8", newline="") as lines:
                    writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    main()
