"""``precisionnet show``: what is in a model, on one screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from precisionnet.cli import console
from precisionnet.cli.messages import graph_sentence
from precisionnet.errors import some
from precisionnet.estimators import load
from precisionnet.estimators.checks import column_names
from precisionnet.parameters import PARAMETERS
from precisionnet.tables_out import write_table

EDGES_SHOWN = 10


def run_show(folder: str, edges: str | None) -> None:
    """Print the model; write its edges where a file is named."""
    model = load(folder)
    smallest, largest = np.linalg.eigvalsh(model.precision_)[[0, -1]]
    rows = model.n_rows_
    console.say(f"{type(model).__name__}, method {model.method}, target {model.target_name_ or 'unnamed'}")
    if hasattr(model, "classes_"):
        console.say(f"Classes: {some([str(label) for label in model.classes_], 10)}")
    console.say(f"Columns: {some(column_names(model), 4)}")
    console.say(f"Rows: {rows['training']} training, {rows['validation']} validation")
    console.say(graph_sentence(model))
    if model.method == "vnn":
        console.say("The network runs on the covariance; the graph is that of its inverse.")
    console.say(
        f"Eigenvalues of the precision: {smallest:.3g} to {largest:.3g}"
        + ("" if model.method in ("sample", "vnn") else f"; l1 penalty {model.l1_penalty_:.3g}")
    )
    console.say(f"Epoch {model.best_epoch_} of {model.n_iter_} kept: {_kept(model)}")
    console.say(_networks(model))
    settings = vars(model.settings)
    changed = [f"{p.name}={settings[p.name]}" for p in PARAMETERS if settings[p.name] != p.of(model.recipe)]
    console.say(f"Parameters beside the defaults: {', '.join(changed) or 'none'}")
    frame = model.to_edge_frame()
    if len(frame):
        console.say("")
        cells = [[e.source, e.target, f"{e.partial_correlation:+.3f}"] for e in frame.head(EDGES_SHOWN).itertuples()]
        console.table(["strongest edges", "", "partial corr."], cells, n_text=2)
    if edges is not None:
        write_table(frame, edges)
        console.say(f"Wrote {len(frame)} edges to {edges}")


def _kept(model: Any) -> str:
    row = model.history_.iloc[model.best_epoch_ - 1]
    name = "accuracy" if hasattr(model, "classes_") else "mean absolute error"
    train, validation = row["train_metric"], row["validation_metric"]
    where = "in validation" if model.n_rows_["validation"] else "on rows left out"
    return f"{name} {train:.3g} in training" + ("" if np.isnan(validation) else f", {validation:.3g} {where}")


def _networks(model: Any) -> str:
    """Say how many networks there are, and their error on the rows each left out."""
    count = len(model.networks_)
    words = {"oob_mae_": "mean absolute error", "oob_log_loss_": "log loss", "oob_accuracy_": "accuracy"}
    errors = {word: getattr(model, name) for name, word in words.items() if hasattr(model, name)}
    known = ", ".join(f"{word} {value:.3g}" for word, value in errors.items() if not np.isnan(value))
    return f"{count} network{'s' if count > 1 else ''}" + (f"; out of bag: {known}" if known else "")
