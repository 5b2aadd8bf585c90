"""The guess of the current value: the filters against enumeration, and against each other."""

import itertools
import math
from collections import defaultdict
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from loloha.protocols import REGISTRY, Protocol

from loloha import attacks, law
from loloha.errors import ParameterError
from loloha.study.attacks.filtering import SymbolMemos

BUDGETS: dict[str, Any] = {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0}


def example(name: str, **params: Any) -> Protocol:
    known = {field.name for field in fields(REGISTRY[name])}
    return REGISTRY[name](**{key: BUDGETS[key] for key in BUDGETS.keys() & known} | params)


def bayes(protocol: Protocol, prior: list[float], change: float, rounds: int) -> list[float]:
    """Success of the optimal guess after each round, from the device's exact law."""
    success = []
    for t in range(1, rounds + 1):
        joint: dict[Any, float] = defaultdict(float)
        for history in itertools.product(range(protocol.k), repeat=t):
            chance = prior[history[0]]
            for a, b in itertools.pairwise(history):
                chance *= change * prior[b] + (1 - change) * (a == b)

            def run(rng: Any, history: tuple[int, ...] = history) -> Any:
                client = protocol.client(rng=rng)
                sent = [client.report(v, round=i) for i, v in enumerate(history)]
                return tuple((one.key, one.y) for one in sent)

            for outcome, weight in law.exact_law(run).items():
                joint[outcome, history[-1]] += chance * float(weight)
        best: dict[Any, float] = defaultdict(float)
        for (outcome, _), weight in joint.items():
            best[outcome] = max(best[outcome], weight)
        success.append(sum(best.values()))
    return success


@pytest.mark.parametrize("method", ["exact", "particles"])
@pytest.mark.parametrize(
    "protocol",
    [
        example("biloloha", k=3),
        example("l-grr", k=3),
        example("l-grr", k=2),
        example("rappor", k=2),
        example("l-osue", k=2),
        example("l-soue", k=2),
        example("dbitflippm", k=3, b=3, d=1),
        example("dbitflippm", k=3, b=3, d=2),
        example("dbitflippm", k=2, b=2, d=2),
        example("dbitflippm", k=2, b=2, d=1),
    ],
    ids=str,
)
def test_the_filter_is_optimal(protocol: Protocol, method: Any) -> None:
    """4 000 users; the belief is compared, whose spread is small: five of its errors and 0.004."""
    prior = {2: [0.6, 0.4], 3: [0.45, 0.35, 0.2]}[protocol.k]
    optimal = bayes(protocol, prior, 0.3, 3)
    n = 4000 if method == "exact" else 1000
    found = attacks.guess_values(protocol, prior, 0.3, 3, n=n, method=method, rng=5)
    assert found.exact is (method == "exact")
    assert found.prior == max(prior)
    assert found.expected == pytest.approx(optimal, abs=0.25 / math.sqrt(n) + 0.004)
    assert (np.abs(found.success - optimal) < 5 * found.error).all()


def test_one_table_for_life_is_filtered_as_one() -> None:
    """Answers drawn together tell of each other: the filter starts from their exact law."""
    for m0 in (None, 0.0):
        protocol = example("ololoha", k=3, g=3, memo="joint", m0=m0)
        channel: Any = protocol.first_channel
        tables, chances = SymbolMemos.of(protocol).chances()
        drawn = law.exact_law(lambda rng, channel=channel: tuple(channel.table(rng)))
        for table, chance in zip(tables.tolist(), chances, strict=True):
            assert chance == pytest.approx(float(drawn.get(tuple(table), 0)), abs=1e-12)
    with pytest.raises(ParameterError, match="at most 4 cells"):
        attacks.guess_values(example("ololoha", k=9, g=7, memo="joint"), [1 / 9] * 9, 0.3, 2, rng=5)


@pytest.mark.parametrize(("protocol", "n"), [
    (example("ololoha", k=9, g=3), 300),
    (example("rappor", k=3), 300),
    (example("l-osue", k=3), 300),
    (example("dbitflippm", k=8, b=4, d=2), 300),
    (example("dbitflippm", k=9, b=3, d=3), 100),
], ids=str)  # fmt: skip
def test_particles_agree_with_the_exact_filter(protocol: Protocol, n: int) -> None:
    prior = np.arange(1, protocol.k + 1) / (protocol.k * (protocol.k + 1) / 2)
    one, other = (
        attacks.guess_values(protocol, prior, 0.1, 12, n=n, method=method, rng=4)
        for method in ("exact", "particles")
    )  # type: ignore[misc]
    # The same users and reports: only the particles differ.
    assert other.expected == pytest.approx(one.expected, abs=0.01)
    assert other.success == pytest.approx(one.success, abs=0.03)


def test_hashing_keeps_the_value_hidden_for_ever() -> None:
    """A bound by counting: with the cell known for certain, its likeliest value remains a guess."""
    protocol = example("biloloha", k=32)
    found = attacks.guess_values(protocol, np.full(32, 1 / 32), 0.0, 60, n=400, rng=1)
    assert found.success[-1] < 2 / 32 + 5 * found.error[-1]
    assert (np.diff(found.expected) > -0.005).all()


def test_bits_tell_more_of_the_value_than_a_hash_does() -> None:
    """At k = 12 and a value that seldom changes: the same budgets, the same users."""
    prior = np.full(12, 1 / 12)
    found = {
        name: attacks.guess_values(example(name, k=12), prior, 0.02, 12, n=100, rng=3)
        for name in ("rappor", "l-osue", "biloloha")
    }
    hashed = found["biloloha"]
    # Calibrated, as the filter is exact: what the observer believes is how often it is right.
    assert hashed.exact
    assert (np.abs(hashed.success - hashed.expected) < 5 * np.maximum(hashed.error, 0.02)).all()
    assert found["rappor"].success[-1] > found["biloloha"].success[-1]


def test_a_filter_that_is_too_large_is_refused() -> None:
    with pytest.raises(ParameterError, match="method must be 'particles' for 8 memos"):
        attacks.guess_values(example("rappor", k=8), [1 / 8] * 8, 0.1, 2, method="exact", rng=1)
