"""Options for the parameters of every protocol in the registry: a new one needs no edit here."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import cache
from typing import Annotated, Any

import typer

from loloha.cli.command import with_options
from loloha.errors import ParameterError
from loloha.protocols import REGISTRY, Protocol

Name = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="Name of a protocol; see `loloha protocols`.")
]
PANEL = "Parameters of the protocol"
FEW = 5
# "name, name : type" and the indented lines below it, as numpydoc has it.
ENTRY = re.compile(r"^(?P<names>\w[\w, ]*?) : (?P<type>.+)\n(?P<text>(?:(?:[ \t]+.*)?\n?)*)", re.M)


def with_parameters(*, without: Collection[str] = ()) -> Callable[..., Callable[..., None]]:
    """Give a command one option for each parameter of any protocol.

    Parameters
    ----------
    without : names of parameters
        What the command finds elsewhere, as `run` counts k.

    Returns
    -------
    decorator
        The command receives those that were given as a dict, its argument ``parameters``.
    """
    names = [name for name in parameter_names() if name not in without]
    return with_options("parameters", {name: _option(name) for name in names})


def find_protocol(
    name: str, parameters: Mapping[str, Any], known: Collection[str] = ()
) -> type[Protocol]:
    """The class of a protocol, once it is sure that it can be made of these parameters.

    Parameters
    ----------
    name : str
        Name in the registry, in any case.
    parameters : mapping
        What was given on the command line.
    known : names of parameters
        What the command will find out by itself, as `run` counts k.

    Raises
    ------
    ParameterError
        If the protocol or a parameter of it is unknown, or one is missing.
    """
    cls = REGISTRY.get(name.lower())
    if cls is None:
        raise ParameterError(
            f"protocol must be one of {', '.join(REGISTRY)}, got {name!r}; "
            "`loloha protocols` explains them"
        )
    takes = [one for one in parameters_of(cls) if one not in known]
    if unknown := [flag(one) for one in parameters if one not in takes]:
        raise ParameterError(
            f"parameters of {cls.name} must be among {', '.join(map(flag, takes))}, "
            f"got {', '.join(unknown)}; leave out what is not"
        )
    if missing := [flag(one) for one in required(cls) if one not in {*parameters, *known}]:
        raise ParameterError(
            f"parameters of {cls.name} must include {', '.join(missing)}, got none; give each"
        )
    return cls


def parameter_names() -> list[str]:
    """Every parameter of any protocol, those that most protocols have first."""
    count = Counter(name for cls in REGISTRY.values() for name in parameters_of(cls))
    return [name for name, _ in count.most_common()]


def parameters_of(cls: type[Protocol]) -> list[str]:
    """All parameters of a protocol."""
    return [one.name for one in fields(cls) if one.init]


def required(cls: type[Protocol]) -> list[str]:
    """The parameters without a default."""
    signature = inspect.signature(cls)
    return [
        name for name, one in signature.parameters.items() if one.default is inspect.Parameter.empty
    ]


def flag(name: str) -> str:
    """The option of a parameter: ``eps_inf`` becomes ``--eps-inf``."""
    return "--" + name.replace("_", "-")


@cache
def _option(name: str) -> Any:
    """The annotation that makes an option of the parameter ``name``, optional everywhere."""
    having = [cls for cls in REGISTRY.values() if name in parameters_of(cls)]
    described = Counter(filter(None, (_describe(cls, name) for cls in having)))
    kind, text = described.most_common(1)[0][0] if described else ("", "")
    choices = re.match(r"\{(.*)\}", kind)
    if 0 < len(having) <= FEW < len(REGISTRY):
        text = f"{text} For {', '.join(cls.name for cls in having)}."
    option = typer.Option(
        flag(name),
        help=text.strip(),
        metavar=choices[1].replace('"', "").replace(", ", "|") if choices else None,
        rich_help_panel=PANEL,
    )
    return Annotated[_scalar(having[0], name) | None, option]


def _scalar(cls: type[Protocol], name: str) -> type:
    """int, float or str, whatever the field is annotated with beside None."""
    annotated = next(str(one.type) for one in fields(cls) if one.name == name)
    words = re.findall(r"\w+", annotated)
    return next((one for one in (int, float, str) if one.__name__ in words), str)


def _describe(cls: type[Protocol], name: str) -> tuple[str, str] | None:
    """Type and text of a parameter in the docstring of the class that has it."""
    for owner in cls.__mro__:
        for entry in ENTRY.finditer(inspect.cleandoc(owner.__doc__ or "") + "\n"):
            if name in entry["names"].split(", "):
                return entry["type"], " ".join(entry["text"].split())
    return None
