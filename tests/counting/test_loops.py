"""The loops that populations use, as plain Python, each against what it is said to do."""

import importlib
from typing import Any

import numpy as np
import pytest

from loloha.hashing import AffineHash, LinearHash, PrimeHash

RNG = np.random.default_rng(12)
FAMILIES: list[Any] = [
    LinearHash(30, 5), LinearHash(30, 3), AffineHash(50, 7), PrimeHash(50, 7), PrimeHash(13, 13),
]  # fmt: skip
USERS = np.repeat(np.array([0, 1, 3, 7], dtype=np.int32), [5, 1, 40, 3])
"""They ascend, and some have no cell."""
ALL = np.uint64((1 << 64) - 1)


@pytest.fixture
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of loops before it is compiled, so that one call costs no compilation."""
    pytest.importorskip("numba")
    module = importlib.import_module(f"loloha.counting.compiled.{request.param}")
    for name, loop in vars(module).copy().items():
        monkeypatch.setattr(module, name, getattr(loop, "py_func", loop))
    return module


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("loops", [name], indirect=True)


def bits(words: Any) -> list[int]:
    """Bits of uint64[...], the lowest of the first word first."""
    octets = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return list(np.unpackbits(octets, bitorder="little").tolist())


@of("cells")
def test_visits_are_numbered_in_the_order_of_the_first(loops: Any) -> None:
    values = RNG.integers(-1, 4, size=(12, 9)).astype(np.int32)
    values[5] = -1
    slots = np.full((9, 12), 77, dtype=np.int32)
    pairs = np.full((4, 50), 77, dtype=np.int32)
    count = loops.number_visits(values, 4, slots, *pairs)
    expected: dict[tuple[int, int], list[int]] = {}
    for u, t in np.argwhere(values >= 0).tolist():
        expected.setdefault((u, int(values[u, t])), []).append(t)
    assert count == len(expected)
    seen = [tuple(row) for row in pairs.T[:count].tolist()]
    assert seen == [(*pair, when[0], len(when)) for pair, when in expected.items()]
    numbers = [*expected]
    for u, row in enumerate(values.tolist()):
        assert slots[:, u].tolist() == [numbers.index((u, v)) if v >= 0 else -1 for v in row]


@of("cells")
def test_pairs_are_merged_in_the_order_of_the_first(loops: Any) -> None:
    symbols = RNG.integers(3, size=len(USERS)).astype(np.int32)
    merged, firsts = np.full((2, len(USERS)), 77, dtype=np.int32)
    pairs = list(zip(USERS.tolist(), symbols.tolist(), strict=True))
    distinct = list(dict.fromkeys(pairs))
    assert loops.merge(USERS, symbols, 3, merged, firsts) == len(distinct)
    assert merged.tolist() == [distinct.index(pair) for pair in pairs]
    assert firsts[: len(distinct)].tolist() == [pairs.index(pair) for pair in distinct]


@of("cells")
def test_who_sends_nothing_keeps_nothing(loops: Any) -> None:
    answers, slots = np.array([5, 6, 7], dtype=np.int32), np.array([[0, -1, 2], [-1, 1, 0]])
    kept = np.full((2, 3), 77, dtype=np.int32)
    loops.spread(answers, slots, kept)
    assert kept.tolist() == [[5, -1, 7], [-1, 6, 5]]


@of("cells")
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_each_user_hashes_by_their_own_key(loops: Any, family: Any) -> None:
    keys = family.draw_many(8, RNG)
    values = RNG.integers(family.k, size=len(USERS)).astype(np.int32)
    symbols = np.full(len(USERS), 77, dtype=np.int32)
    if isinstance(family, LinearHash):
        low = family.g ** ((family.m + 1) // 2)
        cut = np.divmod(np.arange(family.k, dtype=np.int32), np.int32(low))
        loops.hash_linear(keys, USERS, values, family.g, low, *cut, symbols)
    else:
        loops.hash_modular(*family.split(keys), USERS, values, family.modulus, family.g, symbols)
    of_pairs = zip(USERS, values, strict=True)
    assert symbols.tolist() == [family.hash(int(keys[u]), int(v)) for u, v in of_pairs]


@of("cells")
@pytest.mark.parametrize("modulus", [3, 7, (1 << 31) - 1])
def test_residues_at_the_ends_of_their_range(loops: Any, modulus: int) -> None:
    ends = np.array([0, 1, modulus - 2, modulus - 1])
    a, b, v = (grid.reshape(-1) for grid in np.meshgrid(ends, ends, ends))
    symbols = np.empty(len(v), dtype=np.int32)
    loops.hash_modular(a, b, np.arange(len(v)), v, modulus, 3, symbols)
    assert symbols.tolist() == ((a * v + b) % modulus % 3).tolist()


@of("rows")
@pytest.mark.parametrize("family", FAMILIES[2:], ids=repr)
def test_a_row_has_the_values_of_its_symbol(loops: Any, family: Any) -> None:
    wide = type(family)(130, family.g)
    keys = wide.draw_many(8, RNG)
    cells = [(u, y) for u in (0, 2, 7) for y in range(wide.g) if (u + y) % 3]
    users, symbols = np.array(cells, dtype=np.int32).T
    rows = np.zeros((len(cells), 3), dtype=np.uint64)
    loops.modular_preimages(rows, *wide.split(keys), users, symbols, wide.k, wide.modulus, wide.g)
    for row, (u, y) in zip(rows, cells, strict=True):
        expected = [int(wide.hash(int(keys[u]), v) == y) for v in range(130)]
        assert bits(row) == expected + [0] * (192 - 130)


@of("rows")
def test_bits_are_scattered_to_the_buckets_of_their_user(loops: Any) -> None:
    told = RNG.integers(2, size=(5, 70))
    words = np.zeros((5, 2), dtype=np.uint64)
    for cell, position in np.argwhere(told).tolist():
        words[cell, position >> 6] |= np.uint64(1 << (position & 63))
    buckets = np.argsort(RNG.random((4, 90)), axis=1)[:, :70].astype(np.int32)
    cell_of = np.array([4, 0, 3, 1, 2, 4], dtype=np.int32)
    slots = np.array([[0, -1, 2, 3], [5, 1, -1, 4], [-1, -1, -1, 0]])
    sums = np.full((3, 90), 10, dtype=np.uint64)
    loops.add_scattered(sums, buckets, words, cell_of, slots)
    expected = np.full((3, 90), 10)
    for t, u in np.argwhere(slots >= 0).tolist():
        expected[t, buckets[u]] += told[cell_of[slots[t, u]]]
    assert sums.tolist() == expected.tolist()


@of("rows")
def test_the_bit_of_the_value_is_set_to_the_next_one(loops: Any) -> None:
    symbols = np.array([0, 63, 64, 99, 130, 99, 129, *range(70)], dtype=np.int32)
    inside = [i for i, symbol in enumerate(symbols) if symbol < 99]
    drawn = RNG.integers(2, size=len(inside))
    packed = np.zeros(16, dtype=np.uint8)
    packed[: (len(drawn) + 7) // 8] = np.packbits(drawn.astype(np.uint8), bitorder="little")
    rows = RNG.integers(1 << 64, size=(len(symbols), 2), dtype=np.uint64)
    expected = [bits(row) for row in rows]
    loops.place(rows, symbols, 99, packed.view("<u8").astype(np.uint64))
    for i, bit in zip(inside, drawn.tolist(), strict=True):
        expected[i][symbols[i]] = bit
    assert [bits(row) for row in rows] == expected


def words_of(state: Any, count: int) -> Any:
    """The next words of each lane, uint64[count, lanes], by the generator that NumPy ships."""
    drawn = []
    for lane in state.T.copy():
        peer = np.random.SFC64()
        inner = {"state": lane}
        peer.state = {"bit_generator": "SFC64", "state": inner, "has_uint32": 0, "uinteger": 0}
        drawn.append(peer.random_raw(count))
    return np.array(drawn).T


@of("draw")
def test_lanes_are_compared_digit_by_digit(loops: Any) -> None:
    """Two words in the second turn, of three lanes."""
    state = RNG.integers(1 << 64, size=(4, 3), dtype=np.uint64)
    digits = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1, 1])
    words = words_of(state, 21)
    below, equal = np.full((2, 5), 77, dtype=np.uint64)
    with np.errstate(over="ignore"):
        loops.compare(state, np.where(digits, ALL, np.uint64(0)), below, equal)
    threshold = digits.tolist()
    for i in range(5):
        first, lane = 10 * (i // 3), i % 3
        numbers = np.array([bits(word) for word in words[first : first + 10, lane]]).T.tolist()
        assert bits(below[i : i + 1]) == [number < threshold for number in numbers]
        assert bits(equal[i : i + 1]) == [number == threshold for number in numbers]
    # The last lane was asked once.
    assert words_of(state, 1)[0].tolist() == [words[20, 0], words[20, 1], words[10, 2]]


@of("draw")
def test_halves_of_words_are_scaled_or_refused(loops: Any) -> None:
    state = RNG.integers(1 << 64, size=(4, 3), dtype=np.uint64)
    words = words_of(state, 3)
    n, limit = 7 << 20, 1 << 31
    numbers = np.full(10, 77, dtype=np.int32)
    with np.errstate(over="ignore"):
        loops.scale(state, np.uint64(n), np.uint64(limit), numbers)
    halves = [
        half
        for word in [*words[0], *words[1, :2]]
        for half in (int(word) & 2**32 - 1, int(word) >> 32)
    ]
    scaled = [half * n for half in halves]
    assert numbers.tolist() == [x >> 32 if x % 2**32 >= limit else -1 for x in scaled]
    assert -1 in numbers
    assert words_of(state, 1)[0].tolist() == [words[2, 0], words[2, 1], words[1, 2]]


@of("draw")
def test_a_number_at_the_limit_is_valid(loops: Any) -> None:
    state = np.array([[3], [0], [0], [0]], dtype=np.uint64)
    numbers = np.empty(2, dtype=np.int32)
    loops.scale(state.copy(), np.uint64(5), np.uint64(15), numbers)
    assert numbers.tolist() == [0, -1]


@of("draw")
def test_undecided_bits_are_settled_in_order(loops: Any) -> None:
    undecided = np.array([0b1011, 0, 1 << 63 | 1], dtype=np.uint64)
    words = np.array([0b0100, 0b1, 0b10], dtype=np.uint64)
    tails = np.array([4, 5, 6, 0, 9], dtype=np.uint64)
    loops.settle(words, undecided, tails, np.uint64(5))
    assert words.tolist() == [0b0101, 0b1, 0b11]


@of("draw")
def test_liars_tell_the_next_of_the_other_symbols(loops: Any) -> None:
    truths = RNG.integers(-1, 3, size=150).astype(np.int32)
    honest = RNG.integers(2, size=192)
    kept = np.packbits(honest.astype(np.uint8), bitorder="little").view("<u8").astype(np.uint64)
    others = RNG.integers(2, size=151).astype(np.int32)
    answers = np.full(150, 77, dtype=np.int32)
    loops.lie(truths, kept, others, answers)
    following = iter(others.tolist())
    for x, is_honest, answer in zip(
        truths.tolist(), honest.tolist(), answers.tolist(), strict=False
    ):
        other = x if is_honest else [y for y in range(3) if y != x][next(following)]
        assert answer == (other if x >= 0 else -1)
