"""Graph-convolutional networks on a symmetric matrix. No graph estimation here."""

from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.lipschitz import output_change_bound
from precisionnet.nn.network import ACTIVATIONS, NetworkStack, PrecisionNetwork
from precisionnet.nn.readout import QuantileLink, Readout
from precisionnet.nn.spectral import (
    equivalent_coefficients,
    frequency_response,
    inverse_precision_fourier_transform,
    precision_fourier_transform,
    scale_to_unit_norm,
)

__all__ = [
    "ACTIVATIONS",
    "NetworkStack",
    "PolynomialFilter",
    "PrecisionNetwork",
    "QuantileLink",
    "Readout",
    "equivalent_coefficients",
    "frequency_response",
    "inverse_precision_fourier_transform",
    "output_change_bound",
    "precision_fourier_transform",
    "scale_to_unit_norm",
]
