"""From node features to a prediction.

``mlp``      flattens the nodes; its weights belong to one set of nodes.
``mean``     averages over the nodes, then a perceptron: invariant to the order and number of nodes.
``average``  averages over nodes and features; nothing is learnt, as in the published covariance networks.

``KernelReadout`` is the limit of a flattened readout with endlessly many hidden units; it is solved, not trained.

``QuantileLink`` comes after a readout: it has the shape of the target.

A readout of your own is an ``nn.Module`` that maps (batch, nodes, features) to (batch, outputs).
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn

from precisionnet.errors import InputError
from precisionnet.types import FloatArray


class Linear(nn.Linear):
    """``nn.Linear`` that also takes a stack: weight (members, out, in), x (members, batch, in)."""

    def forward(self, x: Tensor) -> Tensor:
        """Multiply and add.

        Parameters
        ----------
        x : Tensor of shape (batch, in_features)
            Inputs.

        Returns
        -------
        Tensor of shape (batch, out_features)
            Outputs.
        """
        if self.weight.ndim == 2 and x.ndim != 2:  # one network, inside a user-defined readout
            return super().forward(x)
        # As (W x' + b)': signals lie batch last in memory, and stay so.
        product = torch.addmm if x.ndim == 2 else torch.baddbmm
        return product(self.bias.unsqueeze(-1), self.weight, x.mT).mT


class Readout(nn.Module):
    """A perceptron with one hidden layer over a summary of the nodes; subclasses say which summary.

    Parameters
    ----------
    summary_features : int
        Numbers in the summary.
    width : int
        Hidden units; 0 makes it linear.
    n_outputs : int
        Outputs.

    Examples
    --------
    >>> import torch
    >>> class MaxReadout(Readout):
    ...     def summary(self, x):
    ...         return x.amax(dim=-2)
    >>> from precisionnet.nn import PrecisionNetwork
    >>> network = PrecisionNetwork(readout=lambda nodes, features, outputs: MaxReadout(features, 16, outputs))
    >>> network(torch.ones(3, 5, 1), torch.eye(5)).shape
    torch.Size([3, 1])
    """

    def __init__(self, summary_features: int, width: int, n_outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [Linear(summary_features, width), nn.ReLU()] if width else []
        self.perceptron = nn.Sequential(*layers, Linear(width or summary_features, n_outputs))

    def summary(self, x: Tensor) -> Tensor:
        """Summarise the nodes.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, features)
            Node features.

        Returns
        -------
        Tensor of shape (batch, summary_features)
            Summary of each sample.
        """
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Predict from node features.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, features)
            Node features.

        Returns
        -------
        Tensor of shape (batch, n_outputs)
            Predictions.
        """
        output: Tensor = self.perceptron(self.summary(x))
        return output


class FlattenReadout(Readout):
    """Every node has weights of its own; see ``Readout`` for the parameters."""

    def __init__(self, n_nodes: int, n_features: int, width: int, n_outputs: int) -> None:
        super().__init__(n_nodes * n_features, width, n_outputs)

    def summary(self, x: Tensor) -> Tensor:
        """Put all node features side by side, feature by feature, as they lie in memory."""
        return torch.flatten(x.transpose(-1, -2), start_dim=-2)


class MeanReadout(Readout):
    """The average node, any number of nodes; see ``Readout`` for the parameters."""

    def summary(self, x: Tensor) -> Tensor:
        """Average over the nodes."""
        return x.sum(dim=-2) / x.shape[-2]  # the division on the small side: mean() divides the large gradient


class AverageReadout(nn.Module):
    """Average over nodes and features; nothing is learnt.

    Parameters
    ----------
    n_features : int
        Features of a node, a multiple of ``n_outputs``: each output averages an equal share of them.
    n_outputs : int
        Outputs.
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        if n_features % n_outputs:
            raise InputError(
                f'readout="average" shares the {n_features} features of a node between {n_outputs} outputs: set '
                f"n_filters of the last layer to a multiple of {n_outputs}."
            )
        self.n_outputs = n_outputs

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, nodes, features) to (batch, n_outputs)."""
        return x.mean(dim=-2).reshape(*x.shape[:-3], x.shape[-3], self.n_outputs, -1).mean(dim=-1)


class KernelReadout(nn.Module):
    r"""A flattened readout with endlessly many hidden units: a sum of kernels around rows that it was solved on.

        f(x) = c + sum_m a_m k(|s * x - z_m|)

    with k(d) = (1 + sqrt(3) d) exp(-sqrt(3) d), Matern's kernel of smoothness 3/2, or the Gaussian
    k(d) = exp(-d^2 / 2), whose functions are smoother. The weights ``s`` of the node features say how much each counts
    in the distance of two rows. Nothing is trained: ``precisionnet.estimators.kernel_machine`` solves for ``a`` and
    ``c``.

    Parameters
    ----------
    n_features : int
        Nodes times features of a node.
    n_anchors : int
        Rows it was solved on.
    n_outputs : int
        Outputs.

    Examples
    --------
    >>> import torch
    >>> readout = KernelReadout(n_features=5, n_anchors=20, n_outputs=1)
    >>> readout(torch.ones(3, 5, 1, dtype=torch.float64)).shape
    torch.Size([3, 1])
    """

    scale: Tensor
    anchors: Tensor
    coefficients: Tensor
    constant: Tensor
    noise: Tensor
    factor: Tensor
    gaussian: Tensor

    def __init__(self, n_features: int, n_anchors: int, n_outputs: int) -> None:
        super().__init__()
        sizes: dict[str, tuple[int, ...]] = {
            "scale": (n_features,),
            "anchors": (n_anchors, n_features),  # z_m: rows times s
            "coefficients": (n_outputs, n_anchors),
            "constant": (n_outputs,),
            "noise": (n_anchors,),
            "factor": (),  # noise and factor tell what it was solved for, and are not used here
            "gaussian": (),  # which kernel: 0 or 1
        }
        for name, size in sizes.items():
            self.register_buffer(name, torch.zeros(size, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Predict from node features, (batch, nodes, features) to (batch, n_outputs).

        Some rows at a time: their distances to all anchors are in memory.
        """
        z = torch.flatten(x, start_dim=-2) * self.scale
        at_once = max(1, KERNEL_AT_ONCE // max(1, len(self.anchors)))
        k = gaussian if self.gaussian else matern
        parts = [k(part, self.anchors) @ self.coefficients.mT for part in torch.split(z, at_once)]
        return torch.cat(parts) + self.constant

    @property
    def kernel(self) -> Tensor:
        """The kernel between its anchors."""
        return (gaussian if self.gaussian else matern)(self.anchors, self.anchors)


KERNEL_AT_ONCE = 2**20
"""Numbers in a kernel matrix of a forward pass."""


def matern(x: Tensor, anchors: Tensor) -> Tensor:
    """Return Matern's kernel of smoothness 3/2 between rows.

    Parameters
    ----------
    x : Tensor of shape (n_rows, n_features)
        Rows.
    anchors : Tensor of shape (n_anchors, n_features)
        Other rows.

    Returns
    -------
    Tensor of shape (n_rows, n_anchors)
        1 where two rows are the same.
    """
    # The root of a square has no derivative at zero; the kernel has, and it is 0.
    distance = (3.0 * _squares(x, anchors).clamp_min(1e-24)).sqrt()
    return (1.0 + distance) * torch.exp(-distance)


def gaussian(x: Tensor, anchors: Tensor) -> Tensor:
    """Return the Gaussian kernel between rows; parameters as those of ``matern``."""
    return torch.exp(-0.5 * _squares(x, anchors).clamp_min(0.0))


def _squares(x: Tensor, anchors: Tensor) -> Tensor:
    """Return squared distances between rows."""
    center = anchors.sum(dim=0) / max(1, len(anchors))  # far from zero the squares below would lose their digits
    x, anchors = x - center, anchors - center
    return (x * x).sum(dim=1)[:, None] + (anchors * anchors).sum(dim=1) - 2.0 * x @ anchors.mT


N_KNOTS, LAST_KNOT = 33, 2.4
"""How many knots there are, and where the last one is: 0.8 % of a normal variable are beyond it on either side."""
PLACES = np.linspace(-LAST_KNOT, LAST_KNOT, N_KNOTS)
STRAIGHT = 0.1
"""Share of a straight line."""
OUTERMOST, FLAT = 1e-12, 1e-5
"""The nearest that a row's place comes to 0 and 1; a target is flat that is narrower than this share of its largest."""
SMOOTHED = np.linspace(-0.3, 0.3, 9)
"""Places around a knot over which quantiles are averaged: single rows and ties leave no step."""


class QuantileLink(nn.Module):
    r"""The last step of a network that predicts a number: from a standard normal scale to that of the target.

    Ages of two studies have two peaks, prices a long tail, counts many zeros. A network whose hidden units add up to
    such a target has to bend at the right places first. A link does it beforehand: where the network's output f is
    spread like a standard normal variable, g(f) is spread like the target,

        g(f) = (1 - s) Q(Phi(f)) + s f,

    with Q the target's quantile function on the training rows, Phi the normal distribution function, and a small share
    s of a straight line, so that g rises everywhere. g is piecewise linear between knots at even distances, goes on
    straight beyond them, and is fixed before training. The loss stays what it was, in the target's units.

    A new one maps every number to itself. Where a network has one as ``link``, training takes the quantiles of the rows
    that the network learns from.

    Examples
    --------
    >>> import torch
    >>> link = QuantileLink()
    >>> link.fit(np.exp(np.random.default_rng(0).standard_normal(2000)), np.ones(2000))
    >>> [round(float(y)) for y in link(torch.tensor([[0.0], [1.0], [2.0]]))]
    [1, 3, 7]
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
        normal = ndtri(np.clip(np.cumsum(share) - 0.5 * share, OUTERMOST, 1.0 - OUTERMOST))
        heights = np.exp(-0.5 * (SMOOTHED / 0.15) ** 2)
        quantiles = np.interp(PLACES[:, None] + SMOOTHED, normal, y[order]) @ (heights / heights.sum())
        width, least = float(np.sqrt(np.cov(y[order], aweights=share, ddof=0))), FLAT * float(np.abs(y[order]).max())
        width = width if width > least else max(1.0, least)
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
        """Return the largest slope.

        Returns
        -------
        Tensor
            One number.
        """
        return self.knots.diff(dim=-1).abs().amax() * ((N_KNOTS - 1) / (2.0 * LAST_KNOT))
