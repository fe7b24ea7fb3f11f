"""The table of conventions in docs/notation.md is the mean of the committed rows, and every switch is one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from benchmarks.conventions.run import CONVENTIONS, NETWORKS, OUT, REPEATS, markdown

from precisionnet.paper.config import ENTRIES
from precisionnet.parameters import settings_of

NOTATION = Path(__file__).parents[1] / "docs" / "notation.md"


def test_the_table_is_made_of_the_rows():
    shown = NOTATION.read_text().split("<!-- results/conventions.csv -->\n")[1].split("\n\n")[0]
    assert shown == markdown(pd.read_csv(OUT))


def test_every_convention_was_measured_as_often():
    rows = pd.read_csv(OUT)
    assert set(rows["convention"]) == {convention.name for convention in CONVENTIONS}
    for (table, _, _), group in rows.groupby(["table", "convention", "method"]):
        assert sorted(group["repeat"]) == list(range(REPEATS[table]))


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda convention: convention.name)
def test_every_convention_is_a_switch_of_an_experiment(convention):
    reading = settings_of({"recipe": "paper", **NETWORKS["abide"]})
    switched = settings_of({"recipe": "paper", **NETWORKS["abide"], **convention.parameters})
    assert (switched != reading) == bool(convention.parameters)
    assert set(convention.drawn) <= set(ENTRIES["synthetic"])
