"""The task's evidence: drawn targets, pooled p-values, edges that are found, runs that go on, mistakes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.errors import InputError
from precisionnet.evidence import compare_graphs, task_evidence
from precisionnet.evidence.task_fits import (
    TaskTable,
    additive_residual,
    evidence_network,
    fit_keys,
    run_fits,
    run_fits_together,
    runs_of,
    targets_in_a_run,
    targets_of_others,
)

QUICK = {"n_members": 2, "max_epochs": 8, "readout": "mlp", "random_state": 0}
"""One readout: both members train as one program."""
PAIRS = 2
"""Complementary pairs of halves, fewer than by default."""


@pytest.fixture(autouse=True, scope="module")
def few_halves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("precisionnet.evidence.task.HALF_PAIRS", PAIRS)
        yield


@pytest.fixture(scope="module")
def table():
    """Two columns that act together, one that acts alone, three that do nothing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 6))
    X[:, 1] += 0.5 * X[:, 0]
    X[:, 4] += 0.7 * X[:, 3]
    y = 2.0 * X[:, 0] * X[:, 1] + 2.0 * X[:, 2] + 0.5 * rng.normal(size=120)
    return pd.DataFrame(X, columns=list("abcdef")), pd.Series(y, name="target")


@pytest.fixture(scope="module")
def model(table):
    return PNNRegressor(**QUICK).fit(*table)


@pytest.fixture(scope="module")
def found(model, table):
    return task_evidence(model, *table, n_permutations=19, random_state=0)


def test_the_product_and_the_single_column_are_found(found):
    edge = found.edges.loc[found.edges["p_value"].idxmin()]
    assert (edge["source"], edge["target"]) == ("a", "b")
    assert edge["effect"] > 0
    assert edge["q_value"] <= 0.1  # nineteen drawn targets cannot say much more
    node = found.nodes.loc[found.nodes["importance"].idxmax()]
    assert (node["node"], node["direction"]) == ("c", 1)
    assert node["q_value"] <= 0.1
    assert "beyond chance" in found.summary()


def test_tables_hold_every_pair_and_column(found, model):
    assert len(found.edges) == 15
    assert list(found.edges.columns[:6]) == ["source", "target", "effect", "frequency", "p_value", "q_value"]
    assert found.nodes["node"].tolist() == list("abcdef")
    numbers = found.nodes[["importance_low", "importance", "importance_high"]].to_numpy()
    assert (np.diff(numbers, axis=1) >= 0).all()
    assert (numbers >= 0).all()
    for frame in (found.edges, found.nodes):
        assert frame["p_value"].between(0, 1).all()
        assert frame["frequency"].between(0, 1).all()
    assert (found.edges["q_value"].isna() == ~found.edges["in_graph"]).all()
    pairs = model.task_graph_[np.triu_indices(6, 1)]
    np.testing.assert_array_equal(found.edges["task_graph"], pairs)


@pytest.mark.slow
def test_a_single_column_alone_gives_no_edge(table):
    X, _ = table
    y = np.abs(X["a"]) + np.sin(2 * X["b"]) + 0.3 * np.random.default_rng(0).normal(size=len(X))
    control = PNNRegressor(n_members=2, max_epochs=8, random_state=0).fit(X, y)
    said = task_evidence(control, X, y, n_permutations=19, random_state=0)
    assert not (said.edges["q_value"] <= 0.05).any()
    assert "No edge is beyond chance" in said.summary()


def test_an_interrupted_run_goes_on(model, table, tmp_path):
    X, y = table[0].to_numpy(), table[1].to_numpy()
    rows, keys, store = TaskTable(X, y, np.arange(len(y)), y - y.mean()), fit_keys(3, 1), tmp_path / "fits.jsonl"
    network = evidence_network(model, 0).set_params(max_epochs=2)

    def stop(done, whole):
        if done == 5:
            raise KeyboardInterrupt

    def run(on_fit, seed=0):
        return run_fits(network, rows, keys, seed, None, store, on_fit)

    with pytest.raises(KeyboardInterrupt):
        run(stop)
    store.write_bytes(store.read_bytes()[:-7])  # the last line is torn
    seen, calls = [], []
    again = run(lambda *counts: seen.append(counts))
    assert (seen[0], seen[-1]) == ((4, 12), (12, 12))
    whole = run_fits(network, rows, keys, 0, None, None, None)
    assert again.keys() == whole.keys()
    for key in keys:
        np.testing.assert_array_equal(again[key], whole[key])
    assert run(lambda *counts: calls.append(counts)).keys() == whole.keys()
    assert calls == [(12, 12)]
    with pytest.raises(InputError, match="fits of another table, model or seed"):
        run(None, seed=1)
    with store.open("ab") as file:
        file.write(b'{"fit": "nodes null 0", "effects": 3}\n')
    with pytest.raises(InputError, match="Line 14 .* is no finished fit"):
        run(None)


@pytest.mark.slow
def test_workers_change_nothing(model, table, found):
    again = task_evidence(model, *table, n_permutations=19, random_state=0, n_jobs=2)
    pd.testing.assert_frame_equal(again.edges, found.edges)


@pytest.mark.slow
def test_two_classes_are_numbers(table):
    X, y = table
    labels = np.where(y > y.median(), "high", "low")
    classifier = PNNClassifier(n_members=2, max_epochs=3, random_state=0).fit(X, labels)
    said = task_evidence(classifier, X, labels, n_permutations=19, random_state=0)
    assert said.nodes.loc[said.nodes["p_value"].idxmin(), "node"] == "c"
    three = np.where(y > y.quantile(0.7), "top", labels)
    with pytest.raises(InputError, match="one class against the rest"):
        task_evidence(PNNClassifier(n_members=2, max_epochs=2).fit(X, three), X, three)


def test_people_are_drawn_whole():
    person = np.repeat(np.arange(40), 3)
    y = person + np.tile([0.0, 0.1, 0.2], 40)
    drawn = targets_of_others(y, person, np.random.default_rng(0))
    assert sorted(drawn) == sorted(y)
    assert not np.array_equal(drawn, y)
    assert (np.floor(drawn).reshape(40, 3) == np.floor(drawn).reshape(40, 3)[:, :1]).all()  # nobody is torn apart
    np.testing.assert_allclose(drawn - np.floor(drawn + 1e-9), np.tile([0.0, 0.1, 0.2], 40), atol=1e-9)


def test_people_of_different_size_stay_side_by_side():
    person = np.repeat(np.arange(30), np.arange(30) % 4 + 1)
    shuffled = np.random.default_rng(5).permutation(person)
    drawn = targets_of_others(shuffled.astype(float), shuffled, np.random.default_rng(0))
    assert sorted(drawn) == sorted(shuffled)
    blocks = drawn[np.argsort(shuffled, kind="stable")]
    assert np.count_nonzero(np.diff(blocks)) == 29


def test_the_residual_has_nothing_of_single_columns_left():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    single = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2]
    product = X[:, 0] * X[:, 1]
    residual, r2 = additive_residual(X, single + product + 0.1 * rng.normal(size=400), np.arange(400), 0)
    assert r2 == pytest.approx(single.var() / (single + product).var(), abs=0.15)
    assert np.corrcoef(residual, product)[0, 1] > 0.85
    assert abs(np.corrcoef(residual, single)[0, 1]) < 0.15


def test_every_fit_is_listed_once():
    keys = fit_keys(5, 2)
    assert len(keys) == len(set(keys)) == 2 * (1 + 5 + 4)
    runs = runs_of(keys, 2)
    assert sorted(key for run in runs for key in run) == sorted(keys)
    assert [len(run) for run in runs] == [2] * 10
    for run in runs:  # of the same rows
        assert len({(key.of == "half") * (1 + key.number) for key in run}) == 1


def test_who_shares_a_run_changes_nothing(model, table):
    X, y = table[0].to_numpy(), table[1].to_numpy()
    rows, keys = TaskTable(X, y, np.arange(len(y)), y - y.mean()), fit_keys(1, 1)[:4]
    network = evidence_network(model, 0).set_params(max_epochs=3)
    assert targets_in_a_run(network, rows) == 2

    def run(*chosen):
        return dict(run_fits_together(network, rows, chosen, 0, 2))

    for first, second in (keys[:2], keys[2:]):
        pair, turned, alone = run(first, second), run(second, first), run(first)
        other = run(first, keys[0] if first != keys[0] else keys[3])
        for again in (turned, alone, other):
            np.testing.assert_array_equal(again[first], pair[first])
        np.testing.assert_array_equal(turned[second], pair[second])
        assert np.ptp(pair[first]) > 0


def test_targets_that_share_a_run_are_fitted_as_if_alone(model, table):
    X, y = table
    network = evidence_network(model, 0).set_params(max_epochs=2)
    shared = network.start_training(X, y, other_targets=[y[::-1].to_numpy()])
    runs = [network.start_training(X, target, keep="last") for target in (y, y[::-1].to_numpy())]
    for run in (shared, *runs):
        while not run.done:
            run.advance()
    for together, alone in zip(shared.effects(), (run.effects()[0] for run in runs), strict=True):
        for part in ("nodes", "edges", "products"):
            np.testing.assert_allclose(getattr(together, part), getattr(alone, part), rtol=1e-3, atol=1e-4)


def test_rows_that_repeat_are_fitted_one_target_at_a_time(model, table):
    X, y = np.repeat(table[0].to_numpy()[:60], 2, axis=0), table[1].to_numpy()
    network = evidence_network(model, 0).set_params(max_epochs=1)
    assert targets_in_a_run(network, TaskTable(X, y, np.arange(120) // 2, y)) == 1
    with pytest.raises(InputError, match="fit these targets one by one"):
        network.start_training(X, y, other_targets=[np.repeat(y[:60], 2)])


def test_mistakes_get_a_sentence(model, table):
    X, y = table
    with pytest.raises(InputError, match="not the table that the model was fitted on"):
        task_evidence(model, X.iloc[:100], y.iloc[:100])
    with pytest.raises(InputError, match="not the table that the model was fitted on"):
        task_evidence(model, X + 1.0, y)
    with pytest.raises(ValueError, match="feature names"):
        task_evidence(model, X.rename(columns={"a": "z"}), y)
    with pytest.raises(InputError, match="at least 19"):
        task_evidence(model, X, y, n_permutations=5)
    with pytest.raises(InputError, match="one target per row"):
        task_evidence(model, X, y.iloc[:3])
    with pytest.raises(InputError, match="different people"):
        task_evidence(model, X, y, groups=np.arange(120) % 8)
    with pytest.raises(InputError, match="must be a PNNRegressor"):
        task_evidence("model", X, y)


def test_task_graphs_of_groups_are_compared(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    labels = np.repeat(["one", "two"], 60)
    y = np.where(labels == "one", 2.0, -2.0) * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120)

    class Quick(PNNRegressor):
        def __init__(self, n_members=2, random_state=None, max_epochs=6, readout="mlp"):
            super().__init__(n_members=n_members, random_state=random_state, max_epochs=max_epochs, readout=readout)

    monkeypatch.setattr("precisionnet.estimators.PNNRegressor", Quick)
    said = compare_graphs(X, labels, y=y, n_permutations=19, random_state=0)
    assert said.method == "task graphs"
    edge = said.edges.loc[said.edges["p_value"].idxmin()]
    assert {edge["source"], edge["target"]} == {"x0", "x1"}
    assert edge["difference"] > 0
    assert said.tests.set_index("test").loc["structure", "p_value"] <= 0.1
    with pytest.raises(InputError, match="at least 40"):
        compare_graphs(X[40:80], labels[40:80], y=y[40:80], n_permutations=19)
    with pytest.raises(InputError, match="one finite number per row"):
        compare_graphs(X, labels, y=y[:4], n_permutations=19)
