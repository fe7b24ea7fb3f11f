"""Ids that stand more than once: exact repeats count once, rows that differ are listed and decided about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import load_table
from precisionnet.datasets.checks import check_dataset, same_rows
from precisionnet.errors import InputError
from tests.datasets.test_loaders import aparc, participants


def repeated(path, rows=((0, 0.0), (1, 1.0))):
    """Append rows of the table once more, their first number changed by so much."""
    frame = pd.read_csv(path, sep="\t")
    again = [frame.iloc[[i]].assign(**{frame.columns[1]: frame.iloc[i, 1] + change}) for i, change in rows]
    pd.concat([frame, *again]).to_csv(path, sep="\t", index=False)
    return path


@pytest.mark.parametrize(("how", "kept"), [("auto", 2), ("drop", 2), ("first", 3), ("mean", 3)])
def test_a_freesurfer_table_with_repeats(tmp_path, how, kept):
    """sub-01 stands there twice, exactly; sub-02 twice, and differs."""
    lh, rh = aparc(tmp_path, "lh"), aparc(tmp_path, "rh")
    before = load_table(lh, rh, participants(tmp_path))
    data = load_table(repeated(lh), rh, participants(tmp_path), duplicates=how)
    assert len(data) == kept
    said = " ".join([*data.notes, *data.doubts])
    assert "1 row repeats" in said
    assert "and counts once" in said
    assert "'sub-01'" in said
    assert "1 id of" in said
    assert "'sub-02'" in said
    assert "lh_bankssts" in said
    assert bool(data.doubts) == (how == "auto")
    assert data.X.loc["sub-01"].equals(before.X.loc["sub-01"])
    if how in ("first", "mean"):
        change = data.X.loc["sub-02", "lh_bankssts"] - before.X.loc["sub-02", "lh_bankssts"]
        assert change == pytest.approx(0.0 if how == "first" else 0.5)
        assert data.X.loc["sub-02", "lh_insula"] == pytest.approx(before.X.loc["sub-02", "lh_insula"])


def test_repeated_participants(tmp_path):
    people = participants(
        tmp_path,
        "participant_id\tage\tsex\nsub-01\t30\tF\nsub-01\t30\tF\nsub-02\t40\tM\nsub-02\t44\tM\nsub-03\t50\tF\n",
    )
    data = load_table(aparc(tmp_path, "lh"), people, target="age")
    assert data.y.to_dict() == {"sub-01": 30, "sub-03": 50}
    assert "'sub-02' in column 'age'" in data.doubts[0]
    averaged = load_table(aparc(tmp_path, "lh"), people, target="age", duplicates="mean")
    assert averaged.y.to_dict() == {"sub-01": 30.0, "sub-02": 42.0, "sub-03": 50.0}


def plain(tmp_path, **columns):
    """A table in which a stands twice, exactly, and b twice, and differs."""
    frame = pd.DataFrame(
        {
            "id": list("aabbc"),
            "x": [1.0, 1.0, 2.0, 3.0, 4.0],
            "z": [5.0, 5.0, 1.0, 2.0, 3.0],
            "y": [1.0, 1.0, 2.0, 2.0, 3.0],
            **columns,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize("id", ["id", "auto"])
@pytest.mark.parametrize(
    ("how", "kept"), [("auto", "ac"), ("drop", "ac"), ("first", "abc"), ("mean", "abc"), ("keep", "abbc")]
)
def test_a_plain_table_with_repeats(tmp_path, id, how, kept):
    data = load_table(plain(tmp_path), target="y", id=id, duplicates=how)
    assert data.X.index.tolist() == list(kept)
    said = " ".join([*data.notes, *data.doubts])
    assert "1 row repeats" in said
    assert bool(data.doubts) == (how == "auto")
    assert ("('b' in column 'x', 'z')" in said) == (how != "keep")
    if how in ("first", "mean"):
        assert data.X.loc["b", "x"] == (2.0 if how == "first" else 2.5)
    if how == "auto":
        assert "person='id'" in data.doubts[0]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({}, {"person": "id"}),
        ({"visit": [1, 1, 1, 2, 1]}, {}),
        ({"scan_date": ["2020-01-01"] * 3 + ["2021-01-01"] * 2}, {"covariates": ["scan_date"]}),
        ({"id": list("aabba"), "x": [1.0, 1.0, 2.0, 3.0, 4.0]}, {}),
    ],
    ids=["as the person", "a visit", "a date", "most ids"],
)
def test_visits_of_one_person_stay_in_a_plain_table(tmp_path, columns, options):
    data = load_table(plain(tmp_path, **columns), target="y", id="id", **options)
    assert len(data) == 4
    assert data.groups.tolist() == list(columns.get("id", "aabbc"))[1:]
    assert not data.doubts


def test_a_visit_that_does_not_tell_rows_apart_is_none(tmp_path):
    data = load_table(plain(tmp_path, visit=[1, 1, 2, 2, 1]), target="y", id="id")
    assert data.X.index.tolist() == ["a", "c"]


def test_the_mean_of_dates_is_a_date(tmp_path):
    days = ["2020-01-01", "2020-01-01", "2020-01-01", "2020-01-03", "2021-01-01"]
    data = load_table(plain(tmp_path, born=days), target="y", id="id", categories=True, duplicates="mean")
    assert data.X.loc["b", "born"] == pd.Timestamp("2020-01-02")


def test_rows_that_repeat_where_nothing_names_them(tmp_path):
    """They are spoken of, labels or not; rows of few levels are alike by chance."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 7)).round(4), columns=[*"abcdef", "y"])
    for labels in ({}, {"city": rng.choice(["Oslo", "Rome"], 30)}):
        table = frame.assign(**labels)
        pd.concat([table, table.iloc[[4]]]).to_csv(tmp_path / "t.csv", index=False)
        data = load_table(tmp_path / "t.csv", target="y", categories=True)
        (found,) = [f for f in check_dataset(data) if f.check == "repeated rows"]
        assert found.level == "warning"
        assert "5 = 31" in found.sentence
        assert [f.sentence for f in same_rows(data)] == [found.sentence]
    few = pd.DataFrame({"a": list("uv" * 15), "b": list("xyz" * 10), "y": frame["y"]})
    few.to_csv(tmp_path / "t.csv", index=False)
    found = same_rows(load_table(tmp_path / "t.csv", target="y", categories=True))
    assert [f.level for f in found] == ["note"]


def test_a_way_that_is_none(tmp_path):
    with pytest.raises(InputError, match="duplicates= must be one of 'auto'"):
        load_table(aparc(tmp_path, "lh"), duplicates="both")
