"""What can go wrong, in one place.

Every error a user can cause carries one sentence that names the column, file or parameter and says what to do.
The command line prints that sentence and exits with code 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class PrecisionNetError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrecisionNetError, ValueError):
    """The data or a parameter cannot be used as given."""


class ModelFileError(PrecisionNetError, ValueError):
    """A model folder is missing, foreign, truncated or inconsistent."""


class OutputError(PrecisionNetError, OSError):
    """An output file or folder cannot be written."""


class FitDivergedError(PrecisionNetError, ArithmeticError):
    """Training produced a value that is not finite; no model is returned."""


class PrecisionNetWarning(UserWarning):
    """Something the user should know about a result that was returned all the same."""
