"""Splits and hashes: the same for everyone who asks with the same seed, and never a person on two sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation.protocol import data_hash, make_folds, repeat_seed, splits_frame


def people(n_people: int = 40, scans: int = 3) -> Dataset:
    rng = np.random.default_rng(0)
    index = pd.Index([f"scan-{i}" for i in range(n_people * scans)], name="scan")
    return Dataset(
        X=pd.DataFrame(rng.normal(size=(len(index), 4)), index=index, columns=list("abcd")),
        y=pd.Series(np.repeat(rng.uniform(20, 80, n_people), scans), index=index, name="age"),
        groups=pd.Series(np.repeat([f"p{i}" for i in range(n_people)], scans), index=index, name="person"),
    )


def classes(data: Dataset, labels) -> Dataset:
    return replace(data, y=pd.Series(labels, index=data.X.index, name="diagnosis"))


def test_every_row_is_on_one_side_and_every_person_too():
    data = people()
    for fold in make_folds(data, 4, 0, task="regression"):
        sides = (fold.train, fold.validation, fold.test)
        np.testing.assert_array_equal(np.sort(np.concatenate(sides)), np.arange(len(data)))
        who = [set(data.groups.iloc[side]) for side in sides]
        assert sum(len(names) for names in who) == data.groups.nunique()
        assert [len(side) for side in sides] == [72, 24, 24]


def test_folds_hang_on_seed_and_repeat_alone():
    data = people()
    few, many = (make_folds(data, repeats, 5, task="regression") for repeats in (2, 4))
    for one, same in zip(few, many, strict=False):
        assert (one.repeat, one.seed) == (same.repeat, same.seed)
        np.testing.assert_array_equal(one.test, same.test)
    other = make_folds(data, 2, 6, task="regression")
    assert not np.array_equal(few[0].test, other[0].test)
    assert not np.array_equal(few[0].test, few[1].test)


def test_seeds_of_repeats_differ_and_fit_every_library():
    seeds = {repeat_seed(seed, repeat) for seed in range(40) for repeat in range(40)}
    assert len(seeds) == 1600
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert all(isinstance(seed, int) for seed in seeds)


def test_fractions_are_followed():
    (fold,) = make_folds(people(), 1, 0, (0.5, 0.25, 0.25), task="regression")
    assert (len(fold.train), len(fold.validation), len(fold.test)) == (60, 30, 30)


def test_a_class_that_nobody_could_learn_is_refused():
    """All rows of the class belong to one person, who is somewhere else in most repeats."""
    data = people()
    rare = classes(data, np.where(data.groups == "p7", "rare", "common"))
    with pytest.raises(InputError, match="In repeat . no row of class 'rare' is left to learn from"):
        make_folds(rare, 10, 0, task="classification")
    half = classes(data, np.where(np.arange(len(data)) // 3 % 2, "yes", "no"))
    assert len(make_folds(half, 10, 0, task="classification")) == 10


def test_too_few_rows_or_repeats_are_refused():
    with pytest.raises(InputError, match="9 rows are too few"):
        make_folds(people(9, 1), 1, 0, task="regression")
    with pytest.raises(InputError, match="repeats must be a whole number, at least 1"):
        make_folds(people(), 0, 0, task="regression")


def test_the_frame_of_splits_says_where_each_row_was():
    data = people()
    folds = make_folds(data, 3, 0, task="regression")
    frame = splits_frame(data, folds)
    assert frame.index.name == "id"
    assert list(frame.columns) == ["repeat_0", "repeat_1", "repeat_2"]
    assert list(frame.index) == list(data.X.index)
    for fold in folds:
        column = frame[f"repeat_{fold.repeat}"]
        for side in ("train", "validation", "test"):
            np.testing.assert_array_equal(np.flatnonzero(column == side), getattr(fold, side))


def changed(data: Dataset) -> dict[str, Dataset]:
    X = data.X.copy()
    X.iloc[17, 2] = np.nextafter(X.iloc[17, 2], np.inf)
    hole = data.X.copy()
    hole.iloc[17, 2] = np.nan
    y = data.y.copy()
    y.iloc[3] += 1e-12
    groups = data.groups.copy()
    groups.iloc[3] = "someone else"
    swapped = np.r_[1, 0, 2 : len(data)]
    return {
        "a value by one bit": replace(data, X=X),
        "a hole": replace(data, X=hole),
        "a name": replace(data, X=data.X.rename(columns={"a": "A"})),
        "names exchanged": replace(data, X=data.X.set_axis(["b", "a", "c", "d"], axis=1)),
        "a target": replace(data, y=y),
        "a person": replace(data, groups=groups),
        "nobody known": replace(data, groups=None),
        "order": data.take(swapped),
        "measurements exchanged": replace(data, X=data.X.iloc[swapped].set_axis(data.X.index, axis=0)),
        "a column fewer": replace(data, X=data.X[["a", "b", "c"]]),
        "a row fewer": data.take(np.arange(len(data) - 1)),
    }


def test_the_hash_sees_every_change_that_could_change_a_number():
    data = people()
    hashes = {name: data_hash(other) for name, other in changed(data).items()}
    assert len({data_hash(data), *hashes.values()}) == len(hashes) + 1


def test_the_hash_does_not_see_what_changes_no_number():
    data = people()
    same = replace(
        data,
        X=pd.DataFrame(np.asfortranarray(data.X), index=data.X.index, columns=data.X.columns),
        groups=data.groups.astype("category"),
        description="another text",
        notes=("a note",),
    )
    assert data_hash(same) == data_hash(data)
    whole = classes(data, np.arange(len(data)))
    assert data_hash(whole) == data_hash(classes(data, np.arange(len(data), dtype=float)))


def test_the_hash_is_not_fooled_by_where_a_label_ends():
    data = people(10, 1)
    first = replace(data, groups=None, y=pd.Series(["ab", "c"] * 5, index=data.X.index, name="y"))
    second = replace(first, y=pd.Series(["a", "bc"] * 5, index=data.X.index, name="y"))
    assert data_hash(first) != data_hash(second)


def test_missing_values_hash_alike():
    data = people(10, 1)
    X = data.X.copy()
    X.iloc[0, 0] = np.nan
    other = X.copy()
    other.iloc[0, 0] = np.float64(np.frombuffer(np.uint64(0xFFF8000000000001).tobytes())[0])  # another bit pattern
    assert data_hash(replace(data, X=X)) == data_hash(replace(data, X=other))
