"""Fields of a model's document, each checked when it is read. No torch here.

Class labels and row ids go out and come back: text, numbers, times and tuples of these, never objects.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from precisionnet.errors import InputError

LONGEST_TEXT = 2**28
"""Bytes of an array of labels."""


def classes_out(classes: Any) -> dict[str, Any]:
    """Return labels for the document."""
    values = classes.tolist()
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise InputError(
            f"Classes of type {classes.dtype} cannot be saved: use text, whole numbers or booleans as labels."
        )
    kind = classes.dtype.kind
    return {"dtype": "str" if kind == "U" else classes.dtype.str if kind in "biuf" else "object", "values": values}


def classes_in(said: Any) -> Any:
    """Return the labels of a document, an array of at least two in order."""
    require(keys(said) == {"dtype", "values"} and isinstance(said["values"], list), "the classes are no list")
    dtype, values = text(said["dtype"], "dtype"), said["values"]
    require(len(values) >= 2, "there are fewer than two classes")
    require(all(isinstance(value, str | int | float) for value in values), "the classes are no labels")
    if dtype == "str":
        longest = max(len(text(value, "a class")) for value in values)
        require(4 * longest * len(values) <= LONGEST_TEXT, "the classes are too long")
    else:
        require(dtype == "object" or re.fullmatch(r"[<>|][biuf][1248]", dtype) is not None, "the classes have no type")
    classes = np.array(values, dtype=dtype)
    back = classes.tolist()
    same = [type(value) for value in back] == [type(value) for value in values] and back == values
    require(same and np.array_equal(np.unique(classes), classes), "the classes are not sorted")
    return classes


def ids_out(row_ids: Any) -> tuple[dict[str, Any], Any]:
    """Return ids for the document, and their tensor: there may be as many as rows, too many for a header.

    Numbers and times are numbers, everything else is JSON in bytes.
    """
    kind, dtype = row_ids.dtype.kind, row_ids.dtype.str
    if kind in "biu":
        return {"dtype": dtype}, row_ids.astype(np.int64)
    if kind in "mM":
        return {"dtype": dtype}, row_ids.astype(dtype.replace(">", "<")).view(np.int64)
    if kind == "f" and row_ids.dtype.itemsize <= 8:
        return {"dtype": dtype}, row_ids.astype(np.float64)
    text = json.dumps([_id_out(value) for value in row_ids.tolist()])
    return {"dtype": "object"}, np.frombuffer(text.encode(), dtype=np.uint8)


def _id_out(value: Any) -> Any:
    """Return text, numbers and None as they are, tuples as lists, and text for anything else, such as a period."""
    if isinstance(value, tuple):
        return [_id_out(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, str | int | float) else str(value)


def ids_in(said: Any, array: Any) -> Any:
    """Return the ids of a document and its array."""
    require(keys(said) == {"dtype"} and array.ndim == 1, "the row ids are no list")
    dtype = text(said["dtype"], "dtype")
    if dtype == "object":
        require(array.dtype == np.uint8, "the row ids are no text")
        values = json.loads(array.tobytes())
        require(isinstance(values, list), "the row ids are no list")
        row_ids = np.empty(len(values), dtype=object)
        row_ids[:] = [_id_in(value) for value in values]
        return row_ids
    unit = r"\[[0-9]{0,4}(Y|M|W|D|h|m|s|ms|us|ns)\]"
    known = re.fullmatch(rf"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>][mM]8{unit}", dtype)
    require(known is not None, "the row ids have no type")
    require(array.dtype == (np.float64 if "f" in dtype else np.int64), "the row ids have another type")
    if dtype[1] in "mM":
        return array.view(dtype.replace(">", "<"))
    with np.errstate(all="ignore"):
        row_ids = array.astype(dtype)
        require(np.array_equal(row_ids.astype(array.dtype), array, equal_nan="f" in dtype), "a row id is out of range")
    return row_ids


def _id_in(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_id_in(one) for one in value)
    require(value is None or isinstance(value, str | int | float), "a row id is no label")
    return value


def require(fine: bool, complaint: str) -> None:
    """Raise ValueError with a complaint where something is not as it should be."""
    if not fine:
        raise ValueError(complaint)


def keys(value: Any) -> set[str] | None:
    """Return the names of a JSON object, None for anything else."""
    return set(value) if isinstance(value, Mapping) else None


def text(value: Any, name: str) -> str:
    """Return text, and refuse anything else."""
    require(isinstance(value, str), f"{name} is no text")
    return str(value)


def truth(value: Any, name: str) -> bool:
    """Return true or false, and refuse anything else."""
    require(isinstance(value, bool), f"{name} is neither true nor false")
    return bool(value)


def hash_text(value: Any) -> str:
    """Return the hash of rows as text."""
    require(re.fullmatch("[0-9a-f]{64}", text(value, "rows_hash")) is not None, "rows_hash is no hash")
    return str(value)


def whole(value: Any, name: str, least: int, most: int = 2**53) -> int:
    """Return a whole number in its range."""
    require(type(value) is int and least <= value <= most, f"{name} is not a whole number in its range")
    return int(value)


def number(
    value: Any, name: str, *, least: float = -math.inf, above: float = -math.inf, most: float | None = None
) -> float:
    """Return a number in its range."""
    require(type(value) in (int, float) and abs(value) < 1e300, f"{name} is no number")
    require(value >= least and value > above and (most is None or value <= most), f"{name} is out of range")
    return float(value)
