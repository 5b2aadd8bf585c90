"""Questions about one user: reports, states that move between languages, exact distributions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from loloha.campaign import Campaign
from loloha.client.client import STORED_ROUNDS, Client
from loloha.conform import case
from loloha.conform.port import Difference, Port, differs, is_off
from loloha.distribution import exact_distribution
from loloha.errors import BudgetError, DomainError, LolohaError, StateError
from loloha.protocols import GRR, LGRR, Protocol
from loloha.rng import Rng, SimulationRng
from loloha.wire.message import encode

FEWEST = 3
"""Largest domain of moved states, whose length grows with it."""


class _Noted(Rng):
    """Seeded draws, and a list of what was asked for."""

    def __init__(self, seed: int) -> None:
        self._source = SimulationRng(seed)
        self.asked: list[tuple[str, int]] = []

    def bernoulli(self, threshold: int) -> bool:
        self.asked.append(("bernoulli", threshold))
        return self._source.bernoulli(threshold)

    def below(self, n: int) -> int:
        self.asked.append(("below", n))
        return self._source.below(n)


def histories(port: Port) -> Iterator[Difference]:
    """With equal draws, a client requests the same draws and sends the same messages."""
    yield from _forgotten(port)
    yield from _limited(port)
    yield from _panels(port)
    for seed, protocol in enumerate(case.variants()):
        campaign = case.campaign(protocol)
        k = protocol.k
        history = [(0, 0), (1, 1), (2, 0), (1, 2), (7, k - 1), (5, k // 2), (8, 0), (8, 1)]
        yield repr(protocol), _one_history(port, campaign, history, seed)


def _forgotten(port: Port) -> Iterator[Difference]:
    """Forgotten rounds, and values and rounds out of range."""
    campaign = case.campaign(LGRR(k=4, eps_inf=2.0, eps_1=1.0))
    many = [(round, round % 4) for round in range(3, STORED_ROUNDS + 9)]
    yield "older rounds", _one_history(port, campaign, [*many, (8, 0), (9, 1), (2, 0), (200, 1)], 1)
    odd = [(0, 4), (0, -1), (0, 1), (-1, 0), (1 << 53, 0), ((1 << 53) - 1, 0)]
    yield "out of range", _one_history(port, campaign, odd, 2)


def _panels(port: Port) -> Iterator[Difference]:
    """Where a user reports in one round of some, all others are refused, through a reset too."""
    history = [(round, round % 3) for round in range(7)]
    for protocol in (LGRR(k=3, eps_inf=2.0, eps_1=1.0), GRR(k=3, eps=1.0)):
        campaign = case.panels(protocol)
        for seed in range(3):
            yield f"panels of {protocol!r}", _one_history(port, campaign, history, seed)
        client = Client(protocol, every=campaign.schedule.every, rng=SimulationRng(4))
        answer = port.ask("reset", rng=SimulationRng(5), state=json.dumps(client.to_dict()))
        restored = _client(answer, protocol)
        after = None if restored is None else [restored.is_due(round) for round, _ in history]
        due = [client.is_due(round) for round, _ in history]
        yield f"the panel of {protocol!r} after a reset", differs(after, due, answer)


def _limited(port: Port) -> Iterator[Difference]:
    """A limit covers the cap at enrolment, or ends a one-round protocol, whatever the values."""
    history = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 1), (5, 4), (6, 0)]
    campaign = case.campaign(LGRR(k=5, eps_inf=0.1, eps_1=0.05))
    for limit in (0.1, 0.3, 0.4999, 0, -1, "0.5", True):
        answer = _asked(port, campaign, history, SimulationRng(3), limit=limit)
        refused = (
            None if answer == {"error": "ParameterError"} else f"expected no client, got {answer}"
        )
        yield f"limit {limit!r} below the cap", refused
    for limit in (0.5, 0.5 - 1e-13, 1, 9.25):
        yield f"limit {limit}", _one_history(port, campaign, history, 3, limit=limit)
    fresh = case.campaign(GRR(k=5, eps=0.1))
    for limit in (0.1, 0.3, 0.30000001, 0.45):
        yield (
            f"limit {limit} of a one-round rule",
            _one_history(port, fresh, history, 3, limit=limit),
        )
    yield from _older(port, campaign)


def _older(port: Port, campaign: Campaign) -> Iterator[Difference]:
    """States of release 0.2.0, whose limit does not cover what can be spent, report no more."""
    client = campaign.protocol.client(rng=SimulationRng(4))
    client.report(0, round=0)
    for limit, before in ((0.1, 0.0), (0.4, 0.0), (9.0, 0.1)):
        state = case.sealed({**client.to_dict(), "limit": limit, "spent_before": before})
        text, what = json.dumps(state), f"a state of 0.2.0 with limit {limit} after {before}"
        history = [(1, 0), (2, 1), (0, 1)]
        answer = _asked(port, campaign, history, SimulationRng(3), state=text)
        kinds = [
            "message" if str(message).startswith("{") else str(message)
            for message in answer.get("messages", [])
        ]
        yield what, differs(kinds, ["BudgetError", "BudgetError", "message"], answer)
        answer = port.ask("reset", rng=SimulationRng(5), state=text)
        yield f"reset of {what}", differs(answer, {"error": "BudgetError"})


def _asked(
    port: Port,
    campaign: Campaign,
    history: list[Any],
    rng: Rng,
    *,
    state: Any = None,
    limit: Any = None,
) -> dict[str, Any]:
    """A port's answer to a history, from a state or from the beginning."""
    document = case.text(campaign)
    return port.ask(
        "reports", rng=rng, document=document, reports=history, state=state, limit=limit
    )


def _one_history(
    port: Port,
    campaign: Campaign,
    history: list[tuple[Any, Any]],
    seed: int,
    limit: float | None = None,
) -> str | None:
    theirs, ours = _Noted(seed), _Noted(seed)
    answer = _asked(port, campaign, history, theirs, limit=limit)
    client = Client(campaign.protocol, rng=ours, limit=limit, every=campaign.schedule.every)
    wanted = [_sent(client, campaign, round, value) for round, value in history]
    messages = answer.get("messages")
    if not isinstance(messages, list) or len(messages) != len(wanted):
        return f"expected {len(wanted)} messages, got {answer}"
    for (round, _), theirs_, ours_ in zip(history, map(_readable, messages), wanted, strict=True):
        if (how := differs(theirs_, ours_)) is not None:
            return f"round {round}: {how}"
    if theirs.asked != ours.asked:
        return f"expected the draws {ours.asked[:20]}, got {theirs.asked[:20]}"
    return is_off(answer.get("loss"), client.loss) or _same_length(messages, history)


def _same_length(messages: list[str], history: list[tuple[Any, Any]]) -> str | None:
    """Message length is independent of value and history."""
    digits = [
        len(text) - len(str(round))
        for (round, _), text in zip(history, messages, strict=True)
        if text.startswith("{")
    ]
    return None if len(set(digits)) <= 1 else f"messages must be of one length, got {set(digits)}"


def _sent(client: Client, campaign: Campaign, round: Any, value: Any) -> Any:
    """The message of one report without its reporter, or the kind of error."""
    try:
        report = client.report(value, round=round)
    except (BudgetError, DomainError, StateError) as error:
        return type(error).__name__
    except LolohaError:
        return "ParameterError"
    return _readable(encode(campaign, report, round=round, reporter="").decode())


def _readable(message: Any) -> Any:
    """The members of a message without its reporter, which depends on the port's secret."""
    plain = _data(message)
    if not isinstance(plain, dict):
        return message
    return {name: plain[name] for name in plain if name != "reporter"}


def _data(message: Any) -> Any:
    """The members of a message, in any order."""
    try:
        return json.loads(message)
    except (ValueError, TypeError):
        return message


# -- states


def states(port: Port) -> Iterator[Difference]:
    """States move between languages, with their reporters; damaged ones are refused."""
    for seed, protocol in enumerate(variant for variant in case.variants() if variant.k == FEWEST):
        yield f"from the port: {protocol!r}", _from_port(port, protocol, seed)
        yield f"to the port: {protocol!r}", _to_port(port, protocol, seed)
    protocol = case.damageable()
    client = protocol.client(rng=SimulationRng(4), limit=12.0)
    for round in range(3):
        client.report(round, round=round)
    document = case.text(case.campaign(protocol))
    for wrong, state in case.damaged(client.to_dict()):
        answer = port.ask("reports", document=document, state=state, limit=None, reports=[])
        yield f"a state with {wrong}", differs(answer, {"error": "StateError"})
    answer = port.ask("reset", rng=SimulationRng(5), state=json.dumps(client.to_dict()))
    restored = _client(answer, protocol)
    after = None if restored is None else (restored.loss, restored.limit)
    yield "a reset keeps loss and limit", differs(after, (client.loss, client.limit), answer)
    old, new = client.to_dict(), {} if restored is None else restored.to_dict()
    same = new.get("secret") != old["secret"] and not new.get("sent") and not new.get("memo")
    yield "a reset forgets", None if same else "expected a new secret, no memo and no report"
    answer = port.ask("reset", rng=SimulationRng(5), state=answer.get("state", ""))
    yield (
        "a second reset, which the limit does not cover",
        differs(answer, {"error": "BudgetError"}),
    )


def _from_port(port: Port, protocol: Protocol, seed: int) -> str | None:
    campaign = case.campaign(protocol)
    history = [(round, round % protocol.k) for round in (4, 2, 9)]
    answer = _asked(port, campaign, history, SimulationRng(seed))
    client = _client(answer, protocol)
    if client is None:
        return f"expected a state, got {answer}"
    for (round, value), text in zip(history, answer["messages"], strict=True):
        report = client.report(value, round=round)
        wanted = encode(campaign, report, round=round, reporter=client.reporter(round))
        if (how := differs(_data(text), _data(wanted))) is not None:
            return how
    return is_off(answer.get("loss"), client.loss)


def _to_port(port: Port, protocol: Protocol, seed: int) -> str | None:
    campaign = case.campaign(protocol)
    client = protocol.client(rng=SimulationRng(seed))
    for round in (4, 2, 9):
        client.report(round % protocol.k, round=round)
    state = json.dumps(client.to_dict())
    history = [(2, 0), (11, 0), (12, protocol.k - 1)]
    answer = _asked(port, campaign, history, SimulationRng(~seed), state=state)
    client = Client.from_dict(json.loads(state), rng=SimulationRng(~seed))
    wanted = [
        encode(
            campaign,
            client.report(value, round=round),
            round=round,
            reporter=client.reporter(round),
        )
        for round, value in history
    ]
    received = answer.get("messages")
    messages = [_data(text) for text in received] if isinstance(received, list) else received
    how = differs(messages, [_data(text) for text in wanted], answer)
    restored = _client(answer, protocol)
    after = None if restored is None else restored.to_dict()
    return how or differs(after, client.to_dict())


def _client(answer: dict[str, Any], protocol: Protocol) -> Client | None:
    try:
        return Client.from_dict(json.loads(answer["state"]), protocol=protocol)
    except (KeyError, TypeError, ValueError, StateError):
        return None


# -- the distribution


def distributions(port: Port) -> Iterator[Difference]:
    """Enumerated over all draws, the port's reports have exactly our distribution."""
    for protocol, history in case.short_histories():
        campaign = case.campaign(protocol)
        theirs = exact_distribution(partial(_theirs, port, campaign, history))
        ours = exact_distribution(partial(_ours, campaign, history))
        what = f"{len(history)} reports of {protocol!r}"
        yield (
            what,
            None if theirs == ours else f"expected another distribution of {len(ours)} outcomes",
        )


def _theirs(
    port: Port, campaign: Campaign, history: list[tuple[int, int]], rng: Rng
) -> tuple[str, ...]:
    answer = _asked(port, campaign, history, rng)
    return tuple(_essence(_readable(text)) for text in answer.get("messages", [str(answer)]))


def _ours(campaign: Campaign, history: list[tuple[int, int]], rng: Rng) -> tuple[str, ...]:
    client = campaign.protocol.client(rng=rng)
    return tuple(_essence(_sent(client, campaign, round, value)) for round, value in history)


def _essence(message: Any) -> str:
    return json.dumps(message, sort_keys=True)
