"""What the table ``[data]`` of a config may hold, for each kind of experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from precisionnet.datasets.graphs import GRAPHS
from precisionnet.datasets.synthetic import PARAMETERS as DRAWN
from precisionnet.errors import InputError, did_you_mean, shown
from precisionnet.parameters import BY_NAME, Parameter

COHORTS = ("abide", "ants", "adni")
_REQUIRED = object()
_SPARSITY = Parameter(
    "sparsity", None, "Share of the true precision's entries that are not zero.", high=1, closed="right"
)
_POSITIVE = Parameter("", None, "A number above zero.", closed="neither")


@dataclass(frozen=True)
class Entry:
    """One key: what a value must be, and whether there is a list of them."""

    parameter: Parameter
    many: bool = False
    default: Any = _REQUIRED

    def checked(self, name: str, value: Any) -> Any:
        """The value, numbers as float where they need not be whole."""
        if not self.many:
            return self._one(name, value)
        if not isinstance(value, list | tuple) or not value:
            raise InputError(f"{name} must be a list of values, got {shown(value)}.")
        values = [self._one(name, item) for item in value]
        if len(set(values)) < len(values):
            raise InputError(f"{name} names a value twice: {shown(list(value))}; leave one of them out.")
        return values

    def _one(self, name: str, value: Any) -> Any:
        complaint = self.parameter.complaint(value)
        if complaint:
            hint = did_you_mean(value, self.parameter.choices) if isinstance(value, str) else ""
            raise InputError(f"{name} {complaint}{hint}.")
        return float(value) if self.parameter.kind is float else value


def _choice(*choices: str) -> Parameter:
    return Parameter("", None, "", str, choices=choices)


_BASE = {
    "n_features": Entry(DRAWN["n_features"]),
    "n_samples": Entry(DRAWN["n_samples"]),
    "sparsity": Entry(_SPARSITY),
}

ENTRIES: dict[str, dict[str, Entry]] = {
    "cohort": {"cohort": Entry(_choice(*COHORTS))},
    "synthetic": {
        "n_features": Entry(DRAWN["n_features"]),
        "n_samples": Entry(DRAWN["n_samples"]),
        "sparsity": Entry(_SPARSITY, many=True),
        "tuned_at": Entry(_SPARSITY),
        "snr": Entry(DRAWN["snr"], default=DRAWN["snr"].default),
        "graph": Entry(_choice(*GRAPHS), default="random"),
        "condition_number": Entry(DRAWN["condition_number"], default=DRAWN["condition_number"].default),
    },
    "theorem": {
        "n_samples": Entry(DRAWN["n_samples"], many=True),
        "n_features": Entry(DRAWN["n_features"], many=True),
        "sparsity": Entry(_SPARSITY, many=True),
        "l1_scale": Entry(_POSITIVE, default=BY_NAME["l1_scale"].of("paper")),
        "coupling": Entry(_POSITIVE, default=BY_NAME["coupling"].of("paper")),
        "distances": Entry(Parameter("", None, "Nuclear distance of an anchor from the truth."), many=True),
    },
}


def checked_data(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The table with its defaults filled in."""
    if not isinstance(data, Mapping):
        raise InputError(f"data must be a table, written below a line [data], got {shown(data)}.")
    if kind != "theorem":
        checked = _checked("data.", data, ENTRIES[kind])
    else:
        base = data.get("base", {})
        if not isinstance(base, Mapping):
            raise InputError(f"data.base must be a table, written below a line [data.base], got {shown(base)}.")
        refuse_unknown("data.", data, ["base", *ENTRIES[kind]])
        rest = {name: value for name, value in data.items() if name != "base"}
        checked = {"base": _checked("data.base.", base, _BASE), **_checked("data.", rest, ENTRIES[kind])}
    if kind == "synthetic" and checked["tuned_at"] not in checked["sparsity"]:
        raise InputError(
            f"data.tuned_at is {checked['tuned_at']:g}, which is not in data.sparsity: add it there or choose one of "
            f"{', '.join(f'{level:g}' for level in checked['sparsity'])}."
        )
    return checked


def refuse_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """``where`` is the table, such as "tuning."."""
    known = list(known)
    for name in given:
        if name not in known:
            raise InputError(
                f"unknown key {shown(where + name)}{did_you_mean(name, known)}; known are {', '.join(known)}."
            )


def _checked(where: str, given: Mapping[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    refuse_unknown(where, given, entries)
    checked = {}
    for name, entry in entries.items():
        if name not in given and entry.default is _REQUIRED:
            raise InputError(f"the key {where + name!r} is missing; add it.")
        checked[name] = entry.checked(where + name, given.get(name, entry.default))
    return checked
