"""The logs that engines count, too."""

from logs import draw, kind, make_log, messy, protocol

__all__ = ["draw", "kind", "make_log", "messy", "protocol"]
