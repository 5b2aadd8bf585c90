"""Options for the parameters of all registered protocols."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from loloha.errors import ParameterError
from loloha.protocols import REGISTRY, Protocol

PANEL = "Parameters of the protocol"
FEW = 5
# "name, name : type" and the indented lines below it, as numpydoc has it.
ENTRY = re.compile(r"^(?P<names>\w[\w, ]*?) : (?P<type>.+)\n(?P<text>(?:(?:[ \t]+.*)?\n?)*)", re.M)
SAME = re.compile(r"\bas for `(\w+)`", re.IGNORECASE)
# References to sections of pages, which the help does not show.
CITED = re.compile(r" \(MATH section [\d.]+\)")


def find_protocol(name: str, parameters: Mapping[str, Any]) -> type[Protocol]:
    """The class of a protocol, after checking that k and these parameters are valid for it."""
    cls = REGISTRY.get(name.lower())
    if cls is None:
        raise ParameterError(
            f"protocol must be one of {', '.join(REGISTRY)}, got {name!r}; "
            "`loloha protocols` explains them"
        )
    takes = [name for name in parameters_of(cls) if name != "k"]
    if unknown := [flag(parameter) for parameter in parameters if parameter not in takes]:
        raise ParameterError(
            f"parameters of {cls.name} must be among {', '.join(map(flag, takes))}, "
            f"got {', '.join(unknown)}; leave out what is not"
        )
    if missing := [flag(name) for name in required(cls) if name not in {"k", *parameters}]:
        raise ParameterError(
            f"parameters of {cls.name} must include {', '.join(missing)}, got none; give each"
        )
    return cls


def make_protocol(name: str, parameters: Mapping[str, Any], k: int) -> Protocol:
    """The protocol of these parameters; errors as `find_protocol`, and the protocol's own."""
    return find_protocol(name, parameters).from_params({"k": k, **parameters})


def names() -> list[str]:
    """Every parameter of any protocol, those that most protocols have first."""
    count = Counter(name for cls in REGISTRY.values() for name in parameters_of(cls))
    return [name for name, _ in count.most_common()]


def parameters_of(cls: type[Protocol]) -> list[str]:
    """All parameters of a protocol."""
    return [field.name for field in fields(cls) if field.init]


def required(cls: type[Protocol]) -> list[str]:
    """The parameters without a default."""
    return [
        field.name
        for field in fields(cls)
        if field.init and field.default is field.default_factory is MISSING
    ]


def flag(name: str) -> str:
    """The option of a Python argument: ``--eps-inf`` for ``eps_inf``."""
    return "--" + name.removeprefix("as_").rstrip("_").replace("_", "-")


def secret(variable: str) -> str | None:
    """A key or token from the environment, which no process list shows; None if unset."""
    from loloha.sender.connection import is_token

    text = os.environ.get(variable)
    if text is None or is_token(text):
        return text
    if not text.strip():
        raise ParameterError(f"{variable} must be a key or token, it is empty; set it, or unset it")
    raise ParameterError(
        f"{variable} must be visible ASCII characters, got others, perhaps the end of a line; set "
        "it again without them"
    )


@cache
def described(name: str) -> tuple[type, str, str | None, None, str]:
    """Type, meaning and choices of a parameter, and the panel of all of them."""
    having = [cls for cls in REGISTRY.values() if name in parameters_of(cls)]
    if not having:
        raise KeyError(name)
    texts: dict[str, list[str]] = {}
    kind = ""
    for cls in having:
        kind, text = _entry(_described_by(cls, name), name) or ("", "")
        texts.setdefault(text, []).append(cls.name)
    choices = re.match(r"\{(.*)\}", kind)
    if len(texts) > 1:
        text = " ".join(f"{', '.join(of)}: {text}" for text, of in texts.items())
    elif len(having) <= FEW < len(REGISTRY):
        text = f"{text} For {', '.join(cls.name for cls in having)}."
    metavar = choices[1].replace('"', "").replace(", ", "|") if choices else None
    return _scalar(having[0], name), text.strip(), metavar, None, PANEL


def _described_by(cls: type[Protocol], name: str) -> type[Protocol]:
    """The protocol whose docstring describes a parameter, if this one refers to it."""
    _, text = _entry(cls, name) or ("", "")
    same = SAME.search(text)
    return cls if same is None else next(p for p in REGISTRY.values() if p.__name__ == same[1])


def _scalar(cls: type[Protocol], name: str) -> type:
    """int, float or str, whatever the field is annotated with beside None."""
    annotated = next(str(field.type) for field in fields(cls) if field.name == name)
    words = re.findall(r"\w+", annotated)
    return next((type_ for type_ in (int, float, str) if type_.__name__ in words), str)


def _entry(cls: type[Protocol], name: str) -> tuple[str, str] | None:
    """Type and text of a parameter in the docstring of the class that has it."""
    for owner in cls.__mro__:
        for entry in ENTRY.finditer(inspect.cleandoc(owner.__doc__ or "") + "\n"):
            if name in entry["names"].split(", "):
                return entry["type"], CITED.sub("", " ".join(entry["text"].split()))
    return None
