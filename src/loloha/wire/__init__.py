"""The versioned messages between devices and collector: one report, and batches of them.

What devices need loads the standard library alone; see `loloha.wire.batch` for the server's side.
"""

from loloha.wire.message import MESSAGE_VERSION, Widths, encode
from loloha.wire.refusal import Refusal

__all__ = ["MESSAGE_VERSION", "Refusal", "Widths", "encode"]
