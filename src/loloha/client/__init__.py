"""One user's device: a secret key, kept answers and reports, with the standard library alone."""

from loloha.client.client import Client

__all__ = ["Client"]
