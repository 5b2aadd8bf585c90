"""Routes about campaigns: create them with an admin key, list and show them to everybody."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from loloha import checks
from loloha.campaign import Campaign, Labels
from loloha.campaign.schedule import to_text
from loloha.collector import shape
from loloha.collector.answer import Shared
from loloha.collector.context import Context
from loloha.collector.decoding import read_body
from loloha.collector.etag import not_modified, tag_of, tagged, with_tag
from loloha.collector.life import LISTED, STATES, Life, Wanted
from loloha.collector.openapi import WRITES, described, problems, takes
from loloha.collector.problem import Problem
from loloha.collector.query import Whole, known_parameters
from loloha.collector.secret import hashed, new_secret
from loloha.collector.settings import Settings
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.terms import Terms
from loloha.errors import CampaignError, LolohaError
from loloha.planning.accuracy_check import check_accuracy, require_fit_keys, require_strong_privacy
from loloha.report import MOST_REPORTS

Newest = Annotated[Whole, Query(ge=1, le=1000, description="How many, the newest ones")]
JSON = "application/json"
_CAMPAIGNS_A_REQUEST = 50


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    router = APIRouter(tags=["campaigns"], dependencies=[Depends(known_parameters)])

    @router.post(
        "/v1/campaigns",
        status_code=201,
        summary="Create a campaign",
        responses={
            **described(shape.CreatedDocument),
            **described(shape.CreatedDocument, status=201),
            **problems(*WRITES, 401),
        },
        openapi_extra={**takes(shape.NewCampaign), "security": [{"admin": []}]},
        dependencies=[Depends(context.require_sums)],
    )
    async def create(request: Request) -> Response:
        """Create a campaign; it can never be changed.

        The same document again answers 200 and leaves it as it is, with its first terms and token.
        """
        asked = read_body(request, shape.NewCampaign, "a new campaign")
        campaign, terms, accuracy = await context.read(_checked, context.settings, asked)
        if campaign.schedule.has_ended(context.clock()):
            await _require_known(context, campaign.fingerprint)
        token = new_secret() if asked.token else None
        stored, new = await context.read(
            lambda: context.store.create(
                campaign, terms, token=hashed(token) if token else None, now=context.clock()
            )
        )
        context.add_known(campaign.fingerprint)
        if new:
            await context.read(context.look_over)
        answer = shape.CreatedDocument(
            show_campaign(stored, context.life_of(stored), context.clock()),
            new,
            accuracy,
            accuracy,
            token if new else None,
        )
        return Response(
            msgspec.json.encode(answer),
            201 if new else 200,
            # Relative to /v1/campaigns, behind any proxy.
            headers={"Location": f"campaigns/{campaign.fingerprint}"},
            media_type="application/json",
        )

    @router.get(
        "/v1/campaigns",
        summary="List campaigns",
        responses={**described(shape.Campaigns), **problems()},
    )
    async def list_some(
        request: Request,
        newest: Newest = 100,
        before: Annotated[
            str | None, Query(pattern="^[0-9a-f]{64}$", description="Only older ones than this")
        ] = None,
        archived: Annotated[bool, Query(description="Also archived and deleted ones")] = False,
    ) -> Response:
        """The newest campaigns, the oldest of them first."""
        fingerprints = await context.read(
            lambda: context.store.fingerprints(
                before=before, newest=newest + 1, states=STATES if archived else LISTED
            )
        )
        more = len(fingerprints) > newest
        fingerprints = fingerprints[-newest:]
        context.rate.charge(request.scope, len(fingerprints) / _CAMPAIGNS_A_REQUEST)
        some = [await context.known(fingerprint) for fingerprint in fingerprints]
        now = context.clock()
        summaries = [_summary(context, campaign, now) for campaign in some]
        return tagged(request, shape.Campaigns(summaries, more))

    @router.get(
        "/v1/campaigns/{fingerprint}",
        summary="Show a campaign",
        responses={**described(shape.CampaignDocument), **problems(404)},
    )
    async def show(fingerprint: str, request: Request) -> Response:
        """One campaign with its document, its terms, and which rounds are open."""
        stored = await context.known(fingerprint)
        document = await _document(context, stored)
        head = msgspec.json.encode(_summary(context, stored, context.clock()))
        tag = tag_of(fingerprint, head)
        whole = head[:-1] + b',"document":', document, b"}"
        return not_modified(request, tag) or with_tag(Shared(*whole, media=JSON), tag)

    @router.get(
        "/v1/campaigns/{fingerprint}/document",
        summary="The campaign's document",
        responses={
            200: {
                "description": "Canonical JSON: its SHA-256 is the fingerprint",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **problems(404),
        },
    )
    async def document(fingerprint: str, request: Request) -> Response:
        """The bytes that devices check against the fingerprint they pinned."""
        stored = await context.known(fingerprint)
        # The fingerprint is the ETag of these bytes.
        tag = f'"{fingerprint}"'
        return not_modified(request, tag) or with_tag(
            Shared(await _document(context, stored), media=JSON), tag
        )

    @router.put(
        "/v1/admin/campaigns/{fingerprint}/state",
        summary="Pause a campaign, let it go on, or end it",
        responses={**described(shape.Summary), **problems(*WRITES, 401, 404, 409)},
        openapi_extra={**takes(shape.NewState), "security": [{"admin": []}]},
        dependencies=[Depends(context.require_sums)],
    )
    async def set_state(fingerprint: str, request: Request) -> Response:
        """A paused campaign can be opened again; a closed one, only archived or deleted.

        While it is not open its reports are answered 410, and devices drop them. Closing deletes
        the pseudonyms of its rounds; deleting, also all counts. The document stays.
        """
        asked = read_body(request, shape.NewState, "a state")
        stored = await become(context, fingerprint, asked.state)
        return tagged(request, _summary(context, stored, context.clock()))

    return router


async def become(context: Context, fingerprint: str, state: Wanted) -> StoredCampaign:
    """Change a campaign's state, for the API and the admin page."""
    stored = await context.known(fingerprint)
    try:
        await context.read(context.store.set_state, stored, state, context.timekeeper.now())
    except CampaignError as error:
        raise Problem(409, str(error), kind="state") from None
    await context.read(context.look_over)
    return stored


def _summary(context: Context, stored: StoredCampaign, now: float) -> shape.Summary:
    return shape.Summary(**summary(stored, context.life_of(stored), now))


async def _document(context: Context, stored: StoredCampaign) -> bytes:
    """Prepared once and shared."""
    name = "document", stored.campaign.fingerprint
    return await context.prepared.of(name, lambda: context.read(stored.campaign.to_json))


async def _require_known(context: Context, fingerprint: str) -> None:
    """Refuse a new campaign that has already expired; an existing one is shown."""
    if await context.read(context.store.campaign, fingerprint) is None:
        detail = "expires must lie ahead, got a moment that has passed; give a later end, or none"
        raise Problem(422, detail, kind="campaign")


def _checked(settings: Settings, asked: shape.NewCampaign) -> tuple[Campaign, Terms, Any]:
    """A new campaign, its terms and accuracy check: takes seconds with many labels."""
    try:
        campaign = Campaign.from_dict(asked.campaign)
        if isinstance(campaign.domain, Labels):
            campaign.domain.refuse_alike()
        terms = settings.terms(asked.terms, campaign.schedule)
        require_fit_keys(campaign)
        require_strong_privacy(campaign, accept_weak_privacy=asked.accept_weak_privacy)
        if asked.expected_users is None:
            return campaign, terms, None
        advice = "give the users you expect"
        users = checks.integer("expected_users", asked.expected_users, 1, MOST_REPORTS, advice)
        return campaign, terms, check_accuracy(campaign, users).to_dict()
    except LolohaError as error:
        raise Problem(422, str(error), kind="campaign") from None


def summary(stored: StoredCampaign, life: Life, now: float) -> dict[str, Any]:
    """A campaign's entry in a list."""
    campaign = stored.campaign
    first, last = life.open_rounds(stored, now)
    if life.state != "open":
        first = last + 1
    return {
        "fingerprint": campaign.fingerprint,
        "name": campaign.name,
        "protocol": campaign.protocol.to_dict(),
        "bins": campaign.protocol.bins,
        "schedule": campaign.schedule.to_dict(),
        "keys": campaign.keys,
        "terms": stored.terms.to_dict(),
        "needs_token": stored.token is not None,
        "created": to_text(stored.created),
        "state": life.state,
        "now": {"round": campaign.schedule.round_at(now), "first_open": first, "last_open": last},
    }


def show_campaign(stored: StoredCampaign, life: Life, now: float) -> shape.CampaignDocument:
    """A campaign with its document."""
    return shape.CampaignDocument(**summary(stored, life, now), document=stored.campaign.to_dict())
