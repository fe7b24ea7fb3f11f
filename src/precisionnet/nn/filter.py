r"""A layer of the network, eq. (1): a bank of polynomial graph filters, eq. (2), batch normalisation, activation.

    output_f = sum_j sum_{k=0}^{K} h_kfj shift^k x_j

A matrix power is never formed. There are two ways to evaluate the sum, and the cheaper one is taken:

- on taps, x -> shift x -> shift (shift x) ...: K shifts of the input's features, one product with the coefficients;
- by Horner's rule, a_K = h_K' x, a_k = h_k' x + shift a_{k+1}: K shifts of the output's features.

Signals, (batch, nodes, features), lie in memory as (features, nodes, batch): products then have long rows, and nothing
is copied between layers.

``shift`` is any symmetric matrix: the precision (a PNN), the covariance (a VNN), or something else.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from precisionnet.nn.spectral import frequency_response

MOMENTUM, EPSILON = 0.1, 1e-5
"""Momentum and epsilon of batch normalisation, as in PyTorch."""


class PolynomialFilter(nn.Module):
    """Filter bank of eq. (2), from (batch, nodes, in_features) to (batch, nodes, out_features).

    A stack of banks has a leading axis of members on every tensor: ``weight`` is then (members, order + 1, in_features,
    out_features), x (members, batch, nodes, in_features) and shift (members, nodes, nodes).

    Parameters
    ----------
    in_features : int
        Features a node carries before the filter, F_in of the paper.
    out_features : int
        Features a node carries after it, F_out of the paper.
    order : int
        Degree K of the polynomials; 0 is a linear map of each node.
    bias : bool, default=False
        Add a learnt constant to each output feature (the paper has none).

    Attributes
    ----------
    weight : Tensor of shape (order + 1, in_features, out_features)
        The coefficient h_kfj is ``weight[k, j, f]``.

    Examples
    --------
    >>> import torch
    >>> bank = PolynomialFilter(in_features=1, out_features=4, order=2)
    >>> bank(torch.ones(3, 5, 1), torch.eye(5)).shape
    torch.Size([3, 5, 4])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, order: int, *, bias: bool = False) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1 or order < 0:
            raise ValueError(
                "PolynomialFilter needs in_features >= 1, out_features >= 1 and order >= 0, "
                f"got {in_features}, {out_features} and {order}."
            )
        self.in_features, self.out_features, self.order = in_features, out_features, order
        self.widens = in_features < out_features  # shifting the input is then cheaper
        self.weight = nn.Parameter(torch.empty(order + 1, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw coefficients with the variance that keeps the output's scale when the shift has norm one."""
        limit = (3.0 / ((self.order + 1) * self.in_features)) ** 0.5
        nn.init.uniform_(self.weight, -limit, limit)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Filter the signals of every node.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix that the polynomials are taken of.

        Returns
        -------
        Tensor of shape (batch, nodes, out_features)
            Filtered signals.
        """
        self._check(x, shift)
        if not self.widens:
            output = self._horner(x, shift)
            return output if self.bias is None else output + self.bias[..., None, None, :]
        offset = self.weight.new_zeros(self.out_features) if self.bias is None else self.bias
        return self.combine(self.taps(x, shift), self.weight.flatten(-3, -2), offset, (x.shape[-2], x.shape[-3]))

    def taps(self, x: Tensor, shift: Tensor) -> Tensor:
        """Compute x, shift x, ..., shift^K x.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix.

        Returns
        -------
        Tensor of shape ((order + 1) * in_features, nodes * batch)
            One row per tap and feature.
        """
        if self.in_features == 1:  # plain matrix products: the usual first layer
            taps = [x.squeeze(-1).mT]
            for _ in range(self.order):
                taps.append(shift @ taps[-1])
            return torch.stack(taps, dim=-3).flatten(-2)
        taps = [x.transpose(-3, -1)]
        for _ in range(self.order):
            taps.append(shift.unsqueeze(-3) @ taps[-1])
        return torch.stack(taps, dim=-4).flatten(-2).flatten(-3, -2)

    @staticmethod
    def combine(taps: Tensor, weight: Tensor, offset: Tensor, shape: tuple[int, int]) -> Tensor:
        """Sum taps with coefficients and add a constant per output feature.

        Parameters
        ----------
        taps : Tensor of shape ((order + 1) * in_features, nodes * batch)
            What ``taps`` returns.
        weight : Tensor of shape ((order + 1) * in_features, out_features)
            Coefficients.
        offset : Tensor of shape (out_features,)
            Constant of each output feature.
        shape : tuple of int
            Number of nodes and of samples.

        Returns
        -------
        Tensor of shape (batch, nodes, out_features)
            Filtered signals.
        """
        product = torch.addmm if taps.ndim == 2 else torch.baddbmm
        output = product(offset.unsqueeze(-1), weight.mT, taps)
        return output.view(*output.shape[:-1], *shape).transpose(-3, -1)

    def _horner(self, x: Tensor, shift: Tensor) -> Tensor:
        signals = x.transpose(-3, -1)
        shape = signals.shape[-2], signals.shape[-1]
        flat = signals.flatten(-2)
        coefficients = self.weight.mT.unbind(-3)
        output = coefficients[-1] @ flat
        product = torch.addmm if flat.ndim == 2 else torch.baddbmm
        for coefficient in reversed(coefficients[:-1]):
            shifted = shift.unsqueeze(-3) @ output.view(*output.shape[:-1], *shape)
            output = product(shifted.flatten(-2), coefficient, flat)
        return output.view(*output.shape[:-1], *shape).transpose(-3, -1)

    def _check(self, x: Tensor, shift: Tensor) -> None:
        if x.ndim < 3 or x.shape[-1] != self.in_features:
            raise ValueError(f"x must have shape (batch, nodes, {self.in_features}), got {tuple(x.shape)}.")
        if shift.shape[-2:] != (x.shape[-2], x.shape[-2]) or shift.ndim != x.ndim - 1:
            raise ValueError(f"shift must have shape ({x.shape[-2]}, {x.shape[-2]}), got {tuple(shift.shape)}.")

    def frequency_response(self, mu: Tensor) -> Tensor:
        """Evaluate h(mu) of eq. (4), one polynomial per pair of features.

        Parameters
        ----------
        mu : Tensor of shape (n,)
            Eigenvalues.

        Returns
        -------
        Tensor of shape (n, in_features, out_features)
            Responses.
        """
        return frequency_response(self.weight, mu)

    def extra_repr(self) -> str:
        """Say what ``print(module)`` shows.

        Returns
        -------
        str
            Sizes and order.
        """
        return f"{self.in_features}, {self.out_features}, order={self.order}, bias={self.bias is not None}"


class FeatureNorm(nn.Module):
    """Batch normalisation per feature, over samples and nodes alike, so that node order and number do not matter.

    Parameters
    ----------
    n_features : int
        Features of a node.
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n_features)), nn.Parameter(torch.zeros(n_features))
        self.register_buffer("running_mean", torch.zeros(n_features))
        self.register_buffer("running_var", torch.ones(n_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x of shape (batch, nodes, features)."""
        mean, variance = self.running_mean, self.running_var
        if self.training:
            variance, mean = torch.var_mean(x, dim=(-3, -2), correction=0)
            self.remember(mean, variance, x.shape[-3] * x.shape[-2])
        gain, offset = self.gain_and_offset(mean, variance)
        return torch.addcmul(offset[..., None, None, :], x, gain[..., None, None, :])

    def gain_and_offset(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return what to multiply with and what to add, for features of this mean and variance."""
        gain = self.weight * torch.rsqrt(variance + EPSILON)
        return gain, self.bias - mean * gain

    @torch.no_grad()
    def remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Let the running moments follow those of a batch of ``count`` numbers per feature."""
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean.detach(), MOMENTUM)
        self.running_var.lerp_(variance.detach() * (count / max(1, count - 1)), MOMENTUM)


class FilterLayer(nn.Module):
    """One layer of eq. (1): filter bank, batch normalisation, activation."""

    def __init__(
        self, in_features: int, out_features: int, order: int, activation: Callable[[], nn.Module], batch_norm: bool
    ) -> None:
        super().__init__()
        self.filter = PolynomialFilter(in_features, out_features, order, bias=not batch_norm)
        self.norm = FeatureNorm(out_features) if batch_norm else None
        self.activation = activation()

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Apply the layer to x of shape (batch, nodes, in_features)."""
        if self.norm is None:
            output = self.filter(x, shift)
        elif self.filter.widens and type(self.filter) is PolynomialFilter and type(self.norm) is FeatureNorm:
            output = self._normalised_coefficients(x, shift, self.norm)
        else:
            output = self.norm(self.filter(x, shift))
        activated: Tensor = self.activation(output)
        return activated

    def _normalised_coefficients(self, x: Tensor, shift: Tensor, norm: FeatureNorm) -> Tensor:
        r"""Run filter and normalisation in one step, by scaling the filter's coefficients instead of its output.

        The output is the largest tensor of a pass, so this saves time and memory. A filter is linear in its taps, so
        the mean and variance of its output follow from the mean m and covariance C of the taps:
        mean_f = h_f' m and var_f = h_f' C h_f.
        """
        taps, h = self.filter.taps(x, shift), self.filter.weight.flatten(-3, -2)
        shape = x.shape[-2], x.shape[-3]
        if not self.training:
            gain, offset = norm.gain_and_offset(norm.running_mean, norm.running_var)
            return self.filter.combine(taps, h * gain.unsqueeze(-2), offset, shape)
        mean = taps.mean(dim=-1, keepdim=True)
        centred = taps - mean  # first of all: large means would cost digits
        variance = (torch.matmul(centred @ centred.mT, h) * h).sum(dim=-2) / taps.shape[-1]
        with torch.no_grad():
            norm.remember((mean * h).sum(dim=-2), variance, taps.shape[-1])
        gain = norm.weight * torch.rsqrt(variance + EPSILON)  # what is centred has mean zero
        return self.filter.combine(centred, h * gain.unsqueeze(-2), norm.bias, shape)
