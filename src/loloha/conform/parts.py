"""What an encoding does not bring, and what becomes of it."""

from __future__ import annotations

from importlib import import_module

from loloha.encodings import PARTS
from loloha.encodings.part import CHANGE, FRESH_CHANGE
from loloha.protocols import Protocol


def missing(protocol: Protocol) -> dict[str, str]:
    """The parts that the encoding of a protocol does not bring, with what happens instead."""
    other = CHANGE if not protocol.longitudinal else FRESH_CHANGE
    asked = [part for part in PARTS.values() if part is not other]
    for part in asked:
        if not part.known:
            # The package's own encodings have their parts where they are asked for.
            import_module(f"loloha.{part.name.partition(':')[0]}")
    return {
        part.name: f"{part.gives}: {part.otherwise}"
        for part in asked
        if part.of(protocol.encoding) is None
    }
