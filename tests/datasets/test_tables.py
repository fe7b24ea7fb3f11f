"""The synthetic recipe and the guess of the task."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import (
    guess_task,
    make_gaussian_regression,
    make_sparse_precision,
    read_table,
    split_columns,
)
from precisionnet.errors import InputError
from precisionnet.linalg import extreme_eigenvalues


@pytest.mark.parametrize("sparsity", [0.05, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_precision_has_the_sparsity_and_condition_asked_for(n, sparsity):
    theta = make_sparse_precision(n, sparsity, np.random.default_rng(0), condition_number=10.0)
    smallest, largest = extreme_eigenvalues(theta)
    assert np.array_equal(theta, theta.T)
    assert smallest > 0
    assert np.count_nonzero(theta) / n**2 == pytest.approx(max(sparsity, 1 / n), abs=1.01 / n**2 + 1 / n**2)
    if np.count_nonzero(theta) > n:
        assert largest / smallest == pytest.approx(10.0)
    assert np.trace(np.linalg.inv(theta)) / n == pytest.approx(1.0)


def test_rows_have_that_precision_and_the_target_that_noise():
    drawn = make_gaussian_regression(n_samples=100_000, n_features=6, sparsity=0.4, random_state=0)
    empirical = np.linalg.inv(np.cov(drawn.X.to_numpy().T))
    np.testing.assert_allclose(empirical, drawn.theta_true, atol=0.03 * np.abs(drawn.theta_true).max())
    signal = drawn.X.to_numpy() @ drawn.coefficients
    assert np.var(signal) / np.var(drawn.y - signal) == pytest.approx(10.0, rel=0.03)


def test_the_seed_decides():
    first, second = (make_gaussian_regression(random_state=7) for _ in range(2))
    assert first.X.equals(second.X)
    assert first.y.equals(second.y)
    assert not first.X.equals(make_gaussian_regression(random_state=8).X)


@pytest.mark.parametrize("sparsity", [0.0, -0.1, 1.1])
def test_impossible_sparsity_is_refused(sparsity):
    with pytest.raises(InputError, match="sparsity must be in"):
        make_gaussian_regression(sparsity=sparsity)


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
    frame = pd.DataFrame({"a": [1.0, 2, 4], "b": [3.0, 1, 2], "y": values})
    _, y = split_columns(frame, "y")
    assert y.dtype.kind == kind
