"""A column of labels is several nodes under the networks, and one node wherever it is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from precisionnet import GraphicalLasso, PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.columns import ColumnBlocks, edge_frame
from precisionnet.precision import partial_correlations

QUICK = {"n_members": 2, "max_epochs": 2, "readout": "mlp", "random_state": 0}
N = 150


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Bergen", "Paris"], N)
    a = rng.normal(size=N) + (city == "Paris")
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(size=N), "city": city, "smoker": rng.choice(["yes", "no"], N)})
    return frame, pd.Series(a + 2 * (city == "Bergen"), name="y")


@pytest.fixture(scope="module")
def model(rows) -> PNNRegressor:
    return PNNRegressor(**QUICK).fit(*rows)


def test_a_data_frame_with_labels_is_fitted_and_shown_by_column(model, rows):
    X, _ = rows
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert len(model.precision_) == len(model.node_names_) == 5
    assert set(model.to_networkx().nodes) == set(X.columns)
    edges = model.to_edge_frame()
    assert not (edges["source"] == edges["target"]).any()
    assert edges["partial_correlation"].abs().max() <= 1.0
    with_city = edges[(edges["source"] == "city") | (edges["target"] == "city")]
    assert len(with_city)
    assert (with_city["partial_correlation"] > 0).all()
    assert model.precision_frame().shape == (5, 5)


def test_contributions_are_summed_by_column_and_add_up(model, rows):
    X, _ = rows
    parts = model.contributions(X)
    assert list(parts.columns) == list(X.columns)
    np.testing.assert_allclose(parts.sum(axis=1) + parts.attrs["base"], model.predict(X), atol=1e-9)


def test_the_encoder_is_saved_with_the_model(model, rows, tmp_path):
    X, _ = rows
    new = X.assign(city=["Atlantis", *X["city"][1:]])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert (again.predict(new) == model.predict(new)).all()
    assert again.encoder_.unseen_levels(new) == {"city": ["Atlantis"]}
    pd.testing.assert_frame_equal(again.to_edge_frame(), model.to_edge_frame())


def test_the_same_as_the_hand_made_dummies(rows):
    """Fitted on the encoder's own output, the model predicts the same, to the last bit."""
    X, y = rows
    own = PNNRegressor(**QUICK).fit(X, y)
    by_hand = PNNRegressor(**QUICK).fit(own.node_rows(X), y)
    assert (own.predict(X) == by_hand.predict(own.node_rows(X))).all()
    assert by_hand.encoder_ is None


def test_rows_outside_training_leave_the_model_alone(rows):
    X, y = rows
    changed = X.copy()
    changed.loc[100:, "city"], changed.loc[100:, "a"] = "Nowhere", 1e6
    first, second = (PNNRegressor(**QUICK).fit(table[:100], y[:100]) for table in (X, changed))
    assert first.encoder_.to_document() == second.encoder_.to_document()
    assert (first.predict(X[:100]) == second.predict(X[:100])).all()


def test_validation_rows_are_encoded_and_not_learned_from(rows):
    X, y = rows
    val = X[100:].assign(city="Nowhere")
    fitted = PNNRegressor(**QUICK).fit(X[:100], y[:100], X_val=val, y_val=y[100:])
    assert "Nowhere" not in str(fitted.encoder_.to_document())


def test_gaps(rows):
    X, y = rows
    holes = X.assign(a=X["a"].where(X.index % 5 > 0), city=X["city"].where(X.index % 7 > 0))
    with pytest.raises(InputError, match=r"NaN in \d+ of 150 rows \(column 'a', 'city'\).*missing='indicator'"):
        PNNRegressor(**QUICK).fit(holes, y)
    indicated = PNNRegressor(**QUICK, missing="indicator").fit(holes, y)
    assert {"a=(missing)", "city=(missing)"} <= set(indicated.node_names_)
    assert np.isfinite(indicated.predict(holes)).all()
    median = PNNRegressor(**QUICK, missing="median").fit(holes, y)
    assert not any("missing" in name for name in median.node_names_)
    few = PNNRegressor(**QUICK, missing="indicator").fit(X[["a", "b"]], y)
    assert few.encoder_ is None
    assert np.isfinite(few.predict(holes[["a", "b"]])).all()


def test_a_model_that_refuses_gaps_refuses_new_ones(model, rows):
    X, _ = rows
    with pytest.raises(InputError, match="NaN in 1 of 150 rows"):
        model.predict(X.assign(city=[None, *X["city"][1:]]))


def test_a_column_that_cannot_be_used_is_left_out_with_a_warning(rows):
    X, y = rows
    with pytest.warns(PrecisionNetWarning, match=r"Left out: 'who' \(150 different .*\) and 'land' \(it is constant\)"):
        fitted = PNNRegressor(**QUICK).fit(X.assign(who=[f"p{i}" for i in range(N)], land="NO"), y)
    assert "who" not in fitted.contributions(X).columns
    assert np.isfinite(fitted.predict(X)).all()


def test_classes(rows):
    X, y = rows
    fitted = PNNClassifier(**QUICK).fit(X, np.where(y > 1, "high", "low"))
    assert fitted.predict_proba(X).shape == (N, 2)
    assert fitted.contributions(X).columns.get_level_values("node").unique().tolist() == list(X.columns)


@pytest.mark.parametrize("seed", range(5))
def test_block_norms(seed):
    """At most 1, zero where the block is, the same for any coding of the levels, as without blocks where single."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6))
    theta = np.linalg.inv(np.cov(rows.T))
    theta[0, 4] = theta[4, 0] = theta[0, 5] = theta[5, 0] = 0.0
    theta = 0.5 * (theta + theta.T) + 10 * np.eye(6)
    blocks = ColumnBlocks(("a", "b", "c", "d"), np.array([0, 1, 2, 2, 3, 3]))
    shown = blocks.partial_correlations(theta)
    assert (np.abs(shown) <= 1.0).all()
    assert (shown == shown.T).all()
    assert shown[0, 3] == 0.0
    assert shown[0, 1] == partial_correlations(theta)[0, 1]
    recode = np.eye(6)
    recode[2:4, 2:4] = rng.normal(size=(2, 2))  # the same levels in other dummies: theta becomes A' theta A
    np.testing.assert_allclose(blocks.partial_correlations(recode.T @ theta @ recode), shown, rtol=1e-6, atol=1e-9)
    values = rng.normal(size=6)
    assert blocks.norms(values)[2] == pytest.approx(np.hypot(values[2], values[3]))
    assert blocks.norms(values)[0] == values[0]
    assert blocks.summed(values)[3] == pytest.approx(values[4] + values[5])
    assert blocks.matrix_norms(theta)[2, 3] == pytest.approx(np.linalg.norm(theta[2:4, 4:6]))


@pytest.mark.parametrize("directed", [None, [True, True, False, True]])
def test_blocks_of_a_sparse_matrix_are_those_of_the_array(directed):
    rng = np.random.default_rng(1)
    theta = np.triu(np.where(rng.random((7, 7)) < 0.4, rng.normal(size=(7, 7)), 0.0), 1)
    theta += theta.T + 8.0 * np.eye(7)
    theta[0, 4] = theta[4, 0] = 0.0  # an edge whose first nodes have none
    theta[0, 5] = theta[5, 0] = -0.7
    of_node = np.array([0, 1, 2, 2, 3, 3, 3])
    blocks = ColumnBlocks(("a", "b", "c", "d"), of_node, None if directed is None else np.array(directed))
    sparse_theta = sparse.csr_array(theta)
    np.testing.assert_allclose(blocks.matrix_norms(sparse_theta).toarray(), blocks.matrix_norms(theta), rtol=1e-14)
    found, expected = edge_frame(sparse_theta, blocks), edge_frame(theta, blocks)
    assert len(expected) > 2
    pd.testing.assert_frame_equal(found, expected)


def test_a_number_with_gaps_keeps_its_sign():
    """Its own node has the sign, whatever the node that marks the gaps does."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=300)
    table = pd.DataFrame({"a": first, "b": -first + 0.5 * rng.normal(size=300), "c": rng.normal(size=300)})
    y = table["a"] + 0.1 * rng.normal(size=300)
    table.loc[rng.random(300) < 0.1, "b"] = np.nan
    model = PNNRegressor(missing="indicator", max_epochs=1, n_members=4, random_state=0).fit(table, y)
    assert not model.fitted.blocks.trivial
    edges = model.to_edge_frame().set_index(["source", "target"])
    assert edges.loc[("a", "b"), "partial_correlation"] < -0.3
    assert edges.loc[("a", "b"), "precision"] > 0


def test_complex_numbers_get_a_sentence_that_does_not_print_them(gaussian):
    X, y = gaussian.X.to_numpy(), gaussian.y.to_numpy()
    fitted = PNNRegressor(**QUICK).fit(X, y)
    for call in (
        lambda: PNNRegressor(**QUICK).fit(X + 0j, y),
        lambda: PNNRegressor(**QUICK).fit(gaussian.X + 0j, y),
        lambda: PNNRegressor(**QUICK).fit(X, y + 0j),
        lambda: fitted.predict(X + 0j),
        lambda: GraphicalLasso().fit(X + 0j),
    ):
        with pytest.raises(InputError, match="complex numbers") as caught:
            call()
        assert len(str(caught.value)) < 200
