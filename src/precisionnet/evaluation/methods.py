"""The methods of a comparison by name: the paper's six, and what a user would pick instead.

Methods of the family "network" share one grid, which comes from the config; each is given the part of it that it uses.
They come with both readouts: ``joint`` has the one of its grid or recipe, ``joint_mlp`` the flattened one, always. The
plain ones bring their own grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

from precisionnet.errors import InputError, did_you_mean, printable, shown
from precisionnet.experiments.config import recipe_of
from precisionnet.experiments.methods.plain_models import PLAIN_MODELS
from precisionnet.types import TaskName

Family = Literal["network", "plain"]
Networks = Mapping[str, Sequence[Any]]
"""The grid of the networks: values by parameter name."""

BOTH: tuple[TaskName, ...] = ("regression", "classification")


class Space(Protocol):
    """What is tried of a method."""

    def __call__(self, task: TaskName, networks: Networks, *, tuned: bool = True) -> dict[str, list[Any]]:
        """The values of each parameter; where nothing is tuned, a network has one each and a plain method none."""
        ...


@dataclass(frozen=True)
class MethodSpec:
    """What is known of a method before anything is fitted."""

    name: str
    label: str
    """For tables and figures."""
    what: str
    """One clause for the page."""
    tasks: tuple[TaskName, ...]
    family: Family
    space: Space
    runs: str = ""
    """Of a network: the estimator's ``method``."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Of a network: what no grid changes."""


def _network_space(
    unused: frozenset[str], fixed: Mapping[str, Any], task: TaskName, networks: Networks, *, tuned: bool = True
) -> dict[str, list[Any]]:
    idle = unused | _OTHER_RECIPES[recipe_of(networks)]
    space = {name: list(values) for name, values in networks.items() if name not in idle}
    return {**space, **{name: [value] for name, value in fixed.items()}}


def _plain_space(name: str, task: TaskName, networks: Networks, *, tuned: bool = True) -> dict[str, list[Any]]:
    if not tuned:
        return {}
    model = PLAIN_MODELS[name]
    space = {**model.space, **model.for_numbers} if task == "regression" else model.space
    return {parameter: list(values) for parameter, values in space.items()}


# What has no effect on a method is left out of its grid: it would only train the same network again.
_ONE_MATRIX = frozenset({"coupling", "task_steps", "theta_steps", "theta_every", "step1", "predict_on"})
_NO_LASSO = _ONE_MATRIX | {"l1_scale", "l1_penalty", "ridge", "spectral_bound"}
_OTHER_RECIPES = {
    "paper": frozenset({"input_noise", "batch_size", "theta_every"}),
    "standard": frozenset({"task_steps", "theta_steps", "weight_steps", "step1", "patience"}),
}
READOUTS = {
    "mean": ("mean", "its readout the average node"),
    "mlp": ("flat", "its readout flattened: a weight for every node"),
}
"""What a variant's name ends with, its label and what it means."""


def _network(name: str, label: str, what: str, unused: frozenset[str] = frozenset()) -> MethodSpec:
    return MethodSpec(name, label, what, BOTH, "network", partial(_network_space, unused, {}), name)


def _with_readout(spec: MethodSpec, readout: str) -> MethodSpec:
    """The same method, all of its members with one readout."""
    assert isinstance(spec.space, partial)
    unused, _ = spec.space.args
    short, long = READOUTS[readout]
    fixed = {"readout": readout}
    space = partial(_network_space, unused, fixed)
    what = f"{spec.what}, {long}"
    return MethodSpec(
        f"{spec.name}_{readout}", f"{spec.label}, {short}", what, spec.tasks, "network", space, spec.name, fixed
    )


def _plain(name: str, label: str, what: str, *tasks: TaskName) -> MethodSpec:
    return MethodSpec(name, label, what, tasks or BOTH, "plain", partial(_plain_space, name))


_NETWORKS = (
    _network("joint", "Joint", "a precision network whose sparse graph is learned with the task"),
    _network("naive", "Naive", "graph and network by plain gradient steps on one matrix", _ONE_MATRIX),
    _network("glasso", "GL", "a network on the graphical lasso of the training rows", _ONE_MATRIX),
    _network("sample", "Sample", "a network on the inverse of the sample covariance", _NO_LASSO),
    _network("vnn", "VNN", "a network on the sample covariance itself", _NO_LASSO),
)

_SPECS = (
    *_NETWORKS,
    *(_with_readout(spec, readout) for readout in READOUTS for spec in _NETWORKS),
    _plain("pca_mlp", "PCA + MLP", "principal components and a multi-layer perceptron"),
    _plain("ridge", "Ridge", "linear regression with an l2 penalty", "regression"),
    _plain("logistic", "Logistic", "logistic regression with an l2 penalty", "classification"),
    _plain("svr", "SVR", "support vector regression with an RBF kernel", "regression"),
    _plain("svc", "SVC", "a support vector machine with an RBF kernel, its probabilities calibrated", "classification"),
    _plain("gp", "GP", "a Gaussian process whose kernel is fitted by marginal likelihood"),
    _plain("hist_gb", "Boosting", "gradient-boosted trees on histograms"),
    _plain("median", "Median", "always the median of the training rows", "regression"),
    _plain("majority", "Majority", "always the most frequent class of the training rows", "classification"),
)

METHODS: dict[str, MethodSpec] = {spec.name: spec for spec in _SPECS}
"""By name, in the order of every table."""

PAPER_METHODS = ("joint", "naive", "glasso", "sample", "vnn", "pca_mlp")
"""The six that the paper compares."""

USUAL_NETWORKS = ("joint", "naive", "glasso", "sample", "vnn", "joint_mean", "joint_mlp")
"""In a comparison, beside the plain methods: ``joint`` with each readout, the others with what the recipe says."""

QUICK_NETWORKS = ("joint", "glasso", "vnn", "joint_mean", "joint_mlp")
"""In a quick one."""

TRIVIAL: dict[TaskName, str] = {"regression": "median", "classification": "majority"}
"""What a method must beat to be of any use."""

COUNTERPARTS = {"ridge": "logistic", "svr": "svc", "median": "majority"}
"""The same idea for numbers and for classes."""


def label(method: str) -> str:
    """A method's name for people; one that is not known comes from a file."""
    return METHODS[method].label if method in METHODS else printable(method)


def methods_for(task: TaskName) -> tuple[str, ...]:
    """Names of the methods that can do this task."""
    return tuple(name for name, spec in METHODS.items() if task in spec.tasks)


def usual_methods(task: TaskName) -> tuple[str, ...]:
    """Names of the methods of a comparison, where none are named."""
    return tuple(n for n in methods_for(task) if METHODS[n].family == "plain" or n in USUAL_NETWORKS)


def quick_methods(task: TaskName) -> tuple[str, ...]:
    """Names of the methods of a quick comparison."""
    return tuple(n for n in methods_for(task) if METHODS[n].family == "plain" or n in QUICK_NETWORKS)


def check_methods(names: Iterable[str], task: TaskName) -> tuple[str, ...]:
    """The names, each once and in the order of every table, or one sentence about the first that cannot be used."""
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
