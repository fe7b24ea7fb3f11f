"""The values that a fit uses: typed settings, and the one validator for Python, command line and TOML.

The parameters themselves stand in ``parameter_table``. A value that is out of range, that was set and has no effect, or
that contradicts another is refused with one sentence each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from precisionnet.errors import InputError
from precisionnet.kinds import FEW_ROWS, FEWEST_MEMBERS, SEVERAL, Kind
from precisionnet.parameter_table import BY_NAME, FROM_GLASSO, LEARNED, PARAMETERS, RECIPES, Parameter

if TYPE_CHECKING:
    from precisionnet.types import MethodName, TaskName  # with NumPy, which --help does not need

__all__ = [
    "BY_NAME",
    "FROM_GLASSO",
    "LEARNED",
    "PARAMETERS",
    "POLISH",
    "PUBLISHED_VNN",
    "RECIPES",
    "Parameter",
    "Settings",
    "settings_of",
    "settled",
]


@dataclass(frozen=True)
class Settings:
    """Every parameter's value as a fit uses it: what was set, and the recipe's where nothing was."""

    method: MethodName
    recipe: Literal["standard", "paper"]
    n_members: int
    n_layers: int
    n_filters: int | Sequence[int]
    order: int | Sequence[int]
    readout: Literal["several", "mean", "mlp", "both", "average"]
    readout_width: int
    batch_norm: bool
    activation: str
    l1_scale: float
    l1_penalty: float | None
    covariance_threshold: Literal["hard", "soft"] | None
    task_weight: float
    coupling: float
    ridge: float
    spectral_bound: float | None
    loss: Literal["absolute", "huber", "squared"]
    l2_penalty: float
    input_noise: float
    learning_rate: float
    batch_size: int
    max_epochs: int
    theta_every: int
    theta_steps: int
    task_steps: int
    weight_steps: int
    step1: Literal["exact", "paper"]
    step2: Literal["symmetric", "plain"]
    monotone: bool
    validation_fraction: float
    patience: int
    keep_epoch: Literal["best", "last"]
    missing: Literal["error", "median", "indicator"]
    standardize: bool
    standardize_target: bool
    target_scale: Literal["auto", "linear", "log"]
    scale_shift: bool
    predict_on: Literal["task", "sparse"]
    support: Literal["auto", "dense", "sparse"]
    kernel_rows: int
    dtype: Literal["float32", "float64"]
    device: str

    @property
    def sparse(self) -> bool:
        """Whether the sparse matrix predicts; a VNN has none, its shift is the covariance."""
        return self.predict_on == "sparse" and self.method != "vnn"

    @property
    def n_epochs(self) -> int:
        """How many epochs a fit takes at most: those that polish a sparse graph come on top."""
        polish = POLISH if self.sparse and self.method == "joint" and self.recipe == "standard" else 0.0
        return round((1.0 + polish) * self.max_epochs)

    def n_folds(self, n_rows: int) -> int:
        """Return how many folds training rows are dealt into; each is left out by one member, or by one of every kind.

        With few rows and several kinds there are twice as many folds and members. A quarter of the rows would be too
        many to leave out, and the fits are short.
        """
        return self.n_members // 2 if self.readout == "several" and n_rows >= FEW_ROWS else self.n_members

    def on_sparse_support(self, n_columns: int, *, own_network: bool = False) -> bool:
        """Whether a fit of so many columns keeps its matrices on a sparse support.

        By itself it does where a dense one takes minutes; networks of one's own and methods without a sparse way stay
        dense.
        """
        able = self.recipe == "standard" and self.method in ("joint", "glasso") and not own_network
        return able and (self.support == "sparse" or (self.support == "auto" and n_columns > DENSE_MOST))

    def members(self, n_folds: int, kinds: Sequence[Kind] = SEVERAL) -> list[tuple[Kind, int]]:
        """Kind and fold of every network that is trained; others are solved afterwards."""
        n = self.n_members
        if self.readout == "several":
            return [(kind, fold) for kind in kinds if not kind.solved for fold in range(n_folds)]
        # With "both" the first half averages over the nodes and the second flattens them.
        readouts = ["mean"] * (n - n // 2) + ["mlp"] * (n // 2) if self.readout == "both" else [self.readout] * n
        return [(Kind(readout, readout), fold) for fold, readout in enumerate(readouts)]

    @property
    def widest(self) -> int:
        """Most features a node carries after a layer."""
        return self.n_filters if isinstance(self.n_filters, int) else max(self.n_filters)


PUBLISHED_VNN: Mapping[str, Any] = MappingProxyType(
    {
        "method": "vnn",
        "n_filters": (5, 5),
        "order": (5, 9),
        "readout": "average",
        "batch_norm": False,
        "standardize_target": False,
    }
)
"""The published covariance network for brain age (Sihag, Mateos, McMillan and Ribeiro 2023), as parameters.

Two layers of five filters with 6 and 10 taps and a bias, ReLU, and the plain average of all nodes and features: 290
weights, whatever the number of regions. That average is never negative, so the target keeps its own units.
"""

DENSE_MOST = 500
"""With ``support="auto"`` a fit of up to so many columns is dense: of 400 it takes a minute then, of 1,000 eight."""

POLISH = 0.6
"""Epochs that a sparse fit has in addition to those of a dense fit, as a share of these."""


def settings_of(
    parameters: Mapping[str, Any],
    task: TaskName = "regression",
    *,
    own_network: bool = False,
    name_of: Callable[[str], str] = str,
) -> Settings:
    """Check parameters and fill in the recipe's values: the one validator for Python, command line and TOML.

    Parameters
    ----------
    parameters : mapping
        Values by name; what is not there has its default. Names that are no model parameter are ignored.
    task : {"regression", "classification"}, default="regression"
        What the target is: some parameters have an effect on one of the two only.
    own_network : bool, default=False
        Whether ``network`` makes the networks.
    name_of : callable, default=str
        How a parameter is called in a complaint; the command line has options.

    Returns
    -------
    Settings
        Typed values.

    Raises
    ------
    InputError
        One sentence for every value that is out of range, or that was set and has no effect.
    """
    given = {p.name: parameters.get(p.name, p.initial) for p in PARAMETERS}
    wrong = [f"{name_of(p.name)} {found}." for p in PARAMETERS if (found := p.complaint(given[p.name])) is not None]
    if not wrong:
        values = settled(parameters, own_network=own_network)
        was_set = {name for name, value in given.items() if value is not None}
        wrong = _without_effect(values, was_set, task, own_network, name_of) or _contradictions(
            values, name_of, own_network
        )
    if wrong:
        raise InputError(" ".join(wrong))
    plain: dict[str, Any] = {}
    for name in (field.name for field in fields(Settings)):
        p, value = BY_NAME[name], values[name]
        if value is not None and p.kind is not str:  # plain Python numbers, whatever kind of number was given
            one_per_layer = p.listed and not isinstance(value, Integral)
            value = [int(one) for one in value] if one_per_layer else p.kind(value)
        plain[name] = value
    listed = [plain[name] for name in ("n_filters", "order") if isinstance(plain[name], list)]
    return Settings(**plain | {"n_layers": len(listed[0])} if listed else plain)


def settled(parameters: Mapping[str, Any], *, own_network: bool = False) -> dict[str, Any]:
    """Return every parameter's value, not checked: what is set, and the recipe's where nothing is.

    Members are of several kinds where nothing says how many layers they have, or that they are few.
    """
    recipe = parameters.get("recipe", BY_NAME["recipe"].default)
    given = {p.name: parameters.get(p.name, p.initial) for p in PARAMETERS}
    values = {p.name: p.of(recipe) if p.by_recipe and given[p.name] is None else given[p.name] for p in PARAMETERS}
    if given["readout"] is None and values["readout"] == "several" and (own_network or _unlike_several(values)):
        values["readout"] = "both"
    return values


def _unlike_several(values: Mapping[str, Any]) -> list[str]:
    """Return the parameters whose values an ensemble of several kinds cannot have."""
    found = [name for name in ("n_filters", "order") if not isinstance(values[name], Integral)]
    found += ["n_layers"] if values["n_layers"] != BY_NAME["n_layers"].default else []
    return found + (["n_members"] if values["n_members"] < FEWEST_MEMBERS else [])


def _without_effect(
    values: Mapping[str, Any], was_set: set[str], task: TaskName, own_network: bool, name_of: Callable[[str], str]
) -> list[str]:
    """Complain of every parameter that was set away from its default and changes nothing."""
    known = {**values, "task": task}
    found = []
    for p in PARAMETERS:
        usual = "both" if own_network and p.name == "readout" else p.of(values["recipe"])
        if p.name not in was_set or values[p.name] == usual:
            continue
        name = f"{name_of(p.name)}={values[p.name]!r}"
        if p.of_network and own_network:
            found.append(f"{name} has no effect with a network of your own: leave one of them out.")
        elif p.needs and not any(all(known[k] in v for k, v in one.items()) for one in p.needs):
            nearest = min(p.needs, key=lambda one: sum(known[k] not in v for k, v in one.items()))
            reasons = [k for k, v in nearest.items() if known[k] not in v]
            why = " and ".join(f"{name_of(k)}={known[k]!r}" if k != "task" else f"a {task}" for k in reasons)
            other = " and ".join(_setting(name_of(k), nearest[k]) for k in reasons if k != "task")
            found.append(f"{name} has no effect with {why}: leave it out{f', or {other}' if other else ''}.")
    return found


def _setting(name: str, allowed: tuple[Any, ...]) -> str:
    return f"leave {name} out" if allowed == (None,) else f"set {name}={allowed[0]!r}"


def _contradictions(values: Mapping[str, Any], name_of: Callable[[str], str], own_network: bool) -> list[str]:
    """Complain of values that are right one by one and cannot be had together."""
    if values["step2"] == "plain" and values["scale_shift"]:
        return [
            f"{name_of('step2')}='plain' gives a matrix that is not symmetric, and {name_of('scale_shift')} divides by "
            "the norm of a symmetric one: leave one of them out."
        ]
    if values["support"] == "sparse":
        found = [
            f"{name_of(name)}={values[name]!r} has no part on a sparse support: leave it out, or set "
            f"{name_of('support')}='dense'."
            for name in ("ridge",)
            if values[name] != BY_NAME[name].default
        ]
        if own_network:
            found.append(
                f"{name_of('support')}='sparse' is for the networks of this package, a network of your own gets a "
                "matrix of all pairs: leave one of them out."
            )
        if found:
            return found
    if values["monotone"] and values["step1"] == "paper":
        return [
            f"{name_of('monotone')}=True cannot be had with {name_of('step1')}='paper', the printed listing, which may "
            "raise the objective: leave one of them out."
        ]
    if values["readout"] == "several" and values["recipe"] != "standard":
        return [f"{name_of('readout')}='several' is for {name_of('recipe')}='standard': leave one of them out."]
    if values["readout"] == "several" and (unlike := _unlike_several(values)):
        listed = " and ".join(f"{name_of(name)}={values[name]!r}" for name in unlike)
        return [
            f"{name_of('readout')}='several' has networks of one layer and of two, {FEWEST_MEMBERS} members at least: "
            f"leave out {listed}, or set {name_of('readout')}='both'."
        ]
    lengths = {
        name_of(name): len(values[name]) for name in ("n_filters", "order") if not isinstance(values[name], Integral)
    }
    if values["n_layers"] != BY_NAME["n_layers"].default:
        lengths[name_of("n_layers")] = values["n_layers"]
    if len(set(lengths.values())) > 1 and any(not isinstance(values[n], Integral) for n in ("n_filters", "order")):
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        return [f"The network has a different number of layers by each of its parameters ({listed}): make them agree."]
    return []
