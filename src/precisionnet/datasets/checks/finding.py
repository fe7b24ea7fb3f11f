"""What a check has to say, and the few turns of phrase that the checks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from precisionnet.errors import shown

LevelName = Literal["note", "warning", "error"]
LEVELS: tuple[LevelName, ...] = ("note", "warning", "error")


@dataclass(frozen=True)
class Finding:
    """One plain sentence about a data set.

    Parameters
    ----------
    level : {"note", "warning", "error"}
        A note is a fact, a warning is something that may mislead, an error makes a fit impossible.
    check : str
        A short key: "outliers", "site", ...
    sentence : str
        What was found, and what to do about it.

    Examples
    --------
    >>> Finding("note", "size", "20 rows, 4 columns.").level
    'note'
    """

    level: LevelName
    check: str
    sentence: str


def counted(n: int, thing: str, things: str | None = None) -> str:
    """'1 row', '2,000 rows'."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def column_list(names: Sequence[Any], most: int = 3) -> str:
    """'Column 'a' is' or 'Columns 'a', 'b' and 4 more are' without the verb; the caller chooses it by number."""
    return f"Column{'' if len(names) == 1 else 's'} {and_list([shown(name) for name in names], most)}"


def and_list(parts: Sequence[str], most: int = 3) -> str:
    """'a', 'a and b', 'a, b and c', 'a, b, c and 4 more'."""
    if len(parts) > most:
        return f"{', '.join(parts[:most])} and {len(parts) - most} more"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
