"""Figure 2 of the paper: four ways to find the precision, over the sparsity of the true one.

Parameters are chosen at one sparsity level (the paper's 0.2) and reused at the others: by the same method, in the same
repeat. Every repeat is a new draw and a new split, and the same for every method.
"""

from __future__ import annotations

from dataclasses import replace

from precisionnet.experiments.config import Config
from precisionnet.experiments.protocol import repeat_seed
from precisionnet.experiments.runner.jobs import Experiment, Job
from precisionnet.experiments.sources import SyntheticSource, recipe_hash
from precisionnet.experiments.tune_and_test import TuneAndTest


def synthetic_experiment(config: Config) -> Experiment:
    """Tuned fits first, then those that take over their parameters."""
    data = config.data
    tuned_at = data["tuned_at"]
    source = SyntheticSource(
        data["n_samples"], data["n_features"], data["snr"], data["graph"], data["condition_number"], config.fractions
    )
    tuned = [
        Job(method, repeat, repeat_seed(config.seed, repeat), {"sparsity": tuned_at})
        for method in config.methods
        for repeat in range(config.repeats)
    ]
    reused = [
        replace(job, setting={"sparsity": level}, after=job.name)
        for level in sorted(data["sparsity"])
        if level != tuned_at
        for job in tuned
    ]
    for level in {tuned_at, *data["sparsity"]}:  # what cannot be drawn or split is refused here, not in every job
        source.sides(replace(tuned[0], setting={"sparsity": level}))
    work = TuneAndTest(source, "regression", config.networks, config.tuning)
    recipe = {name: value for name, value in data.items() if name != "sparsity"}
    return Experiment(
        name=config.name,
        config={**config.hashed(), **work.resolved(config.methods)},
        data_hash=recipe_hash({"drawn": "synthetic", "data": recipe, "seed": config.seed}),
        jobs=(*tuned, *reused),
        work=work,
        about={
            "kind": "synthetic",
            "title": "Synthetic data: error and graph over the sparsity of the true precision",
            "task": "regression",
            "target": "y",
            "unit": "",
            "n_rows": data["n_samples"],
            "n_features": data["n_features"],
            "source": "drawn",
            "description": (
                f"Gaussian rows from a sparse precision ({data['graph']} graph, condition number "
                f"{data['condition_number']:g}), y = w'x + noise at a signal-to-noise ratio of {data['snr']:g}."
            ),
            "notes": [],
            "expected": dict(config.expected),
            "tuned_at": tuned_at,
        },
    )
