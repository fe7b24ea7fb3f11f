"""Rows in the partitions of a Dask table: the answer of the same rows in memory, and the table stays where it is."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from precisionnet.errors import InputError
from precisionnet.precision import graphical_lasso_from_rows, partitions
from precisionnet.precision import rows as rows_module
from precisionnet.workers import WorkerLostError, on_scheduler
from tests.precision.test_rows import blocks, chain

dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")
array = pytest.importorskip("dask.array")

CUTS = 0, 7, 7, 150, 151, 400
"""Where partitions begin and end: of very different lengths, and an empty one."""


def in_partitions(X: np.ndarray, cuts: tuple[int, ...] = CUTS):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    pieces = [dask.delayed(frame.iloc[a:b]) for a, b in pairwise(cuts)]
    return dataframe.from_delayed(pieces, meta=frame.iloc[:0], verify_meta=False)


def assert_same(given, expected) -> None:
    assert given.status == expected.status
    assert given.n_components == expected.n_components
    np.testing.assert_array_equal(given.precision.indptr, expected.precision.indptr)
    np.testing.assert_array_equal(given.precision.indices, expected.precision.indices)
    np.testing.assert_allclose(given.precision.data, expected.precision.data, rtol=1e-8)
    assert given.objective == pytest.approx(expected.objective, rel=1e-10)
    assert given.gap <= given.tol


@pytest.fixture
def table(rng) -> np.ndarray:
    X = blocks(rng, (60, 30, 12, 5, 3, 2, 2, 2) + (1,) * 34)
    return X * np.exp(0.3 * rng.normal(size=X.shape[1])) + 100.0


@pytest.mark.parametrize("cuts", [CUTS, (0, 400), (0, 0, 400), (*range(0, 400, 20), 400)])
def test_a_frame_of_uneven_partitions_is_the_same_rows(cuts, table):
    expected = graphical_lasso_from_rows(table, 0.25, tol=1e-12)
    assert_same(graphical_lasso_from_rows(in_partitions(table, cuts), 0.25, tol=1e-12), expected)


@pytest.mark.parametrize("chunks", [(130, 50), ((7, 0, 393), (150,))])
def test_an_array_is_cut_by_rows_alone(chunks, table):
    expected = graphical_lasso_from_rows(table, 0.25, tol=1e-12)
    assert_same(graphical_lasso_from_rows(array.from_array(table, chunks=chunks), 0.25, tol=1e-12), expected)


def test_tiles_and_chunks_do_not_change_the_answer(table, monkeypatch):
    expected = graphical_lasso_from_rows(table, 0.25, tol=1e-12)
    monkeypatch.setattr("precisionnet.precision.screening.tile_width", lambda n_rows, memory: 41)
    monkeypatch.setattr("precisionnet.precision.screening.ROWS_AT_A_TIME", 60)
    monkeypatch.setattr(partitions, "ROWS_AT_A_TIME", 60)
    assert_same(graphical_lasso_from_rows(in_partitions(table), 0.25, tol=1e-12), expected)


def test_a_pair_next_to_the_penalty_is_decided_in_double(rng):
    X = rng.normal(size=(400, 12))
    covariance = abs(np.cov(X.T, bias=True)[3, 8])
    for factor, joined in ((1 - 1e-12, True), (1 + 1e-12, False)):
        pairs = rows_module.screen(
            given := rows_module.checked_rows(in_partitions(X)),
            rows_module.column_moments(given),
            covariance * factor,
            1e9,
        ).pairs
        assert bool(((pairs.first == 3) & (pairs.second == 8)).any()) == joined


def test_numbers_of_other_kinds_are_numbers(rng):
    X = rng.integers(0, 5, size=(400, 4))
    frame = in_partitions(X).astype({"x0": "float32", "x1": "Int64", "x2": "bool"})
    expected = X.astype(float)
    expected[:, 2] = X[:, 2] > 0
    assert_same(graphical_lasso_from_rows(frame, 0.05), graphical_lasso_from_rows(expected, 0.05))


def test_only_the_columns_of_a_component_for_sparse_factors_come_here(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 20)
    X = np.hstack([chain(rng, 80), rng.normal(size=(300, 200))])[:, rng.permutation(280)]
    expected = graphical_lasso_from_rows(X, 0.35, tol=1e-10)
    asked = []
    block = partitions.PartitionedRows.block
    monkeypatch.setattr(
        partitions.PartitionedRows, "block", lambda self, members: asked.append(len(members)) or block(self, members)
    )
    given = graphical_lasso_from_rows(in_partitions(X, (0, 100, 300)), 0.35, tol=1e-10)
    assert 20 < sum(asked) < 100
    assert given.converged
    np.testing.assert_array_equal(given.precision.indices, expected.precision.indices)
    np.testing.assert_allclose(given.precision.data, expected.precision.data, rtol=1e-5, atol=1e-8)


def test_columns_without_room_here_are_refused_with_a_penalty(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 20)
    X = chain(rng, 900)
    with pytest.raises(
        InputError, match=r"its own rows take \S+ GB where they are solved, more than 0.004 GB: raise l1"
    ):
        graphical_lasso_from_rows(in_partitions(X, (0, 100, 300)), 0.2, max_memory=4e6)


@pytest.mark.parametrize("partitioned", [True, False])
def test_the_caller_gets_sums_and_never_the_rows(partitioned, rng, monkeypatch):
    """Of 3,000 rows no result that comes here has more numbers than a tile or a block of a component."""
    X = blocks(rng, (10, 5, 5) + (1,) * 20, n_rows=3000)
    largest = []
    original = partitions.result_of

    def weighed(task, *given):
        result = original(task, *given)
        largest.append(max(np.size(part) for part in result))
        return result

    monkeypatch.setattr(partitions, "result_of", weighed)
    given = in_partitions(X, tuple(range(0, 3001, 500))) if partitioned else array.from_array(X, chunks=(500, 40))
    assert graphical_lasso_from_rows(given, 0.25).converged
    assert len(largest) >= 3
    assert max(largest) <= 40 * 40


def frame(X: np.ndarray, **columns):
    return dataframe.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(**columns), npartitions=2)


NORMAL = np.random.default_rng(0).normal(size=(20, 4))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: frame(NORMAL, b="text"), "something other than numbers in column 'b'.*drop"),
        (lambda: array.from_array(np.full((4, 2), "a")), "something other than numbers"),
        (lambda: array.from_array(NORMAL * 1j), "complex"),
        (lambda: frame(NORMAL, c=np.where(np.arange(20) == 3, np.nan, 1.0)), "column 'c'.*impute"),
        (lambda: frame(NORMAL, d=2.0), "constant in column 'd'.*drop"),
        (lambda: frame(NORMAL, d=NORMAL[:, 0] * 1e-160), "variance below.*'d'.*rescale"),
        (lambda: frame(NORMAL)["a"], "must be a table"),
        (lambda: frame(NORMAL)[[]], "no columns"),
        (lambda: frame(NORMAL[:1]), "two rows"),
        (lambda: frame(NORMAL).query("a > 99"), "two rows"),
    ],
)
def test_bad_input_is_one_sentence(given, said):
    with pytest.raises(InputError, match=said) as error:
        graphical_lasso_from_rows(given(), 0.1)
    assert "\n" not in str(error.value)


def in_parts(*parts: pd.DataFrame):
    return dataframe.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)


def test_partitions_are_joined_by_the_names_of_their_columns(rng):
    X = pd.DataFrame(chain(rng, 5), columns=list("abcde"))
    given = graphical_lasso_from_rows(in_parts(X[:100], X.loc[100:, list("ebadc")]), 0.2)
    assert_same(given, graphical_lasso_from_rows(X.to_numpy(), 0.2))
    for part, said in ((X.rename(columns={"c": "C"}), "no column 'c'"), (X.assign(z=1.0), "a new column 'z'")):
        with pytest.raises(InputError, match=f"partition of X has {said}: bring all partitions to the same"):
            graphical_lasso_from_rows(in_parts(X, part), 0.2)


def test_a_partition_that_cannot_be_read_is_named(rng, tmp_path):
    X = pd.DataFrame(chain(rng, 5), columns=list("abcde"))
    X.to_parquet(tmp_path / "0.parquet")
    X.drop(columns="b").to_parquet(tmp_path / "1.parquet")
    announced = dataframe.from_pandas(X, npartitions=3).map_partitions(
        lambda part: part.drop(columns="b") if part.index[0] else part, meta=X.iloc[:0]
    )
    for given in (dataframe.read_parquet(tmp_path), announced):
        with pytest.raises(InputError, match=r"^Partition 2 of .*'b'.*bring all partitions to the same") as error:
            graphical_lasso_from_rows(given, 0.2)
        assert "\n" not in str(error.value)


def test_an_error_that_is_not_of_a_partition_is_raised_as_it_is(rng, monkeypatch):
    monkeypatch.setattr(partitions, "moments_of", lambda rows: {}["a mistake"])
    with pytest.raises(KeyError, match="a mistake"):
        graphical_lasso_from_rows(in_partitions(chain(rng, 5), (0, 100, 300)), 0.2)


def noted_part(diary: str, seed: int) -> pd.DataFrame:
    """Draw the rows of one partition, and note which process asked for them."""
    with open(diary, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {seed}\n")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100 + 10 * seed, 12))
    X[:, 1::2] += X[:, ::2]  # pairs, and a chain of six columns
    X[:, 2:6] += X[:, 1:5]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as running:
        yield running


@pytest.fixture
def drawn(tmp_path):
    """A Dask table, the same rows in memory, and where its partitions are noted."""
    here, there = str(tmp_path / "here"), tmp_path / "there"
    X = np.concatenate([noted_part(here, seed).to_numpy() for seed in range(5)])
    parts = [dask.delayed(noted_part)(str(there), seed) for seed in range(5)]
    return dataframe.from_delayed(parts, meta=noted_part(here, 0).iloc[:0], verify_meta=False), X, there


def seeds_and_processes(there: Path) -> tuple[list[int], set[int]]:
    lines = [line.split() for line in there.read_text(encoding="utf-8").splitlines()]
    return sorted(int(seed) for _, seed in lines), {int(process) for process, _ in lines}


@pytest.mark.slow
@pytest.mark.parametrize("current", [True, False])
def test_on_a_cluster_the_rows_are_made_once_and_by_the_workers(current, cluster, drawn):
    distributed = pytest.importorskip("distributed")
    given, X, there = drawn
    expected = graphical_lasso_from_rows(X, 0.3, tol=1e-12)
    assert expected.largest_component > 2
    address = cluster.scheduler_address
    with distributed.Client(address) if current else on_scheduler(address):
        result = graphical_lasso_from_rows(given, 0.3, tol=1e-12)
    assert_same(result, expected)
    seeds, processes = seeds_and_processes(there)
    assert seeds == list(range(5))
    assert os.getpid() not in processes


@pytest.mark.slow
def test_a_worker_killed_between_passes_changes_nothing(cluster, drawn, monkeypatch):
    """Its partitions are lost with it, and made again by the other."""
    distributed = pytest.importorskip("distributed")
    given, X, there = drawn
    original, passes = partitions.result_of, []

    def deadly(task, *given):
        passes.append(task)
        if len(passes) == 2:
            os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
        return original(task, *given)

    monkeypatch.setattr(partitions, "result_of", deadly)
    with distributed.Client(cluster.scheduler_address):
        result = graphical_lasso_from_rows(given, 0.3, tol=1e-12)
    assert len(passes) > 2
    assert_same(result, graphical_lasso_from_rows(X, 0.3, tol=1e-12))
    seeds, processes = seeds_and_processes(there)
    assert len(seeds) > 5
    assert os.getpid() not in processes


def end_the_process(rows: np.ndarray) -> None:
    os._exit(1)


def allow_no_failure(dask_scheduler) -> None:
    dask_scheduler.allowed_failures = 0


@pytest.mark.slow
def test_a_partition_that_ends_its_workers_is_a_sentence(cluster, drawn, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(partitions, "moments_of", end_the_process)
    with distributed.Client(cluster.scheduler_address) as client:
        client.run_on_scheduler(allow_no_failure)
        with pytest.raises(WorkerLostError, match="smaller partitions"):
            graphical_lasso_from_rows(drawn[0], 0.3)


@pytest.mark.slow
def test_workers_without_the_package_are_named(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "precisionnet.py").write_text("raise ImportError('not here')")
    monkeypatch.syspath_prepend(tmp_path)  # a new process starts with the path of this one
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as running,
        distributed.Client(running.scheduler_address),
        pytest.raises(InputError, match="1 of 1 workers .* cannot import precisionnet: install precisionnet"),
    ):
        graphical_lasso_from_rows(array.from_array(NORMAL, chunks=(10, 4)), 0.1)
