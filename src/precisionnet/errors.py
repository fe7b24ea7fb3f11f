"""What can go wrong, in one place.

Every error a user can cause carries one sentence that names the column, file or parameter and says what to do.
The command line prints that sentence and exits with code 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class PrecisionNetError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrecisionNetError, ValueError):
    """The data or a parameter cannot be used as given."""


class ModelFileError(PrecisionNetError, ValueError):
    """A model folder is missing, foreign, truncated or inconsistent."""


class OutputError(PrecisionNetError, OSError):
    """An output file or folder cannot be written."""


class FitDivergedError(PrecisionNetError, ArithmeticError):
    """Training produced a value that is not finite; no model is returned."""


class PrecisionNetWarning(UserWarning):
    """Something the user should know about a result that was returned all the same."""


def some(values: Sequence[Any], most: int = 3) -> str:
    """'a', 'b', 'c' and 4 more: a list short enough for a sentence."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def did_you_mean(name: str, candidates: Iterable[Any]) -> str:
    """' (did you mean ...?)' where a candidate is close, else nothing."""
    known = {str(candidate).lower(): str(candidate) for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f" (did you mean {known[close[0]]!r}?)" if close else ""
