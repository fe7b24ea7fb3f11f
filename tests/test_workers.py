"""Many calls, wherever they run: the same results, nothing lost with a worker, no workers within workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from joblib.parallel import ThreadingBackend

from precisionnet import PNNRegressor, workers
from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation import measure, people_folds
from precisionnet.evidence import compare_graphs
from precisionnet.precision import graphical_lasso_from_rows
from precisionnet.workers import WorkerLostError, as_they_come, count_for, in_workers, on_scheduler
from tests.calls import deadly, noted, place
from tests.runner.cheap import wait_for_children, wait_until_gone


def numbers(n: int) -> list[tuple[int]]:
    return [(i,) for i in range(n)]


def test_results_are_in_order_and_workers_start_none_of_their_own():
    here = in_workers(place, numbers(5), 1, shared=(0.5,))
    there = in_workers(place, numbers(5), 2, shared=(0.5,))
    assert [one[0] for one in here] == [one[0] for one in there] == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert {one[1] for one in here} == {os.getpid()}
    assert os.getpid() not in {one[1] for one in there}
    with joblib.parallel_config(n_jobs=2):
        assert count_for(None) == 2
        assert {one[2] for one in in_workers(place, numbers(3), None, shared=(0.0,))} == {1}


@pytest.mark.parametrize(("at_once", "sizes"), [(None, [7]), (3, [3, 3, 1])])
def test_large_calls_go_to_a_cluster_a_few_at_a_time(monkeypatch, at_once, sizes):
    """The next ones are not even made before those are done; their names go on."""
    made, sent, named = [], [], []

    def results(function, calls, shared, names):
        sent.append(len(calls))
        assert len(made) == sum(sent)
        named.extend(names)
        yield from ((i, function(*shared, *call)) for i, call in reversed(list(enumerate(calls))))

    monkeypatch.setattr(workers, "_CLUSTER", SimpleNamespace(get=lambda: SimpleNamespace(workers=2, results=results)))
    calls = (made.append(i) or (i + 1,) for i in range(7))
    found = in_workers(divmod, calls, None, shared=(100,), at_once=at_once)
    assert found == [divmod(100, i + 1) for i in range(7)]
    assert sent == sizes
    assert named == [f"call {i + 1}" for i in range(7)]


def initialized() -> None:
    os.environ["INITIALIZED"] = "yes"


def test_workers_are_used_again():
    first, second = ({one[1] for one in in_workers(place, numbers(8), 2, shared=(0.0,))} for _ in range(2))
    assert len(first | second) <= 2


@pytest.mark.slow
def test_a_users_initializer_is_kept():
    with joblib.parallel_config(backend="loky", initializer=initialized):
        assert in_workers(os.getenv, [("INITIALIZED",)] * 4, 2) == ["yes"] * 4
    assert in_workers(os.getenv, [("INITIALIZED",)] * 4, 2) == [None] * 4


FIT = """
import numpy as np
from precisionnet import PNNRegressor
X = np.random.default_rng(0).normal(size=(200, 6))
model = PNNRegressor(max_epochs=100_000, n_jobs=2, callbacks=[lambda row: print("epoch", flush=True)])
model.fit(X, X[:, 0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "starting"])
def test_workers_of_a_fit_end_with_a_killed_parent(tmp_path, at_work):
    process = subprocess.Popen([sys.executable, "-c", FIT], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        children = wait_for_children(process.pid)
        if at_work:
            assert process.stdout.readline() == "epoch\n"
        process.kill()
        process.wait()
        wait_until_gone(children)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_as_they_come_where_the_backend_has_no_generator():
    class Plain(ThreadingBackend):
        supports_return_generator = False

    joblib.register_parallel_backend("plain", Plain)
    with joblib.parallel_config(backend="plain", n_jobs=2):
        found = sorted(one[0] for one in as_they_come(place, numbers(11), None, shared=(0.0,)))
    assert found == list(range(11))
    assert sorted(one[0] for one in as_they_come(place, numbers(3), None, shared=(0.0,))) == [0, 1, 2]


def threads_of(place):
    return place, torch.get_num_threads()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_calls_as_they_come_have_one_thread_wherever_they_are_made(n_jobs, two_threads):
    assert sorted(as_they_come(threads_of, [(0,), (1,)], n_jobs)) == [(0, 1), (1, 1)]


def test_a_scheduler_that_does_not_answer_is_a_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("precisionnet.workers.TIMEOUT", 0.5)
    for address in ("nonsense", "", "tcp://", "tcp://127.0.0.1:1"):
        started = time.monotonic()
        with pytest.raises(InputError, match=f"No dask scheduler answers at '{address}'"), on_scheduler(address):
            pass
        assert time.monotonic() - started < 10.0  # what is thrown away does not wait for an answer
    with on_scheduler(None):
        assert count_for(1) == 1


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as running:
        yield running


@pytest.mark.slow
def test_a_fit_and_a_permutation_test_on_a_cluster_are_the_same_to_the_last_bit(cluster):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(80, 6)), np.repeat(["a", "b"], 40)
    y = X[:, 0] + 0.1 * rng.normal(size=80)

    def results():
        model = PNNRegressor(max_epochs=2, random_state=0).fit(X, y)
        return model.predict(X), compare_graphs(X, labels, n_permutations=99, random_state=0).edges

    predictions, edges = results()
    with on_scheduler(cluster.scheduler_address):
        assert count_for(1) == 2
        on_cluster = results()
    assert (on_cluster[0] == predictions).all()
    assert on_cluster[1].equals(edges)
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster.scheduler_address), joblib.parallel_config(backend="dask"):
        by_joblib = results()
    assert (by_joblib[0] == predictions).all()
    assert by_joblib[1].equals(edges)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    diary, killed, found = tmp_path / "diary", [], []
    with on_scheduler(cluster.scheduler_address):
        for result in as_they_come(noted, numbers(8), None, shared=(str(diary), 0.6)):
            found.append(result)
            deadline = time.monotonic() + 30
            while not killed and time.monotonic() < deadline:
                lines = [line.split() for line in diary.read_text().splitlines()]
                ended = {line[1] for line in lines if line[0] == "end"}
                busy = [int(pid) for word, number, pid in lines if word == "begin" and number not in ended]
                if busy:
                    os.kill(busy[-1], signal.SIGKILL)
                    killed.append(busy[-1])
                time.sleep(0.02)
    assert len(killed) == 1
    assert sorted(found) == [i * i for i in range(8)]
    assert sum(line.startswith("begin") for line in diary.read_text().splitlines()) > 8


def kill_one_at_work(cluster, killed: list[int]) -> None:
    """Kill the first worker that is seen with a call in hand."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for nanny in cluster.workers.values():
            found = cluster.scheduler.workers.get(nanny.worker_address)
            if found is not None and any("precisionnet-" in str(task.key) for task in list(found.processing)):
                killed.append(nanny.process.pid)
                os.kill(nanny.process.pid, signal.SIGKILL)
                return
        time.sleep(0.002)


def numbers_with_one_killed(cluster, compute):
    """Return what is computed on a cluster that loses a worker once it is told so, and how many it lost."""
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_at_work, args=(cluster, killed))
    with on_scheduler(cluster.scheduler_address):
        found = compute(killer.start)
    killer.join()
    return found, len(killed)


@pytest.mark.slow
def test_a_permutation_test_with_a_worker_killed_is_the_same_to_the_last_bit(cluster):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(200, 20)), np.repeat(["a", "b"], 100)

    def compared(kill):
        kill()
        return compare_graphs(X, labels, n_permutations=299, random_state=0)

    expected = compared(lambda: None)
    found, n_killed = numbers_with_one_killed(cluster, compared)
    assert n_killed == 1
    for name in ("tests", "edges", "nodes"):
        assert getattr(found, name).equals(getattr(expected, name))


@pytest.mark.slow
def test_folds_of_a_fit_with_a_worker_killed_are_the_same_to_the_last_bit(cluster):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 6)), columns=list("abcdef"))
    data = Dataset(X, (X["a"] + 0.1 * rng.normal(size=90)).rename("y"))
    folds, few, counted = people_folds(data, "regression", 3), {"max_epochs": 2, "n_members": 4}, []
    expected = measure(data, "regression", few, folds=folds)

    def measured(kill):
        def on_fit(done, total):
            counted.append((done, total))
            if done == 1:  # the fit to all rows is over, the folds begin
                kill()

        return measure(data, "regression", few, folds=folds, on_fit=on_fit)

    found, n_killed = numbers_with_one_killed(cluster, measured)
    assert n_killed == 1
    assert counted == [(done, 4) for done in range(5)]
    assert (found.predictions["joint"].predicted == expected.predictions["joint"].predicted).all()
    assert found.scores.equals(expected.scores)


@pytest.mark.slow
def test_a_call_that_ends_its_workers_is_a_sentence(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster.scheduler_address) as client:
        client.run_on_scheduler(allow_no_failure)
    with (
        on_scheduler(cluster.scheduler_address),
        pytest.raises(WorkerLostError, match=r"^Every worker that was given call \d ended: run again with more"),
    ):
        in_workers(deadly, numbers(3), None)  # dask blames any call that the worker held: often the second, not always


SCHEDULER = """
import distributed, time
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler with one worker, in processes that may be killed."""
    pytest.importorskip("distributed")
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    running = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield SimpleNamespace(address=running.stdout.readline().strip(), pid=running.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


GONE = "The scheduler at .* went away: run again when it is back"


@pytest.mark.slow
def test_a_scheduler_that_vanishes_is_one_sentence(scheduler, capfd):
    said = pytest.raises(WorkerLostError, match=GONE)
    with said, on_scheduler(scheduler.address):
        threading.Timer(1.0, os.killpg, (scheduler.pid, signal.SIGKILL)).start()
        in_workers(time.sleep, [(60.0,)], None)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("noticed", [True, False])
def test_a_scheduler_that_vanishes_between_two_calls_is_one_sentence(scheduler, monkeypatch, noticed):
    monkeypatch.setattr(workers, "TIMEOUT", 1.0)
    said = pytest.raises(WorkerLostError, match=GONE)
    with said, on_scheduler(scheduler.address):
        assert in_workers(abs, [(-1,)], None) == [1]
        client = workers._CLUSTER.get().client
        os.killpg(scheduler.pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while noticed and client.status != "closed" and time.monotonic() < deadline:
            time.sleep(0.05)
        in_workers(abs, [(-1,)], None)


@pytest.mark.slow
def test_a_dask_table_whose_scheduler_vanished_is_one_sentence(scheduler):
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    table = dask.from_pandas(pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3))), npartitions=2)
    with distributed.Client(scheduler.address, timeout=1.0):
        os.killpg(scheduler.pid, signal.SIGKILL)
        with pytest.raises(WorkerLostError, match="The scheduler .* went away: run again when it is back"):
            graphical_lasso_from_rows(table, 0.3)


@pytest.mark.slow
def test_an_error_of_the_system_in_a_call_is_raised_as_it_is(scheduler):
    with on_scheduler(scheduler.address), pytest.raises(FileNotFoundError):
        in_workers(open, [("/nowhere/at/all",)], None)


def allow_no_failure(dask_scheduler) -> None:
    dask_scheduler.allowed_failures = 0


@pytest.mark.slow
def test_workers_without_the_package_are_named(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "precisionnet.py").write_text("raise ImportError('not here')")
    monkeypatch.syspath_prepend(tmp_path)  # a new process starts with the path of this one
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as running,
        pytest.raises(InputError, match="1 of 1 workers .* cannot import precisionnet: install precisionnet"),
        on_scheduler(running.scheduler_address),
    ):
        pass


def test_one_worker_is_a_loop(monkeypatch):
    monkeypatch.delattr("precisionnet.workers.Parallel")
    assert in_workers(pow, [(2, 3), (3, 2)], None) == [8, 9]
    assert in_workers(pow, [(3,), (4,)], 1, shared=(2,)) == [8, 16]
