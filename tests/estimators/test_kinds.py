"""Members of several kinds: what each may weigh, which stay, and that a plain table is solved by the plain kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import load_iris, make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.preprocessing import StandardScaler

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators import combination, training
from precisionnet.estimators.combination import (
    FARTHEST_BEHIND,
    LEAST_WEIGHT,
    SHARPEST,
    _lowest_loss,
    kind_weights,
    sharpness,
)
from precisionnet.estimators.networks import RIDGE_PENALTIES, linear_solutions, solved_network
from precisionnet.estimators.rows import Scaler
from precisionnet.estimators.targets import ClassTarget, NumberTarget
from precisionnet.kinds import EVERY, FEW_ROWS, TRIED_FROM
from precisionnet.parameters import settings_of

RNG = np.random.default_rng(0)


def absolute(output, y, weight):
    return NumberTarget(Scaler(np.zeros(()), np.ones(())), "absolute").task_loss(output, y, weight)


def weighed(outputs, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return kind_weights(np.asarray(outputs)[..., None], torch.from_numpy(y), weight, absolute)


def linear_table(n=60, columns=20):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n + 500, columns)) @ (np.eye(columns) + 0.3 * rng.normal(size=(columns, columns)))
    y = X @ rng.normal(size=columns)
    y += 0.3 * y.std() * rng.normal(size=len(y))
    return X[:n], y[:n], X[n:], y[n:]


class TestWeights:
    def test_they_are_shares(self):
        for n_kinds in (1, 2, 5):
            y = RNG.normal(size=80)
            weights = weighed([y + RNG.normal(size=80) for _ in range(n_kinds)], y)
            assert (weights >= 0).all()
            assert weights.sum() == pytest.approx(1.0, abs=1e-12)

    def test_a_useless_kind_gets_none(self):
        y = RNG.normal(size=400)
        weights = weighed([y + 0.1 * RNG.normal(size=400), 5.0 * RNG.normal(size=400)], y)
        np.testing.assert_array_equal(weights, [1.0, 0.0])

    def test_two_kinds_that_err_apart_share(self):
        y = RNG.normal(size=2000)
        weights = weighed([y + 0.3 * RNG.normal(size=2000), y + 0.3 * RNG.normal(size=2000)], y)
        np.testing.assert_allclose(weights, 0.5, atol=0.06)

    def test_no_other_shares_lose_less(self):
        """The optimum, before weights are dropped or shrink: a grid over the simplex finds none better."""
        y = RNG.normal(size=5000)
        outputs = np.stack([y + RNG.normal(size=y.size), y + 2 * RNG.normal(size=y.size), 0.5 * y])
        tensors = torch.from_numpy(outputs[..., None]), torch.from_numpy(y), torch.ones(len(y))
        weights = _lowest_loss(*tensors, absolute)
        grid = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 21) for b in np.linspace(0, 1, 21) if a + b <= 1]
        best = min(float(np.abs(np.tensordot(w, outputs, axes=1) - y).mean()) for w in grid)
        assert float(np.abs(weights @ outputs - y).mean()) <= best * 1.002

    def test_few_rows_shrink_towards_equal(self):
        few = weighed([np.zeros(4), np.full(4, 0.2)], np.zeros(4))
        kept = few[few > 0]
        assert len(kept) == 1 or abs(kept[0] - 0.5) < 0.5 - LEAST_WEIGHT

    def test_without_rows_all_count_alike(self):
        np.testing.assert_array_equal(weighed(np.empty((3, 0)), np.empty(0)), np.full(3, 1 / 3))

    def test_a_row_of_weight_two_stands_twice(self):
        y = RNG.normal(size=60)
        outputs = np.stack([y + RNG.normal(size=60), y + RNG.normal(size=60)])
        double = weighed(np.concatenate([outputs, outputs], axis=1), np.concatenate([y, y]))
        np.testing.assert_allclose(weighed(outputs, y, np.full(60, 2.0)), double, atol=1e-9)

    def test_a_kind_far_behind_gets_none_however_few_the_rows(self):
        y = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5])
        behind = y - np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
        better = y + np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0]) / (1.05 * FARTHEST_BEHIND)
        np.testing.assert_array_equal(weighed([behind, better], y), [0.0, 1.0])  # half and half would lose next to none

    def test_losses_that_are_no_numbers_count_alike(self):
        np.testing.assert_array_equal(weighed([np.full(4, np.nan), np.full(4, np.nan)], np.zeros(4)), [0.5, 0.5])


def drawn_logits(n, n_classes=3, seed=0):
    """Logits, and classes that are drawn from their probabilities."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, n_classes))
    chances = softmax(logits, axis=1).cumsum(axis=1)
    return torch.from_numpy(logits), torch.from_numpy((rng.random((n, 1)) > chances).sum(axis=1))


class TestSharpness:
    @staticmethod
    def found(logits, y, counts=None, group=None):
        counts = torch.ones(len(y), dtype=torch.float64) if counts is None else counts
        loss = ClassTarget(np.arange(3)).task_loss
        return sharpness(logits, y, counts, loss, np.arange(len(y)) if group is None else group)

    @pytest.mark.parametrize(("share", "expected"), [(0.6, 1 / 0.6), (1.0, 1.0), (1.7, 1.0), (0.1, SHARPEST)])
    def test_timid_logits_are_multiplied_and_bold_ones_are_not_divided(self, share, expected):
        logits, y = drawn_logits(4000)
        assert self.found(share * logits, y) == pytest.approx(expected, rel=0.08)

    @pytest.mark.parametrize("copies", [1, 6])
    def test_chance_multiplies_nothing_however_often_a_row_stands(self, copies):
        factors = []
        for seed in range(100):
            logits, y = drawn_logits(60, seed=seed)
            rows = np.repeat(np.arange(60), copies)
            factors.append(self.found(logits[rows], y[rows], group=rows))
        assert np.mean(np.array(factors) > 1.0) <= 0.06

    def test_a_row_of_weight_two_stands_twice_and_one_without_weight_is_not_there(self):
        logits, y = drawn_logits(400)
        logits = 0.5 * logits
        counts = torch.from_numpy(np.arange(400) % 3.0)
        rows = np.repeat(np.arange(400), np.arange(400) % 3)
        twice = self.found(logits[rows], y[rows], group=rows)
        assert twice > 1.5
        assert self.found(logits, y, counts) == pytest.approx(twice, rel=1e-4)

    def test_the_unit_of_weights_does_not_matter(self):
        logits, y = drawn_logits(400)
        counts = torch.full((400,), 1.0, dtype=torch.float64)
        expected = self.found(0.5 * logits, y, counts)
        assert expected > 1.5
        for unit in (1e-9, 1 / 400, 1e6):
            assert self.found(0.5 * logits, y, unit * counts) == pytest.approx(expected, rel=1e-6)
        X = np.random.default_rng(0).normal(size=(60, 3))
        labels = (X[:, 0] > 0).astype(int)
        PNNClassifier(max_epochs=1, random_state=0).fit(X, labels, sample_weight=np.full(60, 1 / 60))

    def test_one_row_or_none_changes_nothing(self):
        logits, y = drawn_logits(3)
        for n in (0, 1):
            assert self.found(0.1 * logits[:n], y[:n]) == 1.0
        assert self.found(0.1 * logits, y, group=np.zeros(3, dtype=int)) == 1.0

    def test_weights_sum_to_it_and_shares_to_one(self, tmp_path, monkeypatch):
        monkeypatch.setattr(combination, "sharpness", lambda *_: 1.5)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        y = ((X**2).sum(axis=1) > 3.4).astype(int)
        model = PNNClassifier(max_epochs=3, random_state=0).fit(X, y)
        fitted = model.fitted
        assert fitted.sharpness == pytest.approx(1.5)
        assert sum(model.kind_weights_.values()) == pytest.approx(1.0)
        logits = fitted.mean_output(X)
        np.testing.assert_allclose(model.predict_proba(X), softmax(logits, axis=1))
        parts = model.contributions(X[:5])
        whole = parts.sum(axis=1) + parts.attrs["base"][1]
        np.testing.assert_allclose(whole, logits[:5, 1] - logits[:5, 0], rtol=1e-6)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.fitted.sharpness == fitted.sharpness
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        model.keep(replace(fitted, member_weights=1.2 * SHARPEST / fitted.sharpness * fitted.member_weights))
        with pytest.raises(InputError, match="weights do not sum to what they may"):
            model.save(tmp_path / "other")

    def test_it_stays_where_rows_come_later(self, monkeypatch):
        monkeypatch.setattr(combination, "sharpness", lambda *_: 1.5)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 4))
        y = ((X**2).sum(axis=1) > 3.4).astype(int)
        model = PNNClassifier(max_epochs=3, random_state=0).fit(X[:300], y[:300])
        monkeypatch.undo()
        assert model.partial_fit(X[300:], y[300:]).fitted.sharpness == pytest.approx(1.5)


class TestLinearNetworks:
    def test_each_is_ridge_on_the_rows_outside_its_fold(self):
        X, y, X_new, _ = linear_table()
        target = NumberTarget(Scaler(np.asarray(y.mean()), np.asarray(y.std())), "absolute")
        folds = np.array_split(np.arange(len(X)), 3)
        networks = [solved_network(one) for one in linear_solutions(X, y, np.ones(len(X)), folds, target)]
        assert len(networks) == 4  # one for all rows, too
        scaler = StandardScaler().fit(X)
        for network, fold in zip(networks, [*folds, []], strict=True):
            rows = np.setdiff1d(np.arange(len(X)), fold)
            x = torch.from_numpy(X_new[:, :, None])
            said = target.meaning(network(x, torch.eye(X.shape[1], dtype=x.dtype)).detach().numpy())
            ridges = [
                Ridge(penalty * len(rows)).fit(scaler.transform(X[rows]), y[rows]).predict(scaler.transform(X_new))
                for penalty in RIDGE_PENALTIES
            ]
            assert min(np.abs(said - one).max() for one in ridges) < 1e-8 * y.std()

    def test_more_columns_than_rows(self):
        X, y = RNG.normal(size=(20, 50)), RNG.normal(size=20)
        target = NumberTarget(Scaler(np.asarray(0.0), np.asarray(1.0)), "absolute")
        *_, (coefficients, _) = linear_solutions(X, y, np.ones(20), np.array_split(np.arange(20), 2), target)
        weight = coefficients[0] * X.std(axis=0)
        x = (X - X.mean(axis=0)) / X.std(axis=0)
        errors = [
            np.abs(weight - Ridge(penalty * 20).fit(x, y).coef_).max() for penalty in RIDGE_PENALTIES if penalty > 1e-4
        ]
        assert min(errors) < 1e-6 * max(np.abs(weight).max(), 1e-3)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_classes_are_logistic_regression(self, classes):
        X, y = load_iris(return_X_y=True)
        X, y = X[y < classes], y[y < classes].astype(float)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        folds = np.array_split(np.arange(len(y)), 4)
        *_, solution = linear_solutions(X, y, np.ones(len(y)), folds, ClassTarget(np.arange(classes)))
        x = torch.from_numpy(X[:, :, None])
        logits = solved_network(solution)(x, torch.eye(4, dtype=x.dtype)).detach().numpy()
        said = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        fits = [
            LogisticRegression(C=1 / (penalty * len(y)), max_iter=2000, tol=1e-8).fit(scaled, y).predict_proba(scaled)
            for penalty in np.logspace(0, -5, 6)
        ]
        assert min(np.abs(said - one).max() for one in fits) < 0.05

    def test_a_class_in_one_fold_alone_has_no_solution(self):
        X, y = RNG.normal(size=(12, 3)), np.array([0.0] * 6 + [1.0] * 6)
        folds = [np.arange(6), np.arange(6, 12)]
        assert linear_solutions(X, y, np.ones(12), folds, ClassTarget(np.arange(2))) == []


class TestEnsemble:
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def few_steps(cls):
        """A sixth of the steps: ``TestWeights`` takes them all."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(combination, "STEPS", 50)
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        X, y = make_friedman1(100, 5, noise=0.5, random_state=0)
        return PNNRegressor(max_epochs=3, random_state=0).fit(X, y), X, y

    def test_weights_of_members(self, fitted):
        model, X, _ = fitted
        found = model.fitted
        assert (found.member_weights >= 0).all()
        assert found.member_weights.sum() == pytest.approx(1.0)
        assert set(found.member_kinds) <= {kind.name for kind in EVERY}
        assert all(weight > 0 for weight in found.kind_weights.values())
        parts = [
            found.target.meaning(
                network(torch.from_numpy(found.scaler.transform(X)).unsqueeze(-1), torch.from_numpy(shift))
                .detach()
                .numpy()
            )
            for network, shift in zip(found.networks, found.shifts, strict=True)
        ]
        np.testing.assert_allclose(model.predict(X), found.member_weights @ np.array(parts), rtol=1e-9)

    def test_every_row_is_left_out_by_every_kind(self, fitted):
        model, X, _ = fitted
        assert np.isfinite(model.oob_prediction_).all()
        rows = np.concatenate(model.fitted.folds)
        assert len(np.unique(rows)) == len(rows) == len(X)

    def test_a_row_out_of_fold_is_predicted_by_its_fold_as_new_rows_are(self, fitted):
        """Errors that intervals are calibrated on are those of the predictor that intervals are made with."""
        model, X, _ = fitted
        found = model.fitted
        said = found.outputs(X, lambda output: found.target.meaning(found.fold_outputs(output)).T)
        order = np.lexsort(X.T[::-1])
        fold = np.empty(len(X), dtype=int)
        for number, rows in enumerate(found.folds):
            fold[order[rows]] = number
        np.testing.assert_allclose(said[np.arange(len(X)), fold], model.oob_prediction_, rtol=1e-9)

    def test_the_paper_s_network_keeps_its_own_matrix(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 3))
        model = PNNRegressor(recipe="paper", predict_on="sparse", max_epochs=3, random_state=0).fit(X, X[:, 0])
        assert np.abs(model.task_precision_ - model.precision_).max() > 0

    def test_contributions_add_up(self, fitted):
        model, X, _ = fitted
        parts = model.contributions(X)
        np.testing.assert_allclose(parts.sum(axis=1) + parts.attrs["base"], model.predict(X), atol=1e-9)

    def test_it_comes_back(self, fitted, tmp_path):
        model, X, _ = fitted
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
        assert again.fitted.kind_weights == model.fitted.kind_weights

    @pytest.mark.parametrize("weights", [np.array([2.0]), np.array([-1.0, 2.0])])
    def test_odd_weights_are_not_read(self, fitted, tmp_path, weights):
        model, _, _ = fitted
        odd = np.resize(weights, len(model.fitted.member_weights))
        changed = PNNRegressor().keep(replace(model.fitted, member_weights=odd))
        with pytest.raises(InputError, match="weights"):
            changed.save(tmp_path / "model")

    def test_a_warm_start_goes_on_with_the_kinds_that_stayed(self, fitted):
        _, X, y = fitted
        model = PNNRegressor(max_epochs=1, random_state=0, warm_start=True).fit(X, y)
        stayed = set(model.fitted.member_kinds)
        model.fit(X, y)
        assert set(model.fitted.member_kinds) <= stayed | {"linear", "lasso", "kernel"}
        assert np.isfinite(model.oob_mae_)

    def test_a_linear_table_is_solved_as_well_as_ridge_does(self):
        X, y, X_new, y_new = linear_table()
        model = PNNRegressor(max_epochs=5, random_state=0).fit(X, y)
        ridge = RidgeCV(np.logspace(-3, 4, 29)).fit(X, y)
        joint, plain = (np.abs(one.predict(X_new) - y_new).mean() for one in (model, ridge))
        assert joint <= 1.05 * plain
        assert sum(model.fitted.kind_weights.get(kind, 0.0) for kind in ("linear", "lasso")) > 0.5

    def test_a_few_columns_among_many_are_found_by_a_lasso(self):
        """Fewer than four rows a column: what a ridge spreads over all columns, an l1 penalty leaves to a few."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 60))
        y = X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(400)
        model = PNNRegressor(max_epochs=2, kernel_rows=0, random_state=0).fit(X[:100], y[:100])
        ridge = RidgeCV(np.logspace(-3, 4, 29)).fit(X[:100], y[:100])
        joint, plain = (np.abs(one.predict(X[100:]) - y[100:]).mean() for one in (model, ridge))
        assert joint <= 0.9 * plain
        assert model.fitted.kind_weights["lasso"] > 0.5

    def test_little_noise_is_chosen_where_columns_act_together(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 4))
        model = PNNRegressor(random_state=0, max_epochs=12, kernel_rows=0)
        model.fit(X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]))
        assert model.fitted.kind_weights["deep, little noise"] > 0.4

    @pytest.mark.parametrize(("losses", "stays"), [((1.0, 0.98), "deep"), ((1.0, 0.9), "deep, little noise")])
    def test_a_trial_gives_up_the_worse_twin_of_a_large_table(self, monkeypatch, losses, stays):
        X, y = make_friedman1(TRIED_FROM // 5, 5, random_state=0)
        said = dict(zip(("deep", "deep, little noise"), losses, strict=True))
        monkeypatch.setattr(training, "trial_losses", lambda *_: said)
        for n_rows, kinds in ((len(X), {"mean", "mlp", stays}), (100, {"mean", "mlp", *said})):
            run = PNNRegressor(max_epochs=1, random_state=0).start_training(X[:n_rows], y[:n_rows])
            assert {kind.name for kind, _ in run._roster} == kinds

    def test_the_trial_tells_noise_that_hurts(self):
        """On many rows of a target without noise a short training is enough."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(TRIED_FROM // 4, 4))
        run = PNNRegressor(random_state=0).start_training(X, X[:, 0] * X[:, 1])
        assert "deep" not in {kind.name for kind, _ in run._roster}


class TestSettings:
    @pytest.mark.parametrize("given", [{"n_layers": 2}, {"order": [3, 1]}, {"n_filters": [4, 4]}, {"n_members": 3}])
    def test_members_alike_where_something_says_so(self, given):
        assert settings_of(given).readout == "both"

    def test_several_by_default(self):
        assert settings_of({}).readout == "several"
        assert settings_of({"recipe": "paper"}).readout == "mean"
        assert settings_of({}, own_network=True).readout == "both"

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"readout": "several", "n_layers": 2}, "n_layers=2"),
            ({"readout": "several", "n_members": 2}, "n_members=2"),
            ({"readout": "several", "order": [1, 2]}, "order"),
            ({"readout": "several", "recipe": "paper"}, "recipe"),
        ],
    )
    def test_contradictions_are_said(self, given, words):
        with pytest.raises(InputError, match=words):
            settings_of(given)

    def test_few_rows_have_twice_as_many_folds(self):
        settings = settings_of({})
        assert settings.n_folds(FEW_ROWS - 1) == 8
        assert settings.n_folds(FEW_ROWS) == 4

    def test_a_classifier_has_them_too(self):
        X, y = load_iris(return_X_y=True)
        model = PNNClassifier(max_epochs=2, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert model.oob_accuracy_ > 0.85


def test_a_row_of_doubt_keeps_a_kind_that_was_never_wrong_from_all_the_weight():
    """Two kinds are right on all rows left out; the surer one has the lower loss, and would pay most for a surprise."""
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, 2, 100))
    sides = np.stack([1.0 - 2.0 * y.numpy(), 2.0 * y.numpy() - 1.0], axis=1)
    outputs = np.stack([size * sides * rng.uniform(0.8, 1.2, size=(100, 1)) for size in (2.0, 8.0)])
    target = ClassTarget(np.arange(2))
    doubtful = partial(target.task_loss, doubt=1.0 / 100)
    group = np.arange(100)
    sure = kind_weights(outputs, y, np.ones(100), target.task_loss, group)
    doubting = kind_weights(outputs, y, np.ones(100), doubtful, group)
    assert sure @ [2.0, 8.0] > 8.0  # as sure as can be
    assert 2.0 < doubting @ [2.0, 8.0] < 4.0  # about log(199) / 2, what one row of a hundred of any class leaves
