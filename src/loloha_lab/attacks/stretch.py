"""Sufficient statistics of what each user sent in a stretch of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.arrays import Array
from loloha.datasets.dataset import Seed
from loloha.encodings import (
    Hashed,
    HiddenThreshold,
    OneHot,
    Part,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import Protocol

MEMOISED, FRESH = (
    Part(
        f"loloha_lab.attacks.stretch:{kind}", "what its reports show", "attack its clients by hand"
    )
    for kind in ("memoised", "one_round")
)


@dataclass(frozen=True, eq=False)
class Stretch:
    """What n users sent in some rounds."""

    keys: Any
    counts: Any
    reports: int

    def of(self, users: Array) -> Stretch:
        """What these of the users sent."""
        keys = None if self.keys is None else self.keys[users]
        return Stretch(keys, self.counts[users], self.reports)


def observe(protocol: Protocol, values: Array, lengths: list[int], rng: Seed) -> list[Stretch]:
    """Run a population, int[n, tau] without gaps, and sum up consecutive stretches of rounds."""
    part = MEMOISED if protocol.longitudinal else FRESH
    read = part.required(protocol.encoding)
    sent = sample_reports(protocol, History(values, protocol.k), Draws(rng))
    stretches = []
    for length in lengths:
        keys, counts = None, None
        for _ in range(length):
            report = next(sent)
            keys = report.keys
            seen = read(protocol, report.keys, report.ys)
            counts = seen if counts is None else counts + seen
        stretches.append(Stretch(keys if protocol.longitudinal else None, counts, length))
    return stretches


@for_encoding(MEMOISED.name, Symbols, Hashed, Threshold, HiddenThreshold)
@for_encoding(FRESH.name, Symbols)
def _sent_symbols(protocol: Protocol, keys: Array | None, ys: Array) -> Any:
    encoding: Any = protocol.encoding
    return (np.asarray(ys)[:, None] == np.arange(encoding.symbols)).astype(np.int16)


@for_encoding(MEMOISED.name, OneHot, SampledBuckets)
@for_encoding(FRESH.name, OneHot)
def _sent_bits(protocol: Protocol, keys: Array | None, ys: Array) -> Any:
    encoding: Any = protocol.encoding
    bits = np.unpackbits(np.asarray(ys), axis=1, count=encoding.size, bitorder="little")
    return bits.astype(np.int16)


@for_encoding(FRESH.name, Hashed)
def _supported(protocol: Protocol, keys: Array | None, ys: Array) -> Any:
    """Local hashing with a fresh key: which values the report supports."""
    family: Any = protocol.encoding.family  # type: ignore[attr-defined]
    cells = family.hash_many(np.asarray(keys)[:, None], np.arange(protocol.k)[None])
    return (cells == np.asarray(ys)[:, None]).astype(np.int16)


def moving_values(k: int, n: int, stay: int, move: int, rng: np.random.Generator) -> Any:
    """Uniform values of n users, and n others of whom each moves to another one: int[2n, rounds].

    The first n hold one value for all rounds; the others change after ``stay`` rounds.
    """
    start = rng.integers(0, k, size=2 * n)
    end = start.copy()
    end[n:] = (start[n:] + rng.integers(1, k, size=n)) % k
    return np.concatenate([np.repeat(start[:, None], stay, 1), np.repeat(end[:, None], move, 1)], 1)
