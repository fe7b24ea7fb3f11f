"""The alternating optimisation over theta, theta_task and the weights: the one place where nn and precision meet.

Internal: the estimators use its modules. What a user may meet is exported here.
"""

from precisionnet.joint.problem import GlassoCache
from precisionnet.joint.trainer import Callback, HistoryRow

__all__ = ["Callback", "GlassoCache", "HistoryRow"]
