"""The same rows from a cluster of separate processes, also when one of them dies."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from threading import Thread

import pytest

from precisionnet.errors import InputError, PrecisionNetError, PrecisionNetWarning
from precisionnet.runner.run import Event, run_experiment
from precisionnet.runner.store import read_folder
from tests.runner.cheap import METHODS, Cheap, cheap_experiment, timeless

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster():
    with distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as running:
        yield running


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_no_row(cluster, tmp_path):
    diary = tmp_path / "diary"
    killed: list[int] = []

    def kill_one(event: Event) -> None:
        """When two fits are finished: a worker that is in the middle of another."""
        deadline = time.monotonic() + 30
        while event.done == 2 and not killed and time.monotonic() < deadline:
            lines = [line.split() for line in diary.read_text().splitlines() if line.count(" ") == 2]
            ended = {(name, pid) for word, name, pid in lines if word == "end"}
            busy = [int(pid) for word, name, pid in lines if word == "begin" and (name, pid) not in ended]
            if busy:
                os.kill(busy[-1], signal.SIGKILL)
                killed.append(busy[-1])
            time.sleep(0.02)

    work = Cheap(str(diary), dict.fromkeys(METHODS, 0.8))
    address = cluster.scheduler_address
    rows = run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", scheduler=address, on_event=kill_one)
    assert len(killed) == 1
    assert timeless(rows) == timeless(run_experiment(cheap_experiment(reuse=True), jobs=1))
    assert len(read_folder(tmp_path / "r").rows) == 12
    pids = {int(line.split()[2]) for line in diary.read_text().splitlines()}
    assert os.getpid() not in pids
    assert len(pids) >= 2
    begun = [line.split()[1] for line in diary.read_text().splitlines() if line.startswith("begin")]
    assert len(begun) > 12  # the fit that the worker took with it was begun again


@pytest.mark.slow
def test_what_goes_wrong_on_a_cluster(cluster, tmp_path):
    """A sentence stays a row, a bug surfaces, and a job that ends each of its workers does not go on for ever."""
    address = cluster.scheduler_address
    late = "median/1/level=0.5"  # it begins when every job of the first level is finished
    work = Cheap(trouble={"joint/0/level=0.2": "input", late: "bug"})
    with pytest.raises(ZeroDivisionError):
        run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", scheduler=address)
    kept = {row["job"]: row for row in read_folder(tmp_path / "r").rows}
    assert kept["joint/0/level=0.2"]["error"] == "Bring more rows."
    with distributed.Client(address) as client:
        client.run_on_scheduler(allow_no_failure)
    deadly = cheap_experiment(Cheap(trouble={late: "killed"}), reuse=True)
    with pytest.raises(PrecisionNetError, match=r"^Every worker that was given \w+/1/level=0.5 ended.* of 12"):
        run_experiment(deadly, tmp_path / "r", scheduler=address)
    rows = run_experiment(cheap_experiment(reuse=True), tmp_path / "r", scheduler=address)
    assert len(rows) == 12
    assert kept.items() <= {row["job"]: row for row in rows}.items()


def allow_no_failure(dask_scheduler) -> None:
    dask_scheduler.allowed_failures = 0


@pytest.mark.slow
def test_a_scheduler_that_goes_away(tmp_path):
    def stop(event: Event) -> None:
        if event.done == 1:
            Thread(target=cluster.close).start()

    cluster = distributed.LocalCluster(n_workers=1, processes=True, threads_per_worker=1, dashboard_address=":0")
    work = Cheap(seconds=dict.fromkeys(METHODS, 2.0))  # the rest takes longer than closing, on a busy machine too
    with pytest.raises(PrecisionNetError, match="scheduler at .* went away: [1-5] of 6 fits are kept"):
        run_experiment(cheap_experiment(work), tmp_path / "r", scheduler=cluster.scheduler_address, on_event=stop)
    assert 1 <= len(read_folder(tmp_path / "r").rows) < 6


def test_a_scheduler_without_workers_is_said():
    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty:
        done = cheap_experiment()
        object.__setattr__(done, "jobs", ())
        with pytest.warns(PrecisionNetWarning, match="has no workers yet: start some"):
            assert run_experiment(done, scheduler=empty.scheduler_address) == []


def test_an_unreachable_scheduler_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("precisionnet.workers.TIMEOUT", 0.5)
    with socket.socket() as taken:  # bound and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        for address in (nobody, "nonsense", "tcp://", "http://127.0.0.1:1", ""):
            with pytest.raises(InputError, match=f"No dask scheduler answers at {address!r}: check the address"):
                run_experiment(cheap_experiment(), tmp_path / "r", scheduler=address)
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'precisionnet\[cluster\]'"):
        run_experiment(cheap_experiment(), scheduler="tcp://127.0.0.1:8786")
