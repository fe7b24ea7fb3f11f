"""Figures. matplotlib only here."""

from precisionnet.plots.graph import EDGES_DRAWN, clustered_order, edge_graph, frequency_responses, heat_map, spectrum
from precisionnet.plots.outcome import confusion, predicted_against_true, roc, training_curves
from precisionnet.plots.style import styled, to_svg

__all__ = [
    "EDGES_DRAWN",
    "clustered_order",
    "confusion",
    "edge_graph",
    "frequency_responses",
    "heat_map",
    "predicted_against_true",
    "roc",
    "spectrum",
    "styled",
    "to_svg",
    "training_curves",
]
