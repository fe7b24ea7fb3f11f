"""A model as one file in its folder, ``model.safetensors``, that cannot be lost.

The numbers are the file's tensors; everything else is a JSON document in its header, with a hash of both. There is no
pickle, and loading runs no code from the folder. ``save`` replaces the file in one step: a reader finds the old model
or the new one, also after a crash. ``load`` believes nothing: a file that is not what ``save`` wrote is refused in one
sentence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from precisionnet.errors import InputError, ModelFileError, printable
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.model_document import to_document
from precisionnet.estimators.model_file import (
    AGAIN,
    FILE_NAME,
    FORMAT,
    FORMAT_VERSION,
    StoredArray,
    checked_document,
    content_hash,
    detail,
    is_model_folder,
    read_file,
    read_metadata,
)
from precisionnet.estimators.model_reader import OtherNetworkError, from_document
from precisionnet.estimators.networks import NetworkFactory
from precisionnet.outputs import refuse_foreign, whole_file


def save(model: BasePNN, folder: str | Path) -> None:
    """Write a fitted model into a folder, in one step.

    The model is one file. A reader at any moment finds the old model or the new one, also after a crash; mode and
    owner of the file that is replaced stay. Saved are the parameters and all that was fitted, so that
    predictions are the same to the last bit. Not saved are ``callbacks``, ``network`` (pass it to ``load``) and a
    generator given as ``random_state``. Row ids that are neither text, numbers, times nor tuples of these come back as
    text.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        A fitted model.
    folder : str or Path
        Where it goes: a new or empty folder, or one that holds a model and nothing else.

    Raises
    ------
    InputError
        The model cannot be saved: its classes are no labels, or its parameters were changed since the fit and do not
        belong together any more.
    OutputError
        The folder cannot be written, or holds other files.

    Examples
    --------
    >>> import tempfile
    >>> from precisionnet import PNNRegressor, load
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data = make_gaussian_regression(n_samples=60, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=1, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     again = load(folder)
    >>> bool((again.predict(data.X) == model.predict(data.X)).all())
    True
    """
    blob = packed(*to_document(model))
    try:  # nothing takes the place of a good model that could not be read again
        _model(blob, model.network)
    except Exception as error:
        raise InputError(
            f"This model cannot be saved, because it could not be read again ({_detail(error)}): it was changed since "
            "the fit; fit it again."
        ) from error
    refuse_foreign(folder, is_model_folder)
    with whole_file(Path(folder) / FILE_NAME) as scratch:
        scratch.write_bytes(blob)


def load(folder: str | Path, network: NetworkFactory | None = None) -> Any:
    """Read a model that ``save`` wrote.

    Every field is checked. No code from the folder is run, and only ordinary files are read.

    Parameters
    ----------
    folder : str or Path
        A folder made by ``save``. The output folder of ``precisionnet fit`` works, too: its model is in the subfolder
        ``model``.
    network : callable, default=None
        For a model with a network of one's own: the function ``network(n_nodes, n_outputs)`` that it was fitted with.

    Returns
    -------
    PNNRegressor or PNNClassifier
        Ready to predict.

    Raises
    ------
    ModelFileError
        One sentence for anything that is not a whole and sound model.

    Examples
    --------
    >>> import tempfile
    >>> from precisionnet import PNNRegressor, load
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data = make_gaussian_regression(n_samples=60, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=1, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     load(folder).n_features_in_
    5
    """
    name = printable(repr(str(folder)))
    try:
        return _model(read_file(Path(folder)), network)
    except ModelFileError as error:
        raise ModelFileError(f"{name} {error}") from error.__cause__
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFileError(f"{name} cannot be read ({reason}): check the folder's name and permissions.") from error
    except OtherNetworkError as error:
        raise ModelFileError(
            f"The model in {name} does not fit the network that was given ({_detail(error)}): pass the function that "
            "it was fitted with."
        ) from error
    except Exception as error:  # whatever a hostile file may lead to
        raise ModelFileError(f"The model in {name} contradicts itself ({_detail(error)}): {AGAIN}") from error


def packed(document: dict[str, Any], tensors: dict[str, Tensor]) -> bytes:
    """Return the bytes of a model's file."""
    text = json.dumps(document, allow_nan=False, default=_plain)
    metadata = {"format": FORMAT, "format_version": FORMAT_VERSION, "document": text}
    blob: bytes = save_tensors(tensors, metadata | {"sha256": content_hash(text, _parts(tensors))})
    return blob


def unpacked(blob: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the document and the tensors of a model's file, both as they were hashed."""
    metadata = read_metadata(blob)
    try:
        tensors = {name: tensor.clone() for name, tensor in load_tensors(blob).items()}
    except (SafetensorError, KeyError, ValueError, RuntimeError, MemoryError) as error:
        raise ModelFileError(f"holds no whole safetensors file: {AGAIN}") from error
    return checked_document(metadata, _parts(tensors)), tensors


def _parts(tensors: dict[str, Tensor]) -> list[StoredArray]:
    return [
        StoredArray(name, str(tensor.dtype), list(tensor.shape), _bytes(tensor)) for name, tensor in tensors.items()
    ]


def _bytes(tensor: Tensor) -> Any:
    return tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b""


def _model(blob: bytes, network: NetworkFactory | None) -> BasePNN:
    document, tensors = unpacked(blob)
    own_network = document.get("own_network")
    if own_network is True and network is None:
        raise ModelFileError("has a network of its own: pass network=, the function that it was fitted with.")
    if own_network is False and network is not None:
        raise ModelFileError("has no network of its own: leave network= out.")
    return from_document(document, tensors, network)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"A value of type {type(value).__name__} cannot be saved: use plain numbers, text and lists.")


def _detail(error: Exception) -> str:
    """Return what went wrong, short and on one line."""
    return detail(error, (ValueError, OtherNetworkError))
