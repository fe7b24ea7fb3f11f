r"""The spectral view of a filter: eq. (4) and the precision Fourier transform.

With shift = V diag(mu) V', the transform of a signal is V' x; a polynomial filter multiplies its i-th component by
h(mu_i) = sum_k h_k mu_i^k. For the precision and the covariance V is the same, so the transform is also the projection
on the principal components.
"""

from __future__ import annotations

import torch
from torch import Tensor


def frequency_response(coefficients: Tensor, mu: Tensor) -> Tensor:
    """h(mu) = sum_k coefficients[k] mu^k by Horner's rule: shape (len(mu), *coefficients.shape[1:])."""
    mu = mu.reshape(-1, *([1] * (coefficients.ndim - 1)))
    response = torch.zeros_like(mu * coefficients[0])
    for coefficient in coefficients.flip(0):
        response = response * mu + coefficient
    return response


def precision_fourier_transform(x: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of ``shift`` (ascending) and V' x for x of shape (..., nodes, features)."""
    mu, vectors = torch.linalg.eigh(shift)
    return mu, vectors.mT @ x


def inverse_precision_fourier_transform(x_hat: Tensor, shift: Tensor) -> Tensor:
    """V x_hat: back from the spectral domain."""
    return torch.linalg.eigh(shift).eigenvectors @ x_hat


def scale_to_unit_norm(shift: Tensor) -> Tensor:
    """shift / ||shift||_2, differentiable; the powers of a filter then neither explode nor vanish.

    The norm is part of the network: its derivative flows into the shift.
    """
    return shift / torch.linalg.eigvalsh(shift).abs().amax().clamp_min(torch.finfo(shift.dtype).tiny)
