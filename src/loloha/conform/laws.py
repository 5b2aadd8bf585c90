"""Laws that every protocol must obey, for authors of protocols.

Each is a function of a protocol that raises `LawError` where it is broken. Those in `EXACT` follow
every path of a client's draws, so they want a small one: three values, a key out of a few. They
take the protocol's own numbers at their word, and hold its device, its tally and its population
against them; that the numbers are the best ones they cannot tell.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from loloha import checks
from loloha.client import Client
from loloha.conform import case
from loloha.conform.exact_law import (
    Law,
    a_population_is_simulated_as_its_clients_are,
    all_reports_of_a_value_lose_what_its_memo_loses,
    counted,
    must,
    support_has_the_stated_chances,
    the_first_report_loses_what_is_realised,
)
from loloha.errors import BudgetError, DomainError, LawError, ParameterError, StateError
from loloha.protocols import Protocol, protocol_from_dict
from loloha.protocols import protocol as registered
from loloha.report import Report
from loloha.rng import SimulationRng
from loloha.wire.message import encode, key_from_text


def check(protocol: Protocol, law: str | None = None) -> None:
    """Try a protocol with one law, or with all of them.

    Parameters
    ----------
    protocol : Protocol
        Small enough that all draws of a client can be listed.
    law : str, optional
        One of `LAWS`.

    Raises
    ------
    LawError
        If one is broken: which one, and how.
    ParameterError
        If there is no such law.
    """
    for name in LAWS if law is None else [checks.choice("law", law, LAWS)]:
        try:
            LAWS[name](protocol)
        except LawError as error:
            raise LawError(f"{name}: {error}; protocol {protocol!r}") from None


def _named(*laws: Any) -> dict[str, Law]:
    return {law.__name__: law for law in laws}


def _refuses(kind: type[Exception], says: str, call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except kind as error:
        must(says in str(error), f"{what} must be refused with {says!r}, is with another message")
        return
    raise LawError(f"{what} must be refused with {kind.__name__}")


def walk(protocol: Protocol) -> Iterator[tuple[Client, int, Report]]:
    """A user who holds each value for some rounds, and returns to old ones."""
    client = protocol.client(rng=SimulationRng(11))
    for round in range(40):
        v = (round // 3) * 7 % protocol.k if round % 4 else 0
        yield client, v, client.report(v, round=round)


# -- clients


def reports_look_alike(protocol: Protocol) -> None:
    """Size and shape of reports and messages are independent of value and history."""
    encoding = protocol.encoding
    campaign = case.campaign(protocol)
    shapes, sizes = set(), set()
    alone = [protocol.client().report(v, round=9) for v in range(protocol.k)]
    for report in [*alone, *(sent for *_, sent in walk(protocol))]:
        key, y = report.key, report.y
        must(encoding.is_sent(key) and encoding.is_answer(y), "what is sent must be in range")
        shapes.add((type(key), type(y)))
        message = encode(campaign, report, round=9, reporter="")
        sizes.add(len(message))
        fields = json.loads(message)
        same = "key" not in fields or key_from_text(campaign, fields["key"]) == key
        must(same, "a key must survive its message")
    must(len(shapes) == len(sizes) == 1, "reports must be of one shape and size")


def memo_and_key_stay(protocol: Protocol) -> None:
    """A key is permanent; `loss` grows with the memo alone, up to `cap`."""
    if not protocol.longitudinal:
        return
    known: dict[int, Any] = {}
    keys: set[str] = set()
    tables: list[Any] = []
    for client, v, _ in walk(protocol):
        state = client.to_dict()
        memo = dict(state["memo"])
        must({x: memo.get(x) for x in known} == known, "a memo must stay as it was drawn")
        key: Any = state["key"]
        own_key = tuple(key) if isinstance(key, list) else key
        drawn = protocol.memo_index(own_key, v) in memo
        must(drawn, "an answer must be stored under its memo symbol")
        known = memo
        tables.append(state.get("table"))
        must(tables[0] == tables[-1], "answers that were drawn together must stay")
        keys.add(str(state["key"]))
        same = math.isclose(client.loss, protocol.spent(len(memo)))
        must(same, "loss must be what the memo spent")
        must(client.loss <= client.cap * (1 + 1e-12), "loss must stay within cap")
    must(len(keys) == 1, "a client must keep its key")


def a_round_is_answered_once(protocol: Protocol) -> None:
    """Asking again draws nothing and gives the same bits, whatever the value."""
    client = protocol.client(rng=SimulationRng(5))
    first = client.report(0, round=3)
    state = client.to_dict()
    restored = Client.from_dict(state, rng=SimulationRng(6))
    for v in range(protocol.k):
        again = client.report(v, round=3), restored.report(v, round=3)
        must(again == (first, first), "a round must be answered once")
    must(client.to_dict() == state, "asking again must change nothing")


def who_reports_does_not_depend_on_values(protocol: Protocol) -> None:
    """Resets do not depend on values: under every limit, in every history, and within the limit."""
    cells = protocol.encoding.memo_cells if protocol.longitudinal else 3
    steps = [protocol.spent(answers) for answers in range(1, min(cells, 3) + 1)]
    most = [protocol.cap] if protocol.longitudinal else []
    limits = {a + b for a in (0.0, *steps, *most) for b in (*steps, *most)}
    histories = list(product(range(min(protocol.k, 3)), repeat=3))
    for limit, seed in product(sorted(limits), range(2)):
        patterns = {_who_reports(protocol, limit, seed, values) for values in histories}
        what = f"under a limit of {limit!r} whether a client reports must not depend on values"
        must(len(patterns) == 1, what)


def _who_reports(
    protocol: Protocol, limit: float, seed: int, values: Sequence[int]
) -> tuple[bool, ...]:
    """Whether a client enrols, answers each round, and can be reset after two."""
    try:
        client = protocol.client(rng=SimulationRng(seed), limit=limit)
    except ParameterError:
        return (False,)
    steps: list[Callable[[], Any]] = [
        partial(client.report, v, round=round) for round, v in enumerate(values)
    ]
    steps.insert(2, client.reset)
    reported = [True]
    for step in steps:
        try:
            step()
        except BudgetError:
            reported.append(False)
        else:
            reported.append(True)
        must(client.loss <= limit * (1 + 1e-9), f"loss must stay within its limit, {limit!r}")
    return tuple(reported)


def a_restored_client_goes_on_identically(protocol: Protocol) -> None:
    """With equal draws, a restored client continues as if never stored."""
    rng = SimulationRng(8)
    client = protocol.client(rng=rng, limit=1e6)
    for round in range(5):
        client.report(round % protocol.k, round=round)
    restored = Client.from_dict(client.to_dict(), protocol=protocol, rng=copy.deepcopy(rng))
    for round in range(3, 20):
        v = round * 5 % protocol.k
        same = restored.report(v, round=round) == client.report(v, round=round)
        must(
            same and restored.reporter(round) == client.reporter(round), "a report must be the same"
        )
    must(restored.to_dict() == client.to_dict(), "a restored client must go on in the same state")


def other_values_are_refused_and_cost_nothing(protocol: Protocol) -> None:
    """Of every type and size, with an error that does not show the value."""
    client, k = protocol.client(), protocol.k
    report: Callable[..., Any] = client.report
    before, says = client.to_dict(), f"value must be an integer in 0..{k - 1}, got "
    for value in (
        1.0, "1", True, None, math.nan, -1, k, k + 1, 1 << 70, np.float64(1), np.bool_(True),
        np.array([1]), [1], b"1", np.int8(-1),
    ):  # fmt: skip
        what = f"a value of type {type(value).__name__}"
        _refuses(DomainError, says, partial(report, value, round=0), what)
    must(client.to_dict() == before, "a refused value must cost nothing")


def a_client_cannot_be_copied(protocol: Protocol) -> None:
    """A second copy would draw its own answers."""
    client = protocol.client()
    duplicates: tuple[Callable[[Any], Any], ...] = (pickle.dumps, copy.copy, copy.deepcopy)
    for duplicate in duplicates:
        _refuses(StateError, "must not be pickled or copied", partial(duplicate, client), "a copy")


# -- servers and specifications


def counts_do_not_depend_on_how_they_are_added(protocol: Protocol) -> None:
    """In any order and partition."""
    reports = [report for *_, report in walk(protocol)]
    one_by_one, at_once = protocol.tally(), counted(protocol, reports)
    for report in reports:
        one_by_one.add(report)
    parts = counted(protocol, reports[7:]) + counted(protocol, reports[:7])
    must(one_by_one == at_once == parts, "a tally must not depend on how it was added up")
    cells, added = protocol.encoding.increments(*protocol.encoding.arrays(reports))
    counts = np.zeros(protocol.encoding.cells, dtype=np.int64)
    counts[cells] = added
    must((counts == one_by_one.counts).all(), "increments must be what counting adds")


def no_reports_are_a_clear_error(protocol: Protocol) -> None:
    """Not a division by zero."""
    estimate = protocol.tally().estimate
    _refuses(ParameterError, "n must be an integer in 1", estimate, "an estimate of no reports")


def a_protocol_is_a_value(protocol: Protocol) -> None:
    """Equal after every trip, and never changed."""
    cls, params = type(protocol), protocol.get_params()
    for other in (
        eval(repr(protocol), {cls.__name__: cls}),
        protocol_from_dict(protocol.to_dict()),
        registered(protocol.name.upper(), **params),
        cls.from_params(params),
        pickle.loads(pickle.dumps(protocol)),
        copy.deepcopy(protocol),
    ):
        same = other == protocol and hash(other) == hash(protocol)
        must(same and type(other) is cls, "a protocol must survive every trip")
        same = other.fingerprint == protocol.fingerprint and other.realised == protocol.realised
        must(same, "a copy of a protocol must have its numbers")
    for name in params:
        change = partial(setattr, protocol, name, 3)
        _refuses(AttributeError, name, change, f"a change of {name}")


EXACT: dict[str, Law] = _named(
    the_first_report_loses_what_is_realised,
    all_reports_of_a_value_lose_what_its_memo_loses,
    support_has_the_stated_chances,
    a_population_is_simulated_as_its_clients_are,
)
"""Laws that follow every path of draws: for small protocols."""

LAWS: dict[str, Law] = EXACT | _named(
    reports_look_alike,
    memo_and_key_stay,
    a_round_is_answered_once,
    who_reports_does_not_depend_on_values,
    a_restored_client_goes_on_identically,
    other_values_are_refused_and_cost_nothing,
    a_client_cannot_be_copied,
    counts_do_not_depend_on_how_they_are_added,
    no_reports_are_a_clear_error,
    a_protocol_is_a_value,
)
"""All laws, by name."""
