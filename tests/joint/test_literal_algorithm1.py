"""Algorithm 1 written down a second time, from the paper's text alone, beside ``recipe="paper", step1="paper"``.

NumPy does everything but the derivative of the task loss, which torch takes of a network that is written out here: no
layer, step or solver of the package is used. What the paper leaves open is read as in ``docs/notation.md``: the mean node
under a perceptron, the target in its own units, the shift not scaled, the symmetric part of Step 2's gradient, one Adam
over the whole run, and beta ||h||^2 over coefficients and matrices of the readout.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet import PNNRegressor
from precisionnet.datasets import make_gaussian_regression

ALPHA, GAMMA, ETA, EPSILON, BETA, STEPS = 0.5, 10.0, 0.01, 1e-4, 3e-3, 20


def output(x, theta, h, n_layers):
    """Equations (1) and (2) with batch normalisation over samples and nodes, then the mean node and a perceptron."""
    signals = x[:, :, None]
    for layer in range(n_layers):
        weight = h[f"layers.{layer}.filter.weight"]
        z, power = 0.0, signals
        for k in range(weight.shape[0]):
            z = z + power @ weight[k]
            power = torch.einsum("ij,tjf->tif", theta, power)
        centred = z - z.mean(dim=(0, 1))
        z = centred / torch.sqrt((centred**2).mean(dim=(0, 1)) + 1e-5)
        signals = torch.relu(z * h[f"layers.{layer}.norm.weight"] + h[f"layers.{layer}.norm.bias"])
    mean = signals.mean(dim=1)
    hidden = torch.relu(mean @ h["readout.perceptron.0.weight"].T + h["readout.perceptron.0.bias"])
    return (hidden @ h["readout.perceptron.2.weight"].T + h["readout.perceptron.2.bias"])[:, 0]


def derivative(x, y, theta, h, n_layers):
    """Of alpha L_task in theta and in every part of h, L_task the mean squared error."""
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in {"theta": theta, **h}.items()}
    weights = {name: leaf for name, leaf in leaves.items() if name != "theta"}
    error = output(torch.from_numpy(x), leaves["theta"], weights, n_layers) - torch.from_numpy(y)
    found = torch.autograd.grad(ALPHA * (error**2).mean(), list(leaves.values()))
    return dict(zip(leaves, (one.numpy() for one in found), strict=True))


def soft_threshold(theta, t):
    off = np.sign(theta) * np.maximum(np.abs(theta) - t, 0.0)
    return np.where(np.eye(len(theta)) == 1, theta, off)


def psd_projection(theta):
    values, vectors = np.linalg.eigh(theta)
    return vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T


def one_epoch(x, y, theta, task, h, lam, bound, n_layers):
    """Lines 3 to 14."""
    C, eye = x.T @ x / len(x), np.eye(x.shape[1])
    for _ in range(STEPS):
        theta = theta - ETA * (C - np.linalg.inv(theta + EPSILON * eye) + GAMMA * (theta - task))
        theta = psd_projection(soft_threshold(theta, ETA * lam))
        theta = bound / max(bound, np.linalg.norm(theta, 2)) * theta
    for _ in range(STEPS):
        gradient = derivative(x, y, task, h, n_layers)["theta"]
        task = task - ETA * (0.5 * (gradient + gradient.T) + GAMMA * (task - theta))
    first, second = dict.fromkeys(h, 0.0), dict.fromkeys(h, 0.0)
    for t in range(1, STEPS + 1):
        gradient = derivative(x, y, task, h, n_layers)
        for k, value in h.items():
            g = gradient[k] + (2.0 * BETA * value if value.ndim > 1 else 0.0)
            first[k], second[k] = 0.9 * first[k] + 0.1 * g, 0.999 * second[k] + 0.001 * g**2
            h = h | {k: value - ETA * first[k] / (1 - 0.9**t) / (np.sqrt(second[k] / (1 - 0.999**t)) + 1e-8)}
    return theta, task, h


@pytest.mark.parametrize(("n_layers", "order", "l1_scale"), [(1, 3, 1.0), (2, 2, 10.0)])
def test_one_epoch_of_the_recipe_is_the_listing(n_layers, order, l1_scale):
    data = make_gaussian_regression(60, 8, sparsity=0.3, random_state=n_layers)
    y = 30.0 + 5.0 * data.y.to_numpy()  # far from standard units
    model = PNNRegressor(
        recipe="paper", step1="paper", n_layers=n_layers, order=order, l1_scale=l1_scale, dtype="float64",
        max_epochs=1, validation_fraction=0.0, random_state=0,
    )  # fmt: skip
    run = model.start_training(data.X, y)
    start = run.policy.state
    rows = run.policy.problem.rows  # in the order of training, which is no part of the listing
    x, target = rows.x[:, :, 0].numpy(), rows.y.numpy()
    np.testing.assert_allclose(np.sort(target), np.sort(y))  # in its own units
    np.testing.assert_allclose(x.std(axis=0), 1.0)
    h = {name: value.numpy().copy() for name, value in start.weights.items()}
    assert h["readout.perceptron.0.weight"].shape == (64, 8)  # of the mean node
    lam = l1_scale * np.sqrt(np.log(8) / 60)
    bound = 2.0 / np.linalg.eigvalsh(x.T @ x / 60)[0]
    theta, task, weights = one_epoch(x, target, start.theta, start.theta_task.numpy(), h, lam, bound, n_layers)

    run.advance()
    fitted = model.keep(run.finish())
    assert fitted.n_iter_ == 1
    after = run.policy.state
    assert np.abs(task - start.theta_task.numpy()).max() > 0.01  # the task has moved it
    np.testing.assert_allclose(fitted.precision_, theta, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fitted.task_precision_, task, rtol=0, atol=1e-10)
    assert set(after.weights) == set(weights)
    for name, value in weights.items():
        np.testing.assert_allclose(after.weights[name].numpy(), value, rtol=0, atol=1e-10)
        assert np.abs(value - h[name]).max() > 0.01
