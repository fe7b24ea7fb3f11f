"""The page of an experiment: its answer and its numbers come from the rows, whatever the rows are."""

from __future__ import annotations

import re
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from precisionnet import plots
from precisionnet.evaluation.methods import METHODS, methods_for
from precisionnet.evaluation.statistics import paired
from precisionnet.paper.config import Config
from precisionnet.paper.theorem import theorem_experiment
from precisionnet.plots.comparison import look, mark
from precisionnet.report.comparison import compare_methods
from precisionnet.report.experiment_page import build_page, in_order, summary
from precisionnet.report.overview import _warnings
from precisionnet.report.page import plus_minus
from precisionnet.report.synthetic import claims_sentence
from precisionnet.report.theorem import slopes_summary, theorem_parts
from precisionnet.runner.run import run_experiment
from tests.made_rows import LEVELS, PUBLISHED, comparison_rows, manifest, synthetic_rows
from tests.pictures import blank_pictures, with_figures, with_pictures
from tests.test_report import Balanced

__all__ = ["blank_pictures", "with_figures", "with_pictures"]

KINDS = ("regression", "classification", "synthetic", "theorem")


@pytest.fixture(scope="module")
def theorem():
    data = {
        "base": {"n_features": 20, "n_samples": 200, "sparsity": 0.2},
        "n_samples": [100, 400, 1600], "n_features": [10, 20], "sparsity": [0.1, 0.2], "distances": [0.3, 3.0],
    }  # fmt: skip
    experiment = theorem_experiment(Config(name="theorem", kind="theorem", repeats=2, data=data))
    rows = run_experiment(experiment, jobs=1)
    return {"name": "theorem", "about": dict(experiment.about), "config": dict(experiment.config)}, rows


@pytest.fixture(scope="module", params=KINDS)
def stored(request, theorem):
    if request.param == "theorem":
        return theorem
    if request.param == "synthetic":
        return manifest("synthetic", title="Figure 2"), synthetic_rows()
    if request.param == "classification":
        return manifest(task="classification", unit="", target="diagnosis"), comparison_rows("classification")
    return manifest(published=PUBLISHED), comparison_rows()


@pytest.fixture(scope="module")
def outcome(stored):
    """With its pictures: made before they are blanked for each test."""
    return build_page(*stored)


def without_tags(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_bars_of_one_deviation_end_inside_the_figure(with_figures):
    """Repeats that lie on both sides leave no dot at the ends of the bar."""
    scores = pd.DataFrame({"joint": [3.0, 3.4], "ridge": [3.1, 3.3], "svr": [3.15, 3.25]})
    axes = plots.repeats(scores, {}, "MAE").axes[0]
    low, high = axes.get_xlim()
    assert low < 3.2 - scores["joint"].std() < 3.2 + scores["joint"].std() < high


def test_page_is_well_formed_and_needs_no_network(outcome):
    page = outcome.html
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.outside == []
    assert len(parser.ids) == len(set(parser.ids))
    assert "<script" not in page
    assert not re.search(r"url\((?!#)", page)


def test_the_same_rows_in_any_order_make_the_same_page(stored):
    head, rows = stored
    shuffled = [rows[i] for i in np.random.default_rng(3).permutation(len(rows))]
    assert build_page(head, shuffled).html == build_page(head, rows).html


def test_the_same_rows_in_any_order_make_the_same_summary(stored):
    """To the last digit, and with what each score has more or less than joint's."""
    head, rows = stored
    kind = head["about"]["kind"]
    shuffled = [rows[i] for i in np.random.default_rng(3).permutation(len(rows))]
    text = summary(kind, in_order(rows)).to_csv()
    assert summary(kind, in_order(shuffled)).to_csv() == text
    if kind == "theorem":
        assert list(slopes_summary(rows)).count("standard_error") == 1
        return
    table = summary(kind, in_order(rows))
    metric = "accuracy" if "accuracy" in set(table["metric"]) else "mae"
    shown = table[(table["metric"] == metric) & (table["method"] == "naive")].iloc[0]
    here = [row for row in rows if kind != "synthetic" or row["sparsity"] == shown["sparsity"]]
    expected = paired(here, "joint", metric, resampled=kind != "synthetic").loc["naive"]
    for name in ("difference", "low", "high"):
        assert shown[name] == pytest.approx(expected[name])
    assert table.loc[table["method"] == "joint", "difference"].isna().all()
    assert table.loc[table["metric"].isin(["density", "fit_seconds", "validation"]), "difference"].isna().all()


def test_the_answer_stands_before_everything_else(outcome):
    text = without_tags(outcome.html.split("</header>")[0].split("<body>")[1])
    assert re.sub(r"\s+", " ", outcome.verdict) in text.replace("&#39;", "'")
    assert 2 <= len(re.findall(r"\.(?: |$)", outcome.verdict)) <= 3


def test_numbers_of_the_table_are_those_of_the_rows():
    rows = comparison_rows()
    page = build_page(manifest(published=PUBLISHED), rows).html
    differences = paired(rows, "joint", "mae")
    for method in LEVELS:
        values = [row["mae"] for row in rows if row["method"] == method]
        line = next(part for part in page.split("<tr") if f"{METHODS[method].label}</span></td>" in part)
        assert f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" in line
        published = PUBLISHED["rows"].get(method, {})
        for figure in published.values():
            assert figure in line
        if method == "joint":
            assert 'class="own"' in line
            continue
        found = differences.loc[method]
        assert f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]" in line
        word = "could be chance" if found.low <= 0 <= found.high else "worse" if found.difference > 0 else "better"
        assert word in line


def flat(row: dict) -> dict:
    """The same row of the variant with the flattened readout, a little better."""
    return row | {
        "method": f"{row['method']}_mlp",
        "job": f"{row['method']}_mlp/{row['repeat']}",
        "mae": 0.9 * row["mae"],
    }


def test_both_readouts_have_their_lines():
    rows = comparison_rows()
    rows += [flat(row) for row in rows if row["method"] in ("joint", "glasso", "sample", "vnn")]
    outcome = build_page(manifest(), rows)
    lines = [row[0] for row in outcome.tables[0].rows]
    assert lines.index("joint_mlp") < lines.index("joint")
    for name in ("joint_mlp", "sample_mlp"):
        line = next(part for part in outcome.html.split("<tr") if f"{METHODS[name].label}</span></td>" in part)
        assert "better" in line or "worse" in line or "chance" in line
        assert METHODS[name].what in outcome.html
    assert max(sum(map(len, row)) + 2 * len(row) for row in outcome.tables[0].rows) <= 80
    assert "Use joint_mlp" in outcome.verdict
    assert "better by 0.32 years" in outcome.verdict


def test_both_readouts_over_sparsity_levels():
    rows = synthetic_rows()
    rows += [flat(row) | {"job": f"{row['job']}_mlp"} for row in rows if row["method"] == "glasso"]
    outcome = build_page(manifest("synthetic", title="Figure 2"), rows)
    assert METHODS["glasso_mlp"].label in outcome.tables[0].columns


def test_what_was_not_tuned_is_not_called_tuned():
    rows = comparison_rows()
    for about, tuned in (({"tuned": False}, False), ({"tuned": True}, True), ({}, True)):
        page = build_page(manifest(**about), rows).html
        assert ("Nothing was tuned" in page, "parameters were chosen" in page) == (not tuned, tuned)


def test_claims_are_about_the_papers_recipe():
    rows, head = comparison_rows(), manifest(published=PUBLISHED)
    assert build_page(head, rows).claims
    for recipe, judged in (("paper", True), ("standard", False)):
        networks = {"networks": {"recipe": [recipe]}}
        assert bool(build_page(head | {"config": head["config"] | networks}, rows).claims) == judged


def test_higher_accuracy_is_better():
    rows = comparison_rows("classification")
    table = compare_methods(rows, manifest(task="classification", unit="")["about"])
    means = [table.scores[method].mean() for method in table.scores]
    assert means == sorted(means, reverse=True)
    assert table.score_label == "Accuracy (%)"
    assert means[-1] == pytest.approx(100 * np.mean([r["accuracy"] for r in rows if r["method"] == "majority"]))
    assert {line.method: line.meaning for line in table.lines}["majority"] == "worse"


def test_one_repeat_has_no_interval_and_says_so():
    page = build_page(manifest(), comparison_rows(repeats=1)).html
    assert "no interval" in page
    assert not re.search(r"[+-]\d\.\d\d \[", page)
    assert ">could be chance<" not in page


def test_repeats_that_all_differ_by_the_same_amount_are_told_so():
    scores = {"joint": [0.9, 0.8], "svc": [0.85, 0.75], "logistic": [0.7, 0.75]}
    rows = [row for row in comparison_rows("classification", repeats=2) if row["method"] in scores]
    rows = [row | {"accuracy": scores[row["method"]][row["repeat"]]} for row in rows]
    outcome = build_page(manifest(task="classification", unit=""), rows)
    lines = {line.method: line for line in compare_methods(rows, outcome.about).lines}
    assert (lines["svc"].difference, lines["svc"].meaning) == ("-5.0", "no interval")
    assert "[" in lines["logistic"].difference
    text = without_tags(outcome.html)
    assert "no interval" in text
    assert "nan" not in text.lower().replace("nanmean", "")
    assert "no interval" not in build_page(manifest(), comparison_rows()).html


def test_that_the_best_other_method_was_picked_by_these_scores_is_told():
    picked = "picked by these same test scores"
    assert picked in build_page(manifest(), comparison_rows()).html
    assert picked in build_page(manifest(), comparison_rows(methods=("ridge", "svr"))).html
    assert picked not in build_page(manifest(), comparison_rows(methods=("joint", "svr"))).html


def test_all_measures_are_all():
    rows = [row | {"frobenius_error": 2.5} for row in comparison_rows()]
    table = build_page(manifest(), rows).html.split("All measures")[1].split("</table>")[0]
    for name in ("Frobenius error", "Fit s", "Prediction s", "Edges", "Density"):
        assert f'<th class="n">{name}</th>' in table
    assert "2.50 ± 0.00" in table


def test_every_version_that_made_a_row_is_told():
    rows = comparison_rows()
    assert '<td>torch</td><td class="long">2.5.0</td>' in build_page(manifest(), rows).html
    for row in rows[:7]:
        row["versions"] = row["versions"] | {"torch": "2.13.0"}
    page = build_page(manifest(), rows).html
    assert '<td>torch</td><td class="long">2.5.0, 2.13.0</td>' in page
    assert '<td>numpy</td><td class="long">2.1.0</td>' in page
    for row in rows:
        del row["versions"]
    assert '<td>torch</td><td class="long">2.5.0</td>' in build_page(manifest(), rows).html


def test_the_cohort_is_that_of_the_config():
    head, rows = manifest(published=PUBLISHED), comparison_rows()
    adni = head | {"config": {"data": {"cohort": "adni"}}}
    claims = [{claim["claim"] for claim in build_page(of, rows).claims} for of in (head, adni)]
    assert claims[0] & claims[1]
    assert claims[0] != claims[1]  # the paper says something else of VNN on ADNI


def test_without_joint_the_best_method_is_what_others_are_measured_against():
    table = compare_methods(comparison_rows(methods=("ridge", "svr", "median")), manifest()["about"])
    assert table.reference == "svr"
    assert [line.method for line in table.lines] == ["svr", "ridge", "median"]
    assert list(table.differences.index) == ["ridge", "median"]


def test_one_method_alone_makes_a_page():
    outcome = build_page(manifest(), comparison_rows(methods=("joint",)))
    assert "Difference to" not in outcome.html
    assert list(outcome.figures) == ["repeats"]


def test_what_failed_is_told_with_its_reason():
    rows = comparison_rows()
    why = "Method gp is left out above 3000 rows: leave it out of --methods."
    for row in rows:
        if row["method"] == "gp" or (row["method"] == "svr" and row["repeat"] == 1):
            for name in ("mae", "mse", "rmse", "r2", "r", "parameters"):
                row.pop(name)
            row["error"] = why
    outcome = build_page(manifest(), rows)
    text = without_tags(outcome.html.split("What failed")[1].split("How it was done")[0])
    assert text.count(why) == 2
    assert "GP repeat 0; repeat 1; repeat 2; repeat 3; repeat 4" in text
    assert "SVR repeat 1 " in text
    lines = {line.method: line for line in compare_methods(rows, manifest()["about"]).lines}
    assert lines["gp"].score == "failed"
    assert lines["gp"].difference == ""
    assert re.match(r"\d\.\d\d ± ", lines["svr"].score)


def test_an_unfinished_experiment_says_how_far_it_is():
    rows = comparison_rows()[:30]
    assert "30 of 55 fits are here" in build_page(manifest(), rows, 55).html
    assert "fits are here" not in build_page(manifest(), rows, 30).html


def test_only_the_papers_experiments_are_held_against_the_paper():
    assert "What the paper says" in build_page(manifest(published=None), comparison_rows()).html
    assert "What the paper says" not in build_page(manifest(), comparison_rows()).html


def test_names_from_strangers_are_text():
    head = manifest(title="Predicting <b>x</b>\x1b[31m", target="<i>y</i>", unit="<u>", notes=["<s>note</s>"])
    head["about"]["source"] = "a<b>.csv"
    page = build_page(head, comparison_rows()).html
    for tag in ("<b>x", "<i>y", "<u>", "<s>", "\x1b", "a<b>.csv"):
        assert tag not in page
    Balanced().feed(page)


def test_figure_2_has_four_panels_and_the_truth(with_figures):
    outcome = build_page(manifest("synthetic"), synthetic_rows())
    assert outcome.html.count("<figure aria-label") == 4
    (figure,) = outcome.figures.values()
    assert [axes.get_title(loc="left").split(" (")[0] for axes in figure.axes] == [
        "Error of the prediction", "Squared error", "Error of the precision", "Density of the graph",
    ]  # fmt: skip
    lines = {line.get_label(): line for line in figure.axes[-1].lines}
    np.testing.assert_allclose(lines["truth"].get_ydata(), lines["truth"].get_xdata())
    joint = [row["density"] for row in synthetic_rows() if row["method"] == "joint" and row["sparsity"] == 0.5]
    assert lines["Joint"].get_ydata()[2] == pytest.approx(np.mean(joint))
    assert "truth" not in {line.get_label() for line in figure.axes[0].lines}


def test_an_error_that_is_far_off_makes_the_axis_logarithmic(with_figures):
    rows = synthetic_rows()
    for row in rows:
        row["l1_error"] *= 1000.0 if row["method"] == "sample" else 1.0
        row["density"] *= 1e-3 if row["method"] == "joint" else 1.0
    (figure,) = build_page(manifest("synthetic"), rows).figures.values()
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "linear", "log", "linear"]
    assert [axes.get_ylim()[0] for axes in figure.axes if axes.get_yscale() == "linear"] == [0.0, 0.0, 0.0]
    assert figure.axes[-1].get_ylim()[1] > 1.0


def test_the_answer_on_drawn_data_says_whether_it_is_chance():
    rows = synthetic_rows()
    verdict = build_page(manifest("synthetic"), rows).verdict
    mean = {m: np.mean([row["mae"] for row in rows if row["method"] == m]) for m in ("joint", "naive")}
    assert "Joint has the lowest mean error at 4 of 4 sparsity levels" in verdict
    assert f"its MAE is {mean['joint']:.3g}" in verdict
    assert f"(Naive) {mean['naive']:.3g}, a difference beyond chance." in verdict
    for row in rows:
        if row["method"] == "naive":
            row["mae"] += row["repeat"] - 1.0
    assert "a difference that could be chance" in build_page(manifest("synthetic"), rows).verdict
    alone = [row for row in rows if row["repeat"] == 0]
    assert "one repeat cannot tell" in build_page(manifest("synthetic"), alone).verdict


def test_drawn_data_has_the_difference_to_joint_with_its_interval():
    rows = synthetic_rows()
    outcome = build_page(manifest("synthetic"), rows)
    section = outcome.html.split("MAE less Joint’s [95 % interval]")[1].split("</table>")[0]
    assert "Joint<" not in section
    for level in (0.1, 0.9):
        found = paired([row for row in rows if row["sparsity"] == level], "joint", "mae", resampled=False)
        for line in found.itertuples():
            assert f"{line.difference:+.2f} [{line.low:+.2f}, {line.high:+.2f}]" in section
    mean = {m: np.mean([row["mae"] for row in rows if row["method"] == m]) for m in ("joint", "sample")}
    title = next(table.title for table in outcome.tables if "less Joint" in table.title)
    shown = next(table for table in outcome.tables if table.title == title)
    last = {name: cell for row in shown.rows[-1:] for name, cell in zip(shown.columns, row, strict=True)}
    assert last["Sample"].startswith(f"{mean['sample'] - mean['joint']:+.2f} [")
    without = build_page(manifest("synthetic"), [row for row in rows if row["method"] != "joint"])
    assert "less Joint" not in without.html


def test_where_differences_do_not_fit_a_terminal_their_average_is_shown():
    rows = synthetic_rows()
    rows += [
        row | {"method": "ridge", "job": "ridge" + row["job"], "mae": row["mae"] + 0.1}
        for row in rows
        if row["method"] == "naive"
    ]
    outcome = build_page(manifest("synthetic"), rows)
    shown = next(table for table in outcome.tables if "less Joint" in table.title)
    assert shown.title.endswith("averaged over the levels")
    assert [row[0] for row in shown.rows] == ["Naive", "GL", "Sample", "Ridge"]
    assert all("[" in row[1] for row in shown.rows)


def test_drawn_repeats_that_all_differ_by_the_same_amount():
    rows = synthetic_rows()
    for row in rows:
        row["mae"] = {"joint": 1.0, "naive": 1.5, "glasso": 2.0, "sample": 3.0}[row["method"]] + row["repeat"]
    outcome = build_page(manifest("synthetic"), rows)
    assert "no interval" in outcome.verdict
    assert "beyond chance" not in outcome.verdict
    assert outcome.html.count(">+0.50<") == 5  # four levels and their average, without an interval


def test_the_split_is_that_of_the_rows():
    rows = [row | {"n_train": 70, "n_validation": 20, "n_test": 10} for row in synthetic_rows()]
    page = build_page(manifest("synthetic"), rows).html
    assert "a new split (70 rows to learn from, 20 to tune on, 10 to test)" in page
    assert "60/20/20" not in page


def test_a_level_with_no_results_yet_leaves_a_gap_and_no_error():
    rows = [row for row in synthetic_rows() if row["sparsity"] == 0.2 or row["method"] == "joint"]
    outcome = build_page(manifest("synthetic"), rows, 48)
    assert outcome.tables[0].rows[0][1:] == [outcome.tables[0].rows[0][1], "–", "–", "–"]
    assert f"{len(rows)} of 48 fits" in outcome.html
    assert outcome.claims == []  # judged when everything is there
    assert "lowest mean error at 1 of 1 sparsity levels" in outcome.verdict  # alone at a level, it has won nothing
    alone = [row for row in rows if row["sparsity"] != 0.2] + [row for row in rows if row["method"] == "glasso"]
    assert "nothing to compare" in build_page(manifest("synthetic"), alone, 48).verdict


def test_slopes_on_the_page_are_fitted_to_the_rows(theorem, with_figures):
    head, rows = theorem
    parts = theorem_parts(rows, head["about"], [])
    errors = [
        [
            r["frobenius_error"]
            for r in rows
            if r["vary"] == "n_samples" and r["method"] == "glasso" and r["repeat"] == i
        ]
        for i in (0, 1)
    ]
    fitted = np.mean([np.polyfit(np.log([100, 400, 1600]), np.log(error), 1)[0] for error in errors])
    assert f"to the power {fitted:+.2f}" in parts.verdict
    assert parts.context["slopes"][0]["fitted"].startswith(f"{fitted:+.2f}")
    first = parts.files["theorem"].axes[0]
    assert (first.get_xscale(), first.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in first.get_legend().get_texts()]
    assert any(label.startswith(f"fitted slope {fitted:.2f}") for label in labels)
    assert "theorem's slope -0.5" in labels


def test_bounds_and_errata_stand_on_the_page_of_the_theorem(theorem):
    head, rows = theorem
    html = build_page(head, rows).html
    assert "Errata of the text and the proof" in html
    assert "gamma tr((Θ_0 - Θ_task)(Θ - Θ_0))" in html
    older = [{key: value for key, value in row.items() if not key.endswith("_bound")} for row in rows]
    assert "beside a linear one" not in build_page(head, older).html
    bounded = [row | {"vary": "nuclear_distance", "method": "anchored", "nuclear_distance": 1.0, "direction": "one",
                      "frobenius_distance": 1.0, "sharper_bound": 9.0, "linear_bound": 18.0, "paper_bound": 99.0}
               for row in rows]  # fmt: skip
    assert "beside a linear one" in build_page(head, bounded).html


def test_bounds_are_written_as_a_person_would(theorem):
    head, rows = theorem
    bounded = [row | {"vary": "nuclear_distance", "method": "anchored", "nuclear_distance": 100.0, "direction": "one",
                      "frobenius_distance": 0.5, "sharper_bound": 9.0, "linear_bound": 18.0, "paper_bound": 1234.5}
               for row in rows]  # fmt: skip
    bounds, errata = build_page(head, bounded).wide
    assert {"100", "0.5", "9", "18"} <= set(bounds.rows[0])
    assert bounds.rows[0][-2] in ("1,234", "1,235")
    assert errata.texts == 3
    assert all(line[-1] == "0%" != line[-2] for line in errata.rows)


def test_what_concerns_one_reading_says_which():
    def part(label, *warnings):
        return SimpleNamespace(label=label, page=SimpleNamespace(warnings=list(warnings)))

    told = _warnings([part("paper's reading", "Common."), part("flattened reading", "Older rows.", "Common.")])
    assert told == ["Common.", "Flattened reading: Older rows."]
    assert _warnings([part("here", "Alone.")]) == ["Alone."]


def test_the_summary_of_slopes_has_numbers_alone(theorem):
    _, rows = theorem
    table = slopes_summary(rows)
    assert "deviation" not in table
    assert "levels" not in table
    first = table.iloc[0]
    assert (first["first_level"], first["last_level"]) == (100.0, 1600.0)
    errors = [
        [
            r["frobenius_error"]
            for r in rows
            if r["vary"] == "n_samples" and r["method"] == "glasso" and r["repeat"] == i
        ]
        for i in (0, 1)
    ]
    fitted = [np.polyfit(np.log([100, 400, 1600]), np.log(error), 1)[0] for error in errors]
    assert first["standard_error"] == pytest.approx(np.std(fitted, ddof=1) / np.sqrt(2))


def test_no_table_is_wider_than_a_terminal(outcome):
    for table in outcome.tables:
        cells = [table.columns, *table.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
        assert sum(widths) + 2 * len(widths) - 1 <= 80, table.title


def linear(color: str) -> np.ndarray:
    value = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


EYES = {  # Machado, Oliveira and Fernandes (2009), severity 1
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
}  # fmt: skip


@pytest.mark.parametrize("eyes", EYES)
def test_colours_of_the_papers_methods_stay_apart(eyes):
    colors = {name: look(name).color for name in ("joint", "naive", "glasso", "sample", "vnn", "pca_mlp", "ridge")}
    for one, other in combinations(colors, 2):
        seen = [lab(EYES[eyes] @ linear(colors[name])) for name in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) > 20, (one, other)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_markers_tell_methods_apart_without_colour(task):
    names = methods_for(task)
    markers = [look(name).marker for name in names]
    assert len(set(markers)) == len(markers)
    drawn = {re.search('points="([^"]+)"', mark(name))[1] for name in names}
    assert len(drawn) == len(markers)


def test_every_mark_of_the_figure_stands_where_its_number_is(with_figures):
    table = compare_methods(comparison_rows(), manifest()["about"])
    with plots.styled():
        axes = plots.repeats(table.scores, {}, "MAE").axes[0]
    low, high = axes.get_xlim()
    for place, method in enumerate(table.scores):
        values = table.scores[method]
        (dots,) = (
            c.get_offsets()
            for c in axes.collections
            if isinstance(c, PathCollection) and c.get_offsets()[0, 1] == place
        )
        np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(values))
        assert low < values.min()
        assert values.max() < high
    assert [label.get_text() for label in axes.get_yticklabels()] == list(table.scores)


def test_a_method_that_is_far_off_does_not_hide_the_others(with_figures):
    rows = comparison_rows()
    for row in rows:
        if row["method"] == "gp":
            row["mae"] = 400.0 + row["repeat"]
    table = compare_methods(rows, manifest()["about"])
    with plots.styled():
        for figure in (
            plots.repeats(table.scores, {}, "MAE"),
            plots.differences(table.differences, {}, "joint", "difference"),
        ):
            axes = figure.axes[0]
            assert axes.get_xlim()[1] < 10
            assert any(re.match(r"4?\d\d →|399 →", text.get_text()) for text in axes.texts)


def test_files_are_the_same_bytes_for_the_same_rows(tmp_path, with_pictures):
    for run in ("a", "b"):
        table = compare_methods(comparison_rows(), manifest()["about"])
        with plots.styled():
            figure = plots.differences(table.differences, {}, "joint", "difference")
        for ending in ("svg", "png"):
            plots.to_file(figure, tmp_path / f"{run}.{ending}", ending, "differences")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<text" not in (tmp_path / "a.svg").read_text()  # outlines: no font is needed to show it


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([3.2, 3.4], "3.30 ± 0.14"),
        ([3.2], "3.20"),
        ([], "–"),
        ([np.nan, 2000.0], "2,000"),
        ([0.001, 0.001], "0.0010 ± 0.0000"),
    ],
)
def test_numbers_are_rounded_as_a_person_would(values, text):
    assert plus_minus(values) == text


def test_the_sentence_on_claims_counts_every_verdict():
    def sentence(*verdicts):
        return claims_sentence([{"verdict": verdict} for verdict in verdicts])

    assert sentence("holds", "holds").startswith("All 2 of the paper’s claims")
    told = sentence("holds", "does not hold", "does not hold", "level", "undecidable", "undecidable", "open")
    assert told.startswith("Of the paper’s 7 claims")
    for words in ("1 holds", "2 do not", "1 is level", "2 cannot be told on this cohort", "1 is open"):
        assert words in told
    assert "open" not in sentence("holds", "does not hold")


def test_a_claim_that_a_cohort_cannot_tell_says_how_wide_the_interval_stays():
    rng = np.random.default_rng(0)
    rows = [
        {"method": method, "repeat": repeat, "mae": 3.0 + 0.3 * rng.standard_normal(), "n_train": 60, "n_test": 20}
        for method in ("joint", "sample")
        for repeat in range(20)
    ]
    page = build_page(manifest(published=PUBLISHED), rows)
    (claim,) = [claim for claim in page.claims if claim["claim"] == "Joint predicts better than Sample"]
    assert claim["verdict"] == "undecidable"
    assert "not to be told here" in page.html
    assert claim["numbers"].split("even endless repeats")[1] in page.html
