"""How far a fit's own test is from its error on new people.

    python -m benchmarks.honest.bias [N]      appends to results/honest/bias.csv (N cases at most); goes on where it was

People are dealt into two halves, and each half is learned from once, so that every row has its loss in the test of one
fit and its loss as a new row of the other. The difference, row by row, is the bias of the test. Tests: the prediction
by the networks that left a row out ("networks"), and by fits without its fold ("people", in five folds). Targets: age,
and age in an order drawn at random, of which nothing can be learned.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets import Dataset
from precisionnet.evaluation import measure, people_folds
from precisionnet.evaluation.protocol import target_of
from precisionnet.paper.cohorts import load_cohort

OUT = Path(__file__).parents[2] / "results" / "honest" / "bias.csv"
HALVES = {"networks": 3, "people": 1}
"""Times that people are dealt into halves, for each test."""
FIRST_SEED = 1000
"""Other halves than those of the comparisons."""


def halves(data: Dataset, seed: int, rows: int | None) -> tuple[Any, Any]:
    """Positions of two halves, alike in target, or of as many rows of each."""
    first, _, second = data.split_rows((0.5, 0.0, 0.5), seed, stratify="target")
    rng = np.random.default_rng(seed)
    return tuple(np.sort(rng.permutation(half)[:rows]) for half in (first, second))


def cases() -> Iterator[dict[str, Any]]:
    """Everything that is measured."""
    for cohort in ("abide", "ants"):
        for target in ("age", "drawn"):
            for rows in (None, 200):
                for test, times in HALVES.items():
                    if test == "networks" or (target == "age" and rows is None):
                        for number in range(times):
                            yield {"cohort": cohort, "target": target, "rows": rows, "test": test, "halves": number}


def losses(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Both halves learned from: losses in the test, and of new rows."""
    data, seed = load_cohort(case["cohort"], None), FIRST_SEED + case["halves"]
    if case["target"] == "drawn":
        y = np.random.default_rng(seed).permutation(target_of(data))
        data = replace(data, y=pd.Series(y, index=data.X.index, name="age"))
    parts = [data.take(half) for half in halves(data, seed, case["rows"])]
    tested, new = [], []
    for own, other in (parts, parts[::-1]):
        folds = people_folds(own, "regression", seed=seed) if case["test"] == "people" else None
        result = measure(own, "regression", {}, seed=seed, folds=folds)
        tested.append(np.abs(result.y - result.predictions["joint"].predicted))
        new.append(np.abs(target_of(other) - result.model.predict(other.X)))
        _, low, high = result.headline["joint"]
        yield {"half": len(new), "tested": tested[-1].mean(), "low": low, "high": high, "new": new[-1].mean()}
    difference = np.concatenate(tested) - np.concatenate(new[::-1])
    error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    yield {"half": 0, "bias": difference.mean(), "error": error, "new": np.concatenate(new).mean()}


def main() -> None:
    """Measure what is not in the file yet."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(OUT) if OUT.exists() else pd.DataFrame(columns=["cohort", "target", "rows", "test", "halves"])
    known = {tuple(row) for row in done[["cohort", "target", "rows", "test", "halves"]].fillna(0).to_numpy()}
    rows = done.to_dict("records")
    left = [case for case in cases() if tuple(value or 0 for value in case.values()) not in known]
    for case in left[: int(sys.argv[1])] if sys.argv[1:] else left:
        rows += [{**case, **line} for line in losses(case)]
        pd.DataFrame(rows).to_csv(OUT, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
