"""What each convention that the paper leaves open is worth: one switch at a time, away from the paper's reading.

    make conventions        (needs PRECISIONNET_DATA; about five minutes on one core, goes on where it was)

Nothing is tuned: one network for all, on the synthetic rows of Figure 2 (sparsity 0.2, five draws) and on three splits
of ABIDE. Writes one row per fit to results/conventions.csv; ``docs/notation.md`` quotes their means.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import PNNRegressor
from precisionnet.datasets import Split
from precisionnet.evaluation.metrics import graph_scores
from precisionnet.evaluation.protocol import make_folds, repeat_seed, target_of
from precisionnet.paper.cohorts import load_cohort
from precisionnet.paper.synthetic import SyntheticSource
from precisionnet.runner.jobs import Job

OUT = Path(__file__).parents[2] / "results" / "conventions.csv"
METHODS = ("joint", "glasso", "sample")
ONLY_JOINT = ("step1", "step2")
NETWORKS: dict[str, dict[str, Any]] = {
    "synthetic": {"n_layers": 2, "n_filters": 8, "order": 3, "l1_scale": 10.0},
    "abide": {"n_layers": 1, "n_filters": 8, "order": 2, "l1_scale": 10.0},
}
REPEATS = {"synthetic": 5, "abide": 3}
COLUMNS = ("table", "convention", "method", "repeat", "mae", "mse", "l1_error", "n_zeros", "n_near_zeros", "seconds")


@dataclass(frozen=True)
class Convention:
    """One switch: parameters of the networks, or of the rows that are drawn."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, Any] = field(default_factory=dict)


CONVENTIONS = (
    Convention("paper's reading"),
    Convention("readout flattened", {"readout": "mlp"}),
    Convention("target standardised", {"standardize_target": True}),
    Convention("shift scaled", {"scale_shift": True}),
    Convention("flattened reading", {"readout": "mlp", "standardize_target": True, "scale_shift": True}),
    Convention("features not scaled", {"standardize": False}),
    Convention("last epoch kept", {"keep_epoch": "last"}),
    Convention("Step 1 as printed", {"step1": "paper"}),
    Convention("Step 2 not symmetrised", {"step2": "plain"}),
    Convention("banded graph", drawn={"graph": "banded"}),
    Convention("condition number 100", drawn={"condition_number": 100.0}),
)


def main() -> None:
    """Measure what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after the fit that ends later than this")
    parser.add_argument("--table", action="store_true", help="print the table of docs/notation.md and stop")
    chosen = parser.parse_args()
    if chosen.table:
        print(markdown(pd.read_csv(OUT)))
        return
    limit = chosen.seconds
    known = set()
    if OUT.exists():
        with OUT.open(newline="") as file:
            known = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    else:
        OUT.write_text(",".join(COLUMNS) + "\n")
    warnings.simplefilter("ignore")
    started = time.process_time()
    for table, convention, method, repeat, split in fits():
        key = (table, convention.name, method, str(repeat))
        if key in known:
            continue
        row = dict(zip(COLUMNS, key, strict=False)) | measure(table, convention, method, repeat, split())
        with OUT.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerow(row)
        if time.process_time() - started > limit:
            return


def fits() -> Iterator[tuple[str, Convention, str, int, Any]]:
    """List every fit: its rows are drawn, or taken, when its turn comes."""
    abide = load_cohort("abide", None)
    folds = make_folds(abide, REPEATS["abide"], 0, task="regression")
    for table, repeats in REPEATS.items():
        for convention in CONVENTIONS:
            if convention.drawn and table != "synthetic":
                continue
            for method in METHODS:
                if method != "joint" and any(name in ONLY_JOINT for name in convention.parameters):
                    continue
                for repeat in range(repeats):
                    if table == "abide":
                        yield table, convention, method, repeat, lambda repeat=repeat: folds[repeat].split(abide)
                    else:
                        drawn = {"graph": "random", "condition_number": 10.0} | convention.drawn
                        source = SyntheticSource(100, 20, 10.0, **drawn)
                        job = Job(method, repeat, repeat_seed(0, repeat), {"sparsity": 0.2})
                        yield table, convention, method, repeat, lambda source=source, job=job: source.split(job)


def measure(table: str, convention: Convention, method: str, repeat: int, split: Split[Any]) -> dict[str, Any]:
    """Fit on training rows, choose the epoch on validation rows, measure on test rows."""
    train, validation, test = split
    network = {name: value for name, value in NETWORKS[table].items() if name != "l1_scale" or method != "sample"}
    model = PNNRegressor(method, recipe="paper", **network, **convention.parameters, random_state=repeat)
    started = time.process_time()
    model.fit(train.X, target_of(train), X_val=validation.X, y_val=target_of(validation))
    error = model.predict(test.X) - target_of(test)
    graph = graph_scores(model.precision_in_units_, getattr(train, "theta_true", None))
    return {
        "mae": round(float(np.abs(error).mean()), 4),
        "mse": round(float((error**2).mean()), 4),
        "l1_error": round(graph["l1_error"], 2) if "l1_error" in graph else "",
        "n_zeros": graph["n_zeros"],
        "n_near_zeros": graph["n_near_zeros"],
        "seconds": round(time.process_time() - started, 2),
    }


def markdown(rows: pd.DataFrame) -> str:
    """Return the table of ``docs/notation.md``: MAE of each method, and zeros of Joint's theta."""
    lines = [
        "| convention | synthetic: Joint / GL / Sample | zeros | ABIDE, years: Joint / GL / Sample | zeros |",
        "|---|---|---|---|---|",
    ]
    for convention in dict.fromkeys(rows["convention"]):
        cells = [str(convention)]
        for table in REPEATS:
            here = rows[(rows["convention"] == convention) & (rows["table"] == table)]
            means = here.groupby("method")[["mae", "n_zeros", "n_near_zeros"]].mean()
            cells.append(" / ".join(f"{means['mae'][m]:.2f}" if m in means.index else "–" for m in METHODS))
            zeros = means.loc["joint"] if "joint" in means.index else None
            cells.append("–" if zeros is None else f"{zeros['n_zeros']:.0f} ({zeros['n_near_zeros']:.0f})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
