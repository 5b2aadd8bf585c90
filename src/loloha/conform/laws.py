"""Laws that every protocol obeys, for whoever writes one of their own.

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
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from loloha import checks
from loloha.channels import exp_below
from loloha.client import Client
from loloha.conform import case
from loloha.distribution import exact_distribution, loss_between
from loloha.errors import BudgetError, DomainError, LawError, ParameterError, StateError
from loloha.population.samplers import History, sample
from loloha.population.samplers.enumerated import EnumeratedDraws, RunByClients
from loloha.protocols import Protocol, protocol_from_dict
from loloha.protocols import protocol as registered
from loloha.report import Report
from loloha.rng import Rng, SimulationRng
from loloha.server.tally import Tally
from loloha.server.variance import variance
from loloha.wire.message import encode, key_from_text

Law = Callable[[Protocol], None]
Chances = dict[Any, Fraction]

_CLOSE = 1e-9
"""Formulas, in floating point, are this near to what devices realise."""


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


def _must(holds: Any, what: str) -> None:
    if not holds:
        raise LawError(what)


def _named(*laws: Any) -> dict[str, Law]:
    return {law.__name__: law for law in laws}


def _refuses(kind: type[Exception], says: str, call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except kind as error:
        _must(says in str(error), f"{what} must be refused with {says!r}, is with another message")
        return
    raise LawError(f"{what} must be refused with {kind.__name__}")


def _counted(protocol: Protocol, reports: Sequence[Report]) -> Tally:
    tally = protocol.tally()
    tally.update(*protocol.encoding.arrays(reports))
    return tally


def walk(protocol: Protocol) -> Iterator[tuple[Client, int, Report]]:
    """A user who holds each value for some rounds, and returns to old ones."""
    client = protocol.client(rng=SimulationRng(11))
    for round in range(40):
        v = (round // 3) * 7 % protocol.k if round % 4 else 0
        yield client, v, client.report(v, round=round)


# -- exact laws: every path of a client's draws


def _law(protocol: Protocol, values: Sequence[int], transcript: Callable[..., Any]) -> Chances:
    """The law of what a new client, and its reports of these values, one a round, tell."""

    def run(rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        return transcript(client, [client.report(v, round=round) for round, v in enumerate(values)])

    return exact_distribution(run)


def _reports(protocol: Protocol, *values: int) -> Chances:
    """The law of what a new client sends for these values."""
    return _law(protocol, values, lambda _, sent: tuple((one.key, one.y) for one in sent))


def _memos(protocol: Protocol, v: int) -> Chances:
    """The law of what a client keeps after its first report."""
    return _law(
        protocol, [v], lambda client, sent: (sent[0].key, str(client.to_dict()["memo"][0][1]))
    )


def _must_lose(laws: list[Chances], realised: float | None, bound: float, what: str) -> None:
    """Every two laws are within e^bound, exactly; their loss is the one that is realised."""
    _must(len({frozenset(one) for one in laws}) == 1, f"{what} must give no value away for certain")
    ratio = max(one[y] / other[y] for one in laws for other in laws for y in one)
    # A rational just below e^bound; above it by rounding alone is no promise kept either.
    within = ratio <= exp_below(Fraction(bound)) * (1 + Fraction(1, 10**50))
    loss = max(loss_between(one, other) for one in laws for other in laws)
    _must(within, f"{what} must lose at most {bound!r}, loses {loss!r}")
    near = realised is None or math.isclose(loss, realised, rel_tol=_CLOSE, abs_tol=1e-12)
    _must(near, f"{what} must lose what is realised, {realised!r}, loses {loss!r}")


def the_first_report_loses_what_is_realised(protocol: Protocol) -> None:
    """And at most ``asked_first``: in exact arithmetic, between any two values."""
    laws = [_reports(protocol, v) for v in range(protocol.k)]
    _must_lose(laws, protocol.realised.eps_first, protocol.asked_first, "the first report")


def all_reports_of_a_value_lose_what_its_memo_loses(protocol: Protocol) -> None:
    """A memo loses what is realised, at most ``asked_memo``; so do reports, however many."""
    if not protocol.longitudinal:
        return
    memos = [_memos(protocol, v) for v in range(protocol.k)]
    _must_lose(memos, protocol.realised.eps_memo, protocol.asked_memo, "a memo")
    twice = [_reports(protocol, v, v) for v in (0, protocol.k - 1)]
    _must_lose(twice, None, protocol.realised.eps_memo * (1 + 1e-12), "two reports of one value")


def support_has_the_stated_chances(protocol: Protocol) -> None:
    """p_star where the user holds the bin, else q_star, or between as the user holds it in part."""
    real, encoding = protocol.realised, protocol.encoding
    p_star, q_star = Fraction(real.p_star), Fraction(real.q_star)
    for v in range(protocol.k):
        support, eligible = [Fraction(0)] * protocol.bins, [Fraction(0)] * protocol.bins
        for ((key, y),), chance in _reports(protocol, v).items():
            tally = _counted(protocol, [Report(key, y)])
            for bin in range(protocol.bins):
                support[bin] += chance * int(tally.support()[bin])
                eligible[bin] += chance * int(tally.eligible()[bin])
        for bin, (supported, reached) in enumerate(zip(support, eligible, strict=True)):
            held = encoding.weight(v, bin)
            stated = q_star + (p_star - q_star) * held
            _must(
                supported == stated * reached,
                f"a report of value {v} must support bin {bin} with chance {float(stated)!r}, "
                f"does with {float(supported / reached)!r}",
            )
            spread = float(stated * (1 - stated) / (p_star - q_star) ** 2)
            formula = variance(protocol, n=1, f=float(held)) * float(reached)
            near = math.isclose(formula, spread, rel_tol=_CLOSE)
            _must(near, f"variance where a report reaches a bin must be {spread!r}, is {formula!r}")


def a_population_is_simulated_as_its_clients_are(protocol: Protocol) -> None:
    """Counts and loss of one user in two rounds, whatever path `simulate` takes."""
    # Bits double the paths each.
    few = protocol.encoding.report_bits - protocol.encoding.key_bits <= 2
    values = [0, protocol.k - 1] if few else [protocol.k - 1]
    history = History(np.array([values]), protocol.k)

    def simulated(rng: Rng) -> Any:
        drawn = sample(protocol, history, EnumeratedDraws(rng), lambda _: None)
        counts = [tuple(one.tolist()) for one in drawn.counts]
        return (*counts, round(float(drawn.loss[0]), 9))

    def reported(client: Client, sent: list[Report]) -> Any:
        counts = [tuple(_counted(protocol, [one]).counts.tolist()) for one in sent]
        return (*counts, round(client.loss, 9))

    try:
        simulated_law = exact_distribution(simulated)
    except RunByClients:
        return
    same = simulated_law == _law(protocol, values, reported)
    _must(same, "a simulated population must have exactly the law of its clients")


# -- clients


def reports_look_alike(protocol: Protocol) -> None:
    """Neither size nor shape of a report or its message tells the value or the history."""
    encoding = protocol.encoding
    campaign = case.campaign(protocol)
    shapes, sizes = set(), set()
    alone = [protocol.client().report(v, round=9) for v in range(protocol.k)]
    for report in [*alone, *(sent for *_, sent in walk(protocol))]:
        key, y = report.key, report.y
        _must(encoding.is_sent(key) and encoding.is_answer(y), "what is sent must be in range")
        shapes.add((type(key), np.shape(key or 0), type(y), isinstance(y, bytes) and len(y)))
        message = encode(campaign, report, round=9, reporter="")
        sizes.add(len(message))
        fields = json.loads(message)
        same = "key" not in fields or key_from_text(campaign, fields["key"]) == key
        _must(same, "a key must survive its message")
    _must(len(shapes) == len(sizes) == 1, "reports must be of one shape and size")


def memo_and_key_stay(protocol: Protocol) -> None:
    """Nor does a key; and `loss` grows with the memo alone, up to `cap`."""
    if not protocol.longitudinal:
        return
    known: dict[int, Any] = {}
    keys: set[str] = set()
    tables: list[Any] = []
    for client, v, _ in walk(protocol):
        state = client.to_dict()
        memo = dict(state["memo"])
        _must({x: memo.get(x) for x in known} == known, "a memo must stay as it was drawn")
        key: Any = state["key"]
        held = tuple(key) if isinstance(key, list) else key
        drawn = protocol.memo_index(held, v) in memo
        _must(drawn, "an answer must be kept under its memo symbol")
        known = memo
        tables.append(state.get("table"))
        _must(tables[0] == tables[-1], "answers that were drawn together must stay")
        keys.add(str(state["key"]))
        same = math.isclose(client.loss, protocol.spent(len(memo)))
        _must(same, "loss must be what the memo spent")
        _must(client.loss <= client.cap * (1 + 1e-12), "loss must stay within cap")
    _must(len(keys) == 1, "a client must keep its key")


def a_round_is_answered_once(protocol: Protocol) -> None:
    """Asking again draws nothing and gives the same bits, whatever the value."""
    client = protocol.client(rng=SimulationRng(5))
    first = client.report(0, round=3)
    state = client.to_dict()
    restored = Client.from_dict(state, rng=SimulationRng(6))
    for v in range(protocol.k):
        again = client.report(v, round=3), restored.report(v, round=3)
        _must(again == (first, first), "a round must be answered once")
    _must(client.to_dict() == state, "asking again must change nothing")


def who_reports_does_not_depend_on_values(protocol: Protocol) -> None:
    """Nor who may be reset: under every limit, in every history, and within the limit."""
    cells = protocol.encoding.memo_cells if protocol.longitudinal else 3
    steps = [protocol.spent(answers) for answers in range(1, min(cells, 3) + 1)]
    most = [protocol.cap] if protocol.longitudinal else []
    limits = {a + b for a in (0.0, *steps, *most) for b in (*steps, *most)}
    histories = list(product(range(min(protocol.k, 3)), repeat=3))
    for limit, seed in product(sorted(limits), range(2)):
        patterns = {_who_reports(protocol, limit, seed, values) for values in histories}
        what = f"under a limit of {limit!r} whether a client reports must not depend on values"
        _must(len(patterns) == 1, what)


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
        _must(client.loss <= limit * (1 + 1e-9), f"loss must stay within its limit, {limit!r}")
    return tuple(reported)


def a_restored_client_goes_on_identically(protocol: Protocol) -> None:
    """Given the same draws, as if it had never been stored."""
    rng = SimulationRng(8)
    client = protocol.client(rng=rng, limit=1e6)
    for round in range(5):
        client.report(round % protocol.k, round=round)
    restored = Client.from_dict(client.to_dict(), protocol=protocol, rng=copy.deepcopy(rng))
    for round in range(3, 20):
        v = round * 5 % protocol.k
        same = restored.report(v, round=round) == client.report(v, round=round)
        _must(
            same and restored.reporter(round) == client.reporter(round), "a report must be the same"
        )
    _must(restored.to_dict() == client.to_dict(), "a restored client must go on in the same state")


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
    _must(client.to_dict() == before, "a refused value must cost nothing")


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
    one_by_one, at_once = protocol.tally(), _counted(protocol, reports)
    for report in reports:
        one_by_one.add(report)
    parts = _counted(protocol, reports[7:]) + _counted(protocol, reports[:7])
    _must(one_by_one == at_once == parts, "a tally must not depend on how it was added up")
    cells, added = protocol.encoding.increments(*protocol.encoding.arrays(reports))
    counts = np.zeros(protocol.encoding.cells, dtype=np.int64)
    counts[cells] = added
    _must((counts == one_by_one.counts).all(), "increments must be what counting adds")


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
        _must(same and type(other) is cls, "a protocol must survive every trip")
        same = other.fingerprint == protocol.fingerprint and other.realised == protocol.realised
        _must(same, "a copy of a protocol must have its numbers")
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
