"""What a port is asked about: documents good and bad, protocols, histories, states."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from itertools import product
from typing import Any

from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.errors import ParameterError
from loloha.protocols import BLH, GRR, OLOLOHA, OUE, REGISTRY, BiLOLOHA, Protocol

START = 1_767_225_600
HOUR = Schedule(START, 3600)
THIRD = Schedule(START, 3600, every=3)
BUDGETS: tuple[dict[str, float], ...] = (
    {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0},
    {"eps": 1e-6, "eps_inf": 0.5, "eps_1": 1e-6},
    {"eps": 700.0, "eps_inf": 700.0, "eps_1": 350.0},
    {"eps": 0.1, "eps_inf": 1 / 3, "eps_1": 0.1},
    # Here the second round of L-GRR asked for would pass eps_1 by rounding.
    {"eps": 7.0, "eps_inf": 7.0, "eps_1": 3.0},
)
SIZES: dict[str, tuple[Any, ...]] = {
    "k": (3, 257),
    "g": (2, 3, 5),
    "b": (3, 10),
    "d": (1, 2),
    "hash": ("linear", "prime", "affine", "xxhash"),
    "calibration": ("tight", "published"),
    "target": ("distribution", "mean"),
}
# Bits that do not fill their last byte, buckets that hold unequal numbers of values.
FEW: dict[str, tuple[Any, ...]] = {
    "k": (11,),
    "g": (3,),
    "b": (10,),
    "d": (9,),
    "memo": ("independent", "joint"),
    "m0": (None, 0.0),
}
# Every path of draws is followed, so only small ones will do; of the affine family no key can be.
SMALL: dict[str, Any] = {"k": 3, "g": 3, "b": 3, "d": 2, "hash": "linear", **BUDGETS[0]}


def variants() -> Iterator[Protocol]:
    """Every protocol: all `SIZES` at the first of `BUDGETS`, a few at the others."""
    for cls, (place, budget) in product(REGISTRY.own.values(), enumerate(BUDGETS)):
        own = [field.name for field in fields(cls) if field.init]
        sizes = SIZES if place == 0 else {**SIZES, **FEW}
        tried = [name for name in own if name in sizes]
        fixed: dict[str, Any] = {name: budget[name] for name in own if name in budget}
        for values in product(*(sizes[name] for name in tried)):
            try:
                protocol = cls(**fixed, **dict(zip(tried, values, strict=True)))
                # Not everywhere can each hash be computed.
                protocol.memo_index(_some_key(protocol), 0)
            except ParameterError:
                continue
            yield protocol


def small() -> Iterator[Protocol]:
    """One variant of each protocol whose distribution can be enumerated."""
    for cls in REGISTRY.own.values():
        own = [field for field in fields(cls) if field.init]
        given = {field.name: SMALL[field.name] for field in own if field.name in SMALL}
        missing = [one.name for one in own if one.name not in given and one.default is MISSING]
        if not missing:
            yield cls(**given)
            for name, other in (("memo", "joint"), ("target", "mean")):
                if any(one.name == name for one in own):
                    yield cls.from_params({**given, name: other})


def short_histories() -> Iterator[tuple[Protocol, list[tuple[int, int]]]]:
    """Protocols, and rounds and values whose reports have few enough paths of draws."""
    for protocol in small():
        yield protocol, [(0, 1)]
        if protocol.encoding.report_bits - protocol.encoding.key_bits < protocol.k:
            yield protocol, [(0, 1), (1, 0), (2, 1)]
        else:
            yield protocol.from_params({**protocol.get_params(), "k": 2}), [(0, 1), (1, 1)]


def _some_key(protocol: Protocol) -> Any:
    from loloha.rng import SimulationRng

    return protocol.enroll(SimulationRng(0))


def campaign(protocol: Protocol, **changes: Any) -> Campaign:
    """A campaign of labels for a protocol."""
    parts: dict[str, Any] = {
        "name": "Hours of use",
        "protocol": protocol,
        "domain": Labels(tuple(f"label {v}" for v in range(protocol.k))),
        "schedule": HOUR,
    }
    return Campaign(**{**parts, **changes})


def panels(protocol: Protocol) -> Campaign:
    """A campaign whose users report in one round of three."""
    return campaign(protocol, schedule=THIRD)


def text(campaign: Campaign) -> str:
    """The canonical document."""
    return campaign.to_json().decode()


def good_documents() -> Iterator[Campaign]:
    """Campaigns that must be read: each kind of domain, of text, of key."""
    two = GRR(k=2, eps=1.0)
    yield campaign(two, name='quotes " and \\ and ünïcode “—” 日本 😀')
    yield campaign(two, name="n" * 200, schedule=Schedule(0, 366 * 86400))
    yield panels(two)
    yield campaign(two, schedule=Schedule(START, 1, every=1 << 24))
    yield campaign(two, schedule=Schedule(START, 3600, 2, expires=START + 1))
    yield campaign(two, schedule=Schedule(0, 60, expires=221_845_392_000))
    yield campaign(two, domain=Labels(("a b", "é")), schedule=Schedule(221_845_392_000, 1))
    yield campaign(two, domain=Labels((-(1 << 53), 1 << 53)))
    yield campaign(GRR(k=3, eps=1e-6), domain=Labels(("1", 2), other="else"))
    yield campaign(GRR(k=3, eps=700.0), domain=Labels((1, -2, "😀")))
    yield campaign(BiLOLOHA(k=5, eps_inf=1e-4, eps_1=1e-5), domain=Range(0, 1, 5))
    yield campaign(OUE(k=4, eps=1 / 3), domain=Range(-0.5, 1e-5, 3, other="outside"))
    yield campaign(OUE(k=3, eps=16.0), domain=Range(-(1 << 53), 1 << 53, 3))
    yield campaign(OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0), keys="assigned")


def bad_documents() -> Iterator[tuple[str, str]]:
    """What is wrong, and a document that must be refused, whatever fingerprint it has."""
    good = campaign(OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0, g=2)).to_dict()
    rules = good["protocol"]
    labels = good["labels"]

    def changed(**members: Any) -> str:
        return _canonical({**good, **members})

    def ruled(**members: Any) -> str:
        return _canonical({**good, "protocol": {**rules, **members}})

    for name in ("type", "version", "name", "protocol", "labels", "round"):
        yield f"without {name}", _canonical({one: good[one] for one in good if one != name})
    for name in rules:
        fewer = {one: rules[one] for one in rules if one != name}
        if name not in ("g", "hash", "calibration"):
            yield f"protocol without {name}", changed(protocol=fewer)
    yield "another member", changed(more=1)
    yield "another parameter", ruled(more=1)
    yield "a parameter of another protocol", ruled(eps=1.0)
    yield "a later version", changed(version=2)
    yield "a version that is no integer", changed(version="1")
    yield "a version that is true", changed(version=True)
    yield "a later version of the protocol", ruled(version=2)
    yield "another type", changed(type="loloha-client")
    yield "an unknown protocol", ruled(type="m-grr")
    yield "a protocol that is inherited", ruled(type="constructor")
    yield "a protocol that is no object", changed(protocol=[])
    for k in (1, 0, -3, 4, 1 << 25, "3", None, True, 3.5):
        yield f"k = {k!r}", ruled(k=k)
    for eps_inf in (0, -1.0, 9e-7, 701.0, "2", None, True):
        yield f"eps_inf = {eps_inf!r}", ruled(eps_inf=eps_inf)
    yield "eps_1 = eps_inf", ruled(eps_1=2.0)
    yield "eps_1 > eps_inf", ruled(eps_1=3.0)
    for g in (1, 0, (1 << 20) + 1, "2", 4):
        yield f"g = {g!r}", ruled(g=g)
    for family in ("md5", "Linear", None, 1, "__proto__"):
        yield f"hash = {family!r}", ruled(hash=family)
    yield "an unknown calibration", ruled(calibration="loose")
    bad: tuple[Any, ...] = (
        "",
        " a",
        "a ",
        "a\nb",
        "a\u200bb",
        "a\u00a0b",
        "n" * 201,
        None,
        1,
        ["a"],
    )
    for one in bad:
        yield f"name = {one!r}", changed(name=one)
    bad = ("", " a", "a\tb", "l" * 201, None, True, 1.5, (1 << 53) + 2, ["a"], {})
    for label in bad:
        yield f"a label {label!r}", changed(labels=[label, *labels[1:]])
    yield "a label twice", changed(labels=[labels[0], *labels[:2]])
    yield "a label twice, as text and number", changed(labels=["1", 1, "2"])
    yield "too few labels", changed(labels=labels[:2])
    yield "too many labels", changed(labels=[*labels, "more"])
    yield "no labels", changed(labels=[])
    yield "labels in a text", changed(labels="abc")
    yield "other among the labels", changed(labels=labels[:2], other=labels[0])
    yield "other that is null", changed(other=None)
    yield "other that is not counted", changed(other="else")
    for domain in (
        {"range": [1, 0], "bins": 3},
        {"range": [0, 0], "bins": 3},
        {"range": [0, 1, 2], "bins": 3},
        {"range": [0], "bins": 3},
        {"range": ["0", "1"], "bins": 3},
        {"range": [0, True], "bins": 3},
        {"range": [0, 1e300], "bins": 3},
        {"range": [0, 1], "bins": 4},
        {"range": [0, 1], "bins": "3"},
        {"range": [0, 1]},
        {"range": [0, 1], "bins": 3, "more": 1},
    ):
        yield f"labels = {domain}", changed(labels=domain)
    for start in (
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.5Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:01Z",
        "1969-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
        "now",
        START,
        None,
    ):
        yield f"start = {start!r}", changed(round={"start": start, "seconds": 60})
    for seconds in (0, -1, 366 * 86400 + 1, "60", None, True, 0.5):
        yield f"seconds = {seconds!r}", changed(round={**good["round"], "seconds": seconds})
    for every in (1, 0, -1, (1 << 24) + 1, "2", None, True, 2.5):
        yield f"every = {every!r}", changed(round={**good["round"], "every": every})
    for expires in (
        None,
        START + 60,
        "2027-01-01",
        "2027-01-01T00:00:00",
        "2027-02-30T00:00:00Z",
        good["round"]["start"],
        "1970-01-01T00:00:00Z",
    ):
        yield f"expires = {expires!r}", changed(round={**good["round"], "expires": expires})
    yield "a round with more", changed(round={**good["round"], "more": 1})
    bad = ("both", "", None, True, [])
    for keys in bad:
        yield f"keys = {keys!r}", changed(keys=keys)
    for protocol in (GRR(k=3, eps=1.0), BLH(k=3, eps=1.0), OUE(k=3, eps=1.0)):
        yield (
            f"keys assigned for {protocol.name}",
            changed(protocol=protocol.to_dict(), keys="assigned"),
        )
    whole = text(campaign(GRR(k=3, eps=1.0)))
    for wrong in ("NaN", "Infinity", "1e400", '"1"', "1.00000000000000000001e"):
        yield f"eps = {wrong}", whole.replace('"eps":1.0', f'"eps":{wrong}')
    yield "1.0 for an integer", whole.replace('"k":3', '"k":3.0')
    yield "a member twice", whole.replace('"k":3', '"k":2,"k":3')
    yield "half of it", whole[: len(whole) // 2]
    yield "something behind it", whole + "{}"
    yield "nothing", ""
    for plain in ("null", "[]", "1", '"text"', "[" * 5000, '{"type":' * 5000):
        yield f"the text {plain[:8]}", plain


def ranges() -> Iterator[tuple[Campaign, list[Any]]]:
    """Campaigns of ranges, and values to find the part of: edges, ends, what is outside."""
    for domain, values in (
        (Range(0, 100, 10), [0, 10, 9.999999999999999, 99, 100, 100.5, -1, "50", "1e1", "-0"]),
        (Range(0, 1, 10), [x / 10 for x in range(11)]),
        (Range(0.1, 0.8, 7), [x / 10 for x in range(10)]),
        (Range(-3, 4, 7), [-3, -2, -2.5, 0, 3.5, 4, "4", 4.000000000000001]),
    ):
        yield campaign(GRR(k=domain.k, eps=1.0), domain=domain), values
    outside = Range(0, 1, 2, other="outside")
    yield campaign(GRR(k=3, eps=1.0), domain=outside), [2, -1, "x", "", 0.5]


def labelled() -> Iterator[tuple[Campaign, list[Any]]]:
    """Campaigns of labels, and values to look up."""
    for domain in (Labels(("a", 1, "2")), Labels(("a", 1), other="else")):
        yield campaign(GRR(k=3, eps=1.0), domain=domain), ["a", 1, "1", 2, "2", "b", "", "else"]


def moments() -> list[float]:
    """Unix seconds around the beginning of rounds."""
    return [START, START - 1, START + 3599.999, START + 3600, START + 3600 * 10**6, START - 3600.5]


def damageable() -> Protocol:
    """What the clients of `damaged` states report by: a hash key and symbols."""
    return OLOLOHA(k=3, g=3, eps_inf=2.0, eps_1=1.0)


def damaged(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong, and a state of a client of `damageable` that must be refused."""
    yield "a digit of the secret", json.dumps({**state, "secret": "0" * 64})
    yield "another type", json.dumps({**state, "type": "loloha-sender"})
    for name in state:
        fewer = {one: state[one] for one in state if one != name}
        yield f"without {name}", json.dumps(sealed(fewer) if name != "checksum" else fewer)
    rounds = state["sent"]
    for name, wrong in (
        ("version", 3),
        ("key", None),
        ("key", 0),
        ("key", 1 << 40),
        ("key", "1"),
        ("memo", [[99, 0]]),
        ("memo", [[0, 99]]),
        ("memo", [[-1, 0]]),
        ("memo", [[0, "00"]]),
        ("sent", [[round, key, 99] for round, key, _ in rounds]),
        ("sent", [[round, 0, y] for round, _, y in rounds]),
        ("sent", [[-1, key, y] for _, key, y in rounds]),
        ("answered", []),
        ("answered", [[0, 2], [3, 1 << 20]]),
        ("answered", [[-1, 1 << 20]]),
        ("panel", [1, 0]),
        ("panel", [3, 3]),
        ("panel", [3, -1]),
        ("panel", [2, 0]),
        ("panel", [1 << 20]),
        ("reports", 0),
        ("reports", -1),
        ("spent_before", -1.0),
        ("limit", 0.5),
        ("limit", "12"),
        ("secret", "00"),
        ("secret", "zz" * 32),
    ):
        yield f"{name} = {wrong!r}", json.dumps(sealed({**state, name: wrong}))
    whole = json.dumps(state)
    yield "half of it", whole[: len(whole) // 2]
    yield "nothing", ""
    for plain in ("null", "[]", "1", "[" * 5000):
        yield f"the text {plain[:8]}", plain


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """A state with the checksum that belongs to it."""
    body = {name: state[name] for name in state if name != "checksum"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {**body, "checksum": hashlib.sha256(canonical.encode()).hexdigest()}


def _canonical(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def finite(cap: float) -> float | None:
    """A cap as JSON has it: null where there is none."""
    return None if math.isinf(cap) else cap
