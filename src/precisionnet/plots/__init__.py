"""Figures. matplotlib only here.

Every function returns a ``matplotlib.figure.Figure`` and touches nothing global: no window opens and no display is
needed. Draw inside ``styled()``, write with ``to_file`` or ``to_svg``. ``ModelPlots`` is what ``model.plot`` returns.
"""

from precisionnet.plots.brain import brain_map, brain_measures
from precisionnet.plots.comparison import differences, repeats
from precisionnet.plots.eigenvalues import frequency_responses, spectrum
from precisionnet.plots.evidence import evidence_graph, node_bars
from precisionnet.plots.fit import calibration_figure, effect_bars, error_by_target, score_intervals
from precisionnet.plots.gap import gap_against_age, gap_regions
from precisionnet.plots.graph import clustered_order, edge_graph, heat_map, sparsity_curve_figure
from precisionnet.plots.model_plots import ModelPlots
from precisionnet.plots.outcome import confusion, predicted_against_true, roc, training_curves
from precisionnet.plots.style import styled, to_file, to_files, to_svg

__all__ = [
    "ModelPlots",
    "brain_map",
    "brain_measures",
    "calibration_figure",
    "clustered_order",
    "confusion",
    "differences",
    "edge_graph",
    "effect_bars",
    "error_by_target",
    "evidence_graph",
    "frequency_responses",
    "gap_against_age",
    "gap_regions",
    "heat_map",
    "node_bars",
    "predicted_against_true",
    "repeats",
    "roc",
    "score_intervals",
    "sparsity_curve_figure",
    "spectrum",
    "styled",
    "to_file",
    "to_files",
    "to_svg",
    "training_curves",
]
