"""The states of a campaign's life, and which of them follow which."""

from __future__ import annotations

from typing import Literal, get_args

from loloha.campaign import Schedule
from loloha.errors import CampaignError

State = Literal["open", "paused", "closed", "archived", "deleted"]
STATES: tuple[State, ...] = get_args(State)
LISTED: tuple[State, ...] = ("open", "paused", "closed")
"""Others are shown to who asks for them by name."""
ENDED: tuple[State, ...] = ("closed", "archived", "deleted")
"""No round takes reports any more."""
_FOLLOWS: dict[State, tuple[State, ...]] = {
    "open": ("paused",),
    "paused": ("open",),
    "closed": ("open", "paused"),
    "archived": ("closed",),
    "deleted": ("closed", "archived"),
}
"""After which states each may come."""


def state_at(state: State, schedule: Schedule, now: float) -> State:
    """The state at a moment: from its end date on a campaign is closed, whatever it was."""
    return "closed" if state not in ENDED and schedule.has_ended(now) else state


def require_next(state: State, wanted: State) -> None:
    """Refuse a state that cannot follow; the same again can.

    Raises
    ------
    CampaignError
        If it cannot.
    """
    before = _FOLLOWS[wanted]
    if wanted != state and state not in before:
        raise CampaignError(
            f"campaign must be {' or '.join(before)} to become {wanted}, it is {state}; "
            + ("create another one" if wanted == "open" else "see its states in the documentation")
        )
