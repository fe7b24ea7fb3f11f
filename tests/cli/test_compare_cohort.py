"""``precisionnet compare`` on a cohort by its name, and with nothing tuned."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from precisionnet.cli.options import COHORTS
from precisionnet.paper import config
from tests.paper.test_build import adni_folder

PLAIN = ("--methods", "svr,ridge,median", "--repeats", 2, "--jobs", 1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    adni_folder(tmp_path / "tables", n=60)
    return tmp_path


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_a_cohort_by_its_name(precisionnet, here):
    done = precisionnet("compare", "adni", "--data", "tables", *PLAIN, "--out", "out")
    assert done.code == 0, done.err
    assert {row["method"] for row in rows_of(here / "out")} == {"svr", "ridge", "median"}
    page = (here / "out" / "index.html").read_text(encoding="utf-8")
    assert "ADNI: age from cortical thickness" in page
    assert "68 cortical regions" in page
    assert "years" in done.out
    assert "claims" not in done.out  # those are of reproduce


def test_a_file_of_that_name_wins(precisionnet, here, table):
    (here / "abide").write_bytes(table.read_bytes())
    done = precisionnet("compare", "abide", "--target", "age", *PLAIN, "--out", "out")
    assert done.code == 2  # as any file without an ending
    assert "abide" in done.sentence
    assert "ending" in done.sentence


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("adni",), "registered users only"),
        (("adni", "--data", "nowhere"), "is not a folder"),
        (("abide", "--target", "sex"), "abide is compared on age"),
        (("abdie", "--target", "age"), "does not exist"),
        (("table.csv",), "--target is missing"),
        (("abide", "ants", "--target", "age"), "'abide' does not exist"),
    ],
)
def test_mistakes_are_one_sentence(precisionnet, here, table, arguments, words):
    done = precisionnet("compare", *arguments, *PLAIN, "--out", "out")
    assert done.code == 2
    assert words in done.sentence
    assert not (here / "out").exists()


def test_nothing_tuned(precisionnet, here, table):
    done = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--defaults", "--out", "out")
    assert done.code == 0, done.err
    assert all(row["parameters"] == {} and row["n_candidates"] == 1 for row in rows_of(here / "out"))
    assert "Nothing was tuned" in (here / "out" / "index.html").read_text(encoding="utf-8")
    tuned = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--out", "tuned")
    assert tuned.code == 0, tuned.err
    splits = [pd.read_csv(here / name / "splits.csv") for name in ("out", "tuned")]
    pd.testing.assert_frame_equal(*splits)
    refused = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--out", "out")
    assert refused.code == 2


def test_the_names_are_those_of_the_configs():
    assert COHORTS == config.COHORTS


@pytest.mark.data
def test_abide_by_its_name(precisionnet, here, data_folder):
    done = precisionnet("compare", "abide", *PLAIN, "--defaults", "--out", "out")
    assert done.code == 0, done.err
    assert "ABIDE I, 62 cortical regions" in (here / "out" / "index.html").read_text(encoding="utf-8")
    mae = pd.DataFrame(rows_of(here / "out")).groupby("method")["mae"].mean()
    assert mae["svr"] < mae["ridge"] < mae["median"]


def test_whole_groups_are_left_out(precisionnet, here, table):
    frame = pd.read_csv(table)
    frame["centre"] = [f"c{i % 5}" for i in range(len(frame))]
    frame.to_csv("sites.csv", index=False)
    asked = ("compare", "sites.csv", "--target", "age", "--id", "who", "--hold-out", "centre", *PLAIN, "--defaults")
    done = precisionnet(*asked, "--out", "out")
    assert done.code == 0, done.err
    assert "whole groups (centre) are left out" in " ".join(done.out.split())
    left_out = [row for row in rows_of(here / "out") if row.get("held_out")]
    assert {row["method"] for row in left_out} == {"svr", "ridge", "median"}
    assert {row["repeat"] for row in left_out} == {0, 1, 2, 3}
    splits = pd.read_csv(here / "out" / "splits.csv")
    assert [name for name in splits if name.startswith("held_out")] == [f"held_out_{i}" for i in range(4)]
    again = precisionnet(*asked, "--out", "out")
    assert again.code == 0, again.err
    assert len(rows_of(here / "out")) == 2 * 4 + 3 * 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table.csv", "--target", "age", "--id", "who", "--hold-out", "nowhere"), "nowhere"),
        (("table.csv", "--target", "age", "--id", "who", "--hold-out", "a", "--site", "b"), "name two columns"),
        (("adni", "--data", "tables", "--hold-out", "scanner"), "no such groups"),
    ],
)
def test_groups_that_are_not_there_are_one_sentence(precisionnet, here, table, arguments, words):
    (here / "table.csv").write_bytes(table.read_bytes())
    done = precisionnet("compare", *arguments, *PLAIN, "--out", "out")
    assert done.code == 2
    assert words in done.sentence


def test_rivals_that_cannot_run_are_told_and_left_out(precisionnet, here, table, monkeypatch):
    from precisionnet.evaluation import rivals

    monkeypatch.setattr(rivals, "find_spec", lambda package: None)
    done = precisionnet(
        "compare", table, "--target", "age", "--id", "who", *PLAIN, "--defaults", "--rivals", "--out", "out"
    )
    assert done.code == 0, done.err
    assert "CatBoost is left out: catboost is not installed" in done.err.replace("\n", " ")
    assert "not installed" in (here / "out" / "index.html").read_text(encoding="utf-8")
    assert {row["method"] for row in rows_of(here / "out")} == {"svr", "ridge", "median"}
