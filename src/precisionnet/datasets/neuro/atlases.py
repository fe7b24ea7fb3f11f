"""The cortical atlases of the field: which regions they have, and the numbers other tools give them."""

from __future__ import annotations

HEMISPHERES = {"lh": "left", "rh": "right"}

DESIKAN = """
    bankssts caudalanteriorcingulate caudalmiddlefrontal cuneus entorhinal fusiform inferiorparietal
    inferiortemporal isthmuscingulate lateraloccipital lateralorbitofrontal lingual medialorbitofrontal
    middletemporal parahippocampal paracentral parsopercularis parsorbitalis parstriangularis pericalcarine
    postcentral posteriorcingulate precentral precuneus rostralanteriorcingulate rostralmiddlefrontal
    superiorfrontal superiorparietal superiortemporal supramarginal frontalpole temporalpole transversetemporal
    insula
""".split()  # noqa: SIM905 - a list this long is easier read as text
"""Desikan-Killiany, 34 regions a hemisphere, in FreeSurfer's order."""

NOT_IN_DKT = ("bankssts", "frontalpole", "temporalpole")
"""What the Desikan-Killiany-Tourville protocol (31 regions, 62 in all) leaves out."""
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
