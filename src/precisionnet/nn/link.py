r"""The last step of a network that predicts a number: from a standard normal scale to that of the target.

Ages of two studies have two peaks, prices a long tail, counts many zeros. A network whose hidden units add up to such a
target has to bend at the right places first. A link does it beforehand: where the network's output f is spread like a
standard normal variable, g(f) is spread like the target,

    g(f) = (1 - s) Q(Phi(f)) + s f,

with Q the target's quantile function on the training rows, Phi the normal distribution function, and a small share s of
a straight line, so that g rises everywhere. g is piecewise linear between knots at even distances, and fixed before
training. The loss stays what it was, in the target's units: only the network's way there changes.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn

from precisionnet.types import FloatArray

N_KNOTS, LAST_KNOT = 33, 2.4
"""How many knots there are, and where the last one is: 0.8 % of a normal variable are beyond it on either side."""
PLACES = np.linspace(-LAST_KNOT, LAST_KNOT, N_KNOTS)
STRAIGHT = 0.1
"""Share of a straight line."""
SMOOTHED = np.linspace(-0.3, 0.3, 9)
"""Places around a knot over which quantiles are averaged: single rows and ties leave no step."""


class QuantileLink(nn.Module):
    """A fixed, rising, piecewise linear function of one output; beyond its knots it goes on straight.

    The first one maps every number to itself. Where a network has one as ``link``, training takes the quantiles of the
    rows that the network learns from.

    Examples
    --------
    >>> import torch
    >>> link = QuantileLink()
    >>> link.fit(np.exp(np.random.default_rng(0).standard_normal(2000)), np.ones(2000))
    >>> [round(float(y)) for y in link(torch.tensor([[-10.0], [0.0], [1.0]]))]
    [-1, 1, 3]
    """

    knots: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("knots", torch.tensor(PLACES, dtype=torch.float32))

    def fit(self, y: FloatArray, weight: FloatArray) -> None:
        """Take the quantiles of a target.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The target as networks learn it: about one standard deviation wide.
        weight : ndarray of shape (n_rows,)
            How often each row counts.
        """
        own = np.flatnonzero(weight > 0.0)
        order = own[np.argsort(y[own], kind="stable")]
        share = weight[order] / weight[order].sum()
        normal = ndtri(np.cumsum(share) - 0.5 * share)
        heights = np.exp(-0.5 * (SMOOTHED / 0.15) ** 2)
        quantiles = np.interp(PLACES[:, None] + SMOOTHED, normal, y[order]) @ (heights / heights.sum())
        width = float(np.sqrt(np.cov(y[order], aweights=share, ddof=0))) or 1.0
        self.knots.copy_(torch.from_numpy((1.0 - STRAIGHT) * quantiles + STRAIGHT * width * PLACES))

    def forward(self, f: Tensor) -> Tensor:
        """Map outputs to the target's scale.

        Parameters
        ----------
        f : Tensor of shape (batch, 1)
            Outputs; of a stack of networks, (members, batch, 1).

        Returns
        -------
        Tensor
            Of the same shape.
        """
        place = (f + LAST_KNOT) * ((N_KNOTS - 1) / (2.0 * LAST_KNOT))
        below = place.detach().floor().clamp(0, N_KNOTS - 2)
        left = below.long()[..., 0]
        low, high = (self.knots.take_along_dim(one, dim=-1).unsqueeze(-1) for one in (left, left + 1))
        return torch.lerp(low, high, place - below)

    def steepest(self) -> Tensor:
        """Return the largest slope."""
        return self.knots.diff(dim=-1).amax() * ((N_KNOTS - 1) / (2.0 * LAST_KNOT))
