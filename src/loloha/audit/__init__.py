"""An empirical lower bound on what any client reveals: ours, or a foreign program."""

from loloha.audit.audit import Audit, Finding, audit
from loloha.audit.binomial import clopper_pearson
from loloha.audit.command_device import CommandDevice, report_of
from loloha.audit.device import ClientDevice, Device

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
