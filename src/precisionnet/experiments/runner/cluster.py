"""Jobs on a dask.distributed cluster: the same jobs, the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.experiments.runner.jobs import Work
from precisionnet.experiments.runner.performing import Errand, perform
from precisionnet.experiments.runner.spreading import Outcomes, Pool, WorkerLostError

TIMEOUT = 5.0
"""Seconds a scheduler is given to answer."""


@contextmanager
def on_cluster(address: str) -> Iterator[Pool]:
    """The workers of a scheduler that somebody started; they stay when we are done.

    A job whose worker dies is done again by another one: the scheduler sees to that.
    """
    distributed = _distributed()
    with _connected(distributed, address) as client:

        def outcomes(work: Work, errands: Sequence[Errand]) -> Outcomes:
            # The work travels once, as the result of a task of its own: unlike scattered data, a task is done again
            # when the worker that held its result is lost.
            run = f"precisionnet-{uuid4().hex}"
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                held = client.submit(_itself, work, key=f"{run}-work")
            futures = [
                client.submit(perform, held, errand, key=f"{run}-{errand.job.name}", priority=-place)
                for place, errand in enumerate(errands)
            ]
            try:
                for future in distributed.as_completed(futures, loop=client.loop):
                    yield future.result()
                    future.release()
            except distributed.KilledWorker as error:
                what = f"{str(error.task).removeprefix(f'{run}-')} ended every worker that was given it"
                raise WorkerLostError(what, "run the same command again with more memory for each") from error
            except (CancelledError, distributed.comm.CommClosedError) as error:
                what = f"The scheduler at {address} went away"
                raise WorkerLostError(what, "run the same command again when it is back") from error
            finally:
                with suppress(Exception):  # nobody may be there any more
                    client.cancel([held, *futures])

        workers = sum(client.nthreads().values())
        if not workers:
            warnings.warn(
                f"The scheduler at {address} has no workers yet: start some, and the run goes on by itself.",
                PrecisionNetWarning,
                stacklevel=4,
            )
        yield Pool(max(workers, 1), outcomes, same_disk=False)


def _itself(work: Work) -> Work:
    return work


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            "A scheduler needs dask.distributed, which is not installed: pip install 'precisionnet[cluster]'."
        ) from error
    return distributed


def _connected(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"No dask scheduler answers at {address!r}: check the address, such as tcp://host:8786, and that it runs."
        ) from error
