"""Fits on a sparse support: what they share with dense ones, files, refusals, and what is said beforehand."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from precisionnet import GraphicalLasso, PNNClassifier, PNNRegressor, load, sparsity_curve, stability_curve
from precisionnet.errors import InputError, PrecisionNetError, PrecisionNetWarning
from precisionnet.estimators import forecast as forecast_module
from precisionnet.estimators import preparation
from precisionnet.estimators.explanation import AROUND, task_effects
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.forecast import refuse_no_room
from precisionnet.estimators.networks import linear_solutions
from precisionnet.estimators.summary import read_summary
from precisionnet.estimators.targets import NumberTarget
from precisionnet.evaluation import compare_rows
from precisionnet.joint.problem import GraphTerms
from precisionnet.joint.sparse_support import LearnedOnSupport, revise, sparse_start
from precisionnet.kinds import SEVERAL, kinds_for
from precisionnet.parameters import DENSE_MOST, settings_of
from precisionnet.precision import graphical_lasso, graphical_lasso_terms, rows, sample_covariance, sparse_solver
from precisionnet.sparse_matrices import Support

N, ROWS = 24, 70


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, N))
    X[:, 1::2] = 0.6 * X[:, ::2] + 0.8 * X[:, 1::2]
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(ROWS)


def make(**parameters):
    return PNNRegressor(support="sparse", max_epochs=4, theta_every=2, random_state=0, **parameters)


@cache
def fitted():
    """Members alike: networks are kept whatever a linear one could do."""
    return make(readout="both", n_members=2).fit(*table())


def start(X, l1_penalty=0.2, weight=None, **parameters):
    settings = settings_of({"l1_penalty": l1_penalty, "support": "sparse"})
    graph = GraphTerms.of(settings, sparse.eye_array(X.shape[1], format="csr"), len(X))
    weight = np.ones(len(X)) if weight is None else weight
    return graph, sparse_start(graph, X, weight, edges_of_theta_alone=True, n_jobs=None, **parameters)


def test_fit_predicts_on_sparse_matrices():
    model, (X, _) = fitted(), table()
    assert model.fitted.on_support
    for matrix in (model.precision_, model.task_precision_, model.task_graph_, model.covariance_):
        assert sparse.issparse(matrix)
        assert matrix.shape == (N, N)
        assert abs(matrix - matrix.T).max() == 0
    theta = graphical_lasso(sample_covariance(model.fitted.scaler.transform(X)), model.l1_penalty_, ridge=0.0).precision
    np.testing.assert_allclose(model.precision_.toarray(), theta, atol=1e-3)
    assert len(model.to_edge_frame()) == Support.of(model.precision_).n_edges
    assert model.to_networkx().number_of_edges() == len(model.to_pyg().edge_weight[N:]) // 2
    assert model.precision_frame().shape == (N, N)
    parts = model.contributions(X[:3])
    np.testing.assert_allclose(parts.sum(axis=1) + parts.attrs["base"], model.predict(X[:3]), rtol=1e-8)
    assert not compare_rows(model, X).shifted


def with_all_pairs(fitted: Fitted) -> Fitted:
    """The same model with arrays for matrices."""
    arrays = {
        name: getattr(fitted, name).toarray() for name in ("covariance", "precision", "task_precision", "task_graph")
    }
    members = [fitted.member_matrices[i].toarray() for i in range(len(fitted.member_matrices))]
    return replace(fitted, member_matrices=np.stack(members), **arrays)


def test_predictions_equal_those_of_the_same_dense_matrices():
    model, (X, _) = fitted(), table()
    dense = make().keep(with_all_pairs(model.fitted))
    assert not dense.fitted.on_support
    np.testing.assert_allclose(model.predict(X), dense.predict(X), rtol=1e-10)


def test_effects_on_the_support_are_those_of_all_pairs():
    """Where the covariance of all pairs is that of the rows, the two ways compute the same."""
    model, (X, _) = fitted(), table()
    whole = with_all_pairs(model.fitted)
    covariance = sample_covariance(model.fitted.scaler.transform(X))
    dense = task_effects(replace(whole, covariance=covariance), X, around=AROUND)
    found = task_effects(model.fitted, X, around=AROUND)
    np.testing.assert_allclose(found.nodes, dense.nodes, rtol=1e-6, atol=1e-8)
    support = model.fitted.member_matrices.support
    here = support.first, support.second
    np.testing.assert_allclose(found.edges.toarray()[here], dense.edges[here], rtol=1e-6, atol=1e-8)


def test_start_is_the_graphical_lasso_with_its_terms():
    X, _ = table()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    graph, found = start(X)
    emp_cov = sample_covariance(X)
    theta = found.theta.toarray()
    terms = graphical_lasso_terms(theta, emp_cov, graph.l1_penalty, 0.0)
    np.testing.assert_allclose([found.trace, found.neg_log_det, found.l1], [terms.trace, terms.neg_log_det, terms.l1])
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(theta)[[0, -1]])
    here = theta != 0
    np.testing.assert_allclose(found.covariance.toarray()[here], emp_cov[here])


def test_weights_stand_for_repeated_rows_and_constants_have_no_edge():
    X, _ = table()
    X[:, 5] = 3.0
    weight = np.tile([1.0, 2.0], ROWS // 2)
    once, repeated = start(X, weight=weight)[1], start(np.repeat(X, weight.astype(int), axis=0))[1]
    np.testing.assert_allclose(once.theta.toarray(), repeated.theta.toarray(), atol=1e-5)
    assert once.theta[[5]].nnz == 1
    assert np.isfinite(once.neg_log_det)


@pytest.mark.parametrize("parameters", [{"l1_scale": 0.0}, {"l1_penalty": 0.0}])
def test_without_a_penalty_the_remedy_is_a_parameter_of_the_fit(parameters):
    with pytest.raises(InputError, match=r"set l1_scale, or l1_penalty, above 0, or set support='dense'"):
        make(n_members=2, **parameters).fit(*table())


@pytest.mark.parametrize("predict_on", ["sparse", "task"])
def test_columns_that_never_vary_start_on_the_diagonal(predict_on):
    X, y = table()
    with pytest.warns(PrecisionNetWarning, match="is constant"):
        model = make(n_members=2, predict_on=predict_on).fit(np.ones_like(X), y)
    np.testing.assert_array_equal(model.precision_.toarray(), np.eye(N))
    found = start(np.ones_like(X))[1]
    assert (found.trace, found.neg_log_det, found.l1) == (N, 0.0, 0.0)


def test_revision_brings_in_the_strongest_pairs_and_keeps_values():
    X, _ = table()
    graph, begin = start(X, 0.3)
    like = torch.empty(0, dtype=torch.float64)
    matrices = [LearnedOnSupport(graph, begin, 2, like) for _ in range(2)]
    with torch.no_grad():
        for one in matrices:
            one.values += torch.rand_like(one.values)
    before = matrices[0].theta_task
    gradient = np.zeros((3, N))
    pairs = [(i, j) for i, j in ((0, 9), (0, 23), (4, 11)) if not begin.support.holds(np.array([i]), np.array([j]))[0]]
    for i, j in pairs:
        gradient[[0, 4, 8].index(i), j] = 1.0
    revise(matrices, np.array([0, 4, 8]), gradient)
    after = matrices[0].support
    assert matrices[1].support is after
    new = ~begin.support.holds(after.first, after.second)
    assert {(int(i), int(j)) for i, j in zip(after.first[new], after.second[new], strict=True)} == set(pairs)
    np.testing.assert_array_equal(matrices[0].theta_task[0].toarray(), before[0].toarray())
    assert matrices[0].adam.first[0].shape == matrices[0].values.shape


@pytest.mark.slow
def test_workers_change_no_number():
    X, y = table()
    one, two = (make(readout="both", n_members=4, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_save_and_load(tmp_path):
    model, (X, _) = fitted(), table()
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for name in ("precision_", "task_precision_", "task_graph_", "covariance_"):
        assert (getattr(again, name) != getattr(model, name)).nnz == 0
    assert (read_summary(tmp_path / "m").precision != model.precision_).nnz == 0


def test_classes_of_a_sparse_support():
    X, y = table()
    model = PNNClassifier(support="sparse", readout="both", n_members=2, max_epochs=2, random_state=0).fit(
        X, np.digitize(y, [-0.5, 0.5])
    )
    assert model.predict_proba(X).shape == (ROWS, 3)
    assert sparse.issparse(model.task_graph_)


def test_predict_on_sparse_keeps_to_the_edges_of_theta():
    model = make(readout="both", n_members=2, predict_on="sparse").fit(*table())
    np.testing.assert_array_equal(Support.of(model.task_precision_).keys, Support.of(model.precision_).keys)


def test_fixed_matrix_is_theta():
    model = PNNRegressor("glasso", support="sparse", readout="both", n_members=2, max_epochs=2, random_state=0)
    model.fit(*table())
    np.testing.assert_allclose(model.task_precision_.toarray(), model.precision_.toarray(), rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"recipe": "paper"}, "recipe"),
        ({"method": "vnn"}, "method"),
        ({"method": "naive"}, "method"),
        ({"ridge": 0.1}, "ridge"),
        ({"network": lambda n, outputs: torch.nn.Linear(n, outputs)}, "network"),
        ({"spectral_bound": 0.5}, "spectral_bound"),
        ({"l1_penalty": 0.0}, "l1_penalty"),
    ],
)
def test_what_has_no_sparse_way_is_refused(parameters, word):
    with pytest.raises(PrecisionNetError, match=word):
        PNNRegressor(support="sparse", max_epochs=1, **parameters).fit(*table())


def test_what_needs_all_pairs_is_refused_afterwards():
    X, y = table()
    model = make(readout="mean", n_members=1).fit(X, y)
    for call in (lambda: model.transfer(X[:, :5], y), lambda: stability_curve(model, X)):
        with pytest.raises(InputError, match="support='dense'"):
            call()


def test_sparsity_curve_counts_edges_of_sparse_matrices():
    curve = sparsity_curve(make(readout="both", n_members=2), *table(), l1_scales=[1.0])
    assert (curve.frame["n_edges"] > 0).all()


def test_auto_is_dense_up_to_its_size():
    settings = settings_of({})
    assert not settings.on_sparse_support(DENSE_MOST)
    assert settings.on_sparse_support(DENSE_MOST + 1)
    assert not settings.on_sparse_support(5000, own_network=True)
    assert not settings_of({"recipe": "paper"}).on_sparse_support(5000)
    assert not PNNRegressor(n_members=1, max_epochs=1).fit(*table()).fitted.on_support


def test_kinds_of_wide_tables():
    assert [kind.name for kind in kinds_for(9000, 600, 8, sparse=True)] == ["mean", "linear", "lasso"]
    assert [kind.name for kind in kinds_for(79, 20, 8, sparse=False)] == [*(kind.name for kind in SEVERAL), "lasso"]
    assert kinds_for(80, 20, 8, sparse=False) == SEVERAL


def test_lasso_members_find_planted_columns():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 300))
    y = x[:, 3] - x[:, 7] + 0.1 * rng.standard_normal(60)
    folds = np.array_split(rng.permutation(60), 3)
    target = NumberTarget.of(y, np.ones(60), settings_of({}), logarithm=False)
    *_, (coefficients, _) = linear_solutions(x, y, np.ones(60), [np.sort(fold) for fold in folds], target, lasso=True)
    weight = coefficients[0]
    assert set(np.argsort(-np.abs(weight))[:2]) == {3, 7}
    assert np.count_nonzero(weight) < 60


def test_forecast_says_time_and_memory():
    X, y = np.random.default_rng(0).standard_normal((2, 60, 300)), np.arange(60.0)
    dense, wide = PNNRegressor(support="dense").forecast(X[0], y), PNNRegressor(support="sparse").forecast(X[0], y)
    assert (wide.sparse, dense.sparse) == (True, False)
    assert wide.n_edges > 0
    assert 0 < wide.memory < dense.memory
    assert "GB" in dense.sentence


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
def test_columns_in_groups_are_no_giant_component(monkeypatch):
    """Many pairs above the penalty in small groups are no reason to refuse, and no dense solve of all columns."""
    monkeypatch.setattr(forecast_module, "DENSE_MOST", 100)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((200, 80)), 5, axis=1) + 0.5 * rng.standard_normal((200, 400))
    model = PNNRegressor(support="sparse", l1_scale=1.5)
    settings, data, _ = model._prepared(X, X[:, 0], None, X_val=None)
    assert model.forecast(X, X[:, 0]).n_edges > 400
    refuse_no_room(data, settings)


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
@pytest.mark.parametrize(
    ("free", "parameters", "named"),
    [
        (5e8, {"support": "dense"}, "support='(?P<support>sparse)'"),
        (5e8, {"support": "dense", "l1_scale": 0.5}, None),  # on a sparse support there is no room either
        (5e8, {"support": "sparse", "l1_scale": 0.5}, "l1_scale=(?P<l1_scale>[0-9.]+)"),
        (5e8, {"support": "sparse", "l1_penalty": 0.15}, "l1_penalty=(?P<l1_penalty>[0-9.]+)"),
        (4.1e8, {"support": "sparse", "l1_scale": 0.5}, None),
    ],
)
def test_no_room_is_said_beforehand_with_a_setting_that_has_room(monkeypatch, free, parameters, named):
    monkeypatch.setattr(forecast_module, "free_memory", lambda: free)
    X = np.random.default_rng(0).standard_normal((40, 400))
    with pytest.raises(InputError, match="A fit of 400 columns needs") as caught:
        PNNRegressor(random_state=0, **parameters).fit(X, X[:, 0])
    found = re.search(f"set {named}", str(caught.value))
    assert (found is None) == (named is None)
    if found is None:
        assert "take fewer columns, or fewer members with n_members=." in str(caught.value)
        return
    works = {name: value if name == "support" else float(value) for name, value in found.groupdict().items()}
    settings, data, _ = PNNRegressor(**parameters | works)._prepared(X, X[:, 0], None, X_val=None)
    refuse_no_room(data, settings)


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
def test_a_penalty_that_is_high_enough_is_not_said_to_be_too_low(monkeypatch):
    """Groups of columns have many edges at any penalty: raising it to that of chance would lower it."""
    monkeypatch.setattr(forecast_module, "free_memory", lambda: 4.1e8)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((200, 40)), 10, axis=1) + 0.3 * rng.standard_normal((200, 400))
    with pytest.raises(InputError, match=r"free: take fewer columns, or fewer members"):
        PNNRegressor(support="sparse", l1_scale=3.0).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("parameters", "remedy"), [({"support": "dense"}, ", or set support='sparse'"), ({"method": "naive"}, "")]
)
def test_pairs_without_room_are_refused_before_there_is_a_covariance(monkeypatch, parameters, remedy):
    monkeypatch.setattr(forecast_module, "free_memory", lambda: 1e7)
    monkeypatch.setattr(preparation, "sample_covariance", None)
    X = np.random.default_rng(0).standard_normal((40, 400))
    with pytest.raises(InputError, match=rf"all pairs needs 0\.013 GB or more .* take fewer columns{remedy}\.$"):
        PNNRegressor(**parameters).fit(X, X[:, 0])


def test_what_is_not_in_memory_yet_is_refused_before_it_comes(monkeypatch):
    frame = pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(np.ones((2000, 600))), npartitions=2)
    monkeypatch.setattr(forecast_module, "free_memory", lambda: 1e8)
    with pytest.raises(InputError, match=r"2,000 rows of 600 columns needs .* fit_table"):
        PNNRegressor().fit(frame, np.zeros(2000))
    with pytest.raises(InputError, match=r"the path 'rows\.parquet'.* fit_table"):
        PNNRegressor().fit("rows.parquet", np.zeros(2000))
    with pytest.raises(InputError, match=r"the path 'rows\.parquet'.* read the file first"):
        GraphicalLasso().fit("rows.parquet")


@pytest.mark.parametrize("n", [40, 400])
def test_rows_without_room_are_refused_before_they_are_copied(monkeypatch, tmp_path, n):
    monkeypatch.setattr(forecast_module, "free_memory", lambda: 1e8)
    X = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(100_000, n))
    with pytest.raises(InputError, match=rf"100,000 rows of {n} columns needs about .* GB .* fit_table"):
        PNNRegressor().fit(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="fit_table"):
        PNNRegressor().forecast(X, np.zeros(len(X)))


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
def test_giant_component_is_refused_with_the_scale_that_works(monkeypatch):
    monkeypatch.setattr(forecast_module, "DENSE_MOST", 100)
    X = np.random.default_rng(0).standard_normal((60, 400))
    with pytest.raises(InputError, match="set l1_scale=") as caught:
        PNNRegressor(support="sparse", random_state=0).fit(X, X[:, 0])
    scale = float(re.search(r"l1_scale=([0-9.]+) or more", str(caught.value))[1])
    model = PNNRegressor(support="sparse", l1_scale=scale)
    settings, data, _ = model._prepared(X, X[:, 0], None, X_val=None)
    refuse_no_room(data, settings)


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
@pytest.mark.parametrize("parameters", [{}, {"l1_penalty": 0.2}])
def test_a_component_that_no_solver_takes_is_said_in_parameters_of_the_fit(monkeypatch, parameters):
    monkeypatch.setattr(rows, "largest_dense", lambda memory, n_rows: 40)
    monkeypatch.setattr(sparse_solver, "MOST_MULTIPLICATIONS", 1e4)
    X = np.random.default_rng(0).standard_normal((60, 300))
    few = {"support": "sparse", "n_members": 2, "max_epochs": 1, "readout": "mean", "random_state": 0}
    with pytest.raises(InputError, match=r"circles for a sparse factor: set .* or more, or take fewer") as caught:
        PNNRegressor(**few, **parameters).fit(X, X[:, 0])
    name, value = re.search(r"set (\w+)=([0-9.]+) or more", str(caught.value)).groups()
    assert name == next(iter(parameters), "l1_scale")
    assert PNNRegressor(**few, **{name: float(value)}).fit(X, X[:, 0]).precision_.nnz > 300


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
@pytest.mark.parametrize("method", ["joint", "glasso"])
def test_a_graph_without_edges(method):
    """Independent columns and a large penalty: no edge, and none to add."""
    X = np.random.default_rng(0).standard_normal((ROWS, N))
    model = PNNRegressor(
        support="sparse", method=method, l1_scale=3.0, readout="both", n_members=2, max_epochs=2, random_state=0
    ).fit(X, X[:, 0])
    assert model.precision_.nnz == N
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore::precisionnet.errors.PrecisionNetWarning")
def test_the_usual_bound_is_not_held_against_columns_in_small_units():
    X, y = table()
    X[:, :3] *= 1e-2
    model = make(standardize=False, readout="both", n_members=2).fit(X, y)
    assert model.fitted.spectral_bound >= np.linalg.eigvalsh(model.precision_.toarray()).max() * (1 - 1e-6)


def test_a_ridge_is_refused_where_the_support_is_sparse_by_itself(monkeypatch):
    monkeypatch.setattr("precisionnet.parameters.DENSE_MOST", N - 1)
    with pytest.raises(InputError, match=r"ridge=0.5 has no part on a sparse support, which 24 columns get"):
        PNNRegressor(ridge=0.5, random_state=0).fit(*table())
