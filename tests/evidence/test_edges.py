"""``edge_inference``: tables and names, invariances, groups, choice of a method, refusals, and what it may not import."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.evidence import EdgeInference, edge_inference

COLUMNS = [
    "source",
    "target",
    "partial_correlation",
    "ci_low",
    "ci_high",
    "p_value",
    "q_value",
    "selection_frequency",
]
NUMBERS = COLUMNS[2:7]


def drawn(n_rows: int, n_columns: int, graph: str = "chain", seed: int = 0) -> pd.DataFrame:
    return make_gaussian_regression(n_rows, n_columns, graph=graph, random_state=seed).X


@pytest.fixture(scope="module")
def exact() -> EdgeInference:
    return edge_inference(drawn(150, 8), n_bootstraps=60, random_state=0)


def test_every_pair_has_a_row_and_every_column_a_node(exact) -> None:
    assert exact.edges.columns.tolist() == COLUMNS
    assert len(exact.edges) == 8 * 7 / 2
    assert exact.edges.iloc[0, :2].tolist() == ["x0", "x1"]
    assert exact.nodes["node"].tolist() == [f"x{i}" for i in range(8)]
    for name in ("strength", "expected_influence", "closeness", "betweenness", "predictability"):
        low, high = exact.nodes[f"{name}_low"], exact.nodes[f"{name}_high"]
        assert (low <= high).all(), name
    assert (exact.nodes["strength_low"] <= exact.nodes["strength"] + 1e-12).all()
    assert exact.edges[NUMBERS].notna().all(axis=None)
    assert exact.edges["selection_frequency"].between(0, 1).all()
    assert (exact.edges["ci_low"] < exact.edges["partial_correlation"]).all()
    assert (exact.edges["partial_correlation"] < exact.edges["ci_high"]).all()
    assert 0.0 <= exact.stability <= 0.75


def test_an_interval_leaves_zero_out_where_the_p_value_is_below_one_minus_its_level() -> None:
    for rows, columns in ((150, 8), (30, 20)):
        for level in (0.9, 0.99):
            edges = edge_inference(drawn(rows, columns), level=level).edges
            outside = (edges["ci_low"] > 0) | (edges["ci_high"] < 0)
            assert (outside == (edges["p_value"] < 1 - level)).all()


def test_arrays_get_names_and_frames_keep_theirs() -> None:
    X = drawn(60, 4)
    named = edge_inference(X.set_axis(["a", "b", "c", "d"], axis=1)).edges
    plain = edge_inference(X.to_numpy()).edges
    assert named["source"].tolist() == ["a", "a", "a", "b", "b", "c"]
    assert plain["target"].tolist() == ["x1", "x2", "x3", "x2", "x3", "x3"]
    np.testing.assert_allclose(named[NUMBERS], plain[NUMBERS], rtol=1e-9)


@pytest.mark.parametrize("n_rows", [25, 120])
def test_units_and_the_order_of_rows_and_columns_do_not_matter(n_rows, rng) -> None:
    X = drawn(n_rows, 10)
    before = edge_inference(X).edges.set_index(["source", "target"])
    order = rng.permutation(10)
    changed = (X * np.exp(rng.normal(size=10)) * 1e3 + 5.0).iloc[rng.permutation(n_rows), order]
    after = edge_inference(changed).edges
    swapped = [
        ((a, b) if int(a[1:]) < int(b[1:]) else (b, a)) for a, b in zip(after["source"], after["target"], strict=True)
    ]
    for name in NUMBERS:
        np.testing.assert_allclose(after[name], before.loc[swapped, name], rtol=1e-5, atol=1e-9)


def test_a_reversed_column_reverses_signs_alone() -> None:
    X = drawn(120, 6)
    before, after = edge_inference(X).edges, edge_inference(X.assign(x2=-X["x2"])).edges
    sign = np.where((before["source"] == "x2") | (before["target"] == "x2"), -1.0, 1.0)
    np.testing.assert_allclose(after["partial_correlation"], sign * before["partial_correlation"], atol=1e-12)
    np.testing.assert_allclose(after["p_value"], before["p_value"], rtol=1e-8)


def test_workers_do_not_change_the_result_and_a_seed_repeats_it() -> None:
    X = drawn(120, 6)
    one, two, again = (edge_inference(X, n_bootstraps=16, random_state=3, n_jobs=n_jobs) for n_jobs in (None, 2, None))
    for other in (two, again):
        pd.testing.assert_frame_equal(one.edges, other.edges)
        pd.testing.assert_frame_equal(one.nodes, other.nodes)
        assert one.stability == other.stability


@pytest.mark.parametrize("n_rows", [25, 200])
def test_copies_of_a_row_add_nothing_when_groups_say_whose_they_are(n_rows) -> None:
    X = drawn(n_rows, 10)
    once = edge_inference(X)
    thrice = pd.concat([X] * 3, ignore_index=True)
    grouped = edge_inference(thrice, groups=np.tile(np.arange(n_rows), 3))
    assert grouped.method == once.method
    assert grouped.n_people == n_rows
    width = {k: r.edges["ci_high"] - r.edges["ci_low"] for k, r in (("once", once), ("grouped", grouped))}
    ratio = width["grouped"] / width["once"]
    assert 0.85 < ratio.mean() < 1.05
    fooled = edge_inference(thrice).edges
    assert ((fooled["ci_high"] - fooled["ci_low"]) < 0.8 * width["once"]).all()


def test_groups_of_one_row_each_are_no_groups() -> None:
    X = drawn(80, 6)
    labels = [f"person {i}" for i in range(80)]
    np.testing.assert_allclose(
        edge_inference(X, groups=labels).edges[NUMBERS], edge_inference(X).edges[NUMBERS], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "method"),
    [
        (200, 20, "exact"),
        (100, 20, "exact"),
        (99, 20, "desparsified"),
        (15, 20, "desparsified"),
        (22, 2, "exact"),
        (21, 2, "desparsified"),
        (20, 60, "stability"),
    ],
)
def test_the_method_follows_from_rows_and_columns(n_rows, n_columns, method) -> None:
    result = edge_inference(drawn(n_rows, n_columns), random_state=0)
    assert result.method == method
    assert result.claims_coverage == (method != "stability")
    assert f"{n_rows} rows for {n_columns} columns" in result.message
    assert result.edges["ci_low"].isna().all() == (method == "stability")


def test_people_count_when_a_method_is_chosen_not_rows() -> None:
    X = drawn(200, 20)
    result = edge_inference(X, groups=np.arange(200) // 4)
    assert result.method == "desparsified"
    assert (result.n_rows, result.n_people) == (200, 50)
    assert "50 groups of rows" in result.message


def test_a_method_asked_for_beyond_its_claim_says_so() -> None:
    result = edge_inference(drawn(35, 20), method="exact")
    assert not result.claims_coverage
    assert "not claimed" in result.message


def test_stability_selection_reports_frequencies_and_a_bound_and_nothing_else() -> None:
    result = edge_inference(drawn(24, 50), random_state=0)
    assert result.method == "stability"
    assert result.edges[["ci_low", "ci_high", "p_value", "q_value"]].isna().all(axis=None)
    assert result.edges["selection_frequency"].max() > 0.9
    bounds = result.false_edge_bounds
    assert bounds is not None
    assert (np.diff(bounds["false_edges"]) < 0).all()
    assert (result.sure_edges["selection_frequency"] >= result.frequency_threshold - 1e-9).all()
    assert np.isnan(result.stability)


REFUSED = {
    "missing": (lambda X: X.mask(X > 2.0), "missing values in"),
    "infinite": (lambda X: X.replace(X.iloc[0, 0], np.inf), "infinity in column 'x0'"),
    "constant": (lambda X: X.assign(x1=3.7), "'x1' does not vary"),
    "two constants": (lambda X: X.assign(x1=3.7, x2=0), "Columns 'x1', 'x2' do not vary: .* drop them"),
    "copy": (lambda X: X.assign(x1=2 * X["x0"] + 1), "'x0' and 'x1' are the same"),
    "sum": (lambda X: X.assign(x1=X["x0"] + X["x2"]), "sum of other columns"),
    "complex": (lambda X: X.to_numpy() * 1j, "complex"),
    "text": (lambda X: X.assign(x1="a"), "'x1' does not hold real numbers"),
    "text array": (lambda X: X.astype(str).to_numpy(dtype=str), "text"),
    "one column": (lambda X: X[["x0"]], "at least two"),
    "one dimension": (lambda X: X["x0"].to_numpy(), "rows and columns"),
    "ragged": (lambda X: [[1.0, 2.0], [1.0]], "same number of columns"),
    "ten rows": (lambda X: X.iloc[:10], "10 rows for 6 columns are too few"),
    "no rows": (lambda X: X.iloc[:0], "0 row"),
    "huge": (lambda X: X * 1e200, "rescale"),
    "twice": (lambda X: X.set_axis(["a"] * 6, axis=1), "more than once"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_with_a_sentence(case) -> None:
    change, words = REFUSED[case]
    with pytest.raises(InputError, match=words) as refusal:
        edge_inference(change(drawn(60, 6)))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"level": 1.0}, "level must be"),
        ({"level": "high"}, "level must be"),
        ({"method": "exakt"}, "did you mean 'exact'"),
        ({"n_bootstraps": -1}, "n_bootstraps must be"),
        ({"groups": [1, 2]}, "2 labels for 60 rows"),
        ({"groups": [None] * 60}, "no label for 60"),
        ({"groups": 3}, "one label per row, got 3"),
        ({"groups": "person"}, "one label per row, got 'person'"),
        ({"random_state": "a"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"groups": ["a"] * 60}, "1 groups of rows"),
        ({"method": "exact", "groups": np.arange(60) // 5}, "at least 16"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, words) -> None:
    with pytest.raises(InputError, match=words):
        edge_inference(drawn(60, 6), **settings)


def test_a_total_beside_its_parts_is_refused_by_every_method() -> None:
    X = drawn(60, 20)
    for n_rows, settings in ((60, {}), (60, {"method": "exact"}), (25, {})):
        with pytest.raises(InputError, match="sum of other columns"):
            edge_inference(X.assign(x1=X["x0"] - 2 * X["x2"]).iloc[:n_rows], **settings)


def test_all_complaints_come_at_once() -> None:
    X = drawn(60, 6)
    X.iloc[0, 0], X.iloc[1, 1] = np.nan, np.inf
    with pytest.raises(InputError, match=r"missing values.*infinity.*groups has 3 labels"):
        edge_inference(X, groups=[1, 2, 3])


def test_the_demo_shows_few_false_edges_as_sure() -> None:
    """The graphical lasso of the demo shows 57 edges, of which 27 are false."""
    data = make_gaussian_regression(n_samples=200, n_features=20, sparsity=0.2, random_state=0)
    true = data.theta_true[np.triu_indices(20, 1)] != 0
    result = edge_inference(data.X)
    for threshold in (0.05, 0.1):
        shown = (result.edges["q_value"] <= threshold).to_numpy()
        assert (shown & true).sum() >= 25
        assert (shown & ~true).sum() <= 0.1 * shown.sum()
    assert len(result.sure_edges) == (result.edges["q_value"] <= 0.1).sum()
    assert result.sure_edges["p_value"].is_monotonic_increasing
