"""The committed rows under results/accuracy are of the present defaults and grid, or their page says that they are older."""

import re
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.recipe.page import table
from benchmarks.recipe.tables import SPLITS

from precisionnet import PNNRegressor
from precisionnet.evaluation.methods import STANDARD_GRID
from precisionnet.report.experiment_page import build_page
from precisionnet.runner import read_folder
from precisionnet.versions import PAPER_VERSION, RECIPE_VERSION, older_recipe, recipe_version

FOLDER = Path(__file__).parents[1] / "results" / "accuracy"
DECIDED_BY_A_COMPARISON = ("method", "recipe", "missing")
ADDED_SINCE = ("support",)
"""Parameters that came after the rows and whose defaults change no number of them."""


def test_rows_of_an_earlier_recipe_say_so():
    """So that a default can be changed first, and measured again later."""
    assert older_recipe([RECIPE_VERSION] * 3) is None
    assert "before versions were kept" in older_recipe([None, RECIPE_VERSION])
    said = older_recipe([0, None])
    assert "earlier recipe (version 0 and a version from before versions were kept" in said
    assert f"the present one is version {RECIPE_VERSION}" in said


def test_rows_have_the_version_of_their_own_recipe():
    assert recipe_version({"recipe": ["paper"]}) == recipe_version(None) == PAPER_VERSION
    assert (
        recipe_version({"recipe": ["standard"]}) == recipe_version({"recipe": ["paper", "standard"]}) == RECIPE_VERSION
    )


@pytest.mark.parametrize("version", [None, RECIPE_VERSION - 1, RECIPE_VERSION])
def test_the_page_says_when_rows_are_older(version):
    stored = read_folder(FOLDER / "abide-defaults")
    rows = [{**row, "recipe_version": version} for row in stored.rows]
    page = build_page(stored.manifest, rows, len(rows))
    told = [sentence for sentence in page.warnings if "earlier recipe" in sentence]
    assert len(told) == (version != RECIPE_VERSION)
    assert all(sentence in unescape(page.html) for sentence in told)


@pytest.mark.parametrize("folder", ["abide", "ants", "abide-defaults", "ants-defaults"])
def test_defaults_are_what_the_page_measured_or_it_says_that_rows_are_older(folder):
    stored = read_folder(FOLDER / folder)
    measured = stored.manifest["config"]
    assert measured["repeats"] == 10
    passed_over = (*DECIDED_BY_A_COMPARISON, *(name for name in ADDED_SINCE if name not in measured["fixed"]))
    now = {k: v for k, v in vars(PNNRegressor().settings).items() if k not in passed_over}
    fixed = {k: v for k, v in measured["fixed"].items() if k not in DECIDED_BY_A_COMPARISON}
    grid = {"recipe": ["standard"]} if folder.endswith("defaults") else STANDARD_GRID
    same = measured["networks"] == grid and fixed == {k: v for k, v in now.items() if k not in measured["networks"]}
    assert same or older_recipe(row.get("recipe_version") for row in stored.rows), "raise RECIPE_VERSION"
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
