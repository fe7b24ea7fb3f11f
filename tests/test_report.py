"""The page: self-contained, complete, and made of the numbers of the fit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape as markup

from precisionnet import report
from precisionnet.datasets import Dataset
from precisionnet.datasets.checks import Finding
from precisionnet.errors import printable
from precisionnet.evaluation import group_folds, measure, time_folds
from precisionnet.evaluation.metrics import significant
from precisionnet.evidence import edge_inference
from precisionnet.parameters import PARAMETERS
from precisionnet.report import fit_figures, fit_page, how_tested, render, score_lines, verdict
from precisionnet.report.data_graph import sure_sentence
from precisionnet.report.fit_page import QUESTIONS, _beside_the_graph, _judged_edges, build_fit_page
from precisionnet.report.graphs_page import GroupGraph, GroupGraphs, render_graphs
from precisionnet.report.interactive import MOST_EDGES, PageGraph, explorer
from tests.cheap import cheap_baselines, two_folds
from tests.pictures import blank_pictures, with_pictures

__all__ = ["blank_pictures", "cheap_baselines", "two_folds", "with_pictures"]

REGIONS = {"x0": "lh_insula", "x1": "rh_insula", "x2": "lh_cuneus"}
VOID = {"meta", "br", "wbr", "img", "input", "link", "hr", "path", "use", "rect", "line", "image"}


class Balanced(HTMLParser):
    """Every tag that opens closes, in order; remembers ids and outside references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag, attrs):
        self._note(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self._note(attrs)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def _note(self, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                self.outside.append(value)


@pytest.fixture(scope="module", params=["regression", "classification"])
def result(request, gaussian, classes):
    y = gaussian.y if request.param == "regression" else classes
    X = gaussian.X if request.param == "regression" else gaussian.X.rename(columns=REGIONS)
    return measure(Dataset(X, y), request.param, {"max_epochs": 3, "n_layers": 2, "n_members": 2})


@pytest.fixture(scope="module")
def small(gaussian):
    """A fit for tests that are not about it."""
    return measure(gaussian, "regression", {"max_epochs": 1, "n_members": 1})


@pytest.fixture(scope="module")
def page(result):
    """With its pictures: made before they are blanked for each test."""
    return render(result, "table.csv", "2026-01-01")


def test_page_is_well_formed_and_needs_no_network(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.outside == []
    assert len(parser.ids) == len(set(parser.ids))
    assert page.count("<script>") == 1
    assert page.count("<script") == 2  # with the graphs
    assert not re.search(r"url\((?!#)", page)


def test_page_shows_everything(result, page):
    assert page.count("<svg") == (10 if result.task == "regression" else 11)
    for word in (
        *(str(markup(question)) for _, question in QUESTIONS),
        "Edge table",
        "Spectrum",
        "Frequency responses",
        "Training",
        "table.csv",
    ):
        assert word in page
    for parameter in PARAMETERS:
        assert f"<code>{parameter.name}</code>" in page
    strongest = result.model.to_edge_frame().iloc[0]
    assert f"{strongest.partial_correlation:+.3f}" in page
    for line in score_lines(result)[1].values():
        for value in line:
            assert f">{value}</td>" in page


def test_a_brain_is_on_the_page_where_columns_are_regions(result, page):
    said = dict(re.findall(r"<title>([lr]h_\w+): (.*?)</title>", page))
    assert len(said) == (0 if result.task == "regression" else 68)
    assert ("On the brain" in page) == ("3 of 8 columns" in page) == bool(said)
    blocks = result.model.fitted.blocks
    shown = {name: abs(float(text)) for name, text in said.items() if text != "no value"}
    effects = dict(zip(blocks.names, blocks.norms(result.model.task_nodes_), strict=True))
    assert shown == {name: float(f"{abs(effects[name]):.3g}") for name in REGIONS.values() if name in effects}


def test_page_shows_the_values_the_fit_ran_with_and_whose_they_are(result, page):
    assert "<code>order</code></td><td>3&nbsp;*</td>" in page
    assert "<code>max_epochs</code></td><td>3</td>" in page  # set, so not marked
    assert "<td>ensemble</td><td>2 networks</td>" in page
    first, second = (sum(p.numel() for p in network.parameters()) for network in result.model.networks_)
    assert f"<td>weights of one network</td><td>{first:,} or {second:,}</td>" in page  # two readouts
    assert "each trained network left out" in page
    assert "Shown is the first of 2 networks" in page


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({}, "lowest validation loss"), ({"validation_fraction": 0.0}, "the last one, as no rows were set aside")],
)
def test_page_of_algorithm_1(gaussian, change, sentence):
    result = measure(gaussian, "regression", {"recipe": "paper", "max_epochs": 2, **change})
    page = render(result, "t", "d")
    assert sentence in page
    assert "<code>order</code></td><td>2&nbsp;*</td>" in page
    assert "first of" not in page


@pytest.mark.parametrize(
    "result", ["regression", pytest.param("classification", marks=pytest.mark.slow)], indirect=True
)
def test_the_same_fit_gives_the_same_page(result, page, with_pictures):
    assert render(result, "table.csv", "2026-01-01") == page


def test_verdict_takes_its_numbers_from_the_table(result):
    sentence = verdict(result)
    first = result.scores.iloc[0, 0]
    shown = f"{first:.3g}" if result.task == "regression" else f"{100 * first:.1f} %"
    assert shown in sentence
    assert "95 % interval" in sentence
    assert "120 rows" in how_tested(result)


def test_shares_of_right_rows_have_one_unit(result):
    """Beside gains in points and a verdict in percent no score is 0.750."""
    labels, lines = score_lines(result)
    shares = [line[labels.index(name)] for line in lines.values() for name in ("Accuracy",) if name in labels]
    assert len(shares) == (len(lines) if result.task == "classification" else 0)
    for text, found in zip(shares, result.headline.values(), strict=False):
        assert text == f"{100 * found.value:.1f} %"
        assert text in verdict(result) or found is not result.headline[result.method]


def test_one_edge_is_spoken_of_in_the_singular():
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    X = pd.DataFrame({"a": a, "b": a + rng.normal(size=80)})
    y = pd.Series(a + rng.normal(size=80), name="y")
    result = measure(Dataset(X, y), "regression", {"max_epochs": 1, "n_members": 1})
    assert len(result.model.to_edge_frame()) == 1
    found = edge_inference(X)
    chance = replace(found, edges=found.edges.assign(q_value=0.9))
    for judged, words in ((found, "Its one edge is"), (chance, "Its one edge cannot be told from chance")):
        page = render(result, "t", "d", data_graph=judged)
        assert words in page
        assert page.count("The one edge") == 2
        assert "1 edges" not in page


def test_names_break_after_underscores_and_stay_text():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["lh_insula", "a<b>_c", "d"])
    found = edge_inference(X)
    whole = GroupGraph("all rows", found, "", 40)
    page = render_graphs(GroupGraphs(whole, [], None, list(X), None, [], None, "t", 0), "d")
    assert '<td class="name">lh_<wbr>insula</td>' in page
    assert '<td class="name">a&lt;b&gt;_<wbr>c</td>' in page


def test_large_counts_are_written_alike_on_every_page():
    found = edge_inference(np.random.default_rng(0).normal(size=(120, 60)))
    found = replace(found, edges=found.edges.assign(q_value=np.arange(1770) / 1770 / 10))
    assert sure_sentence(found).startswith("886 of 1,770 pairs")
    everything = replace(found, edges=found.edges.assign(q_value=0.01))
    assert sure_sentence(everything).startswith("1,770 of 1,770 pairs")
    names = [f"x{i}" for i in range(60)]
    whole = GroupGraph("all rows", everything, "", 1200)
    found = GroupGraphs(whole, [], None, names, None, [], None, "table.csv", 0)
    page = render_graphs(found, "2026-01-01")
    for words in ("<b>1,770 of 1,770</b>", "<b>1,200</b><span>rows", "1,770 of 1,770 pairs", "Of these 1,770,"):
        assert words in page


def test_the_command_that_writes_all_edges_stands_where_not_all_are_listed(small, monkeypatch):
    command = "precisionnet show out --edges edges.csv"
    assert command not in build_fit_page(small, "t", "d", show_edges=command).html
    monkeypatch.setattr(fit_page, "EDGES_SHOWN", 2)
    assert f"<code>{command}</code> writes all" in build_fit_page(small, "t", "d", show_edges=command).html


def test_an_empty_graph_still_makes_a_page(gaussian):
    empty = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 1, "l1_penalty": 5.0, "method": "glasso"})
    assert len(empty.model.to_edge_frame()) == 0
    assert "no column depends directly on another" in render(empty, "t", "d")


def test_a_model_on_a_sparse_support_has_a_page_without_all_eigenvalues(gaussian, monkeypatch):
    X = gaussian.X.assign(place=np.tile(["a", "b", "c"], len(gaussian.X))[: len(gaussian.X)])
    quick = {"max_epochs": 1, "support": "sparse", "readout": "both", "n_members": 2}
    result = measure(Dataset(X, gaussian.y), "regression", quick)
    assert result.model.fitted.on_support
    assert "Eigenvalues of the two matrices" in render(result, "t", "d")
    monkeypatch.setattr(fit_page, "EIGENVALUES_MOST", 3)
    monkeypatch.setattr(fit_figures, "EIGENVALUES_MOST", 3)
    page = render(result, "t", "d")
    assert "Eigenvalues of the two matrices" not in page
    assert "Of more than 3 nodes only the smallest and the largest eigenvalue are computed" in page
    low, high = np.linalg.eigvalsh(result.model.precision_.toarray())[[0, -1]]
    assert f"{significant(low)} to {significant(high)}" in page.split("eigenvalues of the sparse precision")[1]


def test_a_linear_model_has_no_pairs_and_the_page_says_so(gaussian):
    """What rounding leaves of a pair's effect is not shown as one."""
    y = pd.Series(gaussian.X.to_numpy() @ np.arange(1.0, gaussian.X.shape[1] + 1), name="y")
    result = measure(Dataset(gaussian.X, y), "regression", {"max_epochs": 1, "n_members": 4})
    assert result.model.kind_weights_.keys() <= {"linear", "lasso"}
    assert not result.model.task_graph_.any()
    page = render(result, "t", "d")
    assert "No two columns act together" in page
    assert "See these pairs as a graph" not in page


def test_many_columns_and_one_wide_name_still_make_a_page(with_pictures):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 140)))
    X.columns = [f"c{i}" * (30 if i == 0 else 1) for i in range(140)]
    y = pd.Series(rng.normal(size=30), name="y")
    page = render(measure(Dataset(X, y), "regression", {"max_epochs": 1, "n_members": 1, "l1_scale": 0.5}), "t", "d")
    assert "140 columns, clustered" in page


def test_what_was_found_in_the_table_is_on_the_page(small):
    findings = [Finding("warning", "site", "Site <b>explains</b> half."), Finding("note", "size", "120 rows.")]
    page = render(small, "t", "d", findings)
    Balanced().feed(page)
    assert "Site &lt;b&gt;explains&lt;/b&gt; half." in page.split("Worth knowing")[1]
    assert "<li>120 rows.</li>" in page.split("About the table")[1]
    assert "About the table" not in render(small, "t", "d")


def test_the_graph_says_that_it_is_the_datas_and_carries_no_certainty(result, page):
    for words in ("This is the graph of the columns among themselves", "The same as a matrix", "precisionnet explain"):
        assert words in page
    assert "Nothing here says how sure an edge is" in page
    model = result.model
    task = page.split('id="rests-on"')[1].split("</section>")[0]
    assert "not tested" in task
    strongest = model.feature_names_in_[np.abs(model.task_nodes_).argmax()]
    assert task.index(f">{strongest}<") < task.index("Strongest pairs")
    largest = np.abs(np.where(model.precision_ != 0, model.task_graph_, 0.0)).max()
    assert f"{largest:.3g}" in task


def test_edges_that_are_told_from_chance_are_set_apart(gaussian, small):
    found = edge_inference(gaussian.X)
    page = render(small, "t", "d", data_graph=found)
    Balanced().feed(page)
    sure = {(e.source, e.target) for e in found.edges.itertuples() if e.q_value <= 0.05}
    edges = small.model.to_edge_frame()
    n_sure = sum((e.source, e.target) in sure for e in edges.itertuples())
    assert 0 < n_sure < len(edges)
    assert f"{n_sure} of its {len(edges)} edges are beyond chance" in page
    assert "Nothing here says how sure" not in page
    table = page.split("Edge table")[1].split("</table>")[0]
    assert table.count('<tr class="pale">') == len(edges) - n_sure
    told = json.loads(page.split('id="fit-data">')[1].split("</script>")[0])["graphs"][0]
    tested = found.edges.set_index(["source", "target"]).loc[list(zip(edges.source, edges.target, strict=True))]
    np.testing.assert_allclose(told["t"], tested["partial_correlation"], rtol=1e-3)
    other_sign = replace(found, edges=found.edges.assign(partial_correlation=-found.edges["partial_correlation"]))
    for graph, sign in ((found, 1), (other_sign, -1)):  # a colour is the sign of what was tested
        judged = _judged_edges(small.model, graph)
        own = np.sign(edges["partial_correlation"].to_numpy())
        wanted = np.where(judged["sure"], sign * np.sign(tested["partial_correlation"].to_numpy()), own)
        np.testing.assert_array_equal(np.sign(judged["coloured"]), wanted)
        np.testing.assert_allclose(judged["coloured"].abs(), edges["partial_correlation"].abs())
    strongest = tested.iloc[0]
    assert f"{strongest.partial_correlation:+.3f} [{strongest.ci_low:+.3f} to {strongest.ci_high:+.3f}]" in table
    none = render(small, "t", "d", data_graph=edge_inference(without_a_graph(gaussian.X)))
    assert "edges can be told from chance" in none


def test_stability_selection_has_no_q_and_speaks_of_halves(gaussian, small):
    found = edge_inference(gaussian.X)
    frequency = np.where(found.edges["q_value"] <= 0.05, 1.0, 0.25)
    edges = found.edges.assign(q_value=np.nan, p_value=np.nan, ci_low=np.nan, ci_high=np.nan)
    edges = edges.assign(selection_frequency=frequency)
    halves = replace(found, method="stability", edges=edges, frequency_threshold=0.9)
    page = render(small, "t", "d", data_graph=halves)
    told = json.loads(page.split('id="fit-data">')[1].split("</script>")[0])["graphs"][0]
    assert told["q"] is None
    assert set(told["sure"]) == {0, 1}
    section = page.split('id="own-graph"')[1].split("</section>")[0]
    assert "false discovery rate" not in section
    assert "named by so many halves of the rows that at most one is expected by chance" in section
    none = render(small, "t", "d", data_graph=replace(halves, frequency_threshold=2.0)).split('id="own-graph"')[1]
    assert "can be told from chance</b> by stability selection with these rows" in none
    assert "Shah RD, Samworth RJ" in page


def test_pairs_beyond_chance_that_the_graph_leaves_out_are_named(gaussian, small):
    found, edges = edge_inference(gaussian.X), small.model.to_edge_frame()
    n_sure = int((found.edges["q_value"] <= 0.05).sum())
    said = _beside_the_graph(edges.iloc[:0], found)
    assert said.startswith(f"{n_sure} more pairs are beyond chance")
    assert said.count(" and x") == min(n_sure, 5)
    assert f"{n_sure - 5} others" in said or n_sure <= 6
    every = found.edges[["source", "target"]]
    assert _beside_the_graph(every, found) == _beside_the_graph(every, None) == ""
    one = found.edges.loc[found.edges["q_value"].idxmin()]
    but_one = every.drop(index=one.name)
    assert _beside_the_graph(but_one, found).endswith(f"leaves out: {one.source} and {one.target}.")


def without_a_graph(X):
    """The same columns without a graph."""
    rng = np.random.default_rng(5)
    return X.apply(lambda column: rng.permutation(column))


@pytest.mark.parametrize(("kind", "words"), [("groups", "a 'site' that it has not seen"), ("time", "later by 'site'")])
def test_the_page_says_how_it_was_tested_and_what_the_other_error_is(gaussian, kind, words):
    site = pd.Series(np.arange(120) % 6, name="site")
    folds = (group_folds if kind == "groups" else time_folds)(gaussian, site, "regression", n_folds=2)
    result = measure(gaussian, "regression", {"max_epochs": 1, "n_members": 4}, folds=folds)
    page = render(result, "t", "d")
    assert words.replace("'", "&#39;") in page
    assert f"(out of bag), its mean absolute error is {result.model.oob_mae_:.3g}" in page


def test_a_page_tested_by_its_own_networks_has_no_other_error(gaussian):
    assert "out of bag" not in render(measure(gaussian, "regression", {"max_epochs": 1, "n_members": 4}), "t", "d")


def test_every_table_scrolls_in_a_box_of_its_own():
    """On a narrow page a wide table hides nothing: its box scrolls, with a shadow where it goes on."""
    folder = Path(report.__file__).parent / "templates"
    for template in folder.glob("*.html.j2"):
        text = template.read_text(encoding="utf-8")
        assert text.count("<table") == text.count('<div class="scroll"><table'), template.name
    style = (folder / "style.css.j2").read_text(encoding="utf-8")
    assert re.search(r"\.scroll \{[^}]*overflow-x:auto", style)


def test_the_five_questions_come_in_order_and_each_is_answered(gaussian):
    site = pd.Series(np.where(np.arange(120) % 3, "A", "B<i>"), index=gaussian.X.index, name="site")
    sex = pd.Series(np.where(np.arange(120) % 2, "f", "m"), index=gaussian.X.index)
    data = Dataset(gaussian.X, gaussian.y, site=site, covariates=pd.DataFrame({"sex": sex}))
    result = measure(data, "regression", {"max_epochs": 1, "n_members": 4})
    page = render(result, "t", "d", data_graph=edge_inference(data.X), data=data)
    places = [page.index(f'<section id="{name}">') for name, _ in QUESTIONS]
    assert places == sorted(places)
    assert page.index('id="details"') > places[-1]
    good, _, _, wrong, paper = (page[a:b] for a, b in zip(places, [*places[1:], len(page)], strict=True))
    for gain in result.gains.values():
        assert f"{gain.value:+.2f}"[:4] in good
    for words in ("By true y", "By site", "By sex", "B&lt;i&gt;", "Do its intervals hold?", "That was not tested"):
        assert words in wrong
    for words in ("We predicted y from 8 features", "random seed 0", "arXiv:2509.14821", "<li>[1] ", "Pedregosa"):
        assert words in paper


@pytest.mark.parametrize("names", [["</script><script>alert(1)</script>", "<!--"], ["a\u2028b\x1b[2J", "&amp;\"'"]])
def test_names_in_the_data_of_a_page_cannot_end_it(names):
    graph = PageGraph("data", "t", names[0], ("p", "n"), np.array([0]), np.array([1]), np.array([0.5]))
    found = explorer(names, [graph])
    assert found is not None
    assert not re.search("[<>&\u2028\x00-\x1f]", str(found.data))
    told = json.loads(str(found.data))
    assert told["names"] == [printable(" ".join(name.split())) for name in names]


def test_a_page_carries_the_strongest_edges_of_a_large_graph():
    n, m = 5_000, 30_000
    rng = np.random.default_rng(0)
    value = -np.sort(-rng.random(m))
    graph = PageGraph("data", "t", "r", ("p", "n"), rng.integers(0, n, m), rng.integers(0, n, m), value)
    found = explorer([f"column_{i}" for i in range(n)], [graph])
    told = json.loads(str(found.data))
    assert sorted(told["order"]) == list(range(n))
    assert (told["graphs"][0]["total"], len(told["graphs"][0]["v"])) == (m, MOST_EDGES)
    assert told["graphs"][0]["v"][-1] >= value[MOST_EDGES] - 1e-3
    assert len(found.data) < 1_000_000


def test_no_edge_gives_no_graph_to_work_with():
    none = PageGraph("data", "t", "r", ("p", "n"), np.array([0]), np.array([1]), np.array([0.0]))
    assert explorer(["a", "b"], [none]) is None
    assert explorer(["a"], []) is None


def test_two_columns_still_make_a_page(gaussian):
    result = measure(Dataset(gaussian.X.iloc[:, :2], gaussian.y), "regression", {"max_epochs": 1, "n_members": 2})
    page = render(result, "t", "d")
    Balanced().feed(page)
    assert ("There are no edges" in page) == (len(result.model.to_edge_frame()) == 0)
    assert "What do I write in my paper?" in page


def test_the_measured_page_is_light_and_soon_ready():
    """What docs/report.md refers to, as ``make bench-report`` measured it."""
    rows = pd.read_csv(Path(__file__).parents[1] / "results" / "report.csv").set_index("n_columns")
    assert (rows["page_bytes"] < 4_000_000).all()
    assert rows.loc[148, "ready_ms_median"] < 1000
    weight, median, most = rows.loc[148, ["page_bytes", "ready_ms_median", "ready_ms_most"]]
    said = f"148 columns: {weight / 1e6:.2f} MB, ready in {median / 1e3:.2f} s (median; {most / 1e3:.1f} s the slowest)"
    assert said in (Path(__file__).parents[1] / "docs" / "report.md").read_text(encoding="utf-8")
