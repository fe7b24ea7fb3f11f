"""A real run, a real signal: what was finished is kept, and running again gives the rows of a run that was left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress

import pytest

from precisionnet.runner.progress import status
from precisionnet.runner.run import run_experiment
from precisionnet.runner.store import read_folder
from tests.runner.cheap import METHODS, ROOT, Cheap, cheap_experiment, timeless, wait_for_children, wait_until_gone

pytestmark = pytest.mark.slow
REPEATS = 2
SECONDS = 1.0
"""Of a job: the rest of a run takes several, so that it is still at work when a test on a busy machine gets to it."""


@contextmanager
def running(folder, diary, seconds: float):
    command = [sys.executable, "-m", "tests.runner.cheap", str(folder), str(diary), str(seconds), str(REPEATS)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_rows(process, wanted: int) -> None:
    for line in process.stdout:
        if line.strip() == str(wanted):
            return
    raise AssertionError(process.stderr.read())


def workers(diary) -> set[int]:
    return {int(line.split()[2]) for line in diary.read_text().splitlines()}


def test_killed_in_the_middle_and_run_again(tmp_path):
    folder, diary = tmp_path / "results", tmp_path / "diary"
    with running(folder, diary, SECONDS) as process:
        wait_for_rows(process, 3)
        assert status(folder).running
        time.sleep(0.2)  # into the next jobs
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    at_the_kill = read_folder(folder)
    assert 3 <= len(at_the_kill.rows) < 12
    assert not status(folder).running
    wait_until_gone(workers(diary) - {process.pid})  # nobody works on for a run that is dead

    work = Cheap(str(diary), dict.fromkeys(METHODS, 0.0))
    rows = run_experiment(cheap_experiment(work, repeats=REPEATS, reuse=True), folder, jobs=1)
    alone = run_experiment(cheap_experiment(repeats=REPEATS, reuse=True), jobs=1)
    assert timeless(rows) == timeless(alone)
    stored = read_folder(folder)
    assert stored.rows[: len(at_the_kill.rows)] == at_the_kill.rows  # append-only
    assert Counter(row["job"] for row in stored.rows) == Counter(row["job"] for row in alone)
    assert Counter(trial["job"] for trial in stored.trials) == {row["job"]: 2 for row in alone if row["level"] == 0.2}
    done = Counter(line.split()[1] for line in diary.read_text().splitlines() if line.startswith("begin"))
    assert all(done[row["job"]] == 1 for row in at_the_kill.rows)  # no finished fit is done twice
    assert max(done.values()) <= 2


def test_workers_that_are_still_starting_end_with_a_killed_run(tmp_path):
    """Their first import takes seconds: they must notice before it is over."""
    folder, diary = tmp_path / "results", tmp_path / "diary"
    with running(folder, diary, 60.0) as process:
        children = wait_for_children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_until_gone(children)
    assert not diary.exists()  # no job had begun


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("to_all", [True, False])
def test_ctrl_c_ends_the_workers_and_says_how_to_go_on(tmp_path, to_all, times):
    """As a terminal sends it, to every process of the run, or to the run alone; also by someone impatient."""
    folder, diary = tmp_path / "results", tmp_path / "diary"
    with running(folder, diary, SECONDS) as process:
        wait_for_rows(process, 2)
        for _ in range(times):
            with suppress(ProcessLookupError):  # it has ended already
                (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
            time.sleep(0.05 if times > 1 else 0.0)
        out, err = process.communicate(timeout=60)
    n = len(read_folder(folder).rows)
    assert process.returncode == 130
    assert out.splitlines()[-1] == f"Stopped: {n} of 12 fits are kept in {str(folder)!r}; run again to go on."
    assert err == ""
    assert n >= 2
    wait_until_gone(workers(diary))
