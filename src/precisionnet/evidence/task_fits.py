"""The fits behind the task's evidence: what is fitted to which target, in parallel, and remembered between runs.

All fits have the model's own settings with at most four members, the same seed (first weights, order of rows, noise,
rows left out) and the same number of epochs, of which the last one counts: they differ in their target alone. Kinds:

- ``nodes``: the target, and the target given to other people;
- ``edges``: what single columns leave unexplained of the target (``additive_residual``), and the same given to other
  people. Signs flipped at random would keep how far each row is from its additive prediction, which is what edges make
  large, and found fewer of them;
- both on halves of the people, in complementary pairs.

Two targets of the same rows are fitted in one run, whose steps take hardly longer than those of one: with members of
their own, so that which two share a run changes no bit. A target that is left over has itself for company, because
sums in stacks of another size round differently.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.regressor import PNNRegressor
from precisionnet.evidence.pairs import pairs_of
from precisionnet.runner.lines import LinesFile, StoredLine, digest, read_lines
from precisionnet.types import BoolArray, FloatArray, IndexArray
from precisionnet.versions import RECIPE_VERSION
from precisionnet.workers import as_they_come

MEMBERS = 4
"""Networks of a fit, half of the default."""
TOGETHER = 2
"""Targets in a run, which then has as many networks as a default fit, and takes its time."""
FOLDS = 10
PENALTIES = np.logspace(0, 5, 21)

EvidenceKind = Literal["nodes", "edges"]


class FitKey(NamedTuple):
    """Names a fit: its kind; the whole table, drawn targets or a half of the people; and its number."""

    kind: EvidenceKind
    of: Literal["table", "null", "half"]
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.of} {self.number}"


@dataclass(frozen=True)
class TaskTable:
    """Checked rows and targets of the model's table, and whose rows they are."""

    X: FloatArray
    y: FloatArray
    person: IndexArray
    residual: FloatArray
    """The target less what single columns explain."""

    @property
    def n_people(self) -> int:
        """The number of people."""
        return int(self.person.max()) + 1


def additive_residual(X: FloatArray, y: FloatArray, person: IndexArray, seed: int) -> tuple[FloatArray, float]:
    """Return what a sum of smooth functions of single columns leaves of the target, and its R2 out of fold.

    Ridge regression on cubic splines of every column; every row is predicted from other people's rows.
    """
    splines = SplineTransformer(n_knots=4, degree=3, knots="quantile", extrapolation="linear")
    additive = make_pipeline(splines, StandardScaler(), RidgeCV(PENALTIES))
    order = np.random.default_rng(seed).permutation(int(person.max()) + 1)
    folds = GroupKFold(min(FOLDS, len(order)))
    said = cross_val_predict(additive, X, y, cv=folds, groups=order[person])
    residual = y - said
    return residual - residual.mean(), float(1.0 - np.mean((y - said) ** 2) / np.var(y))


def targets_of_others(y: FloatArray, person: IndexArray, rng: np.random.Generator) -> FloatArray:
    """Give every person's targets to another one.

    People are put into a random order and their targets laid out in it: where all have the same number of rows, whole
    people change places; else a person's targets may come to lie over two people, still side by side.
    """
    order = rng.permutation(int(person.max()) + 1)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    drawn = np.empty_like(y)
    drawn[np.argsort(person, kind="stable")] = y[np.argsort(rank[person], kind="stable")]
    return drawn


def fit_keys(n_permutations: int, n_half_pairs: int) -> list[FitKey]:
    """List all fits: of the table first, so that a failure shows at once."""
    kinds: tuple[EvidenceKind, EvidenceKind] = ("nodes", "edges")
    return [
        *(FitKey(kind, "table", 0) for kind in kinds),
        *(FitKey(kind, "null", i) for i in range(n_permutations) for kind in kinds),
        *(FitKey(kind, "half", i) for i in range(2 * n_half_pairs) for kind in kinds),
    ]


def evidence_network(model: BasePNN, seed: int) -> PNNRegressor:
    """Return the unfitted network of all fits; the two classes of a classifier are predicted as 0 and 1."""
    parameters = model.get_params(deep=False)
    parameters |= {"random_state": seed, "callbacks": None, "n_jobs": None, "verbose": False, "warm_start": False}
    if model.settings.recipe == "standard":
        parameters["n_members"] = min(MEMBERS, model.settings.n_members)
        parameters["target_scale"] = "linear"  # residuals have both signs, and effects are in the target's units
        if model.settings.readout == "several":
            parameters["readout"] = "both"
    return PNNRegressor(**parameters)


def runs_of(keys: Sequence[FitKey], together: int) -> list[list[FitKey]]:
    """Deal fits into runs: at most ``together`` of the same rows."""
    by_rows: dict[int, list[FitKey]] = {}
    for key in keys:
        by_rows.setdefault(key.number if key.of == "half" else -1, []).append(key)
    return [same[i : i + together] for same in by_rows.values() for i in range(0, len(same), together)]


def targets_in_a_run(network: PNNRegressor, table: TaskTable) -> int:
    """Return how many targets share a run: one where rows repeat, because their order then hangs on the target."""
    distinct = len(np.unique(table.X, axis=0)) == len(table.X)
    return TOGETHER if network.settings.recipe == "standard" and distinct else 1


def run_fits_together(
    network: PNNRegressor, table: TaskTable, keys: Sequence[FitKey], seed: int, together: int
) -> list[tuple[FitKey, FloatArray]]:
    """Fit targets of the same rows in one run; return effects of nodes, or of pairs as ``pairs_of`` lists them."""
    rows = _rows_of(keys[0], table, seed)
    targets = [target_of(key, table, seed)[rows] for key in keys]
    targets += [targets[-1]] * (together - len(keys))
    run = network.start_training(
        table.X[rows], targets[0], groups=table.person[rows], keep="last", other_targets=targets[1:]
    )
    with run.threads():
        while not run.done:
            run.advance()
    upper = pairs_of(table.X.shape[1])
    return [
        (key, effects.nodes if key.kind == "nodes" else effects.products[upper])
        for key, effects in zip(keys, run.effects(), strict=False)
    ]


def target_of(key: FitKey, table: TaskTable, seed: int) -> FloatArray:
    """Return the target of a fit, of all rows: the table's own, or given to other people."""
    y = table.y if key.kind == "nodes" else table.residual
    return targets_of_others(y, table.person, np.random.default_rng([seed, 1, key.number])) if key.of == "null" else y


def _rows_of(key: FitKey, table: TaskTable, seed: int) -> BoolArray:
    if key.of != "half":
        return np.ones(len(table.y), dtype=bool)
    order = np.random.default_rng([seed, 2, key.number // 2]).permutation(table.n_people)  # of both halves of a pair
    middle = len(order) // 2
    return np.isin(table.person, order[:middle] if key.number % 2 == 0 else order[middle:])


def run_fits(
    network: PNNRegressor,
    table: TaskTable,
    keys: Sequence[FitKey],
    seed: int,
    n_jobs: int | None,
    store: str | Path | None,
    on_fit: Callable[[int, int], object] | None,
) -> dict[FitKey, FloatArray]:
    """Run the fits that the store does not hold yet; return the effects of all."""
    found: dict[FitKey, FloatArray] = {}
    with _Store.opened(store, _digest(network, table, seed)) as known:
        found |= {key: known.held[str(key)] for key in keys if str(key) in known.held}
        missing = [key for key in keys if key not in found]
        if on_fit is not None:
            on_fit(len(found), len(keys))
        together = targets_in_a_run(network, table)
        runs = runs_of(missing, together)
        calls = ((run, seed, together) for run in runs)
        for finished in as_they_come(run_fits_together, calls, n_jobs, shared=(network, table)):
            for key, effects in finished:
                found[key] = effects
                known.add(key, effects)
                if on_fit is not None:
                    on_fit(len(found), len(keys))
    return {key: found[key] for key in keys}  # whichever was done first: sums are then the same to the last bit


def _digest(network: PNNRegressor, table: TaskTable, seed: int) -> str:
    rows = hashlib.sha256(b"".join(a.tobytes() for a in (table.X, table.y, table.person, table.residual))).hexdigest()
    parameters = {name: value for name, value in network.get_params(deep=False).items() if name != "network"}
    written = {name: str(value) for name, value in parameters.items()}
    return digest({"rows": rows, "seed": seed, "recipe": RECIPE_VERSION, "together": TOGETHER, "parameters": written})


class _Store:
    """Effects of finished fits in a file of lines; the first one says of which run."""

    def __init__(self, lines: LinesFile | None, held: dict[str, FloatArray]) -> None:
        self._lines, self.held = lines, held

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path | None, run: str) -> Iterator[_Store]:
        if path is None:
            yield cls(None, {})
            return
        path = Path(path)
        stored = read_lines(path)
        if stored and stored[0].row.get("run") != run:
            raise InputError(
                f"{str(path)!r} holds fits of another table, model or seed: choose another file, or delete it."
            )
        lines = LinesFile(path)
        try:
            lines.cut(stored[-1].end if stored else 0)
            if not stored:
                lines.append([{"run": run}])
            yield cls(lines, dict(_fit_of(line, path) for line in stored[1:]))
        finally:
            lines.close()

    def add(self, key: FitKey, effects: FloatArray) -> None:
        if self._lines is not None:
            text = base64.b64encode(np.ascontiguousarray(effects, dtype="<f8").tobytes()).decode()
            self._lines.append([{"fit": str(key), "effects": text}])


def _fit_of(line: StoredLine, path: Path) -> tuple[str, FloatArray]:
    try:
        effects = np.frombuffer(base64.b64decode(line.row["effects"], validate=True), dtype="<f8").astype(np.float64)
        return str(line.row["fit"]), effects
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"Line {line.number} of {str(path)!r} is no finished fit: the file was damaged or edited; delete that "
            "line, and its fit is done again."
        ) from error
