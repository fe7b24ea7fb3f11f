"""The search on fake candidates whose curves are known: who wins, who is stopped, what a kill leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from precisionnet.errors import FitDivergedError, InputError
from precisionnet.evaluation import tuning
from precisionnet.evaluation.tuning import Tuning, combinations, search
from precisionnet.parameters import RECIPES

SPACE = {"a": list(range(8)), "b": list(range(5))}
"""40 combinations."""


class Curve:
    """Scores by epoch from a function of the parameters; remembers who was made, and how many live at a time."""

    n_made: ClassVar = 0
    alive: ClassVar = weakref.WeakSet()
    most_alive: ClassVar = 0

    def __init__(self, parameters, score, max_epochs=10, patience=None):
        self.parameters, self.score, self.max_epochs = parameters, score, max_epochs
        self.epochs, self.seconds, self.patience = 0, 0.0, patience
        Curve.n_made += 1
        Curve.alive.add(self)
        Curve.most_alive = max(Curve.most_alive, len(Curve.alive))

    def advance(self, to_epoch):
        assert 1 <= to_epoch <= self.max_epochs
        while self.epochs < to_epoch and not self.done:
            self.epochs += 1
            self.seconds += 1.0
        return self.score(self.parameters, self.epochs)

    @property
    def done(self):
        return self.epochs >= (self.patience or self.max_epochs)

    def model(self):
        return self


@pytest.fixture(autouse=True)
def _fresh():
    Curve.n_made, Curve.alive, Curve.most_alive = 0, weakref.WeakSet(), 0


def bowl(parameters, epoch):
    """Lowest at a = 5, b = 3, for everyone better with time."""
    return (parameters["a"] - 5) ** 2 + (parameters["b"] - 3) ** 2 + 1 / epoch


def curves(score=bowl, **kwargs):
    return lambda parameters: Curve(parameters, score, **kwargs)


@pytest.mark.parametrize("race", [True, False])
def test_the_grid_finds_the_lowest_score_and_trains_it_to_the_end(race):
    found = search(curves(), SPACE, Tuning(race=race))
    assert found.best.parameters == {"a": 5, "b": 3}
    assert found.best.epochs == 10
    assert [trial["parameters"] for trial in found.trials] == combinations(SPACE)
    assert min(trial["validation"] for trial in found.trials) == found.best.advance(10)


def test_a_race_thins_out_at_each_rung_and_says_whom_it_stopped():
    found = search(curves(), SPACE, Tuning())
    epochs = [trial["epochs"] for trial in found.trials]
    assert [epochs.count(epoch) for epoch in (1, 2, 4, 10)] == [13, 13, 7, 7]
    assert all(trial["stopped"] == (trial["epochs"] < 10) for trial in found.trials)
    everyone = search(curves(), SPACE, Tuning(race=False))
    assert {trial["epochs"] for trial in everyone.trials} == {10}
    assert not any(trial["stopped"] for trial in everyone.trials)


def test_at_least_four_run_to_the_end():
    found = search(curves(), {"a": [0, 1, 2, 3, 4], "b": [0]}, Tuning())
    assert sorted(trial["epochs"] for trial in found.trials) == [1, 10, 10, 10, 10]


def test_a_race_misses_a_slow_starter_and_the_full_grid_does_not():
    def late(parameters, epoch):
        return 0.0 if parameters == {"a": 0, "b": 0} and epoch == 10 else 1.0 + bowl(parameters, epoch)

    assert search(curves(late), SPACE, Tuning(race=False)).best.parameters == {"a": 0, "b": 0}
    raced = search(curves(late), SPACE, Tuning())
    assert raced.best.parameters == {"a": 5, "b": 3}
    assert raced.trials[0]["stopped"]


@pytest.mark.parametrize("race", [True, False])
def test_of_equals_the_first_wins(race):
    assert search(curves(lambda p, e: 1.0), SPACE, Tuning(race=race)).best.parameters == {"a": 0, "b": 0}


def test_what_is_done_is_not_stopped():
    """Fitted in one go, or out of patience by itself: nothing was taken from it."""
    for make in (curves(max_epochs=1), curves(patience=1)):
        assert not any(trial["stopped"] for trial in search(make, SPACE, Tuning()).trials)


@pytest.mark.parametrize(("race", "most"), [(True, 28), (False, 2)])
def test_dropped_candidates_are_freed(race, most):
    search(curves(), SPACE, Tuning(race=race))
    assert Curve.most_alive == most


@pytest.mark.parametrize("max_epochs", [1, 2, 3, 5, 7, 30])
def test_rungs_are_whole_epochs_of_each_candidate(max_epochs):
    found = search(curves(max_epochs=max_epochs), SPACE, Tuning())
    assert found.best.epochs == max_epochs
    assert min(trial["epochs"] for trial in found.trials) == int(np.ceil(max_epochs / 10))


def test_nothing_to_choose_is_one_candidate():
    found = search(curves(lambda p, e: 3.0), {}, Tuning())
    assert found.trials == [{"parameters": {}, "validation": 3.0, "epochs": 10, "stopped": False, "seconds": 10.0}]


def breaks(where):
    def score(parameters, epoch):
        if where(parameters, epoch):
            raise FitDivergedError("It broke.")
        return bowl(parameters, epoch)

    return score


@pytest.mark.parametrize("tuning", [Tuning(), Tuning(race=False), Tuning("optuna", trials=39)])
def test_a_diverged_candidate_is_infinitely_bad_even_where_it_led(tuning):
    found = search(curves(breaks(lambda p, epoch: p == {"a": 5, "b": 3} and epoch > 4)), SPACE, tuning)
    assert bowl(found.best.parameters, 10) == pytest.approx(1.1)
    (row,) = [trial for trial in found.trials if trial["parameters"] == {"a": 5, "b": 3}]
    assert row["validation"] is None
    assert row["error"] == "It broke."
    assert not row["stopped"]
    assert row["epochs"] > 4


def test_a_score_that_is_no_number_counts_as_diverged():
    found = search(curves(lambda p, e: np.nan if p["a"] < 7 else 1.0), SPACE, Tuning())
    assert found.best.parameters == {"a": 7, "b": 0}
    assert "nan" in found.trials[0]["error"]


@pytest.mark.parametrize("tuning", [Tuning(), Tuning("optuna", trials=6)])
def test_where_all_diverge_one_sentence_says_so(tuning):
    with pytest.raises(FitDivergedError, match="No candidate came to the end, .* diverged: It broke"):
        search(curves(breaks(lambda p, epoch: True)), SPACE, tuning)


def test_divergence_while_a_candidate_is_made_counts_too():
    def make(parameters):
        if parameters["a"] == 5:
            raise FitDivergedError("It broke at the start.")
        return Curve(parameters, bowl)

    found = search(make, SPACE, Tuning())
    assert found.best.parameters["a"] in (4, 6)
    assert sum("error" in trial for trial in found.trials) == 5


def told(found):
    """Everything but who keeps the clock."""
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in found.trials]


OPTUNA = Tuning("optuna", trials=16)


def test_a_budgeted_search_tries_different_combinations():
    found = search(curves(), SPACE, OPTUNA, seed=1)
    tried = [tuple(trial["parameters"].values()) for trial in found.trials]
    assert len(set(tried)) == len(tried) == 16
    assert found.best.epochs == 10
    assert found.best.advance(10) == min(trial["validation"] for trial in found.trials if not trial["stopped"])
    assert any(trial["stopped"] for trial in found.trials)


def test_a_budgeted_search_learns_where_to_look():
    """Over six landscapes: what it tries late is better than the average combination, by far more than luck."""
    space = {name: [0, 1, 2] for name in "abcdef"}
    gains = []
    for seed in range(6):
        height = dict(zip(space, np.random.default_rng(seed).normal(size=(6, 3)), strict=True))

        def land(parameters, epoch, height=height):
            return 1 / epoch + sum(height[name][value] for name, value in parameters.items())

        late = search(curves(land), space, Tuning("optuna", trials=20), seed=seed).trials[10:]
        average = sum(values.mean() for values in height.values())
        gains.append(average + 0.1 - np.mean([land(trial["parameters"], 10) for trial in late]))
    assert np.mean(gains) > 4 * np.std(gains) / np.sqrt(len(gains))


def test_a_budgeted_search_hangs_on_its_seed_alone():
    first, again, other = (search(curves(), SPACE, OPTUNA, seed=seed) for seed in (3, 3, 4))
    assert told(first) == told(again)
    assert told(first) != told(other)


def test_without_a_race_a_budgeted_search_stops_nobody():
    found = search(curves(), SPACE, Tuning("optuna", trials=16, race=False))
    assert {trial["epochs"] for trial in found.trials} == {10}


def test_a_budget_for_everything_is_the_grid(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # not even asked for
    assert told(search(curves(), SPACE, Tuning("optuna", trials=40))) == told(search(curves(), SPACE, Tuning()))


class Killed(BaseException):
    """Nothing in the search catches it, as nothing catches SIGKILL."""


@pytest.mark.parametrize("after", [1, 5, 12, 16])
def test_a_killed_search_goes_on_as_if_it_had_not_been(tmp_path, after):
    whole = search(curves(), SPACE, OPTUNA, seed=2)
    begun = []

    def make(parameters):
        begun.append(parameters)
        if len(begun) == after:
            return Curve(parameters, breaks_off)
        return Curve(parameters, bowl)

    def breaks_off(parameters, epoch):
        raise Killed

    with pytest.raises(Killed):
        search(make, SPACE, OPTUNA, seed=2, scratch=tmp_path)
    leave_rubbish(tmp_path / "search.journal")
    Curve.n_made = 0
    found = search(curves(), SPACE, OPTUNA, seed=2, scratch=tmp_path)
    assert told(found) == told(whole)
    assert found.best.parameters == whole.best.parameters
    assert found.best.epochs == 10
    assert Curve.n_made - (16 - (after - 1)) in (0, 1)  # nothing twice but, perhaps, the winner


SHOT = """
import os, signal
from pathlib import Path
from tests.evaluation.test_search import OPTUNA, SPACE, Curve, bowl, search
def make(parameters):
    if Curve.n_made == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return Curve(parameters, bowl)
search(make, SPACE, OPTUNA, seed=2, scratch=Path({folder!r}))
"""


@pytest.mark.slow
def test_a_search_killed_for_real_goes_on(tmp_path):
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", SHOT.format(folder=str(tmp_path))], cwd=root, check=False)
    assert ended.returncode == -signal.SIGKILL
    found = search(curves(), SPACE, OPTUNA, seed=2, scratch=tmp_path)
    assert Curve.n_made in (7, 8)  # nine were kept; the winner may be among them
    assert told(found) == told(search(curves(), SPACE, OPTUNA, seed=2))


def leave_rubbish(journal: Path) -> None:
    """What a kill can leave: half a line, and a lock."""
    with journal.open("ab") as file:
        file.write(b'{"op_code":4,"worker_id"')
    journal.with_name("search.journal.lock").symlink_to(journal)


def test_a_finished_search_is_only_read_again(tmp_path):
    first = search(curves(), SPACE, OPTUNA, scratch=tmp_path)
    Curve.n_made = 0
    again = search(curves(), SPACE, OPTUNA, scratch=tmp_path)
    assert again.trials == first.trials
    assert Curve.n_made == 1
    assert again.best.advance(10) == first.best.advance(10)


def test_another_space_or_seed_does_not_read_this_journal(tmp_path):
    search(curves(), SPACE, OPTUNA, seed=0, scratch=tmp_path)
    other = search(curves(), SPACE, OPTUNA, seed=1, scratch=tmp_path)
    assert told(other) == told(search(curves(), SPACE, OPTUNA, seed=1))


def test_without_optuna_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "precisionnet.evaluation.optuna_search", raising=False)
    with pytest.raises(InputError, match=r"pip install 'precisionnet\[search\]'"):
        search(curves(), SPACE, OPTUNA)


@pytest.mark.parametrize("recipe", RECIPES)
def test_rungs_are_shares_of_training(recipe):
    rungs = tuning.RUNGS[recipe]
    assert list(rungs) == sorted(rungs)
    assert all(0.0 < share < 1.0 and 0.0 < kept < 1.0 for share, kept in rungs.items())


@pytest.mark.parametrize("tuning", [Tuning(), Tuning("optuna", trials=7)])
def test_the_standard_recipe_races_later(tuning):
    """Eight choices of 60 epochs, as its grid has them: nobody is out before a fifth, four run to the end."""
    space = {"a": [0, 1, 2, 3], "b": [0, 1]}
    found = search(curves(max_epochs=60), space, tuning, recipe="standard")
    epochs = [trial["epochs"] for trial in found.trials]
    assert {*epochs} <= {12, 24, 60}
    if tuning.search == "grid":
        assert [epochs.count(epoch) for epoch in (12, 24, 60)] == [2, 2, 4]
