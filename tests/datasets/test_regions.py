"""One name for one region, whatever the file calls it."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.datasets.neuro.regions import (
    ADNI_CODES,
    DESIKAN,
    DESTRIEUX,
    DKT,
    LABELS,
    is_total,
    parse_region,
    reduce_regions,
    region_names,
)
from precisionnet.errors import InputError


@pytest.mark.parametrize(
    "name",
    ["lh_insula_thickness", "L_insula_thickavg", "left insula", "Left Insula", "ctx-lh-insula", "ctx_lh_insula"]
    + ["insula_lh", "lh.insula", "LH-INSULA", "lh_insula", "L_insula_surfavg", "lh_insula_area", " left  insula "],
)
def test_every_spelling_is_the_same_region(name):
    assert parse_region(name).name == "lh_insula"


@pytest.mark.parametrize(
    "old", ["G&S_frontomargin", "G_Ins_lg&S_cent_ins", "S_oc-temp_med&Lingual", "S_intrapariet&P_trans"]
)
def test_destrieux_in_both_spellings(old):
    new = old.replace("&", "_and_")
    assert parse_region(f"rh_{old}_thickness") == parse_region(f"rh_{new}_thickness")
    assert parse_region(f"rh_{old}_thickness").name == f"rh_{new}"


def test_the_atlases_have_as_many_regions_as_they_should():
    assert (len(DESIKAN), len(DKT), len(DESTRIEUX), len(LABELS), len(ADNI_CODES)) == (34, 31, 74, 68, 68)
    assert len(set(DESIKAN) | set(DESTRIEUX)) == 108
    for region in [*DESIKAN, *DESTRIEUX]:
        assert parse_region(f"lh_{region}_thickness") == ("lh", region, "thickness")
    assert LABELS[1002] == "lh_caudalanteriorcingulate"
    assert LABELS[2035] == "rh_insula"
    assert 1004 not in LABELS


@pytest.mark.parametrize(
    "name",
    [
        "lh_MeanThickness_thickness",
        "rh_WhiteSurfArea_area",
        "BrainSegVolNotVent",
        "eTIV",
        "EstimatedTotalIntraCranialVol",
    ]
    + ["LThickness", "RThickness", "LSurfArea", "RSurfArea", "ICV", "TotalGrayVol", "lh_unknown_thickness"],
)
def test_totals_are_known_by_name(name):
    assert is_total(name)
    assert parse_region(name) is None


@pytest.mark.parametrize(
    "name", ["age", "site", "sex", "lh_thing", "insula", "thick", "l_age", "right", "volume of tea", "x" * 10_000]
)
def test_other_names_are_neither(name):
    assert parse_region(name) is None
    assert not is_total(name)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200))
def test_no_name_breaks_it(name):
    parse_region(name)
    is_total(name)


def test_two_measures_keep_their_names_apart_and_two_of_one_are_refused():
    names, measure = region_names(["lh_insula_thickness", "lh_insula_area", "age"])
    assert measure == ""
    assert region_names(["lh_insula_area", "rh_insula_area"])[1] == "area"
    assert names == {"lh_insula_thickness": "lh_insula_thickness", "lh_insula_area": "lh_insula_area"}
    with pytest.raises(InputError, match="'lh_insula_thickness', 'L_insula_thickavg' are both 'lh_insula'"):
        region_names(["lh_insula_thickness", "L_insula_thickavg"])


def test_the_reduction_to_dkt():
    names = {f"{side}_{r}": f"{side}_{r}" for side in ("lh", "rh") for r in DESIKAN}
    assert len(reduce_regions(names, "dkt62")) == 62
    assert len(reduce_regions(names, "all")) == 68
    with pytest.raises(InputError, match="did you mean 'dkt62'"):
        reduce_regions(names, "dkt")
    with pytest.raises(InputError, match="of another"):
        reduce_regions({"lh_G_cuneus": "lh_G_cuneus"}, "dkt62")


@pytest.mark.data
def test_adni_codes_are_those_of_the_list(data_folder):
    with (data_folder / "adni_thickness_codes.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert {r["adni_column"]: f"{r['hemisphere']}_{r['desikan_region']}" for r in rows} == ADNI_CODES
    assert {r["desikan_region"] for r in rows if r["in_dkt62"] == "1"} == set(DKT)
