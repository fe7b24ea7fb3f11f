"""Many independent calls: in this process, in processes of this machine, or on a cluster.

Everything that is many fits goes through here (members, folds, bootstraps, permutations, evidence); experiments that
are stored row by row (``runner``) share the cluster. Three rules make number and place of workers change no bit:

- a call computes on one BLAS thread, wherever it runs;
- a call that runs in a worker starts no workers of its own;
- what is drawn at random is drawn before calls are handed out.

Calls go to joblib, and so to whatever backend ``joblib.parallel_config`` names, or inside ``on_scheduler`` to the
workers of a dask.distributed scheduler. joblib's own dask backend works, too, but shared arguments that it has left
on a worker are lost with that worker; here they travel as the result of a task, which is done again.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar
from uuid import uuid4

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import LokyBackend, get_active_backend

from precisionnet.errors import InputError, PrecisionNetError, PrecisionNetWarning, shortened
from precisionnet.threads import limited_threads

TIMEOUT = 5.0
"""Seconds a dask scheduler is given to answer."""
AT_ONCE = 4
"""Calls per worker that are handed out together where results cannot be had as they come."""
LOOK_EVERY = 0.25
"""Seconds between two checks of a worker process whether its parent is still alive."""
OF_TABLE = "The scheduler of the Dask table"
UNREADABLE = KeyError, ValueError, OSError
"""Errors of a Dask partition whose file is damaged or has other columns than the first one."""

Returned = TypeVar("Returned")
Call = tuple[Any, ...]


class WorkerLostError(PrecisionNetError, RuntimeError):
    """A worker ended in the middle of a job; the message says what happened and what to do.

    Examples
    --------
    >>> from precisionnet.runner import WorkerLostError
    >>> raise WorkerLostError("A worker was killed: run again.")
    Traceback (most recent call last):
    precisionnet.workers.WorkerLostError: A worker was killed: run again.
    """

    def __str__(self) -> str:
        return ": ".join(map(str, self.args)) + ("." if len(self.args) > 1 else "")


@dataclass(frozen=True)
class Cluster:
    """A dask.distributed scheduler that answers, and its workers."""

    client: Any
    address: str
    workers: int
    """Threads of all workers; at least one."""

    def results(
        self,
        function: Callable[..., Returned],
        calls: Sequence[Call],
        shared: Call = (),
        names: Sequence[str] | None = None,
    ) -> Generator[tuple[int, Returned], None, None]:
        """Yield the place and the result of each call ``function(*shared, *call)`` as they come.

        A call whose worker dies is done again by another one: the scheduler sees to that. ``names`` are for messages.
        """
        distributed = _distributed()
        names = names or [f"call {place + 1}" for place in range(len(calls))]
        run = f"precisionnet-{uuid4().hex}"
        places: dict[Any, int] = {}
        try:
            with _still_there(self.client, f"The scheduler at {self.address}"):
                # What is shared travels once, as the result of a task of its own: unlike scattered data, a task is
                # done again when the worker that held its result is lost.
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                    held = self.client.submit(_itself, shared, key=f"{run}-what all calls share")
                    for place, (name, call) in enumerate(zip(names, calls, strict=True)):
                        key = f"{run}-{name}"
                        places[self.client.submit(_alone, function, held, call, key=key, priority=-place)] = place
                for future in distributed.as_completed(list(places), loop=self.client.loop):
                    yield places[future], future.result()
                    future.release()
        except distributed.KilledWorker as error:
            # Either this call ended them, or one that waited or ran beside it: the scheduler cannot tell.
            what = f"Every worker that was given {str(error.task).removeprefix(f'{run}-')} ended"
            raise WorkerLostError(what, "run again with more memory for each") from error
        finally:
            with suppress(Exception):  # the scheduler may be gone, and nothing sent
                self.client.cancel([held, *places])


@contextmanager
def _still_there(client: Any, scheduler: str) -> Iterator[None]:
    """Turn whatever a client raises inside the block because its scheduler has gone into one sentence."""
    distributed = _distributed()
    lost = CancelledError, distributed.comm.CommClosedError, distributed.client.ClosedClientError
    try:
        yield
    except (*lost, OSError) as error:
        if not isinstance(error, lost) and client.status == "running":  # the error of a task
            raise
        raise WorkerLostError(f"{scheduler} went away", "run again when it is back") from error


_CLUSTER: ContextVar[Cluster | None] = ContextVar("cluster", default=None)
"""Where calls go at the moment; None: to joblib."""


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a dask scheduler whose workers can import this package; they stay when the block is over."""
    distributed = _distributed()
    try:
        distributed.comm.get_address_host(
            address
        )  # a client without a port waits, and complains when it is thrown away
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"No dask scheduler answers at {address!r}: check the address, such as tcp://host:8786, and that it runs."
        ) from error
    with client, _quiet("distributed.client"):  # it prints a traceback where the scheduler goes away
        with _still_there(client, f"The scheduler at {address}"):
            _refuse_foreign_workers(client, address)
            workers = sum(client.nthreads().values())
        if not workers:
            warnings.warn(
                f"The scheduler at {address} has no workers yet: start some, and the run goes on by itself.",
                PrecisionNetWarning,
                stacklevel=4,
            )
        yield Cluster(client, address, max(workers, 1))


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Let a logger say nothing inside the block: what it has to say becomes a sentence."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            "A scheduler needs dask.distributed, which is not installed: pip install 'precisionnet[cluster]'."
        ) from error
    return distributed


def _refuse_foreign_workers(client: Any, address: str) -> None:
    from precisionnet._version import __version__

    found = client.run(_version_here, on_error="return")
    wrong = {worker: version for worker, version in found.items() if version != __version__}
    if wrong:
        worker, version = next(iter(wrong.items()))
        has = f"has precisionnet {version}" if isinstance(version, str) else "cannot import precisionnet"
        raise InputError(
            f"{len(wrong)} of {len(found)} workers of the scheduler at {address} cannot be used; the first, {worker}, "
            f"{has}: install precisionnet {__version__} there, and start it again."
        )


def _version_here() -> str:
    from precisionnet._version import __version__

    return __version__


@contextmanager
def on_scheduler(address: str | None) -> Iterator[None]:
    """Send every call of ``in_workers`` inside the block to the workers of a dask scheduler.

    Parameters
    ----------
    address : str or None
        The scheduler's address; None leaves everything where it was.
    """
    if address is None:
        yield
        return
    with connected(address) as cluster:
        before = _CLUSTER.set(cluster)
        try:
            yield
        finally:
            _CLUSTER.reset(before)


def dask_client() -> Any:
    """Return the client of the cluster that computes Dask tables: that of ``on_scheduler``, or Dask's current one.

    Returns
    -------
    distributed.Client or None
        None where Dask computes in this process, or in processes of its own.
    """
    cluster = _CLUSTER.get()
    if cluster is not None:
        return cluster.client
    get = importlib.import_module("dask.base").get_scheduler()
    client: Any = getattr(get, "__self__", None)
    if client is None or not hasattr(client, "scheduler_info"):
        return None
    with _still_there(client, OF_TABLE):
        _refuse_foreign_workers(client, client.scheduler.address)
    return client


def kept_there(delayed_objects: list[Any], client: Any) -> list[Any]:
    """Compute Dask objects and keep them in the memory of a cluster's workers.

    Parameters
    ----------
    delayed_objects : list of dask.delayed.Delayed
        What is wanted several times.
    client : distributed.Client or None
        As ``dask_client`` returns it; None returns the objects as they are.

    Returns
    -------
    list of dask.delayed.Delayed
        The same objects, computed once.
    """
    if client is None:
        return delayed_objects
    with _still_there(client, OF_TABLE):
        kept: list[Any] = client.persist(delayed_objects)
    return kept


def result_of(delayed_object: Any, client: Any, parts: Sequence[Any] = ()) -> Any:
    """Compute a Dask object: on the cluster of a client, or with None on Dask's own scheduler.

    Parameters
    ----------
    delayed_object : dask.delayed.Delayed
        What is wanted.
    client : distributed.Client or None
        As ``dask_client`` returns it.
    parts : sequence of dask.delayed.Delayed, default=()
        All partitions of the table that it is made of. Where one cannot be read, the error says which: they are read
        once more, one after the other, as Dask does not tell whose task failed.

    Returns
    -------
    object
        Its value.
    """
    try:
        return _computed(delayed_object, client)
    except PrecisionNetError:
        raise
    except UNREADABLE:
        for number, part in enumerate(parts, 1):
            _refuse_unreadable(part, number, client)
        raise


def _computed(delayed_object: Any, client: Any) -> Any:
    if client is None:
        return delayed_object.compute()
    distributed = _distributed()
    try:
        with _still_there(client, OF_TABLE):
            return client.compute(delayed_object).result()
    except distributed.KilledWorker as error:
        what = "Every worker that was given one partition of the table ended"
        raise WorkerLostError(what, "run again with smaller partitions or more memory for each") from error


def _refuse_unreadable(part: Any, number: int, client: Any) -> None:
    try:
        _computed(importlib.import_module("dask").delayed(len)(part), client)
    except PrecisionNetError:
        raise
    except UNREADABLE as error:
        detail = shortened(" ".join(str(error).split()), 160)
        raise InputError(
            f"Partition {number} of the Dask table cannot be read ({detail}): check that its source is whole, and "
            "bring all partitions to the same columns and types."
        ) from error


def count_for(n_jobs: int | None) -> int:
    """Return how many workers there are for ``n_jobs``: the cluster's, or as joblib counts them."""
    asked: Any = n_jobs
    if asked is not None and (not isinstance(asked, Integral) or asked == 0):
        raise InputError(f"n_jobs must be a whole number other than 0, or None, got {asked!r}.")
    cluster = _CLUSTER.get()
    return int(effective_n_jobs(n_jobs)) if cluster is None else cluster.workers


def in_workers(
    function: Callable[..., Returned],
    calls: Iterable[Call],
    n_jobs: int | None,
    *,
    shared: Call = (),
    by_file: bool = True,
    at_once: int | None = None,
) -> list[Returned]:
    """Return ``function(*shared, *call)`` for each call, in order.

    Parameters
    ----------
    function : callable
        A function of a module, so that it can be sent.
    calls : iterable of tuple
        What differs between the calls.
    n_jobs : int or None
        Workers, as joblib counts them; a cluster uses all it has. With one, calls are made here, one after another.
    shared : tuple, default=()
        First arguments, the same for all calls.
    by_file : bool, default=True
        Whether processes of this machine get large arrays through a file that they share, read-only.
    at_once : int, optional
        Calls that are made and sent to a cluster together, where their arguments are large; all by default. Processes
        of this machine get them one by one.

    Returns
    -------
    list
        One result per call.
    """
    cluster = _CLUSTER.get()
    if cluster is not None:
        waiting, found = iter(calls), list[Returned]()
        while some := list(islice(waiting, at_once)):
            names = [f"call {len(found) + place + 1}" for place in range(len(some))]
            here = dict(cluster.results(function, some, shared, names))
            found.extend(here[place] for place in range(len(some)))
        return found
    with limited_threads(1):
        if count_for(n_jobs) == 1:
            return [function(*shared, *call) for call in calls]
        return list(Parallel(n_jobs=n_jobs, **_options(n_jobs, by_file=by_file))(_work(function, calls, shared)))


def as_they_come(
    function: Callable[..., Returned], calls: Iterable[Call], n_jobs: int | None, *, shared: Call = ()
) -> Iterator[Returned]:
    """Yield ``function(*shared, *call)`` in any order, as soon as it is known; parameters as in ``in_workers``."""
    cluster = _CLUSTER.get()
    if cluster is not None:
        yield from (result for _, result in cluster.results(function, list(calls), shared))
        return
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", **_options(n_jobs))
    except ValueError:  # a backend that cannot, such as joblib's for dask: some at a time
        waiting = iter(calls)
        while some := list(islice(waiting, AT_ONCE * count_for(n_jobs))):
            yield from in_workers(function, some, n_jobs, shared=shared)
        return
    yield from parallel(_work(function, calls, shared))


def _options(n_jobs: int | None, *, by_file: bool = True) -> dict[str, Any]:
    """Return what joblib is told: joblib's own processes (loky) end with this one, however it ends.

    An initializer that is named in ``joblib.parallel_config`` is kept, and with it workers as joblib has them.
    """
    options: dict[str, Any] = {} if by_file else {"max_nbytes": None}
    backend, _ = get_active_backend()
    own = isinstance(backend, LokyBackend) and "initializer" not in backend.backend_kwargs
    if own and effective_n_jobs(n_jobs) > 1:
        options |= {"initializer": end_with_parent(), "initargs": (os.getpid(),)}
    return options


@cache  # one object: workers with the same initializer are used again by the next calls
def end_with_parent(*, ignore_ctrl_c: bool = False) -> Callable[[int], None]:
    """Return the initializer of a worker process: it ends the process when its parent ends, also by a kill.

    It is called with the parent's process id, which the parent passes on: a worker that asked only after its imports
    could be orphaned by then and would not notice. The function is defined in here so that cloudpickle sends its code
    rather than its name. So it runs before this package and torch are imported, which takes seconds.

    Parameters
    ----------
    ignore_ctrl_c : bool, default=False
        Whether the process leaves Ctrl-C to its parent.

    Returns
    -------
    callable
        Called with the parent's process id.
    """
    every = LOOK_EVERY

    def settle_in(parent: int) -> None:
        import os
        import signal
        import sys
        import threading
        import time

        if ignore_ctrl_c:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.platform == "win32":
            return  # there the id of the parent does not change when it ends

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(every)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()

    return settle_in


def _work(function: Callable[..., Returned], calls: Iterable[Call], shared: Call) -> Iterator[Any]:
    here = os.getpid()
    # Arguments go as one tuple: of larger objects joblib's dask backend keeps one copy, on one worker.
    return (delayed(_here_or_alone)(here, function, (shared, call)) for call in calls)


def _here_or_alone(parent: int, function: Callable[..., Returned], arguments: tuple[Call, Call]) -> Returned:
    shared, call = arguments
    if os.getpid() != parent:
        return _alone(function, shared, call)
    with limited_threads(1):  # the same bits as in a worker
        return function(*shared, *call)


def _alone(function: Callable[..., Returned], shared: Call, call: Call) -> Returned:
    """Run a call in a worker: on one thread, and without workers of its own."""
    with limited_threads(1), parallel_config(backend="sequential"):
        return function(*shared, *call)


def _itself(shared: Call) -> Call:
    return shared
