"""The age bias: what the corrections find, what they refuse, and that a row never corrects itself."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.errors import InputError
from precisionnet.gap.correction import KINDS, NONE, cross_fit, fit_correction, natural_spline


@pytest.fixture
def biased(rng):
    """Predictions that lean towards the mean, with noise."""
    age = rng.uniform(10, 80, 400)
    return 20.0 + 0.6 * age + 5.0 * rng.standard_normal(400), age


def test_scaled_finds_a_shift_and_subtractive_b_times_it(biased):
    prediction, age = biased
    by_kind = {kind: fit_correction(kind, prediction, age) for kind in ("scaled", "subtractive")}
    slope = by_kind["scaled"].slope
    older = 20.0 + 0.6 * (age + 3.0) + (prediction - 20.0 - 0.6 * age)  # the same people with brains three years ahead
    found = {kind: float(np.mean(one.gap(older, age) - one.gap(prediction, age))) for kind, one in by_kind.items()}
    assert found["scaled"] == pytest.approx(3.0 * 0.6 / slope)
    assert found["subtractive"] == pytest.approx(3.0 * 0.6)
    np.testing.assert_allclose(by_kind["subtractive"].gap(older, age), slope * by_kind["scaled"].gap(older, age))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_goes_with_age_any_more(biased, kind):
    prediction, age = biased
    assert np.corrcoef(prediction - age, age)[0, 1] < -0.5
    assert abs(np.corrcoef(fit_correction(kind, prediction, age).gap(prediction, age), age)[0, 1]) < 0.02


def test_smooth_is_nearly_zero_at_every_age_where_the_bias_is_curved(rng):
    age = rng.uniform(10, 80, 3000)
    prediction = 30.0 * np.log(age) + rng.standard_normal(3000)
    mean = {}
    for kind in ("scaled", "smooth"):
        gap = fit_correction(kind, prediction, age).gap(prediction, age)
        mean[kind] = max(abs(gap[(age > low) & (age <= low + 14)].mean()) for low in range(10, 80, 14))
    assert mean["smooth"] < 1.0 < 4.0 < mean["scaled"]


def test_the_spline_is_linear_outside_its_knots_and_its_slopes_are_its_derivative():
    spline = natural_spline(np.linspace(0.0, 100.0, 101))
    x = np.array([-50.0, -20.0, 3.0, 40.0, 77.0, 120.0, 150.0])
    step = 1e-4
    numeric = (spline.terms(x + step) - spline.terms(x - step)) / (2 * step)
    np.testing.assert_allclose(spline.slopes(x), numeric, rtol=1e-5, atol=1e-6)
    outside = spline.slopes(np.array([100.0, 120.0, 300.0]))
    np.testing.assert_allclose(outside, np.repeat(outside[:1], 3, axis=0), atol=1e-9)


@pytest.mark.parametrize(("slope", "noise"), [(0.02, 0.5), (0.5, 200.0), (-0.5, 1.0)], ids=["flat", "noise", "falling"])
def test_a_slope_near_zero_is_refused(rng, slope, noise):
    age = rng.uniform(20, 80, 100)
    prediction = 50.0 + slope * age + noise * rng.standard_normal(100)
    for kind in KINDS:
        with pytest.raises(InputError, match="hardly rise with the target"):
            fit_correction(kind, prediction, age)
    fit_correction(NONE, prediction, age)


def test_the_smooth_one_is_refused_where_predictions_stop_rising(rng):
    age = rng.uniform(10, 80, 500)
    prediction = np.minimum(age, 40.0) + rng.standard_normal(500)
    fit_correction("scaled", prediction, age)
    with pytest.raises(InputError, match="stop rising with the target near"):
        fit_correction("smooth", prediction, age)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_never_takes_part_in_its_own_correction(biased, kind):
    """Rows changed in one fold leave the correction of that fold as it is, to the last bit."""
    prediction, age = biased
    fold = np.arange(len(age)) % 5
    changed = np.where(fold == 2, prediction[::-1] + 7.0, prediction)
    before, after = (cross_fit(kind, p, age, fold, 5) for p in (prediction, changed))
    for k in range(5):
        a, b = before.corrections[k], after.corrections[k]
        same = (a.intercept, a.slope) == (b.intercept, b.slope) and np.array_equal(a.weights, b.weights)
        assert same == (k == 2)
        assert np.array_equal(before.sizes[k], after.sizes[k]) == (k == 2)


def test_reach_counts_as_conformal_prediction_does(rng):
    age = rng.uniform(20, 80, 100)
    fitted = cross_fit(NONE, age + rng.standard_normal(100), age, np.arange(100) % 2, 2)
    assert fitted.reach(0.9)[0] == fitted.sizes[0][int(np.ceil(0.9 * 51)) - 1]
    with pytest.raises(InputError, match="need 99 rows outside each fold, and there are 50"):
        fitted.reach(0.99)


def test_rows_of_one_person_count_as_one_for_the_error_of_the_slope(rng):
    n, held = 60, {True: 0, False: 0}
    person = np.repeat(np.arange(n), 4)
    for _ in range(200):
        age = rng.uniform(20, 80, n)[person]
        prediction = 10 + 0.6 * age + rng.normal(scale=8.0, size=n)[person] + rng.normal(size=4 * n)
        for by_person in held:
            found = fit_correction("scaled", prediction, age, person if by_person else None)
            held[by_person] += abs(found.slope - 0.6) < 1.96 * found.slope_error
    assert held[True] >= 0.9 * 200
    assert held[False] < 0.8 * 200
