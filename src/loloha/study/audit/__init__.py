"""An empirical lower bound on what any client reveals: ours, or a foreign program."""

from loloha.study.audit.audit import Audit, Finding, audit
from loloha.study.audit.binomial import clopper_pearson
from loloha.study.audit.command import CommandDevice, report_of
from loloha.study.audit.device import ClientDevice, Device

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
