"""``precisionnet show``: what is in a model, on one screen. Without torch, so that it comes at once."""

from __future__ import annotations

import numpy as np

from precisionnet.cli import console
from precisionnet.cli.messages import graph_sentence
from precisionnet.errors import some
from precisionnet.estimators.columns import edge_frame
from precisionnet.estimators.summary import ModelSummary, count_networks, read_summary
from precisionnet.parameters import PARAMETERS
from precisionnet.sparse_matrices import extreme_eigenvalues
from precisionnet.tables_out import write_table

EDGES_SHOWN = 10


def run_show(folder: str, edges: str | None) -> None:
    """Print the model; write its edges where a file is named."""
    model = read_summary(folder)
    settings, rows, columns = model.settings, model.n_rows, model.blocks.names
    frame = edge_frame(model.precision, model.blocks)
    smallest, largest = extreme_eigenvalues(model.precision)
    console.say(f"{model.estimator}, method {settings.method}, target {model.target_name or 'unnamed'}")
    if model.classes is not None:
        console.say(f"Classes: {some([str(label) for label in model.classes], 10)}")
    console.say(f"Columns: {some(columns, 4)}")
    console.say(f"Rows: {rows['training']} training, {rows['validation']} validation")
    console.say(graph_sentence(len(frame), len(columns), settings.method))
    if settings.method == "vnn":
        console.say("The network runs on the covariance; the graph is that of its inverse.")
    console.say(
        f"Eigenvalues of the precision: {smallest:.3g} to {largest:.3g}"
        + ("" if settings.method in ("sample", "vnn") else f"; l1 penalty {model.l1_penalty:.3g}")
    )
    console.say(f"Epoch {model.best_epoch} of {len(model.history)} kept: {_kept(model)}")
    console.say(_networks(model))
    values = vars(settings)
    changed = [f"{p.name}={values[p.name]}" for p in PARAMETERS if values[p.name] != p.of(settings.recipe)]
    console.say(f"Parameters beside the defaults: {', '.join(changed) or 'none'}")
    if len(frame):
        console.say("")
        signed = {name for name, has_sign in zip(model.blocks.names, model.blocks.signed, strict=True) if has_sign}
        cells = [
            [
                str(e.source),
                str(e.target),
                f"{e.partial_correlation:{'+' if {e.source, e.target} <= signed else ''}.3f}",
            ]
            for e in frame.head(EDGES_SHOWN).itertuples()
        ]
        console.table(["strongest edges", "", "partial corr."], cells, n_text=2)
    if edges is not None:
        write_table(frame, edges)
        console.say(f"Wrote {len(frame)} edges to {edges}")


def _kept(model: ModelSummary) -> str:
    """Say how single networks did in training; the model, their mean, is better than one of them."""
    row = model.history.iloc[model.best_epoch - 1]
    name = "mean absolute error" if model.classes is None else "accuracy"
    train, validation = row["train_metric"], row["validation_metric"]
    where = "in validation" if model.n_rows["validation"] else "on rows left out"
    return f"{name} {train:.3g} in training" + ("" if np.isnan(validation) else f", {validation:.3g} {where}")


def _networks(model: ModelSummary) -> str:
    """Say how many networks there are, and their error on the rows that they left out, each fold's together."""
    words = {"oob_mae_": "mean absolute error", "oob_log_loss_": "log loss", "oob_accuracy_": "accuracy"}
    errors = {words[name]: value for name, value in model.errors.items() if name in words}
    known = ", ".join(f"{word} {value:.3g}" for word, value in errors.items() if not np.isnan(value))
    networks = count_networks(model.n_networks, model.n_predicting)
    if model.n_kept_rows:
        networks += f", one kind keeps {model.n_kept_rows:,} training rows"
    return networks + (f"; on rows that those of a fold left out together (out of bag): {known}" if known else "")
