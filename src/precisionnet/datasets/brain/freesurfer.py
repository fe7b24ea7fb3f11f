"""FreeSurfer's ``aparcstats2table``: one table a hemisphere and measure."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from precisionnet.datasets.brain.regions import parse_region
from precisionnet.datasets.loading.parts import Part, join
from precisionnet.errors import InputError

SIDES = {"lh": "left", "rh": "right"}


def join_hemispheres(parts: Sequence[Part]) -> Part:
    """Left and right of the same measure and atlas, row by row; a hemisphere alone is told."""
    seen: dict[tuple[str, str, str], Part] = {}
    for part in parts:
        key = _what(part)
        other = seen.setdefault(key, part)
        if other is not part:
            raise InputError(
                f"{other.path!r} and {part.path!r} both hold the {SIDES[key[0]]} hemisphere ({key[2]}): give one table "
                "a hemisphere, and load cohorts one by one."
            )
    for place, what in ((1, "atlas"), (2, "measure")):
        kinds = sorted({key[place] for key in seen})
        if len(kinds) > 1:
            raise InputError(
                f"{parts[0].path!r} and {parts[-1].path!r} differ in their {what} ({' and '.join(kinds)}): "
                "left and right must be of one kind; load them one by one."
            )
    if len(parts) == 1:
        return parts[0].noting(f"{parts[0].path!r} holds the {SIDES[next(iter(seen))[0]]} hemisphere only.")
    return functools.reduce(join, parts)


def _what(part: Part) -> tuple[str, str, str]:
    """Hemisphere, atlas and measure, from the columns themselves."""
    first = next(iter(part.original_names.values()))
    region = parse_region(first)
    assert region is not None, "the reader kept region columns only"
    destrieux = region.region[:2] in ("G_", "S_", "La", "Po")
    return region.side, "Destrieux" if destrieux else "Desikan-Killiany", region.measure
