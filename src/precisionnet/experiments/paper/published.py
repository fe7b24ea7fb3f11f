"""Table 1 of the paper as data: mean absolute error of age in years, and zero entries of the estimated precision.

Mean and standard deviation over five repeats; the paper's PCA is ``pca_mlp`` here, its GL ``glasso``. Figure 2 is
printed without numbers, and the paper has no table of the cohorts measured with ANTs alone.
"""

from __future__ import annotations

from typing import Any

TABLE_1: dict[str, dict[str, dict[str, str]]] = {
    "adni": {
        "pca_mlp": {"mae": "10.3 ± 0.7"},
        "vnn": {"mae": "6.06 ± 0.20"},
        "sample": {"mae": "5.78 ± 0.10", "n_zeros": "0 ± 0"},
        "glasso": {"mae": "5.81 ± 0.06", "n_zeros": "4546 ± 0"},
        "joint": {"mae": "5.31 ± 0.18", "n_zeros": "1225 ± 1126"},
    },
    "abide": {
        "pca_mlp": {"mae": "4.41 ± 0.34"},
        "vnn": {"mae": "5.81 ± 0.11"},
        "sample": {"mae": "5.94 ± 0.02", "n_zeros": "0 ± 0"},
        "glasso": {"mae": "5.80 ± 0.11", "n_zeros": "2232 ± 0"},
        "joint": {"mae": "3.64 ± 0.65", "n_zeros": "2771 ± 976"},
    },
}

SIZES = {"adni": "1142 people, 68 regions", "abide": "1035 people, 62 regions"}


def published(cohort: str) -> dict[str, Any] | None:
    """The paper's part of a page, None where the paper has no such cohort."""
    if cohort not in TABLE_1:
        return None
    return {
        "caption": f"Table 1, {cohort.upper()} ({SIZES[cohort]}): MAE of age in years and zeros of theta.",
        "metric": "mae",
        "rows": TABLE_1[cohort],
    }
