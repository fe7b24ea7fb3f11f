"""The accuracy-sparsity curve."""

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.datasets import make_gaussian_classification, make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.estimators.sparsity import sparsest_within_one_error, sparsity_curve

SMALL = {"n_members": 2, "max_epochs": 5, "n_filters": 4}


def test_a_row_a_penalty_and_ever_fewer_edges():
    data = make_gaussian_regression(150, 8, sparsity=0.4, random_state=0)
    seen = []
    curve = sparsity_curve(PNNRegressor(**SMALL), data.X, data.y, [2.0, 0.5, 50.0], on_point=seen.append)
    frame = curve.frame
    assert list(frame["l1_scale"])[1:] == [0.5, 2.0, 50.0]
    assert np.isnan(frame["l1_scale"].iloc[0])
    assert frame["n_edges"].is_monotonic_decreasing
    assert (frame["n_edges"].iloc[0], frame["n_edges"].iloc[-1]) == (28, 0)
    assert len(seen) == 4
    edges = np.count_nonzero(np.triu(curve.model.precision_, 1))
    assert curve.chosen == 0 or edges == frame["n_edges"].iloc[curve.chosen]
    assert np.isfinite(curve.model.predict(data.X)).all()


def test_error_is_that_of_rows_left_out():
    data = make_gaussian_regression(150, 8, sparsity=0.4, random_state=0)
    model = PNNRegressor(**SMALL, random_state=5)
    curve = sparsity_curve(model, data.X, data.y, [1.0])
    assert curve.frame["error"].iloc[0] == pytest.approx(model.fit(data.X, data.y).oob_mae_, rel=1e-6)


def test_classes():
    data = make_gaussian_classification(150, 6, random_state=0)
    curve = sparsity_curve(PNNClassifier(**SMALL), data.X, data.y, [1.0])
    assert (curve.frame["error"] > 0).all()


def test_sparsest_within_one_standard_error():
    frame = pd.DataFrame({"n_edges": [9, 5, 3, 0], "error": [1.0, 0.9, 0.95, 1.5], "standard_error": [0.1] * 4})
    assert sparsest_within_one_error(frame) == 2


@pytest.mark.parametrize("wrong", [{"method": "glasso"}, {"recipe": "paper"}])
def test_only_for_what_has_a_path(wrong):
    data = make_gaussian_regression(50, 4, random_state=0)
    with pytest.raises(InputError, match="method=.joint."):
        sparsity_curve(PNNRegressor(**wrong), data.X, data.y)


def test_penalties_above_zero():
    data = make_gaussian_regression(50, 4, random_state=0)
    with pytest.raises(InputError, match="above 0"):
        sparsity_curve(PNNRegressor(), data.X, data.y, [])


def test_the_figure_marks_the_choice():
    from precisionnet.plots import sparsity_curve_figure

    frame = pd.DataFrame({"n_edges": [9, 5, 3, 0], "error": [1.0, 0.9, 0.95, 1.5], "standard_error": [0.1] * 4})
    (axes,) = sparsity_curve_figure(frame, 2).axes
    assert [text.get_text() for text in axes.texts] == ["3 edges"]
    assert axes.get_xlabel() == "Edges of the graph"
