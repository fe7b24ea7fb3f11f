"""``precisionnet gap``: tables of real layouts, every file and sentence, and one answer to what cannot be done."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.cli.test_bad_input import refused
from tests.gap.conftest import people

SHORT = (
    "--n-members",
    "1",
    "--max-epochs",
    "6",
    "--validation-fraction",
    "0.2",
    "--folds",
    "2",
    "--permutations",
    "19",
)


def frame(n: int = 90) -> pd.DataFrame:
    drawn = people(n, shift=8.0)
    roles = {"age": drawn.age.round(2), "dx": (drawn.dx == "patient").astype(int), "site": drawn.site, "sex": drawn.sex}
    return drawn.X.round(4).assign(**roles).reset_index()


@pytest.fixture
def gap(precisionnet, tmp_path):
    def run(table: pd.DataFrame, *arguments: object, out: str = "out"):
        path = tmp_path / "table.csv"
        table.to_csv(path, index=False)
        return precisionnet("gap", path, "--target", "age", "--id", "who", "--out", tmp_path / out, *arguments)

    return run


def test_cells_that_are_no_measurements_are_warned_of(gap):
    table = frame()
    regions = [name for name in table if name.startswith("region_")]
    table[regions] = table[regions].sub(table[regions].min()).add(50.0)
    table.loc[7, "region_2"] = 0.0
    done = gap(table, "--drop", "dx", "--drop", "site", "--drop", "sex", *SHORT)
    assert done.code == 0, done.err
    assert done.sentence.count("Column 'region_2' is 0 in row") == 1


def test_groups_with_a_site_and_a_covariate(gap, tmp_path):
    done = gap(frame(), "--by", "dx", "--controls", 0, "--site", "site", "--covariate", "sex", *SHORT)
    assert done.code == 0, done.err
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == ["gap.html", "gaps.csv", "groups.csv", "regions.csv"]
    gaps, groups = pd.read_csv(out / "gaps.csv"), pd.read_csv(out / "groups.csv")
    assert gaps["who"].tolist() == frame()["who"].tolist()
    assert (gaps["learned_from"] == (gaps["group"] == 0)).all()
    assert groups.iloc[0][["group_a", "group_b", "n_a", "n_b"]].tolist() == [1, 0, 30, 60]
    regions = pd.read_csv(out / "regions.csv")
    assert regions["column"].tolist() == [f"region_{i}" for i in range(8)]
    assert "2 of 2 fits" in done.err
    scaled = groups[groups["kind"] == "scaled"].iloc[0]
    assert f"corrected gap {scaled['difference']:+.2f}" in done.flat
    page = (out / "gap.html").read_text(encoding="utf-8")
    assert "What can be concluded" in page
    assert "adjusted for age, site, sex" in page
    assert "is no prediction" in page


@pytest.mark.slow
def test_a_covariate_has_one_of_three_parts_and_sites_are_harmonised(gap, tmp_path):
    done = gap(frame(), "--by", "dx", "--controls", 0, "--input", "sex", "--drop", "site", *SHORT)
    assert done.code == 0, done.err
    assert "sex" in pd.read_csv(tmp_path / "out" / "regions.csv")["column"].tolist()
    done = gap(frame(), "--regress-out", "sex", "--site", "site", "--combat", "--drop", "dx", *SHORT)
    assert done.code == 0, done.err
    assert "regressed out: sex · sites harmonised" in (tmp_path / "out" / "gap.html").read_text(encoding="utf-8")
    assert not (tmp_path / "out" / "groups.csv").exists()


def ages(change):
    return lambda f: f.assign(age=change(f.age))


BAD = {
    "no controls": (lambda f: f, ("--by", "dx", "--controls", 2), r"There are no controls: no row is of group '2'; the groups are 0 \(60\), 1 \(30\)"),
    "a group of two": (lambda f: f.assign(dx=[7, 7, *f.dx[2:]]), ("--by", "dx", "--controls", 0), "Group 7 has 2 rows"),
    "days": (ages(lambda a: a * 365.25), (), "looks like days"),
    "months": (ages(lambda a: a * 12), (), "looks like months"),
    "units in the cells": (ages(lambda a: [f"{v} y" for v in a]), (), r"a number with its unit"),
    "a site with one row": (lambda f: f.assign(site=["Lund", *f.site[1:]]), ("--site", "site"), "Site 'Lund' has one row"),
    "the target in disguise": (lambda f: f.assign(months=(12 * f.age).round()), ("--covariate", "months"), "Covariate 'months' is target 'age' in disguise"),
    "controls without groups": (lambda f: f, ("--controls", 0), "name the column of groups with --by"),
    "two roles": (lambda f: f, ("--input", "sex", "--regress-out", "sex"), "--input and as --regress-out"),
    "the same covariate twice": (lambda f: f, ("--covariate", "sex", "--covariate", "sex"), "given twice"),
    "unknown columns, all of them": (lambda f: f, ("--by", "diagnosis", "--covariate", "sexx"), r"no column 'diagnosis'.*no column 'sexx' \(did you mean 'sex'\?\)"),
    "combat without a site": (lambda f: f, ("--combat",), "--combat harmonises sites, and there are none: name their column with --site"),
    "missing groups": (lambda f: f.assign(dx=f.dx.where(f.dx == 0)), ("--by", "dx"), "group is missing in 30 of 90 rows .*--complete-rows"),
    "no permutations": (lambda f: f, ("--permutations", 5), "at least 19"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(BAD))
def test_bad_input(gap, tmp_path, what):
    change, arguments, sentence = BAD[what]
    table = change(frame())
    text = [name for name in ("sex", "site", "dx") if name not in arguments]
    drop = [part for name in text for part in ("--drop", name)]
    refused(gap(table, *arguments, *drop), sentence)
    assert not (tmp_path / "out").exists()


def test_all_complaints_at_once(gap):
    table = frame().assign(
        age=lambda f: f.age * 12, site=lambda f: ["Lund", *f.site[1:]], dx=lambda f: [7, 7, *f.dx[2:]]
    )
    done = gap(table, "--by", "dx", "--controls", 3, "--site", "site", "--covariate", "sex")
    for part in ("looks like months", "There are no controls", "Group 7 has 2 rows", "'Lund' has one row"):
        assert part in done.sentence
    assert done.code == 2


def test_predictions_that_do_not_rise_are_refused(gap, tmp_path):
    table = frame().assign(age=np.random.default_rng(5).permutation(frame().age))
    refused(gap(table, "--drop", "sex", "--drop", "site", "--drop", "dx", *SHORT), "hardly rise with the target")
    assert not (tmp_path / "out").exists()


def test_text_that_is_named_as_nothing_is_left_out(gap, tmp_path):
    table = frame().assign(city=["Oslo", "Rome", "Paris"] * 30)
    done = gap(table, "--by", "dx", "--site", "site", *SHORT)
    assert done.code == 0, done.err
    assert "'sex', 'city' hold text" in done.sentence
    assert "--covariate" in done.sentence
    assert not {"sex", "city"} & set(pd.read_csv(tmp_path / "out" / "regions.csv").iloc[:, 0])


def test_controls_that_are_not_there_and_names_that_are_near(gap):
    done = gap(frame(), "--by", "dx", "--controls", 7)
    refused(done, "no row is of group '7'.* 0 .60., 1 .30.")
    done = gap(frame().assign(age=frame()["age"] * 365.25), "--by", "dxx", "--controls", 7, "--site", "sites")
    refused(done, "did you mean 'dx'.* --by .*did you mean 'site'.*looks like days")


def test_a_feature_that_is_the_target_is_warned_of(gap):
    done = gap(frame().assign(months=(12 * frame()["age"]).round()), "--site", "site", *SHORT)
    assert done.code == 0, done.err
    assert "'months' may be target 'age' in disguise" in done.sentence


def test_rows_of_one_id_that_differ_are_listed_and_left_out(gap, tmp_path):
    table = frame()
    twice = table.iloc[[3]].assign(**{table.columns[1]: 9.0})
    done = gap(pd.concat([table, twice]), "--site", "site", *SHORT)
    assert done.code == 0, done.err
    assert f"{table['who'][3]!r}" in done.sentence
    assert len(pd.read_csv(tmp_path / "out" / "gaps.csv")) == len(table) - 1
    done = gap(pd.concat([table, twice]), "--site", "site", "--duplicates", "first", *SHORT)
    assert len(pd.read_csv(tmp_path / "out" / "gaps.csv")) == len(table)
