"""The collector's terms for one campaign, beside the campaign's own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from loloha import checks
from loloha.campaign import Schedule
from loloha.errors import CampaignError, ParameterError
from loloha.report import MOST_REPORTS

MOST_OPEN = 1_000
"""Rounds of one campaign that take reports at a time: each has a guard of its own."""

LONGEST_TOLERANCE = 366 * 86400
MOST_KEEP_DAYS = 36_525


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Tolerances, and when estimates are shown; fixed when the campaign is created."""

    late_seconds: int = 86_400
    early_seconds: int = 60
    minimum_cohort: int = 100
    publish_every: int | None = None
    keep_days: int | None = None
    """Days after which a closed round is deleted; None for never."""

    def __post_init__(self) -> None:
        advice = "0 tolerates nothing"
        checks.integer("late_seconds", self.late_seconds, 0, LONGEST_TOLERANCE, advice)
        checks.integer("early_seconds", self.early_seconds, 0, LONGEST_TOLERANCE, advice)
        checks.integer(
            "minimum_cohort", self.minimum_cohort, 1, MOST_REPORTS, "1 shows every round"
        )
        if self.publish_every is None:
            object.__setattr__(self, "publish_every", self.minimum_cohort)
        checks.integer("publish_every", self.publish_every, 0, MOST_REPORTS, "1 shows every report")
        if self.keep_days is not None:
            checks.integer(
                "keep_days", self.keep_days, 1, MOST_KEEP_DAYS, "leave it out to keep all"
            )

    def publishes(self, n: int, waiting: int) -> bool:
        """Whether the ``waiting`` last of n reports of an open round are to be shown now."""
        step = self.publish_every or 0
        return 0 < step <= waiting and n >= self.minimum_cohort

    def open_rounds(self, schedule: Schedule, now: float) -> tuple[int, int]:
        """First and last round that takes reports at ``now``; last < first if none does."""
        if schedule.has_ended(now):
            return schedule.last + 1, schedule.last
        first = schedule.round_at(now - self.late_seconds)
        return max(0, first), min(schedule.last, schedule.round_at(now + self.early_seconds))

    def closes(self, schedule: Schedule, round: int) -> float:
        """Unix seconds at which a round takes no more reports."""
        closes = schedule.ends(round) + self.late_seconds
        return closes if schedule.expires is None else min(closes, schedule.expires)

    def first_stored(self, schedule: Schedule, now: float) -> int:
        """First round whose sums are not yet to be deleted."""
        if self.keep_days is None:
            return 0
        return max(0, schedule.round_at(now - self.late_seconds - self.keep_days * 86_400))

    def require_few_rounds(self, schedule: Schedule) -> None:
        """Refuse tolerances that keep too many rounds of this length open."""
        longest = MOST_OPEN * schedule.seconds
        if self.late_seconds + self.early_seconds > longest:
            raise CampaignError(
                f"late_seconds and early_seconds must add up to at most {longest} ({MOST_OPEN} "
                f"rounds), got {self.late_seconds + self.early_seconds}; lower one of them"
            )

    def to_dict(self) -> dict[str, int]:
        """As JSON data; ``keep_days`` where there is one."""
        plain = asdict(self)
        if self.keep_days is None:
            del plain["keep_days"]
        return plain

    def to_json(self) -> str:
        """As the store keeps it."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, plain: Any) -> Self:
        """What `to_dict` returned; what is left out has its default."""
        known = {field.name for field in fields(cls)}
        if not isinstance(plain, Mapping) or not set(plain) <= known:
            raise CampaignError(
                f"terms must be an object with some of {sorted(known)}, got another; correct it"
            )
        try:
            return cls(**plain)
        except ParameterError as error:
            raise CampaignError(str(error)) from error
