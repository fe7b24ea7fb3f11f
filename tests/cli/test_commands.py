"""fit, predict, show: the whole path on files."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from precisionnet import load

QUICK = ("--max-epochs", "2")


def test_help_imports_nothing_heavy():
    """In a process of its own: what takes seconds to import is imported when it is used."""
    code = """
import sys
from typer.testing import CliRunner
from precisionnet.cli.app import app
for arguments in (
    ["--help"], ["fit", "--help"], ["show", "nowhere"], ["fit", "nowhere.csv", "--target", "y"],
    ["explain", "nowhere", "nowhere.csv"],
):
    done = CliRunner().invoke(app, arguments)
    assert "predict" in done.output or "exist" in done.output, done.output
print([name for name in ("torch", "pandas", "sklearn", "numpy", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_fit_predict_show(precisionnet, table, tmp_path, gaussian):
    out = tmp_path / "out"
    done = precisionnet("fit", table, "--target", "age", "--id", "who", "--out", out, "--seed", 3, *QUICK)
    assert done.code == 0, done.err
    for word in ("MAE", "RMSE", "R²", "joint", "ridge", "median", "possible edges", "regression (guessed"):
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert sorted(p.name for p in out.iterdir()) == ["model", "predictions.csv", "report.html"]
    held_out = pd.read_csv(out / "predictions.csv")
    assert list(held_out.columns) == ["who", "true", "predicted"]
    assert len(held_out) == 24

    model = load(out)
    assert model.random_state == 3
    assert "who" not in model.feature_names_in_
    shuffled = pd.read_csv(table).drop(columns="age").sample(frac=1, random_state=0, axis=1)
    shuffled.to_parquet(tmp_path / "new.parquet")
    done = precisionnet("predict", out / "model", tmp_path / "new.parquet", "--id", "who", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    predicted = pd.read_csv(tmp_path / "p.csv").set_index("who")["predicted_age"]
    np.testing.assert_allclose(predicted[held_out["who"]], held_out["predicted"], rtol=1e-12)
    assert "row,predicted_age" in precisionnet("predict", out, table).out

    done = precisionnet("show", out, "--edges", tmp_path / "edges.csv")
    assert done.code == 0
    assert "method joint, target age" in done.out
    assert "max_epochs=2" in done.out
    assert len(pd.read_csv(tmp_path / "edges.csv")) == len(model.to_edge_frame())


def test_fit_twice_is_bit_identical_and_replaces_the_output(precisionnet, table, tmp_path):
    arguments = ("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "out", *QUICK)
    assert precisionnet(*arguments).code == 0
    first = (tmp_path / "out" / "predictions.csv").read_bytes()
    assert precisionnet(*arguments).code == 0
    assert (tmp_path / "out" / "predictions.csv").read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "table.csv"]


def test_classification(precisionnet, table, tmp_path, classes):
    frame = pd.read_csv(table).drop(columns=["age", "who"]).assign(level=classes)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    done = precisionnet("fit", tmp_path / "t.xlsx", "--target", "level", "--out", tmp_path / "out", *QUICK)
    assert done.code == 0, done.err
    for word in ("classification", "Accuracy", "Balanced acc.", "AUC", "logistic", "majority"):
        assert word in done.out
    columns = list(pd.read_csv(tmp_path / "out" / "predictions.csv").columns)
    assert columns == ["row", "true", "predicted", "probability_low", "probability_mid", "probability_top"]
    assert "Classes: 'low', 'mid', 'top'" in precisionnet("show", tmp_path / "out").out


def test_two_tables_are_joined_on_the_id(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame[["who", "x0", "x1", "x2"]].to_csv(tmp_path / "left.tsv", sep="\t", index=False)
    frame.drop(columns=["x0", "x1", "x2"])[5:].sample(frac=1, random_state=0).to_csv(
        tmp_path / "right.csv", index=False
    )
    done = precisionnet(
        "fit", tmp_path / "left.tsv", tmp_path / "right.csv", "--id", "who", "--target", "age", "--out", tmp_path / "o", *QUICK
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "5 of 120 rows" in done.sentence
    assert load(tmp_path / "o").n_features_in_ == 8


def test_model_parameters_are_options(precisionnet, table, tmp_path):
    done = precisionnet(
        "fit", table, "--target", "age", "--drop", "who", "--out", tmp_path / "o", "--method", "glasso", "--order", 1,
        "--l1-penalty", 0.3, "--no-scale-shift", "--max-epochs", 1, "--readout", "mean",
    )  # fmt: skip
    assert done.code == 0, done.err
    model = load(tmp_path / "o")
    assert (model.method, model.order, model.l1_penalty_, model.scale_shift, model.readout) == (
        "glasso",
        1,
        0.3,
        False,
        "mean",
    )


def test_rows_of_one_person_stay_on_one_side(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame["who"] = [f"p{i // 3}" for i in range(len(frame))]
    frame.to_csv(table, index=False)
    assert precisionnet("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", *QUICK).code == 0
    held_out = pd.read_csv(tmp_path / "o" / "predictions.csv")["who"].value_counts()
    assert (held_out == 3).all()


def test_version(precisionnet):
    assert precisionnet("--version").out.startswith("precisionnet 0.")


@pytest.mark.slow
def test_demo(precisionnet, tmp_path):
    done = precisionnet("demo", "--out", tmp_path / "demo")
    assert done.code == 0, done.err
    found = re.search(r"Of the (\d+) true edges, (\d+) are among the (\d+) shown as sure; (\d+) of those", done.flat)
    true, hits, shown, false = map(int, found.groups())
    assert (true, shown) == (30, hits + false)
    assert hits >= 25
    assert false <= 0.1 * shown
    page = (tmp_path / "demo" / "synthetic" / "report.html").read_text(encoding="utf-8")
    assert f"{shown} of its" in page
    assert (tmp_path / "demo" / "diabetes" / "report.html").exists()
