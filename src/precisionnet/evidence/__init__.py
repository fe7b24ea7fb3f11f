"""What may be believed of a graph: edges of the data, edges and nodes of the task, differences between groups.

Names are imported when they are first used: the data's own graph needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.evidence.edges import EdgeInference, edge_inference
    from precisionnet.evidence.groups import GraphComparison, compare_graphs
    from precisionnet.evidence.task import TaskEvidence, task_evidence

_HOMES = {
    "EdgeInference": "edges",
    "GraphComparison": "groups",
    "TaskEvidence": "task",
    "compare_graphs": "groups",
    "edge_inference": "edges",
    "task_evidence": "task",
}

__all__ = [
    "EdgeInference",
    "GraphComparison",
    "TaskEvidence",
    "compare_graphs",
    "edge_inference",
    "task_evidence",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
