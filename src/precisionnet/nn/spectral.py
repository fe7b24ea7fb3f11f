r"""The spectral view of a filter: eq. (4) and the precision Fourier transform.

With shift = V diag(mu) V', the transform of a signal is V' x; a polynomial filter multiplies its i-th component by
h(mu_i) = sum_k h_k mu_i^k. For the precision and the covariance V is the same, so the transform is also the projection
on the principal components.
"""

from __future__ import annotations

import torch
from torch import Tensor


def frequency_response(coefficients: Tensor, mu: Tensor) -> Tensor:
    """Evaluate h(mu) = sum_k coefficients[k] mu^k by Horner's rule.

    Parameters
    ----------
    coefficients : Tensor of shape (order + 1, ...)
        One or more polynomials, constant term first.
    mu : Tensor of shape (n,)
        Eigenvalues.

    Returns
    -------
    Tensor of shape (n, ...)
        Responses.

    Examples
    --------
    >>> import torch
    >>> frequency_response(torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0.0, 1.0, 3.0]))
    tensor([ 1.,  3., 19.])
    """
    mu = mu.reshape(-1, *([1] * (coefficients.ndim - 1)))
    response = torch.zeros_like(mu * coefficients[0])
    for coefficient in coefficients.flip(0):
        response = response * mu + coefficient
    return response


def equivalent_coefficients(coefficients: Tensor, mu: Tensor, other: Tensor, order: int) -> Tensor:
    """Find polynomials that do to other eigenvalues what given ones do to their own.

    Two matrices with the same eigenvectors, such as the covariance and its inverse, then filter alike: g(other_i) =
    h(mu_i). With ``order`` at least the number of distinct eigenvalues less one that is exact, whatever the polynomials
    are, but for rounding, which grows with the order; below it the squared differences are least.

    Parameters
    ----------
    coefficients : Tensor of shape (order_before + 1, ...)
        Polynomials h, constant term first.
    mu : Tensor of shape (n,)
        Eigenvalues that they are for.
    other : Tensor of shape (n,)
        Eigenvalues of the other matrix, in the same order of eigenvectors.
    order : int
        Degree of the polynomials g.

    Returns
    -------
    Tensor of shape (order + 1, ...)
        Coefficients of g.

    Examples
    --------
    >>> import torch
    >>> variances = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    >>> h = torch.tensor([0.0, 1.0], dtype=torch.float64)  # the covariance itself
    >>> g = equivalent_coefficients(h, variances, 1 / variances, order=2)
    >>> torch.allclose(frequency_response(g, 1 / variances), variances)
    True
    """
    powers = other[:, None] ** torch.arange(order + 1, dtype=other.dtype)
    wanted = frequency_response(coefficients, mu).reshape(len(mu), -1)
    found = torch.linalg.lstsq(powers, wanted, driver="gelsd").solution
    return found.reshape(order + 1, *coefficients.shape[1:])


def precision_fourier_transform(x: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Project signals on the eigenvectors of a matrix.

    Parameters
    ----------
    x : Tensor of shape (..., nodes, features)
        Signals.
    shift : Tensor of shape (nodes, nodes)
        Symmetric matrix.

    Returns
    -------
    mu : Tensor of shape (nodes,)
        Eigenvalues, ascending.
    x_hat : Tensor of shape (..., nodes, features)
        V' x, one component per eigenvalue.

    Examples
    --------
    >>> import torch
    >>> mu, x_hat = precision_fourier_transform(torch.ones(4, 3, 1), torch.diag(torch.tensor([1.0, 2.0, 3.0])))
    >>> mu
    tensor([1., 2., 3.])
    >>> x_hat.shape
    torch.Size([4, 3, 1])
    """
    mu, vectors = torch.linalg.eigh(shift)
    return mu, vectors.mT @ x


def inverse_precision_fourier_transform(x_hat: Tensor, shift: Tensor) -> Tensor:
    """Return signals from their spectral components.

    Parameters
    ----------
    x_hat : Tensor of shape (..., nodes, features)
        What ``precision_fourier_transform`` returned.
    shift : Tensor of shape (nodes, nodes)
        The same matrix.

    Returns
    -------
    Tensor of shape (..., nodes, features)
        V x_hat.

    Examples
    --------
    >>> import torch
    >>> shift, x = torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.ones(3, 2, 1)
    >>> _, x_hat = precision_fourier_transform(x, shift)
    >>> torch.allclose(inverse_precision_fourier_transform(x_hat, shift), x)
    True
    """
    return torch.linalg.eigh(shift).eigenvectors @ x_hat


def scale_to_unit_norm(shift: Tensor) -> Tensor:
    """Divide a symmetric matrix by its norm; the powers of a filter then neither explode nor vanish.

    The norm is part of the network: its derivative flows into the shift.

    Parameters
    ----------
    shift : Tensor of shape (nodes, nodes)
        Symmetric matrix.

    Returns
    -------
    Tensor of shape (nodes, nodes)
        shift / ||shift||_2.

    Examples
    --------
    >>> import torch
    >>> scale_to_unit_norm(torch.diag(torch.tensor([1.0, 4.0]))).diagonal()
    tensor([0.2500, 1.0000])
    """
    return shift / torch.linalg.eigvalsh(shift).abs().amax().clamp_min(torch.finfo(shift.dtype).tiny)
