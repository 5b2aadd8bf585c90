"""The text that a user agrees to, for one campaign or several. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Collection

from loloha.campaign import Campaign
from loloha.client.limit import covers, least
from loloha.errors import ParameterError

_DRAWN = (
    "Values stay on the device. It sends answers that are drawn at random: each could have been "
    "sent under any other value."
)


def explain_all(
    campaigns: Collection[Campaign], *, limit: float | None = None, after: Collection[Campaign] = ()
) -> str:
    """What reporting to all these campaigns together reveals, to be shown before a user agrees."""
    # ``after`` are those that the user reported to before, such as the one that they succeed.
    if not campaigns:
        raise ParameterError("campaigns must name at least one, got none")
    lines = [_DRAWN, *(_one(campaign) for campaign in campaigns)]
    if len(campaigns) > 1:
        lines.append(_together(campaigns))
    lines.append(_most(campaigns, limit))
    if after:
        lines.append(both(after, campaigns))
    lines.append(
        "Not covered by any of these numbers: when values change and when back, which shows in the "
        "reports the more the longer they run; whether and when reports are sent, and from where."
    )
    lines.append(
        "Nothing renews by itself: what was spent stays spent after a reset or a withdrawal."
    )
    return "\n".join(f"- {line}" for line in lines)


def _one(campaign: Campaign) -> str:
    protocol, schedule = campaign.protocol, campaign.schedule
    seconds = schedule.seconds * schedule.every
    first, memo = protocol.asked_first, protocol.asked_memo
    text = (
        f"{campaign.name}: one of {protocol.k} values, every {span(seconds)}. One report, seen "
        f"alone, shifts the odds between any two values by a factor of at most {factor(first)}: of "
        f"two that seemed equally likely one can then seem {belief(first)}"
    )
    if not protocol.longitudinal:
        return f"{text}. Every further report shifts them by as much again."
    return (
        f"{text}; all reports of a value that never changes, for ever, by at most {factor(memo)}: "
        f"{belief(memo)}."
    )


def _together(campaigns: Collection[Campaign]) -> str:
    """The losses of several attributes of one person add up, however these depend on each other."""
    protocols = [campaign.protocol for campaign in campaigns]
    first = sum(protocol.asked_first for protocol in protocols)
    text = (
        f"All {len(protocols)} together: their losses add up. The first report of each, all of "
        f"them known: a factor of at most {factor(first)}"
    )
    if not all(protocol.longitudinal for protocol in protocols):
        return f"{text}; later ones have no bound for ever, as not all of them are memoised."
    for_ever = sum(protocol.asked_memo for protocol in protocols)
    return f"{text}; all reports of values that never change: {factor(for_ever)}."


def both(before: Collection[Campaign], campaigns: Collection[Campaign]) -> str:
    """What campaigns cost together with those before them, of the same attribute or of others."""
    names = ", ".join(campaign.name for campaign in before)
    protocols = [campaign.protocol for campaign in (*before, *campaigns)]
    text = f"After {names}: what was spent there stays spent, and these losses add to it."
    if not all(protocol.longitudinal for protocol in protocols):
        return f"{text} In all there is no bound for ever, as not all answers are memoised."
    for_ever = sum(protocol.asked_memo for protocol in protocols)
    return (
        f"{text} All reports to all of them of values that never change: a factor of at most "
        f"{factor(for_ever)}; at most {sum(protocol.cap for protocol in protocols):.4g} can be "
        "spent in all."
    )


def _most(campaigns: Collection[Campaign], limit: float | None) -> str:
    protocols = [campaign.protocol for campaign in campaigns]
    cap, need = sum(protocol.cap for protocol in protocols), sum(map(least, protocols))
    if limit is not None and not covers(limit, need):
        return (
            f"Budget: a limit of {limit:.4g} does not cover the {need:.4g} that can be spent: "
            "nothing is reported under it."
        )
    most = cap if limit is None else min(cap, limit)
    if math.isinf(most):
        return "Budget: without a limit there is no most that can be spent."
    asked = "the limit that is agreed on" if limit is not None and limit < cap else "the cap"
    return (
        f"Budget: at most {most:.4g} can be spent, {asked}. It counts the answers that are drawn; "
        "it is not a bound on what a history of changing values shows."
    )


def belief(eps: float) -> str:
    """What one of two values can seem at most, that seemed equally likely, rounded up."""
    share = math.ceil(1000 / (1 + math.exp(-eps)))
    return "almost certain" if share > 999 else f"at most {share / 10:.1f} % likely"


def factor(eps: float) -> str:
    """A loss as the factor by which it shifts odds."""
    return f"e^{eps:.4g} = {math.exp(eps):.4g}" if eps < 700 else f"e^{eps:.4g}"


def span(seconds: int) -> str:
    """A length of time in words."""
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            count = seconds // size
            return name if count == 1 else f"{count} {name}s"
    return "second" if seconds == 1 else f"{seconds} seconds"
