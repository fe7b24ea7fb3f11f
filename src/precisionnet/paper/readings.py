"""The two readings of the paper: conventions it leaves open, and what each reading takes them for.

The paper does not say how node features become one number, in which units the target is learnt, nor whether the
network's matrix is scaled. ``paper`` is the reading in which the graph has to do the work: the mean node under a
perceptron, the target in its own units, the matrix as it is. These are the values of ``recipe="paper"``. ``flattened``
gives every node weights of its own, standardises the target and scales the matrix to norm one: what one would do to
predict well, and what takes the work from the graph. ``docs/notation.md`` lists these and the other open conventions
with their measured effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from precisionnet.errors import InputError, did_you_mean, shown
from precisionnet.parameters import BY_NAME

ReadingName = Literal["paper", "flattened"]
READINGS: tuple[ReadingName, ...] = get_args(ReadingName)

_FLATTENED: dict[str, Any] = {"readout": "mlp", "standardize_target": True, "scale_shift": True}
_PAPER: dict[str, Any] = {name: BY_NAME[name].of("paper") for name in _FLATTENED}
CONVENTIONS: dict[ReadingName, dict[str, Any]] = {"paper": _PAPER, "flattened": _FLATTENED}
"""Values of the parameters that tell the readings apart."""

READING_LABELS: dict[ReadingName, str] = {"paper": "paper's reading", "flattened": "flattened reading"}


def with_reading(networks: Mapping[str, Any], reading: str) -> dict[str, Any]:
    """Return the networks of a config in this reading.

    Parameters
    ----------
    networks : mapping of str to list
        Values to choose from by parameter.
    reading : {"paper", "flattened"}
        The reading.

    Returns
    -------
    dict of str to list
        The same, with one value for each parameter that tells the readings apart.

    Examples
    --------
    >>> from precisionnet.paper import with_reading
    >>> with_reading({"order": [1, 2]}, "flattened")["readout"]
    ['mlp']
    """
    if reading not in CONVENTIONS:
        raise InputError(f"reading must be one of {', '.join(READINGS)}, got {shown(reading)}{_hint(reading)}.")
    return {**networks, **{name: [value] for name, value in CONVENTIONS[reading].items()}}


def reading_of(config: Mapping[str, Any]) -> ReadingName | None:
    """Say in which reading an experiment was run.

    Parameters
    ----------
    config : mapping
        The config as ``experiment.json`` has it.

    Returns
    -------
    {"paper", "flattened"} or None
        None where it trains no networks by the paper's recipe, or mixes the two readings.

    Examples
    --------
    >>> from precisionnet.paper import reading_of
    >>> reading_of({"networks": {"readout": ["mlp"]}, "fixed": {"standardize_target": True, "scale_shift": True}})
    'flattened'
    """
    networks, fixed = config.get("networks") or {}, config.get("fixed") or {}
    if networks.get("recipe", ["paper"]) != ["paper"]:
        return None
    values = {name: networks.get(name, [fixed.get(name)]) for name in _FLATTENED}
    found = [reading for reading in READINGS if values == {name: [v] for name, v in CONVENTIONS[reading].items()}]
    return found[0] if found else None


def _hint(reading: Any) -> str:
    return did_you_mean(reading, READINGS) if isinstance(reading, str) else ""
