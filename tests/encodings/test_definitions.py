"""What small encodings count and expect, by going through all keys, values and answers."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loloha.channels import BitChannel, SymbolChannel
from loloha.distribution import exact_distribution
from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols
from loloha.encodings.ordered import HiddenThreshold, Threshold
from loloha.encodings.part import CELLS
from loloha.hashing import LinearHash, PrimeHash
from loloha.report import Report
from loloha.rng import SCALE

Test = Callable[[Any, Any, int], bool]
"""Of a key, an answer and a bin."""


def has_bit(y: bytes, i: int) -> bool:
    return bool(y[0] >> i & 1)


def hashed(family: Any) -> Test:
    return lambda key, y, bin: bool(family.hash(key, bin) == y)


def every(key: Any, y: Any, bin: int) -> bool:
    return True


LINEAR, PRIME = LinearHash(4, 2), PrimeHash(5, 3)
CASES: list[tuple[Any, Test, Test]] = [
    (Symbols(3), lambda key, y, bin: bool(y == bin), every),
    (OneHot(3), lambda key, y, bin: has_bit(y, bin), every),
    (Hashed(LINEAR), hashed(LINEAR), every),
    (Hashed(LinearHash(3, 3)), hashed(LinearHash(3, 3)), every),
    (Hashed(LINEAR, expanded=True), hashed(LINEAR), every),
    (Hashed(PRIME), hashed(PRIME), every),
    *(
        (
            SampledBuckets(k, b, d),
            lambda key, y, bin: bin in key and has_bit(y, key.index(bin)),
            lambda key, y, bin: bin in key,
        )
        for k, b, d in [(4, 4, 2), (7, 3, 1), (5, 4, 3), (2, 2, 2)]
    ),
    (
        Threshold(4),
        lambda key, y, bin: key == bin + 1 and y == 1,
        lambda key, y, bin: bool(key == bin + 1),
    ),
    (HiddenThreshold(4), lambda key, y, bin: bool(y == 1), every),
]
"""Small encodings; which reports support a bin, and which could."""
TESTS = {encoding: (supports, could) for encoding, supports, could in CASES}
encodings = pytest.mark.parametrize("encoding", TESTS, ids=lambda part: repr(part)[:40])


def keys_of(encoding: Encoding) -> list[Any]:
    """All keys, each as likely as another."""
    law = exact_distribution(encoding.draw_key)
    assert len(set(law.values())) == 1
    return list(law)


def answers_of(encoding: Encoding) -> list[Any]:
    candidates = [bytes([y]) for y in range(256)] if encoding.packed else [*range(9)]
    return [y for y in candidates if encoding.is_answer(y)]


@encodings
def test_all_reports_are_counted_as_they_are_defined(encoding: Encoding) -> None:
    """Many at once, as increments, and one at a time; into supports and eligible users."""
    supports, could = TESTS[encoding]
    pairs = [*product(keys_of(encoding), answers_of(encoding))]
    # A second time a part of them: no cell must count only once.
    pairs += pairs[:: len(pairs) // 3 or 1]
    reports = [Report(encoding.sent(key), y) for key, y in pairs]
    total = np.zeros(encoding.cells, dtype=np.int64)
    encoding.count(total, *encoding.arrays(reports))
    admitted = np.zeros_like(total)
    assert encoding.admit(admitted, *encoding.arrays(reports))
    assert admitted.tolist() == total.tolist()
    cells, times = encoding.increments(*encoding.arrays(reports))
    assert cells.tolist() == np.flatnonzero(total).tolist()
    assert times.tolist() == total[cells].tolist()
    single, spans = np.zeros_like(total), set()
    for report in reports:
        cells, times = encoding.increments(*encoding.arrays([report]))
        spans.add(len(cells))
        np.add.at(single, cells, times)
        own = encoding.cell(report)
        assert own is None or (cells.tolist(), times.tolist()) == ([own], [1])
    assert single.tolist() == total.tolist()
    # Where nothing is known of the keys, a report may support all values.
    expanded = getattr(encoding, "expanded", False)
    assert max(spans) == encoding.span or (expanded and encoding.span == encoding.cells)
    bins = range(encoding.bins)
    assert encoding.support(total).tolist() == [
        sum(supports(key, y, bin) for key, y in pairs) for bin in bins
    ]
    assert encoding.eligible(total, len(pairs)).tolist() == [
        sum(could(key, y, bin) for key, y in pairs) for bin in bins
    ]
    keys = keys_of(encoding)
    expected = sum(could(key, pairs[0][1], 0) for key in keys) / len(keys)
    assert encoding.expected_eligible(30) == pytest.approx(30 * expected, rel=1e-12)


@encodings
def test_what_few_reports_add_needs_no_array_of_all_counts(
    encoding: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(encoding.sent(keys_of(encoding)[0]), answers_of(encoding)[0])
    if encoding.span < encoding.cells:
        monkeypatch.setattr(type(encoding), "count", None)
    cells, _ = encoding.increments(*encoding.arrays([report]))
    assert len(cells) <= encoding.span


@encodings
def test_a_bin_is_the_share_of_users_by_their_weights(encoding: Encoding) -> None:
    k = getattr(encoding, "k", encoding.bins)
    shares = np.arange(1, k + 1) / sum(range(1, k + 1))
    weights = [[encoding.weight(v, bin) for v in range(k)] for bin in range(encoding.bins)]
    assert encoding.frequencies(shares) == pytest.approx(np.array(weights, float) @ shares)
    for bin, row in enumerate(weights):
        counted = [v for v in range(k) if row[v] == 1]
        whole = encoding.bin_values(bin)
        assert whole is None or counted == list(range(whole[0], whole[1] + 1))


@pytest.mark.parametrize(
    "encoding",
    [case for case in TESTS if not case.fractional and not isinstance(case, Hashed)],
    ids=lambda p: repr(p)[:40],
)
def test_the_lasting_share_is_the_chance_of_one_memo_symbol_in_two_rounds(
    encoding: Encoding,
) -> None:
    """Of two values drawn apart, for users who could support the bin."""
    _, could = TESTS[encoding]
    k = getattr(encoding, "k", encoding.bins)
    shares = np.arange(1, k + 1) / sum(range(1, k + 1))
    of_bins = encoding.frequencies(shares)
    got = encoding.lasting_share(of_bins, 0.6)
    for bin in range(encoding.bins):
        keys = [key for key in keys_of(encoding) if could(key, None, bin)]
        chances = [
            shares[v] * shares[w]
            for key in keys
            for v, w in product(range(k), repeat=2)
            if encoding.memo_index(key, v) == encoding.memo_index(key, w)
        ]
        assert got[bin] == pytest.approx(sum(chances) / len(keys), rel=1e-9)


def covariance_share(cells: Any, shares: Any, p: float, q: float) -> float:
    """Of the support of value 0 in two rounds of values drawn apart; cells are those of each key.

    A memo supports it with chance p if its cell is that of value 0, else q; one cell has one memo.
    """
    chances = np.where(cells == cells[:, :1], p, q)
    covariance = variance = 0.0
    for v, mean in enumerate(chances.mean(axis=0)):
        variance += shares[v] * mean * (1 - mean)
        apart = chances[:, [v]] * chances
        both = np.where(cells == cells[:, [v]], chances[:, [v]], apart).mean(axis=0)
        covariance += shares[v] * float(shares @ (both - mean * chances.mean(axis=0)))
    return covariance / variance


@pytest.mark.parametrize("contrast", [0.1, 0.6, 0.95])
def test_the_lasting_share_of_hashed_values_is_that_of_their_covariance(contrast: float) -> None:
    """Exactly, where three values have independent hashes, of a value that nobody holds."""
    g, shares = 3, np.array([0.0, 0.5, 0.3, 0.2])
    cells = np.array([*product(range(g), repeat=len(shares))])
    q = (1 - contrast) / g
    encoding = Hashed(SimpleNamespace(g=g, k=4, collision=Fraction(1, g)))  # type: ignore[arg-type]
    expected = covariance_share(cells, shares, q + contrast, q)
    assert encoding.lasting_share(shares, contrast)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "family", [LinearHash(16, 2), LinearHash(25, 3), PrimeHash(13, 3)], ids=str
)
def test_the_lasting_share_of_shipped_hashes_is_rather_too_large(family: Any) -> None:
    """Three of their hashes are not independent, which shares less: intervals err to the wide."""
    k, contrast = family.k, 0.6
    encoding, shares = Hashed(family), np.full(k, 1 / k)
    cells = np.array([[family.hash(key, v) for v in range(k)] for key in keys_of(encoding)])
    q = (1 - contrast) / family.g
    exact = covariance_share(cells, shares, q + contrast, q)
    assert exact <= encoding.lasting_share(shares, contrast)[0] <= exact + 1.3 / k


@encodings
@pytest.mark.parametrize("ninths", [(6, 1), (8, 5)])
def test_the_likelihood_ratio_is_the_largest_of_an_answer(
    encoding: Encoding, ninths: tuple[int, int]
) -> None:
    """Between the memo symbols that some value can have."""
    p, q = (SCALE * part // 9 for part in ninths)
    channel: Any = BitChannel(p, q) if encoding.packed else SymbolChannel(encoding.memo_symbols, p)
    k = getattr(encoding, "k", encoding.bins)
    worst: Fraction = Fraction(1)
    for key in keys_of(encoding):
        laws = [
            exact_distribution(lambda rng, x=x: encoding.randomise(rng, x, channel))
            for x in {encoding.memo_index(key, v) for v in range(k)}
        ]
        for law, other in product(laws, repeat=2):
            worst = max(worst, *(law[y] / other[y] for y in law))
    assert encoding.likelihood_ratio(channel.p, channel.q) == worst


def test_masses_and_weights_of_thresholds_are_sums_over_their_sides() -> None:
    k, cells = 5, CELLS.required(Threshold(5))(Threshold(5))
    shares, weights = np.arange(1, k + 1) / 15, np.arange(2.0 * (k - 1)).reshape(-1, 2) ** 2
    sides = [[int(v >= t) for v in range(k)] for t in range(1, k)]
    masses = [[sum(shares[v] for v in range(k) if row[v] == s) for s in (0, 1)] for row in sides]
    assert cells.masses(shares) == pytest.approx(np.array(masses))
    expected = [sum(weights[t, row[v]] for t, row in enumerate(sides)) for v in range(k)]
    assert cells.supporting(weights).tolist() == expected


@encodings
def test_a_report_shows_the_key_or_that_there_is_none(encoding: Encoding) -> None:
    shown = {encoding.sent(key) for key in keys_of(encoding)}
    assert all(map(encoding.is_sent, shown))
    assert encoding.is_sent(None) == (shown == {None})
    assert not encoding.is_sent(-1)


@encodings
def test_the_array_forms_take_so_many_bytes_and_name_each_key(encoding: Encoding) -> None:
    reports = [Report(encoding.sent(key), answers_of(encoding)[0]) for key in keys_of(encoding)]
    keys, ys = encoding.arrays(reports)
    size = 0 if keys is None else keys.nbytes
    assert encoding.row_bytes == (size / len(reports), ys.nbytes / len(reports))
    rows = [()] * len(reports) if keys is None else keys.reshape(len(reports), -1).tolist()
    for row, report in zip(rows, reports, strict=True):
        if row:
            assert encoding.key_of(tuple(row)) == report.key
        with pytest.raises(ValueError, match="as many numbers"):
            encoding.key_of((*row, 1))


@encodings
def test_keys_matter_where_the_memo_symbol_depends_on_them(encoding: Encoding) -> None:
    keys, k = keys_of(encoding), getattr(encoding, "k", encoding.bins)
    cells = {tuple(encoding.memo_index(key, v) for v in range(k)) for key in keys}
    # Which buckets are sampled is no secret of the hash's kind: it decides what is reported at all.
    if type(encoding) is not SampledBuckets:
        assert encoding.keyed == (len(cells) > 1)
    if encoding.key_count is not None and not isinstance(encoding, SampledBuckets):
        assert encoding.key_count == len({encoding.sent(key) for key in keys})
    shared = [len({encoding.memo_index(key, 0), encoding.memo_index(key, 1)}) == 1 for key in keys]
    if type(encoding) in (Symbols, OneHot, Hashed):
        assert encoding.collision == Fraction(sum(shared), len(keys))
        p, q = Fraction(3, 4), Fraction(1, 8)
        mixed = sum((p if same else q) for same in shared) / len(keys)
        assert encoding.supporting(p, q) == (p, mixed)


def test_counts_that_are_not_valid_are_not_admitted() -> None:
    for encoding in TESTS:
        report = Report(encoding.sent(keys_of(encoding)[0]), answers_of(encoding)[0])
        keys, ys = encoding.arrays([report, report])
        wrong = ys.copy()
        wrong[1] = 255 if encoding.packed else 99
        counts = np.zeros(encoding.cells, dtype=np.int64)
        assert encoding.admit(counts, keys, wrong) is False
        assert not counts.any()
        assert encoding.valid(keys, wrong).tolist() == [True, False]
