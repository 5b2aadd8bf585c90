"""How every command reads its line: an option that takes one value is given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from loloha.errors import ParameterError

if TYPE_CHECKING:
    from typer.models import CommandFunctionType


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
