"""Ids that stand more than once: exact repeats count once, rows that differ are listed and decided about."""

from __future__ import annotations

import pandas as pd
import pytest

from precisionnet.datasets import load_table
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
    before = load_table(lh, rh, participants(tmp_path), target="age")
    data = load_table(repeated(lh), rh, participants(tmp_path), target="age", duplicates=how)
    assert len(data) == kept
    said = " ".join([*data.notes, *data.doubts])
    assert "1 row repeats" in said
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


def test_rows_of_one_person_stay_in_a_plain_table(tmp_path):
    frame = pd.DataFrame(
        {
            "id": list("aabbc"),
            "x": [1.0, 1.0, 2.0, 3.0, 4.0],
            "z": [5.0, 5.0, 1.0, 2.0, 3.0],
            "y": [1.0, 1.0, 2.0, 2.0, 3.0],
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_table(tmp_path / "t.csv", target="y", id="id")
    assert data.groups.tolist() == ["a", "b", "b", "c"]
    assert not data.doubts
    assert load_table(tmp_path / "t.csv", target="y", id="auto").X.index.tolist() == ["a", "b", "b", "c"]
    assert load_table(tmp_path / "t.csv", target="y", id="id", duplicates="drop").X.index.tolist() == ["a", "c"]


def test_a_way_that_is_none(tmp_path):
    with pytest.raises(InputError, match="duplicates= must be one of 'auto'"):
        load_table(aparc(tmp_path, "lh"), duplicates="both")
