"""Run many independent jobs so that none is lost: workers, a folder of rows, and how far it is.

The runner knows no methods: an :class:`Experiment` brings the jobs and a picklable callable that does one of them.
Names are imported when they are first used: to read a folder needs no worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.runner.jobs import Experiment, Finished, Job
    from precisionnet.runner.progress import MethodStatus, Status, results_folders, status
    from precisionnet.runner.run import Event, run_experiment
    from precisionnet.runner.store import Stored, read_folder
    from precisionnet.workers import WorkerLostError

_HOMES = {
    "Event": "run",
    "Experiment": "jobs",
    "Finished": "jobs",
    "Job": "jobs",
    "MethodStatus": "progress",
    "Status": "progress",
    "Stored": "store",
    "WorkerLostError": "pool",
    "read_folder": "store",
    "results_folders": "progress",
    "run_experiment": "run",
    "status": "progress",
}

__all__ = [
    "Event",
    "Experiment",
    "Finished",
    "Job",
    "MethodStatus",
    "Status",
    "Stored",
    "WorkerLostError",
    "read_folder",
    "results_folders",
    "run_experiment",
    "status",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
