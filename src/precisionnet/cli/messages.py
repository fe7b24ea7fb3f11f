"""Sentences of the library in the words of the command line. Light: a refusal should come at once.

A message of the library names a parameter as Python has it: ``drop=['a']``, ``n_folds=``. A person at a terminal
has options, so the names of the running command's options are translated when a sentence is printed.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from precisionnet.errors import PrecisionNetError, printable

OPTION_OF = {
    "random_state": "seed",
    "n_jobs": "jobs",
    "coverage": "interval",
    "folder": "data",
    "data_folder": "data",
    "labels": "by",
    "groups": "person",
    "covariates": "covariate",
    "n_permutations": "permutations",
    "n_folds": "folds",
    "inputs": "input",
    "adjust_for": "covariate",
}
"""Parameters whose option has another name."""

_QUOTED = r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)"""
_VALUE = rf"\.\.\.|\[(?:{_QUOTED}|[^\]'\"])*\]|{_QUOTED}|[-+]?\w+(?:[.+-]+\w+)*"
_NAMED = re.compile(rf"(?P<quoted>{_QUOTED})|(?<![\w.-])(?:--)?(?P<name>[a-z][\w-]*)=(?!=)(?P<value>{_VALUE})?")
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # typer does not export it
_speaking: ContextVar[Any] = ContextVar("_speaking", default=None)
"""The command whose options sentences are written in."""
_whole: ContextVar[Any] = ContextVar("_whole", default=None)
"""The group that holds every command."""


def as_options(message: str, command: Any) -> str:
    """Translate ``name=value`` to ``--name value`` where ``command`` has that option; names in quotes stay.

    Parameters
    ----------
    message : str
        A sentence of the library.
    command : typer command or None
        The command that prints it; None changes nothing.

    Returns
    -------
    str
        The sentence for a terminal: ``leave it out with drop=['a b']`` becomes ``leave it out with --drop 'a b'``.
    """
    options = {} if command is None else _options(command)

    def translate(found: re.Match[str]) -> str:
        name = (found["name"] or "").replace("-", "_")  # none in a quoted text
        option = options.get(name) or options.get(OPTION_OF.get(name, name))
        return found[0] if option is None else option(found["value"] or "") or found[0]

    return _NAMED.sub(translate, message)


def in_options(message: str) -> str:
    """Translate a sentence for the command that is running."""
    return as_options(message, _speaking.get())


@contextmanager
def in_words_of(name: str) -> Iterator[None]:
    """Translate sentences to the options of another command, which they are about."""
    other = getattr(_whole.get(), "commands", {}).get(name)
    token = _speaking.set(other or _speaking.get())
    try:
        yield
    finally:
        _speaking.reset(token)


def graph_sentence(n_edges: int, n_columns: int, method: str) -> str:
    """Say how many edges the graph of a sparse precision has, in words where there are none or all."""
    pairs = n_columns * (n_columns - 1) // 2
    sentence = f"Graph: {n_edges:,} of {pairs:,} possible edges."
    if 0 < n_edges < pairs:
        share = 1.0 - n_edges / pairs
        shown = f"{share:.0%}" if share < 0.995 else f"{share:.2%}" if share < 0.99995 else "over 99.99%"
        sentence = f"{sentence[:-1]}: {shown} of all pairs have none."
    if n_edges == 0:
        sentence += " No column depends directly on another at this penalty: lower --l1-scale."
    elif n_edges == pairs and method in ("joint", "glasso") and n_columns > 2:
        sentence += " Every pair is connected: raise --l1-scale for a sparser graph."
    return sentence


class Commands(typer.Typer):
    """A group of commands in which an error that a user can mend becomes one sentence and exit code 2."""

    def __init__(self, **settings: Any) -> None:
        # Plain help: at 80 columns the boxed one squeezes every sentence into a strip.
        super().__init__(cls=_Group, no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command, as ``typer.Typer.command`` does."""
        return super().command(name, cls=_Command, **settings)


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _printable_complaints():
            return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the common options, then the options of each panel under a heading of its own."""
        arguments, panels = list[Any](), dict[str, list[Any]]({"": []})
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            panel = str(getattr(parameter, "rich_help_panel", None) or "")
            (arguments if parameter.param_type_name == "argument" else panels.setdefault(panel, [])).append(record)
        common = "Options" if len(panels) == 1 else "Common options"
        for title, records in (("Arguments", arguments), *((name or common, found) for name, found in panels.items())):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: Any) -> Any:
        token = _speaking.set(self)
        whole = _whole.set(ctx.find_root().command)
        try:
            return super().invoke(ctx)
        except PrecisionNetError as error:
            from precisionnet.cli import console

            console.errors(getattr(error, "sentences", [str(error)]))
            raise typer.Exit(2) from error
        finally:
            _speaking.reset(token)
            _whole.reset(whole)


class _Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _printable_complaints():
            return super().parse_args(ctx, args)


@contextmanager
def _printable_complaints() -> Iterator[None]:
    """Spell out control characters in typer's complaints: they quote file names, which may hold escape sequences."""
    try:
        yield
    except _USAGE_ERROR as error:
        if error.ctx is None or error.message != error.ctx.get_help():  # which a command without arguments shows
            error.message = printable(error.message)
        raise


def _options(command: Any) -> dict[str, Callable[[str], str | None]]:
    """Every long option of a command by its Python name: what to write for a value, None where it cannot be said."""
    found: dict[str, Callable[[str], str | None]] = {}
    for parameter in command.params:
        for option in (text for text in parameter.opts if text.startswith("--")):
            is_switch, off = getattr(parameter, "is_flag", False), [*parameter.secondary_opts, None][0]
            switch = {"": option, "...": option, "True": option, "False": off}
            spelled = switch.get if is_switch else _with_values(option)
            found[option.removeprefix("--").replace("-", "_")] = spelled
    return found


def _with_values(option: str) -> Callable[[str], str]:
    def spell(value: str) -> str:
        if value in ("", "..."):
            return option
        if not value.startswith("["):
            return f"{option} {_shell(value)}"
        texts = re.findall(_QUOTED, value)
        rest = re.sub(rf"[\[\],]|{_QUOTED}", " ", value).split()  # 'a', 'b' and 4 more
        return " ".join([*(f"{option} {_shell(text)}" for text in texts), *([] if texts else [option]), *rest])

    return spell


def _shell(value: str) -> str:
    """Turn a quoted word of one of our own messages into a word of a shell.

    ``literal_eval`` parses a string literal and runs nothing; anything else is left as it is.
    """
    try:
        return shlex.quote(str(ast.literal_eval(value)) if value[:1] in "'\"" else value)
    except (SyntaxError, ValueError):
        return value
