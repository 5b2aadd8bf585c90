"""One user's client: secret key, permanent responses, reports. Standard library only."""

from typing import TYPE_CHECKING

from loloha import _moved
from loloha.client.client import Client

__all__ = ["Client"]

if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
