"""Missing values: refused by column, or, when asked, the training rows' medians in their place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators.rows import canonical, medians, split_validation
from tests.estimators.test_fit import LEARNS, SPLIT, same_fit
from tests.recipes import QUICK, both_recipes, of_method

MEDIAN = QUICK["standard"] | {"missing": "median"}


@pytest.fixture(scope="module")
def holes(gaussian) -> pd.DataFrame:
    """A tenth of the cells is missing, in every column but the first."""
    gone = np.random.default_rng(1).random(gaussian.X.shape) < 0.1
    gone[:, 0] = False
    return gaussian.X.mask(gone)


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
@both_recipes
def test_by_default_they_are_refused_by_column_with_both_remedies(gaussian, quick, classes, holes, kind):
    y = gaussian.y if kind is PNNRegressor else classes
    with pytest.raises(InputError, match=r"NaN in \d+ of 120 rows \(column 'x1'.*missing='median'"):
        kind(**quick).fit(holes, y)
    with pytest.raises(InputError, match=r"NaN in \d+ of 120 rows \(column 'x1'.*missing='median'"):
        kind(**quick).fit(gaussian.X, y).predict(holes)


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
@both_recipes
def test_when_asked_medians_of_the_training_rows_take_their_place(gaussian, quick, classes, holes, kind):
    y = gaussian.y if kind is PNNRegressor else classes
    model = kind(**quick | LEARNS[quick["recipe"]], missing="median").fit(holes, y)
    np.testing.assert_array_equal(model.n_missing_, holes.isna().sum())
    by_hand = holes.fillna(dict(zip(holes.columns, model.medians_, strict=True)))
    np.testing.assert_array_equal(model.predict(holes), model.predict(by_hand))
    nothing = pd.DataFrame(np.nan, index=range(2), columns=holes.columns)
    np.testing.assert_array_equal(model.predict(nothing), model.predict(nothing.fillna(0) + model.medians_))
    assert model.score(holes, y) > (0.3 if quick["recipe"] == "standard" else 0.0)


@both_recipes
def test_the_medians_are_those_of_the_training_rows_alone(gaussian, quick, holes):
    values, y = holes.to_numpy(), gaussian.y.to_numpy()
    table = canonical(values, y, np.ones(len(values)))[0]
    training, validation = split_validation(table, 0.25, None, np.random.RandomState(0))
    model = PNNRegressor(**of_method("glasso", quick) | SPLIT, missing="median").fit(values, y)
    np.testing.assert_array_equal(model.medians_, np.nanmedian(training.X, axis=0))
    far = values.copy()
    far[np.isin(values[:, 0], validation.X[:, 0]), 1:] += 1e6  # the rows are sorted by the first column
    blown = PNNRegressor(**of_method("glasso", quick) | SPLIT, missing="median").fit(far, y)
    np.testing.assert_array_equal(model.medians_, blown.medians_)
    np.testing.assert_array_equal(model.precision_, blown.precision_)


@both_recipes
def test_without_missing_values_the_fit_is_the_same(gaussian, quick):
    plain, asked = (PNNRegressor(**kw).fit(gaussian.X, gaussian.y) for kw in (quick, quick | {"missing": "median"}))
    assert same_fit(plain, asked)
    assert plain.medians_ is None
    assert not asked.n_missing_.any()


@both_recipes
def test_a_column_may_be_missing_only_in_new_rows(gaussian, quick):
    model = PNNRegressor(**quick, missing="median").fit(gaussian.X, gaussian.y)
    new = gaussian.X.iloc[:5].assign(x3=np.nan)
    np.testing.assert_array_equal(model.predict(new), model.predict(new.assign(x3=model.medians_[3])))


@both_recipes
def test_weights_count_rows_and_their_order_does_not_matter(gaussian, quick, holes):
    X, y = holes.to_numpy(), gaussian.y.to_numpy()
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = PNNRegressor(**quick, missing="median").fit(X, y, sample_weight=weight)
    repeated = PNNRegressor(**quick, missing="median").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert same_fit(weighted, repeated)
    order = np.random.default_rng(0).permutation(len(X))
    assert same_fit(
        PNNRegressor(**quick, missing="median").fit(X, y),
        PNNRegressor(**quick, missing="median").fit(X[order], y[order]),
    )


def test_equal_rows_with_missing_values_are_one_row():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [np.nan, 2.0], [1.0, 0.0]])
    table = canonical(X, np.zeros(4), np.ones(4))[0]
    np.testing.assert_array_equal(table.X, [[1.0, 0.0], [1.0, np.nan], [np.nan, 2.0]])
    np.testing.assert_array_equal(table.weight, [1, 2, 1])


def test_a_weighted_median_is_that_of_the_repeated_values(rng):
    for _ in range(200):
        values, weight = rng.integers(0, 5, 7).astype(float), rng.integers(1, 4, 7)
        assert medians(values[:, None], weight.astype(float))[0] == np.median(np.repeat(values, weight))


def test_nullable_columns_and_none_are_missing_too(gaussian, holes):
    model = PNNRegressor(**MEDIAN).fit(holes, gaussian.y)
    for other in (holes.astype("Float64"), holes.astype(object).where(holes.notna(), None)):
        assert same_fit(model, PNNRegressor(**MEDIAN).fit(other, gaussian.y))
        np.testing.assert_array_equal(model.predict(other), model.predict(holes))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X: X.assign(x2=np.nan), r"Column 'x2' is missing \(NaN\) in all \d+ training rows: .* drop it"),
        (lambda X: X.assign(x2=X.x2.fillna(np.inf)), r"infinity in \d+ of 120 rows \(column 'x2'"),
    ],
)
@both_recipes
def test_what_no_median_can_mend_is_refused(gaussian, quick, holes, change, sentence):
    model = PNNRegressor(**quick, missing="median")
    with pytest.raises(InputError, match=sentence):
        model.fit(change(holes), gaussian.y)
    assert not hasattr(model, "n_missing_")


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="missing must be one of error, median, indicator, got 'mean'"):
        PNNRegressor(missing="mean").fit(np.eye(9), np.arange(9))


@both_recipes
def test_what_was_fitted_counts_not_what_was_set_later(gaussian, quick, holes):
    model = PNNRegressor(**quick, missing="median").fit(holes, gaussian.y)
    before = model.predict(holes)
    np.testing.assert_array_equal(model.set_params(missing="error").predict(holes), before)
    model.fit(gaussian.X, gaussian.y)
    assert model.medians_ is None
    with pytest.raises(InputError, match="NaN"):
        model.set_params(missing="median").predict(holes)


@both_recipes
def test_it_cross_validates(gaussian, quick, holes):
    model = PNNRegressor(**LEARNS[quick["recipe"]], missing="median", random_state=0)
    assert cross_val_score(model, holes, gaussian.y, cv=2, error_score="raise").mean() > 0.3
    assert clone(model).missing == "median"


def test_scikit_learn_is_told():
    assert not get_tags(PNNRegressor()).input_tags.allow_nan
    assert get_tags(PNNRegressor(missing="median")).input_tags.allow_nan
    assert get_tags(PNNClassifier(missing="median")).input_tags.allow_nan


@both_recipes
def test_save_load_predict_is_bit_identical(gaussian, quick, holes, tmp_path):
    model = PNNRegressor(**quick, missing="median").fit(holes, gaussian.y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.medians_, model.medians_)
    np.testing.assert_array_equal(again.n_missing_, model.n_missing_)
    assert again.n_missing_.dtype == model.n_missing_.dtype
    np.testing.assert_array_equal(again.predict(holes), model.predict(holes))
