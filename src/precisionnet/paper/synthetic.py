"""Figure 2 of the paper: four ways to find the precision, over the sparsity of the true one.

Parameters are chosen at one sparsity level (the paper's 0.2) and reused at the others: by the same method, in the same
repeat. Every repeat is a new draw and a new split, and the same for every method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from precisionnet.datasets import Split, SyntheticDataset, make_gaussian_regression
from precisionnet.datasets.graphs import GraphName
from precisionnet.evaluation.comparison import TuneAndTest
from precisionnet.evaluation.methods import METHODS
from precisionnet.evaluation.metrics import headline
from precisionnet.evaluation.protocol import FRACTIONS, draw_hash, make_folds, repeat_seed
from precisionnet.paper.config import Config
from precisionnet.runner.jobs import Experiment, Job
from precisionnet.versions import recipe_version

REUSED = 0.03
"""Cost of a fit with parameters chosen elsewhere: it is one of some dozen candidates."""


@dataclass(frozen=True)
class SyntheticSource:
    """The paper's synthetic rows: drawn anew and split anew for every seed, the same for every method.

    ``job.setting["sparsity"]`` is the share of non-zero entries of the true precision.
    """

    n_samples: int
    n_features: int
    snr: float
    graph: GraphName
    condition_number: float
    fractions: tuple[float, float, float] = FRACTIONS

    def split(self, job: Job) -> Split[SyntheticDataset]:
        """Draw the rows, then split them; ``theta_true`` is in the units of the rows."""
        data = make_gaussian_regression(
            self.n_samples,
            self.n_features,
            graph=self.graph,
            sparsity=job.setting["sparsity"],
            snr=self.snr,
            condition_number=self.condition_number,
            random_state=job.seed,
        )
        (fold,) = make_folds(data, 1, job.seed, self.fractions, task="regression")
        return Split(data.take(fold.train), data.take(fold.validation), data.take(fold.test))


def synthetic_experiment(config: Config) -> Experiment:
    """Build the experiment: tuned fits first, then those that reuse their parameters."""
    data = config.data
    tuned_at = data["tuned_at"]
    source = SyntheticSource(
        data["n_samples"], data["n_features"], data["snr"], data["graph"], data["condition_number"], config.fractions
    )
    tuned = [
        Job(method, repeat, repeat_seed(config.seed, repeat), {"sparsity": tuned_at}, cost=METHODS[method].cost)
        for method in config.methods
        for repeat in range(config.repeats)
    ]
    reused = [
        replace(job, setting={"sparsity": level}, after=job.name, cost=REUSED * job.cost)
        for level in sorted(data["sparsity"])
        if level != tuned_at
        for job in tuned
    ]
    for level in {tuned_at, *data["sparsity"]}:  # what cannot be drawn or split is refused here, not in every job
        source.split(replace(tuned[0], setting={"sparsity": level}))
    work = TuneAndTest(source, "regression", config.networks, config.tuning)
    drawn = {name: value for name, value in data.items() if name != "sparsity"}
    return Experiment(
        name=config.name,
        config={**config.hashed(), **work.resolved(config.methods)},
        data_hash=draw_hash({"drawn": "synthetic", "data": drawn, "seed": config.seed}),
        jobs=(*tuned, *reused),
        work=work,
        metrics=(headline("regression"),),
        recipe_version=recipe_version(config.networks),
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
