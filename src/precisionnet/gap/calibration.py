"""How well predictions and corrections do on the rows learned from, each of them out of fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from precisionnet.gap.correction import NONE
from precisionnet.types import LEVEL, FloatArray, IndexArray

FIFTHS = 5
LEARNED = "learned from"
GAP_COLUMNS = {NONE: "gap", "scaled": "corrected_gap", "subtractive": "subtractive_gap", "smooth": "smooth_gap"}
"""Position of each kind of gap in ``gaps``."""


def calibration_table(gaps: pd.DataFrame) -> pd.DataFrame:
    """Return mean gaps and the share of intervals with zero, by fifths of the target of the rows learned from."""
    rows = gaps[gaps["learned_from"]]
    fifth = pd.qcut(rows["true"].rank(method="first"), min(FIFTHS, len(rows)), labels=False)
    lines = []
    for _, own in rows.groupby(fifth.to_numpy()):
        holds = (own["corrected_gap_low"] <= 0.0) & (own["corrected_gap_high"] >= 0.0)
        lines.append(
            {
                "from": own["true"].min(),
                "to": own["true"].max(),
                "n": len(own),
                "gap": own["gap"].mean(),
                "corrected_gap": own["corrected_gap"].mean(),
                "smooth_gap": own["smooth_gap"].mean(),
                "deviation": own["corrected_gap"].std(),
                "holds_zero": holds.mean(),
            }
        )
    return pd.DataFrame(lines)


def age_correlations(gaps: pd.DataFrame, people: pd.Series[Any] | None = None) -> pd.DataFrame:
    """Correlations with the target, with Fisher's interval, of the rows learned from and of the others.

    Where people have several rows, people are counted: rows of one person say much the same.
    """
    lines = []
    whose = np.arange(len(gaps)) if people is None else people.astype(str).to_numpy()
    for learned, rows in gaps.groupby("learned_from", sort=False):
        n_people = len(np.unique(whose[(gaps["learned_from"] == learned).to_numpy()]))
        reach = stats.norm.ppf(0.5 + LEVEL / 2) / np.sqrt(max(n_people - 3, 1))
        for kind, name in GAP_COLUMNS.items():
            if rows[name].notna().all() and rows["true"].min() < rows["true"].max():
                r = float(np.corrcoef(rows[name], rows["true"])[0, 1])
                low, high = np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)
                where = LEARNED if learned else "others"
                lines.append({"rows": where, "kind": kind, "n": len(rows), "r": r, "low": low, "high": high})
    return pd.DataFrame(lines).sort_values("rows", kind="stable", ignore_index=True)


def accuracy_of(prediction: FloatArray, age: FloatArray, fold: IndexArray, n_folds: int) -> dict[str, float]:
    """Return how good uncorrected out-of-fold predictions are, beside the median of the other folds."""
    guess = np.array([np.median(age[fold != k]) for k in range(n_folds)])[fold]
    error = prediction - age
    return {
        "mae": float(np.abs(error).mean()),
        "guess_mae": float(np.abs(guess - age).mean()),
        "r": float(np.corrcoef(prediction, age)[0, 1]),
        "r2": float(1.0 - error @ error / ((age - age.mean()) @ (age - age.mean()))),
    }
