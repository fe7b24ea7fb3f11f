"""The decorator of the numba kernels, where the solvers look for it."""

from precisionnet.compiled import compiled, compiled_alongside

__all__ = ["compiled", "compiled_alongside"]
