"""Devices without a GPU: torch's ``meta`` device computes shapes only, and ``OneDevice`` sees what is mixed with it."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
MAY_MOVE = ("aten::_to_copy", "aten::copy_")


class OneDevice(TorchDispatchMode):
    """Inside the block every operation, also of a backward pass, has all its tensors on one device, or raises.

    As on a GPU, a tensor without axes may be on the CPU. (The meta device alone lets a matrix product of both pass.)
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.ndim]
        devices = {tensor.device for tensor in tensors}
        if len(devices) > 1 and function.name().split(".")[0] not in MAY_MOVE:
            raise RuntimeError(f"{function.name()} on {sorted(map(str, devices))}")
        return function(*args, **(kwargs or {}))
