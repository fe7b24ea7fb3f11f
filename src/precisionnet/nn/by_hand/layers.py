"""A filter layer forward and backward: the first one on taps, the others on features.

``h`` are the coefficients, ``gain`` and ``offset`` what normalisation multiplies with and adds, ``d`` gradients.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

from precisionnet.nn.by_hand.taps import Taps
from precisionnet.nn.by_hand.workspace import Place

Tensors = dict[str, Tensor]
MOMENTUM, EPSILON = 0.1, 1e-5
"""Of batch normalisation: PyTorch's, which the network leaves alone."""
Input = TypeVar("Input", Taps, Tensor)


class Layer(Generic[Input]):
    """Filter bank, batch normalisation, activation. Forward once, then backward once."""

    def __init__(
        self, weights: Tensors, statistics: Tensors, activation: str, place: Place, *, training: bool = True
    ) -> None:
        self._h, self._room, self._training = weights["filter.weight"], place, training
        self._weights, self._statistics, self._activation = weights, statistics, activation
        self._normalises = "norm.weight" in weights

    def forward(self, x: Input, shift: Tensor) -> Tensor:
        """(members, filters, nodes, batch)."""
        raise NotImplementedError

    def backward(self, d_output: Tensor, shift: Tensor, gradients: Tensors, d_shift: Tensor | None) -> Tensor | None:
        """Gradients of the weights go into ``gradients``, the shift's is added to ``d_shift``; returns the input's.

        The weights' come for little beside the shift's, so they are there whether they are wanted or not.
        """
        raise NotImplementedError

    def _act(self, x: Tensor) -> Tensor:
        """In place."""
        if self._activation == "tanh":
            return x.tanh_()
        return x.relu_() if self._activation == "relu" else leaky_relu_(x)

    def _slope(self, d_output: Tensor, output: Tensor) -> Tensor:
        """d_output times the activation's slope, which its output tells."""
        aten, room = torch.ops.aten, self._room("slope", output.shape, output)
        if self._activation == "tanh":
            aten.tanh_backward.grad_input(d_output, output, grad_input=room)
        elif self._activation == "relu":
            aten.threshold_backward.grad_input(d_output, output, 0, grad_input=room)
        else:
            aten.leaky_relu_backward.grad_input(d_output, output, 0.01, True, grad_input=room)
        return room

    def _normalisation(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Sets the gain; returns the offset."""
        self._mean, self._inverse_deviation = mean, torch.rsqrt(variance + EPSILON)
        self._gain = self._weights["norm.weight"] * self._inverse_deviation
        return self._weights["norm.bias"] - mean * self._gain

    def _remembered(self) -> tuple[Tensor, Tensor]:
        return self._statistics["norm.running_mean"], self._statistics["norm.running_var"]

    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        known = self._statistics
        known["norm.num_batches_tracked"].add_(1)
        known["norm.running_mean"].lerp_(mean, MOMENTUM)
        known["norm.running_var"].lerp_(variance * (count / max(1, count - 1)), MOMENTUM)


class SignalLayer(Layer[Taps]):
    r"""The first one. A filter is linear in its taps, so mean and variance of what it gives follow from the taps' own:

    mean_f = h_f' m,    var_f = h_f' C h_f

    and normalising the coefficients in place of the output saves several passes over the largest tensor there is.
    """

    def forward(self, x: Taps, shift: Tensor) -> Tensor:
        """See ``Layer``."""
        self._x, h = x, self._h.squeeze(2)
        if self._normalises:
            mean, variance = self._remembered()
            if self._training:
                mean = (x.mean * h).sum(dim=1)
                self._spread = x.covariance @ h
                variance = (self._spread * h).sum(dim=1)
                self._remember(mean, variance, x.flat.shape[2])
            offset = self._normalisation(mean, variance)
            h = h * self._gain.unsqueeze(1)
        else:
            offset = self._weights["filter.bias"]
        self._scaled = h
        room = self._room("output", (len(h), h.shape[2], x.flat.shape[2]), h)
        self._output = self._act(torch.baddbmm(offset.unsqueeze(-1), h.mT, x.flat, out=room))
        return self._output.view(*self._output.shape[:2], *x.signals.shape[2:])

    def backward(self, d_output: Tensor, shift: Tensor, gradients: Tensors, d_shift: Tensor | None) -> None:
        """See ``Layer``; the input is data."""
        x, h = self._x, self._h.squeeze(2)
        d = self._slope(d_output.flatten(2), self._output)
        d_offset, d_scaled = d.sum(dim=2), x.flat @ d.mT
        if not self._normalises:
            gradients |= {"filter.weight": d_scaled.unsqueeze(2), "filter.bias": d_offset}
        else:
            d_gain = (d_scaled * h).sum(dim=1) - d_offset * self._mean
            d_mean = -d_offset * self._gain
            d_variance = -0.5 * d_gain * self._gain * self._inverse_deviation**2
            d_h = d_scaled * self._gain.unsqueeze(1) + x.mean * d_mean.unsqueeze(1)
            d_h += 2.0 * self._spread * d_variance.unsqueeze(1)
            gradients |= {
                "filter.weight": d_h.unsqueeze(2),
                "norm.weight": d_gain * self._inverse_deviation,
                "norm.bias": d_offset,
            }
        if d_shift is None:
            return
        d_flat = torch.bmm(self._scaled, d, out=self._room("d_flat", tuple(x.flat.shape), d))
        if self._normalises:
            count = x.flat.shape[2]
            d_flat.baddbmm_((h * d_variance.unsqueeze(1)) @ h.mT, x.centred, alpha=2.0 / count)
            d_flat += (h * d_mean.unsqueeze(1)).sum(dim=2, keepdim=True) / count
        x.backward(d_flat, shift, d_shift)


class FeatureLayer(Layer[Tensor]):
    """The others, by Horner's rule: a_K = h_K' x, a_k = h_k' x + shift a_{k+1}, and a_0 is the filter's output."""

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """See ``Layer``."""
        self._x, order = x.flatten(2), self._h.shape[1] - 1
        flat, signal = self._shapes(x)
        a = torch.bmm(self._h[:, order].mT, self._x, out=self._room(f"a{order}", flat, x))
        self._a = [a]
        for k in range(order - 1, -1, -1):
            shifted = torch.matmul(shift.unsqueeze(1), a.view(signal), out=self._room(f"a{k}", signal, x))
            a = shifted.view(flat).baddbmm_(self._h[:, k].mT, self._x)
            self._a.insert(0, a)
        filtered, room = a, self._room("output", flat, x)
        if self._normalises:
            mean, variance = self._remembered()
            if self._training:
                variance, mean = torch.var_mean(filtered, dim=2, correction=0)
                self._remember(mean, variance, filtered.shape[2])
            offset = self._normalisation(mean, variance)
            output = torch.addcmul(offset.unsqueeze(-1), filtered, self._gain.unsqueeze(-1), out=room)
        else:
            output = torch.add(filtered, self._weights["filter.bias"].unsqueeze(-1), out=room)
        self._output = self._act(output)
        return self._output.view(signal)

    def _shapes(self, x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the output, (members, filters, nodes * batch) and (members, filters, nodes, batch)."""
        members, _, nodes, batch = x.shape
        filters = self._h.shape[3]
        return (members, filters, nodes * batch), (members, filters, nodes, batch)

    def backward(self, d_output: Tensor, shift: Tensor, gradients: Tensors, d_shift: Tensor | None) -> Tensor:
        """See ``Layer``."""
        signal, flat = tuple(d_output.shape), tuple(self._output.shape)
        d = self._slope(d_output.flatten(2), self._output)
        d_offset = d.sum(dim=2)
        if self._normalises:
            filtered = self._a[0]
            room = self._room("d", flat, d)
            along = (torch.mul(d, filtered, out=room).sum(dim=2) - self._mean * d_offset) * self._inverse_deviation
            gradients |= {"norm.weight": along, "norm.bias": d_offset}
            # d <- gain * (d - mean(d) - normalised * mean(d * normalised)), in one pass over filtered and one over d
            slope = -self._gain * along * self._inverse_deviation / filtered.shape[2]
            level = -self._gain * d_offset / filtered.shape[2] - slope * self._mean
            room = torch.addcmul(level.unsqueeze(-1), filtered, slope.unsqueeze(-1), out=room)
            d = room.addcmul_(d, self._gain.unsqueeze(-1))
        else:
            gradients["filter.bias"] = d_offset
        d_h = [torch.bmm(self._x, d.mT)]
        d_x = torch.bmm(self._h[:, 0], d, out=self._room("d_x", tuple(self._x.shape), d))
        for k in range(1, self._h.shape[1]):
            by_feature = d.view(signal)
            if d_shift is not None:
                d_shift += (by_feature @ self._a[k].view(signal).mT).sum(dim=1)
            d = torch.matmul(shift.mT.unsqueeze(1), by_feature, out=self._room(f"d{k % 2}", signal, d)).view(flat)
            d_h.append(torch.bmm(self._x, d.mT))
            d_x.baddbmm_(self._h[:, k], d)
        gradients["filter.weight"] = torch.stack(d_h, dim=1)
        return d_x.view(*d_x.shape[:2], *signal[2:])
