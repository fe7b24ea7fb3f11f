r"""The bank of polynomial graph filters: eq. (1) without its nonlinearity, and eq. (2).

    output_f = sum_j sum_{k=0}^{K} h_kfj shift^k x_j

A matrix power is never formed. There are two ways to evaluate the sum, and the cheaper one is taken:

- on taps, x -> shift x -> shift (shift x) ...: K shifts of the input's features, one product with the coefficients;
- by Horner's rule, a_K = h_K' x, a_k = h_k' x + shift a_{k+1}: K shifts of the output's features.

Signals, (batch, nodes, features), lie in memory as (features, nodes, batch): products then have long rows, and nothing
is copied between layers.

``shift`` is any symmetric matrix: the precision (a PNN), the covariance (a VNN), or something else.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from precisionnet.nn.spectral import frequency_response


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
