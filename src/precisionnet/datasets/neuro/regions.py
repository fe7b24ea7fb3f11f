"""One name for one region: ``lh_insula``, whatever a file calls it.

    lh_insula_thickness    L_insula_thickavg    left insula    ctx-lh-insula    insula_lh    lh.insula
    lh_G&S_frontomargin_thickness    lh_G_and_S_frontomargin_area

A name is cut into hemisphere, region and measure; the region is looked up in the atlases without regard to case,
blanks and punctuation. Names that say a total (mean thickness, eTIV) are known, too: totals are never features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from precisionnet.arguments import check_choice
from precisionnet.datasets.neuro.regions import DESIKAN, DESTRIEUX, DKT, NOT_IN_DKT
from precisionnet.errors import InputError, some


class Region(NamedTuple):
    """What a column's name says."""

    side: str
    region: str
    measure: str
    """thickness, area, volume, ...; empty where the name does not say."""

    @property
    def name(self) -> str:
        """The one name."""
        return f"{self.side}_{self.region}"


SIDES = {"lh": "lh", "l": "lh", "left": "lh", "rh": "rh", "r": "rh", "right": "rh"}
MEASURES = {
    **dict.fromkeys(("thickness", "thickavg", "thick"), "thickness"),
    **dict.fromkeys(("area", "surfavg", "surfarea"), "area"),
    **dict.fromkeys(("volume", "vol", "grayvol"), "volume"),
    **{name: name for name in ("thicknessstd", "meancurv", "gauscurv", "foldind", "curvind")},
}
_SIDE = "|".join(SIDES)
_BREAK = r"[\s_.\-]+"
_SIDE_FIRST = re.compile(rf"(?:ctx{_BREAK})?({_SIDE}){_BREAK}(.+)", re.IGNORECASE | re.DOTALL)
_SIDE_LAST = re.compile(rf"(.+?){_BREAK}({_SIDE})", re.IGNORECASE | re.DOTALL)
_MEASURE_LAST = re.compile(rf"(.+?){_BREAK}({'|'.join(sorted(MEASURES, key=len, reverse=True))})", re.IGNORECASE)

LONGEST = 80
"""No name of a region is longer; what is, need not be looked at."""


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.replace("&", "and").lower())


_REGIONS = {_key(region): region for region in [*DESIKAN, *DESTRIEUX]}

_TOTALS = re.compile(
    r"(?:l|r|lh|rh|left|right|mean|total)*(?:"
    r"meanthickness(?:thickness)?|thickness|thickavg|surfarea|whitesurfarea(?:area)?|whitesurfareavolume|"
    r"brainsegvol(?:notvent)?(?:surf)?|etiv|icv|tiv|estimatedtotalintracranialvol|intracranialvolume|"
    r"cortexvol|cerebralwhitemattervol|corticalwhitemattervol|subcortgrayvol|graymattervol|totalgrayvol|grayvol|"
    r"supratentorialvol(?:notvent)?|maskvol|brainvolume"
    r")"
)
_NOT_CORTEX = {"unknown", "medialwall", "corpuscallosum", "gandsmedialwall"}


def parse_region(name: str) -> Region | None:
    """Hemisphere, region and measure, or None where the name is not that of a cortical region."""
    if len(name) > LONGEST:
        return None
    name = name.strip()
    rest, measure = name, ""
    if found := _MEASURE_LAST.fullmatch(name):
        rest, measure = found[1], MEASURES[found[2].lower()]
    if found := _SIDE_FIRST.fullmatch(rest):
        side, region = found[1], found[2]
    elif found := _SIDE_LAST.fullmatch(rest):
        region, side = found[1], found[2]
    else:
        return None
    known = _REGIONS.get(_key(region))
    return None if known is None else Region(SIDES[side.lower()], known, measure)


def is_total(name: str) -> bool:
    """Whether a name says a sum or mean over regions, a head size, or what is not cortex at all."""
    if len(name) > LONGEST:
        return False
    key = _key(name)
    bare = re.sub(r"^(lh|rh|left|right)|(thickness|area|volume)$", "", key)
    return _TOTALS.fullmatch(key) is not None or bare in _NOT_CORTEX


def looks_like_region(name: str) -> bool:
    """Whether a name says a hemisphere and a measure, or 'left ...', and yet is no known region and no total."""
    if len(name) > LONGEST or parse_region(name) is not None or is_total(name):
        return False
    found = _MEASURE_LAST.fullmatch(name.strip())
    sided = _SIDE_FIRST.fullmatch(found[1] if found else name.strip())
    return sided is not None and (found is not None or sided[1].lower() in ("lh", "rh", "left", "right"))


def region_names(columns: Iterable[str]) -> tuple[dict[str, str], str]:
    """From each column that is a region to its one name, and the measure they share.

    Where there are several measures, the names say which.
    """
    parsed = {column: region for column in columns if (region := parse_region(column)) is not None}
    measures = sorted({region.measure for region in parsed.values()})
    several = len(measures) > 1
    names = {c: f"{r.name}_{r.measure}" if several and r.measure else r.name for c, r in parsed.items()}
    taken: dict[str, str] = {}
    for column, name in names.items():
        other = taken.setdefault(name, column)
        if other != column:
            raise InputError(f"Columns {some([other, column])} are both {name!r}: rename or remove one.")
    return names, measures[0] if len(measures) == 1 else ""


REDUCTIONS = ("all", "dkt62")


def reduce_regions(names: Mapping[str, str], regions: str) -> dict[str, str]:
    """The columns to keep: all, or the 62 regions that the DKT protocol shares with Desikan-Killiany."""
    check_choice("regions", regions, REDUCTIONS)
    if regions == "all":
        return dict(names)
    inside, outside = set(DKT), set(NOT_IN_DKT)
    found = {column: parse_region(column) or parse_region(name) for column, name in names.items()}
    foreign = [c for c, r in found.items() if r is None or (r.region not in inside and r.region not in outside)]
    if foreign:
        raise InputError(
            f"regions='dkt62' needs the Desikan-Killiany atlas, and column {some(foreign)} is of another: use "
            "regions='all'."
        )
    return {column: name for column, name in names.items() if (r := found[column]) is not None and r.region in inside}
