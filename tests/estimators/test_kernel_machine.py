"""The kind that is a kernel machine: what it solves, whom its rows are hidden from, what it keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators import combination, forecast, kernel_machine
from precisionnet.estimators.kernel_machine import Choice, _chosen, _network, _Rows, _solved, extended
from precisionnet.estimators.model_document import to_document
from precisionnet.estimators.model_reader import from_document
from precisionnet.estimators.preparation import prepare
from precisionnet.estimators.rows import Scaler
from precisionnet.estimators.targets import ClassTarget, NumberTarget
from precisionnet.nn.lipschitz import _readout_norm
from precisionnet.nn.readout import KernelReadout, matern

IDENTITY = NumberTarget(Scaler(np.zeros(()), np.ones(())), "absolute")
CHOICE = Choice(power=1.0, smooth=False, width=1.0, noise=0.1, factor=1.0)


def rows(n=40, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns))
    return _Rows(x, (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=n))[:, None], np.ones(n))


def said(network, x):
    with torch.no_grad():
        return network(torch.from_numpy(x).unsqueeze(-1), torch.eye(x.shape[1], dtype=torch.float64)).numpy()


@pytest.mark.parametrize(("smooth", "kernel"), [(False, Matern(1.0, "fixed", nu=1.5)), (True, RBF(1.0, "fixed"))])
def test_it_is_the_mean_of_a_gaussian_process(smooth, kernel):
    known, scale = rows(), np.array([1.0, 0.5, 2.0])
    network = _solved(known, scale, replace(CHOICE, smooth=smooth))
    readout = network.readout
    constant = known.wanted.mean()
    process = GaussianProcessRegressor(kernel, alpha=CHOICE.noise, optimizer=None)
    process.fit(known.x * readout.scale.numpy(), known.wanted[:, 0] - constant)
    new = np.random.default_rng(1).normal(size=(25, 3))
    expected = process.predict(new * readout.scale.numpy()) + constant
    np.testing.assert_allclose(said(network, new)[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(readout.scale.numpy() / readout.scale.numpy()[0], scale / scale[0])  # up to its width


def test_a_row_of_weight_two_stands_twice():
    known, new = rows(), np.random.default_rng(1).normal(size=(25, 3))
    double = known.take(np.concatenate([np.repeat(np.arange(20), 2), np.arange(20, 40)]))
    level, weight, rest = 0.1, np.where(np.arange(40) < 20, 2.0, 1.0), (np.ones(3), np.zeros(1), 1.0)
    once = _network(known.x, known.wanted, level / weight, *rest, smooth=False)
    twice = _network(double.x, double.wanted, np.full(60, level), *rest, smooth=False)
    np.testing.assert_allclose(said(once, new), said(twice, new), rtol=1e-7)


def test_its_gradient_is_that_of_differences_at_its_own_rows_too():
    known = rows()
    network = _solved(known, np.ones(3), CHOICE)
    for x in (known.x[:5], known.x[:5] + 0.3):
        leaf = torch.from_numpy(x).unsqueeze(-1).requires_grad_()
        (found,) = torch.autograd.grad(network(leaf, torch.eye(3)).sum(), leaf)
        assert torch.isfinite(found).all()
        for column in range(3):
            step = np.zeros(3)
            step[column] = 1e-5
            slope = (said(network, x + step) - said(network, x - step))[:, 0] / 2e-5
            np.testing.assert_allclose(found[:, column, 0].numpy(), slope, atol=1e-4)


def test_many_rows_are_the_same_as_few_at_a_time(monkeypatch):
    network, new = _solved(rows(), np.ones(3), CHOICE), np.random.default_rng(1).normal(size=(300, 3))
    whole = said(network, new)
    monkeypatch.setattr("precisionnet.nn.readout.KERNEL_AT_ONCE", 80)
    np.testing.assert_allclose(said(network, new), whole, rtol=1e-12)


def test_a_fold_has_no_say_in_what_is_chosen_for_it():
    known, y = rows(80), rows(80).wanted[:, 0]
    folds = tuple(np.array_split(np.arange(80), 4))
    outside = [np.setdiff1d(np.arange(80), fold) for fold in folds]
    used, deviation = [np.array([3.0, 0.0, 0.0])] * 4, np.ones(3)
    before = _chosen(known, IDENTITY, y, folds, outside, used, deviation)
    spoiled = y.copy()
    spoiled[folds[1]] = 100.0 * np.random.default_rng(2).normal(size=20)
    changed = _chosen(known, IDENTITY, spoiled, folds, outside, used, deviation)  # what is judged, not what is fitted
    assert changed[1] == before[1]
    assert before[-1].power == 1.0  # one column of three is used


def test_columns_that_the_task_does_not_use_do_not_set_rows_apart():
    X, y = make_friedman1(260, 10, noise=0.5, random_state=0)
    new, truth = make_friedman1(400, 10, noise=0.0, random_state=1)
    errors = {}
    for kept in (0, 3000):
        model = PNNRegressor(max_epochs=15, kernel_rows=kept, random_state=0).fit(X, y)
        errors[kept] = np.abs(model.predict(new) - truth).mean()
    assert errors[3000] < 0.95 * errors[0]
    machines = [network for network in model.fitted.networks if isinstance(network.readout, KernelReadout)]
    scale = machines[-1].readout.scale.numpy() * X.std(axis=0)
    assert scale[5:].max() < 0.5 * scale[:5].min()


@pytest.fixture(scope="module")
def curved():
    X, y = make_friedman1(120, 5, noise=0.3, random_state=0)
    return PNNRegressor(max_epochs=2, random_state=0).fit(X, y), X, y


def test_it_is_saved_and_kept_from_harm(curved, tmp_path):
    model, X, _ = curved
    assert "kernel" in model.kind_weights_
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    networks = [*load(tmp_path / "model").fitted.networks]
    place = model.fitted.member_kinds.index("kernel")
    networks[place].readout.noise[0] = -1.0
    with pytest.raises(InputError, match="noise"):
        PNNRegressor().keep(replace(again.fitted, networks=tuple(networks))).save(tmp_path / "other")


def test_only_a_model_with_it_keeps_rows(curved):
    model, X, y = curved
    kept = [n.readout.anchors for n in model.fitted.networks if isinstance(n.readout, KernelReadout)]
    assert max(map(len, kept)) == len(X)
    for kernel_rows in (0, len(X) - 1):
        without = PNNRegressor(max_epochs=1, kernel_rows=kernel_rows, random_state=0).fit(X, y)
        assert not any(isinstance(n.readout, KernelReadout) for n in without.fitted.networks)


def test_rows_that_come_later_are_learned_as_if_all_had_been_there():
    known, later = rows(60), rows(30, seed=5)
    network = _solved(known, np.ones(3), CHOICE)
    both = extended(network, later.x, later.wanted[:, 0], np.ones(30), IDENTITY, most=3000)
    scale = network.readout.scale.numpy()
    z = torch.from_numpy(np.concatenate([known.x, later.x]) * scale)
    constant = known.wanted.mean()
    wanted = np.concatenate([known.wanted, later.wanted])[:, 0] - constant
    solution = np.linalg.solve(matern(z, z).numpy() + CHOICE.noise * np.eye(90), wanted)
    new = np.random.default_rng(1).normal(size=(25, 3))
    expected = matern(torch.from_numpy(new * scale), z).numpy() @ solution + constant
    np.testing.assert_allclose(said(both, new)[:, 0], expected, rtol=1e-7)
    assert len(extended(network, later.x, later.wanted[:, 0], np.ones(30), IDENTITY, most=70).readout.anchors) == 70
    assert extended(network, later.x, later.wanted[:, 0], np.ones(30), IDENTITY, most=60) is network


def test_partial_fit_gets_better_with_it(curved):
    _, X, y = curved
    more, targets = make_friedman1(300, 5, noise=0.3, random_state=3)
    new, truth = make_friedman1(300, 5, noise=0.0, random_state=4)
    model = PNNRegressor(max_epochs=2, random_state=0).fit(X, y)
    before = np.abs(model.predict(new) - truth).mean()
    model.partial_fit(more, targets)
    assert "kernel" in model.kind_weights_
    assert np.abs(model.predict(new) - truth).mean() < 0.9 * before


def test_classes_have_probabilities():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    model = PNNClassifier(max_epochs=2, random_state=0).fit(X[order[:100]], y[order[:100]])
    chances = model.predict_proba(X[order[100:]])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert model.score(X[order[100:]], y[order[100:]]) > 0.85


def test_later_rows_of_classes_keep_the_factor():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    target = ClassTarget(np.arange(2))
    known = _Rows(x, np.eye(2)[labels], np.ones(50))
    network = _solved(known, np.ones(2), replace(CHOICE, factor=4.0))
    both = extended(network, x[:10] + 0.1, labels[:10].astype(float), np.ones(10), target, most=100)
    assert float(both.readout.factor) == 4.0
    assert len(both.readout.anchors) == 60
    assert np.abs(said(both, x) - said(network, x)).max() < 4.0


def test_what_reads_node_features_moves_no_further_than_its_norm_says():
    rng = np.random.default_rng(0)
    readout = _solved(rows(), np.array([1.0, 0.3, 2.0]), CHOICE).readout
    for distance in (1e-4, 0.1, 1.0, 10.0):
        x = torch.from_numpy(rng.normal(size=(200, 3, 1)))
        step = torch.from_numpy(distance * rng.normal(size=(200, 3, 1)))
        moved = (readout(x + step) - readout(x)).norm(dim=1)
        assert (moved <= _readout_norm(readout, x) * step.flatten(1).norm(dim=1) * (1 + 1e-9)).all()


def test_columns_far_from_zero_are_as_good_as_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0])
    settings = {"max_epochs": 1, "standardize": False, "random_state": 0}
    assert np.isfinite(PNNRegressor(**settings).fit(X + [0.0, 1e8, 0.0], y).predict(X)).all()
    x, far = torch.from_numpy(X), torch.tensor([0.0, 2.0**26, 0.0], dtype=torch.float64)
    torch.testing.assert_close(matern(x + far, x + far), matern(x, x), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Column 'x2' is constant")
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_a_constant_column_sets_no_rows_apart(power, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_machine, "POWERS", (power,))
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), np.full(60, 0.1)])
    model = PNNRegressor(max_epochs=1, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    machines = [one.readout for one in model.fitted.networks if isinstance(one.readout, KernelReadout)]
    assert machines
    assert not any(one.scale[2] for one in machines)
    model.save(tmp_path / "model")


def test_a_row_of_next_to_no_weight_has_no_say():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0])
    weight = np.ones(60)
    weight[3], y[3] = 1e-200, 30.0
    known = _Rows(X, y[:, None], weight)
    whole, without = (_solved(one, np.ones(3), CHOICE) for one in (known, known.take(np.flatnonzero(weight == 1.0))))
    assert float(whole.readout.noise.max()) < 1e100  # what a model's file may hold
    np.testing.assert_allclose(said(whole, X), said(without, X), atol=0.2)


def test_later_rows_of_other_weight_count_as_they_would_have():
    known, later = rows(60), rows(30, seed=5)
    network = _solved(replace(known, weight=np.full(60, 4.0)), np.ones(3), CHOICE)
    both = extended(network, later.x, later.wanted[:, 0], np.full(30, 2.0), IDENTITY, 3000, unit=4.0)
    noise = both.readout.noise.numpy()
    np.testing.assert_allclose(noise[60:], 2.0 * noise[0])
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 3)), rng.normal(size=(40, 3))
    model = PNNRegressor(max_epochs=1, random_state=0).fit(X, np.sin(2 * X[:, 0]), np.full(100, 3.0))
    assert "kernel" in model.kind_weights_
    model.partial_fit(new, np.sin(2 * new[:, 0]))
    noise = model.fitted.networks[-1].readout.noise.numpy()
    np.testing.assert_allclose(noise[100:], 3.0 * noise[0])


def test_a_file_with_a_machine_that_is_none_is_refused(curved):
    model, _, _ = curved
    name = f"network.{model.fitted.member_kinds.index('kernel')}.readout."
    empty = {"anchors": (0, 5), "coefficients": (1, 0), "noise": (0,)}
    for changes, reason in (
        ({key: torch.zeros(shape, dtype=torch.float64) for key, shape in empty.items()}, "no rows"),
        ({"scale": -torch.ones(5, dtype=torch.float64)}, "negative"),
        ({"factor": torch.zeros((), dtype=torch.float64)}, "noise"),
        ({"noise": torch.ones(10**6, dtype=torch.float64)}, "does not fit"),
        ({"anchors": torch.tensor(1.0, dtype=torch.float64)}, "does not fit"),
    ):
        document, tensors = to_document(model)
        spoiled = {**tensors, **{name + key: value for key, value in changes.items()}}
        with pytest.raises(ValueError, match=reason):
            from_document(document, spoiled, None)


def test_a_machine_without_room_is_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3))
    settings = {"max_epochs": 1, "random_state": 0}
    monkeypatch.setattr(forecast, "MANY_KERNEL_ROWS", 30)
    monkeypatch.setattr(forecast, "free_memory", lambda: 1000.0)
    with pytest.raises(InputError, match="kernel_rows=0, which leaves it out"):
        PNNRegressor(**settings).fit(X, X[:, 0])
    PNNRegressor(kernel_rows=0, **settings).fit(X, X[:, 0])
    data = prepare(PNNRegressor(), "regression", PNNRegressor().settings, X, X[:, 0])
    with_it, without = (forecast.forecast(data, replace(PNNRegressor().settings, kernel_rows=n)) for n in (3000, 0))
    assert with_it.memory > without.memory


def test_other_rows_after_a_model_that_was_a_kernel_machine_alone(monkeypatch):
    X, y = make_friedman1(60, 5, random_state=0)
    model = PNNRegressor(max_epochs=1, warm_start=True, random_state=0)

    def decided(outputs, fold, **others):
        one = np.eye(len(outputs))
        return [one[-1], *[one[0]] * len(np.unique(fold))]  # in the folds the first kind, which stays for them

    with monkeypatch.context() as patched:
        patched.setattr(combination, "weights_by_fold", decided)
        model.fit(X, y)
    assert set(model.kind_weights_) == {"kernel"}
    assert set(model.fitted.member_kinds) == {"mean", "kernel"}
    model.fit(X[:40] + 0.01, y[:40])
    assert np.isfinite(model.predict(X)).all()


def test_other_rows_after_a_model_that_was_mostly_a_kernel_machine(monkeypatch):
    """What is left without it was not weighed to predict alone: such a fit starts from the first epoch."""
    X, y = make_friedman1(60, 5, random_state=0)
    model = PNNRegressor(max_epochs=1, warm_start=True, random_state=0)

    def decided(outputs, fold, **others):
        weights = np.zeros(len(outputs))
        weights[[0, -1]] = 0.3, 0.7
        return [weights] * (1 + len(np.unique(fold)))

    with monkeypatch.context() as patched:
        patched.setattr(combination, "weights_by_fold", decided)
        model.fit(X, y)
    assert model.kind_weights_ == pytest.approx({"mean": 0.3, "kernel": 0.7})
    model.fit(X[:40] + 0.01, y[:40])
    afresh = PNNRegressor(max_epochs=1, random_state=0).fit(X[:40] + 0.01, y[:40])
    np.testing.assert_array_equal(model.predict(X), afresh.predict(X))
