"""Reasons why a report is not counted."""

from __future__ import annotations

from enum import StrEnum


class Refusal(StrEnum):
    """Reasons, as they stand in answers, statistics and metrics."""

    MALFORMED = "malformed"
    """Not an object with exactly the fields of a report, or one of the wrong type."""
    VERSION = "unknown_version"
    """Another version of the message."""
    CAMPAIGN = "foreign_campaign"
    """The fingerprint of another campaign: device and collector do not agree on the rules."""
    REPORTER = "bad_reporter"
    """The pseudonym is not 32 hexadecimal digits."""
    KEY = "bad_key"
    """The key is short, long or not one of the protocol's."""
    ANSWER = "bad_y"
    """The answer is short, long or not one of the protocol's."""
    TICKET = "bad_ticket"
    """The collector assigned no such key."""
    EARLY = "early"
    """The round has not begun."""
    LATE = "late"
    """The round is closed."""
    CONFLICT = "conflict"
    """The reporter has sent a different report for this round before; that one counts."""

    @property
    def code(self) -> int:
        """A small positive integer, for arrays of reasons; 0 stands for none."""
        return REASONS.index(self) + 1

    @property
    def help(self) -> str:
        """What it means and what to do, for people."""
        return _HELP[self]


REASONS = tuple(Refusal)

_HELP = {
    Refusal.MALFORMED: "report must hold exactly the documented fields; see /openapi.json",
    Refusal.VERSION: "version of the report is unknown here; use a matching release of loloha",
    Refusal.CAMPAIGN: "report is for another campaign; fetch the campaign and ask its user again",
    Refusal.REPORTER: "reporter must be 32 hexadecimal digits; use Client.reporter(round)",
    Refusal.KEY: "key must be one of the protocol's; check that both sides use one campaign",
    Refusal.ANSWER: "y must be one of the protocol's; check that both sides use one campaign",
    Refusal.TICKET: "key must be one that this collector assigned; ask it for one",
    Refusal.EARLY: "round has not begun; check the device's clock, and send it again later",
    Refusal.LATE: "round is closed; drop the report",
    Refusal.CONFLICT: "this reporter has sent a different report for the round; the first counts",
}
