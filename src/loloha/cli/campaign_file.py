"""The file that says what reports belong to: a campaign, or a bare protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loloha.errors import CampaignError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign
    from loloha.protocols import Protocol

File = Annotated[
    Path,
    typer.Option(
        "--campaign",
        metavar="FILE",
        help="Campaign document, or the specification of a protocol (Protocol.to_dict), as JSON.",
    ),
]


def load(path: Path) -> Campaign | Protocol:
    """What a file says was agreed on.

    Raises
    ------
    CampaignError
        If it cannot be read, or is neither a campaign nor a protocol.
    """
    from loloha.campaign import Campaign
    from loloha.protocols import REGISTRY, protocol_from_dict

    try:
        plain = json.loads(path.read_bytes())
    except OSError as error:
        raise CampaignError(
            f"campaign must be readable, got {str(path)!r}: {error.strerror}; check the path"
        ) from error
    except (ValueError, RecursionError):
        raise CampaignError(
            f"campaign must be JSON, got other text in {str(path)!r}; export it again"
        ) from None
    if isinstance(plain, dict) and plain.get("type") in REGISTRY:
        try:
            return protocol_from_dict(plain)
        except ParameterError as error:
            raise CampaignError(f"{path}: {error}") from None
    return Campaign.from_dict(plain)
