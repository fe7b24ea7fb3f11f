"""Out-of-bag errors and prediction intervals: aligned with the rows given, right by hand, and honest on held-out rows."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.datasets import make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.estimators.intervals import Calibration

# One shape of network: after three epochs members of two shapes still disagree so much that intervals are too wide.
QUICK = {"max_epochs": 3, "n_filters": 4, "readout": "mean", "random_state": 0}


def member_predictions(model, X):
    """Each network's predictions in the target's units, (members, rows)."""
    return model.fitted.outputs(np.asarray(X), lambda output: model.fitted.target.meaning(output).T).T


@pytest.fixture(scope="module")
def model(gaussian):
    return PNNRegressor(**QUICK).fit(gaussian.X, gaussian.y)


@pytest.fixture(scope="module")
def many():
    """1,000 rows to fit and 3,000 to count how many intervals hold their target: by chance alone it varies by 1 %."""
    data = make_gaussian_regression(n_samples=4000, n_features=6, sparsity=0.3, random_state=0)
    return data.X[:1000], data.y[:1000], data.X[1000:], data.y[1000:].to_numpy()


def share_inside(interval, y) -> float:
    return float(((interval[:, 0] <= y) & (y <= interval[:, 1])).mean())


@pytest.mark.parametrize(
    "how", [{}, {"recipe": "paper", "validation_fraction": 0.5}, {"n_members": 1, "validation_fraction": 0.5}]
)
def test_intervals_hold_as_many_new_targets_as_they_say(many, how):
    X, y, X_new, y_new = many
    model = PNNRegressor(**QUICK | how).fit(X, y)
    assert 0.92 <= share_inside(model.predict_interval(X_new), y_new) <= 0.98
    assert 0.76 <= share_inside(model.predict_interval(X_new, coverage=0.8), y_new) <= 0.84


def test_the_standard_deviation_is_that_of_the_errors(many):
    X, y, X_new, y_new = many
    model = PNNRegressor(**QUICK).fit(X, y)
    prediction, std = model.predict(X_new, return_std=True)
    np.testing.assert_array_equal(prediction, model.predict(X_new))
    assert 0.85 < ((y_new - prediction) / std).std() < 1.15
    assert model.oob_mae_ == pytest.approx(np.abs(y_new - prediction).mean(), rel=0.15)

    members = member_predictions(model, X_new)
    noise = np.mean((y - model.oob_prediction_) ** 2)
    np.testing.assert_allclose(std, np.sqrt(members.var(axis=0) + noise))


def plain(fold, residual, weight=None):
    """A calibration whose spread is 1 everywhere."""
    return Calibration(fold, residual, np.ones(len(fold)) if weight is None else weight, np.ones(len(fold)))


def by_hand(predictions, calibration, coverage, spread=1.0):
    """The formula of the module, with every row of weight w written down w times."""
    fold, relative = (
        np.repeat(v, calibration.weight.astype(int))
        for v in (calibration.fold, calibration.residual / calibration.spread)
    )
    reach = (np.broadcast_to(spread, predictions.shape)[fold].T) * relative
    lower, upper = np.sort(predictions[fold].T - reach), np.sort(predictions[fold].T + reach)
    last = int(np.ceil(round(coverage * (len(fold) + 1), 9)))
    return np.column_stack([lower[:, len(fold) - last], upper[:, last - 1]])


def test_cv_plus_by_hand():
    calibration = plain(np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 2.0, 4.0]))
    # With n = 4 and coverage 0.8: the first of mu - R, the fourth of mu + R.
    interval = calibration.interval(np.array([[10.0], [20.0]]), 0.8)
    np.testing.assert_allclose(interval, [[7.0, 24.0]])
    # Coverage 0.6: the second of {7, 9, 16, 18} and the third of {11, 13, 22, 24}.
    np.testing.assert_allclose(calibration.interval(np.array([[10.0], [20.0]]), 0.6), [[9.0, 22.0]])


def test_cv_plus_is_the_sorted_sums(rng):
    for n_folds, n in ((1, 30), (3, 19), (8, 200)):
        weight = rng.integers(1, 4, n).astype(float)
        calibration = plain(rng.integers(0, n_folds, n), rng.exponential(size=n), weight)
        predictions = 5 * rng.normal(size=(n_folds, 40))
        for coverage in (0.5, 0.8, 0.9, 0.95):
            expected = by_hand(predictions, calibration, coverage)
            np.testing.assert_allclose(calibration.interval(predictions, coverage), expected, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Fixed:
    """A spread that is known."""

    spread: np.ndarray

    def at(self, predictions, columns):
        return self.spread


def test_normalised_cv_plus_is_the_sorted_sums(rng):
    weight = rng.integers(1, 4, 200).astype(float)
    fold, spread = rng.integers(0, 4, 200), rng.exponential(size=(4, 40)) + 0.1
    calibration = Calibration(fold, rng.exponential(size=200), weight, rng.exponential(size=200) + 0.1, Fixed(spread))
    predictions = 5 * rng.normal(size=(4, 40))
    for coverage in (0.5, 0.8, 0.95):
        expected = by_hand(predictions, calibration, coverage, spread)
        made = calibration.interval(predictions, coverage, np.empty((40, 0)))
        np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


# CrossConformalRegressor(method="plus", cv=PredefinedSplit(fold)) of MAPIE 1.6.0 on y / s(x), its ends times s(x).
MAPIE = {
    ("one", 0.8): [[6.905243132042317, 9.666966609173363], [8.500734768929009, 11.3903511359899],
                   [10.096226405815699, 13.074503562348964]],
    ("one", 0.95): [[5.9670708102725545, 10.660305757222885], [7.441336787738731, 12.134571734689061],
                    [8.915602765204907, 13.649948064782052]],
    ("grows", 0.8): [[7.811556639962726, 8.832028566257232], [8.281559329858917, 11.342975108742436],
                     [8.751562019755106, 13.85392165122764]],
    ("grows", 0.95): [[7.547307461399457, 9.067214120877676], [7.527376749824027, 12.406847322730679],
                      [7.494591053030291, 15.74954002916149]],
}  # fmt: skip


@pytest.mark.parametrize(("how", "coverage"), list(MAPIE))
def test_it_agrees_with_mapie(how, coverage):
    """0.7 of least squares and 0.3 of the mean in four folds; weights and spread are held fixed."""
    i = np.arange(40.0)
    X = np.column_stack([np.sin(i), np.cos(3 * i)])
    y = 10 + 2 * X[:, 0] - X[:, 1] + (1 + X[:, 0]) * np.sin(7 * i**1.3)
    new = np.column_stack([np.linspace(-1, 1, 5), np.linspace(0.5, -0.5, 5)])[::2]
    fold = np.arange(40) % 4

    def spread(rows):
        return 1.5 + rows[:, 0] if how == "grows" else np.ones(len(rows))

    def predicted(left_out, rows):
        kept = fold != left_out
        design, at = (np.column_stack([np.ones(len(v)), v]) for v in (X[kept], rows))
        return 0.7 * at @ np.linalg.lstsq(design, y[kept], rcond=None)[0] + 0.3 * y[kept].mean()

    own = np.array([predicted(k, row[None])[0] for k, row in zip(fold, X, strict=True)])
    known = Fixed(np.tile(spread(new), (4, 1)))
    calibration = Calibration(fold, np.abs(y - own), np.ones(40), spread(X), known)
    made = calibration.interval(np.stack([predicted(k, new) for k in range(4)]), coverage, new)
    np.testing.assert_allclose(made, MAPIE[how, coverage], rtol=1e-10)


def test_a_calibration_with_whole_ties_and_no_error_at_all():
    calibration = plain(np.zeros(30, dtype=int), np.zeros(30))
    np.testing.assert_array_equal(calibration.interval(np.array([[0.0, -2.5]]), 0.9), [[0.0, 0.0], [-2.5, -2.5]])


def test_memory_does_not_grow_with_rows_times_residuals(rng):
    calibration = plain(np.arange(20_000) % 4, rng.exponential(size=20_000))
    predictions = rng.normal(size=(4, 8000))
    tracemalloc.start()
    calibration.interval(predictions, 0.95)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # all sums would take 1.3e9


def test_what_is_out_of_bag_is_what_the_member_that_left_it_out_says(gaussian, model):
    members = member_predictions(model, gaussian.X)
    assert np.isfinite(model.oob_prediction_).all()
    nearest = np.abs(members - model.oob_prediction_).min(axis=0)
    np.testing.assert_allclose(nearest, 0.0, atol=1e-12)
    who = np.abs(members - model.oob_prediction_).argmin(axis=0)
    assert np.bincount(who).tolist() == [15] * 8
    assert model.oob_mae_ == pytest.approx(np.abs(gaussian.y - model.oob_prediction_).mean())
    assert model.oob_mae_ == pytest.approx(model.history_["validation_metric"][model.best_epoch_ - 1], rel=1e-4)


def test_out_of_bag_values_stand_where_the_rows_stood(gaussian, model):
    order = np.random.default_rng(0).permutation(len(gaussian.X))
    shuffled = PNNRegressor(**QUICK).fit(gaussian.X.iloc[order], gaussian.y.iloc[order])
    np.testing.assert_array_equal(shuffled.oob_prediction_, model.oob_prediction_[order])
    assert shuffled.oob_mae_ == model.oob_mae_


def test_rows_without_weight_have_none_and_repeated_rows_share_theirs(gaussian):
    weight = np.ones(120)
    weight[[3, 50]] = 0.0
    weight[7] = 2.0
    weighted = PNNRegressor(**QUICK).fit(gaussian.X, gaussian.y, sample_weight=weight)
    assert np.flatnonzero(np.isnan(weighted.oob_prediction_)).tolist() == [3, 50]
    rows = np.repeat(np.arange(120), weight.astype(int))
    repeated = PNNRegressor(**QUICK).fit(gaussian.X.iloc[rows], gaussian.y.iloc[rows])
    np.testing.assert_array_equal(repeated.oob_prediction_, weighted.oob_prediction_[rows])
    assert repeated.oob_mae_ == weighted.oob_mae_
    np.testing.assert_array_equal(repeated.predict_interval(gaussian.X), weighted.predict_interval(gaussian.X))


def test_the_classifier_has_probabilities(gaussian, classes):
    weight = np.ones(120)
    weight[5] = 0.0
    model = PNNClassifier(**QUICK).fit(gaussian.X, classes, sample_weight=weight)
    assert model.oob_decision_function_.shape == (120, 3)
    assert np.isnan(model.oob_decision_function_[5]).all()
    known = np.delete(np.arange(120), 5)
    probabilities, true = model.oob_decision_function_[known], classes.iloc[known]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.oob_log_loss_ == pytest.approx(log_loss(true, probabilities))
    assert model.oob_accuracy_ == pytest.approx(accuracy_score(true, model.classes_[probabilities.argmax(axis=1)]))


def test_fewer_members_leave_fewer_rows_out(gaussian):
    model = PNNRegressor(**QUICK, n_members=2).fit(gaussian.X, gaussian.y)
    assert np.isfinite(model.oob_prediction_).sum() == 30
    assert model.predict_interval(gaussian.X[:3]).shape == (3, 2)


def test_a_person_is_left_out_whole(gaussian):
    """Rows of one group are new to the same member: the residuals are honest about new people."""
    groups = np.repeat(np.arange(40), 3)
    model = PNNRegressor(**QUICK).fit(gaussian.X, gaussian.y, groups=groups)
    members = member_predictions(model, gaussian.X)
    who = np.abs(members - model.oob_prediction_).argmin(axis=0).reshape(40, 3)
    assert (who == who[:, :1]).all()


def test_validation_rows_calibrate_a_single_network(gaussian):
    X, y = gaussian.X, gaussian.y
    model = PNNRegressor(**QUICK, recipe="paper").fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    assert np.isnan(model.oob_prediction_).all()
    assert np.isnan(model.oob_mae_)
    off = np.sort(np.abs(y[80:] - model.predict(X[80:])))[37 - 1]  # ceil(0.9 * 41)
    point = model.predict(X[:5])
    np.testing.assert_allclose(model.predict_interval(X[:5], 0.9), np.column_stack([point - off, point + off]))


def test_with_nothing_to_calibrate_on_it_says_what_to_do(gaussian):
    model = PNNRegressor(**QUICK, recipe="paper", validation_fraction=0.0).fit(gaussian.X, gaussian.y)
    for ask in (model.predict_interval, lambda X: model.predict(X, return_std=True)):
        with pytest.raises(InputError, match="validation_fraction above 0, or with X_val and y_val"):
            ask(gaussian.X)
    assert np.isfinite(model.predict(gaussian.X)).all()


def test_a_second_fit_forgets_the_first_ones_errors(gaussian):
    model = PNNRegressor(**QUICK).fit(gaussian.X, gaussian.y)
    model.set_params(recipe="paper", validation_fraction=0.0).fit(gaussian.X, gaussian.y)
    assert np.isnan(model.oob_mae_)
    assert model.calibration_ is None


def test_bad_coverages_are_refused_in_a_sentence(gaussian, model):
    for coverage in (0.0, 0.3, 1.0, 95, np.nan):
        with pytest.raises(InputError, match="at least 0.5 and below 1"):
            model.predict_interval(gaussian.X, coverage)
    with pytest.raises(InputError, match="need 999 rows to be calibrated on, and this model has 120: ask for less"):
        model.predict_interval(gaussian.X, 0.999)
    assert model.predict_interval(gaussian.X[:2], 119 / 120).shape == (2, 2)
    few = plain(np.zeros(9, dtype=int), np.arange(9.0))
    assert few.interval(np.zeros((1, 1)), 0.9).tolist() == [[-8.0, 8.0]]
    with pytest.raises(InputError, match="need 19 rows"):
        few.interval(np.zeros((1, 1)), 0.95)


def test_an_unfitted_model_says_so(gaussian):
    with pytest.raises(ValueError, match="not fitted"):
        PNNRegressor().predict_interval(gaussian.X)


def test_an_interval_without_a_possible_target_keeps_half_its_width():
    calibration = Calibration(
        fold=np.zeros(40, dtype=np.intp),
        residual=np.linspace(0.1, 2.0, 40),
        weight=np.ones(40),
        spread=np.ones(40),
        model=None,
        limits=(0.0, np.inf),
    )
    near, far = calibration.interval(np.array([[0.5, -200.0]]), 0.9)
    assert near[0] == 0.0 < near[1]
    assert far[0] == 0.0
    assert far[1] == pytest.approx(near[1] - 0.5)


def test_more_coverage_is_never_a_shorter_interval():
    rng = np.random.default_rng(0)
    calibration = Calibration(
        fold=np.arange(60) % 3,
        residual=rng.exponential(size=60),
        weight=np.ones(60),
        spread=np.ones(60),
        model=None,
        limits=(0.0, 1.0),
    )
    predictions = np.linspace(-4.0, 5.0, 200) + rng.normal(scale=0.1, size=(3, 200))
    found = [calibration.interval(predictions, coverage) for coverage in np.linspace(0.5, 0.98, 25)]
    for inner, outer in itertools.pairwise(found):
        assert (outer[:, 0] <= inner[:, 0]).all()
        assert (outer[:, 1] >= inner[:, 1]).all()
    assert min(one.min() for one in found) == 0.0
    assert max(one.max() for one in found) == 1.0
    assert (found[-1][:, 1] > found[-1][:, 0]).all()
