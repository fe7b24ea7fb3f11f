"""Devices without a GPU: torch's ``meta`` device computes shapes only, and ``OneDevice`` sees what is mixed with it."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
MAY_MOVE = ("aten::_to_copy", "aten::copy_", "aten::index")
READS = ("aten::_to_copy", "aten::_local_scalar_dense")


class OneDevice(TorchDispatchMode):
    """Inside the block every operation, also of a backward pass, has all its tensors on one device, or raises.

    As on a GPU, a tensor without axes may be on the CPU, and so may positions of rows. (The meta
    device alone lets a matrix product of both pass.) What is read from the meta device, which holds no numbers, is zero
    with ``zeros``; otherwise reading raises.
    """

    def __init__(self, *, zeros: bool = False):
        super().__init__()
        self.zeros = zeros

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().split(".")[0]
        if self.zeros and name in READS and args[0].device == META:
            if name == "aten::_local_scalar_dense":
                return 0.0
            if (kwargs or {}).get("device") == torch.device("cpu"):
                return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.ndim]
        devices = {tensor.device for tensor in tensors}
        if len(devices) > 1 and name not in MAY_MOVE:
            raise RuntimeError(f"{function.name()} on {sorted(map(str, devices))}")
        return function(*args, **(kwargs or {}))
