"""Functions as commands: their signatures, and the one table of options."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from loloha.address import Address, located
from loloha.cli import console
from loloha.cli.option import GROUPS, OLD, option
from loloha.cli.parameter import flag
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from typer.models import CommandFunctionType


class Command(TyperCommand):
    """Takes old spellings with a warning, and refuses an option that is given twice."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def once(args: list[str]) -> Any:
            values, rest, order = parse(list(self._today(args)))
            for parameter, times in Counter(order).items():
                # Otherwise the last of two values would win silently.
                if times > 1 and not getattr(parameter, "multiple", False):
                    raise ParameterError(
                        f"{max(parameter.opts, key=len)} must be given once, got it {times} times; "
                        "keep one"
                    )
            return values, rest, order

        parser.parse_args = once  # type: ignore[method-assign]
        return parser

    def _today(self, args: list[str]) -> Iterator[str]:
        """The line with current options."""
        own = {name for param in self.params for name in param.opts}
        for place, word in enumerate(args):
            old, equals, value = word.partition("=")
            new = OLD.get(old)
            if new in own and old not in own and "--" not in args[:place]:
                console.warn(f"{old} is {new} since 0.3, and will go in 0.4")
                word = f"{new}{equals}{value}"
            yield word


class Commands(typer.Typer):
    """A group of commands; each takes the options that its signature names."""

    def command(
        self, name: str | None = None, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        register = super().command(name, **{"cls": Command, **settings})

        def decorate(function: CommandFunctionType) -> CommandFunctionType:
            register(_with_options(function))
            return function

        return decorate


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The command of a function; grouped options arrive as dicts."""
    own = inspect.signature(function, eval_str=True).parameters.values()
    groups = {
        parameter.name: GROUPS[parameter.name]() for parameter in own if parameter.name in GROUPS
    }

    places = {
        parameter.name: Address in _kinds(parameter.annotation)
        for parameter in own
        if parameter.name not in groups and option(parameter.name).anywhere
    }

    @wraps(function)
    def command(**arguments: Any) -> Any:
        for group, names in groups.items():
            given = {name: arguments.pop(name) for name in names}
            arguments[group] = {name: value for name, value in given.items() if value is not None}
        for name, anywhere in places.items():
            arguments[name] = _located(arguments[name], flag(name), anywhere)
        return function(**arguments)

    taken = [_described(parameter) for parameter in own if parameter.name not in groups]
    for name in (name for names in groups.values() for name in names):
        keyword = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        taken.append(_described(keyword.replace(annotation=option(name).kind | None)))
    command.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return command


def _located(given: Any, name: str, anywhere: bool) -> Any:
    """The typed text as a path or an address."""
    if isinstance(given, list):
        return [_located(argument, name, anywhere) for argument in given]
    place = None if given is None else located(given)
    if isinstance(place, Address) and not anywhere:
        raise ParameterError(
            f"{name} must be a path of this machine for this command, got an address; copy the "
            "result there"
        )
    return place


def _kinds(annotation: Any) -> set[Any]:
    """An annotation and its components."""
    return {annotation}.union(*map(_kinds, get_args(annotation)))


def _described(parameter: inspect.Parameter) -> inspect.Parameter:
    """An argument of a function with its entry of the table."""
    meant, kinds = option(parameter.name), _kinds(parameter.annotation)
    several = any(get_origin(kind) is list for kind in kinds)
    if meant.kind not in kinds:
        raise TypeError(f"option {parameter.name} must be {meant.kind}, not {parameter.annotation}")
    settings: dict[str, Any] = {
        "metavar": meant.metavar,
        "help": meant.help,
        "min": meant.least,
        "rich_help_panel": meant.panel,
    }
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        declared: Any = typer.Argument(**settings)
    else:
        names = flag(parameter.name)
        if parameter.default is True:
            names += f"/--no-{names[2:]}"
        if several:
            settings["help"] += " Repeat it for more."
        declared = typer.Option(names, **settings)
    annotation = parameter.annotation
    if meant.anywhere:
        # As text: a path would lose a slash.
        annotation = list[str] if several else str | None if type(None) in kinds else str
    return parameter.replace(annotation=Annotated[annotation, declared])
