"""The alternating optimisation over theta, theta_task and the weights: the one place where nn and precision meet."""

from precisionnet.joint.algorithm1 import Algorithm1, JointState, Schedule, theta_step, theta_task_step, weights_step
from precisionnet.joint.problem import GlassoCache, GraphTerms, JointProblem, Start, TensorRows, start_of
from precisionnet.joint.standard import Member, Plan, StandardRecipe
from precisionnet.joint.trainer import Callback, HistoryRow, Snapshot, Trained, Trainer

__all__ = [
    "Algorithm1",
    "Callback",
    "GlassoCache",
    "GraphTerms",
    "HistoryRow",
    "JointProblem",
    "JointState",
    "Member",
    "Plan",
    "Schedule",
    "Snapshot",
    "StandardRecipe",
    "Start",
    "TensorRows",
    "Trained",
    "Trainer",
    "start_of",
    "theta_step",
    "theta_task_step",
    "weights_step",
]
