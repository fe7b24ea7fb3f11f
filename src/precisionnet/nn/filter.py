r"""The bank of polynomial graph filters: eq. (1) without its nonlinearity, and eq. (2).

    output_f = sum_j sum_{k=0}^{K} h_kfj shift^k x_j

computed by K shifts, x -> shift x -> shift (shift x) ..., and one product with the coefficients; a matrix power is
never formed. ``shift`` is any symmetric matrix: the precision (a PNN), the covariance (a VNN), or something else.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from precisionnet.nn.spectral import frequency_response


class PolynomialFilter(nn.Module):
    """Filter bank of eq. (2): from (batch, nodes, in_features) to (batch, nodes, out_features).

    Parameters
    ----------
    in_features, out_features : F_in and F_out of the paper.
    order : K, the degree of the polynomials; 0 is a node-wise linear map.
    bias : add a learnt constant a output feature (the paper has none).

    Attributes
    ----------
    weight : (order + 1, in_features, out_features), the coefficients h_kfj at ``weight[k, j, f]``.
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
        self.weight = nn.Parameter(torch.empty(order + 1, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform with the variance that keeps the output's scale when the shift has norm one."""
        limit = (3.0 / ((self.order + 1) * self.in_features)) ** 0.5
        nn.init.uniform_(self.weight, -limit, limit)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Filter ``x`` of shape (batch, nodes, in_features) over ``shift`` of shape (nodes, nodes)."""
        self._check(x, shift)
        # Nodes first in memory: a shift is then one (nodes, nodes) x (nodes, batch * features) product. The result goes
        # out as a transposed view, so between layers nothing is copied.
        batch, nodes = x.shape[:2]
        taps = [x.transpose(0, 1).contiguous()]
        for _ in range(self.order):
            taps.append((shift @ taps[-1].reshape(nodes, -1)).reshape(nodes, batch, -1))
        # The sum over taps and features, one product: (nodes * batch, (K + 1) F_in) x ((K + 1) F_in, F_out).
        output = torch.cat(taps, dim=-1) @ self.weight.reshape(-1, self.out_features)
        if self.bias is not None:
            output = output + self.bias
        return output.transpose(0, 1)

    def _check(self, x: Tensor, shift: Tensor) -> None:
        """Refuse what does not fit together."""
        if x.ndim != 3 or x.shape[-1] != self.in_features:
            raise ValueError(f"x must have shape (batch, nodes, {self.in_features}), got {tuple(x.shape)}.")
        if shift.shape != (x.shape[1], x.shape[1]):
            raise ValueError(f"shift must have shape ({x.shape[1]}, {x.shape[1]}), got {tuple(shift.shape)}.")

    def frequency_response(self, mu: Tensor) -> Tensor:
        """h(mu) of eq. (4), one polynomial a pair of features: shape (len(mu), in_features, out_features)."""
        return frequency_response(self.weight, mu)

    def extra_repr(self) -> str:
        """What ``print(module)`` shows."""
        return f"{self.in_features}, {self.out_features}, order={self.order}, bias={self.bias is not None}"
