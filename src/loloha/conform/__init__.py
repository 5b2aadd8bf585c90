"""Whether a port of the device, in whatever language, does what this one does.

A port answers questions on its standard input, one JSON object a line; see docs/protocol.md.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from loloha import checks
from loloha.conform.parts import missing
from loloha.conform.port import Port, PortError, connect
from loloha.conform.suite import Result, conform

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
