"""The states of a campaign (open, paused, closed, archived, deleted) and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from loloha.errors import CampaignError

if TYPE_CHECKING:
    from loloha.campaign import Schedule
    from loloha.collector.stored_campaign import StoredCampaign

Wanted = Literal["open", "paused", "closed", "archived", "deleted"]
"""States that can be ordered."""
State = Literal[Wanted, "deleting"]
STATES: tuple[State, ...] = get_args(State)
LISTED: tuple[State, ...] = ("open", "paused", "closed")
"""Other states are shown by address only."""
GONE: tuple[State, ...] = ("deleting", "deleted")
"""The counts are deleted or being deleted, and are not shown."""
SHOWN: tuple[State, ...] = tuple(state for state in STATES if state not in GONE)
ENDED: tuple[State, ...] = ("closed", "archived", *GONE)
"""No round takes reports any more."""
_FOLLOWS: dict[Wanted, tuple[State, ...]] = {
    "open": ("paused",),
    "paused": ("open",),
    "closed": ("open", "paused"),
    "archived": ("closed",),
    "deleted": ("closed", "archived", "deleting"),
}
"""The states that may precede each."""
MEANS: dict[Wanted, str] = {
    "open": "It takes reports again, of the rounds that are open then. What was dropped stays so.",
    "paused": (
        "It takes no reports until it is resumed: devices are told, drop what waits, and ask "
        "again. Its estimates stay."
    ),
    "closed": (
        "It takes no reports any more, for ever; devices are told, drop what waits, and stop. The "
        "pseudonyms of its open rounds are deleted. Its estimates stay."
    ),
    "archived": "It is no longer listed. Its estimates stay at its address.",
    "deleted": (
        "All its counts and waiting reports are deleted, for ever. Its document stays, so that "
        "devices are told that it has ended; so do a log of its reports, and backups of the store."
    ),
}
"""The consequences of each state, shown before it is ordered."""


class Life(NamedTuple):
    """Where a campaign is in its life, as the store has it."""

    state: State = "open"
    first_open: int = 0
    """Rounds below it are closed for ever, even if the clock goes back."""

    def at(self, schedule: Schedule, now: float) -> Life:
        """The state at a moment: after its end date a campaign is closed."""
        has_ended = self.state not in ENDED and schedule.has_ended(now)
        return self._replace(state="closed") if has_ended else self

    def open_rounds(self, stored: StoredCampaign, now: float) -> tuple[int, int]:
        """First and last round that takes reports while the campaign is open."""
        first, last = stored.terms.open_rounds(stored.campaign.schedule, now)
        return max(first, self.first_open), last

    def last_closed(self, stored: StoredCampaign, now: float) -> int:
        """The newest round that has begun and takes no more reports; -1 if there is none."""
        first, last = self.open_rounds(stored, now)
        return min(first - 1, last)


def following(state: State) -> list[Wanted]:
    """The states that may come next, other than the same."""
    return [wanted for wanted, before in _FOLLOWS.items() if state in before]


NEW = Life()
"""The state of a new campaign."""


def require_next(state: State, wanted: Wanted) -> None:
    """Refuse a state that cannot follow; the same again can."""
    before = _FOLLOWS[wanted]
    if wanted != state and state not in before:
        raise CampaignError(
            f"campaign must be {' or '.join(before[:2])} to become {wanted}, it is {state}; "
            + ("create another one" if state in ENDED else "`loloha campaign close URL` closes it")
        )
