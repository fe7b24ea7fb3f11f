"""The estimators' docstrings: every parameter, from the one table of them."""

from __future__ import annotations

from typing import TypeVar

from precisionnet.parameters import PARAMETERS, Parameter

Kind = TypeVar("Kind", bound=type)

RUNNING = """network : callable, default=None
    ``network(n_nodes, n_outputs)`` returns a torch module called as ``module(x, shift)``, x of shape (batch, nodes, 1);
    it is trained in place of a ``PrecisionNetwork``.
callbacks : sequence of callable, default=None
    Called after each epoch with its row of ``history_``, a dictionary; with workers, some epochs at a time.
warm_start : bool, default=False
    Start ``fit`` at the networks and matrices of the fit before.
n_jobs : int, default=None
    Workers that share the members, as joblib counts them; the result is the same to the last bit.
verbose : bool or int, default=False
    Print one line per epoch.
random_state : int, RandomState instance or None, default=None
    Seed of the splits, the first weights, the order of rows and the noise."""


def documented(kind: Kind) -> Kind:
    """Put every parameter into the class's docstring, from the one table of them."""
    lines = "\n".join(_documentation(parameter) for parameter in PARAMETERS) + "\n" + RUNNING
    indented = "\n".join(f"    {line}" if line else line for line in lines.splitlines())
    assert kind.__doc__ is not None
    kind.__doc__ = kind.__doc__.replace("    {parameters}", indented)
    return kind


def _documentation(parameter: Parameter) -> str:
    kinds = {int: "int", float: "float", bool: "bool", str: "str"}
    kind = f"{{{', '.join(map(repr, parameter.choices))}}}" if parameter.choices else kinds[parameter.kind]
    kind += " or sequence of int" if parameter.listed else ""
    text = parameter.help
    if parameter.by_recipe:
        text += f" None: {parameter.default!r}, in the paper's recipe {parameter.paper!r}."
    if parameter.needs:
        text += f" Only for {parameter.where()}."
    return f"{parameter.name} : {kind}, default={parameter.initial!r}\n    {text}"
