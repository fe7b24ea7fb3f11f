"""JSON values and their hash: a row in memory is the row that is read back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """The same in JSON's own types; a number that is not finite, which JSON has no word for, becomes None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"cannot write {type(value).__name__} to JSON")


def to_line(values: Mapping[str, Any]) -> bytes:
    """One line, its end included; no value can hold a bare line break."""
    return json.dumps(plain(values), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def digest(values: Mapping[str, Any]) -> str:
    """A hash that does not depend on the order of keys."""
    text = json.dumps(plain(values), sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What tells two JSON values apart, in words: "repeats 5, not 2"."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        keys = {**there, **here}
        inner = ((f"{name}.{key}" if name else key, there.get(key), here.get(key)) for key in keys)
        return [found for path, left, right in inner for found in differences(left, right, path)]
    return [] if there == here else [f"{name} {_word(there)}, not {_word(here)}"]


def _word(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_word, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value)
