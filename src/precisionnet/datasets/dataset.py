"""What every loader returns: features, target, and what a fair split must know about the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precisionnet.datasets.dataset import StratifyName, split_rows
from precisionnet.types import FloatArray, IndexArray

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows are scans (samples), columns are regions (features); everything shares one index, the scan ids."""

    X: pd.DataFrame
    y: pd.Series[Any] | None = None
    groups: pd.Series[Any] | None = None
    """Who a row belongs to: rows of one person never face each other across a split."""
    site: pd.Series[Any] | None = None
    covariates: pd.DataFrame | None = None
    """What else is known of a row (age, sex, ...); never a feature unless you make it one."""
    description: str = ""
    """Where the data comes from, its terms, and how to cite it."""
    notes: tuple[str, ...] = ()
    """What was done on the way in: columns dropped, rows without a partner, codes read as missing."""
    doubts: tuple[str, ...] = ()
    """What may be a mistake in the files, such as many rows without a partner."""
    original_names: Mapping[str, str] = field(default_factory=dict)
    """From the name of a column of X to what its file called it."""
    measure: str = ""
    """What was measured in cortical regions (thickness, area, volume, ...), where that is known."""

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        parts = [f"{len(self.X)} rows", f"{self.X.shape[1]} columns"]
        parts += [] if self.groups is None else [f"{self.groups.nunique()} people"]
        parts += [] if self.site is None else [f"{self.site.nunique()} sites"]
        parts += [] if self.y is None else [f"target {self.y.name!r}"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def take(self, rows: IndexArray | Sequence[int]) -> Self:
        """The rows at these positions, in this order."""
        rows = np.asarray(rows)
        taken: dict[str, Any] = {
            part.name: value.iloc[rows]
            for part in fields(self)
            if isinstance(value := getattr(self, part.name), pd.DataFrame | pd.Series)
        }
        return replace(self, **taken)

    def without_missing(self) -> Self:
        """Only the rows in which no feature and no target is missing."""
        known = self.X.notna().all(axis=1)
        if self.y is not None:
            known &= self.y.notna()
        return self.take(np.flatnonzero(known))

    def to_numpy(self) -> tuple[FloatArray, NDArray[Any] | None]:
        """X as float64, and y (None where there is no target)."""
        return self.X.to_numpy(dtype=np.float64), None if self.y is None else self.y.to_numpy()

    def split(
        self,
        fractions: Sequence[float] = (0.6, 0.2, 0.2),
        seed: int = 0,
        *,
        by_person: bool = True,
        stratify: StratifyName = "auto",
    ) -> Split[Self]:
        """Training, validation and test rows, as data sets.

        All rows of a person (``groups``) land on one side. ``stratify`` keeps the sides alike in ``"site"`` or in the
        distribution of the ``"target"`` (its classes, or ten bins); ``"auto"`` takes the target where there is one,
        else the site, and ``"none"`` neither. The same people land on the same sides whatever the order of the rows.
        """
        return Split(*(self.take(rows) for rows in self.split_rows(fractions, seed, by_person, stratify)))

    def split_rows(
        self,
        fractions: Sequence[float] = (0.6, 0.2, 0.2),
        seed: int = 0,
        by_person: bool = True,
        stratify: StratifyName = "auto",
    ) -> tuple[IndexArray, IndexArray, IndexArray]:
        """The same split as row positions, to be stored or given to another tool."""
        groups = self.groups
        if not by_person:  # every row by itself, also where ids repeat
            label = pd.Series(self.X.index, index=self.X.index).astype(str)
            groups = label + " " + label.groupby(label.to_numpy()).cumcount().astype(str)
        return split_rows(self.X.index, fractions, seed, groups=groups, y=self.y, site=self.site, stratify=stratify)


class Split(NamedTuple, Generic[Part]):
    """Three data sets without a person in common."""

    train: Part
    validation: Part
    test: Part
