"""Graph-convolutional networks on a symmetric matrix. No graph estimation here."""

from precisionnet.nn.by_hand import Taps, Workspace, eval_output, train_output
from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.network import ACTIVATIONS, PrecisionNetwork
from precisionnet.nn.spectral import (
    frequency_response,
    inverse_precision_fourier_transform,
    precision_fourier_transform,
    scale_to_unit_norm,
)

__all__ = [
    "ACTIVATIONS",
    "PolynomialFilter",
    "PrecisionNetwork",
    "Taps",
    "Workspace",
    "eval_output",
    "frequency_response",
    "inverse_precision_fourier_transform",
    "precision_fourier_transform",
    "scale_to_unit_norm",
    "train_output",
]
