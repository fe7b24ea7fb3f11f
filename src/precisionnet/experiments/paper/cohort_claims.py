"""What the paper says of its brain cohorts (Table 1), held against rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from precisionnet.experiments.methods.registry import label
from precisionnet.experiments.pairing import methods_of
from precisionnet.experiments.paper.judging import Judged, best, mean, no_zeros, ordered, zero_shares
from precisionnet.experiments.runner.jobs import Row

TABLE_METHODS = ("pca_mlp", "vnn", "sample", "glasso")
SPARSE = 0.25
"""Share of zeros; the paper's own smallest, on ADNI, is 0.26."""
CLOSE_SCORE = 0.05


def cohort_claims(rows: Sequence[Row], cohort: str | None = None) -> Iterable[Judged | None]:
    """Table 1; where the cohort is not given, the experiment's name is taken for it."""
    present = methods_of(rows)
    others = [method for method in TABLE_METHODS if method in present]
    if "joint" in present and others:
        yield best("Joint predicts age best of the paper's methods", rows, others, resampled=True)
        if zeros := zero_shares(rows, "joint"):
            yield (
                "Joint's precision is sparse",
                bool(np.mean(zeros) >= SPARSE),
                f"{np.mean(zeros):.0%} of the entries are zero, {min(zeros):.0%} at least",
                f"at least {SPARSE:.0%} of the entries are zero, on average",
            )
    for method in ("joint", "glasso"):
        yield ordered(f"{label(method)} predicts better than Sample", rows, method, "sample", "mae", resampled=True)
    yield no_zeros(rows)
    cohorts = {cohort or str(row.get("experiment")) for row in rows}
    if cohorts == {"abide"}:
        yield _close(rows, "vnn", "glasso")
        yield ordered("PCA + MLP predicts better than GL", rows, "pca_mlp", "glasso", "mae", resampled=True)
    if cohorts == {"adni"}:
        yield ordered("VNN predicts worse than GL", rows, "glasso", "vnn", "mae", resampled=True)
        yield ordered("PCA + MLP predicts worse than VNN", rows, "vnn", "pca_mlp", "mae", resampled=True)


def _close(rows: Sequence[Row], one: str, other: str) -> Judged | None:
    a, b = mean(rows, one, "mae"), mean(rows, other, "mae")
    if np.isnan(a) or np.isnan(b):
        return None
    rule = f"mean errors differ by at most {CLOSE_SCORE:.0%}"
    return f"{label(one)} is close to {label(other)}", abs(a / b - 1.0) <= CLOSE_SCORE, f"MAE {a:.2f} and {b:.2f}", rule
