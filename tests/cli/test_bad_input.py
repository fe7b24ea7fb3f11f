"""Each mistake: one sentence that names the thing and says what to do, exit code 2, nothing written."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

TABLES = {
    "NaN": (lambda f: f.assign(x2=f.x2.mask(f.x2 > 1)), r"Column 'x2' is missing \(NaN\) in \d+ of 120 rows \(row \d+.*--missing indicator"),
    "infinity": (lambda f: f.assign(x2=np.inf), r"Column 'x2' holds infinity in 120 of 120 rows \(row 1 is"),
    "strings": (lambda f: f.assign(x1=["oops"] + list(f.x1[1:])), r"Column 'x1' holds text, not numbers: 'oops' in row 1 of '.*table.csv'; .*--drop '?x1"),
    "a constant column": (lambda f: f.assign(flat=1), r"Column 'flat' is constant.*--drop '?flat"),
    "a repeated column": (lambda f: f.assign(copy=f.x0), r"Column 'copy' repeats column 'x0'.*--drop '?copy"),
    "one row": (lambda f: f[:1], r"has 1 row to learn from: at least 10"),
    "one column": (lambda f: f[["x0", "age"]], r"only one feature column is left"),
    "one class": (lambda f: f.assign(age="old"), r"Target 'age' has only one class \(old\)"),
    "a constant target": (lambda f: f.assign(age=0.5), r"Target 'age' is always 0.5"),
    "a missing target column": (lambda f: f.rename(columns={"age": "ages"}), r"no column 'age' \(did you mean 'ages'\?\)"),
    "an empty target": (lambda f: f.assign(age=np.nan), r"Target 'age' has no value in any row"),
    "a class with one row": (lambda f: f.assign(age=["b"] + ["a"] * 60 + ["c"] * 59), r"Class 'b' of target 'age' has fewer"),
    "text for regression": (lambda f: f.assign(age=["a", "b"] * 60), r"not numbers: use --task classification"),
    "a value beyond all bounds": (lambda f: f.assign(x2=f.x2 * 1e200), r"Column 'x2' holds values beyond 1e\+100"),
    "a target beyond all bounds": (lambda f: f.assign(age=f.age * 1e200), r"Target 'age' holds values beyond"),
    "one date": (lambda f: f.assign(when="2020-01-02"), r"Column 'when' is constant"),
    "a column without a name": (lambda f: f.rename(columns={"x0": ""}), r"Column 1 of the table has no name"),
    "decimal commas or thousands": (lambda f: f.assign(x1=["1,234"] * 120), r"decimal commas, or thousands\?"),
    "several text columns": (lambda f: f.assign(site="Oslo", sex="f"), r"Columns 'site', 'sex' are constant.*--drop site --drop sex"),
    "an integer of 400 digits": (lambda f: f.assign(x1=[10**400] + [1] * 119), r"Column 'x1' holds infinity"),
    "no rows": (lambda f: f[:0], r"has no rows"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TABLES))
def test_bad_tables(precisionnet, table, tmp_path, what):
    change, sentence = TABLES[what]
    change(pd.read_csv(table).drop(columns="who")).to_csv(table, index=False)
    extra = {
        "text for regression": ["--task", "regression"],
        "NaN": ["--missing", "error"],
    }.get(what, [])
    refused(precisionnet("fit", table, "--target", "age", "--out", tmp_path / "out", *extra), sentence)
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def refused(done, sentence: str) -> None:
    assert done.code == 2
    assert "Traceback" not in done.err
    assert done.sentence.count("Error:") == 1
    assert re.search(sentence, done.sentence), done.sentence


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", None, "does not exist"),
        ("a.docx", b"x", "'.docx', which is not one of"),
        ("a.csv", b"\x00\x01\x02", "is not text|cannot be read"),
        ("a.csv", b"\xff\xfe\xfa,b\n1,2\n", "is not UTF-8 text"),
        ("a.parquet", b"not parquet", "cannot be read as .parquet"),
        ("a.xlsx", b"not a workbook", "cannot be read as .xlsx"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"x,age,x\n1,2,3\n", "more than one column named 'x'"),
    ],
)
def test_bad_files(precisionnet, tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(precisionnet("fit", tmp_path / name, "--target", "age", "--out", tmp_path / "out"), sentence)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_semicolons_and_byte_order_marks_are_read(precisionnet, table, tmp_path, encoding):
    pd.read_csv(table).drop(columns="who").to_csv(table, sep=";", index=False, encoding=encoding)
    assert (
        precisionnet("fit", table, "--target", "age", "--out", tmp_path / "o", "--max-epochs", 1, "--n-members", 2).code
        == 0
    )


def test_ids_that_do_not_match(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame[["who", "x0"]].assign(who=[f"{i}" for i in range(120)]).rename(columns={"x0": "z"}).to_csv(
        tmp_path / "b.csv", index=False
    )
    both = ("fit", table, tmp_path / "b.csv", "--target", "age", "--out", tmp_path / "out")
    refused(
        precisionnet(*both, "--id", "who"),
        r"No id of .*table.csv' \(120: 's000'.*\) matches one of .*b.csv' \(120: '0'",
    )
    refused(precisionnet(*both), "name the id column with --id")
    refused(precisionnet(*both, "--id", "whom"), r"No table has a column 'whom' \(did you mean 'who'\?\)")
    refused(precisionnet("fit", table, table, "--id", "who", "--target", "age"), "was given more than once")
    twice = pd.concat([frame[["who"]].assign(z=1.0), frame[["who"]].assign(z=2.0)])
    twice.to_csv(tmp_path / "b.csv", index=False)
    refused(precisionnet(*both, "--id", "who"), "120 ids of .*'s000'.* rows that differ .*'z'.* --duplicates first")


def test_ids_that_are_missing_or_all_the_same(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(who=frame.who.where(frame.index > 3)).to_csv(table, index=False)
    fit = ("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "out")
    refused(precisionnet(*fit), r"has no id in column 'who' for 4 of 120 rows \(row 1 is the first\)")
    frame.assign(who="me").to_csv(table, index=False)
    refused(precisionnet(*fit), "All rows are of one person")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--n-layers", 0], "--n-layers must be a whole number at least 1"),
        (["--method", "magic"], "--method must be one of joint, naive"),
        (["--task", "guess"], "--task must be"),
        (["--folds", 1], "--folds must be at least 2, got 1"),
        (["--hold-out", "x1", "--time", "x2"], "two ways to test one fit"),
        (["--hold-out", "age"], "'age' .*--target .*--hold-out"),
        (["--hold-out", "sight"], "There is no column 'sight'"),
        (["--time", "x7", "--drop", "x7"], "'x7' .*--drop .*--time"),
        (["--drop", "x77"], "no column 'x77'"),
        (["--id", "age"], "'age' .*--target .*--id"),
        (["--drop", "age"], "'age' .*--target .*--drop"),
        (["--coupling", "nan"], "--coupling must be a number at least 0.*, got nan"),
        (["--order", 100000], "--order must be .* at most 100"),
        (["--max-epochs", "1" + "0" * 400], "--max-epochs must be .* at most 1e.06, got a number beyond"),
        (["--folds", 200], "No row is left for test"),
        (
            ["--recipe", "paper", "--step1", "paper", "--ridge", 0, "--coupling", 400, "--drop", "who"],
            "The fit diverged in epoch",
        ),
    ],
)
def test_bad_options(precisionnet, table, tmp_path, options, sentence):
    if "who" not in options:
        pd.read_csv(table).drop(columns="who").to_csv(table, index=False)
    refused(precisionnet("fit", table, "--target", "age", "--out", tmp_path / "out", *options), sentence)
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_fewer_rows_than_columns_goes_on_with_a_note(precisionnet, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(20, 31))).rename(columns={30: "age"}).to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet(
        "fit", tmp_path / "t.csv", "--target", "age", "--out", tmp_path / "o", "--max-epochs", 1, "--n-members", 2
    )
    assert done.code == 0
    assert "20 training rows for 30 columns" in done.sentence


def test_outputs_that_cannot_be_written(precisionnet, table, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    fit = ("fit", table, "--target", "age", "--id", "who", "--max-epochs", 1, "--n-members", 2, "--out")
    refused(precisionnet(*fit, tmp_path / "mine"), "'.*mine': the folder holds files")
    refused(precisionnet(*fit, tmp_path / "file"), "it is a file")
    refused(precisionnet(*fit, tmp_path / "file" / "below"), "Cannot write to")
    refused(precisionnet(*fit, "/proc/nowhere/out"), "Cannot write to '/proc/nowhere/out'")
    refused(precisionnet(*fit, ""), "--out is empty")
    refused(precisionnet(*fit, tmp_path / ("x" * 300)), "Cannot write to .*: File name too long")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(precisionnet(*fit, tmp_path / "loop"), "Cannot write to .*loop")
    (tmp_path / "loop").unlink()
    os.mkfifo(tmp_path / "pipe")
    refused(precisionnet(*fit, tmp_path / "pipe"), "it is a file, not a folder")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "pipe").unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "mine", "table.csv"]
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_bad_predictions(precisionnet, table, tmp_path):
    assert (
        precisionnet(
            "fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", "--max-epochs", 1, "--n-members", 2
        ).code
        == 0
    )
    refused(precisionnet("predict", tmp_path / "nowhere", table), "does not exist: pass the folder")
    refused(precisionnet("predict", tmp_path / "o", table, "-o", tmp_path / "p.docx"), "its ending must be")
    pd.read_csv(table).drop(columns=["x1", "x2"]).to_csv(tmp_path / "less.csv", index=False)
    refused(
        precisionnet("predict", tmp_path / "o", tmp_path / "less.csv"),
        r"no column 'x1', 'x2' \(2 of 8 are missing\)",
    )
    pd.read_csv(table).assign(x1="?").to_csv(tmp_path / "text.csv", index=False)
    refused(precisionnet("predict", tmp_path / "o", tmp_path / "text.csv"), "Column 'x1' holds text")
    (model,) = (tmp_path / "o" / "model").iterdir()
    model.write_bytes(model.read_bytes()[:-1])
    for command in (("predict", tmp_path / "o", table), ("show", tmp_path / "o")):
        refused(precisionnet(*command), "fit and save the model again")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_fit_leaves_nothing(table, tmp_path, how):
    """A real process, stopped in the middle of training; the first Ctrl-C would end it with what was learned."""
    arguments = [
        "fit",
        table,
        "--target",
        "age",
        "--id",
        "who",
        "--out",
        tmp_path / "out",
        "--max-epochs",
        100000,
    ]
    process = subprocess.Popen([sys.executable, "-m", "precisionnet", *map(str, arguments)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    assert process.poll() is None, "it ended by itself"
    for _ in range(2 if how == signal.SIGINT else 1):
        process.send_signal(how)
        time.sleep(0.2)
    assert process.wait(timeout=120) != 0
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_link_to_a_folder_is_followed_and_kept(precisionnet, table, tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "scratch")
    for _ in range(2):
        done = precisionnet(
            "fit",
            table,
            "--target",
            "age",
            "--id",
            "who",
            "--max-epochs",
            1,
            "--n-members",
            2,
            "--out",
            tmp_path / "link",
        )
        assert done.code == 0, done.err
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "scratch" / "report.html").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "scratch", "table.csv"]


def test_two_columns_of_one_name_in_a_workbook(precisionnet, table, tmp_path):
    frame = pd.read_csv(table).rename(columns={"x1": "x0"})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    refused(precisionnet("fit", tmp_path / "t.xlsx", "--target", "age"), "more than one column named 'x0'")


def test_names_with_delimiters_and_line_breaks_are_read(precisionnet, table, tmp_path):
    frame = pd.read_csv(table).rename(columns={"x0": "a,b,c,d,e,f,g,h,i,j,k,l", "x1": "two\nlines"})
    frame.to_csv(table, sep=";", index=False)
    done = precisionnet(
        "fit", table, "--target", "age", "--id", "who", "--max-epochs", 1, "--n-members", 2, "--out", tmp_path / "o"
    )
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", ["true", "predicted", "predicted_age", "fold"])
def test_an_id_with_the_name_of_an_output_column_survives(precisionnet, table, tmp_path, name):
    pd.read_csv(table).rename(columns={"who": name}).to_csv(table, index=False)
    fit = ("fit", table, "--target", "age", "--id", name, "--max-epochs", 1, "--n-members", 2, "--out", tmp_path / "o")
    assert precisionnet(*fit).code == 0
    written = pd.read_csv(tmp_path / "o" / "predictions.csv")
    assert written.shape[1] == 4
    assert written.iloc[:, 0].str.startswith("s").all()
    assert precisionnet("predict", tmp_path / "o", table, "--id", name, "-o", tmp_path / "p.csv").code == 0
    assert pd.read_csv(tmp_path / "p.csv").iloc[:, 0].str.startswith("s").all()


def test_labels_are_stripped_and_repeated_ids_are_said(precisionnet, table, tmp_path):
    frame = pd.read_csv(table).assign(age=["a", " a", "b", "b "] * 30, who=np.arange(120) // 2)
    frame.to_csv(table, index=False)
    done = precisionnet(
        "fit", table, "--target", "age", "--id", "who", "--max-epochs", 1, "--n-members", 2, "--out", tmp_path / "o"
    )
    assert done.code == 0, done.err
    assert "Ids repeat" in done.sentence
    assert "Classes: 'a', 'b'" in precisionnet("show", tmp_path / "o").out


def test_a_useless_model_is_called_one(precisionnet, table, tmp_path):
    rng = np.random.default_rng(1)
    pd.read_csv(table).assign(age=rng.normal(size=120)).to_csv(table, index=False)
    quick = ("--n-members", 2, "--max-epochs", 10)
    done = precisionnet("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", *quick)
    assert done.code == 0
    assert "no better than guessing the median" in done.flat


def test_a_class_that_is_in_one_fold_is_named(precisionnet, table, tmp_path):
    frame = pd.read_csv(table).assign(age=["a", "b"] * 60, who=np.arange(120) // 10)
    frame.loc[frame.who == 3, "age"] = "rare"
    frame.to_csv(table, index=False)
    fit = (
        "fit",
        table,
        "--target",
        "age",
        "--id",
        "who",
        "--max-epochs",
        1,
        "--n-members",
        2,
        "--out",
        tmp_path / "o",
        "--seed",
    )
    assert "Class 'rare' has all of its rows in one fold" in precisionnet(*fit, 0).sentence
