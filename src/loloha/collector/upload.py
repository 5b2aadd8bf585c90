"""Routes that devices use: send reports, have a key assigned, count an opt-out."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from msgspec import UNSET, UnsetType

from loloha.collector import shape
from loloha.collector.admission import CAMPAIGN
from loloha.collector.answer import Json
from loloha.collector.context import Context
from loloha.collector.decoding import READERS, prepare, unreadable
from loloha.collector.openapi import WRITES, described, problems, uploads
from loloha.collector.problem import Problem, refused, unavailable
from loloha.collector.query import known_parameters
from loloha.collector.queue import Job
from loloha.collector.secret import ticket
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import SmallUpload, Submission, UploadOutcome
from loloha.errors import CampaignError, StoreError, WireError
from loloha.planning.accuracy_check import require_fit_keys
from loloha.rng import SecureRng
from loloha.wire import Refusal, text
from loloha.wire.message import key_text

if TYPE_CHECKING:
    from loloha.collector.admission import Quick
    from loloha.collector.body import Admitted

# Smaller bodies are decoded here within a few milliseconds, faster than calling another process.
_SMALL, _FEW = 1 << 15, 100
# Reports that cost as much as one more request.
REPORTS_A_REQUEST = 1_000
OPT_OUT_COSTS = 10
"""Requests that one counts as: it is a commit of its own, by anybody."""
SECONDS_TO_COMMIT = 30.0
"""Seconds after which the client is asked to retry, which is safe."""

_DECODERS = {"application/json": text.messages, "application/x-ndjson": text.lines}
# What ends an element, and how many of it a report has.
_ENDS = {"application/json": (b",", text.COMMAS), "application/x-ndjson": (b"\n", 1)}

# Whether a body is one report; a compressed one counts as a batch.
_OBJECT = re.compile(rb"[ \t\r\n]*\{")

_PATH = CAMPAIGN + "/reports"


async def receive_reports(context: Context, admitted: Admitted) -> Response:
    """Count the reports of one request; see the route for what it answers."""
    stored, media, packing = admitted.stored, admitted.media, admitted.packing
    body = admitted.body
    upload: SmallUpload | Submission
    reporter: str | UnsetType
    single = media == "application/json" and _OBJECT.match(body) is not None
    end, times = _ENDS.get(media, (b"", 0))
    if end and not packing and len(body) <= _SMALL and body.count(end) <= times * _FEW:
        # A small upload, quickly: the committer checks it together with others.
        try:
            rows, codes = _DECODERS[media](body)
        except WireError as error:
            raise unreadable(error) from None
        upload = SmallUpload(stored, rows, codes)
        reporter = upload.rows[0].reporter if upload.rows else UNSET
    else:
        if media not in READERS:
            raise Problem(415, f"content-type must be one of {', '.join(READERS)}", kind="type")
        fingerprint, largest = stored.campaign.fingerprint, context.settings.largest_unpacked
        batch, digests = await context.decode(
            admitted.address, prepare, fingerprint, media, body, packing, largest
        )
        upload = Submission(stored, batch, digests)
        reporter = _reporter(body) if single else UNSET
    del body
    admitted.release()
    # Rounds count too: each has a guard and counts of its own to be read and written.
    context.rate.charge(admitted.scope, upload.work / REPORTS_A_REQUEST - admitted.charged)
    receipt = await counted(context, admitted.address, upload, reporter)
    if single and receipt.size == 1:
        return answer_alone(receipt, reporter)
    listed = [shape.Refused(i, str(reason)) for i, reason in receipt.refused]
    reasons = {str(reason): count for reason, count in receipt.reasons.items()} or UNSET
    document = shape.ReceiptDocument(receipt.accepted, receipt.duplicates, listed, reasons)
    return Json(msgspec.json.encode(document))


def answer_alone(receipt: UploadOutcome, reporter: str | UnsetType) -> Response:
    """The answer to a single report, with its reporter, so that devices detect cached answers."""
    if receipt.refused:
        raise refused(receipt.refused[0][1], reporter)
    document = shape.ReceiptDocument(receipt.accepted, receipt.duplicates, [], reporter=reporter)
    return Json(msgspec.json.encode(document))


async def counted(
    context: Context, address: str, upload: SmallUpload | Submission, reporter: str | UnsetType
) -> UploadOutcome:
    """Commit an upload, of a campaign that is open before and, where all is refused, after."""
    await context.require_open(upload.stored, reporter, upload.size)
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[UploadOutcome] = loop.create_future()
    try:
        context.running.committer.submit(Job(upload, outcome, loop, address))
        # Every report passes here: a timer of its own costs less than `asyncio.timeout`.
        timer = loop.call_later(SECONDS_TO_COMMIT, _expire, outcome)
        try:
            receipt = await outcome
        finally:
            timer.cancel()
    except TimeoutError:
        raise unavailable("store did not commit in time; send it again later") from None
    except StoreError as error:
        raise unavailable(str(error)) from None
    if receipt.reasons.get(Refusal.LATE) and not receipt.accepted + receipt.duplicates:
        # It may have been paused, or ended, while the upload was on its way.
        # Its reports were counted as late.
        await context.require_open(upload.stored, reporter)
    return receipt


def _expire(outcome: asyncio.Future[UploadOutcome]) -> None:
    if not outcome.done():
        outcome.set_exception(TimeoutError())


QUICK: dict[str, Quick] = {_PATH: receive_reports}
"""A fast path for single reports, which are most requests."""


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    router = APIRouter(tags=["devices"], dependencies=[Depends(known_parameters)])

    @router.post(
        _PATH,
        summary="Send reports",
        responses={**described(shape.ReceiptDocument), **problems(*WRITES, 401, 404, 409, 410)},
        openapi_extra=uploads(),
    )
    async def send_reports(fingerprint: str, request: Request) -> Response:
        """Count reports, each reporter once a round.

        Answers once they are durable. Sending again is safe: what was counted is a duplicate. A
        batch answers 200 and lists what was refused; a single report that is refused is an error.
        """
        return await receive_reports(context, request.scope["admitted"])

    @router.post(
        CAMPAIGN + "/keys",
        summary="Have a key assigned",
        responses={**described(shape.AssignedKey), **problems(*WRITES, 401, 404, 409, 410)},
    )
    async def assign_key(fingerprint: str, request: Request) -> Response:
        """Draw a key for a new device, where the campaign's keys are assigned.

        Nothing is remembered about it: the ticket proves that it was drawn here.
        """
        stored: StoredCampaign = request.scope["admitted"].stored
        campaign = stored.campaign
        await context.require_open(stored)
        if campaign.keys != "assigned":
            raise Problem(
                409, "keys of this campaign are drawn by devices; draw one", kind="keys-are-drawn"
            )
        try:
            # A campaign of 0.2.0 may assign any: whoever has a key goes on reporting.
            require_fit_keys(campaign)
        except CampaignError as error:
            raise Problem(409, str(error), kind="keys-are-not-assigned") from None
        key = campaign.protocol.enroll(SecureRng())
        assigned = shape.AssignedKey(key_text(campaign, key), ticket(stored, key))
        return Json(msgspec.json.encode(assigned))

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
        context.rate.charge(request.scope, OPT_OUT_COSTS)
        await context.require_open(stored)
        now = context.timekeeper.now()
        await context.read(context.store.count_opt_out, stored, now)
        context.metrics.count_opt_out(stored.campaign.fingerprint)
        return Response(status_code=204)

    return router


class _Named(msgspec.Struct):
    """The reporter as a report spells it."""

    reporter: str


def _reporter(body: bytes) -> str | UnsetType:
    """The reporter of an oversized report; unset if unreadable."""
    try:
        return msgspec.json.decode(body, type=_Named).reporter
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return UNSET
