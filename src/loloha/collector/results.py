"""Routes about results: rounds, estimates, series over rounds, and what they reveal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from loloha.collector import estimates
from loloha.collector.context import Context
from loloha.collector.document import described, problems
from loloha.collector.etag import not_modified, tag_of, tagged, with_tag
from loloha.collector.problem import Problem
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
from loloha.design import privacy
from loloha.rules.campaign.schedule import to_text
from loloha.rules.report import LARGEST_ROUND

_MOST_NUMBERS = 1_000_000
_MOST_BINS = 1 << 21

Number = Annotated[int, Path(ge=0, le=LARGEST_ROUND)]
Bound = Annotated[int | None, Query(ge=0, le=LARGEST_ROUND)]
Level = Annotated[float, Query(ge=0.5, le=0.9999, description="Of the intervals")]
Top = Annotated[int | None, Query(ge=1, le=100_000, description="Only the most frequent")]
Newest = Annotated[int, Query(ge=1, le=1000, description="How many rounds, the newest ones")]


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    router = APIRouter(tags=["results"])
    cache = estimates.Estimates(lambda: context.store)

    @router.get(
        "/v1/campaigns/{fingerprint}/rounds",
        summary="What happened in each round",
        responses={**described("Rounds"), **problems(404)},
    )
    async def list_rounds(
        fingerprint: str,
        request: Request,
        first: Bound = None,
        last: Bound = None,
        newest: Newest = 1000,
    ) -> Response:
        """Reports, duplicates, conflicts and refusals of each round in which anything happened.

        Round -1 holds what was refused before the first round began.
        """
        stored = await context.known(fingerprint)
        found = await context.run(lambda: _rounds(context, stored, first, last)[-newest:])
        now = context.clock()
        shown = [_show_round(stored, one, now) for one in found]
        return tagged(request, {"campaign": fingerprint, "rounds": shown})

    @router.get(
        "/v1/campaigns/{fingerprint}/rounds/{round}/estimates",
        summary="Estimates of one round",
        responses={**_estimates_in_three_forms(), **problems(404, 409, 413)},
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

        Withheld below the minimum cohort: JSON says so, the other forms answer 409.
        """
        stored = await context.known(fingerprint)
        last = stored.campaign.schedule.last
        if round > last:
            raise Problem(404, f"round must be in 0..{last}; rounds end with the year 9998")
        if top is None and stored.bins > _MOST_BINS:
            raise Problem(
                413, f"round must have at most {_MOST_BINS} values to show all; ask for top=1000"
            )
        at = await context.run(lambda: context.store.rounds(stored, first=round, last=round))
        n = at[0].n if at else 0
        now = context.clock()
        state = estimates.state(stored, round, now)
        asked = (fingerprint, round, level, projected, top, format, state)
        unchanged = not_modified(request, tag_of(n, *asked))
        if unchanged is not None:
            return unchanged

        def work() -> tuple[int, Response]:
            estimate = cache.of(stored, round, n) if estimates.withheld(stored, n) is None else None
            total = n if estimate is None else estimate.n
            selection = estimates.Selection(level, projected, top)
            return total, _render(stored, round, total, estimate, selection, format, now)

        total, response = await context.run(work)
        return with_tag(response, tag_of(total, *asked))

    @router.get(
        "/v1/campaigns/{fingerprint}/series",
        summary="Estimates over rounds",
        responses={**described("Series"), **problems(404)},
    )
    async def show_series(
        fingerprint: str,
        request: Request,
        first: Bound = None,
        last: Bound = None,
        newest: Newest = 100,
        value: Annotated[
            list[int] | None, Query(max_length=1000, description="Indices of values")
        ] = None,
        top: Top = None,
        level: Level = 0.95,
    ) -> Response:
        """Frequencies and standard errors, one row a round, for all, chosen or top values.

        Rows of rounds below the minimum cohort are null. Values are cut to the most frequent ones
        where rounds times values exceed a million.
        """
        stored = await context.known(fingerprint)
        if value is not None and not all(0 <= v < stored.bins for v in value):
            raise Problem(422, f"value must lie in 0..{stored.bins - 1}; correct it")
        found = await context.run(lambda: _rounds(context, stored, first, last)[-newest:])
        found = [one for one in found if one.number >= 0 and one.n > 0]
        counts = tuple((one.number, one.n) for one in found)
        tag = tag_of(fingerprint, counts, value, top, level)
        unchanged = not_modified(request, tag)
        if unchanged is not None:
            return unchanged
        work = _series, cache, stored, found, value, top, level
        return with_tag(await context.run(*work), tag)

    @router.get(
        "/v1/campaigns/{fingerprint}/privacy",
        summary="What reports reveal, in plain words",
        responses={**described("Privacy"), **problems(404)},
    )
    async def show_privacy(fingerprint: str, request: Request) -> Response:
        """The guarantee, what it does not cover, and how the loss grows with reports."""
        stored = await context.known(fingerprint)
        campaign = stored.campaign
        # How surely changes show takes a second of simulation, the first time.
        text = str(await context.run(privacy.explain, campaign.protocol))
        found = privacy.explain(campaign.protocol, reports=[*range(1, 21), 30, 50, 100])
        shown = {**found.to_dict(), "text": text}
        about = {
            "campaign": fingerprint,
            "terms": stored.terms.to_dict(),
            "keys": campaign.keys,
        }
        return tagged(request, {**shown, **about})

    return router


def _rounds(
    context: Context, stored: StoredCampaign, first: int | None, last: int | None
) -> list[Round]:
    return context.store.rounds(stored, first=-1 if first is None else first, last=last)


def _show_round(stored: StoredCampaign, one: Round, now: float) -> dict[str, Any]:
    schedule = stored.campaign.schedule
    before = one.number < 0
    return {
        "round": one.number,
        "begins": None if before else to_text(schedule.begins(one.number)),
        "ends": to_text(schedule.ends(one.number)),
        "state": "before" if before else estimates.state(stored, one.number, now),
        "n": one.n,
        "duplicates": one.duplicates,
        "conflicts": one.conflicts,
        "refused": one.refused,
        "shown": estimates.withheld(stored, one.n) is None,
    }


def _render(
    stored: StoredCampaign,
    round: int,
    n: int,
    estimate: Any,
    selection: estimates.Selection,
    format: str,
    now: float,
) -> Response:
    frame = estimates.frame(stored, round, n, selection.level, now)
    if estimate is None:
        if format == "json":
            return _json(frame)
        raise Problem(
            409,
            f"round must have at least {frame['minimum_cohort']} reports, got {n}; wait for more",
            kind=frame["withheld"],
        )
    columns = estimates.numbers(stored, estimate, selection)
    if format == "json":
        plain = {
            name: column if isinstance(column, list) else column.tolist()
            for name, column in columns.items()
        }
        return _json({**frame, **plain, **estimates.standing_clear(estimate, selection.level)})
    rows = estimates.table(stored, round, n, columns, selection.level)
    if format == "csv":
        return _file(estimates.to_csv(rows), "text/csv; charset=utf-8", f"round-{round}.csv")
    parquet = "application/vnd.apache.parquet"
    return _file(estimates.to_parquet(rows), parquet, f"round-{round}.parquet")


def _series(
    cache: estimates.Estimates,
    stored: StoredCampaign,
    found: list[Round],
    value: list[int] | None,
    top: int | None,
    level: float,
) -> Response:
    shown = {
        one.number: cache.of(stored, one.number, one.n)
        for one in found
        if estimates.withheld(stored, one.n) is None
    }
    bins, rows = stored.bins, max(1, len(shown))
    if value is None:
        most = min(top or bins, max(1, _MOST_NUMBERS // rows))
        present = [estimate for estimate in shown.values() if estimate is not None]
        value = list(range(bins)) if most >= bins else estimates.most_frequent(present, most)

    def rows_of(column: str) -> list[Any]:
        return [
            None
            if (estimate := shown.get(one.number)) is None
            else getattr(estimate, column)[value].tolist()
            for one in found
        ]

    return _json(
        {
            "campaign": stored.campaign.fingerprint,
            "level": level,
            "minimum_cohort": stored.terms.minimum_cohort,
            "values": value,
            "labels": [stored.campaign.bin_label(v) for v in value],
            "rounds": [one.number for one in found],
            "begins": [to_text(stored.campaign.schedule.begins(one.number)) for one in found],
            "n": [one.n for one in found],
            "frequencies": rows_of("frequencies"),
            "standard_errors": rows_of("standard_errors"),
            "parameters": estimates.parameters(stored),
        }
    )


def _estimates_in_three_forms() -> dict[int | str, dict[str, Any]]:
    forms = described("Estimates")
    text, binary = {"type": "string"}, {"type": "string", "format": "binary"}
    forms[200]["content"] |= {
        "text/csv": {"schema": text},
        "application/vnd.apache.parquet": {"schema": binary},
    }
    return forms


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def _file(body: bytes, media: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=media, headers=headers)
