"""A filter on a sparse shift is the same filter: forward, backward, stacked, permuted, and on any device's way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet.nn import NetworkStack, PolynomialFilter, PrecisionNetwork
from precisionnet.nn import sparse_shift as module
from precisionnet.nn.sparse_shift import Probe, SparseShift, shift_of
from precisionnet.sparse_matrices import SparseStack, Support

N = 7


def drawn_support(seed: int = 0, density: float = 0.4) -> Support:
    edges = np.triu(np.random.default_rng(seed).random((N, N)) < density, 1)
    return Support(N, *np.nonzero(edges))


def drawn_shift(members: int = 2) -> SparseShift:
    support = drawn_support()
    values = torch.randn(members, support.n_slots, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return SparseShift(values.requires_grad_(), support)


def stacked(banks: list[PolynomialFilter]) -> PolynomialFilter:
    whole = PolynomialFilter(banks[0].in_features, banks[0].out_features, banks[0].order).double()
    whole.weight = torch.nn.Parameter(torch.stack([bank.weight.detach() for bank in banks]))
    return whole


@pytest.mark.parametrize("features", [(1, 4), (3, 4), (4, 2)])
def test_equals_the_dense_filter(features):
    shift = drawn_shift()
    bank = stacked([PolynomialFilter(*features, 3).double() for _ in range(2)])
    x = torch.randn(2, 5, N, features[0], dtype=torch.float64, requires_grad=True)
    wanted = torch.randn(2, 5, N, features[1], dtype=torch.float64)
    found = []
    for one in (shift, shift.to_dense()):
        output = bank(x, one)
        gradients = torch.autograd.grad((output * wanted).sum(), [shift.values, x, bank.weight])
        found.append([output, *gradients])
    for sparse, dense in zip(*found, strict=True):
        torch.testing.assert_close(sparse, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("features", [(1, 3), (3, 2)])
def test_stack_equals_single_members(features):
    shift = drawn_shift()
    banks = [PolynomialFilter(*features, 2).double() for _ in range(2)]
    x = torch.randn(2, 4, N, features[0], dtype=torch.float64)
    together = stacked(banks)(x, shift)
    for i, bank in enumerate(banks):
        torch.testing.assert_close(bank(x[i], shift[i]), together[i], rtol=1e-12, atol=1e-12)


def test_gradcheck():
    support = drawn_support()
    x = torch.randn(1, 2, N, 3, dtype=torch.float64, requires_grad=True)
    values = torch.randn(1, support.n_slots, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, s: SparseShift(v, support) @ s, (values, x))


def test_permuted_nodes_permute_the_output():
    support = drawn_support()
    values = np.random.default_rng(3).standard_normal(support.n_slots)
    order = np.random.default_rng(4).permutation(N)
    permuted = Support.of(support.matrix(values)[order][:, order])
    network = PrecisionNetwork(N, n_filters=3, order=2, n_layers=2).double().eval()
    x = torch.randn(4, N, 1, dtype=torch.float64)
    one = SparseShift(torch.from_numpy(values), support)
    other = SparseShift(torch.from_numpy(permuted.values_of(support.matrix(values)[order][:, order])), permuted)
    torch.testing.assert_close(network.node_features(x[:, order], other), network.node_features(x, one)[:, order])


def test_other_devices_way_is_the_same(monkeypatch):
    shift, x = drawn_shift(), torch.randn(2, 3, N, 4, dtype=torch.float64)
    gradient = torch.randn_like(x)
    kernels = (
        module._multiply(shift.values, x, shift.support),
        module._sampled(gradient, x, shift.support, shift.values),
    )
    row, column, slot = module._on_device(shift.support, x.device)
    values = shift.values.detach()
    product = torch.zeros_like(x).index_add_(2, row, x[:, :, column] * values[:, None, slot, None])
    sampled = torch.zeros_like(values).index_add_(1, slot, (gradient[:, :, row] * x[:, :, column]).sum(dim=(1, 3)))
    torch.testing.assert_close(kernels[0], product)
    torch.testing.assert_close(kernels[1], sampled)


def test_probe_has_the_gradient_of_every_pair():
    """That of a dense symmetric matrix, for the nodes that were asked for."""
    shift, nodes = drawn_shift(1), torch.tensor([0, 3])
    probe = Probe(nodes)
    network = NetworkStack([PrecisionNetwork(N, n_filters=2, order=2, n_layers=2).double()])
    x = torch.randn(1, 5, N, 1, dtype=torch.float64)
    network(x, SparseShift(shift.values, shift.support, probe)).sum().backward()
    dense = shift.to_dense().detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network(x, dense).sum(), dense)
    torch.testing.assert_close(probe.total, (gradient + gradient.mT)[:, nodes])


def test_shift_of_both_kinds_of_matrices():
    support = drawn_support()
    stack = SparseStack(support, np.random.default_rng(0).standard_normal((2, support.n_slots)))
    like = torch.empty(0)
    arrays = np.stack([stack[i].toarray() for i in range(2)])
    assert shift_of(stack, 2.0, like).values.dtype == torch.float32
    torch.testing.assert_close(shift_of(stack, 2.0, like).to_dense(), shift_of(arrays, 2.0, like))


def test_matrix_and_values_are_each_others_inverse():
    support = drawn_support()
    values = np.random.default_rng(0).standard_normal(support.n_slots)
    matrix = support.matrix(values)
    assert (abs(matrix - matrix.T)).nnz == 0
    np.testing.assert_array_equal(support.values_of(matrix), values)
    np.testing.assert_array_equal(Support.of(matrix).keys, support.keys)
    values[support.n] = 0.0  # a stored zero is no edge, and the support stays as it was
    assert Support.of(support.matrix(values)).n_edges == support.n_edges - 1
    np.testing.assert_array_equal(support.values_of(matrix) != 0, np.ones(support.n_slots, dtype=bool))
