"""A budgeted search: optuna's TPE proposes, the validation rows judge, hopeless trials are given up at the rungs.

Optuna's journal holds finished trials only, each written in one piece. A proposal depends on the seed and the finished
trials and on nothing else, so a search that was killed goes on as if it had not been: the trial in flight left no
trace, and is proposed again. Every trial is a combination of its own; where TPE proposes an old one, an untried one is
drawn in its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from precisionnet.errors import InputError, OutputError
from precisionnet.evaluation.tuning import (
    NO_OPTUNA,
    RUNGS,
    Candidate,
    Entrant,
    Make,
    Parameters,
    Rungs,
    Searched,
    Space,
    Tuning,
    how_many_go_on,
    nothing_left,
)

try:
    import optuna
    from optuna.distributions import CategoricalDistribution
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ImportError as error:
    raise InputError(NO_OPTUNA) from error

AT_RANDOM = 5
"""Trials before TPE has its say: optuna's ten would be half of a budget of 20."""

Places = tuple[int, ...]
"""A combination: the position of each parameter's value in its list."""


def search_with_optuna(
    make: Make, space: Space, tuning: Tuning, seed: int = 0, scratch: Path | None = None, recipe: str = "paper"
) -> Searched:
    """Try ``tuning.trials`` combinations of a larger space; with ``scratch`` the finished ones survive a kill."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = _open_study(space, seed, scratch)
    leader: tuple[int, Candidate] | None = None
    while (number := len(study.trials)) < tuning.trials:
        places = _propose(study.trials, space, seed)
        entrant = Entrant(_parameters(space, places))
        scores = _run(entrant, make, study.trials, RUNGS[recipe] if tuning.race else {})
        _record(study, space, places, entrant.row(), scores)
        if _best(study.trials) == number and entrant.candidate is not None:
            leader = number, entrant.candidate
    trials = [trial.user_attrs["row"] for trial in study.trials]
    winner = _best(study.trials)
    if winner is None:
        raise nothing_left(trials)
    if leader is None or leader[0] != winner:  # found before a restart: the same numbers come out again
        again = make(_parameters(space, _places(space, study.trials[winner])))
        again.advance(again.max_epochs)
        leader = winner, again
    return Searched(leader[1], trials)


def _run(entrant: Entrant, make: Make, earlier: Sequence[FrozenTrial], rungs: Rungs) -> dict[int, float]:
    """Train from rung to rung and return the scores there; stop where too many earlier trials were better."""
    scores: dict[int, float] = {}
    for rung, share in enumerate((*rungs, 1.0)):
        if not entrant.advance(make, share):
            break
        scores[rung] = entrant.validation
        there = [trial.intermediate_values[rung] for trial in earlier if rung in trial.intermediate_values]
        ahead = sum(score <= entrant.validation for score in there)
        if share < 1.0 and ahead >= how_many_go_on(len(there) + 1, rungs[share]):
            break
    return scores


def _propose(finished: list[FrozenTrial], space: Space, seed: int) -> Places:
    """Choose what to try next."""
    entropy = np.random.SeedSequence([seed, len(finished)])
    sampler = optuna.samplers.TPESampler(n_startup_trials=AT_RANDOM, seed=int(entropy.generate_state(1)[0]))
    study = optuna.create_study(sampler=sampler)  # of its own: what is asked for and not finished is forgotten
    study.add_trials(finished)
    places = _places(space, study.ask(_distributions(space)))
    tried = {_places(space, trial) for trial in finished}
    rng = np.random.default_rng(entropy)
    while places in tried:  # ends: the space is larger than the budget
        places = tuple(int(rng.integers(len(values))) for values in space.values())
    return places


def _record(study: optuna.Study, space: Space, places: Places, row: dict[str, Any], scores: dict[int, float]) -> None:
    ended = not row["stopped"] and "error" not in row
    trial = create_trial(
        state=TrialState.COMPLETE if ended else TrialState.PRUNED,
        value=row["validation"] if ended else None,
        params=dict(zip(space, places, strict=True)),
        distributions=_distributions(space),
        intermediate_values={} if "error" in row else scores,  # TPE takes a pruned trial without any for the worst
        user_attrs={"row": row},
    )
    try:
        study.add_trial(trial)
    except OSError as error:
        raise OutputError(f"The search's journal cannot be written ({error}): make room and run again.") from error


def _best(trials: Sequence[FrozenTrial]) -> int | None:
    """Return the number of the lowest score among trials that were trained to the end; of equals the first."""
    ended = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    return min(ended, key=lambda trial: (trial.value, trial.number)).number if ended else None


def _distributions(space: Space) -> dict[str, Any]:
    """Choose among positions rather than values: any value can be chosen, and a journal can name it."""
    return {name: CategoricalDistribution(range(len(values))) for name, values in space.items()}


def _places(space: Space, trial: Any) -> Places:
    return tuple(trial.params[name] for name in space)


def _parameters(space: Space, places: Places) -> Parameters:
    return {name: space[name][place] for name, place in zip(space, places, strict=True)}


def _open_study(space: Space, seed: int, scratch: Path | None) -> optuna.Study:
    """Open the study of this space and seed, from its journal where there is one."""
    storage = InMemoryStorage() if scratch is None else JournalStorage(_journal(scratch))
    told = json.dumps([seed, {name: list(values) for name, values in space.items()}], default=str)
    name = hashlib.sha256(told.encode()).hexdigest()
    return optuna.create_study(storage=storage, study_name=name, load_if_exists=True)


def _journal(scratch: Path) -> JournalFileBackend:
    """Open the journal without what a kill left of it: half a last line, and a lock nobody holds."""
    path = scratch.resolve() / "search.journal"
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.exists():
        written = path.read_bytes()
        whole = written.rfind(b"\n") + 1
        if whole < len(written):
            with path.open("r+b") as file:
                file.truncate(whole)
    return JournalFileBackend(str(path))
