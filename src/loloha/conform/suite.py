"""The checks of a port: it and this library answer the same questions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from typing import Any

from loloha import checks
from loloha.audit import audit, clopper_pearson, report_of
from loloha.audit.device import History, Transcript
from loloha.campaign import Campaign
from loloha.conform import case, document_case, histories
from loloha.conform.port import Difference, Port, PortError, connect, differs, is_off
from loloha.distribution import exact_distribution
from loloha.encodings import Channel
from loloha.errors import AuditError, LolohaError
from loloha.protocols import BiLOLOHA, Protocol
from loloha.rng import Rng

USERS = 400
CONFIDENCE = 1 - 1e-10
"""Probability that a conforming port passes, for each quantity of each protocol."""
_TOGETHER = 50
"""Users asked ahead, with at most 18 rounds each: a pipe holds their lines."""


class _PortDevice:
    """A port that answers the lines of an audit; notes the first report of each user."""

    def __init__(self, port: Port, protocol: Protocol) -> None:
        self.port, self.protocol = port, protocol
        self.users = 0
        self.firsts: dict[int, Counter[tuple[object, object]]] = {}

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        rest = iter(histories)
        while some := list(islice(rest, _TOGETHER)):
            users = range(self.users, self.users + len(some))
            self.users += len(some)
            asked = [
                f"{user} {round} {value}"
                for user, history in zip(users, some, strict=True)
                for round, value in history
            ]
            answers = iter(self.port.lines(asked))
            for history in some:
                reports = [report_of(self.protocol, next(answers)) for _ in history]
                self.firsts.setdefault(history[0][1], Counter())[reports[0]] += 1
                yield reports


def draws(port: Port) -> Iterator[Difference]:
    """A port's own draws pass the audit; its reports have their exact distribution."""
    for protocol in case.small():
        document = case.text(case.campaign(protocol))
        if (answer := port.ask("audit", document=document)) != {}:
            yield f"lines of {protocol!r}", f"expected {{}}, got {answer}"
            continue
        device = _PortDevice(port, protocol)
        try:
            result = audit(protocol, device, users=USERS, confidence=CONFIDENCE)
        except AuditError as error:
            raise PortError(f"port must answer each line 'user round value': {error}") from None
        for finding in result.findings:
            how = f"expected {finding.claimed:.4g} at most, {finding.lower:.4g} is proven"
            yield f"{finding.name} of {protocol!r}", how if finding.violated else None
        for value, seen in device.firsts.items():
            yield f"first reports of {value} by {protocol!r}", _unlike(protocol, value, seen)
        answer = port.end_lines()
        ended = None if answer == {} else f"expected {{}}, got {answer}"
        yield f"the end of lines of {protocol!r}", ended


def _unlike(protocol: Protocol, value: int, seen: Counter[tuple[object, object]]) -> str | None:
    """An outcome that is too frequent or too rare for its exact probability; None if none is."""
    pmf = exact_distribution(partial(_first, protocol, value))
    alpha = (1 - CONFIDENCE) / (2 * len(pmf))
    for outcome in pmf.keys() | seen.keys():
        low, high = clopper_pearson(seen[outcome], seen.total(), alpha)
        if not low <= pmf.get(outcome, 0) <= high:
            wanted = float(pmf.get(outcome, 0))
            return f"expected {outcome} in {wanted:.4g} of them, got {low:.4g} to {high:.4g}"
    return None


def _first(protocol: Protocol, value: int, rng: Rng) -> tuple[object, object]:
    report = protocol.client(rng=rng).report(value, round=0)
    return report.key, report.y


def documents(port: Port) -> Iterator[Difference]:
    """Good documents have their fingerprint and labels; bad ones are refused."""
    for good_document in document_case.good_documents():
        answer = port.ask(
            "document", document=case.text(good_document), fingerprint=good_document.fingerprint
        )
        wanted = {"fingerprint": good_document.fingerprint, "labels": good_document.labels}
        yield (
            good_document.name[:20],
            differs({name: answer.get(name) for name in wanted}, wanted, answer),
        )
        answer = port.ask("document", document=case.text(good_document), fingerprint="0" * 64)
        yield (
            f"{good_document.name[:20]} under another pin",
            differs(answer, {"error": "CampaignError"}),
        )
    for wrong, document in document_case.bad_documents():
        pinned = hashlib.sha256(document.encode()).hexdigest()
        answer = port.ask("document", document=document, fingerprint=pinned)
        yield wrong, differs(answer, {"error": "CampaignError"})


def thresholds(port: Port) -> Iterator[Difference]:
    """Every protocol has the same thresholds and the same cap."""
    for protocol in case.variants():
        answer = port.ask("document", document=case.text(case.campaign(protocol)))
        channels = (protocol.first_channel, protocol.second_channel)
        wanted = [_thresholds(each) for each in channels]
        cap = case.finite(protocol.cap)
        how = differs(answer.get("thresholds"), wanted, answer) or is_off(answer.get("cap"), cap)
        yield repr(protocol), how


def values(port: Port) -> Iterator[Difference]:
    """Values have the same index, and moments the same round."""
    for campaign, some in (*case.labelled(), *case.ranges()):
        for value in some:
            answer = port.ask("index", document=case.text(campaign), value=value)
            yield f"{value!r} in {campaign.labels}", differs(answer, _tried(campaign, value))
    campaign = case.campaign(BiLOLOHA(k=2, eps_inf=2.0, eps_1=1.0))
    for moment in case.moments():
        answer = port.ask("round", document=case.text(campaign), moment=moment)
        yield f"moment {moment}", differs(answer, {"round": campaign.schedule.round_at(moment)})


def _tried(campaign: Campaign, value: Any) -> dict[str, Any]:
    try:
        return {"index": campaign.index(value)}
    except LolohaError as error:
        return {"error": type(error).__name__}


def _thresholds(channel: Channel | None) -> list[int] | None:
    """All integers of a channel, in the order in which it states them; g is none of them."""
    if channel is None:
        return None
    return [getattr(channel, field.name) for field in fields(channel) if field.name != "g"]


@dataclass(frozen=True)
class Result:
    """One group of checks; a difference for each that failed."""

    name: str
    checked: int
    differences: tuple[str, ...]


def conform(
    command: Sequence[str],
    *,
    only: Sequence[str] = (),
    until_first: bool = False,
    patience: float = 30.0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Result]:
    """Ask a port everything, and compare."""
    chosen = [checks.choice("only", _OLD.get(name, name), GROUPS) for name in only] or list(GROUPS)
    results = []
    with connect(command, patience=patience) as port:
        for done, name in enumerate(chosen):
            progress(done / len(chosen))
            results.append(_result(name, GROUPS[name](port), until_first))
    return results


def _result(name: str, differences: Iterator[Difference], until_first: bool) -> Result:
    checked, wrong = 0, []
    for what, how in differences:
        checked += 1
        if how is not None:
            wrong.append(f"{what}: {how}")
            if until_first:
                break
    return Result(name, checked, tuple(wrong))


GROUPS: dict[str, Callable[[Port], Iterator[Difference]]] = {
    "documents": documents,
    "thresholds": thresholds,
    "values": values,
    "histories": histories.histories,
    "states": histories.states,
    "distributions": histories.distributions,
    "draws": draws,
}
"""What a port is asked, by name."""
# Until 0.4.
_OLD = {"lives": "histories", "laws": "distributions"}
