"""``model.plot``: every picture of every kind of model, with labels and units; what is refused, in one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from precisionnet import GraphicalLasso, PNNClassifier, PNNRegressor, plots
from precisionnet.errors import InputError
from precisionnet.estimators.interop import GraphInterop
from precisionnet.estimators.sparsity import SparsityCurve
from precisionnet.plots.brain import UNSURE
from precisionnet.plots.graph import graph_of
from precisionnet.plots.style import NEGATIVE, PALE, POSITIVE, UNSIGNED
from precisionnet.precision import partial_correlations

QUICK = {"n_members": 4, "max_epochs": 1, "readout": "both", "random_state": 0}
REGIONS = ["lh_insula", "rh_insula", "lh_cuneus", "rh_cuneus", "lh_lingual", "rh_lingual"]
HOSTILE = '<script>alert("1")</script> a$b$c$\\frac{x'


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(80, 1))
    X = pd.DataFrame(0.6 * shared + rng.normal(size=(80, 6)), columns=REGIONS)
    return X, pd.Series(X["lh_insula"] - X["rh_cuneus"] + 0.3 * rng.normal(size=80), name="age")


@pytest.fixture(scope="module")
def regressor(table):
    return PNNRegressor(**QUICK).fit(*table)


@pytest.fixture(scope="module", params=[2, 3])
def classifier(request, table):
    X, y = table
    labels = pd.qcut(y, request.param, labels=["a<b>", "b", "c"][: request.param]).astype(str)
    return PNNClassifier(**QUICK).fit(X, labels), labels


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def left(ax) -> str:
    return ax.get_title(loc="left")


def every_picture(model, y, ax=None) -> dict[str, object]:
    plot = model.plot
    return {
        "graph": plot.graph(ax=ax),
        "task": plot.graph("task", ax=ax),
        "matrix": plot.matrix(ax=ax),
        "task matrix": plot.matrix("task", ax=ax),
        "nodes": plot.nodes(ax=ax),
        "brain": plot.brain(ax=ax),
        "brain with edges": plot.brain(edges=3, which="data", ax=ax),
        "training": plot.training(ax=ax),
        "prediction": plot.prediction(y, ax=ax),
        "sparsity": plot.sparsity(ax=ax),
    }


def test_every_picture_of_a_regressor_has_labels_and_units(regressor, table):
    drawn = every_picture(regressor, table[1])
    assert left(drawn["graph"]) == left(drawn["matrix"]) == "The data's graph"
    assert "task's graph" in left(drawn["task"])
    assert "task's graph" in left(drawn["task matrix"])
    assert "data's graph" in left(drawn["brain with edges"])
    assert drawn["matrix"].figure.axes[1].get_ylabel() == "partial correlation"
    assert "units of age" in drawn["task matrix"].figure.axes[1].get_ylabel()
    assert "units of age" in drawn["nodes"].get_xlabel()
    assert "units of age" in drawn["brain"].figure.axes[1].get_xlabel()
    assert "units of age" in drawn["training"].get_ylabel()
    assert drawn["prediction"].get_xlabel() == "true age"
    n_left_out = int(np.isfinite(regressor.oob_prediction_).sum())
    assert len(drawn["prediction"].collections[0].get_offsets()) == n_left_out > 0
    assert drawn["sparsity"].get_ylabel() == "Edges of the graph"


def test_every_picture_of_a_classifier(classifier):
    model, labels = classifier
    drawn = every_picture(model, labels)
    assert drawn["prediction"].get_xlabel() == "predicted class"
    counts = [int(text.get_text()) for text in drawn["prediction"].texts]
    assert sum(counts) == int(np.isfinite(model.oob_decision_function_[:, 0]).sum()) > 0
    assert drawn["training"].get_ylabel() == "accuracy"
    assert "log-odds" in drawn["nodes"].get_xlabel()
    bars = {to_hex(bar.get_facecolor()) for bar in drawn["nodes"].patches}
    assert bars <= ({POSITIVE, NEGATIVE} if len(model.classes_) == 2 else {POSITIVE})


def test_axes_that_are_given_come_back_and_pyplot_is_left_alone(regressor):
    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for ax, draw in zip(panels, ("graph", "nodes", "brain", "training"), strict=True):
        assert getattr(regressor.plot, draw)(ax=ax) is ax
    assert plots.to_svg(figure, "four").count("<svg") == 1
    assert plt.get_fignums() == []
    with pytest.raises(InputError, match="ax must be"):
        regressor.plot.graph(ax=figure)


def test_a_graph_is_drawn_with_the_model_s_own_numbers(regressor):
    data, task = graph_of(regressor), graph_of(regressor, "task")
    assert np.array_equal(task.value, regressor.task_graph_[task.first, task.second])
    partial = partial_correlations(regressor.precision_)
    assert np.array_equal(data.value, partial[data.first, data.second])
    bars = regressor.plot.nodes()
    shown = dict(zip([text.get_text() for text in bars.get_yticklabels()], bars.patches, strict=True))
    for name, effect in zip(REGIONS, regressor.task_nodes_, strict=True):
        assert shown[name].get_width() == effect
        assert to_hex(shown[name].get_facecolor()) == (POSITIVE if effect >= 0 else NEGATIVE)
    assert {frozenset(pair) for pair in zip(data.first, data.second, strict=True)} == {
        frozenset(pair) for pair in zip(task.first, task.second, strict=True)
    }
    assert (np.diff(np.abs(task.value)) <= 0).all()


def test_before_a_fit_every_picture_says_so_in_one_sentence():
    for model in (PNNRegressor(), PNNClassifier(), GraphicalLasso()):
        for name in ("graph", "matrix", "nodes", "brain", "training", "sparsity"):
            with pytest.raises(NotFittedError, match=r"^This \w+ is not fitted: call fit [^.]*\.$"):
                getattr(model.plot, name)()
        with pytest.raises(NotFittedError):
            model.plot.prediction([1.0])
        assert "graph, matrix" in repr(model.plot)


@pytest.mark.filterwarnings("ignore:The graph is empty")
@pytest.mark.parametrize("correlation", [0.0, 0.5], ids=["no edge", "one edge"])
def test_a_graph_of_one_edge_or_none(correlation):
    covariance = pd.DataFrame([[1.0, correlation], [correlation, 1.0]], columns=["lh_insula", "rh_insula"])
    model = GraphicalLasso(l1_penalty=0.1, covariance="precomputed").fit(covariance)
    arcs = [one for one in model.plot.graph().patches if isinstance(one, PathPatch)]
    assert len(arcs) == (1 if correlation else 0)
    drawn = [model.plot.matrix(), model.plot.sparsity(), model.plot.brain()]
    said = " ".join(text.get_text() for ax in [model.plot.graph(), *drawn] for text in ax.texts)
    assert ("no edges" in said) == (not correlation)
    for ax in drawn:
        ax.figure.draw_without_rendering()


def test_a_graphical_lasso_has_no_task(table):
    model = GraphicalLasso(l1_penalty=0.05).fit(table[0])
    assert left(model.plot.graph()) == "The data's graph"
    assert "data's graph" in left(model.plot.brain(edges=2))
    with pytest.raises(InputError, match="no task's graph"):
        model.plot.graph("task")
    for draw in (model.plot.nodes, model.plot.training, lambda: model.plot.prediction([1.0])):
        with pytest.raises(InputError, match="predicts nothing"):
            draw()


def test_which_and_counts_are_checked(regressor):
    with pytest.raises(InputError, match="which"):
        regressor.plot.graph("sparse")
    with pytest.raises(InputError, match="most"):
        regressor.plot.graph(most=0)
    with pytest.raises(InputError, match="edges"):
        regressor.plot.brain(edges=-1)
    with pytest.raises(InputError, match="sparsity_curve"):
        regressor.plot.sparsity(pd.DataFrame())


class Wide(GraphInterop, BaseEstimator):
    """A fitted model of 5,000 columns, as far as drawings look at one."""

    n_features_in_ = 5000

    def fit(self) -> None:
        """It is."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def to_edge_frame(self) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        ends = rng.permutation(5000).reshape(-1, 2)
        value = np.sort(rng.uniform(0.1, 0.9, len(ends)))[::-1] * rng.choice([-1, 1], len(ends))
        frame = pd.DataFrame(ends, columns=["source", "target"]).astype(str).radd("x")
        return frame.assign(precision=-value, partial_correlation=value)


def test_five_thousand_columns():
    model = Wide()
    ax = model.plot.graph()
    assert len([one for one in ax.patches if isinstance(one, PathPatch)]) == 80
    assert len(ax.texts) == 160  # the ends of the edges drawn, each with a name
    matrix = model.plot.matrix()
    shown = np.asarray(matrix.images[1].get_array())
    assert shown.shape == (500, 500)
    largest = model.to_edge_frame()["partial_correlation"].abs().max()
    assert np.nanmax(np.abs(shown)) == largest
    assert "5000 columns" in matrix.get_xlabel()
    assert "2,500 of 12,497,500 pairs" in left(model.plot.sparsity())
    with pytest.raises(InputError, match="0 of 5000 columns"):
        model.plot.brain()


def test_a_hundred_and_forty_eight_columns_have_names_at_the_edges_drawn():
    rng = np.random.default_rng(0)
    names = [f"region_{i}_thickness" for i in range(148)]
    model = GraphicalLasso(l1_penalty=0.15).fit(pd.DataFrame(rng.normal(size=(100, 148)), columns=names))
    ax = model.plot.graph(most=20)
    assert 0 < len(ax.texts) <= 40
    assert all(text.get_text().startswith("region_") for text in ax.texts)
    assert "148 columns" in model.plot.matrix().get_xlabel()


def test_evidence_makes_the_rest_pale(regressor):
    edges = regressor.to_edge_frame()[["source", "target"]]
    turned = edges.rename(columns={"source": "target", "target": "source"})  # either end may be named first
    ax = regressor.plot.graph(evidence=turned.assign(q_value=[0.01] + [0.5] * (len(edges) - 1)))
    colours = [to_hex(one.get_edgecolor()) for one in ax.patches if isinstance(one, PathPatch)]
    assert len([colour for colour in colours if colour != PALE]) == 1
    nodes = pd.DataFrame({"node": REGIONS, "importance": 1.0, "importance_low": 0.5, "importance_high": 1.5})
    nodes = nodes.assign(direction=1.0, q_value=[0.01, 0.01, 0.2, 0.2, 0.2, np.nan])
    bars = regressor.plot.nodes(evidence=nodes)
    assert [to_hex(bar.get_facecolor()) for bar in bars.patches].count(PALE) == 4
    assert "not tested" not in left(bars)
    brain = regressor.plot.brain(evidence=nodes)
    pale = {one.get_label().split(":")[0] for one in brain.patches if to_hex(one.get_facecolor()) == UNSURE}
    assert pale == set(REGIONS[2:])
    with pytest.raises(InputError, match="q_value"):
        regressor.plot.nodes(evidence=nodes.drop(columns="q_value"))


def test_predictions_are_compared_with_the_rows_that_were_fitted(regressor, table):
    X, y = table
    shown = regressor.plot.prediction(y).collections[0].get_offsets()
    known = np.isfinite(regressor.oob_prediction_)
    assert np.allclose(shown, np.column_stack([y, regressor.oob_prediction_])[known])
    new = regressor.plot.prediction(y[:10], X[:10]).collections[0].get_offsets()
    assert np.allclose(new[:, 1], regressor.predict(X[:10]))
    with pytest.raises(InputError, match="80 rows"):
        regressor.plot.prediction(y[:10])
    with pytest.raises(InputError, match="index"):
        regressor.plot.prediction(y[::-1])


def test_a_column_of_labels_is_one_node(table):
    X, y = table
    X = X.assign(city=np.resize(["Oslo", "Rome", "Bern"], len(X)))
    model = PNNRegressor(**QUICK).fit(X, y)
    for which in ("data", "task"):
        graph = graph_of(model, which)
        assert graph.names == [*REGIONS, "city"]
        assert model.plot.matrix(which).images[1].get_array().shape == (7, 7)
    bars = model.plot.nodes()
    labels = [text.get_text() for text in bars.get_yticklabels()]
    assert sorted(labels) == sorted(graph.names)
    assert to_hex(bars.patches[labels.index("city")].get_facecolor()) == UNSIGNED
    assert "6 of 7 columns" in " ".join(text.get_text() for text in model.plot.brain().texts)


def test_a_model_that_left_no_row_out_asks_for_others(table):
    X, y = table
    model = PNNRegressor(recipe="paper", max_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="X="):
        model.plot.prediction(y)
    assert model.plot.prediction(y, X).get_ylabel() == "predicted age"


def test_a_sparsity_curve_has_units(regressor, classifier):
    frame = pd.DataFrame({"n_edges": [9, 3], "error": [1.0, 1.1], "standard_error": [0.1, 0.1]})
    curve = SparsityCurve(frame, chosen=1, model=None)
    assert "units of age" in regressor.plot.sparsity(curve).get_ylabel()
    assert classifier[0].plot.sparsity(curve).get_ylabel() == "log loss"


def test_hostile_names_stay_text(table):
    X, y = table
    model = PNNRegressor(**QUICK).fit(X.rename(columns={"lh_insula": HOSTILE}), y.rename(HOSTILE))
    figure, panels = plt.subplots(2, 3, figsize=(18, 12))  # made outside of the package's style
    for ax, draw in zip(panels.ravel(), ("graph", "matrix", "nodes", "brain", "training", "sparsity"), strict=True):
        getattr(model.plot, draw)(ax=ax)
    model.plot.prediction(y, ax=figure.add_subplot())
    svg = plots.to_svg(figure, "hostile")  # a name that is read as a formula would not be drawn at all
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert "<script" not in model._repr_html_().split("</p>")[0]


def test_a_notebook_shows_the_graph_and_the_error(regressor, classifier, table):
    line = regressor._repr_mimebundle_()["text/html"].split("</p>")[0]
    assert f"6 columns, {len(regressor.to_edge_frame())} edges of 15" in line
    assert f"{regressor.oob_mae_:.4g}" in line
    assert regressor._repr_html_().startswith(line)
    assert f"{classifier[0].oob_accuracy_:.4g}" in classifier[0]._repr_html_().split("</p>")[0]
    assert "edges of 15" in GraphicalLasso(l1_penalty=0.05).fit(table[0])._repr_html_()
    assert not PNNRegressor()._repr_html_().startswith("<p>")
