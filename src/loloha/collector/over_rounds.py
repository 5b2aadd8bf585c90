"""Routes about rounds taken together: smoothed series, and alarms."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from loloha.collector import result_shape
from loloha.collector.alarm_watch import describe
from loloha.collector.context import NUMBERS_A_REQUEST, Context
from loloha.collector.etag import not_modified, tag_of, tagged, with_tag
from loloha.collector.openapi import described, problems
from loloha.collector.problem import Problem
from loloha.collector.query import RoundsQuery, known_parameters
from loloha.collector.result_document import Asked, answer
from loloha.collector.results import in_three_forms
from loloha.collector.smoothed import of_smoothed
from loloha.collector.smoothed_cache import MOST_CELLS, rounds_together
from loloha.collector.store.alarms import AlarmStore
from loloha.errors import ParameterError

# Cells of the filter that cost as much as one number of an answer.
_FILTERED = 4


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    guards = [Depends(context.require_sums), Depends(known_parameters)]
    router = APIRouter(tags=["results"], dependencies=guards)

    @router.get(
        "/v1/campaigns/{fingerprint}/smoothed",
        summary="Rounds estimated together",
        responses={**in_three_forms(result_shape.SmoothedDocument), **problems(404, 413)},
    )
    async def show_smoothed(
        fingerprint: str, request: Request, query: Annotated[RoundsQuery, Depends()]
    ) -> Response:
        """Shares of each round, estimated from all rounds asked for, with what rounds share.

        Only of published reports; rows of suppressed rounds are null. `unbiased` is what a round
        says by itself, for the publication of raw numbers. Rounds are cut to the newest ones where
        rounds times values exceed 262144.
        """
        stored = await context.known(fingerprint)
        query.require_values(stored.bins)
        most = rounds_together(stored)
        if most < 2:
            raise Problem(
                413,
                f"rounds must be few enough to hold at most {MOST_CELLS} values, not two of these "
                "are; use `loloha series` on tallies",
            )
        rounds = await context.read(
            lambda: context.store.rounds(
                stored, first=query.first or 0, last=query.last, newest=min(query.newest, most)
            )
        )
        rounds = [round for round in rounds if round.n > 0]
        counts = tuple((round.number, round.n, round.published) for round in rounds)
        tag = tag_of("smoothed", fingerprint, counts, *query.form)
        if unchanged := not_modified(request, tag):
            return unchanged
        published = sum(round.published > 0 for round in rounds)
        work = (stored.work + _FILTERED * stored.bins) * published
        context.rate.charge(request.scope, work / NUMBERS_A_REQUEST)
        asked = Asked(query.value, query.top, query.level)
        _, pieces = await context.once.of(
            ("smoothed", tag),
            lambda: context.compute_apart(
                request, of_smoothed, fingerprint, rounds, asked, query.format
            ),
        )
        return with_tag(answer(context.answers, pieces, "smoothed", query.format), tag)

    @router.get(
        "/v1/campaigns/{fingerprint}/alarms",
        summary="Rounds that were not what the rounds before led to expect",
        responses={**described(result_shape.Alarms), **problems(404)},
    )
    async def show_alarms(fingerprint: str, request: Request) -> Response:
        """The rules that closed rounds of the campaign are tried on, and the newest 100 alarms."""
        stored = await context.known(fingerprint)
        rules: list[Any] = []
        for alarm in context.settings.alarms:
            if alarm.watches(fingerprint):
                try:
                    rules.append(describe(alarm.rule(stored.campaign)))
                except ParameterError:
                    # The log says why the rule does not apply to this campaign.
                    continue
        bodies = await context.read(lambda: AlarmStore(context.store).newest(stored.id))
        events = [msgspec.json.decode(body, type=result_shape.AlarmEvent) for body in bodies]
        return tagged(request, result_shape.Alarms(fingerprint, rules, events))

    return router
