"""Model files: bit-identical, one file, without code, and refused in a sentence when they are not right."""

from __future__ import annotations

import copy
import json
import os
import shutil
import socket
import stat
import struct

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save as save_tensors
from torch import nn

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError, ModelFileError, OutputError, PrecisionNetError
from precisionnet.estimators.columns import edge_frame
from precisionnet.estimators.files import FILE_NAME, packed, unpacked
from precisionnet.estimators.model_document import to_document
from precisionnet.estimators.model_reader import from_document
from precisionnet.estimators.summary import read_summary
from precisionnet.nn import PrecisionNetwork

FEW = {"n_members": 2, "max_epochs": 2, "random_state": 0}
PAPER = {"recipe": "paper", "max_epochs": 2, "weight_steps": 5, "random_state": 0}


@pytest.fixture(scope="module")
def model(gaussian):
    return PNNRegressor(n_members=8, max_epochs=2, random_state=0, n_layers=2).fit(gaussian.X, gaussian.y)


@pytest.fixture(scope="module")
def small(gaussian):
    return PNNRegressor(**FEW).fit(gaussian.X, gaussian.y)


@pytest.fixture(scope="module")
def classifier(gaussian, classes):
    return PNNClassifier(**FEW).fit(gaussian.X, classes)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "m"
    model.save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy, which a test may damage."""
    return shutil.copytree(saved, tmp_path / "m")


def same_model(a, b) -> bool:
    """Whether two models are the same in everything that a file holds."""
    one, other = (unpacked_of(model) for model in (a, b))
    return one[0] == other[0] and one[1] == other[1]


def unpacked_of(model):
    document, tensors = to_document(model)
    return json.dumps(document, default=float), {k: (v.dtype, v.shape, v.numpy().tobytes()) for k, v in tensors.items()}


@pytest.mark.parametrize("how", [
    {}, {"recipe": "paper"}, {"predict_on": "sparse"}, {"predict_on": "sparse", "recipe": "paper"}, {"method": "naive"},
    {"method": "naive", "recipe": "paper"}, {"method": "glasso"}, {"method": "sample"}, {"method": "vnn"},
    {"method": "vnn", "recipe": "paper"}, {"step1": "paper", "recipe": "paper"}, {"monotone": True, "recipe": "paper"}, {"scale_shift": False},
    {"standardize": False, "standardize_target": False}, {"n_filters": [4, 6], "order": [2, 3]}, {"batch_norm": False},
    {"readout": "average"}, {"validation_fraction": 0.25, "n_members": 1}, {"l1_penalty": 0.3, "loss": "huber"},
], ids=str)  # fmt: skip
def test_save_load_predict_is_bit_identical(gaussian, tmp_path, how):
    few = PAPER if how.get("recipe") == "paper" else FEW
    fitted = PNNRegressor(**few | how).fit(gaussian.X, gaussian.y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert same_model(again, fitted)
    assert again.get_params() == fitted.get_params()
    assert again.settings == fitted.settings
    assert again.history_.equals(fitted.history_)
    assert again.to_edge_frame().equals(fitted.to_edge_frame())
    np.testing.assert_array_equal(fitted.predict(gaussian.X), again.predict(gaussian.X))
    np.testing.assert_equal(again.oob_mae_, fitted.oob_mae_)
    if fitted.calibration_ is not None:
        np.testing.assert_array_equal(fitted.predict_interval(gaussian.X, 0.8), again.predict_interval(gaussian.X, 0.8))
        std = again.predict(gaussian.X, return_std=True)
        np.testing.assert_array_equal(fitted.predict(gaussian.X, return_std=True), std)


@pytest.mark.parametrize(
    "labels",
    [["low", "mid", "top"], [1, 2, 5], [1.0, 2.0, 5.0], np.array(["a", "b", "c"], dtype=object), [False, True, True]],
    ids=str,
)
def test_classes_survive(gaussian, classes, tmp_path, labels):
    y = np.asarray(labels)[np.searchsorted(["low", "mid", "top"], classes)]
    fitted = PNNClassifier(**FEW).fit(gaussian.X, y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.classes_.dtype.kind == fitted.classes_.dtype.kind
    np.testing.assert_array_equal(fitted.predict(gaussian.X), again.predict(gaussian.X))
    np.testing.assert_array_equal(fitted.predict_proba(gaussian.X), again.predict_proba(gaussian.X))
    np.testing.assert_array_equal(fitted.oob_decision_function_, again.oob_decision_function_)
    assert again.oob_log_loss_ == fitted.oob_log_loss_
    assert again.oob_accuracy_ == fitted.oob_accuracy_


def test_missing_values_survive(gaussian, tmp_path):
    holes = gaussian.X.mask(np.random.default_rng(1).random(gaussian.X.shape) < 0.1)
    fitted = PNNRegressor(**FEW, missing="median").fit(holes, gaussian.y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.medians_, fitted.medians_)
    np.testing.assert_array_equal(again.n_missing_, fitted.n_missing_)
    np.testing.assert_array_equal(again.predict(holes), fitted.predict(holes))


INDEXES = {
    "text": [f"sub-{i}" for i in range(120)],
    "numbers": np.arange(120)[::-1] + 2**40,
    "fractions": np.linspace(0, 1, 120),
    "times": pd.date_range("2020-01-01", periods=120),
    "pairs": pd.MultiIndex.from_product([["a", "b"], range(60)]),
    "mixed": [None if i == 3 else f"s{i}" if i % 2 else i for i in range(120)],
    "hostile": [f"\n\x1b[31m\u202e{i}" for i in range(120)],
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_out_of_fold_predictions_and_their_rows_survive(gaussian, tmp_path, index):
    fitted = PNNRegressor(**FEW).fit(gaussian.X.set_axis(pd.Index(index), axis=0), gaussian.y.to_numpy())
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.oob_prediction_, fitted.oob_prediction_)
    assert again.oob_row_ids_.dtype == fitted.oob_row_ids_.dtype
    assert again.oob_row_ids_.tolist() == fitted.oob_row_ids_.tolist()


def test_a_model_without_names_loads(gaussian, tmp_path):
    X = gaussian.X.to_numpy()
    fitted = PNNRegressor(**FEW).fit(X, gaussian.y.to_numpy())
    fitted.save(tmp_path / "deep" / "er" / "m")
    again = load(tmp_path / "deep" / "er" / "m")
    assert not hasattr(again, "feature_names_in_")
    assert again.target_name_ is None
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_what_runs_a_fit_is_kept_but_code_and_generators_are_not(gaussian, tmp_path):
    seen = []
    fitted = PNNRegressor(
        **FEW | {"random_state": np.random.RandomState(0)}, callbacks=[seen.append], n_jobs=1, warm_start=True
    )
    fitted.fit(gaussian.X, gaussian.y).save(tmp_path)
    again = load(tmp_path)
    assert again.get_params() == fitted.get_params() | {"callbacks": None, "random_state": None}
    again.fit(gaussian.X, gaussian.y)  # a warm start: the fold of each row is the same
    np.testing.assert_array_equal(np.isnan(again.oob_prediction_), np.isnan(fitted.oob_prediction_))


class Small(nn.Module):
    def __init__(self, n_nodes, n_outputs):
        super().__init__()
        self.linear = nn.Linear(n_nodes, n_outputs)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x, shift):
        return self.linear((shift @ x).squeeze(-1))


def test_a_network_of_ones_own_comes_back_with_its_function(gaussian, model, tmp_path):
    fitted = PNNRegressor(network=Small, **FEW).fit(gaussian.X, gaussian.y)
    fitted.save(tmp_path / "own")
    again = load(tmp_path / "own", network=Small)
    assert again.network is Small
    np.testing.assert_array_equal(again.predict(gaussian.X), fitted.predict(gaussian.X))
    with pytest.raises(ModelFileError, match="has a network of its own: pass network="):
        load(tmp_path / "own")
    for other in (
        lambda n, m: Small(n + 1, m),
        lambda n, m: PrecisionNetwork(n, n_outputs=m),
        lambda n: Small(n, 1),
        lambda n, m: 3,
    ):
        with pytest.raises(ModelFileError, match="does not fit the network that was given"):
            load(tmp_path / "own", network=other)
    model.save(tmp_path / "plain")
    with pytest.raises(ModelFileError, match="has no network of its own"):
        load(tmp_path / "plain", network=Small)
    with pytest.raises(InputError, match="cannot be saved"):
        fitted.set_params(network=None).save(tmp_path / "plain")  # and nothing is lost
    assert same_model(load(tmp_path / "plain"), model)


def test_the_folder_holds_one_plain_file(folder, model):
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    document, tensors = unpacked((folder / FILE_NAME).read_bytes())
    assert document["column_names"] == [f"x{i}" for i in range(8)]
    assert tensors["precision"].shape == (8, 8)
    assert tensors["member_matrices"].shape == (8, 8, 8)
    assert tensors["calibration.residual"].shape == (120,)


def test_the_output_folder_of_the_command_line_works(folder, model):
    (folder.parent / "out").mkdir()
    folder.rename(folder.parent / "out" / "model")
    assert same_model(load(folder.parent / "out"), model)


def test_saving_again_replaces_and_leaves_nothing_beside(folder, classifier):
    classifier.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["m"]
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    assert same_model(load(folder), classifier)


def test_modes_are_kept_and_new_files_have_the_usual_one(folder, model):
    place = folder / FILE_NAME
    os.umask(before := os.umask(0))
    assert stat.S_IMODE(place.stat().st_mode) == 0o666 & ~before
    for mode in (0o600, 0o640):
        place.chmod(mode)
        model.save(folder)
        assert stat.S_IMODE(place.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(folder, model):
    os.chown(folder / FILE_NAME, 12345, 23456)
    model.save(folder)
    status = (folder / FILE_NAME).stat()
    assert (status.st_uid, status.st_gid) == (12345, 23456)


def test_a_link_to_a_folder_or_a_file_stays_a_link(folder, model, classifier, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    classifier.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert same_model(load(folder), classifier)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE_NAME).symlink_to(folder / FILE_NAME)
    model.save(tmp_path / "other")
    assert (tmp_path / "other" / FILE_NAME).is_symlink()
    assert same_model(load(folder), model)


def test_a_folder_with_other_things_in_it_is_not_touched(model, folder, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / FILE_NAME).write_bytes(save_tensors({"a": torch.ones(2)}))
    (tmp_path / "earlier").mkdir()  # as it was before the first release
    (tmp_path / "earlier" / "model.json").write_text('{"format": "precisionnet-model"}')
    shutil.copy(folder / FILE_NAME, tmp_path / "earlier")
    for place in (tmp_path, tmp_path / "foreign", tmp_path / "earlier"):
        before = {path: path.read_bytes() for path in place.iterdir() if path.is_file()}
        with pytest.raises(OutputError, match="not an earlier output"):
            model.save(place)
        assert {path: path.read_bytes() for path in place.iterdir() if path.is_file()} == before


def test_a_file_in_the_way_is_an_error_in_a_sentence(model, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / FILE_NAME).mkdir(parents=True)
    for place in ("file", "file/below", "taken", "nul\0"):
        with pytest.raises(PrecisionNetError, match="Cannot write"):
            model.save(tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"]


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        PNNRegressor().save(tmp_path / "m")


def test_what_could_not_be_read_again_does_not_replace_a_good_model(folder, model, gaussian):
    broken = copy.deepcopy(model)
    broken.precision_[0, 0] = np.nan
    with pytest.raises(InputError, match="cannot be saved.*precision is not finite"):
        broken.save(folder)
    assert same_model(load(folder), model)


def test_what_was_set_since_the_fit_is_not_the_models(tmp_path, model):
    """The file holds the parameters that the model was fitted with, also where the new ones could not be fitted."""
    for given in ({"order": -1}, {"order": np.arange(3)}, {"recipe": "paper"}, {"n_layers": 2, "l1_scale": 7.0}):
        changed = copy.deepcopy(model).set_params(**given)
        changed.save(tmp_path)
        back = load(tmp_path)
        assert back.settings == back.fitted.settings == model.fitted.settings


def refused(folder, match="."):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def rewrite(folder, change):
    """Change the file as somebody would who knows how to make its hash fit again."""
    document, tensors = unpacked((folder / FILE_NAME).read_bytes())
    change(document, tensors)
    (folder / FILE_NAME).write_bytes(packed(document, tensors))


def header(text: str | bytes, rest: bytes = b"") -> bytes:
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text)) + text + rest


def metadata(blob, **changes):
    """The file with other metadata in its header, and the same tensors."""
    length = struct.unpack("<Q", blob[:8])[0]
    content = json.loads(blob[8 : 8 + length])
    content["__metadata__"] |= changes
    content["__metadata__"] = {key: value for key, value in content["__metadata__"].items() if value is not None}
    return header(json.dumps(content), blob[8 + length :])


def test_what_is_not_a_folder_with_a_model_is_refused(folder, tmp_path):
    refused(tmp_path / "nowhere", "not a model folder")
    refused(folder / FILE_NAME, "not a model folder")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop")
    with pytest.raises(ModelFileError, match=r"nul\\x00' is not a model folder"):
        load(tmp_path / "nul\0")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "not a model folder")


@pytest.mark.parametrize("what", ["fifo", "socket", "folder", "device", "link to nothing"])
def test_only_ordinary_files_are_read_and_nothing_waits(tmp_path, what):
    place = tmp_path / "m" / FILE_NAME
    place.parent.mkdir()
    if what == "fifo":
        os.mkfifo(place)
    elif what == "socket":
        before = os.getcwd()
        os.chdir(place.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(FILE_NAME)
        os.chdir(before)
    elif what == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero" if what == "device" else "nothing")
    refused(place.parent, "not an ordinary file|cannot be read")


HEADS = {
    "empty": lambda blob: b"",
    "short": lambda blob: blob[:5],
    "a header beyond the file": lambda blob: struct.pack("<Q", 2**40) + blob[8:],
    "a header beyond all bounds": lambda blob: b"\xff" * 8 + blob[8:],
    "truncated header": lambda blob: blob[:1000],
    "truncated tensors": lambda blob: blob[:-10],
    "more than it should be": lambda blob: blob + b"x",
    "not JSON": lambda blob: header("{"),
    "not text": lambda blob: header(b"\xff\xfe"),
    "deep": lambda blob: header("[" * 100_000),
    "deep inside": lambda blob: metadata(blob, document="[" * 100_000),
    "a list": lambda blob: header("[]"),
    "no metadata": lambda blob: save_tensors({"a": torch.ones(3)}),
    "metadata that are a list": lambda blob: header('{"__metadata__": []}'),
    "foreign metadata": lambda blob: save_tensors({"a": torch.ones(3)}, {"format": "pt"}),
    "a name twice": lambda blob: header('{"__metadata__": {"format": "precisionnet-model", "format": "x"}}'),
    "a future version": lambda blob: metadata(blob, format_version="99"),
    "no version": lambda blob: metadata(blob, format_version=None),
    "no hash": lambda blob: metadata(blob, sha256=None),
    "another hash": lambda blob: metadata(blob, sha256="0" * 64),
    "more metadata": lambda blob: metadata(blob, more="x"),
    "another document": lambda blob: metadata(blob, document="{}"),
    "no document": lambda blob: metadata(blob, document=None),
    "a document that is a number": lambda blob: metadata(blob, document=3),
    "tensors as large as the world": lambda blob: header('{"__metadata__": {"format": "precisionnet-model", "format_version": "1"}, "a": {"dtype": "F64", "shape": [99999999999, 99999999], "data_offsets": [0, 8]}}', b"x" * 8),
}  # fmt: skip


@pytest.mark.parametrize("how", list(HEADS))
def test_files_that_are_not_whole_are_refused_in_a_sentence(folder, how):
    (folder / FILE_NAME).write_bytes(HEADS[how]((folder / FILE_NAME).read_bytes()))
    refused(folder)


def test_a_huge_foreign_file_is_refused_by_its_head(folder):
    (folder / FILE_NAME).write_bytes(header('{"__metadata__": {"format": "pt"}}'))
    os.truncate(folder / FILE_NAME, 2**33)  # takes no room on the disk
    refused(folder, "not written by precisionnet")
    os.truncate(folder / FILE_NAME, 2**40)
    refused(folder, "larger than")


def scaled(name, factor):
    return lambda d, t: t.update({name: t[name] * factor})


def tensor(name, change):
    return lambda d, t: t.update({name: change(t[name]).contiguous()})


def put(name, place, value):
    """One number of a tensor, and its mirror image in a matrix."""

    def change(d, t):
        t[name][place] = value
        if t[name].ndim > 1 and name != "history":
            t[name][(*place[:-2], place[-1], place[-2])] = value

    return change


def field(*path, to):
    def change(document, tensors):
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = to

    return change


TAMPERED = {
    "another width": field("settings", "n_filters", to=3),
    "a width as large as the world": field("settings", "n_filters", to=[4096] * 2),
    "a thousand layers": field("settings", "n_filters", to=[8] * 5000),
    "another activation that is none": field("settings", "activation", to="os.system"),
    "another number of columns": field("n_features", to=5),
    "millions of columns": field("n_features", to=10**6),
    "an unknown class": field("estimator", to="os.system"),
    "the other class": field("estimator", to="PNNClassifier"),
    "an unknown parameter": lambda d, t: d["parameters"].update(x=1),
    "a parameter less": lambda d, t: d["parameters"].pop("order"),
    "a bad parameter": field("parameters", "order", to=-1),
    "a parameter without effect": field("parameters", "step1", to="paper"),
    "a deep parameter": field("settings", "n_filters", to=json.loads("[" * 500 + "]" * 500)),
    "a device without numbers": field("settings", "device", to="meta"),
    "a device that is none": field("parameters", "device", to="toaster"),
    "a seed that is none": field("parameters", "random_state", to=-1),
    "no network flag": field("own_network", to=None),
    "a missing part": lambda d, t: d.pop("settings"),
    "a setting less": lambda d, t: d["settings"].pop("support"),
    "no word on its support": lambda d, t: d["parameters"].pop("support"),
    "no word on an encoder": lambda d, t: d.pop("encoder"),
    "a network too few": tensor("member_matrices", lambda v: v[:7]),
    "no network at all": tensor("member_matrices", lambda v: v[:0]),
    "fewer members": field("settings", "n_members", to=7),
    "networks for other columns": tensor("member_matrices", lambda v: v[:, :5, :5]),
    "a matrix that is not symmetric": lambda d, t: t["precision"].__setitem__((0, 1), 5.0),
    "a network's matrix that is not": lambda d, t: t["member_matrices"].__setitem__((3, 0, 1), 5.0),
    "an indefinite precision": put("precision", (0, 1), 1e3),
    "a negative precision": scaled("precision", -1.0),
    "a negative covariance": scaled("covariance", -1.0),
    "an infinite precision": put("precision", (0, 0), np.inf),
    "a covariance that is not a number": put("covariance", (1, 1), np.nan),
    "another mean matrix": scaled("task_precision", 2.0),
    "a matrix of single precision": tensor("precision", torch.Tensor.float),
    "no scale": field("scale", to=0.0),
    "a negative scale": field("scale", to=-1.0),
    "a tiny scale": field("scale", to=1e-299),
    "a scale that is a word": field("scale", to="1"),
    "a scale that is true": field("scale", to=True),
    "no l1 penalty": field("l1_penalty", to=None),
    "a bound below zero": field("spectral_bound", to=-3.0),
    "scales of zero": scaled("scaler.scale", 0.0),
    "scales below zero": scaled("scaler.scale", -1.0),
    "means that are infinite": scaled("scaler.mean", np.inf),
    "a target's scale below zero": scaled("target.scale", -1.0),
    "a target's scale of zero": scaled("target.scale", 0.0),
    "a target's mean for each row": tensor("target.mean", lambda v: v.repeat(3)),
    "a missing tensor": lambda d, t: t.pop("covariance"),
    "a tensor more": lambda d, t: t.update(more=torch.ones(3)),
    "a weight less": lambda d, t: t.pop("network.0.layers.0.filter.weight"),
    "a weight more": lambda d, t: t.update({"network.0.more": torch.ones(3)}),
    "a network more": lambda d, t: t.update({k.replace("network.0", "network.8"): v.clone() for k, v in t.items()}),
    "weights that are not numbers": scaled("network.5.layers.1.filter.weight", np.nan),
    "weights without bounds": scaled("network.5.layers.1.filter.weight", 1e305),
    "a negative variance": scaled("network.2.layers.0.norm.running_var", -1.0),
    "the epoch 0": field("best_epoch", to=0),
    "an epoch that was not run": field("best_epoch", to=3),
    "half an epoch": field("best_epoch", to=1.5),
    "no history": tensor("history", lambda v: v[:0]),
    "too many epochs": tensor("history", lambda v: v.repeat(30, 1)),
    "a column less": lambda d, t: d["history_columns"].pop(),
    "a column twice": lambda d, t: d["history_columns"].__setitem__(1, "epoch"),
    "a column that is a list": lambda d, t: d["history_columns"].__setitem__(1, []),
    "other columns": lambda d, t: d.update(history_columns=[f"c{i}" for i in range(len(d["history_columns"]))]),
    "an infinite history": put("history", (0, 2), np.inf),
    "other epochs": put("history", (0, 0), 7.0),
    "a residual too few": tensor("calibration.residual", lambda v: v[1:]),
    "no residuals": lambda d, t: t.update({k: v[:0] for k, v in t.items() if k.startswith("calib")}),
    "a part of them missing": lambda d, t: t.pop("calibration.weight"),
    "only a part of them": lambda d, t: t.pop("calibration.fold"),
    "residuals of nobody": tensor("calibration.fold", lambda v: v + 1),
    "residuals below zero": scaled("calibration.residual", -1.0),
    "residuals that are no numbers": scaled("calibration.residual", np.nan),
    "weights of zero": scaled("calibration.weight", 0.0),
    "limits that are no numbers": scaled("calibration.limits", 0.0),
    "an error that is no number": field("errors", "oob_mae_", to="small"),
    "an error below zero": field("errors", "oob_mae_", to=-1.0),
    "errors of a classifier": field("errors", to={"oob_accuracy_": 1.0, "oob_log_loss_": 0.0}),
    "infinite predictions": scaled("out_of_fold", np.inf),
    "a prediction less": tensor("out_of_fold", lambda v: v[1:]),
    "an id less": tensor("row_ids", lambda v: v[1:]),
    "ids of another type": field("row_ids", "dtype", to="<U1000000000"),
    "ids that are code": field("row_ids", "dtype", to="O"),
    "ids that do not fit": field("row_ids", "dtype", to="|b1"),
    "ids that are no text": field("row_ids", "dtype", to="object"),
    "a fold less": lambda d, t: t.pop("folds.3"),
    "a fold twice": lambda d, t: t.update({"folds.3": t["folds.2"].clone()}),
    "a fold beyond the rows": tensor("folds.1", lambda v: v + 1000),
    "a fold below them": tensor("folds.1", lambda v: v - 1000),
    "the number of folds": field("n_folds", to=10**15),
    "too few names": field("column_names", to=["a"]),
    "names twice": field("column_names", to=["a"] * 8),
    "names that are numbers": field("column_names", to=list(range(8))),
    "names that are lists": field("column_names", to=[[]] * 8),
    "a target's name that is a number": field("target_name", to=3),
    "classes of a number": field("classes", to={"dtype": "<i8", "values": [0, 1]}),
    "rows that are none": field("n_rows", to=None),
    "rows that are too few": field("n_rows", "training", to=2),
    "rows below zero": field("n_rows", "validation", to=-1),
    "medians without need": lambda d, t: t.update(medians=torch.zeros(8, dtype=torch.float64)),
    "medians needed": field("settings", "missing", to="median"),
    "counts below zero": tensor("n_missing", lambda v: v - 1),
    "counts that cannot be": tensor("n_missing", lambda v: v + 1),
    "counts for other columns": tensor("n_missing", lambda v: v[1:]),
    "a hash that is none": field("rows_hash", to="x"),
}  # fmt: skip


@pytest.mark.parametrize("how", list(TAMPERED))
def test_files_that_contradict_themselves_are_refused_in_a_sentence(folder, how):
    rewrite(folder, TAMPERED[how])
    refused(folder, "contradicts itself|network of its own")


@pytest.mark.parametrize("to", [
    None, {}, {"dtype": "str"}, {"dtype": "str", "values": "ab"}, {"dtype": "str", "values": ["a"]},
    {"dtype": "str", "values": ["b", "a", "c"]}, {"dtype": "str", "values": ["a", "a", "b"]},
    {"dtype": "str", "values": ["a", "b" * 10**6, *"defghij"] * 10}, {"dtype": "str", "values": ["a", "b", 3]},
    {"dtype": "<i8", "values": [1, 2, 2**70]}, {"dtype": "|i1", "values": [1, 2, 300]}, {"dtype": "<U9", "values": ["a", "b", "c"]},
    {"dtype": "<i8", "values": [1, 2]}, {"dtype": "<i8", "values": [1, 2, 3, 4]}, {"dtype": "object", "values": [[], {}, None]},
    {"dtype": "O", "values": ["a", "b", "c"]}, {"dtype": "<f8", "values": [1.0, 2.0, "inf"]}, {"dtype": "<M8[s]", "values": [1, 2, 3]},
    {"dtype": "object", "values": ["a", 1, 2.0]},
], ids=lambda to: str(to)[:60])  # fmt: skip
def test_classes_that_cannot_be_are_refused(classifier, tmp_path, to):
    classifier.save(tmp_path)
    rewrite(tmp_path, field("classes", to=to))
    refused(tmp_path, "contradicts itself")


@pytest.mark.parametrize(
    "change",
    [scaled("out_of_fold", 2.0), field("errors", "oob_accuracy_", to=1.5), tensor("out_of_fold", lambda v: v[:, 1:])],
)
def test_probabilities_that_cannot_be_are_refused(classifier, tmp_path, change):
    classifier.save(tmp_path)
    rewrite(tmp_path, change)
    refused(tmp_path, "contradicts itself")


@pytest.mark.parametrize(
    "change", [scaled("medians", np.nan), tensor("medians", lambda v: v[:3]), lambda d, t: t.pop("medians")]
)
def test_medians_that_cannot_be_are_refused(gaussian, tmp_path, change):
    fitted = PNNRegressor(**FEW, missing="median").fit(gaussian.X, gaussian.y)
    fitted.save(tmp_path)
    rewrite(tmp_path, change)
    refused(tmp_path, "contradicts itself")


def assert_one_line(error):
    assert "\n" not in str(error)


def outcome(folder, expected, X):
    """A sentence, or the same model."""
    try:
        again = load(folder)
    except ModelFileError as error:
        assert_one_line(error)
        return "refused"
    assert same_model(again, expected)
    np.testing.assert_array_equal(again.predict(X), expected.predict(X))
    return "same"


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_and_cuts_are_refused_or_change_nothing(folder, model, gaussian, seed):
    draw = np.random.default_rng(seed)
    whole = (folder / FILE_NAME).read_bytes()
    seen = set()
    for _ in range(60):
        blob = bytearray(whole)
        near_head = draw.random() < 0.5
        for _ in range(draw.integers(1, 4)):
            blob[draw.integers(3000 if near_head else len(blob))] = draw.integers(256)
        if draw.random() < 0.2:
            blob = blob[: draw.integers(len(blob))]
        (folder / FILE_NAME).write_bytes(blob)
        seen.add(outcome(folder, model, gaussian.X))
    assert "refused" in seen


def written_and_read(model):
    return from_document(*unpacked(packed(*to_document(model))), None)


NASTY = [
    None,
    True,
    -1,
    0,
    1,
    2**63,
    10**30,
    -0.5,
    1e-320,
    1e308,
    "",
    "a",
    "nan",
    "\ud800",
    [],
    [[]],
    [1, 2],
    {},
    {"a": 1},
]


def places(value, path=()):
    """The way to every field of a document, the first two of a list."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inside in items:
        yield (*path, key)
        yield from places(inside, (*path, key))


@pytest.mark.parametrize("kind", ["small", "classifier"])
@pytest.mark.parametrize(("every", "n_values"), [(2, 1), pytest.param(1, len(NASTY), marks=pytest.mark.slow)])
def test_any_field_with_any_nasty_value_never_ends_otherwise(request, gaussian, tmp_path, kind, every, n_values):
    """Every model that comes back predicts finite numbers, can be shown, saved and read again; all others are refused."""
    expected = request.getfixturevalue(kind)
    expected.save(tmp_path)
    document, tensors = unpacked((tmp_path / FILE_NAME).read_bytes())
    draw = np.random.default_rng(0)
    n_read = 0
    for path in list(places(document))[::every]:
        for value in draw.permutation(np.array(NASTY, dtype=object))[:n_values]:
            changed = copy.deepcopy(document)
            field(*path, to=value)(changed, None)
            (tmp_path / FILE_NAME).write_bytes(packed(changed, tensors))
            try:
                again = load(tmp_path)
            except ModelFileError as error:
                assert_one_line(error)
                continue
            n_read += 1
            X = gaussian.X if again.fitted.column_names else gaussian.X.to_numpy()
            X = (
                X
                if again.fitted.column_names is None
                else X.set_axis(pd.Index(again.feature_names_in_, dtype=object), axis=1)
            )
            output = again.predict_proba(X) if kind == "classifier" else again.predict(X)
            assert np.isfinite(output).all(), (path, value)
            assert same_model(written_and_read(again), again), (path, value)
    assert 0 < n_read < n_values * len(list(places(document)))


@pytest.mark.parametrize("kind", ["small", "classifier"])
@pytest.mark.parametrize("n_values", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_any_tensor_with_a_nasty_number_never_ends_otherwise(request, gaussian, tmp_path, kind, n_values):
    """As above; what comes back has finite predictions, or says of which row it has none."""
    request.getfixturevalue(kind).save(tmp_path)
    document, tensors = unpacked((tmp_path / FILE_NAME).read_bytes())
    draw = np.random.default_rng(0)
    for name in [name for name in tensors if not name.startswith(("network.", "folds.")) or ".0" in name]:
        for value in draw.permutation([np.nan, np.inf, -1.0, 1e300])[:n_values]:
            changed = {key: one.clone() for key, one in tensors.items()}
            flat = changed[name].view(-1)
            if not len(flat) or (not flat.is_floating_point() and abs(value) != 1.0):
                continue
            flat[int(draw.integers(len(flat)))] = value
            (tmp_path / FILE_NAME).write_bytes(packed(document, changed))
            try:
                again = load(tmp_path)
                predicted = again.predict_proba(gaussian.X) if kind == "classifier" else again.predict(gaussian.X)
                assert np.isfinite(predicted).all(), (name, value)
            except (ModelFileError, InputError) as error:
                assert_one_line(error)


def test_a_summary_is_what_the_model_says_of_itself(folder, model):
    """Read without torch, from the same file."""
    summary = read_summary(folder)
    np.testing.assert_array_equal(summary.precision, model.precision_)
    assert list(summary.blocks.names) == model.feature_names_in_.tolist()
    assert summary.settings == model.settings
    assert summary.n_networks == len(model.networks_)
    assert summary.errors["oob_mae_"] == pytest.approx(model.oob_mae_, nan_ok=True)
    pd.testing.assert_frame_equal(edge_frame(summary.precision, summary.blocks), model.to_edge_frame())


def test_a_summary_of_a_mixed_table_has_one_node_per_column(gaussian, tmp_path):
    X = gaussian.X.assign(city=np.array(["Oslo", "Bergen", "Rome"])[np.arange(len(gaussian.X)) % 3])
    model = PNNRegressor(**FEW).fit(X, gaussian.y)
    model.save(tmp_path / "m")
    summary = read_summary(tmp_path / "m")
    assert len(summary.precision) == len(summary.blocks) + 1
    assert summary.blocks.names == model.fitted.blocks.names
    pd.testing.assert_frame_equal(edge_frame(summary.precision, summary.blocks), model.to_edge_frame())


@pytest.mark.parametrize("where", [0.3, 0.7, 0.99])
def test_a_summary_of_a_damaged_file_is_refused(folder, where):
    path = folder / FILE_NAME
    blob = bytearray(path.read_bytes())
    blob[int(where * len(blob))] ^= 1
    path.write_bytes(blob)
    with pytest.raises(ModelFileError, match="hash|safetensors|JSON|written by"):
        read_summary(folder)


def test_a_summary_of_a_contradictory_file_is_refused(folder):
    path = folder / FILE_NAME
    for name, value in (
        ("best_epoch", 10**6),
        ("n_rows", {}),
        ("column_names", ["a"]),
        ("estimator", "Oracle"),
        ("encoder", 3),
    ):
        document, tensors = unpacked(path.read_bytes())
        path.write_bytes(packed(document | {name: value}, tensors))
        with pytest.raises(ModelFileError, match="contradicts itself"):
            read_summary(folder)
        path.write_bytes(packed(document, tensors))
