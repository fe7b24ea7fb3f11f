"""BIDS ``participants.tsv``: who the people are; and other numbers, where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from precisionnet.datasets.cells import to_labels_or_numbers
from precisionnet.datasets.roles import Roles
from precisionnet.datasets.joining import Part
from precisionnet.datasets.neuro.formats import SESSION_NAMES, read_facts

DEMOGRAPHICS = ("age", "sex", "gender", "handedness", "group", "diagnosis", "dx", "species", "strain", "education")


def read_participants(path: str, header: Sequence[str], id: str | None, roles: Roles) -> Part:
    """Columns of numbers are features, unless they say who somebody is or have another role."""
    part = read_facts(
        path, header, id, "participants", [n for n in (roles.target, roles.site) if n is not None and n in header]
    )
    aside = {name.lower() for name in [*DEMOGRAPHICS, *SESSION_NAMES, *roles.named()]}
    features: dict[str, pd.Series[float]] = {}
    notes = list(part.notes)
    for name, column in part.facts.items():
        plain = str(name).lower()
        if plain in aside or plain.startswith("site"):
            continue
        values, said = to_labels_or_numbers(column, path)
        if values.dtype.kind in "if":
            features[str(name)] = values.astype(float)
            notes += said
    return replace(
        part,
        features=pd.DataFrame(features, index=part.facts.index),
        facts=part.facts.drop(columns=list(features)),
        notes=tuple(notes),
    )
