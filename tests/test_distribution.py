"""The tool that the other laws stand on: exact output laws of code that draws."""

import math
from fractions import Fraction

import pytest

from loloha.distribution import exact_distribution, loss_between
from loloha.rng import SCALE, Rng

HALF = SCALE // 2


def two_coins(rng: Rng) -> int:
    return rng.bernoulli(HALF) + rng.bernoulli(SCALE // 4)


def test_every_path_is_weighed_exactly() -> None:
    assert exact_distribution(two_coins) == {
        0: Fraction(3, 8),
        1: Fraction(4, 8),
        2: Fraction(1, 8),
    }


def test_the_tree_may_depend_on_what_was_drawn() -> None:
    def first_head(rng: Rng) -> int:
        return next((turn for turn in range(3) if rng.bernoulli(HALF)), 3)

    assert exact_distribution(first_head) == {
        0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 8), 3: Fraction(1, 8)
    }  # fmt: skip


def test_integers_are_uniform() -> None:
    assert exact_distribution(lambda rng: (rng.below(3), rng.below(2))) == {
        (i, j): Fraction(1, 6) for i in range(3) for j in range(2)
    }


def test_code_that_draws_nothing_is_certain() -> None:
    assert exact_distribution(lambda rng: "same") == {"same": 1}


@pytest.mark.parametrize(("threshold", "outcome"), [(0, False), (SCALE, True)])
def test_impossible_branches_are_not_taken(threshold: int, outcome: bool) -> None:
    assert exact_distribution(lambda rng: rng.bernoulli(threshold)) == {outcome: 1}


def test_the_smallest_probability_is_not_lost() -> None:
    assert exact_distribution(lambda rng: rng.bernoulli(1))[True] == Fraction(1, SCALE)


def test_loss_is_the_largest_log_ratio_of_either_side() -> None:
    one = {"a": Fraction(3, 4), "b": Fraction(1, 4)}
    other = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert loss_between(one, other) == loss_between(other, one) == math.log(2)
    assert loss_between(one, one) == 0.0


def test_a_small_loss_keeps_its_digits() -> None:
    tiny = Fraction(1, 10**12)
    one = {"a": Fraction(1, 2) + tiny, "b": Fraction(1, 2) - tiny}
    other = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    # ln(1 / (1 - 2e-12)) = 2e-12 + 2e-24 + ...
    assert loss_between(one, other) == pytest.approx(2e-12, rel=1e-11, abs=0)


def test_what_only_one_side_can_produce_costs_everything() -> None:
    one = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert loss_between(one, {"a": Fraction(1)}) == math.inf
    assert loss_between({"a": Fraction(1)}, one) == math.inf
