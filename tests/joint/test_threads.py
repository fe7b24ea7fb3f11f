"""The one owner of thread counts: fits side by side are as fits alone."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import precisionnet.threads
from precisionnet import PNNRegressor
from precisionnet.estimators import training
from precisionnet.threads import SMALL, limited_threads, threads_for
from tests.joint.test_foreign_networks import Foreign
from tests.recipes import both_recipes

CPUS = os.cpu_count() or 1


def counts() -> tuple[int, set[int]]:
    """torch's threads here, and those of BLAS: MKL's, which torch uses, and of the libraries that NumPy and SciPy use."""
    mkl = re.findall(r"mkl_get_max_threads\(\) : (\d+)", torch.__config__.parallel_info())
    others = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    return torch.get_num_threads(), {*map(int, mkl), *others}


@pytest.fixture
def two_threads():
    """As on a machine with two cores where nobody has set anything."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(limits=2, user_api="blas"):
        yield (2, {2})
    torch.set_num_threads(before)


def same_fit(a, b) -> bool:
    tensors = [[t for network in model.networks_ for t in network.state_dict().values()] for model in (a, b)]
    return (
        np.array_equal(a.precision_, b.precision_)
        and np.array_equal(a.shifts_, b.shifts_)
        and a.history_.equals(b.history_)
        and all(torch.equal(v, w) for v, w in zip(*tensors, strict=True))
    )


@both_recipes
def test_fits_in_threads_are_the_same_as_alone(gaussian, quick, two_threads):
    def fit(seed):
        return PNNRegressor(**quick | {"max_epochs": 2, "random_state": seed}).fit(gaussian.X, gaussian.y)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(4)))
    assert all(same_fit(model, fit(seed)) for seed, model in enumerate(together))
    assert counts() == two_threads


def test_a_large_fit_among_small_ones(gaussian, two_threads, monkeypatch):
    """The large one computes with several threads, which round differently: the small ones must not meet them.

    What is large is set low, or the test would take minutes; the sums are long enough to be cut in two.
    """
    monkeypatch.setattr(precisionnet.threads, "SMALL", 100_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 12))
    large = {"recipe": "paper", "max_epochs": 1, "task_steps": 2, "weight_steps": 2}
    small = {"recipe": "paper", "max_epochs": 1}
    seen = []
    hold = training.limited_threads

    def watched(count, **others):
        seen.append(count)
        return hold(count, **others)

    monkeypatch.setattr(training, "limited_threads", watched)

    def fit(i):
        if i % 3 == 1:
            return PNNRegressor(**large, random_state=i).fit(X, X[:, 0])
        return PNNRegressor(**small, random_state=i).fit(gaussian.X, gaussian.y)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(5)))
    assert set(seen) == {1, CPUS}
    assert all(same_fit(model, fit(i)) for i, model in enumerate(together))
    assert counts() == two_threads


def test_foreign_fits_in_threads_draw_their_own_random_numbers(gaussian, two_threads):
    def fit(seed):
        model = PNNRegressor(network=Foreign, n_members=2, max_epochs=2, random_state=seed)
        return model.fit(gaussian.X, gaussian.y)

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fit, range(3)))
    assert all(same_fit(model, fit(seed)) for seed, model in enumerate(together))


def test_counts_hold_inside_and_come_back(two_threads):
    with limited_threads(1):
        assert counts() == (1, {1})
        with limited_threads(2):  # inside, the outer block's count stays
            assert counts() == (1, {1})
        assert counts() == (1, {1})
    assert counts() == two_threads
    with pytest.raises(KeyError), limited_threads(1):
        raise KeyError
    assert counts() == two_threads


def test_counts_come_back_in_every_thread(two_threads):
    """Whoever leaves first, and also in threads that had never asked torch for its count before."""
    inside, leave = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]
    found = {}

    def work(i):
        with limited_threads(1):
            found[i, "inside"] = torch.get_num_threads()
            inside[i].set()
            leave[i].wait(30)
        found[i, "after"] = torch.get_num_threads()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    with limited_threads(1):
        for i, worker in enumerate(workers):
            worker.start()
            inside[i].wait(30)
        leave[0].set()
        workers[0].join()
        assert counts() == (1, {1})
    assert torch.get_num_threads() == 2  # though another one still computes
    leave[1].set()
    workers[1].join()
    assert found == {(i, when): n for i in range(2) for when, n in (("inside", 1), ("after", 2))}
    assert counts() == two_threads


def test_another_count_waits_for_its_turn(two_threads):
    began, found = threading.Event(), []

    def work():
        with limited_threads(2):
            found.append(counts()[0])
            began.set()

    def hurry():
        with limited_threads(2, wait=False):
            found.append(counts()[0])

    with ExitStack() as holding:
        holding.enter_context(limited_threads(1))
        waiting, passing = threading.Thread(target=work), threading.Thread(target=hurry)
        waiting.start()
        passing.start()
        passing.join(30)
        assert found == [1]  # it takes the count that is set
        assert not began.wait(0.2)
    waiting.join(30)
    assert found == [1, 2]
    assert counts() == two_threads


def test_the_shape_alone_says_how_many():
    assert threads_for(SMALL) == 1
    assert threads_for(SMALL + 1) == CPUS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_one_thread(gaussian, two_threads):
    """Also where the fork happens while others compute: the child knows nothing of them, and predicts."""
    model = PNNRegressor(n_members=1, max_epochs=1, random_state=0).fit(gaussian.X, gaussian.y)
    known = model.predict(gaussian.X)
    torch.ones(600, 600) @ torch.ones(600, 600)  # the parent's own threads are up
    for held in (False, True):
        with limited_threads(2) if held else ExitStack():
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with limited_threads(2):
                        fine = counts()[0] == 1
                    os._exit(0 if fine and np.array_equal(model.predict(gaussian.X), known) else code)
                finally:
                    os._exit(code)
            for _ in range(600):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                threading.Event().wait(0.05)
            else:
                os.kill(child, 9)
                os.waitpid(child, 0)
                pytest.fail("the forked child hangs")
            assert os.waitstatus_to_exitcode(status) == 0
