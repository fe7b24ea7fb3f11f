"""A model of one cohort on rows of another: is the shift seen, and what do a few labelled rows put right?

    python -m benchmarks.honest.places [N]      appends to results/honest/*.csv (N models at most); goes on where it was

ABIDE is measured with FreeSurfer, IXI + NKI + OASIS with ANTs: the same 62 regions, other people, other software. One
model of each cohort, fitted on 60 % of its people.

    alarms.csv         share of draws with a warning: rows of the same cohort that the model has not seen (each is a
                       false alarm), rows of the other cohort, and rows of one site of ABIDE that the model has not seen
    recalibrated.csv   mean over 200 draws of the absolute bias that is left on the other rows after a correction by so
                       many labelled ones, beside 1.25 times s / sqrt(k), s the standard deviation of the residuals
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset
from precisionnet.evaluation import compare_rows, recalibrate
from precisionnet.evaluation.protocol import target_of
from precisionnet.paper.cohorts import load_cohort

OUT = Path(__file__).parents[2] / "results" / "honest"
DRAWS = 200
SIZES = (1, 20, 200)
"""Rows of a new table."""
LABELLED = (5, 10, 30)
SEED = 2000


def alarms(model: Any, pools: dict[str, Dataset]) -> Iterator[dict[str, Any]]:
    """How often rows drawn from each pool are called shifted."""
    rng = np.random.default_rng(0)
    for name, pool in pools.items():
        for size in (size for size in SIZES if size <= len(pool)):
            draws = [pool.take(rng.permutation(len(pool))[:size]) for _ in range(DRAWS)]
            found = [compare_rows(model, draw.X) for draw in draws]
            yield {
                "rows": name,
                "size": size,
                "draws": len(draws),
                "warned": np.mean([shift.shifted for shift in found]),
                "shift": np.mean([shift.size for shift in found]),
                "by_chance": found[0].expected,
                "far": np.mean([shift.share_far for shift in found]),
            }


def corrected(model: Any, pool: Dataset) -> Iterator[dict[str, Any]]:
    """What is left of the bias on rows that were not labelled."""
    rng = np.random.default_rng(1)
    predicted, y = model.predict(pool.X), target_of(pool)
    for n_labelled in LABELLED:
        left, errors, lines = [], [], []
        for _ in range(DRAWS):
            order = rng.permutation(len(y))
            known, others = order[:n_labelled], order[n_labelled:]
            correction = recalibrate(predicted[known], y[known])
            error = correction.apply(predicted[others]) - y[others]
            left.append(abs(error.mean()))
            errors.append(np.abs(error).mean())
            lines.append(correction.slope != 1.0)
        residual = float((predicted - y).std(ddof=1))
        yield {
            "labelled": n_labelled,
            "draws": DRAWS,
            "bias_before": (predicted - y).mean(),
            "mae_before": np.abs(predicted - y).mean(),
            "bias_left": np.mean(left),
            "allowed": 1.25 * residual / np.sqrt(n_labelled),
            "mae_left": np.mean(errors),
            "lines": np.mean(lines),
        }


def models() -> Iterator[tuple[str, Dataset, dict[str, Dataset]]]:
    """Name of a model, the rows that it learns from, and the rows that it is asked about."""
    cohorts = {name: load_cohort(name, None) for name in ("abide", "ants")}
    for name, data in cohorts.items():
        train, _, test = data.split((0.6, 0.0, 0.4), SEED, stratify="target")
        (other,) = (rows for key, rows in cohorts.items() if key != name)
        yield name, train, {"same cohort": test, "other cohort": other}
    abide = cohorts["abide"]
    assert abide.site is not None
    for place in abide.site.value_counts().index[:2]:
        here = (abide.site == place).to_numpy()
        pools = {"the site": abide.take(np.flatnonzero(here))}
        yield f"abide without {place}", abide.take(np.flatnonzero(~here)), pools


def main() -> None:
    """One model after the other; what is in the files is not made again."""
    OUT.mkdir(parents=True, exist_ok=True)
    known = set(pd.read_csv(OUT / "alarms.csv")["model"]) if (OUT / "alarms.csv").exists() else set()
    left = [case for case in models() if case[0] not in known]
    for name, train, pools in left[: int(sys.argv[1])] if sys.argv[1:] else left:
        model = PNNRegressor(random_state=0).fit(train.X, train.y, groups=train.groups)
        (_, elsewhere) = list(pools.items())[-1]
        _append(OUT / "recalibrated.csv", [{"model": name, **line} for line in corrected(model, elsewhere)])
        _append(OUT / "alarms.csv", [{"model": name, **line} for line in alarms(model, pools)])


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    pd.DataFrame(lines).to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
