"""Ten thousand variables: seconds and peak memory of a fresh process that loads C and solves.

Drawing C, finding the penalty and proving the gap are processes of their own. On Linux a process inherits the peak
memory of the one that started it: that one (``run.py``) stays small, and nothing is subtracted from what is reported.

    python -m benchmarks.precision.large make|solve|check FOLDER NAME N        (started by ``run.py``)
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.precision.graphs import DEGREE, sample_correlation, sparse_precision
from benchmarks.precision.measure import CERTIFIED, inversion_seconds, relative_gap
from benchmarks.precision.problems import rule_penalty, true_sparsity_penalty
from benchmarks.precision.supervise import run_module

SIZE, QUICK_SIZE = 10_000, 300
COMPILING_SIZE = 4200
"""Large enough for every kernel that a large problem uses, the single-precision ones too."""
NAMES = "large_rule", "large_true"


def measure_large(n: int, name: str) -> dict[str, Any]:
    """Seconds, peak gigabytes, the gap, and the yardstick."""
    with tempfile.TemporaryDirectory() as folder:
        if n >= COMPILING_SIZE:
            run_module("large", "make", folder, "compile", str(COMPILING_SIZE), threads=True)
            run_module("large", "solve", folder, "compile", "0")
        run_module("large", "make", folder, name, str(n), threads=True)
        solved = run_module("large", "solve", folder, name, str(n))
        return solved | run_module("large", "check", folder, name, str(n), threads=True)


def make(folder: Path, name: str, n: int) -> dict[str, Any]:
    """A covariance and its penalty, to files."""
    if name == "compile":
        emp_cov, l1 = 0.5 ** np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n)))), 0.2
    else:
        rng = np.random.default_rng(n)
        emp_cov, l1 = sample_correlation(sparse_precision(n, rng), 2 * n, rng), rule_penalty(n, 2 * n)
    if name == "large_true":
        l1 = true_sparsity_penalty(emp_cov, DEGREE * n // 2, slack=0.03, tol=1e-3)
    np.save(folder / "emp_cov.npy", emp_cov)
    (folder / "l1").write_text(repr(l1), encoding="utf-8")
    return {}


def solve(folder: Path, yardstick: int) -> dict[str, Any]:
    """The one that is measured."""
    from precisionnet.precision import graphical_lasso

    emp_cov = np.load(folder / "emp_cov.npy")
    l1 = float((folder / "l1").read_text(encoding="utf-8"))
    started = time.perf_counter()
    theta = graphical_lasso(emp_cov, l1, tol=CERTIFIED).precision
    seconds = time.perf_counter() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    sparse.save_npz(folder / "theta.npz", sparse.csr_array(theta), compressed=False)
    n_edges = int(np.count_nonzero(theta) - len(theta)) // 2
    said = {"seconds": seconds, "gigabytes": gigabytes, "n_edges": n_edges, "l1": l1}
    del emp_cov, theta
    return said | {"inversion": inversion_seconds(yardstick)} if yardstick else said


def check(folder: Path) -> dict[str, Any]:
    """The gap of what was saved."""
    theta = sparse.load_npz(folder / "theta.npz").toarray()
    l1 = float((folder / "l1").read_text(encoding="utf-8"))
    return {"gap": relative_gap(theta, np.load(folder / "emp_cov.npy"), l1)}


def main() -> None:
    """One step."""
    step, folder, name, n = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    said = make(folder, name, n) if step == "make" else solve(folder, n) if step == "solve" else check(folder)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
