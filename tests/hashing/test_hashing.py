"""Hash families: their exact laws by enumeration, both writings alike, the choice of a family."""

import csv
import sys
from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.hashing import (
    LARGEST_TABLE,
    MERSENNE_31,
    AffineHash,
    HashFamily,
    LinearHash,
    ModularHash,
    PrimeHash,
    XXHash,
    admissible_primes,
    default_family,
    digits,
    hash_family,
    is_prime,
    least_prime,
    modular,
)
from loloha.rng import Rng

LINEAR = [(2, 2), (2, 3), (2, 8), (3, 3), (3, 9), (3, 7), (5, 5), (5, 24), (7, 11), (11, 4)]
PRIME = [(2, 2), (2, 3), (3, 3), (3, 4), (4, 7), (5, 8), (5, 4), (7, 5), (9, 4), (11, 11)]
EVERY = [
    LinearHash(300, 7),
    LinearHash(40, 2),
    LinearHash(40, 3),
    PrimeHash(300, 6),
    PrimeHash(1 << 24, 9),
    AffineHash(300, 6),
    XXHash(300, 5),
]


@pytest.fixture
def few_residues(monkeypatch: pytest.MonkeyPatch) -> int:
    """The affine family over Z_7 instead of Z_(2^31 - 1): small enough to enumerate all keys."""
    monkeypatch.setattr(modular, "MERSENNE_31", 7)
    return 7


def keys_of(family: HashFamily) -> dict[int, Fraction]:
    return exact_distribution(family.draw)


@pytest.mark.parametrize(("g", "k"), LINEAR)
def test_the_linear_family_is_drawn_uniformly(g: int, k: int) -> None:
    family = LinearHash(k, g)
    assert keys_of(family) == dict.fromkeys(range(1, family.size), Fraction(1, family.size - 1))
    assert family.size == g**family.m
    assert g ** (family.m - 1) < k <= g**family.m or family.m == 1


@pytest.mark.parametrize(("g", "k"), LINEAR)
def test_two_values_collide_exactly_as_often_as_stated(g: int, k: int) -> None:
    """The unbiased estimate stands on this number; MATH section 4.1."""
    family = LinearHash(k, g)
    m = family.m
    assert family.collision == Fraction(g ** (m - 1) - 1, g**m - 1) < Fraction(1, g)
    for v, w in permutations(range(k), 2):
        met = sum(
            p for key, p in keys_of(family).items() if family.hash(key, v) == family.hash(key, w)
        )
        assert met == family.collision, (v, w)


@pytest.mark.parametrize(("g", "k"), LINEAR)
def test_every_seed_splits_the_group_into_equal_cells(g: int, k: int) -> None:
    """PAINS 23: no user is easier to attack because of an unbalanced hash."""
    family = LinearHash(k, g)
    for key in range(1, family.size):
        cells = Counter(family.hash(key, v) for v in range(family.size))
        assert set(cells.values()) == {family.size // g}, key


@pytest.mark.parametrize(("g", "k"), PRIME)
def test_least_prime_values_go_to_a_uniform_pair_of_residues(g: int, k: int) -> None:
    """Keys are uniform, and two values collide exactly as often as stated; MATH section 14."""
    family = PrimeHash(k, g)
    prime = next(n for n in range(max(k, g), 100) if n > 1 and all(n % d for d in range(2, n)))
    keys = keys_of(family)
    assert keys == dict.fromkeys(range(prime * (prime - 1)), Fraction(1, prime * (prime - 1)))
    assert family.members == len(keys)
    for v, w in permutations(range(k), 2):
        met = sum(p for key, p in keys.items() if family.hash(key, v) == family.hash(key, w))
        assert met == family.collision, (v, w)
    sizes = [len(range(i, prime, g)) for i in range(g)]
    assert family.collision == Fraction(sum(n * (n - 1) for n in sizes), prime * (prime - 1))


def test_the_least_prime_is_one_and_none_is_below() -> None:
    primes = [n for n in range(2, 3000) if all(n % d for d in range(2, n))]
    for n in range(3000 - 40):
        assert least_prime(n) == next(p for p in primes if p >= n)
    # The widest gap below 2^24 is 154 long: the end of it is found all the same.
    assert least_prime(17_051_708) == 17_051_887


def test_a_small_table_is_used() -> None:
    assert PrimeHash(1000, 4).table_rows == 1009 * 1008
    assert PrimeHash(1000, 5).table_rows is None
    assert PrimeHash(1412, 4).table_rows is None
    assert LinearHash(1000, 5).table_rows == 5**5
    assert AffineHash(2, 2).table_rows is XXHash(2, 2).table_rows is None


@pytest.mark.parametrize("g", [2, 3, 4, 6])
def test_affine_values_go_to_a_uniform_pair_of_residues(g: int, few_residues: int) -> None:
    """The count behind the affine c0, on a small field; MATH section 4.2."""
    residues = AffineHash(few_residues, few_residues)
    keys = keys_of(residues)
    assert keys.keys() == {a << 31 | b for a in range(1, 7) for b in range(7)}
    assert set(keys.values()) == {Fraction(1, 42)}
    family = AffineHash(few_residues, g)
    for v, w in permutations(range(few_residues), 2):
        pairs = Counter((residues.hash(key, v), residues.hash(key, w)) for key in keys)
        assert pairs == dict.fromkeys(permutations(range(7), 2), 1)
        met = sum(p for key, p in keys.items() if family.hash(key, v) == family.hash(key, w))
        assert met == family.collision, (v, w)


@pytest.mark.parametrize("g", [2, 3, 4, 6, 9, 12, 17, 4099])
def test_the_affine_collision_probability_counts_residues(g: int) -> None:
    p = 2**31 - 1
    sizes = [p // g + (i < p % g) for i in range(g)]
    assert sum(sizes) == p
    assert AffineHash(10, g).collision == Fraction(sum(n * (n - 1) for n in sizes), p * (p - 1))


def test_the_affine_key_is_drawn_over_its_whole_range() -> None:
    class Ends(Rng):
        """Takes the lowest or the highest draw, and remembers what was asked."""

        def __init__(self, highest: bool) -> None:
            self.highest = highest
            self.asked: list[int] = []

        def bernoulli(self, threshold: int) -> bool:
            raise AssertionError("keys are uniform")

        def below(self, n: int) -> int:
            self.asked.append(n)
            return n - 1 if self.highest else 0

    low, high = Ends(False), Ends(True)
    assert AffineHash(10, 6).draw(low) == 1 << 31
    assert AffineHash(10, 6).draw(high) == (MERSENNE_31 - 1) << 31 | (MERSENNE_31 - 1)
    assert low.asked == high.asked == [MERSENNE_31 - 1, MERSENNE_31]
    assert XXHash(10, 6).draw(high) == (1 << 32) - 1


@pytest.mark.parametrize("family", EVERY, ids=repr)
def test_many_keys_have_the_distribution_of_one(family: HashFamily) -> None:
    """Records the ranges asked of the generator: uniform over exactly the keys of `draw`."""
    ends: list[list[int]] = []

    class Generator:
        def integers(self, low: int, high: int, size: int) -> Any:
            ends.append([low, high - 1])
            return np.array([low, high - 1] * (size // 2))

    keys = family.draw_many(4, Generator())  # type: ignore[arg-type]
    assert keys.dtype == np.int64
    assert family.are_keys(keys).all()
    lowest, highest = int(keys.min()), int(keys.max())
    assert not family.is_key(lowest - 1)
    assert not family.is_key(highest + 1)
    assert len(ends) == (2 if isinstance(family, ModularHash) else 1)


@pytest.mark.parametrize("family", EVERY, ids=repr)
def test_many_values_hash_like_one(family: HashFamily) -> None:
    keys = family.draw_many(40, np.random.default_rng(3))
    values = np.array([0, 1, family.k // 2, family.k - 1])
    table = family.hash_many(keys[:, None], values)
    expected = [[family.hash(int(key), int(v)) for v in values] for key in keys]
    assert table.tolist() == expected
    assert table.dtype == np.int64
    assert 0 <= table.min() <= table.max() < family.g


@pytest.mark.parametrize(
    "family",
    [
        LinearHash(1 << 24, 2),
        LinearHash(1 << 24, 5),
        PrimeHash(1 << 24, 1 << 20),
        AffineHash(1 << 22, 1 << 20),
    ],
    ids=repr,
)
def test_the_largest_domain_hashes_without_overflow(family: HashFamily) -> None:
    keys = np.append(
        family.draw_many(5, np.random.default_rng(1)),
        (1 << 62) - (1 << 31) - 2
        if isinstance(family, AffineHash)
        else family.members - 1 + family.least_key,
    )
    assert family.are_keys(keys).all()
    values = np.array([family.k - 1, family.k - 2])
    got = family.hash_many(keys[:, None], values).tolist()
    assert got == [[family.hash(int(key), int(v)) for v in values] for key in keys]


@pytest.mark.parametrize("family", EVERY, ids=repr)
def test_both_checks_of_a_key_agree(family: HashFamily) -> None:
    edges = [-1, 0, 1, 2, 39, 63, 64, 342, 343, 1 << 31, 1 << 32, (1 << 32) - 1, -(1 << 40)]
    edges += [MERSENNE_31, (1 << 31) | MERSENNE_31, MERSENNE_31 << 31, (1 << 62) - (1 << 31) - 2]
    edges += [(MERSENNE_31 - 1) << 31 | (MERSENNE_31 - 1), (1 << 63) - 1, -(1 << 63)]
    assert family.are_keys(np.array(edges)).tolist() == [family.is_key(key) for key in edges]


@pytest.mark.parametrize("family", EVERY, ids=repr)
def test_a_key_fits_its_stated_bits(family: HashFamily) -> None:
    assert not family.is_key(1 << family.key_bits)
    assert family.is_key(1 << (family.key_bits - 1))


@pytest.mark.parametrize("k", [2, 3, 5, 96, 360, 1412, 1 << 14, 1 << 20, 1 << 24])
def test_admissible_primes_are_those_with_an_affordable_table(k: int) -> None:
    found = admissible_primes(k)
    assert found == sorted(set(found))
    assert found[0] == 2
    assert all(is_prime(g) and g ** (digits(k, g) + 1) <= LARGEST_TABLE for g in found)
    bijection = next(g for g in range(k, 2 * k) if is_prime(g))
    # A larger g only adds noise; below it, nothing was left out.
    limit = min(bijection, 2000)
    expected = [
        g for g in range(2, limit + 1) if is_prime(g) and g ** (digits(k, g) + 1) <= LARGEST_TABLE
    ]
    assert [g for g in found if g <= limit] == expected
    assert max(found) <= bijection


def test_primes_are_distinguished() -> None:
    assert [g for g in range(-2, 50) if is_prime(g)] == [
        2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47
    ]  # fmt: skip
    assert not is_prime(10007**2)


@pytest.mark.parametrize(
    ("k", "g", "m"), [(2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 2, 3), (2, 7, 1), (50, 7, 3)]
)
def test_digits_cover_the_domain(k: int, g: int, m: int) -> None:
    assert digits(k, g) == m


@pytest.mark.parametrize(
    ("k", "g", "name"),
    [(96, 2, "linear"), (96, 4, "affine"), (96, 7, "linear"), (1 << 24, 2, "linear"),
     (1 << 22, 8191, "affine")],
)  # fmt: skip
def test_the_linear_family_is_the_default_where_it_exists(k: int, g: int, name: str) -> None:
    assert default_family(k, g) == name


@pytest.mark.parametrize(
    ("name", "k", "g", "message"),
    [
        (
            "linear",
            96,
            4,
            "g must be prime for hash='linear', got 4; use a prime g, 'prime' or 'affine'",
        ),
        ("linear", 96, 1, "g must be prime"),
        ("linear", 1 << 22, 8191, "g must be small enough .* for k = 4194304, got 8191; "),
        ("linear", (1 << 24) + 1, 2, "k must be at most 16777216 for hash='linear', got 16777217"),
        ("affine", (1 << 22) + 1, 4, "k must be at most 4194304 for hash='affine', got 4194305"),
        ("prime", (1 << 24) + 1, 4, "k must be at most 16777216 for hash='prime', got 16777217"),
        (
            "md5",
            96,
            4,
            r"hash must be one of \['affine', 'linear', 'prime', 'xxhash'\], got 'md5'; choose",
        ),
    ],
)
def test_a_family_that_does_not_exist_is_refused(name: str, k: int, g: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        hash_family(name, k, g)


def test_without_its_package_the_peers_hash_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    for hash_something in (
        lambda: XXHash(10, 3).hash(1, 2),
        lambda: XXHash(10, 3).hash_many(np.array([1]), np.array([2])),
    ):
        with pytest.raises(ParameterError, match=r"pip install 'loloha\[xxhash\]'"):
            hash_something()


def test_the_peers_hash_reads_what_existing_tools_wrote() -> None:
    """PAINS 4: newer releases of the package refuse text, so the text is encoded by us."""
    import xxhash

    family = XXHash(360, 5)
    for key, v in [(0, 0), (1, 359), ((1 << 32) - 1, 42)]:
        assert family.hash(key, v) == xxhash.xxh32(str(v).encode(), seed=key).intdigest() % 5
    assert family.collision == Fraction(1, 5)


def rows(reference: Path, name: str) -> list[dict[str, int]]:
    with (reference / name).open(newline="") as file:
        return [{column: int(cell) for column, cell in row.items()} for row in csv.DictReader(file)]


def test_the_linear_family_equals_the_reference(reference: Path) -> None:
    table = rows(reference, "linear_hash.csv")
    assert len(table) > 100
    for row in table:
        family = LinearHash(row["k"], row["g"])
        assert family.m == row["m"]
        assert family.hash(row["seed"], row["value"]) == row["hash"], row


def test_the_affine_family_equals_the_reference(reference: Path) -> None:
    table = rows(reference, "affine_hash.csv")
    assert len(table) > 40
    for row in table:
        family = AffineHash(1 << 22, row["g"])
        assert family.hash(row["a"] << 31 | row["b"], row["value"]) == row["hash"], row
        assert family.collision == Fraction(row["c0_numerator"], row["c0_denominator"])


@pytest.mark.parametrize(("g", "k"), LINEAR)
def test_a_line_is_a_seed_and_its_multiples(g: int, k: int) -> None:
    """Lines are numbered without gaps, and a factor leads each seed to the first of its line."""
    family = LinearHash(k, g)
    seeds, values = np.arange(1, family.size), np.arange(k)
    lines, factors = family.lines(seeds)
    assert Counter(lines.tolist()) == dict.fromkeys(range(1, family.line_rows), g - 1)
    first = dict(zip(lines[factors == 1].tolist(), seeds[factors == 1].tolist(), strict=True))
    heads = np.array([first[line] for line in lines.tolist()])
    hashed = family.hash_many(seeds[:, None], values[None]) * factors[:, None] % g
    assert (hashed == family.hash_many(heads[:, None], values[None])).all()


@pytest.mark.parametrize("family", [AffineHash(300, 7), PrimeHash(300, 7)], ids=repr)
def test_a_key_is_the_documented_integer(family: Any) -> None:
    """Of both factors at the ends of their ranges, and what it hashes to."""
    prime = family.modulus
    for a, b in product((1, 2, prime - 1), (0, 1, prime - 1)):
        key = a * 2**31 + b if family.name == "affine" else (a - 1) * prime + b
        assert family.join(a, b) == key
        assert family.split(key) == (a, b)
        assert family.is_key(key)
        for v in (0, 1, 299):
            assert family.hash(key, v) == (a * v + b) % prime % 7


@pytest.mark.parametrize(("k", "g"), [(300, 2), (300, 7)])
def test_a_seed_hashes_to_the_product_of_its_digits_and_the_values(k: int, g: int) -> None:
    family = LinearHash(k, g)

    def digits(number: int) -> list[int]:
        return [number // g**place % g for place in range(family.m)]

    for seed, v in product((1, g, family.size - 1, family.size // 3), (0, 1, g, k - 1)):
        terms = zip(digits(seed), digits(v), strict=True)
        assert family.hash(seed, v) == sum(x * y for x, y in terms) % g


@pytest.mark.parametrize(
    ("name", "most"),
    [("linear", 1 << 24), ("prime", 1 << 24), ("affine", 1 << 22), ("xxhash", 1 << 24)],
)
def test_the_largest_domain_of_each_family(name: str, most: int) -> None:
    assert hash_family(name, most, 2).k == most
    with pytest.raises(ParameterError, match=f"k must be at most {most} for hash='{name}'"):
        hash_family(name, most + 1, 2)
