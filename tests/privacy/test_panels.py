"""What panels promise of any stretch of rounds, by enumeration of what the client could send."""

import math
from itertools import product

import pytest

from loloha import privacy
from loloha.client import Client
from loloha.distribution import exact_distribution
from loloha.protocols import GRR, LGRR, BiLOLOHA, Protocol
from loloha.rng import Rng

ROUNDS = 4


def sent(rng: Rng, protocol: Protocol, history: tuple[int, ...], every: int) -> object:
    """The rounds a device reports in, and what it reports; all that anybody sees of it."""
    client = Client(protocol, rng=rng, every=every)
    reports = [
        (round, client.report(value, round=round))
        for round, value in enumerate(history)
        if client.is_due(round)
    ]
    return tuple((round, one.key, one.y) for round, one in reports)


@pytest.mark.parametrize("every", [2, 3])
@pytest.mark.parametrize(
    "protocol",
    [LGRR(k=2, eps_inf=2.0, eps_1=1.0), BiLOLOHA(k=2, eps_inf=2.0, eps_1=1.0), GRR(k=2, eps=1.0)],
    ids=lambda one: one.name,
)
def test_a_stretch_of_rounds_loses_eps_2_for_each_window_begun(
    protocol: Protocol, every: int
) -> None:
    laws = {
        history: exact_distribution(
            lambda rng, history=history: sent(rng, protocol, history, every)
        )
        for history in product(range(2), repeat=ROUNDS)
    }
    once = privacy.eps_2(protocol)
    most = dict.fromkeys(range(1, ROUNDS + 1), 0.0)
    for one, other in product(laws, repeat=2):
        differ = [t for t in range(ROUNDS) if one[t] != other[t]]
        if differ:
            assert laws[one].keys() == laws[other].keys()
            loss = max(math.log(laws[one][seen] / laws[other][seen]) for seen in laws[one])
            length = differ[-1] - differ[0] + 1
            assert loss <= math.ceil(length / every) * once * (1 + 1e-12)
            most[length] = max(most[length], loss)
    # A second report begins where a stretch is longer than a window, and shows.
    assert most[every] <= once * (1 + 1e-12)
    assert most[every + 1] > max(most[length] for length in range(1, every + 1)) * 1.01


def test_explain_says_it_of_the_campaign_s_panels() -> None:
    protocol = LGRR(k=2, eps_inf=2.0, eps_1=1.0)
    plain, monthly = privacy.explain(protocol), privacy.explain(protocol, every=30)
    assert [rounds for rounds, _ in monthly.windows] == [30 * w for w, _ in plain.windows]
    assert [eps for _, eps in monthly.windows] == [eps for _, eps in plain.windows]
    (window,) = set(monthly.protected) - set(plain.protected)
    assert "Any 30 rounds" in window
    assert f"e^{privacy.eps_2(protocol):.4g}" in window
    (panel,) = set(monthly.leaks) - set(plain.leaks)
    assert f"{math.log2(30):.3g} bits" in panel
