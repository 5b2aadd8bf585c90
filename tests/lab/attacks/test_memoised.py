"""The fast attack on memoised bits has the distribution of the clients that it stands for."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.population.samplers.enumerated import EnumeratedDraws
from loloha.protocols import Protocol
from loloha.rng import Rng
from loloha_lab.attacks.memoised import detect_memoised, exposed, visited


def test_distinct_values_are_listed() -> None:
    visits = visited(np.array([[3, 1, 3], [2, 2, 2]]))
    assert (visits.n, visits.users.tolist(), visits.buckets.tolist()) == (2, [0, 0, 1], [1, 3, 2])


def exact_exposure(protocol: Protocol, values: list[int]) -> Fraction:
    """Chance that a client's memoised answers to ``values`` all differ, by enumeration."""

    def run(rng: Rng) -> bool:
        client = protocol.client(rng=rng)
        return len({client.report(v, round=t).y for t, v in enumerate(values)}) == len(values)

    return exact_distribution(run).get(True, Fraction(0))


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (loloha.DBitFlipPM(k=4, eps_inf=0.5), [0, 1]),
        (loloha.DBitFlipPM(k=3, eps_inf=6.0), [0, 1, 2]),
        (loloha.DBitFlipPM(k=3, eps_inf=1.0, d=1), [0, 1]),
        (loloha.DBitFlipPM(k=3, eps_inf=1.0, d=1, calibration="published"), [2]),
        (loloha.DBitFlipPM(k=4, eps_inf=1.0, d=2), [0, 3]),
    ],
    ids=str,
)
def test_the_fast_attack_has_the_distribution_of_the_clients(
    protocol: Protocol, values: list[int]
) -> None:
    # Sees a user's own bit drawn like the others, equal answers compared on a prefix only, and a
    # sample redrawn for each value. Alpha 2e-9: six standard deviations.
    n, seed = 4_000, 3
    chance = float(exact_exposure(protocol, values))
    visits = visited(np.tile(values, (n, 1)))
    seen = detect_memoised(protocol, visits, np.random.default_rng(seed)).exposed
    spread = max((n * chance * (1 - chance)) ** 0.5, 1e-9)
    z = (seen - n * chance) / spread
    assert abs(z) < 6, f"seed {seed}, n {n}: saw {seen}, expected {n * chance:.1f}, z = {z:.2f}"


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (loloha.DBitFlipPM(k=3, eps_inf=1.0, d=1), [0, 2]),
        (loloha.DBitFlipPM(k=4, eps_inf=1.0, d=2), [0, 3]),
        (loloha.DBitFlipPM(k=3, eps_inf=1.0, d=2), [0, 1, 2]),
        (loloha.DBitFlipPM(k=3, eps_inf=1.0, d=1, calibration="published"), [1]),
    ],
    ids=str,
)
def test_a_sampled_user_is_exposed_with_exactly_the_chance_of_a_client(
    protocol: Protocol, values: list[int]
) -> None:
    encoding: Any = protocol.encoding
    channel: Any = protocol.first_channel
    visits = visited(np.array([values]))
    law = exact_distribution(lambda rng: exposed(encoding, channel, visits, EnumeratedDraws(rng)))
    assert law.get(1, Fraction(0)) == exact_exposure(protocol, values)


def test_bits_beyond_the_first_word_decide_too() -> None:
    # One pair in a hundred agrees on the 48 bits that are drawn first, and has its own buckets
    # beyond; on all 200 bits none does (chance 2e-6). Sees a comparison that stops too early.
    protocol = loloha.DBitFlipPM(k=200, eps_inf=6.0)
    n = 20_000
    visits = visited(np.tile([60, 190], (n, 1)))
    assert detect_memoised(protocol, visits, np.random.default_rng(4)).exposed == n


def test_protocols_with_a_second_round_are_refused() -> None:
    protocol = loloha.RAPPOR(k=4, eps_inf=1.0, eps_1=0.5)
    with pytest.raises(ParameterError, match="record_answers"):
        detect_memoised(protocol, visited(np.zeros((1, 1), int)), np.random.default_rng(0))
