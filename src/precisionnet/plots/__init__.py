"""Figures. matplotlib only here."""

from precisionnet.plots.comparison import LOOKS, Look, differences, look, mark, repeats
from precisionnet.plots.graph import (
    EDGES_DRAWN,
    clustered_order,
    edge_graph,
    frequency_responses,
    heat_map,
    sparsity_curve_figure,
    spectrum,
)
from precisionnet.plots.outcome import confusion, predicted_against_true, roc, training_curves
from precisionnet.plots.paper import Panel, Rate, rate_figure, rate_panel, sparsity_figure, sparsity_panel
from precisionnet.plots.style import styled, to_file, to_svg

__all__ = [
    "EDGES_DRAWN",
    "LOOKS",
    "Look",
    "Panel",
    "Rate",
    "clustered_order",
    "confusion",
    "differences",
    "edge_graph",
    "frequency_responses",
    "heat_map",
    "look",
    "mark",
    "predicted_against_true",
    "rate_figure",
    "rate_panel",
    "repeats",
    "roc",
    "sparsity_curve_figure",
    "sparsity_figure",
    "sparsity_panel",
    "spectrum",
    "styled",
    "to_file",
    "to_svg",
    "training_curves",
]
