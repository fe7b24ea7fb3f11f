"""What can go wrong, in one place.

Every error a user can cause carries one sentence that names the column, file or parameter and says what to do.
The command line prints that sentence and exits with code 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Control characters of both sets, line separators, switches of the writing direction, halves of a character.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class PrecisionNetError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrecisionNetError, ValueError):
    """The data or a parameter cannot be used as given."""


class Complaints(InputError):
    """Several things cannot be used as given, one sentence each: all that was found, so that one answer is enough."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        super().__init__(" ".join(f"({i}) {sentence}" for i, sentence in enumerate(self.sentences, 1)))


class ModelFileError(PrecisionNetError, ValueError):
    """A model folder is missing, foreign, truncated or inconsistent."""


class OutputError(PrecisionNetError, OSError):
    """An output file or folder cannot be written."""


class FetchError(PrecisionNetError, OSError):
    """A public data file could not be had: no connection, no such file, or not the file that was expected."""


class FitDivergedError(PrecisionNetError, ArithmeticError):
    """Training produced a value that is not finite; no model is returned."""


class PrecisionNetWarning(UserWarning):
    """Something the user should know about a result that was returned all the same."""


def refuse_all(sentences: Sequence[str]) -> None:
    """Raise one error that holds every sentence; none, and nothing happens."""
    different = list(dict.fromkeys(sentences))
    if different:
        raise InputError(different[0]) if len(different) == 1 else Complaints(different)


def printable(text: str) -> str:
    """Text that a terminal or a page shows as it is: line breaks, escape sequences and the like are spelled out."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(value: Any, most: int = 60) -> str:
    """A name or value in a sentence: quoted, on one line, and with its middle left out where it is long."""
    quoted = printable(repr(value.item() if getattr(value, "ndim", None) == 0 else value))  # np.int64(3) is 3
    return shortened(quoted, most)


def shortened(text: str, most: int) -> str:
    """Text with its middle left out where it is long."""
    return text if len(text) <= most else f"{text[: most - 20]}…{text[-19:]}"


def some(values: Sequence[Any], most: int = 3) -> str:
    """'a', 'b', 'c' and 4 more: a list short enough for a sentence."""
    listed = ", ".join(shown(value) for value in values[:most])
    return listed if len(values) <= most else f"{listed} and {len(values) - most} more"


def dropping(names: Iterable[Any], most: int = 30) -> str:
    """drop=['a', 'b']: how to leave out these columns, all of them unless a line of them is too long to copy."""
    return f"drop=[{', '.join(shown(name) for name in list(names)[:most])}]"


def did_you_mean(name: str, candidates: Iterable[Any]) -> str:
    """' (did you mean ...?)' where a candidate is close, else nothing."""
    known = {str(candidate).lower(): str(candidate) for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f" (did you mean {shown(known[close[0]])}?)" if close else ""
