r"""Which columns and edges does the prediction rest on, and how sure is that?

Effects are those of ``estimators/explanation.py``, in the target's units: of a node the slope of the prediction along
its decorrelated column, of an edge the joint curvature along its two columns ("products"). They are judged by networks
fitted to other targets (``task_fits.py``), which start at the same point and take the same steps:

- a node's effect beside those of targets given to other people;
- an edge's effect in networks fitted to what single columns leave unexplained, beside the same given to other people.
  Giving the whole target to others would take the main effects away as well, and their curvature would then pass for
  edges.

Effects are studentised and compared with those of all drawn targets together; an edge must also hold beside the other
edges that are (``task_tests.py``). The false discovery rate q is Benjamini and Hochberg's over these p-values: over all
nodes, and over the edges of the data's sparse graph. A pair that is no edge of that graph has an effect and a p-value,
and no q-value.

Frequencies and intervals are from halves of the people, in complementary pairs: a half's variance is that of the
difference within pairs over 2, and the whole table's half of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student_t
from sklearn.utils import check_random_state

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.rows import fill
from precisionnet.estimators.targets import ClassTarget
from precisionnet.evidence.observations import people_of
from precisionnet.evidence.pairs import pair_frame, pairs_of, q_values
from precisionnet.evidence.permutations import check_counts, pooled_p
from precisionnet.evidence.task_fits import (
    EvidenceKind,
    FitKey,
    TaskTable,
    additive_residual,
    evidence_network,
    fit_keys,
)
from precisionnet.evidence.task_fits import run_fits as run_all
from precisionnet.evidence.task_tests import edge_tests, studentised
from precisionnet.types import LEVEL, FloatArray

HALF_PAIRS = 8
"""Complementary pairs of halves of the people."""
STRONGEST = 0.05
"""Share of all pairs that count as strong in a half."""
FEWEST_PEOPLE = 40
"""Halves of fewer people are no table to fit to."""
SAME_TABLE = 1e-6
"""Relative difference in moments below which a table is the one that the model was fitted on."""


@dataclass(frozen=True)
class TaskEvidence:
    """What :func:`task_evidence` found.

    Parameters
    ----------
    edges : DataFrame
        One row per pair: ``source``, ``target``, ``effect`` (in the target's units: how far the two columns, a standard
        deviation up each, move the prediction beyond what each does alone), ``frequency`` (share of half-tables in
        which the pair is among the strongest twentieth with the same sign), ``p_value`` (beside drawn targets and, of
        pairs that stand out, beside each other), ``q_value`` (NaN for pairs that are no edge of the data's graph),
        ``in_graph``, and ``task_graph``, the model's own value for decorrelated columns.
    nodes : DataFrame
        One row per column: ``node``, ``importance`` (in the target's units; correlated columns share what they carry)
        with a 95 % interval, ``direction`` (1: the prediction rises with the column), ``frequency`` (share of
        half-tables with the same direction), ``p_value``, ``q_value``.
    n_permutations : int
        Null fits of each kind.
    additive_r2 : float
        Share of the target's variance that single columns explain, on rows not learned from.
    repeatability : dict
        Mean correlation of effects between complementary halves of the people: ``nodes`` and ``edges``.

    Examples
    --------
    >>> import pandas as pd
    >>> nothing = pd.DataFrame({"q_value": [0.8]})
    >>> print(TaskEvidence(nothing, nothing, 100, 0.4, {"nodes": 0.1, "edges": 0.0}).summary())
    No column is beyond chance. No edge is beyond chance: ...
    """

    edges: pd.DataFrame
    nodes: pd.DataFrame
    n_permutations: int
    additive_r2: float
    repeatability: dict[str, float]

    def summary(self, level: float = 0.05) -> str:
        """Say in two sentences what the prediction rests on.

        Parameters
        ----------
        level : float, default=0.05
            False discovery rate.

        Returns
        -------
        str
            Two sentences.
        """
        nodes, edges = (int((frame["q_value"] <= level).sum()) for frame in (self.nodes, self.edges))
        said = f"{_counted(nodes, 'column')} beyond chance"
        said += "." if nodes == 0 else f" at a false discovery rate of {level:g}."
        if edges == 0:
            return (
                f"{said} No edge is beyond chance: what pairs of columns do together cannot be told from noise with "
                "these rows, or single columns do all the work."
            )
        return f"{said} {_counted(edges, 'edge')} beyond chance at a false discovery rate of {level:g}."


def task_evidence(
    model: BasePNN,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 100,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    store: str | Path | None = None,
    on_fit: Callable[[int, int], object] | None = None,
) -> TaskEvidence:
    """Find the columns and edges that a model's predictions rest on, with evidence for each.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        Fitted on this table; a classifier must have two classes.
    X : array-like of shape (n_samples, n_features)
        The rows it was fitted on.
    y : array-like of shape (n_samples,)
        Their target.
    n_permutations : int, default=100
        Fits to drawn targets, for nodes and for edges each; it takes about as long as so many whole fits.
    groups : array-like of shape (n_samples,), optional
        Whose row it is: people are drawn whole.
    n_jobs : int, default=None
        Workers, as joblib counts them; the result is the same.
    random_state : int, RandomState instance or None, default=None
        Seed of the fits and of the drawn targets.
    store : str or Path, optional
        File that remembers finished fits: run again with the same table, model and ``random_state``, an interrupted
        run goes on where it was. Without ``random_state`` the seed is then 0.
    on_fit : callable, optional
        Called with the number of fits that are done, and of all.

    Returns
    -------
    TaskEvidence
        ``edges`` and ``nodes`` as data frames.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.evidence import task_evidence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = 3 * X[:, 0] + rng.normal(size=80)
    >>> model = PNNRegressor(n_members=1, max_epochs=2, readout="mlp", random_state=0).fit(X, y)
    >>> found = task_evidence(model, X, y, n_permutations=19, random_state=0)
    >>> str(found.nodes.sort_values("p_value")["node"].iloc[0])
    'x0'
    """
    check_counts(n_permutations, n_jobs)
    seed = int(check_random_state(0 if random_state is None and store is not None else random_state).randint(2**31 - 1))
    table, additive_r2 = _checked_table(model, X, y, groups, seed)
    keys = fit_keys(int(n_permutations), HALF_PAIRS)
    effects = run_all(evidence_network(model, seed), table, keys, seed, n_jobs, store, on_fit)
    names = model._node_names()
    nodes, edges = (_Judged.of(kind, effects) for kind in ("nodes", "edges"))
    return TaskEvidence(
        edges=_edge_table(edges, model, names, table),
        nodes=_node_table(nodes, model, names),
        n_permutations=int(n_permutations),
        additive_r2=additive_r2,
        repeatability={"nodes": nodes.repeatability, "edges": edges.repeatability},
    )


@dataclass(frozen=True)
class _Judged:
    """Effects of one kind: of the table, of drawn targets, and of halves of the people."""

    effect: FloatArray
    null: FloatArray
    """(drawn targets, effects)."""
    halves: FloatArray
    """(pairs, 2, effects)."""

    @classmethod
    def of(cls, kind: EvidenceKind, effects: Mapping[FitKey, FloatArray]) -> _Judged:
        null = np.array([value for key, value in effects.items() if key.kind == kind and key.of == "null"])
        halves = {key.number: value for key, value in effects.items() if key.kind == kind and key.of == "half"}
        paired = np.array([halves[i] for i in sorted(halves)]).reshape(len(halves) // 2, 2, -1)
        return cls(effects[FitKey(kind, "table", 0)], null, paired)

    @property
    def standard_error(self) -> FloatArray:
        """The standard error of the whole table's effects, from the differences between the halves."""
        return 0.5 * np.sqrt(np.mean((self.halves[:, 0] - self.halves[:, 1]) ** 2, axis=0))

    @property
    def repeatability(self) -> float:
        """Mean correlation of effects between complementary halves."""
        return float(np.mean([np.corrcoef(first, second)[0, 1] for first, second in self.halves]))


def _edge_table(judged: _Judged, model: BasePNN, names: list[str], table: TaskTable) -> pd.DataFrame:
    first, second = pairs_of(len(names))
    in_graph = model.fitted.precision[first, second] != 0
    tests = edge_tests(judged.effect, judged.null, in_graph, table.X, table.residual, table.person)
    halves = judged.halves.reshape(-1, len(first))
    strong = np.abs(halves) >= np.quantile(np.abs(halves), 1.0 - STRONGEST, axis=1, keepdims=True)
    frequency = np.mean(strong & (np.sign(halves) == np.sign(judged.effect)), axis=0)
    pairs = pair_frame(
        names,
        {"effect": judged.effect, "frequency": frequency, "p_value": tests.p_value, "q_value": tests.q_value},
    )
    pairs["in_graph"] = in_graph
    pairs["task_graph"] = model.fitted.task_graph[first, second]
    return pairs


def _node_table(judged: _Judged, model: BasePNN, names: list[str]) -> pd.DataFrame:
    effect = model.fitted.task_nodes
    reach = float(student_t.ppf(0.5 + LEVEL / 2, len(judged.halves))) * judged.standard_error
    t, null_t = studentised(judged.effect, judged.null)
    p = pooled_p(np.abs(t), np.abs(null_t))
    halves = judged.halves.reshape(-1, len(names))
    return pd.DataFrame(
        {
            "node": names,
            "importance": np.abs(effect),
            "importance_low": np.maximum(np.abs(effect) - reach, 0.0),
            "importance_high": np.abs(effect) + reach,
            "direction": np.sign(effect).astype(int),
            "frequency": np.mean(np.sign(halves) == np.sign(effect), axis=0),
            "p_value": p,
            "q_value": q_values(p),
        }
    )


def _checked_table(model: Any, X: Any, y: Any, groups: Any, seed: int) -> tuple[TaskTable, float]:
    if not isinstance(model, BasePNN):
        raise InputError(f"model must be a PNNRegressor or PNNClassifier, got {type(model).__name__}.")
    fitted = model.fitted
    rows = model._checked_rows(X)
    values = rows[0 : len(rows)]
    values = values if fitted.medians is None else fill(values, fitted.medians)
    target = _numbers_of(fitted.target, y, len(values))
    person = people_of(groups, len(values))
    n_people = int(person.max()) + 1
    if n_people < FEWEST_PEOPLE:
        raise InputError(
            f"Evidence for a task needs at least {FEWEST_PEOPLE} rows of different people, and this table has "
            f"{n_people}: nothing could be told from noise; bring more."
        )
    _refuse_other_table(model, values)
    residual, r2 = additive_residual(values, target, person, seed)
    return TaskTable(values, target, person, residual), r2


def _numbers_of(target: Any, y: Any, n_rows: int) -> FloatArray:
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InputError(f"y must be one target per row: X has {n_rows} rows, and y has shape {labels.shape}.")
    if isinstance(target, ClassTarget):
        if len(target.classes) > 2:
            raise InputError(
                f"The model tells {len(target.classes)} classes apart, and evidence is for numbers and two classes: "
                "fit a classifier to one class against the rest (y == that class) and ask again."
            )
        if not np.isin(labels, target.classes).all():
            raise InputError("y holds classes that the model does not know: give the target it was fitted on.")
        return (labels == target.classes[1]).astype(np.float64)
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("y must hold numbers: give the target that the model was fitted on.") from error
    if not np.isfinite(numbers).all():
        raise InputError("y has missing or infinite values: give the target that the model was fitted on.")
    return numbers


def _refuse_other_table(model: BasePNN, X: FloatArray) -> None:
    """Refuse rows that the model was not fitted on, as far as their number and means tell."""
    fitted = model.fitted
    n_rows, same = sum(fitted.n_rows.values()), True
    if not fitted.n_rows["validation"]:  # else the means are those of the training rows alone
        means = fitted.scaler.transform(X).mean(axis=0) - fitted.center
        same = bool((np.abs(means) < SAME_TABLE * (1.0 + np.abs(fitted.center))).all())
    if len(X) != n_rows or not same:
        raise InputError(
            f"This is not the table that the model was fitted on ({n_rows} rows): give the rows given to fit, or fit a "
            "model to these rows. (A model fitted with sample weights has other means, and no evidence.)"
        )


def _counted(number: int, what: str) -> str:
    return f"No {what} is" if number == 0 else f"1 {what} is" if number == 1 else f"{number:,} {what}s are"
