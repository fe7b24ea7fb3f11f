"""``model.plot``: every picture of a fitted model, each a method that takes axes and returns them.

Estimators know this module by name only (``estimators.interop``), so that no import goes up. Each method takes what it
draws from the model, with signs and units; no matrix is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from precisionnet.arguments import check_count
from precisionnet.errors import InputError
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.sparsity import SparsityCurve
from precisionnet.plots.brain import SIZE as BRAIN_SIZE
from precisionnet.plots.brain import draw_brain, regions_of
from precisionnet.plots.circle import SIDE
from precisionnet.plots.evidence import (
    SURE,
    bars_height,
    draw_evidence_graph,
    draw_node_bars,
    evidence_frame,
    sure_edges,
    sure_nodes,
)
from precisionnet.plots.graph import (
    EDGES_DRAWN,
    draw_edges,
    draw_matrix,
    draw_sparsity_curve,
    draw_strengths,
    graph_of,
    refuse_no_model,
    unit_of,
)
from precisionnet.plots.outcome import confusion_side, draw_confusion, draw_metric, draw_predicted
from precisionnet.plots.style import names_stay_names, styled

Rest = ParamSpec("Rest")


def _drawing(
    method: Callable[Concatenate[ModelPlots, Rest], Axes],
) -> Callable[Concatenate[ModelPlots, Rest], Axes]:
    """Refuse a model that is not fitted, and draw in the package's style; names are never read as formulas."""

    @wraps(method)
    def drawn(self: ModelPlots, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Axes:
        refuse_no_model(self.model)
        with styled():
            return names_stay_names(method(self, *args, **kwargs))

    return drawn


class ModelPlots:
    """Pictures of a fitted model, as ``model.plot``.

    Every method takes ``ax`` and returns the axes; without ``ax`` it makes a new pyplot figure, which a notebook shows.

    Parameters
    ----------
    model : PNNRegressor, PNNClassifier, GraphicalLasso or GraphicalLassoCV
        The model; it has to be fitted when something is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLasso
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = GraphicalLasso(l1_penalty=0.1).fit(X)
    >>> model.plot.graph().get_title(loc="left")
    "The data's graph"
    >>> model.plot.matrix().figure.savefig("matrix.svg")
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"Plots of {type(self.model).__name__}: {names}"

    @_drawing
    def graph(
        self, which: str = "data", *, evidence: Any = None, most: int = EDGES_DRAWN, ax: Axes | None = None
    ) -> Axes:
        """Draw the strongest edges as arcs in a circle.

        Parameters
        ----------
        which : {"data", "task"}, default="data"
            Partial correlations, or what pairs of columns do for the prediction, in the target's units.
        evidence : EdgeInference, TaskEvidence or DataFrame, default=None
            What ``edge_inference`` (for the data's graph) or ``task_evidence`` (for the task's) returned: edges with a
            q-value above 0.05 are pale and thin. A data frame has ``source``, ``target`` and ``q_value``.
        most : int, default=80
            Edges to draw at most.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        graph = graph_of(self.model, which)
        check_count("most", most, 1)
        judged = None
        if evidence is not None:
            names = np.array(graph.names, dtype=object)
            edges = pd.DataFrame({"source": names[graph.first], "target": names[graph.second], "value": graph.value})
            judged = edges.assign(sure=sure_edges(edges, evidence))
        ax = _axes(ax, SIDE, SIDE)
        if judged is None:
            draw_edges(ax, graph, most)
        else:
            without = self.model.fitted.blocks.unsigned if hasattr(self.model, "fitted") else ()
            draw_evidence_graph(ax, judged, graph.names, value="value", most=most, unsigned=without)
        ax.set_title(graph.title if judged is None else graph.title.removesuffix(" (not tested)"))
        return ax

    @_drawing
    def matrix(self, which: str = "data", *, ax: Axes | None = None) -> Axes:
        """Draw a graph as a matrix in clustered order; white is an exact zero.

        Parameters
        ----------
        which : {"data", "task"}, default="data"
            As for ``graph``.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes; beside them is a colour bar.
        """
        graph = graph_of(self.model, which)
        ax = _axes(ax, 8.6, 7.6)
        draw_matrix(ax, graph)
        ax.set_title(graph.title)
        return ax

    @_drawing
    def nodes(self, *, evidence: Any = None, ax: Axes | None = None) -> Axes:
        """Draw the columns that the prediction owes most to, as bars.

        Parameters
        ----------
        evidence : TaskEvidence or DataFrame, default=None
            What ``task_evidence`` returned: bars get intervals, and those with a q-value above 0.05 are pale.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        effects = self._effects()
        unit = unit_of(self.model)
        if evidence is not None:
            nodes = evidence_frame(
                evidence, "nodes", ("node", "importance", "importance_low", "importance_high", "q_value")
            )
            nodes = nodes.assign(sure=nodes["q_value"] <= SURE)
            ax = _axes(ax, 7.6, bars_height(len(nodes)))
            label = f"importance, 95 % interval, {unit}"
            draw_node_bars(ax, nodes, value="importance", low="importance_low", high="importance_high", label=label)
            ax.set_title("What the prediction rests on")
            return ax
        nodes = pd.DataFrame({"node": list(effects), "effect": list(effects.values()), "sure": True})
        if self._signed:
            nodes["direction"] = np.where(self.model.fitted.blocks.signed, np.sign(nodes["effect"]), 0.0)
        ax = _axes(ax, 7.6, bars_height(len(nodes)))
        label = f"effect of a standard deviation, {unit}"
        draw_node_bars(ax, nodes, value="effect", low="", high="", label=label, beyond="")
        ax.set_title("What the prediction rests on (not tested)")
        return ax

    @_drawing
    def brain(
        self,
        values: Mapping[str, float] | pd.Series[Any] | None = None,
        *,
        label: str | None = None,
        edges: int = 0,
        which: str = "task",
        evidence: Any = None,
        measure: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw values of cortical regions, and edges, on both hemispheres from outside and from the midline.

        Columns are recognised by names such as ``lh_insula``, ``left insula`` or ``L_insula_thickavg``
        (Desikan-Killiany, DKT).

        Parameters
        ----------
        values : mapping or Series, default=None
            From column to number, such as ``model.contributions(X).mean()``; by default what the prediction owes to
            each column, ``task_nodes_``.
        label : str, default=None
            What the values are, with their unit.
        edges : int, default=0
            How many of the strongest edges to draw.
        which : {"task", "data"}, default="task"
            The graph that these edges are of, as for ``graph``.
        evidence : TaskEvidence, DataFrame or mapping, default=None
            What ``task_evidence`` returned, a data frame with ``node`` and ``q_value``, or q-values by column: regions
            with a q-value above 0.05, or none, are pale.
        measure : str, default=None
            Which columns to take, where there are several of a region, such as ``thickness``.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes; under them is a colour bar.
        """
        check_count("edges", edges, 0)
        sure = None if evidence is None else sure_nodes(evidence)
        signed = None
        if values is None and not hasattr(type(self.model), "task_nodes_"):
            values = dict.fromkeys(column_names(self.model), np.nan)
            which, edges, title = "data", edges or 30, ""
        elif values is None:
            values, signed = self._effects(), self._signed
            label = label or f"effect of a standard deviation, {unit_of(self.model)}"
            title = f"What the prediction rests on{'' if sure else ' (not tested)'}"
        else:
            values, title = {str(name): float(value) for name, value in values.items()}, ""
        lines: list[tuple[str, str, float]] = []
        if edges:
            graph = graph_of(self.model, which)
            chosen = zip(graph.first, graph.second, graph.value, strict=True)
            inside = [(graph.names[i], graph.names[j], float(value)) for i, j, value in chosen]
            lines = _among_regions(inside, values, measure)[:edges]
            of = "the data's" if which == "data" else "the task's"
            title = "\n".join([*([title] if title else []), f"{len(lines)} strongest edges of {of} graph"])
        ax = _axes(ax, *BRAIN_SIZE)
        draw_brain(
            ax, values, label=label or "value", signed=signed, sure=sure, edges=lines, measure=measure, title=title
        )
        return ax

    @_drawing
    def training(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error by epoch; a dotted line marks the epoch that was kept.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        self._refuse_without_target()
        ax = _axes(ax, 5.2, 3.6)
        accuracy = hasattr(self.model, "classes_")
        draw_metric(ax, self.model.history_, self.model.best_epoch_, "Training")
        ax.set_ylabel("accuracy" if accuracy else f"mean absolute error, {unit_of(self.model)}")
        return ax

    @_drawing
    def prediction(self, y: Any, X: Any = None, *, ax: Axes | None = None) -> Axes:
        """Draw predicted against true: dots of a regressor, the confusion matrix of a classifier.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The target given to ``fit``, which a model does not keep: each row is predicted by the networks that left it
            out. With ``X``, the target of those rows.
        X : array-like of shape (n_samples, n_features), default=None
            Rows that took no part in the fit, to be predicted.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        self._refuse_without_target()
        model, true = self.model, np.asarray(y)
        classes = getattr(model, "classes_", None)
        said = self._out_of_fold(y) if X is None else np.asarray(model.predict(X))
        if true.shape != (len(said),):
            raise InputError(
                f"y has shape {true.shape} and {len(said)} rows are predicted: give the target of those rows, in order."
            )
        known = pd.notna(said) & pd.notna(true)
        if not known.any():
            raise InputError(
                "No network of this model left a row out, so that no prediction can be compared with y: pass rows that "
                "took no part in the fit as X=."
            )
        rows = "rows that each network left out" if X is None else "the rows given"
        if classes is None:
            ax = _axes(ax, 5.2, 5.0)
            draw_predicted(ax, true[known].astype(float), said[known].astype(float), model.target_name_ or "target")
        else:
            side = confusion_side(len(classes))
            ax = _axes(ax, side + 1.6, side + 0.4)
            draw_confusion(ax, true[known], said[known], classes)
        ax.set_title(f"{int(known.sum())} {rows}", fontsize=10)
        return ax

    @_drawing
    def sparsity(self, curve: SparsityCurve | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw how sparse the graph is: edges by their strength, or the error along a sparsity curve.

        Parameters
        ----------
        curve : SparsityCurve, default=None
            What ``sparsity_curve`` returned: the error on rows left out against the number of edges. Without it, how
            many edges are at least how strong.
        ax : matplotlib.axes.Axes, default=None
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        if curve is None:
            graph = graph_of(self.model)
            ax = _axes(ax, 6.4, 3.6)
            draw_strengths(ax, graph)
            return ax
        if not isinstance(curve, SparsityCurve):
            raise InputError(f"curve must be what sparsity_curve returned, got {type(curve).__name__}.")
        self._refuse_without_target()
        measure = "log loss" if hasattr(self.model, "classes_") else f"mean absolute error, {unit_of(self.model)}"
        ax = _axes(ax, 6.4, 3.6)
        draw_sparsity_curve(ax, curve.frame, curve.chosen, measure)
        return ax

    def _refuse_without_target(self) -> None:
        if not hasattr(type(self.model), "task_nodes_"):
            name = type(self.model).__name__
            raise InputError(f"{name} predicts nothing: this picture is for PNNRegressor and PNNClassifier.")

    def _effects(self) -> dict[str, float]:
        """Return what the prediction owes to each column."""
        self._refuse_without_target()
        blocks = self.model.fitted.blocks
        found = blocks.norms(self.model.task_nodes_)
        return dict(zip(blocks.names, np.asarray(found if self._signed else np.abs(found)).tolist(), strict=True))

    @property
    def _signed(self) -> bool:
        """Whether effects have a direction: of more than two classes they have none."""
        return len(getattr(self.model, "classes_", ())) < 3

    def _out_of_fold(self, y: Any) -> Any:
        """Return what the networks said of rows that they left out; None or NaN where none did."""
        found = self.model.fitted.out_of_fold
        if isinstance(y, pd.Series) and len(y) == len(found.row_ids) and not y.index.equals(pd.Index(found.row_ids)):
            raise InputError("The index of y is not that of the rows given to fit: give the target of those rows.")
        if found.prediction.ndim == 1:
            return found.prediction
        known = np.isfinite(found.prediction[:, 0])
        labels = self.model.classes_[np.where(known[:, None], found.prediction, 0.0).argmax(axis=1)].astype(object)
        return np.where(known, labels, None)


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw in; new ones belong to pyplot, so that a notebook and ``plt.show()`` show them."""
    if ax is not None:
        if not isinstance(ax, Axes):
            raise InputError(f"ax must be matplotlib axes, got {type(ax).__name__}: pass one of them.")
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _among_regions(
    edges: list[tuple[str, str, float]], names: Mapping[str, float], measure: str | None
) -> list[tuple[str, str, float]]:
    """Return the edges between columns that a brain map shows."""
    kept = regions_of(names, measure)
    return [edge for edge in edges if edge[0] in kept and edge[1] in kept and edge[2]]
