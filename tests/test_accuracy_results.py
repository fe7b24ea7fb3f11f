"""The committed rows under results/accuracy are of the defaults and the grid as they are now."""

import json
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.recipe.page import table
from benchmarks.recipe.tables import SPLITS

from precisionnet import PNNRegressor
from precisionnet.evaluation.methods import STANDARD_GRID

FOLDER = Path(__file__).parents[1] / "results" / "accuracy"
DECIDED_BY_A_COMPARISON = ("method", "recipe", "missing")


def config(folder: str) -> dict:
    return json.loads((FOLDER / folder / "experiment.json").read_text(encoding="utf-8"))["config"]


@pytest.mark.parametrize("folder", ["abide", "ants", "abide-defaults", "ants-defaults"])
def test_defaults_are_what_the_page_measured(folder):
    measured = config(folder)
    now = {k: v for k, v in vars(PNNRegressor().settings).items() if k not in DECIDED_BY_A_COMPARISON}
    chosen = set(measured["networks"])
    assert {k: v for k, v in now.items() if k not in chosen} == {
        k: v for k, v in measured["fixed"].items() if k not in DECIDED_BY_A_COMPARISON
    }
    assert measured["repeats"] == 10
    if folder.endswith("defaults"):
        assert measured["networks"] == {"recipe": ["standard"]}
    else:
        assert measured["networks"] == STANDARD_GRID
        assert all(now[name] in values for name, values in STANDARD_GRID.items() if name != "recipe")


def test_the_study_in_the_decision_is_made_of_the_committed_rows():
    rows = pd.read_csv(FOLDER.parent / "recipe_study.csv")
    assert (rows.groupby(["table", "variant"])["split"].nunique() == SPLITS).all()
    decision = (FOLDER.parents[1] / "docs" / "decisions" / "0009-recipe.md").read_text(encoding="utf-8")
    shown = decision.split("<!-- results/recipe_study.csv -->")[1].split("\n\n")[0].strip()
    assert shown.splitlines()[1:] == table(rows).splitlines()[1:]  # but for the names of the cohorts
