"""Questions about public rules: documents, thresholds, labels and rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from loloha.campaign import Campaign
from loloha.conform import case, document_case
from loloha.conform.deviation import Difference, differs, is_off
from loloha.conform.port import Port
from loloha.encodings import Channel
from loloha.errors import LolohaError
from loloha.protocols import BiLOLOHA


def documents(port: Port) -> Iterator[Difference]:
    """Good documents have their fingerprint and labels; bad ones are refused."""
    for one in document_case.good_documents():
        answer = port.ask("document", document=case.text(one), fingerprint=one.fingerprint)
        wanted = {"fingerprint": one.fingerprint, "labels": one.labels}
        yield one.name[:20], differs({name: answer.get(name) for name in wanted}, wanted, answer)
        answer = port.ask("document", document=case.text(one), fingerprint="0" * 64)
        yield f"{one.name[:20]} under another pin", differs(answer, {"error": "CampaignError"})
    for wrong, document in document_case.bad_documents():
        pinned = hashlib.sha256(document.encode()).hexdigest()
        answer = port.ask("document", document=document, fingerprint=pinned)
        yield wrong, differs(answer, {"error": "CampaignError"})


def thresholds(port: Port) -> Iterator[Difference]:
    """Every protocol draws with the same integers, and has the same cap."""
    for protocol in case.variants():
        answer = port.ask("document", document=case.text(case.campaign(protocol)))
        channels = (protocol.first_channel, protocol.second_channel)
        wanted = [_thresholds(each) for each in channels]
        cap = case.finite(protocol.cap)
        how = differs(answer.get("thresholds"), wanted, answer) or is_off(answer.get("cap"), cap)
        yield repr(protocol), how


def values(port: Port) -> Iterator[Difference]:
    """Values have the same index, and moments the same round."""
    for one, some in (*case.labelled(), *case.ranges()):
        for value in some:
            answer = port.ask("index", document=case.text(one), value=value)
            yield f"{value!r} in {one.labels}", differs(answer, _tried(one, value))
    one = case.campaign(BiLOLOHA(k=2, eps_inf=2.0, eps_1=1.0))
    for moment in case.moments():
        answer = port.ask("round", document=case.text(one), moment=moment)
        yield f"moment {moment}", differs(answer, {"round": one.schedule.round_at(moment)})


def _tried(one: Campaign, value: Any) -> dict[str, Any]:
    try:
        return {"index": one.index(value)}
    except LolohaError as error:
        return {"error": type(error).__name__}


def _thresholds(channel: Channel | None) -> list[int] | None:
    """All integers of a channel, in the order in which it states them; g is none of them."""
    if channel is None:
        return None
    return [getattr(channel, field.name) for field in fields(channel) if field.name != "g"]
