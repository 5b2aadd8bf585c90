"""The guess of the current value: the filters against enumeration, and against each other."""

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from laws.variants import example
from loloha import distribution
from loloha.errors import ParameterError
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import Protocol
from loloha_lab import attacks
from loloha_lab.attacks import filtering
from loloha_lab.attacks.memo import BitMemos, SymbolMemos
from loloha_lab.attacks.value import _cell_prior, _judged, _values


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

            for outcome, weight in distribution.exact_distribution(run).items():
                joint[outcome, history[-1]] += chance * float(weight)
        best: dict[Any, float] = defaultdict(float)
        for (outcome, _), weight in joint.items():
            best[outcome] = max(best[outcome], weight)
        success.append(sum(best.values()))
    return success


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
def test_the_exact_filter_is_optimal(protocol: Protocol) -> None:
    """4 000 users; the belief is compared, whose spread is small: five of its errors and 0.004."""
    prior = {2: [0.6, 0.4], 3: [0.45, 0.35, 0.2]}[protocol.k]
    optimal = bayes(protocol, prior, 0.3, 3)
    found = attacks.guess_values(protocol, prior, 0.3, 3, n=4000, method="exact", rng=5)
    assert found.exact
    assert found.prior == max(prior)
    assert found.expected == pytest.approx(optimal, abs=0.25 / math.sqrt(4000) + 0.004)
    assert (np.abs(found.success - optimal) < 5 * found.error).all()


def test_one_table_for_life_is_filtered_as_one() -> None:
    """Answers drawn together tell of each other: the filter starts from their exact law."""
    for m0 in (None, 0.0):
        protocol = example("ololoha", k=3, g=3, memo="joint", m0=m0)
        channel: Any = protocol.first_channel
        tables, chances = SymbolMemos.of(protocol).chances()
        drawn = distribution.exact_distribution(
            lambda rng, channel=channel: tuple(channel.table(rng))
        )
        for table, chance in zip(tables.tolist(), chances, strict=True):
            assert chance == pytest.approx(float(drawn.get(tuple(table), 0)), abs=1e-12)
    with pytest.raises(ParameterError, match="at most 4 cells"):
        attacks.guess_values(example("ololoha", k=9, g=7, memo="joint"), [1 / 9] * 9, 0.3, 2, rng=5)


def skewed(k: int) -> Any:
    return np.arange(1, k + 1) / (k * (k + 1) / 2)


@pytest.mark.parametrize(
    "protocol",
    [
        example("l-osue", k=3),
        example("l-grr", k=5),
        example("dbitflippm", k=8, b=4, d=2),
        *(
            pytest.param(protocol, marks=pytest.mark.long)
            for protocol in (
                example("rappor", k=2),
                example("rappor", k=3),
                example("l-soue", k=2),
                example("ololoha", k=9, g=3),
                example("dbitflippm", k=3, b=3, d=1),
                example("dbitflippm", k=9, b=3, d=3),
            )
        ),
    ],
    ids=str,
)
def test_particles_agree_with_the_exact_filter(protocol: Protocol) -> None:
    """Posteriors of the same reports, late in a series, where a plain filter is off by 0.05."""
    n, rounds, prior = 16, 48, skewed(protocol.k)
    values = _values(prior, 0.1, rounds, n, np.random.default_rng(1))
    sent = list(sample_reports(protocol, History(values, protocol.k), Draws(1)))
    ys = np.stack([np.asarray(one.ys) for one in sent], axis=1)
    memos: Any = (SymbolMemos if protocol.encoding.symbols else BitMemos).of(protocol)
    cells = protocol.encoding.memo_indices(sent[0].keys, np.arange(protocol.k), n)
    weight = _cell_prior(cells, prior, len(memos.blind))
    found, optimal = (
        np.stack(list(run(memos, weight, 0.1, ys, np.random.default_rng(2))))[rounds // 2 :]
        for run in (filtering.particles, filtering.exact)
    )
    assert found.sum(axis=3) == pytest.approx(1)
    off = found.mean(axis=2) - optimal[:, :, 0]
    assert math.sqrt((off**2).mean()) < 0.025
    # Clouds err apart from each other: their mean is better than each.
    assert math.sqrt(((found - optimal) ** 2).mean()) < 0.05


@pytest.mark.parametrize("name", ["rappor", "l-grr"])
def test_what_is_ascribed_to_values_is_exchanged_by_its_posterior(name: str) -> None:
    """Three values, 6 orders of what is ascribed to them: frequencies, and those of the value now.

    5 000 particles: six errors are 0.042 (alpha 2e-9). Exchanges that are never made, and such
    without the prior, are off by more.
    """
    rng, weight, change = np.random.default_rng(6), np.array([0.5, 0.3, 0.2]), 0.4
    memos: Any = (SymbolMemos if name == "l-grr" else BitMemos).of(example(name, k=3))
    clouds = filtering._Clouds(memos, np.tile(weight, (40, 1)), change)
    memo = np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6], [0.05, 0.05, 0.9]])
    begun, stayed = np.array([1, 2, 0]), np.array([0, 2, 3])
    clouds.memo[:], clouds.begun[:], clouds.stayed[:], clouds.cell[:] = memo, begun, stayed, 0
    for _ in range(8):
        now = clouds.exchange(rng)
    chances = {}
    for order in itertools.permutations(range(3)):
        row = list(order)
        prior = weight ** begun[row] * (1 - change + change * weight) ** stayed[row]
        chances[order] = float((prior * memos.suits(memo[row, np.arange(3)])).prod())
    total = sum(chances.values())
    for order, chance in chances.items():
        seen = (clouds.row == order).all(axis=2)
        assert seen.mean() == pytest.approx(chance / total, abs=0.042)
        # The present value goes where its row goes.
        assert (clouds.cell[seen] == order.index(0)).all()
    for cell in range(3):
        expected = sum(chance for order, chance in chances.items() if order[cell] == 0) / total
        assert now[:, cell].mean() == pytest.approx(expected, abs=0.042)


def test_particles_guess_as_the_exact_filter_does() -> None:
    protocol, prior = example("l-osue", k=3), skewed(3)
    one, other = (
        attacks.guess_values(protocol, prior, 0.1, 8, n=120, method=method, rng=4)
        for method in ("exact", "particles")
    )  # type: ignore[misc]
    assert (one.exact, other.exact) == (True, False)
    # The same users and reports: only the particles differ.
    assert other.expected == pytest.approx(one.expected, abs=0.01)
    assert other.success == pytest.approx(one.success, abs=0.05)


def test_what_is_believed_of_a_guess_is_not_raised_by_the_choice_of_it() -> None:
    """Clouds that know nothing, and are sure: of a guess of their own they would believe 1."""
    rng = np.random.default_rng(3)
    values, blind = rng.integers(8, size=20_000), rng.integers(8, size=(20_000, 4))
    right, believed = _judged(np.eye(8)[blind], values)
    # Six errors of the mean: alpha 2e-9.
    assert believed.mean() == pytest.approx(1 / 8, abs=6 * 0.17 / math.sqrt(20_000))
    assert right.mean() == pytest.approx(1 / 8, abs=6 * 0.34 / math.sqrt(20_000))
    # One that is exact is believed of its own.
    right, believed = _judged(np.array([[[0.2, 0.5, 0.3]], [[0.4, 0.4, 0.2]]]), np.array([1, 1]))
    assert right.tolist() == [1.0, 0.5]
    assert believed.tolist() == [0.5, 0.4]


@pytest.mark.long
@pytest.mark.parametrize(
    "protocol",
    [
        example("rappor", k=12),
        example("l-osue", k=12),
        example("ololoha", k=40, g=6, hash="affine"),
    ],
    ids=str,
)
def test_the_guess_is_right_as_often_as_is_believed(protocol: Protocol) -> None:
    """After 40 rounds; 3 errors (alpha 0.003, seeded). A plain filter of bits is off by 4."""
    prior = np.full(protocol.k, 1 / protocol.k)
    found = attacks.guess_values(
        protocol, prior, 0.1, 40, n=1000, method="particles", rng=14 if protocol.k == 40 else 12
    )
    assert abs(found.expected[-1] - found.success[-1]) < 3 * found.error[-1]


def test_hashing_keeps_the_value_hidden_for_ever() -> None:
    """A bound by counting: with the cell known for certain, its likeliest value remains a guess."""
    protocol = example("biloloha", k=32)
    found = attacks.guess_values(protocol, np.full(32, 1 / 32), 0.0, 60, n=400, rng=1)
    assert found.success[-1] < 2 / 32 + 5 * found.error[-1]
    assert (np.diff(found.expected) > -0.005).all()


@pytest.mark.long
def test_bits_tell_more_of_the_value_than_a_hash_does() -> None:
    """At k = 12 and a value that seldom changes: the same budgets, the same users."""
    prior = np.full(12, 1 / 12)
    found = {
        name: attacks.guess_values(example(name, k=12), prior, 0.02, 12, n=60, rng=3)
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
