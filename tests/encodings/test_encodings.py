"""How values become symbols and bits: sizes, positions, and two checks that agree."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb, floor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laws.variants import example
from loloha.channels import BitChannel, chained_bits
from loloha.distribution import exact_distribution
from loloha.encodings import (
    Encoding,
    Hashed,
    HiddenThreshold,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
)
from loloha.encodings.part import MEMO_CELLS, for_encoding, like_encoding
from loloha.errors import ParameterError
from loloha.hashing import AffineHash, LinearHash, PrimeHash, XXHash
from loloha.protocols import REGISTRY
from loloha.rng import SCALE, SimulationRng
from scripted import ScriptedRng


@pytest.mark.parametrize("k", [2, 3, 10, 49, 96])
def test_buckets_are_near_equal_and_exact(k: int) -> None:
    for b in range(2, k + 1):
        encoding = SampledBuckets(k, b, 1)
        buckets = [encoding.bin(v) for v in range(k)]
        assert buckets == [floor(Fraction(v * b, k)) for v in range(k)]
        widths = Counter(buckets)
        assert widths.keys() == set(range(b))
        assert set(widths.values()) <= {k // b, -(-k // b)}


def test_the_value_that_floats_misplace() -> None:
    """MATH section 7."""
    assert SampledBuckets(49, 21, 1).bin(35) == 15
    assert int(35 / (49 / 21)) == 14


@pytest.mark.parametrize(("b", "d"), [(2, 1), (2, 2), (3, 2), (4, 1), (4, 2), (5, 3), (5, 5)])
def test_sampled_buckets_are_a_uniform_subset(b: int, d: int) -> None:
    law = exact_distribution(SampledBuckets(b, b, d).draw_key)
    assert law == dict.fromkeys(combinations(range(b), d), Fraction(1, comb(b, d)))


def test_a_subset_takes_a_fixed_number_of_draws() -> None:
    """Ports replay scripts: the number of draws must not depend on their outcome."""
    for draws in product(range(4), range(5), range(6)):
        script = ScriptedRng(draws)
        assert len(SampledBuckets(6, 6, 3).draw_key(script)) == 3
        assert script.finished()


SIZES: list[tuple[Encoding, dict[str, int]]] = [
    (Symbols(96), {"bins": 96, "memo_cells": 96, "memo_symbols": 96, "cells": 96,
                   "key_bits": 0, "report_bits": 7}),
    (OneHot(96), {"bins": 96, "memo_cells": 96, "memo_symbols": 96, "cells": 96,
                  "key_bits": 0, "report_bits": 96}),
    (Hashed(LinearHash(96, 5)), {"bins": 96, "memo_cells": 5, "memo_symbols": 5,
                                 "cells": 125 * 5, "key_bits": 7, "report_bits": 7 + 3}),
    (Hashed(LinearHash(3, 5)), {"bins": 3, "memo_cells": 3, "memo_symbols": 5,
                                "cells": 25, "key_bits": 3, "report_bits": 6}),
    (Hashed(AffineHash(96, 4)), {"bins": 96, "memo_cells": 4, "memo_symbols": 4,
                                 "cells": 96, "key_bits": 62, "report_bits": 64}),
    (Hashed(XXHash(96, 4)), {"bins": 96, "memo_cells": 4, "memo_symbols": 4,
                             "cells": 96, "key_bits": 32, "report_bits": 34}),
    (SampledBuckets(96, 24, 5), {"bins": 24, "memo_cells": 6, "memo_symbols": 6,
                                 "cells": 48, "key_bits": 25, "report_bits": 30}),
    (SampledBuckets(96, 24, 24), {"bins": 24, "memo_cells": 24, "memo_symbols": 25,
                                  "cells": 48, "key_bits": 120, "report_bits": 144}),
    (Threshold(9), {"bins": 8, "values": 9, "memo_cells": 2, "memo_symbols": 2, "cells": 16,
                    "symbols": 2, "key_bits": 4, "key_count": 8, "report_bits": 5, "keyed": True,
                    "packed": False, "fractional": False}),
    (HiddenThreshold(9), {"bins": 1, "values": 9, "memo_cells": 2, "memo_symbols": 2, "cells": 2,
                          "symbols": 2, "key_bits": 0, "key_count": 1, "report_bits": 1,
                          "keyed": True, "packed": False, "fractional": True}),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "sizes"), SIZES, ids=lambda part: repr(part)[:40])
def test_sizes(encoding: Encoding, sizes: dict[str, int]) -> None:
    assert {name: getattr(encoding, name) for name in sizes} == sizes


def test_what_does_not_count_symbols_has_no_number_of_them() -> None:
    assert OneHot(9).symbols is SampledBuckets(9, 3, 2).symbols is None
    assert (Symbols(9).symbols, Hashed(LinearHash(9, 3)).symbols) == (9, 3)
    assert OneHot(9).packed
    assert SampledBuckets(9, 3, 2).packed


@pytest.mark.parametrize(
    ("encoding", "labels"),
    [
        (Symbols(3), ["a", "b", "c"]),
        (SampledBuckets(5, 3, 1), ["a … b", "c … d", "e"]),
        (Threshold(4), ["b … d", "c … d", "d"]),
        (HiddenThreshold(4), ["mean"]),
    ],
    ids=repr,
)
def test_a_bin_is_labelled_by_its_first_and_its_last_value(
    encoding: Encoding, labels: list[str]
) -> None:
    assert [encoding.bin_label(bin, "abcde".__getitem__) for bin in range(encoding.bins)] == labels


@pytest.mark.parametrize("cls", [Threshold, HiddenThreshold], ids=lambda cls: cls.__name__)
def test_the_sides_of_a_threshold_are_those_of_each_key(cls: Any) -> None:
    """Some values are told apart by the thresholds between them; each pattern occurs once."""
    encoding, values = cls(7), np.array([1, 2, 5])
    patterns, every = MEMO_CELLS.required(encoding)(encoding, SimpleNamespace(values=values))
    drawn = {tuple(encoding.memo_index(key, v) for v in (1, 2, 5)) for key in range(1, 7)}
    assert every
    assert sorted(map(tuple, patterns.tolist())) == sorted(drawn)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16])
def test_bits_are_packed_first_bit_lowest_and_padded_with_zeros(size: int) -> None:
    encoding = SampledBuckets(20, 20, size)
    for position in range(size):
        answer = (1 << position).to_bytes((size + 7) // 8, "little")
        assert encoding.is_answer(answer)
        ones = np.unpackbits(np.frombuffer(answer, np.uint8), count=size, bitorder="little")
        assert ones.tolist() == [int(i == position) for i in range(size)]
    full = ((1 << size) - 1).to_bytes((size + 7) // 8, "little")
    assert encoding.is_answer(full)
    if size % 8:
        assert not encoding.is_answer((1 << size).to_bytes((size + 7) // 8, "little"))
    assert not encoding.is_answer(full + b"\x00")
    assert not encoding.is_answer(full[:-1])
    assert not encoding.is_answer(bytearray(full))  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 7, 8, 9])
def test_both_checks_of_bits_agree(k: int) -> None:
    encoding = OneHot(k)
    size = (k + 7) // 8
    every = [number.to_bytes(size, "little") for number in range(0, 256**size, 37)]
    ys = np.frombuffer(b"".join(every), np.uint8).reshape(-1, size)
    assert encoding.valid(None, ys).tolist() == [encoding.is_answer(y) for y in every]


def test_both_checks_of_sampled_buckets_agree() -> None:
    encoding = SampledBuckets(4, 4, 2)
    keys = list(product(range(-1, 6), repeat=2))
    answers = list(range(8))
    pairs = list(product(keys, answers))
    got = encoding.valid(
        np.array([key for key, _ in pairs]), np.array([[y] for _, y in pairs], dtype=np.uint8)
    )
    assert got.tolist() == [
        encoding.is_key(key) and encoding.is_answer(bytes([y])) for key, y in pairs
    ]


@pytest.mark.parametrize("family", [LinearHash(9, 3), AffineHash(9, 3)], ids=repr)
def test_both_checks_of_hashed_symbols_agree(family: Any) -> None:
    encoding = Hashed(family)
    pairs = list(product([-1, 0, 1, 8, 9, 26, 27, 1 << 31, 5 << 31 | 7, 1 << 62], range(-1, 5)))
    got = encoding.valid(np.array([key for key, _ in pairs]), np.array([y for _, y in pairs]))
    assert got.tolist() == [encoding.is_key(key) and encoding.is_answer(y) for key, y in pairs]


@pytest.mark.parametrize("encoding", [Threshold(4), HiddenThreshold(4)], ids=repr)
def test_both_checks_of_sides_agree(encoding: Encoding) -> None:
    pairs = list(product(range(-1, 6), range(-1, 4)))
    keys, ys = (np.array(column) for column in zip(*pairs, strict=True))
    got = encoding.valid(keys, ys)
    hidden = type(encoding) is HiddenThreshold
    assert got.tolist() == [(hidden or encoding.is_key(key)) and encoding.is_answer(y)
                            for key, y in pairs]  # fmt: skip


@pytest.mark.parametrize("encoding", [Hashed(LinearHash(9, 3)), SampledBuckets(9, 3, 2)], ids=repr)
def test_a_key_of_the_wrong_kind_is_no_silent_zero(encoding: Encoding) -> None:
    with pytest.raises(TypeError, match=r"(hash seed is an int|buckets are a tuple)"):
        encoding.memo_index(None, 1)
    assert not encoding.is_key("key")  # type: ignore[arg-type]
    assert not encoding.is_key(None)


def test_a_value_whose_bucket_was_not_sampled_has_the_last_memo_symbol() -> None:
    encoding = SampledBuckets(8, 4, 2)
    assert [encoding.memo_index((1, 3), v) for v in range(8)] == [2, 2, 0, 0, 2, 2, 1, 1]


def test_sampled_bits_can_take_a_second_round() -> None:
    """No registered protocol does; the law is that of each bit on its own."""
    encoding, first, second = SampledBuckets(9, 3, 2), BitChannel(SCALE // 4, 3), BitChannel(9, 5)
    law = exact_distribution(lambda rng: encoding.rerandomise(rng, b"\x01", second))
    p, q = second.p, second.q
    assert law == {
        b"\x00": (1 - p) * (1 - q), b"\x01": p * (1 - q), b"\x02": (1 - p) * q, b"\x03": p * q
    }  # fmt: skip
    assert encoding.chain(first.p, first.q, p, q) == chained_bits(first, second)


@pytest.mark.parametrize("name", REGISTRY.own)
def test_memo_symbols_of_many_are_those_of_each(name: str) -> None:
    encoding = example(name, 12).encoding
    drawn = [encoding.draw_key(SimulationRng(user)) for user in range(9)]
    keys = None if drawn[0] is None else np.array(drawn)
    values = np.arange(0, 12, 2)
    many = encoding.memo_indices(keys, values, len(drawn))
    assert many.tolist() == [[encoding.memo_index(key, int(v)) for v in values] for key in drawn]


def test_keys_are_counted_one_by_one() -> None:
    for encoding in (
        Symbols(3),
        OneHot(3),
        Hashed(PrimeHash(5, 3)),
        SampledBuckets(7, 5, 2),
        SampledBuckets(7, 5, 5),
    ):
        law = exact_distribution(encoding.draw_key)
        assert encoding.key_count == len(law)


def test_a_part_that_an_encoding_lacks_is_named() -> None:
    class Own(Threshold):
        """A subclass may act otherwise: it has no part unless it says so."""

    encoding = Own(3)
    assert MEMO_CELLS.of(Threshold(3)) is MEMO_CELLS.required(Threshold(3)) is not None
    assert MEMO_CELLS.of(encoding) is None
    with pytest.raises(ParameterError, match=f"{MEMO_CELLS.name}.*got Own; {MEMO_CELLS.otherwise}"):
        MEMO_CELLS.required(encoding)
    like_encoding(Threshold, Own, parts=[MEMO_CELLS.name])
    assert MEMO_CELLS.required(encoding) is MEMO_CELLS.required(Threshold(3))
    with pytest.raises(ParameterError, match="part must be one of"):
        for_encoding("no part", Own)
    with pytest.raises(ParameterError, match="part must be one of"):
        like_encoding(Threshold, Own, parts=["no part"])
