"""Under every limit a round loses at most eps_2: whether it is answered says nothing (MATH 21)."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

import loloha
from loloha.client import Client
from loloha.client.limit import total
from loloha.client.state import State
from loloha.distribution import exact_distribution, loss_between
from loloha.errors import BudgetError, ParameterError
from loloha.privacy import eps_2
from loloha.protocols import Protocol
from loloha.rng import Rng

Law = dict[Any, Any]
SMALL = [
    (loloha.BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5), 4),
    (loloha.BiLOLOHA(k=3, eps_inf=2.0, eps_1=1.0), 3),
    (loloha.BiLOLOHA(k=3, eps_inf=4.0, eps_1=2.0, memo="joint"), 3),
    (loloha.OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0, g=3), 3),
    (loloha.OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0, g=3, memo="joint"), 3),
    (loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), 3),
    (loloha.RAPPOR(k=2, eps_inf=2.0, eps_1=1.0), 2),
    (loloha.GRR(k=3, eps=0.5), 3),
]
SILENT = "silent"


def law(protocol: Protocol, limit: float, values: Sequence[int], kind: type[Client]) -> Law:
    """The law of all that leaves the device, silence included."""

    def run(rng: Rng) -> Any:
        client = kind(protocol, limit=limit, rng=rng)
        return tuple(step(client, round, v) for round, v in enumerate(values))

    return exact_distribution(run)


def step(client: Client, round: int, value: int) -> Any:
    try:
        report = client.report(value, round=round)
    except BudgetError:
        return SILENT
    return report.key, report.y


def reachable(protocol: Protocol, rounds: int) -> set[float]:
    """What a client can have spent, a little more and less, and what lies between."""
    cells = protocol.encoding.memo_cells if protocol.longitudinal else rounds
    spent = {protocol.spent(answers) for answers in range(1, cells + 1)}
    return {limit * scale for limit in spent for scale in (1.0, 1 - 1e-6, 1 + 1e-6, 1.3)}


def worst_round(protocol: Protocol, rounds: int, kind: type[Client] = Client) -> float:
    """The largest loss between two histories that differ in one round, over all limits."""
    histories = list(product(range(protocol.k), repeat=rounds))
    # Clients that answer the same rounds whatever the limit have one law: it is followed once.
    limits = {who(protocol, limit, histories[0]): limit for limit in reachable(protocol, rounds)}
    del limits[None]
    worst = 0.0
    for limit in limits.values() if kind is Client else reachable(protocol, rounds):
        laws = {values: law(protocol, limit, values, kind) for values in histories}
        for one, other in product(histories, histories):
            if sum(map(int.__ne__, one, other)) == 1:
                worst = max(worst, loss_between(laws[one], laws[other]))
    return worst


def who(protocol: Protocol, limit: float, values: Sequence[int]) -> Any:
    """In which rounds a client reports; None if it does not enrol. Before any draw for a value."""
    try:
        client = protocol.client(limit=limit)
    except ParameterError:
        return None
    return tuple(step(client, round, v) is not SILENT for round, v in enumerate(values))


@pytest.mark.parametrize(("protocol", "rounds"), SMALL, ids=str)
def test_one_round_loses_at_most_eps_2_under_every_limit(protocol: Protocol, rounds: int) -> None:
    worst = worst_round(protocol, rounds)
    assert 0 < worst <= eps_2(protocol) * (1 + 1e-9)
    if not protocol.longitudinal:
        assert math.isclose(worst, protocol.realised.eps_first, rel_tol=1e-9)


class Falling(Client):
    """As release 0.2.0: it falls silent when a new answer would pass the limit."""

    __slots__ = ("_most",)

    def __init__(self, protocol: Protocol, *, limit: float, rng: Rng) -> None:
        super().__init__(protocol, rng=rng)
        self._most = limit

    def _memoised(self, state: State, value: int) -> Any:
        cell = self.protocol.memo_index(state.before.key, value)
        units = len(state.memo) + (cell not in state.memo)
        if self.protocol.spent(units) > self._most * (1 + 1e-12):
            raise BudgetError
        return super()._memoised(state, value)


@pytest.mark.parametrize("protocol", [SMALL[0][0], SMALL[5][0]], ids=str)
def test_silence_at_a_limit_would_lose_everything(protocol: Protocol) -> None:
    """The law above can fail: whoever moves falls silent, and one round gives a value away."""
    assert worst_round(protocol, 2, Falling) == math.inf


@pytest.mark.parametrize("protocol", [one for one, _ in SMALL], ids=str)
def test_only_limits_that_would_silence_a_device_say_so(protocol: Protocol) -> None:
    with pytest.raises(ParameterError) as refusal:
        protocol.client(limit=protocol.asked_memo / 2)
    assert ("its user moved" in str(refusal.value)) == protocol.longitudinal


MOVES: list[Callable[[Client], Any]] = [
    lambda client: client.set_limit(client.committed),
    lambda client: client.set_limit(None),
    lambda client: client.reset(),
    lambda client: client.account,
]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("protocol", [one for one, _ in SMALL], ids=str)
def test_what_is_committed_does_not_depend_on_values(protocol: Protocol, move: Any) -> None:
    """Through whatever happens to a client: the caps count, not what was spent."""
    committed = set()
    for values in product(range(protocol.k), repeat=3):
        client = protocol.client(limit=3 * protocol.cap if protocol.longitudinal else 9.0)
        for round, v in enumerate(values):
            client.report(v, round=round)
        move(client)
        restored = Client.from_dict(client.to_dict())
        committed.add((client.committed, restored.committed, client.account.committed))
    assert len(committed) == 1


def test_amounts_are_added_one_by_one() -> None:
    """As ports add them; Python's own `sum` compensates from 3.12 on, and gives 1.0."""
    assert total([0.1] * 10) == 0.9999999999999999
    assert total([0.2, 0.4], 0.3) == 0.3 + 0.2 + 0.4 != 0.3 + (0.2 + 0.4)
