"""Whether an argument is what it should be; one wording for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from precisionnet.errors import InputError, did_you_mean


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of a few words."""
    if not (isinstance(value, str) and value in choices):
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}{hint}.")


def check_switch(name: str, value: Any) -> None:
    """Refuse a value that is not True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}.")


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse a value that is no whole number, or is below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least}, got {value!r}.")


def check_number(
    name: str,
    value: Any,
    low: float = 0.0,
    high: float = np.inf,
    *,
    low_allowed: bool = True,
    high_allowed: bool = False,
) -> None:
    """Refuse a value that is not a finite number in a range."""
    number = not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))
    if number and (low < value < high or (low_allowed and value == low) or (high_allowed and value == high)):
        return
    limits = f"{'>=' if low_allowed else '>'} {low:g}"
    if np.isfinite(high):
        limits += f" and {'<=' if high_allowed else '<'} {high:g}"
    raise InputError(f"{name} must be a number {limits}, got {value!r}.")


def masked_as_missing(values: Any) -> Any:
    """Return a masked array with NaN where it is masked, as NumPy would drop the mask; anything else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.getmaskarray(values).any():
        return values.data
    kind = values.dtype.kind
    filled: Any = values.astype(values.dtype if kind in "fc" else np.float64 if kind in "biu" else object)
    return filled.filled(np.nan)


def refuse_two_roles(named: Iterable[tuple[str, str | None]]) -> None:
    """(role, column) pairs: a column is one thing."""
    seen: dict[str, str] = {}
    for role, name in named:
        other = role if name is None else seen.setdefault(name, role)
        if other != role:
            raise InputError(f"Column {name!r} is named as {other} and as {role}: it can only be one of them.")
