"""The campaign, or bare protocol, of a command: by its address or from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from loloha.errors import CampaignError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign
    from loloha.campaign.domain import Scale
    from loloha.protocols import Protocol


def load(place: str) -> Campaign | Protocol:
    """What was agreed on, as its collector or a file of its document says."""
    from loloha.campaign import Campaign
    from loloha.protocols import REGISTRY, protocol_from_dict

    if "://" in place:
        from loloha.sender.collector import Collector

        with Collector(place) as collector:
            return collector.document()
    try:
        document = Path(place).read_bytes()
        plain = json.loads(document)
    except OSError as error:
        raise CampaignError(
            f"campaign must be readable, got {place!r}: {error.strerror}; check the path"
        ) from error
    except (ValueError, RecursionError):
        raise CampaignError(
            f"campaign must be JSON, got other text in {place!r}; export it again"
        ) from None
    if isinstance(plain, dict) and plain.get("type") in REGISTRY:
        try:
            return protocol_from_dict(plain)
        except ParameterError as error:
            raise CampaignError(f"{place}: {error}") from None
    return Campaign.from_json(document)


def load_campaign(place: str) -> Campaign:
    """`load`, where a bare protocol is not enough."""
    from loloha.campaign import Campaign

    loaded = load(place)
    if isinstance(loaded, Campaign):
        return loaded
    raise CampaignError(
        f"--campaign must be a campaign, got a bare protocol in {place!r}; name another"
    )


def scale_of(agreed: Campaign | Protocol | None) -> Scale | None:
    """The numbers that values stand for, where a campaign says so."""
    from loloha.campaign import Campaign

    return agreed.domain.scale if isinstance(agreed, Campaign) else None
