"""The model's parameters, said once: name, default, range and meaning.

The estimators take their defaults and checks from here, the command line its options, the report its table. Nothing
heavy is imported, so ``precisionnet --help`` stays quick. Names follow ``docs/notation.md``.

There are two recipes. ``standard`` was found by measurement (``docs/decisions/0009-recipe.md``), ``paper`` has the
paper's values, and the reading of ``docs/notation.md`` where the paper leaves a convention open. A parameter whose
value differs between them is None until it is set: the recipe's value then holds (``parameters.settled``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

from precisionnet.errors import did_you_mean, shown

RECIPES = ("standard", "paper")
LEARNED = ("joint", "naive")
FROM_GLASSO = ("joint", "naive", "glasso")
"""Methods that start at the graphical lasso of the training rows."""
THRESHOLDS = ("hard", "soft")
_SAME: Any = object()

Needs = tuple[dict[str, tuple[Any, ...]], ...]
"""Alternatives; each says which values other parameters must have."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of ``PNNRegressor`` and ``PNNClassifier``."""

    name: str
    default: Any
    help: str
    kind: type = float
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    closed: str = "left"
    """Which ends of [low, high] are allowed: left, right, both or neither."""
    optional: bool = False
    """None is allowed, and means what ``help`` says."""
    listed: bool = False
    """A list with one value per layer is allowed."""
    symbol: str = ""
    """The paper's symbol or name for the parameter."""
    paper: Any = _SAME
    """Its value in the paper's recipe, where that is not ``default``."""
    needs: Needs = ()
    """The settings in which the parameter has an effect; it always has one if this is empty."""
    of_network: bool = False
    """It shapes the network, and has no effect where ``network`` makes one."""

    @cached_property
    def by_recipe(self) -> bool:
        """Whether the recipe decides what is not set."""
        return self.paper is not _SAME

    @cached_property
    def initial(self) -> Any:
        """The default of the estimators' argument."""
        return None if self.by_recipe else self.default

    def of(self, recipe: str) -> Any:
        """Return its value in a recipe."""
        return self.paper if self.by_recipe and recipe == "paper" else self.default

    def complaint(self, value: Any) -> str | None:
        """Say what is wrong with ``value``, in words; None where nothing is."""
        if value is None and (self.optional or self.by_recipe):
            return None
        if self.listed and isinstance(value, Sequence) and not isinstance(value, str):
            if not value:
                return "must be a whole number or a list with one per layer, got an empty list"
            return next((found for one in value if (found := self.complaint(one)) is not None), None)
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return None
            hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            return f"must be one of {', '.join(self.choices)}, got {shown(value)}{hint}"
        if self.kind is str:
            return None if isinstance(value, str) else f"must be text, got {shown(value)}"
        if self.kind is bool:
            flag = isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's, too
            return None if flag else f"must be true or false, got {shown(value)}"
        what = "a whole number" if self.kind is int else "a number"
        if isinstance(value, bool) or not isinstance(value, Integral if self.kind is int else Real):
            return f"must be {what}{' or a list with one per layer' if self.listed else ''}, got {shown(value)}"
        try:
            value = float(value)
        except OverflowError:  # an integer of hundreds of digits
            value = math.inf if value > 0 else -math.inf
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        if above and below and -math.inf < value < math.inf:
            return None
        limits = f"{'at least' if self.closed in ('left', 'both') else 'above'} {self.low:g}"
        if math.isfinite(self.high):
            limits += f" and {'at most' if self.closed in ('right', 'both') else 'below'} {self.high:g}"
        got = "a number beyond all bounds" if value > 1e15 else f"{value:g}"
        return f"must be {what} {limits}, got {got}"

    def where(self) -> str:
        """Say where it has an effect, in words; nothing where it has one everywhere."""
        return " or ".join(
            " and ".join(f"{name}={'/'.join(map(str, values))}" for name, values in one.items()) for one in self.needs
        )


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "method",
        "joint",
        "How the matrix under the network is found.",
        str,
        choices=("joint", "naive", "glasso", "sample", "vnn"),
    ),
    Parameter(
        "recipe",
        "standard",
        "Values of what is not set, and how an epoch goes: standard (measured) or paper (Algorithm 1 in the paper's "
        "reading, its Step 1 solved; see step1).",
        str,
        choices=RECIPES,
    ),
    Parameter(
        "n_members",
        8,
        "Networks whose mean is the prediction; they share the table and differ in first weights and rows left out. Of "
        "several kinds half as many of each.",
        int,
        low=1,
        high=1000,
        closed="both",
        paper=1,
        needs=({"recipe": ("standard",)},),
    ),
    Parameter("n_layers", 1, "Filter layers.", int, low=1, high=50, closed="both", symbol="L", of_network=True),
    Parameter(
        "n_filters",
        8,
        "Features a node carries after each layer.",
        int,
        low=1,
        high=4096,
        closed="both",
        symbol="F",
        of_network=True,
        listed=True,
    ),
    Parameter(
        "order",
        3,
        "Degree of the filter polynomials.",
        int,
        low=1,
        high=100,
        closed="both",
        symbol="K",
        paper=2,
        of_network=True,
        listed=True,
    ),
    Parameter(
        "readout",
        "several",
        "several (members of several kinds: both readouts, one layer and two, a linear one and a kernel machine, "
        "weighted by the rows that they left out; both where n_layers, a list per layer or fewer than four members are "
        "given), mean (node average: the graph does the work), mlp (a weight for every node), both (half of the "
        "members each), average (plain mean of nodes and features, nothing learnt).",
        str,
        choices=("several", "mean", "mlp", "both", "average"),
        paper="mean",
        of_network=True,
    ),
    Parameter(
        "readout_width",
        32,
        "Hidden units of the readout; 0 makes it linear.",
        int,
        high=65536,
        closed="both",
        paper=64,
        of_network=True,
        needs=({"readout": ("several", "mean", "mlp", "both")},),
    ),
    Parameter(
        "batch_norm", True, "Normalise the features of each layer over samples and nodes.", bool, of_network=True
    ),
    Parameter(
        "activation", "relu", "Nonlinearity of a layer.", str, choices=("relu", "leaky_relu", "tanh"), of_network=True
    ),
    Parameter(
        "l1_scale",
        1.0,
        "Sparsity: the l1 penalty, or the threshold of a covariance, is l1_scale * sqrt(log N / T). Larger is sparser.",
        symbol="lambda_0",
        high=1e9,
        closed="both",
        needs=(
            {"method": FROM_GLASSO, "l1_penalty": (None,)},
            {"method": ("vnn",), "covariance_threshold": THRESHOLDS, "l1_penalty": (None,)},
        ),
    ),
    Parameter(
        "l1_penalty",
        None,
        "The l1 penalty, or the threshold of a covariance, itself; replaces l1_scale.",
        optional=True,
        symbol="lambda",
        high=1e9,
        closed="both",
        needs=({"method": FROM_GLASSO}, {"method": ("vnn",), "covariance_threshold": THRESHOLDS}),
    ),
    Parameter(
        "covariance_threshold",
        None,
        "Sparse covariance under a VNN: hard (off-diagonal entries up to the threshold become zero), soft (all are "
        "shrunk by it), or None (the sample covariance).",
        str,
        choices=THRESHOLDS,
        optional=True,
        needs=({"method": ("vnn",)},),
    ),
    Parameter(
        "task_weight",
        0.5,
        "Weight of the task against the graph.",
        high=1,
        closed="neither",
        symbol="alpha",
        needs=({"method": LEARNED}, {"recipe": ("paper",)}),
    ),
    Parameter(
        "coupling",
        0.1,
        "How tightly the task's matrix is tied to the sparse one.",
        symbol="gamma",
        paper=10.0,
        high=1e9,
        closed="both",
        needs=({"method": ("joint",)},),
    ),
    Parameter(
        "ridge",
        1e-4,
        "Added to the precision inside the log-determinant.",
        symbol="epsilon",
        high=1e6,
        closed="both",
        needs=({"method": FROM_GLASSO},),
    ),
    Parameter(
        "spectral_bound",
        None,
        "Largest eigenvalue allowed; by default twice the inverse of the covariance's smallest, floored.",
        low=1e-9,
        high=1e12,
        closed="both",
        optional=True,
        symbol="M",
        needs=({"method": FROM_GLASSO},),
    ),
    Parameter(
        "loss",
        "absolute",
        "What is lost on a number: absolute, huber or squared error of the standard target. Classes: cross-entropy.",
        str,
        choices=("absolute", "huber", "squared"),
        paper="squared",
        needs=({"task": ("regression",)},),
    ),
    Parameter(
        "l2_penalty", 1e-4, "Weight of the squared network weights.", symbol="beta", paper=3e-3, high=1e6, closed="both"
    ),
    Parameter(
        "input_noise",
        0.3,
        "Standard deviation of the noise put on the standardised features in training.",
        paper=0.0,
        high=1e3,
        closed="both",
        needs=({"recipe": ("standard",)},),
    ),
    Parameter("learning_rate", 0.01, "Step length of Steps 2 and 3.", high=10, closed="right", symbol="eta"),
    Parameter("batch_size", 64, "Rows of a gradient step.", int, low=2, needs=({"recipe": ("standard",)},)),
    Parameter(
        "max_epochs",
        50,
        "Passes over the rows (standard; predict_on=sparse adds 60 % to polish), or rounds of Steps 1 to 3 (paper).",
        int,
        low=1,
        high=10**6,
        closed="both",
        symbol="I_epochs",
        paper=10,
    ),
    Parameter(
        "theta_every",
        5,
        "Epochs between two solutions of Step 1.",
        int,
        low=1,
        high=10**6,
        needs=({"recipe": ("standard",), "method": ("joint",)},),
    ),
    Parameter(
        "theta_steps",
        20,
        "Passes of Step 1.",
        int,
        low=1,
        high=10**6,
        closed="both",
        symbol="I_Theta",
        needs=({"recipe": ("paper",), "method": ("joint",), "step1": ("paper",)},),
    ),
    Parameter(
        "task_steps",
        20,
        "Gradient steps of Step 2 an epoch.",
        int,
        high=10**6,
        closed="both",
        symbol="I_ThetaTask",
        needs=({"recipe": ("paper",), "method": ("joint",)},),
    ),
    Parameter(
        "weight_steps",
        20,
        "Adam steps of Step 3 an epoch.",
        int,
        low=1,
        high=10**6,
        closed="both",
        symbol="I_h",
        needs=({"recipe": ("paper",)},),
    ),
    Parameter(
        "step1",
        "exact",
        "exact (minimise Step 1 as written) or paper (lines 3-8 of the printed listing, which may diverge).",
        str,
        choices=("exact", "paper"),
        needs=({"recipe": ("paper",), "method": ("joint",)},),
    ),
    Parameter(
        "step2",
        "symmetric",
        "symmetric (the gradient's symmetric part, so that theta_task stays symmetric) or plain (the gradient itself).",
        str,
        choices=("symmetric", "plain"),
        needs=({"recipe": ("paper",), "method": ("joint",), "monotone": (False,)},),
    ),
    Parameter(
        "monotone",
        False,
        "Take every step only as far as the objective falls; the history then has the distance from stationarity.",
        bool,
        needs=({"recipe": ("paper",), "method": ("joint",)},),
    ),
    Parameter(
        "validation_fraction",
        0.0,
        "Share of the rows set aside to choose the epoch; with 0 the rows each member leaves out choose it.",
        high=1,
        paper=0.25,
    ),
    Parameter(
        "patience",
        5,
        "Epochs without a better validation loss before stopping.",
        int,
        low=1,
        needs=({"recipe": ("paper",), "keep_epoch": ("best",)},),
    ),
    Parameter(
        "keep_epoch",
        "best",
        "Which epoch is kept: best (the lowest loss on validation rows, where there are some) or last.",
        str,
        choices=("best", "last"),
        needs=({"recipe": ("paper",)},),
    ),
    Parameter(
        "missing",
        "error",
        "What NaN in X means: error (refuse it), median (the column's median of the training rows stands in) or "
        "indicator (the same, and where over 1 % of the training rows miss a column, one more column says which do).",
        str,
        choices=("error", "median", "indicator"),
    ),
    Parameter("standardize", True, "Centre and scale the features, on the training rows.", bool),
    Parameter(
        "standardize_target",
        True,
        "Centre and scale a regression target, on the training rows; else it is learnt in its own units.",
        bool,
        paper=False,
        needs=({"task": ("regression",)},),
    ),
    Parameter(
        "target_scale",
        "auto",
        "Learn the target (linear) or its logarithm (log); auto tries the logarithm of a skewed target above 0 where "
        "members are of several kinds, and linear members decide on rows that they left out.",
        str,
        choices=("auto", "linear", "log"),
        needs=({"recipe": ("standard",), "task": ("regression",)},),
    ),
    Parameter("scale_shift", True, "Divide the network's matrix by its largest eigenvalue.", bool, paper=False),
    Parameter(
        "predict_on",
        "task",
        "Predict on the task's matrix (the paper) or on the sparse one.",
        str,
        choices=("task", "sparse"),
        needs=({"method": ("joint",)},),
    ),
    Parameter(
        "support",
        "auto",
        "Where the networks' matrix may differ from zero: dense (all pairs), sparse (edges of the rows and of the "
        "task: time and memory grow with the edges) or auto (sparse above 500 columns).",
        str,
        choices=("auto", "dense", "sparse"),
        needs=({"recipe": ("standard",), "method": ("joint", "glasso")},),
    ),
    Parameter(
        "kernel_rows",
        3000,
        "Training rows up to which a kernel machine is one of several kinds; a model in which it counts keeps them. 0 "
        "leaves it out.",
        int,
        low=0,
        high=20_000,
        closed="both",
        needs=({"recipe": ("standard",), "readout": ("several",)},),
    ),
    Parameter(
        "dtype", "float32", "Arithmetic of training; predictions are float64.", str, choices=("float32", "float64")
    ),
    Parameter(
        "device",
        "cpu",
        "Where the networks are trained: cpu, cuda, mps, cuda:1, ..., or auto (a GPU where there is one).",
        str,
    ),
)

BY_NAME: dict[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}
