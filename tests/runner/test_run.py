"""The rows of a run depend neither on its workers nor on their order, and what is finished stays."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import torch
from threadpoolctl import threadpool_info

from precisionnet.errors import InputError, PrecisionNetError
from precisionnet.runner import pool
from precisionnet.runner.jobs import Job, seconds_left
from precisionnet.runner.run import Event, run_experiment
from precisionnet.runner.store import read_folder
from precisionnet.runner.worker import one_thread
from tests.runner.cheap import GONE, METHODS, Cheap, cheap_experiment, timeless, wait_until_gone


@pytest.fixture
def two_cores(monkeypatch):
    """Two workers also where there is one core."""
    monkeypatch.setattr(pool, "cpu_count", lambda: 2)
    monkeypatch.setattr(pool, "IDLE", 1.0)


def begun(diary) -> list[str]:
    return [line.split()[1] for line in diary.read_text().splitlines() if line.startswith("begin")]


def test_rows_come_in_the_order_of_the_jobs_and_say_how_they_were_made():
    experiment = cheap_experiment(reuse=True)
    rows = run_experiment(experiment, jobs=1)
    assert [row["job"] for row in rows] == [job.name for job in experiment.jobs]
    first = rows[0]
    assert {"experiment": "cheap", "method": "ridge", "repeat": 0, "seed": 0, "level": 0.2}.items() <= first.items()
    assert {"config_hash", "data_hash", "versions", "finished", "seconds", "mae"} <= set(first)
    assert first["r2"] is None
    by_name = {row["job"]: row for row in rows}
    for job in experiment.jobs:
        if job.after:
            assert by_name[job.name]["parameters"] == by_name[job.after]["parameters"]


@pytest.mark.slow
def test_workers_memory_and_a_folder_give_the_same_rows(tmp_path, two_cores):
    experiment = cheap_experiment(reuse=True)
    alone = run_experiment(experiment, jobs=1)
    diary = tmp_path / "diary"
    events: list[Event] = []
    spread = run_experiment(cheap_experiment(Cheap(str(diary)), reuse=True), tmp_path / "r", on_event=events.append)
    assert timeless(spread) == timeless(alone)
    pids = {int(line.split()[2]) for line in diary.read_text().splitlines()}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2
    wait_until_gone(pids, pool.IDLE + GONE)  # workers end soon after the run
    assert {row["threads"] for row in spread} == {1}
    stored = read_folder(tmp_path / "r")
    assert sorted(timeless(stored.rows), key=str) == sorted(timeless(spread), key=str)
    assert len(stored.trials) == 12  # two for each of the six jobs that were tuned
    assert begun(diary)[0].startswith("joint")  # the networks take longest
    assert [event.kind for event in events] == ["started"] + ["finished"] * 12
    assert [event.done for event in events] == list(range(13))
    assert events[0].seconds_left is None
    assert events[-1].seconds_left == 0.0
    assert events[1].row is not None
    assert events[1].job is not None


def test_a_run_goes_on_where_it_was(tmp_path):
    diary = tmp_path / "diary"
    work = Cheap(str(diary))

    class Enough(Exception):
        pass

    def stop_after_three(event: Event) -> None:
        if event.done == 3:
            raise Enough

    with pytest.raises(Enough):
        run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", jobs=1, on_event=stop_after_three)
    events: list[Event] = []
    rows = run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", jobs=1, on_event=events.append)
    assert (events[0].kind, events[0].done, events[0].total) == ("resumed", 3, 12)
    assert events[0].seconds_left > 0
    assert len(begun(diary)) == len(set(begun(diary))) == 12
    assert timeless(rows) == timeless(run_experiment(cheap_experiment(reuse=True), jobs=1))
    again = run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", jobs=1)
    assert again == rows
    assert len(begun(diary)) == 12


def test_a_job_that_cannot_be_done_leaves_a_sentence(tmp_path):
    work = Cheap(trouble={"joint/0/level=0.2": "input", "ridge/1/level=0.2": "warning", "median/1/level=0.5": "nan"})
    rows = {row["job"]: row for row in run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", jobs=1)}
    assert len(rows) == 12
    assert rows["joint/0/level=0.2"]["error"] == "Bring more rows."
    assert "mae" not in rows["joint/0/level=0.2"]
    assert rows["joint/0/level=0.5"]["error"] == "It builds on joint/0/level=0.2, which failed: Bring more rows."
    assert rows["ridge/1/level=0.2"]["warnings"] == ["Mind the gap."]
    assert rows["median/1/level=0.5"]["error"] == "median gave no finite number for mae."
    assert sum("error" in row for row in rows.values()) == 3
    kept = run_experiment(cheap_experiment(reuse=True), tmp_path / "r", jobs=1)
    assert {row["job"]: row for row in kept} == rows  # a sentence is a result: it is not tried again


def test_a_bug_surfaces_and_finished_rows_stay(tmp_path):
    work = Cheap(trouble={"ridge/1": "bug"})
    with pytest.raises(ZeroDivisionError):
        run_experiment(cheap_experiment(work), tmp_path / "r", jobs=1)
    assert [row["job"] for row in read_folder(tmp_path / "r").rows] == ["ridge/0", "joint/0", "median/0"]
    assert len(run_experiment(cheap_experiment(), tmp_path / "r", jobs=1)) == 6


def test_scratch_is_still_there_after_a_job_was_interrupted(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run_experiment(cheap_experiment(Cheap(trouble={"joint/1": "scratch"})), tmp_path / "r", jobs=1)
    assert (tmp_path / "r" / "scratch" / "joint%2F1" / "journal").read_text() == "half of the work"
    run_experiment(cheap_experiment(), tmp_path / "r", jobs=1)
    assert not (tmp_path / "r" / "scratch").exists()


def test_ctrl_c_says_what_is_kept(tmp_path):
    def press(event: Event) -> None:
        if event.done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    sentence = r"^Stopped: 2 of 6 fits are kept in '.*r'; run again to go on\.$"
    with pytest.raises(KeyboardInterrupt, match=sentence):
        run_experiment(cheap_experiment(), tmp_path / "r", jobs=1, on_event=press)
    assert len(read_folder(tmp_path / "r").rows) == 2


@pytest.mark.slow
def test_a_stopped_run_leaves_no_thread_behind(two_cores):
    """Jobs so large that the thread which sends them waits until a worker reads."""
    before = set(threading.enumerate())

    def press(event: Event) -> None:
        if event.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    work = Cheap(seconds=dict.fromkeys(METHODS, 0.5), trouble={"no job": "x" * 1_000_000})
    with pytest.raises(KeyboardInterrupt, match="Stopped"):
        run_experiment(cheap_experiment(work), jobs=2, on_event=press)
    assert set(threading.enumerate()) <= before


@pytest.mark.slow
def test_a_worker_that_is_killed_is_a_sentence(tmp_path, two_cores):
    """It is killed when every job of the first level is finished."""
    work = Cheap(trouble={"median/1/level=0.5": "killed"})
    sentence = r"worker process was killed.*(?:[6-9]|1[01]) of 12 fits are kept.*fewer jobs at a time\."
    with pytest.raises(PrecisionNetError, match=sentence):
        run_experiment(cheap_experiment(work, reuse=True), tmp_path / "r", jobs=2)
    kept = {row["job"] for row in read_folder(tmp_path / "r").rows}
    assert {f"{method}/{repeat}/level=0.2" for method in METHODS for repeat in range(2)} <= kept
    assert len(run_experiment(cheap_experiment(reuse=True), tmp_path / "r", jobs=1)) == 12


def test_one_thread_inside_and_as_before_afterwards():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
            assert {one["num_threads"] for one in threadpool_info()} == {1}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_never_more_workers_than_cores(monkeypatch):
    monkeypatch.setattr(pool, "cpu_count", lambda: 4)
    assert [pool.count_workers(jobs) for jobs in (None, 1, 3, 64)] == [4, 1, 3, 4]


def test_what_cannot_be_asked_for(tmp_path):
    for jobs in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="jobs must be a whole number, at least 1"):
            run_experiment(cheap_experiment(), tmp_path / "r", jobs=jobs)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give one of the two"):
        run_experiment(cheap_experiment(), tmp_path / "r", jobs=2, scheduler="tcp://127.0.0.1:1")
    assert list(tmp_path.iterdir()) == []


def test_mistakes_of_whoever_builds_an_experiment():
    one = Job("ridge", 0, 0)
    early = Job("joint", 0, 0, after="ridge/0")
    for jobs, sentence in [((one, one), "two jobs are named ridge/0"), ((early, one), "joint/0 stands before ridge/0")]:
        experiment = cheap_experiment()
        object.__setattr__(experiment, "jobs", jobs)
        with pytest.raises(ValueError, match=sentence):
            run_experiment(experiment)


def test_time_left_is_judged_by_method_and_spread_over_workers():
    joint, ridge = [Job("joint", k, 0) for k in range(4)], [Job("ridge", k, 0) for k in range(4)]
    assert seconds_left([], joint, 2) is None
    done = [(joint[0], {"seconds": 8.0}), (joint[1], {"seconds": 12.0}), (ridge[0], {"seconds": 1.0})]
    assert seconds_left(done, joint[2:] + ridge[1:], 1) == 2 * 10 + 3 * 1
    assert seconds_left(done, joint[2:] + ridge[1:], 2) == (2 * 10 + 3 * 1) / 2
    assert seconds_left(done, joint[2:] + ridge[1:], 100) == 10  # not sooner than the longest
    unseen = [
        seconds_left(done[:2], [Job(name, 0, 0, cost=cost)], 1)
        for name, cost in {"joint": 1.0, "glasso": 0.3, "sample": 0.1, "svr": 0.05}.items()
    ]
    assert unseen[0] == 10
    assert unseen == sorted(unseen, reverse=True)  # of a method without a row: by its cost
    again = Job("joint", 0, 0, {"level": 0.5}, after="joint/0", cost=0.03)
    assert seconds_left(done[:2], [again], 1) < 1  # not tuned again
    reused = (Job("joint", 0, 0, {"level": 0.5}, after="joint/0"), {"seconds": 1.0})
    assert seconds_left([*done, reused], [Job("joint", 1, 0, {"level": 0.5}, after="joint/1")], 1) == 1
    assert seconds_left(done, [], 2) == 0


def test_rows_are_on_the_disk_before_they_are_told_of(tmp_path):
    def look(event: Event) -> None:
        assert len(read_folder(tmp_path / "r").rows) == event.done

    assert len(run_experiment(cheap_experiment(), tmp_path / "r", jobs=1, on_event=look)) == 6
