"""What the checks of a data set found, told to a person: on a screen by itself, or in passing before a fit."""

from __future__ import annotations

from collections.abc import Sequence

from precisionnet.cli import console
from precisionnet.datasets.checks import LEVELS, Finding
from precisionnet.errors import InputError

_STYLES = {"note": "dim", "warning": "bold yellow", "error": "bold red"}


def print_findings(findings: Sequence[Finding], *, strict: bool = False) -> bool:
    """Facts first, then warnings, then errors, then the verdict; returns whether the data set passes."""
    ordered = [finding for level in LEVELS for finding in findings if finding.level == level]
    console.listing((finding.level, _STYLES[finding.level], finding.sentence) for finding in ordered)
    console.say("")
    errors, warned = ([f for f in findings if f.level == level] for level in ("error", "warning"))
    if errors:
        console.say(f"Not ready for a fit: {_counted(errors, 'error')} to mend first.")
    elif warned and strict:
        console.say(f"Refused, as --strict takes warnings for errors: {_counted(warned, 'warning')}.")
    elif warned:
        console.say(f"A fit is possible; {_counted(warned, 'warning')} to look at first.")
    else:
        console.say("Nothing stands in the way of a fit.")
    return not errors and not (warned and strict)


def report_findings(findings: Sequence[Finding], *, strict: bool = False) -> None:
    """Before a fit: warnings become notes on standard error; errors, and warnings under ``strict``, stop it."""
    errors, warned = ([f for f in findings if f.level == level] for level in ("error", "warning"))
    fatal = [*errors, *(warned if strict else [])]
    if fatal:
        others = f" (one of {len(fatal)}; precisionnet datasets check lists all)" if len(fatal) > 1 else ""
        why = "" if errors else "--strict takes warnings for errors: "
        raise InputError(f"{why}{fatal[0].sentence}{others}")
    for finding in warned:
        console.warn(finding.sentence)


def _counted(findings: Sequence[Finding], what: str) -> str:
    return f"{len(findings)} {what}{'' if len(findings) == 1 else 's'}"
