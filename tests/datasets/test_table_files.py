"""Tables from files, and the guess of the task."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from precisionnet.datasets import Dataset, guess_task, refuse_unusable
from precisionnet.datasets.cells import to_labels_or_numbers
from precisionnet.datasets.table_files import read_table


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
