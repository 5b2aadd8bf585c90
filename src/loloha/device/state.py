"""What a device remembers of one user, and how it is written down. Standard library only."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from loloha.device.file import DAMAGED
from loloha.device.rounds import Rounds, are_rounds, holds, including
from loloha.errors import LolohaError, StateError
from loloha.rules.protocols import REGISTRY, Protocol, protocol_from_dict
from loloha.rules.report import LARGEST_ROUND, Answer, Key, Report

STATE_TYPE, STATE_VERSION = "loloha-client", 2
KEPT_ROUNDS = 64

_NAME = re.compile(r"[a-z0-9-]{1,40}", re.ASCII | re.IGNORECASE)
_BEYOND_REPAIR = (
    f"{DAMAGED}; delete it, and agree again only if the user does: an older copy lacks answers "
    "that were given since, and would give them a second time"
)
UNREADABLE = (
    LolohaError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class Account(NamedTuple):
    """What outlives a reset and a withdrawal: no key, no memo, no report.

    Attributes
    ----------
    spent : float
        Budget spent before.
    answered : Rounds
        Rounds that are not to be answered again.
    """

    spent: float = 0.0
    answered: Rounds = ()


class State(NamedTuple):
    """The secret state of one user; a step makes a new one, and the old one stays as it is.

    Attributes
    ----------
    key : int, tuple of int or None
    memo : dict of int to Answer
        The permanent answer to each memo symbol that was asked for.
    table : tuple of Answer or None
        The answers to all memo symbols, where they were drawn together at enrolment.
    sent : dict of int to Report
        The report of each of the newest `KEPT_ROUNDS` rounds, in the order of answering.
    answered : Rounds
        All rounds that were answered, forgotten ones included.
    reports : int
        Answers given with this key.
    spent_before : float
        Budget spent before this key.
    secret : bytes
        Makes the pseudonyms of rounds.
    """

    key: Key
    memo: Mapping[int, Answer]
    table: tuple[Answer, ...] | None
    sent: Mapping[int, Report]
    answered: Rounds
    reports: int
    spent_before: float
    secret: bytes

    @classmethod
    def new(cls, key: Key, table: tuple[Answer, ...] | None, account: Account) -> State:
        """The state of a new user who may have spent something before."""
        return cls(key, {}, table, {}, account.answered, 0, account.spent, secrets.token_bytes(32))

    def answering(self, round: int, report: Report, memo: Mapping[int, Answer]) -> State:
        """The state after one more report."""
        sent = {**self.sent, round: report}
        if len(sent) > KEPT_ROUNDS:
            del sent[next(iter(sent))]
        return State(
            self.key,
            memo,
            self.table,
            sent,
            including(self.answered, ((round, round),)),
            self.reports + 1,
            self.spent_before,
            self.secret,
        )


def to_plain(protocol: Protocol, limit: float | None, state: State) -> dict[str, Any]:
    """A state as JSON data."""
    plain = {
        "type": STATE_TYPE,
        "version": STATE_VERSION,
        "protocol": protocol.to_dict(),
        "key": _key_to_plain(state.key),
        "memo": [[x, _answer_to_plain(kept)] for x, kept in sorted(state.memo.items())],
        "sent": [
            [round, _key_to_plain(sent.key), _answer_to_plain(sent.y)]
            for round, sent in state.sent.items()
        ],
        "answered": [list(interval) for interval in state.answered],
        "reports": state.reports,
        "spent_before": state.spent_before,
        "limit": limit,
        "secret": state.secret.hex(),
    }
    if state.table is not None:
        plain["table"] = [_answer_to_plain(kept) for kept in state.table]
    return {**plain, "checksum": checksum(plain)}


def from_plain(
    plain: Mapping[str, Any], protocol: Protocol | None
) -> tuple[Protocol, float | None, State]:
    """What `to_plain` wrote, of this version and the one before.

    Raises
    ------
    StateError
        If it is damaged, foreign, or of another version. Nothing of it is shown.
    """
    try:
        return _read(dict(plain), protocol)
    except StateError:
        raise
    except UNREADABLE:
        # The cause could quote the state, so it is cut off.
        raise StateError(f"state must be what to_dict() gave; {_BEYOND_REPAIR}") from None


def _read(body: dict[str, Any], protocol: Protocol | None) -> tuple[Protocol, float | None, State]:
    version = body.get("version")
    if body.get("type") != STATE_TYPE or type(version) is not int or version not in (1, 2):
        raise StateError(
            f"state must be of type {STATE_TYPE!r}, version 1 or {STATE_VERSION}; use the release "
            "of loloha that wrote it"
        )
    if not hmac.compare_digest(str(body.pop("checksum")), checksum(body)):
        raise StateError(f"state must match its checksum; {_BEYOND_REPAIR}")
    stored = _protocol(body["protocol"])
    if protocol is not None and protocol != stored:
        raise StateError(
            "state must be for the given protocol, it is for another one; "
            "a changed protocol needs a new client (see Client.reset)"
        )
    sent = {_whole(round): Report(_key(key), _answer(stored, y)) for round, key, y in body["sent"]}
    state = State(
        key=_key(body["key"]),
        memo={_whole(x): _answer(stored, kept) for x, kept in body["memo"]},
        table=tuple(_answer(stored, kept) for kept in body["table"]) if stored.joint else None,
        sent=sent,
        answered=_answered(body) if version > 1 else _answered_before(body, sent),
        reports=_whole(body["reports"]),
        spent_before=_amount(body["spent_before"]),
        secret=bytes.fromhex(body["secret"]),
    )
    _must_be_possible(stored, state)
    # Release 0.1.0 wrote a limit that never binds as Infinity.
    limit = body["limit"]
    return stored, None if limit == math.inf else limit, state


def _protocol(plain: Any) -> Protocol:
    name = plain["type"]
    if _NAME.fullmatch(name) and name.lower() not in REGISTRY:
        raise StateError(
            f"state must be of a protocol that is installed here, got {name!r}; install the "
            "package or the release that has it, the state is untouched"
        )
    return protocol_from_dict(plain)


def _must_be_possible(protocol: Protocol, state: State) -> None:
    """Refuse a state that no client can be in."""
    encoding = protocol.encoding
    if protocol.longitudinal and not encoding.is_key(state.key):
        raise StateError(f"state must hold the key of its client; {_BEYOND_REPAIR}")
    known = state.answered
    possible = (
        all(0 <= x < encoding.memo_symbols for x in state.memo)
        and len(state.memo) <= encoding.memo_cells
        and (state.table is None or _follows(state.memo, state.table, encoding.memo_symbols))
        and are_rounds(known, LARGEST_ROUND)
        and all(holds(known, round) for round in state.sent)
        and len(state.sent) <= min(KEPT_ROUNDS, state.reports)
        and all(encoding.is_key(sent.key) for sent in state.sent.values())
        and len(state.secret) == 32
    )
    if not possible:
        raise StateError(f"state must be one that a client can be in; {_BEYOND_REPAIR}")


def _follows(memo: Mapping[int, Answer], table: tuple[Answer, ...], size: int) -> bool:
    """Whether a table is whole, and every answer given is the one that it has."""
    return len(table) == size and all(table[x] == kept for x, kept in memo.items())


def _answered(body: Mapping[str, Any]) -> Rounds:
    return tuple((_whole(first), _whole(last)) for first, last in body["answered"])


def _answered_before(body: Mapping[str, Any], sent: Mapping[int, Report]) -> Rounds:
    """Version 1 held a floor: no round up to it was answered any more."""
    floor = _whole(body["floor"], low=-1)
    if any(round <= floor for round in sent):
        raise StateError(f"state must be one that a client can be in; {_BEYOND_REPAIR}")
    rounds: Rounds = () if floor < 0 else ((0, floor),)
    for round in sent:
        rounds = including(rounds, ((round, round),))
    return rounds


def _whole(plain: Any, low: int = 0) -> int:
    if type(plain) is not int or plain < low:
        raise StateError(f"state must hold whole numbers where a client counts; {_BEYOND_REPAIR}")
    return plain


def _amount(plain: Any) -> float:
    number = float(plain) if type(plain) in (int, float) else math.nan
    if not 0 <= number < math.inf:
        raise StateError(f"state must hold what was spent as a number >= 0; {_BEYOND_REPAIR}")
    return number


def _answer_to_plain(answer: Answer) -> int | str:
    return answer.hex() if isinstance(answer, bytes) else answer


def _answer(protocol: Protocol, plain: Any) -> Answer:
    answer = bytes.fromhex(plain) if isinstance(plain, str) else plain
    if not protocol.encoding.is_answer(answer):
        raise StateError(f"state must hold answers of its protocol; {_BEYOND_REPAIR}")
    return answer


def _key_to_plain(key: Key) -> int | list[int] | None:
    return list(key) if isinstance(key, tuple) else key


def _key(plain: Any) -> Key:
    return tuple(plain) if isinstance(plain, list) else plain


def checksum(plain: Mapping[str, Any]) -> str:
    """SHA-256 of a state without its checksum: tells damage, not forgery."""
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
