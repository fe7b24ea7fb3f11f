r"""How far a network's output can move when its matrix does: a Lipschitz bound from the filters' frequency responses.

A bank of filters with responses H(mu), a matrix (in_features, out_features) at every eigenvalue, obeys

    || A(S') X - A(S) X ||_F  <=  max_mu || H'(mu) ||_2  || S' - S ||_F  || X ||_F ,

the maximum over an interval that holds the eigenvalues of both matrices: in the two eigenbases the difference has the
entries E_ik H[mu'_i, mu_k], where E is S' - S and the divided difference H[., .] is a mean of H' between its arguments.
What an earlier layer has moved is passed on with the gain max_i || H(mu'_i) ||_2. Activations have slope one at most,
batch normalisation in evaluation mode multiplies the responses, a readout multiplies by its own norm, and a link by its
largest slope. The features X are those of the rows at hand, so the bound is for these rows; no constant is left open.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from precisionnet.nn.filter import FilterLayer
from precisionnet.nn.network import PrecisionNetwork
from precisionnet.nn.readout import AverageReadout, FlattenReadout, KernelReadout, MeanReadout
from precisionnet.nn.spectral import frequency_response

SLOPE_ONE = (nn.ReLU, nn.LeakyReLU, nn.Tanh, nn.Identity)
"""Activations that move no further than their input."""
PLACES = 257
"""Eigenvalues at which a slope is looked up; between two of them it is bounded by the second derivative."""


@torch.no_grad()
def output_change_bound(network: PrecisionNetwork, x: Tensor, shift: Tensor, other: Tensor) -> Tensor:
    """Bound how far the output of each row moves when the matrix under a network does.

    Parameters
    ----------
    network : PrecisionNetwork
        In evaluation mode, with one of the readouts and activations of this package.
    x : Tensor of shape (batch, nodes, in_features)
        Signals.
    shift : Tensor of shape (nodes, nodes)
        Symmetric matrix.
    other : Tensor of shape (nodes, nodes)
        Symmetric matrix that takes its place.

    Returns
    -------
    Tensor of shape (batch,)
        At least ``||network(x, other) - network(x, shift)||``.

    Examples
    --------
    >>> import torch
    >>> network = PrecisionNetwork(readout="mean", n_layers=2).eval()
    >>> x, shift, other = torch.ones(3, 4, 1), torch.eye(4), 1.1 * torch.eye(4)
    >>> moved = (network(x, other) - network(x, shift)).norm(dim=1)
    >>> bool((moved <= output_change_bound(network, x, shift, other)).all())
    True
    """
    before, after = torch.linalg.eigvalsh(shift), torch.linalg.eigvalsh(other)
    ends = torch.stack([torch.minimum(before[0], after[0]), torch.maximum(before[-1], after[-1])])
    apart = torch.linalg.matrix_norm(other - shift)
    moved = x.new_zeros(len(x))
    for layer in network.layers:
        assert isinstance(layer, FilterLayer)
        if not isinstance(layer.activation, SLOPE_ONE):
            raise ValueError(f"The slope of {type(layer.activation).__name__} is not known.")
        responses = layer.filter.weight
        if layer.norm is not None:
            responses = responses * layer.norm.gain_and_offset(layer.norm.running_mean, layer.norm.running_var)[0]
        gain = torch.linalg.matrix_norm(frequency_response(responses, after), 2).amax()
        moved = gain * moved + steepest_response(responses, ends) * apart * x.flatten(1).norm(dim=1)
        x = layer(x, shift)
    steepest = 1.0 if network.link is None else network.link.steepest()
    return steepest * _readout_norm(network.readout, x) * moved


def steepest_response(coefficients: Tensor, ends: Tensor) -> Tensor:
    """Bound the spectral norm of H'(mu) between two eigenvalues.

    ``coefficients`` has shape (order + 1, in_features, out_features); ``ends`` has the two eigenvalues.
    """
    degree = torch.arange(len(coefficients), dtype=coefficients.dtype)
    first = (degree[:, None, None] * coefficients)[1:]
    if not len(first):
        return coefficients.new_zeros(())
    places = torch.linspace(float(ends[0]), float(ends[1]), PLACES, dtype=coefficients.dtype)
    found = torch.linalg.matrix_norm(frequency_response(first, places), 2).amax()
    sizes = torch.linalg.matrix_norm(coefficients, 2)
    powers = ends.abs().amax() ** (degree - 2).clamp_min(0)
    between = (ends[1] - ends[0]) / (2 * (PLACES - 1))
    return found + between * (degree * (degree - 1) * sizes * powers).sum()


def _readout_norm(readout: nn.Module, x: Tensor) -> Tensor | float:
    """Return how far the output moves at most when the node features do, (batch, nodes, features)."""
    _, n_nodes, n_features = x.shape
    if isinstance(readout, AverageReadout):
        return float((n_nodes * n_features / readout.n_outputs) ** -0.5)
    if isinstance(readout, KernelReadout):  # in the space of Matern's kernel points are at most sqrt(3) |z - z'| apart
        squares = readout.coefficients @ readout.kernel @ readout.coefficients.mT
        return float(
            ((1.0 if readout.gaussian else 3.0) * squares.trace().clamp_min(0.0)).sqrt() * readout.scale.abs().max()
        )
    if not isinstance(readout, MeanReadout | FlattenReadout):
        raise ValueError(f"The norm of {type(readout).__name__} is not known.")
    layers = [one.weight for one in readout.perceptron if isinstance(one, nn.Linear)]
    norm = torch.stack([torch.linalg.matrix_norm(weight, 2) for weight in layers]).prod()
    return norm if isinstance(readout, FlattenReadout) else norm * n_nodes**-0.5
