"""Model folders: bit-identical, whole, without code, and refused when they are not right."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import ModelFileError, OutputError, PrecisionNetError
from precisionnet.estimators.files import document_hash


@pytest.fixture(scope="module")
def model(gaussian):
    return PNNRegressor(max_epochs=3, random_state=0, n_layers=2).fit(gaussian.X, gaussian.y)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("method", ["joint", "naive", "glasso", "sample", "vnn"])
@pytest.mark.parametrize("predict_on", ["task", "sparse"])
def test_save_load_predict_is_bit_identical(gaussian, tmp_path, method, predict_on):
    fitted = PNNRegressor(method, max_epochs=2, predict_on=predict_on, random_state=0).fit(gaussian.X, gaussian.y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(fitted.predict(gaussian.X), again.predict(gaussian.X))
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


def test_the_folder_holds_two_plain_files(folder):
    assert sorted(p.name for p in folder.iterdir()) == ["model.json", "model.safetensors"]
    document = json.loads((folder / "model.json").read_text())
    assert document["format_version"] == 2
    assert document["feature_names"] == [f"x{i}" for i in range(8)]
    assert load_file(folder / "model.safetensors")["precision_"].shape == (8, 8)


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
