"""Graph-convolutional networks on a symmetric matrix. No graph estimation here."""

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
    "frequency_response",
    "inverse_precision_fourier_transform",
    "precision_fourier_transform",
    "scale_to_unit_norm",
]
