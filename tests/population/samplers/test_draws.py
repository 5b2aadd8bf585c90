"""Random arrays: exact to the last of 2^53, and the same with numba and without."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from loloha.channels import SymbolChannel
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.population.samplers import draws
from loloha.population.samplers.draws import LANES, LEVELS, Draws, unpack
from loloha.rng import SCALE, Rng
from population import WAYS, EnumeratedDraws, numpy_only

REST_BITS = 53 - LEVELS
LARGEST_Z = 6.0
"""alpha = 2e-9 a comparison."""


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    WAYS[request.param](monkeypatch)
    return str(request.param)


class Scripted(Draws):
    """Compares given numbers with the threshold instead of random ones."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self._state: Any = None
        self._rng: Any = self

    def words(self) -> list[Any]:
        """Binary digits of the numbers, highest first, 64 numbers to a word."""
        digits = np.zeros((LEVELS, -(-len(self.numbers) // 64) * 64), dtype=np.uint8)
        for level in range(LEVELS):
            taken = [number >> (52 - level) & 1 for number in self.numbers]
            digits[level, : len(taken)] = taken
        return [np.packbits(row, bitorder="little").view("<u8").astype(np.uint64) for row in digits]

    def tails(self, threshold: int) -> Any:
        """The remaining digits of those numbers that the first ones leave undecided."""
        top = threshold >> REST_BITS
        padded = self.numbers + [0] * (-len(self.numbers) % 64)
        low = (1 << REST_BITS) - 1
        return np.array([u & low for u in padded if u >> REST_BITS == top], dtype=np.uint64)


def numbers_near(threshold: int) -> list[int]:
    """Numbers of every beginning, and all around the threshold."""
    low = (1 << REST_BITS) - 1
    numbers = [top << REST_BITS | tail for top in range(1 << LEVELS) for tail in (0, 1, low)]
    numbers += [threshold + step for step in range(-70, 71)]
    return [number for number in numbers if 0 <= number < SCALE]


@pytest.mark.parametrize(
    "threshold",
    [1, 2, SCALE - 1, SCALE // 2, SCALE // 2 + 1, SCALE // 3, 5 << REST_BITS, (5 << REST_BITS) + 1,
     (7 << REST_BITS) - 1, 123_456_789, SCALE - 123_456_789],
)  # fmt: skip
def test_a_bit_is_set_if_its_number_is_below_the_threshold(
    threshold: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 2^8 beginnings, undecided ones with the tails that matter."""
    numbers = numbers_near(threshold)
    scripted = Scripted(numbers)
    words, tails = iter(scripted.words()), scripted.tails(threshold)
    scripted._state = np.zeros((4, LANES), dtype=np.uint64)

    def integers(bound: int, size: int, dtype: Any) -> Any:
        assert (bound, size, dtype) == (1 << REST_BITS, len(tails), np.uint64)
        return tails

    monkeypatch.setattr(scripted, "integers", integers, raising=False)
    monkeypatch.setattr(draws, "_next_words", lambda state: next(words))
    with monkeypatch.context() as patch:
        # The words can be given to the NumPy way only; what is undecided is settled either way.
        numpy_only(patch)
        below, undecided = scripted._compare(threshold, -(-len(numbers) // 64))
    monkeypatch.setattr(scripted, "_compare", lambda threshold, size: (below, undecided))
    found = unpack(scripted.bits(threshold, len(numbers)), len(numbers))
    assert found.tolist() == [number < threshold for number in numbers]


def test_certain_bits_are_certain(way: str) -> None:
    source = Draws(1)
    assert not unpack(source.bits(0, 1000), 1000).any()
    assert unpack(source.bits(SCALE, 1000), 1000).all()


@pytest.mark.parametrize("threshold", [SCALE // 3, SCALE // 2, SCALE - 12345, 1 << 48, 7])
def test_numba_changes_nothing(threshold: int) -> None:
    """Bit for bit, over more words than there are lanes, and with the same draws left over."""
    seen = []
    for name in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            WAYS[name](patch)
            source = Draws(7)
            truths = np.arange(-1, 4999, dtype=np.int16) % 6
            truths[::7] = -1
            seen.append(
                [
                    source.bits(threshold, 64 * LANES * 2 + 130),
                    source.rows(threshold, 300, 130),
                    source.below(7, 3 * LANES + 1),
                    source.below((1 << 31) - 1, 999),
                    source.symbols(SymbolChannel(6, threshold), truths),
                    source.bits(threshold, 70),
                    source._state,
                ]
            )
    for one, other in zip(*seen, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_lanes_are_the_generator_that_numpy_ships(way: str) -> None:
    source = Draws(3)
    states = source._state.copy()
    peer = np.random.SFC64()
    lane = 5
    peer.state = {
        "bit_generator": "SFC64", "state": {"state": states[:, lane]},
        "has_uint32": 0, "uinteger": 0,
    }  # fmt: skip
    n = (1 << 32) - 5
    numbers = np.concatenate([source._scaled(n >> 1, 2 * LANES) for _ in range(20)])
    words = peer.random_raw(20)
    low, high = words & 0xFFFFFFFF, words >> np.uint64(32)
    expected = np.stack([low, high], axis=1).astype(object) * (n >> 1) >> 32
    found = numbers.reshape(20, LANES, 2)[:, lane]
    refused = found < 0
    assert (found[~refused] == expected[~refused]).all()


@pytest.mark.parametrize("n", [2, 3, 7, 1411, 1 << 20, (1 << 31) - 1])
def test_every_integer_has_the_same_number_of_words(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the 2^32 words those before, at and behind each border are tried."""
    numpy_only(monkeypatch)
    spare = (1 << 32) % n
    ys = sorted({*range(min(n, 50)), *range(max(0, n - 50), n)})
    # y's words w have y 2^32 <= w n < (y + 1) 2^32; the first few fractions are refused.
    firsts = [-(-((y << 32) + spare) // n) for y in ys]
    lasts = [(((y + 1) << 32) - 1) // n for y in ys]
    assert {last - first + 1 for first, last in zip(firsts, lasts, strict=True)} == {(1 << 32) // n}
    words = np.array([*firsts, *lasts], dtype=np.uint64)
    refused = np.array([first - 1 for y, first in zip(ys, firsts, strict=True)
                        if first and (first - 1) * n >> 32 == y], dtype=np.uint64)  # fmt: skip
    given = np.concatenate([words, refused])
    source = Draws(1)
    monkeypatch.setattr(draws, "_next_words", lambda state: given | given << np.uint64(32))
    found = source._scaled(n, 2 * len(given)).reshape(-1, 2)
    expected = ys + ys + [-1] * len(refused)
    assert found[:, 0].tolist() == found[:, 1].tolist() == expected


def test_refused_words_are_drawn_again(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Draws(1)
    monkeypatch.setattr(source, "_scaled", lambda n, count: np.array([4, -1, 0, -1], np.int32))
    found = source.below(5, 4)
    assert found[[0, 2]].tolist() == [4, 0]
    assert ((found >= 0) & (found < 5)).all()


def test_bits_are_as_frequent_and_as_unrelated_as_they_should_be(way: str) -> None:
    """Sees a probability that is off by 6 / (2 sqrt(10^7)), 0.1 %, or neighbours that agree."""
    n = 10_000_000
    for threshold in (SCALE // 2, SCALE // 10, SCALE - (SCALE // 3)):
        p = threshold / SCALE
        bits = unpack(Draws(20).bits(threshold, n), n)
        z = (bits.sum() - n * p) / np.sqrt(n * p * (1 - p))
        assert abs(z) < LARGEST_Z, f"seed 20, n = {n}, p = {p}: {bits.sum()} ones, z = {z:.2f}"
        for step in (1, 2, 63, 64, 65, 64 * LANES, 64 * LANES + 1):
            both = (bits[step:] & bits[:-step]).sum()
            pairs = n - step
            # Overlapping pairs: neighbours share a bit, which adds 2 p^3 (1 - p) a pair.
            spread = np.sqrt(pairs * (p**2 * (1 - p**2) + 2 * p**3 * (1 - p)))
            z = (both - pairs * p**2) / spread
            assert abs(z) < LARGEST_Z, f"seed 20, p = {p}, step {step}: {both} pairs, z = {z:.2f}"


@pytest.mark.parametrize("n", [3, 96, 1411])
def test_integers_are_uniform(n: int, way: str) -> None:
    """Sees one integer that is off by 6 sqrt(n / 10^6)."""
    count = 1_000_000
    seen = np.bincount(Draws(21).below(n, count), minlength=n)
    z = (seen - count / n) / np.sqrt(count / n * (1 - 1 / n))
    assert np.abs(z).max() < LARGEST_Z, f"seed 21, n = {n}: z = {z}"


def test_rows_are_padded_with_zeros(way: str) -> None:
    rows = Draws(2).rows(SCALE - 1, 50, 70)
    assert rows.shape == (50, 2)
    assert not (rows[:, 1] >> np.uint64(6)).any()
    assert np.bitwise_count(rows).sum() > 50 * 70 * 0.99
    assert Draws(2).rows(SCALE // 2, 0, 70).shape == (0, 2)
    assert np.bitwise_count(Draws(2).rows(SCALE, 3, 64)).tolist() == [[64]] * 3


@pytest.mark.parametrize("g", [2, 3, 4])
def test_symbols_have_the_distribution_of_the_channel(g: int, way: str) -> None:
    channel = SymbolChannel(g, SCALE // 7)
    for x in range(g):
        alone = exact_distribution(lambda rng, x=x: channel.draw(rng, x))
        told = exact_distribution(
            lambda rng, x=x: tuple(
                EnumeratedDraws(rng).symbols(channel, np.array([x, -1, 0], np.int16))[:2].tolist()
            )
        )
        assert told == {(y, -1): p for y, p in alone.items()}


@pytest.mark.parametrize(("b", "d"), [(2, 1), (3, 2), (4, 2), (5, 4)])
def test_every_subset_is_as_likely_as_another(b: int, d: int) -> None:
    def run(rng: Rng) -> Any:
        (sampled,) = EnumeratedDraws(rng).subsets(b, d, 1)
        return tuple(np.flatnonzero(sampled).tolist())

    subsets = list(combinations(range(b), d))
    assert exact_distribution(run) == dict.fromkeys(subsets, Fraction(1, len(subsets)))


def test_users_sample_independently() -> None:
    def run(rng: Rng) -> Any:
        return tuple(np.flatnonzero(EnumeratedDraws(rng).subsets(3, 1, 2)).tolist())

    assert exact_distribution(run) == {
        (i, 3 + j): Fraction(1, 9) for i in range(3) for j in range(3)
    }  # fmt: skip


def test_the_source_is_named() -> None:
    for rng in (None, True, -1, 1.5, "7", np.random.RandomState(1)):
        with pytest.raises(
            ParameterError, match="rng must be an integer seed >= 0, a numpy SeedSequence"
        ):
            Draws(rng)  # type: ignore[arg-type]


def test_equal_seeds_draw_alike() -> None:
    seeds = [7, np.int64(7), np.random.SeedSequence(7)]
    first, *others = [Draws(seed).bits(SCALE // 3, 1000) for seed in seeds]
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert (first != Draws(8).bits(SCALE // 3, 1000)).any()
    # A generator goes on from where it is.
    shared = np.random.default_rng(7)
    assert (Draws(shared).bits(SCALE // 3, 640) != Draws(shared).bits(SCALE // 3, 640)).any()


def test_successes_have_the_exact_probability() -> None:
    """n p and n p (1 - p), from small numbers of trials to large ones; sees 1 % of either."""
    source = Draws(4)
    for trials in (1, 9, 1000, 100_000):
        runs = 200_000
        seen = source.binomial(np.full(runs, trials), SCALE // 5)
        p = (SCALE // 5) / SCALE
        variance = trials * p * (1 - p)
        z = (seen.mean() - trials * p) / np.sqrt(variance / runs)
        kurtosis = (1 - 6 * p * (1 - p)) / variance
        y = (seen.var() / variance - 1) / np.sqrt((2 + kurtosis) / runs)
        assert max(abs(z), abs(y)) < LARGEST_Z, f"seed 4, n = {trials}: z = {z:.2f}, {y:.2f}"
