"""LPA: nobody answers twice in a window, so its loss is that of one report, by enumeration."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from loloha.protocols import GRR, OLH
from loloha_lab.guarantees.absorption import Absorption

EPS = 1.0


class Undecided(Exception):
    """More answers are asked for than were given."""


def transcripts(rule: Absorption, values: np.ndarray, seed: int) -> Iterator[tuple[list, float]]:
    """All that binary users can send, in order, with its probability."""
    p = rule.protocol.p1
    stack: list[tuple[int, ...]] = [()]
    while stack:
        given = stack.pop()
        left, sent, chance = list(given), [], [1.0]

        def survey(t: int, users: np.ndarray, left=left, sent=sent, chance=chance) -> np.ndarray:
            if len(left) < len(users):
                raise Undecided(len(users) - len(left))
            answers = np.array([left.pop(0) for _ in users])
            truths = values[users, t]
            chance[0] *= float(np.prod(np.where(answers == truths, p, 1 - p)))
            sent.extend((t, int(user), int(y)) for user, y in zip(users, answers, strict=True))
            ones = (answers.mean() - (1 - p)) / (2 * p - 1)
            return np.array([1 - ones, ones])

        try:
            rule.run(values.shape[1], survey, np.random.default_rng(seed))
        except Undecided as more:
            stack += [(*given, *rest) for rest in itertools.product((0, 1), repeat=more.args[0])]
        else:
            yield sent, chance[0]


def loss(rule: Absorption, one: np.ndarray, other: np.ndarray, seed: int) -> float:
    """Largest log-ratio of the probabilities of a transcript, whom the server asks included."""
    pairs = zip(transcripts(rule, one, seed), transcripts(rule, other, seed), strict=True)
    worst, total = 0.0, 0.0
    for (sent, chance), (again, there) in pairs:
        assert sent == again
        worst, total = max(worst, abs(math.log(chance / there))), total + chance
    assert total == pytest.approx(1)
    return worst


def test_two_histories_of_a_window_lose_one_report() -> None:
    """Four users, windows of two rounds: user 0 differs in two rounds that follow each other."""
    rule = Absorption(GRR(k=2, eps=EPS), n=4, window=2)
    values = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
    losses = []
    for start, seed in itertools.product(range(3), range(3)):
        other = values.copy()
        other[0, start : start + 2] = 1 - other[0, start : start + 2]
        losses.append(loss(rule, values, other, seed))
    assert max(losses) == pytest.approx(EPS)


def test_a_user_answers_once_in_a_window() -> None:
    """Nor are there ever too few left to ask, however often something new is shown."""
    rule = Absorption(OLH(k=4, eps=2.0), n=60, window=5)
    last, sizes = np.full(60, -99), []

    def survey(t: int, users: np.ndarray) -> np.ndarray:
        assert (t - last[users] >= 5).all()
        last[users] = t
        sizes.append(len(users))
        # What changes in some rounds alone; in the last ones always.
        return np.full(4, 10.0 * (t // 7 if t < 40 else t))

    published = rule.run(60, survey, np.random.default_rng(2))
    assert len(np.unique(published.source)) > 6
    assert max(sizes) == 5 * rule.share


def test_errors_are_as_expected_given_what_was_published() -> None:
    """Values that jump together, so that something new is shown; 2000 squares."""
    k, tau, n = 10, 40, 8000
    rng = np.random.default_rng(5)
    shares = np.where(np.arange(tau) // 8 % 2, 0.55, 0.05)[:, None] * (np.arange(k) < 1)
    shares = shares + (1 - shares.sum(axis=1, keepdims=True)) / k
    values = np.stack([rng.choice(k, n, p=row / row.sum()) for row in shares], axis=1)
    truth = np.array([np.bincount(column, minlength=k) for column in values.T]) / n
    rule = Absorption(OLH(k=k, eps=2.0), n=n, window=8)
    measured, expected = np.zeros(2), np.zeros(2)
    for seed in range(5):
        published = rule.simulate(values, seed)
        assert len(np.unique(published.source)) > 3
        errors = (published.estimates - truth).reshape(5, 8, k)
        measured += np.mean(errors**2), np.mean(errors.mean(axis=1) ** 2)
        expected += rule.expected(published, truth), rule.expected_mean(published, truth, 8)
    assert measured == pytest.approx(expected, rel=0.25)
