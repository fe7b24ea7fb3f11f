"""A command-line option for every model parameter, made from ``precisionnet.parameters``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from precisionnet.parameters import PARAMETERS, Parameter


def with_model_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command(..., **parameters)`` one option a parameter; those the user did not set keep their defaults."""
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [
        inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.initial, annotation=_annotation(p))
        for p in PARAMETERS
    ]

    def wrapper(**values: Any) -> None:
        command(**values)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapper.__signature__ = inspect.Signature([*keyword_only, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    return wrapper


def _annotation(parameter: Parameter) -> Any:
    kind: Any = parameter.kind | None if parameter.optional or parameter.by_recipe else parameter.kind
    metavar = f"[{'|'.join(parameter.choices)}]" if parameter.choices else None
    return Annotated[kind, typer.Option(help=_help(parameter), metavar=metavar)]


def _help(parameter: Parameter) -> str:
    """The meaning and, where it depends on the recipe, both defaults: the option's own is None, which says nothing."""
    if not parameter.by_recipe:
        return parameter.help
    return f"{parameter.help}  [default: {parameter.default}; paper: {parameter.paper}]"
