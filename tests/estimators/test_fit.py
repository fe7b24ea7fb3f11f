"""What a fit promises: reproducible, names kept, weights that count rows, no leakage, honest refusals."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_limits

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.errors import FitDivergedError, InputError, PrecisionNetWarning
from precisionnet.estimators import forecast
from precisionnet.estimators.checks import MIN_ROWS, group_codes
from precisionnet.estimators.rows import canonical, split_validation
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.parameters import PARAMETERS, settled
from precisionnet.threads import blas_threads
from tests.recipes import QUICK, both_recipes, of_method

RUNNING = ("network", "callbacks", "warm_start", "n_jobs", "verbose", "random_state")
METHODS = ("joint", "naive", "glasso", "sample", "vnn")
SPLIT = {"validation_fraction": 0.25}
LEARNS = {
    "standard": {"n_members": 3, "max_epochs": 20},
    "paper": {"recipe": "paper", "readout": "mlp", "max_epochs": 12, "patience": 12, "task_steps": 5},
}
"""Long enough to learn something."""


def same_fit(a, b) -> bool:
    tensors = [[t for network in model.networks_ for t in network.state_dict().values()] for model in (a, b)]
    return (
        np.array_equal(a.precision_, b.precision_)
        and np.array_equal(a.shifts_, b.shifts_)
        and a.history_.equals(b.history_)
        and all(torch.equal(v, w) for v, w in zip(*tensors, strict=True))
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("readout", ["mlp", "mean"])
@both_recipes
def test_every_method_and_readout_fits(gaussian, quick, method, readout):
    model = PNNRegressor(readout=readout, **of_method(method, quick)).fit(gaussian.X, gaussian.y)
    assert np.isfinite(model.predict(gaussian.X)).all()
    assert extreme_eigenvalues(model.precision_)[0] > 0
    assert model.n_iter_ == len(model.history_) <= 4
    assert 1 <= model.best_epoch_ <= model.n_iter_
    paper = model.recipe == "paper"
    assert model.n_rows_ == ({"training": 90, "validation": 30} if paper else {"training": 120, "validation": 0})
    assert len(model.networks_) == len(model.shifts_) == (1 if paper else 2)


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
@both_recipes
def test_a_seed_gives_bit_identical_fits(gaussian, quick, classes, kind):
    y = gaussian.y if kind is PNNRegressor else classes
    first, second = kind(**quick).fit(gaussian.X, y), kind(**quick).fit(gaussian.X, y)
    assert same_fit(first, second)
    assert np.array_equal(first.predict(gaussian.X), second.predict(gaussian.X))
    assert not same_fit(first, kind(**quick | {"random_state": 1}).fit(gaussian.X, y))


@both_recipes
def test_a_fit_leaves_torchs_random_state_and_threads_alone(gaussian, quick):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        PNNRegressor(**quick).fit(gaussian.X, gaussian.y)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(before, torch.get_rng_state())


@both_recipes
def test_the_order_of_the_rows_does_not_matter(gaussian, quick):
    order = np.random.default_rng(0).permutation(len(gaussian.X))
    shuffled = PNNRegressor(**quick).fit(gaussian.X.iloc[order], gaussian.y.iloc[order])
    assert same_fit(PNNRegressor(**quick).fit(gaussian.X, gaussian.y), shuffled)


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
@both_recipes
def test_weights_count_rows(gaussian, quick, classes, kind):
    y = (gaussian.y if kind is PNNRegressor else classes).to_numpy()
    X, weight = gaussian.X.to_numpy(), np.random.default_rng(0).integers(0, 3, len(gaussian.X))
    weighted = kind(**quick).fit(X, y, sample_weight=weight)
    repeated = kind(**quick).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert same_fit(weighted, repeated)


@both_recipes
def test_nothing_fitted_before_the_first_epoch_sees_the_validation_rows(gaussian, quick):
    """Throw the validation rows far away, by an amount that keeps the rows' order: scaling and graph must not move."""
    values, y = gaussian.X.to_numpy(), gaussian.y.to_numpy()
    table = canonical(values, y, np.ones(len(values)))[0]
    training, validation = split_validation(table, 0.25, None, np.random.RandomState(0))
    assert (len(training), len(validation)) == (90, 30)
    moved = np.isin(values[:, 0], validation.X[:, 0])
    far = values.copy()
    far[moved, 1:] += 1e6  # the rows are sorted by the first column
    plain, blown = (
        PNNRegressor(**of_method("glasso", quick) | SPLIT | {"max_epochs": 1}).fit(X, y) for X in (values, far)
    )
    np.testing.assert_array_equal(plain.fitted.scaler.mean, blown.fitted.scaler.mean)
    np.testing.assert_array_equal(plain.fitted.target.scaler.mean, blown.fitted.target.scaler.mean)
    np.testing.assert_array_equal(plain.covariance_, blown.covariance_)
    np.testing.assert_array_equal(plain.precision_, blown.precision_)
    np.testing.assert_allclose(plain.covariance_, np.corrcoef(training.X.T), atol=1e-12)
    for ours, theirs in zip(plain.networks_, blown.networks_, strict=True):
        assert all(torch.equal(v, w) for v, w in zip(ours.parameters(), theirs.parameters(), strict=True))


@both_recipes
def test_shuffled_labels_score_at_chance(gaussian, quick):
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(2):
        y = rng.permutation(gaussian.y)
        model = PNNRegressor(**LEARNS[quick["recipe"]], random_state=seed).fit(gaussian.X[:80], y[:80])
        scores.append(model.score(gaussian.X[80:], y[80:]))
    assert np.mean(scores) < 0.1


@both_recipes
def test_it_learns_what_is_there(gaussian, quick):
    scores = [
        PNNRegressor(**LEARNS[quick["recipe"]], random_state=seed)
        .fit(gaussian.X[:90], gaussian.y[:90])
        .score(gaussian.X[90:], gaussian.y[90:])
        for seed in range(2)
    ]
    assert np.mean(scores) > 0.6


@both_recipes
def test_names_are_kept(gaussian, quick):
    model = PNNRegressor(**quick).fit(gaussian.X, gaussian.y)
    frame = model.precision_frame()
    assert list(frame.index) == list(frame.columns) == list(gaussian.X.columns) == list(model.feature_names_in_)
    np.testing.assert_array_equal(frame.to_numpy(), model.precision_)
    np.testing.assert_array_equal(model.precision_frame("task").to_numpy(), model.task_precision_)
    assert model.target_name_ == "y"


def test_the_papers_predict_on_sparse_runs_on_theta_itself(gaussian):
    task = PNNRegressor(**QUICK["paper"], coupling=0.01).fit(gaussian.X, gaussian.y)
    sparse = PNNRegressor(**QUICK["paper"], coupling=0.01, predict_on="sparse").fit(gaussian.X, gaussian.y)
    np.testing.assert_array_equal(sparse.shift_, sparse.precision_)
    scaled = PNNRegressor(**QUICK["paper"], coupling=0.01, predict_on="sparse", scale_shift=True)
    scaled.fit(gaussian.X, gaussian.y)
    np.testing.assert_allclose(scaled.shift_, scaled.precision_ / extreme_eigenvalues(scaled.precision_)[1])
    assert not np.array_equal(task.predict(gaussian.X), sparse.predict(gaussian.X))


def test_the_standard_predict_on_sparse_runs_on_thetas_edges(gaussian):
    """Each network has a matrix of its own, all of them on the one graph."""
    model = PNNRegressor(**QUICK["standard"] | {"max_epochs": 10}, l1_scale=2.0, predict_on="sparse")
    model.fit(gaussian.X, gaussian.y)
    nothing = model.precision_ == 0
    assert nothing.any()
    assert (model.shifts_[:, nothing] == 0).all()
    assert not np.array_equal(*model.shifts_)


@both_recipes
def test_switches(gaussian, quick):
    raw = PNNRegressor(**quick, standardize=False, standardize_target=False, scale_shift=False)
    raw.fit(gaussian.X, gaussian.y)
    np.testing.assert_allclose(raw.shifts_.mean(axis=0), raw.task_precision_, rtol=0, atol=1e-12)
    assert not np.allclose(np.diag(raw.covariance_), 1.0)
    fixed = PNNRegressor(**quick, l1_penalty=0.5, spectral_bound=1.5).fit(gaussian.X, gaussian.y)
    assert fixed.l1_penalty_ == 0.5
    assert extreme_eigenvalues(fixed.precision_)[1] <= 1.5 * (1 + 1e-12)


@both_recipes
def test_larger_l1_scale_is_sparser(gaussian, quick):
    edges = [
        len(
            PNNRegressor(**of_method("glasso", quick) | {"max_epochs": 1}, l1_scale=s)
            .fit(gaussian.X, gaussian.y)
            .to_edge_frame()
        )
        for s in (0.1, 1.0, 4.0)
    ]
    assert edges[0] > edges[1] > edges[2]


@both_recipes
def test_coupling_ties_the_two_matrices(gaussian, quick):
    """Weak coupling lets the task move its matrix; strong coupling does not."""
    longer = quick | ({"task_steps": 20} if quick["recipe"] == "paper" else {})
    moved = [
        PNNRegressor(**longer, readout="mean", coupling=c).fit(gaussian.X, gaussian.y).history_["distance"].max()
        for c in (0.1, 100.0)
    ]
    assert moved[0] > 10 * moved[1]


@both_recipes
def test_fewer_rows_than_columns_works_and_says_so(quick):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    with pytest.warns(PrecisionNetWarning, match=r"(15|20) training rows for 30 columns"):
        model = PNNRegressor(**quick).fit(X, y)
    assert extreme_eigenvalues(model.precision_)[0] > 0
    assert np.isfinite(model.predict(X)).all()


@both_recipes
def test_constant_and_repeated_columns_are_named(gaussian, quick):
    X = gaussian.X.assign(flat=3.0)
    with pytest.warns(PrecisionNetWarning, match="'flat' is constant"):
        model = PNNRegressor(**quick).fit(X, gaussian.y)
    assert np.abs(model.precision_[-1, :-1]).max() < 0.05  # the rows give it no edges; with joint the task may
    with pytest.warns(PrecisionNetWarning, match="'x0' and 'again'"):
        model = PNNRegressor(**quick).fit(gaussian.X.assign(again=2 * gaussian.X["x0"] + 1), gaussian.y)
    assert extreme_eigenvalues(model.precision_)[0] > 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda X, y: (X.mask(X > 2), y), r"contains NaN in \d+ of 120 rows \(column 'x"),
        (lambda X, y: (X.assign(x3=np.inf), y), r"contains infinity in 120 of 120 rows \(column 'x3'"),
        (lambda X, y: (X[["x0"]], y), "'x0' is the only feature"),
        (lambda X, y: (X[: MIN_ROWS - 1], y[: MIN_ROWS - 1]), "n_samples=3"),
        (lambda X, y: (X, y.mask(y > 1)), "Input y contains NaN"),
        (lambda X, y: (X.assign(took=pd.Timedelta("1h")), y), "Column 'took' holds timedelta64.* give numbers"),
        (lambda X, y: (X.set_axis(["a"] * 8, axis=1), y), "Column 'a' stands more than once"),
        (lambda X, y: (X.astype(object).to_numpy().tolist()[:-1] + [["x"] * 8], y), "Column 'x0' holds text"),
        (lambda X, y: (X * 1e155, y), "'x0', 'x1', 'x2' and 5 more holds values beyond 1e.100"),
        (lambda X, y: (X, y * 1e200), "target holds values beyond"),
    ],
)
def test_bad_input_is_one_sentence(gaussian, make, sentence):
    X, y = make(gaussian.X, gaussian.y)
    with pytest.raises(ValueError, match=sentence):
        PNNRegressor().fit(X, y)


def test_one_class_is_refused(gaussian):
    with pytest.raises(InputError, match="only one class"):
        PNNClassifier().fit(gaussian.X, np.zeros(len(gaussian.X)))


@both_recipes
def test_new_rows_with_missing_values_are_refused_by_name(gaussian, quick):
    model = PNNRegressor(**quick).fit(gaussian.X, gaussian.y)
    with pytest.raises(InputError, match="'x1'"):
        model.predict(gaussian.X.assign(x1=np.nan))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_layers": 0}, "n_layers"),
        ({"method": "magic"}, "method"),
        ({"task_weight": 1.0}, "task_weight"),
        ({"coupling": -1}, "coupling"),
        ({"n_filters": np.array([5, 5])}, "n_filters must be a whole number or a list"),
    ],
)
def test_bad_parameters_are_named(gaussian, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        PNNRegressor(**change).fit(gaussian.X, gaussian.y)


def test_a_diverging_fit_is_reported(gaussian):
    with pytest.raises(FitDivergedError, match=r'diverged in epoch \d+.*step1="exact"'):
        PNNRegressor(recipe="paper", step1="paper", ridge=0.0, coupling=400.0, random_state=0).fit(
            gaussian.X, gaussian.y
        )


def test_what_is_not_set_is_the_recipes():
    for recipe in ("standard", "paper"):
        settings = PNNRegressor(recipe=recipe, order=5).settings
        assert asdict(settings) == settled({"recipe": recipe, "order": 5})
        assert settings.order == 5
        assert all(getattr(settings, p.name) == p.of(recipe) for p in PARAMETERS if p.name not in ("recipe", "order"))


def test_algorithm_1_has_one_network(gaussian):
    with pytest.raises(InputError, match="n_members=2 has no effect with recipe='paper'"):
        PNNRegressor(recipe="paper", n_members=2).fit(gaussian.X, gaussian.y)


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
def test_the_prediction_is_the_mean_of_the_networks(gaussian, classes, kind):
    model = kind(**QUICK["standard"]).fit(gaussian.X, gaussian.y if kind is PNNRegressor else classes)
    outputs = torch.from_numpy(model.fitted.outputs(gaussian.X.to_numpy(), lambda output: output.transpose(1, 0, 2)))
    outputs = outputs.transpose(0, 1)
    if kind is PNNRegressor:
        mean = model.fitted.target.scaler.inverse(outputs.mean(dim=0)[:, 0].numpy())
        np.testing.assert_allclose(model.predict(gaussian.X), mean, rtol=1e-12)
    else:
        # The geometric mean of their probabilities.
        mean = outputs.log_softmax(dim=-1).mean(dim=0).softmax(dim=-1).numpy()
        np.testing.assert_allclose(model.predict_proba(gaussian.X), mean, rtol=1e-12)


def test_the_parameter_table_is_the_signature():
    """One source for the estimator, the command line and the docs."""
    signature = inspect.signature(PNNRegressor).parameters
    assert [*signature] == [*(p.name for p in PARAMETERS), *RUNNING]
    assert all(signature[p.name].default == p.initial for p in PARAMETERS)


@both_recipes
def test_probabilities_follow_the_classes(gaussian, quick, classes):
    model = PNNClassifier(**LEARNS[quick["recipe"]], random_state=0).fit(gaussian.X[:90], classes[:90])
    assert list(model.classes_) == ["low", "mid", "top"]
    proba = model.predict_proba(gaussian.X[90:])
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(gaussian.X[90:]))
    assert model.score(gaussian.X[90:], classes[90:]) > 0.45


@both_recipes
def test_integer_column_names_are_fine(gaussian, quick):
    X = pd.DataFrame(gaussian.X.to_numpy())
    assert PNNRegressor(**quick).fit(X, gaussian.y).precision_frame().columns[0] == "x0"


def test_labels_of_two_types_are_refused(gaussian):
    y = np.array([1, "a"] * 60, dtype=object)
    with pytest.raises(ValueError, match="mixes labels|mixed|Unknown label"):
        PNNClassifier().fit(gaussian.X, y)


@both_recipes
def test_a_failed_fit_leaves_no_half_of_a_model(gaussian, quick):
    def give_up(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    model = PNNRegressor(**quick).fit(gaussian.X, gaussian.y)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[give_up]).fit(gaussian.X * 3 + 1, gaussian.y)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(gaussian.X)
    assert set(vars(model)) == set(model.get_params())


@both_recipes
def test_a_validation_loss_that_is_not_finite_is_a_divergence(gaussian, quick):
    """One absurd row among the validation rows must not hide an untrained model."""
    values, y = gaussian.X.to_numpy().copy(), gaussian.y.to_numpy()
    table = canonical(values, y, np.ones(len(values)))[0]
    _, validation = split_validation(table, 0.25, None, np.random.RandomState(0))
    row = int(np.flatnonzero(values[:, 0] == validation.X[3, 0])[0])
    values[row, 2] = 1e60
    with pytest.raises(FitDivergedError, match="validation loss"):
        PNNRegressor(**quick | SPLIT).fit(values, y)


@pytest.mark.parametrize(("constant", "standardize"), [(0.1, True), (7.3e8, False)])
@both_recipes
def test_a_constant_column_stays_small_whatever_its_value_and_the_weights(gaussian, quick, constant, standardize):
    X = np.column_stack([gaussian.X, np.full(120, constant)])
    weight = np.random.default_rng(0).uniform(0.1, 1.0, 120)
    with pytest.warns(PrecisionNetWarning, match="'x8' is constant"):
        model = PNNRegressor(**quick, standardize=standardize).fit(X, gaussian.y, sample_weight=weight)
    assert np.abs(model.precision_[-1, :-1]).max() < 0.05
    assert model.precision_[-1, -1] == pytest.approx(1.0, rel=0.5)


@pytest.mark.parametrize("scale", [1e3, 1e4, 1e-4])
@both_recipes
def test_features_in_their_own_units_do_not_blow_theta_task_up(gaussian, quick, scale):
    """On a scaled shift, whose gradient grows as theta_task shrinks."""
    with pytest.warns(PrecisionNetWarning, match="not standardised and their mean variance"):
        model = PNNRegressor(**quick, standardize=False, scale_shift=True, ridge=0.0).fit(
            gaussian.X * scale, gaussian.y
        )
    assert np.linalg.norm(model.task_precision_) < 10 * np.linalg.norm(model.precision_)


@both_recipes
def test_validation_rows_are_shared_out_among_the_classes(quick):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.repeat(np.arange(10), 3)
    assert PNNClassifier(**quick | SPLIT).fit(X, y).n_rows_ == {"training": 23, "validation": 7}


@pytest.mark.parametrize(("fraction", "expected"), [(0.99, "leaves 2 rows for training"), (0.98, "leaves 3 rows")])
@both_recipes
def test_a_validation_fraction_that_leaves_nothing_is_refused(gaussian, quick, fraction, expected):
    with pytest.raises(InputError, match=expected):
        PNNRegressor(**quick, validation_fraction=fraction).fit(gaussian.X, gaussian.y)
    with pytest.warns(PrecisionNetWarning, match="nothing is set aside"):
        PNNRegressor(**quick, validation_fraction=0.01).fit(gaussian.X, gaussian.y)


def test_the_objective_does_not_depend_on_what_predicts(gaussian):
    fits = [
        PNNRegressor(**QUICK["paper"], coupling=0.01, readout="mean", predict_on=on).fit(gaussian.X, gaussian.y)
        for on in ("task", "sparse")
    ]
    assert fits[0].history_["objective"].equals(fits[1].history_["objective"])


@both_recipes
def test_a_vnn_has_no_coupling(gaussian, quick):
    assert (PNNRegressor(**of_method("vnn", quick)).fit(gaussian.X, gaussian.y).history_["coupling_term"] == 0).all()


def test_a_forecast_judges_the_machine_by_one_core(monkeypatch):
    """A product on all of them would promise what no member can keep."""
    counted: list[int] = []
    clock = SimpleNamespace(perf_counter=lambda: counted.append(blas_threads()) or time.perf_counter())
    monkeypatch.setattr(forecast, "time", clock)
    with threadpool_limits(2):
        assert forecast.machine_factor() > 0
    assert set(counted) == {1}


@pytest.mark.slow
@both_recipes
def test_a_fit_is_the_same_with_one_thread_and_with_two(quick):
    """Two processes: the number of threads BLAS starts with is the environment's."""
    more = {"weight_steps": 2, "task_steps": 2} if quick["recipe"] == "paper" else {}
    code = (
        "import numpy as np; from precisionnet import PNNRegressor; rng = np.random.default_rng(0);"
        "X = rng.normal(size=(1000, 60)) @ rng.normal(size=(60, 60));"
        f"m = PNNRegressor(**{quick | more | {'max_epochs': 1}}).fit(X, X[:, 0]);"
        "print(m.covariance_.tobytes().hex(), m.predict(X[:5]).tobytes().hex())"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n},
            capture_output=True, text=True, check=True,
        ).stdout
        for n in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("counts", "fraction", "asked"), [((60, 60, 60), 0.35, 63), ((10, 80), 0.7, 63), ((57, 3), 0.25, 15)]
)
def test_validation_gets_what_was_asked_for(counts, fraction, asked):
    y = np.repeat(np.arange(len(counts)), counts).astype(float)
    table = canonical(np.arange(len(y), dtype=float)[:, None], y, np.ones(len(y)))[0]
    training, validation = split_validation(table, fraction, table.y, np.random.RandomState(0))
    assert len(validation) == asked
    assert set(training.y) == set(y)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.name)
def test_the_command_lines_sentence_and_the_estimators_check_agree(parameter):
    for value in (-1, 0, 1, 2, 0.5, 10**7, 1.5, float("nan"), float("inf"), "magic", None, True):
        refused = parameter.complaint(value) is not None
        model = PNNRegressor(**{parameter.name: value})
        if refused:
            with pytest.raises(InputError, match=parameter.name):
                _ = model.settings
        elif not parameter.needs:
            assert getattr(model.settings, parameter.name) in (value, parameter.default)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"recipe": "paper", "batch_size": 7, "input_noise": 3.0}, ["batch_size", "input_noise", "recipe"]),
        ({"weight_steps": 3}, ["weight_steps", "recipe"]),
        ({"method": "vnn", "coupling": 3.0}, ["coupling", "method"]),
        ({"method": "glasso", "predict_on": "sparse"}, ["predict_on", "method"]),
        ({"l1_penalty": 0.1, "l1_scale": 2.0}, ["l1_scale", "l1_penalty"]),
        ({"readout": "average", "readout_width": 7}, ["readout_width", "readout"]),
        ({"network": lambda n, k: None, "n_layers": 2}, ["n_layers", "network"]),
    ],
)
def test_a_parameter_without_effect_is_refused_with_its_reason(gaussian, given, names):
    with pytest.raises(InputError, match="no effect") as caught:
        PNNRegressor(**given).fit(gaussian.X, gaussian.y)
    assert all(name in str(caught.value) for name in names)
    with pytest.raises(InputError, match="loss='huber' has no effect with a classification"):
        PNNClassifier(loss="huber").fit(gaussian.X, gaussian.y > 0)


@pytest.mark.parametrize("given", [{"coupling": 1e300}, {"ridge": 1e300}, {"spectral_bound": 1e-300}])
def test_absurd_sizes_get_a_sentence(gaussian, given):
    with pytest.raises(InputError, match=next(iter(given))):
        PNNRegressor(**given).fit(gaussian.X, gaussian.y)
    with pytest.raises(ValueError, match="[Cc]omplex"):
        PNNRegressor().fit(gaussian.X.to_numpy() * 1j, gaussian.y)


@pytest.mark.parametrize("strata", [False, True])
def test_rows_of_one_group_are_on_one_side_of_the_validation_split(strata):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(float)
    people = np.array([f"p{i}" for i in rng.integers(0, 60, 200)])
    table = canonical(rng.normal(size=(200, 3)), y, np.ones(200), group_codes(people, 200))[0]
    training, validation = split_validation(table, 0.25, table.y if strata else None, np.random.RandomState(0))
    assert not set(training.group) & set(validation.group)
    assert len(training) + len(validation) == 200
    assert len(validation) == pytest.approx(50, abs=8)


@both_recipes
def test_groups_of_one_change_nothing_and_the_order_of_the_rows_neither(gaussian, quick):
    def fitted(X, y, groups=None):
        return PNNRegressor(**quick).fit(X, y, groups=groups).predict(gaussian.X)

    plain = fitted(gaussian.X, gaussian.y)
    np.testing.assert_array_equal(plain, fitted(gaussian.X, gaussian.y, range(120)))
    pairs = np.arange(120) // 2
    order = np.random.default_rng(0).permutation(120)
    shuffled = fitted(gaussian.X.iloc[order], gaussian.y.iloc[order], pairs[order])
    np.testing.assert_array_equal(shuffled, fitted(gaussian.X, gaussian.y, pairs))
    assert not np.array_equal(plain, shuffled)


def test_bad_groups_are_refused(gaussian):
    with pytest.raises(InputError, match="groups has 3 labels for 120 rows"):
        PNNRegressor().fit(gaussian.X, gaussian.y, groups=[1, 2, 3])
    with pytest.raises(InputError, match="no label for 1 of 120 rows"):
        PNNRegressor().fit(gaussian.X, gaussian.y, groups=[None, *range(119)])


def test_people_who_share_a_row_are_one_group():
    values = np.array([[1.0, 1], [2, 2], [1, 1], [3, 3], [4, 4]])
    table = canonical(values, np.zeros(5), np.ones(5), np.array([0, 0, 1, 1, 2]))[0]
    assert len(table) == 4
    assert len(set(table.group)) == 2
