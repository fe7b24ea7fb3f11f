"""The experiments of the paper: Figure 2 (synthetic), Table 1 (cohorts), Theorem 1, convergence and stability.

Names are imported when they are first used: to check a config needs no network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.paper.claims import judge_claims
    from precisionnet.paper.cohorts import load_cohort, published
    from precisionnet.paper.config import Config, builtin, experiments, load_config
    from precisionnet.paper.errata import check_errata
    from precisionnet.paper.readings import reading_of, with_reading
    from precisionnet.paper.theorem_slopes import Slope, slopes
    from precisionnet.runner.jobs import Experiment

_HOMES = {
    "Config": "config",
    "Slope": "theorem_slopes",
    "builtin": "config",
    "check_errata": "errata",
    "experiments": "config",
    "judge_claims": "claims",
    "load_cohort": "cohorts",
    "load_config": "config",
    "published": "cohorts",
    "reading_of": "readings",
    "slopes": "theorem_slopes",
    "with_reading": "readings",
}

__all__ = [
    "Config",
    "Slope",
    "build",
    "builtin",
    "check_errata",
    "experiments",
    "judge_claims",
    "load_cohort",
    "load_config",
    "published",
    "reading_of",
    "slopes",
    "with_reading",
]


def build(config: Config, data_folder: Path | None = None) -> Experiment:
    """Build the experiment of a config, ready for :func:`precisionnet.runner.run_experiment`.

    Parameters
    ----------
    config : Config
        The checked experiment.
    data_folder : Path, default=None
        Folder with the tables of a cohort. Without one, public tables are fetched.

    Returns
    -------
    Experiment
        The jobs, and the work that does them.

    Examples
    --------
    >>> from precisionnet.paper import build, builtin, load_config
    >>> experiment = build(load_config(builtin("theorem"), quick=True))
    >>> experiment.about["kind"]
    'theorem'
    """
    if config.kind == "cohort":
        from precisionnet.paper.cohorts import cohort_experiment

        return cohort_experiment(config, data_folder)
    if config.kind == "synthetic":
        from precisionnet.paper.synthetic import synthetic_experiment

        return synthetic_experiment(config)
    if config.kind == "convergence":
        from precisionnet.paper.convergence import convergence_experiment

        return convergence_experiment(config, data_folder)
    if config.kind == "stability":
        from precisionnet.paper.stability import stability_experiment

        return stability_experiment(config, data_folder)
    from precisionnet.paper.theorem import theorem_experiment

    return theorem_experiment(config)


__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
