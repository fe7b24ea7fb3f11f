"""A VNN and a PNN of large enough order are the same map; how large that is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet.datasets import make_sparse_precision
from precisionnet.nn import PrecisionNetwork, equivalent_coefficients, frequency_response

N, CONDITION = 8, 10.0


@pytest.fixture(scope="module")
def matrices():
    """A precision with norm one and its inverse with norm one."""
    theta = make_sparse_precision(N, 0.4, 0, CONDITION)
    theta = theta / np.linalg.norm(theta, 2)
    covariance = np.linalg.inv(theta)
    return torch.from_numpy(theta), torch.from_numpy(covariance / np.linalg.norm(covariance, 2))


def eigenvalues(theta, covariance):
    """Of both, in one order of eigenvectors."""
    variances = torch.linalg.eigvalsh(covariance).flip(0)
    return torch.linalg.eigvalsh(theta), variances


def precision_twin(vnn: PrecisionNetwork, theta, covariance, order: int) -> PrecisionNetwork:
    """The network with the same norms and readout whose filters are polynomials of theta."""
    mu, variances = eigenvalues(theta, covariance)
    pnn = PrecisionNetwork(n_layers=2, n_filters=4, order=order, readout="mean").double().eval()
    state = vnn.state_dict()
    for name in [name for name in state if name.endswith("filter.weight")]:
        state[name] = equivalent_coefficients(state[name], variances, mu, order)
    pnn.load_state_dict(state)
    return pnn


@pytest.mark.parametrize("vnn_order", [1, 3])
def test_a_precision_network_of_order_n_minus_one_is_the_covariance_network(matrices, vnn_order):
    torch.manual_seed(0)
    vnn = PrecisionNetwork(n_layers=2, n_filters=4, order=vnn_order, readout="mean").double().eval()
    x = torch.randn(20, N, 1, dtype=torch.float64)
    theta, covariance = matrices
    wanted = vnn(x, covariance)
    off = [
        float((precision_twin(vnn, theta, covariance, order)(x, theta) - wanted).detach().abs().max())
        for order in range(1, N)
    ]
    assert off[-1] < 1e-8
    assert off[0] > 1e-3  # a low order is another network


def test_how_many_orders_an_error_takes(matrices):
    """1/mu on [1/kappa, 1] by a polynomial of degree K: the best is off by (1 - 1/kappa) / 2 q^K of the largest value."""
    theta, covariance = matrices
    mu, variances = eigenvalues(theta, covariance)
    itself = torch.tensor([0.0, 1.0], dtype=torch.float64)
    shrinks = (CONDITION**0.5 - 1) / (CONDITION**0.5 + 1)  # q
    for order in range(1, N - 1):
        found = equivalent_coefficients(itself, variances, mu, order)
        error = float((frequency_response(found, mu) - variances).abs().max())
        best = 0.5 * (1 - 1 / CONDITION) * shrinks**order
        assert error <= N**0.5 * best  # least squares at N eigenvalues is within sqrt(N) of the best
