"""The route that counts users who opt out: a number and no name."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from loloha.collector.admission import CAMPAIGN
from loloha.collector.context import Context
from loloha.collector.openapi import WRITES, problems
from loloha.collector.query import known_parameters
from loloha.collector.stored_campaign import StoredCampaign

COST = 10
"""Requests that one counts as: it is a commit of its own, by anybody."""


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    router = APIRouter(tags=["devices"], dependencies=[Depends(known_parameters)])

    @router.post(
        CAMPAIGN + "/opt-outs",
        summary="Count a user who wants no part",
        status_code=204,
        response_class=Response,
        responses={**problems(*WRITES, 401, 404, 410)},
        dependencies=[Depends(context.require_sums)],
    )
    async def count_opt_out(fingerprint: str, request: Request) -> Response:
        """Add one to the opt-outs of the round that the collector's clock shows.

        Nothing else is read or stored: no pseudonym, no address. So nobody can tell whether it was
        counted before, and anybody can send any number: it is no bound on how many there are.
        """
        stored: StoredCampaign = request.scope["admitted"].stored
        context.rate.charge(request.scope, COST)
        await context.require_open(stored, {}, 0)
        now = context.timekeeper.now()
        await context.read(context.store.count_opt_out, stored, now)
        context.metrics.count_opt_out(stored.campaign.fingerprint)
        return Response(status_code=204)

    return router
