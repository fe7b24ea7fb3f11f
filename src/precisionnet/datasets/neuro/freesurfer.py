"""FreeSurfer's ``aparcstats2table``: one table a hemisphere and measure."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from precisionnet.datasets.neuro.regions import HEMISPHERES
from precisionnet.datasets.joining import Part, join
from precisionnet.errors import InputError


def join_hemispheres(parts: Sequence[Part]) -> Part:
    """Left and right of the same measure and atlas, row by row."""
    for what in ("atlas", "measure"):
        for part in parts[1:]:
            mine, other = getattr(parts[0], what), getattr(part, what)
            if mine != other:
                raise InputError(
                    f"{parts[0].path!r} and {part.path!r} differ in their {what} ({mine!r} and {other!r}): left and "
                    "right must be of one kind; load the kinds one by one."
                )
    seen: dict[str, Part] = {}
    for part in parts:
        side = part.features.columns[0][:2]
        other = seen.setdefault(side, part)
        if other is not part:
            raise InputError(
                f"{other.path!r} and {part.path!r} both hold the {HEMISPHERES[side]} hemisphere ({part.measure}): give "
                "one table a hemisphere, and load cohorts one by one."
            )
    return functools.reduce(join, parts)
