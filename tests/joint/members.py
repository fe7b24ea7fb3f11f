"""Members of an ensemble on a small problem, for the standard recipe's tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from precisionnet.joint.member_stack import Member, Plan
from precisionnet.joint.problem import JointProblem, TensorRows, start_of
from precisionnet.joint.standard import StandardRecipe
from precisionnet.joint.trainer import Trainer
from tests.joint.conftest import make_problem, new_network, to_the_end

N_ROWS, N_MEMBERS = 48, 4
PLAN = Plan(learning_rate=0.02, batch_size=12, max_epochs=4, theta_every=2, input_noise=0.3)
NOTHING = np.array([], dtype=np.intp)
SHAPE = {"n_filters": 3, "readout": "mean", "readout_width": 4}


def ensemble_problem(
    n: int = 6, dtype: torch.dtype = torch.float64, rows: int = N_ROWS, **changes: Any
) -> JointProblem:
    problem = make_problem(n=n, rows=rows, scale_shift=True, **changes)
    x, y, weight = (t.to(dtype) for t in (problem.rows.x, problem.rows.y, problem.rows.weight))
    return replace(problem, rows=TensorRows(x, y, weight))


def members_of(problem: JointProblem, n_members: int = N_MEMBERS, make: Any = None, **shape: Any) -> list[Member]:
    """Each leaves out another fold, all of one size: a member alone then has as many batches as among others."""
    n, rows, dtype = len(problem.graph.emp_cov), len(problem.rows.y), problem.rows.x.dtype
    folds = np.arange(rows) % 8
    make = make or (lambda seed: new_network(seed, n, **SHAPE | shape))
    kind = shape.get("readout", "mean")
    return [
        Member(make(i).to(dtype), kind, np.flatnonzero(folds != i), np.flatnonzero(folds == i), seed=100 + i)
        for i in range(n_members)
    ]


def recipe(problem: JointProblem, method: str = "joint", plan: Plan = PLAN, members=None, **others) -> StandardRecipe:
    start = start_of(method, problem.graph)
    return StandardRecipe(problem, method, members_of(problem) if members is None else members, plan, start, **others)


def trained(*arguments, **others) -> Trainer:
    return to_the_end(Trainer(recipe(*arguments, **others)))


def last_state(problem: JointProblem, method: str, members: list[Member], plan: Plan = PLAN, **others):
    """After the last epoch, whichever is best: without rows left out the last one is kept."""
    return trained(problem, method, plan, [replace(one, left_out=NOTHING) for one in members], **others).kept


def outputs_of(problem: JointProblem, members: list[Member], trainer: Trainer, x) -> torch.Tensor:
    """What each member says of rows x[i], computed from what is kept and nothing else."""
    kept, scale, said = trainer.kept, trainer.result().scale, []
    for i, (one, state) in enumerate(zip(members, kept.networks, strict=True)):
        one.network.load_state_dict(state)
        with torch.no_grad():
            said.append(one.network.eval()(x[i], torch.from_numpy(kept.theta_task[i] / scale).to(x[i].dtype)))
    return torch.stack(said)
