"""What every loader returns: features, target, and what a fair split must know about the rows.

A split deals people to its three sides like cards. They lie sorted by stratum, then by their number of rows (strata in
random order, equals in random order), the pile is cut somewhere, and each goes to the side that lacks most of its share
of people. So every stratum, and every run of small strata, is divided as asked for, without a smallest size; people
with many rows are spread like people with few; and each person lands on each side with the chance that its share is.
The same people land on the same sides whatever the order of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precisionnet.arguments import check_choice
from precisionnet.errors import InputError
from precisionnet.types import FloatArray, IndexArray

StratifyName = Literal["auto", "target", "site", "none"]
STRATIFY = ("auto", "target", "site", "none")
N_BINS = 10
"""Quantile bins of a target with more different values than this."""
NO_ID = "row"
"""Name of the index of a table whose rows have no id: they are counted, as they stand in the file."""
Side = TypeVar("Side")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table ready for use: features, target, and what a fair split must know about the rows.

    Rows are scans (samples), columns are regions (features). Everything shares one index, the scan ids.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_rows, n_columns)
        Features: numbers, or labels and dates where they were asked for; NaN where a value is missing.
    y : pandas.Series or None, default=None
        Target: numbers or labels.
    groups : pandas.Series or None, default=None
        The person each row belongs to. Rows of one person never face each other across a split.
    site : pandas.Series or None, default=None
        Where each row was measured.
    covariates : pandas.DataFrame or None, default=None
        What else is known of a row (age, sex, ...). A covariate is never a feature unless you make it one.
    description : str, default=""
        Where the data comes from, its terms of use, and how to cite it.
    notes : tuple of str, default=()
        What was done while loading: columns dropped, rows without a partner, codes read as missing.
    doubts : tuple of str, default=()
        What may be a mistake in the files, such as many rows without a partner.
    original_names : mapping of str to str, default={}
        From the name of a column of X to its name in the file.
    measure : str, default=""
        What was measured in cortical regions (thickness, area, volume, ...), where that is known.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 1.0, 0.0, 1.0]}, index=["s1", "s2", "s3", "s4"])
    >>> data = Dataset(X, y=pd.Series([20.0, 30.0, 40.0, 50.0], index=X.index, name="age"))
    >>> data
    Dataset(4 rows, 2 columns, target 'age')
    >>> train, validation, test = data.split((0.5, 0.25, 0.25), seed=0)
    >>> len(train), len(validation), len(test)
    (2, 1, 1)
    """

    X: pd.DataFrame
    y: pd.Series[Any] | None = None
    groups: pd.Series[Any] | None = None
    site: pd.Series[Any] | None = None
    covariates: pd.DataFrame | None = None
    description: str = ""
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    original_names: Mapping[str, str] = field(default_factory=dict)
    measure: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.X, pd.DataFrame):
            raise InputError(f"X must be a pandas DataFrame, got {type(self.X).__name__}: wrap it in pandas.DataFrame.")
        for name, kind in (("y", pd.Series), ("groups", pd.Series), ("site", pd.Series), ("covariates", pd.DataFrame)):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, kind):
                raise InputError(f"{name} must be a pandas {kind.__name__} or None, got {type(value).__name__}.")
            if len(value) != len(self.X):
                raise InputError(f"{name} has {len(value)} rows and X has {len(self.X)}: give one per row of X.")

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        parts = [f"{len(self.X)} rows", f"{self.X.shape[1]} columns"]
        parts += [] if self.groups is None else [f"{self.groups.nunique()} people"]
        parts += [] if self.site is None else [f"{self.site.nunique()} sites"]
        parts += [] if self.y is None else [f"target {self.y.name!r}"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def take(self, rows: IndexArray | Sequence[int]) -> Self:
        """Take the rows at these positions, in this order.

        Parameters
        ----------
        rows : array-like of int
            Positions of the rows, counted from 0.

        Returns
        -------
        Dataset
            Those rows, of the same class as this data set.
        """
        rows = np.asarray(rows)
        taken: dict[str, Any] = {
            part.name: value.iloc[rows]
            for part in fields(self)
            if isinstance(value := getattr(self, part.name), pd.DataFrame | pd.Series)
        }
        return replace(self, **taken)

    def without_missing(self) -> Self:
        """Take the rows in which no feature is missing, nor the target.

        Returns
        -------
        Dataset
            The complete rows, possibly none.
        """
        known = self.X.notna().all(axis=1)
        if self.y is not None:
            known &= self.y.notna()
        return self.take(np.flatnonzero(known))

    def to_numpy(self) -> tuple[FloatArray, NDArray[Any] | None]:
        """Return features and target as arrays.

        Returns
        -------
        X : ndarray of shape (n_rows, n_columns)
            The features as float64; there may be no labels among them.
        y : ndarray of shape (n_rows,) or None
            The target, None where there is none.
        """
        return self.X.to_numpy(dtype=np.float64), None if self.y is None else self.y.to_numpy()

    def split(
        self,
        fractions: Sequence[float] = (0.6, 0.2, 0.2),
        seed: int = 0,
        *,
        by_person: bool = True,
        stratify: StratifyName = "auto",
    ) -> Split[Self]:
        """Split into training, validation and test rows.

        The same people land on the same sides whatever the order of the rows.

        Parameters
        ----------
        fractions : sequence of three floats, default=(0.6, 0.2, 0.2)
            Shares of people for training, validation and test. They add up to 1 or to 100; training is not 0.
        seed : int, default=0
            Seed of the random order in which people are dealt to the sides.
        by_person : bool, default=True
            Keep all rows of a person (``groups``) on one side. If False, every row counts as a person.
        stratify : {"auto", "target", "site", "none"}, default="auto"
            What the sides are alike in: the distribution of the target (its classes, or ten bins), the site, or
            neither. "auto" takes the target where there is one, else the site.

        Returns
        -------
        Split
            ``train``, ``validation`` and ``test``, each a data set of this class.
        """
        return Split(*(self.take(rows) for rows in self.split_rows(fractions, seed, by_person, stratify)))

    def split_rows(
        self,
        fractions: Sequence[float] = (0.6, 0.2, 0.2),
        seed: int = 0,
        by_person: bool = True,
        stratify: StratifyName = "auto",
    ) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Return the same split as row positions, to be stored or given to another tool.

        Parameters
        ----------
        fractions : sequence of three floats, default=(0.6, 0.2, 0.2)
            As in ``split``.
        seed : int, default=0
            As in ``split``.
        by_person : bool, default=True
            As in ``split``.
        stratify : {"auto", "target", "site", "none"}, default="auto"
            As in ``split``.

        Returns
        -------
        train, validation, test : ndarray of int
            Positions of the rows of each side, ascending.
        """
        groups = self.groups
        if not by_person:  # every row by itself, also where ids repeat
            label = pd.Series(self.X.index, index=self.X.index).astype(str)
            groups = label + " " + label.groupby(label.to_numpy()).cumcount().astype(str)
        return split_rows(self.X.index, fractions, seed, groups=groups, y=self.y, site=self.site, stratify=stratify)


class Split(NamedTuple, Generic[Side]):
    """The three sides of a split, without a person in common.

    Parameters
    ----------
    train : Dataset
        Rows to learn from.
    validation : Dataset
        Rows to choose by.
    test : Dataset
        Rows to test on, once.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> split = make_gaussian_regression(n_samples=50, n_features=4, random_state=0).split()
    >>> len(split.train), len(split.validation), len(split.test)
    (30, 10, 10)
    """

    train: Side
    validation: Side
    test: Side


def split_rows(
    ids: pd.Index[Any],
    fractions: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int = 0,
    *,
    groups: pd.Series[Any] | None = None,
    y: pd.Series[Any] | None = None,
    site: pd.Series[Any] | None = None,
    stratify: StratifyName = "auto",
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Positions of the rows of each side, ascending. A person is a value of ``groups``, else an id."""
    shares = _check_fractions(fractions)
    rng = generator("seed", seed)
    if not len(ids):
        raise InputError("There is no row to split: the data set is empty.")
    labels = _strata(stratify, y, site, len(ids))
    person = pd.Series(ids if groups is None else groups.to_numpy()).astype(str)
    people = pd.DataFrame({"person": person, "stratum": labels}).groupby("person", sort=True)["stratum"]
    size, stratum = people.size().to_numpy(), people.min().to_numpy()
    _, stratum = np.unique(stratum, return_inverse=True)
    order = np.lexsort([rng.permutation(len(size)), size, rng.permutation(stratum.max() + 1)[stratum]])
    order = np.roll(order, rng.integers(len(order)))
    side = np.empty(len(size), dtype=int)
    given = np.zeros(3)
    for n, i in enumerate(order, start=1):
        side[i] = int(np.argmax(shares * n - given))
        given[side[i]] += 1
    names = people.size().index
    side_of_row = pd.Series(side, index=names).loc[person].to_numpy()
    parts = [np.flatnonzero(side_of_row == k) for k in range(3)]
    for share, part, name in zip(shares, parts, ("training", "validation", "test"), strict=True):
        if share > 0 and len(part) == 0:
            raise InputError(
                f"No row is left for {name}: {len(ids)} rows of {len(size)} people cannot be split "
                f"{'/'.join(f'{100 * s:.3g}' for s in shares)}; bring more people or change the fractions."
            )
    return parts[0], parts[1], parts[2]


def generator(name: str, seed: Any) -> np.random.Generator:
    """Make a random generator from None, a whole number from 0 on, or a generator."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be None or a whole number from 0 on, got {seed!r}.") from error


def _check_fractions(fractions: Sequence[float]) -> Any:
    try:
        shares = np.asarray(fractions, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    total = shares.sum()
    fine = shares.shape == (3,) and bool((shares >= 0).all()) and shares[0] > 0
    if not fine or not (np.isclose(total, 1.0) or np.isclose(total, 100.0)):
        raise InputError(
            f"fractions must be three shares that add up to 1 (or 100), training first and not zero, got "
            f"{fractions!r}: for example (0.6, 0.2, 0.2)."
        )
    return shares / total


def _strata(stratify: str, y: pd.Series[Any] | None, site: pd.Series[Any] | None, n: int) -> Any:
    """Return the stratum of each row."""
    check_choice("stratify", stratify, STRATIFY)
    if stratify == "auto":
        stratify = "target" if y is not None else "site" if site is not None else "none"
    if stratify == "none":
        return np.zeros(n, dtype=int)
    source = y if stratify == "target" else site
    if source is None:
        raise InputError(f"stratify={stratify!r} needs a {stratify}, and this data set has none: name it when loading.")
    many = pd.api.types.is_numeric_dtype(source.dtype) and source.nunique() > N_BINS
    if stratify == "target" and many:
        return pd.qcut(source.to_numpy(), N_BINS, labels=False, duplicates="drop")
    return source.astype(str).to_numpy()
