"""The committed rows under results/accuracy are of the defaults and the grid as they are now."""

import json
from pathlib import Path

import pytest

from precisionnet import PNNRegressor
from precisionnet.experiments.config import STANDARD_GRID

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
