"""The file of a model, ``model.safetensors``, without torch: its bytes, its document and its arrays.

A safetensors file begins with the length of its header in eight bytes, then the header, JSON. The model's document is
JSON in the header's metadata, beside a hash of the document and of every array.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from precisionnet._version import __version__
from precisionnet.errors import ModelFileError, printable
from precisionnet.outputs import names_in

FORMAT, FORMAT_VERSION = "precisionnet-model", "1"
FILE_NAME = "model.safetensors"
MODEL_FOLDER = "model"
"""Name of the model's file in the output folder of ``precisionnet fit``."""
LARGEST_HEADER = 64 * 2**20
LARGEST_FILE = 32 * 2**30
_METADATA = {"format", "format_version", "document", "sha256"}
AGAIN = "it is damaged or was changed after it was written; copy the folder again, or fit and save the model again."


class StoredArray(NamedTuple):
    """One array of a model's file, as it is hashed."""

    name: str
    dtype: str
    """Name of the type as torch writes it, such as "torch.float64"."""
    shape: list[int]
    data: Any
    """Its bytes, or a buffer of them."""


def read_file(folder: Path) -> bytes:
    """Return the bytes of the model's file; a foreign file is refused by its head, however large it is."""
    with _opened(folder) as file:
        read_metadata(_head(file))
        file.seek(0)
        return file.read()


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
            read_metadata(_head(file))
    except (ModelFileError, OSError):
        return False
    return True


def read_arrays(blob: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the document and the arrays of a model's file, both as they were hashed."""
    metadata = read_metadata(blob)
    try:
        arrays: dict[str, Any] = load_arrays(blob)
    except (SafetensorError, KeyError, ValueError, RuntimeError, MemoryError, TypeError) as error:
        raise ModelFileError(f"holds no whole safetensors file: {AGAIN}") from error
    parts = [
        StoredArray(name, f"torch.{a.dtype}", list(a.shape), np.ascontiguousarray(a)) for name, a in arrays.items()
    ]
    return checked_document(metadata, parts), arrays


def checked_document(metadata: dict[str, Any], parts: Iterable[StoredArray]) -> dict[str, Any]:
    """Return the document of a file's metadata, which matches its hash."""
    text = metadata.get("document")
    if set(metadata) != _METADATA or not isinstance(text, str) or metadata["sha256"] != content_hash(text, parts):
        raise ModelFileError(f"does not match its own hash: {AGAIN}")
    document = _json(text)
    if not isinstance(document, dict):
        raise ModelFileError(f"has no document: {AGAIN}")
    return document


def content_hash(text: str, parts: Iterable[StoredArray]) -> str:
    """Return the sha256 of the document and of every array's name, dtype, shape and bytes."""
    ordered = sorted(parts, key=lambda part: part.name)
    shapes = [[part.name, part.dtype, part.shape] for part in ordered]
    digest = hashlib.sha256(json.dumps([FORMAT, FORMAT_VERSION, text, shapes]).encode())
    for part in ordered:
        if 0 not in part.shape:
            digest.update(part.data)
    return digest.hexdigest()


def detail(error: Exception, plain: tuple[type[Exception], ...] = (ValueError,)) -> str:
    """Return what went wrong, short and on one line, with its kind unless that is one of the ``plain`` ones."""
    said = printable(" ".join(str(error).split()))[:200]
    return said if type(error) in plain else f"{type(error).__name__}: {said}"


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


def read_metadata(blob: bytes) -> dict[str, Any]:
    """Return the header's metadata; a safetensors file begins with the header's length in eight bytes, then JSON."""
    length = int.from_bytes(blob[:8], "little")
    if not 0 < length <= min(LARGEST_HEADER, len(blob) - 8):
        raise ModelFileError(f"holds no whole safetensors file: {AGAIN}")
    try:
        header = _json(blob[8 : 8 + length].decode())
    except ValueError as error:
        raise ModelFileError(f"holds no whole safetensors file: {AGAIN}") from error
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
        raise ModelFileError(f"has a document that is not JSON or too deep: {AGAIN}") from error
