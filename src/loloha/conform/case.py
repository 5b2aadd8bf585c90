"""Test cases for a port: valid and invalid documents, protocols, histories, states."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from itertools import product
from typing import Any

from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.client.seal import checksum
from loloha.errors import ParameterError
from loloha.protocols import GRR, OLOLOHA, REGISTRY, Protocol

START = 1_767_225_600
HOUR = Schedule(START, 3600)
THIRD = Schedule(START, 3600, every=3)
BUDGETS: tuple[dict[str, float], ...] = (
    {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0},
    {"eps": 1e-6, "eps_inf": 0.5, "eps_1": 1e-6},
    {"eps": 700.0, "eps_inf": 700.0, "eps_1": 350.0},
    {"eps": 0.1, "eps_inf": 1 / 3, "eps_1": 0.1},
    # Parameters at which rounding would make L-GRR's second round pass eps_1.
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
# Bits that do not fill their last byte, buckets of unequal size.
FEW: dict[str, tuple[Any, ...]] = {
    "k": (11,),
    "g": (3,),
    "b": (10,),
    "d": (9,),
    "memo": ("independent", "joint"),
    "m0": (None, 0.0, -0.0),
}
# Every path of draws is followed, so only small domains work, and not the affine family.
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
                # Not every port computes every hash.
                protocol.memo_index(_some_key(protocol), 0)
            except ParameterError:
                continue
            yield protocol


def small() -> Iterator[Protocol]:
    """One variant of each protocol whose distribution can be enumerated."""
    for cls in REGISTRY.own.values():
        own = [field for field in fields(cls) if field.init]
        given = {field.name: SMALL[field.name] for field in own if field.name in SMALL}
        missing = [
            field.name for field in own if field.name not in given and field.default is MISSING
        ]
        if not missing:
            yield cls(**given)
            for name, other in (("memo", "joint"), ("target", "mean")):
                if any(field.name == name for field in own):
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
    """The protocol of the clients of `damaged` states."""
    return OLOLOHA(k=3, g=3, eps_inf=2.0, eps_1=1.0)


def damaged(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A fault, and a state with it that must be refused."""
    yield "a digit of the secret", json.dumps({**state, "secret": "0" * 64})
    yield "another type", json.dumps({**state, "type": "loloha-sender"})
    for name in state:
        fewer = {member: state[member] for member in state if member != name}
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
    return {**body, "checksum": checksum(body)}


def canonical(plain: Any) -> str:
    """Canonical JSON, as fingerprinted."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def finite(cap: float) -> float | None:
    """A cap as JSON: null if there is none."""
    return None if math.isinf(cap) else cap
