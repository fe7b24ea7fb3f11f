"""Summarise a model's file without its networks and without torch, which is quick.

``load`` checks every field, as it makes predictions of them. Here only what is shown is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import ModelFileError, printable
from precisionnet.estimators.columns import ColumnBlocks
from precisionnet.estimators.document_fields import classes_in, keys, require, text
from precisionnet.estimators.model_file import AGAIN, detail, read_arrays, read_file
from precisionnet.parameters import Settings, settings_of
from precisionnet.preprocessing.table_nodes import node_columns, read_columns, signed_columns
from precisionnet.sparse_matrices import Matrix, Support
from precisionnet.types import FloatArray, TaskName

TASKS: dict[str, TaskName] = {"PNNRegressor": "regression", "PNNClassifier": "classification"}

ANCHORS = ".readout.anchors"
"""Ending of the names of arrays that hold training rows."""


@dataclass(frozen=True)
class ModelSummary:
    """A model as far as it can be shown without running it.

    Parameters
    ----------
    estimator : str
        Name of the estimator's class.
    settings : Settings
        The values it was fitted with.
    target_name : str or None
        Name of the target.
    classes : ndarray or None
        Labels, where classes are predicted.
    blocks : ColumnBlocks
        The columns, and which nodes of the precision belong to which of them.
    n_rows : dict of str to int
        Rows for ``training`` and ``validation``.
    precision : ndarray of shape (n_nodes, n_nodes)
        The sparse precision.
    l1_penalty : float
        The penalty that was used.
    history : DataFrame
        One row per epoch.
    best_epoch : int
        The epoch that was kept.
    n_networks : int
        Number of networks.
    n_predicting : int
        Networks with weight in the prediction.
    n_kept_rows : int
        Training rows that are in the file, because a kernel machine counts.
    errors : dict of str to float
        Errors on rows that networks left out, by the attribute that shows them; NaN where there are none.
    """

    estimator: str
    settings: Settings
    target_name: str | None
    classes: Any
    blocks: ColumnBlocks
    n_rows: dict[str, int]
    precision: Matrix
    l1_penalty: float
    history: pd.DataFrame
    best_epoch: int
    n_networks: int
    n_predicting: int
    n_kept_rows: int
    errors: dict[str, float]


def read_summary(folder: str | Path) -> ModelSummary:
    """Read what can be shown of a model that ``save`` wrote.

    Parameters
    ----------
    folder : str or Path
        A folder made by ``save``, or the output folder of ``precisionnet fit``.

    Returns
    -------
    ModelSummary
        What is in it.

    Raises
    ------
    ModelFileError
        One sentence for anything that is not a whole and sound model.

    Examples
    --------
    >>> import tempfile
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.estimators.summary import read_summary
    >>> data = make_gaussian_regression(n_samples=60, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=1, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     summary = read_summary(folder)
    >>> summary.estimator, len(summary.blocks), summary.best_epoch == model.best_epoch_
    ('PNNRegressor', 5, True)
    """
    name = printable(repr(str(folder)))
    try:
        return _summary(*read_arrays(read_file(Path(folder))))
    except ModelFileError as error:
        raise ModelFileError(f"{name} {error}") from error.__cause__
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFileError(f"{name} cannot be read ({reason}): check the folder's name and permissions.") from error
    except Exception as error:  # whatever a hostile file may lead to
        raise ModelFileError(f"The model in {name} contradicts itself ({detail(error)}): {AGAIN}") from error


def count_networks(n: int, n_predicting: int) -> str:
    """Say how many networks a model has, and how many of them have weight in its prediction.

    Parameters
    ----------
    n : int
        All networks.
    n_predicting : int
        Those with weight.

    Returns
    -------
    str
        Words for a sentence or a table.

    Examples
    --------
    >>> count_networks(8, 8), count_networks(33, 17)
    ('8 networks', '33 networks, 17 of which have weight (the others only predict rows left out)')
    """
    total = f"{n:,} network{'' if n == 1 else 's'}"
    if n_predicting == n:
        return total
    have = "has" if n_predicting == 1 else "have"
    return f"{total}, {n_predicting:,} of which {have} weight (the others only predict rows left out)"


def _summary(document: dict[str, Any], arrays: dict[str, Any]) -> ModelSummary:
    estimator = text(document["estimator"], "estimator")
    task = TASKS[estimator]
    settings = settings_of(document["settings"], task, own_network=bool(document["own_network"]))
    precision = _precision(document, arrays)
    n = precision.shape[0]
    require(precision.shape == (n, n) and bool((precision.diagonal() > 0).all()), "the precision is no precision")
    columns = [text(name, "a column of the history") for name in document["history_columns"]]
    history = pd.DataFrame(arrays["history"], columns=columns)
    best_epoch = document["best_epoch"]
    require(type(best_epoch) is int and 1 <= best_epoch <= len(history), "best_epoch is not in the history")
    require({"train_metric", "validation_metric"} <= set(columns), "the history lacks a column")
    counts = document["n_rows"]
    require(keys(counts) == {"training", "validation"}, "n_rows has other names")
    require(all(type(count) is int for count in counts.values()), "n_rows is no count")
    target_name = document["target_name"]
    return ModelSummary(
        estimator=estimator,
        settings=settings,
        target_name=None if target_name is None else text(target_name, "target_name"),
        classes=classes_in(document["classes"]) if task == "classification" else None,
        blocks=_blocks(document, n),
        n_rows=counts,
        precision=precision,
        l1_penalty=float(document["l1_penalty"]),
        history=history,
        best_epoch=best_epoch,
        n_networks=len(document["member_kinds"]),
        n_predicting=int(np.count_nonzero(arrays["member_weights"])),
        n_kept_rows=max((len(array) for name, array in arrays.items() if name.endswith(ANCHORS)), default=0),
        errors={
            text(name, "an error"): np.nan if value is None else float(value)
            for name, value in document["errors"].items()
        },
    )


def _blocks(document: dict[str, Any], n_nodes: int) -> ColumnBlocks:
    """Return the columns under the nodes; where there is no encoder, each column is a node."""
    if (encoder := document["encoder"]) is not None:
        columns = read_columns(encoder)
        names, of_node = node_columns(columns)
        signed = signed_columns(columns)
    else:
        known = document["column_names"]
        require(known is None or isinstance(known, list), "the names are no list")
        names = [f"x{i}" for i in range(n_nodes)] if known is None else [text(name, "a name") for name in known]
        of_node, signed = np.arange(len(names)), np.ones(len(names), dtype=bool)
    require(len(of_node) == n_nodes, f"the names are not for {n_nodes} nodes")
    return ColumnBlocks(tuple(names), of_node, signed)


def _precision(document: dict[str, Any], arrays: dict[str, Any]) -> Matrix:
    """Return the precision; of a model on a sparse support as a scipy.sparse array."""
    if "precision.values" not in arrays:
        return _finite(arrays["precision"], "precision")
    values, first, second = (arrays[f"precision.{part}"] for part in ("values", "first", "second"))
    n = document["n_features"]
    fine = type(n) is int and values.shape == (n + len(first),) and first.shape == second.shape and first.ndim == 1
    require(fine and bool(((first >= 0) & (first < second) & (second < n)).all()), "the precision is no matrix")
    require(values.dtype == np.float64 and bool(np.isfinite(values).all()), "the precision is not finite")
    return Support(n, first, second).matrix(values)


def _finite(array: Any, name: str) -> FloatArray:
    require(array.dtype == np.float64 and array.ndim == 2 and bool(np.isfinite(array).all()), f"{name} is no matrix")
    found: FloatArray = array
    return found
