"""What may be believed of a graph: edges of the data, edges and nodes of the task, differences between groups.

Names are imported when they are first used: the data's own graph needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precisionnet.evidence.edges import EdgeInference, edge_inference
    from precisionnet.evidence.groups import GraphComparison, compare_graphs
    from precisionnet.evidence.task import TaskEvidence, task_evidence

_MODULES = {
    "EdgeInference": "precisionnet.evidence.edges",
    "GraphComparison": "precisionnet.evidence.groups",
    "TaskEvidence": "precisionnet.evidence.task",
    "compare_graphs": "precisionnet.evidence.groups",
    "edge_inference": "precisionnet.evidence.edges",
    "task_evidence": "precisionnet.evidence.task",
}

__all__ = [
    "EdgeInference",
    "GraphComparison",
    "TaskEvidence",
    "compare_graphs",
    "edge_inference",
    "task_evidence",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
