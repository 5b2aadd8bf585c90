"""The registry: every protocol by name, and how to make one from a name or a specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loloha import checks
from loloha.errors import ParameterError
from loloha.protocols.base import SPEC_VERSION, Protocol
from loloha.protocols.realised import Realised
from loloha.protocols.registry import Registry
from loloha.protocols.table import (
    BLH,
    GRR,
    LGRR,
    LOSUE,
    LOUE,
    LSOUE,
    OLH,
    OLOLOHA,
    OUE,
    OWN,
    RAPPOR,
    SUE,
    BiLOLOHA,
    DBitFlipPM,
    OneBit,
)

REGISTRY = Registry(OWN)
"""Name -> class: command line, tables, collector, engines and the conformance suite iterate it."""

__all__ = [
    "BLH",
    "GRR",
    "LGRR",
    "LOSUE",
    "LOUE",
    "LSOUE",
    "OLH",
    "OLOLOHA",
    "OUE",
    "RAPPOR",
    "REGISTRY",
    "SUE",
    "BiLOLOHA",
    "DBitFlipPM",
    "OneBit",
    "Protocol",
    "Realised",
    "protocol",
    "protocol_from_dict",
]


def protocol(name: str, **params: Any) -> Protocol:
    """The protocol called ``name`` in the registry, e.g. ``protocol("ololoha", k=96, ...)``.

    Raises
    ------
    ParameterError
        If there is no such protocol, or a parameter is unknown, missing or out of range.
    """
    return _registered(name).from_params(params)


def protocol_from_dict(spec: Mapping[str, Any]) -> Protocol:
    """The protocol that ``to_dict`` described.

    Raises
    ------
    ParameterError
        If the specification is of another version or type, or has unknown or missing keys.
    """
    if not isinstance(spec, Mapping) or not {"type", "version"} <= spec.keys():
        raise ParameterError(
            "spec must be an object with 'type', 'version' and the parameters; use to_dict()"
        )
    params = dict(spec)
    name, version = params.pop("type"), params.pop("version")
    if type(version) is not int or version != SPEC_VERSION:
        raise ParameterError(
            f"version must be {SPEC_VERSION}, got {checks.shown(version)}; use a matching release"
        )
    cls = _registered(name)
    # A document says what was chosen, not what it was chosen for.
    if hints := cls.hints & params.keys():
        raise ParameterError(
            f"spec must hold parameters of {cls.name} only, got {sorted(hints)}; use to_dict()"
        )
    return cls.from_params(params)


def _registered(name: Any) -> type[Protocol]:
    cls = REGISTRY.get(name.lower()) if isinstance(name, str) else None
    if cls is None:
        raise ParameterError(
            f"protocol must be one of {sorted(REGISTRY)}, got {checks.shown(name)}; choose one"
        )
    return cls
