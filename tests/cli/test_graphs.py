"""``precisionnet graphs``: the data's graph with evidence, and the graphs of groups beside each other."""

from __future__ import annotations

import html

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from precisionnet.evidence import compare_graphs, edge_inference
from tests.cli.test_hostile_names import is_clean, is_safe

NAMES = [f"region_{i}" for i in range(6)]
FEW = ("--permutations", "99", "--jobs", "1")
N = 160


@pytest.fixture
def frame() -> pd.DataFrame:
    """A chain of six columns; patients have one more edge, 0 to 4; age moves all columns."""
    rng = np.random.default_rng(0)
    X, patient = rng.normal(size=(N, 6)), np.arange(N) % 2 == 1
    for i in range(5):
        X[:, i + 1] += 0.6 * X[:, i]
    X[patient, 0] += X[patient, 4]
    age = rng.normal(40, 10, size=N)
    table = pd.DataFrame((X + 0.2 * age[:, None]).round(5), columns=NAMES)
    return table.assign(
        who=[f"s{i}" for i in range(N)],
        dx=np.where(patient, "patient", "control"),
        age=age.round(2),
        pair=[f"p{i // 2}" for i in range(N)],
    )


@pytest.fixture
def graphs(precisionnet, tmp_path):
    def run(frame, *arguments, out="out"):
        path = tmp_path / "table.csv"
        frame.to_csv(path, index=False)
        return precisionnet("graphs", path, "--out", tmp_path / out, *FEW, *arguments)

    return run


def test_one_graph(graphs, frame, tmp_path):
    done = graphs(frame[[*NAMES, "who"]], "--id", "who")
    assert done.code == 0, done.err
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == [
        "edges.csv", "graph.gexf", "graph.graphml", "graphs.html", "nodes.csv"
    ]  # fmt: skip
    expected = edge_inference(frame[NAMES])
    written = pd.read_csv(out / "edges.csv")
    np.testing.assert_allclose(written["q_value"], expected.edges["q_value"], rtol=1e-9)
    n_sure = int((expected.edges["q_value"] <= 0.05).sum())
    assert f"{n_sure} of 15 pairs are joined beyond chance" in done.flat
    for graph in (nx.read_graphml(out / "graph.graphml"), nx.read_gexf(out / "graph.gexf")):
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (6, n_sure)
    page = (out / "graphs.html").read_text(encoding="utf-8")
    assert "The data's graph, all rows" in page
    assert "no target involved" in page
    assert "no cause" in page
    assert page.count("<svg") == 1


def test_cells_that_are_no_measurements_are_warned_of_here_and_on_the_page(graphs, frame, tmp_path):
    thickness = frame[NAMES].sub(frame[NAMES].min()).add(50.0)
    thickness.loc[7, "region_2"] = 0.0
    done = graphs(thickness.assign(who=frame["who"]), "--id", "who")
    assert done.code == 0, done.err
    page = (tmp_path / "out" / "graphs.html").read_text(encoding="utf-8")
    for where in (done.sentence, html.unescape(page)):
        assert where.count("Column 'region_2' is 0 in row 's7'") == 1
        assert "Empty those cells" in where


def test_groups(graphs, frame, tmp_path):
    done = graphs(frame.drop(columns="pair"), "--id", "who", "--by", "dx", "--covariate", "age", "--seed", 3)
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    out = tmp_path / "out"
    expected = compare_graphs(
        frame[NAMES], frame["dx"], covariates=frame[["age"]], n_permutations=99, random_state=3
    )  # ids are all different: every row is a person
    tests, edges = pd.read_csv(out / "tests.csv"), pd.read_csv(out / "edges.csv")
    np.testing.assert_allclose(tests["p_value"], expected.tests["p_value"])
    np.testing.assert_allclose(edges["difference"], expected.edges["difference"])
    np.testing.assert_allclose(edges["value_a"] - edges["value_b"], edges["difference"], atol=0.05)
    found = edges.loc[edges["q_value"] <= 0.05, ["source", "target"]].to_numpy().tolist()
    assert ["region_0", "region_4"] in found
    assert len(pd.read_csv(out / "nodes.csv")) == 6
    both = {"control": pd.read_csv(out / "graph-1-control.csv"), "patient": pd.read_csv(out / "graph-2-patient.csv")}
    pair = {name: graph.set_index(["source", "target"]).loc[("region_0", "region_4")] for name, graph in both.items()}
    assert (pair["patient"]["sure"], pair["control"]["sure"]) == (True, False)
    for label, graph in both.items():
        number = list(both).index(label) + 1
        assert nx.read_gexf(out / f"graph-{number}-{label}.gexf").number_of_edges() == graph["sure"].sum()
    page = (out / "graphs.html").read_text(encoding="utf-8")
    for words in (
        "covariates taken out: age",
        "Differences are those of control minus patient",
        "The data's graph, dx",
    ):
        assert words in page
    assert page.count("<svg") == 4  # all rows, two groups, their difference


def test_no_difference_is_an_answer(graphs, frame, tmp_path):
    frame["dx"] = np.random.default_rng(1).permutation(frame["dx"])
    done = graphs(frame.drop(columns=["pair", "age"]), "--id", "who", "--by", "dx")
    assert done.code == 0, done.err
    assert "no edge differs" in done.flat
    page = (tmp_path / "out" / "graphs.html").read_text(encoding="utf-8")
    assert "No edge differs beyond chance." in page
    assert "Nothing is drawn" in page


def test_paired_people_and_the_next_run_in_the_same_folder(graphs, frame, tmp_path):
    four = frame.assign(dx=np.array(["a", "b", "c", "d"])[np.arange(N) % 4]).drop(columns=["pair", "age"])
    assert graphs(four, "--id", "who", "--by", "dx").code == 0
    assert (tmp_path / "out" / "graph-4-d.csv").exists()
    page = (tmp_path / "out" / "graphs.html").read_text(encoding="utf-8")
    assert "of 6 pairs of groups differ as a whole" in page
    assert page.count('class="verdict"') == 1
    done = graphs(frame.drop(columns="age"), "--id", "who", "--by", "dx", "--paired-by", "pair")
    assert done.code == 0, done.err
    assert "control (80 people) and patient (80 people)" in done.flat
    assert "paired by pair" in (tmp_path / "out" / "graphs.html").read_text(encoding="utf-8")
    assert sorted(p.name for p in (tmp_path / "out").glob("*.csv")) == [
        "edges.csv", "graph-1-control.csv", "graph-2-patient.csv", "graph.csv", "nodes.csv", "tests.csv"
    ]  # fmt: skip
    by_id = graphs(frame.drop(columns=["age", "who"]), "--id", "pair", "--by", "dx", "--paired-by", "pair", out="id")
    assert by_id.code == 0, by_id.err
    first, second = (pd.read_csv(tmp_path / name / "tests.csv") for name in ("out", "id"))
    pd.testing.assert_frame_equal(first, second)


def test_a_group_with_few_people_has_a_comparison_and_no_graph_of_its_own(graphs, frame, tmp_path):
    kept = pd.concat([frame[frame["dx"] == "control"], frame[frame["dx"] == "patient"].head(8)])
    done = graphs(kept.drop(columns=["pair", "age"]), "--id", "who", "--by", "dx")
    assert done.code == 0, done.err
    assert "shrunk" in done.flat
    assert "too few to say anything about edges" in done.flat
    page = (tmp_path / "out" / "graphs.html").read_text(encoding="utf-8")
    assert "There is no evidence for it." in page
    assert not pd.read_csv(tmp_path / "out" / "graph-2-patient.csv")["sure"].any()


def test_missing_values(graphs, frame, tmp_path):
    frame.loc[[3, 5], "region_2"] = np.nan
    frame.loc[7, "dx"] = np.nan
    arguments = (frame.drop(columns=["pair", "age"]), "--id", "who", "--by", "dx")
    done = graphs(*arguments)
    assert done.code == 2
    assert "missing in 3 of 160 rows" in done.sentence
    assert "--complete-rows" in done.sentence
    done = graphs(*arguments, "--complete-rows")
    assert done.code == 0, done.err
    assert "3 of 160 rows are not complete" in done.sentence
    assert "Graph of all rows (157 rows)" in done.flat


BAD = {
    "one group": (["--by", "one"], "give at least two groups"),
    "three people": (["--by", "three"], "'x' has 3 rows"),
    "constant covariate": (["--by", "dx", "--covariate", "one"], "Covariate 'one' has the same value"),
    "groups are sites": (["--by", "dx", "--covariate", "centre"], "Covariate 'centre' coincides"),
    "misspelt group": (["--by", "dxx"], "did you mean 'dx'?"),
    "misspelt covariate": (["--by", "dx", "--covariate", "agee"], "did you mean 'age'?"),
    "many groups": (["--by", "pair"], "at most 10 groups"),
    "two roles": (["--by", "dx", "--covariate", "dx"], "named as --by and as --covariate"),
    "covariate twice": (["--by", "dx", "--covariate", "age", "--covariate", "age"], "more than once"),
    "the id": (["--by", "who"], "named as --by and as --id"),
    "pairs without groups": (["--paired-by", "pair"], "name the column of groups with --by"),
    "in both groups": (["--by", "dx", "--person", "pair"], "give --paired-by in place of --person"),
    "two owners": (["--by", "dx", "--person", "pair", "--paired-by", "pair"], "both say whose row it is"),
    "few permutations": (["--by", "dx", "--permutations", "9"], "at least 19"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_bad_input(graphs, frame, tmp_path, arguments, words):
    frame = frame.assign(
        one="same",
        three=np.where(np.arange(N) < 3, "x", "y"),
        centre=np.where(frame["dx"] == "control", "A", "B"),
    )
    named = {name for name in arguments if name in frame}
    dropped = [text for name in ("dx", "age", "pair", "one", "three", "centre") if name not in named
               for text in ("--drop", name)]  # fmt: skip
    done = graphs(frame, "--id", "who", *arguments, *dropped)
    assert done.code == 2
    assert words in done.sentence
    assert done.out == ""
    assert not (tmp_path / "out").exists()


def test_few_rows_and_a_foreign_folder(graphs, frame, tmp_path):
    done = graphs(frame[NAMES].head(12))
    assert (done.code, "bring at least 15" in done.sentence) == (2, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "graphs.html").write_text("mine")
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = graphs(frame[NAMES], out="mine")
    assert (done.code, "not an earlier output" in done.sentence) == (2, True)
    assert (tmp_path / "mine" / "graphs.html").read_text() == "mine"


def test_hostile_names_and_groups(graphs, frame, tmp_path, with_pictures):
    names = ["<script>alert(1)</script>", "a\x1b[31m", "=1+1", "../../etc", "x" * 3000, "\u202eright"]
    groups = np.array(["../../<b>\x1b[31m", "<img src=x onerror=alert(1)>"])
    frame = frame.rename(columns=dict(zip(NAMES, names, strict=True)))
    frame["dx"] = groups[(frame["dx"] == "patient").astype(int)]
    done = graphs(frame.drop(columns=["pair", "age"]), "--id", "who", "--by", "dx")
    assert done.code == 0, done.err
    assert is_clean(done)
    out = tmp_path / "out"
    assert is_safe(out / "graphs.html")
    assert {p.name for p in out.glob("graph-*.gexf")} == {
        "graph-1-b-31m.gexf",
        "graph-2-img-src-x-onerror-alert-1.gexf",
    }
    labels = set(nx.get_node_attributes(nx.read_graphml(out / "graph.graphml"), "label").values())
    assert {"<script>alert(1)</script>", r"a\x1b[31m", r"\u202eright"} <= labels
    assert "'=1+1" in set(pd.read_csv(out / "edges.csv")["target"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "table.csv"]


def test_text_and_dates_are_left_out_in_one_sentence(frame, graphs, tmp_path):
    """The graph is that of the numbers alone; as a covariate a label counts."""
    labels = {"city": ["Oslo", "Rome"] * (N // 2), "smoker": ["yes", "no", "no", "yes"] * (N // 4)}
    table = frame.drop(columns=["dx", "age", "pair"]).assign(day="2020-01-02", **labels)
    done = graphs(table, "--id", "who")
    assert done.code == 0, done.err
    assert "Column 'day', 'city', 'smoker' hold text" in done.sentence
    assert done.sentence.count("left out") == 1
    edges = pd.read_csv(tmp_path / "out" / "edges.csv")
    assert set(edges["source"]) | set(edges["target"]) == set(NAMES)
    plain = graphs(table.drop(columns=["day", "city", "smoker"]), "--id", "who", out="plain")
    assert plain.code == 0
    pd.testing.assert_frame_equal(edges, pd.read_csv(tmp_path / "plain" / "edges.csv"))
    assert graphs(table, "--id", "who", "--covariate", "city", out="freed").code == 0
    few = graphs(table[["who", "city", "smoker", NAMES[0]]], "--id", "who")
    assert few.code == 2
    assert "two columns of numbers" in few.sentence


def test_every_unknown_name_is_told_at_once(frame, graphs):
    done = graphs(frame, "--by", "dxx", "--covariate", "agee", "--paired-by", "pear")
    assert done.code == 2
    for word in ("'dx'", "'age'", "'pair'"):
        assert f"did you mean {word}" in done.sentence


@pytest.mark.slow
def test_on_a_cluster_the_same_tables(precisionnet, frame, tmp_path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "table.csv"
    frame[[*NAMES, "who", "dx"]].to_csv(path, index=False)
    asked = ("graphs", path, "--id", "who", "--by", "dx", "--permutations", "99")
    assert precisionnet(*asked, "--out", tmp_path / "here", "--jobs", "1").code == 0
    with distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as cluster:
        done = precisionnet(*asked, "--out", tmp_path / "there", "--scheduler", cluster.scheduler_address)
        both = precisionnet(*asked, "--out", tmp_path / "b", "--scheduler", cluster.scheduler_address, "--jobs", "2")
    assert done.code == 0, done.err
    assert both.code == 2
    assert "a scheduler has its own workers" in both.sentence
    for name in ("edges.csv", "tests.csv"):
        assert (tmp_path / "there" / name).read_text() == (tmp_path / "here" / name).read_text()
