"""``precisionnet demo``: the main job on a real table that ships with scikit-learn, and on the paper's recipe."""

from __future__ import annotations

import time
from pathlib import Path

from sklearn.datasets import load_diabetes

from precisionnet.cli import console
from precisionnet.cli.fit import fit_and_write, print_result
from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.datasets.checks import check_dataset


def run_demo(out: Path) -> None:
    """Two fits, two reports."""
    started = time.perf_counter()
    real = load_diabetes(as_frame=True, scaled=False)
    diabetes = Dataset(real.data, real.target.rename("progression"))
    drawn = make_gaussian_regression(n_samples=200, n_features=20, sparsity=0.2, random_state=0)
    jobs: dict[str, tuple[str, Dataset]] = {
        "diabetes": ("442 patients, ten measurements, disease progression after a year", diabetes),
        "synthetic": ("the paper's recipe: Gaussian rows from a sparse precision, a linear target", drawn),
    }
    for name, (what, data) in jobs.items():
        console.say(f"== {name}: {what}")
        findings = check_dataset(data, "regression")
        result = fit_and_write(data, findings, "regression", out / name, 0, 0.2, {"method": "joint"}, f"{name} (demo)")
        print_result(result, out / name)
        if name == "synthetic":
            found, true = result.model.precision_ != 0, drawn.theta_true != 0
            edges = true.sum() - len(true)
            hit = (found & true).sum() - len(true)
            false = (found & ~true).sum()
            console.say(f"Of the {edges // 2} true edges, {hit // 2} were found; {false // 2} found are not true.")
        console.say("")
    console.say(f"Done in {time.perf_counter() - started:.0f} s. Open {out / 'diabetes' / 'report.html'} in a browser.")
