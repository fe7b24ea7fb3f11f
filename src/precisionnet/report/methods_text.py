"""A methods paragraph and a results sentence with a run's own numbers, and the works they refer to.

Every sentence is about this run: what did not happen in it is not said. Numbers in brackets are those of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from precisionnet.errors import printable
from precisionnet.estimators.fitted import Fitted
from precisionnet.evaluation import Measured
from precisionnet.evaluation.metrics import decimals_of, significant
from precisionnet.evidence import EdgeInference
from precisionnet.plots.brain import count_regions
from precisionnet.report.data_graph import LEVEL
from precisionnet.report.fit_verdict import NAMES

WORKS = {
    "pnn": "Cavallo A, Rey S, Marques AG, Isufi E. Precision Neural Networks: Joint Graph and Relational Learning. "
    "arXiv:2509.14821, 2025.",
    "vnn": "Sihag S, Mateos G, McMillan C, Ribeiro A. coVariance Neural Networks. Advances in Neural Information "
    "Processing Systems 35, 2022.",
    "glasso": "Friedman J, Hastie T, Tibshirani R. Sparse inverse covariance estimation with the graphical lasso. "
    "Biostatistics 9(3):432-441, 2008.",
    "adam": "Kingma DP, Ba J. Adam: A Method for Stochastic Optimization. International Conference on Learning "
    "Representations, 2015.",
    "intervals": "Bayle P, Bayle A, Janson L, Mackey L. Cross-validation Confidence Intervals for Test Error. Advances "
    "in Neural Information Processing Systems 33, 2020.",
    "cv+": "Barber RF, Candès EJ, Ramdas A, Tibshirani RJ. Predictive inference with the jackknife+. Annals of "
    "Statistics 49(1):486-507, 2021.",
    "fdr": "Benjamini Y, Hochberg Y. Controlling the False Discovery Rate: A Practical and Powerful Approach to "
    "Multiple Testing. Journal of the Royal Statistical Society B 57(1):289-300, 1995.",
    "desikan": "Desikan RS, Ségonne F, Fischl B, et al. An automated labeling system for subdividing the human "
    "cerebral cortex on MRI scans into gyral based regions of interest. NeuroImage 31(3):968-980, 2006.",
    "halves": "Shah RD, Samworth RJ. Variable selection with error control: another look at stability selection. "
    "Journal of the Royal Statistical Society B 75(1):55-80, 2013.",
    "torch": "Paszke A, Gross S, Massa F, et al. PyTorch: An Imperative Style, High-Performance Deep Learning Library. "
    "Advances in Neural Information Processing Systems 32, 2019.",
    "sklearn": "Pedregosa F, Varoquaux G, Gramfort A, et al. Scikit-learn: Machine Learning in Python. Journal of "
    "Machine Learning Research 12:2825-2830, 2011.",
}
HOW_GRAPH = {
    "joint": "a sparse precision matrix of the features, estimated together with the networks' weights by alternating "
    "optimisation",
    "naive": "a precision matrix of the features that was learned with the networks' weights by gradient descent and "
    "then thresholded",
    "glasso": "a sparse precision matrix of the features, estimated beforehand",
    "sample": "the inverse of the sample covariance of the features",
    "vnn": "the sample covariance of the features",
}
TASK_AWARE = {
    False: "a task-aware matrix of the features, learned with the networks' weights and tied to a sparse precision "
    "matrix by alternating optimisation",
    True: "a task-aware matrix of the features, learned with the networks' weights from a sparse precision matrix that "
    "was estimated beforehand",
}
"""What networks run on with ``predict_on="task"``: on all pairs, and on a sparse support."""
KINDS = {
    "mean": "one filter layer read by averaging",
    "mlp": "one filter layer",
    "deep": "two filter layers",
    "deep, little noise": "two filter layers",
    "linear": "linear",
    "lasso": "linear with an l1 penalty",
    "kernel": "a kernel machine",
}
"""Kinds of an ensemble of several (``precisionnet.kinds``) in a sentence."""
SOLVED = {
    ("linear", "regression"): "ridge regression",
    ("lasso", "regression"): "the lasso",
    ("linear", "classification"): "logistic regression with an l2 penalty",
    ("lasso", "classification"): "logistic regression with an l1 penalty",
    ("kernel", "regression"): "kernel ridge regression",
    ("kernel", "classification"): "kernel ridge regression of each class's indicator",
}

ALIKE = 0.05
"""Columns whose counts in a kernel's distance differ by no more than this share count alike."""


def _cite(*keys: str) -> str:
    """Mark where works are referred to; ``_numbered`` gives them numbers. Names pass ``printable`` and have no mark."""
    return "".join(f"\0{key}\0" for key in keys)


def _numbered(text: str) -> tuple[str, list[str]]:
    """Put numbers in the place of marks, in the order in which works are first referred to."""
    keys = list(dict.fromkeys(re.findall("\0(.*?)\0", text)))

    def numbers(found: re.Match[str]) -> str:
        return "[" + ", ".join(str(keys.index(key) + 1) for key in re.findall("\0(.*?)\0", found[0])) + "]"

    return re.sub("(\0[^\0]*\0)+", numbers, text), keys


@dataclass(frozen=True)
class PaperText:
    """What a reader may copy."""

    methods: str
    results: str
    works: list[str]


def paper_text(
    result: Measured, graph: EdgeInference | None, versions: dict[str, str], *, explained: bool = False
) -> PaperText:
    """Return the methods paragraph, the results sentence and the works that they name."""
    said = [
        *_model_sentences(result),
        *_test_sentences(result),
        *_graph_sentences(graph),
    ]
    if explained:
        said.append(
            "Columns and edges that the prediction rests on were judged beside networks fitted to permuted targets, at "
            f"a false discovery rate of {LEVEL:g} {_cite('fdr')}."
        )
    said.append(
        f"All analyses were run with precisionnet {versions['precisionnet']} (Python {versions['python']}, PyTorch "
        f"{versions['torch']} {_cite('torch')}, scikit-learn {versions['scikit-learn']} {_cite('sklearn')}), with "
        f"random seed {result.model.random_state}."
    )
    methods, keys = _numbered(" ".join(said))
    return PaperText(methods, _results(result, graph), [WORKS[key] for key in keys])


def _model_sentences(result: Measured) -> Sequence[str]:
    model, settings = result.model, result.model.settings
    n, regions = len(model.fitted.blocks), count_regions(model.fitted.blocks.names)
    rows = f"{model.n_rows_['training'] + model.n_rows_['validation']:,}"
    what = f"{n} features"
    if regions:
        what += f", {'all' if regions == n else regions} of them cortical regions {_cite('desikan')},"
    kind = "covariance neural network" if model.method == "vnn" else "Precision Neural Network"
    works = ("vnn", "pnn") if model.method == "vnn" else ("pnn",)
    standard = ""
    if settings.standardize:
        standard = "Features were centred and scaled with the training rows' means and standard deviations. "
    if model.encoder_ is not None:
        standard += "Labels, dates and missing values were encoded by what the training rows hold. "
    if result.task == "regression" and model.target_scale_ == "log":
        standard += "The target was learned on a logarithmic scale. "
    return [
        f"We predicted {printable(result.target)} from {what} in {rows} rows with a {kind} {_cite(*works)}: "
        f"{_networks(model)}",
        *([standard.strip()] if standard else []),
        *_trained_sentences(result),
    ]


def _networks(model: Any) -> str:
    """Say which networks predict, and on what matrix: those without weight have no part in it."""
    settings, n = model.settings, int(np.count_nonzero(model.fitted.member_weights))
    if settings.readout != "several":
        made = f"the mean of {n} networks" if n > 1 else "one network"
        layers = "one filter layer" if settings.n_layers == 1 else f"{settings.n_layers} filter layers"
        return f"{made} with {layers} which {'run' if n > 1 else 'runs'} {_convolutions(model)}."
    weights = dict.fromkeys((KINDS[kind] for kind in model.kind_weights_), 0.0)
    for kind, weight in model.kind_weights_.items():
        weights[KINDS[kind]] += weight
    solved = [kind for kind in model.kind_weights_ if _is_solved(kind)]
    total = len(model.networks_)
    of = f" of {total}" if n < total else ""
    if n == 1:
        made = f"one{of} network{'s' * (n < total)} ({next(iter(weights))}). "
    else:
        listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
        made = f"the weighted mean of {n}{of} networks ({listed}). "
    if n < total:
        made += f"The other{'s' * (total > n + 1)} only predicted rows left out. "
    made += "Kinds were weighted by their error on rows that their networks had left out. "
    if model.fitted.sharpness > 1.001:
        made += f"Their mean logits were multiplied by {model.fitted.sharpness:.2f}, a factor chosen on the same rows. "
    if any(getattr(network, "link", None) is not None for network in model.fitted.networks):
        made += "Trained networks end in a fixed map from a normal scale to the target's quantiles. "
    if len(solved) == len(model.kind_weights_):
        return f"{made}Networks that run graph convolutions were trained too, and have no weight in the prediction."
    n_linear = len([kind for kind in solved if kind != "kernel"])
    others = ["the linear one"] * (n_linear == 1) + ["the linear ones"] * (n_linear > 1)
    others += ["the kernel machine"] * (n_linear < len(solved))
    they = "They" if n == total else "Those with weight"
    return f"{made}{'All but ' + ' and '.join(others) if solved else they} run {_convolutions(model)}."


def _convolutions(model: Any) -> str:
    settings = model.settings
    order = settings.order if isinstance(settings.order, int) else " and ".join(map(str, settings.order))
    second = " (1 in a second layer)" if any(kind.startswith("deep") for kind in model.kind_weights_) else ""
    matrix = HOW_GRAPH[model.method]
    if model.method == "joint" and not settings.sparse:
        matrix = TASK_AWARE[model.fitted.on_support]
    penalty = ""
    if model.method in ("joint", "glasso", "naive"):
        penalty = f" (graphical lasso {_cite('glasso')}, l1 penalty {significant(model.l1_penalty_)})"
    return f"graph convolutions of order {order}{second} on {matrix}{penalty}"


def _trained_sentences(result: Measured) -> Iterator[str]:
    """Say how networks came by their weights: trained, or solved where they are linear or a kernel machine."""
    model, settings = result.model, result.model.settings
    solved = [kind for kind in model.kind_weights_ if settings.readout == "several" and _is_solved(kind)]
    if len(solved) < len(model.kind_weights_):
        said = f"{'The other networks' if solved else 'Networks'} were trained with Adam {_cite('adam')} "
        said += f"(learning rate {settings.learning_rate:g}, "
        said += f"mini-batches of {settings.batch_size} rows, " if settings.recipe == "standard" else ""
        said += f"at most {settings.max_epochs} epochs, of which number {model.best_epoch_} was kept)."
        yield from (_solved_sentence(kind, result) for kind in solved)
        yield said
    else:
        yield from (_solved_sentence(kind, result) for kind in solved)


def _is_solved(kind: str) -> bool:
    return (kind, "regression") in SOLVED


def _solved_sentence(kind: str, result: Measured) -> str:
    solved = SOLVED[kind, result.task]
    if kind == "kernel":
        name, alike = _kernel(result.model.fitted)
        count = "count alike" if alike else "count as much as the trained networks' gradient along them"
        return (
            f"The kernel machine was solved as {solved} with {name}, in a distance of two rows in which all columns "
            f"{count}; kernel, distance, width and noise were those that were best on rows left out."
        )
    name = {"linear": "linear network", "lasso": "linear network with an l1 penalty"}[kind]
    return f"The {name} was solved as {solved}, with the penalty that was best on rows left out."


def _kernel(fitted: Fitted) -> tuple[str, bool]:
    """Return the name of the kernel with most weight in the prediction, and whether all columns count alike in it."""
    weights = np.where(np.array(fitted.member_kinds) == "kernel", fitted.member_weights, 0.0)
    readout: Any = fitted.networks[int(np.argmax(weights))].readout
    counts = readout.scale.numpy() * np.sqrt(fitted.covariance.diagonal())  # of a column in units of its deviation
    counts = counts[counts > 0.0]  # a constant column sets no rows apart
    alike = not len(counts) or bool(counts.max() < (1.0 + ALIKE) * counts.min())
    return "a Gaussian kernel" if readout.gaussian else "Matern's kernel of smoothness 3/2", alike


def chosen_by(model: Any) -> str:
    """Which rows chose the epoch that was kept: ``"validation"``, ``"left out"`` or ``"none"``."""
    if model.n_rows_["validation"]:
        return "validation"
    return "left out" if model.history_["validation_loss"].notna().any() else "none"


def _test_sentences(result: Measured) -> Sequence[str]:
    folds, column = result.folds, printable(str(result.folds.column))
    people = len(np.unique(folds.people)) < len(folds.people)
    together = "; all rows of one person were in the same fold" if people and folds.kind != "time" else ""
    how = {
        "networks": f"Each row was predicted by the networks that had not learned from it ({folds.n_folds} folds"
        f"{together})",
        "people": f"Each row was predicted by a model fitted without its fold ({folds.n_folds} folds{together})",
        "groups": f"Each row was predicted by a model that had not learned from any row of the same {column} "
        f"({folds.n_folds} folds)",
        "time": f"Rows were predicted by models fitted on all rows that come before them by {column} "
        f"({folds.n_folds} blocks)",
    }[folds.kind]
    others = [_other(name) for name in result.gains]
    metric = "mean absolute error" if result.task == "regression" else "accuracy"
    listed = " and ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)
    said = [
        f"{how}.",
        *_shared(result),
        f"The models compared with it, {listed}, were fitted and tested in the same folds.",
        f"We report the {metric} with the 95 % confidence interval of cross-validated errors {_cite('intervals')}.",
    ]
    known = getattr(result.model, "calibration_", None)
    if known is not None:
        how = "CV+" if len(np.unique(known.fold)) > 1 else "split conformal prediction"
        scaled = "" if known.model is None else ", scaled by the size that is expected of a row's error"
        said.append(f"Prediction intervals are those of {how} {_cite('cv+')}{scaled}.")
    return said


def _shared(result: Measured) -> Sequence[str]:
    """Say what the networks that predict a row had of it after all, where the model's own networks are tested."""
    if result.folds.kind != "networks":
        return []
    model = result.model
    graph = "covariance" if model.method == "vnn" else "sparse graph"
    what = f"scaling and {graph} were" if model.settings.standardize else f"{graph} was"
    if chosen_by(model) == "left out":
        return [f"Rows left out also chose the epoch that was kept, and the features' {what} estimated on all rows."]
    return [f"The features' {what} estimated on all rows."]


def _other(name: str) -> str:
    if name in ("ridge", "logistic"):
        return f"{NAMES[name]} (penalty chosen on a quarter of the rows it learned from)"
    return {"median": "the median of the training rows", "majority": "the most frequent class"}.get(
        name, NAMES.get(name, name)
    )


def _graph_sentences(graph: EdgeInference | None) -> Sequence[str]:
    if graph is None:
        return []
    how = {
        "exact": "tested given all other features",
        "desparsified": "tested given the neighbours of both features, with a correction for their selection",
        "stability": "",
    }[graph.method]
    if not how:
        return [
            "Edges of the features' graph were kept where so many halves of the rows named them that at most one such "
            f"edge is expected by chance (stability selection {_cite('halves')})."
        ]
    return [
        f"Edges of the features' graph are partial correlations, {how}, at a false discovery rate of {LEVEL:g} "
        f"{_cite('fdr')}."
    ]


def _results(result: Measured, graph: EdgeInference | None) -> str:
    own, *others = [_score(result, name) for name in (result.method, *result.gains)]
    metric = "The mean absolute error was" if result.task == "regression" else "The accuracy was"
    rows = f"{len(result.y):,} rows that had not been learned from"
    compared = "; ".join(f"{NAMES.get(name, name)}: {text}" for name, text in zip(result.gains, others, strict=True))
    more = ""
    if result.task == "regression":
        scores: Any = result.scores.loc[result.method]
        more = f", R² = {scores['r2']:.2f} and r = {scores['r']:.2f}"
    said = f"{metric} {own}{more} on {rows} ({compared})."
    if graph is not None:
        n, of = _sure(graph), len(graph.edges)
        said += f" Of {of:,} pairs of features, {n:,} {'was' if n == 1 else 'were'} joined beyond chance."
    return said


def _sure(graph: EdgeInference) -> int:
    return len(graph.sure_edges) if graph.method == "stability" else int((graph.edges["q_value"] <= LEVEL).sum())


def _score(result: Measured, name: str) -> str:
    value, low, high = result.headline[name]
    scale, digits, unit = (1.0, decimals_of(value), "") if result.task == "regression" else (100.0, 1, " %")
    interval = "" if np.isnan(low) else f" (95 % CI {scale * low:,.{digits}f} to {scale * high:,.{digits}f}{unit})"
    return f"{scale * value:,.{digits}f}{unit}{interval}"
