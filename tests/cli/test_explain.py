"""``precisionnet explain``: a fit and its table in, tables, graphs and a page out; stopped, it goes on."""

from __future__ import annotations

import shutil

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from precisionnet import load
from precisionnet.cli.app import app
from precisionnet.cli.explain import fitted_rows
from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from tests.cli.test_hostile_names import CONTROL, is_clean, is_safe

TINY = ("--n-members", "2", "--max-epochs", "2", "--readout", "mean")
EVIDENCE = ("--permutations", "19", "--jobs", "1")
WRITTEN = [
    "contributions.csv", "edges.csv", "explain.html", "fits.jsonl", "graph.gexf", "graph.graphml", "nodes.csv"
]  # fmt: skip


def run(*arguments) -> None:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


@pytest.fixture(autouse=True, scope="module")
def few_halves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("precisionnet.evidence.task.HALF_PAIRS", 1)
        yield


@pytest.fixture(scope="module")
def place(gaussian, tmp_path_factory):
    """A table, a fit of it (fit) and its explanation (out)."""
    folder = tmp_path_factory.mktemp("explain")
    frame = gaussian.X.assign(age=gaussian.y.round(3), who=[f"s{i:03d}" for i in range(len(gaussian.X))])
    frame.to_csv(folder / "table.csv", index=False)
    run("fit", folder / "table.csv", "--target", "age", "--id", "who", "--out", folder / "fit", *TINY)
    run("explain", folder / "fit", folder / "table.csv", "--id", "who", "--out", folder / "out", *EVIDENCE)
    return folder


@pytest.fixture
def again(precisionnet, place):
    """Explain once more, with other arguments where given."""

    def explain(out, *, model=place / "fit", table=place / "table.csv", who="who", **options):
        given = [text for name, value in options.items() for text in (f"--{name}", value)]
        identity = [] if who is None else ["--id", who]
        return precisionnet("explain", model, table, *identity, "--out", out, *EVIDENCE, *given)

    return explain


def test_what_is_written(place):
    out = place / "out"
    assert sorted(path.name for path in out.iterdir()) == WRITTEN
    edges, nodes = pd.read_csv(out / "edges.csv"), pd.read_csv(out / "nodes.csv")
    assert len(edges) == 28
    assert {"effect", "frequency", "q_value", "in_graph", "partial_correlation", "ci_low", "data_q_value"} <= {*edges}
    assert edges["q_value"].notna().equals(edges["in_graph"])
    assert (edges["ci_low"] <= edges["partial_correlation"]).all()
    assert nodes["node"].tolist() == [f"x{i}" for i in range(8)]
    assert {"importance", "direction", "q_value", "data_predictability"} <= {*nodes}


def test_contributions_add_up_for_every_row_and_say_what_was_learned_from(place):
    parts = pd.read_csv(place / "out" / "contributions.csv")
    table, model = pd.read_csv(place / "table.csv"), load(place / "fit")
    assert parts["who"].tolist() == table["who"].tolist()
    names = [f"x{i}" for i in range(8)]
    np.testing.assert_allclose(parts["base"] + parts[names].sum(axis=1), model.predict(table[names]), atol=1e-9)
    np.testing.assert_allclose(parts["predicted"], model.predict(table[names]), atol=1e-9)
    assert parts["learned_from"].all()  # a fit learns from every row of its table


def test_rows_that_the_fit_did_not_have_are_no_evidence(place, again, tmp_path):
    frame = pd.read_csv(place / "table.csv")
    new = frame.tail(5).assign(who=[f"new{i}" for i in range(5)])
    pd.concat([frame, new]).to_csv(tmp_path / "more.csv", index=False)
    (tmp_path / "out").mkdir()
    shutil.copy(place / "out" / "fits.jsonl", tmp_path / "out")  # its fits are the same
    done = again(tmp_path / "out", table=tmp_path / "more.csv")
    assert done.code == 0, done.err
    assert "Evidence comes from 120 of 125 rows" in done.sentence
    parts = pd.read_csv(tmp_path / "out" / "contributions.csv")
    assert parts.loc[~parts["learned_from"], "who"].tolist() == new["who"].tolist()


@pytest.mark.parametrize(("name", "read"), [("graph.graphml", nx.read_graphml), ("graph.gexf", nx.read_gexf)])
def test_the_graph_for_other_tools(place, name, read):
    graph = read(place / "out" / name)
    edges = pd.read_csv(place / "out" / "edges.csv")
    shown = edges[edges["in_graph"] | (edges["data_q_value"] <= 0.05)]
    assert graph.number_of_nodes() == 8
    assert graph.number_of_edges() == len(shown)
    labels = nx.get_node_attributes(graph, "label")
    found = {frozenset((labels[a], labels[b])): values for a, b, values in graph.edges(data=True)}
    first = shown.iloc[0]
    values = found[frozenset((first["source"], first["target"]))]
    assert values["weight"] == pytest.approx(abs(first["partial_correlation"]))
    assert values["sure_in_data"] == (first["data_q_value"] <= 0.05)


def test_the_page_says_which_graph_is_which_and_what_numbers_do_not_mean(place):
    page = (place / "out" / "explain.html").read_text(encoding="utf-8")
    for words in (
        "The task's graph", "The data's own graph", "This graph is not about age", "Importance is shared",
        "Nothing here is about causes", "q is a rate over the list", "Not beyond chance does not mean absent",
    ):  # fmt: skip
        assert words in page
    nodes = pd.read_csv(place / "out" / "nodes.csv")
    assert f"<b>{(nodes['q_value'] <= 0.05).sum()} of 8</b>" in page
    edges = pd.read_csv(place / "out" / "edges.csv")
    sure, tested = (edges["q_value"] <= 0.05).sum(), edges["in_graph"].sum()
    assert f"<b>{sure} of {tested}</b>" in page
    assert ("No edge is beyond chance." in page) == (sure == 0)
    assert page.count("<svg") == 2 + (sure > 0)
    assert is_safe(place / "out" / "explain.html")
    size, tested = edges["effect"].abs(), edges["in_graph"]
    larger = edges[~tested & (size > size[tested].max())]
    assert ("Pairs that are no edge of the sparse graph have no q" in page) == (len(larger) > 0)
    for row in larger.sort_values("effect", key=abs, ascending=False).head(3).itertuples():
        assert f"{row.source} and {row.target} ({row.effect:+.3g}" in page


def test_a_stopped_run_goes_on_and_comes_to_the_same(place, again, tmp_path):
    lines = (place / "out" / "fits.jsonl").read_bytes().splitlines(keepends=True)
    out = tmp_path / "out"
    out.mkdir()
    (out / "fits.jsonl").write_bytes(b"".join(lines[:-2]) + lines[-2][:20])  # the last two are lost, one torn
    done = again(out)
    assert done.code == 0, done.err
    assert f"{len(lines) - 3} of {len(lines) - 1} fits are already here" in done.sentence
    assert "Evidence comes from" not in done.sentence  # all rows are those of the fit
    for name in ("edges.csv", "nodes.csv", "contributions.csv"):
        pd.testing.assert_frame_equal(pd.read_csv(out / name), pd.read_csv(place / "out" / name), rtol=1e-9)
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_shuffled_table_and_the_model_folder_itself_will_do(place, again, tmp_path):
    pd.read_csv(place / "table.csv").sample(frac=1, random_state=0).to_csv(tmp_path / "shuffled.csv", index=False)
    shutil.copytree(place / "out", tmp_path / "out")
    done = again(tmp_path / "out", model=place / "fit" / "model", table=tmp_path / "shuffled.csv")
    assert done.code == 0, done.err
    assert "nothing is fitted again" in done.sentence  # the same rows in the same order


def test_interrupted_it_says_how_to_go_on(again, tmp_path, monkeypatch):
    def stopped(*_, on_fit, **__):
        on_fit(0, 72)
        on_fit(1, 72)
        raise KeyboardInterrupt

    monkeypatch.setattr("precisionnet.cli.explain.task_evidence", stopped)
    done = again(tmp_path / "out")
    assert done.code == 130
    assert "run the same command again to go on" in done.sentence


def test_quick_says_what_it_leaves_out(precisionnet, place, tmp_path, monkeypatch):
    asked = {}

    def noted(*_, n_permutations, **__):
        asked["n"] = n_permutations
        raise InputError("Enough.")

    monkeypatch.setattr("precisionnet.cli.explain.task_evidence", noted)
    explain = ("explain", place / "fit", place / "table.csv", "--id", "who", "--out", tmp_path / "out")
    done = precisionnet(*explain, "--quick")
    assert asked["n"] == 30
    assert "30 drawn targets instead of 100" in done.sentence
    precisionnet(*explain)
    assert asked["n"] == 100
    assert not (tmp_path / "out").exists()  # nothing came of it


def other_values(frame):
    return frame.assign(x2=frame["x2"] * 1.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.rename(columns={"x3": "x33"}), "no column 'x3'"),
        (lambda frame: frame[10:], "not the table that the model was fitted on: of its 120 rows"),
        (other_values, "not the table that the model was fitted on"),
        (lambda frame: frame.drop(columns="age"), "no column 'age'"),
        (lambda frame: frame.assign(age=frame["age"].astype(str) + "y"), "not numbers"),
        (lambda frame: frame.assign(age=np.nan), "Target 'age' is missing in 120"),
    ],
    ids=["columns", "rows", "values", "target", "text", "no target"],
)
def test_a_table_the_model_was_not_fitted_on(again, place, tmp_path, change, words):
    change(pd.read_csv(place / "table.csv")).to_csv(tmp_path / "t.csv", index=False)
    done = again(tmp_path / "out", table=tmp_path / "t.csv")
    assert done.code == 2
    assert words in done.sentence
    assert not (tmp_path / "out").exists()


def test_names_that_are_not_there(again, precisionnet, place, tmp_path):
    assert "did you mean 'who'?" in again(tmp_path / "out", who="whoo").sentence
    assert "did you mean 'age'?" in again(tmp_path / "out", target="agee").sentence
    assert "and --id if the fit was given one" in again(tmp_path / "out", who=None).sentence
    done = again(tmp_path / "out", model=tmp_path / "nowhere")
    assert (done.code, "does not exist" in done.sentence) == (2, True)
    done = again(tmp_path / "out", model=place / "out")
    assert (done.code, "is not a model folder" in done.sentence) == (2, True)
    done = precisionnet("explain", place / "fit", place / "table.csv", "--permutations", 5)
    assert (done.code, "--permutations must be at least 19" in done.sentence) == (2, True)


def test_a_foreign_folder_and_one_of_another_run_are_refused(again, place, tmp_path):
    (tmp_path / "edges.csv").write_text("mine")
    done = again(tmp_path)
    assert done.code == 2
    assert "not an earlier output" in done.sentence
    assert (tmp_path / "edges.csv").read_text() == "mine"
    shutil.copytree(place / "out", tmp_path / "out")
    done = again(tmp_path / "out", seed=1)
    assert done.code == 2
    assert "another table, model or seed" in done.sentence


def test_rows_are_found_by_id_where_ids_repeat():
    class Model:
        oob_row_ids_ = np.array(["a", "a", "c"], dtype=object)

    X = pd.DataFrame({"x": range(4), "z": range(4)}, index=pd.Index(["a", "b", "a", "c"], name="who"))
    assert fitted_rows(Model(), Dataset(X)).tolist() == [0, 2, 3]
    with pytest.raises(InputError, match="of its 3 rows"):
        fitted_rows(Model(), Dataset(X[:3]))


def test_two_hostile_classes(precisionnet, gaussian, tmp_path, with_pictures):
    """Log-odds; columns named like ours and like markup; a column of the id's name."""
    names = ["base", "log_odds", "<script>alert(1)</script>", "a\x1b[31m", "=1+1", "x5", "x6", "x7"]
    label = np.array(["<b>no", "\x1b[31myes"])[(gaussian.y > gaussian.y.median()).astype(int)]
    frame = gaussian.X.set_axis(names, axis=1).assign(y=label, who=[f"<i>{i}" for i in range(len(label))])
    frame = frame[:60]
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = (tmp_path / "t.csv", "--id", "who")
    assert precisionnet("fit", *read, "--target", "y", "--out", tmp_path / "fit", *TINY).code == 0
    done = precisionnet("explain", tmp_path / "fit", *read, "--out", tmp_path / "out", *EVIDENCE)
    assert done.code == 0, done.err
    assert is_clean(done)
    assert is_safe(tmp_path / "out" / "explain.html")
    assert "log-odds" in (tmp_path / "out" / "explain.html").read_text(encoding="utf-8")
    parts = pd.read_csv(tmp_path / "out" / "contributions.csv")
    assert list(parts.columns[:4]) == ["who", "learned_from", "base_", "log_odds_"]
    np.testing.assert_allclose(parts["base_"] + parts.iloc[:, 4:].sum(axis=1), parts["log_odds_"], atol=1e-9)
    chance = load(tmp_path / "fit").predict_proba(frame[names])
    np.testing.assert_allclose(np.log(chance[:, 1] / chance[:, 0]), parts["log_odds_"], atol=1e-6)
    assert "'=1+1" in parts.columns
    graph = nx.read_graphml(tmp_path / "out" / "graph.graphml")
    assert r"a\x1b[31m" in nx.get_node_attributes(graph, "label").values()
    assert not CONTROL.search((tmp_path / "out" / "graph.gexf").read_text(encoding="utf-8"))


def test_three_classes_are_refused(precisionnet, gaussian, classes, tmp_path):
    gaussian.X.assign(level=classes).to_csv(tmp_path / "t.csv", index=False)
    assert precisionnet("fit", tmp_path / "t.csv", "--target", "level", "--out", tmp_path / "fit", *TINY).code == 0
    done = precisionnet("explain", tmp_path / "fit", tmp_path / "t.csv", "--out", tmp_path / "out", *EVIDENCE)
    assert done.code == 2
    assert "3 classes" in done.sentence
    assert not (tmp_path / "out").exists()
