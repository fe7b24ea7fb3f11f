"""Phi(x, shift, h) of the paper: L filter layers with batch normalisation and activation, then a readout.

On the precision matrix it is a PNN, on the covariance the same network is a VNN. This is the only definition: training
and prediction call it, for one network or for a stack of members (``precisionnet.nn.stack``).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

import torch
from torch import Tensor, nn

from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.readout import AverageReadout, FlattenReadout, MeanReadout, QuantileLink
from precisionnet.parameters import BY_NAME

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}
"""Activations by name; a name of your own can be added."""

MOMENTUM, EPSILON = 0.1, 1e-5
"""Momentum and epsilon of batch normalisation, as in PyTorch."""


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


class PrecisionNetwork(nn.Module):
    """Graph-convolutional network on a symmetric matrix, called as ``network(x, shift)``.

    Layers, filters and order are by default those of the paper's recipe; the readout is the flattened one.

    Parameters
    ----------
    n_nodes : int, optional
        Number of nodes N. Only the ``mlp`` readout needs it; other networks take any number.
    in_features : int, default=1
        Features a node carries (1 for a table: a node is a column).
    n_outputs : int, default=1
        1 for regression, the number of classes for classification.
    n_layers : int, default=1
        Filter layers, L of the paper; ignored where ``n_filters`` or ``order`` lists them.
    n_filters : int or sequence of int, default=8
        Features of a node after each layer, F of the paper; one number, or one per layer.
    order : int or sequence of int, default=2
        Degree of the polynomials, K of the paper; one number, or one per layer.
    readout : {"mlp", "mean", "average"} or callable, default="mlp"
        Flattened nodes, the average node under a perceptron, or the plain average; or a function
        ``readout(n_nodes, n_features, n_outputs)`` that returns an ``nn.Module`` from (batch, nodes, features) to
        (batch, outputs).
    readout_width : int, default=64
        Hidden units of the readout; 0 makes it linear.
    activation : str or callable, default="relu"
        A name in ``ACTIVATIONS``, or a function without arguments that returns an ``nn.Module``.
    batch_norm : bool, default=True
        Normalise each layer's features over samples and nodes; without it the filters have a bias.
    link : bool, default=False
        End in a ``QuantileLink``, for one output.

    Examples
    --------
    >>> import torch
    >>> network = PrecisionNetwork(readout="mean", n_layers=2)
    >>> network(torch.ones(3, 5, 1), torch.eye(5)).shape
    torch.Size([3, 1])
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        *,
        in_features: int = 1,
        n_outputs: int = 1,
        n_layers: int = BY_NAME["n_layers"].of("paper"),
        n_filters: int | Sequence[int] = BY_NAME["n_filters"].of("paper"),
        order: int | Sequence[int] = BY_NAME["order"].of("paper"),
        readout: str | Callable[[int | None, int, int], nn.Module] = "mlp",
        readout_width: int = BY_NAME["readout_width"].of("paper"),
        activation: str | Callable[[], nn.Module] = "relu",
        batch_norm: bool = True,
        link: bool = False,
    ) -> None:
        super().__init__()
        widths, orders = per_layer(n_layers, n_filters, order)
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation must be one of {known} or a function, got {activation!r}.")
        make = ACTIVATIONS[activation] if isinstance(activation, str) else activation
        widths = [in_features, *widths]
        self.layers = nn.ModuleList(
            FilterLayer(w_in, w_out, k, make, batch_norm)
            for (w_in, w_out), k in zip(itertools.pairwise(widths), orders, strict=True)
        )
        self.readout: nn.Module
        if callable(readout):
            self.readout = readout(n_nodes, widths[-1], n_outputs)
        elif readout == "mean":
            self.readout = MeanReadout(widths[-1], readout_width, n_outputs)
        elif readout == "average":
            self.readout = AverageReadout(widths[-1], n_outputs)
        elif readout == "mlp":
            if n_nodes is None:
                raise ValueError('The "mlp" readout needs n_nodes; the others work for any number of nodes.')
            self.readout = FlattenReadout(n_nodes, widths[-1], readout_width, n_outputs)
        else:
            raise ValueError(f'readout must be "mlp", "mean", "average" or a function, got {readout!r}.')

        self.link = QuantileLink() if link else None

    @property
    def filters(self) -> list[PolynomialFilter]:
        """The filter banks, first layer first."""
        return [module for module in self.modules() if isinstance(module, PolynomialFilter)]

    def node_features(self, x: Tensor, shift: Tensor) -> Tensor:
        """Compute the last layer's output, equivariant to a permutation of the nodes.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix.

        Returns
        -------
        Tensor of shape (batch, nodes, n_filters)
            Node features.
        """
        for layer in self.layers:
            x = layer(x, shift)
        return x

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Predict.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix.

        Returns
        -------
        Tensor of shape (batch, n_outputs)
            Predictions.
        """
        output: Tensor = self.readout(self.node_features(x, shift))
        return output if self.link is None else self.link(output)


def per_layer(n_layers: int, n_filters: int | Sequence[int], order: int | Sequence[int]) -> tuple[list[int], list[int]]:
    """Widths and orders, one per layer; lists must agree in length, and a number stands for every layer."""
    lengths = {len(value) for value in (n_filters, order) if not isinstance(value, int)} or {n_layers}
    if len(lengths) > 1:
        raise ValueError(f"n_filters lists {len(n_filters)} layers and order {len(order)}: give one each per layer.")  # type: ignore[arg-type]
    (length,) = lengths
    widths = [n_filters] * length if isinstance(n_filters, int) else list(n_filters)
    return widths, [order] * length if isinstance(order, int) else list(order)


_LOCK = RLock()


def _new_lock() -> None:
    global _LOCK
    _LOCK = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Let layers draw first weights and dropout from ``seed`` inside the block, on the CPU and on ``device``.

    They draw from the process's generator. It is borrowed, by one user at a time, and given back as it was.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _LOCK, torch.random.fork_rng(devices=devices):
        if device is None or device.type == "cpu":
            torch.default_generator.manual_seed(seed)  # torch's function notes the call stack, too
        else:
            torch.manual_seed(seed)
        yield
