"""The command and the Python that create a campaign of a protocol."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

from loloha.errors import ParameterError
from loloha.planning.accuracy_check import weaknesses
from loloha.protocols import Protocol


def command(protocol: Protocol, every: int = 1) -> str:
    """A command that makes a campaign of it, with a range of k numbers for a domain."""
    options = " ".join(
        f"--{name.replace('_', '-')} {_text(value)}" for name, value in parameters(protocol).items()
    )
    panels = f" --every {every}" if every > 1 else ""
    accepted = " --accept-weak-privacy" if weaknesses(protocol) else ""
    return (
        f"loloha campaign create NAME --protocol {protocol.name} {options} "
        f"--range 0 {protocol.k} --bins {protocol.k}{panels}{accepted}"
    )


def python(protocol: Protocol) -> str:
    """An expression that makes it."""
    options = {"k": protocol.k, **parameters(protocol)}
    values = ", ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={_text(value)}"
        for name, value in options.items()
    )
    home = "loloha." if type(protocol).__module__.startswith("loloha.") else ""
    return f"{home}{type(protocol).__name__}({values})"


def parameters(protocol: Protocol) -> dict[str, Any]:
    """The fewest parameters beside k that make this protocol; those left out follow from them."""
    cls = type(protocol)
    made = protocol.get_params()
    for field in fields(cls):
        if field.init and field.default is field.default_factory is MISSING:
            continue
        fewer = {name: value for name, value in made.items() if name != field.name}
        # Defaults of the others may give another protocol, or none.
        with suppress(ParameterError):
            if cls(**fewer) == protocol:
                made = fewer
    del made["k"]
    return made


def _text(value: Any) -> str:
    """A parameter that reads back as it is: 2 for 2.0."""
    if isinstance(value, float):
        return f"{value:.12g}" if float(f"{value:.12g}") == value else repr(value)
    return str(value)
