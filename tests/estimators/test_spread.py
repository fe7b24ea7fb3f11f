"""Intervals that adapt: narrow where errors are small, right at every prediction, as before where nothing is to be learned."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet import PNNRegressor, load
from precisionnet.errors import ModelFileError
from precisionnet.estimators.files import FILE_NAME, packed, unpacked
from precisionnet.estimators.intervals import Calibration, calibrate, target_limits
from precisionnet.estimators.spread import fit_spread

N_FOLDS, N_COLUMNS, N_NEW = 4, 8, 4000

SPREADS = {
    "one size": lambda X, f: np.ones(len(X)),
    "with the prediction": lambda X, f: np.exp(0.9 * f / f.std()),
    "with a column": lambda X, f: np.exp(0.9 * X[:, -1]),
    "two regions": lambda X, f: np.where(X[:, -1] > 0.5, 1.5, 0.25),
}
NOISE = {"normal": lambda rng, n: rng.normal(size=n), "heavy": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3)}


class Draw:
    """A linear truth whose errors have a known spread, least squares in four folds, and what they say of new rows."""

    def __init__(self, how, n=800, seed=0, noise="normal"):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + N_NEW, N_COLUMNS))
        f = X[:, :4] @ np.array([1.0, -0.8, 0.6, 0.4])
        y = f + 0.7 * SPREADS[how](X, f) * NOISE[noise](rng, len(f))
        self.X, self.y, self.new, self.y_new = X[:n], y[:n], X[n:], y[n:]
        self.fold = rng.permutation(n) % N_FOLDS
        slopes = [
            np.linalg.lstsq(self.X[self.fold != k], self.y[self.fold != k], rcond=None)[0] for k in range(N_FOLDS)
        ]
        self.own = np.sum(self.X * np.array(slopes)[self.fold], axis=1)
        self.predictions = np.stack([self.new @ slope for slope in slopes])

    def calibration(self, weight=None):
        weight = np.ones(len(self.y)) if weight is None else weight
        return calibrate(self.fold, self.y, self.own, weight, self.X, N_FOLDS, self.y)

    def spread(self, residual):
        return fit_spread(self.fold, residual, np.ones(len(residual)), self.own, self.X, N_FOLDS)

    def width_and_coverage(self):
        """Mean width against that of a spread of 1; coverage overall; coverage by fifths of the prediction."""
        made = self.calibration()
        ends = made.interval(self.predictions, 0.95, self.new)
        plain = Calibration(made.fold, made.residual, made.weight, np.ones(len(made.fold)))
        before = plain.interval(self.predictions, 0.95)
        inside = (ends[:, 0] <= self.y_new) & (self.y_new <= ends[:, 1])
        by_fifth = inside[np.argsort(self.predictions.mean(axis=0))].reshape(5, -1).mean(axis=1)
        return np.diff(ends).mean() / np.diff(before).mean(), inside.mean(), by_fifth


@pytest.mark.parametrize("how", ["with the prediction", "with a column", "two regions"])
def test_intervals_are_narrower_and_hold_in_every_fifth(how):
    ratios, covered, by_fifth = zip(*(Draw(how, seed=seed).width_and_coverage() for seed in range(3)), strict=True)
    assert np.mean(ratios) <= 0.8
    assert 0.93 <= np.mean(covered) <= 0.975
    assert np.mean(by_fifth, axis=0).min() >= 0.9


@pytest.mark.parametrize("noise", list(NOISE))
@pytest.mark.parametrize("n", [100, 800])
def test_where_errors_have_one_size_nothing_is_lost(n, noise):
    draws = [Draw("one size", n, seed, noise).width_and_coverage() for seed in range(4)]
    ratios, covered, _ = zip(*draws, strict=True)
    assert np.mean(ratios) <= 1.05
    assert sum(ratio == 1.0 for ratio in ratios) >= 3  # it is off, to the bit
    assert 0.93 <= np.mean(covered) <= 0.98


def test_the_spread_of_a_fold_does_not_know_its_own_errors():
    draw = Draw("with a column")
    residual = np.abs(draw.y - draw.own)
    changed = np.where(draw.fold == 2, residual[::-1], residual)
    one, other = draw.spread(residual), draw.spread(changed)
    np.testing.assert_array_equal(one.slopes[2], other.slopes[2])
    np.testing.assert_array_equal(one.bounds[2], other.bounds[2])
    assert not np.array_equal(one.slopes[1], other.slopes[1])


def test_it_finds_the_column_and_stays_within_its_bounds():
    draw = Draw("with a column", 2000)
    made = draw.calibration()
    slopes = np.abs(made.model.slopes[:, 1 : 2 + N_COLUMNS])
    assert (slopes.argmax(axis=1) == N_COLUMNS).all()  # the prediction is the first
    far = made.model.at(np.full((N_FOLDS, 2), 1e6), np.array([[1e6] * N_COLUMNS, [-1e6] * N_COLUMNS]))
    low, high = np.exp(made.model.bounds).T[..., None]
    assert (low * (1 - 1e-12) <= far).all()
    assert (far <= high * (1 + 1e-12)).all()
    np.testing.assert_allclose(made.model.of_rows(draw.fold, draw.own, draw.X), made.spread, rtol=1e-12)
    together = made.model.at(np.tile(draw.own, (N_FOLDS, 1)), draw.X)
    np.testing.assert_allclose(together[draw.fold, np.arange(2000)], made.spread, rtol=1e-12)


def test_a_weight_of_two_is_the_row_twice():
    draw = Draw("with a column", 300)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    weighted = draw.calibration(weight.astype(float))
    for name in ("X", "y", "own", "fold"):
        setattr(draw, name, np.repeat(getattr(draw, name), weight, axis=0))
    repeated = draw.calibration()
    np.testing.assert_allclose(weighted.model.slopes, repeated.model.slopes, rtol=1e-9, atol=1e-12)
    ends = [made.interval(draw.predictions, 0.95, draw.new) for made in (weighted, repeated)]
    np.testing.assert_allclose(*ends, rtol=1e-9)


def test_units_do_not_matter():
    draw = Draw("with the prediction", 400)
    ends = draw.calibration().interval(draw.predictions, 0.95, draw.new)
    draw.X, draw.new = 100 * draw.X - 7, 100 * draw.new - 7
    draw.y, draw.own, draw.predictions = (1000 * v + 5e4 for v in (draw.y, draw.own, draw.predictions))
    np.testing.assert_allclose(
        draw.calibration().interval(draw.predictions, 0.95, draw.new), 1000 * ends + 5e4, rtol=1e-9
    )


def test_too_little_to_learn_from_is_a_spread_of_one():
    assert Draw("with a column", 50).calibration().model is None
    draw = Draw("with a column")
    draw.fold = draw.fold % 2
    assert draw.calibration().model is None  # whose spread would be learned on one fold and judged on none
    assert Draw("one size").spread(np.zeros(800)) is None


@pytest.mark.parametrize(
    ("y", "limits"),
    [
        ([3.0, 80.0, 0.5], (0.0, np.inf)),
        ([0.0, 2.0, 3.0], (0.0, np.inf)),
        ([-1.0, -2.0], (-np.inf, 0.0)),
        ([-1.0, 2.0], (-np.inf, np.inf)),
        ([0.0, 0.0], (-np.inf, np.inf)),
        ([0.0, 0.5, 1.0], (0.0, np.inf)),  # one at each end: these rows may have been scaled so
        ([0.0, 0.0, 0.5, 1.0, 1.0], (0.0, 1.0)),
        ([0.0, 0.0, 100.0, 100.0], (0.0, np.inf)),
    ],
)
def test_what_a_target_can_be(y, limits):
    assert target_limits(np.array(y)) == limits


def test_ends_stay_within_what_the_target_can_be():
    fold, ones = np.arange(40) % 4, np.ones(40)
    predictions = np.tile([-9.0, 0.5, 1.0], (4, 1))
    made = Calibration(fold, 0.75 * ones, ones, ones, None, (0.0, 1.0)).interval(predictions, 0.9)
    np.testing.assert_allclose(made, [[0.0, 0.75], [0.0, 1.0], [0.25, 1.0]])


@pytest.fixture(scope="module")
def adapted():
    """A model of an age whose error grows with it, and new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    f = X @ np.array([1.0, -0.8, 0.6, 0.0, 0.0, 0.0])
    age = np.maximum(20 + 10 * f + 4 * np.exp(0.9 * f) * rng.normal(size=3000), 0.0)
    model = PNNRegressor(max_epochs=10, n_filters=4, readout="mean", random_state=0).fit(X[:600], age[:600])
    return model, X[600:], age[600:]


def test_a_model_whose_error_grows_with_the_prediction(adapted):
    model, X, age = adapted
    low, high = model.predict_interval(X).T
    assert model.calibration_.model is not None
    assert low.min() == 0.0
    inside = (low <= age) & (age <= high)
    order = np.argsort(model.predict(X))
    assert 0.93 <= inside.mean() <= 0.98
    assert inside[order].reshape(5, -1).mean(axis=1).min() >= 0.88
    width = (high - low)[order].reshape(5, -1).mean(axis=1)
    assert width[-1] > 2 * width[1]


def test_rows_are_predicted_alike_alone_and_together(adapted):
    model, X, _ = adapted
    together = model.predict_interval(np.tile(X, (4, 1)))  # more than are taken at once
    np.testing.assert_allclose(together[: len(X)], together[-len(X) :], rtol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X[:1]), together[:1], rtol=1e-10)


def test_it_is_saved(adapted, tmp_path):
    model, X, _ = adapted
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("calibration.limits", lambda v: v[:1]),
        ("calibration.limits", lambda v: v + 5.0),
        ("calibration.limits", lambda v: v.flip(0)),
        ("calibration.limits", None),
        ("calibration.spread", lambda v: v * 0.0),
        ("calibration.spread", lambda v: -v),
        ("calibration.spread", lambda v: v * 1e200),
        ("calibration.spread", lambda v: v[1:]),
        ("calibration.spread", lambda v: v * np.nan),
        ("calibration.spread", None),
        ("spread.slopes", lambda v: v * np.inf),
        ("spread.slopes", lambda v: v * 1e290),
        ("spread.slopes", lambda v: v[:, 1:]),
        ("spread.slopes", lambda v: v[1:]),
        ("spread.slopes", None),
        ("spread.bounds", lambda v: v.flip(1)),
        ("spread.bounds", lambda v: v * 1e3),
        ("spread.bounds", None),
        ("spread.scaler.scale", lambda v: v * 0.0),
        ("spread.scaler.mean", lambda v: v[1:]),
    ],
)
def test_a_spread_that_cannot_be_is_refused(adapted, tmp_path, name, change):
    adapted[0].save(tmp_path)
    path = tmp_path / FILE_NAME
    document, tensors = unpacked(path.read_bytes())
    tensor = tensors.pop(name)
    if change is not None:
        tensors[name] = change(tensor).contiguous()
    path.write_bytes(packed(document, tensors))
    with pytest.raises(ModelFileError, match="contradicts itself"):
        load(tmp_path)
