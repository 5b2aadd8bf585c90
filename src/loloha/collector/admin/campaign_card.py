"""The card of a campaign on the admin page."""

from __future__ import annotations

from dataclasses import dataclass

from loloha.campaign.schedule import to_text
from loloha.collector.context import Context
from loloha.collector.life import Life, State, Wanted, following
from loloha.collector.store import Round
from loloha.collector.store.standing import Standing, standings
from loloha.collector.stored_campaign import StoredCampaign

SHORT = 8
"""Digits of the fingerprint in a campaign's short name."""
MOST_SHOWN = 50
_VERBS: dict[Wanted, str] = {
    "open": "Resume",
    "paused": "Pause",
    "closed": "Close",
    "archived": "Archive",
    "deleted": "Delete",
}
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@dataclass(frozen=True)
class Card:
    """One campaign, the states that it can be put in, and how long ago its newest report came."""

    stored: StoredCampaign
    sums: Round
    state: State
    follows: list[Wanted]
    newest: str

    verbs = _VERBS

    @property
    def name(self) -> str:
        """That of its document."""
        return self.stored.campaign.name

    @property
    def fingerprint(self) -> str:
        """The whole one."""
        return self.stored.campaign.fingerprint

    @property
    def short(self) -> str:
        """The short name, typed to delete it."""
        return self.fingerprint[:SHORT]

    @property
    def refused(self) -> int:
        """Reports that were refused, for any reason."""
        return sum(self.sums.refused.values())

    @property
    def expires(self) -> str:
        """When it ends by itself."""
        moment = self.stored.campaign.schedule.expires
        return "no end date" if moment is None else to_text(moment)[:16].replace("T", " ")

    @property
    def retention(self) -> str:
        """How long the sums of a round are stored."""
        if self.state in ("deleting", "deleted"):
            return "sums are deleted"
        days = self.stored.terms.keep_days
        return "sums are stored for ever" if days is None else f"sums for {days} days after a round"


async def cards(context: Context, before: str | None) -> tuple[list[Card], str | None]:
    """The newest campaigns, the newest first, and before which one there are older ones."""
    fingerprints = await context.read(
        lambda: context.store.fingerprints(before=before, newest=MOST_SHOWN + 1)
    )
    shown = fingerprints[-MOST_SHOWN:][::-1]
    some = await _cards(context, shown)
    return some, shown[-1] if len(fingerprints) > MOST_SHOWN else None


async def card(context: Context, fingerprint: str) -> Card:
    """That of one campaign."""
    await context.known(fingerprint)
    return (await _cards(context, [fingerprint]))[0]


async def _cards(context: Context, fingerprints: list[str]) -> list[Card]:
    stand = await context.read(standings, context.store, fingerprints)
    stored = [await context.known(fingerprint) for fingerprint in fingerprints]
    now = context.clock()
    return [_card(campaign, stand[campaign.campaign.fingerprint], now) for campaign in stored]


def _card(stored: StoredCampaign, stand: Standing, now: float) -> Card:
    # From the store: this collector may not know yet what another has changed.
    state = Life(stand.state).at(stored.campaign.schedule, now).state
    newest = ago(now - stand.newest_report) if stand.newest_report else "none yet"
    return Card(stored, stand.sums, state, following(state), newest)


def ago(seconds: float) -> str:
    """An age in its largest whole unit."""
    for unit, size in _UNITS:
        n = int(seconds // size)
        if n > 0:
            return f"{n} {unit}{'s' if n > 1 else ''} ago"
    return "less than a minute ago"
