"""What several commands say and write in the same way. Light, so that ``show`` and ``predict`` start quickly."""

from __future__ import annotations

from typing import Any

import pandas as pd


def graph_sentence(model: Any) -> str:
    """How many edges the sparse graph has, in words where there are none or all."""
    n = int(model.n_features_in_)
    pairs, edges = n * (n - 1) // 2, len(model.to_edge_frame())
    zeros = float((model.precision_ == 0).mean())
    sentence = f"Graph: {edges} of {pairs} possible edges, {zeros:.0%} of the precision is exactly zero."
    if edges == 0:
        sentence += " No column depends directly on another at this penalty: lower --l1-scale."
    elif edges == pairs and model.method in ("joint", "glasso") and n > 2:
        sentence += " Every pair is connected: raise --l1-scale for a sparser graph."
    return sentence


def id_label(ids: pd.Index[Any], *taken: str) -> str:
    """The id column's name in an output, out of the way of the columns we write."""
    return f"{ids.name}_id" if ids.name in taken else str(ids.name)


def probability_frame(probabilities: Any, classes: Any) -> pd.DataFrame:
    """One column a class."""
    return pd.DataFrame(probabilities, columns=[f"probability_{label}" for label in classes])
