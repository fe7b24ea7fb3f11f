"""Choosing among candidates on the validation rows: every choice of a grid, the hopeless ones given up early.

A race is successive halving over epochs: at each rung, a share of a candidate's epochs, only the better ones of those
that came so far go on (never fewer than four), and those that pass the last are trained to the end. In the standard
recipe the learning rate falls along a cosine and networks settle only when it is low, so that a tenth of the epochs
says little: its race begins at a fifth. ``results/grid_bench.csv`` says what the race saves in the paper's recipe, and
what it costs in validation error. What a race can miss is a slow starter: ``Tuning(race=False)`` trains every candidate
to the end, as the paper does. Nothing here ever sees a test row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from precisionnet.arguments import check_choice, check_count, check_switch
from precisionnet.errors import FitDivergedError
from precisionnet.runner.jobs import Row

SearchName = Literal["grid", "optuna", "none"]
Parameters = dict[str, Any]
Space = Mapping[str, Sequence[Any]]
"""The values of each parameter that are tried, in order."""
Rungs = Mapping[float, float]
"""Maps shares of a candidate's epochs, after which the race is judged, to the share of candidates that go on."""
FEWEST_RACED = 4
"""With fewer combinations than this a race is not worth its risk."""

RUNGS: dict[str, Rungs] = {
    "paper": {0.1: 2 / 3, 0.2: 1 / 2, 0.4: 1 / 2},
    "standard": {0.2: 2 / 3, 0.4: 1 / 2},
}
"""The rungs for each recipe of the networks; models that are fitted in one go are never stopped early."""
NO_OPTUNA = "A budgeted search needs optuna: run pip install 'precisionnet[search]'."
FEWEST = 4
"""At least so many candidates go on at every rung."""


@dataclass(frozen=True)
class Tuning:
    """How parameters are chosen on the validation rows.

    Parameters
    ----------
    search : {"grid", "optuna", "none"}, default="grid"
        Try every combination, a budget of ``trials`` chosen by optuna, or nothing: every method at its defaults.
    trials : int, default=20
        Combinations that optuna tries.
    race : bool, default=True
        Give up early candidates that fall behind the others on the validation rows.

    Examples
    --------
    >>> from precisionnet.evaluation import Tuning
    >>> Tuning("optuna", trials=10).tuned
    True
    >>> Tuning("none").tuned
    False
    """

    search: SearchName = "grid"
    trials: int = 20
    race: bool = True

    def __post_init__(self) -> None:
        check_choice("search", self.search, get_args(SearchName))
        check_count("trials", self.trials, 1)
        check_switch("race", self.race)

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose."""
        return self.search != "none"


class Candidate(Protocol):
    """One choice of parameters in training: it can be advanced, judged on the validation rows, and given up."""

    parameters: Parameters
    max_epochs: int
    """1 for a model that is fitted in one go."""
    epochs: int
    """Epochs trained so far."""
    seconds: float
    """Time spent on it so far."""

    def advance(self, to_epoch: int) -> float:
        """Train up to that epoch; return the best validation score so far (MAE or log loss: lower is better)."""
        ...

    @property
    def done(self) -> bool:
        """Whether training has ended, at the last epoch or because it stopped getting better."""
        ...

    def model(self) -> Any:
        """Return the fitted estimator at its best epoch."""
        ...


Make = Callable[[Parameters], Candidate]
"""Builds an untrained candidate."""


@dataclass(frozen=True)
class Searched:
    """The winner, trained, and a row for each candidate that was tried."""

    best: Candidate
    trials: list[Row]


def search(
    make: Make, space: Space, tuning: Tuning, seed: int = 0, scratch: Path | None = None, recipe: str = "paper"
) -> Searched:
    """Find the candidate with the lowest validation score; of equals the first.

    ``make`` builds an untrained candidate. A budgeted search (``tuning.search == "optuna"``) keeps its journal in
    ``scratch`` and goes on from there; where its budget covers the whole grid it is the grid. ``recipe`` says at which
    rungs a race is judged.
    """
    if tuning.search == "optuna" and count_combinations(space) > tuning.trials:
        from precisionnet.evaluation.optuna_search import search_with_optuna

        return search_with_optuna(make, space, tuning, seed, scratch, recipe)
    race = tuning.race and count_combinations(space) >= FEWEST_RACED
    return search_grid(make, space, RUNGS[recipe] if race else {})


def search_grid(make: Make, space: Space, rungs: Rungs) -> Searched:
    """Try every combination, in a race; without rungs each to the end."""
    entrants = [Entrant(parameters) for parameters in combinations(space)]
    going = entrants
    for share, kept in rungs.items():
        going = _advance_all(going, make, share, keep=how_many_go_on(len(going), kept))
    winners = _advance_all(going, make, 1.0, keep=1)
    trials = [entrant.row() for entrant in entrants]
    if not winners:
        raise nothing_left(trials)
    best = winners[0].candidate
    assert best is not None
    return Searched(best, trials)


def combinations(space: Space) -> list[Parameters]:
    """List all combinations; the last parameter changes fastest. An empty space has one, of nothing."""
    return [dict(zip(space, values, strict=True)) for values in product(*space.values())]


def count_combinations(space: Space) -> int:
    """Count the combinations."""
    return math.prod(len(values) for values in space.values())


def how_many_go_on(entered: int, share: float) -> int:
    """Return that share of the candidates, rounded up, and no fewer than ``FEWEST``."""
    return max(FEWEST, math.ceil(round(entered * share, 9)))


def nothing_left(trials: Sequence[Row]) -> FitDivergedError:
    """Make the error of a search that has no model to return."""
    reasons = [trial["error"] for trial in trials if "error" in trial]
    if len(trials) == 1:
        return FitDivergedError(reasons[0])
    return FitDivergedError(f"No candidate came to the end, {len(reasons)} of {len(trials)} diverged: {reasons[0]}")


@dataclass(eq=False)
class Entrant:
    """One combination: made when its turn comes, freed when it is out."""

    parameters: Parameters
    candidate: Candidate | None = None
    validation: float = math.inf
    epochs: int = 0
    stopped: bool = False
    """Whether it could be trained further."""
    seconds: float = 0.0
    error: str | None = None

    def advance(self, make: Make, share: float) -> bool:
        """Train up to this share of its epochs; return False where it diverged, which is infinitely bad."""
        try:
            self._train(make, share)
        except FitDivergedError as error:
            self.error, self.validation, self.stopped = str(error), math.inf, False
            self.candidate = None
        return self.error is None

    def row(self) -> Row:
        """Return what is stored of it."""
        validation = self.validation if math.isfinite(self.validation) else None
        told = {"parameters": self.parameters, "validation": validation, "epochs": self.epochs}
        told |= {"stopped": self.stopped, "seconds": self.seconds}
        return told if self.error is None else {**told, "error": self.error}

    def _train(self, make: Make, share: float) -> None:
        if self.candidate is None:
            self.candidate = make(dict(self.parameters))
        candidate = self.candidate
        try:
            # 0.6 * 5 is a little above 3, and an epoch must not hang on the last bit
            self.validation = float(candidate.advance(math.ceil(round(share * candidate.max_epochs, 9))))
        finally:
            self.epochs, self.seconds, self.stopped = candidate.epochs, candidate.seconds, not candidate.done
        if not math.isfinite(self.validation):
            raise FitDivergedError(f"The validation score became {self.validation}.")


def _advance_all(entrants: Iterable[Entrant], make: Make, share: float, keep: int) -> list[Entrant]:
    """Return the best ``keep`` at this share of the epochs, in their order; at most one other is held in memory."""
    leading: list[Entrant] = []
    for entrant in entrants:
        if not entrant.advance(make, share):
            continue
        leading.append(entrant)
        if len(leading) > keep:
            last = max(reversed(leading), key=lambda entrant: entrant.validation)  # of equals the later one is out
            leading.remove(last)
            last.candidate = None
    return leading
