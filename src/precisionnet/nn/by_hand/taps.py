"""What the first layer sees of a batch: x, shift x, ..., shift^K x, one number a node, no weight in it."""

from __future__ import annotations

import torch
from torch import Tensor

from precisionnet.nn.by_hand.workspace import Workspace


class Taps:
    """The taps one under the other, their means and their covariance.

    They serve as long as neither x, (members, batch, nodes, 1), nor the shift, (members, nodes, nodes), changes.
    """

    def __init__(self, x: Tensor, shift: Tensor, order: int, workspace: Workspace | None = None) -> None:
        room = (workspace or Workspace()).room
        members, batch, nodes, _ = x.shape
        self.signals = room("taps", (members, order + 1, nodes, batch), x)
        """(members, order + 1, nodes, batch)."""
        self.signals[:, 0] = x[..., 0].mT
        for k in range(order):
            self.signals[:, k + 1] = torch.bmm(shift, self.signals[:, k])
        self.flat = self.signals.view(members, order + 1, -1)
        self.mean = self.flat.mean(dim=2, keepdim=True)
        # Centred first, or large means would eat the digits of the variance.
        self.centred = torch.sub(self.flat, self.mean, out=room("centred taps", tuple(self.flat.shape), x))
        self.covariance = self.centred @ self.centred.mT / self.flat.shape[2]

    def backward(self, d_flat: Tensor, shift: Tensor, d_shift: Tensor) -> None:
        """Adds the shift's gradient to ``d_shift``, from that of ``flat``."""
        d_signals = d_flat.view(self.signals.shape)
        d = d_signals[:, -1]
        for k in range(d_signals.shape[1] - 2, -1, -1):
            d_shift.baddbmm_(d, self.signals[:, k].mT)
            if k:
                d = torch.baddbmm(d_signals[:, k], shift.mT, d)
