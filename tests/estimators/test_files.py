"""Model folders: bit-identical, whole, without code, and refused when they are not right."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError, ModelFileError, OutputError, PrecisionNetError
from precisionnet.estimators.files import document_hash
from precisionnet.parameters import settled


@pytest.fixture(scope="module")
def model(gaussian):
    return PNNRegressor(max_epochs=3, random_state=0, n_layers=2).fit(gaussian.X, gaussian.y)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("method", ["joint", "naive", "glasso", "sample", "vnn"])
@pytest.mark.parametrize("predict_on", ["task", "sparse"])
@pytest.mark.parametrize("recipe", ["standard", "paper"])
def test_save_load_predict_is_bit_identical(gaussian, tmp_path, method, predict_on, recipe):
    fitted = PNNRegressor(method, recipe=recipe, max_epochs=2, predict_on=predict_on, random_state=0)
    fitted.fit(gaussian.X, gaussian.y).save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(fitted.predict(gaussian.X), again.predict(gaussian.X))
    np.testing.assert_array_equal(fitted.predict_interval(gaussian.X), again.predict_interval(gaussian.X))
    np.testing.assert_array_equal(
        fitted.predict(gaussian.X, return_std=True), again.predict(gaussian.X, return_std=True)
    )
    np.testing.assert_equal(again.oob_mae_, fitted.oob_mae_)
    assert len(again.networks_) == (8 if recipe == "standard" else 1)
    assert again.get_params() == fitted.get_params()
    assert again.history_.equals(fitted.history_)
    assert again.to_edge_frame().equals(fitted.to_edge_frame())


@pytest.mark.parametrize(
    "labels", [["low", "mid", "top"], [1, 2, 5], [1.0, 2.0, 5.0], np.array(["a", "b", "c"], dtype=object)]
)
def test_classes_survive(gaussian, classes, tmp_path, labels):
    y = np.asarray(labels)[np.searchsorted(["low", "mid", "top"], classes)]
    fitted = PNNClassifier(max_epochs=2, random_state=0).fit(gaussian.X, y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.classes_.dtype.kind == fitted.classes_.dtype.kind
    np.testing.assert_array_equal(fitted.predict(gaussian.X), again.predict(gaussian.X))
    np.testing.assert_array_equal(fitted.predict_proba(gaussian.X), again.predict_proba(gaussian.X))
    assert again.oob_log_loss_ == fitted.oob_log_loss_
    assert again.oob_accuracy_ == fitted.oob_accuracy_


def test_the_folder_holds_two_plain_files(folder):
    assert sorted(p.name for p in folder.iterdir()) == ["model.json", "model.safetensors"]
    document = json.loads((folder / "model.json").read_text())
    assert document["format_version"] == 3
    assert document["feature_names"] == [f"x{i}" for i in range(8)]
    tensors = load_file(folder / "model.safetensors")
    assert tensors["precision_"].shape == (8, 8)
    assert tensors["shifts_"].shape == (8, 8, 8)
    assert {name.split(".")[1] for name in tensors if name.startswith("network.")} == set("01234567")
    assert tensors["calibration.residual"].shape == (120,)


def test_saving_again_replaces_and_leaves_nothing_beside(model, folder):
    model.save(folder)
    assert [p.name for p in folder.parent.iterdir()] == ["m"]
    load(folder)


def test_a_model_without_names_loads(gaussian, tmp_path):
    fitted = PNNRegressor(max_epochs=1, random_state=0).fit(gaussian.X.to_numpy(), gaussian.y.to_numpy())
    fitted.save(tmp_path / "deep" / "er" / "m")
    again = load(tmp_path / "deep" / "er" / "m")
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(gaussian.X.to_numpy()), fitted.predict(gaussian.X.to_numpy()))


def edit(folder, change, rehash=True):
    """Change the document as someone would who knows how to make its hash fit again."""
    path = folder / "model.json"
    document = json.loads(path.read_text())
    change(document)
    if rehash and document["sha256"]:
        document["sha256"]["model.json"] = document_hash(document)
    path.write_text(json.dumps(document))


def edit_tensors(folder, change):
    """Change the tensors, and make the hashes fit again."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    blob = save(tensors)
    (folder / "model.safetensors").write_bytes(blob)
    edit(folder, lambda d: d["sha256"].update({"model.safetensors": hashlib.sha256(blob).hexdigest()}))


def set_tensor(name, change):
    return lambda f: edit_tensors(
        f, lambda tensors: tensors.update({name: np.ascontiguousarray(change(tensors[name]))})
    )


BROKEN = {
    "missing folder": (lambda f: shutil.rmtree(f), "not a model folder"),
    "no json": (lambda f: (f / "model.json").unlink(), "no model.json"),
    "no tensors": (lambda f: (f / "model.safetensors").unlink(), "missing or unreadable"),
    "truncated tensors": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-10]),
        "does not match the hash",
    ),
    "truncated json": (lambda f: (f / "model.json").write_text((f / "model.json").read_text()[:100]), "truncated or not JSON"),
    "foreign json": (lambda f: (f / "model.json").write_text('{"a": 1}'), "not written by precisionnet"),
    "a list": (lambda f: (f / "model.json").write_text("[]"), "not written by precisionnet"),
    "a future version": (lambda f: edit(f, lambda d: d.update(format_version=99)), "format version 99"),
    "no hash": (lambda f: edit(f, lambda d: d.update(sha256=None)), "does not match its own hash"),
    "an edit": (lambda f: edit(f, lambda d: d["parameters"].update(activation="tanh"), rehash=False), "its own hash"),
    "names in another order": (lambda f: edit(f, lambda d: d["feature_names"].reverse(), rehash=False), "its own hash"),
    "another width": (lambda f: edit(f, lambda d: d["parameters"].update(n_filters=3)), "contradicts itself"),
    "another number of columns": (lambda f: edit(f, lambda d: d["fitted"].update(n_features_in_=5)), "contradicts itself"),
    "an unknown class": (lambda f: edit(f, lambda d: d.update(estimator="os.system")), "contradicts itself"),
    "an unknown parameter": (lambda f: edit(f, lambda d: d["parameters"].update(x=1)), "contradicts itself"),
    "a bad parameter": (lambda f: edit(f, lambda d: d["parameters"].update(order=-1)), "contradicts itself"),
    "a missing part": (lambda f: edit(f, lambda d: d.pop("fitted")), "contradicts itself"),
    "a network too few": (set_tensor("shifts_", lambda v: v[:7]), "matrices have shape"),
    "no network at all": (set_tensor("shifts_", lambda v: v[:0]), "matrices have shape"),
    "networks for other columns": (set_tensor("shifts_", lambda v: v[:, :5, :5]), "matrices have shape"),
    "a residual too few": (set_tensor("calibration.residual", lambda v: v[1:]), "incomplete"),
    "no residuals": (lambda f: edit_tensors(f, lambda t: t.update({k: v[:0] for k, v in t.items() if k[:5] == "calib"})), "incomplete"),
    "a part of them missing": (lambda f: edit_tensors(f, lambda t: t.pop("calibration.weight")), "contradicts itself"),
    "residuals of nobody": (set_tensor("calibration.member", lambda v: v + 1), "out of range"),
    "residuals below zero": (set_tensor("calibration.residual", lambda v: -v), "out of range"),
    "residuals that are no numbers": (set_tensor("calibration.residual", lambda v: v * np.nan), "out of range"),
    "an error that is no number": (lambda f: edit(f, lambda d: d["out_of_bag"].update(oob_mae_="small")), "contradicts itself"),
    "too few names": (lambda f: edit(f, lambda d: d.update(feature_names=["a"])), "contradicts itself"),
}  # fmt: skip


@pytest.mark.parametrize("how", list(BROKEN))
def test_broken_folders_are_refused_in_a_sentence(folder, how):
    damage, sentence = BROKEN[how]
    damage(folder)
    with pytest.raises(ModelFileError, match=sentence) as caught:
        load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tensors_of_the_wrong_shape_are_refused(gaussian, tmp_path, folder):
    other = PNNRegressor(max_epochs=1, random_state=0).fit(gaussian.X.iloc[:, :5], gaussian.y)
    other.save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder / "model.safetensors")
    hashes = json.loads((tmp_path / "other" / "model.json").read_text())["sha256"]
    edit(folder, lambda d: d.update(sha256=hashes))
    with pytest.raises(ModelFileError, match="contradicts itself"):
        load(folder)


def test_a_folder_with_other_things_in_it_is_not_touched(model, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="not an earlier output"):
        model.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way_is_an_error_in_a_sentence(model, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(PrecisionNetError, match="Cannot write"):
            model.save(place)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        PNNRegressor().save(tmp_path / "m")


NEW_IN_VERSION_3 = ("recipe", "n_members", "loss", "input_noise", "batch_size", "theta_every")


def node_by_node(name, value):
    """A flattening readout took its 8 nodes with 8 features each node by node then."""
    if not name.endswith("readout.perceptron.0.weight"):
        return value
    return np.ascontiguousarray(value.reshape(-1, 8, 8).transpose(0, 2, 1).reshape(value.shape))


def to_version_2(folder):
    """As an older precisionnet wrote it: one network, the only recipe there was, every parameter with a value."""

    def unstack(tensors):
        for name in list(tensors):
            if name == "shifts_" or name.startswith("calibration."):
                del tensors[name]
            elif name.startswith("network.0."):
                tensors[name.replace("network.0.", "network.")] = node_by_node(name, tensors.pop(name))

    def rename(document):
        document["format_version"] = 2
        del document["out_of_bag"]
        values = settled(document["parameters"]) | {"random_state": 0}
        document["parameters"] = {name: value for name, value in values.items() if name not in NEW_IN_VERSION_3}

    edit_tensors(folder, unstack)
    edit(folder, rename)


@pytest.mark.parametrize(
    "how", [{}, {"predict_on": "sparse"}, {"method": "vnn", "predict_on": "sparse"}, {"scale_shift": False}]
)
def test_a_folder_with_one_network_still_loads(gaussian, tmp_path, how):
    fitted = PNNRegressor(recipe="paper", max_epochs=2, random_state=0, **how).fit(gaussian.X, gaussian.y)
    fitted.save(tmp_path / "m")
    to_version_2(tmp_path / "m")
    old = load(tmp_path / "m")
    assert old.recipe == "paper"
    assert old.settings == fitted.settings
    np.testing.assert_array_equal(old.predict(gaussian.X), fitted.predict(gaussian.X))
    assert np.isnan(old.oob_mae_)
    with pytest.raises(InputError, match="an older version saved it: fit it again"):
        old.predict_interval(gaussian.X)
    old.save(tmp_path / "new")
    np.testing.assert_array_equal(load(tmp_path / "new").predict(gaussian.X), fitted.predict(gaussian.X))
    assert json.loads((tmp_path / "new" / "model.json").read_text())["format_version"] == 3


def test_an_old_classifier_still_loads(gaussian, classes, tmp_path):
    fitted = PNNClassifier(recipe="paper", max_epochs=2, random_state=0).fit(gaussian.X, classes)
    fitted.save(tmp_path / "m")
    to_version_2(tmp_path / "m")
    old = load(tmp_path / "m")
    np.testing.assert_array_equal(old.predict_proba(gaussian.X), fitted.predict_proba(gaussian.X))
    assert np.isnan(old.oob_log_loss_)
