"""The matrices under a stack of members: what moves them, and where they live."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet.joint.matrices import MATRICES, Coupled, Fixed, Single
from precisionnet.joint.problem import start_of
from precisionnet.joint.pruning import Pruned
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.precision import graphical_lasso_terms
from tests.devices import META, OneDevice
from tests.joint.conftest import make_problem

KINDS = [Fixed, Coupled, Single, Pruned]
LIKE = torch.zeros(1, dtype=torch.float64)


def made(kind, n_members: int = 2, like: torch.Tensor = LIKE, **changes):
    graph = make_problem(n=5, rows=40, **changes).graph
    return kind(graph, start_of("joint", graph), n_members, like)


def task_gradient(matrices, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(matrices.matrix.shape, generator=generator, dtype=matrices.matrix.dtype)


def take(matrices, gradient: torch.Tensor, rate: float) -> None:
    """A batch whose loss has this gradient in the shift."""
    (matrices.shift(1.0) * gradient).sum().backward()
    matrices.step(rate)


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_begins_at_the_start(kind):
    matrices = made(kind, 3)
    for theta, task, shift in zip(*matrices.snapshot(), matrices.shift(2.0).detach().numpy(), strict=True):
        if kind is not Single:  # which hands out the thresholded one
            np.testing.assert_array_equal(theta, matrices.theta[0])
            np.testing.assert_allclose(2.0 * shift, task, rtol=0, atol=1e-15)
        assert np.array_equal(shift, shift.T)


@pytest.mark.parametrize("kind", [Coupled, Single, Pruned])
def test_a_step_moves_each_member_by_its_own_gradient(kind):
    both = made(kind)
    gradient = task_gradient(both)
    take(both, gradient, 0.01)
    for i in range(2):
        alone = made(kind, 1)
        take(alone, gradient[i : i + 1], 0.01)
        np.testing.assert_allclose(both.theta_task[i], alone.theta_task[0], rtol=0, atol=1e-13)
    assert np.abs(both.theta_task[0] - both.theta_task[1]).max() > 1e-3


def test_an_asymmetric_gradient_leaves_the_shift_symmetric():
    matrices = made(Coupled)
    take(matrices, task_gradient(matrices), 0.05)
    shift = matrices.shift(3.0)
    assert torch.equal(shift, shift.mT)
    np.testing.assert_allclose(3.0 * shift.detach().numpy(), matrices.theta_task, rtol=0, atol=1e-14)


def test_the_coupling_is_a_proximal_step():
    """Without a task, theta_task goes to (theta_task + rate gamma theta) / (1 + rate gamma), for any gamma."""
    for gamma in (0.1, 1e6):
        matrices = made(Coupled, coupling=gamma)
        away = matrices.theta + np.eye(5)
        matrices.resume(matrices.theta, away)
        matrices.step(0.5)
        np.testing.assert_allclose(matrices.theta_task, (away + 0.5 * gamma * matrices.theta) / (1 + 0.5 * gamma))


def test_step_one_is_solved_for_every_member():
    matrices = made(Coupled)
    take(matrices, task_gradient(matrices), 0.2)
    before, graph = matrices.theta.copy(), matrices.graph
    matrices.begin(0.5, solve=False)
    np.testing.assert_array_equal(matrices.theta, before)
    matrices.begin(0.5, solve=True)

    def objective(theta, task):
        lasso = graphical_lasso_terms(theta, graph.emp_cov, graph.l1_penalty, graph.ridge).total
        return (1 - graph.task_weight) * lasso + graph.coupling / 2 * np.linalg.norm(theta - task) ** 2

    for theta, was, task in zip(matrices.theta, before, matrices.theta_task, strict=True):
        assert objective(theta, task) < objective(was, task)


def test_the_naive_matrix_stays_in_its_bounds():
    matrices = made(Single)
    for seed in range(5):
        take(matrices, task_gradient(matrices, seed), 10.0)
        for matrix in matrices.theta_task:
            smallest, largest = extreme_eigenvalues(matrix)
            assert smallest > 0
            assert largest <= matrices.graph.spectral_bound * (1 + 1e-9)
    theta, task = matrices.snapshot()
    np.testing.assert_array_equal(theta, task)


def test_a_network_that_ignores_its_matrix_leaves_it_to_the_graph():
    for kind in (Fixed, Coupled, Single, Pruned):
        matrices = made(kind)
        matrices.step(0.01)
        assert np.isfinite(matrices.theta_task).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_shift_stays_on_its_device(kind):
    matrices = made(kind, like=torch.zeros(1, device=META))
    with OneDevice():
        shift = matrices.shift(2.0)
        assert (shift.device, shift.dtype) == (META, torch.float32)
        if kind is not Fixed:
            shift.sum().backward()
            assert matrices.matrix.grad.device == META


def test_every_method_has_matrices():
    assert {name: kind.thins for name, kind in MATRICES.items()} == dict.fromkeys(
        ("joint", "naive", "glasso", "sample", "vnn"), False
    )
