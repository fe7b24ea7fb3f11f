"""The methods of a comparison by name: the paper's six, and what a user would pick instead.

Methods of the family "network" share one grid, which comes from the caller; each is given the part of it that it uses.
They come with both readouts: ``joint`` has the one of its grid or recipe, ``joint_mlp`` the flattened one, always. The
baselines bring their own grid: the values a careful user would try. So do the rivals, models of packages that need not
be installed, which are compared only where they are named. Nothing is fitted here, and scikit-learn is not imported;
``baselines``, ``rivals`` and ``network_candidate`` do that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from precisionnet.errors import InputError, did_you_mean, printable, shown
from precisionnet.parameters import BY_NAME
from precisionnet.types import TaskName

Family = Literal["network", "baseline", "group", "rival"]
Grid = Mapping[str, Sequence[Any]]
"""Values to choose from, by parameter name."""
BOTH: tuple[TaskName, ...] = ("regression", "classification")

PAPER_GRID: dict[str, list[Any]] = {
    "recipe": ["paper"],
    "n_layers": [1, 2, 3],
    "n_filters": [8, 16],
    "order": [1, 2, 3],
    "l1_scale": [1.0, 10.0, 20.0],
}
"""The values of the networks' parameters that the paper chose from, on validation rows."""

# Small, because every choice is eight networks to train; what else a recipe holds was measured once and for all.
STANDARD_GRID: dict[str, list[Any]] = {"recipe": ["standard"], "n_layers": [1, 2]}
"""The values that networks of the standard recipe choose from, on validation rows."""

QUICK_GRID: dict[str, list[Any]] = {name: [BY_NAME[name].of("standard")] for name in STANDARD_GRID}
"""The grid of a quick comparison: one value each, so the networks have their defaults and choose nothing."""

GRIDS = {"paper": PAPER_GRID, "standard": STANDARD_GRID}
"""The networks' grid by recipe."""

_NOT_TUNED = ("method", "validation_fraction", "missing")
"""Parameters of a network that the protocol decides about."""

# What has no effect on a method is left out of its grid: it would only train the same network again.
_NO_COVARIANCE = frozenset({"covariance_threshold"})
_ONE_MATRIX = _NO_COVARIANCE | {
    "coupling",
    "task_steps",
    "theta_steps",
    "theta_every",
    "step1",
    "monotone",
    "predict_on",
}
_NO_LASSO = _ONE_MATRIX | {"l1_scale", "l1_penalty", "ridge", "spectral_bound"}
_OTHER_RECIPES = {
    "paper": frozenset({"input_noise", "batch_size", "theta_every"}),
    "standard": frozenset({"task_steps", "theta_steps", "weight_steps", "step1", "monotone", "patience"}),
}


@dataclass(frozen=True)
class MethodSpec:
    """What is known of a method before anything is fitted.

    Parameters
    ----------
    name : str
        Name in a list of methods.
    label : str
        Name in tables and figures.
    what : str
        One clause for the page.
    tasks : tuple of {"regression", "classification"}
        What the method can do.
    family : {"network", "baseline", "group", "rival"}
        Networks share the caller's grid, the others bring their own. "group" knows the group of a row, such as its
        site, and nothing else; rivals are compared only where they are named.
    grid : mapping, default={}
        Of a baseline: values to choose from by parameter.
    regression_grid : mapping, default={}
        Of a baseline: what else is tried where the target is a number.
    unused : frozenset of str, default=frozenset()
        Of a network: parameters that have no effect on it.
    runs : str, default=""
        Of a network: the estimator's ``method``.
    fixed : mapping, default={}
        Of a network: what no grid changes.
    cost : float, default=0.05
        Rough time of a tuned fit, relative to ``joint``.
    """

    name: str
    label: str
    what: str
    tasks: tuple[TaskName, ...]
    family: Family
    grid: Grid = field(default_factory=dict)
    regression_grid: Grid = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    runs: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 0.05

    def space(self, task: TaskName, networks: Grid, *, tuned: bool = True) -> dict[str, list[Any]]:
        """Return the values of each parameter that are tried.

        Where nothing is tuned a network has one value per parameter, and a baseline has no parameters: it is fitted
        with its defaults.
        """
        if self.family == "network":
            idle = self.unused | _OTHER_RECIPES[recipe_of(networks)]
            space = {name: list(values) for name, values in networks.items() if name not in idle}
            return {**space, **{name: [value] for name, value in self.fixed.items()}}
        if not tuned:
            return {}
        both = {**self.grid, **self.regression_grid} if task == "regression" else self.grid
        return {name: list(values) for name, values in both.items()}


READOUTS = {
    "mean": ("mean", "its readout the average node"),
    "mlp": ("flat", "its readout flattened: a weight for every node"),
}
"""For each readout, the ending of the variant's name and of its description."""


def _network(name: str, label: str, what: str, cost: float, unused: frozenset[str] = frozenset()) -> MethodSpec:
    return MethodSpec(name, label, what, BOTH, "network", unused=unused, runs=name, cost=cost)


def _with_readout(spec: MethodSpec, readout: str) -> MethodSpec:
    """Return the same method, all of its members with one readout."""
    short, long = READOUTS[readout]
    return replace(
        spec,
        name=f"{spec.name}_{readout}",
        label=f"{spec.label}, {short}",
        what=f"{spec.what}, {long}",
        fixed={"readout": readout},
    )


def _baseline(
    name: str, label: str, what: str, *tasks: TaskName, numbers: Grid | None = None, **grid: Any
) -> MethodSpec:
    return MethodSpec(name, label, what, tasks or BOTH, "baseline", grid, numbers or {})


def _rival(name: str, label: str, what: str, cost: float, numbers: Grid | None = None, **grid: Any) -> MethodSpec:
    return MethodSpec(name, label, what, BOTH, "rival", grid, numbers or {}, cost=cost)


_NETWORKS = (
    _network("joint", "Joint", "a precision network whose sparse graph is learned with the task", 1.0, _NO_COVARIANCE),
    _network("naive", "Naive", "graph and network by plain gradient steps on one matrix", 0.4, _ONE_MATRIX),
    _network("glasso", "GL", "a network on the graphical lasso of the training rows", 0.3, _ONE_MATRIX),
    _network("sample", "Sample", "a network on the inverse of the sample covariance", 0.1, _NO_LASSO),
    _network("vnn", "VNN", "a network on the sample covariance itself", 0.1, _NO_LASSO - _NO_COVARIANCE),
)

_BASELINES = (
    _baseline(
        "pca_mlp",
        "PCA + MLP",
        "principal components and a multi-layer perceptron",
        variance=[0.8, 0.95, 0.999],
        hidden=[[64], [64, 64]],
        l2_penalty=[0.01, 1.0, 10.0],
        learning_rate=[0.001, 0.01],
    ),
    _baseline(
        "ridge",
        "Ridge",
        "linear regression with an l2 penalty",
        "regression",
        l2_penalty=np.logspace(-2, 4, 25).tolist(),
    ),
    _baseline(
        "logistic",
        "Logistic",
        "logistic regression with an l2 penalty",
        "classification",
        C=np.logspace(-4, 2, 13).tolist(),
    ),
    _baseline(
        "svr",
        "SVR",
        "support vector regression with an RBF kernel",
        "regression",
        C=[0.3, 1.0, 3.0, 10.0, 30.0],
        gamma_scale=[0.1, 0.3, 1.0, 3.0],
        epsilon=[0.03, 0.1, 0.3],
    ),
    _baseline(
        "svc",
        "SVC",
        "a support vector machine with an RBF kernel, its probabilities calibrated",
        "classification",
        C=[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
        gamma_scale=[0.03, 0.1, 0.3, 1.0, 3.0],
    ),
    _baseline(
        "gp",
        "GP",
        "a Gaussian process whose kernel is fitted by marginal likelihood",
        kernel=["rbf", "matern", "rational_quadratic"],
    ),
    _baseline(
        "hist_gb",
        "Boosting",
        "gradient-boosted trees on histograms",
        numbers={"loss": ["squared_error", "absolute_error"]},
        learning_rate=[0.03, 0.1],
        max_leaf_nodes=[8, 31],
        max_features=[0.3, 1.0],
        l2_penalty=[1.0],
    ),
    MethodSpec("group_median", "Group median", "the median of the row's own group", ("regression",), "group"),
    MethodSpec(
        "group_majority", "Group majority", "the classes of the row's own group, by share", ("classification",), "group"
    ),
    _baseline("median", "Median", "always the median of the training rows", "regression"),
    _baseline("majority", "Majority", "always the most frequent class of the training rows", "classification"),
)

_RIVALS = (
    _rival(
        "catboost",
        "CatBoost",
        "gradient-boosted symmetric trees",
        0.3,
        numbers={"loss_function": ["RMSE", "MAE"]},
        depth=[6, 4],
    ),
    _rival("realmlp", "RealMLP", "a multi-layer perceptron with its authors' tuned defaults", 2.0, p_drop=[0.15, 0.0]),
    _rival(
        "xrfm",
        "xRFM",
        "a kernel machine that learns which directions matter",
        0.1,
        bandwidth=[10.0, 3.0, 30.0],
        reg=[1e-3, 0.1, 1.0],
    ),
    _rival("tabicl", "TabICL", "a network that was trained on drawn tables and reads yours", 2.0),
)

METHODS: dict[str, MethodSpec] = {
    spec.name: spec
    for spec in (
        *_NETWORKS,
        *(_with_readout(spec, readout) for readout in READOUTS for spec in _NETWORKS),
        *_BASELINES,
        *_RIVALS,
    )
}
"""The methods by name, in the order of every table."""

PAPER_METHODS = ("joint", "naive", "glasso", "sample", "vnn", "pca_mlp")
"""The six that the paper compares."""

USUAL_NETWORKS = ("joint", "naive", "glasso", "sample", "vnn", "joint_mean", "joint_mlp")
"""Networks of a comparison: ``joint`` with each readout, the others with what the recipe says."""

QUICK_NETWORKS = ("joint", "glasso", "vnn", "joint_mean", "joint_mlp")
"""Networks of a quick comparison."""

RIVALS = {"catboost": "catboost", "realmlp": "pytabkit", "xrfm": "xrfm", "tabicl": "tabicl"}
"""The package of each rival; they come with the extra ``rivals``."""

LINEAR: dict[TaskName, str] = {"regression": "ridge", "classification": "logistic"}
"""The plain linear model of each task."""

TRIVIAL: dict[TaskName, str] = {"regression": "median", "classification": "majority"}
"""The guess that a method must beat to be of any use."""

GROUP_GUESS: dict[TaskName, str] = {"regression": "group_median", "classification": "group_majority"}
"""The guess that knows only the group of a row."""

COUNTERPARTS = {"ridge": "logistic", "svr": "svc", "median": "majority", "group_median": "group_majority"}
"""Pairs of methods that do the same, for numbers and for classes."""


def label(method: str) -> str:
    """Return a method's name for people; an unknown one comes from a file and is made printable."""
    return METHODS[method].label if method in METHODS else printable(method)


def methods_for(task: TaskName) -> tuple[str, ...]:
    """List the methods that can do this task."""
    return tuple(name for name, spec in METHODS.items() if task in spec.tasks)


def usual_methods(task: TaskName) -> tuple[str, ...]:
    """List the methods of a comparison, where none are named."""
    return tuple(n for n in methods_for(task) if METHODS[n].family == "baseline" or n in USUAL_NETWORKS)


def quick_methods(task: TaskName) -> tuple[str, ...]:
    """List the methods of a quick comparison."""
    return tuple(n for n in methods_for(task) if METHODS[n].family == "baseline" or n in QUICK_NETWORKS)


def check_methods(names: Iterable[str], task: TaskName) -> tuple[str, ...]:
    """Return the names, each once and in the order of every table; refuse the first that cannot be used."""
    asked = tuple(names)
    if not asked:
        raise InputError(f"No method is named: choose some of {', '.join(methods_for(task))}.")
    other = {**COUNTERPARTS, **{there: here for here, there in COUNTERPARTS.items()}}
    for name in asked:
        if name not in METHODS:
            hint = did_you_mean(str(name), METHODS) or f": choose some of {', '.join(methods_for(task))}"
            raise InputError(f"There is no method {shown(name)}{hint}.")
        if task not in METHODS[name].tasks:
            raise InputError(f"Method {name} is not for {task}: take {other[name]} instead.")
    return tuple(name for name in METHODS if name in asked)


def checked_networks(networks: Grid, recipe: str = "paper", *, tuned: bool = True) -> dict[str, list[Any]]:
    """Complete the grid of the networks' parameters: the recipe's, with what is given in its place.

    ``recipe`` is taken where none is given. Where nothing is tuned the grid is what is given, one value each.
    """
    tunable = [name for name in BY_NAME if name not in _NOT_TUNED]
    refuse_unknown("networks.", checked_table("networks", networks), tunable)
    given = {name: _checked_values(name, values) for name, values in networks.items()}
    recipes = given.get("recipe", [recipe])
    if len(recipes) > 1:
        raise InputError("networks.recipe names two recipes, which differ in what is tuned: run an experiment of each.")
    several = [name for name, values in given.items() if len(values) > 1]
    if several and not tuned:
        raise InputError(f"networks.{several[0]} has several values, and nothing is tuned: name one of them.")
    grid = {"recipe": recipes, **(GRIDS[recipes[0]] if tuned else {}), **given}
    return {name: list(grid[name]) for name in BY_NAME if name in grid}  # one order, however the file was written


def recipe_of(networks: Grid) -> str:
    """Return the recipe of a checked grid, which has one."""
    return str(networks["recipe"][0]) if "recipe" in networks else BY_NAME["recipe"].default


def _checked_values(name: str, values: Any) -> list[Any]:
    if not isinstance(values, list | tuple) or not values:
        raise InputError(f"networks.{name} must be a list of values to choose from, got {shown(values)}.")
    for value in values:
        complaint = BY_NAME[name].complaint(value)
        if complaint:
            raise InputError(f"networks.{name} {complaint}.")
    as_number = BY_NAME[name].kind is float
    checked = [float(value) if as_number and value is not None else value for value in values]
    if len(set(checked)) < len(checked):
        raise InputError(f"networks.{name} names a value twice: {shown(list(values))}; leave one of them out.")
    return checked


def checked_table(name: str, value: Any) -> dict[str, Any]:
    """Refuse what is no table of a config."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a table of names and values, got {shown(value)}.")
    return dict(value)


def refuse_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a key that is not known; ``where`` is the table, such as "tuning."."""
    known = list(known)
    for name in given:
        if name not in known:
            raise InputError(
                f"unknown key {shown(where + name)}{did_you_mean(name, known)}; known are {', '.join(known)}."
            )
