"""Gradual release: each report is GRR of its own eps, and all together lose that of the last."""

import itertools
import math

import numpy as np
import pytest

from loloha.protocols import OLH
from loloha.server.variance import variance
from loloha_lab.guarantees.absorption import GradualRelease, refined
from loloha_lab.guarantees.window_error import of_refined, unchanged

LOSSES = (0.5, 1.0, 1.0, 2.0)


def law(cell: int, rule: GradualRelease) -> dict[tuple[int, ...], float]:
    """Probability of every series of reports of a constant cell."""
    chances = {(): 1.0}
    for t, contrast in enumerate(rule.contrasts):
        before = rule.contrasts[t - 1] if t else 0.0
        chances = {
            (*sent, y): chance * step
            for sent, chance in chances.items()
            for y, step in enumerate(
                refined([cell], [sent[-1] if sent else 0], [before], contrast, rule.g)[0]
            )
        }
    return chances


@pytest.mark.parametrize("g", [2, 3, 5])
def test_all_reports_lose_what_the_last_one_does(g: int) -> None:
    rule = GradualRelease(16, g, LOSSES)
    laws = [law(cell, rule) for cell in range(g)]
    for t, eps in enumerate(LOSSES):
        grr = OLH(k=16, eps=eps, g=g, hash="linear")
        for cell, y in itertools.product(range(g), repeat=2):
            alone = sum(chance for sent, chance in laws[cell].items() if sent[t] == y)
            assert alone == pytest.approx(grr.p1 if y == cell else grr.q1, abs=1e-12)
        up_to = []
        for chances in laws:
            grouped: dict[tuple[int, ...], float] = {}
            for sent, chance in chances.items():
                grouped[sent[: t + 1]] = grouped.get(sent[: t + 1], 0.0) + chance
            up_to.append(grouped)
        ratios = [
            abs(math.log(one[sent] / other[sent]))
            for one, other in itertools.permutations(up_to, 2)
            for sent in one
            if one[sent] > 0
        ]
        assert max(ratios) == pytest.approx(eps, abs=1e-9)


def test_at_one_loss_the_answer_stays() -> None:
    """So a change of the value shows for certain: no loss of one round bounds it."""
    again = refined([0, 1], [2, 1], [0.4, 0.4], 0.4, 3)
    assert again == pytest.approx(np.eye(3)[[2, 1]])


def test_errors_of_rounds_and_means_are_the_stated_ones() -> None:
    """20 populations of which 5 % move a round: 3840 squares of rounds, 320 of means."""
    k, tau, n = 16, 12, 2000
    rng = np.random.default_rng(3)
    values = np.repeat(rng.integers(0, k, (n, 1)), tau, axis=1)
    for t in range(1, tau):
        moves = rng.random(n) < 0.05
        values[moves, t:] = rng.integers(0, k, (moves.sum(), 1))
    truth = np.array([np.bincount(column, minlength=k) for column in values.T]) / n
    rule = GradualRelease(k, 3, tuple(np.linspace(0.8, 2.5, tau).tolist()))
    errors = np.array([rule.simulate(values, seed) - truth for seed in range(20)])
    rounds = [float(variance(one, n, 1 / k)) for one in rule.rules]
    assert np.mean(errors**2) == pytest.approx(np.mean(rounds), rel=0.12)
    mean = of_refined(rule.rules, n, unchanged(values, slice(0, tau)))
    assert np.mean(errors.mean(axis=1) ** 2) == pytest.approx(mean, rel=0.25)
