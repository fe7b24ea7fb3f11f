"""Testing a fit takes longer than the fit: what is not about folds and penalties has few of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from precisionnet.evaluation import cross_validation, people_folds
from precisionnet.evaluation.methods import METHODS


@pytest.fixture(scope="module", autouse=True)
def cheap_baselines() -> Iterator[None]:
    """Import this into a test module: ridge and logistic regression choose between two penalties.

    ``tests/evaluation/test_baselines.py`` and ``test_search.py`` try the whole grids.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ridge", "logistic"):
            ((parameter, values),) = METHODS[name].grid.items()
            few = {parameter: [values[0], values[len(values) // 2]]}
            patch.setitem(METHODS, name, replace(METHODS[name], grid=few))
        yield


@pytest.fixture(scope="module", autouse=True)
def two_folds() -> Iterator[None]:
    """Import this into a test module: where models are fitted anew to be tested there are two folds, not five."""

    def dealt(data: Any, task: Any, seed: int = 0) -> Any:
        return people_folds(data, task, 2, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validation, "people_folds", dealt)
        yield
