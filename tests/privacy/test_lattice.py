"""Sums of many draws, and what is said of their rounding, against exact arithmetic."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from loloha.privacy.blanket import _sums_of_two
from loloha.privacy.lattice import OUTSIDE, Sum, balance, drift, split, stray

DRAWS = [1, 2, 7, pytest.param(40, marks=pytest.mark.long)]


def some_law(seed: int) -> tuple[Any, Any]:
    """Places in -12..12, and chances down to 10^-14 of them; none that sums to more than 1."""
    rng = np.random.default_rng(seed)
    places = rng.choice(np.arange(-12, 13), size=8, replace=False)
    chances = 10.0 ** rng.uniform(-14, 0, size=8)
    chances[rng.integers(8)] = 1.0
    return places, chances / chances.sum() * rng.choice([1.0, 0.7, 0.01]) * (1 - 1e-15)


def exact_sum(places: Any, chances: Any, n: int) -> dict[int, Fraction]:
    """Law of the sum of n draws, else 0 each, by one power of a whole number."""
    law = {int(x): Fraction(float(p)) for x, p in zip(places, chances, strict=True)}
    law[0] = law.get(0, Fraction(0)) + 1 - sum(law.values())
    whole = math.lcm(*(p.denominator for p in law.values()))
    digit, least = 8 * (n * whole.bit_length() // 8 + 1), min(law)
    packed = sum(int(p * whole) << digit * (x - least) for x, p in law.items())
    raised = (packed**n).to_bytes((n * (max(law) - least) + 1) * digit // 8, "little")
    size = digit // 8
    parts = (raised[i : i + size] for i in range(0, len(raised), size))
    return {
        i + n * least: Fraction(int.from_bytes(part, "little"), whole**n)
        for i, part in enumerate(parts)
    }


def decimal(number: Any) -> Decimal:
    exact = Fraction(number)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


@pytest.mark.parametrize("n", DRAWS)
@pytest.mark.parametrize("seed", range(8))
def test_no_probability_errs_by_more_than_its_bound(seed: int, n: int) -> None:
    places, chances = some_law(seed)
    tilt = balance(places, chances) if seed % 2 else 0.0
    law, exact = Sum.of(places, chances, n, tilt), exact_sum(places, chances, n)
    power = law.of_one**n
    found, error = law._back(power), law._error(power, n)
    with localcontext() as context:
        context.prec = 50
        grown = {x: decimal(p) * (decimal(tilt) * x).exp() for x, p in exact.items()}
        total = sum(grown.values())
        wanted = {x: float(p / total) for x, p in grown.items()}
    inside = np.array([wanted.get(int(x), 0.0) for x in law.places])
    off = np.abs(found - inside) - (error + drift(n) * inside)
    assert off.max() <= 0
    assert error < 1e-10
    # What no point of the window has is no more than is said to be outside of it.
    assert 1 - inside.sum() <= OUTSIDE + 1e-15


@pytest.mark.parametrize("n", DRAWS)
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_on_the_stated_side(seed: int, n: int) -> None:
    places, chances = some_law(seed)
    tilt = balance(places, chances)
    exact = exact_sum(places, chances, n)
    law = Sum.of(places, chances, n, tilt, margin=40)
    mean = sum(max(x, 0) * p for x, p in exact.items())
    found = Fraction(law.positive_part(n))
    assert mean <= found
    if mean > 1e-6:
        assert found <= mean * Fraction(1 + 1e-6)

    rng = np.random.default_rng(seed)
    weights = rng.normal(size=25)
    where = np.arange(-12, 13)
    with localcontext() as context:
        context.prec = 50
        grown = {x: decimal(p) * (decimal(tilt) * x).exp() for x, p in exact.items()}
        total = sum(grown.values())
        sums: dict[int, Decimal] = {}
        for x, p in grown.items():
            for y, weight in zip(where.tolist(), weights, strict=True):
                part = p / total * decimal(weight) * (decimal(tilt) * y).exp()
                sums[x + y] = sums.get(x + y, Decimal(0)) + part
        highest = float(max(sums.values()))
    found_highest = law.highest(n, where, weights)
    assert highest * (1 - 1e-15) <= found_highest
    assert found_highest <= highest + 1e-8 * np.abs(weights * np.exp(tilt * where)).sum()


@pytest.mark.parametrize("n", DRAWS)
@pytest.mark.parametrize("seed", range(8))
def test_a_threshold_tells_no_less_than_is_claimed(seed: int, n: int) -> None:
    places, chances = some_law(seed)
    rng = np.random.default_rng(seed)
    one, two = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    law = Sum.of(places, chances, n, balance(places, chances))
    found = law.best_threshold(n, places, one - 1.5 * two, one + 1.5 * two)
    told: dict[int, Fraction] = {}
    for x, p in exact_sum(places, chances, n).items():
        for y, part in zip(places.tolist(), one - 1.5 * two, strict=True):
            told[x + y] = told.get(x + y, Fraction(0)) + p * Fraction(float(part))
    above, best = Fraction(0), Fraction(0)
    for x in sorted(told, reverse=True):
        above += told[x]
        best = max(best, above)
    assert Fraction(found) <= best
    if best > 1e-6:
        assert found >= best * Fraction(1 - 1e-6)


@pytest.mark.parametrize("p", [0.5000001, 0.6, 0.75, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("m", [1, 2, 20, pytest.param(60, marks=pytest.mark.long)])
def test_sums_of_two_kinds_err_within_their_bound(m: int, p: float) -> None:
    q, ones = 1 - p, np.arange(m + 1)
    law, error = _sums_of_two(ones, m - ones, p, q)
    for j in ones.tolist():
        exact = [Fraction(1)]
        for chance in [Fraction(p)] * j + [Fraction(q)] * (m - j):
            longer = [*exact, Fraction(0)]
            exact = [
                here * (1 - chance) + (before * chance)
                for here, before in zip(longer, [Fraction(0), *exact], strict=True)
            ]
        points = law.shape[1]
        wrapped = [Fraction(0)] * points
        for x, chance in enumerate(exact):
            wrapped[x % points] += chance
        off = max(abs(Fraction(float(a)) - b) for a, b in zip(law[j], wrapped, strict=True))
        assert off <= error[j]
        assert error[j] < 1e-11


def test_splitting_keeps_the_mean_and_the_chance() -> None:
    values, chances = np.array([-2.5, 0.25, 3.0, 1e-12]), np.array([0.1, 0.2, 0.3, 0.4])
    places, parts = split(values, chances)
    assert parts.sum() == pytest.approx(1.0, rel=1e-15)
    assert float(places @ parts) == pytest.approx(float(values @ chances), rel=1e-14)
    assert set(places.tolist()) >= {-3, -2, 0, 1, 3}


@pytest.mark.parametrize(("n", "chance"), [(5, 0.5), (200, 0.1), (10_000, 0.001)])
def test_a_sum_stays_within_its_bound(n: int, chance: float) -> None:
    reach = stray(n * chance * (1 - chance), 1.0)
    both = binom.cdf(n * chance - reach, n, chance) + binom.sf(n * chance + reach, n, chance)
    assert both <= OUTSIDE / 2


def test_beyond_the_largest_power_a_bound_is_none() -> None:
    """Of 160 draws with a tilt of 5: 160 ln((e^5 + 1)/2) is 690.2; and 159 of them, 685.9."""
    places, chances = np.array([1]), np.array([0.5])
    some = Sum.of(places, chances, 159, 5.0).positive_part(159)
    assert 79.5 <= some < math.inf
    total = Sum.of(places, chances, 160, 5.0)
    assert total.positive_part(160) == math.inf
