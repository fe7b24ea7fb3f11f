"""Testing a fit takes longer than the fit: what is not about folds and penalties has few of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from precisionnet.estimators import base
from precisionnet.estimators.training import train
from precisionnet.evaluation import cross_validation, people_folds
from precisionnet.evaluation.methods import METHODS


def without_slow(request: pytest.FixtureRequest) -> bool:
    """Whether slow tests are left out of this run; with them nothing is made cheap."""
    return "not slow" in request.config.option.markexpr


@pytest.fixture(scope="module", autouse=True)
def cheap_baselines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Import this into a test module: ridge and logistic regression choose between two penalties.

    ``test_the_linear_model_is_that_of_a_comparison`` and the slow tests try all of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ridge", "logistic") if without_slow(request) else ():
            ((parameter, values),) = METHODS[name].grid.items()
            few = {parameter: [values[0], values[len(values) // 2]]}
            patch.setitem(METHODS, name, replace(METHODS[name], grid=few))
        yield


@pytest.fixture(scope="module", autouse=True)
def two_folds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Import this into a test module: where models are fitted anew to be tested there are two folds, not five."""

    def dealt(data: Any, task: Any, seed: int = 0) -> Any:
        return people_folds(data, task, 2, seed)

    with pytest.MonkeyPatch.context() as patch:
        if without_slow(request):
            patch.setattr(cross_validation, "people_folds", dealt)
        yield


@pytest.fixture(scope="module", autouse=True)
def short_training(request: pytest.FixtureRequest) -> Iterator[None]:
    """Import this into a module of snippets, which must run but not learn: a fit ends after four epochs, evidence is
    taken from one pair of halves."""

    def ended_early(data: Any, settings: Any, **others: Any) -> Any:
        return train(data, replace(settings, max_epochs=min(settings.max_epochs, 4)), **others)

    with pytest.MonkeyPatch.context() as patch:
        if without_slow(request):
            patch.setattr(base, "train", ended_early)
            patch.setattr("precisionnet.evidence.task.HALF_PAIRS", 1)
        yield
