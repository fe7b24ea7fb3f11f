"""Fits to tables that need not fit into memory, and to rows that come later: what both estimators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from precisionnet.errors import InputError, refuse_all
from precisionnet.estimators.checks import Rows
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.forecast import Forecast, forecast, refuse_no_room, refuse_pairs_without_room
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.training import train
from precisionnet.joint import Callback
from precisionnet.parameters import Settings
from precisionnet.threads import limited_threads
from precisionnet.types import TaskName


class TableFits:
    """Mixin of the estimators."""

    _task: ClassVar[TaskName]
    _fitted: Fitted
    recipe: str
    warm_start: bool
    n_jobs: int | None
    network: Any
    random_state: Any

    def _checked(self) -> tuple[Settings, list[Callback]]:
        raise NotImplementedError

    def _prepared(
        self, X: Any, y: Any, sample_weight: Any, **rows: Any
    ) -> tuple[Settings, TrainingData, list[Callback]]:
        raise NotImplementedError

    def _checked_rows(self, X: Any) -> Rows:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit to rows in memory."""
        raise NotImplementedError

    def forecast(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Forecast:
        """Estimate time and memory of a fit to rows in memory."""
        raise NotImplementedError

    def keep(self, fitted: Fitted) -> Self:
        """Become the fitted model."""
        raise NotImplementedError

    def fit_table(
        self,
        source: Any,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        groups: str | None = None,
        sample_weight: str | None = None,
        window_rows: int | None = None,
        on_forecast: Callable[[Forecast], object] | None = None,
    ) -> Self:
        """Learn from a table that need not fit into memory.

        The table is gone over twice: for the moments of all rows, and to deal them at random into windows, which are
        kept in a folder for temporary files; once more where values are missing, which get the medians of a sample.
        Each epoch learns from one window, so that time, memory and disk do not
        grow with the table beyond a few million rows. A table of fewer than two windows is fitted by ``fit``. In a
        larger one the order of the rows matters, and equal rows are not merged (``docs/large.md``).

        Parameters
        ----------
        source : str, Path, pyarrow.dataset.Dataset, Dask DataFrame or re-iterable of batches
            Path of a parquet or csv file or of a folder of parquet files; or batches (data frames or Arrow record
            batches) that can be gone over several times, such as a list. All columns are numbers, but for the groups
            and the labels of a classifier.
        target : str
            Column to predict.
        columns : sequence of str, optional
            The features; all other columns if not given.
        groups : str, optional
            Column that says whose row it is; rows of one group never face each other across a split.
        sample_weight : str, optional
            Column that says how often each row counts.
        window_rows : int, optional
            Rows of a window: more need more memory and take longer. By default 32,768, and fewer where there are more
            than 256 columns.
        on_forecast : callable, optional
            Called with the estimate of time and memory (as ``forecast`` returns it) before the training begins, when
            the table has been gone over.

        Returns
        -------
        self
            The fitted estimator. ``oob_row_ids_`` has the numbers of the rows, from 0, that out-of-fold predictions
            are kept of: a sample of at most 16,384.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from precisionnet import PNNRegressor
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
        >>> table["y"] = table["a"] - 2 * table["b"]
        >>> batches = [table.iloc[:400], table.iloc[400:]]
        >>> model = PNNRegressor(n_members=2, max_epochs=5, random_state=0)
        >>> model.fit_table(batches, target="y", window_rows=100).n_rows_["training"]
        600
        """
        from precisionnet.datasets.row_source import open_rows
        from precisionnet.estimators.streaming import prepare_table, small_table
        from precisionnet.estimators.windows import scratch_folder, window_size

        self.__dict__.pop("_fitted", None)  # a fit that fails leaves no model, and none of another table
        settings, callbacks = self._checked()
        wrong = _needs_all_rows(settings)
        if settings.missing == "indicator":
            wrong.append("missing='indicator' needs the whole table in memory: set missing='median'.")
        if self.warm_start:
            wrong.append("warm_start=True is for fit: leave it out, and go on from a fitted model with partial_fit.")
        refuse_all(wrong)
        rows = open_rows(source, target, self._task, columns=columns, groups=groups, sample_weight=sample_weight)
        size = window_size(window_rows, len(rows.columns))
        small = small_table(rows, 2 * size)
        if small is not None:
            if on_forecast is not None:
                on_forecast(self.forecast(**small))
            return self.fit(**small)
        if settings.on_sparse_support(len(rows.columns), own_network=self.network is not None):
            raise InputError(
                f"A fit of {len(rows.columns):,} columns keeps its matrices on a sparse support, which needs all rows "
                "at once, and these are read piece by piece: set support='dense', which takes longer, or use fit on "
                "as many rows as memory holds."
            )
        refuse_pairs_without_room(len(rows.columns), settings, own_network=self.network is not None, in_memory=False)
        with scratch_folder() as folder:
            with limited_threads(1):
                data = prepare_table(rows, settings, Path(folder), size, self.random_state)
                refuse_no_room(data, settings)
                if on_forecast is not None:
                    on_forecast(forecast(data, settings))
            self._fitted = train(data, settings, network=self.network, callbacks=callbacks, n_jobs=self.n_jobs)
        return self

    def _go_on(self, X: Any, y: Any, sample_weight: Any, groups: Any, classes: Any = None) -> Self:
        """Learn from further rows, or from the first ones; where that fails the model stays as it was."""
        fitted = getattr(self, "_fitted", None)
        if fitted is None:
            rows = {"X_val": None, "y_val": None, "groups": groups, "classes": classes}
            settings, data, callbacks = self._prepared(X, y, sample_weight, **rows)
            return self.keep(train(data, settings, network=self.network, callbacks=callbacks, n_jobs=self.n_jobs))
        from precisionnet.estimators.continuation import go_on

        settings, callbacks = self._checked()
        if wrong := _needs_all_rows(settings):
            self._checked_rows(X)  # rows of other columns are the greater mistake
            refuse_all(wrong)
        running: dict[str, Any] = {"network": self.network, "callbacks": callbacks, "n_jobs": self.n_jobs}
        return self.keep(go_on(self, settings, X, y, sample_weight, groups=groups, **running))


def learns_later(model: TableFits) -> bool:
    """Whether ``partial_fit`` is there; otherwise the error says why not."""
    if model.recipe == "paper":
        raise AttributeError("recipe='paper' takes all rows at once: partial_fit is for recipe='standard'.")
    return True


def _needs_all_rows(settings: Settings) -> list[str]:
    """Say which settings cannot be had without all rows at once."""
    if settings.recipe != "standard":
        return [f"recipe={settings.recipe!r} takes all rows at once: use fit, or set recipe='standard'."]
    if settings.validation_fraction:
        return ["validation_fraction is for fit: rows that networks leave out choose the epoch here; leave it at 0."]
    return []
