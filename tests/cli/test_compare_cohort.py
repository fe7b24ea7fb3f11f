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
