"""The series under a budget for changes: exactly unbiased, of the stated variance."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from loloha.distribution import exact_distribution
from loloha.errors import MergeError, ParameterError, WireError
from loloha.report import Report
from loloha.rng import Rng
from loloha_lab.dyadic import DyadicLH

PROTOCOL = DyadicLH(k=3, eps=1.5, rounds=2, changes=1)


def sent(protocol: Any, history: Any, rng: Rng) -> Any:
    client = protocol.client(rng=rng)
    reports = [client.report(v, round=t) for t, v in enumerate(history)]
    return tuple((t, one.key, one.y) for t, one in enumerate(reports) if one)


def series(protocol: Any, transcripts: Any) -> Any:
    tally = protocol.tally()
    for t, key, y in itertools.chain(*transcripts):
        tally.add(Report(key, y), round=t)
    return tally.estimate()


def law_of_estimates(protocol: Any, histories: Any) -> list[tuple[Fraction, Any]]:
    """Over all that the users can send, given that each level has a user."""
    users = [
        exact_distribution(lambda rng, held=held: sent(protocol, held, rng)).items()
        for held in histories
    ]
    found = []
    for one in itertools.product(*users):
        if len({transcript[0][1][1] for transcript, _ in one}) == protocol.levels:
            chance = math.prod(p for _, p in one)
            found.append((chance, series(protocol, [transcript for transcript, _ in one])))
    total = sum(chance for chance, _ in found)
    return [(chance / total, estimate) for chance, estimate in found]


@pytest.mark.parametrize("histories", [((0, 1), (2, 2)), ((1, 0), (0, 1)), ((2, 2), (2, 2))])
def test_estimates_are_unbiased_and_of_the_stated_variance(histories: Any) -> None:
    """Two users at two levels, over every outcome: the mean is the truth, in every round."""
    law = law_of_estimates(PROTOCOL, histories)
    truth = np.array([[np.mean([h[t] == v for h in histories]) for v in range(3)] for t in (0, 1)])
    chances = np.array([float(chance) for chance, _ in law])
    estimates = np.array([estimate.frequencies for _, estimate in law])
    mean = np.tensordot(chances, estimates, 1)
    assert mean == pytest.approx(truth, abs=1e-12)
    variance = np.tensordot(chances, (estimates - mean) ** 2, 1)
    stated = law[0][1].standard_errors[:, None] ** 2
    # One user makes up each sum: y^2 = 1, less what the sum of signs is on average.
    signs = 1 + (truth - 1) * PROTOCOL.spread
    assert variance == pytest.approx(stated - (signs / PROTOCOL.spread) ** 2, abs=1e-12)


def test_steps_add_up_over_all_pieces() -> None:
    """Rounds of two pieces, one user at each of three levels, over every outcome."""
    protocol = DyadicLH(k=2, eps=2.0, rounds=4, changes=1)
    moves = (0, 0, 1, 1)
    expected = np.zeros((4, 2))
    found = []
    laws = exact_distribution(lambda rng: sent(protocol, moves, rng)).items()
    by_level = [[(y, p) for y, p in laws if y[0][1][1] == level] for level in range(3)]
    # The estimate is linear in the levels: each is the mean of its own transcripts.
    tallies: list[Any] = [None] * 3
    for level, transcripts in enumerate(by_level):
        mean = protocol.tally().counts.astype(float)
        for transcript, p in transcripts:
            tally = protocol.tally()
            for t, key, y in transcript:
                tally.add(Report(key, y), round=t)
            mean += float(3 * p) * tally.counts
        tallies[level] = mean
        found.append(mean.sum())
    assert found == pytest.approx([4, 2, 1])
    whole = sum(tallies)
    for t, bit in enumerate(moves):
        total = 0.0
        for piece in protocol.sum_of(t):
            row = whole[sum(4 >> lower for lower in range(piece.level)) + piece.number, 1]
            total += protocol.weight(piece) * (row[0] - row[1])
        expected[t] = (1 + total) / 2, (1 - total) / 2
        assert expected[t] == pytest.approx([1 - bit, bit], abs=1e-12)


def test_variance_of_a_rare_value_is_the_noise_that_was_promised() -> None:
    protocol = DyadicLH(k=6, eps=1.0, rounds=6, changes=2)
    tally = protocol.tally()
    n = 5
    for t in range(6):
        for level in range(protocol.levels):
            if protocol.is_due(level, t):
                tally.update(np.array([[1, level]] * n), np.zeros(n, dtype=int), round=t)
    stated = tally.estimate().standard_errors ** 2 * n * protocol.levels
    assert stated == pytest.approx([protocol.noise(t) for t in range(6)])


def test_rounds_that_nobody_reported_yet_have_no_estimate() -> None:
    protocol = DyadicLH(k=4, eps=1.0, rounds=4, changes=1)
    tally = protocol.tally()
    tally.update([[1, 0], [2, 0]], [0, 1], round=0)
    tally.update([[3, 1]], [0], round=1)
    found = tally.estimate()
    known = ~np.isnan(found.frequencies).any(axis=1)
    assert known.tolist() == [True, True, False, False]
    assert np.isnan(found.standard_errors).tolist() == [False, False, True, True]
    low, high = found.interval()
    assert (low[known] == 0).all()
    assert (high[known] == 1).all()


def test_tallies_merge_and_refuse_others() -> None:
    one, two = PROTOCOL.tally(), PROTOCOL.tally()
    one.update([[1, 0], [2, 1]], [0, 1], round=1)
    two.add(Report((3, 0), 1), round=0)
    both = PROTOCOL.tally()
    both.add(Report((3, 0), 1), round=0)
    both.update([[2, 1], [1, 0]], [1, 0], round=1)
    assert one + two == two + one == both != one
    assert both.reports().tolist() == [1, 1, 1]
    with pytest.raises(MergeError, match="tallies must follow one protocol"):
        _ = one + DyadicLH(k=3, eps=1.0, rounds=2, changes=1).tally()
    assert one != 1
    with pytest.raises(TypeError):
        _ = one + 1
    assert repr(both).endswith("changes=1), 3 reports)")


@pytest.mark.parametrize(
    ("keys", "ys"),
    [
        ([[0, 0]], [0]), ([[4, 0]], [0]), ([[1, 1]], [0]), ([[1, 2]], [0]), ([[1, -1]], [0]),
        ([[1, 0]], [2]), ([[1, 0]], [-1]), ([[1, 0], [1, 1]], [0, 0]),
        ([[1.0, 0.0]], [0]), ([[1, 0]], [0.0]), ([1, 0], [0]), ([[1, 0]], [0, 1]), ([[1]], [0]),
    ],
)  # fmt: skip
def test_foreign_reports_are_refused_whole(keys: Any, ys: Any) -> None:
    """Seeds, levels and bits out of range, reports that are not due, other shapes and types."""
    tally = PROTOCOL.tally()
    with pytest.raises(WireError):
        tally.update(np.array(keys), np.array(ys), round=0)
    assert not tally.counts.any()


def test_a_report_of_another_protocol_is_refused() -> None:
    for foreign in (Report(1, 0), Report(None, 0), Report((1, 0), b"\0"), Report((1, 0, 0), 0)):
        with pytest.raises(WireError):
            PROTOCOL.tally().add(foreign, round=0)
    with pytest.raises(ParameterError, match=r"round must be an integer in 0\.\.1"):
        PROTOCOL.tally().add(Report((1, 0), 0), round=2)
