"""Tables on their way to a file: whole, and without cells that a spreadsheet would run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.errors import InputError, OutputError
from precisionnet.tables_out import spreadsheet_safe, write_table

RUN = ["=1+1", "+cmd|' /C calc'!A0", "-x", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "=", "+", "-", "＝1"]
KEPT = ["plain", "", "-3", "-3.5e-4", "+7", "-1,5", "sub-01", "a=b", "1+1", "'=1", "é", "x@y"]


@pytest.mark.parametrize("cell", RUN)
def test_what_a_spreadsheet_would_run_becomes_text(cell):
    safe = spreadsheet_safe(pd.DataFrame({cell: [cell, "a"]}))
    assert safe.iloc[0, 0] == f"'{cell}"
    assert safe.columns[0] == f"'{cell}"
    assert safe.iloc[1, 0] == "a"


@pytest.mark.parametrize("cell", KEPT)
def test_other_text_stays(cell):
    frame = pd.DataFrame({"c": [cell]})
    pd.testing.assert_frame_equal(spreadsheet_safe(frame), frame)


def test_numbers_and_other_columns_are_not_touched():
    frame = pd.DataFrame(
        {
            "x": [-1.5, np.nan],
            "n": [-1, 2],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "kind": pd.Categorical(["a", "=b"]),
            "mixed": [-3, "-x"],
            "gap": [None, "a"],
        },
        index=["=r", "s"],
    )
    before = frame.copy()
    safe = spreadsheet_safe(frame)
    pd.testing.assert_frame_equal(safe[["x", "n", "day", "gap"]], frame[["x", "n", "day", "gap"]])
    assert safe["kind"].tolist() == ["a", "'=b"]
    assert safe["mixed"].tolist() == [-3, "'-x"]
    pd.testing.assert_frame_equal(frame, before)


def test_columns_of_one_name_are_told_apart():
    frame = pd.DataFrame([["=a", 1.0, "b"]], columns=["c", "c", "c"])
    assert spreadsheet_safe(frame).iloc[0].tolist() == ["'=a", 1.0, "b"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=6), min_size=1, max_size=6))
def test_nothing_is_lost(cells):
    """Without the mark in front, the text is what it was; and nothing that starts a formula is left."""
    for new, old in zip(spreadsheet_safe(pd.DataFrame({"c": cells}, dtype=object))["c"], cells, strict=True):
        assert new in (old, f"'{old}")
        assert not new.startswith(("=", "@", "\t", "\r"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "CSV"])
def test_the_ending_says_how_to_write(tmp_path, ending):
    frame = pd.DataFrame({"id": ["a", "b,c"], "x": [0.1, 1e300]})
    path = tmp_path / "folder" / f"table.{ending}"
    write_table(frame, path)
    lower = ending.lower()
    read = pd.read_parquet(path) if lower == "parquet" else pd.read_csv(path, sep="\t" if lower == "tsv" else ",")
    pd.testing.assert_frame_equal(read, frame)


def test_parquet_keeps_text_as_it_is(tmp_path):
    write_table(pd.DataFrame({"id": ["=a"]}), tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["id"].tolist() == ["=a"]


def test_refusals_leave_what_was_there(tmp_path):
    path = tmp_path / "t.parquet"
    write_table(pd.DataFrame({"a": [1]}), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="Parquet cannot hold this table"):
        write_table(pd.DataFrame([[1, 2]], columns=["a", "a"]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match=r"its ending must be one of \.csv, \.tsv, \.parquet"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.xlsx")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(OutputError, match="Cannot write to"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.csv")
