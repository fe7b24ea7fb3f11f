"""Small files in the exact layouts of the field."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import (
    fetch_abide,
    fetch_ants_mindboggle,
    load_adni,
    load_ants,
    load_enigma,
    load_freesurfer,
    load_participants,
    load_table,
)
from precisionnet.datasets.neuro.regions import ADNI_CODES, DESIKAN, DESTRIEUX, DKT
from precisionnet.errors import InputError

PEOPLE = ["sub-01", "sub-02", "sub-03"]


def aparc(folder, side, regions=DESIKAN, people=PEOPLE, measure="thickness", atlas="aparc", extra=True, seed=0):
    """What aparcstats2table writes."""
    rng = np.random.default_rng(seed)
    names = [f"{side}_{r}_{measure}" for r in regions]
    frame = pd.DataFrame(rng.uniform(1.5, 4, (len(people), len(names))).round(3), columns=names)
    frame.insert(0, f"{side}.{atlas}.{measure}", people)
    if extra:
        frame[f"{side}_MeanThickness_thickness"] = 2.5
        frame["BrainSegVolNotVent"] = 1e6
        frame["eTIV"] = 1.5e6
    path = folder / f"{side}.{atlas}.{measure}.tsv"
    frame.to_csv(path, sep="\t", index=False)
    return path


def participants(
    folder, text="participant_id\tage\tsex\tsite\nsub-01\t31.5\tF\tOslo\nsub-03\t89+\tM\tn/a\nsub-02\tn/a\tF\tBergen\n"
):
    path = folder / "participants.tsv"
    path.write_text(text)
    return path


def test_freesurfer_with_participants(tmp_path):
    lh, rh = aparc(tmp_path, "lh"), aparc(tmp_path, "rh", seed=1)
    data = load_freesurfer(lh, rh, participants=participants(tmp_path))
    assert data.X.shape == (3, 68)
    assert list(data.X.columns[:2]) == ["lh_bankssts", "lh_caudalanteriorcingulate"]
    assert data.original_names["rh_insula"] == "rh_insula_thickness"
    assert list(data.X.index) == PEOPLE
    np.testing.assert_array_equal(data.y, [31.5, np.nan, 89.0])
    assert list(data.site) == ["Oslo", "Bergen", None]
    assert list(data.groups) == PEOPLE
    assert set(data.covariates) == {
        "sex",
        "lh_MeanThickness_thickness",
        "rh_MeanThickness_thickness",
        "BrainSegVolNotVent",
        "eTIV",
    }
    said = " ".join(data.notes)
    assert "'89+' was read without the plus in 1 rows" in said
    assert "Totals" in said
    assert "'age' is missing in 1 of 3 rows" in said
    assert data.X.loc["sub-02", "rh_insula"] == pd.read_csv(rh, sep="\t").loc[1, "rh_insula_thickness"]


def test_the_order_of_files_does_not_matter_and_a_folder_will_do(tmp_path):
    lh, rh = aparc(tmp_path, "lh"), aparc(tmp_path, "rh", people=PEOPLE[::-1], seed=1)
    first, second, third = load_freesurfer(lh, rh), load_freesurfer([rh, lh]), load_freesurfer(tmp_path)
    pd.testing.assert_frame_equal(first.X, second.X.loc[first.X.index])
    pd.testing.assert_frame_equal(first.X, third.X)
    pd.testing.assert_frame_equal(first.X, load_table(lh, rh).X)


def test_the_reduction_to_62(tmp_path):
    assert load_freesurfer(aparc(tmp_path, "lh"), aparc(tmp_path, "rh"), regions="dkt62").X.shape == (3, 62)


@pytest.mark.parametrize("measure", ["thickness", "area", "volume"])
@pytest.mark.parametrize("sign", ["&", "_and_"])
def test_destrieux_in_both_spellings_and_every_measure(tmp_path, measure, sign):
    regions = [r.replace("_and_", sign) for r in DESTRIEUX]
    tables = [aparc(tmp_path, side, regions, measure=measure, atlas="aparc.a2009s") for side in ("lh", "rh")]
    data = load_freesurfer(*tables)
    assert data.X.shape == (3, 148)
    assert data.X.columns[0] == "lh_G_and_S_frontomargin"


def test_sessions_are_scans_of_one_person_and_find_their_participant(tmp_path):
    scans = ["sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1"]
    tables = [aparc(tmp_path, side, people=scans) for side in ("lh", "rh")]
    data = load_freesurfer(*tables, participants=participants(tmp_path))
    assert list(data.groups) == ["sub-01", "sub-01", "sub-02"]
    np.testing.assert_array_equal(data.y, [31.5, 31.5, np.nan])
    assert any("were matched by person" in note for note in data.notes)


def test_one_hemisphere_alone_is_said(tmp_path):
    data = load_freesurfer(aparc(tmp_path, "lh"))
    assert data.X.shape == (3, 34)
    assert data.y is None
    assert "Only the left hemisphere" in " ".join(data.notes)


def test_mixed_hemispheres_atlases_and_measures_are_refused(tmp_path):
    lh = aparc(tmp_path, "lh")
    (tmp_path / "b").mkdir()
    again = aparc(tmp_path / "b", "lh")
    with pytest.raises(InputError, match="both hold the left hemisphere"):
        load_freesurfer(lh, again)
    with pytest.raises(InputError, match=r"differ in their measure \('thickness' and 'area'\)"):
        load_freesurfer(lh, aparc(tmp_path, "rh", measure="area"))
    with pytest.raises(InputError, match=r"differ in their atlas \('aparc' and 'aparc.a2009s'\)"):
        load_freesurfer(lh, aparc(tmp_path, "rh", DESTRIEUX, atlas="aparc.a2009s"))
    with pytest.raises(InputError, match=r"differ in their atlas \('aparc' and 'aparc.DKTatlas'\)"):
        load_freesurfer(lh, aparc(tmp_path, "rh", DKT, atlas="aparc.DKTatlas"))
    text = lh.read_text().replace("lh.aparc", "rh.aparc", 1)
    (tmp_path / "odd.tsv").write_text(text)
    with pytest.raises(
        InputError, match="says 'rh.aparc.thickness' and holds 'lh_bankssts_thickness'.* of the other hemisphere"
    ):
        load_freesurfer(tmp_path / "odd.tsv")


def test_people_that_do_not_match(tmp_path):
    lh, rh = aparc(tmp_path, "lh"), aparc(tmp_path, "rh", people=["a", "b", "c"])
    with pytest.raises(
        InputError, match=r"No id of .* \(3: 'sub-01', 'sub-02', 'sub-03'\) matches one of .* \(3: 'a', 'b', 'c'\)"
    ):
        load_freesurfer(lh, rh)
    data = load_freesurfer(lh, aparc(tmp_path, "rh", people=[*PEOPLE[:2], "x"]))
    assert len(data) == 2
    assert sum("have no partner in" in note for note in data.notes) == 2
    data = load_freesurfer(lh, aparc(tmp_path, "rh", people=["sub-01", "sub-01", "sub-02"]))
    assert data.X.index.tolist() == ["sub-02"]
    assert "1 id of" in data.doubts[0]
    assert "'sub-01'" in data.doubts[0]
    with pytest.raises(InputError, match="There is no column 'agee' .did you mean 'age'"):
        load_freesurfer(lh, participants=participants(tmp_path), target="agee")


def test_numbers_that_short_ids_share_join_nothing(tmp_path):
    lh = aparc(tmp_path, "lh", people=["patient1", "patient2", "patient3"])
    other = participants(tmp_path, "participant_id\tage\ncontrol1\t1\ncontrol2\t2\ncontrol3\t3\n")
    with pytest.raises(InputError, match="No id of"):
        load_freesurfer(lh, participants=other)


def test_ants_region_files_are_read_by_label(tmp_path):
    labels = [n for n in range(1002, 1036) if n not in (1004, 1032, 1033)]
    labels = [*labels, *(n + 1000 for n in labels)]
    for person, offset in (("Pitt_0050003", 0.0), ("NYU_0051000", 1.0)):
        order = np.random.default_rng(0).permutation(labels)  # positions mean nothing
        header = "\t".join(["File", "Sub-brick", "Mean_0", *(f"Mean_{n}" for n in order), "Mean_2004"])
        values = "\t".join(["x.nii", "0[?]", "9", *(f"{n / 1000 + offset}" for n in order), "7"])
        (tmp_path / f"{person}_roi_thickness.txt").write_text(f"{header}\n{values}\n")
    people = pd.DataFrame({"FILE_ID": ["NYU_0051000", "Pitt_0050003"], "age": [20, 30]})
    data = load_ants(tmp_path, participants=people, id="FILE_ID")
    assert data.X.shape == (2, 62)
    assert data.X.loc["NYU_0051000", "lh_caudalanteriorcingulate"] == 2.002
    assert data.X.loc["Pitt_0050003", "rh_insula"] == 2.035
    assert data.y.loc["NYU_0051000"] == 20
    (tmp_path / "two_roi_thickness.txt").write_text(f"{header}\n{values}\n{values}\n")
    with pytest.raises(InputError, match="has 2 rows: a region file of one subject has one"):
        load_ants(tmp_path / "two_roi_thickness.txt")


def label_table(path, ids, site, sex, age):
    rng = np.random.default_rng(0)
    words = [
        f"{side} {r}"
        for side in ("left", "right")
        for r in ("caudal middle frontal", "pars opercularis", "insula", "cuneus", "precuneus")
    ]
    frame = pd.DataFrame({"ID": ids, "SITE": site, "SEX": sex, "AGE": age, "VOLUME": 1.4e6})
    frame = frame.join(pd.DataFrame(rng.uniform(1, 5, (len(ids), len(words))), columns=words))
    frame.to_csv(path, index=False)
    return path


def test_label_tables_are_put_below_each_other(tmp_path):
    first = label_table(tmp_path / "I.csv", [1, 2], ["Guys", "HH"], [1, 2], [20, 30])
    second = label_table(tmp_path / "O.csv", [1, 3], "OASIS", [1, 2], [70, 80])
    data = load_ants(first, second)
    assert data.X.shape == (4, 10)
    assert list(data.X.index) == ["I:1", "I:2", "O:1", "O:3"]
    assert list(data.y) == [20, 30, 70, 80]
    assert list(data.site) == ["Guys", "HH", "OASIS", "OASIS"]
    assert "lh_parsopercularis" in data.X


def test_kirby_scans_of_equal_sex_and_age_are_one_person(tmp_path):
    path = label_table(
        tmp_path / "K.csv", [1, 2, 3, 4, 5], ["Kirby"] * 4 + ["Oslo"], [1, 2, 1, 2, 1], [25, 61, 25, 25, 25]
    )
    data = load_ants(path)
    assert data.groups.nunique() == 4
    assert data.groups.iloc[0] == data.groups.iloc[2]
    assert data.groups.iloc[4] != data.groups.iloc[0]
    assert "scan and rescan" in " ".join(data.notes)


def adni(path, rows):
    """RID, VISCODE2, EXAMDATE, OVERALLQC, COLPROT and the ST columns."""
    frame = pd.DataFrame(rows, columns=["RID", "VISCODE2", "EXAMDATE", "OVERALLQC", "COLPROT"])
    rng = np.random.default_rng(0)
    for code in [*ADNI_CODES, "ST10CV", "ST13SA"]:
        frame[code] = rng.uniform(1.5, 4, len(frame))
    frame.to_csv(path, index=False)
    return path


ADNI_ROWS = [
    (7, "m12", "2012-06-01", "Pass", "ADNI2"),
    (7, "bl", "2011-06-01", "Pass", "ADNI2"),
    (8, "bl", "2011-01-01", "Fail", "ADNI2"),
    (8, "m06", "2011-07-01", "Partial", "ADNI2"),
    (8, "m12", "2012-01-01", "Pass", "ADNI2"),
    (9, "bl", "2006-01-01", "Pass", "ADNI1"),
    (10, "bl", "2011-01-01", "Fail", "ADNI2"),
]  # fmt: skip


def test_adni_one_good_scan_a_person_with_the_age_at_the_scan(tmp_path):
    table = adni(tmp_path / "UCSFFSX51.csv", ADNI_ROWS)
    people = pd.DataFrame(
        {"RID": [7, 7, 8, 9], "VISCODE": ["m06", "bl", "bl", "bl"], "AGE": [70.0, 70.0, 80.0, 60.0], "EXAMDATE": ["2011-12-01", "2011-06-01", "2011-01-01", "2006-01-01"], "PTGENDER": ["Male", "Male", "Female", "Female"]}
    )  # fmt: skip
    people.to_csv(tmp_path / "ADNIMERGE.csv", index=False)
    data = load_adni(table, tmp_path / "ADNIMERGE.csv")
    assert data.X.shape == (2, 68)
    assert list(data.X.index) == ["7", "8"]
    np.testing.assert_allclose(data.y, [70.0, 81.0], atol=0.01)
    assert list(data.covariates["PTGENDER"]) == ["Male", "Female"]
    assert "2 of 6 scans of" not in " ".join(data.notes)
    assert "3 of 6 scans" in " ".join(data.notes)  # did not pass
    assert load_adni(table, phase=None).X.shape == (3, 68)
    every = load_adni(table, quality="partial", scans="all", phase=None)
    assert len(every) == 5
    assert list(every.groups) == ["7", "7", "8", "8", "9"]
    assert every.X.index.is_unique
    last = load_adni(table, tmp_path / "ADNIMERGE.csv", scans="last")
    np.testing.assert_allclose(last.y, [71.0, 81.0], atol=0.01)
    assert load_adni(table, regions="dkt62").X.shape == (2, 62)
    assert load_table(table, tmp_path / "ADNIMERGE.csv", id="RID", target="age").X.shape == (2, 68)


def test_adni_birth_months(tmp_path):
    people = pd.DataFrame({"RID": [7, 8], "PTDOBMM": [6, 1], "PTDOBYY": [1941, 1931]})
    data = load_adni(adni(tmp_path / "U.csv", ADNI_ROWS), people)
    np.testing.assert_allclose(data.y, [70.0, 81.0], atol=0.1)


def test_adni_mistakes(tmp_path):
    table = adni(tmp_path / "UCSFFSX51.csv", ADNI_ROWS)
    with pytest.raises(InputError, match="no scan of phase 'ADNI5', but of 'ADNI1', 'ADNI2'"):
        load_adni(table, phase="ADNI5")
    with pytest.raises(InputError, match="quality must be one of"):
        load_adni(table, quality="good")
    with pytest.raises(InputError, match=r"No RID of .* \(2: '7', '8'\) matches one of .* \(1: '99'\)"):
        load_adni(table, pd.DataFrame({"RID": [99], "AGE": [1]}))
    only_bad = adni(tmp_path / "bad.csv", ADNI_ROWS[2:3])
    with pytest.raises(InputError, match="OVERALLQC holds 'fail'"):
        load_adni(only_bad)


def test_enigma(tmp_path):
    names = [f"{side}_{r}_thickavg" for side in "LR" for r in DESIKAN]
    frame = pd.DataFrame(np.random.default_rng(0).uniform(1.5, 4, (3, 68)), columns=names)
    frame.insert(0, "SubjID", ["001", "002", "003"])
    frame = frame.assign(
        LThickness=2.5, RThickness=2.5, LSurfArea=9e4, RSurfArea=9e4, ICV=1.5e6, Age=[20, 30, 40], Site="a"
    )
    frame.to_csv(tmp_path / "CorticalMeasuresENIGMA_ThickAvg.csv", index=False)
    data = load_enigma(tmp_path / "CorticalMeasuresENIGMA_ThickAvg.csv")
    assert data.X.shape == (3, 68)
    assert list(data.X.index) == ["001", "002", "003"]
    assert list(data.y) == [20, 30, 40]
    assert list(data.site) == ["a"] * 3
    assert data.X.columns[-1] == "rh_insula"
    assert not {"ICV", "LThickness"} & set(data.X)


def test_participants(tmp_path):
    data = load_participants(
        participants(
            tmp_path, "participant_id\tage\tsex\tsite\tiq\nsub-01\t31.5\tF\tOslo\t101\nsub-02\t89+\tM\tn/a\tn/a\n"
        )
    )
    assert list(data.y) == [31.5, 89.0]
    assert list(data.X.columns) == ["iq"]
    assert list(data.covariates["sex"]) == ["F", "M"]
    assert list(data.groups) == ["sub-01", "sub-02"]


def test_a_plain_table_and_its_roles(tmp_path):
    frame = pd.DataFrame(
        {"who": ["01", "01", "02"], "where": ["a", "b", "a"], "a": [1, 2, 3.5], "b": [2.5, 1, 0], "y": [1, 2, 3]}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_table(tmp_path / "t.csv", target="y", id="who", person="who", site="where")
    assert list(data.X.columns) == ["a", "b"]
    assert list(data.groups) == ["01", "01", "02"]
    assert list(data.site) == ["a", "b", "a"]
    assert data.y.dtype == np.int64
    assert list(load_table(tmp_path / "t.csv", features=["b"]).X.columns) == ["b"]
    with pytest.raises(InputError, match="no column 'z'"):
        load_table(tmp_path / "t.csv", features=["z"])


def test_a_table_of_regions_made_by_hand_and_the_same_taken_as_it_stands(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).uniform(2, 4, (4, 12)), columns=[f"L_{r}" for r in DESIKAN[:12]])
    frame = frame.assign(subject=list("abcd"), age=[1, 2, 3, 4], sex=list("mfmf"), bmi=[20.0, 21, 22, 23])
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_table(tmp_path / "t.csv", target="age")
    assert data.X.shape == (4, 12)
    assert list(data.X.index) == list("abcd")
    assert set(data.covariates) == {"sex", "bmi"}
    plain = load_table(tmp_path / "t.csv", target="age", id="subject", drop=["sex"], format="table")
    assert plain.X.shape == (4, 13)
    assert "L_bankssts" in plain.X
    chosen = load_table(tmp_path / "t.csv", target="age", features=["lh_bankssts", "bmi"])
    assert list(chosen.X.columns) == ["lh_bankssts", "bmi"]


def test_a_region_may_be_a_covariate(tmp_path):
    data = load_freesurfer(aparc(tmp_path, "lh"), aparc(tmp_path, "rh"), covariates=["lh_insula", "eTIV"])
    assert list(data.covariates.columns) == ["lh_insula", "eTIV"]
    assert data.X.shape == (3, 67)


def test_a_forced_format_must_fit(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="does not have the header of format 'freesurfer'"):
        load_table(tmp_path / "t.csv", format="freesurfer")
    with pytest.raises(InputError, match="did you mean 'freesurfer'"):
        load_table(tmp_path / "t.csv", format="freesurfr")
    with pytest.raises(InputError, match="it looks like 'participants'"):
        load_enigma(participants(tmp_path))


@pytest.mark.data
def test_abide_as_it_is(data_folder):
    data = fetch_abide(data_folder)
    assert data.X.shape == (1035, 62)
    assert fetch_abide(data_folder, regions="all").X.shape == (1035, 68)
    assert (data.y.min(), data.y.max()) == (6.47, 64.0)
    assert data.site.nunique() == 20
    assert data.groups.nunique() == 1035
    assert data.covariates["diagnosis"].value_counts().to_dict() == {"control": 530, "autism": 505}
    assert not data.X.isna().any().any()
    assert "CC BY-NC-SA" in data.description
    for part, n in zip(data.split(seed=1), (621, 207, 207), strict=True):
        assert len(part) == n


@pytest.mark.data
def test_ants_mindboggle_as_it_is(data_folder):
    sizes = {c: fetch_ants_mindboggle(data_folder, cohorts=c).X.shape for c in "INOK"}
    assert sizes == {"I": (563, 62), "N": (186, 62), "O": (312, 62), "K": (41, 62)}
    data = fetch_ants_mindboggle(data_folder)
    assert data.X.shape == (1061, 62)
    assert "Kirby" not in set(data.site)
    assert list(data.X.columns) == list(fetch_abide(data_folder).X.columns)
    with pytest.raises(InputError, match="cohorts must be letters among"):
        fetch_ants_mindboggle(data_folder, cohorts="Z")


@pytest.mark.data
@pytest.mark.parametrize("seed", range(5))
def test_no_kirby_person_is_on_two_sides(data_folder, seed):
    """The pairs as they can be told: same sex and age, brain volume within 3 %."""
    data = fetch_ants_mindboggle(data_folder, cohorts="IKNO")
    side = pd.Series(0, index=data.X.index)
    for number, part in enumerate(data.split(seed=seed)):
        side[part.X.index] = number
    kirby = data.covariates.assign(age=data.y, side=side)[data.site == "Kirby"]
    pairs = 0
    for i, a in enumerate(kirby.itertuples()):
        for b in list(kirby.itertuples())[i + 1 :]:
            if (a.sex, a.age) == (b.sex, b.age) and abs(a.brain_volume / b.brain_volume - 1) < 0.03:
                pairs += 1
                assert a.side == b.side
    assert pairs >= 19
