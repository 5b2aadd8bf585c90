"""The secret state of one user, also as JSON data. Standard library only."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from loloha.client.answered import Rounds, are_rounds, holds, including
from loloha.client.file import DAMAGED
from loloha.client.limit import covers
from loloha.client.seal import UNREADABLE, amount, checksum, must_be_whole, unseal
from loloha.errors import StateError
from loloha.protocols import REGISTRY, Protocol, protocol_from_dict
from loloha.report import LARGEST_ROUND, Answer, Key, Report

STATE_TYPE, STATE_VERSION, COMMITTED_VERSION = "loloha-client", 2, 3
STORED_ROUNDS = 64

_NAME = re.compile(r"[a-z0-9-]{1,40}", re.ASCII | re.IGNORECASE)
BEYOND_REPAIR = (
    f"{DAMAGED}; delete it, and agree again only if the user does: an older copy lacks answers "
    "that were given since, and would give them a second time"
)


class Account(NamedTuple):
    """The account that outlives a reset and a withdrawal: no key, no memo, no report."""

    spent: float = 0.0
    answered: Rounds = ()
    committed: float | None = None
    residue: int | None = None


class Record(NamedTuple):
    """The state of a user without the memo."""

    key: Key
    table: tuple[Answer, ...] | None
    spent_before: float
    committed_before: float | None
    secret: bytes
    answered: Rounds
    panel: tuple[int, int] = (1, 0)
    sent: tuple[tuple[int, Report], ...] = ()
    reports: int = 0

    def __repr__(self) -> str:
        return "Record(hidden)"

    @property
    def committed(self) -> float:
        """What was committed before this key, as far as that is known."""
        known = self.committed_before
        return self.spent_before if known is None else known

    @property
    def last(self) -> int:
        """The largest round that was answered, -1 if none was."""
        return self.answered[-1][1] if self.answered else -1

    def is_due(self, round: int) -> bool:
        """Whether the user reports in a round: ``panel`` is (every, residue)."""
        every, residue = self.panel
        return round % every == residue

    def including(self, first: int, reports: Sequence[Report]) -> Record:
        """The record with the reports of a round, and of those after it."""
        rounds = range(first, first + len(reports))
        return self._replace(
            answered=including(self.answered, ((first, rounds[-1]),)),
            sent=(*self.sent, *zip(rounds, reports, strict=True))[-STORED_ROUNDS:],
            reports=self.reports + len(reports),
        )


Run = tuple[Report, "Run | None"]
"""Reports of consecutive rounds as a linked list: the newest, and those before it."""


@dataclass(slots=True, eq=False, repr=False)
class State:
    """The secret state of one user, immutable: a step makes a new one.

    A run makes the usual step, the next round, as cheap as its answer: the record is brought up to
    date when it is read, or when the run grows long.
    """

    memo: Mapping[int, Answer]
    before: Record
    last: int
    run: Run | None = None

    @classmethod
    def new(
        cls, key: Key, table: tuple[Answer, ...] | None, account: Account, panel: tuple[int, int]
    ) -> State:
        """The state of a new user who may have spent something before."""
        spent, answered, committed, _ = account
        committed = spent if committed is None else committed
        record = Record(key, table, spent, committed, secrets.token_bytes(32), answered, panel)
        return cls({}, record, record.last)

    @property
    def record(self) -> Record:
        """The record of all but the memo."""
        reports, run = [], self.run
        while run is not None:
            report, run = run
            reports.append(report)
        if not reports:
            return self.before
        return self.before.including(self.last + 1 - len(reports), reports[::-1])

    def report_of(self, round: int) -> Report:
        """The report of a round that was answered."""
        for number, report in self.record.sent:
            if number == round:
                return report
        raise StateError(
            f"round must be one that was not answered, got {round!r}; its report is forgotten, "
            "and answering it again would spend more"
        )

    def answering(self, round: int, report: Report, memo: Mapping[int, Answer]) -> State:
        """The state after one more report."""
        if round == self.last + 1 and (round + 1) % STORED_ROUNDS:
            return State(memo, self.before, round, (report, self.run))
        record = self.record.including(round, [report])
        return State(memo, record, record.last)


def to_plain(protocol: Protocol, limit: float | None, state: State) -> dict[str, Any]:
    """A state as JSON data."""
    record = state.record
    plain = {
        "type": STATE_TYPE,
        "version": STATE_VERSION,
        "protocol": protocol.to_dict(),
        "key": _key_to_plain(record.key),
        "memo": [[x, _answer_to_plain(answer)] for x, answer in sorted(state.memo.items())],
        "sent": [
            [round, _key_to_plain(sent.key), _answer_to_plain(sent.y)]
            for round, sent in record.sent
        ],
        "answered": [list(interval) for interval in record.answered],
        "reports": record.reports,
        "spent_before": record.spent_before,
        "limit": limit,
        "secret": record.secret.hex(),
    }
    if record.committed_before != implied(record.spent_before, _bounds(protocol, limit)):
        # Release 0.2.0 would go by the loss alone, so it has to refuse this state.
        plain |= {"version": COMMITTED_VERSION, "committed_before": record.committed_before}
    if record.table is not None:
        plain["table"] = [_answer_to_plain(answer) for answer in record.table]
    if record.panel != (1, 0):
        plain["panel"] = list(record.panel)
    return {**plain, "checksum": checksum(plain)}


def from_plain(
    plain: Mapping[str, Any], protocol: Protocol | None
) -> tuple[Protocol, float | None, State]:
    """What `to_plain` wrote, of either version."""
    try:
        read = _read({**plain}, protocol)
        must_be_whole(plain, to_plain(*read))
        return read
    except StateError:
        raise
    except UNREADABLE:
        # The cause could quote the state, so it is dropped.
        raise StateError(f"state must be what to_dict() gave; {BEYOND_REPAIR}") from None


def _read(body: dict[str, Any], protocol: Protocol | None) -> tuple[Protocol, float | None, State]:
    version = body.get("version")
    known = (STATE_VERSION, COMMITTED_VERSION)
    if body.get("type") != STATE_TYPE or type(version) is not int or version not in known:
        raise StateError(
            f"state must be of type {STATE_TYPE!r}, version {STATE_VERSION} or "
            f"{COMMITTED_VERSION}; use the release of loloha that wrote it"
        )
    if "checksum" not in body:
        raise StateError(f"state must have its checksum; {BEYOND_REPAIR}")
    unseal(body)
    stored = _protocol(body["protocol"])
    if protocol is not None and protocol != stored:
        raise StateError(
            "state must be for the given protocol, it is for another one; "
            "a changed protocol needs a new client (see Client.reset)"
        )
    sent = {_whole(round): Report(_key(key), _answer(stored, y)) for round, key, y in body["sent"]}
    memo = {_whole(x): _answer(stored, answer) for x, answer in body["memo"]}
    limit = _limit(stored, body["limit"])
    spent = amount(body["spent_before"])
    committed = amount(body["committed_before"]) if version == COMMITTED_VERSION else None
    record = Record(
        key=_key(body["key"]),
        table=tuple(_answer(stored, y) for y in body["table"]) if stored.joint else None,
        spent_before=spent,
        committed_before=committed or implied(spent, _bounds(stored, limit)),
        secret=bytes.fromhex(body["secret"]),
        answered=tuple((_whole(first), _whole(last)) for first, last in body["answered"]),
        panel=_panel(body["panel"]) if "panel" in body else (1, 0),
        sent=tuple(sent.items()),
        reports=_whole(body["reports"]),
    )
    _must_be_possible(stored, memo, record)
    return stored, limit, State(memo, record, record.last)


def _protocol(plain: Any) -> Protocol:
    name = plain["type"]
    if _NAME.fullmatch(name) and name.lower() not in REGISTRY:
        raise StateError(
            f"state must be of a protocol that is installed here, got {name!r}; install the "
            "package or the release that has it, the state is untouched"
        )
    return protocol_from_dict(plain)


def _must_be_possible(protocol: Protocol, memo: Mapping[int, Answer], record: Record) -> None:
    """Refuse an inconsistent state."""
    encoding = protocol.encoding
    own = protocol.longitudinal
    if not (encoding.is_key(record.key) if own else record.key is None):
        raise StateError(f"state must hold the key of its client; {BEYOND_REPAIR}")
    table, answered, sent = record.table, record.answered, record.sent
    shown = encoding.sent(record.key) if own else None
    possible = (
        all(0 <= x < encoding.memo_symbols for x in memo)
        and len(memo) <= encoding.memo_cells
        and (table is None or _follows(memo, table, encoding.memo_symbols))
        and are_rounds(answered, LARGEST_ROUND)
        and all(holds(answered, round) and record.is_due(round) for round, _ in sent)
        and len(sent) <= min(STORED_ROUNDS, record.reports)
        and all(encoding.is_sent(report.key) for _, report in sent)
        and (not own or all(report.key == shown for _, report in sent))
        and len(record.secret) == 32
    )
    if not possible:
        raise StateError(f"state must be possible for a client; {BEYOND_REPAIR}")


def _follows(memo: Mapping[int, Answer], table: tuple[Answer, ...], size: int) -> bool:
    """Whether a table is complete and agrees with every response given."""
    return len(table) == size and all(table[x] == answer for x, answer in memo.items())


def _whole(plain: Any) -> int:
    if type(plain) is not int or not 0 <= plain <= LARGEST_ROUND:
        raise StateError(f"state must hold whole numbers as counts; {BEYOND_REPAIR}")
    return plain


def _panel(plain: Any) -> tuple[int, int]:
    every, residue = map(_whole, plain)
    if not residue < every or every < 2:
        raise StateError(f"state must hold a panel of the campaign; {BEYOND_REPAIR}")
    return every, residue


def implied(spent: float, bounded: bool) -> float | None:
    """The commitment of a state of release 0.2.0, which has only the amount spent."""
    # None (unknown) if there is a limit and it depends on values: caps that were partly spent.
    return None if bounded and spent else spent


def _bounds(protocol: Protocol, limit: float | None) -> bool:
    return protocol.longitudinal and limit is not None


def _limit(protocol: Protocol, plain: Any) -> float | None:
    if plain is None:
        return None
    limit = amount(plain)
    # No release accepted a limit too small for a single answer.
    if not covers(limit, protocol.asked_memo):
        raise StateError(f"state must hold a limit that its client can have; {BEYOND_REPAIR}")
    return limit


def _answer_to_plain(answer: Answer) -> int | str:
    return answer.hex() if isinstance(answer, bytes) else answer


def _answer(protocol: Protocol, plain: Any) -> Answer:
    answer = bytes.fromhex(plain) if isinstance(plain, str) else plain
    if not protocol.encoding.is_answer(answer):
        raise StateError(f"state must hold answers of its protocol; {BEYOND_REPAIR}")
    return answer


def _key_to_plain(key: Key) -> int | list[int] | None:
    return list(key) if isinstance(key, tuple) else key


def _key(plain: Any) -> Key:
    return tuple(plain) if isinstance(plain, list) else plain
