"""A link rises, has the target's shape, and is the same function alone and in a stack."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.nn import NetworkStack, PrecisionNetwork, QuantileLink, output_change_bound
from precisionnet.nn.readout import LAST_KNOT, STRAIGHT

RNG = np.random.default_rng(0)
TARGETS = {
    "normal": RNG.standard_normal(1000),
    "two peaks": np.concatenate([RNG.normal(-2, 0.3, 500), RNG.normal(1, 0.5, 500)]),
    "long tail": np.exp(RNG.standard_normal(1000)),
    "counts": RNG.poisson(0.7, 1000).astype(float),
    "two values": np.repeat([0.0, 1.0], 500),
    "one value": np.ones(40),
    "two rows": np.array([0.0, 3.0]),
}


def fitted(y, weight=None):
    link = QuantileLink().double()
    link.fit(y, np.ones(len(y)) if weight is None else weight)
    return link


def at(link, places):
    return link(torch.as_tensor(places, dtype=torch.float64)[:, None]).numpy()[:, 0]


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_it_rises_and_is_finite(y):
    slope = np.diff(at(fitted(y), np.linspace(-6, 6, 400))) / (12 / 399)
    assert np.isfinite(slope).all()
    assert (slope >= 0.999 * STRAIGHT * y.std()).all()


@pytest.mark.parametrize("level", [0.0, 0.1, -3.0, 1e9])
@pytest.mark.parametrize("n_rows", [40, 53, 80, 100])
def test_the_link_of_a_flat_target_rises_in_single_precision(level, n_rows):
    """Rounding gives equal numbers a width, and so do numbers that are nothing beside one outlier of another fold."""
    for spread in (0.0, 1e-12 * abs(level)):
        y = level + spread * np.random.default_rng(0).standard_normal(n_rows)
        link = QuantileLink()
        link.fit(y, np.random.default_rng(1).uniform(0.5, 2.0, n_rows))
        assert (link.knots.diff() > 0).all()


def test_rows_of_next_to_no_weight_leave_it_as_it_is():
    y, places = TARGETS["two peaks"][:200], np.linspace(-2, 2, 50)
    weight = np.ones(200)
    for least in (1e-14, 1e-20, 1e-60):
        weight[::3] = least
        np.testing.assert_allclose(at(fitted(y, weight), places), at(fitted(y[weight == 1]), places), atol=0.01)


@pytest.mark.parametrize("name", ["normal", "two peaks", "long tail"])
def test_what_is_spread_like_a_normal_variable_becomes_spread_like_the_target(name):
    """Quantiles of what comes out beside the target's, but for the straight line's share."""
    y = TARGETS[name]
    levels = np.linspace(0.05, 0.95, 19)
    wanted = (1 - STRAIGHT) * np.quantile(y, levels) + STRAIGHT * y.std() * norm.ppf(levels)
    apart = np.abs(at(fitted(y), norm.ppf(levels)) - wanted)
    assert apart.mean() <= 0.05 * y.std()
    assert apart.max() <= 0.25 * y.std()  # in the gap between two peaks, where there are no rows to speak of


def test_a_row_of_weight_two_stands_twice():
    y = TARGETS["long tail"][:200]
    weight = RNG.integers(0, 3, 200)
    places = np.linspace(-2, 2, 50)
    np.testing.assert_allclose(
        at(fitted(y, weight.astype(float)), places), at(fitted(np.repeat(y, weight)), places), atol=0.05
    )


def test_beyond_its_knots_it_goes_on_straight():
    link = fitted(TARGETS["two peaks"])
    for end in (-1.0, 1.0):
        steps = np.diff(at(link, end * np.array([LAST_KNOT, LAST_KNOT + 1.0, LAST_KNOT + 2.0])))
        assert steps[0] == pytest.approx(steps[1])


def test_its_derivative_is_the_slope():
    link = fitted(TARGETS["long tail"])
    f = torch.tensor(RNG.normal(size=(20, 1)), requires_grad=True)
    assert torch.autograd.gradcheck(link, (f,), eps=1e-7, atol=1e-5)


def test_members_of_a_stack_keep_links_of_their_own():
    networks = [PrecisionNetwork(5, link=True).double().eval() for _ in range(3)]
    for network, y in zip(networks, ("normal", "two peaks", "long tail"), strict=True):
        network.link.fit(TARGETS[y], np.ones(len(TARGETS[y])))
    stack = NetworkStack(networks).eval()
    assert not stack.one_by_one
    x, shift = torch.randn(3, 7, 5, 1, dtype=torch.float64), torch.eye(5, dtype=torch.float64).repeat(3, 1, 1)
    alone = torch.stack([network(x[i], shift[i]) for i, network in enumerate(networks)])
    torch.testing.assert_close(stack(x, shift), alone)
    for network, state in zip(networks, stack.member_states(), strict=True):
        torch.testing.assert_close(state["link.knots"], network.link.knots)


def test_networks_of_an_ensemble_have_the_quantiles_of_the_rows_that_they_learn_from(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4))
    y = np.exp(X[:, 0] + 0.1 * rng.normal(size=120))
    model = PNNRegressor(max_epochs=2, kernel_rows=0, target_scale="linear", random_state=0).fit(X, y)
    fitted = model.fitted
    trained = [i for i, kind in enumerate(fitted.member_kinds) if fitted.networks[i].link is not None]
    assert trained
    assert all(fitted.networks[i].link is None for i in set(range(len(fitted.networks))) - set(trained))
    known = fitted.target.tensor(y[np.lexsort((y, *X.T[::-1]))]).numpy()  # rows stand in their canonical order in a fit
    for i in trained:
        rows = np.setdiff1d(np.arange(120), fitted.folds[fitted.member_folds[i]])
        link = QuantileLink()
        link.fit(known[rows], np.ones(len(rows)))
        np.testing.assert_allclose(fitted.networks[i].link.knots, link.knots, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    fitted.networks[trained[0]].link.knots[3] = 100.0
    with pytest.raises(InputError, match="link does not rise"):
        model.save(tmp_path / "other")


def test_classes_have_no_link():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    model = PNNClassifier(max_epochs=1, kernel_rows=0, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    assert all(network.link is None for network in model.fitted.networks)


def test_a_link_moves_no_further_than_the_bound_says():
    network = PrecisionNetwork(5, link=True).double().eval()
    network.link.fit(TARGETS["two peaks"], np.ones(1000))
    x, shift = torch.randn(50, 5, 1, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    other = shift + 0.05
    moved = (network(x, other) - network(x, shift)).norm(dim=1)
    assert (moved <= output_change_bound(network, x, shift, other) + 1e-12).all()
