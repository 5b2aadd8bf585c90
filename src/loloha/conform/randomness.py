"""A port on its own randomness: the audit's lines, and whether its draws have the law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from loloha.audit import audit, clopper_pearson, report_of
from loloha.audit.device import History, Transcript
from loloha.conform import case
from loloha.conform.deviation import Difference
from loloha.conform.port import Port, PortError
from loloha.distribution import exact_distribution
from loloha.errors import AuditError
from loloha.protocols import Protocol
from loloha.rng import Rng

USERS = 400
CONFIDENCE = 1 - 1e-10
"""That a port which conforms is not accused, of each quantity of each protocol."""
_TOGETHER = 50
"""Users whose lines, of at most 18 rounds each, are under way: a pipe holds them."""


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
    """By its own draws a port reveals no more than it may, and reports have their exact law."""
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
        for one in result.findings:
            how = f"expected {one.claimed:.4g} at most, {one.lower:.4g} is proven"
            yield f"{one.name} of {protocol!r}", how if one.violated else None
        for value, seen in device.firsts.items():
            yield f"first reports of {value} by {protocol!r}", _unlike(protocol, value, seen)
        answer = port.end_lines()
        ended = None if answer == {} else f"expected {{}}, got {answer}"
        yield f"the end of lines of {protocol!r}", ended


def _unlike(protocol: Protocol, value: int, seen: Counter[tuple[object, object]]) -> str | None:
    """An outcome that is too frequent or too rare for its exact probability; None if none is."""
    law = exact_distribution(partial(_first, protocol, value))
    alpha = (1 - CONFIDENCE) / (2 * len(law))
    for outcome in law.keys() | seen.keys():
        low, high = clopper_pearson(seen[outcome], seen.total(), alpha)
        if not low <= law.get(outcome, 0) <= high:
            wanted = float(law.get(outcome, 0))
            return f"expected {outcome} in {wanted:.4g} of them, got {low:.4g} to {high:.4g}"
    return None


def _first(protocol: Protocol, value: int, rng: Rng) -> tuple[object, object]:
    report = protocol.client(rng=rng).report(value, round=0)
    return report.key, report.y
