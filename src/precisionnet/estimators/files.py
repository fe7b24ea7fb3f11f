"""A model as a folder: ``model.safetensors`` (numbers) and ``model.json`` (everything else). No pickle; loading runs no
code from the folder. Save, load and predict is bit-identical.

``model.json`` carries the format version, the estimator's parameters, the columns' names, the classes, the history, the
versions it was made with, and the sha256 of the tensor file and of itself, checked before anything is used.

Version 2 added what is known of missing values (``missing``, ``medians_``, ``n_missing_``). Version 3 holds several
networks (every tensor stacked along a first axis), the matrix each runs on, the out-of-bag errors, and the residuals
that prediction intervals are made of; not the predictions of single rows. Folders of versions 1 and 2 still load: what
they hold is one network, made by what is now ``recipe="paper"``.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from precisionnet._version import __version__
from precisionnet.errors import InputError, ModelFileError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.classifier import PNNClassifier
from precisionnet.estimators.intervals import Calibration
from precisionnet.estimators.members import member_readouts
from precisionnet.estimators.regressor import PNNRegressor
from precisionnet.estimators.rows import Scaler
from precisionnet.nn import scale_to_unit_norm
from precisionnet.outputs import whole_folder
from precisionnet.versions import versions

FORMAT = "precisionnet-model"
FORMAT_VERSION = 3
READABLE_VERSIONS = (1, 2, 3)
JSON_NAME = "model.json"
TENSOR_NAME = "model.safetensors"
_ESTIMATORS: dict[str, type[BasePNN]] = {"PNNRegressor": PNNRegressor, "PNNClassifier": PNNClassifier}
_MATRICES = ("precision_", "task_precision_", "covariance_")
_CALIBRATION = ("member", "residual", "weight")
_NUMBERS = ("l1_penalty_", "spectral_bound_", "n_rows_", "n_iter_", "best_epoch_", "n_features_in_", "target_name_")


def save(model: BasePNN, folder: str | Path) -> None:
    """Write a fitted model. See the head of this file."""
    check_is_fitted(model)
    blob = save_tensors(_tensors(model))
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "estimator": type(model).__name__,
        "parameters": _parameters(model),
        "feature_names": [str(n) for n in model.feature_names_in_] if hasattr(model, "feature_names_in_") else None,
        "classes": _classes(model),
        "fitted": {name: getattr(model, name) for name in _NUMBERS},
        "out_of_bag": {name: _null_for_nan(getattr(model, name)) for name in model._oob_errors},
        "history": _history(model.history_),
        "versions": versions(),
    }
    document["sha256"] = {TENSOR_NAME: hashlib.sha256(blob).hexdigest(), JSON_NAME: document_hash(document)}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=_plain)
    with whole_folder(folder, is_ours=is_model_folder) as scratch:
        (scratch / TENSOR_NAME).write_bytes(blob)
        (scratch / JSON_NAME).write_text(text + "\n", encoding="utf-8")


def load(folder: str | Path) -> Any:
    """Read a model that ``save`` wrote: a :class:`PNNRegressor` or :class:`PNNClassifier`, ready to predict.

    The output folder of ``precisionnet fit`` works too: its model is in the subfolder ``model``.
    """
    place = Path(folder)
    try:
        if not (place / JSON_NAME).exists() and (place / "model" / JSON_NAME).exists():
            place = place / "model"
        document = _read_document(place)
    except OSError as error:
        raise ModelFileError(
            f"{str(folder)!r} cannot be read ({error.strerror}): check the folder's permissions."
        ) from error
    tensors = _read_tensors(place, document)
    try:
        return _rebuild(document, tensors)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        detail = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"The model in {str(folder)!r} contradicts itself ({type(error).__name__}: {detail}): "
            "it was changed after it was written; fit and save it again."
        ) from error


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds exactly what ``save`` writes: the two files, and a document that says whose it is."""
    files = {entry.name for entry in folder.iterdir() if entry.is_file()}
    if files != {JSON_NAME, TENSOR_NAME} or len(list(folder.iterdir())) != 2:
        return False
    with (folder / JSON_NAME).open("rb") as file:
        return f'"format": "{FORMAT}"'.encode() in file.read(200)


def document_hash(document: dict[str, Any]) -> str:
    """sha256 of everything in model.json but the hashes, in a form that does not depend on the layout."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, allow_nan=False, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _tensors(model: BasePNN) -> dict[str, Tensor]:
    arrays: dict[str, Any] = {name: getattr(model, name) for name in (*_MATRICES, "shifts_", "n_missing_")}
    if model.medians_ is not None:
        arrays["medians_"] = model.medians_
    for name in ("_x_scaler", "_y_scaler"):
        if hasattr(model, name):
            scaler = getattr(model, name)
            arrays |= {f"{name}.mean": scaler.mean, f"{name}.scale": scaler.scale}
    calibration = getattr(model, "calibration_", None)
    if calibration is not None:
        arrays |= {f"calibration.{name}": getattr(calibration, name) for name in _CALIBRATION}
    tensors = {name: torch.from_numpy(np.array(array, dtype=np.float64)) for name, array in arrays.items()}
    states = [network.state_dict() for network in model.networks_]
    return tensors | {
        f"network.{i}.{name}": value.contiguous() for i, state in enumerate(states) for name, value in state.items()
    }


def _parameters(model: BasePNN) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["random_state"], int | np.integer):
        parameters["random_state"] = None  # a generator's state is not a parameter worth keeping
    return parameters


def _classes(model: BasePNN) -> dict[str, Any] | None:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    dtype = classes.dtype
    values = classes.tolist()
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise InputError(f"Classes of type {dtype} cannot be saved: use text, whole numbers or booleans as labels.")
    return {"dtype": "object" if dtype.kind not in "biufU" else dtype.str, "values": values}


def _history(history: pd.DataFrame) -> dict[str, list[float | None]]:
    """Columns of numbers; NaN, which JSON has no word for, becomes null."""
    return {str(name): [_null_for_nan(value) for value in column.tolist()] for name, column in history.items()}


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot write {type(value).__name__} to JSON")


def _read_document(place: Path) -> dict[str, Any]:
    path = place / JSON_NAME
    if not path.is_file():
        raise ModelFileError(
            f"{str(place)!r} is not a model folder: it has no {JSON_NAME}; pass a folder made by save()."
        )
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"{str(path)!r} cannot be read: it is truncated or not JSON; copy the folder again."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{str(path)!r} was not written by precisionnet; pass a folder made by save().")
    version = document.get("format_version")
    if version not in READABLE_VERSIONS:
        raise ModelFileError(
            f"{str(path)!r} has format version {version!r}; this precisionnet ({__version__}) reads versions "
            f"{READABLE_VERSIONS[0]} to {READABLE_VERSIONS[-1]}: install a version that matches."
        )
    if _expected_hash(document, JSON_NAME) != document_hash(document):
        raise ModelFileError(f"{str(path)!r} does not match its own hash: it was edited; copy the whole folder again.")
    return document


def _expected_hash(document: dict[str, Any], name: str) -> Any:
    hashes = document.get("sha256")
    return hashes.get(name) if isinstance(hashes, dict) else None


def _read_tensors(place: Path, document: dict[str, Any]) -> dict[str, Tensor]:
    path = place / TENSOR_NAME
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} is missing or unreadable; copy the whole model folder again.") from error
    if hashlib.sha256(blob).hexdigest() != _expected_hash(document, TENSOR_NAME):
        raise ModelFileError(
            f"{str(path)!r} does not match the hash in {JSON_NAME}: it is truncated or belongs to another model; "
            "copy the whole folder again."
        )
    try:
        return load_tensors(blob)
    except SafetensorError as error:
        raise ModelFileError(f"{str(path)!r} is not a safetensors file; copy the whole folder again.") from error


def _rebuild(document: dict[str, Any], tensors: dict[str, Tensor]) -> BasePNN:
    parameters = document["parameters"]
    if document["format_version"] < 3:  # there was one recipe then, and nobody had to name it
        parameters = {"recipe": "paper", **parameters}
    model = _ESTIMATORS[document["estimator"]](**parameters)
    model._validate_params()
    for name in _NUMBERS:
        setattr(model, name, document["fitted"][name])
    n = int(model.n_features_in_)
    if document["feature_names"] is not None:
        if len(document["feature_names"]) != n:
            raise ValueError(f"{len(document['feature_names'])} names for {n} features")
        model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
    if document["classes"] is not None:
        model.classes_ = np.array(document["classes"]["values"], dtype=document["classes"]["dtype"])
    history = pd.DataFrame(document["history"]).astype(float)
    model.history_ = history.astype({"epoch": int, "n_zeros": int})
    for name in _MATRICES:
        if tuple(tensors[name].shape) != (n, n):
            raise ValueError(f"{name} has shape {tuple(tensors[name].shape)} for {n} features")
        setattr(model, name, tensors[name].numpy())
    _set_missing(model, document["format_version"], tensors, n)
    for name in ("_x_scaler", "_y_scaler"):
        if f"{name}.mean" in tensors:
            setattr(model, name, Scaler(tensors[f"{name}.mean"].numpy(), tensors[f"{name}.scale"].numpy()))
    if model._x_scaler.mean.shape != (n,) or model._x_scaler.scale.shape != (n,):
        raise ValueError(f"the feature scaling is not for {n} features")
    _set_networks(model, tensors, n)
    errors = document.get("out_of_bag", {})
    for name in model._oob_errors:
        setattr(model, name, np.nan if errors.get(name) is None else float(errors[name]))
    if isinstance(model, PNNRegressor):
        model.calibration_ = _calibration(tensors, len(model.networks_))
    return model


def _set_networks(model: BasePNN, tensors: dict[str, Tensor], n: int) -> None:
    if "shifts_" in tensors:
        model.shifts_ = tensors["shifts_"].numpy()
        states = [_with_prefix(tensors, f"network.{i}.") for i in range(len(model.shifts_))]
    else:  # before version 3: one network, on one of the matrices
        states = [_features_first(_with_prefix(tensors, "network."), n)]
        shift = torch.from_numpy(model.precision_ if model.settings.sparse else model.task_precision_)
        model.shifts_ = (scale_to_unit_norm(shift) if model.scale_shift else shift).numpy()[None].copy()
    readouts = member_readouts(model.settings)
    if model.shifts_.shape != (len(readouts), n, n):
        raise ValueError(f"the networks' matrices have shape {model.shifts_.shape} for {n} features")
    model.networks_ = [model._new_network(0, readout).double().eval() for readout in readouts]
    for network, state in zip(model.networks_, states, strict=True):
        network.load_state_dict(state)


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _features_first(network: dict[str, Tensor], n: int) -> dict[str, Tensor]:
    """A flattening readout took its inputs node by node before version 3, and takes them feature by feature since."""
    name = "readout.perceptron.0.weight"
    filters = len(network["layers.0.norm.weight"])
    weight = network[name]
    if weight.shape[1] != n * filters or weight.shape[1] == filters:
        return network
    return {**network, name: weight.reshape(-1, n, filters).transpose(1, 2).reshape(weight.shape)}


def _calibration(tensors: dict[str, Tensor], n_networks: int) -> Calibration | None:
    if "calibration.member" not in tensors:
        return None
    member, residual, weight = (tensors[f"calibration.{name}"].numpy() for name in _CALIBRATION)
    if not member.shape == residual.shape == weight.shape == (max(len(member), 1),):
        raise ValueError("the residuals of the intervals are incomplete")
    if not (np.isin(member, np.arange(n_networks)).all() and (residual >= 0).all() and (weight > 0).all()):
        raise ValueError("the residuals of the intervals are out of range")
    return Calibration(member.astype(np.intp), residual, weight)


def _set_missing(model: BasePNN, version: int, tensors: dict[str, Tensor], n: int) -> None:
    counts = torch.zeros(n) if version == 1 else tensors["n_missing_"]
    if tuple(counts.shape) != (n,):
        raise ValueError(f"the counts of missing values are not for {n} features")
    model.n_missing_ = counts.numpy().astype(np.int64)
    model.medians_ = tensors["medians_"].numpy() if "medians_" in tensors else None
    if model.medians_ is not None and (model.medians_.shape != (n,) or not np.isfinite(model.medians_).all()):
        raise ValueError(f"the medians are not for {n} features")
