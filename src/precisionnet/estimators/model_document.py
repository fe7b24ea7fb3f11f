"""A fitted model as a JSON document and named tensors; ``model_reader`` makes a model of them again."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.document_fields import classes_out, ids_out
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.intervals import Calibration
from precisionnet.estimators.targets import ClassTarget, NumberTarget, learns_logarithm
from precisionnet.nn.network import Tensors
from precisionnet.parameters import Settings
from precisionnet.sparse_matrices import Support
from precisionnet.versions import versions

Document = dict[str, Any]

NOT_SAVED = frozenset({"network", "callbacks"})
"""Parameters that are code."""
SETTINGS = [field.name for field in fields(Settings)]


SPARSE_MATRICES = ("covariance", "precision", "task_graph")
"""Matrices of a model on a sparse support that are stored by their edges, beside those of the members."""
DENSE_MATRICES = (*SPARSE_MATRICES, "task_precision", "member_matrices")


def to_document(model: BasePNN) -> tuple[Document, Tensors]:
    """Return all that a fitted model is but its code: what JSON can say, and tensors."""
    fitted = model.fitted
    classes = fitted.target.classes if isinstance(fitted.target, ClassTarget) else None
    row_ids, id_tensor = ids_out(np.asarray(fitted.out_of_fold.row_ids))
    document = {
        "estimator": type(model).__name__,
        "parameters": _parameters_out(model),
        "own_network": model.network is not None,
        "settings": {name: getattr(fitted.settings, name) for name in SETTINGS},
        "column_names": None if fitted.column_names is None else list(fitted.column_names),
        "target_name": fitted.target_name,
        "classes": None if classes is None else classes_out(classes),
        "logarithm": learns_logarithm(fitted.target),
        "n_features": fitted.n_features,
        "n_rows": fitted.n_rows,
        "weight": fitted.weight,
        "scale": fitted.scale,
        "l1_penalty": fitted.l1_penalty,
        "spectral_bound": fitted.spectral_bound,
        "history_columns": [str(name) for name in fitted.history.columns],
        "best_epoch": fitted.best_epoch,
        "errors": {name: None if math.isnan(value) else value for name, value in fitted.out_of_fold.errors.items()},
        "row_ids": row_ids,
        "n_folds": len(fitted.folds),
        "member_kinds": list(fitted.member_kinds),
        "rows_hash": fitted.rows_hash,
        "encoder": None if fitted.encoder is None else fitted.encoder.to_document(),
        "versions": versions(),
    }
    arrays: dict[str, Any] = {
        **_matrices_out(fitted),
        "task_nodes": fitted.task_nodes,
        "center": fitted.center,
        "member_folds": fitted.member_folds.astype(np.int64),
        "member_weights": fitted.member_weights,
        "fold_weights": fitted.fold_weights,
        "n_missing": fitted.n_missing.astype(np.int64),
        "history": fitted.history.to_numpy(dtype=np.float64),
        "out_of_fold": fitted.out_of_fold.prediction,
        "out_of_fold.fold": fitted.out_of_fold.fold.astype(np.int64),
        "row_ids": id_tensor,
        "scaler.mean": fitted.scaler.mean,
        "scaler.scale": fitted.scaler.scale,
    }
    if isinstance(fitted.target, NumberTarget):
        arrays |= {"target.mean": fitted.target.scaler.mean, "target.scale": fitted.target.scaler.scale}
    if fitted.reference is not None:
        arrays["reference.distances"] = fitted.reference.distances
        if fitted.reference.target_range is not None:
            arrays["reference.target_range"] = np.array(fitted.reference.target_range)
    if fitted.medians is not None:
        arrays["medians"] = fitted.medians
    if fitted.calibration is not None:
        arrays |= _calibration_out(fitted.calibration)
    arrays |= {f"folds.{i}": fold.astype(np.int64) for i, fold in enumerate(fitted.folds)}
    tensors = {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}
    for i, network in enumerate(fitted.networks):
        for name, value in network.state_dict().items():
            if not isinstance(value, Tensor):
                raise InputError(f"The network's state {name!r} is no tensor: keep it in a buffer to save the model.")
            tensors[f"network.{i}.{name}"] = value.detach().cpu().contiguous().clone()
    return document, tensors


def _matrices_out(fitted: Fitted) -> dict[str, Any]:
    """Return the matrices; of sparse ones the ends of their edges, and a number for each node and edge."""
    if not fitted.on_support:
        return {name: getattr(fitted, name) for name in DENSE_MATRICES}
    arrays: dict[str, Any] = {}
    for name in SPARSE_MATRICES:
        matrix = getattr(fitted, name)
        support = Support.of(matrix)
        arrays |= _support_out(name, support) | {f"{name}.values": support.values_of(matrix)}
    members = fitted.member_matrices
    return arrays | _support_out("member_matrices", members.support) | {"member_matrices.values": members.values}


def _support_out(name: str, support: Support) -> dict[str, Any]:
    return {f"{name}.first": support.first.astype(np.int64), f"{name}.second": support.second.astype(np.int64)}


def _calibration_out(calibration: Calibration) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "calibration.fold": calibration.fold.astype(np.int64),
        "calibration.residual": calibration.residual,
        "calibration.weight": calibration.weight,
        "calibration.limits": np.array(calibration.limits),
    }
    model = calibration.model
    if model is not None:  # without one the spread is 1
        arrays |= {
            "calibration.spread": calibration.spread,
            "spread.slopes": model.slopes,
            "spread.bounds": model.bounds,
            "spread.scaler.mean": model.scaler.mean,
            "spread.scaler.scale": model.scaler.scale,
        }
    return arrays


def _parameters_out(model: BasePNN) -> dict[str, Any]:
    """Return the estimator's parameters; a generator's state is not kept, and code cannot be.

    Where one was set to another value since the fit, they are those that the model was fitted with.
    """
    fitted = model.fitted.settings
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_SAVED}
    try:
        as_fitted = model.settings == fitted
    except InputError:
        as_fitted = False
    if not as_fitted:
        parameters |= {name: getattr(fitted, name) for name in SETTINGS}
    seed = parameters["random_state"]
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    return parameters | {"random_state": int(seed) if whole else None}
