"""The committed rows under results/accuracy and results/recipe_study.csv: of which recipe, and shown as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.recipe.page import table
from benchmarks.recipe.tables import SPLITS

from precisionnet import versions
from precisionnet.experiments.config import STANDARD_GRID
from precisionnet.parameters import settled

FOLDER = Path(__file__).parents[1] / "results" / "accuracy"
DECIDED_BY_A_COMPARISON = ("method", "recipe", "missing")


@pytest.mark.parametrize("folder", ["abide", "ants", "abide-defaults", "ants-defaults"])
def test_rows_of_the_present_recipe_were_made_with_its_defaults(folder):
    manifest = json.loads((FOLDER / folder / "experiment.json").read_text(encoding="utf-8"))
    if manifest.get("recipe_version") != getattr(versions, "RECIPE_VERSION", None):
        pytest.skip("measured with an older recipe, as its page says; `make accuracy` measures anew")
    measured = manifest["config"]
    now, left_aside = settled({}), {*DECIDED_BY_A_COMPARISON, *measured["networks"]}
    fixed = {name: value for name, value in measured["fixed"].items() if name not in left_aside}
    assert fixed == {name: now[name] for name in fixed}
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
    shown = cells(decision.split("<!-- results/recipe_study.csv -->")[1].split("\n\n")[0])
    made = cells(table(rows))
    assert list(shown) == list(made)
    for variant, texts in made.items():
        for ours, theirs in zip(shown[variant], texts, strict=True):
            assert numbers(ours) == pytest.approx(numbers(theirs), abs=0.11), variant  # one digit, rounded either way


def cells(markdown: str) -> dict[str, list[str]]:
    """Cells by the first one of their line, but for the header with the names of the cohorts."""
    lines = [line.strip("| ").split(" | ") for line in markdown.strip().splitlines()[2:]]
    return {first: others for first, *others in lines}


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"[+-]\d+\.\d", text)]
