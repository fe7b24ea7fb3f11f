r"""The network with its derivatives written out, for several networks of one shape at once.

``train_output`` and ``eval_output`` give what ``PrecisionNetwork.forward`` gives in training and evaluation mode, and
gradients are autograd's (``tests/nn/test_by_hand.py``). Members are stacked along the first axis of every tensor;
signals are (members, features, nodes, batch), so that products have long rows and nothing is copied between layers:

    first layer    K shifts of one number a node, then one product with the coefficients, normalisation folded in
    other layers   Horner's rule, a_k = h_k' x + shift a_{k+1}: K shifts of the output's features
    readout        one product over all nodes and features, or over the average node

It is there for speed alone: ``results/train_bench.md`` has it beside plain PyTorch.
"""

from precisionnet.nn.by_hand.network import eval_output, train_output
from precisionnet.nn.by_hand.taps import Taps
from precisionnet.nn.by_hand.workspace import Workspace

__all__ = ["Taps", "Workspace", "eval_output", "train_output"]
