"""A wrong join is worse than a refused one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import load_adni, load_ants, load_enigma, load_freesurfer, load_table
from precisionnet.datasets.neuro.regions import DESIKAN
from precisionnet.errors import InputError
from tests.datasets.test_loaders import ADNI_ROWS, adni, aparc, label_table


def both(folder, ids):
    return [aparc(folder, side, people=ids) for side in ("lh", "rh")]


def people(folder, ids, name="people.csv", **columns):
    path = folder / name
    pd.DataFrame({"participant_id": ids, **columns}).to_csv(path, index=False)
    return path


def test_a_number_in_common_makes_nobody_the_same_person(tmp_path):
    ids = [f"patient{1000 + k}" for k in range(6)] + [f"control{1000 + k}" for k in range(6)]
    controls = people(tmp_path, ids[6:], age=range(20, 26))
    data = load_freesurfer(*both(tmp_path, ids), participants=controls)
    assert list(data.X.index) == ids[6:]
    assert list(data.y) == list(range(20, 26))


@pytest.mark.parametrize("ids", [["siteA_10001", "siteB_10001"], ["siteA/01", "siteB/01"]])
def test_two_people_with_one_key_are_refused(tmp_path, ids):
    with pytest.raises(InputError, match="No id of"):
        load_freesurfer(*both(tmp_path, ids), participants=people(tmp_path, ["10001", "01"], age=[1, 2]))


def test_numbers_as_spreadsheets_leave_them(tmp_path):
    ids = [f"sub-{k:03d}" for k in (1, 20, 160)]
    for written in (["1", "20", "160"], ["1.0", "20.0", "160.0"], ["001", "020", "160"]):
        data = load_freesurfer(*both(tmp_path, ids), participants=people(tmp_path, written, age=[10, 20, 30]))
        assert list(data.y) == [10, 20, 30]


def test_many_rows_without_a_partner_on_both_sides_are_a_doubt(tmp_path):
    ids = [f"s{k}" for k in range(10)]
    other = [f"s{k}" for k in range(6)] + [f"S{k}" for k in range(6, 10)]
    data = load_freesurfer(*both(tmp_path, ids), participants=people(tmp_path, other, age=range(10)))
    assert len(data) == 6
    assert "are their ids written differently" in data.doubts[0]


def test_sessions_find_their_own_row(tmp_path):
    ids = ["sub-1_ses-1", "sub-1_ses-2", "sub-2_ses-1"]
    table = people(tmp_path, ["sub-1", "sub-1", "sub-2"], session_id=["ses-1", "ses-2", "1"], age=[10, 12, 30])
    data = load_freesurfer(*both(tmp_path, ids), participants=table)
    assert list(data.y) == [10, 12, 30]
    assert list(data.groups) == ["sub-1", "sub-1", "sub-2"]


def test_sessions_and_runs_in_a_plain_table_are_of_one_person(tmp_path):
    ids = ["sub-1_ses-1", "sub-1_ses-2", "sub-2_run-1", "sub-2_run-2", "sub-3"]
    pd.DataFrame({"id": ids, "a": range(5), "b": [3, 1, 4, 1, 5]}).to_csv(tmp_path / "t.csv", index=False)
    assert list(load_table(tmp_path / "t.csv", id="id").groups) == ["sub-1", "sub-1", "sub-2", "sub-2", "sub-3"]


def enigma(path, ids, measure, regions=DESIKAN, sides="LR", scale=1.0):
    names = [f"{side}_{r}_{measure}" for side in sides for r in regions]
    frame = pd.DataFrame(scale * np.random.default_rng(0).uniform(1, 4, (len(ids), len(names))), columns=names)
    frame.insert(0, "SubjID", ids)
    frame.to_csv(path, index=False)
    return path


def test_two_measures_stand_side_by_side_and_two_cohorts_below_each_other(tmp_path):
    ids = ["a", "b", "c"]
    thick, area = enigma(tmp_path / "T.csv", ids, "thickavg"), enigma(tmp_path / "S.csv", ids, "surfavg", scale=1000)
    data = load_enigma(thick, area)
    assert data.X.shape == (3, 136)
    assert {"lh_insula_thickness", "lh_insula_area"} <= set(data.X.columns)
    more = load_enigma(thick, enigma(tmp_path / "U.csv", ["d", "e"], "thickavg"))
    assert more.X.shape == (5, 68)
    assert more.measure == "thickness"
    again = load_enigma(thick, enigma(tmp_path / "V.csv", ["c", "d"], "thickavg"))
    assert any("further scans of the same people" in doubt for doubt in again.doubts)
    assert again.groups.nunique() == 4
    left, right = (
        enigma(tmp_path / "L.csv", ids, "thickavg", sides="L"),
        enigma(tmp_path / "R.csv", ids, "thickavg", sides="R"),
    )
    assert load_enigma(left, right).X.shape == (3, 68)


def test_columns_that_are_nearly_regions_are_said(tmp_path):
    path = enigma(tmp_path / "T.csv", ["a", "b"], "thickavg")
    path.write_text(path.read_text().replace("L_bankssts_thickavg", "L_banksts_thickavg"))
    data = load_enigma(path)
    assert data.X.shape == (2, 67)
    assert any("'L_banksts_thickavg'" in note and "named like a region" in note for note in data.notes)


def test_a_few_region_columns_do_not_make_a_table_of_regions(tmp_path):
    frame = pd.DataFrame(
        {"p1": [1.0, 2], "p2": [2.0, 1], "L_insula_thickavg": [2.0, 3], "eTIV": [1e6, 2e6], "age": [1, 2]}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_table(tmp_path / "t.csv", target="age")
    assert list(data.X.columns) == ["p1", "p2", "L_insula_thickavg"]  # but a total is none, where there are regions
    assert any("'eTIV'" in note for note in data.notes)


def test_the_id_that_was_named_counts_in_every_format(tmp_path):
    path = label_table(tmp_path / "t.csv", [1, 2, 3, 4], "007", [1, 2, 1, 2], [25, 61, 25, 61])
    frame = pd.read_csv(path, dtype={"SITE": str}).rename(columns={"ID": "code"}).assign(code=["x", "x", "y", "y"])
    frame.to_csv(path, index=False)
    data = load_ants(path, id="code")
    assert list(data.groups) == ["x", "x", "y", "y"]
    assert list(data.site) == ["007"] * 4
    for load in (load_ants, load_table):
        with pytest.raises(InputError, match="No table has a column 'nonsense'"):
            load(path, id="nonsense")


def test_names_of_columns_may_differ_in_case_and_may_be_the_files_own(tmp_path):
    pd.DataFrame({"Diagnosis": ["a", "b"], "SITE": ["x", "y"], "p": [1, 2], "q": [2, 1]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    data = load_table(tmp_path / "t.csv", target="diagnosis", site="site")
    assert (list(data.y), list(data.site), list(data.X.columns)) == (["a", "b"], ["x", "y"], ["p", "q"])
    region = load_freesurfer(*both(tmp_path, ["a", "b"]), target="lh_insula_thickness")
    assert region.X.shape == (2, 67)


def test_what_is_dropped_is_gone_and_the_target_is_no_feature(tmp_path):
    pd.DataFrame({"a": [1, 2], "b": [2, 1], "age": [3, 4], "age_months": [36, 48]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    data = load_table(tmp_path / "t.csv", target="age", drop=["age_months"])
    assert data.covariates is None
    with pytest.raises(InputError, match="'age' is named as target and as features"):
        load_table(tmp_path / "t.csv", target="age", features=["a", "age"])
    with pytest.raises(InputError, match="'a' stands more than once in features"):
        load_table(tmp_path / "t.csv", features=["a", "a"])


def test_adni_is_joined_by_its_roster_id_whatever_else_is_called_id(tmp_path):
    table = adni(tmp_path / "UCSF.csv", ADNI_ROWS)
    demographics = pd.DataFrame({"ID": [8, 7], "RID": ["0007", "8.0"], "PTDOBMM": [6, 1], "PTDOBYY": [1941, 1931]})
    demographics.to_csv(tmp_path / "PTDEMOG.csv", index=False)
    for data in (
        load_adni(table, tmp_path / "PTDEMOG.csv"),
        load_table(table, tmp_path / "PTDEMOG.csv", target="age"),
    ):
        np.testing.assert_allclose(data.y.loc[["7", "8"]], [70.0, 81.0], atol=0.1)


def test_adni_unknown_dates_and_codes_give_no_age(tmp_path):
    rows = [(7, "m12", None, "Pass", "ADNI2"), (8, "bl", "2011-01-01", "Pass", "ADNI2")]
    people_ = pd.DataFrame({"RID": [7, 8], "VISCODE": "bl", "AGE": [70, 80], "EXAMDATE": ["2005-01-01", "2010-01-01"]})
    data = load_adni(adni(tmp_path / "U.csv", rows), people_)
    assert np.isnan(data.y.loc["7"])
    assert data.y.loc["8"] == pytest.approx(81, abs=0.01)
    assert any("not known for 1 scans" in note for note in data.notes)
    born = pd.DataFrame({"RID": [7, 8], "PTDOBMM": [-4, -4], "PTDOBYY": [-4, 1930]})
    ages = load_adni(tmp_path / "U.csv", born).y
    assert ages.isna().tolist() == [True, False]
    assert ages.loc["8"] == pytest.approx(80.5, abs=0.1)


def test_adni_diagnosis_is_that_of_the_visit_nearest_to_the_scan(tmp_path):
    table = adni(tmp_path / "U.csv", [(7, "m84", "2012-01-10", "Pass", "ADNI2")])
    visits = pd.DataFrame(
        {
            "RID": 7,
            "VISCODE": ["bl", "m84"],
            "EXAMDATE": ["2005-01-01", "2012-01-01"],
            "AGE": 70,
            "DX": ["CN", "Dementia"],
        }
    )
    data = load_adni(table, visits, target="DX")
    assert list(data.y) == ["Dementia"]
    assert data.covariates["age"].iloc[0] == pytest.approx(77.0, abs=0.05)
    visits.to_csv(tmp_path / "ADNIMERGE.csv", index=False)
    pd.DataFrame({"RID": [7], "MMSE": [29]}).to_csv(tmp_path / "MMSE.csv", index=False)
    data = load_table(table, tmp_path / "ADNIMERGE.csv", tmp_path / "MMSE.csv", target="age")
    assert data.y.iloc[0] == pytest.approx(77.0, abs=0.05)
    assert data.covariates["MMSE"].iloc[0] == 29
    late = visits[visits.VISCODE == "m84"]
    assert load_adni(table, late).y.isna().all() or "as it stands" in " ".join(load_adni(table, late).notes)


def test_a_data_frame_without_names_is_not_joined_by_its_counter(tmp_path):
    ids = [f"sub-{k:03d}" for k in range(1, 11)]
    table = pd.DataFrame({"Subject ID": ids, "age": range(101, 111)})
    with pytest.raises(InputError, match="no column that names its rows"):
        load_freesurfer(*both(tmp_path, ids), participants=table)
    for good in (table.set_index("Subject ID"), table.rename(columns={"Subject ID": "code"})):
        data = load_freesurfer(*both(tmp_path, ids), participants=good, id="CODE" if "code" in good else None)
        assert list(data.y) == list(range(101, 111))


def test_sessions_are_never_joined_to_other_sessions(tmp_path):
    lh = aparc(tmp_path, "lh", people=["sub-01_ses-1", "sub-02_ses-1"])
    with pytest.raises(InputError, match="No id of"):
        load_freesurfer(lh, aparc(tmp_path, "rh", people=["sub-01_ses-2", "sub-02_ses-2"]))
    half = load_freesurfer(lh, aparc(tmp_path, "rh", people=["sub-01_ses-2", "sub-02_ses-01"]))
    assert list(half.X.index) == ["sub-02_ses-1"]
    scans = ["sub-02_ses-01", "sub-02_ses-02", "sub-03_ses-02"]
    table = people(tmp_path, ["sub-02", "sub-03"], Session=["ses-02", "2"], age=[20, 30])
    data = load_freesurfer(*both(tmp_path, scans), participants=table)
    assert data.y.to_dict() == {"sub-02_ses-02": 20, "sub-03_ses-02": 30}


def test_waves_of_the_same_people_are_kept_together_and_find_their_participants(tmp_path):
    ids = [f"S{k:02d}" for k in range(30)]
    waves = [enigma(tmp_path / f"wave{n}.csv", ids, "thickavg") for n in (1, 2)]
    data = load_enigma(*waves, participants=people(tmp_path, ids, age=range(30)))
    assert len(data) == 60
    assert data.groups.nunique() == 30
    assert (data.y.to_numpy() == np.tile(np.arange(30), 2)).all()
    parts = data.split(seed=0)
    assert not set(parts.train.groups) & set(parts.test.groups)


def test_folders_and_years_are_not_people(tmp_path):
    for scans, others in (
        (["siteA/01", "siteB/02"], ["siteB/01", "siteA/02"]),
        (["anna_20190102", "bob_20190103"], ["carl_20190102", "dora_20190103"]),
    ):
        with pytest.raises(InputError, match="No id of"):
            load_freesurfer(*both(tmp_path, scans), participants=people(tmp_path, others, age=[1, 2]))


def test_measures_of_two_formats_are_told_apart(tmp_path):
    ids = ["a", "b", "c"]
    aparc(tmp_path, "lh", people=ids)
    right = enigma(tmp_path / "right.csv", ids, "area", sides="R", scale=1000)
    data = load_table(tmp_path / "lh.aparc.thickness.tsv", right)
    assert data.measure == ""
    assert {"lh_insula_thickness", "rh_insula_area"} <= set(data.X.columns)


def test_a_column_named_like_an_id_is_doubted(tmp_path):
    pd.DataFrame({"subject": [1, 2, 3], "a": [1, 2, 3.5], "y": [1, 2, 3]}).to_csv(tmp_path / "t.csv", index=False)
    assert "'subject' is named like an id" in load_table(tmp_path / "t.csv", target="y").doubts[0]
    assert load_table(tmp_path / "t.csv", target="y", id="subject").doubts == ()


@pytest.mark.parametrize("roles", [{"drop": ["y"]}, {"site": "y"}, {"id": "y"}, {"features": ["a", "b"], "drop": "b"}])
def test_a_column_has_one_role(tmp_path, roles):
    pd.DataFrame({"a": [1, 2], "b": [2, 1], "y": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="it can only be one of them"):
        load_table(tmp_path / "t.csv", target="y", **roles)
    assert list(load_table(tmp_path / "t.csv", target="y", drop="b").X.columns) == ["a"]


def test_adni_scans_without_a_date_get_no_date_from_elsewhere(tmp_path):
    rows = [(3, "bl", "2012-01-01", "Pass", "ADNI2"), (3, "m12", "2013-01-05", "Pass", "ADNI2")]
    table = adni(tmp_path / "U.csv", rows)
    visits = pd.DataFrame(
        {
            "RID": 3,
            "VISCODE": ["bl", "m12", "m24"],
            "EXAMDATE": ["2012-01-01", None, "2014-01-01"],
            "AGE": 65.0,
            "DX": ["CN", "MCI", "AD"],
        }
    )
    data = load_adni(table, visits, target="DX", scans="all")
    assert list(data.y) == ["CN", "MCI"]  # by visit code, though its date is not known
    np.testing.assert_allclose(data.covariates["age"], [65, 66.01], atol=0.01)
    pd.read_csv(table).drop(columns="EXAMDATE").to_csv(tmp_path / "undated.csv", index=False)
    undated = load_adni(tmp_path / "undated.csv", visits, target="DX", scans="all")
    assert list(undated.y) == ["CN", "MCI"]
    assert any("as it stands" in note for note in undated.notes)
