"""Golden vectors of states: what both languages write again without loss, or refuse.

A state that is kept is written again as it is, with a checksum. Of an agreement it is said which
limit it needs, in halves, and what is left of it after a withdrawal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from collecting import campaign
from loloha.campaign import Campaign
from loloha.client import Client
from loloha.errors import ParameterError
from loloha.protocols import GRR, LGRR, OLH, OLOLOHA, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol
from loloha.rng import SCALE, Rng
from loloha.sender.agreement import Agreement, Enrolment
from loloha.sender.ledger import Ledger

Plain = dict[str, Any]
SECRET = "07" * 32
HASHED = campaign("pages", protocol=BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0))
FRESH = campaign("Größe 😀", protocol=GRR(k=5, eps=1.0))
EARLIER = {"0" * 64: ((0, 0), (3, 7)), "f" * 64: ()}
PROTOCOLS = [
    BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0),
    OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0, g=3, memo="joint"),
    LGRR(k=5, eps_inf=2.0, eps_1=1.0),
    RAPPOR(k=9, eps_inf=2.0, eps_1=1.0),
    DBitFlipPM(k=9, eps_inf=2.0, b=5, d=2),
    OLH(k=5, eps=1.0, g=3, hash="affine"),
]


class Draws(Rng):
    """The same numbers each time."""

    def __init__(self) -> None:
        self.made = 0

    def below(self, n: int) -> int:
        self.made += 1
        return int.from_bytes(hashlib.sha256(b"%d" % self.made).digest(), "big") % n

    def bernoulli(self, threshold: int) -> bool:
        return self.below(SCALE) < threshold


def checked(plain: Plain) -> Plain:
    """With the checksum that belongs to it."""
    rest = {name: part for name, part in plain.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, "checksum": hashlib.sha256(text.encode()).hexdigest()}


def unchecked(plain: Plain) -> Plain:
    """As a release wrote it that knew no checksum here."""
    return {name: part for name, part in plain.items() if name != "checksum"}


def client(protocol: Protocol, rounds: int, **members: Any) -> Client:
    """One that has answered so many rounds; then with other members."""
    start = Client(protocol, rng=Draws()).to_dict()
    known = Client.from_dict(checked({**start, "secret": SECRET}), rng=Draws())
    for round in range(rounds):
        known.report((3 * round) % protocol.k, round=2 * round)
    return Client.from_dict(checked({**known.to_dict(), **members}))


def enrolment(one: Campaign, rounds: int, **members: Any) -> Enrolment:
    """All that it reported waits."""
    known = client(one.protocol, rounds, **members)
    made = Enrolment(f"http://c/v1/campaigns/{one.fingerprint}", None, None, one, known)
    queue = {r: made.message(known.report(0, round=r), r) for r in known.sent_rounds}
    return Enrolment(made.url, "token" if rounds else None, None, one, known, queue)


def clients() -> Iterator[Plain]:
    """States of clients, of each kind of key and memo."""
    for protocol in PROTOCOLS:
        yield client(protocol, 0).to_dict()
        yield client(protocol, 3, limit=100.0).to_dict()
    yield client(PROTOCOLS[0], 70, version=3, spent_before=2.0, committed_before=4.0).to_dict()
    yield client(PROTOCOLS[5], 3, version=3, spent_before=2.0, committed_before=5.5).to_dict()


def agreements() -> Iterator[Plain]:
    """States of senders, of 0.2.0 too."""
    hashed, both = enrolment(HASHED, 3), (enrolment(HASHED, 3), enrolment(FRESH, 2))
    fresh = enrolment(FRESH, 0, spent_before=3.0)
    answered = {**EARLIER, HASHED.fingerprint: ((1, 1), (5, 5))}
    for one in (
        Agreement((hashed,), None),
        Agreement((hashed,), None, answered_before=answered),
        Agreement((hashed,), 9.0, 1.0, 5.0, {FRESH.fingerprint: ((0, 5),)}),
        Agreement(both, 30.0, 2.0, 8.0, answered),
        # After a reset that no report has followed, and before one.
        Agreement((fresh,), 4.0),
        Agreement((enrolment(HASHED, 0, spent_before=2.0, version=3, committed_before=4.0),), None),
        Agreement((enrolment(FRESH, 0),), 2.0),
        Agreement((enrolment(FRESH, 2),), 2.0),
    ):
        yield json.loads(one.to_bytes())
    # Amounts whose sum depends on their order, and a token with spaces, which headers carry.
    tenth = campaign("tenth", protocol=LGRR(k=5, eps_inf=0.1, eps_1=0.05))
    fifth = campaign("fifth", protocol=BiLOLOHA(k=5, eps_inf=0.2, eps_1=0.1))
    third = campaign("third", protocol=GRR(k=5, eps=1 / 3))
    parts = enrolment(tenth, 2), enrolment(fifth, 3), enrolment(third, 4)
    for members in ((*parts,), parts[::-1]):
        yield json.loads(Agreement(members, 30.0, 0.7, 0.9).to_bytes())
    spaced = replace(hashed, token=" a token ")
    yield json.loads(Agreement((spaced,), None).to_bytes())
    yield unchecked(json.loads(Agreement((hashed,), None, 1.0, 1.0, answered).to_bytes()))
    # Its campaign is paused, or has ended; another goes on.
    yield json.loads(Agreement((replace(hashed, queue={}, halted="paused"),), None).to_bytes())
    over = replace(hashed, queue={}, halted="ended")
    yield json.loads(Agreement((over, both[1]), None).to_bytes())
    # It says nothing of what was committed.
    yield unchecked({**json.loads(Agreement((hashed,), 3.0, 2.0, None).to_bytes())})


def ledgers() -> Iterator[Plain]:
    """What outlives agreements."""
    for one in (Ledger(2.0, 10.0, EARLIER), Ledger(0.5, 0.5, {"0" * 64: ((0, 4),)})):
        plain = json.loads(one.to_bytes())
        yield from (plain, unchecked(plain))


def state_vectors() -> Iterator[Plain]:
    """States that are kept, and states that are refused."""
    for state in clients():
        yield {"state": state, "kept": True}
    for state in agreements():
        yield {
            "state": state,
            "kept": True,
            "least": least(state),
            "withdrawn": unchecked(json.loads(left(state).to_bytes())),
        }
    for state in ledgers():
        yield {"state": state, "kept": True}
    yield from ({"state": state, "kept": False} for state in refused())


def least(state: Plain) -> float:
    """In halves, the least limit that is agreed to."""
    return next(limit for limit in (n / 2 for n in range(1, 100)) if takes(state, limit))


def takes(state: Plain, limit: float) -> bool:
    """Whether an agreement that stands takes this limit."""
    agreement = Agreement.from_plain(state)
    try:
        agreement.again([one.campaign.fingerprint for one in agreement.enrolments], limit)
    except ParameterError:
        return False
    return True


def left(state: Plain) -> Ledger:
    """What outlives an agreement that ends now."""
    return Agreement.from_plain(state).entered(Ledger())


def refused() -> Iterator[Plain]:
    """A member that is not known, or a row that would replace another, in each place."""
    made, ledger = next(clients()), next(ledgers())
    sent = client(PROTOCOLS[2], 3).to_dict()
    (_, whole, *_) = agreements()
    (own,) = whole["enrolments"]

    def with_own(change: Callable[[Plain], Plain]) -> Plain:
        return checked({**whole, "enrolments": [change(own)]})

    yield checked({**made, "more": 1})
    yield checked({**made, "answered_before": {}})
    yield checked({**sent, "memo": [*sent["memo"], sent["memo"][-1]]})
    yield checked({**sent, "sent": [*sent["sent"], sent["sent"][-1]], "reports": 4})
    yield {**made, "checksum": "0" * 64}
    yield unchecked(made)
    for token in ("", " ", "a\n", "é", "a\u007f", 5):
        yield with_own(lambda one, token=token: {**one, "token": token})
    for word in ("open", "", 5, ["ended"]):
        yield with_own(lambda one, word=word: {**one, "halted": word})
    for member in (
        {"more": 1}, {"limit": 0.0}, {"limit": -1.0}, {"spent_before": -1.0},
        {"committed_before": None},
    ):  # fmt: skip
        yield checked({**whole, **member})
    yield {**whole, "more": 1}
    yield {**whole, "checksum": ""}
    yield with_own(lambda one: {**one, "more": 1})
    yield with_own(lambda one: {**one, "client": checked({**one["client"], "more": 1})})
    yield with_own(lambda one: {**one, "campaign": {**one["campaign"], "more": 1}})
    yield checked({**ledger, "more": 1})
    yield {**ledger, "spent": 1.0}
    yield from (checked(state) for state in otherwise())


def otherwise() -> Iterator[Plain]:
    """States with their checksums that no release would write like that."""
    made, ledger = client(PROTOCOLS[0], 3).to_dict(), next(ledgers())
    alone = client(PROTOCOLS[5], 3).to_dict()
    for member in (
        {"key": 3}, {"memo": made["memo"][::-1]}, {"reports": 1 << 53}, {"limit": 64},
        {"spent_before": 0}, {"version": 3, "committed_before": 0.0},
        {"answered": [[*one, one[1]] for one in made["answered"]]},
        {"protocol": without(made["protocol"], "hash")},
        {"protocol": {**made["protocol"], "type": "BiLOLOHA"}},
        {"sent": [[round, 3, y] for round, _, y in made["sent"]]},
    ):  # fmt: skip
        yield {**made, **member}
    yield {**alone, "key": 1}
    for rounds in (7, [], "", [[0, 4]], {"0" * 64: ""}, {"0" * 64: [[0, 4, 4]]}):
        yield {**ledger, "answered": rounds}
    for member in ({"spent": 2}, {"committed": 2.0}, {"committed": ""}, {"answered_before": {}}):
        yield {**ledger, **member}
    yield without(ledger, "answered")
    agreement = json.loads(Agreement((enrolment(HASHED, 3),), None).to_bytes())
    for member in ({"version": 2.0}, {"committed": 0.0}, {"answered_before": {}}):
        yield {**agreement, **member}
    yield without(agreement, "limit")
    (own,) = agreement["enrolments"]
    (first, second, *more), sent = own["queue"], json.loads(own["queue"][0][1])
    spoken = own["queue"][0][1]
    for queue in (
        "", [second, first, *more], [first, first], [[*first, 0]],
        # A collector takes the last of two members.
        [[0, spoken[:-1] + ',"round":0}']], [[0, '{"round":5,' + spoken[1:]]],
        [[0, json.dumps({**sent, "y": "02"})]],
    ):  # fmt: skip
        yield {**agreement, "enrolments": [{**own, "queue": queue}]}
    for host in ("c:0", "[::1]:00", "c:65536", "u@c", "c d"):
        url = own["url"].replace("//c", f"//{host}")
        yield {**agreement, "enrolments": [{**own, "url": url}]}
    document = without(own["campaign"], "keys")
    yield {**agreement, "enrolments": [{**own, "campaign": document}]}
    # Of reports that are kept no more a client knows all but the answer.
    for protocol in (PROTOCOLS[0], PROTOCOLS[5], RAPPOR(k=5, eps_inf=2.0, eps_1=1.0)):
        known = enrolment(campaign("forgotten", protocol=protocol), 3)
        plain = json.loads(Agreement((known,), None).to_bytes())
        (one,) = plain["enrolments"]
        one["client"] = checked({**one["client"], "sent": []})
        told = json.loads(known.queue[0])
        for change in ({"y": "ff"}, {"y": ""}, {"y": "0"}, {"y": 1}, {"key": "00"}, {"key": ""}):
            queue = [[0, json.dumps({**told, **change})]]
            yield {**plain, "enrolments": [{**one, "queue": queue}]}


def without(plain: Plain, name: str) -> Plain:
    """All members but one."""
    return {one: part for one, part in plain.items() if one != name}
