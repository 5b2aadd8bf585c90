"""Whether a port of the device, in whatever language, does what this one does.

A port answers questions on its standard input, one JSON object a line; see docs/protocol.md.
"""

from loloha.conform.port import Port, PortError, connect
from loloha.conform.suite import Result, conform

__all__ = ["Port", "PortError", "Result", "conform", "connect"]
