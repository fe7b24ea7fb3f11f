"""Fits to tables that are read piece by piece: moments, windows, folds, determinism, and what is kept of them."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pandas as pd
import pyarrow.dataset as arrow_dataset
import pytest

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.datasets.row_source import RowBlock, open_rows
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators import forecast, streaming, survey, windows
from precisionnet.estimators.rows import Scaler
from precisionnet.estimators.windows import FoldDealer, deal_windows
from precisionnet.workers import WorkerLostError

FEW = {"n_members": 2, "max_epochs": 4, "random_state": 0}


def make_table(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) @ np.array([[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]])
    table = pd.DataFrame(X + [0.0, 10.0, -3.0, 1e6], columns=list("abcd"))
    return table.assign(y=X[:, 0] - 2 * X[:, 1] + 0.1 * rng.standard_normal(n), who=np.arange(n) // 5)


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def streamed(table):
    return PNNRegressor(**FEW).fit_table([table], "y", columns=list("abcd"), window_rows=200)


def prepared(source, tmp_path, window_rows=200, seed=0, task="regression", **roles):
    model = (PNNRegressor if task == "regression" else PNNClassifier)(max_epochs=6)
    rows = open_rows(source, roles.pop("target", "y"), task, columns=list("abcd"), **roles)
    return streaming.prepare_table(rows, model.settings, tmp_path, window_rows, seed)


def test_a_table_of_fewer_than_two_windows_is_fitted_as_fit_does(table):
    few = table[:399].copy()
    X, y = few[list("abcd")], few["y"]
    ours = PNNRegressor(**FEW).fit_table([few[:100], few[100:]], "y", groups="who", window_rows=200)
    usual = PNNRegressor(**FEW).fit(X, y, groups=few["who"])
    np.testing.assert_array_equal(ours.predict(X), usual.predict(X))
    assert ours.target_name_ == "y"


def test_an_estimate_comes_before_the_training(table, tmp_path):
    """Epochs of twice as many rows take twice as many steps; a small table has the estimate of ``fit``."""
    few = table[:399]
    said = []
    model = PNNRegressor(**FEW | {"max_epochs": 1})
    model.fit_table([few], "y", columns=list("abcd"), window_rows=200, on_forecast=said.append)
    usual = model.forecast(few[list("abcd")], few["y"])
    assert (said[0].memory, said[0].sparse) == (usual.memory, usual.sparse)

    class Stop(Exception):
        pass

    def stop(coming):
        said.append(coming)
        raise Stop

    large = pd.concat([table] * 12)
    for rows in (1000, 4000):
        with pytest.raises(Stop):
            PNNRegressor().fit_table([large], "y", columns=list("abcd"), window_rows=rows, on_forecast=stop)
    assert said[2].seconds > 2.0 * said[1].seconds
    assert said[2].memory > said[1].memory


def test_moments_are_those_of_all_rows(table, streamed):
    X = table[list("abcd")].to_numpy()
    np.testing.assert_allclose(streamed.fitted.scaler.mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(streamed.fitted.scaler.scale, X.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(streamed.covariance_, np.corrcoef(X.T), atol=1e-9)
    np.testing.assert_allclose(float(streamed.fitted.target.scaler.scale), table["y"].std(ddof=0), rtol=1e-12)
    np.testing.assert_allclose(streamed.l1_penalty_, np.sqrt(np.log(4) / 900))
    np.testing.assert_allclose(streamed.fitted.center, 0.0, atol=1e-9)
    assert streamed.n_rows_ == {"training": 900, "validation": 0}


def test_the_fit_learns_and_knows_its_error(table, streamed):
    fresh = make_table(400, seed=1)
    error = np.abs(streamed.predict(fresh[list("abcd")]) - fresh["y"]).mean()
    assert error < 0.5 * fresh["y"].abs().mean()
    known = streamed.oob_folds_ >= 0
    assert 0 < known.sum() < len(known) == 200
    own = np.abs(streamed.oob_prediction_[known] - table["y"].to_numpy()[streamed.oob_row_ids_[known]]).mean()
    assert streamed.oob_mae_ == pytest.approx(own)
    low, high = streamed.predict_interval(fresh[list("abcd")], 0.8).T
    assert (low < high).all()


def test_same_seed_same_model_whatever_the_source(table, streamed, tmp_path):
    columns = list("abcd")
    table.to_parquet(tmp_path / "t.parquet", row_group_size=77)
    batches = [table[i : i + 123] for i in range(0, len(table), 123)]
    for source in (tmp_path / "t.parquet", arrow_dataset.dataset(tmp_path / "t.parquet"), batches):
        again = PNNRegressor(**FEW).fit_table(source, "y", columns=columns, window_rows=200)
        np.testing.assert_array_equal(again.predict(table[columns]), streamed.predict(table[columns]))
    other = PNNRegressor(**FEW | {"random_state": 1}).fit_table([table], "y", columns=columns, window_rows=200)
    assert not np.array_equal(other.oob_row_ids_, streamed.oob_row_ids_)


def test_saved_and_loaded(table, streamed, tmp_path):
    streamed.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(table[list("abcd")]), streamed.predict(table[list("abcd")]))
    np.testing.assert_array_equal(again.oob_row_ids_, streamed.oob_row_ids_)


@pytest.mark.parametrize("n_rows", [400, 401, 599, 900])
def test_windows_hold_every_row_once(n_rows, tmp_path):
    """At the edges of window sizes, too."""
    table = make_table(n_rows)
    data = prepared([table], tmp_path)
    found = data.whole.learned_windows(data.target)
    assert found.n_windows == n_rows // 200
    rows = [found.of_epoch(epoch + 1) for epoch in range(found.n_windows)]
    y = np.concatenate([one.y for one, _ in rows])
    np.testing.assert_allclose(np.sort(y), np.sort(data.target.tensor(table["y"].to_numpy()).float()), atol=1e-6)
    again, _ = found.of_epoch(found.n_windows + 1)
    np.testing.assert_array_equal(again.y, rows[0][0].y)


def test_more_rows_than_are_learned_from_stay_out(tmp_path, table):
    """With six epochs there are six windows, whatever the table has: memory, disk and time stop growing."""
    data = prepared([table], tmp_path, window_rows=64)
    assert data.whole.windows.n_windows == 6
    kept = [len(data.whole.learned_windows(data.target).of_epoch(epoch)[1]) for epoch in range(1, 7)]
    assert 0.8 * 64 * 6 < sum(kept) < 1.2 * 64 * 6
    assert data.whole.weight == 900


def test_windows_of_a_sorted_table_are_alike(tmp_path, table):
    data = prepared([table.sort_values("y")], tmp_path)
    found = data.whole.learned_windows(data.target)
    means = [float(found.of_epoch(epoch)[0].y.mean()) for epoch in range(1, 5)]
    assert max(map(abs, means)) < 0.35  # in standard units, of about 225 rows each


@pytest.mark.parametrize("few", [True, False])
def test_groups_are_never_torn_apart(tmp_path, table, few, monkeypatch):
    if not few:
        monkeypatch.setattr(survey, "MOST_GROUPS", 3)
    data = prepared([table.assign(a=np.arange(900.0))], tmp_path, groups="who")  # a tells which row it is
    found = data.whole.learned_windows(data.target)
    fold_of: dict[int, int] = {}
    for epoch in range(1, found.n_windows + 1):
        rows, folds = found.of_epoch(epoch)
        number = np.rint(rows.x[:, 0, 0].double().numpy() * data.scaler.scale[0] + data.scaler.mean[0]).astype(int)
        for person, fold in zip(table["who"].to_numpy()[number], folds, strict=True):
            assert fold_of.setdefault(person, fold) == fold
    assert len(fold_of) == 180
    for number, rows in enumerate(data.whole.folds):
        people = table["who"].to_numpy()[data.row_ids[rows]]
        assert {fold_of[person] for person in people} <= {number}
    sizes = np.bincount(list(fold_of.values()))
    assert len(sizes) == len(data.whole.folds)
    assert sizes.max() - sizes.min() <= 1 if few else sizes.min() > 0


def test_folds_depend_on_the_seed_and_the_row_alone():
    rows = RowBlock(np.zeros((50, 1)), np.zeros(50), np.ones(50), None, np.arange(50))
    folds = FoldDealer(4, 3).folds(rows)
    np.testing.assert_array_equal(FoldDealer(4, 3).folds(rows.take(slice(10, 20))), folds[10:20])
    assert (FoldDealer(4, 4).folds(rows) != folds).any()
    counts = np.bincount(FoldDealer(4, 0).folds(RowBlock(None, None, None, None, np.arange(40_000))))
    assert counts.min() > 9_500


def test_weights_count_rows(tmp_path, table):
    """A weight of two is a row that stands there twice, as far as moments go; one of zero is no row."""
    weighted = table.assign(w=np.where(table.index < 100, 2.0, np.where(table.index < 200, 0.0, 1.0)))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = prepared([weighted], tmp_path / "a", sample_weight="w")
    two = prepared([pd.concat([table[:100], table[:100], table[200:]])], tmp_path / "b")
    np.testing.assert_allclose(one.emp_cov, two.emp_cov, atol=1e-9)
    assert one.whole.weight == two.whole.weight == 900
    assert one.n_rows["training"] == 800


def test_gaps_get_the_samples_medians(table, tmp_path):
    holes = table.assign(b=table["b"].where(table.index % 7 > 0))
    with pytest.raises(InputError, match="From row 1 on.*'b'"):
        PNNRegressor(**FEW).fit_table([holes], "y", columns=list("abcd"), window_rows=200)
    model = PNNRegressor(**FEW, missing="median").fit_table([holes], "y", columns=list("abcd"), window_rows=200)
    assert model.n_missing_.tolist() == [0, 129, 0, 0]
    filled = holes["b"].fillna(model.medians_[1])
    np.testing.assert_allclose(model.fitted.scaler.mean[1], filled.mean())
    assert np.isfinite(model.predict(holes[list("abcd")])).all()


def test_columns_without_values_are_counted_in_all_rows(table):
    model = PNNRegressor(**FEW, missing="median")
    with pytest.raises(InputError, match="'b' is missing .* in all 900 training rows"):
        model.fit_table([table.assign(b=np.nan)], "y", columns=list("abcd"), window_rows=64)
    almost = table["b"].where(table.index == 1)
    with pytest.raises(InputError, match="'b' is missing .* in all 64 rows drawn at random from 900"):
        model.fit_table([table.assign(b=almost)], "y", columns=list("abcd"), window_rows=64)


def test_rows_have_weight_where_a_weight_is_named(table):
    model, weighted = PNNRegressor(**FEW), table.assign(w=0.0)
    with pytest.raises(InputError, match="has no rows: pass one that has"):
        model.fit_table([table[:0]], "y", columns=list("abcd"))
    with pytest.raises(InputError, match="has no rows with weight: pass one that has"):
        model.fit_table([weighted], "y", columns=list("abcd"), sample_weight="w")


def test_classes(table, tmp_path):
    labelled = table.assign(kind=np.where(table["y"] > 1, "high", np.where(table["y"] < -1, "low", "middle")))
    model = PNNClassifier(**FEW).fit_table([labelled], "kind", columns=list("abcd"), window_rows=200)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert model.score(labelled[list("abcd")], labelled["kind"]) > 0.6
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == ["high", "low", "middle"]
    with pytest.raises(InputError, match="only one class"):
        PNNClassifier(**FEW).fit_table([labelled.assign(kind="low")], "kind", columns=list("abcd"), window_rows=200)
    mixed = [labelled, labelled.assign(kind=3)]
    with pytest.raises(InputError, match="changes midway"):
        PNNClassifier(**FEW).fit_table(mixed, "kind", columns=list("abcd"), window_rows=200)


def test_constant_columns_and_targets(table):
    with pytest.warns(PrecisionNetWarning, match="'c' is constant"):
        model = PNNRegressor(**FEW).fit_table([table.assign(c=2.0)], "y", columns=list("abcd"), window_rows=200)
    assert np.count_nonzero(model.precision_[2]) == 1
    with pytest.raises(InputError, match="nothing to predict"):
        PNNRegressor(**FEW).fit_table([table.assign(y=2.0)], "y", columns=list("abcd"), window_rows=200)


def test_skewed_targets_are_learned_as_logarithms_only_where_all_rows_allow_it(table):
    grown = table.assign(y=np.exp(table["y"]))
    settings = FEW | {"n_members": 4, "max_epochs": 1}
    model = PNNRegressor(**settings).fit_table([grown], "y", columns=list("abcd"), window_rows=200)
    assert model.target_scale_ == "log"
    outside = np.setdiff1d(np.arange(900), model.oob_row_ids_)[0]  # a row that the sample does not have
    mixed = grown.assign(y=grown["y"].where(grown.index != outside, -1.0))
    model = PNNRegressor(**settings).fit_table([mixed], "y", columns=list("abcd"), window_rows=200)
    assert model.target_scale_ == "linear"
    assert model.calibration_.limits == (-np.inf, np.inf)
    assert model.fitted.reference.target_range[0] == -1.0


@pytest.mark.parametrize(
    ("parameters", "options", "said"),
    [
        ({"recipe": "paper"}, {}, "recipe='standard'"),
        ({"validation_fraction": 0.2}, {}, "validation_fraction"),
        ({"missing": "indicator"}, {}, "missing='median'"),
        ({"warm_start": True}, {}, "partial_fit"),
        ({"support": "sparse"}, {"window_rows": 200}, "set support='dense', .* or use fit"),
        ({}, {"window_rows": 3}, "window_rows"),
        ({}, {"columns": "z"}, "no column 'z'"),
        ({}, {"target": 3}, "target must name"),
    ],
)
def test_refusals_leave_no_model(table, parameters, options, said):
    model = PNNRegressor(**parameters)
    with pytest.raises(InputError, match=said):
        model.fit_table([table], **{"target": "y", "columns": list("abcd")} | options)
    assert not hasattr(model, "_fitted")


def test_a_source_that_changes_between_passes_is_refused(table, tmp_path):
    class Shrinking:
        left = 900

        def __iter__(self):
            self.left -= 10
            return iter([table[: self.left]])

    with pytest.raises(InputError, match="the second time"):
        prepared(Shrinking(), tmp_path)


def test_a_full_disk_is_a_sentence(table, tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "SPARE_DISK", 2**70)
    with pytest.raises(InputError, match="TMPDIR"):
        prepared([table], tmp_path)


def test_empty_windows_are_no_problem_for_dealing(tmp_path, table):
    rows = open_rows([table[:100]], "y", "regression", columns=list("abcd"))
    found = deal_windows(
        rows, tmp_path, n_rows=100, n_windows=1, window_rows=64, seed=0, dealer=FoldDealer(2, 0),
        scaler=Scaler(np.zeros(4), np.ones(4)), middle=None, classes=None, dtype="float64", device="cpu",
    )  # fmt: skip
    assert found.n_windows == 1


@pytest.mark.slow
def test_a_dask_frame_is_surveyed_where_its_partitions_are(table, streamed):
    dask_frame = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=3)
    rows = open_rows(dask_frame, "y", "regression", columns=list("abcd"))
    assert len(pickle.dumps(rows.without_rows())) < 5_000  # what travels to a partition holds no other partition
    model = PNNRegressor(**FEW).fit_table(dask_frame, "y", columns=list("abcd"), window_rows=200)
    np.testing.assert_allclose(model.covariance_, streamed.covariance_, atol=1e-9)
    assert model.n_rows_ == streamed.n_rows_
    assert np.isfinite(model.predict(table[list("abcd")])).all()
    broken = pytest.importorskip("dask.dataframe").from_pandas(table.assign(y=np.nan), npartitions=3)
    with pytest.raises(InputError, match="'y' is missing"):
        PNNRegressor(**FEW).fit_table(broken, "y", columns=list("abcd"), window_rows=200)


def test_a_survey_of_partitions_brings_one_sample_here(table):
    """Not that of every partition, which together may be the whole table."""
    frame = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=9)
    rows = open_rows(frame, "y", "regression", columns=list("abcd"))
    found = survey.survey(rows, 50, 0, "error")
    assert len(found.sample) == 50
    assert found.n_rows == len(table)
    np.testing.assert_allclose(found.moments.covariance, np.cov(table[list("abcd")].T, bias=True), atol=1e-9)
    part = survey._survey_part(50, 0, "error", None, rows.without_rows(), rows._part_blocks(table[:100], 0))
    assert len(pickle.dumps(survey._together(50, part, None, part))) < 2 * len(pickle.dumps(part))
    assert survey._together(50, None, None) is None


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_a_cluster_that_cannot_read_a_frame_is_a_sentence(ends, table, tmp_path, monkeypatch):
    """Workers that end with a partition, and workers without the package."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    if not ends:
        (tmp_path / "precisionnet.py").write_text("raise ImportError('not here')")
        monkeypatch.syspath_prepend(tmp_path)  # a new process starts with the path of this one
    part = dask.delayed(_ending if ends else make_table)()
    frame = pytest.importorskip("dask.dataframe").from_delayed([part], meta=table.iloc[:0], verify_meta=False)
    error, said = (WorkerLostError, "smaller partitions") if ends else (InputError, "cannot import precisionnet")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as running,
        distributed.Client(running.scheduler_address) as client,
    ):
        client.run_on_scheduler(_allow_no_failure)
        with pytest.raises(error, match=said):
            PNNRegressor(**FEW).fit_table(frame, "y", columns=list("abcd"), window_rows=200)


def _ending():
    os._exit(1)


def _allow_no_failure(dask_scheduler):
    dask_scheduler.allowed_failures = 0


@pytest.mark.slow
def test_several_kinds_are_about_as_good_as_in_memory():
    table, fresh = make_table(3000), make_table(2000, seed=1)
    X, columns = fresh[list("abcd")], list("abcd")
    streamed = PNNRegressor(random_state=0, n_jobs=2).fit_table([table], "y", columns=columns, window_rows=1000)
    usual = PNNRegressor(random_state=0).fit(table[columns], table["y"])
    errors = [np.abs(model.predict(X) - fresh["y"]).mean() for model in (streamed, usual)]
    assert errors[0] < 1.1 * errors[1]
    low, high = streamed.predict_interval(X).T
    assert 0.92 < ((low <= fresh["y"]) & (fresh["y"] <= high)).mean() < 0.99
    again = PNNRegressor(random_state=0).fit_table([table], "y", columns=columns, window_rows=1000)
    np.testing.assert_array_equal(again.predict(X), streamed.predict(X))  # whatever n_jobs is


def test_one_group_leaves_nothing_out_and_nearly_one_is_refused(table):
    options = {"target": "y", "columns": list("abcd"), "groups": "who", "window_rows": 200}
    model = PNNRegressor(**FEW).fit_table([table.assign(who="all")], **options)
    assert np.isnan(model.oob_mae_)
    assert model.calibration_ is None
    with pytest.raises(InputError, match="nearly all rows, .* 'who'"):
        PNNRegressor(**FEW).fit_table([table.assign(who=np.maximum(table.index - 896, 0))], **options)


@pytest.mark.filterwarnings("ignore:130 training rows")
def test_many_columns_are_refused_where_fit_would_be_sparse(rng, monkeypatch):
    wide = pd.DataFrame(rng.standard_normal((130, 1002))).rename(columns=str)
    with pytest.raises(InputError, match="1,001 columns .* support='dense'"):
        PNNRegressor().fit_table([wide], "0", window_rows=64)
    for free, remedy in ((2e8, "or fewer members"), (1e6, "or use fit with support='sparse'")):
        monkeypatch.setattr(forecast, "free_memory", lambda free=free: free)
        with pytest.raises(InputError, match=f"take fewer columns, {remedy}"):
            PNNRegressor(support="dense").fit_table([wide], "0", window_rows=64)


def test_rows_of_a_small_table_keep_their_numbers(table):
    few = table[:150].assign(times=np.arange(150) % 3)
    model = PNNRegressor(**FEW).fit_table([few], "y", columns=list("abcd"), sample_weight="times", window_rows=200)
    np.testing.assert_array_equal(model.oob_row_ids_, np.flatnonzero(few["times"] > 0))


def test_a_source_that_fails_is_no_full_disk(table):
    class Broken:
        passes = 0

        def __iter__(self):
            self.passes += 1
            yield table
            if self.passes == 4:  # after the names, the size and the survey
                raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        PNNRegressor(**FEW).fit_table(Broken(), "y", columns=list("abcd"), window_rows=200)
