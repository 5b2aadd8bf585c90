"""Counts of one round: they merge in any order, and travel whole or not at all."""

import hashlib
import json
import pickle
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loloha
from laws.server import columns
from laws.variants import FLAGSHIPS, Variant
from loloha.errors import MergeError, WireError
from loloha.protocols import Protocol
from loloha.report import Report
from loloha.rng import SimulationRng
from loloha.server.tally import FORMAT, MOST_REPORTS, VERSION, Tally

PROTOCOL = loloha.OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=3)
BITS = loloha.RAPPOR(k=11, eps_inf=2.0, eps_1=1.0)
BUCKETS = loloha.DBitFlipPM(k=11, eps_inf=2.0, b=10, d=9)
every_protocol = pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)


def some_reports(protocol: Protocol, n: int, seed: int = 1) -> list[Report]:
    rng = SimulationRng(seed)
    return [protocol.client(rng=rng).report(user % protocol.k, round=0) for user in range(n)]


def counted(protocol: Protocol, reports: list[Report]) -> Tally:
    tally = protocol.tally()
    if reports:
        tally.update(*columns(protocol, reports))
    return tally


# -- a commutative monoid


@every_protocol
@settings(max_examples=8)
@given(data=st.data())
def test_any_split_in_any_order_counts_the_same(variant: Variant, data: st.DataObject) -> None:
    protocol = variant.build()
    reports = some_reports(protocol, 24)
    whole = counted(protocol, reports)
    shuffled = data.draw(st.permutations(reports))
    cuts = sorted(data.draw(st.lists(st.integers(0, 24), max_size=4)))
    edges = [0, *cuts, 24]
    parts = [counted(protocol, shuffled[low:high]) for low, high in pairwise(edges)]
    parts = data.draw(st.permutations(parts))
    left = parts[0]
    for part in parts[1:]:
        left = left + part
    right = parts[-1]
    for part in reversed(parts[:-1]):
        right = part + right
    assert left == right == sum(parts) == whole
    assert left.n == whole.n == 24
    assert whole + protocol.tally() == whole == protocol.tally() + whole


@every_protocol
def test_merging_leaves_both_sides_alone(variant: Variant) -> None:
    protocol = variant.build()
    one, other = (counted(protocol, some_reports(protocol, 5, seed)) for seed in (1, 2))
    before = one.counts.copy(), other.counts.copy()
    merged = one + other
    merged.add(some_reports(protocol, 1)[0])
    assert (one.counts == before[0]).all()
    assert (other.counts == before[1]).all()
    assert (one.n, other.n, merged.n) == (5, 5, 11)


OTHERS = [
    loloha.OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=3, calibration="published"),
    loloha.OLOLOHA(k=11, eps_inf=2.0, eps_1=0.9, g=3),
    loloha.OLOLOHA(k=11, eps_inf=2.1, eps_1=1.0, g=3),
    loloha.OLOLOHA(k=12, eps_inf=2.0, eps_1=1.0, g=3),
    loloha.OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=3, hash="affine"),
    loloha.OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=5),
    loloha.OLH(k=11, eps=1.0, g=3),
]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_tallies_of_other_rules_do_not_merge(other: Protocol) -> None:
    """Not even where the counts have the same shape."""
    tally = PROTOCOL.tally()
    with pytest.raises(MergeError, match="tallies must follow one protocol, got OLOLOHA"):
        tally + other.tally()
    assert tally != other.tally()


def test_only_tallies_are_added_to_tallies() -> None:
    tally = PROTOCOL.tally()
    for other in (1, None, "tally", [tally]):
        with pytest.raises(TypeError):
            tally + other
        with pytest.raises(TypeError):
            other + tally
        assert tally != other
    assert sum([tally]) == tally
    with pytest.raises(TypeError):
        hash(tally)


# -- reports that are none


@pytest.mark.parametrize(
    "report",
    [
        Report(None, 1), Report(0, 1), Report(27, 1), Report(5, 3), Report(5, -1), Report(5, True),
        Report(True, 1), Report(5, b"\x01"), Report((5,), 1), Report(5.0, 1), Report("5", 1),
        Report(5, None), Report(5, 1.0), 3, None,
    ],
    ids=str,
)  # fmt: skip
def test_a_report_out_of_range_is_not_counted(report: Report) -> None:
    tally = PROTOCOL.tally()
    with pytest.raises(WireError, match="report must have a key and y that ololoha"):
        tally.add(report)
    assert tally == PROTOCOL.tally()


@pytest.mark.parametrize(
    ("protocol", "key", "y"),
    [
        (BITS, None, b"\x00"), (BITS, None, b"\x00\x00\x00"), (BITS, None, b"\x00\x08"),
        (BITS, None, 3), (BITS, 3, b"\x00\x00"), (BITS, None, bytearray(2)),
        (BUCKETS, (0, 1, 2, 3, 4, 5, 6, 7, 8), b"\x00\x02"),
        (BUCKETS, (0, 1, 2, 3, 4, 5, 6, 7), b"\x00\x00"),
        (BUCKETS, (1, 0, 2, 3, 4, 5, 6, 7, 8), b"\x00\x00"),
        (BUCKETS, (0, 0, 2, 3, 4, 5, 6, 7, 8), b"\x00\x00"),
        (BUCKETS, (0, 1, 2, 3, 4, 5, 6, 7, 10), b"\x00\x00"),
        (BUCKETS, (-1, 1, 2, 3, 4, 5, 6, 7, 8), b"\x00\x00"),
        (BUCKETS, (False, 1, 2, 3, 4, 5, 6, 7, 8), b"\x00\x00"),
        (BUCKETS, None, b"\x00\x00"),
    ],
)  # fmt: skip
def test_bits_out_of_range_are_not_counted(protocol: Protocol, key: Any, y: Any) -> None:
    tally = protocol.tally()
    with pytest.raises(WireError):
        tally.add(Report(key, y))
    assert tally == protocol.tally()
    has_array_form = isinstance(y, bytes) and (key is None) == (protocol is BITS)
    if has_array_form and not any(bucket is False for bucket in key or ()):
        keys = None if key is None else np.array([key], dtype=np.int64)
        with pytest.raises(WireError):
            tally.update(keys, np.frombuffer(y, dtype=np.uint8)[None])
        assert tally == protocol.tally()


@every_protocol
def test_one_bad_report_keeps_its_batch_out(variant: Variant) -> None:
    protocol = variant.build()
    keys, ys = columns(protocol, some_reports(protocol, 9))
    bad = ys.copy()
    bad[4] = 255
    if protocol.encoding.kind in ("symbol", "keyed symbol"):
        bad[7] = -1
    tally = protocol.tally()
    wrong = np.flatnonzero(~tally.valid(keys, bad)).tolist()
    assert wrong == ([4, 7] if bad.dtype == np.int64 else [4])
    message = rf"every report must be one of {protocol.name}, got {len(wrong)} out of range, "
    with pytest.raises(WireError, match=message + "the first at index 4; drop or repair"):
        tally.update(keys, bad)
    assert tally == protocol.tally()
    tally.update(keys, ys)
    assert tally.n == 9


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32", "uint64"])
def test_arrays_of_any_integer_type_are_counted(dtype: str) -> None:
    keys, ys = columns(PROTOCOL, some_reports(PROTOCOL, 9))
    expected, tally = PROTOCOL.tally(), PROTOCOL.tally()
    expected.update(keys, ys)
    tally.update(keys.astype(dtype), ys.astype(dtype))
    tally.update(keys.tolist(), ys.tolist())
    assert tally == expected + expected


@pytest.mark.parametrize(
    ("protocol", "keys", "ys", "message"),
    [
        (PROTOCOL, [1, 2], [0], r"must have shapes \(\('n',\), \('n',\)\) for ololoha, got"),
        (PROTOCOL, None, [0], "must have shapes"),
        (PROTOCOL, [[1]], [0], "must have shapes"),
        (PROTOCOL, [1], 0, "must have shapes"),
        (PROTOCOL, [1.0], [0], "keys must be integers, got float64; convert"),
        (PROTOCOL, ["1"], [0], "keys must be integers"),
        (PROTOCOL, [1], [True], "ys must be integers, got bool"),
        (PROTOCOL, [1], [None], "ys must be integers, got object"),
        (PROTOCOL, [[1], [1, 2]], [0], "keys must be an array, got rows of unequal length"),
        (PROTOCOL, [1], [[0], [0, 1]], "ys must be an array, got rows of unequal length"),
        (PROTOCOL, [1 << 63], [0], "out of range"),
        (BITS, None, [[0, 0]], "ys must be packed bits of type uint8, got int64; pack them"),
        (BITS, None, np.zeros((2, 3), np.uint8), "must have shapes"),
        (BITS, [1, 1], np.zeros((2, 2), np.uint8), "must have shapes"),
        (BUCKETS, [[1]], np.zeros((1, 2), np.uint8), "must have shapes"),
    ],
)
def test_arrays_of_another_form_are_refused(
    protocol: Protocol, keys: Any, ys: Any, message: str
) -> None:
    tally = protocol.tally()
    with pytest.raises(WireError, match=message):
        tally.update(keys, ys)
    assert tally == protocol.tally()


@every_protocol
def test_an_empty_batch_changes_nothing(variant: Variant) -> None:
    protocol = variant.build()
    keys, ys = columns(protocol, some_reports(protocol, 3))
    tally = counted(protocol, some_reports(protocol, 3))
    before = tally.to_bytes()
    tally.update(None if keys is None else keys[:0], ys[:0])
    assert tally.to_bytes() == before


# -- messages


@every_protocol
def test_a_message_survives_the_trip(variant: Variant) -> None:
    protocol = variant.build()
    for n in (0, 1, 50):
        tally = counted(protocol, some_reports(protocol, n))
        arrived = Tally.from_bytes(tally.to_bytes(), protocol=protocol)
        assert arrived == tally
        assert arrived.counts.dtype == np.int64
        assert (arrived + tally).n == 2 * n
        assert pickle.loads(pickle.dumps(tally)) == tally


@every_protocol
def test_every_changed_bit_of_a_message_is_seen(variant: Variant) -> None:
    protocol = variant.build()
    message = counted(protocol, some_reports(protocol, 5)).to_bytes()
    for place in range(len(message)):
        bit = 1 << (place * 5 % 8)
        flipped = message[:place] + bytes([message[place] ^ bit]) + message[place + 1 :]
        with pytest.raises(WireError):
            Tally.from_bytes(flipped)


def test_a_truncated_or_extended_message_is_refused() -> None:
    message = counted(PROTOCOL, some_reports(PROTOCOL, 5)).to_bytes()
    for size in range(len(message)):
        with pytest.raises(WireError):
            Tally.from_bytes(message[:size])
    for more in (b"\x00", b"\n", b"{}", message):
        for extended in (message + more, more + message):
            with pytest.raises(WireError):
                Tally.from_bytes(extended)


def signed(head: Any, body: bytes) -> bytes:
    """A message with a checksum that fits it."""
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    message = head + b"\n" + body
    return message + hashlib.sha256(message).digest()


HEADER = {"format": FORMAT, "version": VERSION, "protocol": PROTOCOL.to_dict(), "n": 3}
BODY = zlib.compress(bytes(8 * len(PROTOCOL.tally().counts)))


def test_the_forger_of_these_tests_makes_valid_messages() -> None:
    assert Tally.from_bytes(signed(HEADER, BODY)).n == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "tally must be a message of format 'loloha-tally', version 1 or 2; use a"),
        ({"origin": {}}, "version 1 or 2; use a"),
        ({"version": 2, "origin": [1]}, "version 1 or 2; use a"),
        ({"version": [1]}, "version 1 or 2; use a"),
        ({"version": "1"}, "version 1"),
        ({"format": "loloha-client"}, "of format 'loloha-tally'"),
        ({"extra": 1}, "of format"),
        ({"n": -1}, r"n must be an integer in 0\.\."),
        ({"n": MOST_REPORTS + 1}, r"n must be an integer in 0\.\."),
        ({"n": True}, "n must be an integer"),
        ({"n": 3.0}, "n must be an integer"),
        ({"n": None}, "n must be an integer"),
        ({"protocol": {}}, "tally must be of a known protocol: spec must be an object"),
        ({"protocol": None}, "of a known protocol"),
        ({"protocol": [1]}, "of a known protocol"),
        ({"protocol": {"type": "nope", "version": 1}}, "of a known protocol: protocol must be one"),
        ({"protocol": PROTOCOL.to_dict() | {"name": 1}}, "unknown name"),
        ({"protocol": PROTOCOL.to_dict() | {"g": "3"}}, "known protocol: g must be an integer"),
        ({"protocol": PROTOCOL.to_dict() | {"k": 96}}, "tally must hold one count per cell"),
    ],
    ids=str,
)
def test_a_forged_header_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(WireError, match=message):
        Tally.from_bytes(signed(HEADER | change, BODY))


@pytest.mark.parametrize("head", [b"", b"{}", b"null", b"[]", b"{", b"[" * 100_000, b"\xff"])
def test_a_header_that_is_none_is_refused(head: bytes) -> None:
    with pytest.raises(WireError, match="tally must be a message of format"):
        Tally.from_bytes(signed(head, BODY))


def body_of(counts: Any) -> bytes:
    return zlib.compress(np.asarray(counts, dtype="<i8").tobytes())


SIZE = len(PROTOCOL.tally().counts)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "one count per cell"),
        (b"not zlib at all", "one count per cell"),
        (BODY[:-3], "one count per cell"),
        (BODY + b"\x00", "one count per cell"),
        (BODY + BODY, "one count per cell"),
        (body_of([0] * (SIZE - 1)), "one count per cell"),
        (body_of([0] * (SIZE + 1)), "one count per cell"),
        (zlib.compress(bytes(1 << 24)), "one count per cell"),
        (body_of([-1] + [0] * (SIZE - 1)), r"counts in 0\.\.3"),
        (body_of([4] + [0] * (SIZE - 1)), r"counts in 0\.\.3"),
    ],
)
def test_a_forged_body_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(WireError, match=f"tally must hold {message}"):
        Tally.from_bytes(signed(HEADER, body))


def test_a_message_for_other_rules_is_refused() -> None:
    message = PROTOCOL.tally().to_bytes()
    for other in OTHERS:
        with pytest.raises(WireError, match=r"tally must follow .*, got .*; use the campaign"):
            Tally.from_bytes(message, protocol=other)


def test_a_tally_says_its_rules_and_size() -> None:
    tally = counted(PROTOCOL, some_reports(PROTOCOL, 2))
    assert repr(tally) == f"Tally({PROTOCOL!r}, n=2)"
