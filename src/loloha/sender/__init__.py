"""The device on the network: consent, enrolment, a queue; with the standard library alone."""

from loloha.sender.collector import Collector
from loloha.sender.connection import Connection, Patience, Unreachable
from loloha.sender.consent_text import explain_all
from loloha.sender.delivery import Delivery
from loloha.sender.preview import Preview
from loloha.sender.sender import Sender

__all__ = [
    "Collector",
    "Connection",
    "Delivery",
    "Patience",
    "Preview",
    "Sender",
    "Unreachable",
    "explain_all",
]
