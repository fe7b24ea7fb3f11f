"""Each mistake: one sentence that names the thing and says what to do, exit code 2, nothing written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

TABLES = {
    "NaN": (lambda f: f.assign(x2=f.x2.mask(f.x2 > 1)), r"Column 'x2' is missing \(NaN\) in \d+ of 120 rows \(row \d+"),
    "infinity": (lambda f: f.assign(x2=np.inf), r"Column 'x2' holds infinity \(row 1\)"),
    "strings": (lambda f: f.assign(site="Oslo"), r"Column 'site' holds text \('Oslo' in row 1\).*--drop 'site'"),
    "a constant column": (lambda f: f.assign(flat=1), r"Column 'flat' is constant.*--drop 'flat'"),
    "a repeated column": (lambda f: f.assign(copy=f.x0), r"Column 'copy' repeats column 'x0'.*--drop 'copy'"),
    "one row": (lambda f: f[:1], r"n_samples=1 rows"),
    "one column": (lambda f: f[["x0", "age"]], r"Only 1 feature column is left"),
    "one class": (lambda f: f.assign(age="old"), r"Target 'age' has only one class \(old\)"),
    "a constant target": (lambda f: f.assign(age=0.5), r"Target 'age' is always 0.5"),
    "a missing target column": (lambda f: f.rename(columns={"age": "ages"}), r"no column 'age' \(did you mean 'ages'\?\)"),
    "holes in the target": (lambda f: f.assign(age=f.age.mask(f.age > 1)), r"Target 'age' is missing in \d+ of 120 rows"),
    "a class with one row": (lambda f: f.assign(age=["b"] + ["a"] * 60 + ["c"] * 59), r"Class 'b' of target 'age' has fewer"),
    "text for regression": (lambda f: f.assign(age=["a", "b"] * 60), r"not numbers: use --task classification"),
    "no rows": (lambda f: f[:0], r"has no rows"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TABLES))
def test_bad_tables(precisionnet, table, tmp_path, what):
    change, sentence = TABLES[what]
    change(pd.read_csv(table).drop(columns="who")).to_csv(table, index=False)
    extra = {"text for regression": ["--task", "regression"], "a constant target": ["--task", "regression"]}.get(
        what, []
    )
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
        ("a.csv", b"\xff\xfe\xfa,b\n1,2\n", "cannot be read as .csv"),
        ("a.parquet", b"not parquet", "cannot be read as .parquet"),
        ("a.xlsx", b"not a workbook", "cannot be read as .xlsx"),
        ("a.csv", b"", "cannot be read|has no rows"),
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
    assert precisionnet("fit", table, "--target", "age", "--out", tmp_path / "o", "--max-epochs", 1).code == 0


def test_ids_that_do_not_match(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame[["who", "x0"]].assign(who=[f"{i}" for i in range(120)]).rename(columns={"x0": "z"}).to_csv(
        tmp_path / "b.csv", index=False
    )
    both = ("fit", table, tmp_path / "b.csv", "--target", "age", "--out", tmp_path / "out")
    refused(precisionnet(*both, "--id", "who"), r"No id in column 'who' matches.*'s000'.*'0'")
    refused(precisionnet(*both), "name the id column with --id")
    refused(precisionnet(*both, "--id", "whom"), r"no id column 'whom' \(did you mean 'who'\?\)")
    refused(precisionnet("fit", table, table, "--id", "who", "--target", "age"), "stands in .* and in")
    twice = pd.concat([frame[["who"]].assign(z=1.0)] * 2)
    twice.to_csv(tmp_path / "b.csv", index=False)
    refused(precisionnet(*both, "--id", "who"), "Id 's000'.* stands more than once")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--n-layers", 0], "'n_layers' parameter .* must be an int"),
        (["--method", "magic"], "'method' parameter .* must be a str among"),
        (["--task", "guess"], "--task must be"),
        (["--test-fraction", 1.5], "--test-fraction must be"),
        (["--drop", "x77"], "no column 'x77'"),
        (["--id", "age"], "as --target and as --id"),
        (["--step1", "paper", "--ridge", 0, "--coupling", 400, "--drop", "who"], "The fit diverged in epoch"),
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
    done = precisionnet("fit", tmp_path / "t.csv", "--target", "age", "--out", tmp_path / "o", "--max-epochs", 1)
    assert done.code == 0
    assert "12 training rows for 30 columns" in done.sentence


def test_outputs_that_cannot_be_written(precisionnet, table, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    fit = ("fit", table, "--target", "age", "--id", "who", "--max-epochs", 1, "--out")
    refused(precisionnet(*fit, tmp_path / "mine"), "'.*mine': the folder holds files")
    refused(precisionnet(*fit, tmp_path / "file"), "it is a file")
    refused(precisionnet(*fit, tmp_path / "file" / "below"), "Cannot write to")
    refused(precisionnet(*fit, "/proc/nowhere/out"), "Cannot write to '/proc/nowhere/out'")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "mine", "table.csv"]
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_bad_predictions(precisionnet, table, tmp_path):
    assert (
        precisionnet("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", "--max-epochs", 1).code
        == 0
    )
    refused(precisionnet("predict", tmp_path / "nowhere", table), "is not a model folder")
    refused(precisionnet("predict", tmp_path / "o", table, "-o", tmp_path / "p.docx"), "its ending must be")
    pd.read_csv(table).drop(columns=["x1", "x2"]).to_csv(tmp_path / "less.csv", index=False)
    refused(
        precisionnet("predict", tmp_path / "o", tmp_path / "less.csv"),
        r"no column 'x1', 'x2', which .*2 of 8 are missing",
    )
    pd.read_csv(table).assign(x1="?").to_csv(tmp_path / "text.csv", index=False)
    refused(precisionnet("predict", tmp_path / "o", tmp_path / "text.csv"), "Column 'x1' holds text")
    tensors = tmp_path / "o" / "model" / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    refused(precisionnet("predict", tmp_path / "o", table), "does not match the hash")
    refused(precisionnet("show", tmp_path / "o"), "does not match the hash")


@pytest.mark.slow
def test_an_interrupted_fit_leaves_nothing(table, tmp_path):
    """A real process, stopped in the middle of training."""
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
        "--patience",
        100000,
    ]
    process = subprocess.Popen([sys.executable, "-m", "precisionnet", *map(str, arguments)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) != 0
    assert os.listdir(tmp_path) == ["table.csv"]


def test_hostile_names_stay_in_their_place(precisionnet, table, tmp_path):
    evil = "<script>alert(1)</script>"
    frame = pd.read_csv(table).rename(
        columns={"x0": evil, "x1": "../x", "x2": "a$b$c", "x3": "q" * 10_000, "age": "<b>age"}
    )
    frame.to_csv(table, index=False)
    done = precisionnet("fit", table, "--target", "<b>age", "--id", "who", "--out", tmp_path / "out", "--max-epochs", 1)
    assert done.code == 0, done.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "<b>age" not in page
    assert "&lt;script&gt;" in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "table.csv"]
    done = precisionnet("show", tmp_path / "out")
    assert done.code == 0
    done = precisionnet("predict", tmp_path / "out", table, "-o", tmp_path / "p.csv")
    assert done.code == 0
