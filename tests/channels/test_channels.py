"""Randomised response: formulas against high precision, thresholds and laws in exact arithmetic."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest

from loloha import channels
from loloha.channels import (
    BitChannel,
    Pair,
    SymbolChannel,
    TableChannel,
    chained_bits,
    exp_below,
    halved_bit_channel,
    second_bit_channel,
    second_symbol_channel,
    symbol_channel,
    symmetric_bit_channel,
)
from loloha.channels.threshold import table_channel
from loloha.distribution import exact_distribution
from loloha.encodings import Symbols
from loloha.errors import ParameterError
from loloha.rng import SCALE

EPS = [1e-6, 0.05, 1.0, 5.0, 40.0, 700.0]
PAIRS = [(high, low) for high in EPS for low in EPS if low < high] + [
    (high, high * (1 - 1e-9)) for high in EPS[1:]
]
SIZES = [2, 3, 96, 1 << 24]
UNARY_SECOND = {
    "rappor": (symmetric_bit_channel, channels.second_rappor, 0.5),
    "l-osue": (halved_bit_channel, channels.second_losue, 1.0),
    "l-oue": (halved_bit_channel, channels.second_oue_after_oue, 1.0),
    "l-soue": (symmetric_bit_channel, channels.second_oue_after_sue, 0.5),
}


def exp(eps: float) -> Decimal:
    return Decimal(eps).exp()


def close(got: Pair, p: Decimal, q: Decimal, rel: float = 1e-12) -> None:
    """Both numbers to ``rel``, and q is what says how near p is to 1."""
    for name, number, exact in (("p", got.p, p), ("q", got.q, q)):
        assert 0 <= number <= 1, (name, number)
        assert abs(Decimal(number) - exact) <= Decimal(rel) * exact, (name, number, exact)


@pytest.fixture(autouse=True)
def _many_digits() -> Any:
    """e^700 has 305 digits before the point; the naive formulas below may cancel all of them."""
    with localcontext() as context:
        context.prec = 700
        yield


# -- formulas, as MATH writes them


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize("eps", EPS)
def test_grr(eps: float, g: int) -> None:
    a = exp(eps)
    close(channels.grr(eps, g), a / (a + g - 1), 1 / (a + g - 1))


@pytest.mark.parametrize("eps", EPS)
def test_unary(eps: float) -> None:
    a = exp(eps)
    close(channels.sue(eps), a.sqrt() / (a.sqrt() + 1), 1 / (a.sqrt() + 1))
    close(channels.oue(eps), Decimal("0.5"), 1 / (a + 1))


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
def test_second_round_over_symbols(eps_inf: float, eps_1: float, g: int) -> None:
    a, b = exp(eps_inf), exp(eps_1)
    tight = (b * (a + g - 2) - (g - 1)) / (a - b)
    published = (a * b - 1) / (a - b)
    for formula, c in (
        (channels.second_grr, tight),
        (channels.second_grr_published, published),
    ):
        close(formula(eps_inf, eps_1, g), c / (c + g - 1), 1 / (c + g - 1))


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
def test_the_tight_chain_spends_eps_1_and_the_published_one_less(
    eps_inf: float, eps_1: float, g: int
) -> None:
    a, b = exp(eps_inf), exp(eps_1)
    tight = (b * (a + g - 2) - (g - 1)) / (a - b)
    for c, spent in ((tight, "all"), ((a * b - 1) / (a - b), "part")):
        # Both rounds scaled by (a+g-1)(c+g-1).
        p_s, q_s = a * c + g - 1, a + c + g - 2
        if spent == "all" or g == 2:
            assert abs(p_s / q_s / b - 1) < Decimal("1e-300")
        else:
            assert 1 < p_s / q_s < b


@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
def test_second_round_of_symmetric_bits(eps_inf: float, eps_1: float) -> None:
    a, b = exp(eps_inf), exp(eps_1)
    p1, p_star = a.sqrt() / (a.sqrt() + 1), b.sqrt() / (b.sqrt() + 1)
    p2 = (p_star - (1 - p1)) / (2 * p1 - 1)
    close(channels.second_rappor(eps_inf, eps_1), p2, 1 - p2)
    p2 = (a * b - 1) / (a - b + a * b - 1)
    close(channels.second_losue(eps_inf, eps_1), p2, 1 - p2)


@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
@pytest.mark.parametrize("name", ["l-oue", "l-soue"])
def test_second_round_that_keeps_half(name: str, eps_inf: float, eps_1: float) -> None:
    """q2 solves odds(p_star, q_star) = b; where no q2 >= 0 does, the error says the bound."""
    formula = UNARY_SECOND[name][1]
    a, b, half = exp(eps_inf), exp(eps_1), Decimal("0.5")
    root_a = a.sqrt()
    p1, q1 = (half, 1 / (a + 1)) if name == "l-oue" else (root_a / (root_a + 1), 1 / (root_a + 1))
    # p_star = p1/2 + (1-p1) q2, q_star = q1/2 + (1-q1) q2; odds(p_star, q_star) - b is a quadratic.
    square = (1 - p1) * (1 - q1) * (b - 1)
    linear = (1 - p1) * (1 - q1 / 2) - p1 / 2 * (1 - q1)
    linear -= b * ((1 - p1 / 2) * (1 - q1) - (1 - p1) * q1 / 2)
    constant = p1 / 2 * (1 - q1 / 2) - b * (1 - p1 / 2) * q1 / 2
    if constant <= 0:
        largest = (p1 / 2 * (1 - q1 / 2) / ((1 - p1 / 2) * q1 / 2)).ln()
        message = f"eps_1 must be below {float(largest):.6g} for eps_inf = {eps_inf:.6g}, got "
        with pytest.raises(ParameterError, match=message):
            formula(eps_inf, eps_1)
        return
    q2 = 2 * constant / (-linear + (linear**2 - 4 * square * constant).sqrt())
    close(formula(eps_inf, eps_1), half, q2)


# -- exact thresholds


def spends(ratio: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@pytest.mark.parametrize("eps", EPS)
def test_a_rational_just_below_the_exponential(eps: float) -> None:
    bound = exp_below(Fraction(eps))
    gap = 1 - Decimal(bound.numerator) / Decimal(bound.denominator) / exp(eps)
    assert 0 < gap < Decimal("1e-54")


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize("eps", EPS)
def test_the_realised_loss_is_the_largest_allowed(eps: float, g: int) -> None:
    """PAINS 13: p is a dyadic rational; one step more would spend more than asked."""
    channel = symbol_channel(eps, g)
    assert channel.p.denominator <= SCALE
    assert channel.p + (g - 1) * channel.q == 1
    assert channel.q > 0
    assert 0 < spends(channel.p / channel.q) <= Decimal(eps)
    if channel.keep < SCALE - 1:
        more = SymbolChannel(g, channel.keep + 1)
        assert spends(more.p / more.q) > Decimal(eps)


@pytest.mark.parametrize("eps", EPS)
def test_realised_bits_spend_the_largest_allowed(eps: float) -> None:
    symmetric, halved = symmetric_bit_channel(eps), halved_bit_channel(eps)
    assert symmetric.p + symmetric.q == 1
    assert symmetric == BitChannel(symbol_channel(eps, 2).keep, SCALE - symbol_channel(eps, 2).keep)
    assert halved.p == Fraction(1, 2)
    assert 0 < spends((1 - halved.q) / halved.q) <= Decimal(eps)
    if halved.unset > 1:
        lower = Fraction(halved.unset - 1, SCALE)
        assert spends((1 - lower) / lower) > Decimal(eps)


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
@pytest.mark.parametrize(
    ("formula", "exact"),
    [
        (channels.second_grr, channels.exact_second_grr),
        (channels.second_grr_published, channels.exact_second_grr_published),
    ],
)
def test_a_chain_over_symbols_realises_at_most_eps_1(
    formula: Any, exact: Any, eps_inf: float, eps_1: float, g: int
) -> None:
    first, asked = symbol_channel(eps_inf, g), exact(eps_inf, eps_1, g)
    assert math.isclose(asked, formula(eps_inf, eps_1, g).p, rel_tol=1e-13)
    second = second_symbol_channel(first, eps_1, asked)
    p_s, q_s = Symbols(g).chain(first.p, first.q, second.p, second.q)
    assert p_s + (g - 1) * q_s == 1
    assert p_s == first.p * second.p + (g - 1) * first.q * second.q
    assert q_s == first.p * second.q + first.q * second.p + (g - 2) * first.q * second.q
    assert 0 < spends(p_s / q_s) <= Decimal(eps_1)
    assert second.p <= Fraction(float(asked))
    if second.keep < min(SCALE, int(float(asked) * SCALE)):
        larger = SymbolChannel(g, second.keep + 1)
        p_s, q_s = Symbols(g).chain(first.p, first.q, larger.p, larger.q)
        assert spends(p_s / q_s) > Decimal(eps_1)


@pytest.mark.parametrize(("eps_inf", "eps_1"), PAIRS)
@pytest.mark.parametrize("name", UNARY_SECOND)
def test_a_chain_over_bits_realises_at_most_eps_1(name: str, eps_inf: float, eps_1: float) -> None:
    make, formula, share = UNARY_SECOND[name]
    first = make(eps_inf * share)
    try:
        asked = formula(eps_inf, eps_1)
    except ParameterError:
        return
    symmetric = asked.p > 0.5
    second = second_bit_channel(first, eps_1, symmetric=symmetric)
    assert abs(second.unset - int(asked.q * SCALE)) < 1 << 12
    assert second.p == (1 - second.q if symmetric else Fraction(1, 2))
    p, q = chained_bits(first, second)
    assert p == first.p * second.p + (1 - first.p) * second.q
    assert q == first.q * second.p + (1 - first.q) * second.q
    assert 0 < spends(p * (1 - q) / ((1 - p) * q)) <= Decimal(eps_1)
    if second.unset:
        lower = second.unset - 1
        p, q = chained_bits(first, BitChannel(SCALE - lower if symmetric else SCALE // 2, lower))
        assert spends(p * (1 - q) / ((1 - p) * q)) > Decimal(eps_1)


# -- what a device draws


@pytest.mark.parametrize(("g", "keep"), [(2, SCALE // 3), (3, 1), (4, SCALE - 1), (5, SCALE)])
def test_the_truth_has_its_exact_probability_and_lies_are_uniform(g: int, keep: int) -> None:
    """PAINS 1, 2: a lie never equals the truth, so the truth has probability p and not more."""
    channel = SymbolChannel(g, keep)
    for x in range(g):
        law = exact_distribution(lambda rng, x=x: channel.draw(rng, x))
        expected = {y: channel.p if y == x else channel.q for y in range(g)}
        assert law == {y: p for y, p in expected.items() if p}


def test_a_bit_is_answered_with_its_own_probability() -> None:
    channel = BitChannel(SCALE // 2, SCALE // 8)
    chances = {1: channel.p, 0: channel.q}
    for bits in range(8):
        law = exact_distribution(lambda rng, bits=bits: channel.draw(rng, 3, bits))
        for drawn in range(8):
            factors = [
                chance if drawn >> place & 1 else 1 - chance
                for place in range(3)
                for chance in [chances[bits >> place & 1]]
            ]
            assert law[drawn] == math.prod(factors)


@pytest.mark.parametrize("g", [2, 3, 5])
@pytest.mark.parametrize("eps", [0.3, 1.0, 4.0])
def test_the_loss_of_a_channel_is_that_of_its_distribution(eps: float, g: int) -> None:
    """PAINS 1: the loss is read off the enumerated law, not off the formula."""
    channel = symbol_channel(eps, g)
    laws = [exact_distribution(lambda rng, x=x: channel.draw(rng, x)) for x in range(g)]
    worst = max(one[y] / other[y] for one in laws for other in laws for y in range(g))
    assert worst == channel.p / channel.q
    assert math.isclose(math.log(worst), eps, abs_tol=1e-12)


@pytest.mark.parametrize(("g", "identity", "constant"), [
    (2, SCALE // 3, SCALE // 5), (3, SCALE // 4, SCALE // 2), (4, 1, SCALE - 1), (3, 0, 0),
    (3, SCALE, 0), (3, SCALE // 7, SCALE),
])  # fmt: skip
def test_a_table_is_the_identity_one_symbol_or_any_permutation(
    g: int, identity: int, constant: int
) -> None:
    """Of whole tables, and of each answer in one."""
    channel = TableChannel(g, identity, constant)
    same, one = Fraction(identity, SCALE), Fraction(constant, SCALE)
    expected = dict.fromkeys(permutations(range(g)), (1 - same) * (1 - one) / math.factorial(g))
    expected[tuple(range(g))] += same
    expected |= {(y,) * g: (1 - same) * one / g for y in range(g)}
    law = exact_distribution(channel.table)
    assert law == {table: p for table, p in expected.items() if p}
    for x, y in product(range(g), repeat=2):
        chance = sum((p for table, p in law.items() if table[x] == y), Fraction(0))
        assert chance == (channel.p if x == y else channel.q)
    assert exact_distribution(lambda rng: channel.draw(rng, g - 1)).get(0, 0) == channel.q


@pytest.mark.parametrize("g", [3, 5])
@pytest.mark.parametrize("m0", [None, 0.0, 0.01, 0.1])
def test_one_table_keeps_the_truth_as_often_and_is_constant_as_often_as_asked(
    g: int, m0: float | None
) -> None:
    """Without a wish, two cells are answered alike as often as two independent ones."""
    alone = symbol_channel(math.log(3), g)
    channel = table_channel(alone, m0)
    same, constant = Fraction(channel.identity, SCALE), Fraction(channel.constant, SCALE)
    assert 0 <= alone.p - channel.p < Fraction(2, SCALE)
    alike = (1 + same) / g if m0 is None else Fraction(m0) / (1 - same)
    assert 0 <= alike - constant < Fraction(2, SCALE)


@pytest.mark.parametrize("g", [2, 3, 4])
@pytest.mark.parametrize("eps", [0.3, 1.1, 5.0])
@pytest.mark.parametrize("m0", [None, 0.0, 0.02])
def test_the_loss_of_answers_of_one_table_is_that_of_its_distribution(
    g: int, eps: float, m0: float | None
) -> None:
    """Of any two orders of the symbols that are asked for: rounded up, and hardly."""
    if m0 and m0 >= g * channels.grr(eps, g).q:
        return
    law = exact_distribution(table_channel(symbol_channel(eps, g), m0).table)
    for answers in range(2, g + 1):
        orders = [*permutations(range(g), answers)]
        seen: list[Counter[tuple[int, ...]]] = [Counter() for _ in orders]
        for (table, chance), (place, order) in product(law.items(), enumerate(orders)):
            seen[place][tuple(table[x] for x in order)] += chance  # type: ignore[assignment]
        worst = max(seen[0][y] / other[y] for other in seen for y in seen[0])
        told = channels.table_loss(eps, g, m0, answers)
        if (g, m0) != (2, None):
            assert spends(worst) <= Decimal(told) <= spends(worst) * (1 + Decimal("1e-11"))
        else:
            assert told == 2 * eps


@pytest.mark.parametrize("cls", [SymbolChannel, BitChannel, TableChannel], ids=lambda c: c.__name__)
def test_answers_to_all_symbols_are_drawn_together_where_there_is_a_table(cls: Any) -> None:
    assert cls.joint == hasattr(cls, "table")
