"""What devices must do, written a second time from MATH, on exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any

import xxhash

from loloha.hashing import AffineHash, XXHash

if TYPE_CHECKING:
    import pytest

Law = dict[Any, Fraction]

# Families too large to enumerate draw from these members; their own law is tested in test_hashing.
FEW_KEYS = {
    AffineHash: [5 << 31 | 3, 2_000_000_000 << 31 | 7, (1 << 31) - 2 << 31 | (1 << 31) - 2],
    XXHash: list(range(6)),
}


def draw_from_few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the clients' choice of a key enumerable."""
    for family, keys in FEW_KEYS.items():
        monkeypatch.setattr(family, "draw", lambda self, rng, keys=keys: keys[rng.below(len(keys))])


def is_number(protocol: Any) -> bool:
    """Whether the memo symbol is a side of a threshold, MATH section 20."""
    return hasattr(protocol, "target")


def shown(protocol: Any, key: Any) -> Any:
    """What a report holds of the key."""
    return None if getattr(protocol, "target", "") == "mean" else key


def held(protocol: Any, v: int, bin: int) -> Fraction:
    """By how much a user of this value counts in a bin."""
    if not is_number(protocol):
        return Fraction(v * protocol.bins // protocol.k == bin)
    return Fraction(v, protocol.k - 1) if protocol.target == "mean" else Fraction(v >= bin + 1)


def keys(protocol: Any) -> list[Any]:
    """All keys that a user may draw, each equally likely."""
    if is_number(protocol):
        return list(range(1, protocol.k))
    match protocol.encoding.kind:
        case "keyed symbol":
            family = protocol.encoding.family
            if protocol.hash == "prime":
                prime = prime_of(protocol)
                return list(range(prime * (prime - 1)))
            return FEW_KEYS.get(type(family)) or list(range(1, family.g**family.m))
        case "sampled bits":
            return list(combinations(range(protocol.b), protocol.d))
    return [None]


def every_key_is_listed(protocol: Any) -> bool:
    """Whether `keys` are all keys there are, and not some of a large family."""
    return keys(protocol) is not FEW_KEYS.get(type(getattr(protocol.encoding, "family", None)))


def prime_of(protocol: Any) -> int:
    """The least prime that is not below k and g, MATH section 14."""
    sizes = range(max(protocol.k, protocol.g), 1 << 25)
    return next(n for n in sizes if n > 1 and not any(n % d == 0 for d in range(2, n)))


def hashed(protocol: Any, key: int, v: int) -> int:
    """Symbol of the value, MATH section 4."""
    g = protocol.g
    if protocol.hash == "linear":
        places = [g**i for i in range(30)]
        return sum((key // place % g) * (v // place % g) for place in places) % g
    if protocol.hash == "affine":
        a, b = divmod(key, 2**31)
        return (a * v + b) % (2**31 - 1) % g
    if protocol.hash == "prime":
        a, b = divmod(key, prime_of(protocol))
        return ((a + 1) * v + b) % prime_of(protocol) % g
    return xxhash.xxh32(str(v).encode(), seed=key).intdigest() % g


def symbol(protocol: Any, key: Any, v: int) -> int:
    """Memo symbol of the value."""
    if is_number(protocol):
        return int(v >= key)
    match protocol.encoding.kind:
        case "keyed symbol":
            return hashed(protocol, key, v)
        case "sampled bits":
            bucket = math.floor(Fraction(v * protocol.b, protocol.k))
            return key.index(bucket) if bucket in key else protocol.d
    return v


def bits(protocol: Any) -> int:
    """Bits in an answer; 0 where it is a symbol."""
    kind = protocol.encoding.kind
    return {"bits": protocol.k, "sampled bits": getattr(protocol, "d", 0)}.get(kind, 0)


def unpack(protocol: Any, answer: bytes) -> tuple[int, ...]:
    """The bits of an answer, first one lowest in the first byte."""
    whole = int.from_bytes(answer, "little")
    return tuple(whole >> i & 1 for i in range(bits(protocol)))


def answers(protocol: Any) -> list[Any]:
    """Everything a report can say."""
    size = bits(protocol)
    if not size:
        return list(range(protocol.g))
    return [number.to_bytes((size + 7) // 8, "little") for number in range(1 << size)]


def supports(protocol: Any, key: Any, y: Any) -> tuple[int, ...]:
    """Which bins a report supports, 0 or 1 for each."""
    if is_number(protocol):
        return tuple(y * (key in (None, bin + 1)) for bin in range(protocol.bins))
    match protocol.encoding.kind:
        case "bits":
            return unpack(protocol, y)
        case "sampled bits":
            said = dict(zip(key, unpack(protocol, y), strict=True))
            return tuple(said.get(bucket, 0) for bucket in range(protocol.b))
    return tuple(int(symbol(protocol, key, v) == y) for v in range(protocol.k))


def first_round(protocol: Any, x: int) -> Law:
    """Law of the memoised answer to the memo symbol ``x``."""
    truth = [int(i == x) for i in range(bits(protocol))]
    return _round(protocol, x, truth, protocol.realised.p1, protocol.realised.q1)


def second_round(protocol: Any, kept: Any) -> Law:
    """Law of a report, given the memoised answer."""
    if protocol.realised.p2 is None:
        return {kept: Fraction(1)}
    truth = unpack(protocol, kept) if bits(protocol) else ()
    return _round(protocol, kept, truth, protocol.realised.p2, protocol.realised.q2)


def _round(protocol: Any, x: Any, truth: Any, p: Fraction, q: Fraction) -> Law:
    if not bits(protocol):
        return {y: p if y == x else q for y in range(protocol.g) if y == x or q}
    law = {}
    for answer in answers(protocol):
        ones = [p if bit else q for bit in truth]
        said = unpack(protocol, answer)
        law[answer] = math.prod(
            one if bit else 1 - one for bit, one in zip(said, ones, strict=True)
        )
    return {answer: chance for answer, chance in law.items() if chance}


def joint(protocol: Any) -> bool:
    """Whether the memo is one table for life."""
    return getattr(protocol, "memo", "independent") == "joint"


def spent(protocol: Any, units: int) -> float:
    """Budget of so many memoised answers or reports, MATH sections 8 and 15."""
    if not joint(protocol) or units < 2:
        return units * protocol.asked_memo
    g, a = protocol.g, math.exp(protocol.eps_inf)
    p1, q1 = a / (a + g - 1), 1 / (a + g - 1)
    m0 = 2 * p1 * q1 + (g - 2) * q1**2 if protocol.m0 is None else protocol.m0
    w = (a - 1) / (a + g - 1)
    return math.log(1 + w * math.perm(g, units) / (1 - w - m0))


def tables_law(protocol: Any) -> Law:
    """Law of the answers to all memo symbols of a protocol that sends symbols.

    One table for life: MATH section 15, with the realised numbers.
    """
    g = protocol.g
    if not joint(protocol):
        rows = [first_round(protocol, x) for x in range(g)]
        return {
            table: math.prod(row[y] for row, y in zip(rows, table, strict=True))
            for table in product(*rows)
        }
    w = protocol.realised.p1 - protocol.realised.q1
    m0 = (1 - w) * Fraction(protocol.first_channel.constant, 1 << 53)
    law: Law = dict.fromkeys(permutations(range(g)), (1 - w - m0) / math.factorial(g))
    law[tuple(range(g))] += w
    for y in range(g):
        law[(y,) * g] = law.get((y,) * g, Fraction(0)) + m0 / g
    return {table: chance for table, chance in law.items() if chance}


def pair_law(protocol: Any, x: int, z: int) -> Law:
    """Law of the memoised answers to two memo symbols, which may be one."""
    if x == z:
        return {(kept, kept): chance for kept, chance in first_round(protocol, x).items()}
    law: Law = {}
    if joint(protocol):
        for table, chance in tables_law(protocol).items():
            at = table[x], table[z]
            law[at] = law.get(at, Fraction(0)) + chance
        return law
    ones, others = first_round(protocol, x), first_round(protocol, z)
    return {(one, other): ones[one] * others[other] for one in ones for other in others}


def memo_law(protocol: Any, v: int) -> Law:
    """Law of (key as a report shows it, memoised answer)."""
    every = keys(protocol)
    law: Law = {}
    for key in every:
        for kept, chance in first_round(protocol, symbol(protocol, key, v)).items():
            at = shown(protocol, key), kept
            law[at] = law.get(at, Fraction(0)) + chance / len(every)
    return law


def reports_law(protocol: Any, v: int, reports: int) -> Law:
    """Joint law of (key, y) of several reports of one value, MATH sections 4 and 8.

    With a memo: one key and one first round for all of them. Without: all afresh each time.
    """
    if not protocol.longitudinal:
        one = memo_law(protocol, v)
        return {
            chosen: math.prod(one[report] for report in chosen)
            for chosen in product(one, repeat=reports)
        }
    law: Law = {}
    second = {kept: second_round(protocol, kept) for kept in answers(protocol)}
    for (key, kept), chance in memo_law(protocol, v).items():
        for ys in product(second[kept], repeat=reports):
            outcome = tuple((key, y) for y in ys)
            weight = chance * math.prod(second[kept][y] for y in ys)
            law[outcome] = law.get(outcome, Fraction(0)) + weight
    return law


def eps_after(protocol: Any, reports: int) -> float:
    """Loss of several reports of one value, MATH section 8, from the realised numbers."""
    r, t = protocol.realised, reports
    if not protocol.longitudinal:
        return t * r.eps_memo
    if r.p2 is None:
        return r.eps_memo
    p1, q1, p2, q2 = r.p1, r.q1, r.p2**t, r.q2**t
    if not bits(protocol):
        g = protocol.g
        return _ln((p1 * p2 + (g - 1) * q1 * q2) / (q1 * p2 + p1 * q2 + (g - 2) * q1 * q2))
    ones = (p1 * p2 + (1 - p1) * q2) / (q1 * p2 + (1 - q1) * q2)
    not_p2, not_q2 = (1 - r.p2) ** t, (1 - r.q2) ** t
    zeros = (q1 * not_p2 + (1 - q1) * not_q2) / (p1 * not_p2 + (1 - p1) * not_q2)
    return _ln(ones * zeros)


def _ln(ratio: Fraction) -> float:
    return math.log1p(float(ratio - 1))
