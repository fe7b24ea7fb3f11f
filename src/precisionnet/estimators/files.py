"""A model as one file in its folder, ``model.safetensors``, that cannot be lost.

The numbers are the file's tensors; everything else is a JSON document in its header, with a hash of both. There is no
pickle, and loading runs no code from the folder. ``save`` replaces the file in one step: a reader finds the old model
or the new one, also after a crash. ``load`` believes nothing: a file that is not what ``save`` wrote is refused in one
sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from precisionnet._version import __version__
from precisionnet.errors import InputError, ModelFileError, printable
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.member_networks import NetworkFactory
from precisionnet.estimators.model_document import to_document
from precisionnet.estimators.model_reader import OtherNetworkError, from_document
from precisionnet.outputs import names_in, refuse_foreign, whole_file

FORMAT, FORMAT_VERSION = "precisionnet-model", "1"
FILE_NAME = "model.safetensors"
MODEL_FOLDER = "model"
"""Where ``precisionnet fit`` puts the model in its output folder."""
LARGEST_HEADER = 64 * 2**20
LARGEST_FILE = 32 * 2**30
_METADATA = {"format", "format_version", "document", "sha256"}
_AGAIN = "it is damaged or was changed after it was written; copy the folder again, or fit and save the model again."


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
        return _model(_read(Path(folder)), network)
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
        raise ModelFileError(f"The model in {name} contradicts itself ({_detail(error)}): {_AGAIN}") from error


def is_model_folder(folder: Path) -> bool:
    """Tell whether a folder holds a model and nothing else.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Returns
    -------
    bool
        True for what ``save`` wrote, whole or not; scratch files of writers do not count.
    """
    if names_in(folder) != {FILE_NAME}:
        return False
    try:
        with _opened(folder) as file:
            _metadata(_head(file))
    except (ModelFileError, OSError):
        return False
    return True


def packed(document: dict[str, Any], tensors: dict[str, Tensor]) -> bytes:
    """Return the bytes of a model's file."""
    text = json.dumps(document, allow_nan=False, default=_plain)
    metadata = {"format": FORMAT, "format_version": FORMAT_VERSION, "document": text}
    blob: bytes = save_tensors(tensors, metadata | {"sha256": _hash(text, tensors)})
    return blob


def unpacked(blob: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the document and the tensors of a model's file, both as they were hashed."""
    metadata = _metadata(blob)
    try:
        tensors = {name: tensor.clone() for name, tensor in load_tensors(blob).items()}
    except (SafetensorError, KeyError, ValueError, RuntimeError, MemoryError) as error:
        raise ModelFileError(f"holds no whole safetensors file: {_AGAIN}") from error
    text = metadata.get("document")
    if set(metadata) != _METADATA or not isinstance(text, str) or metadata["sha256"] != _hash(text, tensors):
        raise ModelFileError(f"does not match its own hash: {_AGAIN}")
    document = _json(text)
    if not isinstance(document, dict):
        raise ModelFileError(f"has no document: {_AGAIN}")
    return document, tensors


def _model(blob: bytes, network: NetworkFactory | None) -> BasePNN:
    document, tensors = unpacked(blob)
    own_network = document.get("own_network")
    if own_network is True and network is None:
        raise ModelFileError("has a network of its own: pass network=, the function that it was fitted with.")
    if own_network is False and network is not None:
        raise ModelFileError("has no network of its own: leave network= out.")
    return from_document(document, tensors, network)


def _read(folder: Path) -> bytes:
    """Return the bytes of the model's file; a foreign file is refused by its head, however large it is."""
    with _opened(folder) as file:
        _metadata(_head(file))
        file.seek(0)
        return file.read()


def _opened(folder: Path) -> BinaryIO:
    """Open the model's file, which is an ordinary one of sensible size."""
    # Opening a FIFO waits for its writer, unless told not to.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    for path in (folder / FILE_NAME, folder / MODEL_FOLDER / FILE_NAME):
        try:
            descriptor = os.open(path, flags)
            break
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the name is a ValueError
            if os.path.lexists(path):  # a link to nothing
                raise
    else:
        raise ModelFileError(f"is not a model folder: it has no {FILE_NAME}; pass a folder made by save().")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
        os.close(descriptor)
        what = f"is larger than {LARGEST_FILE} bytes" if stat.S_ISREG(status.st_mode) else "is not an ordinary file"
        raise ModelFileError(f"is not a model folder: its {FILE_NAME} {what}; pass a folder made by save().")
    return os.fdopen(descriptor, "rb")


def _head(file: BinaryIO) -> bytes:
    """Return the header with its length before it, no more than it may have."""
    length = file.read(8)
    return length + file.read(min(int.from_bytes(length, "little"), LARGEST_HEADER))


def _metadata(blob: bytes) -> dict[str, Any]:
    """Return the header's metadata; a safetensors file begins with the header's length in eight bytes, then JSON."""
    length = int.from_bytes(blob[:8], "little")
    if not 0 < length <= min(LARGEST_HEADER, len(blob) - 8):
        raise ModelFileError(f"holds no whole safetensors file: {_AGAIN}")
    try:
        header = _json(blob[8 : 8 + length].decode())
    except ValueError as error:
        raise ModelFileError(f"holds no whole safetensors file: {_AGAIN}") from error
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError(
            "holds a file that was not written by precisionnet, or before its first release: pass a folder made by "
            "save(), or fit and save the model again."
        )
    version = metadata.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"has format version {str(version)[:20]!r} and this precisionnet ({__version__}) reads {FORMAT_VERSION!r}: "
            "install a version that matches."
        )
    return metadata


def _json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name stands twice")
        return found

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a document that is not JSON or too deep: {_AGAIN}") from error


def _hash(text: str, tensors: dict[str, Tensor]) -> str:
    """Return the sha256 of the document and of every tensor's name, dtype, shape and bytes."""
    names = sorted(tensors)
    shapes = [[name, str(tensors[name].dtype), list(tensors[name].shape)] for name in names]
    digest = hashlib.sha256(json.dumps([FORMAT, FORMAT_VERSION, text, shapes]).encode())
    for name in names:
        if tensors[name].numel():
            digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"A value of type {type(value).__name__} cannot be saved: use plain numbers, text and lists.")


def _detail(error: Exception) -> str:
    """Return what went wrong, short and on one line."""
    said = printable(" ".join(str(error).split()))[:200]
    return said if type(error) in (ValueError, OtherNetworkError) else f"{type(error).__name__}: {said}"
