"""Eq. (1), (2) and (4): what a polynomial filter is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.nn import (
    PolynomialFilter,
    PrecisionNetwork,
    inverse_precision_fourier_transform,
    precision_fourier_transform,
    scale_to_unit_norm,
)
from tests.conftest import random_shift


def dense_reference(weight: torch.Tensor, x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """sum_k shift^k x h_k with matrix powers, as the paper writes it."""
    powers = [torch.linalg.matrix_power(shift, k) for k in range(len(weight))]
    return sum(torch.einsum("nm,bmj,jf->bnf", power, x, h) for power, h in zip(powers, weight, strict=True))


@settings(max_examples=20, deadline=None)
@given(
    batch=st.integers(1, 5),
    nodes=st.integers(1, 9),
    f_in=st.integers(1, 4),
    f_out=st.integers(1, 4),
    order=st.integers(0, 6),
    seed=st.integers(0, 2**31),
)
def test_filter_is_the_matrix_polynomial(batch, nodes, f_in, f_out, order, seed):
    generator = torch.Generator().manual_seed(seed)
    shift = random_shift(nodes, generator)
    x = torch.randn(batch, nodes, f_in, generator=generator, dtype=torch.float64)
    bank = PolynomialFilter(f_in, f_out, order).double()
    torch.testing.assert_close(bank(x, shift), dense_reference(bank.weight, x, shift), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_filter_keeps_the_dtype(dtype, atol):
    generator = torch.Generator().manual_seed(0)
    shift = random_shift(6, generator, dtype)
    x = torch.randn(3, 6, 2, generator=generator, dtype=dtype)
    bank = PolynomialFilter(2, 4, 3).to(dtype)
    output = bank(x, shift)
    assert output.dtype == dtype
    torch.testing.assert_close(output, dense_reference(bank.weight, x, shift), rtol=0, atol=atol)


@pytest.mark.parametrize("f_in", [1, 2, 3])
@pytest.mark.parametrize("order", [0, 1, 4])
def test_taps_and_horners_rule_give_the_same(f_in, order):
    """Values, and derivatives of weights, signals and a shift that need not be symmetric; a stack of banks as well."""
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(2, order + 1, f_in, 3, generator=generator, dtype=torch.float64)
    x = torch.randn(2, 4, 5, f_in, generator=generator, dtype=torch.float64)
    shift = 0.3 * torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    bank = PolynomialFilter(f_in, 3, order).double()
    found = []
    for one in ("taps", "Horner", "stack"):
        leaves = [t.clone().requires_grad_() for t in (weight, x, shift)]
        rows = [leaves] if one == "stack" else [[leaf[i] for leaf in leaves] for i in range(2)]
        outputs = []
        for h, signals, matrix in rows:
            bank._parameters["weight"] = h  # a plain tensor, through which the gradient flows on
            if one == "taps":
                taps, offset = bank.taps(signals, matrix), torch.zeros(3, dtype=torch.float64)
                outputs.append(bank.combine(taps, h.flatten(-3, -2), offset, (5, 4)))
            else:
                outputs.append(bank._horner(signals, matrix) if one == "Horner" else bank(signals, matrix))
        output = outputs[0] if one == "stack" else torch.stack(outputs)
        output.sin().sum().backward()
        found.append([output, *(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves)])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("f_out", [1, 4])
def test_bias_is_added_to_every_node(f_out):
    generator = torch.Generator().manual_seed(6)
    bank = PolynomialFilter(2, f_out, 2, bias=True).double()
    x, shift = torch.randn(3, 4, 2, generator=generator, dtype=torch.float64), random_shift(4, generator)
    without = bank(x, shift)
    with torch.no_grad():
        bank.bias.copy_(torch.arange(1.0, f_out + 1))
    torch.testing.assert_close(bank(x, shift), without + bank.bias)


def test_filter_acts_as_its_frequency_response_on_each_spectral_component():
    generator = torch.Generator().manual_seed(1)
    shift = random_shift(7, generator)
    x = torch.randn(4, 7, 1, generator=generator, dtype=torch.float64)
    bank = PolynomialFilter(1, 1, 4).double()
    mu, x_hat = precision_fourier_transform(x, shift)
    _, y_hat = precision_fourier_transform(bank(x, shift), shift)
    torch.testing.assert_close(y_hat, bank.frequency_response(mu)[:, 0, 0][None, :, None] * x_hat, rtol=0, atol=1e-12)


def test_fourier_transform_is_orthogonal_and_equals_the_principal_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) @ rng.normal(size=(5, 5))
    X -= X.mean(axis=0)
    covariance = torch.from_numpy(X.T @ X / len(X))
    x = torch.from_numpy(X).unsqueeze(-1)
    _, x_hat = precision_fourier_transform(x, torch.linalg.inv(covariance))
    torch.testing.assert_close(inverse_precision_fourier_transform(x_hat, torch.linalg.inv(covariance)), x)
    # Components of the precision's transform are uncorrelated, with the covariance's eigenvalues as variances.
    second = torch.einsum("bif,bjf->ij", x_hat, x_hat) / len(X)
    torch.testing.assert_close(second, torch.diag(torch.linalg.eigvalsh(covariance).flip(0)), rtol=1e-8, atol=1e-8)


def test_vnn_and_pnn_agree_when_one_polynomial_is_the_other_on_the_eigenvalues():
    """A VNN filter g with g(w_i) = h(1 / w_i) does to the covariance what h does to the precision."""
    generator = torch.Generator().manual_seed(2)
    n = 5
    basis = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    w = torch.linspace(0.5, 2.0, n, dtype=torch.float64)
    covariance, precision = (basis * w) @ basis.T, (basis / w) @ basis.T
    pnn = PrecisionNetwork(n, n_layers=1, n_filters=3, order=2, readout="mlp").double().eval()
    vnn = PrecisionNetwork(n, n_layers=1, n_filters=3, order=n - 1, readout="mlp").double().eval()
    state = {k: v for k, v in pnn.state_dict().items() if k != "layers.0.filter.weight"}
    response = pnn.filters[0].frequency_response(1.0 / w).reshape(n, -1)  # h at the precision's eigenvalues
    vandermonde = torch.stack([w**k for k in range(n)], dim=1)
    state["layers.0.filter.weight"] = torch.linalg.solve(vandermonde, response).reshape(n, 1, 3).detach()
    vnn.load_state_dict(state)
    x = torch.randn(6, n, 1, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(vnn(x, covariance), pnn(x, precision), rtol=0, atol=1e-9)


def test_gradcheck_through_the_shift_and_its_scaling():
    generator = torch.Generator().manual_seed(3)
    shift = (random_shift(4, generator) + 2 * torch.eye(4, dtype=torch.float64)).requires_grad_()
    x = torch.randn(3, 4, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    bank = PolynomialFilter(2, 2, 3).double()

    def run(x, shift):
        return bank(x, scale_to_unit_norm(0.5 * (shift + shift.T)))

    assert torch.autograd.gradcheck(run, (x, shift))


def test_agrees_with_tagconv_of_pytorch_geometric():
    geometric = pytest.importorskip("torch_geometric.nn", reason="needs the extra: pip install 'precisionnet[pyg]'")
    generator = torch.Generator().manual_seed(4)
    shift = random_shift(6, generator)
    x = torch.randn(1, 6, 2, generator=generator, dtype=torch.float64)
    bank = PolynomialFilter(2, 3, 3).double()
    conv = geometric.TAGConv(2, 3, K=3, bias=False, normalize=False).double()
    for linear, h in zip(conv.lins, bank.weight, strict=True):
        linear.weight.data = h.T.clone().detach()
    edge_index = shift.nonzero().T
    expected = conv(x[0], edge_index, shift[edge_index[0], edge_index[1]])
    torch.testing.assert_close(bank(x, shift)[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("x_shape", "shift_shape", "sentence"),
    [
        ((4, 5), (5, 5), "x must have shape"),
        ((2, 5, 3), (5, 5), "x must have shape"),
        ((2, 5, 1), (4, 4), "shift must"),
    ],
)
def test_wrong_shapes_are_named(x_shape, shift_shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        PolynomialFilter(1, 2, 2)(torch.zeros(x_shape), torch.zeros(shift_shape))


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="order >= 0"):
        PolynomialFilter(1, 1, -1)
