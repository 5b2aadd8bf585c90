"""The server: counting reports, decoding counts, one round of either."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import loloha
from benchmarks.measure import MILLISECONDS, Row, best, peak, timed
from loloha.counting.decode import linear_support
from loloha.hashing import LinearHash

REPORTS = 1_000_000


def rows() -> Iterator[Row]:
    yield from _rounds()
    yield from _tallies()
    yield from _decoding()


def _reports(protocol: Any, n: int) -> tuple[Any, Any]:
    """Keys and symbols of n reports, uniform: the server's work does not depend on the truth."""
    rng = np.random.default_rng(1)
    return protocol.encoding.family.draw_many(n, rng), rng.integers(protocol.g, size=n)


def _estimate(protocol: Any, keys: Any, ys: Any) -> Any:
    tally = protocol.tally()
    tally.update(keys, ys)
    return tally.estimate()


def _rounds() -> Iterator[Row]:
    cases = (
        ("linear", 2, 1000, 10.0), ("linear", 2, 1 << 20, 150.0), ("linear", 5, 1000, None),
        ("linear", 5, 1 << 20, None), ("prime", 4, 96, 3.0), ("prime", 4, 1000, 150.0),
    )  # fmt: skip
    for family, g, k, target in cases:
        protocol = loloha.OLOLOHA(k=k, eps_inf=2.0, eps_1=1.0, g=g, hash=family)
        keys, ys = _reports(protocol, REPORTS)
        took = best(lambda p=protocol, a=keys, b=ys: _estimate(p, a, b))
        peer, peer_took = direct_counting(protocol, keys, ys)
        most = peak(lambda p=protocol, a=keys, b=ys: _estimate(p, a, b))
        yield Row(
            "server", f"one round, {family}: tally, decode, estimate",
            f"n = 10^6, k = {power(k)}, g = {g}",
            unit="ms", target=target, peer=peer, peer_figure=peer_took, peak=most,
            **took.each(MILLISECONDS),
        )  # fmt: skip


def direct_counting(protocol: Any, keys: Any, ys: Any) -> tuple[str, float]:
    """One hash a (user, value), as existing tools count: ms for all, from a part of the pairs."""
    values = [str(v).encode() for v in range(min(protocol.k, 1000))]
    users = 100_000 // len(values)
    try:
        from xxhash import xxh32_intdigest as hashed
    except ImportError:
        from zlib import crc32 as hashed
    counts = [0] * len(values)

    def count() -> None:
        for key, y in zip(keys[:users].tolist(), ys[:users].tolist(), strict=True):
            for v, name in enumerate(values):
                if hashed(name, key) % protocol.g == y:
                    counts[v] += 1

    a_pair = timed(count).processor / (users * len(values))
    peer = f"one hash a (user, value); from {users * len(values):,} pairs"
    return peer, 1e3 * a_pair * len(keys) * protocol.k


def _tallies() -> Iterator[Row]:
    n = 10 * REPORTS
    rng = np.random.default_rng(2)
    hashed = loloha.BiLOLOHA(k=1000, eps_inf=2.0, eps_1=1.0)
    keys, pairs = _reports(hashed, n)
    symbols = rng.integers(1000, size=n)
    grr = loloha.LGRR(k=1000, eps_inf=2.0, eps_1=1.0)
    for protocol, keyed, ys in ((hashed, keys, pairs), (grr, None, symbols)):
        tally = protocol.tally()
        took = best(lambda t=tally, a=keyed, b=ys: t.update(a, b))
        arrays = [array for array in (keyed, ys) if array is not None]
        read = best(lambda arrays=arrays: [array.sum() for array in arrays])
        yield Row(
            "tally", f"{protocol.name}: validate and count", "n = 10^7, k = 1000",
            unit="reports/s", target=3e8, peer="adding the arrays up, that is reading them",
            peer_figure=n / read.processor, **took.rate(n),
        )  # fmt: skip
    yield _bits(rng)
    yield _one_by_one(hashed, keys, pairs)


def _bits(rng: Any) -> Row:
    n, k = 100_000, 1000
    unary = loloha.RAPPOR(k=k, eps_inf=2.0, eps_1=1.0)
    packed = rng.integers(256, size=(n, k // 8), dtype=np.uint8)
    tally = unary.tally()
    took = best(lambda: tally.update(None, packed))
    part = packed[:10_000]
    unpacked = timed(lambda: np.unpackbits(part, axis=1).sum(axis=0)).processor
    return Row(
        "tally", "rappor: validate and count", "n = 10^5, k = 1000", unit="reports/s",
        peer="unpack the bits and add; from 10,000 reports", peer_figure=len(part) / unpacked,
        **took.rate(n),
    )  # fmt: skip


def _one_by_one(protocol: Any, keys: Any, ys: Any) -> Row:
    n = 20_000
    reports = [
        loloha.Report(key, y) for key, y in zip(keys[:n].tolist(), ys.tolist(), strict=False)
    ]
    tally = protocol.tally()

    def add() -> None:
        for report in reports:
            tally.add(report)

    took = best(add, repeats=3).rate(n)
    return Row("tally", "biloloha: one report at a time", "k = 1000", unit="reports/s", **took)


def _decoding() -> Iterator[Row]:
    rng = np.random.default_rng(3)
    for g, k, target in ((2, 1 << 20, 100.0), (3, 1 << 20, None), (5, 1 << 20, 500.0)):
        family = LinearHash(k, g)
        counts = rng.integers(100, size=family.size * g)
        took = best(lambda c=counts, f=family: linear_support(c, f), repeats=3)
        most = peak(lambda c=counts, f=family: linear_support(c, f))
        peer, direct = _gathering(counts, family)
        yield Row(
            "decode", "counts to support", f"k = {power(k)}, g = {g}", unit="ms", target=target,
            peer=peer, peer_figure=direct, peak=most, **took.each(MILLISECONDS),
        )  # fmt: skip


def _gathering(counts: Any, family: LinearHash) -> tuple[str, float]:
    """sum_s N[s, <s, v>] value by value: ms for all, from a few values."""
    seeds = np.arange(family.size)
    table = counts.reshape(family.size, family.g)
    few = [1, family.k // 2, family.k - 1]

    def gather() -> None:
        for v in few:
            table[seeds, family.hash_many(seeds, np.int64(v))].sum()

    a_value = timed(gather).processor / len(few)
    return f"one sum a value; from {len(few)} values", 1e3 * a_value * family.k


def power(k: int) -> str:
    """1048576 as 2^20."""
    return f"2^{k.bit_length() - 1}" if k & (k - 1) == 0 and k > 1000 else str(k)
