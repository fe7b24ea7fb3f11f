"""Rows like the training rows raise no alarm; other units, means and correlations do, with their size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators.reference import distances
from precisionnet.evaluation import compare_rows, recalibrate

COLUMNS = [f"region {i}" for i in range(12)]
MIXING = np.random.default_rng(9).normal(size=(12, 12)) * 0.4 + np.eye(12) + 0.5


def thickness(n: int, seed: int) -> pd.DataFrame:
    """Correlated columns around 2.5 with a standard deviation of 0.2, as thickness in mm has."""
    z = np.random.default_rng(seed).normal(size=(n, 12)) @ MIXING
    return pd.DataFrame(2.5 + 0.2 * z / np.sqrt((MIXING**2).sum(axis=0)), columns=COLUMNS)


@pytest.fixture(scope="module")
def model():
    X = thickness(150, 0)
    age = 50 - 60 * (X.mean(axis=1) - 2.5) + np.random.default_rng(1).normal(size=150)
    return PNNRegressor(n_members=2, max_epochs=3, random_state=0).fit(X, age.rename("age"))


DRAWS = [(40, 1), pytest.param(200, 3, marks=pytest.mark.slow)]
"""How many tables are drawn, and how many of them may be called shifted."""


@pytest.mark.parametrize(("draws", "most"), DRAWS)
@pytest.mark.parametrize("n", [1, 10, 100])
def test_rows_of_the_same_kind_raise_no_alarm(model, n, draws, most):
    alarms = [compare_rows(model, thickness(n, 100 + seed)).shifted for seed in range(draws)]
    assert sum(alarms) <= most


def test_the_size_is_that_of_the_shift(model):
    X = thickness(300, 5)
    moved = X + 0.3  # 1.5 standard deviations
    shift = compare_rows(model, moved)
    assert shift.shifted
    assert shift.size == pytest.approx(1.5, abs=0.25)
    assert "not like those that the model learned from: columns lie 1." in shift.sentence()
    assert compare_rows(model, X).sentence() == ""


def test_columns_that_go_together_otherwise_are_seen_although_no_mean_has_moved(model):
    X = thickness(200, 6)
    mixed = X.apply(
        lambda column: np.random.default_rng(len(column.name) + int(column.iloc[0] * 1e6)).permutation(column)
    )
    shift = compare_rows(model, mixed)
    assert shift.size < 0.3
    assert shift.share_far > 0.2
    assert shift.shifted
    assert "further off than 99 % of the training rows" in shift.sentence()


@pytest.mark.parametrize(
    ("factor", "words"), [(0.1, "10 times smaller"), (1000.0, "1,000 times larger"), (1 / 2.54, "2.54 times smaller")]
)
def test_another_unit_is_named_with_its_factor(model, factor, words):
    sentence = compare_rows(model, thickness(20, 7) * factor).sentence()
    assert f"12 of 12 columns are about {words}" in sentence
    assert "another unit" in sentence
    one = thickness(20, 7)
    one["region 4"] *= factor
    assert f"Column 'region 4' is about {words}" in compare_rows(model, one).sentence()


def test_one_row_from_far_away_is_seen(model):
    row = thickness(1, 8)
    row["region 2"] += 3.0
    shift = compare_rows(model, row)
    assert (shift.shifted, shift.n_extreme) == (True, 1)
    assert "1 row is not like" in shift.sentence()


def test_predictions_outside_the_targets_are_counted(model):
    shift = compare_rows(model, thickness(50, 9) - 0.5)
    predicted, (low, high) = model.predict(thickness(50, 9) - 0.5), shift.target_range
    assert shift.share_outside == pytest.approx(((predicted < low) | (predicted > high)).mean())


def test_what_is_compared_with_comes_with_the_model(model, tmp_path):
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    first, second = (compare_rows(one, thickness(30, 10) + 0.1) for one in (model, again))
    pd.testing.assert_frame_equal(first.columns, second.columns)
    assert (first.share_far, first.p_value, first.target_range) == (
        second.share_far,
        second.p_value,
        second.target_range,
    )


def test_rows_of_which_little_was_measured_are_named():
    X = thickness(120, 0)
    model = PNNRegressor(n_members=2, max_epochs=2, random_state=0, missing="median").fit(X, X.sum(axis=1))
    new = thickness(20, 11).set_axis([f"person {i}" for i in range(20)])
    assert compare_rows(model, new).filled_sentence() == ""
    new.iloc[4, :3], new.iloc[5, :4], new.iloc[6, 1:11] = np.nan, np.nan, np.nan
    shift = compare_rows(model, new)
    assert shift.filled.to_dict() == {"person 6": 10, "person 5": 4}
    for part in ("In 2 of 20 rows", "12 columns", "'person 6' (10), 'person 5' (4).", "Medians", "measure it"):
        assert part in shift.filled_sentence()
    new.iloc[8:, 2:] = np.nan
    assert "'person 8' (10)" in compare_rows(model, new).filled_sentence()
    assert "and 9 more" in compare_rows(model, new).filled_sentence()


@pytest.mark.parametrize("settings", [{"standardize": False}, {"missing": "median"}])
def test_other_settings_and_classes(settings):
    X = thickness(120, 0)
    label = pd.Series(np.where(X.mean(axis=1) > 2.5, "thick", "thin"), name="kind")
    model = PNNClassifier(n_members=2, max_epochs=2, random_state=0, **settings).fit(X, label)
    new = thickness(80, 11)
    if settings.get("missing"):
        new.iloc[::5, 3] = np.nan
    assert not compare_rows(model, new).shifted
    far = compare_rows(model, new + 1.0)
    assert far.shifted
    assert np.isnan(far.share_outside)


def test_the_distance_is_mahalanobis_with_shrunk_correlations():
    C = np.array([[1.0, 0.8], [0.8, 2.0]])
    x = np.array([[0.5, -1.0]])
    S = 0.95 * C + 0.05 * np.diag(np.diag(C))
    expected = np.sqrt(x @ np.linalg.inv(S) @ x.T / 2)
    np.testing.assert_allclose(distances(x, C, 10_000), expected.ravel())


class TestRecalibration:
    def test_an_offset_is_put_right(self):
        rng = np.random.default_rng(0)
        predicted = rng.normal(40, 10, size=30)
        y = predicted - 11.0 + rng.normal(size=30)
        correction = recalibrate(predicted, y)
        assert correction.slope == 1.0
        assert correction.bias.value == pytest.approx(11.0, abs=0.6)
        assert correction.bias.low < correction.bias.value < correction.bias.high
        assert correction.apply(predicted).mean() == pytest.approx(y.mean())

    @pytest.mark.parametrize("slope", [1.0, 0.4])
    def test_errors_are_those_of_a_correction_without_the_row(self, slope):
        rng = np.random.default_rng(1)
        predicted = rng.normal(size=40)
        y = 2.0 + slope * predicted + 0.3 * rng.normal(size=40)
        correction = recalibrate(predicted, y)
        assert (correction.slope == 1.0) == (slope == 1.0)
        for row in range(3):
            others = np.arange(40) != row
            line = np.polyfit(predicted[others], y[others], 1)
            expected = (
                np.polyval(line, predicted[row]) if slope != 1.0 else predicted[row] + (y - predicted)[others].mean()
            )
            assert correction.errors[row] == pytest.approx(y[row] - expected)

    def test_thirty_rows_leave_the_bias_that_they_must(self):
        """The mean absolute error of a mean of 30 is 0.8 standard errors."""
        rng = np.random.default_rng(2)
        left = []
        for _ in range(300):
            predicted = rng.normal(size=1030)
            y = predicted + 5.0 + rng.normal(size=1030)
            left.append(abs((recalibrate(predicted[:30], y[:30]).apply(predicted[30:]) - y[30:]).mean()))
        assert np.mean(left) < 1.25 / np.sqrt(30)

    def test_intervals_hold_what_they_promise(self):
        rng = np.random.default_rng(3)
        held = []
        for _ in range(200):
            predicted = rng.normal(size=230)
            y = predicted + 5.0 + rng.normal(size=230)
            low, high = recalibrate(predicted[:30], y[:30]).interval(predicted[30:], 0.9).T
            held.append(((low <= y[30:]) & (y[30:] <= high)).mean())
        assert 0.89 < np.mean(held) < 0.94

    def test_too_few_rows_are_refused(self):
        with pytest.raises(InputError, match="4 labelled rows cannot correct a model: at least 5"):
            recalibrate(np.arange(4.0), np.arange(4.0))
        with pytest.raises(InputError, match="need 19 labelled rows of the new place, and there are 10"):
            recalibrate(np.arange(10.0), np.arange(10.0)).interval([1.0], 0.95)


def test_of_a_long_table_some_rows_are_looked_at(model, monkeypatch):
    monkeypatch.setattr("precisionnet.evaluation.shift.MOST_ROWS", 50)
    shift = compare_rows(model, thickness(1000, 12) + 0.3)
    assert (shift.n_rows, shift.shifted) == (1000, True)
    assert shift.expected == pytest.approx(np.sqrt(1 / 50 + 1 / 150))


@pytest.fixture(scope="module")
def mixed():
    X = TestMixedTables.table(200, 0)
    y = 10 * X["region 0"] + (X["city"] == "Bergen") + np.random.default_rng(1).normal(size=200)
    return PNNRegressor(n_members=2, max_epochs=3, missing="indicator", random_state=0).fit(X, y.rename("y"))


class TestMixedTables:
    """Labels, rare ones among them, and gaps beside numbers."""

    @staticmethod
    def table(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(1000 + seed)
        return thickness(n, seed)[COLUMNS[:4]].assign(
            city=rng.choice(["Oslo", "Bergen", "Paris", "Rome"], n, p=[0.6, 0.25, 0.13, 0.02]),
            smoker=rng.choice(["yes", "no"], n),
            weight=pd.Series(rng.normal(70, 9, n)).where(rng.random(n) > 0.1),
        )

    @pytest.mark.parametrize(("draws", "most"), DRAWS)
    @pytest.mark.parametrize("n", [1, 10, 100])
    def test_rows_of_the_same_table_raise_no_alarm(self, mixed, n, draws, most):
        alarms = [compare_rows(mixed, self.table(n, 100 + seed)).shifted for seed in range(draws)]
        assert sum(alarms) <= most

    def test_numbers_are_compared_and_another_unit_is_seen(self, mixed):
        X = self.table(60, 7)
        shift = compare_rows(mixed, X)
        assert sorted(shift.columns["column"]) == [*COLUMNS[:4], "weight"]
        assert not shift.shifted
        larger = compare_rows(mixed, X.assign(weight=10 * X["weight"]))
        assert "Column 'weight' is about 10 times larger" in larger.sentence()

    def test_a_gap_among_labels_is_a_level_and_no_median_fills_it(self, mixed):
        X = self.table(10, 7)
        X.loc[2, ["city", "smoker"]] = None
        X.loc[5, [*COLUMNS[:3]]] = np.nan
        assert compare_rows(mixed, X).filled.to_dict() == {5: 3}

    def test_labels_alone_have_no_distance(self):
        X = self.table(80, 3)[["city", "smoker"]]
        y = (X["city"] == "Bergen") + np.random.default_rng(1).normal(size=80)
        model = PNNRegressor(n_members=2, max_epochs=2, random_state=0).fit(X, y.rename("y"))
        shift = compare_rows(model, X)
        assert (shift.shifted, shift.size, len(shift.columns)) == (False, 0.0, 0)


@pytest.mark.parametrize("rows", [4, 200])
def test_a_column_around_zero_that_moves_is_in_no_other_unit(rows):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 6)), columns=list("abcdef"))
    model = PNNRegressor(max_epochs=1, n_members=2, random_state=0).fit(X, X["a"] + 5.0)
    for factor in range(2, 12):
        moved = compare_rows(model, pd.DataFrame(rng.normal(size=(rows, 6)) + factor, columns=list("abcdef")))
        assert not moved.other_unit.any()
    assert moved.shifted


def test_corrected_predictions_stay_within_what_the_target_can_be():
    rng = np.random.default_rng(0)
    predicted = rng.uniform(20.0, 60.0, 40)
    correction = recalibrate(predicted, predicted - 15.0 + rng.normal(size=40), limits=(0.0, np.inf))
    assert correction.apply([5.0]).tolist() == [0.0]
    low, high = correction.interval([5.0], 0.9)[0]
    assert low == 0.0 < high


def test_a_correction_that_turns_predictions_around_is_refused():
    with pytest.raises(InputError, match="falls where predictions rise"):
        recalibrate(np.arange(30.0), -np.arange(30.0) + np.random.default_rng(0).normal(size=30))
    with pytest.raises(InputError, match="missing or infinite"):
        recalibrate(np.arange(30.0), np.full(30, np.nan))
