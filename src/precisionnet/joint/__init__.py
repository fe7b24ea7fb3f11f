"""The alternating optimisation over theta, theta_task and the weights: the one place where nn and precision meet."""

from precisionnet.joint.ensemble import EnsembleResult, EnsembleState, EnsembleTraining, Member, Plan
from precisionnet.joint.methods import METHODS, Method, joint_step
from precisionnet.joint.mixed import MixedTraining
from precisionnet.joint.problem import JointState, Problem, Rows, TaskLoss, objective_terms
from precisionnet.joint.pruning import POLISH
from precisionnet.joint.run import HistoryRow, Result, Stopping, Training, predict, run
from precisionnet.joint.stacked import member
from precisionnet.joint.starts import Starts
from precisionnet.joint.steps import Schedule, theta_step, theta_task_step, weights_step
from precisionnet.joint.threads import threads_for

__all__ = [
    "METHODS",
    "POLISH",
    "EnsembleResult",
    "EnsembleState",
    "EnsembleTraining",
    "HistoryRow",
    "JointState",
    "Member",
    "Method",
    "MixedTraining",
    "Plan",
    "Problem",
    "Result",
    "Rows",
    "Schedule",
    "Starts",
    "Stopping",
    "TaskLoss",
    "Training",
    "joint_step",
    "member",
    "objective_terms",
    "predict",
    "run",
    "theta_step",
    "theta_task_step",
    "threads_for",
    "weights_step",
]
