"""How commands read their line: options that go together, and each of one value given once."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from loloha.errors import ParameterError

if TYPE_CHECKING:
    from typer.models import CommandFunctionType


def with_options(gathered: str, options: Mapping[str, Any]) -> Callable[..., Callable[..., None]]:
    """Give a command more options, which it receives together.

    Parameters
    ----------
    gathered : str
        The argument that receives those that were given, as a dict.
    options : mapping
        The annotation of each by its name.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_them(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in options}
            chosen = {name: one for name, one in given.items() if one is not None}
            command(**arguments, **{gathered: chosen})

        own = inspect.signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.name != gathered]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
            for name, annotation in options.items()
        ]
        with_them.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        with_them.__annotations__ = {one.name: one.annotation for one in (*kept, *added)}
        return with_them

    return decorate


class Command(TyperCommand):
    """Refuses an option that is given twice, where of two values the last would win unseen."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def once(args: list[str]) -> Any:
            values, rest, order = parse(args)
            for option, times in Counter(order).items():
                if times > 1 and not getattr(option, "multiple", False):
                    raise ParameterError(
                        f"{max(option.opts, key=len)} must be given once, got it {times} times; "
                        "keep one"
                    )
            return values, rest, order

        parser.parse_args = once  # type: ignore[method-assign]
        return parser


class Commands(typer.Typer):
    """A group of such commands."""

    def command(
        self, name: str | None = None, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, **{"cls": Command, **settings})
