"""Random sources: entropy by default, exact thresholds, seeds only where they are named."""

import inspect
import math
import os
import random
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loloha
from laws.variants import FLAGSHIPS, Variant
from loloha import rng as rng_module
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.protocols import REGISTRY
from loloha.rng import DIGITS, SCALE, Rng, SecureRng, SimulationRng, compare_all
from scripted import ScriptedRng


def test_the_secure_source_reads_the_operating_system_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return found.pop().to_bytes(count, "little")

    monkeypatch.setattr(os, "urandom", entropy)
    rng, spare = SecureRng(), 7
    found = [SCALE - 1 << 3 | spare, 7 << 3 | spare, 7 << 3 | spare]
    assert rng.bernoulli(8)
    assert not rng.bernoulli(7)
    assert rng.bernoulli(SCALE)
    # What is not below five of the eight numbers of three bits is drawn again.
    found = [4 << 5, 5 << 5, 7 << 5 | 31]
    assert rng.below(5) == 4
    found = [256 << 7, 0]
    assert (rng.below(1), rng.below(257)) == (0, 256)
    assert asked == [7, 7, 7, 1, 1, 1, 0, 2]


def test_each_number_below_n_comes_from_equally_many_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sees a modulus, a shift too many and a bound too high, which all favour some numbers."""
    for n in range(1, 40):
        size = ((n - 1).bit_length() + 7) // 8
        counts = [0] * n
        for word in range(256**size):
            drawn = iter([word.to_bytes(size, "little")])
            monkeypatch.setattr(os, "urandom", lambda _, drawn=drawn: next(drawn))
            # Where the first draw is thrown away, there is no second one.
            with suppress(StopIteration):
                counts[SecureRng().below(n)] += 1
        assert counts == [max(counts[0], 1)] * n


@pytest.mark.parametrize(
    "make", [SecureRng, lambda: SimulationRng(0)], ids=["secure", "simulation"]
)
def test_certain_and_impossible_are_exact(make: Any) -> None:
    """PAINS 13: the sampler compares integers; nothing is rounded at either end."""
    rng = make()
    assert all(rng.bernoulli(SCALE) for _ in range(100))
    assert not any(rng.bernoulli(0) for _ in range(100))
    assert {rng.below(1) for _ in range(20)} == {0}


def test_a_threshold_is_a_probability_out_of_two_to_the_53() -> None:
    """PAINS 13: of all 2^53 draws exactly ``threshold`` say yes."""
    for threshold in (1, 2, SCALE // 3, SCALE - 1):
        assert ScriptedRng([threshold - 1]).bernoulli(threshold)
        assert not ScriptedRng([threshold]).bernoulli(threshold)


def spread(numbers: list[int], width: int, spare: int) -> bytes:
    """Random bytes that hold the numbers, each in so many bytes, with these bits above it."""
    return b"".join((number | spare).to_bytes(width, "little") for number in numbers)


@pytest.mark.parametrize(("size", "digits"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_draws_at_once_have_the_distribution_of_single_draws(size: int, digits: int) -> None:
    """PAINS 13: every threshold, certain and impossible ones too, by enumeration.

    The law is that of the answers and the randomness taken for them: the one tells no more of the
    chosen places with the other than without it.
    """
    scale = 1 << digits
    for threshold, other, chosen in product(range(scale + 1), range(scale + 1), range(1 << size)):

        def run(rng: Rng, asked: Any = (size, chosen, threshold, other)) -> tuple[int, Any]:
            taken: list[int] = []

            def randbytes(count: int) -> bytes:
                taken.append(count)
                return spread([rng.below(scale) for _ in range(count)], 1, 0xFF - (scale - 1))

            return compare_all(*asked, randbytes=randbytes, digits=digits), tuple(taken)

        chances = [
            Fraction(threshold if chosen >> place & 1 else other, scale) for place in range(size)
        ]
        expected = {
            (drawn, (size,)): math.prod(
                chance if drawn >> place & 1 else 1 - chance for place, chance in enumerate(chances)
            )
            for drawn in range(1 << size)
        }
        assert exact_distribution(run) == {outcome: p for outcome, p in expected.items() if p}


@given(st.data())
def test_draws_at_once_compare_whole_numbers(data: st.DataObject) -> None:
    """The device's own 53 digits: each number is held against its own threshold."""
    limits = st.one_of(st.sampled_from([0, 1, SCALE // 2, SCALE - 1, SCALE]), st.integers(0, SCALE))
    size = data.draw(st.integers(1, 70))
    threshold, other = data.draw(limits), data.draw(limits)
    chosen = data.draw(st.integers(0, (1 << size) - 1))
    near = st.sampled_from(
        [max(0, threshold - 1), min(threshold, SCALE - 1), min(other, SCALE - 1)]
    )
    numbers = data.draw(st.lists(near | st.integers(0, SCALE - 1), min_size=size, max_size=size))
    spare = data.draw(st.integers(0, 7)) << DIGITS

    def randbytes(count: int) -> bytes:
        assert count == 7 * size
        return spread(numbers, 7, spare)

    found = compare_all(size, chosen, threshold, other, randbytes=randbytes)
    limit = [threshold if chosen >> i & 1 else other for i in range(size)]
    assert [found >> i & 1 for i in range(size)] == [
        number < most for number, most in zip(numbers, limit, strict=True)
    ]
    assert found >> size == 0


def test_the_device_draws_at_once_from_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    numbers = spread([4, 5, 4, 5], 7, 0)
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or numbers)
    assert SecureRng().bernoullis(4, 0b0011, 5, 6) == 0b1101
    assert asked == [28]
    assert SimulationRng(1).bernoullis(4, 0b0011, SCALE, 0) == 0b0011
    assert SecureRng().bernoullis(4, 0b0011, SCALE, 0) == 0b0011


def test_sampling_follows_the_threshold() -> None:
    """Sees a source that ignores its threshold; two-sided, alpha = 2e-9 (z = 6)."""
    n, seed, p = 40_000, 5, 0.3
    rng = SimulationRng(seed)
    hits = sum(rng.bernoulli(int(p * SCALE)) for _ in range(n))
    z = (hits - n * p) / (n * p * (1 - p)) ** 0.5
    assert abs(z) < 6, f"seed={seed} n={n} seen={hits} expected={n * p} z={z:.2f}"


def test_equal_seeds_give_equal_draws() -> None:
    """PAINS 12: tests and simulations can be repeated."""

    def draws(seed: int) -> list[Any]:
        rng = SimulationRng(seed)
        return [rng.bernoulli(SCALE // 2) for _ in range(30)] + [rng.below(10) for _ in range(30)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_nothing_but_the_named_source_can_be_seeded() -> None:
    """PAINS 12: a seed is given to a source called simulation, never to a protocol or client."""
    with pytest.raises(TypeError):
        SecureRng(7)  # type: ignore[call-arg]
    for cls in (loloha.Client, *REGISTRY.values()):
        assert "seed" not in inspect.signature(cls).parameters


def test_a_script_is_replayed_and_bounded() -> None:
    rng = ScriptedRng([0, 5, 2])
    assert rng.bernoulli(1)
    assert rng.below(6) == 5
    assert not rng.finished()
    assert ScriptedRng([]).finished()
    with pytest.raises(ParameterError, match="the script ran out"):
        ScriptedRng([]).below(3)
    for draw in (3, -1):
        with pytest.raises(ParameterError, match=r"each draw must lie in 0\.\.2, got "):
            ScriptedRng([draw]).below(3)
    with pytest.raises(ParameterError, match="each draw must lie in"):
        ScriptedRng([SCALE]).bernoulli(1)


@pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)
def test_the_client_draws_from_the_operating_system_alone(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PAINS 11: every other source raises, and the whole life of a client still works."""

    def forbidden(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the client path must draw from the operating system only")

    for name in ("random", "getrandbits", "randrange", "randint", "choice", "shuffle", "sample"):
        monkeypatch.setattr(random, name, forbidden)
    for name in ("random", "randbytes", "seed"):
        monkeypatch.setattr(random.Random, name, forbidden)
    for name in ("random", "randint", "choice", "default_rng", "RandomState", "Generator"):
        monkeypatch.setattr(np.random, name, forbidden)
    monkeypatch.setattr("loloha.rng.random.Random", forbidden)
    client = variant.build().client()
    for round in range(5):
        client.report(round % 2, round=round)
    client.reset()
    client.report(0, round=9)
    loloha.Client.from_dict(client.to_dict()).report(1, round=10)


def test_a_client_is_secure_by_default() -> None:
    """PAINS 11: two clients of one program never agree on what they draw."""
    protocol = loloha.protocol("dbitflippm", k=256, eps_inf=1.0, d=128)
    assert protocol.client().report(3, round=0) != protocol.client().report(3, round=0)
    assert isinstance(protocol.client()._rng, SecureRng)


def test_primitives_of_all_sources_have_one_distribution() -> None:
    assert exact_distribution(lambda rng: rng.bernoulli(SCALE // 4))[True] * 4 == 1


def test_numbers_side_by_side_are_cached_if_few() -> None:
    """So that memory stays bounded: what a large answer takes is forgotten."""
    for size, kept in ((1, 1), (rng_module._SMALL, 1), (rng_module._SMALL + 1, 0)):
        rng_module._small.cache_clear()
        assert rng_module._side_by_side(size, 5, 2) == sum(5 << 16 * i for i in range(size))
        assert rng_module._small.cache_info().currsize == kept
