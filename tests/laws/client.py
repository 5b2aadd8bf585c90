"""The client: one memo, one key, one report a round, and a loss that says what was spent."""

import math
from typing import Any

import numpy as np
import pytest

from laws import law, longitudinal, oracle
from laws.variants import FLAGSHIPS, VARIANTS
from loloha.conform.laws import walk
from loloha.distribution import exact_distribution
from loloha.errors import BudgetError, ParameterError
from loloha.protocols import Protocol
from loloha.rng import Rng, SimulationRng


def keyed(protocol: Any) -> bool:
    return bool(protocol.encoding.key_bits)


@law(FLAGSHIPS, longitudinal)
def ten_thousand_reports_draw_one_memo_and_one_key(protocol: Any) -> None:
    """PAINS 5: counted on the shipped code."""
    with pytest.MonkeyPatch.context() as patch:
        drawn = {"enroll": 0, "remember": 0, "permanent": 0, "instant": 0}
        for step in drawn:
            patch.setattr(Protocol, step, counting(getattr(Protocol, step), drawn, step))
        client = protocol.client(rng=SimulationRng(1))
        keys = {client.report(1, round=round).key for round in range(10_000)}
    memo = 0 if protocol.joint else 1
    assert drawn == {"enroll": 1, "remember": 1, "permanent": memo, "instant": 10_000}
    assert len(keys) == 1
    assert client.loss == protocol.asked_memo


def counting(step: Any, drawn: dict[str, int], name: str) -> Any:
    def counted(self: Any, *args: Any) -> Any:
        drawn[name] += 1
        return step(self, *args)

    return counted


@law(VARIANTS)
def loss_counts_visited_cells_and_never_exceeds_the_cap(protocol: Any) -> None:
    visited: set[int] = set()
    before = 0.0
    for round, (client, v, report) in enumerate(walk(protocol)):
        key = client.to_dict()["key"] if oracle.is_number(protocol) else report.key
        visited.add(oracle.symbol(protocol, key, v))
        units = len(visited) if protocol.longitudinal else round + 1
        assert client.loss == pytest.approx(oracle.spent(protocol, units), rel=1e-12)
        assert before <= client.loss <= client.cap
        before = client.loss
    if protocol.longitudinal:
        assert client.cap == protocol.cap < math.inf
        cells = max(
            len({oracle.symbol(protocol, key, v) for v in range(protocol.k)})
            for key in oracle.keys(protocol)
        )
        assert oracle.spent(protocol, cells) <= protocol.cap * (1 + 1e-12)
    else:
        assert client.cap == protocol.cap == math.inf


@law(VARIANTS)
def a_limit_is_kept_whatever_the_values(protocol: Any) -> None:
    """MATH section 21: it covers the cap at enrolment, or ends one-round protocols."""
    limit = protocol.cap if protocol.longitudinal else oracle.spent(protocol, 2)
    client = protocol.client(rng=SimulationRng(2), limit=limit)
    for round in range(30):
        if not protocol.longitudinal and round >= 2:
            before = client.to_dict()
            with pytest.raises(BudgetError):
                client.report(round % protocol.k, round=round)
            assert client.to_dict() == before
        else:
            client.report(round * 7 % protocol.k, round=round)
        assert client.loss <= client.committed <= limit * (1 + 1e-12)
    least = protocol.cap if protocol.longitudinal else protocol.asked_memo
    for low in (0.99 * least, protocol.asked_memo * 0.99):
        with pytest.raises(ParameterError, match="limit must be a number in"):
            protocol.client(limit=low)


@law(VARIANTS)
def reset_forgets_all_but_what_was_spent(protocol: Any) -> None:
    """PAINS 21."""
    client = protocol.client(rng=SimulationRng(3))
    client.report(0, round=4)
    pseudonym, spent = client.reporter(4), client.loss
    said = client.reset(wait=False)
    assert f"The {spent:g} spent so far stays spent" in said
    assert (client.loss, client.cap) == (spent, spent + protocol.cap)
    assert client.reporter(4) != pseudonym
    state = client.to_dict()
    assert (state["memo"], state["sent"]) == ([], [])
    client.report(0, round=4)
    assert client.loss == 2 * spent


@law(VARIANTS, lambda protocol: longitudinal(protocol) and oracle.bits(protocol) <= 2)
def reset_draws_a_new_key_and_memo(protocol: Any) -> None:
    """PAINS 21: what is reported after a reset has the law of a new user."""

    def run(rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        before = client.report(0, round=0)
        client.reset(wait=False)
        after = client.report(0, round=0)
        return ((before.key, before.y), (after.key, after.y))

    alone = oracle.reports_law(protocol, 0, 1)
    assert exact_distribution(run) == {
        a + b: p * q for a, p in alone.items() for b, q in alone.items()
    }


@law(VARIANTS, lambda protocol: longitudinal(protocol) and keyed(protocol))
def a_key_may_be_assigned(protocol: Any) -> None:
    for key in oracle.keys(protocol)[:5]:
        client = protocol.client(key=key, rng=SimulationRng(1))
        assert client.report(1, round=0).key == oracle.shown(protocol, key)


@law(VARIANTS)
def a_foreign_key_is_refused(protocol: Any) -> None:
    foreign = [-1, True, "1", 2.0, (1 << 62) + 5, (0, 0), (), (99,), ["a"], object()]
    if not protocol.longitudinal:
        foreign += [key for key in oracle.keys(protocol) if key is not None]
    for key in foreign:
        with pytest.raises(
            ParameterError, match=r"key must be one of the family of .* leave it out"
        ):
            protocol.client(key=key)


@law(VARIANTS)
def values_of_every_integer_type_are_accepted(protocol: Any) -> None:
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        client = protocol.client(rng=SimulationRng(4))
        plain = protocol.client(rng=SimulationRng(4))
        assert client.report(np.dtype(kind).type(1), round=0) == plain.report(1, round=0)
