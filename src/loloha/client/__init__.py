"""One user's device: a secret key, kept answers and reports, with the standard library alone."""

from typing import TYPE_CHECKING

from loloha import _moved
from loloha.client.client import Client

__all__ = ["Client"]

if not TYPE_CHECKING:

    def __getattr__(name):
        return _moved.attribute(__name__, name)
