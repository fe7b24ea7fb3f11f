"""Metrics, graph scores, intervals and verdicts, against numbers worked out by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, mean_squared_error
from sklearn.metrics import log_loss as sklearn_log_loss

from precisionnet.evaluation.metrics import METRIC_LABELS, graph_scores, headline, judge, log_loss, score, score_all
from precisionnet.evaluation.statistics import (
    endless_repeats,
    interval,
    paired,
    score_table,
    summarise,
    summarise_paired,
)
from precisionnet.evaluation.verdict import verdict


def rows_of(scores: dict[str, list[float | None]], metric: str = "mae", **more) -> list[dict]:
    """A row a method and repeat; None is a fit that failed."""
    rows = []
    for method, values in scores.items():
        for repeat, value in enumerate(values):
            row = {"method": method, "repeat": repeat, "seed": repeat, "n_train": 60, "n_validation": 20, "n_test": 20}
            row |= {"error": "It broke."} if value is None else {metric: value}
            if method == "joint" and value is not None:
                row["edges"] = 400 + repeat
            rows.append(row | more)
    return rows


# metrics


def test_a_comparison_stores_more_than_a_fit_shows(rng):
    y, said = rng.normal(size=30), rng.normal(size=30)
    assert list(score(y, said)) == ["mae", "rmse", "r2", "r"]
    everything = score_all(y, said)
    assert everything["mse"] == pytest.approx(mean_squared_error(y, said))
    assert everything["rmse"] == pytest.approx(np.sqrt(everything["mse"]))
    assert {name: everything[name] for name in score(y, said)} == score(y, said)
    assert set(everything) <= set(METRIC_LABELS)
    assert judge(y, said) == pytest.approx(everything["mae"])


def test_log_loss_is_scikit_learns_and_survives_the_impossible(rng):
    y = rng.choice(["a", "b", "c"], 30)
    probabilities = rng.dirichlet(np.ones(3), 30)
    classes = np.array(["a", "b", "c"])
    assert log_loss(y, probabilities, classes) == pytest.approx(sklearn_log_loss(y, probabilities, labels=classes))
    everything = score_all(y, classes[probabilities.argmax(axis=1)], probabilities, classes)
    assert set(everything) - set(score(y, y, probabilities, classes)) == {"log_loss"}
    sure = np.eye(3)[[0, 1]]
    assert log_loss(["b", "b"], sure, classes) == pytest.approx(-np.log(1e-15) / 2)
    assert log_loss(["d"], sure[:1], classes) == pytest.approx(-np.log(1e-15))
    assert np.isnan(log_loss(["a"], np.full((1, 3), np.nan), classes))


def test_headlines():
    assert (headline("regression"), headline("classification")) == ("mae", "accuracy")


# graph scores

TRUTH = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
FOUND = np.array([[2.0, -0.5, 0.1], [-0.5, 2.0, 0.0], [0.1, 0.0, 1.0]])


def test_graph_scores_by_hand():
    scores = graph_scores(FOUND, TRUTH)
    assert scores == pytest.approx(
        {
            "n_zeros": 2,
            "n_near_zeros": 2,
            "density": 7 / 9,
            "edges": 2,
            "l1_error": 2 * 0.5 + 2 * 0.1 + 1.0,
            "frobenius_error": np.sqrt(2 * 0.25 + 2 * 0.01 + 1.0),
            "edge_f1": 2 / 3,
            "edge_auc": 1.0,
            "density_true": 5 / 9,
        }
    )
    assert graph_scores(FOUND) == {name: scores[name] for name in ("n_zeros", "n_near_zeros", "density", "edges")}
    assert set(scores) <= set(METRIC_LABELS)


@pytest.mark.parametrize("truth", [np.eye(3), np.ones((3, 3)) + np.eye(3)])
def test_where_there_is_nothing_to_find_edges_have_no_score(truth):
    scores = graph_scores(FOUND, truth)
    assert np.isnan(scores["edge_f1"])
    assert np.isnan(scores["edge_auc"])
    assert np.isfinite(scores["l1_error"])


def test_an_empty_graph_has_found_nothing():
    scores = graph_scores(np.eye(3), TRUTH)
    assert scores["edge_f1"] == 0.0
    assert scores["edge_auc"] == 0.5


def test_edge_f1_is_scikit_learns(rng):
    pairs = np.triu_indices(8, 1)
    theta, truth = (np.eye(8) for _ in range(2))
    for matrix in (theta, truth):
        matrix[pairs] = rng.normal(size=28) * (rng.random(28) < 0.4)
        matrix += np.triu(matrix, 1).T
    expected = f1_score(truth[pairs] != 0, theta[pairs] != 0)
    assert graph_scores(theta, truth)["edge_f1"] == pytest.approx(expected)


# intervals


def test_the_corrected_interval_by_hand():
    """Differences 1, 2, 3, 4, 5: mean 3, s^2 = 2.5, (1/5 + 20/60) 2.5 = 4/3, t(0.975, 4) = 2.776445."""
    rows = rows_of({"joint": [10.0] * 5, "svr": [11.0, 12.0, 13.0, 14.0, 15.0]})
    line = paired(rows).loc["svr"]
    half = 2.7764451 * 1.1547005
    assert line.to_dict() == pytest.approx({"difference": 3.0, "low": 3.0 - half, "high": 3.0 + half, "n": 5})


def test_independent_repeats_get_the_plain_t_interval(rng):
    first, second = rng.normal(size=(2, 8))
    rows = rows_of({"joint": list(first), "svr": list(second)})
    line = paired(rows, resampled=False).loc["svr"]
    plain = stats.ttest_rel(second, first).confidence_interval(0.95)
    assert (line["low"], line["high"]) == pytest.approx((plain.low, plain.high))
    corrected = paired(rows).loc["svr"]
    assert corrected["low"] < line["low"] < line["high"] < corrected["high"]


def test_only_shared_repeats_are_paired_and_one_has_no_interval():
    rows = rows_of({"joint": [1.0, 2.0, None], "svr": [5.0, None, 7.0], "gp": [None] * 3, "ridge": [None, None, 1.0]})
    table = paired(rows)
    assert list(table.index) == ["ridge", "svr"]
    assert (table.loc["svr", "difference"], table.loc["svr", "n"]) == (4.0, 1)
    assert np.isnan(table.loc["svr", ["low", "high"]].astype(float)).all()
    assert table.loc["ridge", "n"] == 0
    assert np.isnan(table.loc["ridge", "difference"])


@pytest.mark.parametrize("scores", [([0.9, 0.8], [0.85, 0.75]), ([0.3, 0.5, 0.9], [0.1, 0.3, 0.7])])
def test_repeats_that_all_differ_by_the_same_amount_have_no_interval(scores):
    """Accuracies are discrete: two repeats often agree to the last digit, which is no certainty."""
    first, second = scores
    difference, low, high = interval(np.array(first) - np.array(second), 0.0)
    assert difference == pytest.approx(first[0] - second[0])
    assert np.isnan([low, high]).all()
    line = paired(rows_of({"joint": first, "svc": second}, "accuracy"), "joint", "accuracy").loc["svc"]
    assert np.isnan([line["low"], line["high"]]).all()


def test_repeats_that_do_not_differ_at_all_have_the_interval_of_nothing():
    assert interval(np.zeros(3), 0.3) == (0.0, 0.0, 0.0)
    assert interval(np.array([1.0, -1.0]), 0.0)[1] < 0.0


def test_differences_are_to_the_reference_and_in_its_metric():
    rows = rows_of({"svr": [0.5, 0.6], "ridge": [0.4, 0.4]}, metric="r2")
    assert paired(rows, "svr", "r2").loc["ridge", "difference"] == pytest.approx(-0.15)
    assert paired(rows, "joint", "r2").empty


def test_rows_of_two_settings_are_not_mixed_up():
    rows = [row for sparsity in (0.1, 0.2) for row in rows_of({"joint": [1.0]}, sparsity=sparsity)]
    with pytest.raises(ValueError, match="one setting at a time"):
        score_table(rows, "mae")


# summaries


def test_means_and_deviations_by_hand():
    rows = rows_of({"svr": [1.0, 2.0, 4.0], "joint": [3.0, None, 5.0]})
    table = summarise(rows)
    assert table.loc[("svr", "mae")].to_dict() == pytest.approx({"mean": 7 / 3, "std": np.sqrt(7 / 3), "n": 3})
    assert table.loc[("joint", "mae")].to_dict() == pytest.approx({"mean": 4.0, "std": np.sqrt(2), "n": 2})
    assert list(table.index) == [("joint", "mae"), ("joint", "edges"), ("svr", "mae")]


def test_summaries_by_setting():
    rows = [row for level in (0.2, 0.1) for row in rows_of({"joint": [level]}, sparsity=level)]
    table = summarise(rows, by=("sparsity",))
    assert table.index.names == ["sparsity", "method", "metric"]
    assert table.loc[(0.1, "joint", "mae"), "mean"] == 0.1
    assert np.isnan(table.loc[(0.1, "joint", "mae"), "std"])


def test_scores_are_summarised_with_their_difference_to_joint():
    rows = rows_of({"joint": [10.0] * 5, "svr": [11.0, 12.0, 13.0, 14.0, 15.0], "gp": [9.0, None, None, None, None]})
    table = summarise_paired(rows, resampled=True)
    columns = ["difference", "low", "high"]
    np.testing.assert_array_equal(table[["mean", "std", "n"]], summarise(rows)[["mean", "std", "n"]])
    assert table.loc[("svr", "mae"), columns].to_dict() == pytest.approx(paired(rows).loc["svr", columns].to_dict())
    plain = summarise_paired(rows, resampled=False).loc[("svr", "mae")]
    assert plain["low"] == pytest.approx(paired(rows, resampled=False).loc["svr", "low"])
    assert table.loc[("joint", "mae"), columns].isna().all()
    assert table.loc[("joint", "edges"), columns].isna().all()
    assert table.loc[("gp", "mae"), "difference"] == -1.0
    assert np.isnan(table.loc[("gp", "mae"), "low"])
    assert summarise_paired(rows_of({"svr": [1.0, 2.0]}), resampled=True)["difference"].isna().all()
    assert summarise_paired([], resampled=True).empty


def test_differences_are_within_a_setting_and_of_scores_alone():
    rows = [
        row | {"density": level + row["mae"]}
        for level in (0.1, 0.2)
        for row in rows_of({"joint": [1.0, 2.0], "svr": [1.0 + level, 2.5 + level]}, sparsity=level)
    ]
    table = summarise_paired(rows, by=("sparsity",), resampled=False)
    assert table.loc[(0.2, "svr", "mae"), "difference"] == pytest.approx(0.45)
    assert table.loc[(0.1, "svr", "mae"), "difference"] == pytest.approx(0.35)
    assert np.isnan(table.loc[(0.1, "svr", "density"), "difference"])


def test_a_number_called_error_is_a_number():
    rows = [{"method": "theorem", "repeat": i, "error": float(i), "vary": "n_samples"} for i in range(3)]
    assert summarise(rows, by=("vary", "n_features")).loc[("n_samples", None, "theorem", "error"), "mean"].item() == 1.0


def test_nothing_summarised_is_an_empty_table():
    assert summarise(rows_of({"joint": [None]})).empty
    assert paired([]).empty


# verdicts


def two_sentences(text: str) -> list[str]:
    parts = re.split(r"(?<=[a-z)])\. ", text)
    assert len(parts) == 2, text
    assert text.endswith(".")
    return parts


def about(scores, task="regression", unit="years"):
    metric = headline(task)
    return two_sentences(verdict(rows_of(scores, metric), task, "age", unit))


LOW, MIDDLE, HIGH = [2.9, 3.0, 3.1, 3.0], [3.31, 3.39, 3.52, 3.38], [5.5, 5.4, 5.6, 5.5]


def test_joint_clearly_ahead():
    found, advice = about({"joint": LOW, "svr": MIDDLE, "median": HIGH})
    assert "joint predicts age with MAE 3.00 years over 4 repeats" in found
    assert "svr, has MAE 3.40 years" in found
    assert "joint is better by 0.40 years" in found
    assert "more than chance explains" in found
    line = paired(rows_of({"joint": LOW, "svr": MIDDLE})).loc["svr"]
    assert f"(95 % interval: {line['low']:.2f} to {line['high']:.2f})" in found
    assert advice == "Use joint: it predicts best here, and you have its graph (400 to 403 edges)."


def test_joint_clearly_behind():
    found, advice = about({"joint": MIDDLE, "svr": LOW, "ridge": HIGH, "median": [6.0] * 4})
    assert "svr is better by 0.40 years" in found
    assert (
        advice == "Use svr for predictions; take joint only if its graph (400 to 403 edges) is worth 0.40 years to you."
    )


def test_a_difference_that_could_be_chance():
    noisy = [2.7, 3.3, 2.9, 3.2]
    found, advice = about({"joint": LOW, "svr": noisy, "median": HIGH})
    line = paired(rows_of({"joint": LOW, "svr": noisy})).loc["svr"]
    assert f"(95 % interval {line['low']:+.2f} to {line['high']:+.2f}) that could be chance" in found
    assert advice.startswith("Use joint if you want its graph (400 to 403 edges); for predictions alone svr")


@pytest.mark.parametrize(
    ("joint", "svr", "advice"),
    [
        (LOW, [2.7, 3.3, 2.9, 3.2], "Use svr, which predicts as well: at the parameters chosen here joint has "),
        (MIDDLE, LOW, "Use svr, which predicts better: at the parameters chosen here joint has "),
        (LOW, MIDDLE, "Use joint: it predicts best here, and you have "),
    ],
)
def test_a_graph_without_an_edge_is_no_reason(joint, svr, advice):
    rows = rows_of({"joint": joint, "svr": svr, "median": HIGH}, edges=0)
    assert verdict(rows, "regression", "age", "years").endswith(f"{advice}a graph without a single edge.")


def test_nothing_beats_guessing():
    found, advice = about({"joint": HIGH, "svr": [5.6] * 4, "median": [5.3] * 4})
    assert found.startswith("Do not use any of these methods to predict age")
    assert "the median (MAE 5.30 years; the best of them, joint, MAE 5.50 years)" in found
    assert "outliers" in advice


def test_better_than_guessing_only_by_chance():
    _, advice = about({"joint": [5.0, 5.6, 5.2, 5.5], "svr": [5.6] * 4, "median": [5.4] * 4})
    assert advice == "Rely on neither yet: even what joint has over guessing the median could be chance."


def test_joint_no_better_than_guessing_where_another_is():
    _, advice = about({"joint": HIGH, "svr": LOW, "median": [5.4] * 4})
    assert advice == "Use svr: joint does no better than always guessing the median."


def test_without_joint():
    found, advice = about({"svr": LOW, "ridge": MIDDLE, "median": HIGH})
    assert found.startswith("svr predicts age with MAE 3.00 years over 4 repeats; the best other method, ridge,")
    assert advice == "Use svr; joint was not among the methods."
    assert "joint" not in about({"svr": LOW, "ridge": MIDDLE, "median": HIGH, "joint": [None] * 4})[1].split(";")[0]


def test_failures_are_told_and_no_merit():
    """gp would be best by far, but has no result where it was hard."""
    found, advice = about({"joint": LOW, "svr": MIDDLE, "gp": [0.1, None, None, None], "median": HIGH})
    assert "the best other method, svr" in found
    assert advice.endswith("; gp failed in 3 of 4 repeats.")
    _, advice = about({"joint": [None] * 4, "svr": LOW, "ridge": MIDDLE})
    assert advice == "Use svr; joint failed in 4 of 4 repeats."


def test_little_or_nothing_to_say():
    found, advice = about({"joint": [3.0], "svr": [2.0]})
    assert "one repeat cannot tell" in found
    assert advice.startswith("Run more repeats before you decide")
    assert "no other method" in about({"joint": LOW})[0]
    assert "no other method" in about({"median": LOW})[0]
    assert "the best other method, median" in about({"joint": LOW, "median": HIGH})[0]
    assert "no fit has come to a result; joint failed in 1 of 1 repeats" in about({"joint": [None]})[0]
    assert "no fit has come to a result" in verdict([], "regression", "age")


def test_no_certainty_from_repeats_that_all_differ_by_the_same_amount():
    scores = {"joint": [0.90, 0.80], "svc": [0.85, 0.75], "majority": [0.5, 0.41]}
    found, advice = about(scores, "classification", "")
    assert "joint is better by 5.0 points in every repeat" in found
    assert "repeats that all differ by the same amount give no interval" in found
    assert "nan" not in found
    assert "chance explains" not in found
    assert advice.startswith("Run more repeats before you decide")
    _, advice = about(scores | {"majority": [0.7, 0.6], "svc": [0.81, 0.7]}, "classification", "")
    assert advice.startswith("Run more repeats before you rely on either: joint differs from guessing the majority")


def test_accuracies_are_percent_and_higher_is_better():
    scores = {"joint": [0.90, 0.91, 0.92], "svc": [0.80, 0.82, 0.81], "majority": [0.5] * 3}
    found, advice = about(scores, "classification", "")
    assert "joint predicts age with accuracy 91.0 % over 3 repeats" in found
    assert "svc, has accuracy 81.0 %: joint is better by 10.0 points" in found
    assert advice.startswith("Use joint: it predicts best here")
    found, _ = about({"joint": [0.4, 0.5], "svc": [0.45, 0.5], "majority": [0.5, 0.5]}, "classification", "")
    assert found.startswith("Do not use any")
    assert "majority (accuracy 50.0 %; the best of them, svc, accuracy 47.5 %)" in found


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e4])
def test_errors_of_any_size_show_three_digits(scale):
    found, _ = about({"joint": [scale * value for value in LOW], "svr": [scale * value for value in MIDDLE]})
    shown = float(re.search(r"MAE ([\d.]+) years", found)[1])
    assert shown == pytest.approx(3.0 * scale, rel=0.01)


def test_guessing_is_never_recommended():
    """One real method that may be no better than the median: not "use ridge or median"."""
    noisy, guess = [2.7, 3.3, 2.9, 3.2], [3.0, 3.2, 3.1, 3.0]
    found = verdict(rows_of({"ridge": noisy, "median": guess}), "regression", "age", "years")
    assert found.endswith("Do not rely on ridge yet: what it has over always guessing the median could be chance.")
    one = verdict(rows_of({"ridge": [2.7], "median": [3.0]}), "regression", "age", "years")
    assert "Do not rely on ridge yet" in one


def one_table(differences, deviation=1.0):
    """Repeats of one table: ``svr`` less ``joint`` is what is given."""
    return [
        {"method": method, "repeat": repeat, "mae": 10.0 + (method == "svr") * deviation * value, "n_train": 60, "n_test": 20}
        for repeat, value in enumerate(differences)
        for method in ("joint", "svr")
    ]  # fmt: skip


HALF = float(stats.norm.ppf(0.975)) / np.sqrt(3.0)
"""Half-width that endless repeats leave, in deviations of the differences."""


def test_the_interval_of_endless_repeats_is_the_corrected_one_of_very_many(rng):
    rows = one_table(rng.standard_normal(2000))
    _, low, high = interval(np.array([row["mae"] for row in rows[1::2]]) - 10.0, 1.0 / 3.0)
    found = endless_repeats(rows, "joint", "mae", 0.2).loc["svr"]
    assert found["half"] == pytest.approx(0.5 * (high - low), rel=2e-3)


def test_what_repeats_could_tell_is_seldom_called_undecidable(rng):
    """A difference just as large as what endless repeats tell is called undecidable in one table of twenty."""
    called = [
        endless_repeats(one_table(HALF + rng.standard_normal(8)), "joint", "mae", 0.01)["undecidable"]["svr"]
        for _ in range(400)
    ]
    assert 0.02 < np.mean(called) < 0.09
    called = [  # a margin that endless repeats just reach where there is no difference at all
        endless_repeats(one_table(rng.standard_normal(8)), "joint", "mae", HALF)["undecidable"]["svr"]
        for _ in range(400)
    ]
    assert np.mean(called) < 0.09


def test_no_difference_is_mostly_undecidable_within_ten_repeats(rng):
    called = [
        endless_repeats(one_table(rng.standard_normal(10)), "joint", "mae", 0.1)["undecidable"]["svr"]
        for _ in range(100)
    ]
    assert np.mean(called) > 0.75


@pytest.mark.parametrize("differences", [[1.0], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]])
def test_without_an_interval_nothing_is_called_undecidable(differences):
    found = endless_repeats(one_table(differences), "joint", "mae", 0.1).loc["svr"]
    assert not found["undecidable"]
    independent = [{**row, "n_test": 0} for row in one_table([0.3, -0.2, 0.1, 0.2, -0.3])]
    assert not endless_repeats(independent, "joint", "mae", 0.1)["undecidable"]["svr"]
