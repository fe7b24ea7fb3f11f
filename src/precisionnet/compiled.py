"""One decorator for the numba kernels: compiled once, kept on disk where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., object])

# Sums may be reordered into vector lanes; NaN and infinity keep their meaning (an infinite penalty is a known zero).
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Kernel) -> Kernel:
    """``function`` as machine code. Where no cache folder is writable it is compiled anew in each process."""
    return _compiled(function, alongside=False)


def compiled_alongside(function: Kernel) -> Kernel:
    """Likewise, and other Python threads run while it does."""
    return _compiled(function, alongside=True)


def _compiled(function: Kernel, *, alongside: bool) -> Kernel:
    try:
        return cast(Kernel, njit(cache=True, fastmath=_FASTMATH, nogil=alongside)(function))
    except RuntimeError:  # numba's "cannot cache function: no locator available"
        return cast(Kernel, njit(fastmath=_FASTMATH, nogil=alongside)(function))
