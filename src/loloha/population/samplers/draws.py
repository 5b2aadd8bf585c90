"""Random draws of a simulated population: arrays of exact Bernoulli bits, integers, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Array, Bools, Ints, Words
from loloha.channels import SymbolChannel, TableChannel
from loloha.counting.compiled import compiled
from loloha.datasets.dataset import Seed, entropy
from loloha.hashing import HashFamily
from loloha.rng import SCALE

# Generators side by side: enough to fill vector registers, few enough to stay in the first cache.
LANES = 2048
# Binary digits of a random number that are compared for 64 of them at once.
LEVELS = 10
_REST_BITS = SCALE.bit_length() - 1 - LEVELS
_ALL, _HALF = np.uint64((1 << 64) - 1), np.uint64((1 << 32) - 1)


class Draws:
    """Random arrays for a simulation. The samplers draw through these methods only."""

    def __init__(self, rng: Seed) -> None:
        source = entropy(rng)
        if isinstance(source, np.random.SeedSequence):
            source = np.random.Generator(np.random.SFC64(source))
        self._rng = source
        state = self._rng.integers(1 << 64, size=(4, LANES), dtype=np.uint64)
        # SFC64 starts its counter at 1 and runs 12 times before its first number.
        state[3] = 1
        for _ in range(12):
            _next_words(state)
        self._state = state

    def bits(self, threshold: int, count: int) -> Any:
        """``count`` bits, each 1 with chance threshold / 2^53; 64 to a word, first bit lowest."""
        # Padding bits of the last word are arbitrary.
        size = (count + 63) // 64
        if threshold in (0, SCALE):
            return np.full(size, _ALL if threshold else 0, dtype=np.uint64)
        # Lanes whose number differs from the threshold early are decided; of the few others the
        # remaining digits are drawn one by one.
        words, undecided = self._compare(threshold, size)
        rest = threshold & ((1 << _REST_BITS) - 1)
        if rest:
            left = int(np.bitwise_count(undecided).sum())
            tails = self._rng.integers(1 << _REST_BITS, size=left, dtype=np.uint64)
            _settle(words, undecided, tails, np.uint64(rest))
        return words

    def _compare(self, threshold: int, size: int) -> tuple[Any, Any]:
        """For each lane: is it below the threshold already, is it undecided still."""
        digits = [threshold >> (_REST_BITS + LEVELS - 1 - level) & 1 for level in range(LEVELS)]
        levels = np.array([_ALL if digit else 0 for digit in digits], dtype=np.uint64)
        below, equal = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint64)
        loops = compiled("draw", 64 * size)
        if loops:
            loops.compare(self._state, levels, below, equal)
            return below, equal
        for start in range(0, size, LANES):
            stop = min(start + LANES, size)
            less, same = np.zeros(stop - start, dtype=np.uint64), np.full(stop - start, _ALL)
            for digit in levels:
                word = _next_words(self._state[:, : stop - start])
                less |= same & digit & ~word
                same &= ~(word ^ digit)
            below[start:stop], equal[start:stop] = less, same
        return below, equal

    def rows(self, threshold: int, count: int, width: int) -> Any:
        """``count`` rows of ``width`` such bits, uint64[count, ceil(width / 64)], padded with 0."""
        words = (width + 63) // 64
        packed = self.bits(threshold, 64 * count * words).reshape(count, words)
        if width % 64:
            packed[:, -1] &= np.uint64((1 << (width % 64)) - 1)
        return packed

    def below(self, n: int, count: int) -> Any:
        """``count`` integers uniform on 0..n-1, int32[count]; n <= 2^31."""
        if n == 1:
            return np.zeros(count, dtype=np.int32)
        numbers = self._scaled(n, count)
        refused = np.flatnonzero(numbers < 0)
        numbers[refused] = self._rng.integers(n, size=len(refused), dtype=np.int32)
        return numbers

    def _scaled(self, n: int, count: int) -> Any:
        """Halves of random words times n / 2^32, or -1 where that would favour a number."""
        # The first 2^32 mod n fractions of each number are one too many (D. Lemire 2019).
        size, half, limit = (count + 1) // 2, np.uint64(32), np.uint64((1 << 32) % n)
        numbers = np.empty(2 * size, dtype=np.int32)
        loops = compiled("draw", count)
        if loops:
            loops.scale(self._state, np.uint64(n), limit, numbers)
            return numbers[:count]
        for start in range(0, size, LANES):
            word = _next_words(self._state[:, : min(LANES, size - start)])
            for offset, part in enumerate((word & _HALF, word >> half)):
                product = part * np.uint64(n)
                number = (product >> half).astype(np.int32)
                number[product & _HALF < limit] = -1
                numbers[2 * start + offset : 2 * (start + len(word)) : 2] = number
        return numbers[:count]

    def symbols(self, channel: SymbolChannel, truths: Array) -> Any:
        """One answer to each of ``truths``, an integer array of symbols; -1 stays -1."""
        flat = truths.reshape(-1)
        truthful = self.bits(channel.keep, len(flat))
        lies = len(flat) - _count(truthful, len(flat))
        others = self.below(channel.g - 1, lies)
        answers = np.empty_like(flat)
        _lie(flat, truthful, others, answers)
        return answers.reshape(truths.shape)

    def tables(self, channel: TableChannel, count: int) -> Any:
        """``count`` tables from the symbols to their answers, int32[count, g]."""
        g = channel.g
        tables = np.tile(np.arange(g, dtype=np.int32), (count, 1))
        others = np.flatnonzero(~unpack(self.bits(channel.identity, count), count))
        constant = unpack(self.bits(channel.constant, len(others)), len(others))
        alike, permuted = others[constant], others[~constant]
        tables[alike] = self.below(g, len(alike))[:, None]
        every = np.arange(len(permuted))
        mixed = tables[permuted]
        for i in range(g - 1, 0, -1):
            places = self.below(i + 1, len(permuted))
            moved = mixed[every, places]
            mixed[every, places] = mixed[:, i]
            mixed[:, i] = moved
        tables[permuted] = mixed
        return tables

    def binomial(self, n: Ints, threshold: int) -> Ints:
        """Numbers of successes of ``n`` int64[...] trials, each with chance threshold / 2^53."""
        successes: Ints = self._rng.binomial(n, threshold / SCALE)
        return successes

    def keys(self, family: HashFamily, n: int) -> Ints:
        """Keys of ``n`` users, int64[n]."""
        return family.draw_many(n, self._rng)

    def subsets(self, b: int, d: int, n: int) -> Bools:
        """Of ``n`` users, which of b buckets are among the user's d, bool[n, b]."""
        sampled = np.zeros((n, b), dtype=bool)
        users = np.arange(n)
        # Floyd's subset sampling, for all users at once.
        for newest in range(b - d, b):
            candidate = self.below(newest + 1, n)
            sampled[users, np.where(sampled[users, candidate], newest, candidate)] = True
        return sampled

    def seed(self) -> int:
        """A seed for one simulated device, 128 bits."""
        high, low = (int(part) for part in self._rng.integers(1 << 64, size=2, dtype=np.uint64))
        return high << 64 | low


def unpack(words: Words, count: int) -> Bools:
    """The first ``count`` bits of packed words, bool[count]."""
    packed = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def _next_words(state: Words) -> Any:
    """One random word of each lane, uint64[lanes]; SFC64."""
    a, b, c, counter = state
    word = a + b + counter
    state[0] = b ^ (b >> np.uint64(11))
    state[1] = c + (c << np.uint64(3))
    state[2] = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
    state[3] += np.uint64(1)
    return word


def _settle(words: Words, undecided: Words, tails: Words, rest: Any) -> None:
    """Set those undecided bits, in order, whose tail is below the rest of the threshold."""
    loops = compiled("draw", 64 * len(words))
    if loops:
        loops.settle(words, undecided, tails, rest)
        return
    settled = unpack(undecided, 64 * len(words))
    settled[settled] = tails < rest
    packed = np.packbits(settled, bitorder="little").view("<u8")
    words |= packed.astype(np.uint64, copy=False)


def _count(words: Words, count: int) -> int:
    """Number of ones among the first ``count`` bits."""
    ones = int(np.bitwise_count(words).sum())
    if count % 64:
        ones -= (int(words[-1]) >> (count % 64)).bit_count()
    return ones


def _lie(truths: Array, truthful: Words, others: Array, answers: Array) -> None:
    """Where the bit in ``truthful`` is 0, send the next of the other symbols; -1 stays -1."""
    loops = compiled("draw", len(truths))
    if loops:
        loops.lie(truths, truthful, np.append(others, np.int32(0)), answers)
        return
    lies = ~unpack(truthful, len(truths))
    answers[:] = truths
    answers[lies] = others + (others >= truths[lies])
    answers[truths < 0] = -1
