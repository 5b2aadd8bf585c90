"""The loss of change patterns is that of the shipped client."""

import pytest

import loloha
from loloha.distribution import exact_distribution, loss_between
from loloha.errors import ParameterError
from loloha.rng import Rng
from loloha_lab.paper.pattern import pattern_losses, worst_losses

PROTOCOL = loloha.BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)


def law_of(values: list[int]) -> dict[tuple[object, ...], object]:
    """Reports of a client with a hash that tells its two values apart, by enumeration."""

    def run(rng: Rng) -> tuple[object, ...]:
        client = PROTOCOL.client(key=1, rng=rng)
        return tuple(client.report(v, round=t).y for t, v in enumerate(values))

    return exact_distribution(run)  # type: ignore[return-value]


@pytest.mark.parametrize("reports", [1, 2, 3, 4])
def test_constant_against_alternating_is_the_clients_loss(reports: int) -> None:
    alternating = law_of([t % 2 for t in range(reports)])
    exact = max(
        loss_between(law_of([cell] * reports), alternating)  # type: ignore[arg-type]
        for cell in (0, 1)
    )
    assert pattern_losses(PROTOCOL, reports)[-1] == pytest.approx(exact, abs=1e-12)


def test_the_worst_pair_is_the_clients_loss() -> None:
    exact = loss_between(law_of([0, 0, 0, 1]), law_of([0, 1, 1, 0]))  # type: ignore[arg-type]
    assert worst_losses(PROTOCOL, 4)[-1] == pytest.approx(exact, abs=1e-12)


def test_the_budget_is_passed_after_four_reports() -> None:
    losses = worst_losses(PROTOCOL, 4)
    assert losses[2] < PROTOCOL.cap < losses[3]
    assert losses[0] == pytest.approx(0.5, abs=1e-12)
    assert losses[3] == pytest.approx(2.03, abs=0.005)
    assert pattern_losses(PROTOCOL, 10)[9] == pytest.approx(5.28, abs=0.005)


def test_other_protocols_are_refused() -> None:
    with pytest.raises(ParameterError, match="BiLOLOHA"):
        pattern_losses(loloha.LGRR(k=3, eps_inf=1.0, eps_1=0.5), 2)
    with pytest.raises(ParameterError, match="most must be"):
        worst_losses(PROTOCOL, 30)
