"""What the first layer sees of a batch: x, shift x, ..., shift^K x, one number a node, no weight in it."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from precisionnet.nn.by_hand.workspace import Workspace


class Taps:
    """The taps one under the other; their means and covariance where they are asked for.

    They serve as long as neither x, (members, batch, nodes, 1), nor the shift, (members, nodes, nodes), changes.
    """

    def __init__(self, x: Tensor, shift: Tensor, order: int, workspace: Workspace | None = None) -> None:
        self._room = (workspace or Workspace()).room
        members, batch, nodes, _ = x.shape
        self.signals = self._room("taps", (members, order + 1, nodes, batch), x)
        """(members, order + 1, nodes, batch)."""
        self.signals[:, 0] = x[..., 0].mT
        for k in range(order):
            self.signals[:, k + 1] = torch.bmm(shift, self.signals[:, k])
        self.flat = self.signals.view(members, order + 1, -1)

    @cached_property
    def mean(self) -> Tensor:
        """Of each tap, (members, order + 1, 1)."""
        return self.flat.mean(dim=2, keepdim=True)

    @cached_property
    def centred(self) -> Tensor:
        """``flat`` without its means."""
        return torch.sub(self.flat, self.mean, out=self._room("centred taps", tuple(self.flat.shape), self.flat))

    @cached_property
    def covariance(self) -> Tensor:
        """Of the taps; centred first, or large means would eat the digits."""
        return self.centred @ self.centred.mT / self.flat.shape[2]

    def backward(self, d_flat: Tensor, shift: Tensor, d_shift: Tensor) -> None:
        """Adds the shift's gradient to ``d_shift``, from that of ``flat``."""
        d_signals = d_flat.view(self.signals.shape)
        d = d_signals[:, -1]
        for k in range(d_signals.shape[1] - 2, -1, -1):
            d_shift.baddbmm_(d, self.signals[:, k].mT)
            if k:
                d = torch.baddbmm(d_signals[:, k], shift.mT, d)
