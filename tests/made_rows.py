"""Rows as the experiments store them, drawn here in a moment: what the pages are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

LEVELS = {
    "joint": 3.2, "naive": 3.4, "glasso": 3.45, "sample": 4.1, "vnn": 3.9, "pca_mlp": 4.4,
    "ridge": 3.67, "svr": 3.15, "gp": 3.23, "hist_gb": 3.3, "median": 5.5,
}  # fmt: skip
ACCURACIES = {"joint": 0.81, "naive": 0.78, "logistic": 0.8, "svc": 0.82, "hist_gb": 0.79, "majority": 0.55}
ON_PRECISION = ("joint", "naive", "glasso", "sample")
VERSIONS = {"precisionnet": "0.4.0", "python": "3.12.0", "numpy": "2.1.0", "torch": "2.5.0"}


def comparison_rows(task: str = "regression", repeats: int = 5, methods: Any = None) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    levels = LEVELS if task == "regression" else ACCURACIES
    rows = []
    for repeat in range(repeats):
        shared = rng.normal(0, 0.03)
        for method, level in levels.items():
            if methods is not None and method not in methods:
                continue
            value = level * (1 + shared + rng.normal(0, 0.02))
            row = {**_head(method, repeat), **_scores(task, min(value, 0.99) if task != "regression" else value)}
            row |= {"n_train": 621, "n_validation": 207, "n_test": 207, "validation": value}
            row |= (
                {"n_candidates": 54, "n_stopped": 40} if method in ON_PRECISION else {"n_candidates": 9, "n_stopped": 0}
            )
            row |= {
                "fit_seconds": 1.2,
                "tune_seconds": 41.3 if method in ON_PRECISION else 0.8,
                "predict_seconds": 0.01,
            }
            row["parameters"] = (
                {"n_layers": 2, "order": 3, "l1_scale": 10.0} if method in ON_PRECISION else {"alpha": 0.1}
            )
            if method in ON_PRECISION:
                zeros = {"joint": 2700, "naive": 40, "glasso": 2232, "sample": 0}[method]
                row |= {"n_zeros": zeros + repeat, "density": 1 - zeros / 3844, "edges": (3844 - zeros - 62) // 2}
            rows.append(row)
    return rows


def synthetic_rows(repeats: int = 3, levels: Any = (0.1, 0.2, 0.5, 0.9)) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    error = {
        "joint": (1.0, 8.0, 1.1),
        "naive": (1.05, 14.0, 6.0),
        "glasso": (1.2, 8.5, 1.2),
        "sample": (1.5, 30.0, 100.0),
    }
    rows = []
    for level in levels:
        for repeat in range(repeats):
            for method, (mae, l1, density) in error.items():
                noise = rng.normal(1, 0.05)
                value = mae * (1 + level) * noise
                rows.append(
                    {
                        **_head(method, repeat), "job": f"{method}/{repeat}/sparsity={level}", "sparsity": level, "mae": value, "mse": 1.6 * value**2, "rmse": 1.3 * value,
                        "r2": 0.7, "r": 0.8, "l1_error": l1 * (1 + 2 * level) * noise, "frobenius_error": l1 / 3,
                        "density": min(1.0, density * level * noise), "density_true": level, "edge_f1": 0.6, "edge_auc": 0.8,
                        "n_zeros": 100, "edges": 40, "n_candidates": 54 if level == 0.2 else 1, "n_stopped": 0,
                        "n_train": 60, "n_validation": 20, "n_test": 20, "parameters": {"order": 2, "l1_scale": 1.0},
                        "fit_seconds": 0.5, "tune_seconds": 3.0, "predict_seconds": 0.01,
                    }
                )  # fmt: skip
    return rows


def manifest(kind: str = "comparison", **about: Any) -> dict[str, Any]:
    told = {
        "kind": kind, "title": "Age from cortical thickness, ABIDE", "task": "regression", "target": "age", "unit": "years",
        "n_rows": 1035, "n_features": 62, "source": "abide.csv", "description": "", "notes": [], "expected": "",
    }  # fmt: skip
    return {
        "name": "abide", "config": {"methods": ["joint"], "repeats": 5, "tuning": {"search": "grid", "race": True}},
        "config_hash": "ab" * 32, "data_hash": "cd" * 32, "versions": VERSIONS, "created": "2026-01-01T00:00:00+00:00",
        "about": {**told, **about},
    }  # fmt: skip


PUBLISHED = {
    "caption": "Table 1, ABIDE, mean ± deviation over 5 repeats.",
    "metric": "mae",
    "rows": {
        "joint": {"mae": "3.64 ± 0.65", "n_zeros": "2771 ± 976"},
        "glasso": {"mae": "5.80 ± 0.11", "n_zeros": "2232 ± 0"},
        "sample": {"mae": "5.94 ± 0.02", "n_zeros": "0 ± 0"},
        "vnn": {"mae": "5.81 ± 0.11"},
        "pca_mlp": {"mae": "4.41 ± 0.34"},
    },
}


def _head(method: str, repeat: int) -> dict[str, Any]:
    return {
        "experiment": "abide", "job": f"{method}/{repeat}", "method": method, "repeat": repeat, "seed": 1000 + repeat, "config_hash": "ab" * 32,
        "data_hash": "cd" * 32, "versions": VERSIONS, "finished": "2026-01-02T03:04:05+00:00",
    }  # fmt: skip


def _scores(task: str, value: float) -> dict[str, float]:
    if task == "regression":
        return {"mae": value, "mse": 1.6 * value**2, "rmse": 1.27 * value, "r2": 0.5, "r": 0.7}
    return {"accuracy": value, "balanced_accuracy": value - 0.02, "auc": min(0.99, value + 0.05), "log_loss": 0.5}
