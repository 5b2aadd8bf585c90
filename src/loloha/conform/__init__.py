"""The conformance kit: checks a port of the device, in any language, against this one.

A port answers questions on its standard input, one JSON object a line; see docs/protocol.md.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import Any

from loloha import checks
from loloha.conform.port import Port, PortError, connect
from loloha.conform.suite import Result, conform
from loloha.encodings import PARTS
from loloha.encodings.part import CHANGE, FRESH_CHANGE
from loloha.protocols import Protocol

__all__ = ["SCHEMAS", "Port", "PortError", "Result", "conform", "connect", "missing", "schema"]

SCHEMAS = ("campaign", "report", "receipt", "problem", "client-state")
"""What there is a JSON schema of."""


def schema(name: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a message."""
    checks.choice("name", name, SCHEMAS)
    document = _read(name)
    if "protocol" in document["properties"]:
        # They name it by its identifier: readers find it without a second file.
        document["$defs"] = {"protocol": _read("protocol")}
    return document


def _read(name: str) -> dict[str, Any]:
    file = files(__package__).joinpath("schema", f"{name}.json")
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def missing(protocol: Protocol) -> dict[str, str]:
    """The parts that a protocol's encoding lacks, with the fallback of each."""
    other = CHANGE if not protocol.longitudinal else FRESH_CHANGE
    asked = [part for part in PARTS.values() if part is not other]
    for part in asked:
        if not part.known:
            # The package's own encodings register their parts on import.
            import_module(f"loloha.{part.name.partition(':')[0]}")
    return {
        part.name: f"{part.gives}: {part.otherwise}"
        for part in asked
        if part.of(protocol.encoding) is None
    }
