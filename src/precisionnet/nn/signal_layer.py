r"""The first layer, where a node carries one number: eq. (1) with its normalisation folded into the coefficients.

A filter is linear in its taps, so the mean and the variance of what it gives follow from those of the K + 1 taps:

    mean_f = h_f' m,    var_f = h_f' C h_f,      m, C: mean and covariance of (x, shift x, ..., shift^K x)

Normalising the coefficients instead of the output saves several passes over the largest tensor of the network. Memory
holds features first and samples last, so that all products have long rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from precisionnet.nn.filter import PolynomialFilter


class SignalLayer(nn.Module):
    """Filter bank on one number a node, batch normalisation, activation: the same as any other layer, faster.

    ``norm`` holds what batch normalisation learns and remembers; its own forward pass is not used.
    """

    def __init__(self, bank: PolynomialFilter, norm: nn.BatchNorm1d | None, activation: nn.Module) -> None:
        super().__init__()
        self.filter = bank
        self.norm = nn.Identity() if norm is None else norm
        self.activation = activation

    def taps(self, x: Tensor, shift: Tensor) -> Tensor:
        """x, shift x, ..., one under the other: (order + 1, nodes, batch). They hold no weight."""
        self.filter.check(x, shift)
        taps = [x[..., 0].T]
        for _ in range(self.filter.order):
            taps.append(shift @ taps[-1])
        return torch.stack(taps)

    def forward(self, x: Tensor, shift: Tensor, taps: Tensor | None = None) -> Tensor:
        """Apply the layer to x of shape (batch, nodes, 1); ``taps`` where they are known already."""
        taps = self.taps(x, shift) if taps is None else taps
        flat = taps.reshape(len(taps), -1)
        coefficients, constant = self._normalised(flat)
        filtered = torch.addmm(constant.unsqueeze(-1), coefficients.T, flat)
        output: Tensor = self.activation(filtered).reshape(-1, *taps.shape[1:]).permute(2, 1, 0)
        return output

    def _normalised(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients (order + 1, filters) and constants that give the normalised output at once."""
        weight, norm = self.filter.weight.squeeze(1), self.norm
        if not isinstance(norm, nn.BatchNorm1d):
            assert self.filter.bias is not None
            return weight, self.filter.bias
        assert norm.running_mean is not None
        assert norm.running_var is not None
        mean, variance = norm.running_mean, norm.running_var
        if self.training:
            centre = flat.mean(dim=1)
            centred = flat - centre.unsqueeze(-1)  # first, or large means would eat the digits of the variance
            mean = centre @ weight
            variance = ((centred @ centred.T / flat.shape[1]) @ weight * weight).sum(dim=0)
            self._remember(norm, mean.detach(), variance.detach() * flat.shape[1] / max(1, flat.shape[1] - 1))
        gain = norm.weight * torch.rsqrt(variance + norm.eps)
        return weight * gain, norm.bias - mean * gain

    @staticmethod
    def _remember(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        share = 0.1 if norm.momentum is None else norm.momentum
        norm.num_batches_tracked.add_(1)
        norm.running_mean.mul_(1.0 - share).add_(mean, alpha=share)
        norm.running_var.mul_(1.0 - share).add_(variance, alpha=share)
