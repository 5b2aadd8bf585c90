"""An empirical lower bound on the loss of any client, shipped or foreign."""

from loloha.audit.audit import Audit, Finding, audit, clopper_pearson
from loloha.audit.device import ClientDevice, CommandDevice, Device, report_of

__all__ = [
    "Audit",
    "ClientDevice",
    "CommandDevice",
    "Device",
    "Finding",
    "audit",
    "clopper_pearson",
    "report_of",
]
