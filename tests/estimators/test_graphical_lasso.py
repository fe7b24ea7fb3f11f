"""GraphicalLasso and GraphicalLassoCV: scikit-learn's checks, whole, and what a fit promises and says."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.covariance import GraphicalLasso as SklearnGraphicalLasso
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from precisionnet import GraphicalLasso, GraphicalLassoCV
from precisionnet.errors import InputError, PrecisionNetWarning

COVARIANCES = ("empirical", "ledoit_wolf", "oas", "nonparanormal")
QUICK = {"l1_penalties": 6, "n_subsamples": 3}


def chain(n: int, strength: float = 0.4) -> np.ndarray:
    theta, i = np.eye(n), np.arange(n - 1)
    theta[i, i + 1] = theta[i + 1, i] = -strength
    return theta


TRUTH = chain(12)


def draw(n_samples: int, seed: int = 0) -> np.ndarray:
    root = np.linalg.cholesky(np.linalg.inv(TRUTH))
    return np.random.default_rng(seed).normal(size=(n_samples, len(TRUTH))) @ root.T


def frame(n_samples: int = 120, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(draw(n_samples, seed), columns=[f"gene{i}" for i in range(len(TRUTH))])


def gaps(table: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    return table.mask(np.random.default_rng(5).random(table.shape) < share)


def edge_f1(found: np.ndarray) -> float:
    upper = np.triu_indices(len(TRUTH), k=1)
    a, b = found[upper] != 0, TRUTH[upper] != 0
    return 2 * np.sum(a & b) / (a.sum() + b.sum())


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GraphicalLasso(), GraphicalLassoCV(l1_penalties=4, cv=3)])
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        GraphicalLasso(covariance="oas", scale_free=True, warm_start=True, penalize_diagonal=True, n_reweights=1),
        GraphicalLasso(covariance="nonparanormal", missing="em"),
        GraphicalLassoCV(selection="ebic", covariance="ledoit_wolf", missing="pairwise"),
        GraphicalLassoCV(selection="stars", **QUICK),
    ]
)
def test_check_estimator_of_variants(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_the_check_that_needs_scipys_array_interface_passes_too():
    command = [sys.executable, "-m", "pytest", __file__, "-k", "check_array_api_input", "-p", "no:cacheprovider"]
    done = subprocess.run(command, env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert "6 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("l1_penalty", [0.05, 0.2])
def test_agrees_with_scikit_learn(l1_penalty):
    X, new = draw(300) + 3.0, draw(50, 1) + 3.0
    theirs = SklearnGraphicalLasso(alpha=l1_penalty, tol=1e-7, enet_tol=1e-10, max_iter=500).fit(X)
    ours = GraphicalLasso(l1_penalty=l1_penalty, tol=1e-9).fit(X)
    for name in ("precision_", "covariance_", "location_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-4)
    assert ours.score(new) == pytest.approx(theirs.score(new), rel=1e-5)
    np.testing.assert_allclose(ours.mahalanobis(new), theirs.mahalanobis(new), rtol=1e-3)
    assert ours.error_norm(np.eye(12)) == pytest.approx(theirs.error_norm(np.eye(12)), rel=1e-3)


def test_what_a_fit_leaves_behind():
    table = frame()
    model = GraphicalLasso(l1_penalty=0.2).fit(table)
    assert isinstance(model, EmpiricalCovariance)
    assert list(model.feature_names_in_) == list(table.columns)
    assert (model.n_features_in_, model.n_samples_, model.status_) == (12, 120, "optimal")
    assert model.gap_ <= model.tol
    assert model.n_edges_ == np.count_nonzero(np.triu(model.precision_, k=1)) == len(model.to_edge_frame())
    assert model.get_precision() is model.precision_
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(model.emp_cov_, np.cov(table.T, bias=True), atol=1e-12)
    off = np.abs(model.emp_cov_ - np.diag(np.diag(model.emp_cov_)))
    assert model.l1_max_ == pytest.approx(off.max())
    assert list(model.precision_frame().columns) == list(table.columns)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.mahalanobis(table), model.mahalanobis(table))
    with pytest.raises(InputError, match='which must be "sparse"'):
        model.precision_frame("task")


def test_precomputed_is_the_same_problem():
    table = frame()
    rows = GraphicalLasso(l1_penalty=0.2).fit(table)
    matrix = GraphicalLasso(l1_penalty=0.2, covariance="precomputed").fit(table.cov(ddof=0))
    np.testing.assert_allclose(matrix.precision_, rows.precision_, atol=1e-10)
    assert list(matrix.feature_names_in_) == list(table.columns)
    np.testing.assert_array_equal(matrix.location_, 0.0)
    assert matrix.n_samples_ is None
    assert matrix.score(table - table.mean()) == pytest.approx(rows.score(table))


@pytest.mark.parametrize("options", [{}, {"covariance": "oas"}, {"assume_centered": True}, {"scale_free": True}])
def test_batches_give_the_fit_of_all_rows(options):
    X = draw(200) + 1.0
    model = GraphicalLasso(l1_penalty=0.15, tol=1e-9, **options)
    whole, batches = clone(model).fit(X), clone(model)
    for batch in (X[:40], X[40:41], X[41:150], X[150:]):
        batches.partial_fit(batch)
    np.testing.assert_allclose(batches.emp_cov_, whole.emp_cov_, rtol=0, atol=1e-12 * np.diag(whole.emp_cov_).max())
    np.testing.assert_allclose(batches.location_, whole.location_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(batches.precision_, whole.precision_, atol=1e-4)
    assert batches.n_samples_ == 200
    one = clone(model).partial_fit(X)
    np.testing.assert_array_equal(one.precision_, whole.precision_)
    on = clone(model).fit(X[:120]).partial_fit(X[120:])  # goes on from a fit
    np.testing.assert_allclose(on.emp_cov_, whole.emp_cov_, rtol=0, atol=1e-12 * np.diag(whole.emp_cov_).max())


def test_a_refused_batch_leaves_the_model_as_it_was():
    table = frame()
    model = GraphicalLasso(l1_penalty=0.2).partial_fit(table[:50])
    before = model.precision_.copy()
    with pytest.raises(InputError, match="NaN in 1 of 5 rows .column 'gene2'"):
        model.partial_fit(table[:5].assign(gene2=[1, 2, np.nan, 4, 5]))
    np.testing.assert_array_equal(model.precision_, before)
    assert model.partial_fit(table[50:]).n_samples_ == 120
    with pytest.raises(InputError, match="'flat' is constant: .*bring rows in which it varies"):
        GraphicalLasso().partial_fit(table[:50].assign(flat=2.0))
    with pytest.raises(InputError, match="n_samples=1"):
        GraphicalLasso().partial_fit(table[:1])


def test_partial_fit_is_there_only_where_batches_can_be_merged():
    for options in ({"covariance": "ledoit_wolf"}, {"covariance": "nonparanormal"}, {"missing": "em"}):
        model = GraphicalLasso(**options)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as caught:
            model.partial_fit(draw(20))
        assert "needs all rows at once: call fit" in str(caught.value.__cause__)
    assert not hasattr(GraphicalLassoCV(), "partial_fit")


def test_scale_free_does_not_depend_on_units():
    X, units = draw(150), 10.0 ** np.linspace(-4, 4, 12)
    for covariance in ("empirical", "ledoit_wolf", "oas"):
        model = GraphicalLasso(l1_penalty=0.2, scale_free=True, covariance=covariance, tol=1e-9)
        plain, scaled = clone(model).fit(X), clone(model).fit(X * units)
        np.testing.assert_array_equal(plain.precision_ != 0, scaled.precision_ != 0)
        np.testing.assert_allclose(scaled.precision_ * np.outer(units, units), plain.precision_, rtol=1e-4, atol=1e-7)
        assert scaled.l1_max_ == pytest.approx(plain.l1_max_)


def test_nonparanormal_does_not_see_increasing_transforms():
    X = draw(300)
    bent = np.column_stack([np.exp(X[:, :6]), X[:, 6:] ** 3])
    model = GraphicalLasso(l1_penalty=0.25, covariance="nonparanormal")
    plain, other = clone(model).fit(X), clone(model).fit(bent)
    np.testing.assert_array_equal(plain.precision_, other.precision_)
    assert plain.score(X) == other.score(bent)
    np.testing.assert_array_equal(plain.mahalanobis(X), other.mahalanobis(bent))
    assert edge_f1(other.precision_) > edge_f1(GraphicalLasso(l1_penalty=0.25, scale_free=True).fit(bent).precision_)


@pytest.mark.parametrize("missing", ["pairwise", "em"])
def test_gaps_are_bridged(missing):
    table, new = frame(400), frame(300, seed=1)
    model = GraphicalLasso(l1_penalty=0.15, missing=missing).fit(gaps(table))
    whole = GraphicalLasso(l1_penalty=0.15).fit(table)
    assert edge_f1(model.precision_) > edge_f1(whole.precision_) - 0.1
    assert model.score(new) == pytest.approx(whole.score(new), abs=0.2)
    assert model.score(gaps(new)) == pytest.approx(0.9 * model.score(new), abs=0.3)  # nine tenths of the values
    assert model.mahalanobis(gaps(new)).shape == (300,)
    np.testing.assert_array_equal(
        GraphicalLasso(l1_penalty=0.15, missing=missing).fit(table).precision_, whole.precision_
    )


def test_em_says_that_it_needed_a_ridge():
    with pytest.warns(PrecisionNetWarning, match="pulled towards independent columns with a ridge"):
        GraphicalLasso(l1_penalty=0.3, missing="em").fit(gaps(frame(10)))


def test_known_zeros_and_the_diagonal():
    mask = np.zeros((12, 12), dtype=bool)
    mask[0, 1] = mask[1, 0] = True
    model = GraphicalLasso(l1_penalty=0.1, known_zeros=mask).fit(draw(200))
    assert model.precision_[0, 1] == 0.0
    R_convention = GraphicalLasso(l1_penalty=0.2, penalize_diagonal=True).fit(draw(200))
    np.testing.assert_allclose(np.diag(R_convention.covariance_), np.diag(R_convention.emp_cov_) + 0.2, rtol=1e-4)


def test_reweighting_finds_the_chain_with_less_bias():
    X = draw(400)
    plain, adaptive = (GraphicalLasso(l1_penalty=0.25, n_reweights=n).fit(X) for n in (0, 2))
    assert edge_f1(adaptive.precision_) >= edge_f1(plain.precision_)
    error = [np.linalg.norm(model.precision_ - TRUTH) for model in (plain, adaptive)]
    assert error[1] < 0.6 * error[0]  # measured: 0.35


def test_warm_start_starts_at_the_fit_before():
    X = draw(60)
    model = GraphicalLasso(l1_penalty=0.05, warm_start=True, tol=1e-9).fit(X)
    cold = model.n_iter_
    precision = model.precision_
    assert model.fit(X).n_iter_ <= cold
    np.testing.assert_allclose(model.precision_, precision, atol=1e-4)
    assert model.fit(X[:, :5]).precision_.shape == (5, 5)  # of another size: starts afresh


@pytest.mark.parametrize("kind", [GraphicalLasso, GraphicalLassoCV])
def test_a_failed_fit_leaves_nothing_behind(kind, monkeypatch):
    model = kind()
    before = dict(vars(model))
    table = frame(50)
    with pytest.raises(InputError):
        model.fit(table.assign(flat=1.0))
    assert vars(model) == before
    model.fit(table)
    monkeypatch.setattr("precisionnet.precision.estimation.EstimationPlan.solve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table[["gene0", "gene1"]])
    assert vars(model) == before
    assert not any(hasattr(model, name) for name in ("precision_", "n_features_in_", "feature_names_in_"))


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


def test_the_graphical_lasso_and_the_evidence_of_edges_need_no_torch():
    code = """
import sys, precisionnet
from precisionnet import GraphicalLasso, GraphicalLassoCV
from precisionnet.estimators import EdgeTensors
import precisionnet.precision
from precisionnet.evidence import edge_inference
print([name for name in ("torch", "matplotlib", "jinja2", "networkx", "pyarrow.dataset") if name in sys.modules])
print(len(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy, n_modules = done.stdout.split("\n")[:2]
    assert heavy == "[]"
    assert int(n_modules) < 2400  # 1,870 with scikit-learn, SciPy, pandas and numba; torch brings 800 more


def test_no_zero_of_a_precision_is_negative():
    model = GraphicalLasso(l1_penalty=0.2, scale_free=True, n_reweights=1).fit(draw(40))
    assert (model.precision_ == 0).any()
    assert not np.signbit(model.precision_[model.precision_ == 0]).any()


def test_grid_search_uses_the_score():
    grid = GridSearchCV(GraphicalLasso(), {"l1_penalty": [0.01, 0.1, 0.4]}, cv=3).fit(draw(150))
    assert grid.best_params_ == {"l1_penalty": 0.1}


# --- choosing the penalty


@pytest.mark.parametrize(("selection", "least"), [("cv", 0.4), ("ebic", 0.6), ("stars", 0.75)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_finds_the_chain(selection, least, seed):
    """Measured over eight seeds: 0.44 to 0.65, 0.67 to 0.85 and 0.88 to 0.96; joining every pair has 0.28."""
    model = GraphicalLassoCV(selection=selection, random_state=0).fit(draw(300, seed))
    assert edge_f1(model.precision_) > least
    assert 0.02 < model.l1_penalty_ < 0.6
    results = model.cv_results_
    assert results["l1_penalty"][0] == pytest.approx(model.l1_max_)
    assert (np.diff(results["l1_penalty"]) < 0).all()
    curve = {"cv": "mean_score", "ebic": "ebic", "stars": "instability"}[selection]
    assert {"l1_penalty", "n_edges", curve} <= set(results)
    assert all(np.shape(values) == (20,) for values in results.values())


def test_the_choice_is_the_fit_with_that_penalty():
    X = draw(150)
    chosen = GraphicalLassoCV(selection="ebic").fit(X)
    given = GraphicalLasso(l1_penalty=chosen.l1_penalty_).fit(X)
    np.testing.assert_array_equal(chosen.precision_, given.precision_)
    assert chosen.score(X) == given.score(X)


def test_cross_validation_is_what_it_says():
    X, penalties = draw(90), [0.4, 0.05, 0.15]
    model = GraphicalLassoCV(l1_penalties=penalties, cv=KFold(3), tol=1e-9).fit(X)
    np.testing.assert_array_equal(model.cv_results_["l1_penalty"], [0.4, 0.15, 0.05])
    for number, (training, left_out) in enumerate(KFold(3).split(X)):
        for i, l1_penalty in enumerate([0.4, 0.15, 0.05]):
            fold = GraphicalLasso(l1_penalty=l1_penalty, tol=1e-9).fit(X[training])
            assert model.cv_results_[f"split{number}_score"][i] == pytest.approx(fold.score(X[left_out]), abs=1e-4)
    scores = np.mean([model.cv_results_[f"split{k}_score"] for k in range(3)], axis=0)
    np.testing.assert_allclose(model.cv_results_["mean_score"], scores)
    assert model.l1_penalty_ == model.cv_results_["l1_penalty"][np.argmax(scores)]
    new = draw(2000, 9)
    others = [GraphicalLasso(l1_penalty=l1, tol=1e-9).fit(X).score(new) for l1 in penalties]
    assert model.score(new) == pytest.approx(max(others))


@pytest.mark.filterwarnings("ignore")  # the changed rows are no longer a chain
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("missing", ["error", "pairwise", "em"])
def test_a_fold_never_sees_the_rows_left_out(covariance, missing):
    X = draw(60)
    if missing != "error":
        X = gaps(pd.DataFrame(X), 0.05).to_numpy()
    splits = list(KFold(2).split(X))
    changed = X.copy()
    changed[splits[0][1]] = 10.0 * changed[splits[0][1]] ** 3 - 7.0
    options = {"l1_penalties": 3, "cv": splits, "covariance": covariance, "missing": missing}
    a, b = (GraphicalLassoCV(**options).fit(rows).cv_results_ for rows in (X, changed))
    for name in ("split0_l1_penalty", "split0_n_edges"):
        np.testing.assert_array_equal(a[name], b[name])
    assert not np.array_equal(a["split0_score"], b["split0_score"])
    if covariance != "nonparanormal":
        assert not np.array_equal(a["split1_l1_penalty"], b["split1_l1_penalty"])


@pytest.mark.parametrize("selection", ["cv", "stars"])
def test_a_seed_gives_the_same_result_whatever_the_number_of_workers(selection):
    """Workers are threads here; ``test_the_number_of_workers_changes_no_bit`` has processes."""
    X = draw(120)
    with joblib.parallel_config(backend="threading"):
        first, second, workers = (
            GraphicalLassoCV(selection=selection, random_state=0, n_jobs=n, l1_penalties=8).fit(X)
            for n in (None, None, 2)
        )
    for other in (second, workers):
        np.testing.assert_array_equal(first.precision_, other.precision_)
        for name, values in first.cv_results_.items():
            np.testing.assert_allclose(values, other.cv_results_[name], rtol=1e-12)


def test_stars_tells_how_often_an_edge_was_found():
    table = frame(250)
    model = GraphicalLassoCV(selection="stars", random_state=0, l1_penalties=8).fit(table)
    frequency = model.selection_frequency_
    np.testing.assert_array_equal(frequency, frequency.T)
    assert (np.diag(frequency) == 0).all()
    edges = model.to_edge_frame()
    place = {name: i for i, name in enumerate(table.columns)}
    by_hand = [frequency[place[a], place[b]] for a, b in zip(edges["source"], edges["target"], strict=True)]
    assert edges["selection_frequency"].tolist() == by_hand
    assert edges["selection_frequency"].mean() > 0.8
    other = GraphicalLassoCV(selection="ebic", l1_penalties=8).fit(table)
    assert not hasattr(other, "selection_frequency_")
    assert "selection_frequency" not in other.to_edge_frame()


@pytest.mark.parametrize("selection", ["cv", "ebic", "stars"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_every_selection_takes_every_covariance_and_gaps(selection, covariance):
    options = {
        "selection": selection,
        "covariance": covariance,
        "random_state": 0,
        "n_reweights": 1,
        "scale_free": True,
    }
    for missing in ("error", "em", "pairwise"):
        table = frame(250) if missing == "error" else gaps(frame(250), 0.05)
        model = GraphicalLassoCV(missing=missing, l1_penalties=8, n_subsamples=5, **options).fit(table)
        assert edge_f1(model.precision_) > 0.5


def test_ebic_takes_a_precomputed_covariance():
    table = frame(200)
    rows = GraphicalLassoCV(selection="ebic").fit(table)
    matrix = GraphicalLassoCV(selection="ebic", covariance="precomputed", n_samples=200).fit(table.cov(ddof=0))
    assert matrix.l1_penalty_ == pytest.approx(rows.l1_penalty_)
    np.testing.assert_allclose(matrix.cv_results_["ebic"], rows.cv_results_["ebic"])


# --- what is said


def test_an_empty_and_a_full_graph_are_explained():
    X = draw(100)
    with pytest.warns(
        PrecisionNetWarning, match=r"graph is empty: l1_penalty=9 is not below l1_max_=\d\.\d+, .*; lower"
    ):
        assert GraphicalLasso(l1_penalty=9).fit(X).n_edges_ == 0
    with pytest.warns(
        PrecisionNetWarning, match=r"graph is full: at l1_penalty=1e-05 all 66 pairs .*; raise l1_penalty"
    ):
        assert GraphicalLasso(l1_penalty=1e-5).fit(X).n_edges_ == 66
    with pytest.warns(PrecisionNetWarning, match="no two columns covary at all"):
        GraphicalLasso(covariance="precomputed").fit(np.diag([1.0, 2.0, 3.0]))
    GraphicalLasso(l1_penalty=0.01).fit(X[:, :2])  # two columns have one pair: nothing to explain
    edge = GraphicalLasso(l1_penalty=0.2).fit(X).l1_max_
    assert GraphicalLasso(l1_penalty=0.999 * edge).fit(X).n_edges_ == 1


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_solver_that_stops_early_is_quoted(fit):
    rng = np.random.default_rng(0)
    with pytest.warns(
        PrecisionNetWarning, match="Graphical lasso: stopped after 1 iterations.*raise max_iter"
    ) as caught:
        model = getattr(GraphicalLasso(l1_penalty=0.02, max_iter=1, tol=1e-12), fit)(rng.normal(size=(15, 20)))
    assert model.status_ == "max_iter"
    assert caught[0].filename == __file__


def test_a_singular_covariance_without_a_penalty_is_explained():
    with pytest.warns(PrecisionNetWarning, match="raise l1_penalty, or set covariance='ledoit_wolf'") as caught:
        GraphicalLasso(l1_penalty=0).fit(draw(8))
    assert len(caught) == 1
    matrix = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    with pytest.warns(PrecisionNetWarning, match="not a covariance: eigenvalue -0.8") as caught:
        GraphicalLasso(l1_penalty=0.05, covariance="precomputed").fit(matrix)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [("cv", "describe the rows left out"), ("ebic", "lower ebic_gamma"), ("stars", "raise stars_threshold")],
)
def test_noise_is_said_to_have_no_structure(selection, sentence):
    noise = np.random.default_rng(0).normal(size=(60, 6))
    with pytest.warns(PrecisionNetWarning, match=f"whose graph is empty: it finds no structure .*{sentence}") as caught:
        model = GraphicalLassoCV(selection=selection, stars_threshold=1e-6, random_state=0).fit(noise)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.l1_penalty_ == model.cv_results_["l1_penalty"][0]


def test_a_choice_at_the_end_of_the_grid_says_where_to_look():
    X = draw(200)
    with pytest.warns(
        PrecisionNetWarning, match=r"smallest penalty of its grid \(0.5\).*np.geomspace\(0.8, 0.05, 30\)"
    ):
        GraphicalLassoCV(l1_penalties=[0.8, 0.5]).fit(X)
    with pytest.warns(PrecisionNetWarning, match=r"largest of l1_penalties \(0.02\): .* up to l1_max_="):
        GraphicalLassoCV(l1_penalties=[0.02, 0.01]).fit(X)
    with pytest.warns(PrecisionNetWarning, match="graph is full.*set another selection"):
        GraphicalLassoCV(l1_penalties=[1.0, 1e-3, 0.0]).fit(X[:, :3] + X[:, [7]])
    GraphicalLassoCV(l1_penalties=[0.1]).fit(X)  # one penalty has no ends


BAD_PARAMETERS = [
    ({"l1_penalty": -1}, "l1_penalty must be a number >= 0, got -1"),
    ({"l1_penalty": np.inf}, "l1_penalty must be a number >= 0, got inf"),
    ({"l1_penalty": "0.1"}, "l1_penalty must be a number >= 0, got '0.1'"),
    ({"covariance": "ledoitwolf"}, "covariance must be one of .*got 'ledoitwolf' .did you mean 'ledoit_wolf'"),
    ({"covariance": None}, "covariance must be one of 'empirical'"),
    ({"missing": "pair"}, "missing must be one of 'error', 'pairwise', 'em', got 'pair' .did you mean 'pairwise'"),
    ({"n_reweights": -1}, "n_reweights must be a whole number, at least 0"),
    ({"n_reweights": 1.5}, "n_reweights must be a whole number, at least 0"),
    ({"scale_free": "yes"}, "scale_free must be True or False, got 'yes'"),
    ({"warm_start": None}, "warm_start must be True or False"),
    ({"tol": 0.0}, "tol must be a number > 0"),
    ({"max_iter": 0}, "max_iter must be a whole number, at least 1"),
    ({"known_zeros": np.zeros((2, 2), dtype=bool)}, "known_zeros must be a .12, 12. matrix"),
    ({"covariance": "precomputed", "missing": "em"}, "missing='em' is for rows"),
    ({"covariance": "precomputed"}, r"takes a covariance matrix, which is square, got shape \(30, 12\)"),
]

BAD_CHOICES = [
    ({"l1_penalties": 1}, "l1_penalties must be a whole number, at least 2, got 1"),
    ({"l1_penalties": []}, "l1_penalties must be how many to try"),
    ({"l1_penalties": [0.1, -0.1]}, "l1_penalties must be how many to try"),
    ({"l1_penalties": "all"}, "l1_penalties must be how many to try"),
    ({"selection": "bic"}, "selection must be one of 'cv', 'ebic', 'stars', got 'bic' .did you mean 'ebic'"),
    ({"ebic_gamma": 2}, "ebic_gamma must be a number >= 0 and <= 1, got 2"),
    ({"stars_threshold": 0.5}, "stars_threshold must be a number > 0 and < 0.5"),
    ({"n_subsamples": 1}, "n_subsamples must be a whole number, at least 2"),
    ({"n_samples": 0}, "n_samples must be a whole number, at least 1"),
    ({"cv": 31}, "cv=31 does not split these rows: .*n_splits=31"),
    ({"known_zeros": np.zeros((2, 2), dtype=bool)}, "known_zeros must be a .12, 12. matrix"),
    ({"covariance": "precomputed"}, "selection='cv' needs rows to leave out.*selection='ebic' and n_samples"),
    ({"covariance": "precomputed", "selection": "stars"}, "selection='stars' needs rows to leave out"),
    (
        {"covariance": "precomputed", "selection": "ebic"},
        "number of rows behind a precomputed covariance: set n_samples",
    ),
]


@pytest.mark.parametrize(
    ("kind", "bad", "sentence"),
    [(GraphicalLasso, *case) for case in BAD_PARAMETERS] + [(GraphicalLassoCV, *case) for case in BAD_CHOICES],
)
def test_bad_parameters_are_named(kind, bad, sentence):
    with pytest.raises(InputError, match=sentence):
        kind(**bad).fit(frame(30))


@pytest.mark.parametrize(
    ("options", "make", "sentence"),
    [
        (
            {},
            lambda t: t.mask(t > 2),
            r"NaN in \d+ of 120 rows \(column 'gene.*set missing='em' .* or missing='pairwise'",
        ),
        ({"missing": "em"}, lambda t: t.assign(gene3=np.inf), "contains infinity in column 'gene3'"),
        ({}, lambda t: t * 1e120, "holds values beyond 1e.100"),
        ({}, lambda t: t.assign(flat=0.1), "Column 'flat' is constant: a constant has no precision; drop it"),
        ({"covariance": "nonparanormal"}, lambda t: t.assign(flat=0.1), "Column 'flat' is constant"),
        ({"missing": "em"}, lambda t: t.assign(gone=np.nan), "Column 'gone' has no value at all"),
        ({}, lambda t: t[["gene0"]], "'gene0' is the only feature .n_features=1"),
        ({}, lambda t: t[:1], "n_samples=1 row"),
        ({}, lambda t: t.assign(site="Oslo"), "Column 'site' holds text"),
        (
            {"missing": "pairwise"},
            lambda t: t.assign(a=t.gene0.mask(t.index < 60), b=t.gene1.mask(t.index >= 60)),
            "Columns 'a' and 'b' never have a value in the same row",
        ),
        ({"covariance": "precomputed"}, lambda t: np.triu(t.cov()), "not symmetric"),
        ({"covariance": "precomputed"}, lambda t: t.cov().mask(t.cov() > 1), "NaN"),
        ({"covariance": "precomputed"}, lambda t: np.ones((1, 1)), "n_features=1"),
        ({"covariance": "precomputed", "scale_free": True}, lambda t: np.diag([1.0, -1.0]), "negative variance"),
        (
            {"covariance": "precomputed"},
            lambda t: pd.DataFrame(np.diag([1.0, 0.0]), columns=["a", "b"]),
            "Column 'b' is constant",
        ),
    ],
)
def test_bad_rows_are_named(options, make, sentence):
    with pytest.raises(InputError, match=sentence):
        GraphicalLasso(**options).fit(make(frame()))


@pytest.mark.parametrize(
    ("selection", "where"), [("cv", "the training rows of fold 0"), ("stars", "a subsample of 96 rows")]
)
def test_a_column_that_is_constant_in_a_part_of_the_rows_is_named(selection, where):
    table = frame().assign(rare=np.r_[1.0, np.zeros(119)])
    with pytest.raises(InputError, match=f"In {where}, column 'rare' is constant: .*bring rows in which it varies"):
        GraphicalLassoCV(selection=selection, random_state=0).fit(table)


def test_rows_to_score_are_checked_as_well():
    model = GraphicalLasso(l1_penalty=0.2).fit(frame())
    with pytest.raises(InputError, match="contains NaN"):
        model.score(gaps(frame()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.mahalanobis(frame().rename(columns={"gene0": "other"}))
