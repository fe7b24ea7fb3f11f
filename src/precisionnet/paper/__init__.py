"""The experiments of the paper: Figure 2 (synthetic), Table 1 (cohorts), Theorem 1."""

from __future__ import annotations

from pathlib import Path

from precisionnet.experiments.config import Config
from precisionnet.experiments.paper.claims import claims
from precisionnet.experiments.paper.cohorts import cohort_experiment
from precisionnet.experiments.paper.published import published
from precisionnet.experiments.paper.slopes import slopes
from precisionnet.experiments.paper.synthetic import synthetic_experiment
from precisionnet.experiments.paper.theorem import theorem_experiment
from precisionnet.experiments.runner.jobs import Experiment

__all__ = ["build", "claims", "published", "slopes"]


def build(config: Config, data_folder: Path | None) -> Experiment:
    """The experiment of a config; ``data_folder`` holds the tables of a cohort, where they are not to be fetched."""
    if config.kind == "cohort":
        return cohort_experiment(config, data_folder)
    if config.kind == "synthetic":
        return synthetic_experiment(config)
    return theorem_experiment(config)
