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
from precisionnet.errors import InputError, some

HEMISPHERES = {"lh": "left", "rh": "right"}
DESIKAN = """
    bankssts caudalanteriorcingulate caudalmiddlefrontal cuneus entorhinal fusiform inferiorparietal
    inferiortemporal isthmuscingulate lateraloccipital lateralorbitofrontal lingual medialorbitofrontal
    middletemporal parahippocampal paracentral parsopercularis parsorbitalis parstriangularis pericalcarine
    postcentral posteriorcingulate precentral precuneus rostralanteriorcingulate rostralmiddlefrontal
    superiorfrontal superiorparietal superiortemporal supramarginal frontalpole temporalpole transversetemporal
    insula
""".split()  # noqa: SIM905 - a list this long is easier read as text
"""Desikan-Killiany, 34 regions per hemisphere, in FreeSurfer's order."""
NOT_IN_DKT = ("bankssts", "frontalpole", "temporalpole")
"""Regions that the Desikan-Killiany-Tourville protocol (31 per hemisphere, 62 in all) leaves out."""
DKT = [region for region in DESIKAN if region not in NOT_IN_DKT]
DESTRIEUX = """
    G_and_S_frontomargin G_and_S_occipital_inf G_and_S_paracentral G_and_S_subcentral G_and_S_transv_frontopol
    G_and_S_cingul-Ant G_and_S_cingul-Mid-Ant G_and_S_cingul-Mid-Post G_cingul-Post-dorsal G_cingul-Post-ventral
    G_cuneus G_front_inf-Opercular G_front_inf-Orbital G_front_inf-Triangul G_front_middle G_front_sup
    G_Ins_lg_and_S_cent_ins G_insular_short G_occipital_middle G_occipital_sup G_oc-temp_lat-fusifor
    G_oc-temp_med-Lingual G_oc-temp_med-Parahip G_orbital G_pariet_inf-Angular G_pariet_inf-Supramar
    G_parietal_sup G_postcentral G_precentral G_precuneus G_rectus G_subcallosal G_temp_sup-G_T_transv
    G_temp_sup-Lateral G_temp_sup-Plan_polar G_temp_sup-Plan_tempo G_temporal_inf G_temporal_middle
    Lat_Fis-ant-Horizont Lat_Fis-ant-Vertical Lat_Fis-post Pole_occipital Pole_temporal S_calcarine S_central
    S_cingul-Marginalis S_circular_insula_ant S_circular_insula_inf S_circular_insula_sup S_collat_transv_ant
    S_collat_transv_post S_front_inf S_front_middle S_front_sup S_interm_prim-Jensen S_intrapariet_and_P_trans
    S_oc_middle_and_Lunatus S_oc_sup_and_transversal S_occipital_ant S_oc-temp_lat S_oc-temp_med_and_Lingual
    S_orbital_lateral S_orbital_med-olfact S_orbital-H_Shaped S_parieto_occipital S_pericallosal S_postcentral
    S_precentral-inf-part S_precentral-sup-part S_suborbital S_subparietal S_temporal_inf S_temporal_sup
    S_temporal_transverse
""".split()  # noqa: SIM905 - a list this long is easier read as text
"""Destrieux (aparc.a2009s), 74 regions a hemisphere; older FreeSurfer writes '&' for '_and_'."""
_BEFORE_INSULA = [region for region in DESIKAN if region != "insula"]
_AT_4 = [*_BEFORE_INSULA[:3], None, *_BEFORE_INSULA[3:], "insula"]  # label 4 is the corpus callosum
LABELS = {
    base + number: f"{side}_{region}"
    for base, side in ((1000, "lh"), (2000, "rh"))
    for number, region in enumerate(_AT_4, start=1)
    if region is not None
}
"""FreeSurfer's label numbers (1002, ..., 2035), which ANTs' region files use."""
# The n of ADNI's ST<n>TA (thickness average), in alphabetical order of the regions, the insula last.
_ADNI_LEFT = "13 14 15 23 24 25 26 31 32 34 35 36 38 39 40 43 44 45 46 47 48 49 50 51 52 54 55 56 57 58 59 60 62 129"
_ADNI_RIGHT = (
    "72 73 74 82 83 84 85 90 91 93 94 95 97 98 99 102 103 104 105 106 107 108 109 110 111 113 114 115 116 117 118 119 "
    "121 130"
)
_ALPHABETICAL = [*sorted(_BEFORE_INSULA), "insula"]
ADNI_CODES = {
    f"ST{number}TA": f"{side}_{region}"
    for side, numbers in (("lh", _ADNI_LEFT), ("rh", _ADNI_RIGHT))
    for number, region in zip(numbers.split(), _ALPHABETICAL, strict=True)
}
"""Columns of ADNI's UCSF FreeSurfer table that hold a thickness."""


SUBCORTICAL = """
    Lateral-Ventricle Inf-Lat-Vent Cerebellum-White-Matter Cerebellum-Cortex Thalamus Caudate Putamen Pallidum
    Hippocampus Amygdala Accumbens-area VentralDC vessel choroid-plexus
""".split()  # noqa: SIM905 - a list this long is easier read as text
"""FreeSurfer's aseg, structures of each hemisphere."""
MIDLINE = """
    3rd-Ventricle 4th-Ventricle 5th-Ventricle Brain-Stem CSF Optic-Chiasm
    CC_Posterior CC_Mid_Posterior CC_Central CC_Mid_Anterior CC_Anterior
""".split()  # noqa: SIM905 - as above
"""Structures of aseg that are there once."""
_ENIGMA = {"thal": "Thalamus", "caud": "Caudate", "put": "Putamen", "pal": "Pallidum", "hippo": "Hippocampus",
           "amyg": "Amygdala", "accumb": "Accumbens-area", "latvent": "Lateral-Ventricle"}  # fmt: skip
"""ENIGMA's names for them, after L or R."""


class Region(NamedTuple):
    """The region, hemisphere and measure that a column's name says."""

    side: str
    region: str
    measure: str
    """thickness, area, volume, ...; empty where the name does not say."""

    @property
    def name(self) -> str:
        """The region's standard name, such as ``lh_insula``."""
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
_STRUCTURES = {_key(name): name.lower().replace("_", "-") for name in SUBCORTICAL}
_STRUCTURES |= {"thalamusproper": "thalamus", "accumbens": "accumbens-area"}
_MIDLINE = {_key(name): name.lower().replace("_", "-") for name in MIDLINE}
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


def parse_structure(name: str) -> str | None:
    """The one name of a subcortical structure, such as lh_hippocampus or brain-stem; None for any other name."""
    if len(name) > LONGEST:
        return None
    name = re.sub(rf"{_BREAK}(?:volume|vol)$", "", name.strip(), flags=re.IGNORECASE)
    if _key(name) in _MIDLINE:
        return _MIDLINE[_key(name)]
    if (found := re.fullmatch(r"([LR])([a-z]+)", name, re.IGNORECASE)) and found[2].lower() in _ENIGMA:
        return f"{SIDES[found[1].lower()]}_{_ENIGMA[found[2].lower()].lower()}"
    found = _SIDE_FIRST.fullmatch(name) or _SIDE_LAST.fullmatch(name)
    if found is None:
        return None
    side, rest = (found[1], found[2]) if found[1].lower() in SIDES else (found[2], found[1])
    known = _STRUCTURES.get(_key(rest))
    return None if known is None else f"{SIDES[side.lower()]}_{known}"


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
    """Map each column that is a region to the region's standard name; return also the measure that all share.

    If there are several measures, each is part of its columns' names.
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
    below = {column for column in names if parse_structure(column) is not None}
    foreign = [c for c, r in found.items() if c not in below and (r is None or r.region not in inside | outside)]
    if foreign:
        raise InputError(
            f"regions='dkt62' needs the Desikan-Killiany atlas, and column {some(foreign)} is of another: use "
            "regions='all'."
        )
    return {
        column: name
        for column, name in names.items()
        if column in below or ((r := found[column]) is not None and r.region in inside)
    }
