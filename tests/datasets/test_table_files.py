"""Tables from files, and the guess of the task."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from precisionnet.datasets import (
    Dataset,
    check_target,
    guess_task,
    load_freesurfer,
    load_table,
    make_sparse_precision,
    refuse_bad_numbers,
    refuse_unusable,
)
from precisionnet.datasets.cells import to_labels_or_numbers
from precisionnet.datasets.checks import check_dataset
from precisionnet.datasets.table_files import read_table
from precisionnet.errors import InputError


@pytest.fixture
def gaps(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b,y\np,1,2,3\nq,,1,4\nr,3,7,\ns,4,0,9\n")
    return path


def test_complete_rows(gaps):
    data = load_table(gaps, target="y", id="id", complete_rows=True)
    assert list(data.X.index) == ["p", "s"]
    assert any("1 of 4 rows has no value of target 'y' and is left out ('r')" in note for note in data.notes)
    assert any("1 of 3 rows is not complete and left out" in note for note in data.notes)
    gaps.write_text("id,a,b,y\np,,2,3\nq,1,,4\n")
    with pytest.raises(InputError, match=r"No row of '.*t.csv' is complete, .*drop="):
        load_table(gaps, target="y", id="id", complete_rows=True)


def test_a_column_without_a_value_is_left_out(gaps):
    gaps.write_text("id,a,b,c,y\np,1,2,,3\nq,,1,,4\nr,2,1,,4\n")
    data = load_table(gaps, target="y", id="id")
    assert list(data.X) == ["a", "b"]
    assert "Column 'c' has no value in any row and is left out." in data.notes
    assert data.notes[-1] == "Values are missing in 1 of 3 rows: 'a' 1."
    assert list(load_table(gaps, target="y", id="id", features=["a", "c"]).X) == ["a", "c"]


def test_rows_without_a_target_are_left_out(gaps):
    """Only those: a gap elsewhere is no reason to lose a row."""
    data = load_table(gaps, target="y", id="id")
    assert list(data.X.index) == ["p", "q", "s"]
    assert data.y.tolist() == [3, 4, 9]
    assert any("1 of 4 rows has no value of target 'y' and is left out ('r')" in note for note in data.notes)
    assert not data.doubts
    assert len(load_table(gaps, id="id")) == 4
    numbered = load_table(gaps, target="y", drop=["id"])
    assert numbered.X.index.tolist() == [1, 2, 4]
    assert any("is left out (row 3)" in note for note in numbered.notes)
    gaps.write_text("id,a,b,y\np,1,2,3\nq,,1,\nr,3,7,\ns,4,0,\n")
    data = load_table(gaps, target="y", id="id")
    assert any("3 of 4 rows have no value of target 'y' and are left out" in doubt for doubt in data.doubts)
    gaps.write_text("id,a,b,y\np,1,2,\nq,,1,\n")
    assert len(load_table(gaps, target="y", id="id")) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": 3}, "target must be the name of a column, got 3"),
        ({"target": 1j}, "target must be the name of a column, got 1j"),
        ({"id": ["id"]}, "id must be the name of a column"),
        ({"site": 0.5}, "site must be the name of a column"),
        ({"person": b"id"}, "person must be the name of a column"),
        ({"drop": 5}, "drop must name columns, got 5"),
        ({"drop": ["a", None]}, "drop must name columns, got None"),
        ({"features": [1j]}, "features must name columns, got 1j"),
        ({"covariates": 7}, "covariates must name columns, got 7"),
        ({"covariates": "b"}, "covariates must be a list of column names, got 'b'"),
        ({"complete_rows": "yes"}, "complete_rows must be True or False"),
        ({"format": 3}, "format must be one of"),
    ],
)
def test_odd_arguments_get_a_sentence(gaps, options, sentence):
    with pytest.raises(InputError, match=sentence):
        load_table(gaps, **options)


@pytest.mark.parametrize("paths", [(None,), (5,), ([1.5],), ([],), (), ("t.csv", [None])])
def test_odd_paths_get_a_sentence(paths):
    for load in (load_table, load_freesurfer):
        with pytest.raises(InputError, match=r"The path of a table was expected|No table was given"):
            load(*paths)


def test_a_data_set_is_made_of_frames_of_one_length():
    X = pd.DataFrame({"a": [1.0, 2.0]})
    for parts, sentence in (
        ({"X": X.to_numpy()}, "X must be a pandas DataFrame, got ndarray"),
        ({"X": X, "y": [1, 2]}, "y must be a pandas Series or None, got list"),
        ({"X": X, "y": pd.Series([1.0])}, "y has 1 rows and X has 2"),
        ({"X": X, "covariates": pd.Series([1.0, 2.0])}, "covariates must be a pandas DataFrame"),
    ):
        with pytest.raises(InputError, match=sentence):
            Dataset(**parts)


def test_complex_numbers_get_a_sentence():
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0] * 5, "b": [1j, 2.0, 3.0] * 5})
    y = pd.Series([1j, 2.0, 3.0] * 5, name="y")
    with pytest.raises(InputError, match=r"Column 'b' holds complex numbers, not real numbers: .*drop=\['b'\]"):
        refuse_bad_numbers(X)
    with pytest.raises(InputError, match="Target 'y' holds complex numbers"):
        guess_task(y)
    with pytest.raises(InputError, match="Target 'y' holds complex numbers"):
        check_target(y, "regression")
    findings = check_dataset(Dataset(X.assign(c=X["a"] ** 2), X["a"].rename("y")))
    assert any(f.level == "error" and "'b'" in f.sentence for f in findings)
    with pytest.raises(InputError, match="rng must be None or a whole number"):
        make_sparse_precision(3, None, 1j)


@pytest.mark.parametrize("seed", [-1, "a", 1j])
def test_odd_seeds_get_a_sentence(seed):
    with pytest.raises(InputError, match="seed must be None or a whole number from 0 on"):
        Dataset(pd.DataFrame({"a": range(20)})).split(seed=seed)


def test_nothing_to_split():
    with pytest.raises(InputError, match="There is no row to split"):
        Dataset(pd.DataFrame({"a": []})).split()


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([1.5, 2.0, 3.0], "regression"),
        (list(range(40)), "regression"),
        ([0, 1, 1, 0], "classification"),
        ([0.0, 1.0, 1.0], "classification"),
        (["a", "b"], "classification"),
        ([True, False], "classification"),
    ],
)
def test_the_task_is_guessed_from_the_target(values, task):
    assert guess_task(pd.Series(values)) == task


def test_leading_zeros_of_an_id_survive(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\n0051,1\n0052,2\n")
    assert read_table(tmp_path / "t.csv", "id")["id"].tolist() == ["0051", "0052"]
    pd.DataFrame({"id": [51.0, 52.0], "x": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", "id")["id"].tolist() == ["51", "52"]


def test_ids_in_a_workbook_stay_what_the_cells_hold(tmp_path):
    pd.DataFrame({"id": ["001", "002"], "x": [1, 2]}).to_excel(tmp_path / "t.xlsx", index=False)
    assert read_table(tmp_path / "t.xlsx", "id")["id"].tolist() == ["001", "002"]
    pd.DataFrame({"id": [1e20, 2.0], "x": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    assert len(read_table(tmp_path / "t.parquet", "id")) == 2


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("t.csv", "\n\na,b\n1,2\n", ["a", "b"]),
        ("t.csv", "a;b\n1,5;2\n", ["a", "b"]),
        ("t.csv", '"a;b;c;d",e\n1,2\n', ["a;b;c;d", "e"]),
        ("t.tsv", "name, first, m\tb\nx, y, u\t2\n", ["name, first, m", "b"]),
        ("t.tsv", "a,b,c\n1,2,3\n", ["a", "b", "c"]),
    ],
)
def test_the_delimiter_is_the_one_that_fits(tmp_path, name, text, columns):
    (tmp_path / name).write_text(text)
    assert list(read_table(tmp_path / name).columns) == columns


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.array([True, False, True], dtype="boolean"), "b"),
        (pd.array([1, 2, 1], dtype="Int64"), "i"),
        (pd.Series([Decimal("1.5"), Decimal("2"), Decimal("3")], dtype=object), "f"),
        (pd.Series([1, 2.5, 3], dtype=object), "f"),
    ],
)
def test_targets_of_odd_types_become_plain_ones(values, kind):
    X = pd.DataFrame({"a": [1.0, 2, 4], "b": [3.0, 1, 2]})
    target, _ = to_labels_or_numbers(pd.Series(values, name="y"), "t.csv")
    _, y = refuse_unusable(Dataset(X, target))
    assert y.dtype.kind == kind


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch, ending):
    path = tmp_path / f"large{ending}"
    frame = pd.DataFrame({"a": range(100), "b": range(100)})
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    assert len(read_table(path)) == 100
    monkeypatch.setattr("precisionnet.memory.SMALLEST_FILE", 0)
    monkeypatch.setattr("precisionnet.datasets.table_files.free_memory", lambda: 1000.0)
    with pytest.raises(InputError, match=r"GB of memory to read and .* GB are free: .*fit_table"):
        read_table(path)
