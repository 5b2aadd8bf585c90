"""Which of two values a transcript speaks for, on transcripts written by hand."""

from itertools import permutations, product
from typing import Any

import pytest

import loloha
from loloha.audit.event import EVENTS, STRETCH

BUDGETS: Any = {"eps_inf": 2.0, "eps_1": 1.0}
SYMBOLS, BITS = loloha.LGRR(k=5, **BUDGETS), loloha.RAPPOR(k=9, **BUDGETS)


def bits(*places: int) -> bytes:
    return sum(1 << place for place in places).to_bytes(2, "little")


def speaks(event: str, protocol: Any, values: tuple[int, int], *ys: Any, key: Any = None) -> Any:
    return EVENTS[event](protocol, values, [(key, y) for y in ys])


def test_a_symbol_speaks_for_the_value_that_has_it() -> None:
    said = [speaks("eps_1", SYMBOLS, (3, 0), y) for y in range(5)]
    assert said == [1, None, None, 0, None]


def test_a_bit_speaks_where_it_alone_is_set() -> None:
    for first, other, third in product((False, True), repeat=3):
        y = bits(*[8] * first, *[0] * other, *[4] * third)
        expected = None if first == other else int(other)
        assert speaks("eps_1", BITS, (8, 0), y) == expected


def test_a_hash_speaks_where_it_tells_the_two_apart() -> None:
    protocol = loloha.BiLOLOHA(k=8, **BUDGETS)
    for key, values, y in product(range(1, 8), permutations(range(8), 2), range(2)):
        cells = [protocol.encoding.memo_index(key, v) for v in values]
        expected = None if cells[0] == cells[1] else cells.index(y)
        assert speaks("eps_1", protocol, values, y, key=key) == expected


def test_the_side_of_a_threshold_speaks_for_whom_it_fits() -> None:
    told, hidden = (
        loloha.OneBit(k=5, target=target, **BUDGETS) for target in ("distribution", "mean")
    )
    for y in (0, 1):
        assert speaks("eps_1", told, (1, 3), y, key=2) == y
        assert speaks("eps_1", told, (3, 1), y, key=2) == 1 - y
        assert speaks("eps_1", told, (1, 3), y, key=4) is None
        # Where it is not told, it is likelier to lie between the two than beside both.
        assert speaks("eps_1", hidden, (1, 3), y) == y
        assert speaks("eps_1", hidden, (3, 1), y) == 1 - y


def test_the_only_sampled_bucket_speaks_alone_where_hardly_anyone_sampled_both() -> None:
    few, many = (loloha.DBitFlipPM(k=20, b=20, d=d, eps_inf=2.0) for d in (2, 3))
    for values, place in (((0, 9), 0), ((9, 0), 1)):
        assert speaks("eps_1", few, values, b"\1", key=(0, 5)) == place
        assert speaks("eps_1", few, values, b"\0", key=(0, 5)) == 1 - place
        assert speaks("eps_1", many, values, b"\1", key=(0, 5, 7)) is None
        assert speaks("eps_1", few, values, b"\1", key=(3, 5)) is None
    assert speaks("eps_1", few, (0, 5), b"\1", key=(0, 5)) == 0
    assert speaks("eps_1", few, (0, 5), b"\3", key=(0, 5)) is None


def test_two_reports_speak_where_they_agree() -> None:
    for one, other in product(range(5), repeat=2):
        expected = {(3, 3): 0, (0, 0): 1}.get((one, other))
        assert speaks("eps_t, t = 2", SYMBOLS, (3, 0), one, other) == expected
    # What comes after them does not.
    assert speaks("eps_t, t = 2", SYMBOLS, (3, 0), 3, 3, 0, 0) == 0


@pytest.mark.parametrize(("last", "expected"), [(1, 0), (2, 1), (4, None)])
def test_the_last_report_is_that_of_one_of_two_memos(last: int, expected: int | None) -> None:
    first, second = [1, 1, 1, 0, 0, 3, 3, 2], [2, 2, 2, 2, 1, 1, 1, 0]
    assert len(first) == len(second) == STRETCH
    assert speaks("eps_2", SYMBOLS, (0, 1), *first, *second, last) == expected
    assert speaks("eps_2", SYMBOLS, (0, 1), *first, *first, last) is None


@pytest.mark.parametrize(
    ("last", "expected"), [((0, 1), 0), ((1, 5), 0), ((7, 8), 1), ((0, 8), None), ((), None)]
)
def test_the_last_bits_are_nearer_to_one_of_two_memos(
    last: tuple[int, ...], expected: int | None
) -> None:
    """A bit of a memo is what most answers say, and unset where half of them do."""
    first = [bits(0, 1)] * 4 + [bits(0, 1, 5)] * 3 + [bits(5)]
    second = [bits(7, 8)] * 5 + [bits(0)] * 3
    assert speaks("eps_2", BITS, (0, 1), *first, *second, bits(*last)) == expected
