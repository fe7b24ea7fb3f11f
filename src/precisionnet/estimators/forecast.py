r"""Estimate, before a fit starts, how long it will take and how much memory it needs.

The time of a fit is that of its gradient steps, whose number is known: epochs x batches x members. A step of a member
with one layer costs

    dense     STEP + SIGNAL N B + (PAIR + PAIR_ROW B) N^2
    sparse    STEP + SIGNAL N B + ENTRY_ROW B (N + 2 edges)

for N columns and batches of B rows. The constants were measured on one core (300 rows of 50 to 2,000 columns, 2,000 to
32,000 rows of 50, ``results/scale/fit.csv``) and are multiplied by how much slower a core of this machine multiplies
matrices. The estimate does not know what else the machine does: on a busy one a fit takes longer. The number of edges
is estimated from a sample of columns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special
from scipy.sparse import diags_array

from precisionnet.errors import InputError
from precisionnet.estimators.preparation import TrainingData, kinds_of
from precisionnet.joint.member_stack import FEWEST_BATCHES, SMALLEST_BATCH
from precisionnet.joint.problem import GraphTerms
from precisionnet.joint.sparse_support import FREE_PER_NODE, LIGHT_MOST, LIGHTER
from precisionnet.joint.standard import STACKED
from precisionnet.kinds import TRIED_FROM
from precisionnet.memory import free_memory, gigabytes
from precisionnet.parameters import Settings
from precisionnet.precision.rows import DENSE_MOST, rounded_up
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray

STEP, SIGNAL, PAIR, PAIR_ROW, ENTRY_ROW, DEEP = 5e-5, 8e-8, 9e-9, 1.6e-10, 3.6e-9, 2.2
"""Seconds that a step takes: fixed, per number in the signals, per pair of columns, per pair and row, and per entry of
a sparse matrix and row. The last is the factor for a network with a second layer."""
SOLVE, LINEAR = 1e-10, 4e-7
"""Seconds per cube of a dense component's size, and per number in the rows of a linear network's path."""
REFERENCE_SECONDS = 2.7e-3
"""Seconds that the product of two float32 matrices of 512 x 512 took on the machine that measured the constants."""
KERNEL, KERNEL_GRID, KERNEL_BYTES = 4e-11, 0.1, 60.0
"""A kernel machine: seconds per cube of its rows, seconds to choose its parameters, and bytes per pair of its rows."""
BASE_BYTES, DENSE_BYTES, ROW_BYTES, SIGNAL_BYTES, ENTRY_BYTES = 4e8, 80.0, 90.0, 48.0, 60.0
"""Bytes of memory: of the libraries; per member and pair of columns; per number in the rows; per number in the signals
and filters of a stack; per member and entry of a sparse matrix."""
WINDOW_BYTES = 12.0
"""Bytes per number in a window of a table that is read piece by piece: as it is read, in order, and as batches."""
MANY_KERNEL_ROWS = 3_000
"""With more rows than this, a kernel machine may need more memory than there is."""
FEW_NUMBERS = 1_000_000
"""A table with fewer numbers than this always has room."""
SAMPLED = 64
"""Number of columns in the sample from which edges are counted."""
JOINING, CHANCE_DEGREE = 0.5, 0.1
"""If chance alone joins a column to more than the first number of others, all are expected in one component. A penalty
that a message suggests instead leaves the second number."""
PATIENCE = 30.0
"""An estimate of fewer seconds is not worth a message."""


@dataclass(frozen=True)
class Forecast:
    """The time and memory that a fit will take, within a factor of two.

    Parameters
    ----------
    seconds : float
        Time, with one worker.
    memory : float
        Bytes at the peak.
    sparse : bool
        Whether matrices live on a sparse support.
    n_edges : float
        Edges of the graph of the rows; 0 where all pairs are stored.
    """

    seconds: float
    memory: float
    sparse: bool
    n_edges: float = 0.0

    @property
    def sentence(self) -> str:
        """The time and the memory, in a sentence."""
        return self.sentence_for(1)

    def sentence_for(self, n_fits: int) -> str:
        """Say how long several fits of this size take.

        Parameters
        ----------
        n_fits : int
            How many there are; the time is that of all of them, the memory that of one.

        Returns
        -------
        str
            One sentence.

        Examples
        --------
        >>> Forecast(20.0, 1e9, sparse=False).sentence_for(6)
        'The 6 fits take about 2 minutes, one after another, and 1 GB of memory.'
        """
        memory = f"{gigabytes(self.memory)} of memory."
        if n_fits == 1:
            return f"The fit takes about {shown_seconds(self.seconds)} and {memory}"
        return f"The {n_fits} fits take about {shown_seconds(n_fits * self.seconds)}, one after another, and {memory}"


def forecast(data: TrainingData, settings: Settings) -> Forecast:
    """Estimate time and memory of a fit.

    Parameters
    ----------
    data : TrainingData
        The prepared rows; of a table that is read piece by piece the passes are over.
    settings : Settings
        Settings of the fit. With ``recipe="paper"`` one network with one batch per epoch is counted.

    Returns
    -------
    Forecast
        Seconds, bytes and edges.
    """
    rows = data.training
    n_rows, n = rows.X.shape
    kinds = kinds_of(data, settings)
    n_folds = settings.n_folds(n_rows) if settings.recipe == "standard" else 1
    roster = settings.members(n_folds, kinds) if settings.recipe == "standard" else []
    windows = None if data.whole is None else data.whole.windows
    n_learned = n_rows if windows is None else windows.mean_rows  # in an epoch
    own_rows = max(1, n_learned - n_learned // max(n_folds, 2))
    batch = min(settings.batch_size, own_rows, max(SMALLEST_BATCH, own_rows // FEWEST_BATCHES))
    n_steps = settings.n_epochs * max(FEWEST_BATCHES, own_rows // batch)
    n_members = max(1, len(roster))
    tried = rows.X.size >= TRIED_FROM and settings.readout == "several"  # one of two twins stops after a short trial
    trained = [kind for kind, _ in roster if not (tried and kind.twin is not None)]
    n_trained = sum(DEEP if kind.deep else 1.0 for kind in trained) or 1.0
    n_edges, entries = 0.0, 0.0
    if data.sparse:
        n_edges, lighter = _counted_edges(data, settings)
        entries = n + 2.0 * (n_edges + min(lighter, n_edges + n) + FREE_PER_NODE * n)
        step = STEP + SIGNAL * n * batch + ENTRY_ROW * batch * entries
    else:
        step = STEP + SIGNAL * n * batch + (PAIR + PAIR_ROW * batch) * n**2
    seconds = n_steps * n_trained * step
    n_linear = sum(kind.linear for kind in kinds) if settings.readout == "several" else 0
    seconds += n_linear * (n_folds + 1) * LINEAR * rows.X.size
    if not data.sparse or _chance_degree(data, settings) > JOINING:
        seconds += SOLVE * float(n) ** 3
    kernel = settings.readout == "several" and any(kind.kernel for kind in kinds)
    if kernel:
        seconds += KERNEL * (n_folds * float(own_rows) ** 3 + float(n_rows) ** 3) + KERNEL_GRID * n_folds
    memory = BASE_BYTES + ROW_BYTES * rows.X.size + SIGNAL_BYTES * STACKED * batch * n * settings.widest
    memory += n_members * (ENTRY_BYTES * entries if data.sparse else DENSE_BYTES * float(n) ** 2)
    if windows is not None:
        memory += WINDOW_BYTES * n_learned * n
    if kernel:
        memory += KERNEL_BYTES * float(n_rows) ** 2
    return Forecast(seconds * machine_factor(), memory, data.sparse, n_edges)


def refuse_too_many_numbers(X: Any) -> None:
    """Refuse a table if there is no room even for the copies that every fit makes, before the first copy.

    Parameters
    ----------
    X : array-like
        What was given to ``fit``; it may be mapped from a file that is larger than the memory.
    """
    if isinstance(X, str | Path):
        raise InputError(f"X is the path {str(X)!r}, and rows in memory are needed: read the file, or use fit_table.")
    shape = _shape_of(X)
    if shape is None:
        return  # other checks refuse it
    n_rows, n = shape
    if n_rows * n < FEW_NUMBERS:
        return
    need, free = ROW_BYTES * float(n_rows) * n, free_memory()
    if need > free:
        raise InputError(
            f"A fit to {n_rows:,} rows of {n:,} columns needs about {gigabytes(need)} and {gigabytes(free)} are "
            "free: write the rows to a parquet file and use fit_table, which reads them piece by piece, or take fewer "
            "rows."
        )


def _shape_of(X: Any) -> tuple[int, int] | None:
    """Return rows and columns of a table; the rows of a Dask DataFrame are counted, before they are brought here."""
    shape = getattr(X, "shape", ())
    if not (isinstance(shape, tuple) and len(shape) == 2):
        return None
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "columns"):
        shape = len(X), shape[1]
    return shape if all(isinstance(one, int) for one in shape) else None


def refuse_pairs_without_room(n: int, settings: Settings, *, own_network: bool, in_memory: bool = True) -> None:
    """Refuse a fit whose matrices of all pairs have no room, before the first of them is made.

    Parameters
    ----------
    n : int
        Number of columns.
    settings : Settings
        Settings of the fit.
    own_network : bool
        Whether the network is the user's.
    in_memory : bool, default=True
        Whether all rows are in memory, as a sparse support needs them.
    """
    if n <= SAMPLED * 4 or settings.on_sparse_support(n, own_network=own_network):
        return
    need, free = DENSE_BYTES * float(n) ** 2, free_memory()
    if need <= free:
        return
    able = replace(settings, support="sparse").on_sparse_support(n, own_network=own_network)
    other = "set support='sparse'" if in_memory else "use fit with support='sparse' on as many rows as memory holds"
    raise InputError(
        f"A fit of {n:,} columns with matrices of all pairs needs {gigabytes(need)} or more and {gigabytes(free)} "
        f"are free: take fewer columns{f', or {other}' if able else ''}."
    )


def refuse_no_room(data: TrainingData, settings: Settings, *, own_network: bool = False) -> None:
    """Refuse a fit that needs more memory than is free, and name a setting with which it has room.

    Parameters
    ----------
    data : TrainingData
        The prepared rows.
    settings : Settings
        Settings of the fit.
    own_network : bool, default=False
        Whether the network is the user's.
    """
    n_rows, n = data.training.X.shape
    if MANY_KERNEL_ROWS < n_rows <= settings.kernel_rows and settings.readout == "several" and data.whole is None:
        kernel, free = KERNEL_BYTES * float(n_rows) ** 2, free_memory()
        if kernel > free and not data.sparse:
            raise InputError(
                f"A kernel machine of {n_rows:,} rows needs about {gigabytes(kernel)} and {gigabytes(free)} are "
                "free: set kernel_rows=0, which leaves it out."
            )
    if n <= SAMPLED * 4:
        return
    coming, free = forecast(data, settings), free_memory()
    if coming.memory > free:
        need = f"A fit of {n:,} columns needs about {gigabytes(coming.memory)} and {gigabytes(free)} are free: "
        sparse = replace(settings, support="sparse")
        able = data.whole is None and sparse.on_sparse_support(n, own_network=own_network)
        if not data.sparse and able and forecast(replace(data, sparse=True), sparse).memory <= free:
            raise InputError(f"{need}set support='sparse', or take fewer columns.")
        if data.sparse and coming.n_edges > 2 * n:
            name, value = _enough_penalty(data, settings)
            of_scale = name == "l1_scale"
            higher = replace(settings, l1_scale=value) if of_scale else replace(settings, l1_penalty=value)
            if value > getattr(settings, name) and forecast(data, higher).memory <= free:
                raise InputError(f"{need}set {name}={value:g} or more, or take fewer columns.")
        raise InputError(f"{need}take fewer columns, or fewer members with n_members=.")
    if data.sparse and n > DENSE_MOST and (by_chance := _chance_degree(data, settings)) > JOINING:
        name, value = _enough_penalty(data, settings)
        raise InputError(
            f"At this penalty each of {n:,} columns is joined to {by_chance:.2g} others by chance alone, which makes "
            f"one component that no solver has room for: set {name}={value:g} or more, or take fewer columns."
        )


def shown_seconds(seconds: float) -> str:
    """Write a time in the unit that suits it.

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
        In seconds, minutes or hours.

    Examples
    --------
    >>> shown_seconds(400.0)
    '7 minutes'
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def machine_factor() -> float:
    """Return how much slower than the reference one core of this machine multiplies matrices."""
    a = np.ones((512, 512), dtype=np.float32)
    times = []
    with limited_threads(1, wait=False):  # members compute on one, however many the machine has
        for _ in range(10):  # the quickest one: what else the machine does is not counted
            started = time.perf_counter()
            a @ a
            times.append(time.perf_counter() - started)
    return min(times) / REFERENCE_SECONDS


def _sampled_correlations(data: TrainingData) -> FloatArray:
    """Return the absolute correlations of a sample of columns with all others, (n_sampled, n)."""
    rows = data.training
    x = data.scaler.transform(rows.X)
    share = rows.weight / rows.weight.sum()
    x = (x - share @ x).astype(np.float32)
    taken = np.linspace(0, x.shape[1] - 1, min(SAMPLED, x.shape[1])).round().astype(np.intp)
    size: FloatArray = np.abs((share[:, None].astype(np.float32) * x[:, taken]).T @ x)
    size[np.arange(len(taken)), taken] = 0.0
    return size


def _penalty(data: TrainingData, settings: Settings) -> GraphTerms:
    """Return the terms of a graph on a sparse support, for their penalty; dense data are asked as well."""
    variances = diags_array(data.emp_cov.diagonal(), format="csr")
    return GraphTerms.of(settings, variances, float(data.training.weight.sum()))


def _counted_edges(data: TrainingData, settings: Settings) -> tuple[float, float]:
    """Estimate how many pairs are above the penalty, and how many more are above the lighter penalty."""
    size, penalty = _sampled_correlations(data), _penalty(data, settings).l1_penalty
    n = size.shape[1]
    above, lighter = (0.5 * n * float((size > limit).sum(axis=1).mean()) for limit in (penalty, LIGHTER * penalty))
    return above, lighter - above if n <= LIGHT_MOST and not settings.sparse else 0.0


def _chance_degree(data: TrainingData, settings: Settings) -> float:
    """Return how many other columns chance alone would join a column to, if all columns were independent.

    The correlation of two independent columns over T rows is nearly normal with variance 1 / T. Columns that do depend
    on each other are not counted here: they may form small groups, and the solver finds those exactly.
    """
    rows = data.training
    threshold = _penalty(data, settings).l1_penalty / float(data.emp_cov.diagonal().mean())
    return float(rows.X.shape[1] * special.erfc(threshold * np.sqrt(rows.weight.sum() / 2.0)))


def _enough_penalty(data: TrainingData, settings: Settings) -> tuple[str, float]:
    """Return a penalty at which chance alone joins few columns, in the parameter that decides: name and value."""
    usual = _penalty(data, settings).usual_penalty
    chance = float(special.erfcinv(CHANCE_DEGREE / data.training.X.shape[1]))
    enough = chance * float(np.sqrt(2.0 / data.training.weight.sum()) * data.emp_cov.diagonal().mean())
    if settings.l1_penalty is None:
        return "l1_scale", rounded_up(enough / usual, 2)
    return "l1_penalty", rounded_up(enough, 2)
