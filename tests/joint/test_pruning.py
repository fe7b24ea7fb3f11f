"""Sparse at prediction: one graph for all members thins out, and what follows polishes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from precisionnet.joint.problem import start_of
from precisionnet.joint.pruning import ENDS, edge_ranks, edges_kept
from precisionnet.joint.trainer import Trainer
from precisionnet.parameters import POLISH, settings_of
from precisionnet.precision import count_edges
from tests.joint.members import PLAN, ensemble_problem, members_of, recipe, trained

SPARSE = replace(PLAN, sparse=True, max_epochs=10)


def graphs(snapshot):
    """The common graph, and the members' own."""
    return (snapshot.theta_task != 0).any(axis=0), [matrix != 0 for matrix in snapshot.theta_task]


@pytest.fixture(scope="module")
def problem():
    return ensemble_problem(n=8, l1_penalty=0.2)


@pytest.fixture(scope="module")
def members(problem):
    """Of two shapes, in three stacks."""
    return [*members_of(problem, 5), *members_of(problem, 2, readout="mlp")]


@pytest.fixture(scope="module")
def run(problem, members):
    trainer, seen = Trainer(recipe(problem, plan=SPARSE, members=members)), []
    while not trainer.done:
        trainer.advance()
        seen.append(trainer.kept if trainer.kept.epoch == len(trainer.history) else None)
    return trainer, seen


def test_all_members_share_one_graph(run, problem):
    trainer, _ = run
    common, own = graphs(trainer.kept)
    assert len(own) == 7
    assert all(np.array_equal(graph, common) for graph in own)
    assert np.array_equal(common, common.T)
    assert not common.all()
    np.testing.assert_array_equal(trainer.result().theta != 0, common)
    assert np.linalg.eigvalsh(trainer.result().theta)[0] > 0
    assert all(not theta[~common].any() for theta in trainer.kept.theta)


def test_the_strongest_edges_are_left_as_many_as_the_graphical_lasso_has(run, problem):
    lasso = start_of("glasso", problem.graph).theta
    ranks = edge_ranks(problem.graph.lightly_penalised(lasso))
    assert 0 < count_edges(lasso) < ranks.max()
    np.testing.assert_array_equal(run[0].result().theta != 0, ranks < count_edges(lasso))


def test_edges_only_go(run):
    """Until the last one has gone no epoch is kept for its loss, so the kept one is each time the latest."""
    early = [snapshot for snapshot in run[1][: round(ENDS * SPARSE.max_epochs)] if snapshot is not None]
    assert len(early) >= 4
    for before, after in itertools.pairwise(early):
        assert not (graphs(after)[0] & ~graphs(before)[0]).any()


def test_polishing_never_raises_the_training_loss(run):
    trainer, _ = run
    polished = [row for row in trainer.history if (row["epoch"] - 1) / SPARSE.max_epochs >= ENDS]
    assert trainer.kept_row["epoch"] in {row["epoch"] for row in polished}
    assert trainer.kept_row["train_loss"] <= polished[0]["train_loss"]


def test_a_sparse_run_goes_on_from_a_sparser_one_with_its_graph(run, problem, members):
    before = run[0].kept
    sparser = replace(problem, graph=replace(problem.graph, l1_penalty=0.35))
    after = trained(sparser, plan=replace(SPARSE, max_epochs=4), members=members, resume=before)
    graph = graphs(after.kept)[0]
    assert graph.sum() < graphs(before)[0].sum()
    assert count_edges(graph) == count_edges(start_of("glasso", sparser.graph).theta)


def test_a_sparse_fit_has_epochs_more():
    assert settings_of({"max_epochs": 10, "predict_on": "sparse"}).n_epochs == round(10 * (1 + POLISH))
    assert settings_of({"max_epochs": 10}).n_epochs == 10


def test_edges_go_one_way_down_to_the_number_asked_for():
    left = [edges_kept(100, 20, progress) for progress in np.linspace(0.0, 1.0, 50)]
    assert left[0] == 100
    assert left[-1] == 20
    assert all(after <= before for before, after in itertools.pairwise(left))


def test_the_weakest_partial_correlations_go_first():
    theta = np.eye(4)
    theta[0, 1] = theta[1, 0] = -0.1
    theta[2, 3] = theta[3, 2] = 0.4
    ranks = edge_ranks(theta)
    assert np.array_equal(ranks, ranks.T)
    assert (ranks.diagonal() == -1).all()
    assert (ranks[2, 3], ranks[0, 1]) == (0, 1)
    assert sorted(ranks[np.triu_indices(4, 1)]) == list(range(6))


def test_the_order_does_not_depend_on_units():
    rng = np.random.default_rng(0)
    root, unit = rng.normal(size=(6, 6)), rng.uniform(0.1, 10.0, 6)
    theta = root @ root.T
    np.testing.assert_array_equal(edge_ranks(theta / np.outer(unit, unit)), edge_ranks(theta))


def test_two_seeds_have_the_same_graph(problem):
    found = []
    for seed in (0, 50):
        others = [replace(one, seed=one.seed + seed) for one in members_of(problem, 2)]
        found.append(graphs(trained(problem, plan=SPARSE, members=others).kept)[0])
    np.testing.assert_array_equal(*found)
