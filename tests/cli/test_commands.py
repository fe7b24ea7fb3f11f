"""fit, predict, show: the whole path on files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import webbrowser

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNRegressor, load
from precisionnet.cli.console import open_page

QUICK = ("--max-epochs", "2", "--n-members", "2")
SEVERAL = ("--max-epochs", "2")
"""All kinds of networks, as without options."""


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
    done = precisionnet("fit", table, "--target", "age", "--id", "who", "--out", out, "--seed", 3, *SEVERAL)
    assert done.code == 0, done.err
    for word in ("MAE", "RMSE", "R²", "joint", "ridge", "median", "possible edges", "regression (guessed"):
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert sorted(p.name for p in out.iterdir()) == ["figures", "model", "predictions.csv", "report.html"]
    held_out = pd.read_csv(out / "predictions.csv")
    assert list(held_out.columns) == ["who", "true", "predicted", "fold"]
    assert held_out["who"].tolist() == pd.read_csv(table)["who"].tolist()  # everybody
    assert held_out["predicted"].notna().all()

    model = load(out)
    assert model.random_state == 3
    assert "who" not in model.feature_names_in_
    shuffled = pd.read_csv(table).drop(columns="age").sample(frac=1, random_state=0, axis=1)
    shuffled.to_parquet(tmp_path / "new.parquet")
    done = precisionnet("predict", out / "model", tmp_path / "new.parquet", "--id", "who", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    predicted = pd.read_csv(tmp_path / "p.csv").set_index("who")["predicted_age"]
    np.testing.assert_allclose(predicted[held_out["who"]], model.predict(gaussian.X), rtol=1e-12)
    assert model.n_rows_["training"] == 120
    np.testing.assert_allclose(held_out["predicted"], model.oob_prediction_, rtol=1e-12)
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
    assert columns == ["row", "true", "predicted", "fold", "probability_low", "probability_mid", "probability_top"]
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


def test_rows_of_one_person_stay_in_one_fold(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame["who"] = [f"p{i // 3}" for i in range(len(frame))]
    frame.to_csv(table, index=False)
    assert precisionnet("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", *SEVERAL).code == 0
    folds = pd.read_csv(tmp_path / "o" / "predictions.csv").groupby("who")["fold"]
    assert (folds.size() == 3).all()
    assert (folds.min() == folds.max()).all()


def test_version(precisionnet):
    assert precisionnet("--version").out.startswith("precisionnet 0.")


def test_no_command_is_recommended_that_would_refuse(precisionnet, table, tmp_path):
    """explain compares effects of all pairs, which a model on a sparse support has not."""
    quick = ("--target", "age", "--id", "who", "--n-members", "4", "--max-epochs", "1")
    done = precisionnet("fit", table, *quick, "--support", "sparse", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "precisionnet explain" not in done.flat + page
    assert "fit with <code>--support dense</code>" in page


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


HEAVY = ("torch", "sklearn", "numba", "matplotlib", "jinja2", "scipy.stats")


@pytest.mark.parametrize(
    ("command", "allowed", "most"),
    [
        (["show", "MODEL"], (), 1500),
        (["datasets", "check", "TABLE", "--target", "age", "--id", "who"], (), 1500),
        pytest.param(["fit", "TABLE", "--target", "age", "--id", "who"], ("torch", "sklearn", "numba", "scipy.stats"), 4000, marks=pytest.mark.slow),
    ],
    ids=["show", "check", "fit"],
)  # fmt: skip
def test_what_a_command_imports(command, allowed, most, gaussian, table, tmp_path):
    """Modules, not seconds: those that are there when `show` and `check` end, and when the bar of `fit` starts."""
    PNNRegressor(n_members=1, max_epochs=1).fit(gaussian.X, gaussian.y).save(tmp_path / "m")
    given = [{"MODEL": str(tmp_path / "m"), "TABLE": str(table)}.get(word, word) for word in command]
    code = f"""
import sys
from precisionnet.cli.app import app
if {command[0] == "fit"}:
    import precisionnet.cli.progress
    def started(max_epochs, only):
        raise SystemExit(0)
    precisionnet.cli.progress.epochs = started
try:
    app({given!r})
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {HEAVY!r} if name in sys.modules], len(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heavy, count = re.fullmatch(r"(\[.*\]) (\d+)", done.stderr.splitlines()[-1]).groups()
    assert set(ast.literal_eval(heavy)) <= set(allowed)
    assert int(count) <= most


@pytest.mark.parametrize("command", [[], ["datasets"]])
def test_a_command_without_arguments_shows_its_help(command):
    from typer.testing import CliRunner

    from precisionnet.cli.app import app

    done = CliRunner().invoke(app, command)
    assert "\\n" not in done.output
    assert done.output.count("\n") > 5


def test_the_page_is_shown_where_there_is_a_browser(precisionnet, table, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address) or True)
    arguments = ("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "out", "--open", *SEVERAL)
    done = precisionnet(*arguments)
    assert done.code == 0, done.err
    assert shown == [(tmp_path / "out" / "report.html").as_uri()]
    assert "browser" not in done.err
    assert "precisionnetexplain" in re.sub(r"\s", "", done.out)
    assert "beyondchance?precisionnetexplain" in re.sub(r"\s", "", done.out)
    assert "--idwhoPage" in re.sub(r"\s", "", done.out)  # nothing is stuck to the command
    (tmp_path / "out" / "figures" / "mine.txt").write_text("not to be lost")
    again = precisionnet(*arguments)
    assert again.code == 2
    assert (tmp_path / "out" / "figures" / "mine.txt").exists()


@pytest.mark.parametrize("problem", [webbrowser.Error("none"), OSError("none"), None])
def test_no_browser_is_no_failure(problem, monkeypatch, tmp_path, capsys):
    def no_browser(address):
        if problem is None:
            return False
        raise problem

    monkeypatch.setattr(webbrowser, "open", no_browser)
    assert open_page(tmp_path / "page.html") is False


def test_help_has_the_common_options_first(precisionnet):
    text = precisionnet("fit", "--help").out
    titles = ("Common options:", "How the table is read:", "Expert options")
    common, reading, expert = (text.index(title) for title in titles)
    assert common < text.index("--target") < text.index("--open") < reading < text.index("--duplicates") < expert
    assert expert < text.index("--l1-scale")
    assert max(map(len, text.splitlines())) <= 80
    assert "Common options" not in precisionnet("show", "--help").out
