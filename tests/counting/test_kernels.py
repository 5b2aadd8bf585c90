"""Counting reports: all of them or none, against a plain loop, the same with numba and without."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from loloha.counting import compiled, kernels
from loloha.counting.compiled import WORTH_LOADING
from loloha.hashing import AffineHash, HashFamily, LinearHash, PrimeHash, XXHash
from population import WAYS

RNG = np.random.default_rng(5)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    WAYS[request.param](monkeypatch)
    return str(request.param)


@pytest.mark.parametrize("n", [0, 1, 5, 3000])
@pytest.mark.parametrize("cells", [2, 97, 5000])
def test_symbols(n: int, cells: int, way: str) -> None:
    ys = RNG.integers(cells, size=n)
    counts = np.arange(cells)
    assert kernels.count_symbols(counts, ys) is True
    np.testing.assert_array_equal(counts, np.arange(cells) + np.bincount(ys, minlength=cells))


@pytest.mark.parametrize("n", [0, 1, 5, 3000])
@pytest.mark.parametrize(("size", "g"), [(2, 2), (125, 5), (2048, 2)])
def test_pairs(n: int, size: int, g: int, way: str) -> None:
    keys, ys = RNG.integers(1, size, size=n), RNG.integers(g, size=n)
    counts = np.ones(size * g, dtype=np.int64)
    assert kernels.count_pairs(counts, keys, ys, g, 1) is True
    expected = np.ones((size, g), dtype=np.int64)
    np.add.at(expected, (keys, ys), 1)
    np.testing.assert_array_equal(counts, expected.reshape(-1))


def test_the_least_key_may_be_0(way: str) -> None:
    keys, ys = RNG.integers(0, 5, size=40), RNG.integers(3, size=40)
    keys[7] = 0
    counts = np.zeros(15, dtype=np.int64)
    assert kernels.count_pairs(counts, keys, ys, 3, 1) is False
    assert kernels.count_pairs(counts, keys, ys, 3, 0) is True
    np.testing.assert_array_equal(counts, np.bincount(3 * keys + ys, minlength=15))


@pytest.mark.parametrize("where", [0, 17, 2999])
@pytest.mark.parametrize("wrong", [-1, 97, 1 << 40, -(1 << 62)])
def test_one_wrong_symbol_counts_nothing(where: int, wrong: int, way: str) -> None:
    ys = RNG.integers(97, size=3000)
    ys[where] = wrong
    counts = np.arange(97)
    assert kernels.count_symbols(counts, ys) is False
    np.testing.assert_array_equal(counts, np.arange(97))


@pytest.mark.parametrize("where", [0, 17, 2999])
@pytest.mark.parametrize(
    ("key", "y"), [(0, 0), (25, 0), (-1, 4), (1, 5), (3, -1), (1 << 61, 0), (-(1 << 61), 0)]
)
def test_one_wrong_pair_counts_nothing(where: int, key: int, y: int, way: str) -> None:
    keys, ys = RNG.integers(1, 25, size=3000), RNG.integers(5, size=3000)
    keys[where], ys[where] = key, y
    counts = np.arange(125)
    assert kernels.count_pairs(counts, keys, ys, 5, 1) is False
    np.testing.assert_array_equal(counts, np.arange(125))


@pytest.mark.parametrize("keyed", [True, False])
def test_many_rounds(keyed: bool, way: str) -> None:
    g, size, n, tau = 3, 9, 500, 4
    keys = RNG.integers(1, size, size=n) if keyed else None
    for kind in (np.int16, np.int32):
        ys = RNG.integers(-1, g, size=(tau, n)).astype(kind)
        counts = np.zeros((tau, size * g), dtype=np.int64)
        kernels.count_rounds(counts, keys, ys, g)
        expected = np.zeros_like(counts)
        for t in range(tau):
            for u in np.flatnonzero(ys[t] >= 0):
                expected[t, ys[t, u] if keys is None else keys[u] * g + ys[t, u]] += 1
        np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize(
    "family",
    [
        AffineHash(50, 7),
        AffineHash(3, 2),
        AffineHash(200, 1000),
        PrimeHash(50, 7),
        PrimeHash(13, 13),
        PrimeHash(2000, 5),
        XXHash(40, 3),
        LinearHash(30, 5),
    ],
    ids=repr,
)
def test_preimages(family: HashFamily, way: str) -> None:
    n = 60
    keys, ys = family.draw_many(n, RNG), RNG.integers(family.g, size=n)
    counts = np.ones(family.k, dtype=np.int64)
    kernels.count_preimages(counts, family, keys, ys)
    expected = [
        1 + sum(family.hash(int(key), v) == y for key, y in zip(keys, ys, strict=True))
        for v in range(family.k)
    ]
    assert counts.tolist() == expected


def test_the_largest_residues_are_hashed_right(way: str) -> None:
    """a, b and v at the ends of their ranges, g up to the largest."""
    top = (1 << 31) - 2
    for g in (2, 3, 1 << 10, (1 << 20) - 3, 1 << 20):
        family = AffineHash(300, g)
        for key in (top << 31 | top, 1 << 31 | top, top << 31, 1 << 31):
            for v in (0, 1, 299):
                counts = np.zeros(300, dtype=np.int64)
                y = np.array([family.hash(key, v)])
                kernels.count_preimages(counts, family, np.array([key]), y)
                expected = [family.hash(key, u) == y[0] for u in range(300)]
                assert counts.tolist() == expected


@pytest.mark.parametrize("bins", [1, 8, 63, 64, 65, 200])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 33, 700])
def test_bits(n: int, bins: int, way: str) -> None:
    bits = RNG.integers(2, size=(n, bins), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    counts = np.full(bins, 3, dtype=np.int64)
    kernels.count_bits(counts, packed)
    np.testing.assert_array_equal(counts, 3 + bits.sum(axis=0))


def test_bits_in_many_steps(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "AT_ONCE", 1000)
    bits = RNG.integers(2, size=(333, 70), dtype=np.uint8)
    counts = np.zeros(70, dtype=np.int64)
    kernels.count_bits(counts, np.packbits(bits, axis=1, bitorder="little"))
    np.testing.assert_array_equal(counts, bits.sum(axis=0))
    ones = np.zeros(90, dtype=np.int64)
    buckets = np.argsort(RNG.random((333, 90)), axis=1)[:, :70]
    kernels.count_buckets(ones, buckets, np.packbits(bits, axis=1, bitorder="little"))
    expected = np.zeros(90, dtype=np.int64)
    np.add.at(expected, buckets, bits.astype(np.int64))
    np.testing.assert_array_equal(ones, expected)


@pytest.mark.parametrize("count", [1, 16, 31, 32, 255, 256, 1000])
def test_rows_that_all_agree_carry_through_every_digit(count: int, way: str) -> None:
    rows = np.full((1, 2), (1 << 64) - 1, dtype=np.uint64)
    slots = np.zeros((2, count), dtype=np.int32)
    slots[1, ::2] = -1
    sums = np.zeros((2, 100), dtype=np.int64)
    kernels.add_rows(sums, rows, np.zeros(1, dtype=np.int32), slots)
    assert sums.tolist() == [[count] * 100, [count // 2] * 100]


def test_rows_are_chosen_by_slot_and_by_row(way: str) -> None:
    bits = RNG.integers(2, size=(5, 130), dtype=np.uint8)
    padded = np.zeros((5, 24), dtype=np.uint8)
    padded[:, :17] = np.packbits(bits, axis=1, bitorder="little")
    rows = padded.view("<u8").astype(np.uint64)
    row_of = np.array([4, -1, 0, 2, 2, 1, -1, 3], dtype=np.int32)
    slots = RNG.integers(-1, 8, size=(3, 50)).astype(np.int32)
    sums = np.ones((3, 130), dtype=np.int64)
    kernels.add_rows(sums, rows, row_of, slots)
    for t in range(3):
        chosen = [row_of[slot] for slot in slots[t] if slot >= 0 and row_of[slot] >= 0]
        np.testing.assert_array_equal(sums[t], 1 + bits[chosen].sum(axis=0))


def test_any_layout_of_the_arrays_will_do(way: str) -> None:
    pairs = RNG.integers(1, 5, size=(400, 2))
    pairs[:, 1] -= 1
    pairs.flags.writeable = False
    counts, plain = np.zeros((2, 25), dtype=np.int64)
    assert kernels.count_pairs(counts, pairs[::2, 0], pairs[::2, 1], 5, 1)
    assert kernels.count_pairs(plain, pairs[::2, 0].copy(), pairs[::2, 1].copy(), 5, 1)
    np.testing.assert_array_equal(counts, plain)


def test_a_compiler_is_loaded_only_for_work_that_pays() -> None:
    code = """
import sys
import numpy as np
import loloha.population
from loloha import kernels
kernels.count_symbols(np.zeros(5, dtype=np.int64), np.ones(100, dtype=np.int64))
assert "numba" not in sys.modules, "loaded for a hundred reports"
kernels.count_symbols(np.zeros(5, dtype=np.int64), np.ones(%d, dtype=np.int64))
print("numba" in sys.modules)
"""
    pytest.importorskip("numba")
    found = subprocess.run(
        [sys.executable, "-c", code % WORTH_LOADING], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "True"


def test_without_numba_numpy_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "has_numba", lambda: False)
    compiled._load.cache_clear()
    try:
        assert compiled.compiled("counting", WORTH_LOADING) is None
    finally:
        compiled._load.cache_clear()


def test_a_disk_that_cannot_be_written_to_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    from loloha.counting.compiled import jit

    real = numba.njit

    def no_place(*, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(numba, "njit", no_place)
    assert jit.njit(lambda x: x + 1)(41) == 42


def test_a_reciprocal_divides_exactly() -> None:
    pytest.importorskip("numba")
    from loloha.counting.compiled.jit import reciprocal

    for g in [*range(2, 300), 999_983, (1 << 20) - 1, 1 << 20]:
        shift, factor = reciprocal.py_func(g)
        multiples = np.unique(np.linspace(0, ((1 << 31) - 1) // g, 50).astype(np.int64)) * g
        for r in (multiples, multiples + g - 1, np.array([(1 << 31) - 1])):
            r = r[r < 1 << 31]
            assert (r * factor >= 0).all()
            np.testing.assert_array_equal(r * factor >> shift, r // g)
