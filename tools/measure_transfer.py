"""What carrying a model from 68 to 62 cortical regions costs: age on ABIDE, one row per model and split.

    python tools/measure_transfer.py        (needs PRECISIONNET_DATA; about three minutes on one core)

A model with the mean readout is fitted to the 68 regions of 700 people and carried to their 62 regions of the DKT
protocol, ``joint`` with the labels of some of them; beside it stands a model that is fitted to the 62 regions from the
start. Errors are those of the other 335 people. Writes results/transfer.csv; docs/family.md quotes the first split.
"""

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rich.progress import track

from precisionnet import PNNRegressor
from precisionnet.datasets import fetch_abide
from precisionnet.errors import PrecisionNetWarning
from precisionnet.versions import versions

ROOT = Path(__file__).parents[1]
SPLITS, TRAINING = 5, 700
LABELS = {"vnn": [0], "glasso": [0], "sample": [0], "joint": [100, 300, 700]}


def main() -> None:
    """Measure and write."""
    wide, narrow = fetch_abide(regions="all"), fetch_abide()
    y, rows = narrow.y, []
    for split in track(range(SPLITS), description="splits"):
        order = np.random.default_rng(split).permutation(len(y))
        train, test = order[:TRAINING], order[TRAINING:]
        for method, labels in LABELS.items():
            for data, name in ((narrow, "fitted"), (wide, "carried")):
                started = time.perf_counter()
                model = PNNRegressor(method, readout="mean", random_state=split).fit(data.X.iloc[train], y.iloc[train])
                seconds = time.perf_counter() - started
                if name == "fitted":
                    rows.append(_row(method, split, name, TRAINING, model, narrow.X.iloc[test], y.iloc[test], seconds))
                    continue
                for count in labels:
                    some = train[: count or TRAINING]
                    started = time.perf_counter()
                    moved = model.transfer(narrow.X.iloc[some], *([y.iloc[some]] if count else []))
                    seconds = time.perf_counter() - started
                    rows.append(_row(method, split, name, count, moved, narrow.X.iloc[test], y.iloc[test], seconds))
    made_with = " ".join(f"{name}={version}" for name, version in versions().items())
    frame = pd.DataFrame(rows).assign(made_with=made_with)
    frame.to_csv(ROOT / "results" / "transfer.csv", index=False)
    print(frame.groupby(["method", "model", "labels"], sort=False)[["mae_years", "seconds"]].mean().round(3))


def _row(
    method: str, split: int, name: str, labels: int, model: PNNRegressor, X: pd.DataFrame, y: pd.Series, seconds: float
) -> dict[str, object]:
    error = float(np.abs(model.predict(X) - y).mean())
    return {"method": method, "split": split, "model": name, "labels": labels, "mae_years": round(error, 4),
            "seconds": round(seconds, 2)}  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrecisionNetWarning)
    main()
