"""The schedule of rounds: begin and end in UTC, in whole seconds; the moment is passed in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from loloha import checks
from loloha.errors import CampaignError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_START = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LAST_END = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LONGEST_ROUND = 366 * 86400
RAREST = 1 << 24  # A device reports in one of so many rounds.


@dataclass(frozen=True)
class Schedule:
    """Rounds of equal length, counted from 0, in UTC: no daylight saving, no local midnight.

    Parameters
    ----------
    start : int
        Beginning of round 0, in Unix seconds, from 1970 on.
    seconds : int
        Length of a round, 1 second to 366 days.
    every : int
        In how many rounds a device reports once, 1 to 2^24: users form so many panels, and a device
        belongs for life to one that it drew. Whatever its values do, any so many rounds that
        follow each other hold at most one of its reports.
    expires : int, optional
        Unix seconds after the start: from then on nothing is drawn, sent or counted, and the round
        it falls into is the last one. By default the campaign goes on until somebody ends it.
    """

    start: int
    seconds: int
    every: int = 1
    expires: int | None = None

    def __post_init__(self) -> None:
        start = checks.integer(
            "start", self.start, 0, _LAST_START, "give a moment in UTC, in whole seconds"
        )
        seconds = checks.integer(
            "seconds", self.seconds, 1, _LONGEST_ROUND, "a day has 86400 seconds"
        )
        every = checks.integer("every", self.every, 1, RAREST, "1 is a report in each round")
        if self.expires is not None:
            advice = "give a moment in UTC after the start"
            expires = checks.integer("expires", self.expires, start + 1, _LAST_START, advice)
            object.__setattr__(self, "expires", expires)
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "seconds", seconds)

    def round_at(self, moment: float) -> int:
        """Number of the round of ``moment`` (Unix seconds); negative before the start."""
        return (math.floor(float(moment)) - self.start) // self.seconds

    def has_ended(self, moment: float) -> bool:
        """Whether ``moment`` (Unix seconds) is not before the end date; False without one."""
        return self.expires is not None and moment >= self.expires

    def takes(self, round: int, moment: float) -> bool:
        """Whether the end date leaves a round, and ``moment`` (Unix seconds), to be answered."""
        return self.expires is None or (moment < self.expires and round <= self.last)

    def begins(self, round: int) -> int:
        """First second of a round, in Unix seconds."""
        return self.start + int(round) * self.seconds

    def ends(self, round: int) -> int:
        """First second after a round, in Unix seconds."""
        return self.begins(int(round) + 1)

    @property
    def last(self) -> int:
        """The last round: it begins before the end date, and ends before the year 9999."""
        last = self.round_at(_LAST_END) - 1
        return last if self.expires is None else min(last, self.round_at(self.expires - 1))

    def to_dict(self) -> dict[str, Any]:
        """Start as text in UTC, seconds; ``every`` where it is not 1, and the end date if any."""
        plain: dict[str, Any] = {"start": to_text(self.start), "seconds": self.seconds}
        if self.every != 1:
            plain["every"] = self.every
        if self.expires is not None:
            plain["expires"] = to_text(self.expires)
        return plain

    @classmethod
    def from_dict(cls, plain: Any) -> Self:
        """What `to_dict` returned; any UTC offset is accepted.

        Raises
        ------
        CampaignError
            If it is not an object with ``start``, ``seconds`` and perhaps ``every``, ``expires``.
        """
        optional = {"every", "expires"}
        if not isinstance(plain, Mapping) or {*plain} - optional != {"start", "seconds"}:
            raise CampaignError(
                "round must be an object with 'start', 'seconds' and perhaps 'every' and "
                "'expires', got another; "
                'for example {"start": "2026-01-01T00:00:00Z", "seconds": 86400}'
            )
        if "every" in plain:
            # One campaign, one document: 1 is left out.
            checks.integer("every", plain["every"], 2, RAREST, "leave it out for each round")
        expires = from_text(plain["expires"], "expires") if "expires" in plain else None
        start = from_text(plain["start"])
        return cls(start, plain["seconds"], plain.get("every", 1), expires)


def to_text(moment: int) -> str:
    """Unix seconds as text in UTC, e.g. ``2026-01-01T00:00:00Z``."""
    return (_EPOCH + timedelta(seconds=moment)).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_text(text: Any, name: str = "start") -> int:
    """Unix seconds of a moment written with its offset from UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None or moment.microsecond:
        raise CampaignError(
            f"{name} must be a moment with its offset from UTC, in whole seconds, got "
            f"{checks.shown(text)}; for example '2026-01-01T00:00:00Z'"
        )
    return (moment - _EPOCH) // timedelta(seconds=1)
