"""``precisionnet datasets``: what a person reads before a fit, and what a script learns from the exit code."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from precisionnet.cli import datasets as command
from precisionnet.cli.tables import report_findings
from precisionnet.datasets.checks import Finding
from precisionnet.datasets.public.registry import DATASETS
from precisionnet.errors import InputError


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_clean_table_passes(precisionnet, table):
    done = precisionnet("datasets", "check", table, "--target", "age", "--id", "who", "--strict")
    assert done.code == 0, done.err
    assert "120 rows, 8 columns" in flat(done.out)
    assert "Target 'age': numbers from" in flat(done.out)
    assert done.out.rstrip().endswith("Nothing stands in the way of a fit.")
    assert max(map(len, done.out.splitlines())) <= 80


def test_warnings_pass_unless_strict(precisionnet, table):
    frame = pd.read_csv(table)
    frame.loc[3, "x2"] = 77.5
    frame.assign(months=frame["age"] * 12).to_csv(table, index=False)
    arguments = ("datasets", "check", table, "--target", "age", "--id", "who")
    done = precisionnet(*arguments)
    assert done.code == 0
    assert "'x2' = 77.5 in row 's003'" in flat(done.out)
    assert "Column 'months' (rank correlation 1.000) may be target 'age' in disguise" in flat(done.out)
    assert "A fit is possible; 2 warnings to look at first." in flat(done.out)
    assert done.out.index("120 rows") < done.out.index("warning")
    strict = precisionnet(*arguments, "--strict")
    assert strict.code == 1
    assert "Refused, as --strict takes warnings for errors: 2 warnings." in flat(strict.out)
    mended = precisionnet(*arguments, "--strict", "--drop", "months", "--drop", "x2")
    assert mended.code == 0, mended.out


def test_errors_have_an_exit_code(precisionnet, table):
    pd.read_csv(table).assign(flat=1.0, more=2.0).to_csv(table, index=False)
    done = precisionnet("datasets", "check", table, "--target", "age", "--id", "who")
    assert done.code == 1
    assert "Columns 'flat' and 'more' are constant" in flat(done.out)
    assert "Not ready for a fit: 1 error to mend first." in flat(done.out)


def test_people_and_sites_are_options(precisionnet, table):
    frame = pd.read_csv(table)
    frame["person"] = [f"p{i // 2}" for i in range(len(frame))]
    frame["scanner"] = ["A" if value > frame["age"].median() else "B" for value in frame["age"]]
    frame.to_csv(table, index=False)
    done = precisionnet(
        "datasets", "check", table, "--target", "age", "--id", "who", "--person", "person", "--site", "scanner"
    )
    assert done.code == 0, done.err
    assert "120 rows, 8 columns, 60 people, 2 sites." in flat(done.out)
    assert "60 people of 60 have several rows" in flat(done.out)
    assert "Site explains" in flat(done.out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.csv"], "'nowhere.csv' does not exist"),
        (["{table}", "--id", "who", "--target", "aeg"], "'aeg'.*did you mean 'age'"),
        (["{table}", "--format", "freesurfr", "--id", "who"], "freesurfr.*did you mean 'freesurfer'"),
    ],
)
def test_what_cannot_be_read_is_refused(precisionnet, table, arguments, sentence):
    done = precisionnet("datasets", "check", *(argument.format(table=table) for argument in arguments))
    assert done.code == 2
    assert re.search(sentence, done.sentence), done.sentence


def test_list_names_every_data_set_and_where_it_is(precisionnet, tmp_path):
    done = precisionnet("datasets", "list", "--data", tmp_path)
    assert done.code == 0, done.err
    for name, dataset in DATASETS.items():
        assert f"{name}: {dataset.title}" in flat(done.out)
        assert f"precisionnet datasets fetch {name}" in flat(done.out)
        for file in dataset.files:
            (tmp_path / file.name).parent.mkdir(exist_ok=True)
            (tmp_path / file.name).touch()
    here = precisionnet("datasets", "list", "--data", tmp_path).out
    assert "Not here yet" not in here
    assert "make_gaussian_regression" in here


@pytest.mark.parametrize("name", list(DATASETS))
def test_describe(precisionnet, name):
    done = precisionnet("datasets", "describe", name)
    assert done.code == 0
    for heading in (DATASETS[name].title, "## Terms of use", "## Citation"):
        assert heading in done.out
    assert max(map(len, (line for line in done.out.splitlines() if "http" not in line))) <= 80


def test_an_unknown_data_set(precisionnet):
    for which in ("describe", "fetch"):
        done = precisionnet("datasets", which, "abid")
        assert done.code == 2
        assert "did you mean 'abide'?" in done.sentence


def test_fetch_says_what_came_and_its_terms(precisionnet, tmp_path, monkeypatch):
    def fetch_files(name, data_folder=None, *, progress=True, tell=None):
        tell("ABIDE: fetched 3 of 3 files.\n\nTerms of use\n...")
        return {"a.tsv": tmp_path / "a.tsv"}

    monkeypatch.setattr("precisionnet.datasets.public.fetching.fetch_files", fetch_files)
    done = precisionnet("datasets", "fetch", "abide", "--data", tmp_path)
    assert done.code == 0, done.err
    assert done.sentence.strip() == "Note: ABIDE: fetched 3 of 3 files."
    assert "already there" not in done.out
    assert "a.tsv" in done.out
    assert done.out.count("Terms of use") == 1
    assert "Di Martino" in done.out


@pytest.mark.data
def test_fetch_finds_what_is_there(precisionnet, data_folder):
    done = precisionnet("datasets", "fetch", "ants_mindboggle", "--data", data_folder)
    assert done.code == 0, done.err
    assert "(already there)" in done.out
    assert done.err == ""


@pytest.mark.data
def test_check_abide(precisionnet, data_folder):
    tables = sorted((data_folder / "abide").glob("*.[ct]sv"))
    done = precisionnet("datasets", "check", *tables, "--target", "AGE_AT_SCAN")
    assert done.code == 0, done.err
    assert "1,035 rows, 68 columns, 1,035 people, 20 sites." in done.out
    assert "Site explains 49% of the variance of target 'AGE_AT_SCAN'" in flat(done.out)
    assert max(map(len, done.out.splitlines())) <= 80


def test_findings_before_a_fit(capsys):
    findings = [
        Finding("note", "size", "10 rows."),
        Finding("warning", "outliers", "One value is far out."),
        Finding("warning", "site", "Site tells."),
    ]
    report_findings(findings)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert flat(captured.err).strip() == "Warning: One value is far out. Warning: Site tells."
    with pytest.raises(InputError, match=r"--strict takes warnings for errors: One value is far out\..*Site tells"):
        report_findings(findings, strict=True)
    with pytest.raises(InputError, match=r"^Column 'a' is constant\.$"):
        report_findings([*findings, Finding("error", "constant columns", "Column 'a' is constant.")])
    report_findings(findings[:1], strict=True)


def test_the_help_names_the_commands(precisionnet):
    assert {c.name or c.callback.__name__ for c in command.app.registered_commands} == {
        "check",
        "list",
        "describe",
        "fetch",
    }
    assert "datasets" in precisionnet("--help").out


def test_check_says_all_that_a_fit_says(precisionnet, tmp_path):
    """Cells that cannot be read do not hide what else stands in the way."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc")).round(3).assign(flat=1, y=rng.normal(size=30))
    frame.astype({"a": object}).assign(a=["<0.1", *frame["a"][1:]]).to_csv(tmp_path / "t.csv", index=False)
    for words, options in ((("fit",), ("--out", tmp_path / "o")), (("datasets", "check"), ())):
        done = precisionnet(*words, tmp_path / "t.csv", "--target", "y", *options)
        assert done.code == 2
        assert "2 things stand in the way" in done.sentence
        assert "'<0.1' in row 1" in done.sentence
        assert "'flat'" in done.sentence
        (tmp_path / "empty.csv").write_text("")
        done = precisionnet(*words, tmp_path / "empty.csv", "--target", "y", *options)
        assert done.code == 2
        assert "is empty: it has no header" in done.sentence
        assert "no column" not in done.sentence


def test_a_check_speaks_in_the_options_of_fit(precisionnet, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(24, 9)), columns=list("abcdefghy"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet("datasets", "check", tmp_path / "t.csv", "--target", "y")
    assert "which ones return with another --seed" in flat(done.out)
