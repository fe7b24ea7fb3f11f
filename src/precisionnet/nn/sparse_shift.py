r"""A sparse shift: what a filter runs on where a matrix of all pairs has no room, or is mostly zeros.

``SparseShift`` takes the place of the (nodes, nodes) tensor in ``network(x, shift)``: a filter only multiplies by it,
so there is one definition of the filter for both. Products go over the entries of the support, forward and backward:

    y = A x,     dL/dx = A dL/dy  (A is symmetric),     dL/dA_ij = <dL/dy_i, x_j> + <dL/dy_j, x_i>  on the support.

On the CPU they are the kernels of ``precisionnet.sparse_kernels``; on other devices PyTorch's gathers and sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from precisionnet.sparse_kernels import product, sampled_product
from precisionnet.sparse_matrices import MatrixStack, SparseStack, Support


class SparseShift:
    """A symmetric matrix on a support, or one for each member of a stack.

    Parameters
    ----------
    values : Tensor of shape (n_slots,) or (members, n_slots)
        One number per slot of the support; gradients flow to it.
    support : Support
        Shared by all members.
    probe : Probe, optional
        Takes in the gradients of pairs outside the support.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from precisionnet.nn import PrecisionNetwork
    >>> from precisionnet.sparse_matrices import Support
    >>> support = Support(5, np.array([0, 1]), np.array([1, 2]))
    >>> shift = SparseShift(torch.ones(support.n_slots), support)
    >>> PrecisionNetwork(readout="mean")(torch.ones(3, 5, 1), shift).shape
    torch.Size([3, 1])
    """

    def __init__(self, values: Tensor, support: Support, probe: Probe | None = None) -> None:
        self.values, self.support, self.probe = values, support, probe

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the tensor it stands for."""
        return (*self.values.shape[:-1], self.support.n, self.support.n)

    @property
    def ndim(self) -> int:
        """Axes of the tensor it stands for."""
        return self.values.ndim + 1

    def unsqueeze(self, dim: int) -> SparseShift:
        """Return the same: a product takes any number of features.

        Parameters
        ----------
        dim : int
            Where a tensor would get an axis.

        Returns
        -------
        SparseShift
            Itself.
        """
        return self

    def __getitem__(self, member: int) -> SparseShift:
        return SparseShift(self.values[member], self.support)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Multiply signals, (members, [features,] nodes, batch); one matrix takes them without the first axis."""
        wide = x.unsqueeze(0) if self.values.ndim == 1 else x
        wide = wide.unsqueeze(1) if wide.ndim == 3 else wide
        values = self.values.unsqueeze(0) if self.values.ndim == 1 else self.values
        result: Tensor = _SparseProduct.apply(values, wide, self.support, self.probe)  # type: ignore[no-untyped-call]
        return result.view(x.shape)

    def to_dense(self) -> Tensor:
        """Return the tensor it stands for.

        Returns
        -------
        Tensor of shape (nodes, nodes) or (members, nodes, nodes)
            With zeros outside the support.
        """
        start, column, slot = (torch.from_numpy(part.astype(np.int64)) for part in self.support.entries)
        row = torch.repeat_interleave(torch.arange(self.support.n), start.diff())
        dense = self.values.new_zeros(self.shape)
        dense[..., row, column] = self.values[..., slot]
        return dense


class Probe:
    """The gradients of all pairs that some nodes have, summed over products: candidates for the support.

    Parameters
    ----------
    nodes : Tensor of shape (n_chosen,)
        One end of the pairs that are looked at.
    """

    def __init__(self, nodes: Tensor) -> None:
        self.nodes = nodes
        self.total: Tensor | None = None

    def take(self, gradient: Tensor, x: Tensor) -> None:
        """Add <gradient_i, x_j> + <gradient_j, x_i> for the chosen i and all j, member by member."""
        there = torch.einsum("mfib,mfjb->mij", gradient[:, :, self.nodes], x)
        back = torch.einsum("mfjb,mfib->mij", gradient, x[:, :, self.nodes])
        found = there + back
        self.total = found if self.total is None else self.total + found


class _SparseProduct(torch.autograd.Function):
    """A x for x of shape (members, features, nodes, batch)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, support: Support, probe: Probe | None) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(values, x)
        ctx.support, ctx.probe = support, probe
        return _multiply(values, x, support)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        values, x = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_values = _sampled(gradient, x, ctx.support, values) if ctx.needs_input_grad[0] else None
        of_x = _multiply(values, gradient, ctx.support) if ctx.needs_input_grad[1] else None
        if ctx.probe is not None:
            ctx.probe.take(gradient, x)
        return of_values, of_x, None, None


def _multiply(values: Tensor, x: Tensor, support: Support) -> Tensor:
    if x.device.type == "cpu":
        out = torch.empty_like(x)
        product(*support.entries, values.detach().numpy(), x.detach().numpy(), out.numpy())
        return out
    row, column, slot = _on_device(support, x.device)
    return torch.zeros_like(x).index_add_(2, row, x[:, :, column] * values[:, None, slot, None])


def _sampled(gradient: Tensor, x: Tensor, support: Support, values: Tensor) -> Tensor:
    if x.device.type == "cpu":
        out = torch.zeros_like(values)
        sampled_product(*support.entries, gradient.detach().numpy(), x.detach().numpy(), out.numpy())
        return out
    row, column, slot = _on_device(support, x.device)
    found = (gradient[:, :, row] * x[:, :, column]).sum(dim=(1, 3))
    return torch.zeros_like(values).index_add_(1, slot, found)


def _on_device(support: Support, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    start, column, slot = support.entries
    row = np.repeat(np.arange(support.n), np.diff(start))
    row_t, column_t, slot_t = (torch.from_numpy(part.astype(np.int64)).to(device) for part in (row, column, slot))
    return row_t, column_t, slot_t


def shift_of(matrices: MatrixStack, scale: float, like: Tensor) -> Any:
    """Return what a stack of networks runs on.

    Parameters
    ----------
    matrices : ndarray of shape (members, n, n), or SparseStack
        Each member's matrix.
    scale : float
        What they are divided by.
    like : Tensor
        With the arithmetic and the device that is wanted.

    Returns
    -------
    Tensor or SparseShift
        The scaled matrices.
    """
    if isinstance(matrices, SparseStack):
        return SparseShift(torch.from_numpy(matrices.values / scale).to(like), matrices.support)
    return torch.from_numpy(matrices / scale).to(dtype=like.dtype).to(like.device)
