"""The draws of a population, one by one out of a source that enumerates all outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.hashing import HashFamily
from loloha.population.samplers.draws import Draws
from loloha.rng import Rng


class RunByClients(Exception):
    """The population is run client by client, each with randomness of its own."""


class EnumeratedDraws(Draws):
    """What the samplers draw, drawn one by one from a source that enumerates all outcomes."""

    def __init__(self, rng: Rng) -> None:
        self.source = rng

    def bits(self, threshold: int, count: int) -> Any:
        drawn = [self.source.bernoulli(threshold) for _ in range(count)]
        padded = np.zeros(-(-count // 64) * 64, dtype=np.uint8)
        padded[:count] = drawn
        return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)

    def rows(self, threshold: int, count: int, width: int) -> Any:
        rows = [self.bits(threshold, width) for _ in range(count)]
        return np.array(rows, dtype=np.uint64).reshape(count, -(-width // 64))

    def below(self, n: int, count: int) -> Any:
        return np.array([self.source.below(n) for _ in range(count)], dtype=np.int32)

    def binomial(self, n: Any, threshold: int) -> Any:
        successes = [
            sum(self.source.bernoulli(threshold) for _ in range(trials))
            for trials in np.ravel(n).tolist()
        ]
        return np.array(successes, dtype=np.int64).reshape(np.shape(n))

    def keys(self, family: HashFamily, n: int) -> Any:
        return np.array([family.draw(self.source) for _ in range(n)], dtype=np.int64)

    def seed(self) -> int:
        raise RunByClients
