"""One upload for the reports of one device in several campaigns; each is answered as if alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from starlette.exceptions import HTTPException

from loloha.collector import shape
from loloha.collector.admission import TOGETHER
from loloha.collector.answer import Json
from loloha.collector.commit_cost import ROUND_WORK
from loloha.collector.context import Context
from loloha.collector.openapi import WRITES, described, problems
from loloha.collector.problem import Problem, refused, response
from loloha.collector.query import known_parameters
from loloha.collector.submission import SmallUpload
from loloha.collector.upload import REPORTS_A_REQUEST, answer_alone, counted
from loloha.wire import Refusal, text
from loloha.wire.message import MOST_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loloha.collector.admission import Quick
    from loloha.collector.body import Admitted

_MOST_COMMAS = MOST_TOGETHER * (text.COMMAS + 1)
_array = msgspec.json.Decoder(list[msgspec.Raw])


def routes(context: Context) -> APIRouter:
    """The route, over one context."""
    router = APIRouter(tags=["devices"], dependencies=[Depends(known_parameters)])

    @router.post(
        TOGETHER,
        summary="Send reports of several campaigns",
        responses={**described(shape.Answers), **problems(*WRITES)},
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"type": "array", "items": {"type": "object"}}}
                },
            }
        },
    )
    async def send_together(request: Request) -> Response:
        """Count an array of single reports, at most 100, of any campaigns with one submit token.

        Answers once all that are accepted are durable, with what each would be answered alone.
        """
        return await receive_together(context, request.scope["admitted"])

    return router


async def receive_together(context: Context, admitted: Admitted) -> Response:
    """Count the reports of one request, each on its own; see the route."""
    if admitted.media != "application/json":
        raise Problem(415, "content-type must be application/json; send it so", kind="type")
    parts = _parts(admitted.body)
    admitted.release()
    # Each can be of another round.
    context.rate.charge(admitted.scope, len(parts) * ROUND_WORK / REPORTS_A_REQUEST)
    answers = await asyncio.gather(*(_answer(context, admitted, part) for part in parts))
    return Json(b'{"answers":[%s]}' % b",".join(answers))


QUICK: dict[str, Quick] = {TOGETHER: receive_together}


def _parts(body: bytes) -> Sequence[Any]:
    # Before anything is decoded: so few reports have no more.
    if body.count(b",") > _MOST_COMMAS:
        raise _too_many()
    try:
        parts = _array.decode(body)
    except text.UNREADABLE:
        raise Problem(
            400, "body must be a JSON array of reports; send valid JSON", kind="unreadable"
        ) from None
    if not 1 <= len(parts) <= MOST_TOGETHER:
        raise _too_many()
    return parts


def _too_many() -> Problem:
    return Problem(
        413, f"body must hold 1..{MOST_TOGETHER} reports; send them apart", kind="too-large"
    )


async def _answer(context: Context, admitted: Admitted, part: Any) -> bytes:
    """What one report is answered, with its status."""
    try:
        answer = await _count(context, admitted, bytes(part))
    except HTTPException as problem:
        answer = response(problem)
    return b'{"status":%d,"body":%s}' % (answer.status_code, answer.body)


async def _count(context: Context, admitted: Admitted, part: bytes) -> Response:
    rows, codes = text.messages(part) if part.lstrip()[:1] == b"{" else ([], b"")
    if len(rows) != 1:
        raise refused(Refusal.MALFORMED)
    stored = await context.known(rows[0].campaign.lower())
    context.require_token(admitted.text(b"authorization"), stored)
    upload = SmallUpload(stored, rows, bytearray(codes))
    receipt = await counted(context, admitted.address, upload, rows[0].reporter)
    return answer_alone(receipt, rows[0].reporter)
