"""Routes about results: rounds, estimates, series over rounds, and what they reveal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from loloha.campaign.schedule import to_text
from loloha.collector import estimates, result_shape
from loloha.collector.context import Context
from loloha.collector.etag import not_modified, tag_of, tagged, tagged_bytes, with_tag
from loloha.collector.life import Life
from loloha.collector.openapi import described, problems
from loloha.collector.problem import Problem
from loloha.collector.query import Bound, Level, Newest, Number, RoundsQuery, Top, known_parameters
from loloha.collector.result_document import Asked, Wanted, answer, of_privacy, of_round, of_series
from loloha.collector.store import Round
from loloha.collector.stored_campaign import LONGEST_WINDOW, StoredCampaign
from loloha.server.panel import evenness

_MOST_BINS = 1 << 21
PRIVACY_COSTS = 20
"""Requests that the first computation of a statement counts as."""
_ROUNDS_A_REQUEST = 100


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    guards = [Depends(context.require_sums), Depends(known_parameters)]
    router = APIRouter(tags=["results"], dependencies=guards)

    @router.get(
        "/v1/campaigns/{fingerprint}/rounds",
        summary="What happened in each round",
        responses={**described(result_shape.RoundsDocument), **problems(404)},
    )
    async def list_rounds(
        fingerprint: str,
        request: Request,
        first: Bound = None,
        last: Bound = None,
        newest: Newest = 1000,
    ) -> Response:
        """Reports, duplicates, conflicts and refusals of each round in which anything happened.

        Round -1 holds what was refused before the first round began. Where devices report in one
        round of some, panels compares the sizes of the last rounds that are over.
        """
        stored = await context.known(fingerprint)
        rounds = await context.read(_rounds, context, stored, first, last, newest)
        context.rate.charge(request.scope, len(rounds) / _ROUNDS_A_REQUEST)
        now = context.clock()
        life = context.life_of(stored)
        shown = [_show_round(stored, life, round, now) for round in rounds]
        panels = await _panels(context, stored, now)
        return tagged(request, result_shape.RoundsDocument(fingerprint, shown, panels))

    @router.get(
        "/v1/campaigns/{fingerprint}/rounds/{round}/estimates",
        summary="Estimates of one round",
        responses={**in_three_forms(result_shape.EstimatesDocument), **problems(404, 409, 413)},
    )
    async def show_estimates(
        fingerprint: str,
        round: Number,
        request: Request,
        level: Level = 0.95,
        projected: Annotated[bool, Query(description="Also on the simplex")] = False,
        top: Top = None,
        format: Literal["json", "csv", "parquet"] = "json",
    ) -> Response:
        """Unbiased frequencies with standard errors, intervals, and realised parameters.

        Of the reports that are published: their number is n. Suppressed below the minimum cohort
        and before the first publication: JSON says so, the other forms answer 409.
        """
        stored = await context.known(fingerprint)
        last = stored.campaign.schedule.last
        if round > last:
            raise Problem(404, f"round must be in 0..{last}; rounds end with the year 9998")
        if top is None and stored.bins > _MOST_BINS:
            raise Problem(
                413, f"round must have at most {_MOST_BINS} values to show all; ask for top=1000"
            )
        at = await context.read(_rounds, context, stored, round, round, 1)
        single = at[0] if at else Round(round)
        why = estimates.suppressed_because(stored, single)
        life = context.life_of(stored)
        state = estimates.round_state(stored, life, round, context.clock())
        asked = (fingerprint, round, level, projected, top, format, state, why)
        n = single.n if why else single.published
        if unchanged := not_modified(request, tag_of(n, *asked)):
            return unchanged

        selection = estimates.Selection(level, projected, top)
        wanted = Wanted(round, n, why, state, selection, format)
        work = 0 if why else stored.work
        total, pieces = await context.compute(request, work, of_round, fingerprint, wanted)
        response = answer(context.answers, pieces, f"round-{round}", format)
        return with_tag(response, tag_of(total, *asked))

    @router.get(
        "/v1/campaigns/{fingerprint}/series",
        summary="Estimates over rounds",
        responses={**in_three_forms(result_shape.SeriesDocument), **problems(404)},
    )
    async def show_series(
        fingerprint: str, request: Request, query: Annotated[RoundsQuery, Depends()]
    ) -> Response:
        """Estimates, standard errors and intervals, a row a round, for all, chosen or top values.

        CSV and Parquet have the same columns, and a row for each round and value. Where devices
        report in one round of some, window_ columns hold the mean of so many rounds, the last one
        included; very wide domains have none.

        Rows of rounds below the minimum cohort are null. Values are cut to the most frequent ones
        where rounds times values exceed a million; rounds are cut to the newest ones where reading
        them all would take too much work.
        """
        stored = await context.known(fingerprint)
        query.require_values(stored.bins)
        first, before = query.first or 0, stored.rounds_before(stored.campaign.schedule.every)
        newest = min(query.newest, stored.rounds_at_once - before)
        asked_from = max(0, first - before)
        rounds = await context.read(
            _rounds, context, stored, asked_from, query.last, newest + before
        )
        first = max([first, *(round.number for round in rounds[-newest:][:1])])
        rounds = [round for round in rounds if round.n > 0]
        counts = tuple((round.number, round.n, round.published) for round in rounds)
        tag = tag_of(fingerprint, counts, *query.form)
        if unchanged := not_modified(request, tag):
            return unchanged
        work = stored.work * sum(round.published > 0 for round in rounds)
        asked = Asked(query.value, query.top, query.level, first, before > 0)
        _, pieces = await context.compute(
            request, work, of_series, fingerprint, rounds, asked, query.format
        )
        return with_tag(answer(context.answers, pieces, "series", query.format), tag)

    @router.get(
        "/v1/campaigns/{fingerprint}/privacy",
        summary="What reports reveal, in plain words",
        responses={**described(result_shape.Privacy), **problems(404)},
    )
    async def show_privacy(fingerprint: str, request: Request) -> Response:
        """The guarantee, what it does not cover, and how the loss grows with reports."""
        await context.known(fingerprint)
        name = "privacy", fingerprint
        if not context.prepared.holds(name):
            context.rate.charge(request.scope, PRIVACY_COSTS)
        body = await context.prepared.of(name, lambda: _privacy(context, request, fingerprint))
        return tagged_bytes(request, body)

    return router


def _rounds(
    context: Context, stored: StoredCampaign, first: int | None, last: int | None, newest: int
) -> list[Round]:
    first = -1 if first is None else first
    return context.store.rounds(stored, first=first, last=last, newest=newest)


async def _panels(
    context: Context, stored: StoredCampaign, now: float
) -> result_shape.PanelSizes | msgspec.UnsetType:
    """Evenness of the last panels; unset without panels, or with too many or too small ones."""
    schedule = stored.campaign.schedule
    last = context.life_of(stored).last_closed(stored, now)
    if not 1 < schedule.every <= min(last + 1, LONGEST_WINDOW):
        return msgspec.UNSET
    first = last - schedule.every + 1
    rounds = await context.read(_rounds, context, stored, first, last, schedule.every)
    sizes = evenness({round.number: round.n for round in rounds}, schedule.every, last)
    if sizes is None:
        return msgspec.UNSET
    return result_shape.PanelSizes(**sizes._asdict(), even=sizes.even, text=str(sizes))


def _show_round(
    stored: StoredCampaign, life: Life, round: Round, now: float
) -> result_shape.RoundDocument:
    schedule = stored.campaign.schedule
    before = round.number < 0
    return result_shape.RoundDocument(
        round=round.number,
        start=None if before else to_text(schedule.begins(round.number)),
        end=to_text(schedule.ends(round.number)),
        state="before" if before else estimates.round_state(stored, life, round.number, now),
        n=round.n,
        published=round.published,
        duplicates=round.duplicates,
        conflicts=round.conflicts,
        refused=round.refused,
        opt_outs=round.opt_outs,
        shown=estimates.suppressed_because(stored, round) is None,
    )


async def _privacy(context: Context, request: Request, fingerprint: str) -> bytes:
    """Made once for all who ask: it takes seconds where eps_1 is near eps_inf and k is large."""
    _, parts = await context.compute_apart(request, of_privacy, fingerprint)
    return b"".join(parts)


def in_three_forms(content: type[msgspec.Struct]) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that answers in JSON, CSV and Parquet."""
    forms = described(content)
    text, binary = {"type": "string"}, {"type": "string", "format": "binary"}
    forms[200]["content"] |= {
        "text/csv": {"schema": text},
        "application/vnd.apache.parquet": {"schema": binary},
    }
    return forms
