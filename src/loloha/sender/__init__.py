"""Sends reports over the network: one user's, with the standard library alone, or a whole fleet's.

See `loloha.sender.fleet` for the latter; it needs numpy and pyarrow.
"""

from loloha.sender.connection import Answer, Connection, Patience, Unreachable
from loloha.sender.device import Delivery, Sender

__all__ = ["Answer", "Connection", "Delivery", "Patience", "Sender", "Unreachable"]
