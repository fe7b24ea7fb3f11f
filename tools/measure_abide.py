"""Age from cortical thickness on ABIDE: every method with the paper's recipe in the flattened reading, ten splits.

    make results        (needs PRECISIONNET_DATA; about five minutes on one core)

Each split holds out a fifth of the rows; the networks set a quarter of the rest aside to choose their epoch (60/20/20).
Nothing is tuned. Writes results/abide_defaults.csv, which docs/results.md quotes.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.progress import track

from precisionnet import PNNRegressor
from precisionnet.datasets import fetch_abide
from precisionnet.evaluation.baselines import tuned_baseline
from precisionnet.paper.readings import CONVENTIONS
from precisionnet.versions import versions

ROOT = Path(__file__).parents[1]
SPLITS = 10
METHODS = ("joint", "naive", "glasso", "sample", "vnn")
FLATTENED = CONVENTIONS["flattened"]


def main() -> None:
    """Measure and write."""
    abide = fetch_abide()
    X, y = abide.X, abide.y
    rows = []
    for split in track(range(SPLITS), description="splits"):
        order = np.random.default_rng(split).permutation(len(X))
        seen, test = order[: int(0.8 * len(X))], order[int(0.8 * len(X)) :]
        for name in (*METHODS, "ridge", "median"):
            started = time.perf_counter()
            if name in METHODS:
                model = PNNRegressor(name, recipe="paper", **FLATTENED, random_state=split).fit(
                    X.iloc[seen], y.iloc[seen]
                )
            else:
                model = tuned_baseline(name, abide.take(seen), "regression", split)
            seconds = time.perf_counter() - started
            error = np.abs(model.predict(X.iloc[test]) - y.iloc[test])
            zeros = int((model.precision_ == 0).sum()) if hasattr(model, "precision_") and name != "vnn" else None
            rows.append(
                {"method": name, "split": split, "mae_years": round(float(error.mean()), 4), "zeros": zeros,
                 "fit_seconds": round(seconds, 2)}
            )  # fmt: skip
    made_with = " ".join(f"{name}={version}" for name, version in versions().items())
    frame = pd.DataFrame(rows).astype({"zeros": "Int64"}).assign(made_with=made_with)
    frame.to_csv(ROOT / "results" / "abide_defaults.csv", index=False)
    print(frame.groupby("method")[["mae_years", "zeros", "fit_seconds"]].agg(["mean", "std"]).round(2))


if __name__ == "__main__":
    main()
