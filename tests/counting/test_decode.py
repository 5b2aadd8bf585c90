"""The transform against direct counting, and against the transforms of scipy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from loloha.counting import decode
from loloha.counting.kernels import count_lines, count_pairs, count_rounds
from loloha.hashing import LinearHash, PrimeHash
from population import WAYS

RNG = np.random.default_rng(9)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    WAYS[request.param](monkeypatch)
    return str(request.param)


def table(family: LinearHash, largest: int) -> Any:
    counts = RNG.integers(largest, size=family.size * family.g, endpoint=True)
    counts[: family.g] = 0
    return counts


def direct(counts: Any, family: LinearHash) -> list[int]:
    """C(v) = sum_s N[s, <s, v>], one hash a seed and value."""
    seeds, values = np.arange(family.size)[:, None], np.arange(family.k)
    symbols = family.hash_many(seeds, values)
    rows = counts.reshape(family.size, family.g)
    return [int(rows[seeds[:, 0], symbols[:, v]].sum()) for v in values]


@pytest.mark.parametrize(
    ("g", "k"),
    [(2, 2), (2, 3), (2, 97), (2, 128), (2, 1 << 10), (3, 2), (3, 4), (3, 81), (3, 82), (5, 5),
     (5, 96), (5, 700), (7, 50), (7, 343), (11, 3), (11, 200), (13, 13), (13, 170), (17, 100),
     (67, 70), (67, 60), (71, 300), (101, 101)],
)  # fmt: skip
@pytest.mark.parametrize("largest", [1, 1000, 10**9])
def test_the_support_is_that_of_direct_counting(g: int, k: int, largest: int, way: str) -> None:
    family = LinearHash(k, g)
    counts = table(family, largest)
    before = counts.copy()
    assert decode.linear_support(counts, family).tolist() == direct(counts, family)
    np.testing.assert_array_equal(counts, before)


@pytest.mark.parametrize("g", [2, 3, 5, 13])
def test_one_report_supports_the_values_of_its_symbol(g: int, way: str) -> None:
    family = LinearHash(60, g)
    for seed in (1, family.size - 1, family.size // 2):
        for y in range(g):
            counts = np.zeros(family.size * g, dtype=np.int64)
            assert count_pairs(counts, np.array([seed]), np.array([y]), g, 1)
            expected = [int(family.hash(seed, v) == y) for v in range(60)]
            assert decode.linear_support(counts, family).tolist() == expected


def test_many_rounds_are_decoded_at_once(way: str) -> None:
    for g in (2, 5):
        family = LinearHash(40, g)
        counts = np.stack([table(family, 50) for _ in range(6)]).reshape(2, 3, -1)
        found = decode.linear_support(counts, family)
        assert found.shape == (2, 3, 40)
        for i in range(2):
            for t in range(3):
                assert found[i, t].tolist() == direct(counts[i, t], family)


def test_reference_counts(reference: Path, way: str) -> None:
    for case in json.loads((reference / "decode.json").read_text()):
        family = LinearHash(case["k"], case["g"])
        counts = np.zeros(family.size * family.g, dtype=np.int64)
        assert count_pairs(counts, np.array(case["keys"]), np.array(case["ys"]), family.g, 1)
        assert decode.linear_support(counts, family).tolist() == case["support"]


def transformed(values: Any, way: str) -> Any:
    if way == "numpy":
        return decode.walsh_hadamard(values)
    from loloha.counting.compiled import transform

    in_place = values.copy()
    transform.walsh_hadamard(in_place)
    return in_place


@pytest.mark.parametrize("m", [0, 1, 5, 6, 7, 10])
def test_hadamard_matrices_agree(m: int, way: str) -> None:
    values = RNG.integers(-1000, 1000, size=1 << m)
    expected = scipy.linalg.hadamard(1 << m) @ values
    np.testing.assert_array_equal(transformed(values, way), expected)


@pytest.mark.parametrize("m", [12, 13, 15])
def test_long_hadamard_transforms(m: int, way: str) -> None:
    """More than fits the cache at once."""
    values = RNG.integers(-1000, 1000, size=1 << m)
    found = transformed(values, way)
    seeds = np.arange(1 << m)
    for v in RNG.integers(1 << m, size=20):
        assert found[v] == (values * (1 - 2 * (np.bitwise_count(seeds & v) & 1).astype(int))).sum()


def test_large_counts_stay_exact_for_two_symbols(way: str) -> None:
    """More reports than a 32-bit or single-precision count could hold."""
    family = LinearHash(4, 2)
    counts = np.array([0, 0, 1 << 50, 3, (1 << 50) + 1, 7, 1, 1 << 49])
    assert decode.linear_support(counts, family).tolist() == direct(counts, family)


@pytest.mark.parametrize(("g", "m"), [(3, 6), (5, 3), (7, 2)])
def test_the_compiled_transform_is_the_discrete_one(g: int, m: int) -> None:
    pytest.importorskip("numba")
    from loloha.counting.compiled import transform

    values = RNG.normal(size=(2, g**m))
    re, im = values.copy()
    cos, sin = (call(2 * np.pi * np.outer(np.arange((g + 1) // 2), np.arange(g)) / g)
                for call in (np.cos, np.sin))  # fmt: skip
    for digit in range(m):
        transform.fourier_digit(re, im, g**digit, cos, sin)
    expected = np.fft.fftn((values[0] + 1j * values[1]).reshape((g,) * m)).reshape(-1)
    np.testing.assert_allclose(re + 1j * im, expected, rtol=0, atol=1e-10 * g**m)


@pytest.mark.parametrize(
    ("g", "k"), [(2, 2), (2, 97), (3, 2), (3, 82), (5, 5), (5, 96), (5, 700), (13, 170), (71, 300)]
)
def test_lines_say_what_seeds_say(g: int, k: int, way: str) -> None:
    """Reports counted by line, for n = 0, one round and some, absent users among them."""
    family = LinearHash(k, g)
    for n in (0, 1, 500):
        keys, ys = family.draw_many(n, RNG), RNG.integers(-1, g, size=(3, n)).astype(np.int16)
        lines, factors = family.lines(keys)
        counts = np.zeros((3, family.line_rows, g), dtype=np.int64)
        count_lines(counts, lines, factors, ys)
        tables = np.zeros((3, family.size * g), dtype=np.int64)
        count_rounds(tables, keys, ys, g)
        found = decode.line_support(counts, family)
        np.testing.assert_array_equal(found, decode.linear_support(tables, family))


@pytest.mark.parametrize(("g", "k"), [(2, 8), (3, 27), (5, 25), (7, 7)])
def test_a_line_has_a_seed_and_its_multiples(g: int, k: int) -> None:
    """Every key: its symbol times the factor is that of the line's first seed, at every value."""
    family = LinearHash(k, g)
    keys, values = np.arange(1, family.size), np.arange(k)
    lines, factors = family.lines(keys)
    assert np.bincount(lines).tolist() == [0, *[g - 1] * (family.line_rows - 1)]
    first = {
        int(line): int(key) for key, line, f in zip(keys, lines, factors, strict=True) if f == 1
    }
    assert len(first) == family.line_rows - 1
    for key, line, factor in zip(keys, lines, factors, strict=True):
        symbols = family.hash_many(np.array([key, first[int(line)]])[:, None], values)
        np.testing.assert_array_equal(symbols[0] * factor % g, symbols[1])


@pytest.mark.parametrize("g", [2, 3, 5])
def test_a_large_domain_is_decoded(g: int, way: str) -> None:
    """k = 2^17: a handful of reports, whose support can be counted directly."""
    family = LinearHash(1 << 17, g)
    keys, ys = RNG.integers(1, family.size, size=40), RNG.integers(g, size=40)
    counts = np.zeros(family.size * g, dtype=np.int64)
    assert count_pairs(counts, keys, ys, g, 1)
    values = np.arange(family.k)
    expected = sum((family.hash_many(key, values) == y) for key, y in zip(keys, ys, strict=True))
    np.testing.assert_array_equal(decode.linear_support(counts, family), expected)


PRIMES = [(2, 2), (3, 2), (2, 3), (3, 3), (4, 3), (7, 4), (8, 5), (4, 10), (9, 16), (4, 97),
          (17, 12), (18, 96), (40, 60)]  # fmt: skip


def direct_prime(counts: Any, family: PrimeHash) -> list[int]:
    """C(v), one hash a key and value."""
    keys, values = np.arange(family.members), np.arange(family.k)
    symbols = family.hash_many(keys[:, None], values)
    rows = counts.reshape(-1, family.g)
    return [int(rows[keys, symbols[:, v]].sum()) for v in values]


@pytest.mark.parametrize(("g", "k"), PRIMES)
@pytest.mark.parametrize("largest", [1, 1000, 1 << 49])
def test_the_support_of_prime_tables(g: int, k: int, largest: int, way: str) -> None:
    """Sliding sums against direct counting; g up to P, where each symbol is one residue."""
    family = PrimeHash(k, g)
    counts = RNG.integers(largest, size=family.members * g, endpoint=True)
    before = counts.copy()
    assert decode.table_support(counts, family).tolist() == direct_prime(counts, family)
    np.testing.assert_array_equal(counts, before)


def test_many_rounds_of_prime_tables(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "AT_ONCE", 300)
    family = PrimeHash(20, 4)
    counts = RNG.integers(50, size=(2, 3, family.members * 4))
    found = decode.table_support(counts, family)
    assert found.shape == (2, 3, 20)
    for i in range(2):
        for t in range(3):
            assert found[i, t].tolist() == direct_prime(counts[i, t], family)


def test_both_directions_of_the_windows_are_transposes() -> None:
    """What the likelihood needs: <F f, W> = <f, F^T W> for real numbers."""
    family = PrimeHash(20, 6)
    windows = decode.Windows(family)
    weights, table = RNG.random(20), RNG.random((22, 23, 6))
    masses = windows.masses(weights)
    keys = np.arange(family.members)
    symbols = family.hash_many(keys[:, None], np.arange(20))
    expected = np.zeros((family.members, 6))
    np.add.at(expected, (keys[:, None], symbols), np.broadcast_to(weights, symbols.shape))
    np.testing.assert_allclose(masses.reshape(-1, 6), expected, atol=1e-12)
    assert (masses * table).sum() == pytest.approx(weights @ windows.supporting(table), rel=1e-12)
