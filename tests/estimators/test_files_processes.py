"""Real processes: killed while they save, readers beside writers, predictions after a fork, memory of a large table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.files.run import files_below, kills, reads, save_model, save_output, two_models, which

from precisionnet.errors import PrecisionNetError
from precisionnet.estimators.files import FILE_NAME

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork, flock and /proc")
ROOT = Path(__file__).parents[2]
SAVES = {"model": save_model, "output folder": save_output}
either_way = pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)


@pytest.fixture(scope="module")
def models():
    return two_models()


def in_child(work, seconds: float = 180.0) -> int:
    """Do something in a forked child; its exit code, below 0 for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    for _ in range(int(seconds / 0.01)):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"the child has not returned in {seconds:g} s")


def dying_at(step: int, work, place: Path):
    """The same work, killed just before its n-th dealing with the system about files below the place's parent."""

    def killed():
        seen = 0

        def count(event, arguments):
            nonlocal seen
            about = event in (
                "open",
                "fcntl.flock",
                "os.rename",
                "os.chmod",
                "os.mkdir",
                "os.remove",
                "os.rmdir",
                "os.listdir",
            )
            if about and (event == "fcntl.flock" or str(place.parent) in str(arguments[0])):
                seen += 1
                if seen > step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()

    return killed


@either_way
@pytest.mark.parametrize("earlier", [True, False])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_step_of_a_save(models, tmp_path, save, earlier, stride):
    """The old model is there, or the new one; and the next save leaves nothing else."""
    save(models[1], tmp_path / "reference" / "m")
    expected = {path.name for path in files_below(tmp_path / "reference")}
    seen = []
    for step in range(0, 100, stride):
        place = tmp_path / str(step) / "m"
        if earlier:
            save(models[0], place)
        else:
            place.parent.mkdir()
        code = in_child(dying_at(step, lambda place=place: save(models[1], place), place))
        found = which(models, place)
        assert found is not None or not earlier
        seen.append(found)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        save(models[1], place)
        assert {path.name for path in files_below(place.parent)} == expected
    assert code == 0
    assert len(seen) > 3
    assert seen == sorted(seen, key=lambda found: -1 if found is None else found)  # the new one once, and from then on
    assert seen[-1] == 1


@either_way
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_nothing(models, tmp_path, save, count):
    failed, _, left_behind = kills(tmp_path, models, count, save)
    assert (failed, left_behind) == (0, 0)


@either_way
@pytest.mark.parametrize("seconds", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_a_reader_beside_two_writers_never_fails(models, tmp_path, save, seconds):
    n_reads, failed = reads(tmp_path, models, seconds, save)
    assert n_reads > 0  # how many, the machine's other work decides
    assert failed == 0
    save(models[0], tmp_path / "m")
    assert not [path for path in files_below(tmp_path) if "partial" in path.name]


def test_writers_in_threads_do_not_disturb_each_other(models, tmp_path):
    failures = []

    def write(model):
        try:
            for _ in range(10):
                model.save(tmp_path / "m")
        except PrecisionNetError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(model,)) for model in (*models, *models)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert which(models, tmp_path / "m") is not None
    assert [path.name for path in (tmp_path / "m").iterdir()] == [FILE_NAME]


def test_predict_save_and_fit_return_in_a_forked_child(models, gaussian, tmp_path):
    """OpenMP's threads do not survive a fork, and whoever waits for them waits for ever."""
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((5000, 12)), columns=models[0].feature_names_in_)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    torch.randn(600, 600) @ torch.randn(600, 600)  # they are at work from here on
    (torch.randn(2_000_000) + 1).sum()
    expected = models[0].predict(X)

    def work():
        np.testing.assert_array_equal(models[0].predict(X), expected)
        models[0].save(tmp_path / "m")
        assert which(models, tmp_path / "m") == 0
        type(models[0])(recipe="paper", max_epochs=1).fit(
            np.random.default_rng(1).standard_normal((25_000, 12)), np.arange(25_000.0)
        )

    try:
        assert in_child(work) == 0
    finally:
        torch.set_num_threads(before)


def test_a_fork_in_the_middle_of_a_fit_can_predict(models):
    """Another thread holds the thread counts at the moment of the fork."""
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((100, 12)), columns=models[0].feature_names_in_)
    inside, done = threading.Event(), threading.Event()

    def wait(row):
        inside.set()
        done.wait(60)

    fit = type(models[0])(n_members=1, max_epochs=1, callbacks=[wait]).fit
    thread = threading.Thread(target=fit, args=(X, X.iloc[:, 0].to_numpy()))
    thread.start()
    try:
        assert inside.wait(60)
        assert in_child(lambda: models[0].predict(X)) == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float64 array", "data frame of two dtypes"])
def test_predict_grows_by_less_than_half_the_table(kind):
    n_rows, n_columns = 200_000, 50
    command = [sys.executable, "-m", "benchmarks.files.run", kind, str(n_rows), str(n_columns)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    # What is needed at any size is a few megabytes of layers; half of a million rows is 0.2 GB.
    assert float(done.stdout) < 0.08
