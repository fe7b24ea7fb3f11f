r"""The problem in one normal form, and every check of what a caller passes.

    minimise    tr(C theta) - log det(theta + ridge I) + sum_ij penalty_ij |theta_ij|
                + coupling/2 ||theta - anchor||_F^2
    subject to  0 <= theta <= spectral_bound * I

becomes, with phi = theta + ridge I,

    minimise    tr(C phi) - log det phi + sum_{i != j} penalty_ij |phi_ij| + coupling/2 ||phi - anchor'||_F^2
    subject to  low <= phi <= high

where C carries the penalty of the diagonal (its entries are never negative), a known zero is an infinite penalty, and
the constant -tr(C) ridge is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.compiled import compiled_alongside
from precisionnet.errors import InputError, some
from precisionnet.linalg import LARGEST, symmetrize
from precisionnet.precision.objective import Penalty
from precisionnet.threads import Team, blas_threads
from precisionnet.types import BoolArray, FloatArray

ASYMMETRY = 1e-8
"""Largest relative difference between C_ij and C_ji that passes as rounding."""
SMALLEST_VARIANCE = 1e-300
"""A smaller variance has fewer than 15 digits in float64, and its inverse may be infinite."""
LARGEST_TIE = 1e150
"""Largest coupling times anchor whose square is finite."""
LOST = 1e15
"""Ratio at which the smaller of two numbers is lost when they are added."""
COMPLEX = "{name} holds complex numbers: pass its real part if the imaginary part is zero."
TILE = 32
LARGE = 2000
"""Columns from which on several threads share the work."""


@dataclass(frozen=True)
class PrecisionProblem:
    """The normal form above."""

    given: FloatArray
    """The covariance as the caller has it, without the penalty of the diagonal."""
    emp_cov: FloatArray
    penalty: Penalty
    anchor: FloatArray | None
    coupling: float
    low: float
    high: float
    ridge: float

    def without_log_det(self, phi: FloatArray) -> float:
        """The loss in the caller's terms, all but its - log det phi."""
        value = float(np.vdot(self.emp_cov, phi))
        value = value - self.ridge * float(np.trace(self.emp_cov)) + self.penalty.norm(phi)
        if self.anchor is not None:
            apart = phi - self.anchor
            value += 0.5 * self.coupling * float(np.vdot(apart, apart))
        return value


def normal_form(
    emp_cov: FloatArray,
    l1_penalty: float | FloatArray,
    *,
    anchor: FloatArray | None = None,
    coupling: float = 0.0,
    spectral_bound: float | None = None,
    ridge: float = 0.0,
    known_zeros: BoolArray | None = None,
    penalize_diagonal: bool = False,
) -> PrecisionProblem:
    """Check everything, one sentence per mistake, and translate."""
    given = checked_matrix("emp_cov", emp_cov)
    n, variance = len(given), np.diag(given)
    for name, value in {"coupling": coupling, "ridge": ridge}.items():
        if not (is_number(value) and value >= 0):
            raise InputError(f"{name} must be a finite number >= 0, got {value}.")
    if spectral_bound is not None and not (is_number(spectral_bound) and spectral_bound > 0):
        raise InputError(f"spectral_bound must be > 0, got {spectral_bound}.")
    if anchor is None and coupling > 0:
        raise InputError("coupling > 0 needs an anchor: the matrix that theta is tied to.")
    if anchor is not None:
        anchor = checked_matrix("anchor", anchor, like=n)
    if (variance < 0).any():
        raise InputError(
            f"emp_cov has a negative variance for {_variables(variance < 0)}: a covariance has a diagonal >= 0."
        )
    l1_penalty = _checked_penalty(l1_penalty, n)
    emp_cov = given
    if penalize_diagonal:
        emp_cov = given + np.diag(np.broadcast_to(np.diag(l1_penalty) if np.ndim(l1_penalty) else l1_penalty, n))
    _refuse_out_of_scale(np.diag(emp_cov), anchor, coupling, spectral_bound, ridge)
    high = np.inf if spectral_bound is None else float(spectral_bound) + ridge
    if (np.diag(emp_cov) == 0).any() and not (np.isfinite(high) or coupling > 0):
        raise InputError(
            f"no variance in {_variables(np.diag(emp_cov) == 0)}: a constant has no precision. Drop it, or set a "
            "spectral_bound, a coupling, or penalize_diagonal=True."
        )
    if known_zeros is not None:
        l1_penalty = np.where(_checked_mask(known_zeros, n), np.inf, l1_penalty)
    anchor = None if anchor is None or coupling == 0 else anchor + ridge * np.eye(n)
    return PrecisionProblem(
        given, emp_cov, Penalty.of(l1_penalty, n), anchor, float(coupling), float(ridge), high, float(ridge)
    )


def checked_matrix(name: str, matrix: FloatArray, like: int | None = None) -> FloatArray:
    """A finite, exactly symmetric float64 matrix, the caller's own where it is one already."""
    if np.iscomplexobj(matrix):
        raise InputError(COMPLEX.format(name=name))
    try:
        # Also writeable: the kernels are compiled for such arrays, and would be compiled again for others.
        array = np.require(masked_as_missing(matrix), dtype=np.float64, requirements=["C", "A", "W", "E"])
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a matrix of numbers.") from None
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        hint = ": pass a covariance, not the data" if name == "emp_cov" else ""
        raise InputError(f"{name} must be a square matrix, got shape {np.shape(matrix)}{hint}.")
    if like is not None and len(array) != like:
        raise InputError(f"{name} has shape {array.shape}, emp_cov ({like}, {like}): they must agree.")
    largest, asymmetry, unusable = _inspected(array)
    if unusable:
        hint = ": drop or impute the missing values before the covariance" if name == "emp_cov" else ""
        raise InputError(f"{name} holds NaN, infinity or numbers beyond {LARGEST:.0e}{hint}.")
    if asymmetry > ASYMMETRY * largest:
        raise InputError(f"{name} is not symmetric; symmetrise it as (C + C.T) / 2 if that is meant.")
    return array if asymmetry == 0.0 else symmetrize(array)


def is_number(value: object) -> bool:
    """One finite real number: no text, no list, and no True or False."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf" and bool(np.isfinite(value))
    return not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating) and isfinite(value)


def _refuse_out_of_scale(
    variance: FloatArray, anchor: FloatArray | None, coupling: float, spectral_bound: float | None, ridge: float
) -> None:
    """Numbers that float64 cannot carry together."""
    tiny = (variance > 0) & (variance < SMALLEST_VARIANCE)
    if tiny.any() and coupling == 0:
        raise InputError(
            f"emp_cov has a variance below {SMALLEST_VARIANCE:.0e} for {_variables(tiny)}: its inverse is beyond "
            "float64; rescale the columns."
        )
    if ridge > LARGEST or ridge * float(np.min(variance[variance > 0], initial=1.0)) > LOST:
        raise InputError(
            f"ridge={ridge:.3g} is so large that theta, about as large as the inverse variances, is lost in theta + "
            "ridge I: lower it."
        )
    if spectral_bound is not None and (spectral_bound < 1.0 / LARGEST or spectral_bound * LOST < ridge):
        beside = f" beside ridge={ridge:.3g}" if spectral_bound >= 1.0 / LARGEST else ""
        raise InputError(f"spectral_bound={spectral_bound:.3g} is too small for float64{beside}: raise it.")
    reach = 0.0 if anchor is None else float(np.abs(np.diag(anchor)).max()) + ridge
    if coupling > LARGEST or coupling * reach > LARGEST_TIE:
        beside = "" if coupling > LARGEST else " beside this anchor"
        raise InputError(f"coupling={coupling:.3g} is too large for float64{beside}: lower it.")


def _checked_penalty(l1_penalty: float | FloatArray, n: int) -> float | FloatArray:
    if np.ndim(l1_penalty) == 0:
        if not (is_number(l1_penalty) and l1_penalty >= 0):
            raise InputError(f"l1_penalty must be a finite number >= 0, got {l1_penalty}.")
        return float(l1_penalty)
    if np.iscomplexobj(l1_penalty):
        raise InputError(COMPLEX.format(name="l1_penalty"))
    try:
        matrix = np.asarray(l1_penalty, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("l1_penalty must be one number or a matrix of numbers.") from None
    if matrix.shape != (n, n):
        raise InputError(f"l1_penalty has shape {matrix.shape}: pass one number or a ({n}, {n}) matrix.")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise InputError("l1_penalty must hold finite numbers >= 0; name the entries that must be zero in known_zeros.")
    if not np.allclose(matrix, matrix.T, rtol=ASYMMETRY, atol=0.0):
        raise InputError("l1_penalty is not symmetric: theta_ij and theta_ji are one number and have one penalty.")
    return symmetrize(matrix)


def _checked_mask(known_zeros: BoolArray, n: int) -> BoolArray:
    mask = np.asarray(known_zeros)
    if mask.shape != (n, n) or not (mask.dtype == bool or np.isin(mask, (0, 1)).all()):
        raise InputError(f"known_zeros must be a ({n}, {n}) matrix of True (must be zero) and False.")
    mask = mask.astype(bool)
    if mask.diagonal().any():
        raise InputError(
            "known_zeros contradicts itself: the diagonal of a precision matrix is positive and cannot be masked "
            f"({_variables(mask.diagonal())})."
        )
    if not np.array_equal(mask, mask.T):
        i, j = np.argwhere(mask != mask.T)[0]
        raise InputError(f"known_zeros contradicts itself: ({i}, {j}) and ({j}, {i}) are one entry but differ.")
    return mask


def _variables(mask: BoolArray) -> str:
    where = np.flatnonzero(mask)
    return f"variable{'s' * (len(where) > 1)} {some(where.tolist())}"


def _inspected(matrix: FloatArray) -> tuple[float, float, int]:
    """Largest |a_ij|, largest |a_ij - a_ji|, and how many entries are not numbers of usable size."""
    if len(matrix) < LARGE:
        return _inspect(matrix, 0, 1)
    with Team(blas_threads()) as team:
        largest, asymmetry, unusable = zip(*team(lambda share: _inspect(matrix, share, team.size)), strict=True)
    return max(largest), max(asymmetry), sum(unusable)


@compiled_alongside
def _inspect(matrix: FloatArray, share: int, n_shares: int) -> tuple[float, float, int]:
    """Look at every ``n_shares``-th row of tiles."""
    N = len(matrix)
    largest, asymmetry, unusable = 0.0, 0.0, 0
    for i0 in range(share * TILE, N, n_shares * TILE):
        for j0 in range(0, i0 + 1, TILE):
            for i in range(i0, min(i0 + TILE, N)):
                for j in range(j0, min(j0 + TILE, N)):
                    a, b = matrix[i, j], matrix[j, i]
                    unusable += 0 if abs(a) <= LARGEST and abs(b) <= LARGEST else 1  # NaN compares false
                    largest = max(largest, abs(a), abs(b))
                    asymmetry = max(asymmetry, abs(a - b))
    return largest, asymmetry, unusable
